"""Grad-CAM and HiResCAM against Captum, by hand, and by what must hold of them."""

import copy
from functools import cache

import pytest
import torch
from captum.attr import LayerGradCam
from torch import nn

from interp.attribution.base import LayerCall, Request, get_method
from interp.attribution.cam import grad_cam, hirescam
from interp.attribution.layer_calls import layer_calls
from interp.errors import LayerError
from interp.geometry import Preset
from interp.hooks.capture import capture
from interp.models.layers import find_layer, recommended_layer
from interp.models.loading import load_model
from interp.targets import parse_target


def run(model, tensor, layers, target=None, method="grad-cam"):
    calls = layer_calls(model, layers)
    request = Request(model, tensor, calls, parse_target(target, model.categories))
    return get_method(method).run(request)


def a_map(*args, **options):
    (only,) = run(*args, **options).maps
    return only


@cache
def untrained(name):
    return load_model(name, weights="none", device="cpu")


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("resnet18", ["layer4", "layer3.1.bn2", "layer2.0.conv1"]),
        ("densenet121", ["features.norm5", "features.transition2.relu", "features.denseblock3"]),
        ("mobilenet_v3_small", ["features.12.0", "features.7.block.1.1", "features.3"]),
        ("convnext_tiny", ["features.7.2", "features.5.3.block.0", "features.3.1"]),
        ("vgg11", ["features.18", "features.19", "features.8"]),
    ],
)
@pytest.mark.parametrize("size", [(224, 224), (160, 256)])
def test_grad_cam_equals_captums(name, layers, size):
    model = untrained(name)
    net = copy.deepcopy(model.module)
    for part in net.modules():
        if hasattr(part, "inplace"):  # Captum's stored feature maps would be written over
            part.inplace = False
    torch.manual_seed(3)
    picture = torch.randn(1, 3, *size).to(memory_format=torch.channels_last)
    together = run(model, picture, layers, target=7).maps
    for layer, ours in zip(layers, together, strict=True):
        shown = picture.clone().requires_grad_()
        theirs = LayerGradCam(net, net.get_submodule(layer)).attribute(
            shown, target=7, relu_attributions=False
        )[0, 0]
        assert ours.shape == theirs.shape
        assert theirs.abs().max() > 0
        difference = (ours - theirs).abs().max()
        assert difference <= 1e-5 * theirs.abs().max(), layer
        assert difference <= 1e-5, layer


PLAIN = Preset(2, 2, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "bilinear")


class TwoByTwo(nn.Module):
    """Two channels that are the first two of the picture, and three linear scores of them."""

    weights = torch.tensor(
        [
            [[[1.0, -2.0], [3.0, 0.0]], [[0.0, 4.0], [-4.0, 4.0]]],
            [[[0.0, 1.0], [0.0, 1.0]], [[2.0, 0.0], [2.0, 0.0]]],
            [[[-1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]],
        ]
    )

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 3)
        with torch.no_grad():
            self.conv.weight.copy_(torch.eye(3)[:2, :, None, None])
            self.head.weight.copy_(self.weights.reshape(3, 8))
            self.head.bias.copy_(torch.tensor([0.5, -1.0, 2.0]))

    def forward(self, x):
        return self.head(self.relu(self.conv(x)).flatten(1))


PICTURE = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.5], [1.0, 1.0]], [[9.0] * 2] * 2]])


@pytest.fixture(scope="module")
def two_by_two():
    return load_model(module=TwoByTwo(), transforms=PLAIN, device="cpu")


def test_grad_cam_of_two_by_two_by_hand(two_by_two):
    # Means of the weights: (1 − 2 + 3 + 0) / 4 = 0.5 and (0 + 4 − 4 + 4) / 4 = 1.
    expected = torch.tensor([[0.5 * 1 + 2, 0.5 * 2 + 0.5], [0.5 * 3 + 1, 0.5 * 4 + 1]])
    assert torch.equal(a_map(two_by_two, PICTURE, "relu", 0), expected)


def test_hirescam_of_two_by_two_by_hand(two_by_two):
    expected = torch.tensor([[1 * 1 + 2 * 0, 2 * -2 + 0.5 * 4.0], [3 * 3 + 1 * -4, 0 + 1 * 4.0]])
    found = run(two_by_two, PICTURE, "relu", 0, "hirescam")
    assert torch.equal(found.maps[0], expected)
    assert expected.sum() == found.logits[0] - 0.5  # all but the bias


def test_negative_values_are_kept(two_by_two):
    assert a_map(two_by_two, PICTURE, "relu", 0, "hirescam").min() < 0


