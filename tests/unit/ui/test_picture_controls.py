"""The choice of a frame says how many there are, and no more than is known."""

import pytest
from streamlit.testing.v1 import AppTest


def page(frames: int, more: bool) -> None:
    from PIL import Image

    from interp.picture import Picture
    from interp.ui.picture_controls import choose_frame

    image = Image.new("RGB", (1, 1))
    choose_frame(Picture(image, "", (), "a.gif", "GIF", 0, frames, more_frames=more))


@pytest.mark.parametrize(
    ("frames", "more", "label"),
    [(7, False, "Frame, of 7"), (1000, True, "Frame, of more than 1000")],
)
def test_how_many_frames(frames: int, more: bool, label: str) -> None:
    app = AppTest.from_function(page, kwargs={"frames": frames, "more": more}).run(timeout=60)
    assert not app.exception
    (field,) = app.number_input
    assert (field.label, field.min, field.max, field.value) == (label, 1, frames, 1)
