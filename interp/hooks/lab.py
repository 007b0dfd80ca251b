"""The hooks of a recipe, live on a private copy of a model until they are taken off."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import RLock
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from interp.errors import HookError
from interp.geometry import Fit
from interp.hooks.donors import donor_values
from interp.hooks.handle import HookHandle
from interp.hooks.ledger import HookLedger, HookRecord, Kind
from interp.hooks.recipe import Recipe, Step, check
from interp.hooks.session import HookSession
from interp.hooks.sites import registered_kind
from interp.hooks.undisturbed import undisturbed
from interp.hooks.worker import Worker
from interp.models.copies import frozen_copy
from interp.models.loading import LoadedModel
from interp.picture import Picture, open_picture, sample_pictures
from interp.targets import Target

PictureOf = Callable[[str], Picture]
_KEPT = 16  # values from second pictures, and results without hooks


@dataclass(frozen=True)
class LiveHook:
    """A hook that stands on the lab's copy: its step, its record, and the way to take it off."""

    step: Step
    record: HookRecord
    handle: HookHandle


def sample_or_file(name: str) -> Picture:
    """A picture by the name of a sample, or by its path."""
    return open_picture(sample_pictures().get(name, name))


class Lab:
    """The hooks of a recipe, live on a private copy of a loaded model.

    The hooks stay between runs; each is taken off by its handle, by a recipe without it, or by
    `close`, which the end of a `with` block calls. The model itself never carries one. One run or
    change at a time, from any thread.

    Parameters
    ----------
    model : LoadedModel
    ledger : HookLedger, optional
        Where the records of these hooks are kept.

    Attributes
    ----------
    ledger : HookLedger
        Of the recipe's hooks.
    recipe : Recipe
        What was synced last, less what was removed since.
    session : HookSession
        On the copy that carries the hooks.
    kept : OrderedDict
        What runs without hooks gave, for the next run (see `keep`).
    """

    def __init__(self, model: LoadedModel, ledger: HookLedger | None = None) -> None:
        self.model = model
        copy = frozen_copy(model.module)
        self.session = HookSession(model.module, ledger, copy=copy)
        self.ledger = self.session.ledger  # the session's is another while a run is measured
        self.recipe = Recipe()
        self.kept: OrderedDict[Any, Any] = OrderedDict()
        self.lock = RLock()
        self._workers: list[Worker] = []
        self._pictures: dict[str, Picture] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self.session.closed

    @property
    def live(self) -> tuple[LiveHook, ...]:
        """The hooks that stand, in the order of the recipe."""
        order = {step.id: place for place, step in enumerate(self.recipe.steps)}
        hooks = [
            LiveHook(worker.step, worker.site.handle.record, worker.site.handle)
            for worker in self._workers
            if worker.site.handle.is_registered()
        ]
        return tuple(sorted(hooks, key=lambda hook: order.get(hook.step.id, len(order))))

    @property
    def workers(self) -> tuple[Worker, ...]:
        """What the live hooks did in the last run."""
        return tuple(worker for worker in self._workers if worker.site.handle.is_registered())

    def sync(self, recipe: Recipe, picture_of: PictureOf = sample_or_file) -> None:
        """Make the live hooks those of the recipe's enabled steps.

        A hook stays, with its handle and its record, where its step is as it was and so is its
        order among those of its kind on its module.

        Parameters
        ----------
        recipe : Recipe
        picture_of : callable
            From what a patch names its second picture by to that picture; by default the name of
            a sample, or a path.

        Raises
        ------
        HookError, LayerError, PictureError
            If a step cannot work; the live hooks are as before then.
        """
        with self.lock:
            if self.closed:
                raise HookError("this lab is closed: open a new one with Lab(model)")
            wanted = [step for step in recipe.steps if step.enabled]
            for step in wanted:
                check(step, self.model)
            names = {step.values["picture"] for step in wanted if step.action == "patch"}
            pictures = {name: picture_of(name) for name in sorted(names)}
            staying = self._staying(wanted)
            self._take_off([w for w in self._workers if w.step.id not in staying])
            self._pictures, self.recipe = pictures, recipe
            for step in wanted:
                if step.id not in staying:
                    calls = self._calls(step)
                    self._workers.append(Worker(self.session, step, self.model, calls))

    def remove(self, record_id: int) -> Step | None:
        """Take one hook off by its handle; its step in `recipe` is disabled.

        Returns
        -------
        Step or None
            The disabled step; None where no live hook has that record.
        """
        with self.lock:
            for worker in self.workers:
                if worker.site.handle.id == record_id:
                    self._take_off([worker])
                    step = replace(worker.step, enabled=False)
                    self.recipe = self.recipe.replace(step)
                    return step
        return None

    def close(self) -> None:
        """Take every hook off. A second call changes nothing."""
        with self.lock:
            self._take_off(self._workers)
            self.session.close()
            self.kept.clear()
            self._pictures = {}

    @contextmanager
    def running(self, ledger: HookLedger, fit: Fit, target: Target) -> Iterator[None]:
        """Ready the hooks for one pass over `session.module`.

        What is registered meanwhile is recorded in `ledger` and gone at the end.

        Parameters
        ----------
        ledger : HookLedger
        fit : "crop", "stretch" or "letterbox"
            For the second pictures of patches.
        target : Target
            Resolved: what gradients patched from a second picture are of.
        """
        with self.lock:
            ready = [(w, self._donors(w.step, ledger, fit, target)) for w in self.workers]
            try:
                for worker, donors in ready:
                    worker.begin(donors)
                with (
                    self.session.aside(ledger),
                    undisturbed(self.model.device, gradients=True, seed=self.model.seed),
                    self.session.running(),
                ):
                    yield
            finally:
                for worker in self._workers:
                    worker.end()

    @property
    def starts(self) -> tuple[Tensor, ...]:
        """In a pass: leaves that tensor hooks stand on, whose gradient has to be asked for."""
        return tuple(tensor for worker in self._workers for tensor in worker.site.starts)

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gave for that key before, or gives now; the newest few are kept."""
        if key not in self.kept:
            self.kept[key] = make()
        self.kept.move_to_end(key)
        while len(self.kept) > _KEPT:
            self.kept.popitem(last=False)
        return self.kept[key]

    def _staying(self, wanted: list[Step]) -> set[str]:
        """Ids of the steps whose hooks can stay.

        PyTorch puts a new hook behind the others of its kind on its module, or before them all, so
        those that stay must be the first of the wanted ones, registered in the same order.
        """
        live: dict[Any, list[Step]] = {}
        for worker in self.workers:
            live.setdefault(self._place(worker.step), []).append(worker.step)
        staying = set()
        for step in wanted:
            there = live.get(self._place(step), [])
            if step in there:
                del there[: there.index(step) + 1]
                staying.add(step.id)
            else:
                there.clear()
        return staying

    def _place(self, step: Step) -> tuple[Kind, str, str]:
        kind = registered_kind(step, self._calls(step))
        return kind, step.path, step.of if kind == "tensor" else ""

    def _calls(self, step: Step) -> int:
        return next(info.calls for info in self.model.layers if info.path == step.path)

    def _take_off(self, workers: Iterable[Worker]) -> None:
        gone = list(workers)
        self.session.release(worker.site.handle for worker in gone)
        self._workers = [worker for worker in self._workers if worker not in gone]
        needed = {(w.step.path, w.step.of) for w in self._workers if w.step.of_parameter}
        for worker in gone:
            if worker.step.of_parameter and (worker.step.path, worker.step.of) not in needed:
                worker.site.parameter.requires_grad_(False)

    def _donors(
        self, step: Step, ledger: HookLedger, fit: Fit, target: Target
    ) -> Mapping[int, Tensor]:
        if step.action != "patch":
            return {}
        picture = self._pictures[step.values["picture"]]
        aim = "" if step.kind in ("forward_pre", "forward") else str(target)
        key = (step.kind, step.path, step.of, step.call, picture.sha256, picture.frame, fit, aim)
        return self.keep(key, lambda: donor_values(self.model, step, picture, fit, target, ledger))
