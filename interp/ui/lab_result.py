"""Before and after in the Hook lab: the answer, the heat, and the norms at every layer."""

import json
from dataclasses import replace
from html import escape

import numpy as np
import streamlit as st
from PIL import Image

from interp import render
from interp.attribution import Attribution
from interp.export import stem_of, strict
from interp.hooks.lab import Lab
from interp.hooks.recipe import Recipe, cannot_change_logits
from interp.inspection.experiment import Change, Experiment
from interp.ui import lab_run, lab_state
from interp.ui.heatmap_view import describe
from interp.ui.lab_norms import norms
from interp.ui.lab_second import sentence
from interp.ui.state import View
from interp.ui.waiting import plain

LONGEST_SIDE = 900


def show_result(view: View, lab: Lab) -> None:
    """The last result, pale where it is no longer what the controls say."""
    kept = lab_run.last()
    if kept is None:
        with st.container(key="lab outcome"):
            if lab.live:
                st.caption("Run the hooks: the answer without them and with them stands here then.")
        return
    of, experiment = kept
    stale = lab_run.why_stale(view, lab, of)
    if stale:
        _say_stale(stale, bool(lab.live))
    marks = {hook.step.path: sentence(hook.step) for hook in lab.live}
    with st.container(key="lab stale" if stale else "lab outcome"):
        headline(experiment)
        with st.container(key="lab sides"):
            beside, pictures = st.columns([5, 9], gap="large")
        with beside:
            answer(experiment)
        with pictures:
            heats(experiment)
        for note in news(experiment, lab_state.recipe()):
            st.info(plain(note), icon=":material/info:")
        st.caption(
            f"Two passes, {1000 * experiment.seconds:.0f} ms on "
            f"{experiment.before.attribution.device.upper()}. Probabilities in percent, logits in "
            "small; pp are percentage points."
        )
        norms(experiment, {} if stale else marks)
        _download(experiment)


def _download(experiment: Experiment) -> None:
    """All numbers of the run, made when they are asked for; the page does not run again."""
    before = experiment.before.attribution
    st.download_button(
        "JSON of all numbers",
        lambda: json.dumps(strict(experiment.as_dict()), indent=2),
        file_name=f"{stem_of(before, before.target.slug, 'hooks')}.json",
        mime="application/json",
        icon=":material/download:",
        key="lab numbers",
        on_click="ignore",
        help="Logits and probabilities of the classes above, and both norms of every layer.",
    )


def news(experiment: Experiment, recipe: Recipe) -> list[str]:
    """The notes of an experiment, less what stands at the steps of the recipe already."""
    said = {f"{step.sentence()} {cannot_change_logits(step)}" for step in recipe.steps}
    return [note for note in experiment.notes if note not in said]


def _say_stale(why: str, live: bool) -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", gap="medium", key="lab stale line"
    ):
        st.markdown(f":material/history: **This result is of before**: {why}.", width="content")
        if live:
            st.button("Run again", icon=":material/refresh:", key="lab again", on_click=lab_run.ask)


def headline(experiment: Experiment) -> None:
    """What the hooks did to the answer, in a sentence."""
    first = experiment.before.predictions[0]
    now = experiment.after.predictions[0]
    change = next(c for c in experiment.changes if c.index == first.index)
    old, new = change.probabilities
    label = plain(f"{first.name} ({first.index})")
    before = experiment.before.logits
    if same_logits(experiment) and bool((before == before.flat[0]).all()):
        st.markdown(
            f"**There is no answer to change**: all {before.size} classes have the same score, "
            f"{_number(float(before.flat[0]))}, before and after."
        )
    elif same_logits(experiment):
        st.markdown(f"**The answer is the same**: *{label}* at {_percent(old)}, to the last bit.")
    elif now.index == first.index:
        st.markdown(
            f"**The answer is still** *{label}*: {_percent(old)} before, {_percent(new)} after "
            f"({points(new - old)})."
        )
    else:
        other = plain(f"{now.name} ({now.index})")
        st.markdown(
            f"**The answer changes** from *{label}* ({_percent(old)} before, {_percent(new)} "
            f"after) to *{other}* ({_percent(now.probability)})."
        )


