"""The chart of the Gradients page: one line a run, and what it says in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from interp.inspection.travel import LIMIT, LayerGradient
from interp.models.loading import LoadedModel
from interp.ui import state
from interp.ui.charts import Line, depth_lines
from interp.ui.depth_axis import number
from interp.ui.gradients_rows import Detail, rows_of
from interp.ui.gradients_runs import Run
from interp.ui.waiting import plain

RULE = (
    f"A layer is marked where the norm of the gradient at its output is more than {LIMIT:,.0f} "
    "times smaller (vanishing) or larger (exploding) than at the logits, where the gradient "
    "begins. Going backward is linear, so this does not depend on the size of the loss: it says "
    "how much the layers in between shrink or stretch a gradient."
)


@dataclass(frozen=True)
class Quantity:
    """A number of each layer, and how it is drawn and told."""

    title: str
    axis: str
    sentence: str
    of: Callable[[LayerGradient], float | None]
    log: bool = True


QUANTITIES = {
    "": Quantity(
        "At the output",
        "gradient norm (loss per unit)",
        "How strong it is when it comes back to the output of each layer.",
        lambda row: row.gradient_norm,
    ),
    "parameters": Quantity(
        "Of the parameters",
        "gradient norm of the parameters",
        "How strongly it pulls at the weights of each layer; those without weights are left out.",
        lambda row: row.parameter_norm,
    ),
    "ratio": Quantity(
        "Against the value",
        "gradient norm ÷ value norm",
        "How strong it is at the output of each layer, against the size of that output.",
        lambda row: row.ratio,
    ),
    "zeros": Quantity(
        "Zeros",
        "zeros in the gradient (%)",
        "How much of it is exactly zero at the output of each layer.",
        lambda row: 100 * row.zeros,
        log=False,
    ),
}


def headline(run: Run, model: LoadedModel) -> None:
    """Whose gradient it is, and what it took."""
    found = run.travel
    st.markdown(
        f"**The gradient of *{plain(found.loss_name)}***, from the scores back to the picture.",
        help=RULE,
    )
    weights = "untrained" if not model.trained else plain(model.weights.lower())
    st.caption(
        f"{model.spec.title} ({weights}) · the loss is {number(found.loss)} · "
        f"{len(found.rows)} modules · {1000 * found.seconds:.0f} ms on "
        f"{found.input_gradient.device.upper()}"
    )


def chart(compared: Sequence[Run], name: str, detail: Detail, at: str) -> None:
    """The chosen number along depth, a line a run; a click chooses the layer."""
    quantity = QUANTITIES[name]
    first = compared[0].travel
    rows = rows_of(first.rows, detail)
    layers = [row.path for row in rows]
    lines = []
    for place, run in enumerate(compared):
        by_path = {row.path: row for row in run.travel.rows}
        found = [by_path.get(path) for path in layers]
        values = [_value(quantity, row, name, detail) if row else None for row in found]
        title = run.name if len(compared) > 1 else quantity.title.lower()
        lines.append(Line(title, values, dashed=place > 0))
    st.markdown(
        quantity.sentence + " The picture is on the left; the gradient travels from right to left."
    )
    depth_lines(
        layers,
        lines,
        value=quantity.axis,
        key="gradients chart",
        alt=_alt(quantity, layers, lines),
        log=quantity.log,
        marks={row.path: first.sentence(row) for row in rows if row.verdict},
        selected=at,
        on_pick=lambda path: state.change(at=path),
    )


def verdicts(compared: Sequence[Run], detail: Detail) -> None:
    """What the marks mean, a sentence a run."""
    for run in compared:
        rows = rows_of(run.travel.rows, detail)
        whose = f"**{plain(run.name)}**: " if len(compared) > 1 else ""
        marked = [row for row in rows if row.verdict]
        if not marked:
            text = (
                f"{whose}no layer is marked. Every gradient has between a thousandth of and a "
                f"thousand times the norm at the logits, which is {number(run.travel.logits_norm)}."
            )
            st.success(_sentence(text), icon=":material/check_circle:")
        for verdict in ("vanishing", "exploding"):
            found = [row for row in marked if row.verdict == verdict]
            if found:
                st.warning(
                    _sentence(f"{whose}{_words(verdict, found, len(rows))}"),
                    icon=f":material/trending_{'down' if verdict == 'vanishing' else 'up'}:",
                )
    st.caption(RULE)


def _words(verdict: str, found: Sequence[LayerGradient], total: int) -> str:
    verb = "vanishes" if verdict == "vanishing" else "explodes"
    word, most = ("weaker", "weakest") if verdict == "vanishing" else ("stronger", "strongest")
    extreme = (min if verdict == "vanishing" else max)(found, key=lambda row: row.gradient_norm)
    first, last = found[0].path, found[-1].path
    where = f"from `{first}` to `{last}`" if first != last else f"at `{first}`"
    return (
        f"the gradient {verb} in {len(found)} of {total} places, {where}: more than a thousand "
        f"times {word} there than at the logits. It is {most} at `{extreme.path}`, with a norm "
        f"of {number(extreme.gradient_norm)}."
    )


def _value(quantity: Quantity, row: LayerGradient, name: str, detail: Detail) -> float | None:
    # A block has next to no parameters of its own: what counts are those inside it.
    return row.inside_norm if name == "parameters" and not detail else quantity.of(row)


def _sentence(text: str) -> str:
    return text if text.startswith("**") else text[:1].upper() + text[1:]


def _alt(quantity: Quantity, layers: Sequence[str], lines: Sequence[Line]) -> str:
    """The chart in words: what is drawn, and where each line is lowest and highest."""
    parts = [f"{quantity.axis} at {len(layers)} layers from {layers[0]} to {layers[-1]}"]
    for line in lines:
        known = [(v, p) for v, p in zip(line.values, layers, strict=True) if v is not None]
        if known:
            (low, lowest), (high, highest) = min(known), max(known)
            ends = f"lowest {number(low)} at {lowest}, highest {number(high)} at {highest}"
            parts.append(f"{line.name}: {ends}")
    return "; ".join(parts)
