"""Colours of a decoded picture, whatever its mode and depth, as 8-bit RGB."""

from __future__ import annotations

import numpy as np
from PIL import Image, TiffImagePlugin

from interp.errors import PictureError

_BITS_PER_SAMPLE = 0x0102


def bits_a_channel(image: Image.Image, data: bytes) -> int:
    """Bits a channel as stored in `data`: Pillow's mode does not tell them apart."""
    if image.format == "PNG":
        return data[24]
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        return int(np.max(image.tag_v2.get(_BITS_PER_SAMPLE, 1)))
    return 8


def to_rgb(image: Image.Image, label: str, bits: int) -> tuple[Image.Image, list[str]]:
    """8-bit RGB of any mode that Pillow reads, and in words what was done for it.

    Raises
    ------
    PictureError
        If no pixel has a finite value.
    """
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _scale_by_range(image, label)
    notes = []
    if bits > 8:
        notes.append(f"{bits} bits a channel, reduced to 8")
    if image.mode == "CMYK":
        notes.append("CMYK, converted to RGB without its colour profile")
    elif image.mode in ("LAB", "YCbCr", "HSV"):
        notes.append(f"{image.mode}, converted to RGB")
    if image.has_transparency_data:
        _rescale_transparent_colour(image, bits)
        rgba = image.convert("RGBA")
        alpha = rgba.getchannel("A")
        rgb = rgba.convert("RGB")
        if alpha.getextrema() != (255, 255):
            notes.append("transparent, composited on white")
            rgb = Image.new("RGB", rgba.size, "white")
            rgb.paste(rgba, mask=alpha)
    else:
        rgb = image.convert("RGB")
    rgb.info = {}  # a profile or transparent colour left here would go into what is saved later
    return rgb, notes


def _rescale_transparent_colour(image: Image.Image, bits: int) -> None:
    """PNG gives its transparent colour in the stored depth, Pillow the pixels in 8 bits."""
    colour = image.info.get("transparency")
    if image.mode == "L" and isinstance(colour, int) and bits in (2, 4):
        image.info["transparency"] = colour * 255 // (2**bits - 1)
    elif image.mode == "RGB" and isinstance(colour, tuple) and bits == 16:
        image.info["transparency"] = tuple(channel >> 8 for channel in colour)


def _scale_by_range(image: Image.Image, label: str) -> tuple[Image.Image, list[str]]:
    """Greyscale of more than 8 bits: its lowest visible value to 0, its highest to 255."""
    values = np.asarray(image)
    finite = np.isfinite(values)
    clear = values == image.info.get("transparency", np.nan)
    shown = finite & ~clear
    if not shown.any():
        raise PictureError(f"{label} has no finite, visible value: nothing can be drawn of it")
    visible = values if shown.all() else values[shown]
    low, high = visible.min(), visible.max()
    span = float(high) - float(low)
    kind = {"F": "floating-point", "I": "integer"}.get(image.mode, "16-bit")
    if span > 0:
        notes = [f"{kind} greyscale, scaled from {low}..{high}"]
    else:
        notes = [f"{kind} greyscale, constant at {low}, drawn black"]
    if not finite.all():
        notes.append(f"{int((~finite).sum())} non-finite pixels drawn black")
    if clear.any():
        notes.append("transparent, composited on white")

    grey = np.empty(values.shape, np.uint8)
    for top in range(0, len(values), 256):
        rows = slice(top, top + 256)
        # float64: the difference of two float32 or int32 values may not fit their own type
        strip = np.where(shown[rows], values[rows], low).astype(np.float64) - float(low)
        strip *= 255.0 / span if span > 0 else 0.0
        strip[clear[rows]] = 255.0
        grey[rows] = np.rint(strip)
    return Image.fromarray(grey).convert("RGB"), notes
