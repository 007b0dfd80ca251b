from dataclasses import replace

import numpy as np
import pytest

from interp.attribution.notes import notes_on
from interp.models.loading import load_model
from interp.picture import open_picture
from interp.targets import Target

TABBY = Target(0, categories=("tabby",))


@pytest.fixture(scope="module")
def picture(chelsea):
    return open_picture(chelsea)


def on(bundled, picture, values, signed=False):
    raw = np.array(values, np.float32)
    return notes_on(raw, bundled, picture, TABBY, signed=signed)


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
