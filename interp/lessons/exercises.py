"""The question at the end of a lesson, and how an answer is checked against a computed value."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from interp.errors import HookError

Answer = str | tuple[float, ...]


@dataclass(frozen=True)
class Exercise:
    """One question.

    Parameters
    ----------
    question : str
    kind : what is asked for: numbers in order, a shape, or one of `choices`.
    expected : computes the answer, by running code: numbers, or the text of a choice.
    explanation : why it is so, shown with a right answer.
    hint : where to look again, shown with a wrong one.
    example : how an answer is written, of other values.
    choices : the texts to choose from.
    """

    question: str
    kind: Literal["numbers", "shape", "choice"]
    expected: Callable[[], Answer]
    explanation: str
    hint: str
    example: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and a sentence or two that say why."""

    right: bool
    text: str


def check(exercise: Exercise, answer: str) -> Verdict:
    """Compare an answer as it was typed or chosen with the computed one.

    Numbers may differ by 1 % or 0.005, so that a rounded one counts.

    Raises
    ------
    HookError
        If the answer cannot be read as what is asked for.
    """
    expected = exercise.expected()
    if isinstance(expected, str):
        return _verdict(exercise, answer == expected)
    given = _numbers(exercise, answer)
    what = "sizes" if exercise.kind == "shape" else "numbers"
    if len(given) != len(expected):
        count = f"It takes {len(expected)} {what[: None if len(expected) > 1 else -1]}"
        return Verdict(False, f"{count}, and you gave {len(given)}. {exercise.hint}")
    near = 0.0 if exercise.kind == "shape" else 0.01
    right = all(
        math.isclose(one, other, rel_tol=near, abs_tol=near / 2)
        for one, other in zip(given, expected, strict=True)
    )
    return _verdict(exercise, right)


def _verdict(exercise: Exercise, right: bool) -> Verdict:
    return Verdict(right, exercise.explanation if right else exercise.hint)


def _numbers(exercise: Exercise, answer: str) -> tuple[float, ...]:
    words = re.findall(r"[^\s,;×()\[\]]+", answer)
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise HookError(
            f"the answer «{answer.strip()}» cannot be read: write it like {exercise.example}"
        )
    return numbers
