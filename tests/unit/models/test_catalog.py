import random
import time
import warnings

import numpy as np
import pytest
import torch
import torchvision
from torchvision.models import get_model, get_model_weights, list_models
from torchvision.models.regnet import BlockParams

from interp.errors import ModelError
from interp.geometry import Preset
from interp.models import catalog as module
from interp.models.catalog import build, build_arguments, catalog, get_spec

NAMES = list_models(module=torchvision.models)
SMALLEST = {}
for _spec in catalog().values():
    SMALLEST.setdefault(_spec.family, _spec.name)
OF_EACH_KIND = [*list(SMALLEST.values())[1:], "vit_l_16", "vit_h_14"]  # these by input size too
CHEAP = ["efficientnet_lite0", "googlenet", "squeezenet1_1", "mnasnet0_5", "regnet_x_400mf"]


@pytest.fixture
def on_meta(monkeypatch):
    """Nets without values: RegNet's builder computes with tensors, which must be real."""
    real = BlockParams.from_init_params.__func__

    def from_init_params(cls, *args, **kwargs):
        with torch.device("cpu"):
            return real(cls, *args, **kwargs)

    def meta_model(name, **kwargs):
        with torch.device("meta"):
            return get_model(name, **kwargs)

    monkeypatch.setattr(BlockParams, "from_init_params", classmethod(from_init_params))
    monkeypatch.setattr(module, "get_model", meta_model)
    return meta_model


def shapes(net):
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def test_every_classifier_and_every_weights_entry():
    listed = catalog()
    assert len(NAMES) == 80
    assert set(listed) == {"efficientnet_lite0", *NAMES}
    for name in NAMES:
        weights = get_model_weights(name)
        spec = listed[name]
        assert {entry.name for entry in spec.entries} == {member.name for member in weights}
        assert spec.default.name == weights["DEFAULT"].name
        for entry in spec.entries:
            member = weights[entry.name]
            assert entry.url == member.url
            assert entry.url.endswith("/" + entry.file_name)
            assert entry.parameters == member.meta["num_params"]
            assert entry.megabytes == member.meta["_file_size"]
            assert entry.preset == Preset.from_torchvision(member.transforms())
            assert list(entry.categories) == (member.meta["categories"] or [])
            if entry.categories:
                assert entry.accuracy == member.meta["_metrics"]["ImageNet-1K"]["acc@1"]
            else:
                assert (name, entry.name, entry.accuracy) == ("vgg16", "IMAGENET1K_FEATURES", None)


def test_bundled_first_then_families_together():
    specs = list(catalog().values())
    assert specs[0].name == "efficientnet_lite0"
    families = [spec.family for spec in specs[1:]]
    assert [f for f, g in zip(families, ["", *families], strict=False) if f != g] == sorted(
        set(families), key=str.casefold
    )
    assert [s.name for s in specs if s.family == "ResNet"] == [
        "resnet18",
        "resnet34",
        "resnet50",
        "resnet101",
        "resnet152",
    ]


def test_bundled_entry():
    entry = get_spec("efficientnet_lite0").default
    assert (entry.name, entry.url, entry.accuracy) == ("BUNDLED", None, 75.1)
    assert entry.categories[967] == "espresso"
    assert (entry.preset.crop_size, entry.preset.resize_size) == (224, 256)
    assert entry.preset.mean == (127 / 255,) * 3
    assert entry.preset.std == (128 / 255,) * 3


@pytest.mark.parametrize(
    ("name", "family", "title"),
    [
        ("efficientnet_lite0", "EfficientNet-Lite", "EfficientNet-Lite0"),
        ("resnet50", "ResNet", "ResNet-50"),
        ("vit_b_16", "ViT", "ViT-B/16"),
        ("efficientnet_v2_s", "EfficientNetV2", "EfficientNetV2-S"),
        ("regnet_y_400mf", "RegNet Y", "RegNet Y 400MF"),
        ("regnet_x_1_6gf", "RegNet X", "RegNet X 1.6GF"),
        ("mobilenet_v3_large", "MobileNetV3", "MobileNetV3 Large"),
        ("vgg16_bn", "VGG", "VGG-16 BN"),
        ("wide_resnet50_2", "Wide ResNet", "Wide ResNet-50-2"),
        ("shufflenet_v2_x0_5", "ShuffleNetV2", "ShuffleNetV2 ×0.5"),
        ("convnext_tiny", "ConvNeXt", "ConvNeXt-Tiny"),
    ],
)
def test_titles(name, family, title):
    spec = get_spec(name)
    assert (spec.family, spec.title) == (family, title)


def test_titles_are_distinct_and_none_is_a_bare_name():
    titles = {spec.title for spec in catalog().values()}
    assert len(titles) == 81
    assert not titles & set(NAMES)


def test_a_model_newer_than_the_table_keeps_its_name():
    assert module._title("hypernet_x") == ("hypernet", "hypernet_x")


def test_unknown_model_names_the_closest():
    with pytest.raises(ModelError, match=r"no model 'resnet5'.*resnet50.*interp models"):
        get_spec("resnet5")
    with pytest.raises(ModelError) as error:
        get_spec("zzzzzzzz")
    assert "did you mean" not in str(error.value)
    assert "\n" not in str(error.value)


def test_catalogue_is_quick_and_cannot_be_changed():
    begun = time.perf_counter()
    catalog.__wrapped__()
    assert time.perf_counter() - begun < 1
    assert catalog() is catalog()
    with pytest.raises(TypeError):
        catalog()["mine"] = get_spec("resnet18")


def test_every_net_is_the_one_torchvision_fills_with_that_entry(on_meta, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", lambda *_, **__: None)
    monkeypatch.setattr(torchvision.models.WeightsEnum, "get_state_dict", lambda *_, **__: {})
    for spec in (get_spec(name) for name in OF_EACH_KIND):
        for entry in {repr(build_arguments(spec, e)): e for e in spec.entries}.values():
            ours = build(spec, entry)
            theirs = on_meta(spec.name, weights=get_model_weights(spec.name)[entry.name])
            assert shapes(ours) == shapes(theirs), (spec.name, entry.name)
            assert sum(p.numel() for p in ours.parameters()) == entry.parameters
            for flag in ("transform_input", "aux_logits", "image_size"):
                assert getattr(ours, flag, None) == getattr(theirs, flag, None), (spec.name, flag)


def test_untrained_nets_have_the_shape_of_the_default(on_meta):
    for name in ("vit_h_14", "googlenet", "inception_v3", "vgg11"):
        spec = get_spec(name)
        assert shapes(build(spec, None)) == shapes(build(spec, spec.default))


def test_every_net_takes_another_number_of_classes(on_meta):
    classes = 17
    for name in OF_EACH_KIND:
        spec = get_spec(name)
        net, whole = shapes(build(spec, None, classes)), shapes(build(spec, None))
        changed = {key for key in whole if whole[key] != net[key]}
        assert changed, name
        assert all(net[key] == (classes, *whole[key][1:]) for key in changed), name


@pytest.mark.parametrize("name", CHEAP)
def test_builds_in_silence_the_same_each_time(name, capfd):
    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    spec = get_spec(name)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("error")
        first, second = build(spec, None).state_dict(), build(spec, None).state_dict()
    assert capfd.readouterr() == ("", "")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.array_equal(np.random.get_state()[1], before[2])
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not any(tensor.is_inference() for tensor in first.values())


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_no_warning_about_initialisation(name, on_meta):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for entry in (None, get_spec(name).default):
            build(get_spec(name), entry)
