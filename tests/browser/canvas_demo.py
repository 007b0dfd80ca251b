"""Serves the heatmap canvas alone: `canvas_demo.py [width]`, with a count of the script's runs.

The attribution is made by hand, so that the canvas can be tested without a model.
"""

import sys
from types import SimpleNamespace

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from interp.geometry import FITS, Geometry, Preset, plan
from interp.picture import Picture, open_picture, sample_pictures
from interp.ui.heatmap_view import heatmap_view

PRESET = Preset(224, 256, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "bicubic")
MAPS = ("positive", "signed", "flat")


def make_map(kind: str) -> NDArray[np.float32]:
    """A 7 × 6 grid (rows × columns): a cup-shaped hill, a hill and a valley, or nothing."""
    y, x = np.mgrid[0:7, 0:6].astype(np.float32)
    hill = 3.41 * np.exp(-((x - 3.2) ** 2 + (y - 3.4) ** 2) / 3.0) - 0.12
    if kind == "positive":
        return hill.astype(np.float32)
    if kind == "signed":
        valley = 2.2 * np.exp(-((x - 0.6) ** 2 + (y - 1.0) ** 2) / 2.0)
        return (0.02 * (hill - valley)).astype(np.float32)
    return np.zeros((7, 6), np.float32)


def make_attribution(picture: Picture, geometry: Geometry, kind: str) -> SimpleNamespace:
    """What the view reads of an `Attribution`."""
    return SimpleNamespace(
        map=make_map(kind),
        geometry=geometry,
        picture=picture,
        signed=kind == "signed",
        target=SimpleNamespace(label="espresso (967)", slug="espresso-967"),
        method="grad-cam",
        layers=("features.8",),
        model_name="efficientnet_lite0",
        source="bundled",
        on_picture=lambda: geometry.on_picture(make_map(kind)),
        manifest=lambda: {"made": "by hand", "map": kind},
    )


def picture_of(name: str) -> Picture:
    """One of the samples, or a thin strip of one for the odd formats."""
    samples = sample_pictures()
    if name in samples:
        return open_picture(samples[name])
    coffee = open_picture(samples["coffee"])
    size = {"wide": (900, 120), "tall": (90, 700), "large": (2600, 1800)}[name]
    return Picture(coffee.image.resize(size, Image.Resampling.LANCZOS), name, (), name, "PNG", 0, 1)


def main() -> None:
    st.set_page_config(layout="wide")
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    name = st.sidebar.radio("Picture", ["coffee", "chelsea", "wide", "tall", "large"])
    fit = st.sidebar.radio("Fit", FITS)
    kind = st.sidebar.radio("Map", MAPS)
    shown = st.sidebar.checkbox("Show", True)
    picture = picture_of(name)
    width = int(sys.argv[1]) if len(sys.argv) > 1 else 720
    with st.container(width=width):
        if shown:
            geometry = plan(picture.size, PRESET, fit)
            heatmap_view(make_attribution(picture, geometry, kind), key="canvas")
    st.caption(f"script runs: {st.session_state.runs}")


if __name__ == "__main__":
    main()
