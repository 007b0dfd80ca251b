"""TIFF files written byte by byte, so that what they hold is known without a library's word."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

WIDTH, LENGTH, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
FILL_ORDER, OFFSETS, SAMPLES, ROWS, COUNTS, PLANAR = 266, 273, 277, 278, 279, 284
ORIENTATION, COEFFICIENTS = 274, 529
COLOR_MAP, TILE_WIDTH, TILE_LENGTH, TILE_OFFSETS, TILE_COUNTS = 320, 322, 323, 324, 325
INK_SET, EXTRA, FORMAT, SUBSAMPLING, REFERENCE, PROFILE = 332, 338, 339, 530, 532, 34675
DEFLATE = 8
_LONG_TAGS = {OFFSETS, COUNTS, TILE_OFFSETS, TILE_COUNTS}

Tags = Mapping[int, int | Sequence[int] | bytes | None]


def tiff(
    order: str,
    size: tuple[int, int],
    parts: Sequence[bytes],
    tags: Tags,
    *,
    deflate: bool = False,
) -> bytes:
    """A TIFF of one picture.

    Parameters
    ----------
    order : "<" or ">", as `struct` writes byte orders.
    size : width and height.
    parts : the strips, or the tiles where `tags` give the size of a tile.
    tags : values by number; a None leaves out what is written by itself.
    deflate : compress the parts, which sends Pillow through libtiff.
    """
    parts = [zlib.compress(part) for part in parts] if deflate else list(parts)
    places, at = [], 8
    for part in parts:
        places.append(at)
        at += len(part)
    tiled = TILE_WIDTH in tags
    known: dict[int, int | Sequence[int] | bytes | None] = {
        WIDTH: size[0],
        LENGTH: size[1],
        COMPRESSION: DEFLATE if deflate else 1,
        TILE_OFFSETS if tiled else OFFSETS: places,
        TILE_COUNTS if tiled else COUNTS: [len(part) for part in parts],
        **({} if tiled else {ROWS: size[1]}),
        **tags,
    }
    body = b"".join(parts)
    body += b"\0" * (len(body) % 2)
    start = 8 + len(body)
    return (
        (b"II" if order == "<" else b"MM")
        + struct.pack(order + "HI", 42, start)
        + body
        + directory(order, known, start)
    )


def directory(order: str, tags: Tags, start: int, following: int = 0) -> bytes:
    """An image file directory that lies at `start`, with its long values behind it."""
    entries, behind = [], b""
    after = start + 2 + 12 * sum(value is not None for value in tags.values()) + 4
    for number, value in sorted(tags.items()):
        if value is None:
            continue
        if isinstance(value, bytes):
            kind, count, raw = 7, len(value), value
        else:
            values = [value] if isinstance(value, int) else list(value)
            kind = 4 if number in _LONG_TAGS or max(values) > 65535 else 3
            count, raw = (
                len(values),
                struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values),
            )
        if len(raw) > 4:
            place = struct.pack(order + "I", after + len(behind))
            behind += raw + b"\0" * (len(raw) % 2)
        else:
            place = raw.ljust(4, b"\0")
        entries.append(struct.pack(order + "HHI", number, kind, count) + place)
    head = struct.pack(order + "H", len(entries))
    return head + b"".join(entries) + struct.pack(order + "I", following) + behind
