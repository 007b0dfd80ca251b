"""How the gradient of a loss travels back through a network: one forward and one backward pass."""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from interp.attribution.base import Attribution
from interp.attribution.explanation import check_input
from interp.errors import LayerError, ModelError, TargetError
from interp.geometry import Fit
from interp.hooks.capture import capture
from interp.hooks.ledger import HookLedger
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.values import followed
from interp.hooks.way_back import way_back
from interp.inspection.frame import find_call, frame_of, read_only, real
from interp.inspection.gradient_watch import GradientWatch, LayerGradient, Verdict, norm_of
from interp.models.copies import frozen_copy
from interp.models.loading import LoadedModel
from interp.models.routes import table_for
from interp.picture import Picture
from interp.targets import Target, find_logits, parse_target

__all__ = ["LIMIT", "LayerGradient", "LayerValues", "Travel", "layer_values", "travel"]

LIMIT = 1e3  # how many times smaller or larger than at the logits a gradient may be


@dataclass(frozen=True, eq=False)
class Travel:
    """A gradient on its way from the loss back to the picture.

    Attributes
    ----------
    rows : tuple of LayerGradient
        One for each module that ran and returned a tensor, in the order in which they ran.
    loss : float
    loss_name : str
        «the score of espresso (967)», «the cross-entropy against cup (968)».
    logits_norm : float
        Norm of the loss's gradient with respect to the logits, where its way begins.
    input_gradient : Attribution
        At each pixel of the model's input the largest size of the gradient over the colour
        channels, never negative (Simonyan et al. 2014).
    ledger : HookLedger
    seconds : float
    """

    rows: tuple[LayerGradient, ...]
    loss: float
    loss_name: str
    logits_norm: float
    input_gradient: Attribution
    ledger: HookLedger
    seconds: float

    def row(self, path: str) -> LayerGradient:
        """The row of a layer.

        Raises
        ------
        LayerError
            If it has none.
        """
        for row in self.rows:
            if row.path == path:
                return row
        raise LayerError(f"layer «{path}» returned no tensor in this run: choose another")

    def sentence(self, row: LayerGradient) -> str:
        """What the verdict on a layer means, with its numbers; empty where it has none."""
        if not row.verdict:
            return ""
        if not math.isfinite(row.gradient_norm):
            return "The gradient explodes: it is no finite number here."
        if row.gradient_norm == 0:
            return "The gradient vanishes: nothing of it reaches this layer."
        factor = row.gradient_norm / self.logits_norm
        if row.verdict == "vanishing":
            words = f"vanishes: its norm is {_times(1 / factor)} times smaller"
        else:
            words = f"explodes: its norm is {_times(factor)} times larger"
        return f"The gradient {words} here than at the logits."


@dataclass(frozen=True, eq=False)
class LayerValues:
    """A layer's output at one call and the gradient there: float32 arrays of the same shape."""

    path: str
    call: int
    value: npt.NDArray[np.float32]
    gradient: npt.NDArray[np.float32]
    ledger: HookLedger


