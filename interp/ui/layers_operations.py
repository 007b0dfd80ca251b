"""The autograd operations inside a module, drawn as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from interp.ui import layers_results
from interp.ui.state import View
from interp.ui.waiting import plain, working

if TYPE_CHECKING:
    from interp.attribution.base import LayerCall
    from interp.hooks.ledger import HookLedger
    from interp.inspection.operations import Operation, Operations
    from interp.models.loading import LoadedModel
    from interp.picture import Picture

MOST_DRAWN = 80
LEAVES = ("Input", "AccumulateGrad")
INK = {"light": ("#17222c", "#66707a", "#0b6e6a"), "dark": ("#e4e8eb", "#98a2aa", "#5fc9bf")}


def show_operations(
    view: View, model: LoadedModel, picture: Picture, layer: LayerCall
) -> HookLedger:
    """The section «Operations» for the chosen layer.

    Raises
    ------
    InterpError
        If the layer cannot be run again by itself.
    """
    key = layers_results.of_picture(view)
    with working(f"Reading the operations of {layer}"):
        found = layers_results.layer_operations(key, str(layer), layer, model, picture)
    count = sum(node.name not in LEAVES for node in found.nodes)
    operations = f"{count} autograd operation{'s'[: count != 1]}"
    st.markdown(
        f"**{plain(found.kind)}** is one module and **{operations}**. "
        f"A hook on `{layer}` sees what goes in and what comes out, once a call; autograd records "
        "each operation between. A gradient inside is out of reach of a module hook: it takes a "
        "tensor hook (`tensor.register_hook`) on what stands between two operations."
    )
    if found.note:
        st.caption(found.note)
    if not found.nodes:
        return found.ledger
    if len(found.nodes) > MOST_DRAWN:
        st.caption(
            f"The first {MOST_DRAWN} of {len(found.nodes)} nodes are drawn, in forward order. "
            "Choose a module inside this one for a graph that can be read at a glance."
        )
    with st.container(key="operations"):
        st.graphviz_chart(dot(found, st.context.theme.type or "light"), width="content")
    with st.expander("The same as a list"):
        st.markdown("\n".join(f"{node.id + 1}. {line(node)}" for node in found.nodes[:MOST_DRAWN]))
    return found.ledger


def line(node: Operation) -> str:
    """«addmm `AddmmBackward0` → 1 × 1000, from 1, 2 and 4»."""
    shape = ", ".join(shape_text(shape) for shape in node.shapes)
    end = f" → {shape}" if shape else ""
    if node.inputs:
        end += f", from {', '.join(str(number + 1) for number in node.inputs)}"
    return f"{plain(node.title)} `{node.name}`{end}"


def dot(found: Operations, theme: str) -> str:
    """The graph in the DOT language, from what goes in at the top to what comes out."""
    ink, quiet, accent = INK.get(theme, INK["light"])
    nodes = found.nodes[:MOST_DRAWN]
    known = {node.id for node in nodes}
    lines = [
        "digraph {",
        'graph [bgcolor="transparent" rankdir="TB" nodesep="0.3" ranksep="0.28"]',
        f'node [shape="box" style="rounded" color="{accent}" fontcolor="{ink}" '
        'fontname="Helvetica,sans-serif" fontsize="12" margin="0.14,0.06" height="0.3"]',
        f'edge [color="{quiet}" arrowsize="0.6" fontcolor="{quiet}" '
        'fontname="Helvetica,sans-serif" fontsize="10"]',
    ]
    shapes = {node.id: node.shapes for node in nodes}
    leaves = {node.id for node in nodes if node.name in LEAVES}
    for node in nodes:
        lines.append(f"n{node.id} [{_look(node, quiet)}]")
        for number in node.inputs:
            if number in leaves:
                lines.append(f"n{number} -> n{node.id} [weight=1]")
            elif number in known:
                lines.append(
                    f'n{number} -> n{node.id} [label=" {_first(shapes[number])}" weight=9]'
                )
    taken = {number for node in found.nodes for number in node.inputs}
    for node in nodes:
        if node.id not in taken and len(found.nodes) <= MOST_DRAWN:
            lines.append(f'out{node.id} [label="output" shape="plaintext" fontcolor="{quiet}"]')
            lines.append(f'n{node.id} -> out{node.id} [label=" {_first(node.shapes)}" weight=9]')
    return "\n".join([*lines, "}"])


def _look(node: Operation, quiet: str) -> str:
    if node.name in LEAVES:
        text = f"{_escaped(node.title)}\\n{_first(node.shapes)}"
        return f'label="{text}" shape="plaintext" fontcolor="{quiet}" fontsize="11"'
    return f'label="{_escaped(node.title)}\\n{_escaped(node.name)}"'


def _first(shapes: tuple[tuple[int, ...], ...]) -> str:
    return shape_text(shapes[0]) if shapes else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def shape_text(shape: tuple[int, ...]) -> str:
    """«1 × 1280 × 7 × 7», «scalar»."""
    return " × ".join(map(str, shape)) or "scalar"
