"""The runs behind the Gradients page: the view's own, and the one that it is compared with."""

from dataclasses import dataclass, replace

import streamlit as st

from interp.errors import PictureError
from interp.inspection.travel import LayerValues, Travel, layer_values, travel
from interp.models.loading import LoadedModel
from interp.picture import Picture, sample_pictures
from interp.ui import cache, runs
from interp.ui.picture_controls import SAMPLE_TITLES
from interp.ui.state import View


@dataclass(frozen=True)
class Run:
    """One line of the chart: its name in the legend, and the gradient that travelled."""

    name: str
    travel: Travel


def own_run(view: View, label: int | None, model: LoadedModel, picture: Picture) -> Run:
    """The gradient of the view's own model and picture."""
    name = "trained" if model.trained else "untrained"
    return Run(name, _travel(_key(view), label, model, picture))


def untrained_run(view: View, label: int | None, first: Run, picture: Picture) -> Run:
    """The same score of the same network with random weights, on the same picture."""
    other = replace(view, weights="none", target=_score(first, label))
    model = cache.model(other.model, other.weights)
    return Run("untrained", _travel(_key(other), label, model, picture))


def picture_runs(
    view: View, label: int | None, first: Run, model: LoadedModel, other: str
) -> tuple[Run, Run]:
    """The first run, and the same score on another picture; both named by their pictures.

    Raises
    ------
    PictureError
        If the other picture is neither a sample nor one that was uploaded.
    """
    if other not in sample_pictures() and cache.uploads().get(other) is None:
        raise PictureError(
            f"the second picture «{other[:16]}» is not kept here: choose a sample, such as "
            "chelsea, or upload it again"
        )
    picture = cache.picture(other, 0)
    there = replace(view, picture=other, frame=0, target=_score(first, label))
    second = _travel(_key(there), label, model, picture)
    names = [picture_title(first.travel.input_gradient.picture), picture_title(picture)]
    if names[0] == names[1]:
        names[1] += " (2)"
    return Run(names[0], first.travel), Run(names[1], second)


def values_at(
    view: View, path: str, label: int | None, model: LoadedModel, picture: Picture
) -> LayerValues:
    """All values of one layer and of the gradient there."""
    return _values(_key(view), path, label, model, picture)


def picture_title(picture: Picture) -> str:
    """The name of a sample, or of the file."""
    for name, path in sample_pictures().items():
        if path.name == picture.name:
            return SAMPLE_TITLES.get(name, name)
    return picture.name


def _score(first: Run, label: int | None) -> str:
    return str(first.travel.input_gradient.target) if label is None else ""


def _key(view: View) -> View:
    return replace(view, method="", layer="")


@st.cache_resource(scope="session", max_entries=12, show_spinner=False)
def _travel(view: View, label: int | None, _model: LoadedModel, _picture: Picture) -> Travel:
    target = view.target if label is None else None
    found = travel(_model, _picture, target, label, view.fit)
    runs.note(f"Gradients of {found.loss_name} at every layer", found.ledger)
    return found


@st.cache_resource(scope="session", max_entries=12, show_spinner=False)
def _values(
    view: View, path: str, label: int | None, _model: LoadedModel, _picture: Picture
) -> LayerValues:
    target = view.target if label is None else None
    found = layer_values(_model, _picture, path, 0, target, label, view.fit)
    runs.note(f"Values and gradient of {path}", found.ledger)
    return found
