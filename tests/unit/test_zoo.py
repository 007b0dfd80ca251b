"""Hooks on every module of one small classifier of each family; `make zoo` takes them all."""

from __future__ import annotations

import pytest

ONE_OF_EACH = (
    "efficientnet_lite0",
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "regnet_y_400mf",
    "resnet18",
    "resnext50_32x4d",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11",
    "vit_b_32",
    "wide_resnet50_2",
)


def test_every_family_has_its_model_here() -> None:
    from interp.models.catalog import catalog

    specs = catalog()
    assert {specs[name].family for name in ONE_OF_EACH} == {s.family for s in specs.values()}


# Looked into and intervened in as well; of the others the tests of each part take theirs.
CORE_TOO = ("efficientnet_lite0", "resnet18", "shufflenet_v2_x0_5", "vit_b_32")


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_hooks_on_every_module(name: str) -> None:
    from zoo import check

    result = check(name, core=name in CORE_TOO)

    assert result.problems == ()
    assert result.modules > 0
    assert result.gradients > 0


def test_what_is_wrong_is_said() -> None:
    import torch
    from zoo_core import core_problems

    from interp import load_model, open_picture
    from interp.picture import sample_pictures

    model = load_model("shufflenet_v2_x0_5", weights="none", device="cpu")

    problems = list(
        core_problems(
            model, open_picture(sample_pictures()["chelsea"]), torch.ones(1, 1000), {"conv1": 2}
        )
    )

    assert "conv1 ran 2 times, statistics has 1 rows" in problems
    for what in ("statistics", "the recorded pass", "a replay from conv5.1", "the pass before"):
        assert any(problem.startswith(f"the logits of {what}") for problem in problems)
    assert any(problem.startswith("1 modules ran, gradients have ") for problem in problems)
