"""Exercises: each right answer, wrong ones, and what cannot be read."""

from typing import Literal

import pytest

from interp.errors import HookError
from interp.lessons.base import Lesson
from interp.lessons.catalog import LESSONS
from interp.lessons.exercises import Exercise, check

# Worked out by hand.
RIGHT = {
    1: "50, 100",
    2: "[9 18]",
    3: "2",
    4: "18, 30",
    5: "a.grad and b.grad are both doubled",
    6: "No, the bias is not halved",
    7: "(3, 2)",
    8: "Neither x.grad nor weight.grad",
    9: "B, then A",
    10: "15",
    11: "1 × 128 × 28 × 28",
    12: "he",
    13: "0",
    14: "3",
    15: "1",
    16: "It shrinks",
    17: "4",
    18: "[1, 0]",
}


def asked(kind: Literal["numbers", "shape"], answer: tuple[float, ...]) -> Exercise:
    return Exercise("?", kind, lambda: answer, "because", "look again", "6, 12")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: str(lesson.number))
def test_the_right_answer_is_accepted_and_explained(lesson: Lesson) -> None:
    verdict = check(lesson.exercise, RIGHT[lesson.number])
    assert verdict.right
    assert verdict.text == lesson.exercise.explanation


@pytest.mark.parametrize(
    "lesson", [one for one in LESSONS if one.exercise.choices], ids=lambda lesson: lesson.number
)
def test_every_other_choice_is_refused_with_a_hint(lesson: Lesson) -> None:
    assert RIGHT[lesson.number] in lesson.exercise.choices
    for choice in lesson.exercise.choices:
        if choice != RIGHT[lesson.number]:
            verdict = check(lesson.exercise, choice)
            assert (verdict.right, verdict.text) == (False, lesson.exercise.hint)


def test_examples_do_not_give_the_answer_away() -> None:
    for lesson in LESSONS:
        if lesson.exercise.example:
            assert not check(lesson.exercise, lesson.exercise.example).right


def test_a_rounded_number_counts_and_a_near_one_does_not() -> None:
    exercise = asked("numbers", (13.416,))
    assert check(exercise, "13.4").right
    assert not check(exercise, "13.2").right
    assert not check(exercise, "-13.416").right


def test_a_shape_is_exact() -> None:
    exercise = asked("shape", (1.0, 1280.0))
    assert check(exercise, "torch.Size([1, 1280])".removeprefix("torch.Size")).right
    assert not check(exercise, "1, 1281").right


def test_another_count_of_numbers_is_said() -> None:
    verdict = check(asked("numbers", (6.0, 12.0)), "6")
    assert verdict.text == "It takes 2 numbers, and you gave 1. look again"
    verdict = check(asked("shape", (3.0,)), "3, 2")
    assert verdict.text == "It takes 1 size, and you gave 2. look again"


@pytest.mark.parametrize("answer", ["six", "6, twelve", "", "nan", "1e999", "1/0"])
def test_what_cannot_be_read_is_refused_in_one_line(answer: str) -> None:
    with pytest.raises(HookError, match="write it like 6, 12") as refused:
        check(asked("numbers", (6.0, 12.0)), answer)
    assert "\n" not in str(refused.value)
