"""Every output of every layer, shown as it passes, with the axis of its channels."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger
from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.values import numbers
from interp.models.copies import frozen_copy
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.models.routes import Shape, same_way, table_for
from interp.targets import find_logits

Look = TypeVar("Look", bound=Callable[[str, int, Tensor], None])


def watch_all(
    model: LoadedModel,
    tensors: Sequence[Tensor],
    make: Callable[[Iterable[LayerInfo]], Look],
    ledger: HookLedger,
    purpose: str,
) -> tuple[list[Look], npt.NDArray[np.float32]]:
    """Show every output of every layer to what `make` makes of the layer table, for each tensor.

    In one pass a tensor; in another one where it turns out to go a way of its own, as the axes
    are then known from a table of its own alone.

    Returns
    -------
    looks : list
        What `make` made, for each tensor.
    logits : float32 (K,)
        Of the last one.
    """
    looks, table = [], model.layers
    with (
        undisturbed(tensors[0].device, gradients=False, seed=model.seed),
        HookSession(model.module, ledger, copy=frozen_copy(model.module)) as session,
    ):
        shown = _Shown()
        for info in table:
            session.forward(
                info.path, shown.hook(info.path), keeps="nothing", purpose=purpose, origin="engine"
            )
        for tensor in tensors:
            logits = shown.run(session, tensor, look := make(table))
            if not same_way(table, shown.seen):
                own = table_for(model.module, table, tensor)
                logits = shown.run(session, tensor, look := make(own))
            looks.append(look)
        return looks, logits[0].float().cpu().numpy().copy()


class _Shown:
    """What the hooks show outputs to, and the shape of each that they have seen in this pass."""

    def __init__(self) -> None:
        self.look: Callable[[str, int, Tensor], None] | None = None
        self.seen: dict[str, list[Shape]] = {}

    def run(self, session: HookSession, tensor: Tensor, look: Any) -> Tensor:
        """One pass, which shows its outputs to `look`; its logits (1, K)."""
        self.look = look
        self.seen.clear()
        return find_logits(session.module(tensor))[0]

    def hook(self, path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            tensor = first_tensor(output)
            shapes = self.seen.setdefault(path, [])
            shapes.append(None if tensor is None else tuple(tensor.shape))
            if tensor is not None and tensor.numel() and not tensor.is_meta and self.look:
                # What the hook itself computes needs no watching for writes in place.
                with torch._C.DisableTorchFunction():
                    self.look(path, len(shapes) - 1, tensor)

        return hook


class ChannelAxis:
    """Which axis of an output runs over channels, by the layer table."""

    def __init__(self, table: Iterable[LayerInfo]) -> None:
        self._rows = {info.path: (info, *info.later_calls) for info in table}

    def __call__(self, path: str, call: int, tensor: Tensor) -> int | None:
        rows = self._rows[path]
        info = rows[min(call, len(rows) - 1)]
        # A network that draws random numbers may do otherwise each time.
        if info.channels is None or info.shape is None or len(info.shape) != tensor.dim():
            return None
        return 1 if info.layout == "nchw" else tensor.dim() - 1


def sizes(tensor: Tensor) -> Tensor:
    """The values of a tensor that has some; of complex ones their sizes."""
    values = numbers(tensor)
    assert values is not None  # `_hook` leaves out what has none
    return values.abs() if values.is_complex() else values
