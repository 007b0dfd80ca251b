"""One hook as a person composes it: what it says of itself, and whether it can work on a model."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interp.errors import HookError, LayerError
from interp.hooks.found import no_such_layer
from interp.hooks.interventions import ACTIONS, parse_channels
from interp.hooks.ledger import KINDS, Kind
from interp.models.layers import LayerInfo, Layout
from interp.models.loading import LoadedModel

INPUT_KINDS: tuple[Kind, ...] = ("forward_pre", "full_backward")
_NAMES: dict[Kind, str] = {
    "forward_pre": "forward pre-hook",
    "forward": "forward hook",
    "full_backward_pre": "full backward pre-hook",
    "full_backward": "full backward hook",
    "tensor": "tensor hook",
}
_THINGS: dict[Kind, str] = {
    "forward_pre": "its input",
    "forward": "its output",
    "full_backward_pre": "the gradient of its output",
    "full_backward": "the gradient of its input",
    "tensor": "the gradient of its output",
}
_CHANNEL_AXES: dict[Layout, int] = {"nchw": 1, "nhwc": -1, "tokens": -1, "vector": -1}


@dataclass(frozen=True)
class Step:
    """One hook of a recipe.

    Attributes
    ----------
    kind : one of `KINDS`.
    path : the module's path.
    action : a name from `ACTIONS`.
    values : the options of the action; those left out have their defaults.
    call : the index of the module's call that it acts at; None for every call.
    of : for a tensor hook, whose gradient: "output", or a parameter's name such as "weight".
    first : whether it runs before the hooks of its kind that were registered earlier.
    enabled : whether it is to be live.
    id : a short text that no other step has.

    Raises
    ------
    HookError
        If the kind, the action or one of its options is not known or out of range.
    """

    kind: Kind
    path: str
    action: str = "watch"
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    call: int | None = None
    of: str = "output"
    first: bool = False
    enabled: bool = True
    id: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise HookError(f"no kind of hook «{self.kind}»: there are {', '.join(KINDS)}")
        if self.action not in ACTIONS:
            raise HookError(f"no action «{self.action}»: there are {', '.join(ACTIONS)}")
        object.__setattr__(self, "values", ACTIONS[self.action].complete(self.values))

    @property
    def of_parameter(self) -> bool:
        """Whether it is a tensor hook on a parameter."""
        return self.kind == "tensor" and self.of != "output"

    def sentence(self) -> str:
        """«A forward hook on features.8 silences channel 4 of its output.»"""
        thing, where = _THINGS[self.kind], f"on {self.path}"
        if self.of_parameter:
            where, thing = f"on {self.path}.{self.of}", "its gradient"
        if self.call is not None:
            where += f" (call {self.call} only)"
        first = ", before the others there" if self.first else ""
        does = ACTIONS[self.action].sentence(self.values, thing)
        return f"A {_NAMES[self.kind]} {where} {does}{first}."


def at_call(step: Step, model: LoadedModel) -> LayerInfo:
    """The row of the layer table for the step's module, at its call (the first for every call).

    Raises
    ------
    LayerError
        If there is no such layer, it never runs, or not as often.
    """
    rows = {info.path: info for info in model.layers}
    info = rows.get(step.path)
    if info is None:
        raise no_such_layer(step.path, rows)
    if not info.calls:
        raise LayerError(f"layer «{step.path}» never runs: {info.reason}")
    if step.call is not None and not 0 <= step.call < info.calls:
        last = "call 0" if info.calls == 1 else f"calls 0 to {info.calls - 1}"
        raise LayerError(f"layer «{step.path}» has no call {step.call}: it has {last}")
    return (info, *info.later_calls)[step.call or 0]


def channel_axis(step: Step, model: LoadedModel, call: int) -> int | None:
    """Which axis of what the step sees at a call holds the channels; None where not known."""
    if step.of_parameter:
        return 0
    if step.kind in INPUT_KINDS:
        calls = model.inputs.get(step.path, ())
        return _CHANNEL_AXES.get(calls[call].layout) if call < len(calls) else None
    info = next(info for info in model.layers if info.path == step.path)
    rows = (info, *info.later_calls)
    return _CHANNEL_AXES.get(rows[call].layout) if call < len(rows) else None


def check(step: Step, model: LoadedModel) -> None:
    """Refuse a step that cannot work on a model, before anything runs.

    Raises
    ------
    LayerError
        If the layer does not exist, never runs, or has no such call.
    HookError
        If it has no such parameter or channel, or a second picture is missing.
    """
    info = at_call(step, model)
    parameter = _parameter(step, model) if step.of_parameter else None
    if step.of_parameter and step.first:
        raise HookError(
            f"a hook on «{step.path}.{step.of}» cannot be put first: PyTorch runs the hooks of a "
            "tensor in the order of their registration"
        )
    if step.action == "patch" and not step.values["picture"]:
        raise HookError(f"the patch at «{step.path}» has no second picture: choose one")
    if step.action != "channels":
        return
    if parameter is not None:
        shape: tuple[int, ...] | None = parameter
    elif step.kind in INPUT_KINDS:
        shape = model.inputs[step.path][step.call or 0].shape
    else:
        shape = info.shape
    axis = channel_axis(step, model, step.call or 0)
    if shape is None or axis is None or not shape:
        text = "no tensor" if shape is None else "×".join(map(str, shape)) or "one number"
        what = "is given" if step.kind in INPUT_KINDS else "has"
        raise HookError(
            f"«{step.path}» ({info.kind}) {what} {text}, and which axis of it holds channels is "
            "not known: choose another layer"
        )
    try:
        parse_channels(step.values["which"], shape[axis])
    except HookError as error:
        raise HookError(f"«{step.path}»: {error}") from None


def _parameter(step: Step, model: LoadedModel) -> tuple[int, ...]:
    """The shape of the parameter that a tensor hook is for."""
    own = model.module.get_submodule(step.path)._parameters
    parameter = own.get(step.of)
    if parameter is None:
        have = ", ".join(name for name, one in own.items() if one is not None)
        raise HookError(
            f"«{step.path}» has no parameter «{step.of}»: it has {have or 'none of its own'}, and "
            "the gradient of its «output»"
        )
    if not parameter.is_floating_point():
        raise HookError(f"«{step.path}.{step.of}» holds whole numbers, which have no gradient")
    return tuple(parameter.shape)


def cannot_change_logits(step: Step) -> str:
    """Why a step leaves the logits as they are, in a sentence; empty where it may change them."""
    if step.action == "watch":
        return "A hook that only watches returns None: nothing changes."
    if step.of_parameter:
        return (
            "The gradient of a parameter is where backward ends: changing it changes what an "
            "optimiser would be given, never the logits, nor Grad-CAM."
        )
    if step.kind == "tensor":
        return (
            "A tensor hook runs in backward, after the answer is known: it changes gradients, and "
            "with them Grad-CAM, never the logits."
        )
    if step.kind in ("full_backward_pre", "full_backward"):
        return (
            "A backward hook runs after the answer is known: it changes gradients, and with them "
            "Grad-CAM, never the logits."
        )
    return ""
