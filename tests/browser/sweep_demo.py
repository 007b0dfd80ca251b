"""Serves the channel sweep on the bundled model; `?slow=1` slows it so that a reader can stop it.

Below it stand the sentences of the recipe and how many hooks the last sweep has live.
"""

import time

import streamlit as st

from interp.hooks.replay import Replay
from interp.inspection import sweep as swept
from interp.ui import cache, lab_state, runs, state
from interp.ui.sweep_view import channel_sweep

SECONDS_A_BATCH = 0.12


class SlowReplay(Replay):
    def __call__(self, values):  # type: ignore[no-untyped-def]
        time.sleep(SECONDS_A_BATCH)
        return super().__call__(values)


def main() -> None:
    st.set_page_config(layout="wide")
    view = state.current("sweep")
    swept.Replay = SlowReplay if state.choice("slow") else Replay
    model = cache.model(view.model, view.weights)
    ledger = channel_sweep(view, model, cache.picture(view.picture, view.frame))
    st.text("ledger: " + ("none" if ledger is None else str(ledger.summary())))
    st.text(f"runs: {[run.title for run in runs.all_runs()]}")
    for step in lab_state.recipe().steps:
        st.text(f"recipe: {step.sentence()}")


main()
