"""What a reader of an experiment has to know of each hook, in words."""

from collections.abc import Sequence

import numpy as np

from interp.hooks.recipe import cannot_change_logits
from interp.hooks.worker import Worker
from interp.inspection.measure import Measured


def remarks(workers: Sequence[Worker], before: Measured, after: Measured) -> tuple[str, ...]:
    """A sentence or two for each hook that did less than one may expect, and for odd results."""
    notes = []
    for worker in workers:
        step = worker.step
        reasons = [cannot_change_logits(step), _what_happened(worker)]
        name = f"{step.path}.{step.of}"
        if step.of_parameter and name in after.gradient_norms:
            norms = before.gradient_norms.get(name, 0.0), after.gradient_norms[name]
            reasons.append(
                f"The gradient of {name} has the norm {norms[0]:.4g} before and {norms[1]:.4g} "
                "after."
            )
        if text := " ".join(reason for reason in reasons if reason):
            notes.append(f"{step.sentence()} {text}")
    sides = before.side.attribution, after.side.attribution
    backward = any(w.changed and _backward(w) for w in workers)
    if backward and not any(before.gradient_norms.values()):
        notes.append("No gradient reaches any layer, with these hooks or without: all are zero.")
    elif backward and np.array_equal(sides[0].map, sides[1].map):
        notes.append(
            f"Grad-CAM is read at {sides[0].layers[0]}, and the gradient that arrives there is the "
            "same: these hooks act on gradients further upstream."
        )
    if not np.isfinite(after.side.logits).all():
        notes.append("With these hooks the logits are not finite numbers: the model overflowed.")
    return tuple(notes)


def _backward(worker: Worker) -> bool:
    kind = worker.step.kind
    return kind not in ("forward_pre", "forward") and not worker.step.of_parameter


def _what_happened(worker: Worker) -> str:
    """What a hook did not do in the last run, in words; empty where it did what it says."""
    site, step = worker.site, worker.step
    if not site.acted:
        if site.empty:
            none = "the gradient of the input is None: nothing before it needs one"
            text = none if step.kind == "full_backward" else "it was given no tensor"
            return f"It changed nothing: {text}."
        if site.seen and step.call is not None and step.call >= site.seen:
            return f"It never fired: the module ran {site.seen} time(s) in this pass."
        if step.kind in ("forward_pre", "forward"):
            return "It never fired: the module did not run in this pass."
        return "It never fired: no gradient came back to it, as the answer does not depend on it."
    if step.action != "watch" and not worker.changed:
        return "It changed nothing: its settings leave every value as it is."
    return ""
