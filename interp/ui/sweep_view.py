"""The panel of the channel sweep: which channels of a layer the answer hangs on."""

import time
from dataclasses import replace

import streamlit as st

from interp.errors import InterpError, LayerError
from interp.hooks.ledger import HookLedger
from interp.inspection.sweep import TO, Sweep, sweep
from interp.models.layer_names import path_of, split_call
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel
from interp.picture import Picture
from interp.targets import parse_target
from interp.ui import cache, state, sweep_runs
from interp.ui.components import ASSETS
from interp.ui.layer_picker import shape_text
from interp.ui.picker import Group, Option, pick
from interp.ui.state import View
from interp.ui.sweep_result import show_result
from interp.ui.sweep_runs import Wanted
from interp.ui.waiting import plain, problem

TO_WORDS = {"zero": "To zero", "mean": "To its mean"}


def channel_sweep(view: View, model: LoadedModel, picture: Picture) -> HookLedger | None:
    """Choose a layer, silence each of its channels in turn, and see what each was worth.

    Returns
    -------
    HookLedger or None
        Of the sweep that stands on the page; None where there is none.
    """
    st.html(ASSETS / "sweep.css")
    st.markdown(
        "Silences each channel of a layer in turn: how does the score of "
        f"*{_target_label(view, model, picture)}* change? Only "
        "what follows the layer is run again, for many channels at once."
    )
    path, call, misspelt = _chosen_layer(model)
    wanted = Wanted.of(view, path, call, state.choice("sweep_to", TO[0]))
    sweep_runs.stop_others(wanted)
    try:
        # What is wrong with an address is said before anything runs.
        if misspelt:
            raise misspelt
        reports = sweep(model, picture, path, call, view.target, view.fit, wanted.to)
    except InterpError as error:
        sweep_runs.stop()
        _choices(model, wanted)
        problem(error, [("Take the recommended layer", {"sweep_layer": "", "sweep_to": ""})])
        return None
    count = next(info.channels or 0 for info in model.layers if info.path == path)
    with st.container(
        horizontal=True, gap="medium", vertical_alignment="bottom", key="sweep choices"
    ):
        _choices(model, wanted)
        _start_button(wanted, count)
    if sweep_runs.is_going(wanted):
        if not sweep_runs.can_go_on(wanted):
            sweep_runs.open_with(wanted, reports)
        return _go_on(wanted, count)
    found = sweep_runs.result(wanted)
    if found is None:
        _before_the_first(count)
        return None
    if not found.complete:
        _say_partial(wanted, found)
    with st.container(key="sweep result"):
        show_result(found, model, picture)
    return found.ledger


def _chosen_layer(model: LoadedModel) -> tuple[str, int, LayerError | None]:
    """Path and call of the address, or of the default, and what is wrong with how it is written."""
    text = state.choice("sweep_layer") or _default(model)
    known = {info.path for info in model.layers}
    try:
        return *split_call(text, known), None
    except LayerError as error:
        return path_of(text, known), 0, error


def _target_label(view: View, model: LoadedModel, picture: Picture) -> str:
    target = parse_target(view.target, model.categories)
    if target.index is None:
        shared = replace(view, method="", layer="", target="")
        target = replace(target, index=cache.predictions(shared, model, picture)[0].index)
    return plain(target.label)


def _default(model: LoadedModel) -> str:
    """The recommended layer, or the last one that has channels."""
    usable = [info for info in model.layers if _usable(info)]
    best = max(usable, key=lambda info: (info.recommended, info.order), default=None)
    return "" if best is None else best.path


def _usable(info: LayerInfo) -> bool:
    return bool(info.channels and info.shape and info.shape[0] == 1)


