"""Small nets that do what few networks do, and a picture for them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from interp import LoadedModel, load_model, open_picture
from interp.geometry import Preset
from interp.picture import Picture

SIDE = 16
PRESET = Preset(SIDE, SIDE, (0.0,) * 3, (1.0,) * 3, "bilinear")


def noise(seed: int = 0, low: int = 0, high: int = 256) -> Picture:
    """A picture of random pixels."""
    pixels = np.random.default_rng(seed).integers(low, high, (SIDE, SIDE, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return open_picture(buffer.getvalue(), name="noise.png")


def loaded(net: nn.Module) -> LoadedModel:
    return load_model(module=net, transforms=PRESET, device="cpu")


def conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class Base(nn.Module):
    """`stem`, what a net of this kind does in between, `last` and `fc`."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.last, self.fc = conv(3, 4), conv(4, 4), nn.Linear(4, 5)

    def between(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        x = self.between(self.stem(x).relu())
        return self.fc(self.last(x).relu().mean((2, 3)))


class Returns(nn.Module):
    """A module that returns whatever it is told to."""

    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Any:
        return self.make(x)


class WithOdd(Base):
    """In between stands a module `odd`, and `back` makes a tensor of what it returns again."""

    def __init__(self, make: Callable[[Tensor], Any], back: Callable[[Any, Tensor], Tensor]):
        super().__init__()
        self.odd, self.back = Returns(make), back

    def between(self, x: Tensor) -> Tensor:
        return self.back(self.odd(x), x)
