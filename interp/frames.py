"""What a file makes a decoder do, counted in its bytes before a decoder sees them.

Pillow counts frames by walking the whole file, and takes as many steps as the file has blocks,
chunks, directories or strips. A file of 32 MB can have millions of them, so the walk here stops at
a cap, and what lies beyond is refused or left uncounted.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image

from interp.errors import PictureError

MAX_FRAMES = 1_000
MAX_PARTS = 500_000
MAX_DECODED = 250_000_000
MAX_SCANNED = 2_000_000_000
MAX_RUNS = 4 * 2**20

_OFFSETS_OF_STRIPS = (273, 324)
_DRAWN_OVER = ("GIF", "WebP", "PNG")
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")


@dataclass(frozen=True)
class Survey:
    """Frames of a file, as far as they were counted.

    Attributes
    ----------
    frames : how many there are, at most `MAX_FRAMES`.
    more : there are more, which were not counted.
    """

    frames: int
    more: bool

    def note(self, frame: int) -> list[str]:
        """Which frame of how many, in words; nothing for a still picture."""
        if self.more:
            return [f"frame {frame + 1} of more than {self.frames:,}"]
        return [f"frame {frame + 1} of {self.frames}"] if self.frames > 1 else []


class Walk:
    """Steps through a file, of which there may be `MAX_PARTS`."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._parts = 0

    def step(self, parts: int = 1) -> None:
        """Count `parts` more.

        Raises
        ------
        PictureError
            If there are more than `MAX_PARTS`.
        """
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise PictureError(
                f"{self._label} is cut into more than the {MAX_PARTS:,} parts allowed: open it in "
                "a picture editor and save it again"
            )


def survey_of(data: bytes, kind: str, label: str, frame: int) -> Survey | None:
    """Count the frames of `data`, and refuse what would take a decoder too many steps.

    Returns
    -------
    Survey, or None for a type whose decoder knows the number without counting.

    Raises
    ------
    PictureError
        If the file is cut into too many parts, or to decode `frame` means to decode too much.
    """
    walk = Walk(label)
    if kind == "GIF":
        return _gif(data, walk, label, frame)
    if kind == "PNG":
        return _png(data, walk)
    if kind == "TIFF":
        return _tiff(data, walk, frame)
    if kind == "JPEG":
        _jpeg(data, walk, label)
    if kind == "BMP" and data[30:31] in (b"\1", b"\2") and len(data) > MAX_RUNS:
        # the one decoder of Pillow that is written in Python: half a microsecond a byte
        raise PictureError(
            f"{label} is a BMP with run lengths of more than the {MAX_RUNS // 2**20} MB allowed: "
            "save it as PNG"
        )
    return None


def as_decoded(image: Image.Image) -> Survey:
    """Frames as the decoder says, for a file that need not be walked."""
    frames = int(getattr(image, "n_frames", 1))
    return Survey(min(frames, MAX_FRAMES), frames > MAX_FRAMES)


