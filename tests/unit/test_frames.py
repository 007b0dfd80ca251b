"""Frames are counted up to a cap, and no file makes a decoder go on for long."""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zlib

import pytest
from PIL import Image, ImageFile

from interp import frames, picture
from interp.errors import PictureError
from interp.picture import open_picture
from tests.tiff_files import BITS, PHOTOMETRIC, tiff

KINDS = ["GIF", "WEBP", "PNG", "TIFF"]
GIF_HEAD = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"


def gif_frame(width: int = 1, height: int = 1, blocks: bytes = b"\2\x44\1\0") -> bytes:
    """One frame at the upper left; by default its coded pixels are a single black one."""
    return b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2" + blocks


def animation(kind: str, count: int) -> bytes:
    images = [Image.new("RGB", (8, 6), (40 * i, 0, 0)) for i in range(count)]
    buffer = io.BytesIO()
    options = {"lossless": True} if kind == "WEBP" else {}
    images[0].save(buffer, kind, save_all=True, append_images=images[1:], **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def refusal(data: bytes, frame: int = 0) -> str:
    with pytest.raises(PictureError) as caught:
        open_picture(data, name="a.gif", frame=frame)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestCount:
    def test_a_million_frames(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # a frame takes two steps, so a walk through them all would be refused
        monkeypatch.setattr(frames, "MAX_PARTS", 3 * frames.MAX_FRAMES)
        opened = open_picture(GIF_HEAD + gif_frame() * 10**6 + b";")
        assert opened.notes == ("frame 1 of more than 1,000",)
        assert (opened.frames, opened.more_frames) == (1000, True)

    @pytest.mark.parametrize("kind", KINDS)
    def test_at_the_cap(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frames, "MAX_FRAMES", 4)
        opened = open_picture(animation(kind, 4), frame=3)
        assert opened.notes == ("frame 4 of 4",)
        assert (opened.frames, opened.more_frames) == (4, False)

    @pytest.mark.parametrize("kind", KINDS)
    def test_above_the_cap(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frames, "MAX_FRAMES", 4)
        opened = open_picture(animation(kind, 5), frame=3)
        assert opened.image.getpixel((4, 3)) == (120, 0, 0)
        assert opened.notes == ("frame 4 of more than 4",)
        assert (opened.frames, opened.more_frames) == (4, True)
        message = refusal(animation(kind, 5), frame=4)
        assert "no index 4 among the 4" in message
        assert "choose 0 to 3" in message

    def test_a_png_that_says_more_than_it_has(self) -> None:
        data = animation("PNG", 3)
        start = data.index(b"acTL") - 4
        said = data[:start] + chunk(b"acTL", struct.pack(">II", 500, 0)) + data[start + 20 :]
        assert open_picture(said).notes == ("frame 1 of 3",)

    def test_a_png_whose_still_picture_is_no_frame(self) -> None:
        buffer = io.BytesIO()
        others = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
        Image.new("RGB", (4, 4)).save(
            buffer, "PNG", save_all=True, append_images=others, default_image=True
        )
        opened = open_picture(buffer.getvalue(), frame=2)
        assert opened.image.getpixel((0, 0)) == (0, 0, 255)
        assert opened.notes == ("frame 3 of 3",)

    def test_a_gif_with_comments_palettes_and_rubbish_between_frames(self) -> None:
        comment = b"!\xfe\3abc\0"
        coloured = (
            b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0x80) + bytes(3) + b"\xff\0\0\2\2\x4c\1\0"
        )
        data = GIF_HEAD + comment + gif_frame() + b"\0\0\7" + comment + coloured + b";" + b"," * 99
        opened = open_picture(data, frame=1)
        assert opened.image.getpixel((0, 0)) == (255, 0, 0)
        assert opened.notes == ("frame 2 of 2",)

    def test_a_circle_of_directories(self) -> None:
        data = bytearray(tiff("<", (1, 1), [b"\x07"], {BITS: 8, PHOTOMETRIC: 1}))
        first = struct.unpack_from("<I", data, 4)[0]
        entries = struct.unpack_from("<H", data, first)[0]
        struct.pack_into("<I", data, first + 2 + 12 * entries, first)
        assert open_picture(bytes(data)).frames == 1

    def test_big_tiff(self) -> None:
        entries = [(256, 1), (257, 1), (258, 8), (262, 1), (273, 16), (277, 1), (278, 1), (279, 1)]

        def listed(at: int, following: int) -> bytes:
            body = b"".join(struct.pack("<HHQQ", tag, 4, 1, value) for tag, value in entries)
            return struct.pack("<Q", len(entries)) + body + struct.pack("<Q", following)

        size = len(listed(0, 0))
        data = struct.pack("<2sHHHQ", b"II", 43, 8, 0, 24) + b"\x4d" + bytes(7)
        data += listed(24, 24 + size) + listed(24 + size, 0)
        opened = open_picture(data, frame=1)
        assert opened.image.getpixel((0, 0)) == (77, 77, 77)
        assert opened.notes == ("frame 2 of 2",)

    @pytest.mark.parametrize("place", [2**63, 2**64 - 1])
    def test_a_directory_beyond_any_file(self, place: int) -> None:
        assert "damaged" in refusal(struct.pack("<2sHHHQ", b"II", 43, 8, 0, place))


class TestWork:
    @pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
    def test_frames_times_canvas(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        data = animation(kind, 5)
        monkeypatch.setattr(frames, "MAX_DECODED", 4 * 48)
        assert open_picture(data, frame=3).frame == 3
        message = refusal(data, frame=4)
        assert message.startswith("frame 5 of a.gif is drawn over 4 others of 8 × 6")
        assert "choose a frame up to 4" in message

    def test_pages_are_not_drawn_over_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frames, "MAX_DECODED", 48)
        assert open_picture(animation("TIFF", 5), frame=4).frame == 4

    def test_the_first_frame_is_never_too_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frames, "MAX_DECODED", 1)
        assert open_picture(animation("GIF", 2)).frame == 0

    def test_a_frame_that_makes_the_canvas_grow(self) -> None:
        data = GIF_HEAD + gif_frame() + gif_frame(9000, 9000) + gif_frame() * 4 + b";"
        assert "drawn over 5 others of 9000 × 9000" in refusal(data, frame=5)

    @pytest.mark.parametrize(
        "data",
        [
            GIF_HEAD + gif_frame(blocks=b"\1\x44" * 99 + b"\0") + gif_frame() + b";",
            b"\x89PNG\r\n\x1a\n" + chunk(b"teXt", b"") * 99,
            tiff("<", (10, 10), [b"\1"] * 100, {BITS: 8, PHOTOMETRIC: 1, 322: 1, 323: 1}),
            tiff(
                ">", (1, 1), [b"\1"], {BITS: 8, PHOTOMETRIC: 1} | dict.fromkeys(range(999, 1099), 1)
            ),
            b"\xff\xd8" + b"\xff\xfe\0\2" * 99 + bytes(9),
            b"\xff\xd8" + b"\xff" * 99 + bytes(9),
        ],
        ids=["blocks", "chunks", "tiles", "entries", "segments", "filling"],
    )
    def test_parts(self, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frames, "MAX_PARTS", 90)
        assert "cut into more than the 90 parts allowed" in refusal(data)

    def test_pages_beyond_the_chosen_one_are_no_parts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = animation("TIFF", 5)
        (first,) = struct.unpack_from("<I", data, 4)
        (entries,) = struct.unpack_from("<H", data, first)
        monkeypatch.setattr(frames, "MAX_PARTS", 2 * entries + 1)  # and a strip
        assert open_picture(data, frame=1).frames == 5
        assert "parts" in refusal(data, frame=2)


