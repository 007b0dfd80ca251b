"""Geometry: torchvision's own transforms, fractions and brute force are the oracles."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision.models import get_weight
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F
from torchvision.transforms._presets import ImageClassification

from interp.errors import ModelError, PictureError
from interp.geometry import FITS, Fit, Geometry, Preset, plan, prepare

WEIGHTS = (
    "ResNet50_Weights.IMAGENET1K_V1",  # 256 / 224
    "ResNet50_Weights.IMAGENET1K_V2",  # 232 / 224
    "Inception_V3_Weights.IMAGENET1K_V1",  # 342 / 299
    "EfficientNet_B0_Weights.IMAGENET1K_V1",  # 256 / 224 bicubic
    "EfficientNet_B7_Weights.IMAGENET1K_V1",  # 600 / 600 bicubic
    "Swin_V2_T_Weights.IMAGENET1K_V1",  # 260 / 256 bicubic
    "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1",  # 384 / 384 bicubic
    "ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1",  # 518 / 518 bicubic
)
SIZES = ((500, 375), (333, 501), (40, 130), (224, 224), (3, 1), (1, 1))
PRESET_SIZES = ((232, 224), (256, 224), (342, 299), (518, 518), (384, 384), (201, 224), (300, 77))

picture_sizes = st.tuples(st.integers(1, 700), st.integers(1, 700)).filter(
    lambda size: max(size) <= 60 * min(size)
)
preset_sizes = st.sampled_from(PRESET_SIZES)
fits = st.sampled_from(FITS)


def preset(resize: int = 256, crop: int = 224, interpolation: str = "bilinear") -> Preset:
    return Preset(crop, resize, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), interpolation)


def noise(size: tuple[int, int], seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def input_column(geometry: Geometry, axis: int, pixel: int) -> Fraction:
    """Where the centre of a picture pixel lies in the model's input, whose edges are 0 and side."""
    return edge(geometry, axis, pixel + Fraction(1, 2))


def edge(geometry: Geometry, axis: int, place: int | Fraction) -> Fraction:
    resized, pixels = geometry.resized_size[axis], geometry.picture_size[axis]
    return place * Fraction(resized, pixels) - geometry.origin[axis]


def seen_pixels(geometry: Geometry, axis: int) -> np.ndarray:
    """Pixels of which some part lies in the model's input."""
    side = geometry.input_size[axis]
    return np.array(
        [
            edge(geometry, axis, n + 1) > 0 and edge(geometry, axis, n) < side
            for n in range(geometry.picture_size[axis])
        ]
    )


class TestPreset:
    def test_of_torchvision(self) -> None:
        weights = get_weight("EfficientNet_B0_Weights.IMAGENET1K_V1")
        assert Preset.from_torchvision(weights.transforms()) == Preset(
            crop_size=224,
            resize_size=256,
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
            interpolation="bicubic",
            antialias=True,
        )

    @pytest.mark.parametrize(
        "transforms",
        [
            None,
            torch.nn.Identity(),
            ImageClassification(crop_size=224, mean=(0.5,), std=(0.5,)),
            SimpleNamespace(**{**vars(ImageClassification(crop_size=8)), "crop_size": [8, 9]}),
        ],
    )
    def test_of_anything_else(self, transforms: object) -> None:
        with pytest.raises(ModelError, match=r"give weights\.transforms\(\)"):
            Preset.from_torchvision(transforms)


