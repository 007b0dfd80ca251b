"""The Layers page: look inside the network, layer by layer and channel by channel."""

import streamlit as st

from interp.ui.waiting import first_screen

with first_screen():
    from interp.errors import InterpError
    from interp.ui import layers_choice, layers_results, state
    from interp.ui.components import ASSETS
    from interp.ui.controls import sidebar
    from interp.ui.hook_panel import hook_panel
    from interp.ui.layer_tree import layer_tree
    from interp.ui.layers_view import headline, show_section, summary
    from interp.ui.waiting import problem, working

view = state.current("layers")
layers_choice.forget_former_model(view)
picture, model = sidebar(view)
st.html(ASSETS / "layers.css")

try:
    with working(f"One pass through every layer of {model.spec.title}"):
        measured = layers_results.layer_statistics(layers_results.of_picture(view), model, picture)
except InterpError as error:
    problem(error, [("Fit the picture by cropping", {"fit": "crop"})])
    st.stop()

wide = state.choice("wide") == "1"
with st.container(key="layers-wide" if wide else "layers"):
    tree_place, layer_place = st.columns([5, 9], gap="large")
ledger = measured.ledger
layer = None
with layer_place:
    try:
        layer = layers_choice.chosen_layer(view, model)
        headline(layer, model)
        section = layers_choice.choose_section()
        with st.container(key="result layer"):
            ledger = show_section(section, view, model, picture, layer, measured) or ledger
    except InterpError as error:
        problem(error, layers_choice.ways_out())
with tree_place:
    layer_tree(
        model.layers,
        measured.rows,
        layer.info.path if layer else "",
        key="layers tree",
        network=f"{view.model} {view.weights}",
        wide=wide,
        on_pick=lambda path: layers_choice.choose_layer(model, path),
        on_wide=lambda asked: state.change(wide="1" if asked else ""),
    )
    summary(model, measured)

hook_panel(ledger, key="hooks layers")
