"""The fields of an action's options in the Hook lab, and how a field changes its step."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from interp.errors import InterpError
from interp.hooks.interventions import ACTIONS, Option
from interp.hooks.recipe import Step
from interp.ui import lab_state
from interp.ui.lab_second import second_picture, second_pictures
from interp.ui.waiting import plain

WHOLE = "output"
_DRAFT = "lab.draft"  # what was typed and does not form a step, by step and option


def option_fields(step: Step) -> None:
    """A field for each option of the step's action; what forms no step is said below them."""
    draft = _draft(step)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for option in ACTIONS[step.action].options:
            _setting(step, option, draft)
    if draft:
        _say_what_is_wrong(step, draft)


def change_step(step: Step, **fields: Any) -> None:
    """Change a step of the recipe; what no longer fits goes back to its default."""
    step = lab_state.newest(step)
    if fields.get("path", step.path) != step.path:
        fields = {"call": None, "of": WHOLE} | fields
    if fields.get("kind", step.kind) != "tensor":
        fields = {"of": WHOLE} | fields
    if fields.get("of", step.of) != WHOLE:
        fields["call"] = None
    st.session_state.get(_DRAFT, {}).pop(step.id, None)
    lab_state.replace_step(replace(step, **fields))


def select(
    step: Step,
    label: str,
    options: Sequence[str],
    value: str,
    on_pick: Callable[[str], None],
    help: str,
    titles: Callable[[str], str] = str,
) -> None:
    """A select box of a step, that shows what the recipe has whatever was picked last."""
    key = f"lab {label} {step.id}"
    st.session_state[key] = value
    st.selectbox(
        label,
        options,
        format_func=titles,
        key=key,
        on_change=lambda: on_pick(st.session_state[key]),
        help=help,
        width=220,
    )


def _setting(step: Step, option: Option, draft: dict[str, Any]) -> None:
    """The field of one option of the action."""
    value = draft.get(option.name, step.values[option.name])

    def choose(picked: Any) -> None:
        _set(step, option, picked)

    if option.kind == "choice":
        select(step, option.title, option.choices, value, choose, option.help)
        return
    if option.kind == "picture":
        names = second_pictures(value)
        select(step, option.title, list(names), value, choose, option.help, names.__getitem__)
        second_picture(step.id, value, choose)
        return
    key = f"lab {option.name} {step.id}"
    whole = option.kind == "integer"
    if option.kind == "channels":
        st.session_state[key] = value
        st.text_input(
            option.title,
            key=key,
            help=option.help,
            width=220,
            on_change=_typed(step, option, key),
        )
        return
    number = int if whole else float
    st.session_state[key] = number(value)
    st.number_input(
        option.title,
        min_value=None if option.low is None else number(option.low),
        max_value=None if option.high is None else number(option.high),
        step=1 if whole else 0.1,
        format="%d" if whole else "%g",
        key=key,
        help=option.help,
        on_change=_typed(step, option, key),
        width=160,
    )


def _typed(step: Step, option: Option, key: str) -> Callable[[], None]:
    return lambda: _set(step, option, st.session_state[key])


def _set(step: Step, option: Option, value: Any) -> None:
    """Take a value over; what does not form a step with the others is kept as a draft."""
    step = lab_state.newest(step)
    values = dict(step.values) | _draft(step) | {option.name: value}
    try:
        ACTIONS[step.action].complete(values)
    except InterpError:
        st.session_state.setdefault(_DRAFT, {})[step.id] = values
    else:
        change_step(step, values=values)


def _draft(step: Step) -> dict[str, Any]:
    kept: dict[str, Any] = st.session_state.get(_DRAFT, {}).get(step.id, {})
    return kept


def _say_what_is_wrong(step: Step, draft: dict[str, Any]) -> None:
    try:
        ACTIONS[step.action].complete(draft)
    except InterpError as error:
        message = plain(str(error))
        st.markdown(
            f":red[:material/error:] {message[:1].upper() + message[1:]}. "
            "Until then the hook does what its sentence says."
        )
