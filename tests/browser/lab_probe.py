"""The Hook lab alone, with a line in the server's log for each lab that is closed."""

import runpy
from pathlib import Path

import streamlit as st

from interp import audit
from interp.hooks.lab import Lab

st.set_page_config(page_title="Hook lab", layout="wide")

if not hasattr(Lab, "close_silently"):
    Lab.close_silently = Lab.close  # type: ignore[attr-defined]

    def close(lab: Lab) -> None:
        copy, before = lab.session.module, len(lab.live)
        lab.close_silently()  # type: ignore[attr-defined]
        left = len(audit(copy)) + len(audit(lab.model.module)) + lab.ledger.summary()["live"]
        print(f"lab closed: {before} hooks before, {left} left", flush=True)

    Lab.close = close  # type: ignore[method-assign]

runpy.run_path(str(Path(__file__).resolve().parents[2] / "pages" / "lab.py"))
