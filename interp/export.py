"""Attributions as files: a picture, the numbers, and the manifest that says how they came about.

The names of files are those of `interp.names`, and can be imported from here too.
"""

import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from interp.drawing import DEFAULT_DRAWING, Drawing, draw, draw_figure, draw_filmstrip, scale_of
from interp.errors import InterpError
from interp.manifest import NPZ_MANIFEST, PNG_MANIFEST, manifest_array, png_with, strict
from interp.names import default_stem, safe_stem, stem_of

if TYPE_CHECKING:
    from interp.attribution.base import Attribution

__all__ = [
    "NPZ_MANIFEST",
    "PNG_DRAWING",
    "PNG_MANIFEST",
    "default_stem",
    "figure_bytes",
    "filmstrip_bytes",
    "json_bytes",
    "manifest_of",
    "npz_bytes",
    "png_bytes",
    "safe_stem",
    "save",
    "stem_of",
    "strict",
    "write_together",
    "zip_bytes",
]

PNG_DRAWING = "hookscope-drawing"


def manifest_of(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> dict[str, Any]:
    """All that led to the map, and under ``view`` how it was drawn.

    In a file without a picture ``view`` says how the map was shown when the file was made.
    """
    return {**attribution.manifest(), "view": drawing.record(scale_of(attribution))}


def png_bytes(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> bytes:
    """The heatmap on its picture at the picture's own resolution.

    Returns
    -------
    PNG with two text chunks in JSON: ``hookscope`` is the manifest, ``hookscope-drawing`` says
    with which colours, opacity, threshold and range of raw values it was drawn.
    """
    chunks = {PNG_DRAWING: drawing.record(scale_of(attribution))}
    return png_with(draw(attribution, drawing), manifest_of(attribution, drawing), chunks)


def figure_bytes(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> bytes:
    """PNG for a paper: the overlay with a colour bar in raw values and a caption under it."""
    return png_with(draw_figure(attribution, drawing), _overlay_manifest(attribution, drawing))


def filmstrip_bytes(
    attributions: "Sequence[Attribution]", drawing: Drawing = DEFAULT_DRAWING
) -> bytes:
    """PNG of the maps of several layers in a row; its manifest is a list, one for each map."""
    manifests = [_overlay_manifest(one, drawing) for one in attributions]
    return png_with(draw_filmstrip(attributions, drawing), manifests)


def npz_bytes(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> bytes:
    """The numbers, unscaled.

    Returns
    -------
    Compressed NPZ with ``map`` float32 (h, w), ``heatmap`` float32 (H, W) with NaN where the
    model saw nothing, ``logits`` float32 (n,), and ``manifest``, a text in JSON.
    """
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        map=attribution.map,
        heatmap=attribution.on_picture(),
        logits=attribution.logits,
        manifest=manifest_array(manifest_of(attribution, drawing)),
    )
    return buffer.getvalue()


def json_bytes(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> bytes:
    """The manifest as UTF-8 JSON; numbers that are not finite are the texts NaN and ±Infinity."""
    manifest = strict(manifest_of(attribution, drawing))
    text = json.dumps(manifest, allow_nan=False, indent=2, ensure_ascii=False)
    # A file name that is no valid text holds lone surrogates; escaped they are valid JSON.
    return (text + "\n").encode("utf-8", "backslashreplace")


def zip_bytes(
    attribution: "Attribution",
    drawing: Drawing = DEFAULT_DRAWING,
    filmstrip: "Sequence[Attribution]" = (),
) -> bytes:
    """NPZ, PNG, JSON and figure in one ZIP, and the filmstrip of the attributions given.

    The same attributions and drawing give the same bytes.
    """
    buffer = io.BytesIO()
    stem = default_stem(attribution)
    contents = _contents(attribution, drawing)
    contents["figure.png"] = figure_bytes(attribution, drawing)
    if filmstrip:
        contents["filmstrip.png"] = filmstrip_bytes(filmstrip, drawing)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for suffix, content in contents.items():
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


def _overlay_manifest(attribution: "Attribution", drawing: Drawing) -> dict[str, Any]:
    return manifest_of(attribution, replace(drawing, mode="overlay"))


def _contents(attribution: "Attribution", drawing: Drawing = DEFAULT_DRAWING) -> dict[str, bytes]:
    return {
        "npz": npz_bytes(attribution, drawing),
        "png": png_bytes(attribution, replace(drawing, mode="overlay")),
        "json": json_bytes(attribution, drawing),
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