class TestCropIsTorchvisions:
    @pytest.mark.parametrize("name", WEIGHTS)
    def test_bit_identical_input(self, name: str) -> None:
        transforms = get_weight(name).transforms()
        of_weights = Preset.from_torchvision(transforms)
        for size in SIZES:
            ours = prepare(noise(size), of_weights, "crop")
            theirs = transforms(noise(size)).unsqueeze(0)
            assert ours.dtype == torch.float32
            assert torch.equal(ours, theirs), size

    def test_bit_identical_where_the_crop_pads(self) -> None:
        transforms = ImageClassification(
            crop_size=224, resize_size=150, interpolation=InterpolationMode.NEAREST
        )
        for size in ((300, 299), (200, 150), (151, 200), (90, 400)):
            ours = prepare(noise(size), Preset.from_torchvision(transforms), "crop")
            assert torch.equal(ours, transforms(noise(size)).unsqueeze(0)), size

    @given(size=picture_sizes, lengths=preset_sizes)
    @settings(max_examples=60, deadline=None)
    def test_planned_resize_and_window(
        self, size: tuple[int, int], lengths: tuple[int, int]
    ) -> None:
        resize, crop = lengths
        geometry = plan(size, preset(resize, crop), "crop")
        resized = F.resize(
            Image.new("L", size), [resize], InterpolationMode.NEAREST, antialias=True
        ).size
        assert geometry.resized_size == resized
        # every column of the resized picture is numbered from 1; padding is 0
        for axis, length in enumerate(resized):
            other = resized[1 - axis]
            shape = [1, other, length] if axis == 0 else [1, length, other]
            numbers = torch.arange(1, length + 1).reshape([1, 1, -1] if axis == 0 else [1, -1, 1])
            window = F.center_crop(numbers.expand(shape), [crop])[0]
            line = window.amax(0) if axis == 0 else window.amax(1)
            expected = np.arange(crop) + geometry.origin[axis] + 1
            expected[(expected < 1) | (expected > length)] = 0
            assert line.tolist() == expected.tolist()


class TestPlan:
    def test_crop_by_hand(self) -> None:
        geometry = plan((500, 375), preset(), "crop")
        # 256·500/375 = 341.3; (341 − 224)/2 = 58.5, to the even 58
        assert geometry.resized_size == (341, 256)
        assert geometry.origin == (58, 16)
        assert geometry.input_size == (224, 224)
        scale_x, offset_x, scale_y, offset_y = geometry.affine
        assert (scale_x, scale_y) == pytest.approx((0.682, 256 / 375))
        assert offset_x == pytest.approx(0.341 - 0.5 - 58)
        assert offset_y == pytest.approx(128 / 375 - 0.5 - 16)
        assert geometry.seen == pytest.approx((58 / 0.682, 23.4375, 282 / 0.682, 351.5625))

    def test_letterbox_by_hand(self) -> None:
        geometry = plan((400, 100), preset(), "letterbox")
        assert (geometry.resized_size, geometry.origin) == ((224, 56), (0, -84))
        assert geometry.affine == pytest.approx((0.56, -0.22, 0.56, 83.78))
        assert geometry.seen == (0, 0, 400, 100)

    def test_stretch_by_hand(self) -> None:
        geometry = plan((448, 112), preset(), "stretch")
        assert geometry.affine == (0.5, -0.25, 2.0, 0.5)
        assert geometry.seen == (0, 0, 448, 112)

    @pytest.mark.parametrize("fit", FITS)
    def test_one_pixel(self, fit: Fit) -> None:
        geometry = plan((1, 1), preset(), fit)
        assert prepare(noise((1, 1)), preset(), fit).shape == (1, 3, 224, 224)
        heat = geometry.on_picture(np.array([[0, 1], [2, 3]], np.float32))
        assert heat.tolist() == [[1.5]]

    @pytest.mark.parametrize("turned", [False, True])
    def test_too_thin_to_crop_names_the_minimum_and_the_fits(self, turned: bool) -> None:
        def sized(short: int) -> tuple[int, int]:
            return (5000, short) if turned else (short, 5000)

        # 256 × int(256·5000/7) is 46.8 million pixels, with 6 it would be 54.6 million
        assert 256 * 182_857 in np.multiply.reduce(
            [plan(sized(7), preset(), "crop").resized_size], 1
        )
        for short in (1, 6):
            with pytest.raises(PictureError, match="at least 7 pixels") as caught:
                plan(sized(short), preset(), "crop")
            message = str(caught.value)
            assert f"{sized(short)[0]} × {sized(short)[1]}" in message
            assert "stretch" in message
            assert "letterbox" in message
            with pytest.raises(PictureError):
                prepare(Image.new("RGB", sized(short)), preset(), "crop")
        for fit in ("stretch", "letterbox"):
            assert prepare(Image.new("RGB", sized(1)), preset(), fit).shape == (1, 3, 224, 224)
            assert np.isfinite(plan(sized(1), preset(), fit).on_picture(np.ones((7, 7)))).all()

    def test_unknown_fit(self) -> None:
        with pytest.raises(PictureError, match="crop, stretch, letterbox"):
            plan((5, 5), preset(), "squeeze")  # type: ignore[arg-type]


