"""Pictures with a colour profile: right values by the formulas of the standards."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from interp.errors import PictureError
from interp.picture import Picture, open_picture
from tests.icc_files import (
    ADOBE,
    P3,
    SRGB,
    grey_profile,
    ink_profile,
    matrix_profile,
    power_curve,
    srgb_curve,
)
from tests.tiff_files import BITS, PHOTOMETRIC, PROFILE, SAMPLES, tiff

DISPLAY_P3 = matrix_profile("Display P3", P3, srgb_curve())
ADOBE_RGB = matrix_profile("Adobe RGB (1998)", ADOBE, power_curve(563 / 256))
LINEAR_GREY = grey_profile("Linear grey", power_curve(1.0))
FROM_P3 = "colours converted from Display P3 to sRGB"
UNREADABLE = "its colour profile cannot be read and was ignored"


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    options |= {"lossless": True} if kind == "WEBP" else {}
    options |= {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def filled(mode: str, colour: int | tuple[int, ...], profile: bytes, kind: str = "PNG") -> Picture:
    return open_picture(encoded(Image.new(mode, (8, 8), colour), kind, icc_profile=profile))


class TestColours:
    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
    def test_display_p3(self, kind: str) -> None:
        opened = filled("RGB", (200, 40, 40), DISPLAY_P3, kind)
        assert opened.image.getpixel((4, 4)) == pytest.approx((218, 0, 26), abs=2)
        assert opened.notes == (FROM_P3,)

    @pytest.mark.parametrize(
        ("colour", "expected"),
        # decoded by the power 563/256, through both matrices, and into the curve of sRGB
        [
            ((200, 40, 40), (233, 35, 35)),
            ((10, 20, 30), (0, 12, 24)),
            ((90, 150, 200), (36, 151, 203)),
        ],
    )
    def test_adobe_rgb(self, colour: tuple[int, ...], expected: tuple[int, ...]) -> None:
        opened = filled("RGB", colour, ADOBE_RGB)
        assert opened.image.getpixel((0, 0)) == pytest.approx(expected, abs=1)
        assert opened.notes == ("colours converted from Adobe RGB (1998) to sRGB",)

    @pytest.mark.parametrize(
        ("gamma", "level", "expected"),
        [(1.0, 128, 188), (1.0, 20, 79), (2.2, 20, 12), (2.2, 255, 255)],
    )
    def test_grey(self, gamma: float, level: int, expected: int) -> None:
        opened = filled("L", level, grey_profile("A grey", power_curve(gamma)))
        assert opened.image.getpixel((0, 0)) == pytest.approx((expected,) * 3, abs=1)
        assert opened.notes == ("colours converted from A grey to sRGB",)

    @pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
    @pytest.mark.parametrize(
        ("inks", "expected"),
        [((0, 0, 0, 0), 255), ((255, 0, 0, 0), 128), ((0, 0, 0, 255), 0), ((0, 255, 255, 0), 255)],
    )
    def test_cmyk(self, kind: str, inks: tuple[int, ...], expected: int) -> None:
        def lab(c: int, m: int, y: int, k: int) -> tuple[float, float, float]:
            return (0, 0, 0) if k else (53.6, 0, 0) if c else (100, 0, 0)

        opened = filled("CMYK", inks, ink_profile("Odd inks", lab), kind)
        assert opened.image.getpixel((4, 4)) == pytest.approx((expected,) * 3, abs=2)
        assert opened.notes == ("colours converted from Odd inks to sRGB",)

    def test_cmyk_without_a_profile(self) -> None:
        opened = open_picture(encoded(Image.new("CMYK", (2, 2), (0, 255, 255, 0)), "TIFF"))
        assert opened.notes == ("CMYK, converted to RGB without a colour profile",)

    def test_palette(self) -> None:
        image = Image.new("P", (2, 1))
        image.putpalette([200, 40, 40])
        opened = open_picture(encoded(image, icc_profile=DISPLAY_P3))
        assert opened.image.getpixel((0, 0)) == pytest.approx((218, 0, 26), abs=1)

    def test_grey_in_the_colours_of_a_screen(self) -> None:
        opened = filled("L", 128, matrix_profile("Linear", SRGB, power_curve(1.0)))
        assert opened.image.getpixel((0, 0)) == pytest.approx((188,) * 3, abs=1)

    def test_black_and_white(self) -> None:
        assert filled("1", 1, LINEAR_GREY).image.getpixel((0, 0)) == (255, 255, 255)

    def test_nothing_of_the_profile_is_left_for_later_files(self) -> None:
        assert filled("RGB", (1, 2, 3), DISPLAY_P3).image.info == {}


class TestNothingToDo:
    @pytest.mark.parametrize(
        "profile",
        [
            ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
            matrix_profile("By another name", SRGB, srgb_curve()),
        ],
        ids=["built in", "by hand"],
    )
    @pytest.mark.parametrize("mode", ["RGB", "L", "P"])
    def test_srgb(self, mode: str, profile: bytes) -> None:
        ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None]).convert(mode)
        opened = open_picture(encoded(ramp, icc_profile=profile))
        assert np.asarray(opened.image)[0, :, 1].tolist() == list(range(256))
        assert opened.notes == ()

    def test_grey_with_the_curve_of_srgb(self) -> None:
        opened = filled("L", 77, grey_profile("sGrey", srgb_curve()))
        assert opened.image.getpixel((0, 0)) == (77, 77, 77)
        assert opened.notes == ()

    def test_a_name_is_not_believed(self) -> None:
        opened = filled("RGB", (200, 40, 40), matrix_profile("sRGB IEC61966-2.1", P3, srgb_curve()))
        assert opened.image.getpixel((0, 0)) == pytest.approx((218, 0, 26), abs=1)


class TestUnusable:
    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
    @pytest.mark.parametrize("profile", [b"no profile at all", DISPLAY_P3[:200]])
    def test_unreadable(self, profile: bytes, kind: str) -> None:
        opened = filled("RGB", (200, 40, 40), profile, kind)
        assert opened.image.getpixel((4, 4)) == pytest.approx((200, 40, 40), abs=1)
        assert opened.notes == (UNREADABLE,)

    def test_pieces_are_missing(self) -> None:
        data = encoded(Image.new("RGB", (8, 8), (200, 40, 40)), "JPEG", icc_profile=DISPLAY_P3)
        place = data.index(b"ICC_PROFILE\0") + 13
        assert open_picture(data[:place] + b"\2" + data[place + 1 :]).notes == (UNREADABLE,)

    def test_compressed_wrongly(self) -> None:
        data = encoded(Image.new("RGB", (8, 8), (200, 40, 40)), icc_profile=DISPLAY_P3)
        start = data.index(b"iCCP")
        (length,) = struct.unpack(">I", data[start - 4 : start])
        chunk = b"iCCP" + b"name\0\0" + bytes(length - 6)
        broken = data[:start] + chunk + struct.pack(">I", zlib.crc32(chunk))
        broken += data[start + 4 + length + 4 :]
        assert open_picture(broken).notes == (UNREADABLE,)

    def test_of_other_colours(self) -> None:
        opened = filled("RGB", (200, 40, 40), LINEAR_GREY)
        assert opened.image.getpixel((0, 0)) == (200, 40, 40)
        assert opened.notes == ("its colour profile Linear grey is not for RGB and was ignored",)

    @pytest.mark.parametrize(
        ("name", "shown"),
        [("", "without a name"), ("two\nlines", "two lines"), ("x" * 99, "x" * 60)],
    )
    def test_its_name_in_words(self, name: str, shown: str) -> None:
        opened = filled("RGB", (9, 9, 9), matrix_profile(name, P3, srgb_curve()))
        assert opened.notes == (f"colours converted from {shown} to sRGB",)

    @given(spots=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=6))
    @settings(max_examples=80, deadline=None)
    def test_hostile_bytes_give_a_picture_or_a_refusal(self, spots: list[tuple[int, int]]) -> None:
        profile = bytearray(DISPLAY_P3)
        for place, value in spots:
            profile[place % len(profile)] = value
        try:
            opened = filled("RGB", (200, 40, 40), bytes(profile))
        except PictureError:
            return
        assert opened.image.mode == "RGB"


class TestOrder:
    def test_turned(self) -> None:
        image = Image.new("RGB", (2, 1))
        image.putdata([(200, 40, 40), (0, 0, 0)])
        exif = Image.Exif()
        exif[0x0112] = 6
        opened = open_picture(encoded(image, icc_profile=DISPLAY_P3, exif=exif))
        assert opened.size == (1, 2)
        assert opened.image.getpixel((0, 0)) == pytest.approx((218, 0, 26), abs=1)
        assert opened.notes == ("turned by its EXIF orientation", FROM_P3)

    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
    def test_composited_after(self, kind: str) -> None:
        image = Image.new("RGBA", (3, 1))
        image.putdata([(200, 40, 40, 255), (200, 40, 40, 0), (200, 40, 40, 51)])  # 51 is a fifth
        opened = open_picture(encoded(image, kind, icc_profile=DISPLAY_P3))
        seen = np.asarray(opened.image)[0].astype(int)
        fifth = [255 + (level - 255) // 5 for level in (218, 0, 26)]
        assert np.abs(seen - [[218, 0, 26], [255] * 3, fifth]).max() <= 1
        assert opened.notes == (FROM_P3, "transparent, composited on white")

    def test_grey_with_alpha(self) -> None:
        image = Image.new("LA", (2, 1))
        image.putdata([(128, 255), (128, 0)])
        opened = open_picture(encoded(image, icc_profile=LINEAR_GREY))
        assert opened.image.getpixel((0, 0)) == pytest.approx((188,) * 3, abs=1)
        assert opened.image.getpixel((1, 0)) == (255, 255, 255)

    def test_a_colour_declared_clear_is_the_stored_one(self) -> None:
        image = Image.new("RGB", (2, 1))
        image.putdata([(200, 40, 40), (218, 0, 26)])
        opened = open_picture(encoded(image, icc_profile=DISPLAY_P3, transparency=(200, 40, 40)))
        assert opened.image.getpixel((0, 0)) == (255, 255, 255)
        assert opened.image.getpixel((1, 0))[0] > 230

    def test_grey_of_16_bits(self) -> None:
        values = np.array([[0, 128 * 257, 65535]], np.uint16)
        opened = open_picture(encoded(Image.fromarray(values), icc_profile=LINEAR_GREY))
        assert np.abs(np.asarray(opened.image)[0, :, 0].astype(int) - [0, 188, 255]).max() <= 1
        assert opened.notes == (
            "16-bit greyscale, scaled from 0..65535",
            "colours converted from Linear grey to sRGB",
        )
        assert opened.image.info == {}

    def test_colours_of_16_bits(self) -> None:
        row = struct.pack("<3H", 200 * 257, 40 * 257, 40 * 257)
        tags = {BITS: [16] * 3, SAMPLES: 3, PHOTOMETRIC: 2, PROFILE: DISPLAY_P3}
        opened = open_picture(tiff("<", (1, 1), [row], tags))
        assert opened.image.getpixel((0, 0)) == pytest.approx((218, 0, 26), abs=1)
        assert opened.notes == ("16 bits a channel, reduced to 8", FROM_P3)

    def test_each_page_has_its_own(self) -> None:
        pages = [Image.new("RGB", (16, 16), (200, 40, 40)) for _ in range(2)]
        pages[0].info["icc_profile"] = DISPLAY_P3
        data = encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:])
        assert open_picture(data).notes == ("frame 1 of 2", FROM_P3)
        assert open_picture(data, frame=1).notes == ("frame 2 of 2",)
