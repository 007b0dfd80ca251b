"""From a name, a file or a module to a net that is ready to be explained."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from interp.errors import ModelError, WeightsError
from interp.geometry import Preset
from interp.models.catalog import (
    DEFAULT_MODEL,
    ModelSpec,
    WeightsEntry,
    build,
    get_spec,
)
from interp.models.device import choose_device
from interp.models.efficientnet_lite import load_bundled_state
from interp.models.fitting import fill, nearest, without_auxiliary
from interp.models.foreign import count_outputs, frozen_alias
from interp.models.loaded import LoadedModel, Source, example_of
from interp.models.weights import availability, fetch, read_state

__all__ = ["LoadedModel", "load_model"]

Progress = Callable[[int, int], None]

_IMAGENET = Preset(
    crop_size=224,
    resize_size=256,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    interpolation="bilinear",
)
_SUFFIXES = (".pth", ".pt", ".safetensors")


def load_model(
    name: str | None = None,
    weights: str | os.PathLike[str] = "default",
    device: str = "auto",
    *,
    module: nn.Module | None = None,
    categories: Sequence[str] | None = None,
    transforms: Any = None,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a classifier.

    Parameters
    ----------
    name : str, optional
        A model of the catalogue; the bundled EfficientNet-Lite0 where neither it nor `module` is
        given.
    weights : str or path
        "default", the name of a weights entry, a state dict file, or "none" for an untrained net
        (the same one each time). The first two are downloaded where they are not on this machine;
        nothing but "none" is ever random.
    device : str
        "auto" takes CUDA, then MPS, then the CPU, and leaves a `module` where it is.
    module : nn.Module, optional
        Any net that returns (N, classes) logits. It is not changed: the loaded net is a copy whose
        frozen parameters share the memory of its own.
    categories : sequence of str, optional
        Names of the outputs, for a file, an untrained net or a module. Otherwise those of
        ImageNet where the number of outputs is the same, and "class 0", "class 1", … elsewhere
        and for a module.
    transforms : Preset or torchvision's ImageClassification, optional
        For a file, an untrained net or a module.
    progress : callable, optional
        Called with the bytes downloaded so far and in all (0 where unknown).

    Returns
    -------
    LoadedModel

    Raises
    ------
    WeightsError
        The weights cannot be had or do not fit.
    ModelError
        There is no such model or device, or the module is no classifier.
    """
    target = choose_device(device, module)
    preset = _preset(transforms)
    names = tuple(categories) if categories is not None else None
    with torch.inference_mode(False):
        if module is not None:
            if name is not None or weights != "default":
                raise ModelError("a module has its own weights: give it without name and weights")
            return _from_module(module, names, preset or _IMAGENET, target)
        spec = get_spec(name if name is not None else DEFAULT_MODEL)
        wanted = _wanted(spec, weights)
        if isinstance(wanted, WeightsEntry):
            if names is not None or preset is not None:
                raise ModelError(
                    f"the weights {wanted.name} have categories and transforms of their own: give "
                    "others only with a file, a module or weights=none"
                )
            return _published(spec, wanted, target, progress)
        if wanted is None:
            return _untrained(spec, names, preset, target)
        return _from_file(spec, wanted, names, preset, target)


def _wanted(spec: ModelSpec, weights: str | os.PathLike[str]) -> WeightsEntry | Path | None:
    """The published weights, the file, or None for an untrained net."""
    if not isinstance(weights, str):
        return Path(weights)
    if weights == "none":
        return None
    if weights == "default":
        return spec.default
    for entry in spec.entries:
        if entry.name == weights.upper():
            return entry
    path = Path(weights).expanduser()
    if path.suffix in _SUFFIXES or len(path.parts) > 1 or path.is_file():
        return path
    have = ", ".join(entry.name for entry in spec.entries)
    raise WeightsError(
        f"{spec.name} has no weights {weights!r}: take default, none, {have} or a file "
        f"({', '.join(_SUFFIXES)})"
    )


def _published(
    spec: ModelSpec, entry: WeightsEntry, device: torch.device, progress: Progress | None
) -> LoadedModel:
    source: Source
    if entry.url is None:
        path, source, state = Path(entry.file_name), "bundled", load_bundled_state()
    else:
        source = "on disk" if availability(spec, entry).kind == "on disk" else "downloaded"
        path = fetch(spec, entry, progress)
        state = read_state(path)
    module = build(spec, entry)
    fill(module, state, str(path), len(entry.categories))
    return LoadedModel(
        _settle(module, device), spec, entry.name, source, entry.categories, device, entry.preset
    )


def _untrained(
    spec: ModelSpec,
    names: tuple[str, ...] | None,
    preset: Preset | None,
    device: torch.device,
) -> LoadedModel:
    names = spec.default.categories if names is None else names
    module = build(spec, None, len(names))
    preset = preset or spec.default.preset
    return LoadedModel(_settle(module, device), spec, "none", "untrained", names, device, preset)


def _from_file(
    spec: ModelSpec,
    path: Path,
    names: tuple[str, ...] | None,
    preset: Preset | None,
    device: torch.device,
) -> LoadedModel:
    state = read_state(path)
    entry, classes = nearest(spec, path.name, state)
    module = without_auxiliary(build(spec, entry, classes))
    fill(module, state, str(path), classes)
    if names is None:
        names = entry.categories if classes == len(entry.categories) else _numbered(classes)
    elif len(names) != classes:
        raise WeightsError(f"{path} tells {classes} classes apart, but {len(names)} were named")
    preset = preset or entry.preset
    weights = f"file:{path.name}"
    settled, whole = _settle(module, device), path.absolute()
    return LoadedModel(settled, spec, weights, "file", names, device, preset, whole)


def _settle(module: nn.Module, device: torch.device) -> nn.Module:
    module = module.eval().requires_grad_(False).to(device)
    if device.type == "cpu" and any(isinstance(part, nn.Conv2d) for part in module.modules()):
        return module.to(memory_format=torch.channels_last)  # measured 1.2 to 1.4 times faster
    return module


def _from_module(
    module: nn.Module, names: tuple[str, ...] | None, preset: Preset, device: torch.device
) -> LoadedModel:
    copy = frozen_alias(module).eval().to(device)
    classes = count_outputs(copy, example_of(copy, preset, device))
    kind = getattr(module, "original_name", type(module).__name__)
    if names is None:
        names = _numbered(classes)
    elif len(names) != classes:
        raise ModelError(f"{kind} has {classes} outputs, but {len(names)} categories were named")
    tensors = tuple(copy.parameters())
    entry = WeightsEntry(
        name="module",
        url=None,
        file_name="",
        megabytes=sum(tensor.nbytes for tensor in tensors) / 2**20,
        accuracy=None,
        parameters=sum(tensor.numel() for tensor in tensors),
        preset=preset,
        categories=names,
    )
    spec = ModelSpec(kind, kind, "module", (entry,))
    return LoadedModel(copy, spec, "module", "module", names, device, preset)


def _numbered(classes: int) -> tuple[str, ...]:
    return tuple(f"class {index}" for index in range(classes))


def _preset(transforms: Any) -> Preset | None:
    if transforms is None or isinstance(transforms, Preset):
        return transforms
    return Preset.from_torchvision(transforms)
