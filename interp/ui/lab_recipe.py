"""The recipe on the Hook lab page: sentences that are switched, moved and edited in place."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st

from interp.errors import InterpError
from interp.hooks.recipe import Recipe, Step, cannot_change_logits
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.ui import lab_state
from interp.ui.lab_second import sentence
from interp.ui.lab_step import edit_step
from interp.ui.waiting import plain

_LOADS = "lab.loads"  # how many recipes were loaded: each gets a new field


def recipe_list(
    model: LoadedModel, recipe: Recipe, wrong: Mapping[str, str], live: frozenset[str]
) -> None:
    """One row a step, with the fields of the step that is open below its sentence.

    Parameters
    ----------
    wrong : mapping
        Why steps cannot be live, by their ids.
    live : frozenset of str
        The ids of the steps whose hooks are live.
    """
    for number, step in enumerate(recipe.steps, 1):
        is_open = step.id == lab_state.opened()
        with st.container(key=f"lab step {step.id}", gap="small"):
            _row(recipe, step, number, is_open, step.id in live)
            if is_open:
                edit_step(model, step)
            _remarks(step, wrong.get(step.id, ""))


def add_button(model: LoadedModel) -> None:
    """«Add a hook»: a step with defaults that do something, opened for editing."""
    st.button(
        "Add a hook",
        icon=":material/add:",
        key="lab add",
        on_click=lambda: lab_state.add(default_step(model)),
        help="A forward hook that silences one channel of the recommended layer: change any of it.",
    )


def default_step(model: LoadedModel) -> Step:
    """A forward hook on the recommended layer that silences its first channel."""
    return Step("forward", best_layer(model).path, "channels", {"which": "0"})


def best_layer(model: LoadedModel) -> LayerInfo:
    """The recommended layer, or else the last that ran."""
    ran = [info for info in model.layers if info.calls]
    return max(ran, key=lambda info: (info.recommended, info.order))


def _row(recipe: Recipe, step: Step, number: int, is_open: bool, live: bool) -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"lab row {step.id}"
    ):
        st.html(badge(step, number, live), width="content")
        text = plain(sentence(step)).replace(f" on {plain(step.path)}", f" on `{step.path}`", 1)
        st.markdown(text if step.enabled else f":gray[{text}]", width="stretch")
        _switch(step, number)
        _tool(step, f"Edit step {number}", "edit", _toggle_open, shown=is_open)
        up, down = f"Move step {number} up", f"Move step {number} down"
        last = number == len(recipe.steps)
        _tool(step, up, "arrow_upward", partial(_move, by=-1), off=number == 1)
        _tool(step, down, "arrow_downward", partial(_move, by=1), off=last)
        _tool(step, f"Delete step {number}", "delete", _delete)


def badge(step: Step, number: int, live: bool) -> str:
    """The number of a step in the colour of its kind; hollow where its hook is not live."""
    colour = f"var(--hook-{step.kind.replace('_', '-')})"
    state = "live" if live else "not live"
    return (
        f'<span class="lab-badge{" live" if live else ""}" style="--kind: {colour}" '
        f'role="img" aria-label="Step {number}, {state}" title="{escape(state)}">{number}</span>'
    )


def _switch(step: Step, number: int) -> None:
    key = f"lab on {step.id}"
    st.session_state[key] = step.enabled

    def change() -> None:
        on = bool(st.session_state[key])
        lab_state.replace_step(replace(lab_state.newest(step), enabled=on))

    st.toggle(f"Step {number} is on", key=key, on_change=change, label_visibility="collapsed")


def _tool(
    step: Step,
    label: str,
    icon: str,
    act: Callable[[str], None],
    *,
    off: bool = False,
    shown: bool = False,
) -> None:
    st.button(
        label,
        icon=f":material/{'check' if shown else icon}:",
        key=f"lab {icon} {step.id}",
        on_click=act,
        args=(step.id,),
        disabled=off,
        type="tertiary",
        help=f"Done with {label.lower().removeprefix('edit ')}" if shown else label,
    )


def _toggle_open(id: str) -> None:
    lab_state.open_step("" if lab_state.opened() == id else id)


def _move(id: str, by: int) -> None:
    if _is_there(id):
        lab_state.change_recipe(lab_state.recipe().move(id, by))


def _delete(id: str) -> None:
    if _is_there(id):
        lab_state.change_recipe(lab_state.recipe().without(id))


def _is_there(id: str) -> bool:
    """Whether the step of that id has not been deleted by an earlier click."""
    return any(step.id == id for step in lab_state.recipe().steps)


def _remarks(step: Step, wrong: str) -> None:
    """What is wrong with a step, or what it cannot do."""
    if wrong:
        end = "" if wrong.endswith("?") else "."
        st.markdown(
            f":red[:material/error:] {plain(wrong[:1].upper() + wrong[1:])}{end} "
            "The hook is not live."
        )
    elif step.enabled and (reason := cannot_change_logits(step)):
        st.caption(reason)


def save_and_load(model: LoadedModel) -> None:
    """The recipe as a file, and back from one."""
    recipe = lab_state.recipe()
    with st.popover("Save or load", icon=":material/save:"):
        st.download_button(
            "Save the recipe",
            replace(recipe, model=model.spec.name).to_json(),
            file_name="recipe.json",
            mime="application/json",
            icon=":material/download:",
            key="lab save",
            on_click="ignore",
            disabled=not recipe.steps,
        )
        st.caption(
            "«python -m interp hook PICTURE --recipe recipe.json», in Hookscope's folder, runs the "
            "same hooks."
        )
        count = st.session_state.setdefault(_LOADS, 0)
        file = st.file_uploader(
            "Load a recipe that was saved here: it takes the place of this one",
            ["json"],
            key=f"lab load {count}",
        )
        if file is not None:
            _load(model, file.name, file.getvalue())


def _load(model: LoadedModel, name: str, data: bytes) -> None:
    try:
        loaded = Recipe.from_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        st.error("The file is not text: load a JSON file that was saved here.")
    except InterpError as error:
        message = str(error)
        st.error(plain(message[:1].upper() + message[1:]), icon=":material/error:")
    else:
        st.session_state[_LOADS] += 1  # an empty field, so that it is loaded once
        lab_state.change_recipe(loaded)
        lab_state.open_step("")
        steps = "1 step" if len(loaded.steps) == 1 else f"{len(loaded.steps)} steps"
        made = ""
        if loaded.model and loaded.model != model.spec.name:
            made = (
                f". It was saved with {loaded.model}: on {model.spec.title} the steps are live "
                "whose layers exist"
            )
        lab_state.tell(f"Loaded {name}: {steps}{made}")
        st.rerun()
