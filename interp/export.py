"""Attributions as files: a picture, the numbers, and the manifest that says how they came about."""

import hashlib
import io
import json
import math
import os
import re
import shutil
import tempfile
import unicodedata
import zipfile
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

import numpy as np
from PIL.PngImagePlugin import PngInfo

from interp.errors import InterpError
from interp.render import (
    DEFAULT_COLOURS,
    DEFAULT_DIVERGING,
    DEFAULT_OPACITY,
    DEFAULT_THRESHOLD,
    figure,
    overlay,
    scale_for,
)

if TYPE_CHECKING:
    from interp.attribution.base import Attribution

PNG_MANIFEST = "hookscope"
PNG_DRAWING = "hookscope-drawing"

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


def png_bytes(attribution: "Attribution") -> bytes:
    """The overlay at the picture's own resolution, drawn with the defaults of `interp.render`.

    Returns
    -------
    PNG with two text chunks in JSON: ``hookscope`` is the manifest, ``hookscope-drawing`` says
    with which colours, opacity, threshold and range of raw values it was drawn.
    """
    scale = scale_for(attribution.map, signed=attribution.signed)
    picture = overlay(attribution.picture.image, attribution.on_picture(), scale)
    drawing = {
        "colours": DEFAULT_DIVERGING if scale.signed else DEFAULT_COLOURS,
        "opacity": DEFAULT_OPACITY,
        "threshold": DEFAULT_THRESHOLD,
        "low": scale.low,
        "high": scale.high,
        "signed": scale.signed,
    }
    chunks = PngInfo()
    # Uncompressed, since readers cap compressed text and a ledger may be long.
    chunks.add_text(PNG_MANIFEST, json.dumps(strict(attribution.manifest()), allow_nan=False))
    chunks.add_text(PNG_DRAWING, json.dumps(drawing, allow_nan=False))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", pnginfo=chunks)
    return buffer.getvalue()


def figure_bytes(attribution: "Attribution") -> bytes:
    """PNG for a paper: the overlay with a colour bar in raw values and a caption under it."""
    scale = scale_for(attribution.map, signed=attribution.signed)
    weights = "untrained" if attribution.source == "untrained" else attribution.weights
    caption = (
        f"{attribution.method} for {attribution.target.label}, {attribution.model_name} "
        f"({weights}), layer {' + '.join(attribution.layers)}, "
        f"{attribution.map.shape[0]}×{attribution.map.shape[1]} grid"
    )
    drawn = figure(attribution.picture.image, attribution.on_picture(), scale, caption=caption)
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()


def npz_bytes(attribution: "Attribution") -> bytes:
    """The numbers, unscaled.

    Returns
    -------
    Compressed NPZ with ``map`` float32 (h, w), ``heatmap`` float32 (H, W) with NaN where the
    model saw nothing, and ``logits`` float32 (n,).
    """
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        map=attribution.map,
        heatmap=attribution.on_picture(),
        logits=attribution.logits,
    )
    return buffer.getvalue()


def json_bytes(attribution: "Attribution") -> bytes:
    """The manifest as UTF-8 JSON; numbers that are not finite are the texts NaN and ±Infinity."""
    text = json.dumps(strict(attribution.manifest()), allow_nan=False, indent=2, ensure_ascii=False)
    # A file name that is no valid text holds lone surrogates; escaped they are valid JSON.
    return (text + "\n").encode("utf-8", "backslashreplace")


def zip_bytes(attribution: "Attribution") -> bytes:
    """NPZ, PNG and JSON in one ZIP; the same attribution gives the same bytes."""
    buffer = io.BytesIO()
    stem = default_stem(attribution)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for suffix, content in _contents(attribution).items():
            entry = zipfile.ZipInfo(f"{stem}.{suffix}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # else the bytes depend on the system that writes
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def save(
    attribution: "Attribution", folder: str | os.PathLike[str], stem: str | None = None
) -> list[Path]:
    """Write NPZ, PNG and JSON into a folder: all three, or none.

    Parameters
    ----------
    folder : created where it is missing.
    stem : the name before the suffix, made safe by `safe_stem`; None takes `default_stem`.

    Returns
    -------
    Paths of the npz, png and json file, in this order.

    Raises
    ------
    InterpError : the files cannot be written. Whatever interrupts the writing, no part of the
        new files stays and files that stood there before are as they were.
    """
    target = Path(folder)
    name = default_stem(attribution) if stem is None else safe_stem(*stem.split("."))
    contents = _contents(attribution)
    try:
        target.mkdir(parents=True, exist_ok=True)
        return write_together(target, {f"{name}.{end}": data for end, data in contents.items()})
    except OSError as error:
        reason = error.strerror or str(error)
        raise InterpError(
            f"cannot write {name} into {target}: {reason}; choose a folder you can write to"
        ) from error


def _contents(attribution: "Attribution") -> dict[str, bytes]:
    return {
        "npz": npz_bytes(attribution),
        "png": png_bytes(attribution),
        "json": json_bytes(attribution),
    }


def write_together(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, by name, into a folder that exists: all of them, or none."""
    # Staged inside the folder, so that each file is put in place by one rename.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".hookscope-") as staging:
        fresh, former = Path(staging, "new"), Path(staging, "old")
        fresh.mkdir()
        former.mkdir()
        for name, data in files.items():
            (fresh / name).write_bytes(data)
            if (folder / name).exists():
                shutil.copy2(folder / name, former / name)
        try:
            for name in files:
                (fresh / name).replace(folder / name)
        except BaseException:
            for name in files:
                if (former / name).exists():
                    (former / name).replace(folder / name)
                else:
                    (folder / name).unlink(missing_ok=True)
            raise
    return [folder / name for name in files]


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


def strict(value: object) -> object:
    """JSON has no number for NaN and infinity: they become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return value
