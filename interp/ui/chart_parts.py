"""What several charts are made of: their points, their columns, and how they come to the page."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair
import pandas
import streamlit as st

from interp.ui import depth_axis

GUIDE = "#8a949c"  # read on the light and on the dark ground
Chart = altair.Chart | altair.LayerChart | altair.FacetChart
# The tooltip stands at the end of the page, outside of every chart.
_TOOLTIP = (
    "<style>#vg-tooltip-element td.value{font-family:ui-monospace,Menlo,Consolas,monospace;"
    "max-width:22rem;overflow-wrap:anywhere;white-space:normal}</style>"
)


@dataclass(frozen=True)
class Line:
    """A line of a chart: a value for each layer, None where the layer has none."""

    name: str
    values: Sequence[float | None]
    dashed: bool = False


def chart_of(rows: Sequence[Mapping[str, Any]]) -> altair.Chart:
    """A chart of these rows: as a frame, which is not checked value by value as a list would be."""
    return altair.Chart(pandas.DataFrame(list(rows)))


def points(
    layers: Sequence[str], lines: Sequence[Line], log: bool, domain: tuple[float, float]
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """What is drawn at its value, and what has none on the axis and is drawn at an edge."""
    drawn: list[dict[str, Any]] = []
    edges: dict[str, list[dict[str, Any]]] = {"triangle-down": [], "triangle-up": []}
    for line in lines:
        for place, (layer, number) in enumerate(zip(layers, line.values, strict=True)):
            if number is None:
                continue
            row = {"place": place, "layer": layer, "line": line.name, "value": float(number)}
            if not math.isfinite(number):
                edges["triangle-up"].append(row | {"value": domain[1]})
            elif log and number <= 0:
                edges["triangle-down"].append(row | {"value": domain[0]})
            drawn.append(row if depth_axis.drawable(number, log) else row | {"value": None})
    return drawn, {shape: rows for shape, rows in edges.items() if rows}


def value_axis(log: bool, domain: tuple[float, float]) -> altair.Axis:
    """The vertical axis of a domain: powers of ten where it is a log axis."""
    if not log:
        return altair.Axis(format=".3~g", tickCount=6)
    ticks = depth_axis.decades(*domain)
    return altair.Axis(values=ticks, format=".0e" if min(ticks) < 1e-3 else "~g")


def columns(
    layers: Sequence[str],
    shown: Mapping[str, Sequence[str]],
    key: str,
    marks: Mapping[str, str],
    selected: str,
) -> list[Any]:
    """Unseen columns over the whole height: wherever the pointer is, it is over one layer."""
    now = turn(key)
    rows: list[dict[str, Any]] = [
        {"place": place, "layer": layer, "turn": now, "note": marks.get(layer, "")}
        | {f"t{i}": texts[place] for i, texts in enumerate(shown.values())}
        for place, layer in enumerate(layers)
    ]
    charts: list[Any] = []
    for row in rows:
        if row["layer"] == selected:
            rule = chart_of([row])
            rule = rule.mark_rule(color=GUIDE, strokeWidth=1.5, strokeDash=[2, 2])
            charts.append(rule.encode(x=depth_axis.x(layers)))
    tooltip = [altair.Tooltip("layer:N", title="layer")]
    tooltip += [altair.Tooltip(f"t{i}:N", title=name) for i, name in enumerate(shown)]
    note = altair.Tooltip("note:N", title="note")
    for part, more in ((False, []), (True, [note])):
        if chosen := [row for row in rows if bool(row["note"]) == part]:
            over = chart_of(chosen).transform_calculate(
                left="datum.place - 0.5", right="datum.place + 0.5"
            )
            charts.append(
                over.mark_rect(color=GUIDE, cursor="pointer").encode(
                    x=depth_axis.x(layers, "left"),
                    x2="right:Q",
                    opacity=altair.condition(_over(), altair.value(0.16), altair.value(0)),
                    tooltip=tooltip + more,
                )
            )
    return charts


def _over() -> altair.Parameter:
    return altair.selection_point(
        name="over", fields=["layer"], on="pointerover", clear="pointerout", empty=False
    )


def show(
    chart: Chart,
    key: str,
    alt: str,
    height: int,
    on_pick: Callable[[str], None] | None,
    field: str,
    offered: Sequence[str],
) -> None:
    """Put a chart on the page; a click gives `on_pick` the clicked row's `field`, once."""
    st.html(_TOOLTIP)
    if isinstance(chart, altair.LayerChart):
        chart = chart.add_params(_over())
    chart = chart.properties(height=height)
    if on_pick is None:
        with st.container(key=key):  # a chart that tells no clicks has no class of its own
            st.altair_chart(chart, alt=alt, width="stretch")
        return
    # With the turn a second click on the same layer is another selection, which Streamlit tells.
    pick = altair.selection_point(name="pick", fields=[field, "turn"], on="click", toggle=False)

    def picked() -> None:
        chosen = st.session_state[key]["selection"]["pick"]
        st.session_state[_counter(key)] = int(turn(key)) + 1
        if chosen and chosen[0][field] in offered:
            on_pick(chosen[0][field])

    st.altair_chart(
        chart.add_params(pick),
        key=key,
        alt=alt,
        width="stretch",
        on_select=picked,
        selection_mode="pick",
    )


def turn(key: str) -> str:
    """How many clicks in a chart have been answered in this session, as a text for its rows."""
    return str(st.session_state.get(_counter(key), 0))


def _counter(key: str) -> str:
    return f"{key}.turn"
