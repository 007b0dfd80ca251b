"""The rows of `make bench` for looking inside: statistics of every layer, and the channel sweep."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

import interp
from interp.inspection.statistics import statistics
from interp.inspection.sweep import sweep
from interp.picture import Picture

SWEPT = "features.8"
SAMPLE = 64
SWEEPS = 3
SWEEP_BOUND = 1 / 20


def statistics_of_every_layer(
    model: interp.LoadedModel, picture: Picture
) -> dict[str, Callable[[], object]]:
    """What is measured against a plain forward and backward pass."""
    return {"statistics": lambda: statistics(model, picture)}


def channel_sweep(picture: Picture) -> bool:
    """Measure, print, and say whether the sweep misses its bound.

    Full passes of one picture take turns with sweeps; a pass for each of the channels is worked
    out from a sample of them.
    """
    model = interp.load_model("efficientnet_lite0", device="cpu")
    shown = model.prepare(picture)

    def passes() -> None:
        with torch.no_grad():
            for _ in range(SAMPLE):
                model.module(shown)

    def swept() -> int:
        *_, last = sweep(model, picture, SWEPT)
        assert last.complete
        assert not last.notes, last.notes
        return last.total

    total = swept()
    passes()
    a_sweep, a_pass = [], []
    for _ in range(SWEEPS):
        a_sweep.append(_seconds(swept))
        a_pass.append(_seconds(passes) / SAMPLE)
    share = max(ours / (total * theirs) for ours, theirs in zip(a_sweep, a_pass, strict=True))
    missed = share > SWEEP_BOUND
    print(
        f"channel sweep, {SWEPT}, {total} channels: {'MISSED' if missed else 'reached'} "
        f"(1/{1 / share:.0f} of {total} full passes, bound 1/{1 / SWEEP_BOUND:.0f})\n"
        f"    {min(a_sweep):.2f} s against {total * min(a_pass):.1f} s, "
        f"worked out from {SAMPLE} passes of {1000 * min(a_pass):.1f} ms"
    )
    return missed


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
