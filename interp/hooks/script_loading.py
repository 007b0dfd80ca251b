"""How a script loads the net and the picture, by where the weights came from."""

import json
import re
from collections.abc import Sequence

import torch

from interp.geometry import Fit
from interp.models.catalog import DEFAULT_MODEL, build_arguments
from interp.models.loading import LoadedModel
from interp.picture import sample_pictures

_NO_IN_PLACE = """\
    # A full backward hook raises where its module's output is then changed in place.
    for module in net.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
"""


def quoted(text: str) -> str:
    """A text as Python source, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def imports(model: LoadedModel, fit: Fit, *, counts: bool) -> list[str]:
    """The import lines; `counts` where a hook counts its calls."""
    lines = ["import itertools", ""] if counts else []
    lines.append("import torch")
    if _by_interp(model):
        why = "# Loads the net, its weights and the picture: run this from Hookscope's folder."
        return [*lines, "", why, "from interp import load_model, open_picture"]
    if model.source != "module":
        lines.append("import torchvision")
    lines.append("from PIL import Image, ImageOps")
    if not _by_entry(model, fit):
        lines.append("from torchvision import transforms")
    return lines


def constants(model: LoadedModel, picture_name: str, seconds: Sequence[str]) -> list[str]:
    """The model where this package loads it, the picture, and the second pictures."""
    lines = []
    if _by_interp(model):
        weights = {"bundled": "", "untrained": ', weights="none"'}.get(model.source)
        if weights is None:
            weights = f", weights={quoted(model.weights.removeprefix('file:'))}"
        lines = [f'MODEL = load_model("{model.spec.name}"{weights}, device="cpu")']
    lines.append(f"PICTURE = {quoted(picture_name)}")
    for number, picture in enumerate(seconds, 1):
        sample = sample_pictures().get(picture)
        name, note = picture if sample is None else sample.name, ""
        if re.fullmatch(r"[0-9a-f]{64}", picture):
            name, note = "second.png", f"  # the file whose SHA-256 is {picture}"
        lines.append(f"SECOND_{number} = {quoted(name)}{note}")
    return lines


def load_net(model: LoadedModel, *, in_place: bool) -> list[str]:
    """The function that returns the net; `in_place` where its `inplace` flags may stay."""
    lines, name = ["def load_net():"], model.spec.name
    if model.source == "module":
        lines.append("    net = None  # your own network")
        lines.append("    if net is None:")
        lines.append('        raise SystemExit("put your own network into load_net")')
    elif _by_interp(model):
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
    if not _by_interp(model) and _channels_last(model):
        # Another layout takes other kernels, and the last bits of a sum decide some ReLUs.
        why = "  # as in the lab: the last bits depend on it"
        lines.append(f"    net = net.to(memory_format=torch.channels_last){why}")
    return [*lines, "    return net.eval()"]


def load_input(model: LoadedModel, fit: Fit) -> list[str]:
    """The function that opens a picture and brings it to the model's input."""
    what = {
        "crop": "The middle of a picture",
        "stretch": "A whole picture, stretched to a square",
        "letterbox": "A whole picture, padded to a square",
    }[fit]
    lines = ["def load_input(path):", f'    """{what}, as the model takes it."""']
    if _by_interp(model):
        how = "" if fit == "crop" else f', "{fit}"'
        return [*lines, f"    return MODEL.prepare(open_picture(path){how})"]
    lines += [
        "    image = ImageOps.exif_transpose(Image.open(path))",
        "    if image.has_transparency_data:  # on white, as the lab shows it",
        '        white = Image.new("RGBA", image.size, "white")',
        '        image = Image.alpha_composite(white, image.convert("RGBA"))',
        '    image = image.convert("RGB")',
    ]
    if _by_entry(model, fit):
        return [*lines, f"    return {_entry(model)}.transforms()(image)[None]"]
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
    if _by_interp(model):
        one = len(model.categories) == 1  # whose one logit stands for two classes
        return '(f"not {MODEL.categories[0]}", *MODEL.categories)' if one else "MODEL.categories"
    if model.source in ("untrained", "module"):
        return "()"
    return f'{_entry(model)}.meta["categories"]'


def _by_interp(model: LoadedModel) -> bool:
    return model.source == "file" or model.spec.name == DEFAULT_MODEL


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
