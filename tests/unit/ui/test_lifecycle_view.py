"""The sentence of the lifecycle page, and what is sent to the browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interp.hooks.ledger import KINDS, FoundHook, HookLedger
from interp.ui.lifecycle_view import _packed, _Strings, sentence
from interp.ui.runs import Run, Totals


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            {"runs": 6, "registered": 86, "removed": 84, "live": 2, "live_of_user": 2},
            "84 hooks registered in 6 runs, all removed; 2 of yours are live.",
        ),
        ({"runs": 1, "registered": 1, "removed": 1}, "1 hook registered in 1 run, all removed."),
        (
            {"runs": 1, "registered": 1, "live": 1, "live_of_user": 1},
            "1 hook registered in 1 run, none removed yet; 1 of yours is live.",
        ),
        ({"runs": 2}, "No hook in 2 runs."),
        (
            {"runs": 2, "registered": 9, "removed": 6, "live": 3, "live_of_user": 2},
            "6 hooks registered in 2 runs, all removed; "
            "3 are live, 2 of them yours and 1 set by the program for them.",
        ),
        (
            {"runs": 3, "registered": 1205, "removed": 1204, "live": 1},
            "1,204 hooks registered in 3 runs, all removed; 1 of the program's own is live.",
        ),
        (
            {"runs": 3, "registered": 9, "removed": 9, "leaked": 2, "foreign": 1},
            "9 hooks registered in 3 runs, 7 removed; 2 leaked: PyTorch still has them; "
            "1 foreign hook found.",
        ),
    ],
)
def test_the_sentence_that_matters(counts: dict[str, int], words: str) -> None:
    assert sentence(Totals(**counts)) == words


def unpacked(packed: dict[str, Any], texts: list[str]) -> list[tuple[Any, ...]]:
    """Events as the browser reads them."""
    columns = zip(packed["what"], packed["hook"], packed["call"], packed["shapes"], strict=True)
    return [(what, hook, call, texts[shapes]) for what, hook, call, shapes in columns]


def test_a_run_is_sent_as_columns_with_each_text_once() -> None:
    ledger = HookLedger(foreign=(FoundHook("0", "ReLU", "forward", 3, "spy"),))
    first = ledger.register("forward", "layer4", "Sequential", "map", "engine")
    ledger.register("tensor", "layer4", "Sequential", "gradient", "user")
    ledger.fired(first, ("1×2", "3"))
    ledger.changed(first, ("1×2", "3"))
    ledger.removed(first)
    text = _Strings()

    packed = _packed(Run(4, "title", "lab", ledger), {"lab": "Hook lab"}, ledger.began - 2.5, text)

    assert len(set(text.texts)) == len(text.texts)
    assert unpacked(packed, text.texts) == [
        (0, 0, -1, ""),
        (0, 1, -1, ""),
        (1, 0, 0, "1×2, 3"),
        (2, 0, 0, "1×2, 3"),
        (3, 0, -1, ""),
    ]
    kinds = [KINDS[record[0]] for record in packed["records"]]
    assert kinds == ["forward", "tensor"]
    words = [text.texts[number] for number in packed["records"][1][1:7]]
    assert words == ["layer4", "Sequential", "gradient", "user", "live", ""]
    assert packed["records"][1][8] is None
    assert packed["records"][0][9:] == [1, 0.0, 0]
    assert packed["began"] == pytest.approx(2.5, abs=2e-6)
    assert packed["page"] == "Hook lab"
    assert packed["now"] > 0
    assert packed["foreign"][0]["name"] == "spy"
    json.dumps(packed)


def test_a_run_without_a_live_hook_is_the_same_however_late_it_is_sent() -> None:
    ledger = HookLedger()
    ledger.removed(ledger.register("forward", "0", "ReLU", "", "engine"))
    run = Run(1, "run", "explain", ledger)
    assert _packed(run, {}, ledger.began, _Strings()) == _packed(run, {}, ledger.began, _Strings())
