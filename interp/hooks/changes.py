"""The changes that take more than one expression, and how sentences and scripts put them."""

import re
import textwrap

import torch
from torch import Tensor

from interp.errors import HookError
from interp.hooks.options import Values, parse_channels


def add_noise(
    value: Tensor, axis: int | None, values: Values, donor: Tensor | None
) -> Tensor | None:
    if not values["deviation"]:
        return None
    generator = torch.Generator().manual_seed(values["seed"])
    noise = torch.randn(value.shape, generator=generator).to(value)
    spread = value.detach().float().std(correction=0).to(value.dtype)
    return value + noise * (values["deviation"] * spread)


def mask_channels(
    value: Tensor, axis: int | None, values: Values, donor: Tensor | None
) -> Tensor | None:
    """Replace channels by zero, or each by its mean over all places."""
    if axis is None:
        shape = "×".join(map(str, value.shape)) or "scalar"
        raise HookError(
            f"which axis of a value of shape {shape} holds its channels is not known: choose "
            "another layer"
        )
    chosen = parse_channels(values["which"], value.shape[axis])
    index = torch.tensor(chosen, device=value.device)
    if values["to"] == "zero":
        return value.index_fill(axis, index, 0)
    part = value.index_select(axis, index)
    places = [d for d in range(value.dim()) if d != axis % value.dim()]
    mean = part.mean(dim=places, keepdim=True) if places else part
    return value.index_copy(axis, index, mean.expand_as(part))


def patch(value: Tensor, axis: int | None, values: Values, donor: Tensor | None) -> Tensor:
    """The donor in place of the value."""
    there = picture_words(values["picture"])
    if donor is None:
        raise HookError(f"nothing stands there on {there}: choose another layer")
    if donor.shape != value.shape:
        was, has = ("×".join(map(str, one.shape)) for one in (donor, value))
        raise HookError(
            f"the value on {there} has shape {was} and the one to replace {has}: patch from a "
            "picture that gives the same shape"
        )
    return donor.to(value).clone()  # the network may write over what it is given


def picture_words(picture: str) -> str:
    """How a sentence calls a second picture: a name, a file without folders, or a short hash."""
    if re.fullmatch(r"[0-9a-f]{64}", picture):
        return f"the picture {picture[:8]}"
    # A brace would be taken for a place to fill in.
    name = re.split(r"[\\/]", picture)[-1].replace("{", "(").replace("}", ")")
    return name or "a second picture (none chosen yet)"


def channel_words(values: Values) -> str:
    """«silences channel 4 of {it}»."""
    which = ", ".join(part.strip() for part in values["which"].split(","))
    which = re.sub(r"[{}]", "?", which)
    which = textwrap.shorten(which, 120, placeholder=" …")
    noun = "channel" if re.fullmatch(r"\d+", which) else "channels"
    if values["to"] == "zero":
        return f"silences {noun} {which} of {{it}}"
    whose = "its mean" if noun == "channel" else "their means"
    return f"replaces {noun} {which} of {{it}} by {whose}"


def channel_lines(axis: int | None, values: Values) -> tuple[str, ...]:
    """`mask_channels` as the lines of a function."""
    numbers = parse_channels(values["which"], 10**9)
    run = len(numbers) > 8 and numbers == tuple(range(numbers[0], numbers[-1] + 1))
    listed = f"list(range({numbers[0]}, {numbers[-1] + 1}))" if run else str(list(numbers))
    lines = [f"channels = torch.tensor({listed}, device=value.device)"]
    if values["to"] == "zero":
        return (*lines, f"return value.index_fill({axis}, channels, 0)")
    return (
        *lines,
        f"part = value.index_select({axis}, channels)",
        f"places = [d for d in range(value.dim()) if d != {axis} % value.dim()]",
        "means = part.mean(dim=places, keepdim=True).expand_as(part)",
        f"return value.index_copy({axis}, channels, means)",
    )
