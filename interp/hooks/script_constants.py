"""What stands at the top of a script: the model where this package loads it, and the pictures."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from interp.hooks.script_package import quoted
from interp.models.catalog import DEFAULT_MODEL
from interp.models.loading import LoadedModel
from interp.picture import sample_pictures


def constants(
    model: LoadedModel, picture: str, frame: int, seconds: Sequence[str], files: Mapping[str, str]
) -> list[str]:
    """The model where this package loads it, the picture, and the second pictures.

    Parameters
    ----------
    model : LoadedModel
    picture, frame : of the first picture.
    seconds : what the recipe names the second pictures by.
    files : their files, by those names, where they are called otherwise.
    """
    lines = _load_model(model) if by_interp(model) else []
    if uses_samples(picture, seconds):
        why = "  # scikit-image brings them along"
        lines.append(f'SAMPLES = pathlib.Path(skimage.__file__).parent / "data"{why}')
    if _is_sample(picture):
        lines.append(f"PICTURE = SAMPLES / {quoted(Path(picture).name)}")
    else:
        lines.append(f"PICTURE = {quoted(picture)}  # the path of your picture")
    if frame:
        lines.append(f"FRAME = {frame}  # of the picture, from 0")
    taken = {picture}
    for number, name in enumerate(seconds, 1):
        sample = sample_pictures().get(name)
        if sample is not None:
            lines.append(f"SECOND_{number} = SAMPLES / {quoted(sample.name)}")
            continue
        hashed = re.fullmatch(r"[0-9a-f]{64}", name)
        file = files.get(name, "second.png" if hashed else name)
        if hashed and file in taken:  # every picture of a camera has the same name
            file = f"{name[:8]} {file}"
        taken.add(file)
        note = f"the path of the file whose SHA-256 is {name}" if hashed else "its path"
        lines.append(f"SECOND_{number} = {quoted(file)}  # {note}")
    return lines


def uses_samples(picture: str, seconds: Sequence[str]) -> bool:
    """Whether one of the pictures is a sample."""
    return _is_sample(picture) or not sample_pictures().keys().isdisjoint(seconds)


def _is_sample(picture: str) -> bool:
    """Whether a path is that of a sample; a name alone may be that of another file."""
    return Path(picture) in sample_pictures().values()


def _load_model(model: LoadedModel) -> list[str]:
    """The call of this package that loads the same net, with the same names and transforms."""
    arguments = [quoted(model.spec.name)]
    if model.source == "untrained":
        arguments.append('weights="none"')
    elif model.source == "file":
        name = model.weights.removeprefix("file:")
        arguments.append(f"weights={quoted(str(model.file or name))}")
    arguments.append('device="cpu"')
    if model.source != "bundled" and _own_categories(model):
        arguments.append(f"categories=[{', '.join(map(quoted, model.categories))}]")
    if has_own_preset(model):
        arguments.append(f"transforms={model.preset!r}")
    line = f"MODEL = load_model({', '.join(arguments)})"
    if len(line) <= 96:
        return [line]
    return ["MODEL = load_model(", *(f"    {argument}," for argument in arguments), ")"]


def _own_categories(model: LoadedModel) -> bool:
    """Whether the names of the classes may be others than `load_model` would give by itself."""
    numbered = tuple(f"class {index}" for index in range(len(model.categories)))
    known = [entry.categories for entry in model.spec.entries]
    if model.source == "untrained":
        return model.categories != model.spec.default.categories
    return model.categories not in [numbered, *known]


def by_interp(model: LoadedModel) -> bool:
    """Whether the script loads the model by this package, since torchvision alone cannot."""
    return model.source == "file" or model.spec.name == DEFAULT_MODEL


def has_own_preset(model: LoadedModel) -> bool:
    """Whether the preparation may be another than `load_model` would take by itself."""
    if model.source == "untrained":
        return model.preset != model.spec.default.preset
    return any(entry.preset != model.preset for entry in model.spec.entries)
