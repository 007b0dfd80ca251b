"""Numbers, files, heads and graphs of the Layers page."""

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

from interp import LoadedModel, open_picture
from interp.errors import LayerError
from interp.hooks.ledger import HookLedger
from interp.inspection.attention import Attention
from interp.inspection.channels import channel_maps
from interp.inspection.operations import Operation, Operations
from interp.inspection.statistics import LayerStatistics, Statistics
from interp.models.layers import LayerInfo
from interp.ui.layer_tree import _row
from interp.ui.layers_attention import head_text, parse_head
from interp.ui.layers_files import statistics_csv, vector_npz
from interp.ui.layers_operations import dot, line
from interp.ui.words import number, ordinal, signed

RELU = LayerStatistics("a", 0, (1, 2, 3, 3), 0.25, 0.5, 0.0, math.inf, 2.0, 2, 0)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th")),
        *((13, "13th"), (21, "21st"), (111, "111th"), (1022, "1,022nd"), (1280, "1,280th")),
    ],
)
def test_ordinals(place: int, text: str) -> None:
    assert ordinal(place) == text


def test_numbers_have_three_digits_and_a_true_minus() -> None:
    assert number(-0.012345) == "−0.0123"
    assert signed(0.5) == "+0.5"
    assert signed(-0.5) == "−0.5"
    assert signed(0.0) == "0"
    assert signed(-0.0) == "0"


def test_the_statistics_are_a_line_a_call() -> None:
    second = LayerStatistics("a", 1, (1, 4), 0, 0, 1, 0, 0, None, None)
    measured = Statistics((RELU, second), HookLedger(), np.zeros(1, np.float32), 0.1)
    rows = list(csv.DictReader(io.StringIO(statistics_csv(measured).decode())))
    assert [row["call"] for row in rows] == ["0", "1"]
    assert rows[0]["shape"] == "1x2x3x3"
    assert rows[0]["zeros"] == "0.0"
    assert rows[1]["channels"] == ""


def test_the_feature_vector_is_the_mean_of_each_channel(
    bundled: LoadedModel, coffee: object
) -> None:
    maps = channel_maps(bundled, open_picture(str(coffee)), "features.8.2")
    found = np.load(io.BytesIO(vector_npz(maps)))
    assert found["features"].tolist() == maps.mean.tolist()
    assert found["contribution"].shape == (1280,)
    assert "tokens" not in found
    pooled = channel_maps(bundled, open_picture(str(coffee)), "avgpool")
    vector = np.load(io.BytesIO(vector_npz(pooled)))["features"]
    np.testing.assert_allclose(vector, found["features"], rtol=1e-5, atol=1e-6)


def test_a_row_keeps_zero_and_says_infinity_in_words() -> None:
    info = LayerInfo("a", "ReLU", 1, (1, 2, 3, 3), "nchw", 0, grid=(3, 3))
    row = _row(info, {"a": [RELU]})
    assert row["zeros"] == 0.0
    assert row["largest"] == "∞"
    assert row["parameters"] == 0
    assert row["dead"] == 0
    assert row["shape"] == "2 × 3 × 3"
    assert "reason" not in row
    silent = _row(LayerInfo("b", "Linear", reason="why"), {})
    assert silent["reason"] == "why"
    assert "mean" not in silent


def heads(blocks: int, count: int) -> Attention:
    weights = np.zeros((blocks, count, 5, 5), np.float32)
    nothing: Any = None
    paths = tuple(f"block{i}" for i in range(blocks))
    return Attention(paths, weights, 1, (2, 2), nothing, HookLedger(), 0.0, nothing)


def test_a_head_is_written_and_read_the_same_way() -> None:
    found = heads(3, 2)
    assert parse_head(head_text(2, None), found) == (2, None)
    assert parse_head(head_text(0, 1), found) == (0, 1)
    assert parse_head("rollout", found) == (2, None)


@pytest.mark.parametrize("text", ["3-0", "0-2", "0", "a-0", "0-²", "-1-0", "0-mean-1"])
def test_a_head_that_does_not_exist_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(LayerError, match="no attention head") as refused:
        parse_head(text, heads(3, 2))
    assert "\n" not in str(refused.value)


LINEAR = (
    Operation(0, "Input", "input 0", (), ((3, 5),)),
    Operation(1, "AccumulateGrad", "parameter weight", (), ((2, 5),)),
    Operation(2, "TBackward0", "transpose (t)", (1,), ((2, 5),)),
    Operation(3, "MmBackward0", 'a "quoted" product', (0, 2), ((3, 2),)),
)


def test_the_graph_names_every_node_and_edge() -> None:
    text = dot(Operations(LINEAR, "fc", 0, "Linear", "", HookLedger()), "light")
    assert text.startswith("digraph {")
    assert 'n0 [label="input 0\\n3 × 5" shape="plaintext"' in text
    assert 'n3 [label="a \\"quoted\\" product\\nMmBackward0"]' in text
    assert text.count(" -> ") == 4  # three edges and the output's
    assert "n0 -> n3 [" in text
    assert 'n2 -> n3 [label=" 2 × 5"' in text
    assert 'n3 -> out3 [label=" 3 × 2"' in text


def test_a_line_says_where_its_inputs_come_from() -> None:
    assert line(LINEAR[2]) == "transpose (t) `TBackward0` → 2 × 5, from 2"
    assert line(LINEAR[3]) == 'a "quoted" product `MmBackward0` → 3 × 2, from 1, 3'
