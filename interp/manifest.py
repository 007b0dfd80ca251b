"""The manifest as text: in JSON files, in the text chunk of a PNG, as an array of an NPZ."""

import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

PNG_MANIFEST = "hookscope"
NPZ_MANIFEST = "manifest"


def strict(value: object) -> object:
    """JSON has no number for NaN and infinity: they become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return value


def manifest_text(manifest: object) -> str:
    """A manifest, or a list of them, as one line of JSON in ASCII."""
    return json.dumps(strict(manifest), allow_nan=False)


def manifest_array(manifest: object) -> NDArray[np.str_]:
    """`manifest_text` as an array without axes, to be read back from an NPZ without pickle."""
    return np.array(manifest_text(manifest))


def png_with(
    picture: Image.Image, manifest: object, chunks: Mapping[str, Any] | None = None
) -> bytes:
    """PNG of a picture with its manifest in the text chunk ``hookscope``, and further chunks."""
    info = PngInfo()
    # Uncompressed, since readers cap compressed text and a ledger may be long.
    for name, content in {PNG_MANIFEST: manifest, **(chunks or {})}.items():
        info.add_text(name, manifest_text(content))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()
