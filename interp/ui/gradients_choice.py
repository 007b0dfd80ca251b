"""What is chosen on the Gradients page: the loss, the number drawn, the layers, the comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from interp.attribution import Prediction
from interp.errors import PictureError, TargetError
from interp.inspection.travel import LayerGradient
from interp.models.layer_names import path_of
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import open_picture, sample_pictures
from interp.ui import cache, state
from interp.ui.depth_axis import number
from interp.ui.gradients_rows import DETAILS, Detail
from interp.ui.layer_picker import shape_text
from interp.ui.picker import Group, Option, pick
from interp.ui.picture_controls import SAMPLE_TITLES
from interp.ui.state import View
from interp.ui.waiting import plain

LOSSES = {"": "Score of the class", "label": "Cross-entropy"}
COMPARISONS = {"": "Nothing", "untrained": "Untrained twin", "picture": "Another picture"}


def choose_loss(model: LoadedModel, top: Sequence[Prediction]) -> int | None:
    """The loss: None for the sidebar's class, else the label of a cross-entropy.

    Raises
    ------
    TargetError
        If the label of the address is no class of this model.
    """
    _segments(
        "Loss",
        "loss",
        LOSSES,
        "The number that is differentiated. The score of the class is what the other pages "
        "explain, and is chosen in the sidebar; the cross-entropy is what training would lower.",
    )
    if state.choice("loss") != "label":
        return None
    text = state.choice("label", str(top[0].index))
    known = {p.index: f"{100 * p.probability:.1f} %" for p in top}
    leading = [_class(index, model, right) for index, right in known.items()]
    others = [_class(i, model) for i in range(len(model.categories)) if i not in known]
    pick(
        "Label",
        [Group("Top five", tuple(leading)), Group("All classes", tuple(others))],
        text,
        key="label",
        on_pick=lambda value: state.change(label=value),
        help="The class that is taken as the right answer. A wrong one makes the loss large.",
        placeholder=f"Search {len(model.categories)} classes",
    )
    if not (text.isdecimal() and int(text) < len(model.categories)):
        raise TargetError(f"no class has the index {text}: choose another label")
    return int(text)


def choose_quantity(titles: Mapping[str, str]) -> str:
    """Which number is drawn along depth."""
    return _segments(
        "Along depth",
        "show",
        titles,
        "At the output: the gradient that came back to each layer. Of the parameters: what a step "
        "of training would move. Against the value: gradient over activation. Zeros: the share "
        "of the gradient that is exactly zero, as behind a ReLU that is off.",
    )


def choose_detail() -> Detail:
    """How finely the network is cut."""
    chosen = _segments(
        "One point for each",
        "detail",
        {str(name): title for name, title in DETAILS.items()},
        "Blocks cut the network into some thirty parts that follow each other. Layers are the "
        "modules with none inside. All modules show both, and every container.",
    )
    return next(name for name in DETAILS if name == chosen)


def choose_comparison(view: View, model: LoadedModel) -> tuple[str, str]:
    """What a second line shows, and for a picture which one."""
    offered = {k: v for k, v in COMPARISONS.items() if k != "untrained" or model.trained}
    chosen = _segments(
        "Compare with",
        "compare",
        offered,
        "A second, dashed line: the same loss of the same network with random weights, or of this "
        "network on another picture.",
    )
    if chosen != "picture":
        return chosen, ""
    samples = [name for name in sample_pictures() if name != view.picture]
    other = state.choice("other", samples[0])
    uploaded = cache.uploads().get(other)
    mine = [] if uploaded is None else [Option(other, uploaded[1])]
    pick(
        "Second picture",
        [
            Group("Samples", tuple(Option(s, SAMPLE_TITLES.get(s, s)) for s in samples)),
            Group("Uploaded", tuple(mine)),
        ],
        other,
        key="other",
        on_pick=lambda name: state.change(other=name),
        help="The same score is followed through the same network, on this picture.",
        placeholder="Search pictures",
    )
    with st.popover("Upload one", icon=":material/upload:"):
        st.file_uploader(
            "JPEG, PNG, WebP, BMP, TIFF or GIF, up to 32 MB", key="other file", on_change=_take_file
        )
        if refusal := st.session_state.get("other refusal", ""):
            st.error(plain(refusal), icon=":material/image_not_supported:")
    return chosen, other


def choose_layer(rows: Sequence[LayerGradient], table: Mapping[str, LayerInfo], at: str) -> None:
    """The layer that is looked at closely: those with a verdict first."""
    marked = tuple(_layer(row, table) for row in rows if row.verdict)
    parts: dict[str, list[Option]] = {}
    for row in rows:
        if not row.verdict:
            part = ".".join(row.path.split(".")[:2])
            parts.setdefault(part, []).append(_layer(row, table))
    groups = [Group("Marked", marked)] if marked else []
    pick(
        "Layer",
        [*groups, *(Group(part, tuple(options)) for part, options in parts.items())],
        at,
        key="at",
        on_pick=lambda path: state.change(at=path),
        help="A click in the chart chooses it too.",
        placeholder=f"Search {len(rows)} layers",
    )


def layer_at(
    view: View, rows: Sequence[LayerGradient], table: Mapping[str, LayerInfo]
) -> tuple[str, str]:
    """The chosen layer, or else that of the other pages, the recommended one, or the last.

    The second text says why it is not the one of the address; empty where it is.
    """
    known = {row.path for row in rows}
    best = next((info.path for info in table.values() if info.recommended), "")
    chosen = state.choice("at")
    shared = path_of(view.layer, known)
    path = next((path for path in (chosen, shared, best) if path in known), rows[-1].path)
    if chosen in ("", path):
        return path, ""
    why = "never runs in this model" if chosen in table else "is no layer of this model"
    return path, f"«{chosen}» {why}: this is «{path}»."


def _layer(row: LayerGradient, table: Mapping[str, LayerInfo]) -> Option:
    return Option(
        row.path,
        row.path,
        mono=True,
        detail=row.kind,
        right=f"‖g‖ {number(row.gradient_norm)}",
        badge=row.verdict,
        dot="warn" if row.verdict else "",
        reason=shape_text(table[row.path]) if row.path in table else "",
    )


def _class(index: int, model: LoadedModel, right: str = "") -> Option:
    return Option(str(index), model.categories[index], detail=str(index), right=right)


def _segments(label: str, name: str, titles: Mapping[str, str], help: str) -> str:
    """A choice of the page as segments; one that the address misspells is the first."""
    chosen = state.choice(name)
    chosen = chosen if chosen in titles else next(iter(titles))
    key = f"gradients {name}"
    st.session_state[key] = chosen

    def changed() -> None:
        picked: dict[str, Any] = {name: st.session_state[key]}
        state.change(**picked)

    st.segmented_control(
        label,
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        key=key,
        help=help,
        on_change=changed,
    )
    return chosen


def _take_file() -> None:
    """Keep a second picture that can be opened; one that cannot changes nothing."""
    st.session_state.pop("other refusal", None)
    file = st.session_state["other file"]
    if file is None:
        return
    data = file.getvalue()
    try:
        open_picture(data, name=file.name)
    except PictureError as error:
        st.session_state["other refusal"] = str(error)
        return
    state.change(other=cache.uploads().add(data, file.name))
