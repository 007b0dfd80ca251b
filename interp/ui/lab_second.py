"""The second picture of a patch in the Hook lab: what it shows, and one of the reader's own."""

import re
from collections.abc import Callable

import streamlit as st

from interp.errors import PictureError
from interp.hooks.recipe import Recipe, Step
from interp.picture import open_picture, sample_pictures
from interp.ui import cache, lab_state
from interp.ui.picture_controls import SAMPLE_TITLES
from interp.ui.waiting import plain

HEIGHT = 80
_KNOWN = "lab.uploads"  # this session's uploaded pictures, in the order they came
_TAKEN = "lab.taken"  # how many files a step was given: each gets a new field
_REFUSED = "lab.refused"  # why the last file of a step was not taken, by its id


def note_upload(name: str) -> None:
    """Remember an uploaded picture of this session by its SHA-256, so that a patch can take it."""
    if name not in sample_pictures() and cache.uploads().get(name) is not None:
        st.session_state.setdefault(_KNOWN, {})[name] = None


def second_pictures(chosen: str) -> dict[str, str]:
    """What a patch can take: samples, this session's uploads and the one it has, with titles."""
    names = [*sample_pictures(), *st.session_state.get(_KNOWN, {})]
    return {name: picture_title(name) for name in dict.fromkeys([*names, chosen])}


def picture_title(name: str) -> str:
    """How a second picture is called on the page: a sample by its title, an upload by its file."""
    if not name:
        return "choose one"
    if name in sample_pictures():
        return SAMPLE_TITLES.get(name, name)
    file = cache.uploads().get(name)
    return f"upload {name[:8]}, no longer here" if file is None else file[1]


def uploaded(recipe: Recipe) -> dict[str, str]:
    """The file names of second pictures that were uploaded, by their SHA-256."""
    names = {str(step.values.get("picture", "")) for step in recipe.steps}
    return {name: file[1] for name in names if (file := cache.uploads().get(name)) is not None}


def sentence(step: Step) -> str:
    """What a step does, with the name of an uploaded file in place of its SHA-256."""
    text = re.sub(r"(?<= )-(?=\d)", "−", step.sentence())
    name = str(step.values.get("picture", ""))
    if cache.uploads().get(name) is None:
        return text
    return text.replace(f"the picture {name[:8]}", f"your picture {picture_title(name)}")


def second_picture(id: str, value: str, on_pick: Callable[[str], None]) -> None:
    """The picture small, and a field that takes another one from the reader's disk.

    Parameters
    ----------
    id : str
        Of the step.
    value : str
        The picture as the step has it: a sample's name, a SHA-256, or empty.
    on_pick : callable
        Called with the SHA-256 of a file that could be opened.
    """
    count = st.session_state.get(_TAKEN, {}).get(id, 0)
    key = f"lab second {id} {count}"
    refusal = st.session_state.get(_REFUSED, {}).get(id, "")
    with st.popover("Upload another", icon=":material/upload:", key=f"{key} open"):
        st.file_uploader(
            "A second picture of your own: JPEG, PNG, WebP, BMP, TIFF or GIF, up to 32 MB",
            key=key,
            on_change=_take,
            args=(id, key, on_pick),
        )
        if refusal:
            st.error(plain(refusal), icon=":material/image_not_supported:")
    if value:
        _thumbnail(value)


def _thumbnail(value: str) -> None:
    try:
        small = lab_state.picture_of(value).image.copy()
    except PictureError:
        return  # the step itself says so
    small.thumbnail((3 * HEIGHT, HEIGHT))
    st.image(small, width=small.width, alt=f"Second picture: {picture_title(value)}")


def _take(id: str, key: str, on_pick: Callable[[str], None]) -> None:
    """Keep a file that can be opened and patch from it; say why where it cannot."""
    refused: dict[str, str] = st.session_state.setdefault(_REFUSED, {})
    refused.pop(id, None)
    file = st.session_state[key]
    if file is None:
        return
    data = file.getvalue()
    try:
        open_picture(data, name=file.name)
    except PictureError as error:
        refused[id] = str(error)
        return
    name = cache.uploads().add(data, file.name)
    note_upload(name)
    taken: dict[str, int] = st.session_state.setdefault(_TAKEN, {})
    taken[id] = taken.get(id, 0) + 1
    on_pick(name)