def test_the_map_before_a_relu_that_works_in_place(two_by_two):
    picture = PICTURE.clone()
    picture[0, 0, 0, 0] = -1.0
    expected = torch.tensor([[-1.0 * 0 + 0, -4.0 + 2.0], [9 - 4, 0 + 4.0]])
    assert torch.equal(a_map(two_by_two, picture, "conv", 0, "hirescam"), expected)
    assert find_layer(two_by_two.layers, "conv").grid == (2, 2)
    # The weights of the first channel, that place left out: (−2 + 3 + 0) / 4.
    values = torch.tensor([[-1.0, 2.0], [3.0, 4.0]]) * 0.25 + PICTURE[0, 1]
    assert torch.equal(a_map(two_by_two, picture, "conv", 0), values)


@pytest.mark.parametrize("method", ["grad-cam", "hirescam"])
def test_a_contrast_is_the_difference_of_two_maps(two_by_two, method):
    first, second, both = (
        a_map(two_by_two, PICTURE, "relu", target, method) for target in ("0", "1", "0-1")
    )
    assert torch.allclose(both, first - second, atol=1e-6)
    assert a_map(two_by_two, PICTURE, "relu", "1-1", method).abs().max() == 0


@pytest.mark.parametrize("target", ["0", "1", "2", "2-0"])
def test_probabilities_by_the_chain_rule(two_by_two, target):
    """dp/dA = p (w − Σ p w), and dlog p/dA = w − Σ p w."""
    head = two_by_two.module.head
    features = PICTURE[0, :2]
    p = (head.weight @ features.flatten() + head.bias).softmax(0)
    centred = TwoByTwo.weights - (p[:, None, None, None] * TwoByTwo.weights).sum(0)
    first, _, second = target.partition("-")
    for scale, slopes in (("prob", p[:, None, None, None] * centred), ("logprob", centred)):
        slope = slopes[int(first)] - (slopes[int(second)] if second else 0)
        for method, combine in (("grad-cam", grad_cam), ("hirescam", hirescam)):
            found = a_map(two_by_two, PICTURE, "relu", f"{target}:{scale}", method)
            expected = combine(features, slope)
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-7), (scale, method)


def test_hirescam_is_complete_before_pooling_and_one_linear_layer():
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 5, 3))
            self.head = nn.Linear(5, 4)

        def forward(self, x):
            return self.head(self.body(x).mean((2, 3)))

    model = load_model(module=Pooled(), device="cpu")
    picture = torch.randn(1, 3, 20, 30)
    for index in range(4):
        precise = run(model, picture, "body.2", index, "hirescam")
        assert precise.maps[0].shape == (16, 26)
        total = precise.maps[0].sum() + model.module.head.bias[index]
        assert total.item() == pytest.approx(precise.logits[index].item(), abs=1e-5)
        averaged = a_map(model, picture, "body.2", index)
        assert torch.allclose(averaged, precise.maps[0], atol=1e-6)  # here they are the same


