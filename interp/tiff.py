"""What the tags of a TIFF say of its numbers, where Pillow reads them as something else."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, TiffImagePlugin

from interp.errors import PictureError

_BITS, _PHOTOMETRIC, _SAMPLES, _PLANAR, _COLOR_MAP = 258, 262, 277, 284, 320
_INK_SET, _SAMPLE_FORMAT, _COEFFICIENTS, _SUBSAMPLING, _REFERENCE = 332, 339, 529, 530, 532
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _PALETTE, _CMYK, _YCBCR = 0, 1, 2, 3, 5, 6
_UNSIGNED, _SIGNED = 1, 2
# How Pillow calls what it unpacks, where it leaves white at zero, or takes a number that libtiff
# has turned to this machine's byte order for one in the file's.
_NOT_INVERTED = ("I;16", "I;16N", "I;16B", "F;32F", "F;32BF")
_NOT_NATIVE = {"little": ("I;16BS", "I;32BS", "F;32BF"), "big": ("I;16S", "I;32S", "F;32F")}


@dataclass(frozen=True)
class Layout:
    """How one picture of a TIFF is stored, read before it is decoded.

    Attributes
    ----------
    bits : of the widest sample.
    signed_bytes : 8 bits a sample with a sign, which Pillow reads without.
    unsigned_words : 32 bits a sample without a sign, which Pillow reads with one.
    swapped : Pillow will give each number with its bytes in the wrong order.
    white_is_zero : the largest number is black, and Pillow will not turn it round.
    colours : the palette, three bytes a colour, where Pillow would divide it by 256 once too often.
    """

    bits: int
    signed_bytes: bool
    unsigned_words: bool
    swapped: bool
    white_is_zero: bool
    colours: bytes | None

    def values(self, image: Image.Image) -> npt.NDArray[Any]:
        """The numbers of a decoded greyscale as the file has them, float, signed or unsigned."""
        values = np.asarray(image)
        if self.signed_bytes:
            return values.view(np.int8)
        if self.swapped and self.bits == 16:
            return values.astype(np.uint16).byteswap().view(np.int16)
        if self.swapped:
            values = values.byteswap()
        return values.view(np.uint32) if self.unsigned_words else values


def layout_of(image: TiffImagePlugin.TiffImageFile, label: str) -> Layout:
    """Read the tags of the chosen picture, before it is decoded.

    Raises
    ------
    PictureError
        If Pillow would decode this layout to a wrong picture.
    """
    tags = image.tag_v2
    photometric = tags.get(_PHOTOMETRIC)
    bits = int(np.max(tags.get(_BITS, 1)))
    sample_format = int(np.max(tags.get(_SAMPLE_FORMAT, _UNSIGNED)))
    unpacked = _unpacked(image)
    _refuse_what_pillow_mistakes(image, label, photometric, bits)
    colours = tags.get(_COLOR_MAP, ()) if photometric == _PALETTE else ()
    return Layout(
        bits=bits,
        signed_bytes=sample_format == _SIGNED and image.mode == "L",
        unsigned_words=sample_format == _UNSIGNED and image.mode == "I" and bits == 32,
        swapped=image.use_load_libtiff and unpacked in _NOT_NATIVE[sys.byteorder],
        white_is_zero=photometric == _WHITE_IS_ZERO and unpacked in _NOT_INVERTED,
        # as libtiff does: writers that did not know the 16 bits of a colour map wrote 8
        colours=_interleaved(colours) if colours and max(colours) < 256 else None,
    )


def _unpacked(image: TiffImagePlugin.TiffImageFile) -> str:
    """Pillow's name for how it will unpack the samples."""
    arguments = image.tile[0].args if image.tile else ()
    return str(arguments[0]) if isinstance(arguments, tuple) and arguments else ""


def _interleaved(colour_map: tuple[int, ...]) -> bytes:
    return np.array(colour_map, np.uint8).reshape(3, -1).T.tobytes()


def _refuse_what_pillow_mistakes(
    image: TiffImagePlugin.TiffImageFile, label: str, photometric: int | None, bits: int
) -> None:
    tags = image.tag_v2
    reason = ""
    if photometric is None and image.info.get("compression") != "tiff_jpeg":
        reason = "does not say what its numbers mean as colours (it has no photometric tag)"
    elif tags.get(_PLANAR, 1) == 2 and not _reads_planes(image, photometric, bits):
        reason = "keeps its channels in separate planes in a way that cannot be read"
    elif photometric == _CMYK and tags.get(_INK_SET, 1) != 1:
        reason = "has other inks than cyan, magenta, yellow and black"
    elif photometric == _YCBCR and not image.use_load_libtiff and not _plain_ycbcr(tags):
        reason = "stores YCbCr without compression in a way that cannot be read"
    if reason:
        raise PictureError(f"{label} {reason}: save it as PNG, or as TIFF in plain RGB or grey")


def _reads_planes(image: TiffImagePlugin.TiffImageFile, photometric: int | None, bits: int) -> bool:
    """Whether Pillow reads separate planes: it takes one letter of its own name for each."""
    compressed = image.use_load_libtiff
    if image.tag_v2.get(_SAMPLES, 1) == 1:
        plain = photometric in (_BLACK_IS_ZERO, _PALETTE) and bits == 8
        return compressed or plain or (photometric == _BLACK_IS_ZERO and bits == 1)
    if photometric == _YCBCR:
        return compressed
    return photometric in (_RGB, _CMYK) and (compressed or bits == 8)


def _plain_ycbcr(tags: TiffImagePlugin.ImageFileDirectory_v2) -> bool:
    """Whether YCbCr is as in a JPEG and whole: where the tag is missing, only a quarter is."""
    coefficients = tags.get(_COEFFICIENTS, (0.299, 0.587, 0.114))
    reference = tags.get(_REFERENCE, (0, 255, 128, 255, 128, 255))
    if tags.get(_SAMPLES, 1) == 1:
        return True
    return (
        tuple(tags.get(_SUBSAMPLING, (2, 2))) == (1, 1)
        and np.allclose([float(one) for one in coefficients], (0.299, 0.587, 0.114), atol=1e-3)
        and [float(one) for one in reference] == [0, 255, 128, 255, 128, 255]
    )