def travel(
    model: LoadedModel,
    picture: Picture,
    target: str | int | Target | None = None,
    label: int | None = None,
    fit: Fit = "crop",
    ledger: HookLedger | None = None,
) -> Travel:
    """The norm of a loss's gradient at every layer, and at the picture.

    Full backward hooks see the gradient at the outputs, tensor hooks that at the parameters. Each
    is reduced to numbers when it passes and let go; only the input's is kept. The parameters that
    are differentiated are aliases in a private copy: the model stays frozen.

    A layer is marked where the norm of its gradient is more than a thousand times smaller
    («vanishing») or larger («exploding») than that of the gradient at the logits, where its way
    begins. Backward is linear, so this does not depend on how large the loss is: it says how much
    the network between the layer and its answer shrinks or stretches a gradient.

    Parameters
    ----------
    target : str, int, Target or None
        The loss is its score (see `parse_target`); by default the logit of the top prediction.
    label : int, optional
        The loss is the cross-entropy against this class instead.
    ledger : HookLedger, optional
        To see the hooks of the run.

    Raises
    ------
    TargetError, PictureError
    ModelError
        If autograd does not follow the model from its input to its scores.
    LayerError
        If an operation of the model raises in backward.

    References
    ----------
    Bengio, Simard and Frasconi 1994, «Learning long-term dependencies with gradient descent is
    difficult»; Glorot and Bengio 2010, «Understanding the difficulty of training deep feedforward
    neural networks»; Simonyan, Vedaldi and Zisserman 2014, «Deep inside convolutional networks»,
    for the gradient at the input.
    """
    check_input(model, picture, fit)
    began = time.perf_counter()
    wanted = _wanted(model, target, label)
    picture_tensor = model.prepare(picture, fit)
    copy = frozen_copy(model.module)
    parameters = [p.requires_grad_() for p in copy.parameters() if followed(p)]
    table = table_for(model.module, model.layers, picture_tensor)
    with (
        undisturbed(picture_tensor.device, gradients=True, seed=model.seed),
        HookSession(model.module, ledger, copy=copy) as session,
    ):
        start = picture_tensor.detach().clone().requires_grad_()
        watch = GradientWatch(session, table)
        logits, binary = find_logits(copy(start))
        watch.forward_is_over()
        if not logits.requires_grad:
            raise ModelError(
                f"the scores of {model.spec.title} cannot be differentiated: it computes them "
                "without autograd, under no_grad or from detached tensors"
            )
        found = wanted.resolve(logits, binary)
        loss = found.score(logits).sum() if label is None else -found.score(logits).sum()
        logits_norm = norm_of(torch.autograd.grad(loss, logits, retain_graph=True)[0])
        with way_back("the picture"):
            loss.backward(inputs=[start, *parameters])
        watch.let_go()
    gradient = torch.zeros_like(start) if start.grad is None else start.grad
    seconds = time.perf_counter() - began
    whole = frame_of(model, picture, fit, logits, found, session.ledger, seconds)
    return Travel(
        rows=tuple(replace(row, verdict=_verdict(row, logits_norm)) for row in watch.rows()),
        loss=float(loss.detach()),
        loss_name=_loss_name(found, label),
        logits_norm=logits_norm,
        input_gradient=replace(
            whole,
            map=read_only(gradient[0].abs().amax(dim=0)),
            method="gradient at the input",
            layers=("input",),
            parameters={"loss": _loss_name(found, label)},
            target=replace(found, scale="logit") if label is not None else found,
        ),
        ledger=session.ledger,
        seconds=seconds,
    )


def layer_values(
    model: LoadedModel,
    picture: Picture,
    path: str,
    call: int = 0,
    target: str | int | Target | None = None,
    label: int | None = None,
    fit: Fit = "crop",
) -> LayerValues:
    """Every value of one layer's output and of the gradient there, for a histogram.

    The parameters are those of `travel`.

    Raises
    ------
    LayerError
        If there is no such layer or call, or the loss does not depend on it.
    """
    check_input(model, picture, fit)
    tensor = model.prepare(picture, fit)
    find_call(model, path, call, tensor)
    wanted = _wanted(model, target, label)
    seen = capture(model, tensor, [path], wanted)
    sign = 1.0 if label is None else -1.0
    value, gradient = (
        real(one, path) for one in (seen.feature_map(path, call), seen.gradient(path, call))
    )
    return LayerValues(path, call, read_only(value), read_only(sign * gradient), seen.ledger)


def _wanted(model: LoadedModel, target: str | int | Target | None, label: int | None) -> Target:
    if label is None:
        return parse_target(target, model.categories)
    if target not in (None, ""):
        raise TargetError("the loss is a target's score or the cross-entropy: give one, not both")
    return replace(parse_target(label, model.categories), scale="logprob")


def _loss_name(found: Target, label: int | None) -> str:
    if label is not None:
        return f"the cross-entropy against {replace(found, scale='logit').label}"
    return f"the score of {found.label}"


def _verdict(row: LayerGradient, start: float) -> Verdict:
    if not math.isfinite(row.gradient_norm) or row.gradient_norm > LIMIT * start:
        return "exploding"
    return "vanishing" if row.gradient_norm < start / LIMIT else ""


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor < 1e6 else f"{factor:.1e}"
