"""A lesson on the screen: its code, what it printed, and the values travelling."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isinf
from typing import Any

import streamlit as st

from interp.hooks.ledger import HookLedger
from interp.lessons.base import Choice, Lesson, Run, run
from interp.lessons.catalog import GROUPS, LESSONS
from interp.lessons.drawing import Bars, Drawing, Flow
from interp.lessons.program import program
from interp.ui import charts, runs
from interp.ui.components import component
from interp.ui.kinds import KIND_TITLES
from interp.ui.lesson_code import pieces
from interp.ui.picks import answer, answered


@st.cache_resource(scope="session", max_entries=24, show_spinner=False)
def lesson_run(number: int, choices: tuple[tuple[str, Choice], ...], again: int) -> Run:
    """One run of a lesson; `again` counts how often a new one was asked for.

    Raises
    ------
    InterpError
        If what the lesson needs, such as the bundled weights, cannot be had.
    """
    lesson = LESSONS[number - 1]
    result = run(lesson.function, **dict(choices))
    runs.note(f"Lesson {number}: {lesson.title}", result.ledger)
    return result


def lesson_view(
    lesson: Lesson, result: Run, chosen: Mapping[str, Choice] | None = None, *, key: str
) -> None:
    """Show a lesson's source with the hooked lines marked, its output and its drawing.

    Parameters
    ----------
    lesson : Lesson
    result : Run
        A run of its function.
    chosen : mapping, optional
        The values of its parameters in that run; what is left out is its default.
    key : str
        Names the view in the session.
    """
    drawing = lesson.drawing(result.values)
    data = {
        "program": program(lesson, chosen),
        "lines": pieces(lesson.source),
        "marks": {str(line): kind for line, kind in result.lines.items()},
        "kinds": KIND_TITLES,
        "printed": result.printed,
        "seconds": result.seconds,
        "hooks": recorded_hooks(result.ledger),
        "left": leaked(result.ledger),
        "drawing": _drawing(drawing),
    }
    component("lesson")(key=key, data=data)


def depth_chart(result: Run, *, key: str) -> None:
    """The gradient's norm at each layer of the network of lesson 12."""
    norms: Mapping[int, float] = result.values["norms"]
    layers = [f"net.{place}" for place in norms]
    first, *_, last = norms.values()
    st.markdown("**Norm of the gradient at each layer's output**, log scale, no unit")
    charts.depth_lines(
        layers,
        [charts.Line("gradient norm", list(norms.values()))],
        value="norm of the gradient",
        key=key,
        alt=f"Gradient norm by depth: {first:.2e} at the first layer, {last:.2e} at the last.",
        height=260,
    )
    overflow = " A mark at the upper edge is more than float32 can hold." if isinf(first) else ""
    st.caption(
        "Left is the first layer. Backward runs from right to left: a line that falls to the left "
        "is a gradient that vanishes, one that rises to the left explodes." + overflow
    )


def lesson_list(
    number: int, done: Sequence[int], *, key: str, on_pick: Callable[[int], None]
) -> None:
    """All lessons by number and title, with a sign at those whose exercise was answered.

    A narrow place shows them as one control that opens.

    Parameters
    ----------
    number : of the lesson that is shown.
    done : numbers of those that are done.
    key : names the list in the session.
    on_pick : called with the number picked, before the script runs.
    """
    groups = [
        {
            "title": title,
            "lessons": [{"number": one.number, "title": one.title} for one in lessons],
        }
        for title, lessons in GROUPS
    ]
    data = {"groups": groups, "number": number, "done": list(done), "answered": answered(key)}
    picked = answer(key, [lesson.number for lesson in LESSONS], on_pick)
    component("lesson_list")(key=key, data=data, on_picked_change=picked)


def recorded_hooks(ledger: HookLedger) -> list[dict[str, Any]]:
    """What the ledger says of each hook, in the order of registration."""
    changed = Counter(event.hook for event in ledger.events if event.what == "changed")
    return [
        {
            "kind": record.kind,
            "path": record.path or record.class_name,
            "fires": record.fires,
            "changed": changed[record.id],
            "status": record.status,
        }
        for record in ledger.records
    ]


def leaked(ledger: HookLedger) -> int:
    """How many hooks the code itself never removed."""
    return sum(record.status == "leaked" for record in ledger.records)


def _drawing(drawing: Drawing | None) -> dict[str, Any] | None:
    if drawing is None:
        return None
    shape = "flow" if isinstance(drawing, Flow) else "bars"
    return {"shape": shape, "alt": describe(drawing), **asdict(drawing)}


def describe(drawing: Drawing) -> str:
    """A drawing in words."""
    if isinstance(drawing, Bars):
        return "; ".join(f"{bar.name}: {bar.text}" for bar in drawing.bars)
    words = []
    for node in drawing.nodes:
        said = [node.value] if node.value else []
        said += [f"gradient {node.gradient}"] if node.gradient else []
        words.append(f"{node.name} ({', '.join(said)})" if said else node.name)
    hooks = [
        f"{KIND_TITLES[mark.kind]} at {drawing.nodes[mark.at].name}: {mark.text}"
        for mark in drawing.marks
    ]
    return "; ".join([" to ".join(words), *hooks])
