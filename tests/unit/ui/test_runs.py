"""The runs of a session: numbered, counted, bounded, and read live."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from threading import Thread
from typing import Any

import pytest
import streamlit as st
import torch
from torch import nn

from interp.hooks.ledger import HookLedger
from interp.hooks.session import HookSession
from interp.ui import runs, state
from interp.ui.runs import Runs


def ledger_of(hooks: int, live: int = 0, origin: str = "engine", events: int = 0) -> HookLedger:
    ledger = HookLedger()
    records = [
        ledger.register("forward", str(i), "ReLU", "map", origin if i < live else "engine")
        for i in range(hooks)
    ]
    for _ in range(events):
        ledger.fired(records[0], ("1",))
    for record in records[live:]:
        ledger.removed(record)
    return ledger


def test_runs_are_numbered_and_counted() -> None:
    kept = Runs()
    kept.add("one", "explain", ledger_of(3))
    kept.add("two", "lab", ledger_of(5, live=2, origin="user"))

    assert [(r.number, r.title, r.page) for r in kept.all()] == [
        (1, "one", "explain"),
        (2, "two", "lab"),
    ]
    totals = kept.totals()
    assert (totals.runs, totals.forgotten) == (2, 0)
    assert (totals.registered, totals.removed, totals.leaked) == (8, 6, 0)
    assert (totals.live, totals.live_of_user, totals.foreign) == (2, 2, 0)


def test_no_run_yet() -> None:
    assert Runs().all() == ()
    assert Runs().totals() == runs.Totals()


def test_a_ledger_is_one_run_however_often_it_is_noted() -> None:
    kept, ledger = Runs(), ledger_of(1)
    for _ in range(3):
        kept.add("lab", "lab", ledger)
    assert len(kept.all()) == 1


def test_a_live_ledger_is_read_live() -> None:
    kept, ledger = Runs(), HookLedger()
    kept.add("lab", "lab", ledger)
    record = ledger.register("forward", "0", "ReLU", "", "user")
    assert kept.totals().live_of_user == 1
    ledger.removed(record)
    assert kept.totals().live_of_user == 0
    assert kept.totals().removed == 1


def test_hooks_of_the_program_that_are_live_are_not_the_users() -> None:
    kept = Runs()
    kept.add("broken", "explain", ledger_of(3, live=1, origin="engine"))
    assert (kept.totals().live, kept.totals().live_of_user) == (1, 0)


def test_a_hook_that_could_not_be_taken_off_is_leaked() -> None:
    kept, ledger = Runs(), ledger_of(2)
    ledger.records[1].status = "leaked"
    kept.add("leak", "lessons", ledger)
    assert kept.totals().leaked == 1


def test_old_runs_are_let_go_and_stay_counted() -> None:
    kept = Runs(most_runs=3)
    for number in range(8):
        kept.add(str(number), "explain", ledger_of(2))

    assert [run.title for run in kept.all()] == ["5", "6", "7"]
    assert kept.all()[-1].number == 8
    totals = kept.totals()
    assert (totals.runs, totals.forgotten, totals.registered, totals.removed) == (8, 5, 16, 16)


def test_events_are_bounded_over_all_runs() -> None:
    kept = Runs(most_runs=100, most_events=100)
    for number in range(5):
        kept.add(str(number), "explain", ledger_of(1, events=38))  # 40 events each
    assert [run.title for run in kept.all()] == ["3", "4"]
    kept.add("large", "explain", ledger_of(1, events=500))
    assert [run.title for run in kept.all()] == ["large"]  # the newest is kept whatever its size


def test_a_run_with_a_live_hook_is_never_let_go() -> None:
    kept, lab = Runs(most_runs=2), ledger_of(1, live=1, origin="user")
    kept.add("lab", "lab", lab)
    for number in range(5):
        kept.add(str(number), "explain", ledger_of(1))
    assert [run.title for run in kept.all()] == ["lab", "4"]
    lab.removed(lab.records[0])
    kept.add("5", "explain", ledger_of(1))
    assert [run.title for run in kept.all()] == ["4", "5"]
    assert kept.totals().registered == 7


def test_several_threads_lose_no_run() -> None:
    kept = Runs(most_runs=50)

    def add_forty() -> None:
        for _ in range(40):
            kept.add("run", "explain", ledger_of(1))

    threads = [Thread(target=add_forty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.totals().runs == kept.totals().registered == 160
    numbers = [run.number for run in kept.all()]
    assert numbers == list(range(111, 161))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    kept: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", kept)
    return kept


def test_a_run_knows_the_page_that_was_shown(session: dict[str, Any]) -> None:
    assert runs.all_runs() == ()
    state.current("gradients")
    runs.note("Gradients at every layer", ledger_of(1))
    assert [(run.title, run.page) for run in runs.all_runs()] == [
        ("Gradients at every layer", "gradients")
    ]
    assert runs.totals().runs == 1


def plain(value: Any) -> bool:
    if is_dataclass(value):
        return all(plain(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, str | int | float | None):
        return True
    return isinstance(value, list | tuple | deque) and all(plain(part) for part in value)


def test_a_ledger_keeps_no_picture_and_no_tensor_alive() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    net[0].register_forward_hook(lambda module, args, output: None)
    with HookSession(net) as hooks:
        hooks.forward("0", lambda module, args, output: output * 2)
        hooks.full_backward("1", lambda module, grad_input, grad_output: None)
        hooks.module(torch.ones(1, 3, 5, 5, requires_grad=True)).sum().backward()
    assert len(hooks.ledger.events) > 4
    assert plain(hooks.ledger)
    assert not plain(HookLedger(failed=torch.ones(1)))  # type: ignore[arg-type]