def test_a_transposed_net_on_a_transposed_picture_gives_the_transposed_map():
    net = nn.Sequential(
        nn.Conv2d(3, 6, (3, 5), stride=(1, 2)),
        nn.ReLU(),
        nn.Conv2d(6, 5, (1, 3)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(5, 4),
    ).requires_grad_(False)
    turned = copy.deepcopy(net)
    for layer, kernel, stride in ((0, (5, 3), (2, 1)), (2, (3, 1), (1, 1))):
        turned[layer].weight = nn.Parameter(net[layer].weight.mT.contiguous())
        turned[layer].kernel_size, turned[layer].stride = kernel, stride
    picture = torch.randn(1, 3, 20, 33)
    for layer in ("0", "2"):
        upright = a_map(load_model(module=net, device="cpu"), picture, layer, 2)
        lying = a_map(load_model(module=turned, device="cpu"), picture.mT, layer, 2)
        assert upright.shape == (18, 15 - 2 * (layer == "2"))
        assert torch.allclose(upright, lying.mT, atol=1e-6)


def test_the_memory_format_changes_nothing():
    model = untrained("resnet18")
    picture = torch.randn(1, 3, 64, 96)
    plain = load_model(
        module=copy.deepcopy(model.module).to(memory_format=torch.contiguous_format), device="cpu"
    )
    maps = [a_map(m, picture, "layer3", 5) for m in (model, plain)]
    assert maps[0].shape == (4, 6)
    assert torch.allclose(*maps, rtol=1e-4, atol=1e-6 * float(maps[0].abs().max()))


class Layouts(nn.Module):
    """The same features as (N, C, H, W), (N, H, W, C) and tokens behind a class token."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.rows, self.tokens = nn.Identity(), nn.Identity()
        self.head = nn.Linear(6 * 36, 3)

    def forward(self, x):
        x = self.rows(self.conv(x).permute(0, 2, 3, 1)).flatten(1, 2)
        x = self.tokens(torch.cat([x.mean((0, 1)).expand(1, 1, 6), x], 1))[:, 1:]
        return self.head(x.mT.flatten(1))


@pytest.mark.parametrize("method", ["grad-cam", "hirescam"])
def test_the_same_map_in_every_layout(method):
    small = Preset(6, 6, (0.0,) * 3, (1.0,) * 3, "bilinear")
    model = load_model(module=Layouts(), transforms=small, device="cpu")
    assert {i.path: i.layout for i in model.layers if i.spatial} == {
        "conv": "nchw",
        "rows": "nhwc",
        "tokens": "tokens",
    }
    picture = torch.randn(1, 3, 6, 6)
    maps = run(model, picture, ["conv", "rows", "tokens"], 1, method).maps
    assert maps[0].abs().max() > 0
    assert all(torch.allclose(maps[0], other, atol=1e-6) for other in maps[1:])


def test_a_hot_place_of_a_vit_lands_at_its_own_place():
    """A head that reads one patch only: the map is that patch and nothing else."""
    preset = Preset(12, 12, (0.0,) * 3, (1.0,) * 3, "bilinear")

    class OnePatch(nn.Module):
        def __init__(self, place):
            super().__init__()
            self.place = place
            self.patches = nn.Conv2d(3, 8, 3, stride=3)
            self.norm = nn.LayerNorm(8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            x = self.patches(x).flatten(2).mT
            return self.head(self.norm(torch.cat([x.new_zeros(1, 1, 8), x], 1))[:, self.place])

    for row, column in ((0, 0), (1, 3), (3, 1), (3, 3)):
        net = OnePatch(1 + 4 * row + column)
        model = load_model(module=net, transforms=preset, device="cpu")
        found = a_map(model, torch.randn(1, 3, 12, 12), "norm", 0, "hirescam")
        assert found.shape == (4, 4)
        assert found.nonzero().tolist() == [[row, column]]


def test_several_layers_at_once_are_those_of_one_at_a_time_in_any_order():
    model = untrained("resnet18")
    picture = torch.randn(1, 3, 96, 128)
    names = ["layer3.0", "layer3.1", "layer3.1.bn2", "layer4.0.relu#1", "layer4.0.relu#0"]
    alone = {name: a_map(model, picture, name, 3) for name in names}
    for order in (names, names[::-1], names[2:] + names[:2], [names[0], names[0]]):
        for name, found in zip(order, run(model, picture, order, 3).maps, strict=True):
            assert torch.equal(found, alone[name]), name
    # Two of equal shape, which a list of captures would confuse.
    assert alone["layer3.0"].shape == alone["layer3.1"].shape
    assert not torch.equal(alone["layer3.0"], alone["layer3.1"])


class Twice(nn.Module):
    """One ReLU, called before and after the second convolution, with equal shapes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1)
        self.act = nn.ReLU()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.act(self.first(x))
        return self.head(self.act(self.second(x)).mean((2, 3)))


def test_each_call_of_a_module_has_its_own_map():
    net = Twice()
    model = load_model(module=net, device="cpu")
    picture = torch.randn(1, 3, 5, 7)
    first = net.act(net.first(picture)).detach().requires_grad_()
    second = net.act(net.second(first))
    score = net.head(second.mean((2, 3)))[0, 2]
    slopes = torch.autograd.grad(score, [first, second])
    expected = [
        grad_cam(features[0].detach(), slope[0])
        for features, slope in zip((first, second), slopes, strict=True)
    ]
    for order in (["act#0", "act#1"], ["act#1", "act#0"]):
        for name, found in zip(order, run(model, picture, order, 2).maps, strict=True):
            assert torch.allclose(found, expected[int(name[-1])], atol=1e-7)
    assert torch.allclose(a_map(model, picture, "act", 2), expected[0], atol=1e-7)


def test_both_signs_of_a_single_logit():
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.conv(x).mean((2, 3)))

    model = load_model(module=One(), categories=["cat"], device="cpu")
    picture = torch.randn(1, 3, 9, 11)
    names = ("cat", "not cat", "cat:prob", "not cat:prob", "cat:logprob")
    found = {name: run(model, picture, "conv", name) for name in names}
    features = model.module.conv(picture)[0]
    cat = (model.module.head.weight[0, :, None, None] * features).sum(0) / (7 * 9)
    p = model.module(picture)[0, 0].sigmoid()
    for name, expected in {
        "cat": cat,
        "not cat": -cat,
        "cat:prob": p * (1 - p) * cat,
        "not cat:prob": -p * (1 - p) * cat,
        "cat:logprob": (1 - p) * cat,
    }.items():
        assert torch.allclose(found[name].maps[0], expected, atol=1e-7), name
    assert found["cat"].binary
    assert found["cat"].logits.tolist() == [
        -found["cat"].logits[1].item(),
        found["cat"].logits[1].item(),
    ]


