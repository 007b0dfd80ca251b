"""Which model and which weights, with what can be had now shown before choosing."""

from typing import Literal

import streamlit as st

from interp.errors import WeightsError
from interp.models.catalog import ModelSpec, catalog, get_spec
from interp.models.loading import LoadedModel
from interp.models.weights import Availability, availability, fetch
from interp.ui import cache, state
from interp.ui.picker import Group, Option, pick
from interp.ui.state import View
from interp.ui.waiting import working

Dot = Literal["", "good", "plain", "warn", "off"]

UNTRAINED: tuple[str, Dot] = ("untrained", "warn")


def choose_model(view: View) -> None:
    groups: dict[str, list[Option]] = {}
    for spec in catalog().values():
        untrained = spec.name == view.model and view.weights == "none"
        groups.setdefault(spec.family, []).append(_model_option(spec, untrained))
    pick(
        "Model",
        [Group(family, tuple(options)) for family, options in groups.items()],
        view.model,
        key="model",
        on_pick=lambda name: state.change(model=name),
        help=(
            "Accuracy is the published top-1 on ImageNet. A dot says where the weights are: "
            "with the program, on this disk, or to be downloaded first."
        ),
        placeholder="Search 81 models",
    )
    chosen = catalog().get(view.model)
    if chosen is not None and (len(chosen.entries) > 1 or view.weights != "default"):
        _choose_weights(view, chosen)


def _model_option(spec: ModelSpec, untrained: bool) -> Option:
    entry = spec.default
    badge, dot = UNTRAINED if untrained else _badge(availability(spec, entry))
    accuracy = f"{entry.accuracy:.1f} %" if entry.accuracy and not untrained else ""
    return Option(
        spec.name,
        spec.title,
        detail=f"{entry.parameters / 1e6:.1f} M",
        right=accuracy,
        badge=badge,
        dot=dot,
    )


def _badge(have: Availability) -> tuple[str, Dot]:
    words: dict[str, tuple[str, Dot]] = {
        "bundled": ("bundled", "good"),
        "on disk": ("on disk", "good"),
        "download": (f"{have.megabytes:.0f} MB", "plain"),
        "unavailable": ("unavailable", "off"),
    }
    return words[have.kind]


def _choose_weights(view: View, spec: ModelSpec) -> None:
    options = []
    for entry in spec.entries:
        have = availability(spec, entry)
        badge, dot = _badge(have)
        off = have.kind == "unavailable"
        accuracy = f"{entry.accuracy:.1f} %" if entry.accuracy else ""
        options.append(
            Option(
                entry.name,
                entry.name,
                right=accuracy,
                badge=badge,
                dot=dot,
                star=entry is spec.default,
                disabled=off,
                reason=have.why if off else "the default" if entry is spec.default else "",
            )
        )
    options.append(
        Option(
            "none",
            "Untrained",
            badge="random",
            dot="warn",
            reason="random weights: to see what training changed",
        )
    )
    chosen = spec.default.name if view.weights == "default" else view.weights
    pick(
        "Weights",
        [Group("", tuple(options))],
        chosen,
        key="weights",
        on_pick=lambda name: state.change(weights="default" if name == spec.default.name else name),
    )


def obtain_model(view: View) -> LoadedModel:
    """The model of a view, downloaded first where it must be, with progress and a way to stop."""
    spec = get_spec(view.model)
    wanted = spec.default.name if view.weights == "default" else view.weights
    entry = next((entry for entry in spec.entries if entry.name == wanted), None)
    if entry is None and wanted != "none":
        raise WeightsError(f"{spec.title} has no weights named «{wanted}»: choose one of the list")
    place = st.empty()
    if entry is not None and availability(spec, entry).kind == "download":
        with place.container():
            st.caption(f"Downloading the weights of {spec.title}, {entry.megabytes:.0f} MB, once.")
            bar = st.progress(0.0)
            st.button(
                "Stop", key="stop download", on_click=state.change, kwargs={"model": View.model}
            )

        def show(done: int, total: int) -> None:
            bar.progress(min(done / total, 1.0) if total else 0.0)

        try:
            fetch(spec, entry, show)
        finally:
            place.empty()
    with working(f"Loading {spec.title}"):
        return cache.model(view.model, view.weights)
