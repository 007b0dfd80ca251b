"""Runs again only what follows a layer, with other values in its place."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from interp.errors import HookError
from interp.hooks.ledger import HookLedger, describe
from interp.hooks.session import HookSession
from interp.hooks.tape import GIVEN, RUN, Kept, Tape, bytes_of, with_first_tensor
from interp.hooks.undisturbed import SEED, undisturbed
from interp.hooks.writes import twin
from interp.models.copies import frozen_copy
from interp.targets import find_logits

TOLERANCE = 1e-4


class ReplayError(HookError):
    """What follows a layer of this network cannot be run on its own."""


class Replay:
    """What follows one call of a layer, ready to be run with other values in its place.

    One recording pass keeps what the modules returned that had ended when the call began, inside
    modules that were still running then. In a replay these return what they returned, for every
    row of the batch, and the layer returns the values it is given: whatever the architecture, only
    what follows is computed. Operations between modules, outside of any, are computed again.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode; it is not changed, and neither is anything else of the caller's.
    tensor : Tensor
        The input of the recording pass, shape (1, 3, h, w).
    path, call : str, int
        The layer, and which of its calls.
    ledger : HookLedger, optional
        For the hooks of the recording pass; they are gone when it ends.
    seed : int, optional
        As for `undisturbed`. A network that draws random numbers needs full passes: what is not run
        again draws none, and the rows of a batch draw each their own.

    Attributes
    ----------
    value : Tensor
        What the layer returned, detached, shape (1, …).
    logits : Tensor
        Of the recording pass, shape (1, K).
    binary : bool
        Whether the model has one logit (see `find_logits`).
    widest : int
        Bytes of the largest tensor seen in one row of a replay.

    Raises
    ------
    ReplayError
        If a replay of the unchanged value, two rows of it, does not give the logits of the pass.
    LayerError
        If the layer does not exist, did not run as often, or returns no row for each picture.
    """

    def __init__(
        self,
        module: nn.Module,
        tensor: Tensor,
        path: str,
        call: int = 0,
        ledger: HookLedger | None = None,
        seed: int | None = SEED,
    ) -> None:
        self._seed = seed
        self._copy = frozen_copy(module)
        shown = twin(tensor.detach())
        self._given: Tensor | None = None
        self._copies = False
        with (
            undisturbed(tensor.device, gradients=False, seed=seed),
            HookSession(module, ledger, copy=self._copy) as session,
        ):
            self.ledger = session.ledger
            tape = Tape(session, path, call)
            self.logits, self.binary = find_logits(self._copy(shown))
            self._input = Kept(twin(tensor.detach()), session.was_written(shown))
            self.value = tape.value()
            self._output, self._scripts = tape.output(), tape.scripts()
        self.widest = max(tape.widest, bytes_of(shown))
        self._next: dict[int, Iterator[Any]] = {}
        for part in self._copy.modules():
            if id(part) in self._scripts:
                vars(part)["forward"] = self._stand_in(part.forward, id(part))
        self._verify(path)

    def __call__(self, values: Tensor) -> Tensor:
        """The logits with these values in the layer's place.

        Parameters
        ----------
        values : Tensor
            Shape (B, …), each row as the layer's own value.

        Returns
        -------
        Tensor
            Shape (B, K), detached.

        Raises
        ------
        HookError
            If the rows are of another shape than the layer's own value.
        """
        if values.shape[1:] != self.value.shape[1:]:
            raise HookError(
                f"values of shape {tuple(values.shape)} cannot stand for an output of shape "
                f"{tuple(self.value.shape)}: give rows of the same shape"
            )
        self._given = values.detach()
        self._next = {key: iter(script) for key, script in self._scripts.items()}
        try:
            with undisturbed(values.device, gradients=False, seed=self._seed):
                return find_logits(self._copy(self._expanded(self._input)))[0]
        finally:
            self._given, self._next = None, {}

    def _stand_in(self, forward: Callable[..., Any], key: int) -> Callable[..., Any]:
        def replayed(*args: Any, **kwargs: Any) -> Any:
            step = next(self._next[key], RUN)
            if isinstance(step, Kept):
                return self._expanded(step)
            return self._replaced() if step is GIVEN else forward(*args, **kwargs)

        return replayed

    def _expanded(self, kept: Kept) -> Any:
        assert self._given is not None
        return _spread(kept.output, len(self._given), kept.written or self._copies)

    def _replaced(self) -> Any:
        """What the layer returned, for every row, with the values as its first tensor."""
        assert self._given is not None
        copies = self._output.written or self._copies
        values = self._given.clone() if copies else self._given
        return with_first_tensor(
            self._output.output, values, lambda other: _spread(other, len(values), copies)
        )

    def _verify(self, path: str) -> None:
        """Try it with rows that share memory, and where that does not do with rows of their own."""
        why = ""
        for self._copies in (False, True):
            try:
                found = self(self.value.expand(2, *self.value.shape[1:]).clone())
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # of whatever kind the network's own code raises
                why = describe(error)
                continue
            off = _distance(found, self.logits)
            if off <= max(TOLERANCE, 4 * torch.finfo(self.logits.dtype).eps):
                return
            why = f"its logits are off by {off:.1e} of the largest"
        raise ReplayError(
            f"what follows «{path}» cannot be run on its own ({why}): take full passes instead"
        )


def _spread(value: Any, rows: int, copies: bool) -> Any:
    """What a module returned for one picture, for as many rows; `copies` with memory of its own.

    A first dimension of another size than one holds parts of the picture, such as windows.
    """

    def spread(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not leaf.dim():
            return leaf
        if len(leaf) != 1:
            return leaf.repeat(rows, *[1] * (leaf.dim() - 1))
        wide = leaf if rows == 1 else leaf.expand(rows, *leaf.shape[1:])
        return wide.clone() if copies else wide

    return tree_map(spread, value)


def _distance(found: Tensor, wanted: Tensor) -> float:
    """Largest difference, as a share of the largest logit."""
    if found.shape[1:] != wanted.shape[1:] or len(found) != 2:
        return float("inf")
    size = wanted.abs().max().clamp(min=torch.finfo(wanted.dtype).tiny)
    off = float((found - wanted).abs().max() / size)
    return off if off == off else float("inf")