class TestPrepare:
    @pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
    def test_stretch_is_a_resize_of_the_whole(self, interpolation: str) -> None:
        want = preset(interpolation=interpolation)
        plain = noise((300, 90)).resize(
            (224, 224), getattr(Image.Resampling, interpolation.upper())
        )
        values = torch.from_numpy(np.array(plain)).permute(2, 0, 1).float() / 255
        mean, std = torch.tensor(want.mean), torch.tensor(want.std)
        expected = (values - mean[:, None, None]) / std[:, None, None]
        assert torch.equal(prepare(noise((300, 90)), want, "stretch")[0], expected)

    @pytest.mark.parametrize(("size", "box"), [((400, 100), (0, 84)), ((99, 224), (62, 0))])
    def test_letterbox_is_the_whole_centred_on_zero(
        self, size: tuple[int, int], box: tuple[int, int]
    ) -> None:
        result = prepare(noise(size), preset(), "letterbox")
        width, height = plan(size, preset(), "letterbox").resized_size
        left, top = box
        inside = torch.zeros(224, 224, dtype=torch.bool)
        inside[top : top + height, left : left + width] = True
        assert not result[0][:, ~inside].any()
        assert (result[0][:, inside] != 0).all()
        assert abs((224 - width - left) - left) <= 1
        assert abs((224 - height - top) - top) <= 1

    def test_letterbox_content(self) -> None:
        result = prepare(noise((400, 100)), preset(), "letterbox")[0, :, 84:140]
        values = torch.from_numpy(np.array(noise((400, 100)).resize((224, 56), 2)))
        mean, std = torch.tensor(preset().mean), torch.tensor(preset().std)
        assert torch.equal(result, ((values / 255 - mean) / std).permute(2, 0, 1))

    @pytest.mark.parametrize("fit", FITS)
    def test_what_was_not_seen_does_not_matter_and_what_was_does(self, fit: Fit) -> None:
        geometry = plan((300, 130), preset(64, 56), fit)
        before = noise((300, 130))
        left, top, right, bottom = geometry.seen
        values = np.array(before)
        reach = 4  # of the antialiased bilinear filter: one input pixel, here under 2.4 ones
        hidden = np.ones(values.shape[:2], bool)
        hidden[
            max(0, int(top) - reach) : int(bottom) + reach + 1,
            max(0, int(left) - reach) : int(right) + reach + 1,
        ] = False
        assert hidden.any() == (fit == "crop")
        values[hidden] = 255 - values[hidden]
        after = Image.fromarray(values)
        assert torch.equal(
            prepare(before, preset(64, 56), fit), prepare(after, preset(64, 56), fit)
        )
        # a white spot just inside each corner of what was seen lights that corner of the input
        black = np.zeros_like(values)
        for y in (int(np.ceil(top)), int(bottom) - 3):
            for x in (int(np.ceil(left)), int(right) - 3):
                black[y : y + 3, x : x + 3] = 255
        lit = prepare(Image.fromarray(black), preset(64, 56), fit)[0, 0]
        w, h = geometry.resized_size
        x0, y0 = max(0, -geometry.origin[0]), max(0, -geometry.origin[1])
        x1, y1 = min(55, x0 + w - 1), min(55, y0 + h - 1)
        floor = prepare(Image.new("RGB", (300, 130)), preset(64, 56), fit)[0, 0, 28, 28]
        for y in (y0, y1):
            for x in (x0, x1):
                assert lit[y, x] > floor + 0.3


