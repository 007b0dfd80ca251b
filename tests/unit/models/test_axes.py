"""Every size is the same where it can be, so that nothing can be told from sizes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from interp.models.axes import AxisTrace

SIDE = 6
PICTURE = torch.zeros(1, 3, SIDE, SIDE)
SQUARE = torch.ones(SIDE, SIDE)


def names_after(make):
    """What `make` does to the (1, 6, 6, 6) output of a convolution."""
    with torch.no_grad(), (trace := AxisTrace(PICTURE)):
        made = make(F.conv2d(PICTURE, torch.ones(SIDE, 3, 1, 1)))
    axes = trace.settle(made, ())
    return axes and axes.names


def tokens(x):
    return x.flatten(2).transpose(1, 2)


def with_class_token(x, several=1):
    return torch.cat([torch.zeros(1, several, SIDE), tokens(x)], 1)


def by_heads(x):
    """A linear layer that two groups of channels share."""
    x = x.permute(0, 2, 3, 1).unflatten(3, (2, 3))
    return F.linear(x, torch.ones(3, 3)).flatten(3)


def windows(x, side=3):
    """(N, rows of windows × columns of windows, rows × columns within one, C)."""
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // side, side, w // side, side).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(n, -1, side * side, c)


def no_windows(x, side=3):
    n, _, _, c = x.shape
    x = x.reshape(n, SIDE // side, SIDE // side, side, side, c).permute(0, 5, 1, 3, 2, 4)
    return x.reshape(n, c, SIDE, SIDE)


NCHW, NHWC, TOKENS = ("N", "C", "H", "W"), ("N", "H", "W", "C"), ("N", "HW", "C")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda x: x, NCHW),
        (lambda x: x.relu() * 2 + 1, NCHW),
        (lambda x: x.relu_(), NCHW),
        (lambda x: F.max_pool2d(x, 2), NCHW),
        (lambda x: F.interpolate(x, scale_factor=2), NCHW),
        (lambda x: F.pad(x, (1, 2, 3, 4)), NCHW),
        (lambda x: F.adaptive_avg_pool2d(x, 1), NCHW),
        (lambda x: torch.cat([x, x], 1), NCHW),
        (lambda x: x.chunk(2, 1)[1], NCHW),
        (lambda x: x[:, :, ::2, 1::2], NCHW),
        (lambda x: F.conv_transpose2d(x, torch.ones(SIDE, SIDE, 2, 2)), NCHW),
        (lambda x: x.to(memory_format=torch.channels_last), NCHW),
        (lambda x: x.unsqueeze(1).squeeze(1), NCHW),
        (lambda x: x.view(1, 2, 3, SIDE, SIDE).transpose(1, 2).reshape(x.shape), NCHW),
        (lambda x: x.unflatten(1, (2, 3)).transpose(1, 2).flatten(1, 2).chunk(2, 1)[0], NCHW),
        (lambda x: tokens(x).mT.reshape_as(x), NCHW),
        (lambda x: x.data, NCHW),
        (lambda x: x.reshape(1, SIDE, SIDE, SIDE), NCHW),
        (lambda x: x.permute(0, 2, 3, 1), NHWC),
        (lambda x: x.permute((0, -2, -1, 1)), NHWC),
        (lambda x: torch.permute(input=x, dims=(0, 2, 3, 1)), NHWC),
        (lambda x: x.movedim(1, -1), NHWC),
        (lambda x: torch.moveaxis(x, 1, 3), NHWC),
        (lambda x: x.transpose(1, 2).transpose(2, 3), NHWC),
        (lambda x: F.layer_norm(x.permute(0, 2, 3, 1), [SIDE]), NHWC),
        (lambda x: F.linear(x.permute(0, 2, 3, 1), SQUARE), NHWC),
        (lambda x: x.permute(0, 2, 3, 1).permute(0, 3, 1, 2), NCHW),
        (lambda x: x.permute(0, 2, 3, 1).flatten(1).view(1, SIDE, SIDE, SIDE), NHWC),
        (lambda x: x.transpose(2, 3), ("N", "C", "W", "H")),
        (lambda x: x.mT, ("N", "C", "W", "H")),
        (lambda x: x.swapaxes(axis0=2, axis1=3), ("N", "C", "W", "H")),
        (lambda x: F.conv2d(x.mT, torch.ones(SIDE, SIDE, 1, 1)), ("N", "C", "W", "H")),
        (lambda x: F.conv2d(x.mT, torch.ones(SIDE, SIDE, 1, 1)).mT, NCHW),
        (lambda x: x.permute(3, 2, 1, 0), ("W", "H", "C", "N")),
        (tokens, TOKENS),
        (lambda x: x.permute(0, 2, 3, 1).flatten(1, 2), TOKENS),
        (lambda x: F.linear(tokens(x), SQUARE), TOKENS),
        (lambda x: x.mT.flatten(2).transpose(1, 2), ("N", "WH", "C")),
        (with_class_token, TOKENS),
        (lambda x: with_class_token(x)[:, 1:], TOKENS),
        (lambda x: tokens(x).transpose(1, 2).unflatten(2, (SIDE, SIDE)), NCHW),
        (lambda x: with_class_token(x)[:, 1:].mT.reshape(1, SIDE, SIDE, SIDE), NCHW),
        (lambda x: torch.cat([tokens(x), torch.zeros(1, 1, SIDE)], 1), ("N", "?", "C")),
        (lambda x: torch.cat([tokens(x), tokens(x)], 1), ("N", "?", "C")),
        (lambda x: torch.cat([one := tokens(x), one], 1), ("N", "?", "C")),
        (lambda x: with_class_token(x, 36).reshape(1, 12, 6, 6), ("N", "?", "?", "C")),
        (lambda x: F.avg_pool1d(tokens(x).mT, 4), ("N", "C", "?")),
        (lambda x: x.reshape(1, SIDE * SIDE, SIDE), ("N", "CH", "W")),
        (lambda x: x.reshape(1, 4, 9, SIDE), ("N", "?", "?", "W")),
        (windows, ("N", "HW", "HW", "C")),
        (lambda x: no_windows(windows(x)), NCHW),
        (lambda x: no_windows(windows(x, 2), 2), NCHW),
        (lambda x: no_windows(windows(x).swapaxes(1, 2), 2), ("N", "C", "HH", "WW")),
        (lambda x: F.linear(x, SQUARE), ("N", "C", "H", "?")),
        (lambda x: F.linear(x, SQUARE).relu(), ("N", "C", "H", "?")),
        (by_heads, NHWC),
        (lambda x: F.linear(tokens(x).mT, torch.ones(4, 36)).mT, ("N", "?", "C")),
        (lambda x: x + F.linear(x, SQUARE), NCHW),
        (lambda x: x + x.mT, None),
        (lambda x: x @ SQUARE, None),
        (lambda x: torch.einsum("nchw->nhwc", x), None),
        (lambda x: x.mean((2, 3)), None),
        (lambda x: x.mean(1, keepdim=True), None),
        (lambda x: x.sum(0), None),
        (lambda x: torch.cat([x.new_zeros(1, 1, SIDE), tokens(x)], 1), TOKENS),
        (lambda x: torch.cat([torch.zeros_like(tokens(x)[:, :1]), tokens(x)], 1), TOKENS),
        (lambda x: torch.zeros(1, 6, 6, 6).relu(), None),
    ],
)
def test_names(make, names):
    assert names_after(make) == names


def test_patches_cut_out_by_reshaping_are_tokens():
    """As some ViTs do: no convolution at all."""
    picture = torch.zeros(1, 3, 12, 12)
    with AxisTrace(picture) as trace:
        x = picture.reshape(1, 3, 4, 3, 4, 3).permute(0, 2, 4, 3, 5, 1)
        x = F.linear(x.reshape(1, 16, 27), torch.ones(5, 27))
    assert trace.settle(x, ()).names == TOKENS
    assert trace.settle(x, ()).grid == (4, 4)


def test_places_within_patches_are_no_grid():
    """Here the linear layer mixes across patches, and what is left is a place within each."""
    picture = torch.zeros(1, 3, 12, 12)
    with AxisTrace(picture) as trace:
        x = picture.reshape(1, 3, 4, 3, 4, 3).permute(0, 3, 5, 2, 4, 1)
        x = F.linear(x.reshape(1, 9, 48), torch.ones(5, 48))
    assert trace.settle(x, ()).names == ("N", "HW", "?")


def test_the_grid_is_that_of_rows_and_columns():
    picture = torch.zeros(1, 3, 8, 12)
    with AxisTrace(picture) as trace:
        x = F.conv2d(picture, torch.ones(5, 3, 2, 2), stride=2)
        flat = x.flatten(2).transpose(1, 2)
    assert trace.settle(flat, ()).grid == trace.settle(x, ()).grid == (4, 6)


class Block(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: x @ SQUARE, NCHW),  # not followed: a module of one shape keeps its axes
        (lambda x: x.mT, ("N", "C", "W", "H")),  # followed: it does not
        (lambda x: F.linear(x, SQUARE), ("N", "C", "H", "?")),
        (lambda x: x @ torch.ones(SIDE, 2), None),
    ],
)
def test_what_a_module_makes_of_its_input(function, names):
    block = Block(function)
    with torch.no_grad(), AxisTrace(PICTURE) as trace:
        x = F.conv2d(PICTURE, torch.ones(SIDE, 3, 1, 1))
        axes = trace.settle(block(x), ((x,), {}))
    assert (axes and axes.names) == names
