"""Which layers the Gradients page draws: blocks, the layers inside them, or every module."""

from collections.abc import Sequence
from typing import Literal

from interp.inspection.travel import LayerGradient

Detail = Literal["", "layers", "all"]

DETAILS: dict[Detail, str] = {"": "Blocks", "layers": "Layers", "all": "All modules"}
MOST_BLOCKS = 30


def rows_of(rows: Sequence[LayerGradient], detail: Detail) -> list[LayerGradient]:
    """The rows to draw, in the order in which they ran.

    «Layers» are the modules with no other inside. «Blocks» cut the network at the deepest level
    that gives no more than `MOST_BLOCKS`: every layer is then in one of them, and in no other.
    """
    if detail == "all":
        return list(rows)
    holders = {".".join(names[:i]) for names in _names(rows) for i in range(1, len(names))}
    leaves = [row for row in rows if row.path not in holders]
    if detail == "layers":
        return leaves
    cut = leaves
    for depth in range(max((len(names) for names in _names(rows)), default=0), 0, -1):
        cut = [
            row
            for row in rows
            if (length := row.path.count(".") + 1) == depth
            or (length < depth and row.path not in holders)
        ]
        if len(cut) <= MOST_BLOCKS:
            break
    return cut


def _names(rows: Sequence[LayerGradient]) -> list[list[str]]:
    return [row.path.split(".") for row in rows]
