"""The way to take a hook off again."""

from torch.utils.hooks import RemovableHandle

from interp.hooks.ledger import HookLedger, HookRecord

_NO_GRADIENT = "no gradient came back to it, or it returned something else than tensors"


class HookHandle:
    """Takes one hook off again.

    `id` and `record` lead to what the ledger knows of it. `remove` may be called more than once.
    """

    def __init__(self, record: HookRecord, raw: RemovableHandle, ledger: HookLedger) -> None:
        self.record = record
        self._raw = raw
        self._ledger = ledger

    @property
    def id(self) -> int:
        return self.record.id

    def is_registered(self) -> bool:
        """Whether PyTorch still has the hook."""
        hooks = self._raw.hooks_dict_ref()
        return hooks is not None and self._raw.id in hooks

    def remove(self) -> None:
        self._raw.remove()
        self._ledger.removed(self.record)

    def settle(self) -> None:
        """Remove the hook and write in its record how it ended."""
        self.remove()
        if self.is_registered():
            self.record.status = "leaked"
        elif self.record.fires == 0 and self.record.status == "removed":
            self.record.status = f"never fired: {self._why_silent()}"

    def _why_silent(self) -> str:
        kind, path = self.record.kind, self.record.path
        if kind == "tensor":
            return "no gradient reached the tensor"
        if kind in ("forward_pre", "forward"):
            return "the module did not run"
        beside = [r for r in self._ledger.records if (r.kind, r.path) == ("forward", path)]
        if not beside:
            return f"the module did not run, or {_NO_GRADIENT}"
        ran = [record for record in beside if record.fires]
        if not ran:
            return "the module did not run"
        if returned := next((record.returned for record in ran if record.returned), ""):
            return f"the module returned {returned}, and PyTorch calls these hooks for tensors only"
        return "the module ran, but no gradient came back to it"