class TestOnPicture:
    @given(size=picture_sizes, lengths=preset_sizes, fit=fits, cells=st.sampled_from([1, 2, 7, 14]))
    @settings(max_examples=40, deadline=None)
    def test_a_hot_column_covers_the_pixels_of_its_cells(
        self, size: tuple[int, int], lengths: tuple[int, int], fit: Fit, cells: int
    ) -> None:
        geometry = plan(size, preset(*lengths), fit)
        side = geometry.input_size[0]
        for axis in (0, 1):
            hot = cells // 2
            grid = np.zeros((cells, cells), np.float32)
            grid[(slice(None), hot) if axis == 0 else hot] = 1
            heat = geometry.on_picture(grid)
            assert heat.shape == size[::-1]
            seen, across = seen_pixels(geometry, axis), seen_pixels(geometry, 1 - axis)
            line = np.compress(across, heat, axis=axis).max(axis=axis)
            low, high = Fraction(side * hot, cells), Fraction(side * (hot + 1), cells)
            for pixel, value in enumerate(line):
                place = input_column(geometry, axis, pixel)
                assert np.isnan(value) != seen[pixel]
                if np.isnan(value) or not 0 < place < side:
                    continue  # outside, or the outermost cell going on
                if min(abs(place - low), abs(place - high)) < Fraction(1, 10_000):
                    continue  # half way between two cells
                assert (value > 0.5) == (low < place < high), (pixel, value)

    @given(size=picture_sizes, lengths=preset_sizes, fit=fits)
    @settings(max_examples=60, deadline=None)
    def test_nan_exactly_outside_what_was_seen(
        self, size: tuple[int, int], lengths: tuple[int, int], fit: Fit
    ) -> None:
        geometry = plan(size, preset(*lengths), fit)
        heat = geometry.on_picture(np.full((7, 7), 3.25, np.float32))
        assert heat.dtype == np.float32
        columns, rows = seen_pixels(geometry, 0), seen_pixels(geometry, 1)
        seen = rows[:, None] & columns
        assert seen.any()
        assert np.array_equal(~np.isnan(heat), seen)
        assert (heat[seen] == 3.25).all()
        # a browser decides by these floats
        left, top, right, bottom = geometry.seen
        x, y = np.arange(size[0]), np.arange(size[1])
        assert np.array_equal(columns, (x + 1 > left) & (x < right))
        assert np.array_equal(rows, (y + 1 > top) & (y < bottom))
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]

    @given(
        size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
        lengths=st.sampled_from([(232, 224), (342, 299), (518, 518), (201, 224), (30, 16)]),
        fit=fits,
        grid=st.tuples(st.integers(1, 9), st.integers(1, 9)),
        seed=st.integers(0, 99),
    )
    @settings(max_examples=40, deadline=None)
    def test_equals_brute_force_through_the_affine(
        self,
        size: tuple[int, int],
        lengths: tuple[int, int],
        fit: Fit,
        grid: tuple[int, int],
        seed: int,
    ) -> None:
        geometry = plan(size, preset(*lengths), fit)
        heat = np.random.default_rng(seed).normal(size=grid).astype(np.float32)
        result = geometry.on_picture(heat)
        scale_x, offset_x, scale_y, offset_y = geometry.affine
        (w, h), (rows, columns) = geometry.input_size, grid

        def at(y: int, x: int) -> float:
            return float(heat[min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)])

        seen = seen_pixels(geometry, 1)[:, None] & seen_pixels(geometry, 0)
        assert np.array_equal(np.isfinite(result), seen)
        for Y, X in zip(*np.nonzero(seen), strict=True):
            u = min(max(X * scale_x + offset_x + 0.5, 0), w)
            v = min(max(Y * scale_y + offset_y + 0.5, 0), h)
            x, y = u * columns / w - 0.5, v * rows / h - 0.5
            j, i = int(np.floor(x)), int(np.floor(y))
            above = at(i, j) * (1 - x + j) + at(i, j + 1) * (x - j)
            below = at(i + 1, j) * (1 - x + j) + at(i + 1, j + 1) * (x - j)
            expected = above * (1 - y + i) + below * (y - i)
            assert result[Y, X] == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("lengths", PRESET_SIZES[1:4])
    @pytest.mark.parametrize("size", [(500, 375), (333, 500), (640, 200)])
    def test_a_painted_cell_is_the_cell_the_model_sees(
        self, size: tuple[int, int], lengths: tuple[int, int], fit: Fit
    ) -> None:
        geometry = plan(size, preset(*lengths), fit)
        (side, _), cells = geometry.input_size, 7
        dark = prepare(Image.new("RGB", size), preset(*lengths), fit)
        for i, j in ((3, 1), (2, 5), (3, 3)):
            grid = np.zeros((cells, cells), np.float32)
            grid[i, j] = 1
            heat = geometry.on_picture(grid)
            painted = np.repeat((np.nan_to_num(heat) * 255).astype(np.uint8)[..., None], 3, 2)
            light = prepare(Image.fromarray(painted), preset(*lengths), fit) - dark
            means = torch.nn.functional.adaptive_avg_pool2d(light[:, :1], cells)[0, 0]
            assert divmod(int(means.argmax()), cells) == (i, j)
            if fit == "letterbox":
                continue  # the picture ends inside the cell
            # its centre of mass is the centre of the cell
            total = np.nansum(heat)
            y = float((np.nansum(heat, 1) * np.arange(size[1])).sum() / total)
            x = float((np.nansum(heat, 0) * np.arange(size[0])).sum() / total)
            scale_x, offset_x, scale_y, offset_y = geometry.affine
            assert x * scale_x + offset_x + 0.5 == pytest.approx((j + 0.5) * side / cells, abs=0.3)
            assert y * scale_y + offset_y + 0.5 == pytest.approx((i + 0.5) * side / cells, abs=0.3)

    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("lengths", PRESET_SIZES[1:4])
    @pytest.mark.parametrize("size", [(500, 375), (375, 500), (1000, 300), (120, 90)])
    def test_a_ramp_comes_back(
        self, size: tuple[int, int], lengths: tuple[int, int], fit: Fit
    ) -> None:
        width, height = size
        x, y = np.arange(width) * 255 / (width - 1), np.arange(height) * 255 / (height - 1)
        ramp = np.zeros((height, width, 3))
        ramp[..., 0], ramp[..., 1] = x, y[:, None]
        want, cells = preset(*lengths), 14
        geometry = plan(size, want, fit)
        tensor = prepare(Image.fromarray(np.rint(ramp).astype(np.uint8)), want, fit)[0]
        for channel in (0, 1):
            values = tensor[channel] * want.std[channel] + want.mean[channel]
            means = torch.nn.functional.adaptive_avg_pool2d(values[None], cells)[0].numpy()
            back = geometry.on_picture(means) * 255
            # between the centres of the outermost cells that hold nothing but picture
            inner = np.ones((height, width), bool)
            for axis in (0, 1):
                side, cell = geometry.input_size[axis], geometry.input_size[axis] / cells
                start = max(0, -geometry.origin[axis])
                end = min(side, start + geometry.resized_size[axis])
                first, last = np.ceil(start / cell) + 0.5, np.floor(end / cell) - 0.5
                place = np.array(
                    [float(input_column(geometry, axis, n)) for n in range(size[axis])]
                )
                keep = (place >= first * cell) & (place <= last * cell)
                inner &= keep[None, :] if axis == 0 else keep[:, None]
            assert inner.mean() > 0.15
            assert np.abs(back - ramp[..., channel])[inner].max() < 2.5

    @given(size=picture_sizes, lengths=preset_sizes, fit=fits, seed=st.integers(0, 9))
    @settings(max_examples=60, deadline=None)
    def test_width_and_height_are_not_swapped(
        self, size: tuple[int, int], lengths: tuple[int, int], fit: Fit, seed: int
    ) -> None:
        grid = np.random.default_rng(seed).random((5, 8)).astype(np.float32)
        heat = plan(size, preset(*lengths), fit).on_picture(grid)
        turned = plan(size[::-1], preset(*lengths), fit).on_picture(grid.T.copy())
        assert heat.shape == size[::-1]
        assert np.allclose(heat, turned.T, atol=1e-6, equal_nan=True)
        assert np.nanmin(heat) >= grid.min() - 1e-6
        assert np.nanmax(heat) <= grid.max() + 1e-6

    def test_a_bad_cell_stays_where_it_is(self) -> None:
        grid = np.ones((7, 7), np.float32)
        grid[0, 0] = np.nan
        heat = plan((224, 224), preset(224, 224), "crop").on_picture(grid)
        assert np.isnan(heat[:16, :16]).all()
        assert (heat[48:, :] == 1).all()
        assert (heat[:, 48:] == 1).all()

    def test_the_map_is_left_alone(self) -> None:
        grid = np.random.default_rng(0).random((7, 7)).astype(np.float32)
        before = grid.copy()
        plan((300, 200), preset(), "crop").on_picture(grid)
        assert np.array_equal(grid, before)

    def test_memory_is_a_few_times_the_heatmap(self) -> None:
        geometry = plan((3000, 2000), preset(), "stretch")
        grid = np.ones((14, 14), np.float32)
        tracemalloc.start()
        geometry.on_picture(grid)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2.2 * 3000 * 2000 * 4
