"""What stands around the heatmap on the Explain page: words, numbers, files and the filmstrip."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from PIL import Image

from interp import export, render
from interp.attribution import Attribution, Method
from interp.errors import InterpError
from interp.geometry import Fit
from interp.models.loading import LoadedModel
from interp.models.stages import stages
from interp.picture import Picture
from interp.ui import cache, state
from interp.ui.gallery import Tile, gallery
from interp.ui.heatmap_view import describe
from interp.ui.state import View
from interp.ui.waiting import working

RAW_SIDE = 448
THUMBNAIL = 320
FILES: tuple[tuple[str, str, str, Callable[[Attribution], bytes], str], ...] = (
    ("PNG", ".png", "image/png", export.png_bytes, "The overlay at the picture's own size."),
    ("NPZ", ".npz", "application/zip", export.npz_bytes, "Raw map, heatmap and logits."),
    ("JSON", ".json", "application/json", export.json_bytes, "How the map came about."),
    ("Figure", ".figure.png", "image/png", export.figure_bytes, "With a colour bar and a caption."),
    ("All", ".zip", "application/zip", export.zip_bytes, "PNG, NPZ and JSON in a ZIP."),
)
FITS: dict[Fit, str] = {"crop": "Centre crop", "letterbox": "Whole picture", "stretch": "Stretched"}


def headline(attribution: Attribution, method: Method, model: LoadedModel) -> None:
    """What the picture below shows, in a sentence, and what it was made with, in grey."""
    label = attribution.target.label
    st.markdown(f"**{method.title}**: {method.summary.format(target=f'*{label}*')}.")
    weights = {"bundled": "bundled weights", "untrained": "untrained"}.get(
        model.source, f"{model.weights}, {model.source}"
    )
    st.caption(
        f"{model.spec.title} ({weights}) · layer `{' + '.join(attribution.layers)}` · "
        f"{1000 * attribution.seconds:.0f} ms on {attribution.device.upper()}"
    )


def choose_fit(view: View) -> None:
    """How the picture is brought to the model's input."""
    st.session_state["fit"] = view.fit
    st.segmented_control(
        "What the model sees of the picture",
        list(FITS),
        format_func=FITS.__getitem__,
        required=True,
        key="fit",
        help=(
            "A centre crop is what the model was tested with; the borders it cuts off are hatched. "
            "The whole picture gets grey bands, or is stretched to a square."
        ),
        on_change=lambda: state.change(fit=st.session_state["fit"]),
    )


def raw_map(attribution: Attribution) -> None:
    """The map as the layer has it: its own grid, its own numbers."""
    scale = render.scale_for(attribution.map, signed=attribution.signed)
    height, width = attribution.map.shape
    longest = max(height, width)
    size = (max(1, RAW_SIDE * width // longest), max(1, RAW_SIDE * height // longest))
    low, high = _range(attribution.map)
    st.markdown("**Raw map**", help="The map on the layer's own grid, before scaling or smoothing.")
    st.image(
        render.heat_image(attribution.map, scale, size),
        width=220,
        alt=f"Raw map of {height} by {width} cells. {describe(attribution)}",
    )
    st.caption(f"{height} × {width} grid · {_number(low)} to {_number(high)}")


def notes(attribution: Attribution) -> None:
    """What a reader has to know about the picture or the map."""
    for note in attribution.notes:
        st.info(note[:1].upper() + note[1:], icon=":material/info:")


def downloads(attribution: Attribution) -> None:
    """The files; each is made when it is asked for, and none reruns the page."""
    stem = export.default_stem(attribution)
    st.markdown("**Take it away**", help="Every file carries what is needed to repeat the map.")
    for row in (FILES[:3], FILES[3:]):
        for place, (label, suffix, mime, make, what) in zip(st.columns(len(row)), row, strict=True):
            place.download_button(
                label,
                partial(make, attribution),
                file_name=stem + suffix,
                mime=mime,
                key=f"download {label}",
                help=what,
                on_click="ignore",
                width="stretch",
            )


def filmstrip(view: View, model: LoadedModel, picture: Picture) -> None:
    """The same class at every stage of the network, from one pass; a click looks closer."""
    layers = stages(model.layers)
    if len(layers) < 2:
        return
    place = st.container()
    place.markdown(
        "**Through the network**",
        help="The same class at each stage, from input to output. Each map has a scale of its own.",
    )
    try:
        with working("One pass for all stages", height=180):
            maps = cache.heatmaps(view, tuple(info.path for info in layers), model, picture)
            frames = _frames(view, maps)
    except InterpError as error:
        place.caption(f"Not to be shown here: {error}.")
        return
    paths = {info.path: "" if info.recommended else info.path for info in layers}
    chosen = view.layer or next(info.path for info in layers if info.recommended)
    with place:
        gallery(
            [_tile(path, a, frame) for path, a, frame in zip(paths, maps, frames, strict=True)],
            chosen,
            key="filmstrip",
            label="Stage of the network",
            on_pick=lambda path: state.change(layer=paths[path]),
            strip=True,
        )
        hooks = maps[0].hooks
        st.caption(
            f"All {len(maps)} from one forward and one backward pass: {hooks['registered']} hooks "
            f"registered, {hooks['removed']} removed, {1000 * maps[0].seconds:.0f} ms."
        )


def _tile(path: str, attribution: Attribution, frame: Image.Image) -> Tile:
    height, width = attribution.map.shape
    high = _range(attribution.map)[1]
    return Tile(
        path,
        frame,
        path,
        mono=True,
        detail=f"{height} × {width} · max {_number(high, 3)}",
        alt=describe(attribution),
    )


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _frames(view: View, _maps: list[Attribution]) -> list[Image.Image]:
    picture = _maps[0].picture
    small = picture.image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    return [_frame(attribution, small) for attribution in _maps]


def _frame(attribution: Attribution, small: Image.Image) -> Image.Image:
    heat = replace(attribution.geometry, picture_size=small.size).on_picture(attribution.map)
    scale = render.scale_for(attribution.map, signed=attribution.signed)
    return render.overlay(small, heat, scale)


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("-", "−")


def _range(raw: np.ndarray) -> tuple[float, float]:
    finite = raw[np.isfinite(raw)]
    return (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
