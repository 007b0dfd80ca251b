"""How a script loads the net and the picture, by where the weights came from."""

import torch

from interp.geometry import Fit
from interp.hooks.script_constants import by_interp, has_own_preset
from interp.hooks.script_package import package_path
from interp.models.catalog import build_arguments
from interp.models.loading import LoadedModel

_NO_IN_PLACE = """\
    # A full backward hook raises where its module's output is then changed in place.
    for module in net.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
"""

_EXISTS = """\
    if not pathlib.Path(path).is_file():
        raise SystemExit(f"there is no picture {path}: write its path at the top of this script")
"""
_OPEN = """\
    image = ImageOps.exif_transpose(image)
    if image.mode[0] in "IF":  # scaled by the range of its own values, as the lab shows it
        values = numpy.asarray(image, dtype=float)
        finite = numpy.isfinite(values)
        low, high = values[finite].min(), values[finite].max()
        values = (numpy.where(finite, values, low) - low) * (255 / (high - low or 1))
        image = Image.fromarray(numpy.rint(values).astype("uint8"))
    if image.has_transparency_data:  # on white, as the lab shows it
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    image = image.convert("RGB")
"""


def imports(model: LoadedModel, fit: Fit, *, counts: bool, samples: bool) -> list[str]:
    """The import lines; `counts` where a hook counts its calls, `samples` where one is opened."""
    packaged = by_interp(model)
    lines = ["import itertools"] if counts else []
    lines += ["import pathlib", *(["import sys"] if packaged else []), ""]
    lines += [] if packaged else ["import numpy"]
    lines += ["import skimage"] if samples else []
    lines.append("import torch")
    if packaged:
        lines += ["", "# Loads the net, its weights and the picture."]
        lines += [package_path(), "from interp import load_model, open_picture"]
        preset = ["from interp.geometry import Preset"] if has_own_preset(model) else []
        return [*lines, *preset]
    if model.source != "module":
        lines.append("import torchvision")
    lines.append("from PIL import Image, ImageOps")
    if not _by_entry(model, fit):
        lines.append("from torchvision import transforms")
    return lines


def load_net(model: LoadedModel, *, in_place: bool) -> list[str]:
    """The function that returns the net; `in_place` where its `inplace` flags may stay."""
    lines, name = ["def load_net():"], model.spec.name
    if model.source == "module":
        lines.append("    net = None  # your own network")
        lines.append("    if net is None:")
        lines.append('        raise SystemExit("put your own network into load_net")')
    elif by_interp(model):
        lines.append("    net = MODEL.module.requires_grad_(True)")
    elif model.source == "untrained":
        options = build_arguments(model.spec, None) | {"num_classes": len(model.categories)}
        lines.append("    torch.manual_seed(0)  # the weights are random, and these are the lab's")
        lines.append("    net = torchvision.models.get_model(")
        lines.append(f'        "{name}", weights=None, {_arguments(options)}')
        lines.append("    )")
    else:
        lines.append(f'    net = torchvision.models.get_model("{name}", weights="{model.weights}")')
    if not in_place:
        lines += _NO_IN_PLACE.rstrip("\n").split("\n")
    if not by_interp(model) and _channels_last(model):
        # Another layout takes other kernels, and the last bits of a sum decide some ReLUs.
        why = "  # as in the lab: the last bits depend on it"
        lines.append(f"    net = net.to(memory_format=torch.channels_last){why}")
    return [*lines, "    return net.eval()"]


def load_input(model: LoadedModel, fit: Fit, frame: int) -> list[str]:
    """The function that opens a picture and brings it to the model's input."""
    what = {
        "crop": "The middle of a picture",
        "stretch": "A whole picture, stretched to a square",
        "letterbox": "A whole picture, padded to a square",
    }[fit]
    given = "path, frame=0" if frame else "path"
    lines = [f"def load_input({given}):", f'    """{what}, as the model takes it."""']
    lines += _EXISTS.splitlines()
    if by_interp(model):
        how = "" if fit == "crop" else f', "{fit}"'
        which = "path, frame=frame" if frame else "path"
        return [*lines, f"    return MODEL.prepare(open_picture({which}){how})"]
    lines += ["    image = Image.open(path)", *(["    image.seek(frame)"] if frame else [])]
    lines += _OPEN.splitlines()
    if _by_entry(model, fit):
        return [*lines, f"    return {_entry(model)}.transforms()(image)[None]"]
    return [*lines, *_prepared(model, fit)]


def _prepared(model: LoadedModel, fit: Fit) -> list[str]:
    """Lines that prepare an image where no published transforms do."""
    lines = []
    side, preset = model.preset.crop_size, model.preset
    size, pad = f"{preset.resize_size}", ""
    if fit == "stretch":
        size = f"({side}, {side})"
    elif fit == "letterbox":
        size, pad = "(height, width)", "transforms.Pad((left, top, right, bottom)),"
        lines += [
            "    longest = max(image.size)",
            f"    width, height = (max(1, round(n * {side} / longest)) for n in image.size)",
            f"    left, top = ({side} - width) // 2, ({side} - height) // 2",
            f"    right, bottom = {side} - width - left, {side} - height - top",
        ]
    mode = f"transforms.InterpolationMode.{preset.interpolation.upper()}"
    stages = [
        f"transforms.Resize({size}, {mode}),",
        f"transforms.CenterCrop({side})," if fit == "crop" else "",
        "transforms.ToTensor(),",
        f"transforms.Normalize({preset.mean}, {preset.std}),",
        f"{pad}  # with zeros, which are now the mean colour" if pad else "",
    ]
    return [
        *lines,
        "    prepare = transforms.Compose(",
        "        [",
        *(f"            {stage}" for stage in stages if stage),
        "        ]",
        "    )",
        "    return prepare(image)[None]",
    ]


def names(model: LoadedModel) -> str:
    """Source for the names of the classes; an empty tuple where nobody but the caller has them."""
    if by_interp(model):
        one = len(model.categories) == 1  # whose one logit stands for two classes
        return '(f"not {MODEL.categories[0]}", *MODEL.categories)' if one else "MODEL.categories"
    if model.source in ("untrained", "module"):
        return "()"
    return f'{_entry(model)}.meta["categories"]'


def _by_entry(model: LoadedModel, fit: Fit) -> bool:
    """Whether the transforms of published weights are what prepares a picture."""
    return fit == "crop" and model.source not in ("untrained", "module")


def _channels_last(model: LoadedModel) -> bool:
    """Whether the loaded net keeps the weights of its convolutions that way."""
    weights = [p for p in model.module.parameters() if p.dim() == 4 and p[0].numel() > p.shape[1]]
    return any(
        w.is_contiguous(memory_format=torch.channels_last) and not w.is_contiguous()
        for w in weights
    )


def _entry(model: LoadedModel) -> str:
    return f'torchvision.models.get_model_weights("{model.spec.name}")["{model.weights}"]'


def _arguments(options: dict[str, object]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in options.items())
