"""Colour profiles written byte by byte, by the numbers of their standards."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

XYZ = tuple[float, float, float]
# what the red, green and blue of each space are, as the profile connection space has them
SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410))
P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
_WHITE = (0.9642, 1.0, 0.8249)


def _fixed(*values: float) -> bytes:
    return struct.pack(f">{len(values)}i", *(round(value * 65536) for value in values))


def _xyz(values: XYZ) -> bytes:
    return b"XYZ \0\0\0\0" + _fixed(*values)


def _name(text: str) -> bytes:
    encoded = text.encode("utf-16-be")
    return (
        b"mluc\0\0\0\0" + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(encoded), 28) + encoded
    )


def srgb_curve() -> bytes:
    """The curve of sRGB, which is that of Display P3 too."""
    return (
        b"para\0\0\0\0"
        + struct.pack(">HH", 3, 0)
        + _fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
    )


def power_curve(gamma: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"


def _profile(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    table, body, at = struct.pack(">I", len(tags)), b"", 128 + 4 + 12 * len(tags)
    for name, data in tags.items():
        padded = data + b"\0" * (-len(data) % 4)
        table += struct.pack(">4sII", name, at + len(body), len(data))
        body += padded
    size = at + len(body)
    header = struct.pack(
        ">I4sI4s4s4s12s4s",
        size,
        b"\0" * 4,
        0x04300000,
        kind,
        space,
        connection,
        struct.pack(">6H", 2020, 1, 1, 0, 0, 0),
        b"acsp",
    )
    header += bytes(28) + _fixed(*_WHITE)
    return header.ljust(128, b"\0") + table + body


def matrix_profile(name: str, colorants: Sequence[XYZ], curve: bytes) -> bytes:
    tags = {b"desc": _name(name), b"cprt": _name("none"), b"wtpt": _xyz(_WHITE)}
    tags |= {
        channel + b"XYZ": _xyz(xyz)
        for channel, xyz in zip((b"r", b"g", b"b"), colorants, strict=True)
    }
    tags |= {channel + b"TRC": curve for channel in (b"r", b"g", b"b")}
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags)


def grey_profile(name: str, curve: bytes) -> bytes:
    tags = {b"desc": _name(name), b"cprt": _name("none"), b"wtpt": _xyz(_WHITE), b"kTRC": curve}
    return _profile(b"mntr", b"GRAY", b"XYZ ", tags)


def ink_profile(name: str, lab: Callable[[int, int, int, int], XYZ]) -> bytes:
    """Of CMYK, by the colour of every ink used fully or not at all; between them it is linear."""
    corners = [[(n >> 3) & 1, (n >> 2) & 1, (n >> 1) & 1, n & 1] for n in range(16)]
    table = b""
    for corner in corners:
        lightness, a, b = lab(*corner)
        table += bytes([round(lightness * 2.55), round(a) + 128, round(b) + 128])
    straight = bytes(range(256))
    lut = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + _fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    lut += straight * 4 + table + straight * 3
    tags = {b"desc": _name(name), b"cprt": _name("none"), b"wtpt": _xyz(_WHITE), b"A2B0": lut}
    return _profile(b"prtr", b"CMYK", b"Lab ", tags)
