"""What modules are called with: shapes and layouts, by position and by keyword."""

from __future__ import annotations

import torch
from lab_nets import Nested, Plain, load
from torch import Tensor
from torchvision.models import VisionTransformer

from interp import LoadedModel, load_model
from interp.geometry import Preset
from interp.models.inputs import InputInfo


def test_every_call_is_noted_whatever_way_the_tensor_is_given() -> None:
    inputs = load(Nested()).inputs

    assert inputs["stem"] == (InputInfo((1, 3, 4, 4), "nchw"),)
    assert inputs["named"] == (InputInfo((1, 2, 4, 4), "nchw"),)
    assert inputs["act"] == (InputInfo((1, 2, 4, 4), "nchw"),) * 3
    assert inputs["fc"] == (InputInfo((1, 2), "vector"),)


def test_the_layout_of_tokens_and_of_what_is_called_before_a_change_of_shape() -> None:
    net = VisionTransformer(32, 8, 1, 2, 16, 32).eval()
    model = load_model(module=net, transforms=Preset(32, 32, (0,) * 3, (1,) * 3, "bilinear"))

    assert model.inputs["conv_proj"][0].layout == "nchw"
    block = "encoder.layers.encoder_layer_0"
    for path in (block, f"{block}.mlp", f"{block}.self_attention", "encoder.ln"):
        assert model.inputs[path] == (InputInfo((1, 17, 16), "tokens"),)
    assert model.inputs["heads"] == (InputInfo((1, 16), "vector"),)


def test_what_a_layer_is_given_is_what_the_one_before_returned(bundled: LoadedModel) -> None:
    shapes = {info.path: info.shape for info in bundled.layers}

    for before, after in (("features.3", "features.4"), ("features.7", "features.8")):
        assert bundled.inputs[after][0].shape == shapes[before]
    assert set(bundled.inputs) == {"", *(info.path for info in bundled.layers if info.calls)}


class _Noisy(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * torch.rand(1)


def test_a_network_that_draws_numbers_leaves_the_random_state_alone() -> None:
    model = load(_Noisy())
    before = torch.get_rng_state()

    assert "fc" in model.inputs

    assert torch.equal(torch.get_rng_state(), before)
