"""The sidebar that all pages share: which picture, which model, which class."""

from dataclasses import replace
from typing import Any

import streamlit as st

from interp.attribution import Prediction
from interp.errors import InterpError, PictureError, TargetError
from interp.models.catalog import catalog
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import Target, parse_target
from interp.ui import cache, lab_state, state
from interp.ui.model_controls import choose_model, obtain_model
from interp.ui.picker import Group, Option, pick
from interp.ui.picture_controls import choose_frame, choose_picture
from interp.ui.state import View
from interp.ui.waiting import problem, working

TOP = ""
SCALES = {"logit": "Logit", "prob": "Probability", "logprob": "Log-probability"}


def sidebar(view: View) -> tuple[Picture, LoadedModel]:
    """Draw the shared choices and give what they lead to.

    Where that is not to be had, the page says why and the script stops here.
    """
    with st.sidebar:
        # Each in a place of its own: what one of them shows more moves the others, no more.
        with st.container():
            choose_picture(view)
        frame_place = st.container()
        with st.container():
            choose_model(view)
        target_place = st.container()
    try:
        picture = cache.picture(view.picture, view.frame)
    except PictureError as error:
        problem(error, [("Take the sample «coffee»", {"picture": View.picture, "frame": 0})])
        st.stop()
    with frame_place:
        choose_frame(picture)
    try:
        model = obtain_model(view)
        plain = replace(view, method="", layer="", target="")
        with working(f"Asking {model.spec.title}"):
            top = cache.predictions(plain, model, picture)
    except InterpError as error:
        problem(error, _other_fits(view) if isinstance(error, PictureError) else _models(view))
        st.stop()
    try:
        target = parse_target(view.target, model.categories)
    except TargetError as error:
        problem(error, [("Explain the top prediction", {"target": TOP})])
        target = None
    with target_place:
        _choose_target(target or parse_target(TOP, model.categories), model, top)
    if target is None:
        st.stop()
    with st.sidebar:
        _hooks_elsewhere()
    return picture, model


def _hooks_elsewhere() -> None:
    """That hooks of the reader's are live, on a page where they do not act."""
    lab = lab_state.live_lab()
    live = len(lab.live) if lab else 0
    if live and state.page() != lab_state.PAGE:
        hooks = "1 hook of yours is" if live == 1 else f"{live} hooks of yours are"
        st.caption(
            f":material/science: {hooks} live in the Hook lab, on its own copy of the model."
        )


def _models(view: View) -> list[tuple[str, dict[str, str]]]:
    ways: list[tuple[str, dict[str, str]]] = []
    if view.weights != View.weights:
        ways.append(("Take its own weights", {"weights": View.weights}))
    if view.model != View.model:
        ways.append(("Take the bundled EfficientNet-Lite0", {"model": View.model}))
    if view.model in catalog() and view.weights != "none":
        ways.append(("Use it untrained", {"weights": "none"}))
    return ways


def _other_fits(view: View) -> list[tuple[str, dict[str, str]]]:
    if view.fit != View.fit:
        return [("Fit the picture by cropping", {"fit": View.fit})]
    return [("Show the model the whole picture", {"fit": "letterbox"})]


def _choose_target(target: Target, model: LoadedModel, top: list[Prediction]) -> None:
    names = model.categories
    odds = {p.index: f"{100 * p.probability:.1f} %" for p in top}
    best = Option(TOP, top[0].name, detail="top prediction", right=odds[top[0].index])
    leading = [_class_option(i, names, odds[i]) for i in odds]
    others = [_class_option(i, names) for i in range(len(names)) if i not in odds]
    explained = top[0].index if target.index is None else target.index

    def choose(**choices: Any) -> None:
        state.change(target=target_text(replace(target, **choices), top[0].index))

    pick(
        "Explain the class",
        [Group("", (best,)), *_classes(leading, others)],
        _text(target.index),
        key="target",
        on_pick=lambda value: choose(index=_number(value)),
        help=(
            "The class whose score is explained. Pick any: also one the model did not predict. In "
            "the address it is an index (281), a name (tabby) or a difference (281-282); #10 is "
            "always the index and =10 the name, where a class is named like an index."
        ),
        placeholder=f"Search {len(names)} classes",
    )
    with st.popover(_refinement(target), width="stretch", key="refinement"):
        nothing = Option(TOP, "Nothing", detail="the class by itself")
        pick(
            "Against the class",
            [Group("", (nothing,)), *_classes(leading, others, without=str(explained))],
            _text(target.against),
            key="against",
            on_pick=lambda value: choose(against=_number(value)),
            help="Explains the difference of two scores: why this class rather than that one.",
            placeholder=f"Search {len(names)} classes",
        )
        st.session_state["measure"] = target.scale
        st.segmented_control(
            "Explain its",
            list(SCALES),
            format_func=SCALES.__getitem__,
            required=True,
            key="measure",
            help="The logit is the class's own score; a probability also falls as others rise.",
            on_change=lambda: choose(scale=st.session_state["measure"]),
        )


def target_text(chosen: Target, top: int) -> str:
    """What the address says for a choice: a contrast needs two classes, and not twice the same."""
    if chosen.against is not None and chosen.index is None:
        chosen = replace(chosen, index=top)
    if chosen.against == chosen.index:
        chosen = replace(chosen, against=None)
    return str(chosen)


def _classes(leading: list[Option], others: list[Option], without: str = "") -> list[Group]:
    parts = {"Top five": leading, "All classes": others}
    return [
        Group(title, tuple(option for option in options if option.value != without))
        for title, options in parts.items()
    ]


def _refinement(target: Target) -> str:
    """What the closed popover says: its contents, or what is chosen in it."""
    rival = "" if target.against is None else f"Against {target.name(target.against)}"
    scale = "" if target.scale == "logit" else SCALES[target.scale]
    return " · ".join(filter(None, (rival, scale))) or "Contrast, probability"


def _class_option(index: int, names: tuple[str, ...], right: str = "") -> Option:
    return Option(str(index), names[index], detail=str(index), right=right)


def _text(index: int | None) -> str:
    return TOP if index is None else str(index)


def _number(text: str) -> int | None:
    return None if text == TOP else int(text)
