"""Opening pictures: numbers worked out by hand, files made here byte by byte where it matters."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import sys
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFile, ImageOps

from interp import picture
from interp.errors import PictureError
from interp.picture import MAX_BYTES, open_picture, sample_pictures

WIDTH, HEIGHT = 24, 16


def photograph() -> Image.Image:
    """Small, detailed and without symmetry."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    channels = (x * 10 + y, y * 15 + x % 3, (x * y) % 251)
    return Image.fromarray(np.stack(channels, -1).astype(np.uint8))


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def colours(*values: int) -> list[Image.Image]:
    return [Image.new("RGB", (8, 6), (value, value, value)) for value in values]


def animation(kind: str, images: list[Image.Image]) -> bytes:
    options = {"lossless": True} if kind == "WEBP" else {}
    return encode(images[0], kind, save_all=True, append_images=images[1:], **options)


def raw_png(
    width: int, height: int, depth: int, colour: int, rows: bytes, **chunks: bytes
) -> bytes:
    """A PNG from its parts; `rows` is what each row holds after its filter byte."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    stride = len(rows) // max(height, 1)
    lines = b"".join(b"\0" + rows[i * stride : (i + 1) * stride] for i in range(height))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    extra = b"".join(chunk(name.encode(), data) for name, data in chunks.items())
    body = chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + extra + body


def pixels(data: bytes, frame: int = 0) -> np.ndarray:
    return np.asarray(open_picture(data, frame=frame).image)


def refusal(source: bytes | str | os.PathLike[str], **options: object) -> str:
    """The message, which must be one line."""
    with pytest.raises(PictureError) as caught:
        open_picture(source, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


STILL = {
    "JPEG": encode(photograph(), "JPEG", quality=95),
    "PNG": encode(photograph(), "PNG"),
    "WebP": encode(photograph(), "WEBP", lossless=True),
    "BMP": encode(photograph(), "BMP"),
    "TIFF": encode(photograph(), "TIFF"),
    "GIF": encode(photograph().quantize(256), "GIF"),
}
LOSSLESS = ("PNG", "WebP", "BMP", "TIFF")


class TestType:
    @pytest.mark.parametrize("kind", STILL)
    def test_is_told_by_content_whatever_the_name(self, kind: str, tmp_path: Path) -> None:
        path = tmp_path / "wrong.txt"
        path.write_bytes(STILL[kind])
        opened = open_picture(path)
        assert (opened.format, opened.size, opened.name) == (kind, (WIDTH, HEIGHT), "wrong.txt")
        assert opened.image.mode == "RGB"
        assert (opened.frame, opened.frames, opened.notes) == (0, 1, ())

    @pytest.mark.parametrize("kind", LOSSLESS)
    def test_pixels_of_lossless_files_are_exact(self, kind: str) -> None:
        assert np.array_equal(pixels(STILL[kind]), np.asarray(photograph()))

    @pytest.mark.parametrize(
        "data", [b"hello, this is text", b"%PDF-1.7\n", b"P6\n1 1\n255\nabc", b"\0" * 64]
    )
    def test_anything_else_is_refused_with_the_list(self, data: bytes) -> None:
        message = refusal(data, name="notes.png")
        assert message.startswith("notes.png ")
        for kind in STILL:
            assert kind in message

    def test_two_pictures_in_one_jpeg_are_frames(self) -> None:
        opened = open_picture(animation("MPO", colours(10, 200)), frame=1)
        assert (opened.format, opened.frames) == ("JPEG", 2)
        assert opened.image.getpixel((0, 0)) == pytest.approx((200, 200, 200), abs=2)


class TestLimits:
    def test_bytes(self, tmp_path: Path) -> None:
        data = STILL["PNG"] + bytes(MAX_BYTES - len(STILL["PNG"]))
        assert open_picture(data).size == (WIDTH, HEIGHT)
        path = tmp_path / "big.png"
        path.write_bytes(data + b"\0")
        assert refusal(path).startswith("big.png has more than the 32 MB allowed")
        assert "32 MB" in refusal(data + b"\0")

    @pytest.mark.parametrize(
        "size", [(8000, 6251), (10_000, 10_000), (60_000, 60_000)], ids=["cap", "warns", "raises"]
    )
    def test_pixels_are_limited_before_decoding(
        self, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # 10,000² is where Pillow itself warns, 60,000² where it raises
        def decode(image: ImageFile.ImageFile) -> None:
            raise AssertionError("decoded")

        monkeypatch.setattr(ImageFile.ImageFile, "load", decode)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            message = refusal(raw_png(*size, 8, 2, b""), name="bomb.png")
        assert "bomb.png" in message
        assert "50,000,000 pixels" in message

    def test_a_picture_at_the_limit_opens(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(picture, "MAX_PIXELS", WIDTH * HEIGHT)
        assert open_picture(STILL["PNG"]).size == (WIDTH, HEIGHT)
        monkeypatch.setattr(picture, "MAX_PIXELS", WIDTH * HEIGHT - 1)
        assert "24 × 16" in refusal(STILL["PNG"])

    @pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1)])
    def test_tiny_and_thin_pictures_open(self, size: tuple[int, int]) -> None:
        opened = open_picture(encode(Image.new("RGB", size, (9, 8, 7)), "PNG"))
        assert opened.size == size
        assert opened.image.getpixel((0, 0)) == (9, 8, 7)

    def test_no_pixels(self) -> None:
        refusal(raw_png(0, 5, 8, 2, b""))
        refusal(b"GIF89a" + struct.pack("<HH", 0, 0) + b"\0\0\0;")


class TestDamage:
    @pytest.mark.parametrize("kind", STILL)
    def test_a_cut_file_is_refused_or_whole(self, kind: str) -> None:
        data, whole = STILL[kind], pixels(STILL[kind])
        refused = 0
        for length in {*range(0, len(data), max(1, len(data) // 60)), *range(len(data) - 9)[-9:]}:
            try:
                cut = pixels(data[:length])
            except PictureError:
                refused += 1
            else:
                assert np.array_equal(cut, whole), length
        assert refused > 30

    @pytest.mark.parametrize("kind", STILL)
    def test_half_a_file_is_one_line_that_says_what_to_do(self, kind: str) -> None:
        message = refusal(STILL[kind][: len(STILL[kind]) // 2], name="half.jpg")
        assert "half.jpg" in message
        assert kind in message
        assert "again" in message

    def test_half_a_file_is_refused_where_the_process_allows_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
        refusal(STILL["PNG"][: len(STILL["PNG"]) // 2])
        assert ImageFile.LOAD_TRUNCATED_IMAGES is True

    def test_empty(self, tmp_path: Path) -> None:
        (tmp_path / "empty.png").touch()
        assert "empty.png is empty" in refusal(tmp_path / "empty.png")
        assert "picture is empty" in refusal(b"")

    @given(
        kind=st.sampled_from(["JPEG", "PNG", "WebP", "BMP", "GIF"]),  # libtiff prints on its own
        spots=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    )
    @settings(max_examples=150, deadline=None)
    def test_hostile_bytes_give_a_picture_or_a_refusal(
        self, kind: str, spots: list[tuple[int, int]]
    ) -> None:
        data = bytearray(STILL[kind])
        for place, value in spots:
            data[place % len(data)] = value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                opened = open_picture(bytes(data))
            except PictureError:
                return
        assert opened.image.mode == "RGB"

    def test_a_warning_of_the_decoder_does_not_leak(self) -> None:
        data = STILL["TIFF"].replace(
            struct.pack("<HHI", 0x0102, 3, 3), struct.pack("<HHI", 1, 3, 99)
        )
        assert data != STILL["TIFF"]
        before = list(warnings.filters)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refusal(data)
        assert warnings.filters == before

    def test_threads_leave_the_process_settings_as_they_were(self) -> None:
        before = list(warnings.filters), ImageFile.LOAD_TRUNCATED_IMAGES
        threads = [
            threading.Thread(target=lambda: [open_picture(STILL["PNG"]) for _ in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (list(warnings.filters), ImageFile.LOAD_TRUNCATED_IMAGES) == before


class TestOrientation:
    # what each value of the tag says must be done to the stored rows to see the picture upright
    UPRIGHT = {  # noqa: RUF012
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: a.swapaxes(0, 1)[:, ::-1],
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: a.swapaxes(0, 1)[::-1],
    }

    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
    @pytest.mark.parametrize("orientation", UPRIGHT)
    def test_is_applied_exactly_once(self, kind: str, orientation: int) -> None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options = {"lossless": True} if kind == "WEBP" else {}
        opened = open_picture(encode(photograph(), kind, exif=exif, **options))
        upright = self.UPRIGHT[orientation](np.asarray(photograph()))
        assert np.array_equal(np.asarray(opened.image), upright)
        assert opened.size == upright.shape[1::-1]
        assert opened.notes == (("turned by its EXIF orientation",) if orientation > 1 else ())
        assert np.array_equal(np.asarray(ImageOps.exif_transpose(opened.image)), upright)

    def test_jpeg(self) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        opened = open_picture(encode(photograph(), "JPEG", quality=95, exif=exif))
        plain = pixels(encode(photograph(), "JPEG", quality=95))
        assert np.array_equal(np.asarray(opened.image), self.UPRIGHT[6](plain))

    def test_sixteen_bits(self) -> None:
        values = np.arange(6, dtype=np.uint16).reshape(2, 3) * 51
        exif = Image.Exif()
        exif[0x0112] = 8
        opened = open_picture(encode(Image.fromarray(values), "PNG", exif=exif))
        assert np.array_equal(np.asarray(opened.image)[..., 0], values.T[::-1])
        assert opened.notes[0] == "turned by its EXIF orientation"

    def test_a_meaningless_value_changes_nothing(self) -> None:
        exif = Image.Exif()
        exif[0x0112] = 77
        opened = open_picture(encode(photograph(), "PNG", exif=exif))
        assert np.array_equal(np.asarray(opened.image), np.asarray(photograph()))
        assert opened.notes == ()

    @pytest.mark.parametrize("kind", ["PNG", "WEBP"])
    def test_broken_exif_is_said_and_the_picture_opens(self, kind: str) -> None:
        data = encode(Image.new("RGB", (4, 2), "red"), kind, exif=b"Exif\0\0no such thing")
        opened = open_picture(data)
        assert opened.size == (4, 2)
        assert opened.notes == ("its EXIF cannot be read, so it was not turned",)


class TestDeepGreyscale:
    def test_16_bit_png(self) -> None:
        data = raw_png(3, 1, 16, 0, struct.pack(">HHH", 1000, 1051, 1255))
        opened = open_picture(data)
        assert np.asarray(opened.image)[0].tolist() == [[0] * 3, [51] * 3, [255] * 3]
        assert opened.notes == ("16-bit greyscale, scaled from 1000..1255",)

    def test_16_bit_tiff_of_either_byte_order(self) -> None:
        values = np.array([[10, 520], [265, 10]], np.uint16)  # 265 lies half way: 127.5, even 128
        little = open_picture(encode(Image.fromarray(values), "TIFF"))
        big = open_picture(encode(Image.fromarray(values.astype(">u2")), "TIFF"))
        for opened in (little, big):
            assert np.asarray(opened.image)[..., 0].tolist() == [[0, 255], [128, 0]]
            assert opened.notes == ("16-bit greyscale, scaled from 10..520",)

    def test_32_bit_integers_with_negative_values(self) -> None:
        values = np.array([[-(2**31), 2**31 - 1, 0]], np.int32)
        opened = open_picture(encode(Image.fromarray(values), "TIFF"))
        assert np.asarray(opened.image)[0, :, 0].tolist() == [0, 255, 128]
        assert opened.notes == ("integer greyscale, scaled from -2147483648..2147483647",)

    def test_float_from_0_to_1(self) -> None:
        values = np.array([[0.0, 0.2, 1.0]], np.float32)
        opened = open_picture(encode(Image.fromarray(values), "TIFF"))
        assert np.asarray(opened.image)[0, :, 1].tolist() == [0, 51, 255]
        assert opened.notes == ("floating-point greyscale, scaled from 0.0..1.0",)

    def test_float_of_the_widest_range_does_not_overflow(self) -> None:
        values = np.array([[-3e38, 0.0, 3e38]], np.float32)
        assert pixels(encode(Image.fromarray(values), "TIFF"))[0, :, 0].tolist() == [0, 128, 255]

    def test_not_finite(self) -> None:
        values = np.array([[np.nan, 2.0, 4.0, np.inf, -np.inf]], np.float32)
        opened = open_picture(encode(Image.fromarray(values), "TIFF"))
        assert np.asarray(opened.image)[0, :, 0].tolist() == [0, 0, 255, 0, 0]
        assert opened.notes[1] == "3 non-finite pixels drawn black"
        assert "no finite" in refusal(encode(Image.fromarray(values[:, :1]), "TIFF"))

    @pytest.mark.parametrize("values", [np.full((2, 2), 7, np.uint16), np.ones((2, 2), np.float32)])
    def test_constant(self, values: np.ndarray) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opened = open_picture(encode(Image.fromarray(values), "TIFF"))
        assert not np.asarray(opened.image).any()
        assert "constant at" in opened.notes[0]

    def test_more_rows_than_one_strip(self) -> None:
        values = np.arange(600 * 2, dtype=np.float32).reshape(600, 2)
        expected = np.rint(values.astype(np.float64) * 255 / 1199)
        assert np.array_equal(pixels(encode(Image.fromarray(values), "TIFF"))[..., 2], expected)


class TestColour:
    def test_cmyk_tiff(self) -> None:
        image = Image.new("CMYK", (2, 1))
        image.putdata([(0, 255, 255, 0), (0, 0, 0, 255)])
        opened = open_picture(encode(image, "TIFF"))
        assert np.asarray(opened.image)[0].tolist() == [[255, 0, 0], [0, 0, 0]]
        assert "CMYK" in opened.notes[0]

    def test_cmyk_jpeg_with_adobes_inverted_values(self) -> None:
        data = encode(Image.new("RGB", (16, 16), (200, 30, 60)).convert("CMYK"), "JPEG", quality=95)
        assert b"Adobe" in data
        assert open_picture(data).image.getpixel((8, 8)) == pytest.approx((200, 30, 60), abs=3)

    def test_nothing_of_the_old_colours_is_left_for_later_files(self) -> None:
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        data = encode(Image.new("CMYK", (8, 8)), "JPEG", icc_profile=profile)
        assert open_picture(data).image.info == {}

    def test_lab_and_ycbcr(self) -> None:
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        orange = Image.new("RGB", (4, 4), (220, 120, 40))
        as_lab = ImageCms.profileToProfile(orange, srgb, lab, outputMode="LAB")
        for image in (as_lab, orange.convert("YCbCr")):
            opened = open_picture(encode(image, "TIFF"))
            assert opened.image.getpixel((1, 1)) == pytest.approx((220, 120, 40), abs=4)
            assert opened.notes == (f"{image.mode}, converted to RGB",)

    @pytest.mark.parametrize(("mode", "value", "expected"), [("1", 1, 255), ("L", 77, 77)])
    def test_grey(self, mode: str, value: int, expected: int) -> None:
        opened = open_picture(encode(Image.new(mode, (3, 2), value), "PNG"))
        assert opened.image.getpixel((2, 1)) == (expected,) * 3
        assert opened.notes == ()

    def test_16_bits_a_channel_are_said_to_be_reduced(self) -> None:
        opened = open_picture(raw_png(1, 1, 16, 2, struct.pack(">HHH", 0x1234, 0xABCD, 0xFF00)))
        assert opened.image.getpixel((0, 0)) == (0x12, 0xAB, 0xFF)
        assert opened.notes == ("16 bits a channel, reduced to 8",)


class TestTransparency:
    NOTE = ("transparent, composited on white",)

    def test_rgba(self) -> None:
        image = Image.new("RGBA", (3, 1))
        image.putdata([(255, 0, 0, 255), (255, 0, 0, 0), (0, 0, 0, 51)])  # 51 is a fifth
        opened = open_picture(encode(image, "PNG"))
        assert np.asarray(opened.image)[0].tolist() == [[255, 0, 0], [255] * 3, [204] * 3]
        assert opened.notes == self.NOTE

    @pytest.mark.parametrize("mode", ["RGBA", "LA"])
    def test_an_opaque_alpha_channel_is_no_news(self, mode: str) -> None:
        image = Image.new("L", (2, 2), 60).convert(mode)
        opened = open_picture(encode(image, "PNG"))
        assert opened.image.getpixel((0, 0)) == (60, 60, 60)
        assert opened.notes == ()

    def test_grey_with_alpha(self) -> None:
        image = Image.new("LA", (2, 1))
        image.putdata([(10, 0), (10, 255)])
        opened = open_picture(encode(image, "PNG"))
        assert np.asarray(opened.image)[0, :, 0].tolist() == [255, 10]
        assert opened.notes == self.NOTE

    @pytest.mark.parametrize(
        ("alphas", "expected"),
        [(b"\0\xff", [[255] * 3, [0, 200, 0]]), (b"\x33\xff", [[243, 204, 204], [0, 200, 0]])],
        ids=["one clear entry", "an alpha each"],
    )
    def test_palette(self, alphas: bytes, expected: list[list[int]]) -> None:
        palette = bytes([195, 0, 0, 0, 200, 0])
        opened = open_picture(raw_png(2, 1, 8, 3, b"\0\1", PLTE=palette, tRNS=alphas))
        assert np.asarray(opened.image)[0].tolist() == expected
        assert opened.notes == self.NOTE

    def test_palette_whose_clear_entry_is_not_used(self) -> None:
        palette = bytes([195, 0, 0, 0, 200, 0])
        opened = open_picture(raw_png(2, 1, 8, 3, b"\1\1", PLTE=palette, tRNS=b"\0\xff"))
        assert np.asarray(opened.image)[0].tolist() == [[0, 200, 0]] * 2
        assert opened.notes == ()

    @pytest.mark.parametrize(
        ("depth", "colour", "row", "clear", "expected"),
        [
            (8, 2, bytes([1, 2, 3, 4, 5, 6]), (1, 2, 3), [[255] * 3, [4, 5, 6]]),
            (16, 2, bytes([1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9]), (265, 521, 777), None),
            (8, 0, bytes([70, 71]), (70,), [[255] * 3, [71] * 3]),
            (2, 0, bytes([0b01_10_0000]), (1,), [[255] * 3, [170] * 3]),
            (4, 0, bytes([0x3C]), (3,), [[255] * 3, [204] * 3]),
            (1, 0, bytes([0b01_000000]), (0,), [[255] * 3, [255] * 3]),
        ],
    )
    def test_one_colour_declared_clear(
        self,
        depth: int,
        colour: int,
        row: bytes,
        clear: tuple[int, ...],
        expected: list[list[int]] | None,
    ) -> None:
        declared = struct.pack(f">{len(clear)}H", *clear)
        opened = open_picture(raw_png(2, 1, depth, colour, row, tRNS=declared))
        assert np.asarray(opened.image)[0].tolist() == (expected or [[255] * 3, [4, 5, 6]])
        assert opened.notes[-1:] == self.NOTE

    def test_16_bit_grey_leaves_the_clear_value_out_of_the_range(self) -> None:
        row = struct.pack(">HHH", 60_000, 100, 355)
        opened = open_picture(raw_png(3, 1, 16, 0, row, tRNS=struct.pack(">H", 60_000)))
        assert np.asarray(opened.image)[0, :, 0].tolist() == [255, 0, 255]
        assert opened.notes == ("16-bit greyscale, scaled from 100..355", *self.NOTE)

    def test_gif(self) -> None:
        image = Image.new("P", (2, 1))
        image.putpalette([9, 9, 9, 0, 0, 255])
        image.putdata([0, 1])
        opened = open_picture(encode(image, "GIF", transparency=0))
        assert np.asarray(opened.image)[0].tolist() == [[255] * 3, [0, 0, 255]]
        assert opened.notes == self.NOTE


class TestFrames:
    @pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
    def test_the_chosen_one_and_its_note(self, kind: str) -> None:
        data = animation(kind, colours(0, 100, 255))
        for index, value in enumerate((0, 100, 255)):
            opened = open_picture(data, frame=index)
            assert opened.image.getpixel((4, 3)) == (value,) * 3
            assert opened.notes == (f"frame {index + 1} of 3",)
            assert (opened.frame, opened.frames) == (index, 3)
        assert open_picture(data).frame == 0

    @pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
    @pytest.mark.parametrize("index", [3, -1])
    def test_out_of_range(self, kind: str, index: int) -> None:
        message = refusal(animation(kind, colours(0, 100, 255)), frame=index)
        assert f"index {index}" in message
        assert "0 to 2" in message

    def test_a_still_picture_has_one(self) -> None:
        assert "choose 0 to 0" in refusal(STILL["JPEG"], frame=1)

    def test_pages_of_different_sizes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pages = [Image.new("RGB", (4, 4)), Image.new("RGB", (30, 20), "red")]
        data = animation("TIFF", pages)
        assert open_picture(data, frame=1).size == (30, 20)
        monkeypatch.setattr(picture, "MAX_PIXELS", 599)
        assert "30 × 20" in refusal(data, frame=1)


class TestSource:
    def test_bytes_str_and_path_are_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "a.JPG"
        path.write_bytes(STILL["PNG"])
        opened = [open_picture(source) for source in (STILL["PNG"], str(path), path)]
        assert [one.name for one in opened] == ["picture", "a.JPG", "a.JPG"]
        assert {one.sha256 for one in opened} == {hashlib.sha256(STILL["PNG"]).hexdigest()}

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("../../x.png", "x.png"),
            ("C:\\photos\\y.png", "y.png"),
            ("two\nlines\x1b[31m.png", "two?lines?[31m.png"),
            ("\udcff.png", "?.png"),
            ("", "picture"),
        ],
    )
    def test_name_for_people(self, name: str, shown: str) -> None:
        assert open_picture(STILL["PNG"], name=name).name == shown

    def test_refusals(self, tmp_path: Path) -> None:
        assert "missing.png does not exist" in refusal(tmp_path / "missing.png")
        assert "is a folder" in refusal(str(tmp_path))
        assert "cannot be read" in refusal("nul\0byte.png")
        assert "cannot be read" in refusal("x" * 5000)
        assert "not as Image" in refusal(photograph())  # type: ignore[arg-type]

    @pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
    def test_no_file_stays_open(self, tmp_path: Path) -> None:
        path = tmp_path / "a.gif"
        path.write_bytes(animation("GIF", colours(0, 255)))
        before = len(list(Path("/proc/self/fd").iterdir()))
        kept = [open_picture(path, frame=1) for _ in range(3)]
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        assert type(kept[0].image) is Image.Image

    def test_samples_open(self) -> None:
        samples = sample_pictures()
        assert {"chelsea", "coffee", "camera"} <= set(samples)
        for path in samples.values():
            assert min(open_picture(path).size) > 200

    def test_samples_that_are_not_installed_are_left_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert sample_pictures() == {}
