"""The way to take a hook off again."""

from collections.abc import Iterable

from torch.utils.hooks import RemovableHandle

from interp.hooks.ledger import HookLedger, HookRecord
from interp.hooks.witness import Witness


class HookHandle:
    """Takes one hook off again.

    `id` and `record` lead to what the ledger knows of it. `remove` may be called more than once.
    """

    def __init__(
        self,
        record: HookRecord,
        raw: RemovableHandle,
        ledger: HookLedger,
        witness: Witness | None = None,
        beside: Iterable[RemovableHandle] = (),
    ) -> None:
        self.record = record
        self._raw = raw
        self._ledger = ledger
        self._witness = witness
        self._beside = tuple(beside)

    @property
    def id(self) -> int:
        return self.record.id

    def is_registered(self) -> bool:
        """Whether PyTorch still has the hook."""
        hooks = self._raw.hooks_dict_ref()
        return hooks is not None and self._raw.id in hooks

    def remove(self) -> None:
        for raw in (self._raw, *self._beside):
            raw.remove()
        self._ledger.removed(self.record)

    def settle(self) -> None:
        """Remove the hook and write in its record how it ended."""
        self.remove()
        if self.is_registered():
            self.record.status = "leaked"
        elif self.record.fires == 0 and self.record.status == "removed":
            silent = (
                self._witness.why_silent() if self._witness else "no gradient reached the tensor"
            )
            self.record.status = f"never fired: {silent}"
