"""Source text that code to be copied begins with: quoted texts, and this package from anywhere."""

import json
import re
from pathlib import Path

import interp

_SURROGATE = re.compile("[\ud800-\udfff]")  # of a file name that is no valid text


def quoted(text: str) -> str:
    """A text as Python source, in double quotes."""
    return _SURROGATE.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )


def package_path() -> str:
    """A line after which this package can be imported, installed or not; it needs `sys`.

    A checkout is not on the path of a Python that was started elsewhere, so the line puts it there;
    last, so that an installed one is found first.
    """
    folder = quoted(str(Path(interp.__file__).absolute().parents[1]))
    return f"sys.path.append({folder})  # Hookscope, where it is not installed"
