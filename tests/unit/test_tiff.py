"""Every way of storing a picture that Pillow opens in a TIFF: the right values, or a refusal."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from interp.errors import PictureError
from interp.picture import open_picture
from tests.tiff_files import (
    BITS,
    COEFFICIENTS,
    COLOR_MAP,
    COMPRESSION,
    DEFLATE,
    EXTRA,
    FILL_ORDER,
    FORMAT,
    INK_SET,
    ORIENTATION,
    PHOTOMETRIC,
    PLANAR,
    REFERENCE,
    ROWS,
    SAMPLES,
    SUBSAMPLING,
    TILE_LENGTH,
    TILE_WIDTH,
    Tags,
    tiff,
)

RAMP = (0, 64, 128, 255)
Row = Callable[[str], bytes]


def packed(values: Sequence[int], bits: int) -> bytes:
    """Whole numbers of a few bits each, the highest bit first, filled up to a whole byte."""
    digits = "".join(f"{value:0{bits}b}" for value in values)
    digits += "0" * (-len(digits) % 8)
    return bytes(int(digits[i : i + 8], 2) for i in range(0, len(digits), 8))


def mirrored(data: bytes) -> bytes:
    """Each byte with its lowest bit first, as FillOrder 2 has it."""
    return bytes(int(f"{byte:08b}"[::-1], 2) for byte in data)


def numbers(kind: str, *values: float) -> Row:
    return lambda order: struct.pack(f"{order}{len(values)}{kind}", *values)


def same(data: bytes) -> Row:
    return lambda order: data


def shown(data: bytes) -> np.ndarray:
    return np.asarray(open_picture(data).image).astype(int)


def grey(levels: Sequence[int]) -> list[list[int]]:
    return [[level] * 3 for level in levels]


WORD = 2**32 // 255
GREY: dict[str, tuple[Row, dict[int, Any]]] = {
    "uint8": (same(bytes(RAMP)), {BITS: 8}),
    "int8": (numbers("b", -128, -64, 0, 127), {BITS: 8, FORMAT: 2}),
    "uint12": (same(packed([16 * v for v in RAMP], 12)), {BITS: 12}),
    "uint16": (numbers("H", *(257 * v for v in RAMP)), {BITS: 16}),
    "int16": (numbers("h", *(257 * v - 2**15 for v in RAMP)), {BITS: 16, FORMAT: 2}),
    "uint32": (numbers("I", *(WORD * v for v in RAMP)), {BITS: 32}),
    "int32": (numbers("i", *(WORD * v - 2**31 for v in RAMP)), {BITS: 32, FORMAT: 2}),
    "float32": (numbers("f", *RAMP), {BITS: 32, FORMAT: 3}),
    "uint16, planar": (numbers("H", *(257 * v for v in RAMP)), {BITS: 16, PLANAR: 2}),
    "float32, planar": (numbers("f", *RAMP), {BITS: 32, FORMAT: 3, PLANAR: 2}),
}
# what Pillow opens of these: the rest it refuses, and so do we
OPENS = {
    ("<", 1): set(GREY),
    (">", 1): set(GREY) - {"uint12", "uint32"},
    ("<", 0): {"uint8", "uint16", "float32", "uint16, planar", "float32, planar"},
    (">", 0): {"uint8", "float32", "float32, planar"},
}


class TestGrey:
    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("photometric", [1, 0], ids=["black is zero", "white is zero"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("kind", GREY)
    def test_a_ramp(self, kind: str, order: str, photometric: int, deflate: bool) -> None:
        row, tags = GREY[kind]
        data = tiff(order, (4, 1), [row(order)], tags | {PHOTOMETRIC: photometric}, deflate=deflate)
        levels = RAMP if photometric else [255 - v for v in RAMP]
        if kind in OPENS[order, photometric] and (deflate or PLANAR not in tags):
            assert shown(data)[0].tolist() == grey(levels)
        else:
            with pytest.raises(PictureError):
                open_picture(data)

    @pytest.mark.parametrize("mirror", [False, True])
    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("photometric", [1, 0], ids=["black is zero", "white is zero"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("bits", [1, 2, 4])
    def test_few_bits(
        self, bits: int, order: str, photometric: int, deflate: bool, mirror: bool
    ) -> None:
        top = 2**bits - 1
        row = packed([0, 1, top, 0, 1], bits)
        row = zlib.compress(row) if deflate else row
        tags: dict[int, Any] = {BITS: bits, PHOTOMETRIC: photometric}
        tags |= {COMPRESSION: DEFLATE} if deflate else {}
        tags |= {FILL_ORDER: 2} if mirror else {}
        levels = [v * 255 // top for v in (0, 1, top, 0, 1)]
        levels = levels if photometric else [255 - v for v in levels]
        data = tiff(order, (5, 1), [mirrored(row) if mirror else row], tags)
        assert shown(data)[0].tolist() == grey(levels)

    def test_twelve_bits_fill_up_each_row(self) -> None:
        rows = packed([0, 1024, 4080], 12) + packed([4080, 0, 2048], 12)
        data = tiff("<", (3, 2), [rows], {BITS: 12, PHOTOMETRIC: 1})
        assert shown(data)[..., 0].tolist() == [[0, 64, 255], [255, 0, 128]]
        assert open_picture(data).notes == ("12-bit greyscale, scaled from 0..4080",)

    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("kind", ["int16", "float32"])
    def test_differences_of_neighbours(self, kind: str, order: str) -> None:
        values = np.array([257 * v - 2**15 for v in RAMP])
        steps = np.diff(values, prepend=0) % 2**16
        tags: dict[int, Any] = {BITS: 16, FORMAT: 2, PHOTOMETRIC: 1, 317: 2}
        if kind == "float32":  # of the bytes, the highest of all numbers first
            planes = np.array(RAMP, ">f4").view(np.uint8).reshape(4, 4).T.ravel()
            steps = np.diff(planes.astype(int), prepend=0) % 256
            tags |= {BITS: 32, FORMAT: 3, 317: 3}
        row = steps.astype(np.uint8 if kind == "float32" else f"{order}u2").tobytes()
        data = tiff(order, (4, 1), [row], tags, deflate=True)
        assert shown(data)[0].tolist() == grey(RAMP)

    def test_the_notes_give_the_numbers_of_the_file(self) -> None:
        row, tags = GREY["uint16"]
        white = open_picture(tiff("<", (4, 1), [row("<")], tags | {PHOTOMETRIC: 0}))
        assert white.notes == ("16-bit greyscale whose zero is white, scaled from 65535..0",)
        row, tags = GREY["int8"]
        signed = open_picture(tiff("<", (4, 1), [row("<")], tags | {PHOTOMETRIC: 1}))
        assert signed.notes == ("signed 8-bit greyscale, scaled from -128..127",)
        row, tags = GREY["uint32"]
        top = WORD * 255
        large = open_picture(tiff("<", (4, 1), [row("<")], tags | {PHOTOMETRIC: 1}))
        assert large.notes == (f"integer greyscale, scaled from 0..{top}",)

    @pytest.mark.parametrize("order", ["<", ">"])
    def test_turned_and_white_is_zero(self, order: str) -> None:
        row = struct.pack(order + "4f", *RAMP)
        tags = {BITS: 32, FORMAT: 3, PHOTOMETRIC: 0, ORIENTATION: 6}
        data = tiff(order, (2, 2), [row], tags, deflate=True)
        assert shown(data)[..., 0].tolist() == [[127, 255], [0, 191]]

    def test_nothing_says_what_zero_is(self) -> None:
        with pytest.raises(PictureError, match=r"no photometric tag.*save it as PNG"):
            open_picture(tiff("<", (4, 1), [bytes(RAMP)], {BITS: 8}))


PIXELS = [[10, 20, 30], [200, 100, 50]]
CLEAR = [[10, 20, 30], [255, 255, 255]]
PALETTE = [[255, 128, 0], [0, 64, 192], [17, 0, 34], [1, 2, 3]]
INKS, INKED = [[0, 255, 255, 0], [0, 0, 0, 255]], [[255, 0, 0], [0, 0, 0]]
RED_AND_GREY, SEEN = [[76, 85, 255], [128, 128, 128]], [[254, 0, 0], [128, 128, 128]]


def colour_map(bits: int, times: int) -> list[int]:
    entries = PALETTE[: 2**bits] + [[0, 0, 0]] * (2**bits - 4)
    return [entry[channel] * times for channel in range(3) for entry in entries]


def channels(photometric: int, bits: int, count: int, **more: Any) -> dict[int, Any]:
    tags = {PHOTOMETRIC: photometric, BITS: [bits] * count, SAMPLES: count}
    return tags | ({EXTRA: more["extra"]} if "extra" in more else {})


COLOUR: dict[str, tuple[list[list[int]], dict[int, Any], list[list[int]]]] = {
    "RGB": (PIXELS, channels(2, 8, 3), PIXELS),
    "RGB of 16 bits": (PIXELS, channels(2, 16, 3), PIXELS),
    "RGB and one to ignore": ([[*p, 9] for p in PIXELS], channels(2, 8, 4, extra=0), PIXELS),
    "RGB of 16 and one": ([[*p, 9] for p in PIXELS], channels(2, 16, 4, extra=0), PIXELS),
    "RGB and three": (
        [[*p, 9, 8, 7] for p in PIXELS],
        channels(2, 8, 6, extra=[0, 0, 0]),
        PIXELS,
    ),
    "RGBA": ([[10, 20, 30, 255], [9, 9, 9, 0]], channels(2, 8, 4, extra=2), CLEAR),
    "RGBA of 16": ([[10, 20, 30, 255], [9, 9, 9, 0]], channels(2, 16, 4, extra=2), CLEAR),
    "RGBA, multiplied": ([[100, 50, 25, 128]], channels(2, 8, 4, extra=1), [[227, 177, 152]]),
    "RGBA of 16, multiplied": (
        [[100, 50, 25, 128]],
        channels(2, 16, 4, extra=1),
        [[227, 177, 152]],
    ),
    "grey and one to ignore": ([[10, 0], [20, 9]], channels(1, 8, 2, extra=0), grey([10, 20])),
    "grey and alpha": ([[10, 255], [20, 0]], channels(1, 8, 2, extra=2), grey([10, 255])),
    "grey, multiplied": ([[100, 128]], channels(1, 8, 2, extra=1), grey([227])),
    "palette and one to ignore": (
        [[0, 9], [1, 0]],
        channels(3, 8, 2, extra=0) | {COLOR_MAP: colour_map(8, 257)},
        PALETTE[:2],
    ),
    "palette and alpha": (
        [[0, 255], [1, 0]],
        channels(3, 8, 2, extra=2) | {COLOR_MAP: colour_map(8, 257)},
        [PALETTE[0], [255, 255, 255]],
    ),
    "CMYK": (INKS, channels(5, 8, 4), INKED),
    "CMYK of 16": (INKS, channels(5, 16, 4), INKED),
    "CMYK and one to ignore": ([[*i, 9] for i in INKS], channels(5, 8, 5, extra=0), INKED),
    "YCbCr": (RED_AND_GREY, channels(6, 8, 3) | {SUBSAMPLING: [1, 1]}, SEEN),
    # lightness 137 of 255, a and b in two's complement: grey, and nearly the red of sRGB
    "LAB": ([[137, 0, 0], [138, 80, 67]], channels(8, 8, 3), [[128, 128, 128], [251, 9, 11]]),
}
# those that Pillow reads although each channel lies in a plane of its own
PLANES = {
    False: {"RGB", "RGBA", "CMYK"},
    True: {
        *("RGB", "RGB of 16 bits", "RGB and one to ignore", "RGB of 16 and one", "RGB and three"),
        *("RGBA", "RGBA of 16", "RGBA, multiplied", "RGBA of 16, multiplied"),
        *("CMYK", "CMYK of 16", "CMYK and one to ignore", "YCbCr"),
    },
}


class TestColour:
    @staticmethod
    def stored(order: str, rows: list[list[int]], tags: Tags) -> np.ndarray:
        bits = tags[BITS][0]  # type: ignore[index]
        return np.array(rows, f"{order}u{bits // 8}") * (257 if bits == 16 else 1)

    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("kind", COLOUR)
    def test_pixel_by_pixel(self, kind: str, order: str, deflate: bool) -> None:
        rows, tags, expected = COLOUR[kind]
        strip = self.stored(order, rows, tags).astype(f"{order}u{tags[BITS][0] // 8}").tobytes()
        data = tiff(order, (len(rows), 1), [strip], tags, deflate=deflate)
        assert np.abs(shown(data)[0] - expected).max() <= (kind == "LAB")

    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("kind", COLOUR)
    def test_plane_by_plane(self, kind: str, order: str, deflate: bool) -> None:
        rows, tags, expected = COLOUR[kind]
        planes = self.stored(order, rows, tags).T.astype(f"{order}u{tags[BITS][0] // 8}")
        strips = [plane.tobytes() for plane in planes]
        data = tiff(order, (len(rows), 1), strips, tags | {PLANAR: 2}, deflate=deflate)
        if kind in PLANES[deflate]:
            assert shown(data)[0].tolist() == expected
        else:
            with pytest.raises(PictureError):
                open_picture(data)

    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("bits", [1, 2, 4, 8])
    @pytest.mark.parametrize("times", [257, 1], ids=["16-bit map", "8-bit map"])
    def test_palette(self, bits: int, order: str, deflate: bool, times: int) -> None:
        count = min(4, 2**bits)
        tags = {BITS: bits, PHOTOMETRIC: 3, COLOR_MAP: colour_map(bits, times)}
        row = packed(range(count), bits)
        data = tiff(order, (count, 1), [row], tags, deflate=deflate)
        assert shown(data)[0].tolist() == PALETTE[:count]

    @pytest.mark.parametrize("tags", [{SUBSAMPLING: [2, 2]}, {}], ids=["said", "by default"])
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_a_quarter_of_the_colours(self, order: str, tags: dict[int, Any]) -> None:
        units = bytes([76, 76, 76, 76, 85, 255]) * 4
        tags = channels(6, 8, 3) | tags
        assert shown(tiff(order, (4, 4), [units], tags, deflate=True))[3, 3].tolist() == SEEN[0]
        with pytest.raises(PictureError, match=r"YCbCr without compression.*save it as"):
            open_picture(tiff(order, (4, 4), [units], tags))

    @pytest.mark.parametrize(
        "tags",
        [
            {REFERENCE: [16, 235, 128, 240, 128, 240]},
            {COEFFICIENTS: [1, 0, 0]},
        ],
    )
    def test_another_ycbcr(self, tags: dict[int, Any]) -> None:
        tags = channels(6, 8, 3) | {SUBSAMPLING: [1, 1]} | tags
        with pytest.raises(PictureError, match="YCbCr without compression"):
            open_picture(tiff("<", (1, 1), [bytes(3)], tags))

    def test_only_the_brightness_of_ycbcr(self) -> None:
        data = tiff("<", (2, 1), [bytes([10, 20])], {PHOTOMETRIC: 6, BITS: 8})
        assert shown(data)[0].tolist() == grey([10, 20])

    @pytest.mark.parametrize("deflate", [False, True])
    def test_other_inks(self, deflate: bool) -> None:
        tags = channels(5, 8, 4) | {INK_SET: 2}
        with pytest.raises(PictureError, match="other inks than cyan"):
            open_picture(tiff("<", (1, 1), [bytes(4)], tags, deflate=deflate))


class TestParts:
    PICTURE = np.arange(18 * 20).reshape(18, 20) % 256

    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize(("bits", "photometric"), [(1, 1), (4, 0), (8, 1), (12, 1), (16, 1)])
    def test_tiles(self, bits: int, photometric: int, order: str, deflate: bool) -> None:
        if (bits, order) == (12, ">"):
            pytest.skip("Pillow refuses it")
        values = self.PICTURE % 2**bits
        padded = np.pad(values, ((0, 14), (0, 12)))
        blocks = [padded[y : y + 16, x : x + 16] for y in (0, 16) for x in (0, 16)]
        if bits == 16:
            parts = [block.astype(f"{order}u2").tobytes() for block in blocks]
        else:
            parts = [b"".join(packed(row.tolist(), bits) for row in block) for block in blocks]
        tags = {BITS: bits, PHOTOMETRIC: photometric, TILE_WIDTH: 16, TILE_LENGTH: 16}
        seen = shown(tiff(order, (20, 18), parts, tags, deflate=deflate))[..., 0]
        levels = values * 255 // (2**bits - 1) if bits < 8 else values
        assert np.array_equal(seen, levels if photometric else 255 - levels)

    @pytest.mark.parametrize("deflate", [False, True], ids=["raw", "deflate"])
    @pytest.mark.parametrize("planar", [1, 2])
    def test_strips(self, planar: int, deflate: bool) -> None:
        colours = np.stack([self.PICTURE, self.PICTURE // 2, 255 - self.PICTURE], -1)
        tops = range(0, 18, 4)
        if planar == 1:
            parts = [colours[top : top + 4] for top in tops]
        else:
            parts = [colours[top : top + 4, :, c] for c in range(3) for top in tops]
        strips = [part.astype(np.uint8).tobytes() for part in parts]
        tags = channels(2, 8, 3) | {ROWS: 4, PLANAR: planar}
        assert np.array_equal(shown(tiff("<", (20, 18), strips, tags, deflate=deflate)), colours)
