"""The Hook lab: hooks that change what the network computes, live until they are taken off."""

import streamlit as st

from interp.ui.components import ASSETS
from interp.ui.waiting import first_screen

with first_screen():
    from interp.ui import lab_live, lab_run, lab_state, lab_tools, state
    from interp.ui.controls import sidebar
    from interp.ui.hook_panel import hook_panel
    from interp.ui.lab_recipe import add_button, recipe_list, save_and_load
    from interp.ui.lab_result import show_result
    from interp.ui.lab_second import note_upload
    from interp.ui.lab_start import examples
    from interp.ui.network import network

st.html(ASSETS / "lab.css")
view = state.current(lab_state.PAGE)
if lab_state.follow_address():
    view = state.current(lab_state.PAGE)
picture, model = sidebar(view)
note_upload(view.picture)

recipe = lab_state.recipe()
wrong = lab_state.problems(recipe, model)
lab = lab_state.open_lab(view, model)
lab_state.make_live(lab, recipe, wrong)

lab_live.headline(lab)
network(model.layers, lab_live.marks(recipe, lab), key="lab", lit=lab_live.lit(recipe))
if recipe.steps:
    recipe_list(model, recipe, wrong, frozenset(hook.step.id for hook in lab.live))
else:
    examples(view, picture, model)
with st.container(horizontal=True, gap="small", vertical_alignment="center", key="lab actions"):
    lab_run.button(lab)
    add_button(model)
    lab_run.choose_auto()
    st.space("stretch")
    save_and_load(model)

with st.container(key="lab result"):
    lab_run.run_if_asked(view, lab, picture)
    show_result(view, lab)
lab_tools.tabs(view, picture, model, recipe)

lab_live.live_hooks(lab)
hook_panel(lab.ledger, key="hooks lab", on_remove=lab_state.remove_hook)
