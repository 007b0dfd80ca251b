"""What «Copy» gives: a program that runs elsewhere, and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fresh_process import printed_by

from interp.lessons.base import Choice, Lesson, run
from interp.lessons.catalog import LESSONS
from interp.lessons.program import program

# One process for all, since torch takes seconds; but each finds only what Python itself brings.
ALL = """
import pathlib, runpy, sys
path = list(sys.path)
for file in sorted(pathlib.Path.cwd().glob("lesson*.py")):
    sys.path[:] = path
    for name in [name for name in sys.modules if name.partition(".")[0] == "interp"]:
        del sys.modules[name]
    print(f"== {file.stem}")
    runpy.run_path(str(file), run_name="__main__")
"""


def steady(printed: str) -> str:
    """What a lesson prints without the times, which no two runs share."""
    return re.sub(r"\d+\.\d+ × without", "t × without", printed)


def test_each_runs_from_any_folder_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    for lesson in LESSONS:
        file = tmp_path / f"lesson{lesson.number:02}.py"
        file.write_text(program(lesson), encoding="utf-8")

    printed = re.split(r"== lesson\d\d\n", printed_by(ALL, tmp_path))[1:]

    assert len(printed) == len(LESSONS)
    for lesson, text in zip(LESSONS, printed, strict=True):
        assert steady(text) == steady(run(lesson.function).printed), lesson.title


@pytest.mark.parametrize(
    ("number", "choices"),
    [
        (5, {"in_place": True}),
        (8, {"what": "full backward pre-hook"}),
        (11, {"where": "layer4"}),
    ],
)
def test_it_calls_the_lesson_with_what_was_chosen(
    tmp_path: Path, number: int, choices: dict[str, Choice]
) -> None:
    lesson = LESSONS[number - 1]

    printed = printed_by(program(lesson, choices), tmp_path)

    assert printed == run(lesson.function, **choices).printed
    assert printed != run(lesson.function).printed


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: str(lesson.number))
def test_it_holds_the_source_that_is_shown_and_only_public_names(lesson: Lesson) -> None:
    text = program(lesson)

    assert text.startswith(f"# Lesson {lesson.number}: {lesson.title}\n")
    assert lesson.source in text
    assert set(re.findall(r"from (interp[.\w]*)", text)) <= {"interp", "interp.lessons.recording"}
