"""The sidebar that all pages share: which picture, which model, which class."""

from dataclasses import replace
from typing import Any

import streamlit as st

from interp.attribution import Prediction
from interp.errors import InterpError, PictureError, TargetError
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, parse_target
from interp.ui import cache, state
from interp.ui.model_controls import choose_model, obtain_model
from interp.ui.picker import Group, Option, pick
from interp.ui.picture_controls import choose_frame, choose_picture
from interp.ui.state import View
from interp.ui.waiting import problem

TOP = ""
SCALES = {"logit": "Logit", "prob": "Probability", "logprob": "Log-probability"}


def sidebar(view: View) -> tuple[Picture, LoadedModel]:
    """Draw the shared choices and give what they lead to.

    Where that is not to be had, the page says why and the script stops here.
    """
    with st.sidebar:
        choose_picture(view)
        choose_model(view)
        target_place = st.container()
    try:
        picture = cache.picture(view.picture, view.frame)
    except PictureError as error:
        problem(error, [("Take the sample «coffee»", {"picture": View.picture, "frame": 0})])
        st.stop()
    with st.sidebar:
        choose_frame(picture)
    try:
        model = obtain_model(view)
        plain = replace(view, method="", layer="", target="")
        top = cache.predictions(plain, model, picture)
    except InterpError as error:
        problem(error, _ways_out(view))
        st.stop()
    try:
        target = parse_target(view.target, model.categories)
    except TargetError as error:
        problem(error, [("Explain the top prediction", {"target": TOP})])
        target = None
    with target_place:
        _choose_target(target or Target(), model, top)
    if target is None:
        st.stop()
    return picture, model


def _ways_out(view: View) -> list[tuple[str, dict[str, str]]]:
    ways: list[tuple[str, dict[str, str]]] = []
    if view.model != View.model:
        ways.append(("Take the bundled EfficientNet-Lite0", {"model": View.model}))
        ways.append(("Use it untrained", {"weights": "none"}))
    elif view.weights != View.weights:
        ways.append(("Take its own weights", {"weights": View.weights}))
    if view.fit != View.fit:
        ways.append(("Fit the picture by cropping", {"fit": View.fit}))
    else:
        ways.append(("Show the model the whole picture", {"fit": "letterbox"}))
    return ways


def _choose_target(target: Target, model: LoadedModel, top: list[Prediction]) -> None:
    names = model.categories
    odds = {p.index: f"{100 * p.probability:.1f} %" for p in top}
    best = Option(TOP, "Top prediction", detail=top[0].name, right=odds[top[0].index])
    leading = tuple(_class_option(i, names, odds[i]) for i in odds)
    others = tuple(_class_option(i, names) for i in range(len(names)) if i not in odds)
    groups = [Group("", (best,)), Group("Top five", leading), Group("All classes", others)]
    search = f"Search {len(names)} classes"

    def choose(**choices: Any) -> None:
        chosen = replace(target, **choices)
        if chosen.against is not None and chosen.index is None:
            chosen = replace(chosen, index=top[0].index)
        state.change(target=str(chosen))

    pick(
        "Explain the class",
        groups,
        _text(target.index),
        key="target",
        on_pick=lambda value: choose(index=_number(value)),
        help="The class whose score is explained. Pick any: also one the model did not predict.",
        placeholder=search,
    )
    with st.popover("Contrast, probability", width="stretch"):
        nothing = Option(TOP, "Nothing", detail="the class by itself")
        pick(
            "Against the class",
            [Group("", (nothing,)), *groups[1:]],
            _text(target.against),
            key="against",
            on_pick=lambda value: choose(against=_number(value)),
            help="Explains the difference of two scores: why this class rather than that one.",
            placeholder=search,
        )
        st.segmented_control(
            "Explain its",
            list(SCALES),
            default=target.scale,
            format_func=SCALES.__getitem__,
            required=True,
            key="measure",
            help="The logit is the class's own score; a probability also falls as others rise.",
            on_change=lambda: choose(scale=st.session_state["measure"]),
        )


def _class_option(index: int, names: tuple[str, ...], right: str = "") -> Option:
    return Option(str(index), names[index], detail=str(index), right=right)


def _text(index: int | None) -> str:
    return TOP if index is None else str(index)


def _number(text: str) -> int | None:
    return None if text == TOP else int(text)