def same_logits(experiment: Experiment) -> bool:
    """Whether the hooks left every logit as it was."""
    before, after = experiment.before.logits, experiment.after.logits
    return bool(np.array_equal(before, after, equal_nan=True))


def answer(experiment: Experiment) -> None:
    """The most likely classes before and after, with bars and differences."""
    same = same_logits(experiment)
    rows = "".join(_row(change, same) for change in experiment.changes)
    difference = "" if same else "<th>Difference</th>"
    st.html(
        '<table class="lab-answer"><caption>The most likely classes</caption><thead><tr>'
        f"<th>Class</th><th>Before</th><th>After</th>{difference}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _row(change: Change, same: bool) -> str:
    name = f"{escape(change.name)} <i>({change.index})</i>"
    cells = f'<th scope="row"><span>{name}</span>{_bars(change.probabilities)}</th>'
    for probability, logit in zip(change.probabilities, change.logits, strict=True):
        cells += f"<td>{_percent(probability)}<small>{_number(logit)}</small></td>"
    if not same:
        (old, new), (low, high) = change.probabilities, change.logits
        share, score = points(new - old), _signed(high - low)
        cells += (
            f'<td><span class="{_side(share)}">{share}</span>'
            f'<small class="{_side(score)}">{score}</small></td>'
        )
    return f"<tr>{cells}</tr>"


def _bars(shares: tuple[float, float]) -> str:
    widths = [100 * min(max(share if np.isfinite(share) else 0.0, 0.0), 1.0) for share in shares]
    lines = "".join(f'<b style="width: {width:.2f}%"></b>' for width in widths)
    return f'<span class="bars" aria-hidden="true">{lines}</span>'


def heats(experiment: Experiment) -> None:
    """Grad-CAM of the same class without and with the hooks, on one scale."""
    before, after = experiment.before.attribution, experiment.after.attribution
    scale = render.scale_for(before.map, after.map, signed=before.signed)
    for place, title, attribution in zip(
        st.columns(2, gap="medium"), ("Before", "After"), (before, after), strict=True
    ):
        with place:
            st.markdown(f"**{title}**")
            st.image(
                _overlay(attribution, scale),
                width="stretch",
                alt=f"{title} the hooks. {describe(attribution)}",
            )
            peak = float(np.nanmax(attribution.map)) if np.isfinite(attribution.map).any() else 0.0
            st.caption(f"largest value {_number(peak, 3)}")
    st.html(_legend(scale, before))


def _overlay(attribution: Attribution, scale: render.Scale) -> Image.Image:
    small = attribution.picture.image.copy()
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    geometry = replace(attribution.geometry, picture_size=small.size)
    return render.overlay(small, geometry.on_picture(attribution.map), scale)


def _legend(scale: render.Scale, attribution: Attribution) -> str:
    """The shared colour scale with its numbers."""
    what = f"Grad-CAM at {escape(' + '.join(attribution.layers))} for "
    what += escape(attribution.target.label)
    if scale.empty:
        return f'<p class="lab-legend">{what}: no heat to draw, before or after.</p>'
    table = render.lookup(render.DEFAULT_DIVERGING if scale.signed else render.DEFAULT_COLOURS)
    stops = ", ".join("rgb({}, {}, {})".format(*table[i]) for i in range(0, 256, 15))
    return (
        f'<p class="lab-legend"><span>{what}, both on one scale</span>'
        f"<span>{_number(scale.low, 3)}</span>"
        f'<i style="background: linear-gradient(to right, {stops})"></i>'
        f"<span>{_number(scale.high, 3)}</span></p>"
    )


def points(difference: float) -> str:
    """A difference of probabilities in percentage points: «−34.5 pp», small ones «−0.03 pp»."""
    small = 0 < abs(difference) < 0.0005
    return f"{_signed(100 * difference, 2 if small else 1)} pp"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "not a number"


def _side(difference: str) -> str:
    """Which colour a difference has as it is written: none where it is rounded to zero."""
    if not any(digit in difference for digit in "123456789"):
        return ""
    return "less" if difference.startswith("−") else "more"


def _signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "−") if np.isfinite(value) else "not a number"


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("-", "−")
