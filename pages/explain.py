"""The Explain page: what the model looks at for a class, on the picture itself."""

import streamlit as st

from interp.ui.waiting import first_screen

with first_screen():
    from interp.attribution import Attribution, get_method
    from interp.errors import InterpError
    from interp.targets import parse_target
    from interp.ui import cache, result, state
    from interp.ui.controls import sidebar
    from interp.ui.heatmap_view import heatmap_view
    from interp.ui.hook_panel import hook_panel
    from interp.ui.layer_picker import choose_layer, choose_method
    from interp.ui.predictions import predictions
    from interp.ui.waiting import problem, working

view = state.current()
picture, model = sidebar(view)

top = st.container()
with st.container(horizontal=True, gap="medium"):
    choose_method(view)
    choose_layer(view, model.layers)

try:
    method = get_method(view.method)
    with working(f"Looking into {model.spec.title}"):
        attribution = cache.heatmap(view, model, picture)
except InterpError as error:
    problem(
        error,
        [
            ("Look at the recommended layer", {"layer": ""}),
            ("Explain the top prediction with Grad-CAM", {"target": "", "method": "grad-cam"}),
        ],
    )
    st.stop()

with top:
    predictions(
        attribution.predictions,
        attribution.target.index,
        key="predictions",
        on_pick=lambda index: state.change(target=str(parse_target(index, model.categories))),
    )

through: list[Attribution] = []  # filled below, once the picture above stands
result.headline(attribution, method, model)
with st.container(key="result"):
    shown, beside = st.columns([5, 2], gap="large")
with shown:
    heatmap_view(attribution, key="heatmap")
    result.choose_fit(view)
with beside:
    result.raw_map(attribution)
    result.notes(attribution)
    result.downloads(attribution, through)

through += result.filmstrip(view, model, picture)
hook_panel(attribution.ledger, key="hooks explain")
