"""The Gradients page: how a gradient travels from the scores back to the picture."""

from dataclasses import replace

import streamlit as st

from interp.ui.waiting import first_screen

with first_screen():
    from interp.errors import InterpError
    from interp.ui import (
        cache,
        gradients_choice,
        gradients_files,
        gradients_layer,
        gradients_runs,
        state,
    )
    from interp.ui.controls import sidebar
    from interp.ui.gradients_chart import QUANTITIES, chart, headline, verdicts
    from interp.ui.hook_panel import hook_panel
    from interp.ui.waiting import plain, problem, working

view = state.current("gradients")
picture, model = sidebar(view)
top = cache.predictions(replace(view, method="", layer="", target=""), model, picture)

with st.container(horizontal=True, gap="medium"):
    try:
        label = gradients_choice.choose_loss(model, top)
    except InterpError as error:
        problem(error, [("Take the top prediction", {"label": ""})])
        st.stop()
    compare, other = gradients_choice.choose_comparison(view, model)
with st.container(horizontal=True, gap="medium"):
    quantity = gradients_choice.choose_quantity({k: q.title for k, q in QUANTITIES.items()})
    detail = gradients_choice.choose_detail()

try:
    with working(f"Sending a gradient through {model.spec.title}"):
        first = gradients_runs.own_run(view, label, model, picture)
        compared = [first]
    if compare == "untrained":
        with working(f"And through an untrained {model.spec.title}"):
            compared.append(gradients_runs.untrained_run(view, label, first, picture))
    elif compare == "picture":
        with working("And on the second picture"):
            compared = list(gradients_runs.picture_runs(view, label, first, model, other))
except InterpError as error:
    problem(
        error,
        [
            ("Compare with nothing", {"compare": "", "other": ""}),
            ("Follow the top prediction", {"target": "", "loss": ""}),
        ],
    )
    st.stop()

rows = first.travel.rows
table = {info.path: info for info in model.layers}
at, elsewhere = gradients_choice.layer_at(view, rows, table)

with st.container(key="result gradients"):
    headline(first, model)
    chart(compared, quantity, detail, at)
    verdicts(compared, detail)
    gradients_files.download(compared)

# Stacked by page.css where the window is narrow.
with st.container(key="result"):
    st.markdown("#### One layer")
    side, spread = st.columns([2, 3], gap="large")
    with side:
        gradients_choice.choose_layer(rows, table, at)
        if elsewhere:
            st.caption(plain(elsewhere))
        gradients_layer.layer_head(table[at])
        gradients_layer.numbers(compared, at)
    with spread:
        try:
            with working(f"Looking at {at}", height=250):
                values = gradients_runs.values_at(view, at, label, model, picture)
            gradients_layer.histograms(values, first.name if compared[1:] else "")
        except InterpError as error:
            problem(error, [("Look at the recommended layer", {"at": ""})])
    gradients_layer.at_the_picture(first.travel)

hook_panel(first.travel.ledger, key="hooks gradients")
