"""Colour maps, and the one scale that brings raw values to colours.

Maps arrive raw; nothing but this module scales them for display.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import cmap
import numpy as np
from numpy.typing import ArrayLike, NDArray

from interp.errors import InterpError

DEFAULT_COLOURS = "plasma"
DEFAULT_DIVERGING = "blue-red"

COLOUR_MAPS: Mapping[str, str] = MappingProxyType(
    {
        "plasma": "Plasma",
        "turbo": "Turbo (jet-like)",
        "viridis": "Viridis",
        "inferno": "Inferno",
        "cividis": "Cividis",
        "grey": "Grey",
        "blue-red": "Blue–red (for signed maps)",
    }
)
_SOURCES = {
    "plasma": "bids:plasma",
    "turbo": "google:turbo",
    "viridis": "bids:viridis",
    "inferno": "bids:inferno",
    "cividis": "cividis:cividis",
    "grey": "matlab:gray",
    "blue-red": "colorcet:CET_D1A",
}

_FLAT = 1e-6  # relative spread below which a float32 map is constant but for rounding


@dataclass(frozen=True)
class Scale:
    """The range of raw values that a colour map spans."""

    low: float
    high: float
    signed: bool

    @property
    def empty(self) -> bool:
        """True where there is nothing to draw: no range of values."""
        return not self.high > self.low


def lookup(name: str) -> NDArray[np.uint8]:
    """The colours of a map.

    Parameters
    ----------
    name : a key of `COLOUR_MAPS`.

    Returns
    -------
    Read-only uint8 array (256, 3), from the lowest value to the highest.

    Raises
    ------
    InterpError : the name is unknown.
    """
    if name not in _SOURCES:
        raise InterpError(f"unknown colour map {name!r}: choose one of {', '.join(COLOUR_MAPS)}")
    return _table(name)


@cache
def _table(name: str) -> NDArray[np.uint8]:
    rgba = np.asarray(cmap.Colormap(_SOURCES[name]).lut(256))
    table = np.rint(rgba[:, :3] * 255).astype(np.uint8)
    table.flags.writeable = False
    return table


def scale_for(*maps: ArrayLike, signed: bool) -> Scale:
    """One scale for the maps given, so that their colours can be compared.

    Parameters
    ----------
    maps : raw maps of any shape; NaN is ignored, a map with an infinite value is left out.
    signed : True scales symmetrically about zero, False from zero to the largest value.

    Returns
    -------
    Scale, `empty` where there is nothing to tell apart: every map is flat, has no value above
    zero (no value but zero for signed ones), is not finite, or has no element.
    """
    peak, varies = 0.0, False
    for one in maps:
        values = np.asarray(one)
        if not values.size:
            continue
        low, high = (float(f.reduce(values, axis=None)) for f in (np.fmin, np.fmax))
        if not (math.isfinite(low) and math.isfinite(high)):
            continue
        peak = max(peak, high, -low if signed else 0.0)
        varies = varies or high - low > _FLAT * max(abs(low), abs(high))
    if not varies or peak <= 0.0:
        return Scale(0.0, 0.0, signed)
    return Scale(-peak if signed else 0.0, peak, signed)


def normalise(heat: ArrayLike, scale: Scale) -> NDArray[np.float32]:
    """Bring raw values to 0..1.

    Returns
    -------
    float32 of `heat`'s shape in 0..1. Values outside the scale are clipped (for a positive scale
    that is the ReLU); for a signed scale 0.5 is zero. NaN stays NaN. With an empty scale every
    value is the one that stands for zero.
    """
    values = np.asarray(heat, dtype=np.float64)
    if scale.empty:
        return np.where(np.isnan(values), np.nan, 0.5 if scale.signed else 0.0).astype(np.float32)
    return np.clip((values - scale.low) / (scale.high - scale.low), 0.0, 1.0).astype(np.float32)


def colour_index(value: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The row of `lookup` for values of `normalise`: floor(255 v + 0.5); NaN takes row 0."""
    return np.floor(np.nan_to_num(value) * 255 + 0.5).astype(np.uint8)


def magnitude(value: NDArray[np.floating], scale: Scale) -> NDArray[np.floating]:
    """What a threshold is compared with: `normalise`'s value, or its distance from zero, 0..1."""
    return np.abs(2.0 * value - 1.0) if scale.signed else value


def default_colours(scale: Scale) -> str:
    """The name of the colour map that a scale is drawn with where none is chosen."""
    return DEFAULT_DIVERGING if scale.signed else DEFAULT_COLOURS


def colours_for(scale: Scale, name: str | None) -> NDArray[np.uint8]:
    """`lookup` of a name; None takes the default for the scale's kind."""
    return lookup(name or default_colours(scale))
