"""The channels of a layer as a grid of small maps, or as bars where each is a single number."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from interp import render
from interp.inspection.channels import ORDERS
from interp.ui.components import component
from interp.ui.picks import answer, answered

if TYPE_CHECKING:
    from interp.inspection.channels import ChannelMaps

PAGE = 48
LONGEST_SIDE = 112  # of a small map, in cells
MOST_CELLS = 2**21  # a byte each is sent to the browser
ORDER_TITLES = {
    "contribution": "Contribution",
    "mean": "Mean activation",
    "maximum": "Largest activation",
    "variance": "Variance",
    "index": "Index",
}
SINGLE_TITLES = {"contribution": "Contribution", "mean": "Value", "index": "Index"}


def channel_grid(
    maps: ChannelMaps,
    chosen: int,
    *,
    key: str,
    identity: str,
    order: str,
    shared: bool,
    names: Sequence[str] = (),
    on_pick: Callable[[str], None],
    on_view: Callable[[str, bool], None],
) -> None:
    """Show the channels of a layer, 48 a page.

    The browser gets all of them once: turning a page, another order or scale are drawn there at
    once. A pick reruns the script, and so do order and scale, so that the address knows them.

    Parameters
    ----------
    maps : the channels.
    chosen : the one that is shown large.
    key : names the grid in the session.
    identity : of the maps: what has the same one is drawn already.
    order : one of `ORDERS`.
    shared : one scale for all channels, or each its own.
    names : what each channel stands for, where they are the classes.
    on_pick : called with the index of the channel picked, as a text.
    on_view : called with order and scale.
    """
    data = {
        **_content(identity, maps),
        "key": key,
        "identity": identity,
        "value": chosen,
        "order": order,
        "shared": shared,
        "names": list(names),
        "page": PAGE,
        "titles": titles_for(maps),
        "target": maps.target.label,
        "answered": answered(key),
    }
    picked = answer(key, [str(channel) for channel in range(maps.count)], on_pick)

    def viewed() -> None:
        wanted, _, scale = str(st.session_state[key]["view"]).partition(" ")
        if wanted in ORDERS:
            on_view(wanted, scale == "shared")

    component("channel_grid")(key=key, data=data, on_picked_change=picked, on_view_change=viewed)


def titles_for(maps: ChannelMaps) -> dict[str, str]:
    """The orders that say something different of these channels, and what they are called."""
    return SINGLE_TITLES if maps.maps[0].size == 1 else ORDER_TITLES


@st.cache_data(scope="session", max_entries=4, show_spinner=False)
def _content(identity: str, _maps: ChannelMaps) -> dict[str, Any]:
    """The maps as bytes with the range of each, and the channels in every order."""
    small = shrunk(_maps.maps)
    low, high, cells = quantised(small)
    return {
        "count": _maps.count,
        "height": small.shape[1],
        "width": small.shape[2],
        "grid": list(_maps.maps.shape[1:]),
        "cells": _base64(cells),
        "low": _base64(low),
        "high": _base64(high),
        "values": {name: _base64(getattr(_maps, name)) for name in ORDERS if name != "index"},
        "orders": {name: _base64(_maps.order(name).astype("<u4")) for name in ORDERS},
        "signed": _maps.signed,
        "colours": {
            "positive": _base64(render.lookup(render.DEFAULT_COLOURS)),
            "signed": _base64(render.lookup(render.DEFAULT_DIVERGING)),
        },
    }


def shrunk(maps: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Maps (C, h, w) by whole factors, the mean of each block, until they are few enough cells."""
    factor = 1
    count, height, width = maps.shape
    while (
        max(height, width) > factor * LONGEST_SIDE
        or count * height * width > MOST_CELLS * factor**2
    ):
        factor += 1
    if factor == 1:
        return maps
    rows, columns = height // factor, width // factor
    blocks = maps[:, : rows * factor, : columns * factor]
    return blocks.reshape(count, rows, factor, columns, factor).mean((2, 4), dtype=np.float32)


def quantised(
    maps: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Lowest and highest finite value (C,) of each map, and its cells in 255 steps between them."""
    values = np.nan_to_num(maps.reshape(len(maps), -1), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = values.min(1), values.max(1)
    span = np.where(high > low, high - low, 1)[:, None]
    cells = np.floor(255 * (values - low[:, None]) / span + 0.5).astype(np.uint8)
    return low, high, cells


def _base64(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
