"""How the browser shows the heatmap, known to the server without running the script again.

Opacity, colours, threshold and view change in the browser alone. Whatever a component hands back
runs the script, so the browser leaves what it shows where uploads go, which runs nothing, and a
file that is asked for is drawn from there. The browser holds a download back until this is done.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFileManager

from interp.drawing import DEFAULT_DRAWING, Drawing, Mode
from interp.errors import InterpError

_KEY = "screen"


@dataclass(frozen=True)
class Screen:
    """Where the browser of a session leaves what it shows.

    `url` is where it is put, `file_id` under which name it stands then.
    """

    url: str
    file_id: str
    session: str
    files: UploadedFileManager

    def drawing(self) -> Drawing:
        """What is shown now; the defaults before a browser has shown anything.

        Raises
        ------
        InterpError
            What was left there is no drawing.
        """
        found = self.files.get_files(self.session, [self.file_id])
        return parse(found[0].data) if found else DEFAULT_DRAWING


def of_session() -> Screen:
    """The screen of this session; asked for while a script runs."""
    context = get_script_run_ctx()
    if context is None:
        raise RuntimeError("a screen belongs to a session: ask for it in a running script")
    kept = st.session_state.get(_KEY)
    if isinstance(kept, Screen) and kept.session == context.session_id:
        return kept
    files, session = context.uploaded_file_mgr, context.session_id
    place = files.get_upload_urls(session, ["screen.json"])[0]
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    url = f"/{base}{place.upload_url}" if base else place.upload_url
    screen = Screen(url, place.file_id, session, files)
    st.session_state[_KEY] = screen
    return screen


def parse(data: bytes) -> Drawing:
    """What the browser says that it shows.

    Raises
    ------
    InterpError
        If that is no drawing.
    """
    try:
        said = json.loads(data)
        return Drawing(
            colours=str(said["colours"]),
            opacity=float(said["opacity"]),
            threshold=float(said["threshold"]),
            mode=said["mode"],
            divider=float(said["divider"]),
            stacked=bool(said["stacked"]),
        )
    except (InterpError, ValueError, TypeError, KeyError) as error:
        raise InterpError(
            f"the browser says that it shows what cannot be drawn ({error}): reload the page"
        ) from error


def as_shown(
    make: Callable[..., bytes], *args: Any, mode: Mode | None = None
) -> Callable[[], bytes]:
    """What makes a file when it is asked for: `make(*args, drawing)`, drawn as it is shown then.

    `mode` is the view of the file, where that is not the view on the screen.
    """
    return partial(_make, of_session(), mode, make, args)


def _make(
    screen: Screen, mode: Mode | None, make: Callable[..., bytes], args: tuple[Any, ...]
) -> bytes:
    drawing = screen.drawing()
    return make(*args, drawing if mode is None else replace(drawing, mode=mode))
