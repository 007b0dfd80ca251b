"""Serves the row of predictions without a model; `?case=` chooses them."""

import streamlit as st

from interp.attribution.base import Prediction
from interp.ui.predictions import predictions

HOSTILE = '<img src=x onerror="window.stolen=1">'
CASES = {
    "coffee": [
        Prediction(967, "espresso", 0.951, 10.42),
        Prediction(968, "cup", 0.0142, 6.22),
        Prediction(925, "consomme", 0.0068, 5.48),
        Prediction(960, "chocolate sauce, chocolate syrup", 0.0031, 4.7),
        Prediction(504, "coffee mug", 0.0004, 2.65),
    ],
    "chelsea": [
        Prediction(282, "tiger cat", 0.384, 8.11),
        Prediction(285, "Egyptian cat", 0.352, 8.02),
        Prediction(281, "tabby, tabby cat", 0.181, 7.36),
        Prediction(364, "three-toed sloth, ai, Bradypus tridactylus", 0.031, 5.59),
        Prediction(287, "lynx, catamount", 0.012, 4.64),
    ],
    "hostile": [Prediction(0, HOSTILE, 1.0, 3.0), Prediction(1, "b" * 60, 0.0, -3.0)],
    "broken": [Prediction(0, "tench", float("nan"), float("nan"))],
    "none": [],
}
REFUSED = 504


def pick(index: int) -> None:
    st.session_state.picks.append(index)
    if index != REFUSED:
        st.session_state.chosen = index


def main() -> None:
    st.set_page_config(layout="wide")
    state = st.session_state
    state.runs = state.get("runs", 0) + 1
    state.setdefault("picks", [])
    state.setdefault("case", st.query_params.get("case", "coffee"))
    items = CASES[state.case]
    state.setdefault("chosen", items[0].index if items else None)
    st.sidebar.caption("The sidebar of a page")
    predictions(items, state.chosen, key="top", on_pick=pick)
    st.caption("The picture stands here.")
    if st.button("Choose another picture"):
        state.case, state.chosen = "chelsea", 364
        st.rerun()
    if st.button("Choose a class that is not there"):
        state.chosen = 1
        st.rerun()
    st.text(f"runs: {state.runs}")
    st.text(f"picks: {' '.join(map(str, state.picks))}")


main()
