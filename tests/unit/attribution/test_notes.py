from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from interp.attribution import explain
from interp.attribution.notes import notes_on
from interp.geometry import plan
from interp.models.loading import load_model
from interp.picture import Picture, open_picture
from interp.targets import Target

TABBY = Target(0, categories=("tabby",))


@pytest.fixture(scope="module")
def picture(chelsea):
    return open_picture(chelsea)


def on(bundled, picture, values, signed=False):
    raw = np.array(values, np.float32)
    geometry = bundled.geometry(picture)
    return notes_on(raw, bundled, picture, TABBY, signed=signed, geometry=geometry)


def of_size(bundled, size, fit):
    """The notes on a picture of this size, for an input of 224 and a resize to 256."""
    picture = Picture(Image.new("RGB", size), "", (), "a.png", "PNG", 0, 1)
    geometry = plan(size, bundled.preset, fit)
    assert (bundled.preset.crop_size, bundled.preset.resize_size) == (224, 256)
    raw = np.array([[0.0, 1.0]], np.float32)
    return notes_on(raw, bundled, picture, TABBY, signed=False, geometry=geometry)


@pytest.mark.parametrize(
    ("values", "signed", "parts"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], False, ["The map is flat", "minimum 0.5, maximum 0.5"]),
        ([[0.5, 0.5000001]], False, ["The map is flat"]),
        ([[-2.0, -1.0]], False, ["No value", "minimum -2, maximum -1", "tabby (0)"]),
        ([[-2.0, 0.0]], False, ["No value", "minimum -2, maximum 0"]),
        ([[-3.0, -3.0]], False, ["No value", "minimum -3, maximum -3"]),
        ([[-3.0, -3.0]], True, ["The map is flat", "minimum -3, maximum -3"]),
        ([[0.0, 0.0]], False, ["The map is zero everywhere", "tabby (0) does not depend"]),
        ([[0.0, 0.0]], True, ["The map is zero everywhere"]),
        ([[2.5]], False, ["single place", "2.5"]),
        ([[np.nan, 1.0], [np.inf, -np.inf]], False, ["3 of 4 values", "not finite"]),
        ([[np.nan]], True, ["1 of 1 values", "not finite"]),
    ],
)
def test_a_degenerate_map_is_put_into_words(bundled, picture, values, signed, parts):
    (note,) = on(bundled, picture, values, signed)
    for part in parts:
        assert part in note
    assert "\n" not in note


@pytest.mark.parametrize(
    ("values", "signed"),
    [
        ([[0.0, 1.0]], False),
        ([[-1.0, 1e-9]], False),
        ([[1e-30, 2e-30]], False),
        ([[-2.0, -1.0]], True),
        ([[-2.0, 0.0]], True),
    ],
)
def test_a_map_that_shows_something_needs_no_words(bundled, picture, values, signed):
    assert on(bundled, picture, values, signed) == ()


def test_notes_of_the_picture_come_first(bundled, picture_path):
    grey = open_picture(picture_path("camera"))
    assert grey.notes == ()
    noted = replace(grey, notes=("frame 1 of 3",))
    assert on(bundled, noted, [[0.0, 1.0]]) == ("frame 1 of 3",)
    first, second = on(bundled, noted, [[0.0, 0.0]])
    assert first == "frame 1 of 3"
    assert "zero everywhere" in second


def test_an_untrained_model_says_so(picture):
    model = load_model("squeezenet1_1", weights="none", device="cpu")
    (note,) = on(model, picture, [[0.0, 1.0]])
    assert note.startswith("The model is untrained")


@pytest.mark.parametrize(
    ("size", "fit", "words"),
    [
        ((40, 30), "crop", "was enlarged 8.5 times"),  # 256 / 30
        ((30, 40), "crop", "was enlarged 8.5 times"),
        ((40, 30), "letterbox", "was enlarged 5.6 times"),  # 224 / 40
        ((40, 30), "stretch", "was resized 5.6 times across and 7.5 times down"),
        ((30, 30), "stretch", "was enlarged 7.5 times"),
        ((1, 1), "letterbox", "was enlarged 224.0 times"),
        ((500, 55), "stretch", "was resized 0.4 times across and 4.1 times down"),
    ],
)
def test_a_small_picture(bundled, size, fit, words):
    (note,) = of_size(bundled, size, fit)
    assert note == (
        f"The picture is {size[0]} × {size[1]} pixels and {words} for the model's 224 × 224 input: "
        "fine detail in the map is interpolation."
    )


def test_a_thin_picture_in_a_letterbox(bundled):
    (note,) = of_size(bundled, (1120, 50), "letterbox")
    assert note == (
        "The picture is 1120 × 50 pixels and fills 224 × 10 of the model's 224 × 224 input: "
        "the map tells few places in it apart."
    )


@pytest.mark.parametrize("fit", ["crop", "letterbox", "stretch"])
def test_small_is_less_than_a_quarter_of_the_input(bundled, fit):
    assert of_size(bundled, (56, 60), fit) == ()
    (note,) = of_size(bundled, (55, 60), fit)
    assert note.startswith("The picture is 55 × 60 pixels")


@pytest.mark.parametrize(
    ("size", "percent"),
    [
        # 224 × 224 of 256 × 588 is exactly a third; a row more is less
        ((256, 588), None),
        ((588, 256), None),
        ((256, 589), "33"),
        ((256, 700), "28"),  # 224 × 224 of 256 × 700
        ((700, 256), "28"),
        ((256, 40_000), "0.5"),
    ],
)
def test_a_narrow_crop(bundled, size, percent):
    expected = (
        f"The crop shows the model {percent} % of the picture: "
        'use fit="letterbox" or "stretch" to show it all.'
    )
    assert of_size(bundled, size, "crop") == ((expected,) if percent else ())


def test_only_a_crop_is_narrow(bundled):
    assert of_size(bundled, (256, 700), "letterbox") == ()
    assert of_size(bundled, (256, 700), "stretch") == ()


def test_a_small_picture_and_a_narrow_crop(bundled):
    small, narrow = of_size(bundled, (30, 300), "crop")
    assert "30 × 300" in small
    assert "8 % of the picture" in narrow  # 224 × 224 of 256 × 2560


def test_a_heatmap_carries_them(bundled):
    small = Picture(Image.new("RGB", (40, 30), "red"), "", (), "a.png", "PNG", 0, 1)
    assert any("40 × 30 pixels" in note for note in explain(bundled, small).notes)
    assert any("5.6 times across" in one for one in explain(bundled, small, fit="stretch").notes)
