"""The values that each lesson must show, from the very function that the page runs."""

import math

import pytest
import torch

from interp.lessons.base import Run, run
from interp.lessons.catalog import LESSONS
from interp.lessons.modules import backward_of_a_module, forget, halve, order, store_or_replace
from interp.lessons.networks import dead, features, vanish, weight_gradient
from interp.lessons.practice import before_in_place, cost, operations, overwritten, state
from interp.lessons.tensors import clip, double, remove, replace, watch


def fates(result: Run) -> list[tuple[str, str, int, str]]:
    return [(r.path, r.kind, r.fires, r.status) for r in result.ledger.records]


def changes(result: Run) -> int:
    return sum(event.what == "changed" for event in result.ledger.events)


def test_1_a_tensor_hook_watches() -> None:
    result = run(watch)
    assert result.values["at h"].tolist() == [6, 12]
    assert result.values["x.grad"].tolist() == [18, 36]
    assert result.printed.splitlines() == [
        "gradient passing h: tensor([ 6., 12.])",
        "x.grad: tensor([18., 36.])",
    ]
    assert fates(result) == [("h", "tensor", 1, "removed")]
    assert changes(result) == 0


def test_2_a_returned_tensor_replaces_the_gradient() -> None:
    result = run(replace)
    assert result.values["x.grad"].tolist() == [0, 0]
    assert result.values["loss"].item() == 45
    assert changes(result) == 1
    assert run(replace, scale=1.0).values["x.grad"].tolist() == [18, 36]


def test_3_the_handle_removes_the_hook() -> None:
    result = run(remove)
    assert result.values["calls"] == 1
    assert result.values["x.grad"].tolist() == [8]
    assert fates(result) == [("x", "tensor", 1, "removed")]
    on = run(remove, removed_between=False)
    assert (on.values["calls"], on.values["x.grad"].tolist()) == (2, [8])
    assert fates(on) == [("x", "tensor", 2, "removed")]


def test_4_clip_and_log() -> None:
    result = run(clip)
    assert result.values["norm"].item() == pytest.approx(math.sqrt(180))
    assert result.values["loss"].item() == 45
    assert result.values["clipped"].tolist() == [15, 15]
    assert result.values["without"].tolist() == [18, 36]
    assert result.printed.startswith("loss: 45\nnorm at h: 13.416\n")
    assert fates(result) == [("h", "tensor", 1, "removed")]


def test_5_doubling() -> None:
    values = run(double).values
    assert values["x.grad"].tolist() == [[1, 1], [1, 1]]
    assert values["a.grad"].tolist() == [[0.5, 0.5]] * 2
    assert values["b.grad"].tolist() == [[0.25, 0.25]] * 2


def test_5_in_place_changes_a_gradient_that_has_no_hook() -> None:
    result = run(double, in_place=True)
    assert result.values["x.grad"].tolist() == [[1, 1], [1, 1]]
    assert result.values["b.grad"].tolist() == [[0.5, 0.5]] * 2
    assert changes(result) == 2


def test_6_a_forward_pre_hook_halves_the_input() -> None:
    result = run(halve)
    values = result.values
    assert (values["x"].shape, values["y"].shape) == ((3, 5), (3, 2))
    assert torch.equal(values["y"], values["of half"])
    assert not torch.allclose(values["y"], values["half of"])
    assert torch.equal(values["x"], torch.ones(3, 5))
    assert fates(result) == [("linear", "forward_pre", 1, "removed")]


def test_7_a_forward_hook_stores_or_replaces_the_output() -> None:
    result = run(store_or_replace)
    values = result.values
    assert torch.equal(values["linear"], values["plain"])
    assert not values["linear"].requires_grad
    assert torch.equal(values["replaced"], values["plain"] * 100)
    assert changes(result) == 1


@pytest.mark.parametrize(
    ("what", "x", "weight"),
    [
        ("return grad_input × 0.1", 0.1, 1.0),
        ("change grad_input in place", 0.1, 1.0),
        ("change grad_output in place", 1.0, 1.0),
        ("full backward pre-hook", 0.1, 0.1),
    ],
)
def test_8_what_a_full_backward_hook_changes(what: str, x: float, weight: float) -> None:
    result = run(backward_of_a_module, what=what)
    assert result.values["factors"] == pytest.approx([x, weight])
    assert result.values["error"] == ""
    assert changes(result) == 1


def test_8_shapes_and_the_gradient_that_cannot_be_returned() -> None:
    result = run(backward_of_a_module, what="return grad_output × 0.1")
    assert result.values["sizes"] == {"grad_input": (3, 5), "grad_output": (3, 2)}
    assert "changed the size" in result.values["error"]
    assert f"RuntimeError: {result.values['error']}" in result.printed


