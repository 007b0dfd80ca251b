"""Serves the row of predictions without a model; `?case=` chooses them."""

from types import SimpleNamespace

import streamlit as st

from interp.ui.predictions import predictions


def prediction(index: int, name: str, probability: float, logit: float) -> SimpleNamespace:
    """What the row reads of a `Prediction`, whose own module would import torch."""
    return SimpleNamespace(index=index, name=name, probability=probability, logit=logit)


HOSTILE = '<img src=x onerror="window.stolen=1">'
CASES = {
    "coffee": [
        prediction(967, "espresso", 0.951, 10.42),
        prediction(968, "cup", 0.0142, 6.22),
        prediction(925, "consomme", 0.0068, 5.48),
        prediction(960, "chocolate sauce, chocolate syrup", 0.0031, 4.7),
        prediction(504, "coffee mug", 0.0004, 2.65),
    ],
    "chelsea": [
        prediction(282, "tiger cat", 0.384, 8.11),
        prediction(285, "Egyptian cat", 0.352, 8.02),
        prediction(281, "tabby, tabby cat", 0.181, 7.36),
        prediction(364, "three-toed sloth, ai, Bradypus tridactylus", 0.031, 5.59),
        prediction(287, "lynx, catamount", 0.012, 4.64),
    ],
    "hostile": [prediction(0, HOSTILE, 1.0, 3.0), prediction(1, "b" * 60, 0.0, -3.0)],
    "broken": [prediction(0, "tench", float("nan"), float("nan"))],
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
