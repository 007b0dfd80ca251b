"""The channels of a layer: maps in every layout, contributions in closed form, orders and files."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from interp import audit, load_model, open_picture
from interp.errors import LayerError, MethodError, TargetError
from interp.geometry import Preset
from interp.inspection.channels import ORDERS, channel_maps


def preset(side):
    return Preset(side, side, (0.0,) * 3, (1.0,) * 3, "bilinear")


def random_picture(side):
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return open_picture(buffer.getvalue(), name="random.png")


class Pooled(nn.Module):
    """Five channels, pooled, and one linear layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 5, 3), nn.AdaptiveAvgPool2d(1)
        self.flat, self.head = nn.Flatten(), nn.Linear(5, 4)

    def forward(self, x):
        return self.head(self.flat(self.pool(self.conv(x))))


@pytest.fixture(scope="module")
def pooled():
    torch.manual_seed(1)
    return load_model(module=Pooled(), transforms=preset(9), device="cpu")


@pytest.mark.parametrize("path", ["conv", "pool", "flat"])
@pytest.mark.parametrize("target", [0, 3])
def test_contributions_of_a_linear_head_add_up_to_the_logit_but_for_the_bias(pooled, path, target):
    picture = random_picture(9)
    found = channel_maps(pooled, picture, path, target=target)
    head = pooled.module.head
    means = pooled.module.conv(pooled.prepare(picture)).mean((2, 3))[0]
    assert found.contribution == pytest.approx((head.weight[target] * means).numpy(), rel=1e-4)
    logit = found.frame.logits[target] - head.bias[target].item()
    assert found.contribution.sum() == pytest.approx(logit, rel=1e-4)
    assert found.maps.shape == ((5, 7, 7) if path == "conv" else (5, 1, 1))
    assert found.notes == ()


def test_a_contrast_is_the_difference_and_a_bad_target_is_refused(pooled):
    picture = random_picture(9)
    first, second, both = (
        channel_maps(pooled, picture, "conv", target=target).contribution
        for target in ("0", "1", "0-1")
    )
    assert both == pytest.approx(first - second, abs=1e-6)
    with pytest.raises(TargetError):
        channel_maps(pooled, picture, "conv", target=4)


def test_the_numbers_of_each_channel(pooled):
    picture = random_picture(9)
    found = channel_maps(pooled, picture, "conv")
    exact = pooled.module.conv(pooled.prepare(picture))[0].detach().double().numpy()
    assert found.maps == pytest.approx(exact, rel=1e-5, abs=1e-6)
    assert found.mean == pytest.approx(exact.mean((1, 2)), abs=1e-6)
    assert found.maximum == pytest.approx(exact.max((1, 2)), abs=1e-6)
    assert found.variance == pytest.approx(exact.var((1, 2)), abs=1e-6)
    for name in ("contribution", "mean", "maximum", "variance"):
        values = getattr(found, name)
        assert values.dtype == np.float32
        order = found.order(name)
        assert (np.diff(values[order]) <= 0).all()
        assert [found.rank(int(channel), name) for channel in order] == [1, 2, 3, 4, 5]
    assert found.order("index").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(MethodError, match="no order «size» of channels: there are contribution"):
        found.order("size")


class Ties(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 6, 1, bias=False), nn.Linear(6, 2)
        with torch.no_grad():
            self.conv.weight.zero_()
            self.conv.weight[[1, 3, 4], 0] = 1.0
            self.conv.weight[5, 0] = -1.0
            self.head.weight.fill_(1.0)

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3)))


def test_equal_channels_stand_in_the_order_of_their_index():
    model = load_model(module=Ties(), transforms=preset(4), device="cpu")
    found = channel_maps(model, random_picture(4), "conv", target=0)
    for name in ("contribution", "mean", "maximum"):
        assert found.order(name).tolist() == [1, 3, 4, 0, 2, 5]
    assert found.order("variance").tolist() == [1, 3, 4, 5, 0, 2]


