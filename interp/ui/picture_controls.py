"""Which picture: a sample, an upload or the camera."""

from typing import Literal

import streamlit as st
from PIL import Image

from interp.errors import PictureError
from interp.picture import Picture, open_picture, sample_pictures
from interp.ui import cache, state
from interp.ui.gallery import Tile, gallery
from interp.ui.state import View
from interp.ui.waiting import plain

SAMPLE_TITLES = {"motorcycle_left": "motorcycle"}
SOURCES = ("Samples", "Upload", "Camera")
TALLEST = 280


def choose_picture(view: View) -> None:
    samples = sample_pictures()
    is_sample = view.picture in samples
    source = st.segmented_control(
        "Picture",
        SOURCES,
        default="Samples" if is_sample else "Upload",
        required=True,
        width="stretch",
        key="picture source",
    )
    if source == "Samples":
        tiles = [
            Tile(name, _sample(name), SAMPLE_TITLES.get(name, name), alt=f"Sample: {name}")
            for name in samples
        ]
        gallery(
            tiles,
            view.picture,
            key="samples",
            label="Sample pictures",
            on_pick=lambda name: state.change(picture=name),
            columns=3,
        )
    elif source == "Upload":
        st.file_uploader(
            "JPEG, PNG, WebP, BMP, TIFF or GIF, up to 32 MB and 50 megapixels",
            key="upload",
            on_change=_take_file,
            args=("upload", view),
        )
    else:
        st.camera_input("Take a picture", key="camera", on_change=_take_file, args=("camera", view))
    place, instead_of, refusal = st.session_state.get("refusal", ("", "", ""))
    if (place, instead_of) == (source.lower(), view.picture):
        st.error(plain(refusal), icon=":material/image_not_supported:")
    if not is_sample:
        _show_upload(view)


@st.cache_data(show_spinner=False)
def _sample(name: str) -> Image.Image:
    image = open_picture(sample_pictures()[name]).image
    image.thumbnail((320, 320))
    return image


def _take_file(key: str, view: View) -> None:
    """Keep an upload that can be opened; one that cannot leaves the picture as it was.

    The refusal stands where the file was given, until there is another picture.
    """
    st.session_state.pop("refusal", None)
    file = st.session_state[key]
    if file is None:
        return
    data = file.getvalue()
    try:
        open_picture(data, name=file.name)
    except PictureError as error:
        st.session_state["refusal"] = (key, view.picture, str(error))
        return
    state.change(picture=cache.uploads().add(data, file.name))


def _show_upload(view: View) -> None:
    try:
        picture = cache.picture(view.picture, view.frame)
    except PictureError:
        return  # the page itself says so, in the place of the result
    thumbnail = picture.image.copy()
    thumbnail.thumbnail((560, 560))
    width, height = picture.size
    # As wide as the sidebar, but a tall picture must not push the other choices out of sight.
    shown: Literal["stretch"] | int = "stretch"
    if width < height:
        shown = max(1, TALLEST * width // height)
    st.image(thumbnail, width=shown, alt=f"The picture {picture.name}")
    st.caption(f"{plain(picture.name)} · {width} × {height} · {picture.format}")


def choose_frame(picture: Picture) -> None:
    if picture.frames > 1:
        # The view is the truth: the number typed for the picture before must not stay.
        st.session_state["frame"] = picture.frame + 1
        st.number_input(
            f"Frame, of {'more than ' if picture.more_frames else ''}{picture.frames}",
            1,
            picture.frames,
            key="frame",
            on_change=lambda: state.change(frame=int(st.session_state["frame"]) - 1),
        )
