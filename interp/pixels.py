"""Colours of a decoded picture, whatever its mode and depth, as 8-bit RGB."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from interp.errors import PictureError
from interp.profiles import to_srgb
from interp.tiff import Layout

NO_PROFILE = object()  # Pillow says None of a profile that it could not put together


def to_rgb(
    image: Image.Image, label: str, bits: int, layout: Layout | None = None
) -> tuple[Image.Image, list[str]]:
    """8-bit RGB of any mode that Pillow reads, and in words what was done for it.

    Parameters
    ----------
    image : decoded and upright.
    label : name for people.
    bits : a channel as stored: Pillow's mode does not tell them apart.
    layout : of a TIFF.

    Raises
    ------
    PictureError
        If no pixel has a finite value.
    """
    profile = image.info.get("icc_profile", NO_PROFILE)
    deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    if deep or (layout is not None and layout.signed_bytes):
        values = layout.values(image) if layout is not None else np.asarray(image)
        grey, notes = _scale_by_range(
            values,
            label,
            bits,
            clear=image.info.get("transparency"),
            white_is_zero=layout is not None and layout.white_is_zero,
        )
        rgb, colour_notes = _coloured(grey, profile)
        return rgb, notes + colour_notes
    if layout is not None and layout.colours is not None:
        image.putpalette(layout.colours)
    if image.mode == "La":
        image = image.convert("LA")  # the only mode that Pillow turns it into
    notes = [f"{bits} bits a channel, reduced to 8"] if bits > 8 else []
    alpha = None
    if image.has_transparency_data:
        _rescale_transparent_colour(image, bits)
        rgba = image.convert("RGBA")
        alpha = rgba.getchannel("A")
        image = image.convert("L") if image.mode in ("1", "L", "LA") else rgba.convert("RGB")
    rgb, colour_notes = _coloured(image, profile)
    notes += colour_notes
    if alpha is not None and alpha.getextrema() != (255, 255):
        notes.append("transparent, composited on white")
        white = Image.new("RGB", rgb.size, "white")
        white.paste(rgb, mask=alpha)
        rgb = white
    return rgb, notes


def _coloured(image: Image.Image, profile: object) -> tuple[Image.Image, list[str]]:
    """RGB of a picture without transparency, through its profile if it has one."""
    notes = [f"{image.mode}, converted to RGB"] if image.mode in ("LAB", "YCbCr", "HSV") else []
    if profile is NO_PROFILE:
        if image.mode == "CMYK":
            notes.append("CMYK, converted to RGB without a colour profile")
        rgb = image.convert("RGB")
    else:
        if image.mode == "1":
            image = image.convert("L")
        elif image.mode not in ("L", "CMYK", "LAB"):
            image = image.convert("RGB")
        rgb, profile_notes = to_srgb(image, profile)
        notes += profile_notes
    rgb.info = {}  # a profile or transparent colour left here would go into what is saved later
    return rgb, notes


def _rescale_transparent_colour(image: Image.Image, bits: int) -> None:
    """PNG gives its transparent colour in the stored depth, Pillow the pixels in 8 bits."""
    colour = image.info.get("transparency")
    if image.mode == "L" and isinstance(colour, int) and bits in (2, 4):
        image.info["transparency"] = colour * 255 // (2**bits - 1)
    elif image.mode == "RGB" and isinstance(colour, tuple) and bits == 16:
        image.info["transparency"] = tuple(channel >> 8 for channel in colour)


def _scale_by_range(
    values: npt.NDArray[Any], label: str, bits: int, *, clear: int | None, white_is_zero: bool
) -> tuple[Image.Image, list[str]]:
    """Greyscale of more than 8 bits: its blackest visible value to 0, its whitest to 255."""
    finite = np.isfinite(values)
    hidden = values == (np.nan if clear is None else clear)
    shown = finite & ~hidden
    if not shown.any():
        raise PictureError(f"{label} has no finite, visible value: nothing can be drawn of it")
    visible = values if shown.all() else values[shown]
    black, white = visible.min(), visible.max()
    if white_is_zero:
        black, white = white, black
    notes = [_scale_in_words(values.dtype, bits, black, white, white_is_zero)]
    if not finite.all():
        notes.append(f"{int((~finite).sum())} non-finite pixels drawn black")
    if hidden.any():
        notes.append("transparent, composited on white")

    # float64: the difference of two float32 or int32 values may not fit their own type
    span = float(white) - float(black)
    grey = np.empty(values.shape, np.uint8)
    for top in range(0, len(values), 256):
        rows = slice(top, top + 256)
        strip = np.where(shown[rows], values[rows], black).astype(np.float64) - float(black)
        strip *= 255.0 / span if span else 0.0
        strip[hidden[rows]] = 255.0
        grey[rows] = np.rint(strip)
    return Image.fromarray(grey), notes


def _scale_in_words(
    dtype: np.dtype[Any], bits: int, black: Any, white: Any, white_is_zero: bool
) -> str:
    if dtype.kind == "f":
        kind = "floating-point"
    elif dtype.itemsize == 1:
        kind = "signed 8-bit"
    else:
        kind = f"{bits}-bit" if dtype.kind == "u" and dtype.itemsize == 2 else "integer"
    zero = " whose zero is white" if white_is_zero else ""
    if black == white:
        return f"{kind} greyscale{zero}, constant at {black}, drawn black"
    return f"{kind} greyscale{zero}, scaled from {black}..{white}"
