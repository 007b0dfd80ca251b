"""Every torchvision classifier and the bundled one, read from torchvision's own registry."""

import difflib
import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import urlparse

import torch
import torchvision
from torch import nn
from torchvision.models import get_model, get_model_weights, list_models

from interp.errors import ModelError
from interp.geometry import Preset
from interp.models.efficientnet_lite import efficientnet_lite0

DEFAULT_MODEL = "efficientnet_lite0"

# Two builds at once would put back each other's state of the random generator.
_building = threading.Lock()

# name in the registry, family, title; what the pattern captures goes into the title
_NAMES = (
    (r"alexnet", "AlexNet", "AlexNet"),
    (r"convnext_(\w+)", "ConvNeXt", "ConvNeXt-{Word}"),
    (r"densenet(\d+)", "DenseNet", "DenseNet-{0}"),
    (r"efficientnet_(b\d)", "EfficientNet", "EfficientNet-{WORD}"),
    (r"efficientnet_v2_(\w)", "EfficientNetV2", "EfficientNetV2-{WORD}"),
    (r"googlenet", "GoogLeNet", "GoogLeNet"),
    (r"inception_v3", "Inception", "Inception v3"),
    (r"maxvit_(\w)", "MaxViT", "MaxViT-{WORD}"),
    (r"mnasnet(\d_\d+)", "MNASNet", "MNASNet {number}"),
    (r"mobilenet_v2", "MobileNetV2", "MobileNetV2"),
    (r"mobilenet_v3_(\w+)", "MobileNetV3", "MobileNetV3 {Word}"),
    (r"regnet_x_(\w+)", "RegNet X", "RegNet X {number}"),
    (r"regnet_y_(\w+)", "RegNet Y", "RegNet Y {number}"),
    (r"resnet(\d+)", "ResNet", "ResNet-{0}"),
    (r"resnext(\d+)_(\w+)", "ResNeXt", "ResNeXt-{0} {1}"),
    (r"shufflenet_v2_x(\d_\d)", "ShuffleNetV2", "ShuffleNetV2 ×{number}"),
    (r"squeezenet(\d_\d)", "SqueezeNet", "SqueezeNet {number}"),
    (r"swin_(\w)", "Swin", "Swin-{WORD}"),
    (r"swin_v2_(\w)", "SwinV2", "SwinV2-{WORD}"),
    (r"vgg(\d+)", "VGG", "VGG-{0}"),
    (r"vgg(\d+)_bn", "VGG", "VGG-{0} BN"),
    (r"vit_(\w)_(\d+)", "ViT", "ViT-{WORD}/{1}"),
    (r"wide_resnet(\d+)_(\d)", "Wide ResNet", "Wide ResNet-{0}-{1}"),
)


@dataclass(frozen=True)
class WeightsEntry:
    """One published set of weights of a model.

    Attributes
    ----------
    name : as in torchvision's enum, or "BUNDLED".
    url : where it is published; None where nothing is downloaded.
    file_name : what torch.hub looks for in its checkpoints folder.
    megabytes : size of the file in MiB, as published.
    accuracy : published ImageNet-1K top-1 in percent; None where there is none.
    parameters : published number of parameters.
    preset : the preprocessing these weights want.
    categories : name of each class in order; empty where the weights hold no classifier.
    """

    name: str
    url: str | None
    file_name: str
    megabytes: float
    accuracy: float | None
    parameters: int
    preset: Preset
    categories: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class ModelSpec:
    """One architecture and every set of weights published for it, the default first."""

    name: str
    title: str
    family: str
    entries: tuple[WeightsEntry, ...]

    @property
    def default(self) -> WeightsEntry:
        """The weights taken where none are named."""
        return self.entries[0]


@cache
def catalog() -> Mapping[str, ModelSpec]:
    """Every classifier by name: the bundled one first, then by family and size.

    Returns
    -------
    Mapping[str, ModelSpec]
        Read-only; no model is built for it.
    """
    found = [_spec(name) for name in list_models(module=torchvision.models)]
    found.sort(key=lambda spec: (spec.family.casefold(), spec.default.parameters, spec.name))
    return MappingProxyType({spec.name: spec for spec in (_bundled(), *found)})


