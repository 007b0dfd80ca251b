import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import functional as F

from interp import explain, explain_layers, list_methods, load_model, open_picture, predict
from interp.errors import (
    InterpError,
    LayerError,
    MethodError,
    ModelError,
    PictureError,
    TargetError,
)
from interp.geometry import Preset
from interp.hooks.ledger import audit
from interp.targets import Target


@pytest.fixture(scope="module")
def espresso(coffee):
    return open_picture(coffee)


@pytest.fixture(scope="module")
def resnet():
    return load_model("resnet18", weights="none", device="cpu")


def painted(draw, size=(8, 8)):
    """A picture of these pixels: uint8 (h, w, 3) filled by `draw`."""
    pixels = np.zeros((*size, 3), np.uint8)
    draw(pixels)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return open_picture(buffer.getvalue())


# --- what the bundled model says of the sample pictures


def test_what_is_on_the_sample_pictures(bundled, coffee, chelsea, camera):
    names, odds = zip(
        *(
            (top.name, top.probability)
            for path in (coffee, chelsea, camera)
            for top in predict(bundled, open_picture(path), k=1)
        ),
        strict=True,
    )
    assert names[0] == "espresso"
    assert names[1] in ("tiger cat", "Egyptian cat")
    assert names[2] == "tripod"
    assert odds[0] >= 0.9
    assert 0.3 <= odds[1] <= 0.5
    assert odds[2] >= 0.9


@pytest.mark.parametrize("name", ["coffee", "chelsea", "camera"])
def test_the_main_job(bundled, picture_path, name):
    picture = open_picture(picture_path(name))
    found = explain(bundled, picture)
    assert found.target.index == found.predictions[0].index
    assert found.layers == ("features.8.1",)
    assert found.map.shape == (7, 7)
    assert found.map.max() > 0
    assert np.isfinite(found.map).all()
    assert found.on_picture().shape == picture.size[::-1]
    assert found.notes == ()
    assert found.hooks == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}
    assert not found.signed
    assert 0 < found.seconds < 60
    assert (found.model_name, found.weights, found.source) == (
        *("efficientnet_lite0", "BUNDLED", "bundled"),
    )
    assert found.logits.shape == (1000,)
    assert audit(bundled.module) == []


CLASSES = {"chelsea": 285, "coffee": 967, "camera": 872, "motorcycle_left": 665}
PAIRS = [
    ("chelsea", "coffee"),
    ("coffee", "camera"),
    ("camera", "motorcycle_left"),
    ("chelsea", "camera"),
]


@pytest.mark.parametrize("square", ["resized", "cropped"])
@pytest.mark.parametrize("pair", PAIRS, ids="|".join)
def test_a_class_is_told_from_another(bundled, picture_path, pair, square):
    both = Image.new("RGB", (448, 224))
    for left, name in zip((0, 224), pair, strict=True):
        image = Image.open(picture_path(name)).convert("RGB")
        if square == "resized":
            half = image.resize((224, 224))
        else:
            half = F.center_crop(F.resize(image, 224), [224, 224])
        both.paste(half, (left, 0))
    buffer = io.BytesIO()
    both.save(buffer, "PNG")
    picture = open_picture(buffer.getvalue())
    for half, name in zip((slice(0, 224), slice(224, 448)), pair, strict=True):
        heat = explain(bundled, picture, target=CLASSES[name], fit="stretch").on_picture()
        assert heat.shape == (224, 448)
        positive = heat.clip(min=0)
        assert positive[:, half].sum() / positive.sum() >= 0.75, name


# --- predictions


def test_predictions_are_the_highest_scores(resnet, espresso):
    found = predict(resnet, espresso, k=7)
    with torch.inference_mode():
        logits = resnet.module(resnet.prepare(espresso))[0]
    values, indices = logits.topk(7)
    assert [p.index for p in found] == indices.tolist()
    assert [p.logit for p in found] == values.tolist()
    odds = logits.softmax(0)[indices].tolist()
    assert [p.probability for p in found] == pytest.approx(odds)
    assert [p.name for p in found] == [resnet.categories[i] for i in indices]
    assert predict(resnet, espresso)[:5] == found[:5]
    assert len(predict(resnet, espresso, k=5000)) == 1000
    assert explain(resnet, espresso).predictions == tuple(found[:5])
    stretched = predict(resnet, espresso, fit="stretch")
    assert stretched[0].logit != found[0].logit


