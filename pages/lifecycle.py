"""The Lifecycle page: every hook of this browser session, from registration to removal."""

import streamlit as st

from interp.ui.waiting import first_screen

with first_screen():
    from interp.ui import lab_state, runs, state
    from interp.ui.lifecycle_view import lifecycle, sentence

PAGES = {
    "explain": "Explain",
    "layers": "Layers",
    "gradients": "Gradients",
    "lab": "Hook lab",
    "lessons": "Lessons",
}

state.current("lifecycle")
totals = runs.totals()
if not totals.runs:
    st.header("No hook yet")
    st.markdown(
        "Every page of this program looks into the network through hooks, and every hook is "
        "recorded: when it was registered, when it fired, what it changed, when it was taken off. "
        "In this browser session nothing has run so far."
    )
    st.page_link(
        "pages/explain.py", label="Explain a picture: that runs a few", icon=":material/visibility:"
    )
    st.stop()

st.header(sentence(totals))
st.caption(
    "All runs of this browser session, oldest on the left. A bar is one handle, from its "
    "registration to its removal, and a tick is where the hook fired."
)
if totals.forgotten:
    st.caption(
        f"{totals.forgotten:,} earlier runs are no longer kept; their hooks are in the count above."
    )
lab = lab_state.live_lab()
lifecycle(
    runs.all_runs(),
    PAGES,
    key="lifecycle",
    removable={run.number for run in runs.all_runs() if lab and run.ledger is lab.ledger},
    on_remove=lab_state.remove_hook,
)
