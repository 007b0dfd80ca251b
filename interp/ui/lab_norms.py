"""Before and after along the network in the Hook lab: norms of values and of gradients."""

from collections.abc import Mapping, Sequence
from math import isfinite, log

import streamlit as st

from interp.inspection.experiment import Experiment, LayerNorm
from interp.ui import charts, state

CONTEXT = 4  # unchanged layers that are shown before the first that differs, or after the last
SHOW = "show"
WAYS = {"": "Before and after", "ratio": "After ÷ before"}


def norms(experiment: Experiment, marks: Mapping[str, str]) -> None:
    """How large values and gradients are at the layers where the hooks change them.

    Parameters
    ----------
    marks : mapping
        Sentences of the live hooks, by the layers they sit on.
    """
    values, gradients = experiment.norms, experiment.gradient_norms
    if any(row.before != row.after for row in (*values, *gradients)):
        _choose_way()
    with st.container(key="lab values"):
        st.markdown("**Values downstream**")
        _chart(
            _differing(values, marks, downstream=True),
            len(values),
            "Everything after a changed layer is computed from what that layer handed on.",
            "Norm of the output (L2)",
            "lab norms",
            marks,
        )
    with st.container(key="lab gradients"):
        st.markdown("**Gradients upstream**")
        _chart(
            _differing(gradients, marks, downstream=False),
            len(gradients),
            "Backward runs from right to left: a change at one layer reaches those to its left.",
            "Norm of the gradient at the output (L2)",
            "lab gradient norms",
            marks,
        )


def _choose_way() -> None:
    st.session_state["lab show"] = state.choice(SHOW)
    st.segmented_control(
        "Along the network",
        list(WAYS),
        format_func=WAYS.__getitem__,
        required=True,
        key="lab show",
        on_change=lambda: state.change(**{SHOW: st.session_state["lab show"]}),
        help="Small changes hide between two lines: their quotient shows them. 1 is no change.",
    )


def _differing(
    rows: Sequence[LayerNorm], marks: Mapping[str, str], *, downstream: bool
) -> Sequence[LayerNorm]:
    """The rows from the first hook or change on, and a few before; for gradients, up to the last.

    Empty where no row differs.
    """
    changed = {row.path for row in rows if row.before != row.after}
    places = [place for place, row in enumerate(rows) if row.path in changed | set(marks)]
    if not changed:
        return ()
    if downstream:
        return rows[max(0, places[0] - CONTEXT) :]
    return rows[: places[-1] + 1 + CONTEXT]


def _most(changed: Sequence[LayerNorm]) -> str:
    """Where the norm is 0 now, or else changes by the largest factor; empty where neither is."""
    gone = sum(row.after == 0 for row in changed)
    if gone:
        return f", and at {gone} it is 0 now: nothing arrives there"
    factors = {row.path: row.after / row.before for row in changed if row.before}
    finite = {path: factor for path, factor in factors.items() if isfinite(factor)}
    if not finite:
        return ""
    path, factor = max(finite.items(), key=lambda item: abs(log(item[1])))
    near = f"{100 * (factor - 1):+.2g} %".replace("-", "−")
    change = near if abs(factor - 1) < 0.2 else f"{factor:.3g} × before"
    return f", most of all `{path}`: {change}"


def _chart(
    rows: Sequence[LayerNorm],
    total: int,
    sentence: str,
    value: str,
    key: str,
    marks: Mapping[str, str],
) -> None:
    if not rows:
        st.caption(f"The same norm at all {total} layers, with and without the hooks.")
        return
    changed = [row for row in rows if row.before != row.after]
    st.caption(f"{sentence} {len(changed)} of {total} layers differ{_most(changed)}.")
    ratio = state.choice(SHOW) == "ratio"
    lines = [
        charts.Line("before", [row.before for row in rows]),
        charts.Line("after", [row.after for row in rows], dashed=True),
    ]
    quotients = [row.after / row.before if row.before else None for row in rows]
    charts.depth_lines(
        [row.path for row in rows],
        [charts.Line("after ÷ before", quotients)] if ratio else lines,
        value="After ÷ before" if ratio else value,
        key=key,
        alt=f"{value} of {len(rows)} layers before and after; {len(changed)} differ, from "
        f"{changed[0].path} to {changed[-1].path}.",
        log=not ratio,
        marks=marks,
        height=280,
    )
