"""The text of a target: every way to read one on a model's class names, and how to write it.

A part of it is an index (`281`), a name (`tabby`), or one of these said outright: `#281` is always
the index and `=tabby` always the name. `#` alone is the top prediction. Several `#` mean what one
does: where a class is itself named «#2», `##2` is the index.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from interp.errors import TargetError

Scale = Literal["logit", "prob", "logprob"]

_SCALE_WORDS = {"logit": "", "prob": ", probability", "logprob": ", log-probability"}
_SHOWN = 4  # readings in a refusal
_Words = tuple[str, str]  # how each part was read; empty where there is no second


@dataclass(frozen=True)
class Meaning:
    """What a text stands for; without an index it is the top prediction."""

    index: int | None
    against: int | None
    scale: Scale


def read(text: str, names: tuple[str, ...]) -> Meaning:
    """The only thing that a text can mean on these classes.

    Parameters
    ----------
    text : str
        Empty is the top prediction.
    names : tuple of str
        One for each class, in order; without them any index is taken.

    Raises
    ------
    TargetError
        If it means nothing, or several things; the message says how to write each.
    """
    found = _readings(text, names)
    if len(found) == 1:
        return next(iter(found))
    raise _ambiguous(text, found, names) if found else _unreadable(text, names)


def write(meaning: Meaning, names: tuple[str, ...]) -> str:
    """The shortest text of indices that `read` takes for this meaning and for nothing else."""
    longest = max(map(len, re.findall("#+", "\n".join(names))), default=0)
    for count in range(longest + 2):
        text = _of_indices(meaning, "#" * count)
        if set(_readings(text, names)) == {meaning}:
            return text
    return _of_indices(meaning, "")  # no class of these


def no_class(index: int, count: int | None) -> TargetError:
    """The error for an index that is no class's."""
    last = "" if count is None else f", the model's classes are 0 to {count - 1}"
    return TargetError(f"no class has the index {index}{last}")


def _readings(text: str, names: tuple[str, ...]) -> dict[Meaning, _Words]:
    found: dict[Meaning, _Words] = {}
    for body, scale in _scales(text):
        for index, against, words in _classes(body, names):
            found.setdefault(Meaning(index, against, scale), words)
    return found


def _of_indices(meaning: Meaning, marks: str) -> str:
    text = marks if meaning.index is None else f"{marks}{meaning.index}"
    if meaning.against is not None:
        text += f"-{marks}{meaning.against}"
    return text + _suffix(meaning.scale)


def _suffix(scale: Scale) -> str:
    return "" if scale == "logit" else f":{scale}"


def _scales(text: str) -> Iterator[tuple[str, Scale]]:
    """The text as it is, and without what says which scale is meant."""
    yield text, "logit"
    body, colon, suffix = text.rpartition(":")
    scale: Any = suffix.strip()
    if colon and scale in _SCALE_WORDS:
        yield body, scale


def _classes(body: str, names: tuple[str, ...]) -> Iterator[tuple[int | None, int | None, _Words]]:
    """Every class, and every contrast of two, that a text without its scale can stand for."""
    if not body.strip():
        yield None, None, ("", "")
        return
    for index, words in _part(body, names).items():
        yield index, None, (words, "")
    whole = bool(_named(body, names))
    for left, right in _cuts(body):
        # A whole name comes before a contrast of names, not before one that is said outright.
        if whole and not (_is_outright(left) and _is_outright(right)):
            continue
        second = _part(right, names)
        for index, words in _part(left, names).items():
            for against, others in second.items():
                if against is not None:
                    yield index, against, (words, others)


def _cuts(body: str) -> list[tuple[str, str]]:
    """The two sides of every dash that has something on both."""
    cuts = [(body[: dash.start()], body[dash.end() :]) for dash in re.finditer("[-−]", body)]
    return [(left, right) for left, right in cuts if left.strip() and right.strip()]


def _is_outright(part: str) -> bool:
    return re.fullmatch(r"[#=].*|\d+", part.strip(), re.DOTALL) is not None


def _part(text: str, names: tuple[str, ...]) -> dict[int | None, str]:
    """The classes that one part can stand for, and in words how it was read for each."""
    plain = text.strip()
    found: dict[int | None, str] = dict.fromkeys(_named(text, names), f"«{plain}»")
    if plain.startswith("="):
        name = text.lstrip()[1:]
        for index in _named_outright(name, names):
            found.setdefault(index, f"«{name.strip()}»")
    if re.fullmatch("#+", plain):
        found.setdefault(None, "the top prediction")
    elif number := re.fullmatch(r"(?:#+|\+?)(\d{1,18})", plain):
        index = int(number[1])
        if not names or index < len(names):
            found.setdefault(index, f"index {index}")
    return found


