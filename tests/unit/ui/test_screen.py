"""What the browser says that it shows, and what is made of it."""

import json
from typing import Any

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from interp.drawing import DEFAULT_DRAWING, Drawing
from interp.errors import InterpError
from interp.ui.screen import Screen, parse

SAID: dict[str, Any] = {
    "colours": "viridis",
    "opacity": 0.85,
    "threshold": 0,
    "mode": "swipe",
    "divider": 0.25,
    "stacked": False,
}


def test_a_file_is_drawn_as_the_browser_said_last() -> None:
    files = MemoryUploadedFileManager("/upload")
    screen = Screen("/upload/session/file", "file", "session", files)
    assert screen.drawing() == DEFAULT_DRAWING
    for opacity in (0.3, 0.85):
        data = json.dumps({**SAID, "opacity": opacity}).encode()
        record = UploadedFileRec("file", "screen.json", "application/json", data)
        files.add_file("session", record)
        assert screen.drawing() == Drawing("viridis", opacity, 0.0, "swipe", 0.25)
    other = Screen("/upload/other/file", "file", "other", files)
    assert other.drawing() == DEFAULT_DRAWING


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        *(
            json.dumps({**SAID, **wrong}).encode()
            for wrong in (
                {"colours": "jet"},
                {"colours": None},
                {"opacity": 2},
                {"opacity": None},
                {"threshold": "NaN"},
                {"mode": "split"},
                {"mode": ["swipe"]},
            )
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(InterpError, match=r"^the browser says that it shows what cannot be drawn"):
        parse(data)
