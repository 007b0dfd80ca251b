"""What had happened in a forward pass when one call of one layer began."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from interp.errors import LayerError
from interp.hooks.found import no_such_layer
from interp.hooks.ledger import HookRecord
from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.writes import tensors_in

RUN, GIVEN = "run", "given"


@dataclass(frozen=True)
class Kept:
    """What a module returned in the recording pass, and whether the network wrote over it."""

    output: Any
    written: bool


@dataclass
class _Ended:
    """A call that ended while the call that made it went on."""

    module: nn.Module
    record: HookRecord
    began: int
    output: Any


@dataclass
class _Running:
    """A call that has begun, and the calls it made that have ended."""

    module: nn.Module
    began: int
    ended: list[_Ended] = field(default_factory=list)

    def forget_last(self) -> None:
        """A plain sequence reads no more than the newest output of its parts."""
        if self.ended and type(self.module).forward is nn.Sequential.forward:
            self.ended[-1].output = None


class Tape:
    """Hooks on every module that note what is there when one call of one layer begins.

    What ended inside a module that has ended too is let go of at once. `value`, `output` and
    `scripts` are asked after the pass, while the session is still entered. `widest` is the bytes of
    the largest tensor that the layer, or a module that ended after it, returned.
    """

    def __init__(self, session: HookSession, path: str, call: int) -> None:
        self.path, self.call = path, call
        self._session = session
        self._output: Any = None
        self._running: list[_Running] = []
        self.widest = self._began = self._clock = self._calls = 0
        self._stack: list[_Running] = []
        self._found = False
        paths = dict(session.module.named_modules(remove_duplicate=False))
        if path not in paths:
            raise no_such_layer(path, paths)
        self._layer = paths[path]
        for name, _ in session.module.named_modules():
            session.forward_pre(name, self._begin, purpose="what is running", origin="engine")
            self._watch_end(session, name)

    def value(self) -> Tensor:
        """The first tensor that the layer returned.

        Raises
        ------
        LayerError
            If that call did not happen, or returned no row for the one picture.
        """
        value = first_tensor(self._output)
        if not self._found:
            raise LayerError(f"layer «{self.path}» ran {self._calls} times: no call {self.call}")
        if value is None:
            raise LayerError(f"layer «{self.path}» returns no tensor: choose a layer inside it")
        if value.dim() < 2 or len(value) != 1:
            raise LayerError(
                f"layer «{self.path}» returns {tuple(value.shape)}, which is not one row for one "
                "picture: choose another layer"
            )
        return value.detach()

    def scripts(self) -> dict[int, list[Kept | str]]:
        """By the id of a module, what it does at each of its calls in a replay.

        `RUN` where it is to run, `GIVEN` where the layer's call was, or what it returned.
        """
        steps: dict[int, list[tuple[int, Kept | str]]] = defaultdict(list)
        steps[id(self._layer)].append((self._began, GIVEN))
        for call in self._running:
            steps[id(call.module)].append((call.began, RUN))
            for ended in call.ended:
                kept = self._kept(ended.output)
                ended.record.bytes_held += sum(map(bytes_of, tensors_in(ended.output)))
                steps[id(ended.module)].append((ended.began, kept))
        return {
            key: [step for _, step in sorted(several, key=lambda entry: entry[0])]
            for key, several in steps.items()
        }

    def output(self) -> Kept:
        """What the layer returned."""
        return self._kept(self._output)

    def _kept(self, output: Any) -> Kept:
        return Kept(output, self._session.was_written(output))

    def _begin(self, module: nn.Module, args: Any) -> None:
        self._clock += 1
        if module is self._layer:
            if self._calls == self.call and not self._found:
                self._found, self._began = True, self._clock
                self._running = list(self._stack)
                for innermost in self._running[-1:]:
                    innermost.forget_last()
            self._calls += 1
        self._stack.append(_Running(module, self._clock))

    def _watch_end(self, session: HookSession, name: str) -> None:
        def end(module: nn.Module, args: Any, output: Any) -> None:
            call = self._stack.pop()
            while call.module is not module:  # one that raised and was caught by the network
                call = self._stack.pop()
            if call.began == self._began:
                self._output = output
            if self._found:
                self.widest = max([self.widest, *map(bytes_of, tensors_in(output))])
            elif self._stack:
                self._stack[-1].forget_last()
                self._stack[-1].ended.append(_Ended(module, handle.record, call.began, output))

        handle = session.forward(name, end, purpose="what came before the layer", origin="engine")


def bytes_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def with_first_tensor(
    output: Any, tensor: Tensor, change: Callable[[Any], Any] = lambda other: other
) -> Any:
    """What a module returned with its first tensor replaced, and `change` made to the rest."""
    leaves, shape = tree_flatten(output)
    first = next(i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
    new = [tensor if i == first else change(leaf) for i, leaf in enumerate(leaves)]
    return tree_unflatten(new, shape)