def check_work(size: tuple[int, int], kind: str, label: str, frame: int) -> None:
    """Refuse a frame that means to decode too many before it.

    Raises
    ------
    PictureError
    """
    pixels = size[0] * size[1]
    if kind in _DRAWN_OVER and frame and (frame + 1) * pixels > MAX_DECODED:
        last = max(1, MAX_DECODED // pixels)
        raise PictureError(
            f"frame {frame + 1} of {label} is drawn over {frame} others of {size[0]} × {size[1]}, "
            f"more than the {MAX_DECODED:,} pixels allowed: choose a frame up to {last}, or save "
            "that frame as a picture"
        )


def _gif(data: bytes, walk: Walk, label: str, frame: int) -> Survey:
    width, height, flags = struct.unpack_from("<HHB", data.ljust(13, b"\0"), 6)
    at = 13 + _colours(flags)
    frames = 0
    while frames <= MAX_FRAMES:
        kind = data[at : at + 1]
        if kind == b"!":
            at = _past_blocks(data, at + 2, walk)
        elif kind == b"," and len(data) > at + 9:
            left, top, across, down, flags = struct.unpack_from("<HHHHB", data, at + 1)
            if frames <= frame:  # a frame may reach beyond the canvas, which then grows
                width, height = max(width, left + across), max(height, top + down)
            frames += 1
            at = _past_blocks(data, at + 11 + _colours(flags), walk)
        elif kind in (b"", b",", b";"):
            break
        else:
            at += 1
            walk.step()
    if frame < frames:
        check_work((width, height), "GIF", label, frame)
    return Survey(max(1, min(frames, MAX_FRAMES)), frames > MAX_FRAMES)


def _colours(flags: int) -> int:
    """Bytes of a GIF's colour table."""
    return 3 << (flags & 7) + 1 if flags & 128 else 0


def _past_blocks(data: bytes, at: int, walk: Walk) -> int:
    while at < len(data) and data[at]:
        at += 1 + data[at]
        walk.step()
    walk.step()
    return at + 1


def _png(data: bytes, walk: Walk) -> Survey:
    at, said, controls, still = 8, 0, 0, 0
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"acTL" and not said and length >= 4:
            said = struct.unpack_from(">I", data.ljust(at + 12, b"\0"), at + 8)[0]
        elif kind == b"fcTL":
            controls += 1
        elif kind == b"IDAT" and not controls:
            still = 1  # the picture for those who cannot play the animation is none of its frames
        elif kind == b"IEND":
            break
        at += 12 + length
        walk.step()
    frames = max(1, min(said, controls) + still) if said else 1
    return Survey(min(frames, MAX_FRAMES), frames > MAX_FRAMES)


def _tiff(data: bytes, walk: Walk, frame: int) -> Survey:
    seen: dict[int, None] = {}
    for place, entries in _directories(data):
        if place in seen:
            break
        if len(seen) <= frame:  # the decoder reads every directory up to the chosen one
            walk.step(len(entries) // 12)
        if len(seen) == frame:
            walk.step(_strips(data, entries))
        seen[place] = None
        if len(seen) > MAX_FRAMES:
            break
    return Survey(max(1, min(len(seen), MAX_FRAMES)), len(seen) > MAX_FRAMES)


def _is_big(data: bytes) -> bool:
    return data[2:4] in (b"+\0", b"\0+")


def _directories(data: bytes) -> Iterator[tuple[int, memoryview]]:
    """Place and entries of each directory of a TIFF or BigTIFF, as they are linked."""
    order = "<" if data.startswith(b"II") else ">"
    count, link, width, at = ("Q", "Q", 20, 8) if _is_big(data) else ("H", "I", 12, 4)
    try:
        while place := struct.unpack_from(order + link, data, at)[0]:
            (entries,) = struct.unpack_from(order + count, data, place)
            first = place + struct.calcsize(count)
            at = first + entries * width
            yield place, memoryview(data)[first:at]
    except struct.error:  # cut short: the decoder says so where it matters
        return


def _strips(data: bytes, entries: memoryview) -> int:
    """Strips or tiles that a directory lists."""
    order = "<" if data.startswith(b"II") else ">"
    entry = struct.Struct(order + ("HHQ8x" if _is_big(data) else "HHI4x"))
    whole = entries[: len(entries) // entry.size * entry.size]
    listed = entry.iter_unpack(whole)
    return sum(count for number, _, count in listed if number in _OFFSETS_OF_STRIPS)


def _jpeg(data: bytes, walk: Walk, label: str) -> None:
    """Refuse a JPEG that goes over its pixels more often than any encoder has it."""
    at, scans, width, height = 2, 0, 0, 0
    while at + 9 <= len(data):
        if scans:  # behind coded pixels, in which there is no such pair of bytes
            found = _MARKER.search(data, at)
            at = found.start() if found else len(data)
        if data[at : at + 1] != b"\xff" or at + 9 > len(data) or data[at + 1] == 0xD9:
            break
        marker = data[at + 1]
        walk.step()
        if marker == 0xFF:
            at += 1
        elif marker in (0, 1) or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack_from(">HH", data, at + 5)
            scans += marker == 0xDA
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    if scans * width * height > MAX_SCANNED:
        raise PictureError(
            f"{label} draws its {width} × {height} pixels in {scans:,} passes: save it again as an "
            "ordinary JPEG"
        )
