"""The file of the Gradients page: what came back to every layer, in every run that is compared."""

import csv
import io
from collections.abc import Sequence
from functools import partial

import streamlit as st

from interp import export
from interp.ui.gradients_runs import Run

_COLUMNS = ("path", "kind", "gradient_norm", "value_norm", "ratio", "zeros", "parameter_norm")


def download(compared: Sequence[Run]) -> None:
    """The numbers of the chart, made when they are asked for; the page does not run again."""
    frame = compared[0].travel.input_gradient
    stem = export.stem_of(frame, frame.target.slug, "gradients")
    st.download_button(
        "CSV of all layers",
        partial(gradients_csv, compared),
        file_name=f"{stem}.csv",
        mime="text/csv",
        icon=":material/download:",
        key="download gradients",
        help="A line for every module and run: norms of gradient, value and parameters' gradients.",
        on_click="ignore",
    )


def gradients_csv(compared: Sequence[Run]) -> bytes:
    """A line for every module of every run, in running order, with its verdict."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["run", *_COLUMNS, "verdict"])
    for run in compared:
        for row in run.travel.rows:
            cells = [getattr(row, name) for name in _COLUMNS]
            writer.writerow(
                [run.name, *("" if cell is None else cell for cell in cells), row.verdict]
            )
    return text.getvalue().encode("utf-8")
