"""The hook engine: the only code that registers hooks, and the ledger that remembers each one."""
