"""The recipe of this browser session, and the lab in which its hooks are live."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from interp.errors import InterpError
from interp.hooks.lab import Lab
from interp.hooks.ledger import HookLedger
from interp.hooks.recipe import Recipe, Step, check
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.ui import cache, runs, state
from interp.ui.state import View

MOST_RECIPES = 512
NAME_LENGTH = 16
PAGE = "lab"
_RECIPE = "lab.recipe"
_NAMED = "lab.named"  # the recipe that the address of the page named when it was last looked at
_OPENED = "lab.opened"
_LAB = "lab.live"
_LEDGER = "lab.ledger"
_SAID = "lab.said"


class Recipes:
    """The newest recipes by a short hash, so that an address leads back to one."""

    def __init__(self, capacity: int = MOST_RECIPES) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[str, Recipe] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, recipe: Recipe) -> str:
        """Keep a recipe and give it a name; the empty one has the empty name."""
        if not recipe.steps:
            return ""
        name = hashlib.sha256(recipe.to_json().encode()).hexdigest()[:NAME_LENGTH]
        with self._lock:
            self._kept[name] = recipe
            self._kept.move_to_end(name)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        return name

    def get(self, name: str) -> Recipe | None:
        """The recipe of a name, or None where it is no longer kept."""
        with self._lock:
            return self._kept.get(name) if name else Recipe()


@st.cache_resource(show_spinner=False)
def _recipes() -> Recipes:
    return Recipes()


def recipe() -> Recipe:
    """The recipe of this session; empty at first."""
    kept: Recipe = st.session_state.get(_RECIPE, Recipe())
    return kept


def change_recipe(recipe: Recipe) -> None:
    """Put another recipe in place; its hooks are live when the Hook lab is next shown."""
    st.session_state[_RECIPE] = recipe
    keep_address()


def keep_address() -> None:
    """From a callback: what was pressed counts, not the address that the browser sent along.

    It may be older than the recipe: the page may have been used before its new address arrived.
    """
    if state.page() != PAGE:
        return  # another page has an address of its own
    st.session_state[_NAMED] = _recipes().add(recipe())
    state.change(recipe=st.session_state[_NAMED])


def add(step: Step) -> None:
    """Put a step at the end of the recipe, from any page, and open it there."""
    change_recipe(recipe().add(step))
    open_step(step.id)


def newest(step: Step) -> Step:
    """A step as the recipe has it now: several fields may change between two runs of the page."""
    return next((one for one in recipe().steps if one.id == step.id), step)


def replace_step(step: Step) -> None:
    """Put a step in the place of the one with its id; one that was deleted stays so."""
    if any(one.id == step.id for one in recipe().steps):
        change_recipe(recipe().replace(step))


def opened() -> str:
    """The id of the step that is being edited; empty where none is."""
    return str(st.session_state.get(_OPENED, ""))


def open_step(id: str) -> None:
    """Edit that step, or none."""
    st.session_state[_OPENED] = id
    keep_address()


def follow_address() -> bool:
    """Bring the recipe and the address of the page together; whether the address has to change.

    An address that was gone to (reloaded, shared, or the browser's back button) wins; a recipe that
    changed since the page was last shown is named in the address.
    """
    named = state.choice("recipe")
    if named != st.session_state.get(_NAMED, ""):
        found = _recipes().get(named)
        if found is None:
            tell(
                "The recipe of this address is no longer kept here: load it from a file, "
                "or begin anew"
            )
        else:
            st.session_state[_RECIPE] = found
    own = _recipes().add(recipe())
    st.session_state[_NAMED] = own
    if own == named:
        return False
    state.change(recipe=own)
    return True


def tell(text: str) -> None:
    """Say something once, when the page is next drawn."""
    st.session_state.setdefault(_SAID, []).append(text)


def told() -> list[str]:
    """What is to be said now."""
    said: list[str] = st.session_state.pop(_SAID, [])
    return said


def ledger() -> HookLedger:
    """The ledger of all hooks that this session ever set in the Hook lab."""
    kept: HookLedger = st.session_state.setdefault(_LEDGER, HookLedger())
    return kept


def _release(lab: Lab) -> None:
    # Streamlit calls this on the thread that serves everybody, and a pass may still hold the lab.
    threading.Thread(target=lab.close, name="close hook lab").start()


# Released when another model takes its place, and when the browser goes away.
@st.cache_resource(scope="session", max_entries=1, show_spinner=False, on_release=_release)
def _lab(name: str, weights: str, _model: LoadedModel, _ledger: HookLedger) -> Lab:
    return Lab(_model, _ledger)


def live_lab() -> Lab | None:
    """The lab of this session, if one is open."""
    lab: Lab | None = st.session_state.get(_LAB)
    return None if lab is None or lab.closed else lab


def open_lab(view: View, model: LoadedModel) -> Lab:
    """The lab on the model of a view; the hooks of a lab on another model are removed."""
    before = live_lab()
    count = len(before.live) if before is not None else 0
    lab = _lab(view.model, view.weights, model, ledger())
    if before is not None and before is not lab:
        before.close()
        if count:
            hooks = "1 hook" if count == 1 else f"{count} hooks"
            tell(
                f"{hooks} on {before.model.spec.title} removed: the model is another one now. "
                "The recipe stays, and its steps are live here where their layers exist"
            )
    st.session_state[_LAB] = lab
    return lab


def picture_of(name: str) -> Picture:
    """The picture of a patch: a sample by name, or an upload by its SHA-256."""
    return cache.picture(name, 0)


def problems(recipe: Recipe, model: LoadedModel) -> dict[str, str]:
    """Why steps cannot be live on a model, by their ids."""
    wrong = {}
    for step in recipe.steps:
        try:
            check(step, model)
            if step.action == "patch":
                picture_of(step.values["picture"])
        except InterpError as error:
            wrong[step.id] = str(error)
    return wrong


def make_live(lab: Lab, recipe: Recipe, wrong: Mapping[str, str]) -> None:
    """Let the hooks of all steps be live that are enabled and not wrong, and no others."""
    usable = tuple(step for step in recipe.steps if step.enabled and step.id not in wrong)
    lab.sync(Recipe(usable, recipe.model), picture_of)
    if lab.live:
        runs.note("Hooks of the Hook lab", lab.ledger)


def remove_hook(record_id: int) -> None:
    """Take a live hook off by its handle; its step is switched off in the recipe."""
    lab = live_lab()
    step = None if lab is None else lab.remove(record_id)
    if step is None:
        return
    own = recipe()
    change_recipe(
        replace(
            own,
            steps=tuple(replace(s, enabled=s.enabled and s.id != step.id) for s in own.steps),
        )
    )


def remove_all() -> None:
    """Take all live hooks off; their steps are switched off in the recipe."""
    lab = live_lab()
    for hook in () if lab is None else lab.live:
        remove_hook(hook.record.id)
