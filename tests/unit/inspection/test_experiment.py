"""Before and after: exact numbers on a net known by hand, and what the real model does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lab_nets as nets
import numpy as np
import pytest
import torch
from torch import nn
from torchvision.models import MaxVit, VisionTransformer

from interp import LoadedModel, capture, explain, load_model, open_picture, predict
from interp.errors import HookError, PictureError, TargetError
from interp.geometry import Preset
from interp.hooks.lab import Lab
from interp.hooks.ledger import HookLedger, audit
from interp.hooks.recipe import Recipe, Step
from interp.inspection.experiment import Experiment, run_experiment
from interp.picture import Picture

COLOUR = nets.picture(0.2, 0.4)


def no_picture(name: str) -> Picture:
    raise AssertionError(name)


@pytest.fixture
def plain() -> LoadedModel:
    return nets.load(nets.Plain())


def lab_of(model: LoadedModel, *steps: Step, ledger: HookLedger | None = None) -> Lab:
    lab = Lab(model, ledger)
    lab.sync(Recipe(steps), no_picture)
    return lab


def experiment(model: LoadedModel, *steps: Step, **options: Any) -> Experiment:
    lab = lab_of(model, *steps)
    try:
        return run_experiment(lab, COLOUR, **options)
    finally:
        lab.close()


def norms(rows: Any) -> dict[str, tuple[float, float]]:
    return {
        row.path: (pytest.approx(row.before, abs=1e-5), pytest.approx(row.after, abs=1e-5))
        for row in rows
    }


def test_a_forward_hook_changes_logits_probabilities_norms_and_gradients(
    plain: LoadedModel,
) -> None:
    """(r, 2g) = (0.2, 0.8) at 16 places; without the second channel (0.2, 0)."""
    got = experiment(plain, Step("forward", "act", "channels", {"which": "1"}))

    one, other = got.changes
    assert (one.index, one.name, other.index) == (0, "class 0", 1)
    assert one.logits == pytest.approx((1.0, 0.2), abs=1e-6)
    assert other.logits == pytest.approx((-0.6, 0.2), abs=1e-6)
    assert one.probabilities == pytest.approx((1 / (1 + math.exp(-1.6)), 0.5), abs=1e-6)
    assert got.after.logits.tolist() == pytest.approx([0.2, 0.2], abs=1e-6)
    assert got.before.predictions[0].index == 0
    assert {row.path: row.kind for row in got.norms} == {
        "stem": "Conv2d",
        "act": "ReLU",
        "pool": "AdaptiveAvgPool2d",
        "fc": "Linear",
    }
    before = math.sqrt(16 * (0.04 + 0.64))
    assert norms(got.norms) == {
        "stem": (before, before),
        "act": (before, math.sqrt(16 * 0.04)),
        "pool": (math.sqrt(0.68), 0.2),
        "fc": (math.sqrt(1.36), math.sqrt(0.08)),
    }
    assert norms(got.gradient_norms) == {
        "stem": (math.sqrt(32) / 16, math.sqrt(16) / 16),
        "act": (math.sqrt(32) / 16, math.sqrt(32) / 16),
        "pool": (math.sqrt(2), math.sqrt(2)),
        "fc": (1.0, 1.0),
    }
    assert got.notes == ()


@pytest.mark.parametrize(
    ("step", "rows"),
    [
        (
            Step("full_backward_pre", "fc", "scale", {"factor": 3}),
            {"fc": 3.0, "pool": 3 * math.sqrt(2), "act": 3 * math.sqrt(2) / 4},
        ),
        (
            Step("full_backward", "pool", "scale", {"factor": 3}),
            {"fc": 1.0, "pool": math.sqrt(2), "act": 3 * math.sqrt(2) / 4},
        ),
        (
            Step("tensor", "act", "scale", {"factor": 3}),
            {"fc": 1.0, "pool": math.sqrt(2), "act": 3 * math.sqrt(2) / 4},
        ),
    ],
)
def test_a_backward_hook_changes_gradients_and_grad_cam_and_says_why_no_logit(
    plain: LoadedModel, step: Step, rows: dict[str, float]
) -> None:
    got = experiment(plain, step)

    after = {row.path: row.after for row in got.gradient_norms}
    assert {path: after[path] for path in rows} == pytest.approx(rows, abs=1e-5)
    assert np.array_equal(got.before.logits, got.after.logits)
    np.testing.assert_allclose(got.after.attribution.map, 3 * got.before.attribution.map, rtol=1e-5)
    (note,) = got.notes
    assert note.startswith(step.sentence())
    assert "never the logits" in note


def test_a_backward_hook_above_grad_cam_says_that_it_stays(plain: LoadedModel) -> None:
    got = experiment(plain, Step("full_backward", "stem", "zero"))

    assert np.array_equal(got.before.attribution.map, got.after.attribution.map)
    assert got.notes[1] == (
        f"Grad-CAM is read at {got.before.attribution.layers[0]}, and the gradient that arrives "
        "there is the same: these hooks act on gradients further upstream."
    )


def test_the_gradient_of_a_parameter_has_a_row_and_a_note(plain: LoadedModel) -> None:
    got = experiment(plain, Step("tensor", "fc", "scale", {"factor": 2}, of="weight"))

    (row,) = (row for row in got.gradient_norms if row.kind == "Parameter")
    assert row.path == "fc.weight"
    assert (row.before, row.after) == pytest.approx((math.sqrt(0.68), 2 * math.sqrt(0.68)))
    assert "norm 0.8246 before and 1.649 after" in got.notes[0]


def test_a_hook_that_cuts_the_answer_off_leaves_no_gradient_and_an_empty_map(
    plain: LoadedModel,
) -> None:
    got = experiment(
        plain, Step("forward", "pool", "constant", {"value": 1.0}), Step("tensor", "stem")
    )

    assert got.after.logits.tolist() == [2.0, 0.0]
    after = {row.path: row.after for row in got.gradient_norms}
    assert after == pytest.approx({"stem": 0, "act": 0, "pool": math.sqrt(2), "fc": 1.0})
    assert not got.after.attribution.map.any()
    assert "does not depend on this layer" in " ".join(got.after.attribution.notes)
    assert "no gradient came back to it" in got.notes[0]


def test_the_target_is_that_without_hooks(plain: LoadedModel) -> None:
    got = experiment(plain, Step("forward", "fc", "negate"))

    assert got.before.predictions[0].index == 0
    assert got.after.predictions[0].index == 1
    assert got.before.attribution.target.index == got.after.attribution.target.index == 0
    assert got.changes[0].index == 0


def test_watching_changes_not_one_bit(bundled: LoadedModel, coffee: Path) -> None:
    lab = lab_of(
        bundled,
        *(
            Step(kind, "features.4", "watch")
            for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward", "tensor")
        ),
    )

    got = run_experiment(lab, open_picture(coffee))
    lab.close()

    assert np.array_equal(got.before.logits, got.after.logits)
    assert np.array_equal(got.before.attribution.map, got.after.attribution.map)
    assert all(row.before == row.after for row in (*got.norms, *got.gradient_norms))


def test_without_hooks_the_sides_are_those_of_explain(bundled: LoadedModel, coffee: Path) -> None:
    photo = open_picture(coffee)
    lab = Lab(bundled)

    got = run_experiment(lab, photo, "espresso")

    ours, theirs = got.before.attribution, explain(bundled, photo, target="espresso")
    np.testing.assert_allclose(ours.map, theirs.map, atol=1e-6)
    assert (ours.layers, ours.target, ours.method) == (theirs.layers, theirs.target, "grad-cam")
    for side in (got.before, got.after):
        assert [p.index for p in side.predictions] == [p.index for p in predict(bundled, photo)]
    again = run_experiment(lab, photo, "espresso")
    assert again.before is got.before
    assert run_experiment(lab, photo, "espresso", fit="stretch").before is not got.before
    lab.close()


def test_every_layer_that_ran_has_a_norm_in_running_order(
    bundled: LoadedModel, coffee: Path
) -> None:
    lab = lab_of(bundled, Step("forward", "features.8", "zero"))

    got = run_experiment(lab, open_picture(coffee))

    ran = sorted((i for i in bundled.layers if i.calls), key=lambda info: info.order)
    for rows in (got.norms, got.gradient_norms):
        assert [row.path for row in rows] == [info.path for info in ran]
    stem = capture(bundled, open_picture(coffee), ["features.0.0"], "espresso")
    assert got.norms[0].before == pytest.approx(float(stem.feature_map("features.0.0").norm()))
    gradient = float(stem.gradient("features.0.0").norm())
    assert got.gradient_norms[0].before == pytest.approx(gradient, rel=1e-4)
    assert got.ledger.summary()["live"] == 0
    assert lab.ledger.summary() == {"registered": 1, "removed": 0, "live": 1, "foreign": 0}
    lab.close()


def test_the_channel_that_gradient_times_activation_names_matters_most(
    bundled: LoadedModel, coffee: Path
) -> None:
    """Silencing the first of 1280 lowers espresso more than silencing the median one."""
    photo = open_picture(coffee)
    found = capture(bundled, photo, ["features.8"], "espresso")
    product = found.feature_map("features.8") * found.gradient("features.8")
    order = product[0].sum(dim=(1, 2)).argsort(descending=True).tolist()

    def drop(channel: int) -> float:
        step = Step("forward", "features.8", "channels", {"which": str(channel)})
        lab.sync(Recipe((step,)), no_picture)
        before, after = run_experiment(lab, photo, "espresso").changes[0].logits
        return before - after

    lab = Lab(bundled)
    first, median = drop(order[0]), drop(order[640])
    lab.close()
    assert first > 0.05
    assert first > 10 * abs(median)


def test_a_failing_hook_raises_and_leaves_the_lab_usable(plain: LoadedModel) -> None:
    lab = Lab(plain)
    other = nets.picture(0.6, 0.2)
    patch = Step("forward", "act", "patch", {"picture": "other"})
    lab.sync(Recipe((patch,)), lambda name: other)
    assert run_experiment(lab, COLOUR).after.logits.tolist() == pytest.approx([1.0, 0.2], abs=1e-6)

    lab.kept.clear()
    good = lab.workers[0].site._act
    lab.workers[0].site._act = lambda value, call: good(value[:, :1], call)
    with pytest.raises(HookError, match="has shape 1×2×4×4 and the one to replace 1×1×4×4"):
        run_experiment(lab, COLOUR)
    lab.workers[0].site._act = good

    assert [found.path for found in audit(lab.session.module)] == ["act"]
    assert run_experiment(lab, COLOUR).after.logits.tolist() == pytest.approx([1.0, 0.2], abs=1e-6)
    lab.close()
    assert audit(lab.session.module) == audit(plain.module) == []


def test_what_cannot_be_run_is_refused(plain: LoadedModel) -> None:
    lab = lab_of(plain, Step("forward", "act", "zero"))

    with pytest.raises(TargetError):
        run_experiment(lab, COLOUR, "no such class")
    with pytest.raises(PictureError):
        run_experiment(lab, "coffee.png")  # type: ignore[arg-type]
    lab.close()
    with pytest.raises(HookError, match="closed"):
        run_experiment(lab, COLOUR)


def test_it_is_plain_values_for_json(plain: LoadedModel) -> None:
    got = experiment(plain, Step("forward", "act", "scale"))

    values = got.as_dict()

    assert values["changes"][0] == asdict(got.changes[0])
    assert values["norms"][1]["path"] == "act"
    assert values["after"]["layers"] == list(got.after.attribution.layers)


def small_vit() -> nn.Module:
    net = VisionTransformer(32, 8, 2, 2, 16, 32)
    nn.init.normal_(net.heads.head.weight)  # zero as it comes
    return net


def small_maxvit() -> nn.Module:
    return MaxVit((64, 64), 8, 2, [8, 16], [1, 1], 4, 0.0)


FAMILIES: list[tuple[str | Callable[[], nn.Module], int, str]] = [
    ("resnet18", 64, "layer1.0.relu"),
    ("densenet121", 32, "features.denseblock1"),
    ("mobilenet_v3_small", 64, "features.3"),
    ("efficientnet_b0", 64, "features.2"),
    ("convnext_tiny", 64, "features.1.0.block.0"),
    ("swin_t", 32, "features.1.0.attn"),
    (small_vit, 32, "encoder.layers.encoder_layer_0"),
    (small_maxvit, 64, "blocks.0.layers.0.layers.MBconv"),
]


@pytest.mark.parametrize(("net", "side", "path"), FAMILIES)
def test_three_hooks_on_other_families(
    net: str | Callable[[], nn.Module],
    side: int,
    path: str,
    picture_of_noise: Callable[[int], Picture],
) -> None:
    preset = Preset(side, side, (0.5,) * 3, (0.25,) * 3, "bilinear")
    if isinstance(net, str):
        model = load_model(net, weights="none", device="cpu", transforms=preset)
    else:
        model = load_model(module=net().eval(), device="cpu", transforms=preset)
    lab = lab_of(
        model,
        Step("forward", path, "channels", {"which": "0-2"}),
        Step("full_backward", path, "scale", {"factor": 2.0}),
        Step("forward_pre", path, "scale", {"factor": 1.5}),
    )

    got = run_experiment(lab, picture_of_noise(side))

    assert np.isfinite(got.after.logits).all()
    assert not np.array_equal(got.before.logits, got.after.logits)
    assert [hook.record.fires > 0 for hook in lab.live] == [True] * 3
    calls = sum(1 for info in model.layers if info.calls)
    assert len(got.norms) == calls
    lab.close()
    assert audit(lab.session.module) == audit(model.module) == []


@pytest.fixture
def picture_of_noise() -> Callable[[int], Picture]:
    from PIL import Image

    def make(side: int) -> Picture:
        import io

        values = torch.randint(256, (side, side, 3), generator=torch.Generator().manual_seed(0))
        buffer = io.BytesIO()
        Image.fromarray(values.to(torch.uint8).numpy()).save(buffer, "PNG")
        return open_picture(buffer.getvalue())

    return make
