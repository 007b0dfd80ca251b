"""The Lifecycle page as a script, without a browser."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from interp.hooks.ledger import HookLedger
from interp.ui import lab_state
from interp.ui.runs import Runs

APP = Path(__file__).parents[2] / "app.py"


def page(runs: Runs | None = None) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=60).switch_page("pages/lifecycle.py")
    if runs is not None:
        app.session_state["runs"] = runs
    app.run()
    assert not app.exception, app.exception
    return app


def finished(hooks: int) -> HookLedger:
    ledger = HookLedger()
    for number in range(hooks):
        ledger.removed(ledger.register("forward", str(number), "ReLU", "map", "engine"))
    return ledger


def test_before_the_first_run_the_page_says_what_to_do() -> None:
    app = page()
    assert app.header[0].value == "No hook yet"
    assert "every hook is recorded" in app.markdown[0].value
    assert [link.proto.label for link in app.get("page_link")] == [
        "Explain a picture: that runs a few"
    ]
    assert not app.get("bidi_component")


def test_the_sentence_counts_every_run() -> None:
    runs = Runs()
    for _ in range(6):
        runs.add("Grad-CAM", "explain", finished(14))
    app = page(runs)
    assert app.header[0].value == "84 hooks registered in 6 runs, all removed."
    assert "oldest on the left" in app.caption[0].value
    assert len(app.get("bidi_component")) == 1


def test_runs_that_are_no_longer_kept_are_told_of() -> None:
    runs = Runs(most_runs=3)
    for _ in range(15):
        runs.add("Grad-CAM", "explain", finished(1))
    app = page(runs)
    assert "12 earlier runs are no longer kept" in app.caption[1].value
    assert app.header[0].value == "15 hooks registered in 15 runs, all removed."


def test_only_hooks_of_the_open_lab_can_be_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, other = HookLedger(), HookLedger()
    for ledger in (lab, other):
        ledger.register("forward", "features.8", "Sequential", "silence 4", "user")
    runs = Runs()
    runs.add("other", "lessons", other)
    runs.add("lab", "lab", lab)
    given: dict[str, Any] = {}
    monkeypatch.setattr(lab_state, "live_lab", lambda: SimpleNamespace(ledger=lab))
    monkeypatch.setattr(
        "interp.ui.lifecycle_view.lifecycle", lambda *runs, **options: given.update(options)
    )
    app = page(runs)
    assert (
        app.header[0].value
        == "2 hooks registered in 2 runs, none removed yet; 2 of yours are live."
    )
    assert given["removable"] == {2}
    assert given["on_remove"] is lab_state.remove_hook
