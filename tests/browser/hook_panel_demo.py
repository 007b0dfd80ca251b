"""Serves the hook panel with ledgers that stand still; `?case=` chooses one."""

import time
from collections import deque

import streamlit as st

from interp.hooks.ledger import FoundHook, HookEvent, HookLedger, HookRecord
from interp.ui.hook_panel import hook_panel

STARTED = "2025-03-09T14:05:06+00:00"
HOSTILE = '<img src=x onerror="window.stolen=1">'
BLOCKS = [f"features.{i}" for i in range(9)] + ["avgpool", "classifier.0", "classifier.1"]
CLASSES = ["Conv2dNormActivation"] + ["Sequential"] * 7 + ["Conv2dNormActivation"]
CLASSES += ["AdaptiveAvgPool2d", "Dropout", "Linear"]


def one_pass() -> HookLedger:
    """Twelve layers hooked both ways, one pass each way: 24 hooks, 72 events, 60 ms."""
    records, events = [], []
    for i, (path, name) in enumerate(zip(BLOCKS, CLASSES, strict=True)):
        shape = (f"1×{16 * (i + 1)}×{112 >> i // 2}×{112 >> i // 2}",)
        for kind, fired in (("forward", 0.005 + 0.002 * i), ("full_backward", 0.052 - 0.002 * i)):
            number = len(records)
            on, off = 0.001 + 0.0001 * number, 0.056 + 0.0001 * number
            purpose = "feature map" if kind == "forward" else "gradient"
            held = 4 * 16 * (i + 1) * (112 >> i // 2) ** 2
            record = HookRecord(number, kind, path, name, purpose, "engine", on, off, 1, 0.00003)
            record.bytes_held, record.status = held, "removed"
            records.append(record)
            events += [
                HookEvent(on, "registered", number, kind, path, detail=purpose),
                HookEvent(fired, "fired", number, kind, path, 0, shape),
                HookEvent(off, "removed", number, kind, path),
            ]
    return HookLedger(STARTED, _records=records, _events=deque(sorted(events, key=when)))


def when(event: HookEvent) -> float:
    return event.at


def mixed() -> HookLedger:
    """All five kinds, two of them live, one leaked, two foreign, a failed run."""
    rows = [
        ("forward_pre", "features.0", "Conv2dNormActivation", "noise", "user", "live"),
        ("forward", "features.5", "Sequential", "silence channel 4", "user", "live"),
        ("full_backward_pre", "features.10", "Sequential", "clamp ±5", "user", "removed"),
        ("full_backward", "features.2", "Sequential", "=1+1", "engine", "leaked"),
        ("tensor", "", "EfficientNet", "gradient, by tensor", "engine", "never fired: not reached"),
        ("forward", HOSTILE, HOSTILE, HOSTILE, "user", "removed"),
    ]
    records, events = [], []
    for i, (kind, path, name, purpose, origin, status) in enumerate(rows):
        off = None if status in ("live", "leaked") else 0.050 + 0.001 * i
        record = HookRecord(i, kind, path, name, purpose, origin, 0.002 * i, off)
        record.fires = 0 if kind == "tensor" else i + 1
        record.seconds, record.bytes_held, record.status = 0.0001 * i, 1500 * i, status
        records.append(record)
        for call in range(record.fires):
            what = "changed" if purpose == "silence channel 4" else "fired"
            at = 0.012 + 0.005 * i + 0.003 * call
            events.append(HookEvent(at, what, i, kind, path, call, ("1×192×14×14",)))
    events.append(HookEvent(0.049, "error", 2, "full_backward_pre", "features.10", 2, (), "boom"))
    foreign = (
        FoundHook("layer4", "Sequential", "forward", 1, "spy.<locals>.hook"),
        FoundHook("", "EfficientNet", "full_backward", 2, HOSTILE),
    )
    failed = "RuntimeError: the backward pass met a hook that raised: boom"
    ledger = HookLedger(STARTED, failed, foreign, 7, _records=records, _events=deque(events))
    ledger._clock = time.perf_counter() - 0.064
    return ledger


def big() -> HookLedger:
    """1,000 hooks and 5,000 events."""
    kinds = ("forward_pre", "forward", "full_backward_pre", "full_backward", "tensor")
    records, events = [], []
    for i in range(1000):
        kind, path = kinds[i % 5], f"encoder.layers.encoder_layer_{i // 5}.mlp.{i % 5}"
        on, off = i * 1e-5, 2.0 + i * 1e-5
        records.append(HookRecord(i, kind, path, "Linear", "statistics", "engine", on, off, 3))
        records[-1].status = "removed"
        events += [HookEvent(on, "registered", i, kind, path)]
        fires = [0.02 + i * 1e-3 + call * 0.3 for call in range(3)]
        events += [
            HookEvent(at, "fired", i, kind, path, c, ("1×197×768",)) for c, at in enumerate(fires)
        ]
        events += [HookEvent(off, "removed", i, kind, path)]
    return HookLedger(STARTED, _records=records, _events=deque(sorted(events, key=when)))


CASES = {
    "none": lambda: None,
    "nothing": lambda: HookLedger(STARTED),
    "pass": one_pass,
    "mixed": mixed,
    "big": big,
}

st.set_page_config(layout="wide")
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.sidebar.caption("The sidebar of a page")
st.subheader("The page above the panel")
st.text(f"runs: {st.session_state.runs}")
st.button("Run again")
case = st.query_params.get("case", "pass")
if case != "removable":
    hook_panel(CASES[case](), key="demo")
else:
    kept = st.session_state.setdefault("ledger", mixed())

    def remove(record_id: int) -> None:
        kept.removed(kept.records[record_id])
        st.session_state.taken = [*st.session_state.get("taken", []), record_id]

    hook_panel(kept, key="demo", on_remove=remove)
    st.text(f"taken off: {st.session_state.get('taken', [])}")
