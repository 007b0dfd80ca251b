"""The hooks that are live in the Hook lab: what they are, and the way to take them off."""

import streamlit as st

from interp.hooks.lab import Lab, LiveHook
from interp.hooks.recipe import Recipe
from interp.ui import lab_state
from interp.ui.lab_recipe import badge
from interp.ui.lab_second import sentence
from interp.ui.network import Mark
from interp.ui.waiting import plain


def headline(lab: Lab) -> None:
    """What the page is for, how many hooks are live, and what happened since it was last drawn."""
    live = len(lab.live)
    if live == 1:
        now = "1 hook is live and stays so until you take it off."
    elif live:
        now = f"{live} hooks are live and stay so until you take them off."
    else:
        now = "No hook is live."
    st.markdown(
        "**Change something inside the network with hooks**, and see what it does to the answer. "
        + now
    )
    for text in lab_state.told():
        st.info(plain(text) + ".", icon=":material/info:")


def marks(recipe: Recipe, lab: Lab) -> list[Mark]:
    """The live hooks as marks in the drawing of the network."""
    numbers = {step.id: number for number, step in enumerate(recipe.steps, 1)}
    return [
        Mark(hook.step.path, hook.step.kind, f"{numbers[hook.step.id]}. {sentence(hook.step)}")
        for hook in lab.live
    ]


def lit(recipe: Recipe) -> str | None:
    """The path of the step that is being edited, to be highlighted in the drawing."""
    return next((step.path for step in recipe.steps if step.id == lab_state.opened()), None)


def live_hooks(lab: Lab) -> None:
    """A row for each live hook with a button that removes it by its handle."""
    live = lab.live
    with st.container(key="lab live"):
        with st.container(horizontal=True, vertical_alignment="center"):
            hooks = "1 hook" if len(live) == 1 else f"{len(live)} hooks"
            st.markdown(
                f"**Live now: {hooks}**",
                width="stretch",
                help="Registered on this session's own copy of the model, kept between runs and "
                "page switches, and gone when the browser is closed.",
            )
            if live:
                st.button(
                    "Remove all",
                    icon=":material/delete_sweep:",
                    key="lab remove all",
                    on_click=lab_state.remove_all,
                    type="tertiary",
                )
        numbers = {step.id: n for n, step in enumerate(lab_state.recipe().steps, 1)}
        for hook in live:
            _row(numbers[hook.step.id], hook)


def _row(number: int, hook: LiveHook) -> None:
    record = hook.record
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(badge(hook.step, number, True), width="content")
        times = "once" if record.fires == 1 else f"{record.fires} times"
        fired = f"fired {times}" if record.fires else "not fired yet"
        st.markdown(
            f"`{record.path}` :gray[{plain(record.class_name)} · handle {record.id} · {fired}]",
            width="stretch",
        )
        st.button(
            f"Remove hook {number}",
            key=f"lab remove {record.id}",
            on_click=lab_state.remove_hook,
            args=(record.id,),
        )
