"""What stands around the heatmap on the Explain page: words, numbers, files and the filmstrip."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
from PIL import Image

from interp import export
from interp.attribution import Attribution, Method
from interp.drawing import Drawing
from interp.errors import InterpError
from interp.geometry import Fit
from interp.models.loading import LoadedModel
from interp.models.stages import stages
from interp.picture import Picture
from interp.ui import cache, screen, state
from interp.ui.gallery import Tile, gallery
from interp.ui.heatmap_view import describe, heat_data, palette, raw_map_view
from interp.ui.state import View
from interp.ui.waiting import working

THUMBNAIL = 320
_ZIP, _JSON = "application/zip", "application/json"
_AS_SHOWN = "in the colours, opacity and threshold shown now"
_FIGURE = f"With a colour bar and a caption, {_AS_SHOWN}."
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
    height, width = attribution.map.shape
    low, high = _range(attribution.map)
    st.markdown(
        "**Raw map**",
        help=(
            "The map on the layer's own grid, before scaling or smoothing, in the colours of the "
            "heatmap. Cells below the threshold are left blank."
        ),
    )
    raw_map_view(
        attribution,
        key="raw map",
        alt=f"Raw map of {height} by {width} cells. {describe(attribution)}",
    )
    st.caption(f"{height} × {width} grid · {_number(low)} to {_number(high)}")


def notes(attribution: Attribution) -> None:
    """What a reader has to know about the picture or the map."""
    for note in attribution.notes:
        st.info(note[:1].upper() + note[1:], icon=":material/info:")


def downloads(attribution: Attribution, through: Sequence[Attribution]) -> None:
    """The files; each is made when it is asked for, and none reruns the page.

    `through` is what the filmstrip shows by the time that a file is asked for.
    """
    stem = export.default_stem(attribution)
    made = screen.as_shown
    png = made(export.png_bytes, attribution, mode="overlay")
    whole = made(partial(_whole, attribution, through))
    files = (
        ("PNG", ".png", "image/png", png, f"The overlay at the picture's own size, {_AS_SHOWN}."),
        ("NPZ", ".npz", _ZIP, made(export.npz_bytes, attribution), "Raw map, heatmap and logits."),
        ("JSON", ".json", _JSON, made(export.json_bytes, attribution), "How the map came about."),
        ("Figure", ".figure.png", "image/png", made(export.figure_bytes, attribution), _FIGURE),
        ("All", ".zip", _ZIP, whole, "PNG, figure, NPZ, JSON and the filmstrip in a ZIP."),
    )
    st.markdown("**Take it away**", help="Every file carries what is needed to repeat the map.")
    for row in (files[:3], files[3:]):
        for place, (label, suffix, mime, make, what) in zip(st.columns(len(row)), row, strict=True):
            place.download_button(
                label,
                make,
                file_name=stem + suffix,
                mime=mime,
                key=f"download {label}",
                help=what,
                on_click="ignore",
                width="stretch",
            )


def _whole(attribution: Attribution, through: Sequence[Attribution], drawing: Drawing) -> bytes:
    return export.zip_bytes(attribution, drawing, through)


def filmstrip(view: View, model: LoadedModel, picture: Picture) -> list[Attribution]:
    """The same class at every stage of the network, from one pass; a click looks closer.

    Returns
    -------
    What is shown, in order; empty where there is nothing to show.
    """
    layers = stages(model.layers)
    if len(layers) < 2:
        return []
    place = st.container()
    place.markdown(
        "**Through the network**",
        help="The same class at each stage, from input to output. Each map has a scale of its own.",
    )
    try:
        with working("One pass for all stages", height=180):
            maps = cache.heatmaps(view, tuple(info.path for info in layers), model, picture)
    except InterpError as error:
        place.caption(f"Not to be shown here: {error}.")
        return []
    small = _small(picture.sha256, picture.frame, picture)
    paths = {info.path: "" if info.recommended else info.path for info in layers}
    chosen = view.layer or next(info.path for info in layers if info.recommended)
    with place:
        gallery(
            [_tile(path, a, small) for path, a in zip(paths, maps, strict=True)],
            chosen,
            key="filmstrip",
            label="Stage of the network",
            on_pick=lambda path: state.change(layer=paths[path]),
            strip=True,
            palette=palette(maps[0].signed),
        )
        hooks = maps[0].hooks
        st.caption(
            f"All {len(maps)} from one forward and one backward pass: {hooks['registered']} hooks "
            f"registered, {hooks['removed']} removed, {1000 * maps[0].seconds:.0f} ms."
        )
    return maps


def _tile(path: str, attribution: Attribution, small: Image.Image) -> Tile:
    height, width = attribution.map.shape
    high = _range(attribution.map)[1]
    return Tile(
        path,
        small,
        path,
        mono=True,
        detail=f"{height} × {width} · max {_number(high, 3)}",
        alt=describe(attribution),
        heat=heat_data(attribution),
    )


@st.cache_data(scope="session", max_entries=4, show_spinner=False)
def _small(sha256: str, frame: int, _picture: Picture) -> Image.Image:
    small = _picture.image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    return small


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("-", "−")


def _range(raw: np.ndarray) -> tuple[float, float]:
    finite = raw[np.isfinite(raw)]
    return (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