def _named(text: str, names: tuple[str, ...]) -> Sequence[int]:
    """The classes of that name; the spaces around it may be part of it or not."""
    exact, loose = _by_name(names)
    if not text.strip():
        return ()
    ways = {text, text.lstrip(), text.rstrip(), text.strip()}
    found = [index for way in ways for index in exact.get(way, ())]
    return found or loose.get(text.strip().casefold(), ())


def _named_outright(text: str, names: tuple[str, ...]) -> Sequence[int]:
    """The classes of the name behind a «=», where it begins; the spaces after it may be layout."""
    exact, loose = _by_name(names)
    found = [index for way in {text, text.rstrip()} for index in exact.get(way, ())]
    return found or exact.get(text.strip(), ()) or loose.get(text.strip().casefold(), ())


@lru_cache(maxsize=8)
def _by_name(names: tuple[str, ...]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Indices by name, and by name without capitals and the spaces around it."""
    exact: dict[str, list[int]] = {}
    loose: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        exact.setdefault(name, []).append(index)
        loose.setdefault(name.strip().casefold(), []).append(index)
    return exact, loose


def _ambiguous(text: str, found: dict[Meaning, _Words], names: tuple[str, ...]) -> TargetError:
    readings = set(found.values())
    scaled = len({meaning.scale for meaning in found}) > 1
    if len(readings) == 1 and not scaled:
        return _same_name(found, names)
    ways = dict.fromkeys(_told(m, words, scaled) for m, words in found.items())
    forms = [_outright(meaning, words, names) for meaning, words in found.items()]
    more = ", …" if len(forms) > _SHOWN else ""
    return TargetError(
        f"«{text.strip()}» can be read {_either([f'as {way}' for way in ways][:_SHOWN])}: "
        f"write {_either(forms[:_SHOWN])}{more}"
    )


def _same_name(found: dict[Meaning, _Words], names: tuple[str, ...]) -> TargetError:
    """The error for one name, first or second, that several classes have."""
    for place in (0, 1):
        indices = {(meaning.index, meaning.against)[place] for meaning in found}
        if len(indices) > 1:
            break
    several = sorted(index for index in indices if index is not None)
    texts = ", ".join(write(Meaning(index, None, "logit"), names) for index in several)
    words = next(iter(found.values()))[place]
    return TargetError(f"{len(several)} classes are named {words}: write the index, one of {texts}")


def _told(meaning: Meaning, words: _Words, scaled: bool) -> str:
    first, second = words
    if second:
        text = f"{first} − {second}"
    elif first.startswith("«"):
        text = f"the class named {first}"
    else:
        text = f"the class of {first}" if meaning.index is not None else "the top prediction"
    return text + (_SCALE_WORDS[meaning.scale] if scaled else "")


def _outright(meaning: Meaning, words: _Words, names: tuple[str, ...]) -> str:
    """A text for one reading alone: by name where it was read by name and that is possible."""
    parts = [
        f"={names[index]}" if word.startswith("«") else f"#{index}"
        for index, word in zip((meaning.index, meaning.against), words, strict=True)
        if index is not None
    ]
    text = "-".join(parts) + _suffix(meaning.scale)
    for way in (text, f"{text}:logit"):
        if "«" in "".join(words) and set(_readings(way, names)) == {meaning}:
            return way
    return write(meaning, names)


def _either(ways: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))


def _unreadable(text: str, names: tuple[str, ...]) -> TargetError:
    body = list(_scales(text))[-1][0]
    for sides in _cuts(body):
        if all(_is_outright(side) or _part(side, names) for side in sides):
            parts: Sequence[str] = sides
            break
    else:
        parts = (body,)
    wrong = next((part.strip() for part in parts if not _part(part, names)), body.strip())
    if number := re.fullmatch(r"#*([-+]?\d{1,18})", wrong):
        return no_class(int(number[1]), len(names) or None)
    name = wrong.removeprefix("=")
    return TargetError(f"no class is named «{name}»: {_hint(name.casefold(), names)}")


def _hint(wanted: str, names: Sequence[str]) -> str:
    """Classes with that word in their names, and those with a similar name."""
    folded = [name.casefold() for name in names]
    has_word = re.compile(rf"\b{re.escape(wanted)}\b").search
    close = [i for i, name in enumerate(folded) if has_word(name)]
    close += [folded.index(name) for name in difflib.get_close_matches(wanted, folded, n=3)]
    if not close:
        return "write its index or its exact name"
    return f"did you mean {' or '.join(names[i] for i in list(dict.fromkeys(close))[:3])}?"
