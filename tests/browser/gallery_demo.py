"""Serves two galleries without a model: a grid in the sidebar, a filmstrip in the main column.

`?tiles=4` sets the length of the strip, `?blank=1` leaves out its pictures.
"""

import numpy as np
import streamlit as st
from PIL import Image

from interp import render
from interp.picture import sample_pictures
from interp.ui.gallery import Tile, gallery

HOSTILE = '<img src=x onerror="window.stolen=1">'
LONG = "encoder.layers.encoder_layer_11.mlp.0.projection"
REFUSED = "features.1"


@st.cache_data
def samples() -> dict[str, Image.Image]:
    return {name: Image.open(path).convert("RGB") for name, path in sample_pictures().items()}


@st.cache_data
def overlay(name: str, stage: int) -> Image.Image:
    """A sample with a hill of heat that narrows from stage to stage."""
    picture = samples()[name].copy()
    picture.thumbnail((320, 320))
    y, x = np.mgrid[0 : picture.height, 0 : picture.width] / picture.height
    heat = np.exp(-((x - 0.75) ** 2 + (y - 0.5) ** 2) * (2 + 3 * stage)).astype(np.float32)
    return render.overlay(picture, heat, render.scale_for(heat, signed=False))


def strip_tiles(name: str, count: int, blank: bool) -> list[Tile]:
    tiles = []
    for stage in range(count):
        side = max(112 >> stage // 2, 7)
        path = LONG if stage == 3 and count == 4 else f"features.{stage}"
        image = None if blank else overlay(name, stage)
        detail = f"{side} × {side} · max {0.83 / (stage + 1):.2f}"
        tiles.append(Tile(path, image, path, True, detail, f"Heat at {path}"))
    return tiles


def pick_picture(value: str) -> None:
    st.session_state.picture = value
    st.session_state.picks.append(value)


def pick_stage(value: str) -> None:
    st.session_state.picks.append(value)
    if value != REFUSED:
        st.session_state.stage = value


def main() -> None:
    st.set_page_config(layout="wide")
    state = st.session_state
    state.runs = state.get("runs", 0) + 1
    state.setdefault("picks", [])
    state.setdefault("picture", "coffee")
    state.setdefault("stage", "features.2")
    with st.sidebar:
        st.caption("Samples")
        tiles = [
            Tile(name, image, name.replace("_left", ""), alt=f"Sample: {name}")
            for name, image in samples().items()
        ]
        if "hostile" in st.query_params:
            tiles[-1] = Tile(HOSTILE, None, HOSTILE, detail=HOSTILE, alt=HOSTILE)
        gallery(
            tiles, state.picture, key="samples", label="Sample", on_pick=pick_picture, columns=3
        )
    st.subheader("espresso at every stage")
    count = int(st.query_params.get("tiles", 9))
    gallery(
        strip_tiles(state.picture, count, "blank" in st.query_params),
        state.stage,
        key="stages",
        label="Stage of the network",
        on_pick=pick_stage,
        strip=True,
    )
    if st.button("Choose the last from Python"):
        state.stage = f"features.{count - 1}"
        st.rerun()
    st.text(f"runs: {state.runs}")
    st.text(f"picks: {' '.join(state.picks)}")


main()