class Layouts(nn.Module):
    """The same features as (N, C, H, W), (N, H, W, C) and tokens behind a class token.

    `reads` chooses what the head is given: the patches, the class token, or all of them.
    """

    def __init__(self, reads):
        super().__init__()
        self.reads = reads
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.rows, self.tokens = nn.Identity(), nn.Identity()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = self.rows(self.conv(x).permute(0, 2, 3, 1)).flatten(1, 2)
        x = self.tokens(torch.cat([x.new_full((1, 1, 6), 2.0), x], 1))
        return self.head(x[:, self.reads].sum(1))


def test_the_same_channels_in_every_layout():
    model = load_model(module=Layouts(slice(1, None)), transforms=preset(6), device="cpu")
    picture = random_picture(6)
    first, *others = (
        channel_maps(model, picture, path, target=1) for path in ("conv", "rows", "tokens")
    )
    assert [first.info.layout, *(one.info.layout for one in others)] == ["nchw", "nhwc", "tokens"]
    for one in others:
        assert np.array_equal(one.maps, first.maps)
        assert one.contribution == pytest.approx(first.contribution, rel=1e-5)
        assert one.variance == pytest.approx(first.variance, rel=1e-5)
    assert first.tokens is None
    assert others[1].tokens.tolist() == [[2.0] * 6]


def test_a_class_token_alone_is_read():
    model = load_model(module=Layouts(slice(0, 1)), transforms=preset(6), device="cpu")
    found = channel_maps(model, random_picture(6), "tokens", target=1)
    assert found.contribution == pytest.approx(2 * model.module.head.weight[1].numpy(), rel=1e-6)
    assert "no gradient reaches the patches" in found.notes[-1]
    # Before the class token is put in front, nothing depends on the layer.
    before = channel_maps(model, random_picture(6), "conv", target=1)
    assert not before.contribution.any()
    assert "zero everywhere" in before.notes[-1]


def test_the_class_token_counts_with_the_patches():
    model = load_model(module=Layouts(slice(None)), transforms=preset(6), device="cpu")
    found = channel_maps(model, random_picture(6), "tokens", target=2)
    sums = found.maps.sum((1, 2)) + found.tokens.sum(0)
    assert found.contribution == pytest.approx(model.module.head.weight[2].numpy() * sums, rel=1e-4)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.side = (nn.Conv2d(n, 4, 1) for n in (3, 4, 4))
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.act(self.first(x))
        self.side(x)
        return self.head(self.act(self.second(x)).mean((2, 3)))


@pytest.fixture(scope="module")
def twice():
    torch.manual_seed(2)
    return load_model(module=Twice(), transforms=preset(5), device="cpu")


def test_each_call_has_its_own_maps(twice):
    picture = random_picture(5)
    net = twice.module
    first = net.first(twice.prepare(picture)).relu().detach().requires_grad_()
    second = net.second(first).relu()
    slopes = torch.autograd.grad(net.head(second.mean((2, 3)))[0, 2], [first, second])
    for call, (values, slope) in enumerate(zip((first, second), slopes, strict=True)):
        found = channel_maps(twice, picture, "act", call, target=2)
        assert found.layer == f"act#{call}"
        assert found.maps == pytest.approx(values.detach()[0].numpy(), abs=1e-6)
        expected = (values * slope).sum((0, 2, 3)).detach().numpy()
        assert found.contribution == pytest.approx(expected, abs=1e-6)


def test_off_the_path_is_said_so_and_drawn(twice):
    found = channel_maps(twice, random_picture(5), "side", target=2)
    assert "No gradient reaches this layer: class 2 (2) does not depend on it" in found.notes[-1]
    assert not found.contribution.any()
    assert found.maps.any()


def test_no_channels_is_refused():
    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.cube, self.head = nn.Unflatten(1, (2, 2, 3, 4)), nn.Linear(48, 2)

        def forward(self, x):
            return self.head(self.cube(x.flatten(1)).flatten(1))

    model = load_model(module=Scores(), transforms=preset(4), device="cpu")
    with pytest.raises(LayerError, match=r"«cube» \(Unflatten\) returns 1×2×2×3×4, of which no"):
        channel_maps(model, random_picture(4), "cube")
    with pytest.raises(LayerError, match="no layer «cone»"):
        channel_maps(model, random_picture(4), "cone")


