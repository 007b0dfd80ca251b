"""What a lesson draws: the values travelling through its nodes, or bars to compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from interp.hooks.ledger import Kind


@dataclass(frozen=True)
class Node:
    """A stop on the way of the values.

    Parameters
    ----------
    name : as the code calls it.
    value : what stands there in the forward pass.
    gradient : what arrives there in the backward pass.
    kind : a tensor, a module that computes, an operation of autograd, or the loss.
    then : what is done on the way to the next node: «× 3».
    beside : whether it stands beside the next node, with which it is joined, and not before it.
    """

    name: str
    value: str = ""
    gradient: str = ""
    kind: Literal["tensor", "module", "operation", "loss"] = "tensor"
    then: str = ""
    beside: bool = False


@dataclass(frozen=True)
class Mark:
    """A hook in the drawing: at the node of index `at`, with what it does in a few words.

    Where it stands follows from its kind: a pre-hook before the module, a full backward hook where
    the gradient leaves it, a tensor hook at the tensor itself.
    """

    at: int
    kind: Kind
    text: str


@dataclass(frozen=True)
class Flow:
    """Nodes from left to right; `title` says in one sentence what the drawing shows."""

    title: str
    nodes: tuple[Node, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Bar:
    """One bar: its length, the number as it is written, and the kind that colours it."""

    name: str
    length: float
    text: str
    kind: Kind | None = None


@dataclass(frozen=True)
class Bars:
    """Bars on one scale that begins at 0; `title` names the quantity and its unit."""

    title: str
    bars: tuple[Bar, ...]


Drawing = Flow | Bars


def show(value: Tensor | float) -> str:
    """A few numbers as they are, «[6, 12]»; a larger tensor by its shape, «3 × 5»."""
    if isinstance(value, Tensor):
        if value.dim() == 0:
            return show(value.item())
        if value.dim() == 1 and len(value) <= 4:
            return f"[{', '.join(show(number) for number in value.tolist())}]"
        if value.numel() > 1 and bool((value == value.flatten()[0]).all()):
            return f"all {show(value.flatten()[0].item())}"
        return shape(value)
    return f"{value:.4g}"


def shape(value: Tensor | Sequence[int]) -> str:
    """«3 × 5»."""
    sizes = value.shape if isinstance(value, Tensor) else value
    return " × ".join(map(str, sizes))
