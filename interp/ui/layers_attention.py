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
from interp.ui.layers_files import attention_download
from interp.ui.picks import answer, answered
from interp.ui.state import View
from interp.ui.waiting import working

if TYPE_CHECKING:
    from interp.hooks.ledger import HookLedger
    from interp.models.loading import LoadedModel
    from interp.picture import Picture

ROLLOUT = "rollout"
MEAN = "mean"
CLASS_TOKEN, PATCH = "Class token", "A patch"


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
    token = parse_token(state.choice("patch"), found)
    rolled = look == ROLLOUT
    attribution = found.rollout_attribution() if rolled else found.attribution(block, head, token)
    _sentence(found, block, head, token, rolled)
    if not rolled:
        _choose_token(found, token)
    what = describe(attribution).partition(", for ")[0]
    name = "Attention rollout" if rolled else f"block {block}, {_named(head)}"
    of = name if rolled else f"Attention of {found.paths[block]}, {_named(head)}"
    heatmap_view(attribution, key="heatmap", title=name, alt=f"{of}. {what}")
    _grid(found, look, token, f"{key!r} {token}")
    attention_download(found)
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
    if not _below(block, len(found.paths)) or not (head == MEAN or _below(head, found.heads)):
        raise LayerError(
            f"there is no attention head «{text}»: write BLOCK-HEAD, such as "
            f"{len(found.paths) - 1}-0, with blocks 0 to {len(found.paths) - 1} and heads 0 to "
            f"{found.heads - 1}, or «{ROLLOUT}»"
        )
    return int(block), None if head == MEAN else int(head)


def parse_token(text: str, found: Attention) -> int:
    """The token of the address: «3-7» is a patch by row and column; by default the first token.

    Raises
    ------
    LayerError
        If there is no such patch.
    """
    if not text:
        return 0
    rows, columns = found.grid
    row, _, column = text.partition("-")
    inside = _below(row, rows) and _below(column, columns)
    if not inside:
        raise LayerError(
            f"there is no patch «{text}»: write ROW-COLUMN, such as 0-0, with rows 0 to {rows - 1} "
            f"and columns 0 to {columns - 1}"
        )
    return found.extra_tokens + int(row) * columns + int(column)


def _below(text: str, count: int) -> bool:
    return text.isdecimal() and int(text) < count


def _place(found: Attention, token: int) -> tuple[int, int] | None:
    """Row and column of a token; None for one that is no patch."""
    if token < found.extra_tokens:
        return None
    row, column = divmod(token - found.extra_tokens, found.grid[1])
    return row, column


def _choose_token(found: Attention, token: int) -> None:
    """From where the heads look: the class token, or a patch by its row and column."""
    place = _place(found, token)
    rows, columns = found.grid
    middle = f"{rows // 2}-{columns // 2}"
    st.session_state["token"] = CLASS_TOKEN if place is None else PATCH

    def turned() -> None:
        state.change(patch="" if st.session_state["token"] == CLASS_TOKEN else middle)

    def moved() -> None:
        state.change(patch=f"{st.session_state['token row']}-{st.session_state['token column']}")

    with st.container(horizontal=True, vertical_alignment="bottom"):
        if found.extra_tokens:
            st.segmented_control(
                "Looking from",
                (CLASS_TOKEN, PATCH),
                required=True,
                key="token",
                help="The class token gathers the answer. A patch shows what belongs together.",
                on_change=turned,
            )
        for name, at, count in zip(("row", "column"), place or (), (rows, columns), strict=False):
            st.session_state[f"token {name}"] = at
            st.number_input(
                f"{name.capitalize()}, 0 to {count - 1}",
                0,
                count - 1,
                key=f"token {name}",
                on_change=moved,
                width=150,
                help="Counted from the top." if name == "row" else "Counted from the left.",
            )


def _named(head: int | None) -> str:
    return "mean of the heads" if head is None else f"head {head}"


def _sentence(found: Attention, block: int, head: int | None, token: int, rolled: bool) -> None:
    place = _place(found, token)
    if rolled:
        who = "the class token" if found.extra_tokens else "a patch on average"
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
    who = "the class token" if place is None else f"the patch in row {place[0]}, column {place[1]}"
    heads = "on average over its heads" if head is None else f"in head {head}"
    st.markdown(
        f"**Attention** of `{found.paths[block]}`: how strongly {who} looks at each patch, "
        f"{heads}.",
        help=(
            "The softmax of query × key over all tokens, from the layer's own projections; a row "
            "sums to 1. It tells where information is taken from, not for which class."
        ),
    )


def _grid(found: Attention, look: str, token: int, identity: str) -> None:
    key = "heads"
    offered = [ROLLOUT] + [
        head_text(block, head)
        for block in range(len(found.paths))
        for head in (*range(found.heads), None)
    ]

    def picked(text: str) -> None:
        state.change(head=text)

    data = {
        **_content(identity, token, found),
        "key": key,
        "identity": identity,
        "value": look,
        "answered": answered(key),
    }
    component("layers_heads")(key=key, data=data, on_picked_change=answer(key, offered, picked))


@st.cache_data(scope="session", max_entries=2, show_spinner=False)
def _content(identity: str, token: int, _found: Attention) -> dict[str, Any]:
    """Every head's map as bytes, block by block, the mean of a block last; rollout at the end."""
    maps = [
        _found.map(block, head, token)
        for block in range(len(_found.paths))
        for head in (*range(_found.heads), None)
    ]
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
