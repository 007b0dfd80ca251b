"""Axes of a chart along the depth of a network: names that can be read, and decades."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import altair

if TYPE_CHECKING:
    from interp.ui.chart_parts import Line

AT_MOST = 14  # names on the axis; the browser leaves out those that would overlap
LONGEST = 16  # letters of a name on the axis
ENOUGH = 6  # names, below which parts of parts are named
TICKS = 7

_Rows = list[tuple[int, str]]


def x(layers: Sequence[str], field: str = "place") -> altair.X:
    """The horizontal axis: one step a layer in the order given, named where a part begins."""
    names = {place: short(name) for place, name in ticks(layers).items()}
    axis = altair.Axis(
        values=list(names),
        labelExpr=f"{[names.get(i, '') for i in range(max(names, default=0) + 1)]}[datum.value]",
        labelFont="monospace",
        labelAlign="left",
        labelOverlap="greedy",
        labelBound=24,
        labelLimit=180,
        labelSeparation=8,
        grid=True,
        gridDash=[1, 3],
        title="layers in the order in which they run",
    )
    scale = altair.Scale(domain=[-0.5, max(len(layers), 1) - 0.5], nice=False, zero=False)
    return altair.X(f"{field}:Q", axis=axis, scale=scale)


def ticks(layers: Sequence[str]) -> dict[int, str]:
    """Where on the axis which name stands: every layer of a few, else where a part begins."""
    if len(layers) <= AT_MOST:
        return dict(enumerate(layers))
    names = [layer.split(".") for layer in layers]
    holders = {".".join(path[:i]) for path in names for i in range(1, len(path))}
    inner = [(place, layer) for place, layer in enumerate(layers) if layer not in holders]
    parts = _split(inner, 0)
    while True:
        longest = max(range(len(parts)), key=lambda i: len(parts[i][1]))
        name, rows = parts[longest]
        pieces = _split(rows, name.count(".") + 1)
        if len(pieces) < 2 or (len(parts) >= ENOUGH and len(rows) <= len(inner) / 2):
            break
        parts[longest : longest + 1] = pieces
    step = math.ceil(len(parts) / AT_MOST)
    return {rows[0][0]: name for name, rows in parts[::step]}


def _split(rows: _Rows, depth: int) -> list[tuple[str, _Rows]]:
    """Runs of layers, and the first names that the paths of each share: more than `depth` names.

    One run where the layers share all their names.
    """
    deepest = max(layer.count(".") + 1 for _, layer in rows)
    runs: list[tuple[str, _Rows]] = []
    for names in range(depth + 1, max(deepest, depth + 1) + 1):
        by_name = groupby(rows, lambda row: ".".join(row[1].split(".")[:names]))  # noqa: B023
        runs = [(name, list(run)) for name, run in by_name]
        if len(runs) > 1:
            break
    return runs


def short(path: str) -> str:
    """The end of a path that is too long for an axis."""
    names = path.split(".")
    while len(names) > 1 and len(".".join(names)) > LONGEST:
        names.pop(0)
    text = ".".join(names)
    return text if len(text) <= LONGEST else "…" + text[1 - LONGEST :]


def domain(lines: "Sequence[Line]", log: bool) -> tuple[float, float]:
    """What a vertical axis spans: on a log axis whole decades, else from zero or below."""
    values = [
        float(number)
        for line in lines
        for number in line.values
        if number is not None and drawable(number, log)
    ]
    if not log:
        low, high = min([0.0, *values]), max([0.0, *values])
        return low, high * 1.05 if high > low else low + 1.0
    if not values:
        return 0.1, 10.0
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def drawable(number: float, log: bool) -> bool:
    """Whether a number has a place on the axis."""
    return math.isfinite(number) and (number > 0 or not log)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten for the ticks of a log axis, seven or so."""
    first, last = round(math.log10(low)), round(math.log10(high))
    step = math.ceil((last - first) / TICKS) or 1
    return [10.0**power for power in range(first, last + 1, step)]


def number(value: float | None, percent: bool = False) -> str:
    """A number for a tooltip: «0.0123», «95.7 %», «—» where there is none."""
    if value is None:
        return "—"
    return f"{100 * value:.1f} %" if percent else f"{value:.4g}"