def get_spec(name: str) -> ModelSpec:
    """The classifier of that name.

    Raises
    ------
    ModelError
        There is none; the message names the closest.
    """
    try:
        return catalog()[name]
    except KeyError:
        close = difflib.get_close_matches(name.lower(), catalog(), n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise ModelError(
            f"there is no model {name!r}: {meant}«python -m interp models» lists all"
        ) from None


def build(spec: ModelSpec, entry: WeightsEntry | None, classes: int | None = None) -> nn.Module:
    """The untrained net that the state dict of `entry` fits.

    As torchvision's builder leaves it with these weights: the same input size, `transform_input`
    and auxiliary heads.

    Parameters
    ----------
    spec : ModelSpec
        A model of the catalogue.
    entry : WeightsEntry or None
        None is the net of the default entry, initialised as torchvision initialises it.
    classes : int, optional
        Outputs of the head; otherwise as many as the entry has.

    Returns
    -------
    nn.Module
        In training mode, on the CPU, the same values each time; the global random generator stays
        where it was.
    """
    arguments = build_arguments(spec, entry)
    if classes is not None:
        arguments["num_classes"] = classes
    with (
        _building,
        torch.inference_mode(False),
        torch.device("cpu"),
        torch.random.fork_rng(devices=[]),
    ):
        torch.default_generator.manual_seed(0)
        if spec.name == DEFAULT_MODEL:
            return efficientnet_lite0(**arguments)
        return get_model(spec.name, weights=None, **arguments)


def build_arguments(spec: ModelSpec, entry: WeightsEntry | None) -> dict[str, Any]:
    """What torchvision's builder sets for these weights; two entries that agree share one net."""
    shape = entry or spec.default
    arguments: dict[str, Any] = {"num_classes": len(shape.categories) or 1000}
    if spec.family == "ViT":
        arguments["image_size"] = shape.preset.crop_size
    if spec.family in ("GoogLeNet", "Inception"):
        arguments["transform_input"] = True
        arguments["aux_logits"] = spec.family == "Inception"
    if spec.family in ("GoogLeNet", "Inception", "VGG"):
        # Slow, and for nothing where weights follow; left unsaid, the first two warn.
        arguments["init_weights"] = entry is None
    return arguments


def _spec(name: str) -> ModelSpec:
    weights = get_model_weights(name)
    default = weights["DEFAULT"]
    members = [default, *(member for member in weights if member is not default)]
    family, title = _title(name)
    return ModelSpec(name, title, family, tuple(_entry(member) for member in members))


def _entry(member: Any) -> WeightsEntry:
    accuracy = member.meta["_metrics"].get("ImageNet-1K", {}).get("acc@1", math.nan)
    return WeightsEntry(
        name=member.name,
        url=member.url,
        file_name=PurePosixPath(urlparse(member.url).path).name,
        megabytes=member.meta["_file_size"],
        accuracy=None if math.isnan(accuracy) else accuracy,
        parameters=member.meta["num_params"],
        preset=Preset.from_torchvision(member.transforms()),
        categories=tuple(member.meta["categories"] or ()),
    )


def _title(name: str) -> tuple[str, str]:
    for pattern, family, title in _NAMES:
        match = re.fullmatch(pattern, name)
        if match:
            return family, title.format(*match.groups(), **_forms("".join(match.groups()[:1])))
    return name.split("_")[0], name  # newer than this table


def _forms(part: str) -> dict[str, str]:
    upper = part.upper()
    return {"Word": part.capitalize(), "WORD": upper, "number": upper.replace("_", ".")}


def _bundled() -> ModelSpec:
    entry = WeightsEntry(
        name="BUNDLED",
        url=None,
        file_name="efficientnet-lite0-57934424.pth",
        megabytes=17.954,
        accuracy=75.1,
        parameters=4652008,
        preset=Preset(
            crop_size=224,
            resize_size=256,
            mean=(127 / 255,) * 3,
            std=(128 / 255,) * 3,
            interpolation="bicubic",
        ),
        categories=tuple(get_model_weights("efficientnet_b0")["DEFAULT"].meta["categories"]),
    )
    return ModelSpec(DEFAULT_MODEL, "EfficientNet-Lite0", "EfficientNet-Lite", (entry,))
