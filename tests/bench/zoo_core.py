"""What the zoo asks of the parts that look inside and intervene, of one classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

import interp
from interp.hooks.lab import Lab
from interp.hooks.ledger import HookLedger
from interp.hooks.recipe import Recipe, Step
from interp.hooks.replay import Replay
from interp.inspection.experiment import run_experiment
from interp.inspection.statistics import statistics
from interp.inspection.travel import travel
from interp.models.layers import recommended_layer
from interp.picture import Picture

Logits = npt.NDArray[np.float32]
CLOSE = 1e-4  # of the largest logit


def core_problems(
    model: interp.LoadedModel, picture: Picture, logits: Tensor, calls: Mapping[str, int]
) -> Iterator[str]:
    """What is wrong with statistics, replay, gradient travel, and live hooks, in words.

    Parameters
    ----------
    model, picture
    logits : Tensor
        Of a plain pass, shape (1, K).
    calls : mapping
        From the path of each module that ran in that pass to how often.
    """
    plain = logits.numpy()
    layers = {path: count for path, count in calls.items() if path}  # the model is not one itself
    yield from _statistics(model, picture, plain, layers)
    yield from _replay(model, picture, plain)
    yield from _travel(model, picture, layers)
    yield from _lab(model, picture, plain)
    yield from (f"a {left.kind} hook stays on {left.path}" for left in interp.audit(model.module))


def _statistics(
    model: interp.LoadedModel, picture: Picture, logits: Logits, calls: Mapping[str, int]
) -> Iterator[str]:
    found = statistics(model, picture)
    rows = Counter(row.path for row in found.rows)
    for path in sorted(calls.keys() | rows.keys()):
        if rows[path] != calls.get(path, 0):
            yield f"{path} ran {calls.get(path, 0)} times, statistics has {rows[path]} rows"
    for row in found.rows:
        if not np.isfinite([row.mean, row.std, row.zeros, row.largest, row.norm]).all():
            yield f"the statistics of {row.path} are not finite"
    yield from _off("statistics", found.logits, logits)
    yield from _left("statistics", found.ledger)


def _replay(model: interp.LoadedModel, picture: Picture, logits: Logits) -> Iterator[str]:
    ledger = HookLedger()
    path = recommended_layer(model.layers).path
    replay = Replay(model.module, model.prepare(picture), path, ledger=ledger)
    yield from _off("the recorded pass", replay.logits.numpy(), logits)
    yield from _off(f"a replay from {path}", replay(replay.value).numpy(), logits)
    yield from _left("the replay", ledger)


def _travel(model: interp.LoadedModel, picture: Picture, calls: Mapping[str, int]) -> Iterator[str]:
    found = travel(model, picture)
    if {row.path for row in found.rows} != set(calls):
        yield f"{len(calls)} modules ran, gradients have {len(found.rows)} rows"
    for row in found.rows:
        numbers = [one for one in astuple(row) if isinstance(one, float)]
        if not np.isfinite(numbers).all():
            yield f"the gradient's numbers at {row.path} are not finite"
    if not np.isfinite(found.input_gradient.map).all() or not found.input_gradient.map.any():
        yield "the gradient at the input is not finite, or nothing"
    yield from _left("gradients", found.ledger)


def _lab(model: interp.LoadedModel, picture: Picture, logits: Logits) -> Iterator[str]:
    """A pre-hook where the network begins, a hook in it, and a backward hook where it ends."""
    parents = {path.rpartition(".")[0] for path in (info.path for info in model.layers)}
    leaves = [info.path for info in model.layers if info.calls and info.path not in parents]
    middle = recommended_layer(model.layers).path
    steps = (
        Step("forward_pre", leaves[0], "scale", {"factor": 0.5}),
        Step("forward", middle, "channels", {"which": "0-3"}),
        Step("full_backward", leaves[-1], "negate"),
    )
    lab = Lab(model)
    try:
        lab.sync(Recipe(steps), lambda name: picture)
        found = run_experiment(lab, picture)
        yield from _off("the pass before the hooks", found.before.logits, logits)
        if not np.isfinite(found.after.logits).all():
            yield "the logits with hooks are not finite"
        if np.array_equal(found.before.logits, found.after.logits):
            yield "the hooks left every logit as it was"
        silent = [hook.step.path for hook in lab.live if not hook.record.fires]
        yield from (f"the lab's hook on {path} never fired" for path in silent)
        live = len(lab.live)
        lab.remove(lab.live[0].record.id)
        yield from (f"{n} hooks are live" for n in (live, len(lab.live) + 1) if n != len(steps))
    finally:
        lab.close()
    yield from _left("the lab", lab.ledger)
    yield from _left("the experiment", found.ledger)
    yield from (f"the lab keeps a hook on {left.path}" for left in interp.audit(lab.session.module))


def _off(what: str, found: Logits, logits: Logits) -> Iterator[str]:
    off = float(np.abs(found.reshape(logits.shape) - logits).max() / np.abs(logits).max())
    if not off <= CLOSE:
        yield f"the logits of {what} are off by {off:.1g} of the largest"


def _left(what: str, ledger: HookLedger) -> Iterator[str]:
    summary = ledger.summary()
    if summary["live"] or summary["removed"] != summary["registered"]:
        yield f"{what} removed {summary['removed']} of {summary['registered']} hooks"
