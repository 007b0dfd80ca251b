"""The heatmap on its picture: a canvas that is drawn, recoloured and read in the browser."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from PIL import Image

from interp import render
from interp.drawing import MODES, Mode
from interp.export import default_stem, png_bytes
from interp.ui import screen
from interp.ui.components import HEAT, component

if TYPE_CHECKING:
    from interp.attribution.base import Attribution

LONGEST_SIDE = 1600
LOSSLESS_PIXELS = 250_000
JPEG_QUALITY = 92
ROWS = ("top", "middle", "bottom")
COLUMNS = ("left", "centre", "right")


def heatmap_view(
    attribution: Attribution, *, key: str, title: str | None = None, alt: str | None = None
) -> None:
    """Show an attribution on its picture, with its own controls and legend.

    Nothing done there reruns the script: the browser gets the raw map and its geometry, and
    scales, colours and interpolates by itself, by the formulas of `interp.render` and
    `Geometry.on_picture`. «Save this view» is drawn by the server, at the picture's own
    resolution, by `interp.drawing`.

    Parameters
    ----------
    attribution : what to show.
    key : identity of this view on the page; with the same key a new attribution replaces the old
        one in place.
    title : what the map is of; the target where None.
    alt : the picture in words; computed where None.
    """
    words = title or attribution.target.label, alt or describe(attribution)
    data = _payload(attribution, *words)
    data["screen"] = screen.of_session().url
    data["saves"] = _saves(attribution, key)
    component("heatmap")(key=key, data=data)


def _saves(attribution: Attribution, key: str) -> dict[Mode, str]:
    """A download for each view, for the component to press; by view the class it is found by."""
    stem = default_stem(attribution)
    with st.container(key=f"saves {key}"):  # hidden by page.css
        for mode in MODES:
            st.download_button(
                f"Save as {mode}",
                screen.as_shown(png_bytes, attribution, mode=mode),
                file_name=f"{stem}.{mode}.png",
                mime="image/png",
                key=f"save {key} {mode}",
                on_click="ignore",
            )
    return {mode: f"st-key-save-{key}-{mode}" for mode in MODES}


def raw_map_view(attribution: Attribution, *, key: str, alt: str) -> None:
    """Show the map on the layer's own grid, in the colours and threshold chosen for heatmaps."""
    data = {**heat_data(attribution), **palette(attribution.signed), "alt": alt}
    component("raw_map", HEAT)(key=key, data=data)


def describe(attribution: Attribution) -> str:
    """A heatmap in words: «Heat strongest over the top left, maximum 0.83, for espresso (967)»."""
    scale = render.scale_for(attribution.map, signed=attribution.signed)
    label = attribution.target.label
    if scale.empty:
        return f"No heat to draw for {label}: the map is flat or has no value above zero"
    height, width = attribution.map.shape
    size = np.abs(attribution.map) if scale.signed else attribution.map
    row, column = divmod(int(np.nanargmax(size)), width)
    scale_x, offset_x, scale_y, offset_y = attribution.geometry.affine
    input_width, input_height = attribution.geometry.input_size
    x = ((column + 0.5) * input_width / width - 0.5 - offset_x) / scale_x
    y = ((row + 0.5) * input_height / height - 0.5 - offset_y) / scale_y
    where = _region(x, y, attribution.geometry.picture_size)
    if scale.signed:
        low, high = np.nanmin(attribution.map), np.nanmax(attribution.map)
        return f"Heat for and against {label}, strongest over the {where}, {low:.3g} to {high:.3g}"
    return f"Heat strongest over the {where}, maximum {scale.high:.3g}, for {label}"


def _region(x: float, y: float, size: tuple[int, int]) -> str:
    """Which ninth of the picture a point lies in, in words."""
    row, column = (
        min(max(int(3 * at / length), 0), 2) for at, length in ((y, size[1]), (x, size[0]))
    )
    return "centre" if row == column == 1 else f"{ROWS[row]} {COLUMNS[column]}"


def _payload(attribution: Attribution, title: str, alt: str) -> dict[str, Any]:
    picture = attribution.picture
    heat = heat_data(attribution)
    heat["picture"]["url"] = _picture_url(picture.sha256, picture.frame, picture.image)
    return {
        **heat,
        **palette(attribution.signed),
        "title": title,
        "source": " · ".join([attribution.method, *attribution.layers]),
        "alt": alt,
    }


def heat_data(attribution: Attribution) -> dict[str, Any]:
    """What a browser needs to lay a map over its picture, but for the picture and the colours."""
    geometry = attribution.geometry
    scale = render.scale_for(attribution.map, signed=attribution.signed)
    scale_x, offset_x, scale_y, offset_y = geometry.affine
    grid = np.ascontiguousarray(attribution.map, dtype="<f4")
    width, height = attribution.picture.size
    return {
        "picture": {"width": width, "height": height},
        "map": {"data": _base64(grid.tobytes()), "width": grid.shape[1], "height": grid.shape[0]},
        "geometry": {
            "scale": [scale_x, scale_y],
            "offset": [offset_x, offset_y],
            "input": list(geometry.input_size),
            "seen": list(geometry.seen),
        },
        "scale": {"low": scale.low, "high": scale.high, "signed": scale.signed},
    }


def palette(signed: bool) -> dict[str, Any]:
    """The colours that there are to choose from, and what is shown before anything is chosen."""
    return {
        "colours": [
            {"name": name, "title": title, "table": _base64(render.lookup(name).tobytes())}
            for name, title in render.COLOUR_MAPS.items()
            # A diverging map shows a sign, so it is the one choice for signed maps and none else.
            if (name == render.DEFAULT_DIVERGING) == signed
        ],
        "defaults": {
            "opacity": render.DEFAULT_OPACITY,
            "threshold": render.DEFAULT_THRESHOLD,
            "colours": render.DEFAULT_DIVERGING if signed else render.DEFAULT_COLOURS,
        },
    }


@st.cache_data(scope="session", max_entries=4, show_spinner=False)
def _picture_url(sha256: str, frame: int, _image: Image.Image) -> str:
    """The picture as a data URL, lossless where it is small, without profile or EXIF."""
    image = _image.copy()
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    image.info.clear()  # Pillow would write the old colour profile to pixels we read as sRGB
    encoded = io.BytesIO()
    if image.width * image.height <= LOSSLESS_PIXELS:
        image.save(encoded, "PNG")
        kind = "png"
    else:
        image.save(encoded, "JPEG", quality=JPEG_QUALITY)
        kind = "jpeg"
    return f"data:image/{kind};base64,{_base64(encoded.getvalue())}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
