"""What layers are called: «path», «path#1» for a second call, and all paths of one module."""

import re
from collections.abc import Collection

from torch import nn

from interp.errors import LayerError


def path_of(text: str, known: Collection[str]) -> str:
    """The path in «path» or «path#call»: the longest known one, as a path may itself hold a «#».

    Where none is known it is what stands before the number of a call.
    """
    if text in known:
        return text
    marks = [mark.start() for mark in re.finditer("#", text)]
    paths = [text[:at] for at in reversed(marks) if text[:at] in known]
    return paths[0] if paths else re.sub(r"#\d*$", "", text)


def split_call(text: str, known: Collection[str]) -> tuple[str, int]:
    """Path and call of a layer, from «path» (its first call) or «path#call».

    Parameters
    ----------
    text : str
    known : collection of str
        The paths of the network. A text that is one of them is that path, whatever it looks like.

    Raises
    ------
    LayerError
        If what follows the path is no number of a call.
    """
    path = path_of(text, known)
    if path == text:
        return path, 0
    number = text[len(path) + 1 :]
    if not re.fullmatch(r"\d{1,9}", number):
        raise LayerError(f"«{text}» is no call of a layer: write «{path}#0» for its first")
    return path, int(number)


def call_mark(path: str, calls: int, known: Collection[str]) -> str:
    """What to write between a path and the number of a call, so that no other path is meant.

    It is «#», and «#0» where there is a layer of that very name: «rgb#01» is the second call of
    «rgb», beside a layer «rgb#1».
    """
    mark = "#"
    while any(f"{path}{mark}{call}" in known for call in range(calls)):
        mark += "0"
    return mark


def first_names(module: nn.Module) -> dict[str, str]:
    """From every path of every module to the first that the same module is registered under."""
    first: dict[int, str] = {}
    return {
        path: first.setdefault(id(part), path)
        for path, part in module.named_modules(remove_duplicate=False)
    }
