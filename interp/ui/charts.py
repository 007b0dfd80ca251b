"""Charts along the depth of a network, histograms and scatters, in the theme of the dashboard."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
import streamlit as st

from interp.ui import depth_axis
from interp.ui.chart_parts import (
    GUIDE,
    Chart,
    Line,
    chart_of,
    columns,
    points,
    show,
    turn,
    value_axis,
)

__all__ = ["Line", "depth_bars", "depth_lines", "histogram", "scatter"]

BINS = 60
MARKED = "#d1495b"  # read on the light and on the dark ground


def depth_lines(
    layers: Sequence[str],
    lines: Sequence[Line],
    *,
    value: str,
    key: str,
    alt: str,
    log: bool = True,
    marks: Mapping[str, str] | None = None,
    selected: str = "",
    on_pick: Callable[[str], None] | None = None,
    height: int = 340,
) -> None:
    """One point a layer along depth; hovering shows its path and numbers, a click picks it.

    Parameters
    ----------
    layers : paths in the order in which the layers ran.
    lines : one to three or so, each with as many values as there are layers. A value of None is
        left out. Zero on a log axis, and what is not finite, has a sign at the edge and breaks the
        line.
    value : title of the vertical axis, with the unit.
    key : names the chart in the session and, as `st-key-KEY`, in the page.
    alt : the chart in words.
    marks : layer to the sentence in its tooltip; such layers have a symbol.
    selected : the layer at which a vertical rule stands.
    on_pick : called once with the layer that was clicked, before the script runs.
    """
    marks = marks or {}
    low, high = depth_axis.domain(lines, log)
    drawn, edges = points(layers, lines, log, (low, high))
    scale = altair.Scale(type="log" if log else "linear", domain=[low, high], nice=False)
    y = altair.Y("value:Q", title=value, scale=scale, axis=value_axis(log, (low, high)))
    x = depth_axis.x(layers)
    names = [line.name for line in lines]
    dashes = altair.Scale(domain=names, range=[[5, 4] if line.dashed else [1, 0] for line in lines])
    legend = altair.Legend(title=None, orient="top", symbolType="stroke") if names[1:] else None
    colour = altair.Color("line:N", scale=altair.Scale(domain=names), legend=legend)
    dash = altair.StrokeDash("line:N", scale=dashes, legend=legend)
    base = chart_of(drawn).encode(x=x, y=y, color=colour)
    layer = [
        base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        base.mark_point(filled=True, size=22, opacity=0.9),
    ]
    for shape, rows in edges.items():
        data = chart_of(rows).encode(x=x, y=y, color=colour)
        layer.append(data.mark_point(shape=shape, size=46, strokeWidth=1.5))
    every = [row for rows in (drawn, *edges.values()) for row in rows if row["line"] == names[0]]
    marked = [row for row in every if row["layer"] in marks and row["value"] is not None]
    if marked:
        sign = chart_of(marked).encode(x=x, y=y)
        layer.append(sign.mark_point(shape="diamond", size=130, strokeWidth=2, color=MARKED))
    shown = {line.name: [depth_axis.number(v) for v in line.values] for line in lines}
    layer += columns(layers, shown, key, marks, selected)
    show(altair.layer(*layer), key, alt, height, on_pick, "layer", layers)


def depth_bars(
    layers: Sequence[str],
    values: Sequence[float | None],
    *,
    value: str,
    key: str,
    alt: str,
    on_pick: Callable[[str], None] | None = None,
    percent: bool = False,
    selected: str = "",
    height: int = 260,
) -> None:
    """One bar a layer along depth, from zero; `percent` is for shares from 0 to 1.

    The other parameters are those of `depth_lines`.
    """
    rows = [
        {"place": place, "layer": layer, "value": float(number)}
        for place, (layer, number) in enumerate(zip(layers, values, strict=True))
        if number is not None and math.isfinite(number)
    ]
    axis = altair.Axis(format="%" if percent else "~s", tickCount=5)
    bars = (
        chart_of(rows)
        .transform_calculate(left="datum.place - 0.38", right="datum.place + 0.38")
        .mark_bar()
        .encode(
            x=depth_axis.x(layers, "left"),
            x2="right:Q",
            y=altair.Y("value:Q", title=value, axis=axis, scale=altair.Scale(zero=True)),
            y2=altair.datum(0),
        )
    )
    shown = {value: [depth_axis.number(v, percent) for v in values]}
    chart = altair.layer(bars, *columns(layers, shown, key, {}, selected))
    show(chart, key, alt, height, on_pick, "layer", layers)


def histogram(
    series: Mapping[str, npt.NDArray[Any]],
    *,
    value: str,
    key: str,
    alt: str,
    log_count: bool = False,
    height: int = 220,
) -> None:
    """How often values occur: the series share one range and its bins.

    Parameters
    ----------
    series : name to values of any shape; those that are not finite are left out, and said so.
    value : title of the horizontal axis, with the unit.
    log_count : whether the counts stand on a log axis, so that rare values are seen.
    """
    finite = {name: values[np.isfinite(values)].ravel() for name, values in series.items()}
    left_out = sum(values.size for values in series.values()) - sum(map(len, finite.values()))
    every = np.concatenate([np.zeros(0), *finite.values()])
    edges = np.histogram_bin_edges(every.astype(np.float64), BINS)
    rows: list[dict[str, Any]] = [
        {"series": name, "from": float(low), "to": float(high), "count": int(count)}
        for name, values in finite.items()
        for low, high, count in zip(
            edges, edges[1:], np.histogram(values.astype(np.float64), edges)[0], strict=False
        )
        if count
    ]
    legend = altair.Legend(title=None, orient="top") if len(series) > 1 else None
    tallest = max((row["count"] for row in rows), default=1)
    scale = (
        altair.Scale(type="log", domain=[0.5, 2 * tallest], nice=False)
        if log_count
        else altair.Scale(domain=[0, tallest])
    )
    across = altair.Scale(domain=[float(edges[0]), float(edges[-1])], nice=False, zero=False)
    ticks = [10**power for power in range(math.ceil(math.log10(2 * tallest)))]
    axis = altair.Axis(format="~s", values=ticks) if log_count else altair.Axis(format="~s")
    numbers = altair.Axis(format=".3~g", tickCount=5, labelFlush=True)
    tooltip = [
        altair.Tooltip("series:N", title="of"),
        altair.Tooltip("from:Q", format=".3~g"),
        altair.Tooltip("to:Q", format=".3~g"),
        altair.Tooltip("count:Q", format=",", title="values"),
    ]
    chart = (
        chart_of(rows)
        .mark_bar(opacity=0.6 if len(series) > 1 else 0.9, binSpacing=0)
        .encode(
            x=altair.X("from:Q", title=value, bin="binned", axis=numbers, scale=across),
            x2="to:Q",
            y=altair.Y("count:Q", title="values in the bin", scale=scale, axis=axis, stack=None),
            y2=altair.datum(0.5 if log_count else 0),
            color=altair.Color("series:N", scale=altair.Scale(domain=list(series)), legend=legend),
            tooltip=tooltip,
        )
    )
    show(chart, key, alt, height, None, "series", ())
    if left_out:
        st.caption(f"{left_out} values are not finite numbers and are not drawn.")


def scatter(
    x: Sequence[float] | npt.NDArray[Any],
    y: Sequence[float] | npt.NDArray[Any],
    labels: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    key: str,
    alt: str,
    on_pick: Callable[[str], None] | None = None,
    diagonal: bool = False,
    height: int = 360,
) -> None:
    """A point for each label, with both numbers in its tooltip; a click picks its label.

    Titles name the unit. Points that are not finite are left out. `diagonal` draws the line on
    which both numbers are equal, where it crosses the points' range.
    """
    now = turn(key)
    rows: list[dict[str, Any]] = [
        {"x": float(a), "y": float(b), "label": label, "turn": now}
        for a, b, label in zip(x, y, labels, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]
    axis = altair.Axis(format=".3~g", tickCount=6)
    across, up = (_around(row[name] for row in rows) for name in ("x", "y"))
    place = {
        "x": altair.X("x:Q", title=x_title, axis=axis, scale=across),
        "y": altair.Y("y:Q", title=y_title, axis=axis, scale=up),
    }
    chart: Chart = (
        chart_of(rows)
        .mark_circle(size=46, opacity=0.65, cursor="pointer" if on_pick else "default")
        .encode(
            **place,
            tooltip=[
                altair.Tooltip("label:N", title=" "),
                altair.Tooltip("x:Q", title=x_title, format=".3~g"),
                altair.Tooltip("y:Q", title=y_title, format=".3~g"),
            ],
        )
    )
    low, high = max(across.domain[0], up.domain[0]), min(across.domain[1], up.domain[1])
    if diagonal and low < high:
        ends = chart_of([{"x": low, "y": low}, {"x": high, "y": high}])
        line = ends.mark_line(color=GUIDE, strokeWidth=1.5, strokeDash=[4, 4])
        chart = altair.layer(line.encode(**place), chart)
    show(chart, key, alt, height, on_pick, "label", labels)


def _around(values: Iterable[float]) -> altair.Scale:
    """A scale over all values and a little more; known here, the browser has none to search for."""
    known = list(values) or [0.0]
    low, high = min(known), max(known)
    margin = 0.04 * (high - low) or abs(high) or 1.0
    return altair.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