def test_bfloat16_is_reduced_in_float32():
    # 4096 values of a channel: summed in bfloat16 the small ones would be lost.
    net = nn.Sequential(nn.Conv2d(3, 64, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 256, 3))
    preset = Preset(16, 16, (0.0,) * 3, (1.0,) * 3, "bilinear")
    model = load_model(module=net.bfloat16(), transforms=preset, device="cpu")
    picture = torch.randn(1, 3, 16, 16, dtype=torch.bfloat16)
    kept = capture(model, picture, ["1"], target=1)
    features, gradient = kept.feature_map("1")[0], kept.gradient("1")[0]
    assert features.dtype == gradient.dtype == torch.bfloat16
    for method, combine in (("grad-cam", grad_cam), ("hirescam", hirescam)):
        found = a_map(model, picture, "1", 1, method)
        assert found.dtype == torch.float32
        exact = combine(features.double(), gradient.double())
        assert torch.allclose(found.double(), exact, rtol=1e-4, atol=1e-6)
        rough = combine(features, gradient).double()
        assert (rough - exact).abs().max() > 10 * (found - exact).abs().max()


class OffThePath(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.side = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.body(x)
        self.side(x)
        return self.head(x.mean((2, 3)))


def test_a_layer_off_the_path_is_refused_with_one_that_would_do():
    model = load_model(module=OffThePath(), categories=["dog", "cat"], device="cpu")
    message = r"cat \(1\) does not depend on layer «side»: choose another, such as «body»"
    with pytest.raises(LayerError, match=message):
        run(model, torch.randn(1, 3, 4, 4), ["body", "side"], "cat")


class Unused(nn.Module):
    """A net whose scores depend on neither of its two layers, under three names."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 1)
        self.c = self.a

    def forward(self, x):
        self.a(x), self.b(x)
        return x.mean((2, 3))[:, :2]


def test_a_refused_layer_is_never_the_one_that_is_suggested():
    model = load_model(module=Unused(), categories=["dog", "cat"], device="cpu")
    for path, other in [("a", "b"), ("c", "b"), ("b", "a")]:
        with pytest.raises(LayerError) as error:
            run(model, torch.randn(1, 3, 4, 4), [path], "cat")
        assert str(error.value) == (
            f"cat (1) does not depend on layer «{path}»: choose another, such as «{other}»"
        )


class SecondUnused(nn.Module):
    """The recommended layer runs twice, and nothing comes of its second call."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x):
        x = self.last(self.first(x))
        self.last(x)
        return x.mean((2, 3))[:, :2]


def test_another_call_of_a_refused_layer_is_not_suggested():
    model = load_model(module=SecondUnused(), categories=["dog", "cat"], device="cpu")
    assert recommended_layer(model.layers).path == "last"
    with pytest.raises(LayerError, match=r"«last#1»: choose another, such as «first»"):
        run(model, torch.randn(1, 3, 4, 4), ["last#1"], "cat")


def test_a_layer_without_another_is_refused_without_a_suggestion():
    net = Unused()
    del net.b
    net.b = net.a
    model = load_model(module=net, categories=["dog", "cat"], device="cpu")
    with pytest.raises(
        LayerError, match="«a#0», and no other layer of this model has a grid of pl"
    ):
        run(model, torch.randn(1, 3, 4, 4), ["a"], "cat")


def test_nothing_of_the_caller_is_touched():
    model = untrained("resnet18")
    picture = torch.randn(1, 3, 64, 64)
    kept, version = picture.clone(), picture._version
    before = [(p, p._version) for p in model.module.parameters()]
    with torch.inference_mode():
        inside = a_map(model, picture, "layer4.1", 0)
    assert torch.equal(inside, a_map(model, picture, "layer4.1", 0))
    assert torch.equal(picture, kept)
    assert (picture._version, picture.requires_grad, picture.grad) == (version, False, None)
    assert all(p._version == v and p.grad is None and not p.requires_grad for p, v in before)


def test_hooks_are_two_a_layer_and_gone():
    model = untrained("resnet18")
    request = Request(
        model,
        torch.randn(1, 3, 64, 64),
        tuple(LayerCall(find_layer(model.layers, path)) for path in ("layer3", "layer4")),
        parse_target(0, model.categories),
    )
    get_method("grad-cam").run(request)
    assert request.ledger.summary() == {"registered": 4, "removed": 4, "live": 0, "foreign": 0}
    assert {(r.kind, r.path) for r in request.ledger.records} == {
        (kind, path) for kind in ("forward", "full_backward") for path in ("layer3", "layer4")
    }
