"""Opening a picture: its type by content, its limits before decoding, upright 8-bit RGB after."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from PIL import Image, ImageOps, TiffImagePlugin

from interp.errors import PictureError
from interp.frames import Survey, as_decoded, check_work, survey_of
from interp.pillow_settings import strict_pillow
from interp.pixels import to_rgb
from interp.tiff import Layout, layout_of

MAX_BYTES = 32 * 2**20
MAX_PIXELS = 50_000_000

_READABLE = "JPEG, PNG, WebP, BMP, TIFF and GIF"
_SIGNATURES = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "BMP": (b"BM",),
    "TIFF": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "GIF": (b"GIF87a", b"GIF89a"),
}
_ORIENTATION = 0x0112
_SAMPLES = ("chelsea", "coffee", "camera", "rocket", "motorcycle_left", "astronaut")


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture, ready for a model, and what was done to it on the way.

    Attributes
    ----------
    image : RGB, 8 bits a channel, upright.
    sha256 : of the encoded bytes, in hexadecimal.
    notes : what a person should know, in words: «frame 1 of 7», «transparent, composited on white».
    name : file name for people, without folders.
    format : "JPEG", "PNG", "WebP", "BMP", "TIFF" or "GIF", by content.
    frame, frames : index of the chosen frame from 0, and how many can be chosen.
    more_frames : whether the file has more frames than those, which were not counted.
    """

    image: Image.Image
    sha256: str
    notes: tuple[str, ...]
    name: str
    format: str
    frame: int
    frames: int
    more_frames: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright picture."""
        return self.image.size


def open_picture(
    source: bytes | str | os.PathLike[str], *, name: str | None = None, frame: int = 0
) -> Picture:
    """Read one picture and bring it to upright 8-bit RGB.

    The type is told by content, never by name. Bytes and pixels are limited before any pixel is
    decoded. Greyscale of more than 8 bits is scaled by the range of its own values, transparency is
    composited on white, the EXIF orientation is applied once, and the colours of an embedded
    profile are converted to sRGB; `notes` says each of these.
    At most 1,000 frames are counted.

    Parameters
    ----------
    source : encoded bytes, or the path of a file.
    name : the name to show; the file's own, or "picture" for bytes, if not given.
    frame : index from 0 in a file of several frames.

    Raises
    ------
    PictureError : unreadable, empty, over a limit, not one of the six types, damaged, or without
        that frame.
    """
    data, label = _read(source, name)
    kind = _sniff(data, label)
    with strict_pillow:
        image, survey, notes = _decode(data, kind, label, frame)
    digest = hashlib.sha256(data).hexdigest()
    return Picture(
        image, digest, tuple(notes), label, kind, frame, survey.frames, more_frames=survey.more
    )


def sample_pictures() -> dict[str, Path]:
    """Photographs that scikit-image brings along, by name; only those that are installed."""
    found = importlib.util.find_spec("skimage")
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent / "data"
    candidates = {name: [folder / f"{name}{end}" for end in (".png", ".jpg")] for name in _SAMPLES}
    return {name: path for name, paths in candidates.items() for path in paths if path.is_file()}


def _read(source: bytes | str | os.PathLike[str], name: str | None) -> tuple[bytes, str]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, label = bytes(source), _label(name or "picture")
    elif isinstance(source, (str, os.PathLike)):
        label = _label(name or os.fspath(source))
        try:
            with Path(source).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except IsADirectoryError as error:
            raise PictureError(f"{label} is a folder: name a picture file in it") from error
        except FileNotFoundError as error:
            raise PictureError(f"{label} does not exist: check the path") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PictureError(f"{label} cannot be read ({reason}): check the file") from error
    else:
        raise PictureError(
            f"a picture is given as bytes or as a path, not as {type(source).__name__}"
        )
    if not data:
        raise PictureError(f"{label} is empty (0 bytes): export or download it again")
    if len(data) > MAX_BYTES:
        raise PictureError(
            f"{label} has more than the {MAX_BYTES // 2**20} MB allowed: shrink it or save it as "
            "JPEG"
        )
    return data, label


def _label(name: str) -> str:
    """Name for people: no folders, nothing that breaks a line or a terminal."""
    last = PurePosixPath(name.replace("\\", "/")).name or name
    return "".join(char if char.isprintable() else "?" for char in last)


def _sniff(data: bytes, label: str) -> str:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WebP"
    for kind, signatures in _SIGNATURES.items():
        if data.startswith(signatures):
            return kind
    raise PictureError(f"{label} is not a picture of a known type: give {_READABLE}")


def _decode(
    data: bytes, kind: str, label: str, frame: int
) -> tuple[Image.Image, Survey, list[str]]:
    try:
        counted = survey_of(data, kind, label, frame)
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            _check_size(image.size, label)
            survey = counted or as_decoded(image)
            _check_frame(survey, frame, label)
            check_work(image.size, kind, label, frame)
            if frame and kind in ("JPEG", "TIFF"):
                image.info.pop("icc_profile", None)  # of the first: each page has its own
            image.seek(frame)
            _check_size(image.size, label)
            layout = _layout(image, label)
            notes = survey.note(frame) + _turn(image)
            rgb, colour_notes = to_rgb(image, label, _bits_a_channel(data, kind, layout), layout)
    except PictureError:
        raise
    except Image.DecompressionBombError as error:
        raise PictureError(
            f"{label} has more than the {MAX_PIXELS:,} pixels allowed: shrink it first"
        ) from error
    except Exception as error:  # decoders raise anything on hostile bytes
        raise PictureError(
            f"{label} is damaged, cut short, or a kind of {kind} that cannot be decoded: "
            "export or download it again"
        ) from error
    return rgb, survey, notes + colour_notes


def _check_frame(survey: Survey, frame: int, label: str) -> None:
    if 0 <= frame < survey.frames:
        return
    last = survey.frames - 1
    if survey.more:
        raise PictureError(
            f"{label} has more frames than are counted, and no index {frame} among the "
            f"{survey.frames:,} that are: choose 0 to {last}, or save that frame as a picture"
        )
    raise PictureError(
        f"{label} has no frame of index {frame}: it has {survey.frames}, so choose 0 to {last}"
    )


def _layout(image: Image.Image, label: str) -> Layout | None:
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return None
    return layout_of(image, label)


def _bits_a_channel(data: bytes, kind: str, layout: Layout | None) -> int:
    if layout is not None:
        return layout.bits
    return data[24] if kind == "PNG" else 8


def _check_size(size: tuple[int, int], label: str) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise PictureError(f"{label} has no pixels ({width} × {height}): export it again")
    if width * height > MAX_PIXELS:
        raise PictureError(
            f"{label} is {width} × {height}, more than the {MAX_PIXELS:,} pixels allowed: "
            "shrink it first"
        )


def _turn(image: Image.Image) -> list[str]:
    orientation = None
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        # Pillow turns a TIFF by itself while loading it, and the tag is gone after
        orientation = image.tag_v2.get(_ORIENTATION)
    image.load()
    try:
        orientation = orientation or image.getexif().get(_ORIENTATION)
        ImageOps.exif_transpose(image, in_place=True)
    except SyntaxError:  # Pillow's word for an EXIF block it cannot parse
        return ["its EXIF cannot be read, so it was not turned"]
    return ["turned by its EXIF orientation"] if orientation in range(2, 9) else []
