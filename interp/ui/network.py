"""A small drawing of the network: its blocks along depth, and where hooks sit on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interp.ui.components import component
from interp.ui.kinds import KIND_TITLES

if TYPE_CHECKING:
    from interp.hooks.ledger import Kind
    from interp.models.layers import LayerInfo

MOST_SHARE = 0.6  # a part that holds more of the network than this is drawn as its own parts
FEW_PARTS = 3
LEAF_WIDTH = 0.6
LOW, FLAT = 0.3, 0.24


@dataclass(frozen=True)
class Mark:
    """A hook in the drawing: `label` is a sentence about it, shown at the mark and read aloud."""

    path: str
    kind: Kind
    label: str


@dataclass(frozen=True)
class Block:
    """One block of the drawing.

    `width` is relative to the others; `height` in (0, 1] follows the grid of places, so that the
    drawing narrows where the network does.
    """

    path: str
    kind: str
    width: float
    height: float


@dataclass(frozen=True)
class Stage:
    """Blocks that belong together, in running order."""

    path: str
    blocks: tuple[Block, ...]


def network(
    table: Sequence[LayerInfo], marks: Sequence[Mark], *, key: str, lit: str | None = None
) -> None:
    """Draw the network from input to output, with a coloured mark for each hook.

    Hooks of the forward pass stand above the blocks and those of the backward pass below, at the
    edge where each of them acts. Hooks of one kind in one block share a mark.

    Parameters
    ----------
    table : sequence of LayerInfo
        The layer table of the whole network.
    marks : sequence of Mark
        A path that is not in the table is left out of the drawing.
    key : str
        Names the drawing in the session and, as `network-KEY`, in the page.
    lit : str or None
        Path of a module that is highlighted.
    """
    stages = outline(table)
    blocks = [block.path for stage in stages for block in stage.blocks]
    data = {
        "key": key,
        "alt": describe(stages, marks, lit),
        "stages": [
            {"path": stage.path, "blocks": [vars(block) for block in stage.blocks]}
            for stage in stages
        ],
        "marks": _placed(blocks, marks),
        "lit": None if lit is None else {"path": lit, "blocks": _span(blocks, lit)},
    }
    component("network")(key=key, data=data)


def outline(table: Sequence[LayerInfo]) -> tuple[Stage, ...]:
    """The stages of a network and the blocks in each, from its layer table.

    Returns
    -------
    tuple of Stage
        In running order; modules that never run, and hold none that does, are left out.
    """
    tree = _Tree(table)
    parts = tree.children("")
    while sum(1 for part in parts if tree.children(part)) <= FEW_PARTS:
        big = next((part for part in parts if tree.is_most(part)), None)
        if big is None:
            break
        place = parts.index(big)
        parts[place : place + 1] = tree.children(big)
    return tuple(Stage(part, tuple(map(tree.block, tree.blocks(part)))) for part in parts)


def describe(stages: Sequence[Stage], marks: Sequence[Mark], lit: str | None) -> str:
    """The drawing in words."""
    blocks = [block.path for stage in stages for block in stage.blocks]
    drawn = [mark for mark in marks if _span(blocks, mark.path)]
    said = f"The network from input to output: {len(stages)} stages, {len(blocks)} blocks. "
    said += "; ".join(mark.label.rstrip(".") for mark in drawn) + "." if drawn else "No hook on it."
    return said + (f" Highlighted: {lit or 'the whole network'}." if lit is not None else "")


class _Tree:
    """The modules of a layer table that run, or hold one that does, by their parent."""

    def __init__(self, table: Sequence[LayerInfo]) -> None:
        self.rows = {info.path: info for info in table}
        self._order: dict[str, int] = {}
        for info in table:
            if info.calls and not info.same_as:
                self._note(info.path, info.order)
        self._children: dict[str, list[str]] = {}
        for path in sorted(self._order, key=self._order.__getitem__):
            if path:
                self._children.setdefault(path.rpartition(".")[0], []).append(path)

    def _note(self, path: str, order: int) -> None:
        self._order.setdefault(path, order)
        while path:
            path = path.rpartition(".")[0]
            if path not in self.rows or not self.rows[path].calls:
                self._order[path] = min(order, self._order.get(path, order))

    def children(self, path: str) -> list[str]:
        return list(self._children.get(path, ()))

    def leaves(self, path: str) -> int:
        below = self.children(path)
        return sum(map(self.leaves, below)) if below else 1

    def is_most(self, path: str) -> bool:
        return bool(self.children(path)) and self.leaves(path) > MOST_SHARE * self.leaves("")

    def blocks(self, stage: str) -> list[str]:
        """What a stage is drawn as: its children, from below a chain of only ones."""
        below = self.children(stage)
        while len(below) == 1 and self.children(below[0]):
            below = self.children(below[0])
        return below or [stage]

    def block(self, path: str) -> Block:
        kind = self.rows[path].kind if path in self.rows else ""
        return Block(path, kind, 1.0 if self.children(path) else LEAF_WIDTH, self._height(path))

    def _height(self, path: str) -> float:
        grids = [max(info.grid) for info in self.rows.values() if info.grid is not None]
        info = self.rows.get(path)
        while info is not None and info.grid is None and self.children(info.path):
            info = self.rows.get(self.children(info.path)[-1])
        if info is None or info.grid is None or max(info.grid) < 2 or max(grids) < 2:
            return FLAT
        return LOW + (1 - LOW) * math.log(max(info.grid)) / math.log(max(grids))


def _span(blocks: Sequence[str], path: str) -> list[int]:
    """The block that a module lies in, or those that lie in it."""
    inside = [i for i, block in enumerate(blocks) if not path or f"{block}.".startswith(f"{path}.")]
    return inside or [i for i, block in enumerate(blocks) if path.startswith(f"{block}.")][:1]


def _placed(blocks: Sequence[str], marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Marks by block and kind, each with the labels of its hooks."""
    places: dict[tuple[int, Kind], list[str]] = {}
    for mark in marks:
        if span := _span(blocks, mark.path):
            at_start = mark.kind in ("forward_pre", "full_backward")
            places.setdefault((span[0] if at_start else span[-1], mark.kind), []).append(mark.label)
    return [
        {"block": block, "kind": kind, "title": KIND_TITLES[kind], "labels": labels}
        for (block, kind), labels in places.items()
    ]
