"""The hook panel at the foot of every page: what happened to every hook of the run above it."""

from collections.abc import Callable

from interp.hooks.ledger import HookLedger
from interp.ui.components import component
from interp.ui.kinds import colour_properties
from interp.ui.picks import answer, answered


def hook_panel(
    ledger: HookLedger | None, *, key: str, on_remove: Callable[[int], None] | None = None
) -> None:
    """Show a ledger as one line that opens into timeline, table, event log and foreign hooks.

    Only removing a hook reruns the script, and what the reader opened, sorted or filtered stays
    through reruns.

    Parameters
    ----------
    ledger : HookLedger or None
        Of the run whose result stands on the page; None where there is none yet.
    key : str
        Names the panel in the session: one for each page.
    on_remove : callable, optional
        Gives each live hook a button, and is called once with the id of the record of the hook to
        be taken off, before the script runs again.
    """
    data = {
        "key": key,
        "ledger": None if ledger is None else ledger.as_dict(),
        "colours": colour_properties(),
        "removable": on_remove is not None,
        "answered": answered(key),
    }
    if on_remove is None:
        component("hook_panel")(key=key, data=data)
        return
    live = [r.id for r in ledger.records if r.removed_at is None] if ledger is not None else []
    component("hook_panel")(key=key, data=data, on_picked_change=answer(key, live, on_remove))
