"""The ledger by itself, and `audit`."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from interp.hooks import ledger as ledger_module
from interp.hooks.ledger import KINDS, HookLedger, audit, describe
from interp.hooks.session import HookSession


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sequential(nn.ReLU(), nn.Identity()))


def test_a_record_from_registration_to_removal() -> None:
    ledger = HookLedger()

    record = ledger.register("forward", "layer4", "Sequential", "feature map", "engine")
    assert (record.id, record.kind, record.path, record.class_name) == (
        0,
        "forward",
        "layer4",
        "Sequential",
    )
    assert (record.status, record.removed_at, record.fires) == ("live", None, 0)
    ledger.fired(record, ("1×4×2×2",))
    ledger.fired(record, ("1×4×2×2",))
    ledger.changed(record, ("1×4×2×2",))
    ledger.removed(record)
    removed_at = record.removed_at
    ledger.removed(record)

    assert record.fires == 2
    assert record.status == "removed"
    assert removed_at is not None
    assert 0 <= record.registered_at <= removed_at == record.removed_at
    assert [(e.what, e.call, e.shapes) for e in ledger.events] == [
        ("registered", None, ()),
        ("fired", 0, ("1×4×2×2",)),
        ("fired", 1, ("1×4×2×2",)),
        ("changed", 1, ("1×4×2×2",)),
        ("removed", None, ()),
    ]
    assert [e.at for e in ledger.events] == sorted(e.at for e in ledger.events)
    assert {(e.hook, e.kind, e.path) for e in ledger.events} == {(0, "forward", "layer4")}


def test_a_hook_that_was_not_expected_to_fire_and_did() -> None:
    ledger = HookLedger()
    record = ledger.register("forward", "out_proj", "Linear", "", "user")
    record.status = "cannot fire: nobody calls it"

    ledger.fired(record, ())
    assert record.status == "live"
    ledger.removed(record)
    assert record.status == "removed"


def test_what_a_hook_cannot_do_outlives_its_removal() -> None:
    ledger = HookLedger()
    record = ledger.register("forward", "blocks", "ModuleList", "", "user")
    record.status = "cannot fire: it is never called"

    ledger.removed(record)

    assert record.status == "cannot fire: it is never called"
    assert record.removed_at is not None


def test_the_summary_counts() -> None:
    net = _net()
    net[0].register_forward_hook(lambda module, args, output: None)
    ledger = HookLedger(foreign=tuple(audit(net)))
    records = [ledger.register(kind, "", "", "", "user") for kind in KINDS]

    for record in records[:2]:
        ledger.removed(record)

    assert ledger.summary() == {"registered": 5, "removed": 2, "live": 3, "foreign": 1}


def test_events_are_bounded_and_records_are_not() -> None:
    limit = ledger_module.MAX_EVENTS
    ledger = HookLedger()
    records = [ledger.register("forward", str(i), "ReLU", "", "engine") for i in range(limit)]

    for record in records[:7]:
        ledger.fired(record, ())

    assert len(ledger.records) == limit
    assert len(ledger.events) == limit
    assert ledger.dropped_events == 7
    assert ledger.events[0].path == "7"
    assert [event.what for event in ledger.events[-7:]] == ["fired"] * 7
    assert ledger.as_dict()["dropped_events"] == 7


def test_as_dict_is_json_with_all_of_it() -> None:
    net = _net()
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    ledger = HookLedger(foreign=tuple(audit(net)))
    record = ledger.register("tensor", "0", "Conv2d", "gradient", "engine")
    ledger.fired(record, ("2×4",))
    ledger.error(record, ValueError("two\nlines"))
    ledger.fail(KeyboardInterrupt())
    ledger.fail(RuntimeError("later"))
    assert ledger.as_dict()["seconds"] > 0
    ledger.removed(record)

    saved: dict[str, Any] = json.loads(json.dumps(ledger.as_dict()))

    assert saved["records"][0]["returned"] == ""
    assert set(saved) == {
        "started",
        "seconds",
        "failed",
        "summary",
        "records",
        "events",
        "dropped_events",
        "foreign",
    }
    assert saved["failed"] == "KeyboardInterrupt"
    assert saved["summary"] == {"registered": 1, "removed": 1, "live": 0, "foreign": 1}
    assert saved["records"][0]["purpose"] == "gradient"
    assert saved["seconds"] == saved["records"][0]["removed_at"]
    assert [event["what"] for event in saved["events"]] == [
        "registered",
        "fired",
        "error",
        "removed",
    ]
    assert saved["events"][2]["detail"] == "ValueError: two lines"
    assert saved["events"][2]["call"] == 0
    assert saved["foreign"][0] == {
        "path": "1",
        "class_name": "Sequential",
        "kind": "full_backward",
        "key": audit(net)[0].key,
        "name": audit(net)[0].name,
    }
    assert "T" in saved["started"]


def test_audit_finds_every_kind_of_hook_and_whose_it_is() -> None:
    class Watcher:
        def __call__(self, *given: Any) -> None: ...

    def by_name(*given: Any) -> None: ...

    net = _net()
    assert audit(net) == []
    handles = [
        net.register_forward_pre_hook(by_name),
        net[0].register_forward_hook(by_name),
        net[0].register_forward_hook(Watcher(), with_kwargs=True),
        net[1].register_full_backward_pre_hook(by_name),
        net[1][1].register_full_backward_hook(by_name),
    ]

    found = audit(net)

    assert [(hook.path, hook.class_name, hook.kind) for hook in found] == [
        ("", "Sequential", "forward_pre"),
        ("0", "Conv2d", "forward"),
        ("0", "Conv2d", "forward"),
        ("1", "Sequential", "full_backward_pre"),
        ("1.1", "Identity", "full_backward"),
    ]
    assert [hook.key for hook in found] == [handle.id for handle in handles]
    assert [hook.name.rpartition(".")[2] for hook in found] == [
        "by_name",
        "by_name",
        "Watcher",
        "by_name",
        "by_name",
    ]
    for handle in handles:
        handle.remove()
    assert audit(net) == []


def test_audit_of_a_shared_module_names_it_once() -> None:
    shared = nn.ReLU()
    net = nn.Sequential(shared, shared)
    shared.register_forward_hook(lambda module, args, output: None)

    assert [hook.path for hook in audit(net)] == ["0"]


def test_an_error_in_one_line() -> None:
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert describe(torch.OutOfMemoryError("no")) == "OutOfMemoryError: no"


@pytest.mark.filterwarnings("ignore:For backward hooks to be called")
@pytest.mark.parametrize(
    ("wrap", "returned", "fires"),
    [
        (lambda x: x, "", 1),
        (lambda x: (x, 3), "", 1),
        (lambda x: {"out": x}, "a dict", 0),
        (lambda x: [x], "a list", 0),
        (lambda x: ({"out": x},), "a tuple without a tensor", 0),
    ],
)
def test_what_a_module_returned_says_whether_a_backward_hook_can_fire(
    wrap: Any, returned: str, fires: int
) -> None:
    class Wraps(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return wrap(2 * x)

    with HookSession(nn.Sequential(Wraps())) as session:
        forward = session.forward("0", lambda module, args, output: None)
        backward = session.full_backward("0", lambda module, grad_input, grad_output: None)
        found = session.module(torch.ones(2, requires_grad=True))
        while not isinstance(found, Tensor):
            found = found["out"] if isinstance(found, dict) else found[0]
        found.sum().backward()

    assert forward.record.returned == returned
    assert backward.record.fires == fires


def test_a_ledger_knows_when_it_began() -> None:
    one = HookLedger()
    other = HookLedger()
    assert 0 <= other.began - one.began < 60
    assert one.now() - other.now() == pytest.approx(other.began - one.began, abs=0.05)
