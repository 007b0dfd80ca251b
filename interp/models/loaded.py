"""A net that is ready to be explained, and what has been found out about it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from interp.geometry import Fit, Geometry, Preset, plan, prepare
from interp.hooks.surroundings import global_hooks
from interp.hooks.undisturbed import SEED
from interp.models.catalog import ModelSpec
from interp.models.conduct import Chance, chance_of, couples_batch
from interp.models.inputs import InputInfo, input_table
from interp.models.layer_names import first_names
from interp.models.layers import LayerInfo, layer_table
from interp.models.light import is_simple
from interp.picture import Picture

Source = Literal["bundled", "on disk", "downloaded", "file", "untrained", "module"]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A classifier in evaluation mode, frozen, with no hooks but its own.

    Attributes
    ----------
    module : the net; runs go to private copies of it.
    spec : the model of the catalogue, or one made up for the caller's module.
    weights : "BUNDLED", the entry's name, "none", "file:NAME" or "module".
    source : where the weights came from.
    categories : name of each output, in order.
    device : where the net is.
    preset : the preprocessing it wants.
    file : the whole path of weights from a file.
    """

    module: nn.Module
    spec: ModelSpec
    weights: str
    source: Source
    categories: tuple[str, ...]
    device: torch.device
    preset: Preset
    file: Path | None = None

    @property
    def trained(self) -> bool:
        """False where the weights are random, as the caller asked."""
        return self.source != "untrained"

    @cached_property
    def layers(self) -> tuple[LayerInfo, ...]:
        """The layer table, from one dry run when it is first asked for."""
        return layer_table(self.module, self._example)

    @cached_property
    def inputs(self) -> dict[str, tuple[InputInfo, ...]]:
        """What each module that runs is called with, from one dry run when it is first asked."""
        table = input_table(self.module, self._example)
        first = first_names(self.module)
        return {path: table[name] for path, name in first.items() if name in table}

    @cached_property
    def allows_light_pass(self) -> bool:
        """Whether a pass may be `light` (see `forward_pass`)."""
        return is_simple(self.module)

    @property
    def chance(self) -> Chance:
        """Whether it answers alike when asked again, from passes when that is first asked.

        Under global hooks of the caller it is asked anew each time: what they do is not its own.
        """
        return chance_of(self.module, self._example) if global_hooks() else self._chance

    @property
    def seed(self) -> int | None:
        """The seed that its passes run with; None where nothing is drawn."""
        return SEED if global_hooks() or self._chance.draws else None

    @property
    def couples_batch(self) -> bool:
        """Whether pictures of one batch change each other's answers, so that each runs alone.

        Also where they draw random numbers, or the net takes one picture only. Found by passes
        when it is first asked.
        """
        if global_hooks():
            return self.chance.draws or couples_batch(self.module, self._example)
        return self._couples_batch

    @cached_property
    def _chance(self) -> Chance:
        return chance_of(self.module, self._example)

    @cached_property
    def _couples_batch(self) -> bool:
        return self._chance.draws or couples_batch(self.module, self._example)

    @property
    def _example(self) -> Tensor:
        return example_of(self.module, self.preset, self.device)

    def prepare(self, picture: Picture, fit: Fit = "crop") -> Tensor:
        """The model's input: (1, 3, h, w), normalised, on the net's device and of its type."""
        with torch.inference_mode(False):
            pixels = prepare(picture.image, self.preset, fit)
            return pixels.to(self.device, _dtype(self.module))

    def geometry(self, picture: Picture, fit: Fit = "crop") -> Geometry:
        """What `prepare` does to that picture, and the way back."""
        return plan(picture.size, self.preset, fit)


def example_of(module: nn.Module, preset: Preset, device: torch.device) -> Tensor:
    """A black picture (1, 3, h, w) of the size, the type and the device that a net wants."""
    side = preset.crop_size
    return torch.zeros(1, 3, side, side, device=device, dtype=_dtype(module))


def _dtype(module: nn.Module) -> torch.dtype:
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
