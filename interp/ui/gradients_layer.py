"""One layer of the Gradients page closely, and where the gradient ends: at the picture."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import streamlit as st
from PIL import Image

from interp import render
from interp.colours import Scale
from interp.inspection.travel import LayerGradient, LayerValues, Travel
from interp.models.layers import LayerInfo
from interp.ui.charts import histogram
from interp.ui.depth_axis import number
from interp.ui.gradients_runs import Run
from interp.ui.heatmap_view import describe, heatmap_view
from interp.ui.layer_picker import shape_text
from interp.ui.result import notes
from interp.ui.waiting import plain

BRIGHT = 99  # percentile that is white
SIDE = 672  # px, at the least about that many a side


def layer_head(info: LayerInfo) -> None:
    """Its path, class and shape."""
    calls = f" · runs {info.calls} times, this is its first" if info.calls > 1 else ""
    st.markdown(f"`{info.path}` :gray[{plain(info.kind)}]")
    st.caption(f"{shape_text(info)}{calls}")


def numbers(compared: Sequence[Run], path: str) -> None:
    """What came back to the layer, a column a run, with the sentence on it."""
    rows = [run.travel.row(path) for run in compared]
    lines = [["", *(plain(run.name) for run in compared)], ["---", *("--:" for _ in compared)]]
    for title, text in FACTS.items():
        lines.append([title, *(f"`{_whole(text(row))}`" for row in rows)])
    st.markdown("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    for run, row in zip(compared, rows, strict=True):
        if sentence := run.travel.sentence(row):
            if len(compared) > 1:
                sentence = f"**{plain(run.name)}**: {sentence[:1].lower()}{sentence[1:]}"
            st.warning(sentence, icon=":material/warning:")


def histograms(values: LayerValues, of: str) -> None:
    """How the gradient and the output itself are spread; `of` names the run among several."""
    gradient, value = st.columns(2, gap="medium")
    for place, title, array, unit in (
        (gradient, "Gradient", values.gradient, "gradient (loss per unit)"),
        (value, "Activation", values.value, "value of the output"),
    ):
        with place:
            st.markdown(f"**{title}**")
            histogram(
                {title.lower(): array},
                value=unit,
                key=f"histogram {title}",
                alt=f"{title} of {values.path}: {_spread(array)}",
                log_count=True,
                height=250,
            )
    whose = f", {of}" if of else ""
    st.caption(
        f"All {values.value.size:,} values of the layer's output and of the gradient there{whose}. "
        "The counts are on a log axis, so that rare values are seen."
    )


def at_the_picture(found: Travel) -> None:
    """The gradient at the input as a picture of its own, and on the picture it belongs to."""
    st.markdown("#### Where it ends: the picture")
    st.markdown(
        f"Which pixels *{plain(found.loss_name)}* is most sensitive to: at each pixel of the "
        "model's input, the largest size of the gradient over red, green and blue.",
        help="The saliency map of Simonyan, Vedaldi and Zisserman 2014. It has no sign: it says "
        "where a small change matters, not in which direction.",
    )
    alone, heat = st.columns(2, gap="large")
    with alone:
        image, brightest = saliency(found.input_gradient.map)
        st.image(
            image,
            width="stretch",
            output_format="PNG",
            alt=f"The gradient at the input in grey. {describe(found.input_gradient)}",
        )
        st.caption(
            "The gradient alone, a square a pixel of the model's input: black is zero, white is "
            f"{number(brightest)} and more, the {BRIGHT}th percentile. A few pixels are far above "
            "the rest; on the scale up to the largest of them the others would be black."
        )
    with heat:
        heatmap_view(found.input_gradient, key="heatmap")
    notes(found.input_gradient)


def saliency(grid: npt.NDArray[np.float32]) -> tuple[Image.Image, float]:
    """A map (h, w) without a sign in grey, and the value from which on it is white."""
    known = grid[np.isfinite(grid)]
    brightest = float(np.percentile(known, BRIGHT)) if known.size else 0.0
    height, width = grid.shape
    enlarged = max(1, round(SIDE / max(height, width)))
    size = width * enlarged, height * enlarged
    return render.heat_image(grid, Scale(0.0, brightest, False), size, "grey"), brightest


def _whole(text: str) -> str:
    """With true minus signs, at which a line does not break."""
    return text.replace("-", "−")


def _spread(array: npt.NDArray[np.float32]) -> str:
    low, high = number(float(array.min())), number(float(array.max()))
    zeros = number(float((array == 0).mean()), True)
    return f"{array.size} values from {low} to {high}, {zeros} zero"


def _parameters(row: LayerGradient) -> str:
    norm = row.inside_norm if row.parameter_norm is None else row.parameter_norm
    return "none" if norm is None else number(norm)


FACTS: dict[str, Callable[[LayerGradient], str]] = {
    "Norm of the gradient": lambda row: number(row.gradient_norm),
    "Norm of the value": lambda row: number(row.value_norm),
    "Gradient ÷ value": lambda row: number(row.ratio),
    "Zeros in the gradient": lambda row: number(row.zeros, True),
    "Gradient of the parameters": _parameters,
}
