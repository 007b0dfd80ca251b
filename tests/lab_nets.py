"""Small nets whose every number is known by hand, and pictures of one colour."""

from __future__ import annotations

import io
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from interp import LoadedModel, load_model, open_picture
from interp.geometry import Preset
from interp.picture import Picture

SIDE = 4
PRESET = Preset(SIDE, SIDE, (0.0,) * 3, (1.0,) * 3, "nearest")


def picture(red: float, green: float, blue: float = 0.0) -> Picture:
    """One colour, channels from 0 to 1 in steps of 0.2."""
    colour = tuple(round(255 * value) for value in (red, green, blue))
    buffer = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), colour).save(buffer, "PNG")
    return open_picture(buffer.getvalue(), name="colour.png")


class Plain(nn.Module):
    """With red r and green g: `act` gives (r, 2g), the logits are (r + 2g, r − 2g)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 2, 1, bias=False)
        self.act = nn.ReLU(inplace=True)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.stem.weight.copy_(torch.tensor([[1.0, 0, 0], [0, 2, 0]])[..., None, None])
            self.fc.weight.copy_(torch.tensor([[1.0, 1], [1, -1]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.pool(self.act(self.stem(x))).flatten(1))


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        return x * 1, [x * 2]


class Named(nn.Module):
    def forward(self, *, value: Tensor, more: Tensor) -> dict[str, Any]:
        return {"words": "none", "out": value * 1, "more": more}


class Nested(Plain):
    """Goes through a tuple, a keyword, a dict, and one ReLU three times; (r, 2g) all the way."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.named = Named()

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.stem(x))
        first, (second,) = self.pair(x)
        given = self.named(value=first, more=second)
        x = given["out"]
        x += given["more"] * 0
        return self.fc(self.pool(self.act(self.act(x))).flatten(1))


def load(net: nn.Module) -> LoadedModel:
    return load_model(module=net.eval(), transforms=PRESET, device="cpu")
