"""Other values in the place of a layer, by a full pass for each: where nothing can be replayed."""

from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger
from interp.hooks.session import HookSession
from interp.hooks.tape import with_first_tensor
from interp.hooks.undisturbed import SEED, undisturbed
from interp.models.copies import frozen_copy
from interp.targets import find_logits


class FullPasses:
    """A full pass for each row of values, in which a forward hook puts it in the layer's place.

    Called with values (B, …) as `Replay` is, with the same answer: logits (B, K). The hook is on
    only while it is called.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode; it is not changed.
    tensor : Tensor
        The input of every pass, shape (1, 3, h, w).
    path, call : str, int
        The layer, and which of its calls.
    ledger : HookLedger
        For the hooks.
    seed : int, optional
        As for `undisturbed`: every pass draws the same random numbers.
    """

    def __init__(
        self,
        module: nn.Module,
        tensor: Tensor,
        path: str,
        call: int,
        ledger: HookLedger,
        seed: int | None = SEED,
    ) -> None:
        self._copy = frozen_copy(module)
        self._tensor, self._ledger, self._place = tensor, ledger, (path, call)
        self._seed = seed

    def __call__(self, values: Tensor) -> Tensor:
        with HookSession(self._copy, self._ledger, copy=self._copy) as session:
            put = _Put(self._place[1])
            session.forward(
                self._place[0], put, purpose="puts the silenced value there", origin="engine"
            )
            return torch.cat([self._logits(put, values[i : i + 1]) for i in range(len(values))])

    def _logits(self, put: "_Put", value: Tensor) -> Tensor:
        put.value, put.calls = value, 0
        with undisturbed(value.device, gradients=False, seed=self._seed):
            return find_logits(self._copy(self._tensor.clone()))[0]


class _Put:
    """A forward hook that replaces what one call of a module returns."""

    def __init__(self, call: int) -> None:
        self.call = call
        self.calls = 0
        self.value: Tensor | None = None

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        self.calls += 1
        if self.calls != self.call + 1 or self.value is None:
            return None
        return with_first_tensor(output, self.value.clone())
