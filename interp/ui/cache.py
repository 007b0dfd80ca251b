"""What the dashboard keeps between reruns, and for how long."""

import hashlib
import threading
from collections import OrderedDict

import streamlit as st

from interp.attribution import (
    Attribution,
    Prediction,
    explain,
    explain_layers,
    get_method,
    predict,
)
from interp.errors import PictureError
from interp.models.layers import list_layers
from interp.models.loading import LoadedModel, load_model
from interp.picture import Picture, open_picture, sample_pictures
from interp.ui import runs
from interp.ui.state import View

UPLOAD_BYTES = 256 * 2**20


class Uploads:
    """The newest uploaded files by their SHA-256, so that a reloaded page finds its picture."""

    def __init__(self, capacity: int = UPLOAD_BYTES) -> None:
        self._capacity = capacity
        self._files: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, data: bytes, name: str) -> str:
        """Keep a file; the oldest ones are let go when there are too many bytes."""
        key = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._files[key] = (data, name)
            self._files.move_to_end(key)
            while len(self._files) > 1 and self._bytes() > self._capacity:
                self._files.popitem(last=False)
        return key

    def get(self, key: str) -> tuple[bytes, str] | None:
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
            return self._files.get(key)

    def _bytes(self) -> int:
        return sum(len(data) for data, _ in self._files.values())


@st.cache_resource(show_spinner=False)
def uploads() -> Uploads:
    """The files that were uploaded to this server."""
    return Uploads()


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def picture(name: str, frame: int) -> Picture:
    """A sample by name, or an upload by its SHA-256.

    Raises
    ------
    PictureError
        If it cannot be read or is no longer here.
    """
    samples = sample_pictures()
    if name in samples:
        return open_picture(samples[name], frame=frame)
    file = uploads().get(name)
    if file is None:
        raise PictureError(
            "The picture of this view is no longer kept here: upload it again, or take a sample."
        )
    data, file_name = file
    return open_picture(data, name=file_name, frame=frame)


@st.cache_resource(max_entries=2, show_spinner=False)
def model(name: str, weights: str) -> LoadedModel:
    """A model with its layer table; two are kept for all sessions, and each is built once."""
    loaded = load_model(name, weights)
    list_layers(loaded)  # the dry run is made here, so that it too is made once
    return loaded


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def predictions(view: View, _model: LoadedModel, _picture: Picture) -> list[Prediction]:
    """The top five of a view whose layer, target and method are left at their defaults."""
    return predict(_model, _picture, fit=view.fit)


@st.cache_resource(scope="session", max_entries=24, show_spinner=False)
def heatmap(view: View, _model: LoadedModel, _picture: Picture) -> Attribution:
    """The heatmap of a view."""
    attribution = explain(
        _model,
        _picture,
        view.method,
        layers=view.layer or None,
        target=view.target,
        fit=view.fit,
    )
    runs.note(f"{_title(attribution)} at {' and '.join(attribution.layers)}", attribution.ledger)
    return attribution


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def heatmaps(
    view: View, layers: tuple[str, ...], _model: LoadedModel, _picture: Picture
) -> list[Attribution]:
    """The heatmaps of a view at several layers, from one pass."""
    attributions = explain_layers(
        _model,
        _picture,
        layers,
        view.method,
        target=view.target,
        fit=view.fit,
    )
    first = attributions[0]
    runs.note(f"{_title(first)} at {len(layers)} layers in one pass", first.ledger)
    return attributions


def _title(attribution: Attribution) -> str:
    return f"{get_method(attribution.method).title} of {attribution.target.label}"