def test_a_channel_is_an_attribution(bundled, coffee, tmp_path):
    picture = open_picture(coffee)
    found = channel_maps(bundled, picture, "features.8")
    first = int(found.order()[0])
    one = found.channel(first)
    assert np.array_equal(one.map, found.maps[first])
    assert one.on_picture().shape == (400, 600)
    assert (one.target.label, one.layers, one.signed) == ("espresso (967)", ("features.8",), False)
    manifest = json.loads(json.dumps(one.manifest()))
    assert manifest["parameters"] == {"channel": first}
    assert manifest["method"] == f"channel-{first}"
    assert manifest["hooks"] == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}
    names = [[path.name for path in found.channel(c).save(tmp_path)] for c in (first, first - 1)]
    assert not set(names[0]) & set(names[1])
    with pytest.raises(LayerError, match="has no channel 1280: they are 0 to 1279"):
        found.channel(1280)
    before = channel_maps(bundled, picture, "features.8.0")
    lowest = int(before.maps.min((1, 2)).argmin())
    assert before.channel(lowest).signed


def test_a_dead_channel_says_so():
    model = load_model(module=Ties(), transforms=preset(4), device="cpu")
    found = channel_maps(model, random_picture(4), "conv", target=0)
    assert found.channel(0).notes == ("Channel 0 is zero everywhere on this picture.",)
    assert found.channel(1).notes == ()
    vector = channel_maps(model, random_picture(4), "head", target=0)
    assert "single place" in vector.channel(1).notes[0]


def test_files(bundled, coffee):
    found = channel_maps(bundled, open_picture(coffee), "features.8")
    with np.load(io.BytesIO(found.npz_bytes())) as file:
        assert file["maps"].shape == (1280, 7, 7)
        for name in ("maps", *ORDERS[:4]):
            assert np.array_equal(file[name], getattr(found, name))
        assert str(file["layer"]) == "features.8"
        assert str(file["target"]) == "espresso (967)"
        assert "feature_vector" not in file
        assert "tokens" not in file
        manifest = json.loads(str(file["manifest"]))
    assert manifest["layers"] == ["features.8"]
    assert manifest["method"] == "channels"
    assert manifest["map"]["shape"] == [1280, 7, 7]
    assert manifest["map"]["maximum"] == pytest.approx(float(found.maps.max()))
    assert manifest["target"]["label"] == "espresso (967)"
    vector = channel_maps(bundled, open_picture(coffee), "avgpool")
    with np.load(io.BytesIO(vector.npz_bytes())) as file:
        assert file["feature_vector"].shape == (1280,)
        assert np.array_equal(file["feature_vector"], vector.mean)


def test_tiles_on_one_scale_and_each_on_its_own():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 1, bias=False)
            with torch.no_grad():
                self.conv.weight.zero_()
                self.conv.weight[0, 0], self.conv.weight[1, 0] = 1.0, 0.1

        def forward(self, x):
            return self.conv(x).mean((2, 3))

    model = load_model(module=Two(), transforms=preset(4), device="cpu")
    found = channel_maps(model, random_picture(4), "conv")
    own = [np.asarray(found.tile(channel, shared=False)) for channel in (0, 1)]
    shared = [np.asarray(found.tile(channel, shared=True)) for channel in (0, 1)]
    assert own[0].shape == (112, 112, 3)
    assert np.abs(own[0].astype(int) - own[1]).max() <= 3  # a tenth, but for rounding
    assert np.array_equal(shared[0], own[0])
    assert shared[1].astype(int).max() < own[1].max()
    assert found.shared_scale.high == found.maximum[0]


def test_a_montage_and_a_figure(bundled, coffee):
    found = channel_maps(bundled, open_picture(coffee), "features.3")
    small = found.montage("mean", 5, shared=True, columns=3)
    large = found.montage("mean", 10_000, shared=False, columns=3)
    assert small.width == large.width
    assert large.height > 5 * small.height
    assert found.figure(0).width > 600


def test_the_same_numbers_again_and_nothing_left(bundled, coffee):
    picture = open_picture(coffee)
    first, second = (channel_maps(bundled, picture, "features.5") for _ in range(2))
    assert np.array_equal(first.maps, second.maps)
    assert np.array_equal(first.contribution, second.contribution)
    assert audit(bundled.module) == []
