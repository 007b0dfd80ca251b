"""Recording what PyTorch's own registration methods are asked for."""

import copy
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from interp.hooks.ledger import HookLedger, audit
from interp.hooks.session import HookSession
from interp.lessons.recording import name_of, recorded, unrecorded

METHODS = (
    (nn.Module, "register_forward_pre_hook"),
    (nn.Module, "register_forward_hook"),
    (nn.Module, "register_full_backward_pre_hook"),
    (nn.Module, "register_full_backward_hook"),
    (Tensor, "register_hook"),
)


def originals() -> list[Any]:
    return [vars(owner)[name] for owner, name in METHODS]


def test_each_kind_has_a_record_that_counts_its_fires() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    with recorded(ledger, __file__) as recorder:
        x = torch.ones(3, 2, requires_grad=True)
        handles = [
            linear.register_forward_pre_hook(lambda *given: None),
            linear.register_forward_hook(lambda *given: None),
            linear.register_full_backward_pre_hook(lambda *given: None),
            linear.register_full_backward_hook(lambda *given: None),
            linear.weight.register_hook(lambda gradient: None),
            x.register_hook(lambda gradient: None),
        ]
        linear(x).sum().backward()
        for handle in handles:
            handle.remove()
    assert [(r.kind, r.path, r.fires, r.status) for r in ledger.records] == [
        ("forward_pre", "linear", 1, "removed"),
        ("forward", "linear", 1, "removed"),
        ("full_backward_pre", "linear", 1, "removed"),
        ("full_backward", "linear", 1, "removed"),
        ("tensor", "linear.weight", 1, "removed"),
        ("tensor", "x", 1, "removed"),
    ]
    assert len(recorder.lines) == 6
    assert not any(event.what == "changed" for event in ledger.events)
    assert audit(linear) == []


def test_the_methods_are_pytorchs_own_again_even_after_an_error() -> None:
    before, ledger, linear = originals(), HookLedger(), nn.Linear(2, 1)

    def fails() -> None:
        with recorded(ledger, __file__):
            assert originals() != before
            linear.register_forward_hook(lambda *given: None)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fails()
    assert originals() == before
    assert audit(linear) == []
    assert ledger.records[0].status == "leaked"
    assert ledger.failed == "ZeroDivisionError: division by zero"


def test_blocks_within_blocks_restore_at_the_last_end() -> None:
    before, outer, inner, linear = originals(), HookLedger(), HookLedger(), nn.Linear(2, 1)
    with recorded(outer, __file__):
        with recorded(inner, __file__):
            linear.register_forward_hook(lambda *given: None).remove()
        linear.register_forward_hook(lambda *given: None).remove()
    assert (len(outer.records), len(inner.records)) == (1, 1)
    assert originals() == before


def test_another_thread_registers_untouched() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    calls: list[str] = []

    def elsewhere() -> None:
        linear.register_forward_hook(lambda *given: calls.append("fired"))

    with recorded(ledger, __file__):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        linear(torch.ones(1, 2))
    assert ledger.records == ()
    assert calls == ["fired"]
    assert len(audit(linear)) == 1  # and the end of the block left it alone


def test_two_threads_record_at_once_without_meeting() -> None:
    before = originals()
    ledgers = [HookLedger(), HookLedger()]
    both_open = threading.Barrier(2)

    def lesson(ledger: HookLedger) -> None:
        linear = nn.Linear(2, 1)
        with recorded(ledger, __file__):
            both_open.wait(10)
            for _ in range(20):
                linear.register_forward_hook(lambda *given: None).remove()
            both_open.wait(10)

    threads = [threading.Thread(target=lesson, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(ledger.records) for ledger in ledgers] == [20, 20]
    assert originals() == before


def test_code_of_another_file_is_not_recorded() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    with recorded(ledger, "another.py"):
        linear.register_forward_hook(lambda *given: None)
    assert ledger.records == ()
    assert len(audit(linear)) == 1


def test_a_session_in_the_block_keeps_its_own_records() -> None:
    ledger = HookLedger()
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    with recorded(ledger, __file__) as recorder, HookSession(net, ledger) as session:
        session.full_backward("0", lambda *given: None)
        y = session.module(torch.ones(1, 2, requires_grad=True))
        y.register_hook(lambda gradient: gradient * 2)
        y.sum().backward()
    assert [(r.kind, r.fires, r.origin) for r in ledger.records] == [
        ("full_backward", 1, "user"),
        ("tensor", 1, "lesson"),
    ]
    assert sorted(recorder.lines.values()) == ["full_backward", "tensor"]


def test_returned_and_written_values_count_as_changes() -> None:
    ledger = HookLedger()
    with recorded(ledger, __file__):
        for hook in (lambda g: g * 2, lambda g: (g.mul_(2), None)[1], lambda g: None):
            x = torch.ones(2, requires_grad=True)
            handle = x.register_hook(hook)
            (3 * x).sum().backward()
            handle.remove()
    changed = [event.hook for event in ledger.events if event.what == "changed"]
    assert changed == [0, 1]


def test_an_error_in_a_hook_is_noted_and_raised() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)

    def broken(*given: Any) -> None:
        raise ValueError("broken hook")

    def fails() -> None:
        with recorded(ledger, __file__):
            linear.register_forward_hook(broken)
            linear(torch.ones(1, 2))

    with pytest.raises(ValueError, match="broken hook"):
        fails()
    assert [e.detail for e in ledger.events if e.what == "error"] == ["ValueError: broken hook"]
    assert audit(linear) == []


def test_handles_work_as_context_managers() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    with recorded(ledger, __file__):
        with linear.register_forward_hook(lambda *given: None):
            linear(torch.ones(1, 2))
        linear(torch.ones(1, 2))
    assert [(r.fires, r.status) for r in ledger.records] == [(1, "removed")]


def test_a_copied_hook_is_foreign_to_the_ledger() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    with recorded(ledger, __file__):
        handle = linear.register_forward_hook(lambda *given: None)
        twin = copy.deepcopy(linear)
        handle.remove()
        twin(torch.ones(1, 2))
    assert [(r.fires, r.status.split(":")[0]) for r in ledger.records] == [(0, "never fired")]
    assert len(audit(twin)) == 1


def test_unrecorded_registers_plainly() -> None:
    ledger, linear = HookLedger(), nn.Linear(2, 1)
    with recorded(ledger, __file__) as recorder:
        with unrecorded():
            linear.register_forward_hook(lambda *given: None)
        linear.register_forward_hook(lambda *given: None).remove()
    assert len(ledger.records) == 1
    assert len(recorder.lines) == 2
    assert len(audit(linear)) == 1
    with unrecorded():  # nothing to pause
        linear.register_forward_hook(lambda *given: None)


def test_names_are_those_of_the_code() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    h = torch.ones(1)
    variables = {"net": net, "h": h, "layer": net[0]}
    assert name_of(h, variables) == "h"
    assert name_of(net, variables) == "net"
    assert name_of(net[0], variables) == "net.0"
    assert name_of(net[0].weight, variables) == "net.0.weight"
    assert name_of(torch.ones(1), variables) == ""