@pytest.mark.parametrize("k", [0, -1])
def test_no_predictions_are_no_answer(resnet, espresso, k):
    with pytest.raises(TargetError, match="ask for one or more"):
        predict(resnet, espresso, k=k)


class Constant(nn.Module):
    """Scores that do not change; the layer before them is a picture of its own."""

    def __init__(self, scores, *, weight=0.0):
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        self.scores = nn.Parameter(torch.tensor([scores]))
        nn.init.constant_(self.conv.weight, weight)

    def forward(self, x):
        return self.scores + self.conv(x).mean((1, 2, 3))[:, None]


SMALL = Preset(8, 8, (0.0,) * 3, (1.0,) * 3, "bilinear")


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([0.0] * 6, [0, 1, 2, 3, 4]),
        ([1.0, 2.0, 2.0, 1.0, 3.0, 3.0], [4, 5, 1, 2, 0]),
        ([500.0, 100.0, 300.0, 200.0, 400.0, 0.0], [0, 4, 2, 3, 1]),  # probabilities of 0
    ],
)
def test_the_top_prediction_is_the_target_also_among_equals(espresso, scores, order):
    model = load_model(module=Constant(scores), transforms=SMALL, device="cpu")
    found = explain(model, espresso)
    assert [p.index for p in found.predictions] == order
    assert found.target.index == order[0]


def test_one_name_for_a_single_logit_is_that_of_its_positive_side(espresso):
    model = load_model(module=Constant([1.5]), categories=["cat"], transforms=SMALL, device="cpu")
    p = 1 / (1 + np.exp(-1.5))
    first, second = predict(model, espresso)
    assert (first.name, first.index, first.logit) == ("cat", 1, 1.5)
    assert (second.name, second.index, second.logit) == ("not cat", 0, -1.5)
    assert (first.probability, second.probability) == pytest.approx((p, 1 - p))
    assert explain(model, espresso, target="cat").target.index == 1
    assert explain(model, espresso, target=0).target.label == "not cat (0)"


# --- layers as people give them


def test_one_layer_in_every_way_to_write_it(resnet, espresso):
    expected = explain(resnet, espresso, layers="layer4").map
    for layers in ("layer4#0", ["layer4"], ("layer4",), (name for name in ["layer4"]), {"layer4"}):
        found = explain(resnet, espresso, layers=layers)
        assert found.layers == ("layer4",)
        assert np.array_equal(found.map, expected)


