"""What the charts give the browser: points, edges, axes, tooltips; and how a click comes back."""

import json
import math

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from interp.ui import charts, depth_axis
from interp.ui.charts import Line, depth_bars, depth_lines, histogram, scatter

LAYERS = ["stem", "body.0", "body.1", "head"]


@pytest.fixture
def drawn(monkeypatch):
    """Everything that was given to `st.altair_chart`: the specification and the options."""
    calls = []

    def keep(chart, **options):
        calls.append((json.loads(chart.to_json()), options))

    monkeypatch.setattr(st, "altair_chart", keep)
    return calls


def rows(spec, mark, **wanted):
    """The values of all layers of a chart drawn with a mark, as (x or place, value)."""
    found = []
    for layer in spec.get("layer", [spec]):
        if layer["mark"]["type"] != mark or any(
            layer["mark"].get(k) != v for k, v in wanted.items()
        ):
            continue
        data = layer.get("data") or spec["data"]
        found += spec["datasets"][data["name"]]
    return found


def lines(*values, **options):
    depth_lines(
        LAYERS,
        [Line(f"run {i}", list(v), dashed=i > 0) for i, v in enumerate(values)],
        **{"value": "norm (unit)", "key": "k", "alt": "in words", **options},
    )


def test_a_point_for_each_layer_in_the_order_given(drawn):
    lines([1.0, 0.1, 0.01, 10.0])
    ((spec, options),) = drawn
    assert [(r["layer"], r["value"]) for r in rows(spec, "line")] == [
        ("stem", 1.0),
        ("body.0", 0.1),
        ("body.1", 0.01),
        ("head", 10.0),
    ]
    assert [r["place"] for r in rows(spec, "line")] == [0, 1, 2, 3]
    assert options["alt"] == "in words"
    y = spec["layer"][0]["encoding"]["y"]
    assert y["title"] == "norm (unit)"
    assert y["scale"]["type"] == "log"
    assert y["scale"]["domain"] == [0.01, 10.0]


def test_zero_on_a_log_axis_breaks_the_line_and_has_a_sign_at_the_edge(drawn):
    lines([1.0, 0.0, math.inf, 100.0])
    ((spec, _),) = drawn
    assert [r["value"] for r in rows(spec, "line")] == [1.0, None, None, 100.0]
    (zero,) = rows(spec, "point", shape="triangle-down")
    (infinite,) = rows(spec, "point", shape="triangle-up")
    assert (zero["layer"], zero["value"]) == ("body.0", 1.0)  # the lowest of the axis
    assert (infinite["layer"], infinite["value"]) == ("body.1", 100.0)
    shown = {r["layer"]: r["t0"] for r in rows(spec, "rect")}
    assert (shown["body.0"], shown["body.1"]) == ("0", "inf")


def test_nothing_at_all_to_draw_is_no_error(drawn):
    lines([None] * 4)
    lines([0.0] * 4)
    lines([math.nan] * 4, log=False)
    assert [rows(spec, "line") and 1 for spec, _ in drawn] == [[], 1, 1]


def test_a_linear_axis_keeps_zero_and_negative_values(drawn):
    lines([1.0, 0.0, -2.0, None], log=False)
    ((spec, _),) = drawn
    assert [r["value"] for r in rows(spec, "line")] == [1.0, 0.0, -2.0]
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low == -2.0
    assert high > 1.0


def test_numpy_numbers_and_none_are_taken(drawn):
    lines(np.array([1, 2, 3, 4], np.float32), [None, np.float32(2), None, 4.0])
    ((spec, _),) = drawn
    second = [r for r in rows(spec, "line") if r["line"] == "run 1"]
    assert [(r["place"], r["value"]) for r in second] == [(1, 2.0), (3, 4.0)]
    shown = [(r["t0"], r["t1"]) for r in rows(spec, "rect")]
    assert shown == [("1", "—"), ("2", "2"), ("3", "—"), ("4", "4")]


def test_marks_have_a_sign_and_their_sentence(drawn):
    lines([1.0, 0.0, 1.0, 1.0], marks={"body.0": "It vanishes."})
    ((spec, _),) = drawn
    (sign,) = rows(spec, "point", shape="diamond")
    assert sign["layer"] == "body.0"
    noted = [layer for layer in spec["layer"] if "note" in json.dumps(layer.get("encoding", {}))]
    assert len(noted) == 1
    assert {r["note"] for r in rows(spec, "rect")} == {"", "It vanishes."}


def test_the_selected_layer_has_a_rule(drawn):
    lines([1.0] * 4, selected="body.1")
    lines([1.0] * 4)
    (first, _), (second, _) = drawn
    assert [r["place"] for r in rows(first, "rule")] == [2]
    assert rows(second, "rule") == []


def test_bars_stand_on_zero_and_tell_percentages(drawn):
    depth_bars(LAYERS, [0.125, None, 0.0, 1.0], value="zeros", key="k", alt="a", percent=True)
    ((spec, _),) = drawn
    assert [(r["place"], r["value"]) for r in rows(spec, "bar")] == [(0, 0.125), (2, 0.0), (3, 1.0)]
    assert spec["layer"][0]["encoding"]["y2"] == {"datum": 0}
    assert [r["t0"] for r in rows(spec, "rect")] == ["12.5 %", "—", "0.0 %", "100.0 %"]


