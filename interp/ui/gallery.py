"""A gallery of pictures to choose one from: a grid of thumbnails, or a filmstrip."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from PIL import Image

from interp.ui.components import HEAT, component
from interp.ui.picks import answer, answered

LONGEST_SIDE = 320
JPEG_QUALITY = 85
ASPECTS = (0.75, 1.8)


@dataclass(frozen=True)
class Tile:
    """One picture of a gallery.

    `title` stands under it, in the mono font where `mono`, and `detail` in grey below; where
    `image` is None an empty frame keeps its place. `alt` is the picture in words, and
    `heat` the `heat_data` of a map that the browser lays over it.
    """

    value: str
    image: Image.Image | None
    title: str
    mono: bool = False
    detail: str = ""
    alt: str = ""
    heat: dict[str, Any] | None = None


def gallery(
    tiles: Sequence[Tile],
    value: str | None,
    *,
    key: str,
    label: str,
    on_pick: Callable[[str], None],
    columns: int | None = None,
    strip: bool = False,
    palette: dict[str, Any] | None = None,
) -> None:
    """Show tiles as a group of radio buttons; picking one reruns the script, nothing else does.

    Parameters
    ----------
    tiles : sequence of Tile
        What is shown, in order. Pictures are cropped to squares, and whole in a strip.
    value : str or None
        The value of the tile that is chosen.
    key : str
        Names the gallery in the session.
    label : str
        What is chosen here, for screen readers.
    on_pick : callable
        Called with the value of the tile picked, before the script runs again.
    columns : int or None
        How many in a row; None for as many as there is room for.
    strip : bool
        One row that reads from left to right and scrolls where it must.
    palette : dict or None
        The `palette` that the maps of the tiles are drawn with.
    """
    data = {
        **(palette or {}),
        "key": key,
        "label": label,
        "value": value,
        "columns": columns,
        "strip": strip,
        "aspect": _aspect(tiles),
        "tiles": [_payload(tile) for tile in tiles],
        "answered": answered(key),
    }
    picked = answer(key, [tile.value for tile in tiles], on_pick)
    component("gallery", HEAT)(key=key, data=data, on_picked_change=picked)


def _payload(tile: Tile) -> dict[str, Any]:
    return {
        "value": tile.value,
        "title": tile.title,
        "mono": tile.mono,
        "detail": tile.detail,
        "alt": tile.alt,
        "heat": tile.heat,
        "url": None if tile.image is None else _thumbnail_url(tile.image),
    }


def _aspect(tiles: Sequence[Tile]) -> float | None:
    """Width by height of the frames of a strip: that of its first picture, within reason."""
    sizes = [tile.image.size for tile in tiles if tile.image is not None]
    if not sizes:
        return None
    width, height = sizes[0]
    return min(max(width / height, ASPECTS[0]), ASPECTS[1])


def _thumbnail_url(image: Image.Image) -> str:
    small = image.convert("RGB")
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    small.info.clear()  # Pillow would write the old colour profile to pixels we read as sRGB
    pixels = hashlib.sha256(small.tobytes()).hexdigest()
    return _data_url(pixels, small.size, small)


@st.cache_data(scope="session", max_entries=64, show_spinner=False)
def _data_url(pixels: str, size: tuple[int, int], _small: Image.Image) -> str:
    """A small picture as a data URL; `pixels` and `size` tell it from others."""
    encoded = io.BytesIO()
    _small.save(encoded, "JPEG", quality=JPEG_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(encoded.getvalue()).decode("ascii")