def test_9_the_order_of_hooks() -> None:
    after = ["— forward is over —", "full backward pre-hook", "full backward hook"]
    assert run(order).values["log"] == [
        "forward pre-hook",
        "forward hook A",
        "forward hook B",
        *after,
    ]
    assert run(order, prepend=True).values["log"][1:3] == ["forward hook B", "forward hook A"]


def test_10_forgotten_handles_leak_and_sessions_do_not() -> None:
    result = run(forget, passes=3)
    assert result.values["leaking"] == [1, 2, 3]
    assert result.values["closed"] == [1, 1, 1]
    assert [hook.path for hook in result.values["found"]] == ["0"] * 3
    assert result.values["left"] == []
    assert fates(result) == [
        ("net.0", "forward", 3, "leaked"),
        ("net.0", "forward", 2, "leaked"),
        ("net.0", "forward", 1, "leaked"),
        *[("0", "forward", 1, "removed")] * 3,
    ]
    assert result.ledger.summary()["live"] == 0


def test_11_feature_extraction() -> None:
    result = run(features)
    assert result.values["resnet18"].shape == (1, 512, 1, 1)
    assert result.values["lite0"].shape == (1, 1280, 1, 1)
    assert result.values["left"] == []
    assert fates(result) == [
        ("net.avgpool", "forward", 1, "removed"),
        ("avgpool", "forward", 1, "removed"),
    ]


def test_12_gradients_vanish_explode_or_stay() -> None:
    result = run(vanish)
    assert result.values["ratio"] < 1e-8
    assert list(result.values["norms"]) == list(range(0, 24, 2))
    assert [r.path for r in result.ledger.records] == [f"net.{i}" for i in range(0, 24, 2)]
    assert run(vanish, activation="relu", start="large").values["ratio"] > 1e6
    assert 0.1 < run(vanish, activation="relu", start="he").values["ratio"] < 10
    assert len(run(vanish, depth=4).values["norms"]) == 4


def test_13_dead_neurons() -> None:
    values = run(dead).values
    assert values["dead"] == [1, 4]
    assert values["norms"][[1, 4]].tolist() == [0, 0]
    assert values["norms"][[0, 2, 3, 5]].min() > 0
    assert run(dead, bias=10.0).values["dead"] == []


def test_14_the_norm_of_a_weights_gradient() -> None:
    result = run(weight_gradient)
    first, second = result.values["norms"]
    assert first == second
    assert result.values["grad"].item() == pytest.approx(2 * first.item())
    assert fates(result) == [("linear.weight", "tensor", 2, "removed")]
    assert result.ledger.records[0].class_name == "Parameter"


def test_15_hooks_are_not_in_the_state_dict() -> None:
    result = run(state)
    assert result.values["before"] == ["weight", "bias"]
    assert "state dict: ['weight', 'bias']" in result.printed
    assert result.values["fires"] == {"net": 1, "fresh": 0, "deepcopy": 1, "session": 1}
    assert result.values["left"] == {"net": 0, "deepcopy": 1}
    assert [hook.kind for hook in result.ledger.foreign] == ["forward"]


def test_16_what_hooks_cost() -> None:
    result = run(cost, width=16)
    assert result.values["plain"] > 0
    assert list(result.values["ratios"]) == [
        *("returns None", "keeps the output", "reads a mean", "in a HookSession")
    ]
    assert all(ratio > 0 for ratio in result.values["ratios"].values())
    assert fates(result) == [(str(place), "forward", 25, "removed") for place in range(8)]


def test_17_one_linear_several_operations() -> None:
    result = run(operations)
    assert result.values == {"fires": 1, "steps": ["AddmmBackward0", "TBackward0"]}
    assert "with a full backward hook: BackwardHookFunctionBackward" in result.printed
    assert run(operations, bias=False).values["steps"] == ["MmBackward0", "TBackward0"]
    assert len(run(operations, dimensions=3).values["steps"]) == 4


def test_18_a_full_backward_hook_before_an_in_place_operation() -> None:
    result = run(before_in_place)
    assert "is a view and is being modified inplace" in result.values["error"]
    assert result.values["error"] in result.printed
    assert result.values["plain"] == 0
    assert [seen.shape for seen in result.values["seen"]] == [(1, 2)]
    assert result.values["same"]
    never, fired = result.ledger.records
    assert never.status.startswith("never fired")
    assert (fired.path, fired.fires) == ("0", 1)
    without = run(before_in_place, inplace=False)
    assert (without.values["error"], without.values["plain"]) == ("", 1)


def test_18_a_kept_output_is_written_over() -> None:
    assert run(overwritten).values["kept"].tolist() == [[1, 0]]


def test_every_value_that_a_control_offers_runs_and_is_drawn() -> None:
    for lesson in LESSONS:
        for control in lesson.controls:
            for value in control.values:
                result = run(lesson.function, **{control.name: value})
                assert result.printed
                assert result.lines
                drawing = lesson.drawing(result.values)
                assert (drawing is None) == (lesson.number == 12)