def test_histogram_counts_every_finite_value_once(drawn):
    values = np.array([[-1.0, 0.0, 0.0], [1.0, np.inf, np.nan]], np.float32)
    more = np.linspace(0, 3, 100)
    histogram({"a": values, "b": more}, value="v", key="k", alt="a")
    ((spec, _),) = drawn
    found = rows(spec, "bar")
    assert sum(r["count"] for r in found if r["series"] == "a") == 4
    assert sum(r["count"] for r in found if r["series"] == "b") == 100
    assert min(r["from"] for r in found) == -1.0
    assert max(r["to"] for r in found) == 3.0
    zero = next(r for r in found if r["series"] == "a" and r["count"] == 2)
    assert zero["from"] <= 0.0 < zero["to"]


@pytest.mark.parametrize("values", [np.zeros(5), np.array([]), np.array([np.nan]), np.ones((2, 2))])
def test_histogram_of_little(drawn, values):
    histogram({"a": values}, value="v", key="k", alt="a", log_count=True)
    ((spec, _),) = drawn
    assert sum(r["count"] for r in rows(spec, "bar")) == np.isfinite(values).sum()


def test_scatter_leaves_out_what_is_not_finite(drawn):
    scatter([1, 2, np.nan], [0.5, 1, 1], list("abc"), x_title="x", y_title="y", key="k", alt="a")
    ((spec, _),) = drawn
    assert [(r["label"], r["x"], r["y"]) for r in rows(spec, "circle")] == [
        ("a", 1.0, 0.5),
        ("b", 2.0, 1.0),
    ]
    (low, high) = spec["encoding"]["x"]["scale"]["domain"]
    assert low < 1.0
    assert high > 2.0


def page():
    import streamlit as st

    from interp.ui.charts import Line, depth_lines

    st.session_state.setdefault("picks", [])
    depth_lines(
        ["a", "b"],
        [Line("one", [1.0, 2.0])],
        value="v",
        key="chart",
        alt="a",
        on_pick=st.session_state["picks"].append,
    )
    st.write(st.session_state["picks"])


def test_a_click_is_told_once_and_each_turn_is_another_selection(monkeypatch):
    given = {}
    real = st.altair_chart

    def keep(chart, **options):
        given.update(options, spec=json.loads(chart.to_json()))
        return real(chart, **options)

    monkeypatch.setattr(st, "altair_chart", keep)
    at = AppTest.from_function(page).run()
    assert not at.exception
    assert given["selection_mode"] == "pick"
    assert {r["turn"] for r in rows(given["spec"], "rect")} == {"0"}

    picks, session = [], {}
    monkeypatch.setattr(charts.st, "session_state", session)
    depth_lines(
        ["a", "b"],
        [Line("one", [1.0, 2.0])],
        value="v",
        key="own",
        alt="a",
        on_pick=picks.append,
    )
    for chosen, expected in (([{"layer": "b", "turn": 0}], ["b"]), ([], ["b"])):
        session["own"] = {"selection": {"pick": chosen}}
        given["on_select"]()
        assert picks == expected
    session["own"] = {"selection": {"pick": [{"layer": "gone", "turn": 1}]}}
    given["on_select"]()
    assert picks == ["b"]
    assert session["own.turn"] == 3


def test_names_on_the_axis_are_few_and_where_parts_begin():
    inside = [f"features.{i}.{j}" for i in range(9) for j in range(6)]
    names = [*inside, "features", "avgpool", "classifier.0", "classifier"]
    expected = {6 * i: f"features.{i}" for i in range(9)}
    assert depth_axis.ticks(names) == expected | {55: "avgpool", 56: "classifier"}


def test_a_few_layers_are_all_named():
    assert depth_axis.ticks(["b", "a"]) == {0: "b", 1: "a"}
    assert depth_axis.ticks([]) == {}


def test_a_long_chain_is_thinned():
    names = [f"layers.{i}" for i in range(100)]
    ticks = depth_axis.ticks(names)
    assert 2 < len(ticks) <= depth_axis.AT_MOST
    assert list(ticks) == sorted(ticks)


def test_short_names_keep_the_end():
    assert depth_axis.short("features.3") == "features.3"
    assert depth_axis.short("encoder.layers.encoder_layer_3") == "encoder_layer_3"
    assert depth_axis.short("a_very_long_name_of_one_module") == "…e_of_one_module"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 30.0], (1.0, 100.0)),
        ([1.0], (1.0, 10.0)),
        ([0.0, None, math.inf], (0.1, 10.0)),
        ([1e-30, 1e30], (1e-30, 1e30)),
    ],
)
def test_a_log_axis_spans_whole_decades(values, expected):
    assert depth_axis.domain([Line("a", values)], log=True) == pytest.approx(expected)
    assert len(depth_axis.decades(*expected)) <= depth_axis.TICKS + 1


def test_the_diagonal_of_a_scatter_spans_what_both_axes_share(drawn):
    scatter(
        [0.0, 1.0], [0.5, 4.0], ["a", "b"], x_title="x", y_title="y", key="k", alt="", diagonal=True
    )
    ((spec, _),) = drawn
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["line", "circle"]
    ends = [(row["x"], row["y"]) for row in rows(spec, "line")]
    assert ends == [pytest.approx((0.36, 0.36)), pytest.approx((1.04, 1.04))]
    assert {layer["encoding"]["x"]["title"] for layer in spec["layer"]} == {"x"}