def test_by_default_the_recommended_layer(resnet, espresso):
    found = explain(resnet, espresso)
    assert found.layers == ("layer4.1",)
    assert np.array_equal(found.map, explain(resnet, espresso, layers="layer4.1").map)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("layer5", "no layer «layer5» in this model: did you mean layer"),
        ("", "no layer «» in this model"),
        ([], "no layer was named: name one, or leave it out for the recommended one"),
        (iter([]), "no layer was named"),
        ("fc", r"«fc» \(Linear\) returns 1×1000.*choose another, such as «layer4.1»"),
        ("avgpool", "returns 1×512×1×1, which has no grid of places"),
        (["layer4", "fc"], r"«fc» \(Linear\)"),
        ("layer4#1", r"«layer4» runs 1 time\(s\): its calls are layer4#0"),
        ("layer4.0.relu#2", "its calls are layer4.0.relu#0, layer4.0.relu#1"),
        ("layer4#", "«layer4#» is no call of a layer: write «layer4#0» for its first"),
        ("layer4#-1", "is no call of a layer"),
        ("layer4#" + "9" * 5000, "is no call of a layer"),
        (["layer4", None], "a layer is named by its path, such as «layer4.1»: NoneType is no name"),
        (4, "int is no name"),
        (b"layer4", "int is no name"),
        (nn.Conv2d(1, 1, 1), "Conv2d is no name"),
        (nn.Sequential(nn.ReLU()), "ReLU is no name"),
    ],
)
@pytest.mark.parametrize("function", [explain, explain_layers])
def test_layers_that_will_not_do(resnet, espresso, function, layers, message):
    if isinstance(layers, type(iter([]))):
        layers = iter([])
    with pytest.raises(LayerError, match=message) as error:
        function(resnet, espresso, layers=layers)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"method": "gradcam"}, MethodError, "no method «gradcam»: there are grad-cam"),
        ({"steps": 9}, MethodError, r"grad-cam has no parameter «steps» \(it has none\)"),
        ({"fit": "fill"}, PictureError, "no fit «fill»: there are crop, stretch, letterbox"),
        ({"target": "expresso"}, TargetError, "did you mean espresso"),
        ({"target": 1000}, TargetError, "classes are 0 to 999"),
        ({"target": -1}, TargetError, "classes are 0 to 999"),
        ({"target": Target(1000)}, TargetError, "classes are 0 to 999"),
        ({"target": "tabby-1000"}, TargetError, "classes are 0 to 999"),
        ({"layers": "fc"}, LayerError, "no grid of places"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(
    resnet, espresso, monkeypatch, options, kind, message
):
    resnet.layers  # noqa: B018  the table is made by a run of its own

    def never(*_, **__):
        raise AssertionError("the model ran")

    monkeypatch.setattr(type(resnet.module), "forward", never)
    with pytest.raises(kind, match=message) as error:
        explain(resnet, espresso, **options)
    assert isinstance(error.value, InterpError)


def test_what_is_no_picture_or_no_model_is_refused(resnet, espresso, coffee):
    for thing in (str(coffee), coffee, espresso.image, torch.zeros(1, 3, 224, 224)):
        for function in (explain, predict):
            with pytest.raises(PictureError, match="is no picture: open it with open_picture"):
                function(resnet, thing)
    for thing in ("resnet18", resnet.module, None):
        for function in (explain, predict):
            with pytest.raises(ModelError, match="is no loaded model: load it with load_model"):
                function(thing, espresso)


# --- several layers


def test_several_layers_each_with_its_map_from_one_pass(resnet, espresso):
    names = ["layer3.0", "layer4", "layer3.1", "layer1.0.relu#1"]
    found = explain_layers(resnet, espresso, names, target=3)
    assert [one.layers for one in found] == [(name,) for name in names]
    for name, one in zip(names, found, strict=True):
        assert np.array_equal(one.map, explain(resnet, espresso, layers=name, target=3).map)
        assert one.ledger is found[0].ledger
        assert one.seconds == found[0].seconds
        assert one.hooks["live"] == 0
    assert sum(record.kind == "forward" for record in found[0].ledger.records) == len(names)
    backwards = explain_layers(resnet, espresso, names[::-1], target=3)
    for one, other in zip(found, backwards[::-1], strict=True):
        assert np.array_equal(one.map, other.map)


def test_one_map_of_several_layers_is_the_mean_on_the_finest_grid(resnet, espresso):
    names = ("layer4", "layer3")
    coarse, fine = (one.map for one in explain_layers(resnet, espresso, names, target=3))
    assert (coarse.shape, fine.shape) == ((7, 7), (14, 14))
    scaled = [np.maximum(values, 0) / values.max() for values in (coarse, fine)]
    enlarged = nn.functional.interpolate(
        torch.tensor(scaled[0])[None, None], (14, 14), mode="bilinear", align_corners=False
    )[0, 0].numpy()
    expected = (enlarged + scaled[1]) / 2
    for order in (names, names[::-1]):
        found = explain(resnet, espresso, layers=order, target=3)
        assert found.layers == order
        assert found.map.shape == (14, 14)
        assert np.allclose(found.map, expected, atol=1e-6)


# --- what a map can be made of


class Linear(nn.Module):
    """One 8 × 8 channel, the red of the picture, and a head that reads it with these weights."""

    def __init__(self, weights):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 1, 1, bias=False), nn.Linear(64, 2, bias=False)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([1.0, 0, 0]).reshape(1, 3, 1, 1))
            self.head.weight.copy_(torch.as_tensor(weights, dtype=torch.float32).expand(2, 64))

    def forward(self, x):
        return self.head(self.conv(x).flatten(1))


def of_linear(weights, picture, **options):
    model = load_model(module=Linear(weights), transforms=SMALL, device="cpu")
    return explain(model, picture, layers="conv", target=0, fit="stretch", **options)


