"""Colours of a picture with a profile, as sRGB."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageCms

_SPACES = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK", "LAB": "Lab"}
_ROUNDING = 2  # levels between the ways in which two libraries write and apply the same sRGB
_UNREADABLE = "its colour profile cannot be read and was ignored"


def to_srgb(colours: Image.Image, profile: object) -> tuple[Image.Image, list[str]]:
    """8-bit sRGB of colours that a profile describes, and in words what was done.

    Parameters
    ----------
    colours : of mode "L", "RGB", "CMYK" or "LAB", without transparency.
    profile : bytes of an ICC profile; anything else counts as one that cannot be read.

    Returns
    -------
    The picture, converted as if it were sRGB where the profile says nothing else or cannot be used,
    and the notes; none where the profile is of sRGB itself.
    """
    if not isinstance(profile, bytes):
        return colours.convert("RGB"), [_UNREADABLE]
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = source.profile.xcolor_space.strip()
        name = _in_words(source.profile.profile_description)
        if (colours.mode, space) == ("L", "RGB"):
            colours = colours.convert("RGB")  # a grey of that profile's colours
        if _SPACES[colours.mode] != space:
            note = f"its colour profile {name} is not for {colours.mode} and was ignored"
            return colours.convert("RGB"), [note]
        if space == "Lab":  # means the same in every picture
            return colours.convert("RGB"), []
        transform = _transform(source, colours.mode)
        if _changes_nothing(transform, colours.mode):
            return colours.convert("RGB"), []
        converted = transform.apply(colours)
    except (OSError, ValueError, ImageCms.PyCMSError):
        return colours.convert("RGB"), [_UNREADABLE]
    return converted, [f"colours converted from {name} to sRGB"]


def _transform(source: ImageCms.ImageCmsProfile, mode: str) -> ImageCms.ImageCmsTransform:
    return ImageCms.ImageCmsTransform(
        source,
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _changes_nothing(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    """Whether a profile is of sRGB: by what it does, since any name can be given to any."""
    if mode == "CMYK":
        return False
    if mode == "RGB":
        levels = np.arange(0, 256, 15, dtype=np.uint8)
        grid = np.stack(np.meshgrid(levels, levels, levels), -1)
        probe = Image.fromarray(grid.reshape(len(levels), -1, 3))
    else:
        probe = Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    plain = np.asarray(probe.convert("RGB"), np.int16)
    return int(np.abs(np.asarray(transform.apply(probe), np.int16) - plain).max()) <= _ROUNDING


def _in_words(description: str | None) -> str:
    """A profile's name as one line, short enough for a note."""
    printable = "".join(char if char.isprintable() else " " for char in description or "")
    return " ".join(printable.split())[:60] or "without a name"