class TestScans:
    @staticmethod
    def progressive(scans_more: int) -> bytes:
        buffer = io.BytesIO()
        Image.new("L", (80, 80), 90).save(buffer, "JPEG", progressive=True)
        data = buffer.getvalue()
        last = data.rindex(b"\xff\xda")
        start = max(last, data.rfind(b"\xff\xc4", data.rindex(b"\xff\xda", 0, last), last))
        return data[:-2] + data[start:-2] * scans_more + data[-2:]

    def test_passes_times_pixels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        own = self.progressive(0).count(b"\xff\xda")
        monkeypatch.setattr(frames, "MAX_SCANNED", (own + 3) * 6400)
        assert open_picture(self.progressive(3)).size == (80, 80)
        assert f"80 × 80 pixels in {own + 4} passes" in refusal(self.progressive(4))

    def test_what_follows_the_picture_is_no_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = self.progressive(0)
        monkeypatch.setattr(frames, "MAX_SCANNED", data.count(b"\xff\xda") * 6400)
        assert open_picture(data + b"\xff\xda" * 50).size == (80, 80)

    def test_a_preview_in_the_header_is_no_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = self.progressive(0)
        monkeypatch.setattr(frames, "MAX_SCANNED", data.count(b"\xff\xda") * 6400)
        note = b"\xff\xfe" + struct.pack(">H", 102) + b"\xff\xda" * 50
        assert open_picture(data[:2] + note + data[2:]).size == (80, 80)

    def test_an_end_hidden_between_passes_does_not_hide_those_behind(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = self.progressive(4)
        place = data.rindex(b"\xff\xda")
        hidden = data[:place] + b"\xff\xfe\0\4\xff\xd9" + data[place:]
        monkeypatch.setattr(frames, "MAX_SCANNED", (data.count(b"\xff\xda") - 1) * 6400)
        assert "passes" in refusal(hidden)


class TestRunLengths:
    def test_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = b"\3\1\0\1"  # three pixels of colour 1, and the end
        head = struct.pack("<IiiHHIIiiII", 40, 3, 1, 1, 8, 1, len(runs), 0, 0, 256, 0)
        palette = bytes(4) + b"\0\0\xff\0" + bytes(4 * 254)
        data = b"BM" + struct.pack("<IHHI", 0, 0, 0, 54 + 1024) + head + palette + runs
        monkeypatch.setattr(frames, "MAX_RUNS", len(data))
        assert open_picture(data).image.getpixel((2, 0)) == (255, 0, 0)
        assert "run lengths" in refusal(data + b"\0")
        buffer = io.BytesIO()
        Image.new("RGB", (80, 80)).save(buffer, "BMP")
        assert open_picture(buffer.getvalue()).size == (80, 80)


class TestNobodyWaits:
    def test_for_the_picture_of_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, go_on = threading.Event(), threading.Event()
        turn = picture._turn

        def slow(image: Image.Image) -> list[str]:
            if image.size == (8, 6):
                begun.set()
                assert go_on.wait(30)
            return turn(image)

        monkeypatch.setattr(picture, "_turn", slow)
        buffer = io.BytesIO()
        Image.new("L", (3, 3)).save(buffer, "PNG")
        before = list(warnings.filters), ImageFile.LOAD_TRUNCATED_IMAGES
        opened: list[object] = []
        large = threading.Thread(target=lambda: opened.append(open_picture(animation("GIF", 2))))
        small = threading.Thread(target=lambda: opened.append(open_picture(buffer.getvalue()).size))
        large.start()
        assert begun.wait(30)
        small.start()
        small.join(10)
        was_free = not small.is_alive()
        go_on.set()
        large.join()
        small.join()
        assert was_free
        assert opened[0] == (3, 3)
        assert len(opened) == 2
        assert (list(warnings.filters), ImageFile.LOAD_TRUNCATED_IMAGES) == before
