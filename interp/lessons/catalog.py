"""All lessons in order."""

from interp.errors import HookError
from interp.lessons.base import Lesson
from interp.lessons.module_lessons import MODULE_LESSONS
from interp.lessons.network_lessons import NETWORK_LESSONS
from interp.lessons.practice_lessons import PRACTICE_LESSONS
from interp.lessons.tensor_lessons import TENSOR_LESSONS

GROUPS: tuple[tuple[str, tuple[Lesson, ...]], ...] = (
    ("On tensors", TENSOR_LESSONS),
    ("On modules", MODULE_LESSONS),
    ("At work", NETWORK_LESSONS),
    ("What hooks are", PRACTICE_LESSONS),
)
LESSONS: tuple[Lesson, ...] = tuple(lesson for _, group in GROUPS for lesson in group)


def find_lesson(number: str) -> Lesson:
    """The lesson of a number as it stands in the address.

    Raises
    ------
    HookError
        If there is none.
    """
    for lesson in LESSONS:
        if number == str(lesson.number):
            return lesson
    raise HookError(f"there is no lesson «{number}»: they run from 1 to {len(LESSONS)}")
