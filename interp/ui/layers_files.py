"""The files of the Layers page: maps, feature vector, montage and statistics."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from interp import export, render
from interp.manifest import manifest_array, png_with
from interp.ui.channel_grid import PAGE

if TYPE_CHECKING:
    from interp.inspection.attention import Attention
    from interp.inspection.channels import ChannelMaps, Order
    from interp.inspection.statistics import Statistics

_VECTOR = "One number a channel: its mean over all places, and its contribution."
_CSV = "The numbers of every layer and call, as the tree has them."


def downloads(maps: ChannelMaps, measured: Statistics, order: Order, shared: bool) -> None:
    """The files; each is made when it is asked for, and none reruns the page."""
    stem = export.stem_of(maps.frame, maps.layer)
    shown = min(maps.count, PAGE)
    montage = partial(montage_png, maps, order, shown, shared)
    files: list[tuple[str, str, str, Callable[[], bytes], str]] = [
        ("All maps", ".npz", "application/zip", maps.npz_bytes, "Every number of this layer."),
        ("Features", ".features.npz", "application/zip", partial(vector_npz, maps), _VECTOR),
        ("Statistics", ".statistics.csv", "text/csv", partial(statistics_csv, measured), _CSV),
    ]
    if maps.maps[0].size > 1:
        what = f"The first {shown} channels by {order}, as drawn above."
        files.insert(0, ("Montage", ".montage.png", "image/png", montage, what))
    st.markdown("**Take it away**")
    for place, (label, suffix, mime, make, what) in zip(st.columns(4), files, strict=False):
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


def attention_download(found: Attention) -> None:
    """The weights of all blocks and heads as a file, made when it is asked for."""
    count, heads, tokens, _ = found.weights.shape
    st.markdown("**Take it away**")
    st.download_button(
        "Attention weights",
        partial(attention_npz, found),
        file_name=f"{export.stem_of(found.frame, 'attention')}.npz",
        mime="application/zip",
        key="download attention",
        help=f"{count} blocks × {heads} heads × {tokens} × {tokens} tokens, and the rollout.",
        on_click="ignore",
    )


def attention_npz(found: Attention) -> bytes:
    """The attention of every block and head.

    Returns
    -------
    NPZ with `weights` (blocks, heads, T, T) and `rollout` (h, w), float32; `grid` (2,) and
    `extra_tokens`, int64; `paths` (blocks,), and the texts `model`, `weights_name`, `picture` and
    `manifest` (JSON).
    """
    encoded = io.BytesIO()
    # Not compressed: softmax weights hardly shrink, and the 22 MB of a ViT would take a second.
    np.savez(
        encoded,
        weights=found.weights,
        rollout=found.rollout(),
        grid=np.array(found.grid),
        extra_tokens=np.array(found.extra_tokens),
        paths=np.array(found.paths),
        model=np.array(found.frame.model_name),
        weights_name=np.array(found.frame.weights),
        picture=np.array(found.frame.picture.sha256),
        manifest=manifest_array(found.manifest()),
    )
    return encoded.getvalue()


def montage_png(maps: ChannelMaps, order: Order, count: int, shared: bool) -> bytes:
    """The first channels of an order as one PNG, drawn as the grid on the page draws them."""
    view = {
        "mode": "montage",
        "colours": render.DEFAULT_DIVERGING if maps.signed else render.DEFAULT_COLOURS,
        "signed": maps.signed,
        "order": order,
        "scale": "shared" if shared else "own",
        "channels": maps.order(order)[:count].tolist(),
    }
    return png_with(maps.montage(order, count, shared), {**maps.manifest(), "view": view})


def vector_npz(maps: ChannelMaps) -> bytes:
    """The feature vector of a layer.

    Returns
    -------
    NPZ with `features` (C,), the mean of each channel over its places, `contribution` (C,) and,
    where there are some, `tokens` (n, C), all float32; and `manifest`, a text in JSON.
    """
    arrays: dict[str, Any] = {"features": maps.mean, "contribution": maps.contribution}
    if maps.tokens is not None:
        arrays["tokens"] = maps.tokens
    encoded = io.BytesIO()
    np.savez_compressed(encoded, **arrays, manifest=manifest_array(maps.manifest()))
    return encoded.getvalue()


def statistics_csv(measured: Statistics) -> bytes:
    """A line for every call of every layer, in running order."""
    text = io.StringIO()
    names = ["path", "call", "shape", "mean", "std", "zeros", "largest", "norm"]
    names += ["channels", "dead"]
    writer = csv.writer(text)
    writer.writerow(names)
    for row in measured.rows:
        cells = {name: getattr(row, name) for name in names}
        cells["shape"] = "x".join(map(str, row.shape))
        writer.writerow(["" if cells[name] is None else cells[name] for name in names])
    return text.getvalue().encode("utf-8")
