"""The fields of one step in the Hook lab: kind, layer, call, action and its options."""

from collections.abc import Sequence

import streamlit as st

from interp.hooks.interventions import ACTIONS
from interp.hooks.ledger import KINDS, Kind
from interp.hooks.recipe import Step
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.ui.kinds import KIND_TITLES
from interp.ui.lab_fields import WHOLE, change_step, option_fields, select
from interp.ui.layer_picker import shape_text
from interp.ui.network import outline
from interp.ui.picker import Group, Option, pick

KIND_WORDS: dict[Kind, str] = {
    "forward_pre": "Runs before the layer: it sees the layer's input and may return another one.",
    "forward": "Runs after the layer: it sees input and output and may return another output.",
    "full_backward_pre": (
        "Runs when the gradient of the layer's output arrives, before the layer passes it on: it "
        "may return another one."
    ),
    "full_backward": (
        "Runs when the gradient of the layer's input is known: it may return another one, which "
        "then travels on to the layers before."
    ),
    "tensor": (
        "Sits on a tensor, not on a layer: on a layer's output or on a parameter. It sees the "
        "gradient of that tensor and may return another one."
    ),
}
EVERY = "every call"


def edit_step(model: LoadedModel, step: Step) -> None:
    """The fields of a step; each changes the recipe at once."""
    with st.container(key=f"lab fields {step.id}", gap="small"):
        _kind(step)
        st.caption(KIND_WORDS[step.kind])
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            _layer(step, model)
            _call(step, model)
            _of(step, model)
            _action(step)
        option_fields(step)
        _first(step)


def _kind(step: Step) -> None:
    key = f"lab kind {step.id}"
    st.session_state[key] = step.kind
    st.pills(
        "Kind of hook",
        KINDS,
        format_func=lambda kind: KIND_TITLES[kind],
        required=True,
        key=key,
        on_change=lambda: change_step(step, kind=st.session_state[key]),
    )


def _layer(step: Step, model: LoadedModel) -> None:
    pick(
        "Layer",
        layer_groups(model.layers),
        step.path,
        key=f"lab layer {step.id}",
        on_pick=lambda path: change_step(step, path=path),
        help="Which module carries the hook. Only modules that run are listed.",
        placeholder="Search layers",
        width=460,
    )


def layer_groups(table: Sequence[LayerInfo]) -> list[Group]:
    """The layers that ran: the recommended one, then by the stages of the network."""
    ran = [info for info in table if info.calls]
    groups = [Group("Recommended", tuple(_option(info) for info in ran if info.recommended))]
    left = ran
    for stage in outline(table):
        inside = [info for info in left if f"{info.path}.".startswith(f"{stage.path}.")]
        left = [info for info in left if info not in inside]
        groups.append(Group(stage.path, tuple(map(_option, inside))))
    groups.append(Group("Whole parts", tuple(map(_option, left))))
    return [group for group in groups if group.options]


def _option(info: LayerInfo) -> Option:
    more = f"runs {info.calls} times" if info.calls > 1 else ""
    return Option(
        info.path,
        info.path,
        mono=True,
        detail=info.kind,
        right=shape_text(info),
        star=info.recommended,
        reason=info.reason if info.recommended or info.same_as else more,
    )


def _call(step: Step, model: LoadedModel) -> None:
    info = next((info for info in model.layers if info.path == step.path), None)
    calls = info.calls if info is not None else 0
    if step.of != WHOLE or (calls < 2 and step.call is None):
        return
    known = [*range(calls), *([step.call] if step.call and step.call >= calls else [])]
    names = {EVERY: None, **{f"call {call + 1} of {calls}": call for call in known}}
    select(
        step,
        "Call",
        list(names),
        next(name for name, call in names.items() if call == step.call),
        lambda name: change_step(step, call=names[name]),
        f"This module runs {calls} times in one pass: the hook acts at one call or at every one.",
    )


def _of(step: Step, model: LoadedModel) -> None:
    if step.kind != "tensor":
        return
    modules = dict(model.module.named_modules(remove_duplicate=False))
    own = modules[step.path].named_parameters(recurse=False) if step.path in modules else ()
    names = [WHOLE, *(name for name, _ in own)]
    if step.of not in names:
        names.append(step.of)
    select(
        step,
        "Tensor",
        names,
        step.of,
        lambda name: change_step(step, of=name),
        "Whose gradient: that of the layer's output, or of one of its parameters.",
    )


def _action(step: Step) -> None:
    titles = {action.title: name for name, action in ACTIONS.items()}
    select(
        step,
        "Action",
        list(titles),
        ACTIONS[step.action].title,
        lambda title: change_step(step, action=titles[title], values={}),
        "What the hook does to the value it is given.",
    )


def _first(step: Step) -> None:
    key = f"lab first {step.id}"
    st.session_state[key] = step.first
    st.checkbox(
        "Run before the hooks of its kind on this layer that stand above it",
        key=key,
        on_change=lambda: change_step(step, first=st.session_state[key]),
        help="PyTorch runs hooks in the order of registration; this is its «prepend=True».",
    )
