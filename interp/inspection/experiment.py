"""One picture through a model twice, without the lab's hooks and with them: what they change."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from interp.attribution.base import LayerCall
from interp.attribution.explanation import check_input
from interp.attribution.notes import notes_on_run
from interp.errors import HookError
from interp.geometry import Fit
from interp.hooks.lab import Lab
from interp.hooks.ledger import HookLedger
from interp.hooks.surroundings import Surroundings
from interp.inspection.measure import (
    Measured,
    Question,
    Side,
    cuts,
    hooked_parameters,
    measure,
    without_hooks,
)
from interp.inspection.remarks import remarks
from interp.models.layers import LayerInfo, recommended_layer
from interp.models.routes import table_for
from interp.picture import Picture
from interp.targets import Target, parse_target, probabilities

__all__ = ["Change", "Experiment", "LayerNorm", "Side", "run_experiment"]


@dataclass(frozen=True)
class Change:
    """One class, before and after; probabilities are from 0 to 1."""

    index: int
    name: str
    logits: tuple[float, float]
    probabilities: tuple[float, float]


@dataclass(frozen=True)
class LayerNorm:
    """The L2 norm of one layer's first output, or of the gradient there, before and after.

    `kind` is the layer's class, or "Parameter" for the gradient of one that carries a tensor hook.
    """

    path: str
    kind: str
    order: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Experiment:
    """A picture before and after the hooks of a lab.

    Attributes
    ----------
    before, after : Side
        The target is that of `before.attribution`; it is the same class after.
    changes : tuple of Change
        The target, then the five best classes before and those after.
    norms, gradient_norms : tuple of LayerNorm
        In running order, first calls. A layer that no gradient reaches on either side is left out.
    notes : tuple of str
        What a reader has to know: hooks that cannot change the answer, or did nothing.
    ledger : HookLedger
        The hooks that measured, not those of the lab.
    seconds : float
    """

    before: Side
    after: Side
    changes: tuple[Change, ...]
    norms: tuple[LayerNorm, ...]
    gradient_norms: tuple[LayerNorm, ...]
    notes: tuple[str, ...]
    ledger: HookLedger
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """All of it but the logits of every class and the ledger, as plain values for JSON."""
        return {
            "target": self.before.attribution.target.label,
            "before": self.before.attribution.manifest(),
            "after": self.after.attribution.manifest(),
            "changes": [asdict(change) for change in self.changes],
            "norms": [asdict(row) for row in self.norms],
            "gradient_norms": [asdict(row) for row in self.gradient_norms],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 6),
        }


def run_experiment(
    lab: Lab,
    picture: Picture,
    target: str | int | Target | None = None,
    fit: Fit = "crop",
) -> Experiment:
    """Run a picture without the lab's hooks and with them.

    Parameters
    ----------
    lab : Lab
        Its hooks stay as they are.
    picture : Picture
    target : str, int, Target or None
        As `explain` takes it; the top prediction is that without hooks.
    fit : "crop", "stretch" or "letterbox"

    Returns
    -------
    Experiment

    Raises
    ------
    HookError
        If the lab is closed, or a hook cannot act on the value it is given.
    InterpError
        If the picture, the target or the model will not do.
    """
    began = time.perf_counter()
    model = lab.model
    check_input(model, picture, fit)
    wanted = parse_target(target, model.categories)
    tensor, ledger = model.prepare(picture, fit), HookLedger()
    with lab.lock:
        if lab.closed:
            raise HookError("this lab is closed: open a new one with Lab(model)")
        table = lab.keep(
            ("layers", picture.sha256, picture.frame, fit),
            lambda: table_for(model.module, model.layers, tensor),
        )
        layer = LayerCall(recommended_layer(table))
        question = Question(model, picture, fit, tensor, layer, table)
        steps = [worker.step for worker in lab.workers]
        measured = hooked_parameters(steps), cuts(steps)
        around = Surroundings.now(model.device)
        key = ("before", picture.sha256, picture.frame, fit, wanted, measured, repr(around))

        def make() -> Measured:
            return without_hooks(question, wanted, steps, ledger)

        # What other hooks of the caller's did then says nothing of those that are on now.
        before = make() if around.global_hooks else lab.keep(key, make)
        with lab.running(ledger, fit, before.target):
            after = measure(question, lab.session, before.target, steps, lab)
        notes = (*notes_on_run(model, around), *remarks(lab.workers, before, after))
    return Experiment(
        before=before.side,
        after=after.side,
        changes=_changes(before.side, after.side, before.target),
        norms=_rows(table, before.norms, after.norms, ()),
        gradient_norms=_rows(
            table, before.gradient_norms, after.gradient_norms, hooked_parameters(steps)
        ),
        notes=notes,
        ledger=ledger,
        seconds=time.perf_counter() - began,
    )


def _rows(
    table: Sequence[LayerInfo],
    before: dict[str, float],
    after: dict[str, float],
    parameters: Sequence[tuple[str, str]],
) -> tuple[LayerNorm, ...]:
    orders = {info.path: (info.kind, info.order) for info in table}
    names = {f"{path}.{name}": ("Parameter", orders[path][1]) for path, name in parameters}
    rows = [
        LayerNorm(path, kind, order, before.get(path, 0.0), after.get(path, 0.0))
        for path, (kind, order) in (orders | names).items()
        if path in before or path in after
    ]
    return tuple(sorted(rows, key=lambda row: row.order))


def _changes(before: Side, after: Side, target: Target) -> tuple[Change, ...]:
    shown = [target.index, target.against]
    shown += [prediction.index for side in (before, after) for prediction in side.predictions]
    sides = torch.from_numpy(np.stack([before.logits, after.logits]))
    odds = probabilities(sides, target.binary)
    names = Target(categories=target.categories)
    return tuple(
        Change(
            index,
            names.name(index),
            (float(sides[0, index]), float(sides[1, index])),
            (float(odds[0, index]), float(odds[1, index])),
        )
        for index in dict.fromkeys(shown)
        if index is not None
    )
