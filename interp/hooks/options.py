"""The settings of an action: what may be set, and how what a person wrote is read."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interp.errors import HookError

Values = Mapping[str, Any]
_SHOWN = 80  # characters of a text that an error repeats
OptionKind = Literal["number", "integer", "channels", "choice", "picture"]


@dataclass(frozen=True)
class Option:
    """One setting of an action; `low` and `high` bound a number, both included."""

    name: str
    title: str
    kind: OptionKind
    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    help: str = ""


def complete(action: str, options: Sequence[Option], values: Values) -> dict[str, Any]:
    """The values of an action's options, with defaults filled in.

    Raises
    ------
    HookError
        If an option is unknown, of another type, or out of its range.
    """
    known = {option.name: option for option in options}
    for name in values:
        if name not in known:
            have = ", ".join(known) or "none"
            raise HookError(f"«{action}» has no option «{name}»: it has {have}")
    return {
        name: _checked(action, option, values.get(name, option.default))
        for name, option in known.items()
    }


def _checked(action: str, option: Option, value: Any) -> Any:
    what = f"{option.name} of «{action}»"
    if option.kind in ("number", "integer"):
        if not _is_finite(value):
            raise HookError(f"{what} is {value!r:.40}: give a finite number")
        if option.kind == "integer" and value != int(value):
            raise HookError(f"{what} is {value!r}: give a whole number")
        low = -math.inf if option.low is None else option.low
        high = math.inf if option.high is None else option.high
        if not low <= value <= high:
            raise HookError(f"{what} is {value:g}: give a number from {low:g} to {high:g}")
        return int(value) if option.kind == "integer" else float(value)
    if not isinstance(value, str):
        raise HookError(f"{what} is {value!r}: give a text")
    if not is_one_line(value):
        raise HookError(f"{what} holds a line break or a control character: take it out")
    if option.choices and value not in option.choices:
        raise HookError(f"{what} is «{value}»: give {' or '.join(option.choices)}")
    return value


def _is_finite(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def is_one_line(text: str) -> bool:
    """Whether a text can stand in a sentence: no line break and no control character."""
    return text.isprintable() or not any(
        unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in text
    )


def parse_channels(text: str, count: int) -> tuple[int, ...]:
    """Channels as people write them: «4», «0-15, 20».

    Parameters
    ----------
    text : str
        Indices and ranges, both ends included, with commas between.
    count : int
        How many channels there are.

    Returns
    -------
    tuple of int
        In ascending order, each once.

    Raises
    ------
    HookError
        If it cannot be read, or there is no such channel.
    """
    found: set[int] = set()
    for part in text.replace("–", "-").split(","):
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part, re.ASCII)
        if match is None:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            raise HookError(f"channels «{shown}» cannot be read: write them as in 4 or 0-15, 20")
        low = int(match[1])
        high = low if match[2] is None else int(match[2])
        if low > high:
            raise HookError(f"channels «{part.strip()}» run backwards: write {high}-{low}")
        if high >= count:
            raise HookError(f"there is no channel {high}: the channels are 0 to {count - 1}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))
