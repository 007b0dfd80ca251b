"""Running the Hook lab's hooks: the last experiment of the session, and what it was of."""

from dataclasses import replace

import streamlit as st

from interp.errors import InterpError
from interp.hooks.lab import Lab
from interp.inspection.experiment import Experiment, run_experiment
from interp.picture import Picture
from interp.ui import lab_state, runs, state
from interp.ui.state import View
from interp.ui.waiting import plain, working

Signature = tuple[View, str]
_RESULT = "lab.result"
_ASKED = "lab.asked"
AUTO = "auto"


def ask() -> None:
    """Run the hooks when the page is next drawn, from a callback."""
    st.session_state[_ASKED] = True
    lab_state.keep_address()


def signature(view: View, lab: Lab) -> Signature:
    """What a result depends on: the view, and the hooks that are live."""
    steps = tuple(replace(hook.step, id=str(n)) for n, hook in enumerate(lab.live))
    recipe = replace(lab.recipe, steps=steps, model="")
    return replace(view, method="", layer=""), recipe.to_json()


def last() -> tuple[Signature, Experiment] | None:
    """The last result of this session and what it was of."""
    kept: tuple[Signature, Experiment] | None = st.session_state.get(_RESULT)
    return kept


def button(lab: Lab) -> None:
    """The button that runs the hooks."""
    st.button(
        "Run",
        type="primary",
        icon=":material/play_arrow:",
        key="lab run",
        on_click=ask,
        disabled=not lab.live,
        help="One pass without your hooks and one with them, forward and backward.",
    )


def choose_auto() -> None:
    """Whether the hooks run by themselves when something changed."""
    st.session_state["lab auto"] = bool(state.choice(AUTO))
    st.toggle(
        "Run on every change",
        key="lab auto",
        on_change=lambda: state.change(**{AUTO: "1" if st.session_state["lab auto"] else ""}),
        help="Pleasant with small models; a large one is better run when the recipe is ready.",
    )


def run_if_asked(view: View, lab: Lab, picture: Picture) -> None:
    """Run the hooks where that was asked for, and say what goes wrong in the result's place."""
    now, kept = signature(view, lab), last()
    changed = kept is None or kept[0] != now
    if not lab.live or not (st.session_state.get(_ASKED) or (state.choice(AUTO) and changed)):
        st.session_state.pop(_ASKED, None)
        return
    try:
        with working("Two passes: without your hooks and with them", height=320):
            experiment = run_experiment(lab, picture, view.target, view.fit)
    except InterpError as error:
        st.session_state.pop(_ASKED, None)
        st.session_state.pop(_RESULT, None)
        message = str(error)
        st.error(plain(message[:1].upper() + message[1:]), icon=":material/error:")
        return
    st.session_state[_RESULT] = (now, experiment)
    st.session_state.pop(_ASKED, None)  # only now: a run that a click interrupts is run again
    runs.note("Before and after your hooks", experiment.ledger)


def why_stale(view: View, lab: Lab, of: Signature) -> str:
    """What changed since a result was made, in words; empty where it is of what is set now."""
    now = signature(view, lab)
    if now == of:
        return ""
    if now[1] != of[1]:
        return "the live hooks have changed"
    names = ("model", "weights", "picture", "frame", "target", "fit")
    changed = [name for name in names if getattr(now[0], name) != getattr(of[0], name)]
    return f"another {' and '.join(changed)} is chosen"
