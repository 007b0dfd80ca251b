"""Scales, the linear blend, and figures: pixels worked out by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from interp import render
from interp.errors import InterpError
from interp.lettering import font_of, wrap
from interp.render import (
    COLOUR_MAPS,
    DEFAULT_COLOURS,
    DEFAULT_DIVERGING,
    DEFAULT_OPACITY,
    DEFAULT_THRESHOLD,
    Scale,
    colour_bar,
    figure,
    heat_image,
    lookup,
    montage,
    normalise,
    overlay,
    scale_for,
)

UNIT = Scale(0.0, 1.0, False)
NAN, INF = math.nan, math.inf


def heat(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def flat(colour: tuple[int, int, int], size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size, colour)


def noise(width: int, height: int) -> Image.Image:
    rng = np.random.default_rng(7)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


# Colour maps


@pytest.mark.parametrize("name", list(COLOUR_MAPS))
def test_every_colour_map_has_256_colours(name: str) -> None:
    table = lookup(name)
    assert table.shape == (256, 3)
    assert table.dtype == np.uint8
    assert not table.flags.writeable


def test_known_colours() -> None:
    np.testing.assert_array_equal(lookup("grey"), np.repeat(np.arange(256)[:, None], 3, axis=1))
    # The published end points of viridis and plasma.
    assert lookup("viridis")[0].tolist() == [68, 1, 84]
    assert lookup("viridis")[255].tolist() == [253, 231, 37]
    assert lookup("plasma")[0].tolist() == [13, 8, 135]
    assert lookup("plasma")[255].tolist() == [240, 249, 33]


def test_the_default_grows_lighter_all_the_way() -> None:
    luma = lookup(DEFAULT_COLOURS) @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(luma[::8]) > 0).all()
    assert luma[-1] - luma[0] > 150


def test_the_diverging_pair_is_blue_against_and_red_for() -> None:
    table = lookup(DEFAULT_DIVERGING).astype(int)
    against, for_ = table[30], table[225]
    assert against[2] > against[0] + 80
    assert for_[0] > for_[2] + 80
    assert table[127:129].min() > 220


def test_an_unknown_colour_map_names_the_known_ones() -> None:
    with pytest.raises(InterpError, match=r"'jet'.*turbo"):
        lookup("jet")


# Scales


def test_a_positive_scale_runs_from_zero_to_the_maximum() -> None:
    assert scale_for(heat([-3.0, 0.5], [NAN, 2.0]), signed=False) == Scale(0.0, 2.0, False)
    assert scale_for(heat([1.0, 2.0]), signed=False) == Scale(0.0, 2.0, False)


def test_a_signed_scale_is_symmetric() -> None:
    assert scale_for(heat([-3.0, 2.0]), signed=True) == Scale(-3.0, 3.0, True)
    assert scale_for(heat([-1.0, 2.0]), signed=True) == Scale(-2.0, 2.0, True)


def test_one_scale_for_several_maps_of_different_size() -> None:
    first, second = heat([0.0, 1.0]), heat([0.0], [4.0], [2.0])
    assert scale_for(first, second, signed=False) == Scale(0.0, 4.0, False)
    shared = normalise(first, scale_for(first, second, signed=False))
    np.testing.assert_array_equal(shared, heat([0.0, 0.25]))


def test_a_shared_scale_shows_a_flat_map_at_its_height() -> None:
    level, other = heat([4.0, 4.0]), heat([0.0, 2.0])
    assert scale_for(level, other, signed=False) == Scale(0.0, 4.0, False)


def test_a_failed_map_does_not_spoil_a_shared_scale() -> None:
    assert scale_for(heat([INF, 0.0]), heat([0.0, 2.0]), signed=False).high == 2.0


NOTHING = {
    "constant": heat([3.0, 3.0]),
    "constant but for rounding": heat([3.0, float(np.nextafter(np.float32(3), np.float32(4)))]),
    "zero": heat([0.0, 0.0]),
    "one cell": heat([5.0]),
    "NaN": heat([NAN, NAN]),
    "infinite": heat([INF, 1.0]),
    "minus infinite": heat([-INF, 1.0]),
    "empty": np.zeros((0, 4), np.float32),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", list(NOTHING))
def test_degenerate_maps_draw_nothing(name: str, signed: bool) -> None:
    scale = scale_for(NOTHING[name], signed=signed)
    assert scale == Scale(0.0, 0.0, signed)
    assert scale.empty


def test_an_all_negative_map_draws_nothing_unless_signed() -> None:
    negative = heat([-3.0, -1.0])
    assert scale_for(negative, signed=False).empty
    assert scale_for(negative, signed=True) == Scale(-3.0, 3.0, True)
    assert scale_for(signed=False).empty


def test_tiny_and_huge_values_scale_to_one() -> None:
    for peak in (np.float32(1e-45), np.finfo(np.float32).max):
        values = np.array([[-peak, 0, peak]], np.float32)
        expected = [[0.0, 0.5, 1.0]]
        assert normalise(values, scale_for(values, signed=True)).tolist() == expected
        assert normalise(values, scale_for(values, signed=False)).tolist() == [[0.0, 0.0, 1.0]]


def test_normalise_clips_and_keeps_nan() -> None:
    values = normalise(heat([-1.0, 0.0, 1.0, 2.0, 8.0, NAN]), Scale(0.0, 4.0, False))
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, heat([0.0, 0.0, 0.25, 0.5, 1.0, NAN]))
    signed = normalise(heat([-2.0, 0.0, 1.0, 2.0]), Scale(-2.0, 2.0, True))
    np.testing.assert_array_equal(signed, heat([0.0, 0.5, 0.75, 1.0]))


def test_normalise_with_an_empty_scale_never_divides() -> None:
    with np.errstate(all="raise"):
        positive = normalise(heat([3.0, NAN]), Scale(0.0, 0.0, False))
        signed = normalise(heat([3.0, NAN]), Scale(0.0, 0.0, True))
    np.testing.assert_array_equal(positive, heat([0.0, NAN]))
    np.testing.assert_array_equal(signed, heat([0.5, NAN]))


# The blend


def test_hand_worked_pixels() -> None:
    picture = flat((100, 200, 0), (4, 1))
    # Grey values 0, 64 (0.25 * 255 = 63.75), 128 (127.5 rounds up) and 255, a quarter each.
    drawn = overlay(picture, heat([0.0, 0.25, 0.5, 1.0]), UNIT, "grey", 0.25, 0.0)
    assert np.asarray(drawn).tolist() == [
        [[75, 150, 0], [91, 166, 16], [107, 182, 32], [139, 214, 64]]
    ]


def test_below_the_threshold_the_photograph_is_untouched() -> None:
    picture = flat((10, 20, 30), (3, 1))
    drawn = overlay(picture, heat([0.49, 0.5, 1.0]), UNIT, "grey", 1.0, 0.5)
    assert np.asarray(drawn).tolist() == [[[10, 20, 30], [128, 128, 128], [255, 255, 255]]]


def test_a_signed_threshold_counts_from_zero_both_ways() -> None:
    picture = flat((1, 2, 3), (5, 1))
    scale = Scale(-1.0, 1.0, True)
    drawn = np.asarray(overlay(picture, heat([-1.0, -0.4, 0.0, 0.4, 1.0]), scale, None, 1.0, 0.5))
    table = lookup(DEFAULT_DIVERGING)
    assert drawn[0, 0].tolist() == table[0].tolist()
    assert drawn[0, 4].tolist() == table[255].tolist()
    assert drawn[0, 1:4].tolist() == [[1, 2, 3]] * 3


def test_the_defaults_follow_the_kind_of_scale() -> None:
    picture = flat((0, 0, 0), (2, 1))
    top = np.floor(lookup(DEFAULT_COLOURS)[255] * DEFAULT_OPACITY + 0.5)
    assert DEFAULT_THRESHOLD > 0.1
    drawn = np.asarray(overlay(picture, heat([0.1, 1.0]), UNIT))
    assert drawn.tolist() == [[[0, 0, 0], top.tolist()]]


@pytest.mark.parametrize("opacity", [0.0, 1.0])
def test_the_ends_of_opacity_are_exact(opacity: float) -> None:
    picture = noise(9, 5)
    values = np.linspace(0, 1, 45, dtype=np.float32).reshape(5, 9)
    drawn = np.asarray(overlay(picture, values, UNIT, "turbo", opacity, 0.0))
    colours = lookup("turbo")[np.floor(values * 255 + 0.5).astype(int)]
    np.testing.assert_array_equal(drawn, colours if opacity else np.asarray(picture))


@settings(max_examples=60, deadline=None)
@given(
    photo=st.tuples(*[st.integers(0, 255)] * 3),
    index=st.integers(0, 255),
    opacity=st.fractions(0, 1, max_denominator=100),
)
def test_every_pixel_is_the_nearest_to_the_exact_blend(
    photo: tuple[int, int, int], index: int, opacity: Fraction
) -> None:
    value = heat([index / 255])
    drawn = overlay(flat(photo, (1, 1)), value, UNIT, "turbo", float(opacity), 0.0)
    for got, dark, colour in zip(
        drawn.getpixel((0, 0)), photo, lookup("turbo")[index].tolist(), strict=True
    ):
        exact = (1 - opacity) * dark + opacity * colour
        assert abs(got - exact) <= Fraction(1, 2) + Fraction(1, 10_000)


def test_an_empty_scale_leaves_the_photograph_but_marks_the_unseen() -> None:
    picture = flat((100, 100, 100), (3, 1))
    values = heat([2.0, 2.0, NAN])
    drawn = np.asarray(overlay(picture, values, scale_for(values, signed=False), threshold=0.0))
    assert drawn[0, :2].tolist() == [[100] * 3] * 2
    assert drawn[0, 2].tolist() == [50] * 3


def test_what_the_model_did_not_see_is_dimmed_with_lines_of_light() -> None:
    picture = flat((100, 100, 100), (16, 16))
    values = np.ones((16, 16), np.float32)
    values[:, :8] = NAN
    drawn = np.asarray(overlay(picture, values, UNIT, "grey", 1.0, 0.0))
    rows, columns = np.ogrid[0:16, 0:8]
    # 100 halved; on every eighth diagonal 0.6 * 100 + 0.4 * 255.
    expected = np.where((rows + columns) % 8 == 0, 162, 50)
    np.testing.assert_array_equal(drawn[:, :8, 0], expected)
    assert (drawn[:, 8:] == 255).all()


def test_a_heatmap_of_nan_only_is_a_failed_one_not_an_unseen_picture() -> None:
    picture = noise(6, 4)
    values = np.full((4, 6), NAN, np.float32)
    drawn = overlay(picture, values, scale_for(values, signed=False))
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(picture))


def test_infinite_values_are_not_drawn() -> None:
    picture = flat((9, 9, 9), (3, 1))
    drawn = np.asarray(overlay(picture, heat([INF, -INF, 1.0]), UNIT, "grey", 1.0, 0.0))
    assert drawn[0, :, 0].tolist() == [9, 9, 255]


@pytest.mark.parametrize("pixels", [1, 40, 1000])
def test_strips_do_not_show(pixels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = noise(37, 53)
    values = np.random.default_rng(1).standard_normal((53, 37)).astype(np.float32)
    values[:, :9] = NAN
    scale = scale_for(values, signed=True)
    whole = overlay(picture, values, scale)
    monkeypatch.setattr(render, "_STRIP_PIXELS", pixels)
    np.testing.assert_array_equal(np.asarray(overlay(picture, values, scale)), np.asarray(whole))


def test_the_inputs_are_left_alone() -> None:
    picture, values = noise(5, 4), np.linspace(0, 1, 20, dtype=np.float32).reshape(4, 5)
    values[0, 0] = NAN
    before, kept = np.asarray(picture).copy(), values.copy()
    overlay(picture, values, UNIT)
    heat_image(values, UNIT, (50, 40))
    np.testing.assert_array_equal(np.asarray(picture), before)
    np.testing.assert_array_equal(values, kept)


def test_overlay_refuses_a_transposed_heatmap() -> None:
    with pytest.raises(InterpError, match=r"\(6, 4\).*height 4 and width 6"):
        overlay(noise(6, 4), np.zeros((6, 4), np.float32), UNIT)


def test_overlay_refuses_what_it_cannot_draw() -> None:
    values = np.zeros((4, 6), np.float32)
    with pytest.raises(InterpError, match="RGBA"):
        overlay(noise(6, 4).convert("RGBA"), values, UNIT)
    with pytest.raises(InterpError, match=r"opacity 1\.5"):
        overlay(noise(6, 4), values, UNIT, opacity=1.5)
    with pytest.raises(InterpError, match="threshold nan"):
        overlay(noise(6, 4), values, UNIT, threshold=NAN)
    with pytest.raises(InterpError, match="colour map"):
        overlay(noise(6, 4), values, UNIT, "rainbow")


# Figures


def test_the_raw_grid_is_squares_of_one_colour() -> None:
    grid = heat([0.0, 1.0, 0.5], [NAN, 0.25, -1.0])
    drawn = np.asarray(heat_image(grid, UNIT, (30, 20), "grey"))
    assert drawn.shape == (20, 30, 3)
    cells = drawn.reshape(2, 10, 3, 10, 3)
    assert (cells == cells[:, :1, :, :1]).all()
    assert cells[:, 0, :, 0, 0].tolist() == [[0, 255, 128], [208, 64, 0]]


def test_a_flat_grid_is_grey() -> None:
    drawn = np.asarray(heat_image(heat([2.0, 2.0]), Scale(0.0, 0.0, False), (4, 2)))
    assert (drawn == 208).all()


def test_the_bar_has_the_highest_value_on_top_or_right() -> None:
    table = lookup(DEFAULT_COLOURS).astype(int)
    upright = np.asarray(colour_bar(UNIT, None, 80, 300)).astype(int)
    column = upright[:, 3]
    inside = np.flatnonzero((column != 255).any(axis=1))
    assert np.abs(column[inside[2]] - table[255]).max() <= 6
    assert np.abs(column[inside[-3]] - table[0]).max() <= 6
    across = np.asarray(colour_bar(UNIT, None, 300, 50)).astype(int)
    row = across[3]
    inside = np.flatnonzero((row != 255).any(axis=1))
    assert np.abs(row[inside[2]] - table[0]).max() <= 6
    assert np.abs(row[inside[-3]] - table[255]).max() <= 6


def test_the_bar_is_blank_below_the_threshold() -> None:
    column = np.asarray(colour_bar(UNIT, "viridis", 80, 300, threshold=0.25))[:, 3]
    blank = (column == 255).all(axis=1)[20:280]
    length = 300 - 2 * int((column[:150] == 255).all(axis=1).argmin())
    assert abs(blank.sum() - length / 4) <= 12
    assert blank[-10:].all()


@pytest.mark.parametrize("size", [(80, 300), (300, 50), (90, 90), (12, 12), (400, 1)])
def test_a_bar_has_the_size_asked_for(size: tuple[int, int]) -> None:
    for scale in (UNIT, Scale(-1.234e-5, 1.234e-5, True), Scale(0.0, 0.0, False)):
        assert colour_bar(scale, None, *size).size == size


def test_the_numbers_on_a_bar_stay_inside_it() -> None:
    for scale in (UNIT, Scale(-1.234e-5, 1.234e-5, True), Scale(-1.7e12, 1.7e12, True)):
        for size in ((100, 400), (500, 50)):
            dark = np.asarray(colour_bar(scale, "grey", *size, threshold=1.0)).max(axis=2) < 128
            assert dark.any()
            assert not dark[:, -1].any()
            assert not dark[-1].any()


def test_a_figure_holds_the_overlay_pixel_for_pixel() -> None:
    picture = noise(300, 200)
    values = np.linspace(0, 1, 60_000, dtype=np.float32).reshape(200, 300)
    drawn = np.asarray(figure(picture, values, UNIT, caption="espresso (967) − grad-cam"))
    expected = np.asarray(overlay(picture, values, UNIT))
    pad = 12
    np.testing.assert_array_equal(drawn[pad : pad + 200, pad : pad + 300], expected)
    assert (drawn[-4:] == 255).all()
    bare = figure(picture, values, UNIT)
    assert bare.height < drawn.shape[0]
    assert bare.width == drawn.shape[1]


def test_a_figure_of_one_pixel() -> None:
    page = figure(noise(1, 1), heat([1.0]), UNIT, caption="a caption longer than the picture")
    assert page.width > 100


def test_a_montage_keeps_order_and_size() -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    page = montage([flat(c, (60, 40)) for c in colours], ["one", "two", "three"], 2)
    pixels = np.asarray(page)
    places = []
    for colour in colours:
        rows, columns = np.nonzero((pixels == colour).all(axis=2))
        assert rows.size == 60 * 40
        places.append((rows.min(), columns.min()))
    assert places[0][0] == places[1][0] < places[2][0]
    assert places[0][1] == places[2][1] < places[1][1]


def test_a_montage_refuses_what_does_not_fit() -> None:
    picture = noise(4, 4)
    for images, captions, columns in (([], [], 1), ([picture], ["a"], 0), ([picture], [], 1)):
        with pytest.raises(InterpError, match="montage"):
            montage(images, captions, columns)


def test_captions_are_wrapped_and_drawn_with_letters_the_font_has() -> None:
    font = font_of(14)
    lines = wrap("tête 7×7 − crème «x» 猫 " + "m" * 60, font, 120)
    assert all(font.getlength(line) <= 120 for line in lines)
    text = "".join(lines).replace(" ", "")
    assert text == "tete7x7-creme«x»?" + "m" * 60
    missing = bytes(font.getmask("猫"))
    assert all(bytes(font.getmask(letter)) != missing for letter in text)
