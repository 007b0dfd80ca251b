"""Where each head of a vision transformer looks: a grid of all, one of them on the picture."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from interp import render
from interp.errors import LayerError
from interp.inspection.attention import Attention, has_attention
from interp.ui import layers_results, state
from interp.ui.channel_grid import quantised
from interp.ui.components import component
from interp.ui.heatmap_view import describe, heatmap_view
from interp.ui.picks import answer, answered
from interp.ui.state import View
from interp.ui.waiting import working

if TYPE_CHECKING:
    from interp.hooks.ledger import HookLedger
    from interp.models.loading import LoadedModel
    from interp.picture import Picture

ROLLOUT = "rollout"
MEAN = "mean"


def show_attention(view: View, model: LoadedModel, picture: Picture) -> HookLedger | None:
    """The section «Attention»; it says so where the model has none.

    Raises
    ------
    InterpError
        If the weights cannot be had, or the head of the address does not exist.
    """
    if not has_attention(model):
        st.markdown(f"**{model.spec.title} has no attention that can be shown.**")
        st.caption(
            "Attention maps are for the ViT family, whose blocks let every patch look at every "
            "other one (`nn.MultiheadAttention`): choose ViT-B/16 in the sidebar, for example. "
            "Swin and MaxViT look within windows; their tokens stand under «Channels»."
        )
        return None
    with working(f"Reading the attention of {model.spec.title}"):
        key = layers_results.of_picture(view)
        found = layers_results.attention_maps(key, model, picture)
    look = state.choice("head") or head_text(len(found.paths) - 1, None)
    block, head = parse_head(look, found)
    rolled = look == ROLLOUT
    attribution = found.rollout_attribution() if rolled else found.attribution(block, head)
    _sentence(found, block, head, rolled)
    what = describe(attribution).partition(", for ")[0]
    name = "Attention rollout" if rolled else f"Attention of {found.paths[block]}, {_named(head)}"
    heatmap_view(attribution, key="heatmap", title=name, alt=f"{name}. {what}")
    _grid(found, look, repr(key))
    return found.ledger


def head_text(block: int, head: int | None) -> str:
    """How a head is written in the address: «11-3», «11-mean»."""
    return f"{block}-{MEAN if head is None else head}"


def parse_head(text: str, found: Attention) -> tuple[int, int | None]:
    """The block and head of the address; the head is None for the mean.

    Raises
    ------
    LayerError
        If there is no such block or head.
    """
    if text == ROLLOUT:
        return len(found.paths) - 1, None
    block, _, head = text.partition("-")
    fits = block.isdecimal() and int(block) < len(found.paths)
    if not fits or not (head == MEAN or (head.isdecimal() and int(head) < found.heads)):
        raise LayerError(
            f"there is no attention head «{text}»: write BLOCK-HEAD, such as "
            f"{len(found.paths) - 1}-0, with blocks 0 to {len(found.paths) - 1} and heads 0 to "
            f"{found.heads - 1}, or «{ROLLOUT}»"
        )
    return int(block), None if head == MEAN else int(head)


def _named(head: int | None) -> str:
    return "mean of the heads" if head is None else f"head {head}"


def _sentence(found: Attention, block: int, head: int | None, rolled: bool) -> None:
    who = "the class token" if found.extra_tokens else "the first patch"
    if rolled:
        st.markdown(
            f"**Attention rollout**: how much of each patch reaches {who} through all "
            f"{len(found.paths)} blocks.",
            help=(
                "Each block passes on half of what a token was and half of what it attends to, and "
                "the blocks are multiplied. Abnar and Zuidema, Quantifying Attention Flow in "
                "Transformers, ACL 2020."
            ),
        )
        return
    heads = "on average over its heads" if head is None else f"in head {head}"
    st.markdown(
        f"**Attention** of `{found.paths[block]}`: how strongly {who} looks at each patch, "
        f"{heads}.",
        help=(
            "The softmax of query × key over all tokens, from the layer's own projections; a row "
            "sums to 1. It tells where information is taken from, not for which class."
        ),
    )


def _grid(found: Attention, look: str, identity: str) -> None:
    key = "heads"
    offered = [ROLLOUT] + [
        head_text(block, head)
        for block in range(len(found.paths))
        for head in (*range(found.heads), None)
    ]

    def picked(text: str) -> None:
        state.change(head=text)

    data = {
        **_content(identity, found),
        "key": key,
        "identity": identity,
        "value": look,
        "answered": answered(key),
    }
    component("layers_heads")(key=key, data=data, on_picked_change=answer(key, offered, picked))


@st.cache_data(scope="session", max_entries=2, show_spinner=False)
def _content(identity: str, _found: Attention) -> dict[str, Any]:
    """Every head's map as bytes, block by block, the mean of a block last; rollout at the end."""
    blocks = range(len(_found.paths))
    maps = [_found.map(block, head) for block in blocks for head in (*range(_found.heads), None)]
    maps.append(_found.rollout())
    *_, cells = quantised(np.stack(maps))
    return {
        "paths": list(_found.paths),
        "heads": _found.heads,
        "height": _found.grid[0],
        "width": _found.grid[1],
        "cells": base64.b64encode(cells.tobytes()).decode("ascii"),
        "colours": base64.b64encode(render.lookup(render.DEFAULT_COLOURS).tobytes()).decode(
            "ascii"
        ),
    }
