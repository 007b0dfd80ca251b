"""Names of files that every file system takes, and that say what is inside."""

import hashlib
import re
import unicodedata
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.attribution.base import Attribution

_LONGEST_PART = 40
_LONGEST_STEM = 150
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)


def safe_stem(*parts: str) -> str:
    """A file name without its suffix that every file system takes.

    Parameters
    ----------
    parts : texts from anywhere; empty ones are left out.

    Returns
    -------
    The parts joined by dots, of ASCII letters, digits and ``. _ + -`` only, at most 150 long,
    never hidden, never reserved by Windows. A part that loses letters or symbols carries eight hex
    digits of its SHA-256, so that different texts keep different names.
    """
    stem = ".".join(clean for part in parts if (clean := _clean(part)))
    if _RESERVED.match(stem):
        stem = f"_{stem}"
    return _shorten(stem, "\0".join(parts), _LONGEST_STEM) or "heatmap"


def default_stem(attribution: "Attribution") -> str:
    """Picture, model, «untrained» where it is, layers, method and target as a `safe_stem`."""
    layers = "+".join(attribution.layers)
    return stem_of(attribution, layers, attribution.method, attribution.target.slug)


def stem_of(attribution: "Attribution", *parts: str) -> str:
    """Picture, model, «untrained» where it is, and further parts as a `safe_stem`."""
    return safe_stem(
        # Both kinds of slash are taken for folders: the name may come from another system.
        PureWindowsPath(attribution.picture.name).stem,
        attribution.model_name,
        "untrained" if attribution.source == "untrained" else "",
        *parts,
    )


def _clean(part: str) -> str:
    folded = unicodedata.normalize("NFKD", part)
    plain = folded.encode("ascii", "ignore").decode()
    lost = any(unicodedata.category(sign)[0] in "LNS" for sign in folded if not sign.isascii())
    clean = _UNSAFE.sub("-", plain)
    clean = re.sub(r"\.{2,}", ".", clean).strip(".-")
    if lost:
        clean = f"{clean}-{_digest(part)}".lstrip("-")
    return _shorten(clean, part, _LONGEST_PART)


def _shorten(text: str, origin: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 9].rstrip('.-')}-{_digest(origin)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