def test_the_map_lies_where_the_pixels_are():
    def draw(pixels):
        pixels[1, 6, 0] = 255

    found = of_linear(1.0, painted(draw))
    expected = np.zeros((8, 8), np.float32)
    expected[1, 6] = 1
    assert np.array_equal(found.map, expected)
    assert np.array_equal(found.on_picture(), expected)


def test_a_wide_picture_is_not_turned():
    def draw(pixels):
        pixels[:4, 32:40, 0] = 255  # 8 pixels wide and 4 high, upper right of 8 × 40

    heat = of_linear(1.0, painted(draw, (8, 40))).on_picture()
    assert heat.shape == (8, 40)
    assert heat[:4, 33:].min() > 0.3
    assert abs(heat[5:]).max() < 0.1
    assert abs(heat[:, :24]).max() < 0.1


@pytest.mark.parametrize(
    ("weights", "red", "note"),
    [
        (1.0, 255, "The map is flat (minimum 1, maximum 1)"),
        (-1.0, 255, "No value of the map is above zero (minimum -1, maximum -1)"),
        (0.0, 255, "The map is zero everywhere"),
        (1.0, 0, "The map is zero everywhere"),
        (float("nan"), 255, "64 of 64 values of the map are not finite numbers"),
        (float("inf"), 255, "64 of 64 values of the map are not finite numbers"),
    ],
)
def test_a_degenerate_map_is_reported_and_can_be_saved(tmp_path, weights, red, note):
    found = of_linear(weights, painted(lambda pixels: pixels[..., 0].fill(red)))
    assert any(text.startswith(note) for text in found.notes), found.notes
    assert len(found.save(tmp_path)) == 3
    assert found.hooks["live"] == 0
    if np.isfinite(weights):
        assert np.isfinite(found.map).all()


def test_a_layer_that_adds_nothing_to_a_mean_is_named():
    class Two(Linear):
        def __init__(self):
            super().__init__(1.0)
            self.minus = nn.Conv2d(1, 1, 1, bias=False)
            nn.init.constant_(self.minus.weight, -1.0)

        def forward(self, x):
            return self.head((-self.minus(self.conv(x))).flatten(1))

    def draw(pixels):
        pixels[2, 3, 0] = 255

    model = load_model(module=Two(), transforms=SMALL, device="cpu")
    picture = painted(draw)
    found = explain(model, picture, layers=["conv", "minus"], target=0, fit="stretch")
    # conv: red and weight 1; minus: −red and weight −1, so both are the same map.
    assert found.notes == ()
    assert found.map[2, 3] == 1
    nn.init.constant_(model.module.minus.weight, 1.0)
    found = explain(model, picture, layers=["conv", "minus"], target=0, fit="stretch")
    assert [note.partition(": ")[0] for note in found.notes[1:]] == ["conv", "minus"]
    assert found.map.max() == 0


def test_bfloat16_from_picture_to_map(espresso):
    model = load_model("resnet18", weights="none", device="cpu")
    half = load_model(module=model.module.bfloat16(), device="cpu")
    found = explain(half, espresso, target=3)
    assert found.map.dtype == found.logits.dtype == np.float32
    assert np.isfinite(found.map).all()
    assert found.map.any()


def test_every_method_does_the_main_job(bundled, espresso):
    for method in list_methods():
        found = explain(bundled, espresso, method=method.name)
        assert found.method == method.name
        assert found.signed == method.signed
        assert found.on_picture().shape == (400, 600)
        assert found.parameters == {p.name: p.default for p in method.parameters}


def test_the_grad_mode_of_the_caller_does_not_matter(resnet, espresso):
    expected = explain(resnet, espresso, target=1).map
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            assert np.array_equal(explain(resnet, espresso, target=1).map, expected)


def test_a_foreign_hook_is_counted_and_left_alone(espresso):
    model = load_model("squeezenet1_1", weights="none", device="cpu")
    fired = []
    handle = model.module.features.register_forward_hook(lambda *_: fired.append(1))
    found = explain(model, espresso)
    assert found.hooks["foreign"] == 1
    assert fired
    assert len(audit(model.module)) == 1
    handle.remove()
