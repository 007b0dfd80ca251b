"""Serves the lifecycle component with runs that stand still; `?case=` chooses them."""

import time

import streamlit as st

from interp.hooks.ledger import KINDS, FoundHook, HookEvent, HookLedger, HookRecord
from interp.ui.lifecycle_view import lifecycle, sentence
from interp.ui.runs import Runs

STARTED = "2025-03-09T14:05:06+00:00"
HOSTILE = '<img src=x onerror="window.stolen=1">'
LAYERS = ["features.0", *(f"features.{i}.{j}.block" for i in range(1, 8) for j in range(2))]
LAYERS += ["features.8", "avgpool", "classifier.1"]


def one_pass(began: float, layers: list[str], milliseconds: float = 60.0) -> HookLedger:
    """Each layer hooked both ways, one pass there and one back."""
    ledger = HookLedger(STARTED, _clock=began)
    share = milliseconds / 1000 / (2 * len(layers) + 10)
    events = []
    for place, path in enumerate(layers):
        for kind, step in (("forward", place + 6), ("full_backward", 2 * len(layers) - place + 6)):
            number = len(ledger._records)
            on, off = number * share / 8, (2 * len(layers) + 9 + number / 99) * share
            record = HookRecord(number, kind, path, "Sequential", "map", "engine", on, off, 1, 2e-5)
            record.status = "removed"
            ledger._records.append(record)
            events += [
                HookEvent(on, "registered", number, kind, path, detail="map"),
                HookEvent(step * share, "fired", number, kind, path, 0, ("1×16×112×112",)),
                HookEvent(off, "removed", number, kind, path),
            ]
    ledger._events.extend(sorted(events, key=lambda event: event.at))
    return ledger


def lab(began: float, age: float) -> HookLedger:
    """Two hooks of the user, on for minutes, that fired in each of three runs; one taken off."""
    ledger = HookLedger(STARTED, _clock=began)
    rows = [
        ("forward", "features.8", "silences channel 4"),
        ("full_backward", "features.3.0.block", "clamps to ±5"),
        ("forward_pre", HOSTILE, "noise"),
    ]
    events = []
    for number, (kind, path, purpose) in enumerate(rows):
        record = HookRecord(number, kind, path, "Sequential", purpose, "user", 0.001 * number)
        ledger._records.append(record)
        events.append(HookEvent(record.registered_at, "registered", number, kind, path))
        for call, begun in enumerate((0.03, age / 2, age - 20.0)):
            at = begun + 0.004 * number
            events.append(HookEvent(at, "fired", number, kind, path, call, ("1×4",)))
            events.append(HookEvent(at, "changed", number, kind, path, call, ("1×4",)))
            record.fires += 1
    ledger._records[2].removed_at, ledger._records[2].status = age - 19.0, "removed"
    events.append(HookEvent(age - 19.0, "removed", 2, "forward_pre", HOSTILE))
    ledger._events.extend(sorted(events, key=lambda event: event.at))
    return ledger


def five_thousand(began: float) -> HookLedger:
    """1,000 hooks and 5,000 events in two seconds."""
    ledger = HookLedger(STARTED, _clock=began)
    events = []
    for i in range(1000):
        kind, path = KINDS[i % 5], f"encoder.layers.encoder_layer_{i // 5}.mlp.{i % 5}"
        on, off = i * 1e-5, 2.0 + i * 1e-5
        record = HookRecord(i, kind, path, "Linear", "statistics", "engine", on, off, 3)
        record.status = "removed"
        ledger._records.append(record)
        fires = [0.02 + i * 1e-3 + call * 0.3 for call in range(3)]
        events += [HookEvent(on, "registered", i, kind, path)]
        events += [HookEvent(at, "fired", i, kind, path, c, ("1×9",)) for c, at in enumerate(fires)]
        events += [HookEvent(off, "removed", i, kind, path)]
    ledger._events.extend(sorted(events, key=lambda event: event.at))
    return ledger


def session(case: str) -> Runs:
    """Runs of a session that began ten minutes ago."""
    runs, now = Runs(), time.perf_counter() - 600
    if case == "big":
        for number in range(6):
            runs.add("Statistics of every layer", "layers", five_thousand(now + 60 * number))
        return runs
    if case == "many":
        for number in range(40):
            runs.add(f"Grad-CAM number {number}", "explain", one_pass(now + 9 * number, LAYERS))
        return runs
    runs.add("Grad-CAM of espresso (967)", "explain", one_pass(now, LAYERS[-3:], 25))
    runs.add("Grad-CAM of espresso (967) in one pass", "explain", one_pass(now + 2, LAYERS))
    if case == "lab":
        runs.add("Hook lab", "lab", lab(now + 60, 540))
        runs.add("Statistics of every layer", "layers", one_pass(now + 200, LAYERS, 180))
        failed = one_pass(now + 400, LAYERS[:6], 12)
        failed.failed = "RuntimeError: the backward pass met a hook that raised: boom"
        failed._records[3].status = "never fired: no gradient came back to it"
        failed.foreign = (FoundHook("layer4", "Sequential", "forward", 1, HOSTILE),)
        runs.add("Gradients at every layer", "gradients", failed)
    return runs


def remove(record_id: int) -> None:
    ledger = next(run.ledger for run in runs.all() if run.title == "Hook lab")
    ledger.removed(ledger.records[record_id])
    st.session_state.taken = [*st.session_state.get("taken", []), record_id]


st.set_page_config(layout="wide")
st.session_state.times = st.session_state.get("times", 0) + 1
if "demo" not in st.session_state:
    st.session_state.demo = session(st.query_params.get("case", "few"))
runs = st.session_state.demo
st.header(sentence(runs.totals()))
st.text(f"script runs: {st.session_state.times}; taken off: {st.session_state.get('taken', [])}")
pages = {"explain": "Explain", "layers": "Layers", "gradients": "Gradients", "lab": "Hook lab"}
numbers = {run.number for run in runs.all() if run.title == "Hook lab"}
lifecycle(runs.all(), pages, key="lifecycle", removable=numbers, on_remove=remove)
st.text("What stands below the component")
