"""The hook panel at the foot of every page: what happened to every hook of the run above it."""

from interp.hooks.ledger import HookLedger
from interp.ui.components import component


def hook_panel(ledger: HookLedger | None, *, key: str) -> None:
    """Show a ledger as one line that opens into timeline, table, event log and foreign hooks.

    The panel only reads: nothing in it reruns the script, and what the reader opened, sorted or
    filtered stays through reruns.

    Parameters
    ----------
    ledger : HookLedger or None
        Of the run whose result stands on the page; None where there is none yet.
    key : str
        Names the panel in the session: one for each page.
    """
    data = {"key": key, "ledger": None if ledger is None else ledger.as_dict()}
    component("hook_panel")(key=key, data=data)
