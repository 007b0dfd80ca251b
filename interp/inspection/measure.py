"""One pass with a hook at every module, behind those of a lab: answer, Grad-CAM, and norms."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from interp.attribution.base import Attribution, LayerCall, Outcome, Prediction, Request, get_method
from interp.attribution.cam import grad_cam
from interp.attribution.explanation import attribution_of, best_of
from interp.errors import HookError
from interp.geometry import Fit
from interp.hooks.lab import Lab
from interp.hooks.ledger import HookLedger
from interp.hooks.passes import Pass
from interp.hooks.recipe import Step
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.values import numbers
from interp.inspection.gradient_watch import norm_of
from interp.models.copies import frozen_copy
from interp.models.layers import LayerInfo, channels_first
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target

_SHOWN = 5


@dataclass(frozen=True)
class Side:
    """What came out of one of the two passes.

    `logits` is float32 (K,), `predictions` the five best classes, and `attribution` Grad-CAM at the
    recommended layer, from the same pass.
    """

    logits: npt.NDArray[np.float32]
    predictions: tuple[Prediction, ...]
    attribution: Attribution


@dataclass(frozen=True)
class Question:
    """What both passes have in common; `table` is the layer table of this very picture."""

    model: LoadedModel
    picture: Picture
    fit: Fit
    tensor: Tensor
    layer: LayerCall
    table: Sequence[LayerInfo]


@dataclass(frozen=True)
class Measured:
    """One pass: its side, and norms by path."""

    side: Side
    target: Target
    norms: dict[str, float]
    gradient_norms: dict[str, float]


def hooked_parameters(steps: Sequence[Step]) -> tuple[tuple[str, str], ...]:
    """Path and name of each parameter that carries a tensor hook."""
    return tuple(dict.fromkeys((step.path, step.of) for step in steps if step.of_parameter))


def without_hooks(
    question: Question, wanted: Target, steps: Sequence[Step], ledger: HookLedger
) -> Measured:
    """One pass on a copy that carries no hook of the steps; they say what else to measure."""
    module = question.model.module
    session = HookSession(module, ledger, copy=frozen_copy(module))
    try:
        with (
            undisturbed(question.model.device, gradients=True, seed=question.model.seed),
            session.running(),
        ):
            return measure(question, session, wanted, steps, None)
    finally:
        session.close()


def measure(
    question: Question,
    session: HookSession,
    wanted: Target,
    steps: Sequence[Step],
    lab: Lab | None,
) -> Measured:
    """One pass with a hook at every module, which comes after the lab's own there."""
    began = time.perf_counter()
    ledger = session.ledger
    paths = [info.path for info in question.table if info.calls]
    by_tensor = _by_tensor(steps, paths)
    run = Pass(session, paths, gradients=True)
    try:
        watched = _Parameters(session, hooked_parameters(steps))
        run.run(question.tensor, from_input=True, by_tensor=by_tensor)
        target = wanted.resolve(run.logits, run.binary)
        also = [*watched.tensors, *(lab.starts if lab else ())]
        gradients = run.gradients(target.score(run.logits), once=True, also=also)
        maps = {path: calls[0] for path, calls in run.feature_maps().items() if calls}
        first = {path: grad for (path, call), grad in gradients.items() if call == 0}
        path, call = question.layer.info.path, question.layer.call
        calls = run.feature_maps()[path]
        if call >= len(calls):
            raise HookError(f"layer «{question.layer}» did not run with these hooks: take one off")
        outcome = Outcome(
            (_cam(question.layer, calls[call], gradients.get((path, call))),),
            target,
            run.logits.detach()[0].float(),
            run.binary,
        )
        norms, gradient_norms = _norms(maps), _norms(first) | watched.norms
    finally:
        run.release()
    seconds = time.perf_counter() - began
    return Measured(_side(question, outcome, ledger, seconds), target, norms, gradient_norms)


def cuts(steps: Sequence[Step]) -> bool:
    """Whether a hook puts something in place that does not depend on what was there."""
    forward = (step for step in steps if step.kind in ("forward_pre", "forward"))
    return any(step.action in ("zero", "constant", "patch") for step in forward)


def _by_tensor(steps: Sequence[Step], paths: Sequence[str]) -> list[str]:
    """Layers whose gradient a tensor hook has to read.

    Those with a tensor hook in the recipe, to come behind it. All of them where a hook cuts the
    graph: a full backward hook waits for the gradient of its module's input, which then never
    comes.
    """
    hooked = {step.path for step in steps if step.kind == "tensor" and not step.of_parameter}
    return [path for path in paths if path in hooked or cuts(steps)]


class _Parameters:
    """Parameters that carry a tensor hook, and the norms of their gradients behind these hooks."""

    def __init__(self, session: HookSession, wanted: Sequence[tuple[str, str]]) -> None:
        self.norms: dict[str, float] = {}
        self.tensors: list[Tensor] = []
        for path, name in wanted:
            tensor = session.module.get_submodule(path)._parameters[name]
            assert tensor is not None  # `check` has looked
            self.tensors.append(tensor.requires_grad_())  # of the private copy alone
            session.tensor(
                tensor,
                self._reader(f"{path}.{name}"),
                path=path,
                purpose=f"norm of the gradient of {name}",
                origin="engine",
            )

    def _reader(self, name: str) -> Any:
        def read(gradient: Tensor) -> None:
            self.norms[name] = norm_of(gradient)

        return read


def _cam(layer: LayerCall, feature_map: Tensor | None, gradient: Tensor | None) -> Tensor:
    if feature_map is None:
        raise HookError(f"layer «{layer}» returned no tensor with these hooks: take one off")
    if gradient is None:  # a hook has cut it off from the answer
        gradient = torch.zeros_like(feature_map)
    maps, gradients = (channels_first(t, layer.info)[0].float() for t in (feature_map, gradient))
    return grad_cam(maps, gradients)


def _side(question: Question, outcome: Outcome, ledger: HookLedger, seconds: float) -> Side:
    model, layers = question.model, (question.layer,)
    request = Request(model, question.tensor, layers, outcome.target, ledger=ledger)
    attribution = attribution_of(
        question.picture,
        question.fit,
        get_method("grad-cam"),
        request,
        outcome,
        outcome.maps[0],
        layers,
        seconds,
    )
    best = tuple(best_of(outcome.logits, outcome.binary, model.categories, _SHOWN))
    return Side(attribution.logits, best, attribution)


def _norms(tensors: dict[str, Any]) -> dict[str, float]:
    return {
        path: norm_of(tensor)
        for path, tensor in tensors.items()
        if tensor is not None and numbers(tensor) is not None
    }