def _choices(model: LoadedModel, wanted: Wanted) -> None:
    best = next((info for info in model.layers if info.recommended), None)
    groups = {"Recommended": [] if best is None else [_option(best, "", star=True)]}
    for info in sorted(model.layers, key=lambda info: info.order):
        if info.calls:
            groups.setdefault(info.path.partition(".")[0], []).extend(_options(info))
    pick(
        "Layer",
        [Group(title, tuple(options)) for title, options in groups.items() if options],
        state.choice("sweep_layer"),
        key="sweep layer",
        on_pick=lambda value: state.change(sweep_layer=value, sweep_channel=""),
        help="Whose channels are silenced: any layer that returns maps, tokens or a vector.",
        placeholder="Search layers",
    )
    st.session_state["sweep to"] = wanted.to if wanted.to in TO else None
    st.segmented_control(
        "Silence a channel",
        TO,
        format_func=TO_WORDS.__getitem__,
        required=True,
        key="sweep to",
        help=(
            "To zero takes all of the channel away. To its mean takes away only where it is high "
            "and low: what stays is the same at every place."
        ),
        on_change=lambda: state.change(sweep_to=st.session_state["sweep to"], sweep_channel=""),
        width="content",
    )


def _options(info: LayerInfo) -> list[Option]:
    if info.calls < 2:
        return [_option(info, info.path)]
    return [
        _option(info, info.call_name(call), reason=f"call {call + 1} of {info.calls}")
        for call in range(info.calls)
    ]


def _option(info: LayerInfo, value: str, *, star: bool = False, reason: str = "") -> Option:
    usable = _usable(info)
    return Option(
        value,
        info.path,
        mono=True,
        detail=info.kind,
        right=shape_text(info),
        star=star,
        disabled=not usable,
        reason=(info.reason if star else reason) if usable else "no axis that holds channels",
    )


def _start_button(wanted: Wanted, count: int) -> None:
    """Always there: one that went away when the pointer is pressed elsewhere would move that."""
    found = sweep_runs.result(wanted)
    idle = found is None or not (found.complete or sweep_runs.can_go_on(wanted))
    done = found is not None and found.complete
    st.button(
        f"Sweep {count} channels",
        icon=":material/play_arrow:",
        key="sweep start",
        type="primary",
        disabled=sweep_runs.is_going(wanted) or not idle,
        on_click=sweep_runs.start,
        args=(wanted,),
        help="Done: its result stands below." if done else None,
    )


def _turn_button(label: str, wanted: Wanted) -> None:
    going = sweep_runs.is_going(wanted)
    st.button(
        label,
        icon=":material/stop:" if going else ":material/play_arrow:",
        key="sweep turn",
        on_click=sweep_runs.stop if going else sweep_runs.start,
        args=() if going else (wanted,),
    )


def _say_partial(wanted: Wanted, found: Sweep) -> None:
    done, total = len(found.channels), found.total
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="sweep bar"):
        st.progress(
            done / total,
            text=f"Partial: {done} of {total} channels. One of the others may matter more.",
        )
        if sweep_runs.can_go_on(wanted):
            _turn_button("Go on", wanted)


def _go_on(wanted: Wanted, count: int) -> HookLedger | None:
    """Run it in this run of the script; another one, or «Stop», leaves it where it is."""
    found = sweep_runs.result(wanted)
    done = 0 if found is None else len(found.channels)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="sweep bar"):
        bar = st.progress(done / count, text="Recording what the replay needs")
        _turn_button("Stop", wanted)
    began, before = time.perf_counter(), done
    try:
        for report in sweep_runs.reports(wanted):
            done = len(report.channels)
            left = (time.perf_counter() - began) / (done - before) * (report.total - done)
            bar.progress(done / report.total, text=_progress_text(done, report.total, left))
    except InterpError as error:
        problem(error, [("Take the recommended layer", {"sweep_layer": ""})])
        return None
    st.rerun()


def _progress_text(done: int, total: int, left: float) -> str:
    if done == total:
        return f"{total} of {total} channels"
    time_left = f"about {left:.0f} s left" if left >= 1 else "less than a second left"
    return f"{done} of {total} channels · {time_left}"


def _before_the_first(count: int) -> None:
    st.caption(
        f"Not swept yet. {count} channels make a chart: what silencing each one changes, beside "
        "what gradient × activation says it would."
    )
