from collections import OrderedDict

import pytest
import torch
from torch import nn
from torchvision.models import densenet121, mnasnet0_5, vision_transformer

from interp.errors import WeightsError
from interp.models.catalog import build, get_spec
from interp.models.fitting import fill, head_size, nearest, without_auxiliary


def net(classes=10, width=4):
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(3, width, 3), norm=nn.BatchNorm2d(width), fc=nn.Linear(4, classes)
        )
    )


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_a_fitting_state_is_copied():
    target, state = net(), net().state_dict()
    fill(target, state, "it", 10)
    assert same(target.state_dict(), state)
    assert target.fc.weight.data_ptr() != state["fc.weight"].data_ptr()


def test_what_does_not_fit_is_counted_and_named():
    target, before = net(), {k: v.clone() for k, v in net().state_dict().items()}
    fill(target, before, "it", 10)
    state = net().state_dict()
    del state["norm.weight"], state["norm.bias"]
    state["extra"] = torch.zeros(1)
    state["conv.weight"] = torch.zeros(8, 3, 3, 3)
    with pytest.raises(WeightsError) as error:
        fill(target, state, "mine.pth", 10)
    assert str(error.value) == (
        "mine.pth does not fit Sequential: 2 missing (norm.weight, norm.bias), 1 unknown (extra), "
        "1 of another shape (conv.weight 8×3×3×3 for 4×3×3×3); choose the model these weights were "
        "saved from"
    )
    assert same(target.state_dict(), before)


def test_another_head_is_said_so():
    with pytest.raises(WeightsError, match=r"2 of another shape .*its head has 7 classes, not 10"):
        fill(net(), net(7).state_dict(), "it", 10)


def test_values_that_are_not_finite_are_refused():
    state = net().state_dict()
    state["fc.bias"] = torch.full((10,), torch.nan)
    with pytest.raises(WeightsError, match=r"1 not finite \(fc.bias\)"):
        fill(net(), state, "it", 10)


def test_only_the_first_few_names_are_listed():
    with pytest.raises(WeightsError, match=r"8 missing \(conv.weight, conv.bias, norm.weight, …\)"):
        fill(
            net(), {"other": torch.zeros(1), "norm.num_batches_tracked": torch.tensor(1)}, "it", 10
        )


def test_head_size():
    assert head_size(net(), net().state_dict(), 10) == 10
    assert head_size(net(), net(7).state_dict(), 10) == 7
    assert head_size(net(), net(width=8).state_dict(), 10) is None
    assert head_size(net(), {"fc.weight": torch.zeros(7, 4)}, 10) is None
    odd = net(7).state_dict() | {"fc.bias": torch.zeros(6)}
    assert head_size(net(), odd, 10) is None


def test_batch_norm_from_before_batches_were_counted():
    state = net().state_dict()
    del state["norm.num_batches_tracked"]
    target = net()
    target.norm.num_batches_tracked += 5
    fill(target, state, "it", 10)
    assert target.norm.num_batches_tracked == 0


def test_names_of_old_densenet_files():
    state = densenet121().state_dict()
    old = {
        name.replace("norm1.", "norm.1.").replace("conv2.", "conv.2."): tensor
        for name, tensor in state.items()
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    target = densenet121()
    fill(target, old, "it", 1000)
    assert same(target.state_dict(), state)


def test_names_of_old_transformer_files():
    def tiny():
        return vision_transformer.VisionTransformer(32, 16, 2, 2, 8, 16)

    state = tiny().state_dict()
    old = {
        name.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."): tensor
        for name, tensor in state.items()
    }
    assert "encoder.layers.encoder_layer_0.mlp.linear_2.bias" in old
    target = tiny()
    fill(target, old, "it", 1000)
    assert same(target.state_dict(), state)


def test_a_plain_dictionary_fills_mnasnet():
    """Its own loading asks for a version that only torch.save keeps."""
    state = dict(mnasnet0_5().state_dict())
    target = mnasnet0_5()
    fill(target, state, "it", 1000)
    assert same(target.state_dict(), state)


def test_a_dropped_auxiliary_head_is_not_asked_for():
    spec = get_spec("inception_v3")
    with_head = build(spec, spec.default)
    state = {name: torch.zeros(()).expand(t.shape) for name, t in with_head.state_dict().items()}
    without = without_auxiliary(build(spec, spec.default))
    assert without.AuxLogits is None
    assert head_size(without, state, 1000) == 1000
    bare = {name: tensor for name, tensor in state.items() if not name.startswith("AuxLogits")}
    assert head_size(without, bare, 1000) == 1000
    assert head_size(with_head, bare, 1000) is None


def test_nearest_net_by_file_name_and_by_shape():
    spec = get_spec("resnet50")
    state = build(spec, None, 3).state_dict()
    assert nearest(spec, "mine.pth", state) == (spec.default, 3)
    assert nearest(spec, spec.entries[1].file_name, state) == (spec.entries[1], 3)
    assert nearest(spec, "mine.pth", {"no": torch.zeros(1)}) == (spec.default, 1000)


def test_nearest_transformer_by_its_positions():
    spec = get_spec("vit_b_16")
    large = spec.entries[1]
    assert large.preset.crop_size == 384
    with torch.device("meta"):
        state = vision_transformer.vit_b_16(image_size=384, num_classes=5).state_dict()
    assert nearest(spec, "mine.pth", state) == (large, 5)
