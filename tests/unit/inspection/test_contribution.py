"""Gradient × activation, and how an output is taken apart, by hand."""

import torch

from interp.hooks.capture import Capture
from interp.hooks.ledger import HookLedger
from interp.inspection.contribution import contributions, split_places
from interp.models.layers import LayerInfo
from interp.targets import Target

CAT = Target(1, categories=("dog", "cat"))


def taken(values, gradient):
    gradients = {} if gradient is None else {("layer", 0): torch.tensor(gradient)}
    maps = {"layer": [torch.tensor(values)]}
    return Capture(torch.zeros(1, 2), CAT, HookLedger(), maps, gradients)


NCHW = LayerInfo("layer", "Conv2d", 1, (1, 2, 1, 2), "nchw", grid=(1, 2))
TOKENS = LayerInfo("layer", "LayerNorm", 1, (1, 3, 2), "tokens", grid=(1, 2), extra_tokens=1)
VECTOR = LayerInfo("layer", "Linear", 1, (1, 2), "vector")


def test_a_map():
    of = taken([[[[1.0, 2.0]], [[3.0, 4.0]]]], [[[[10.0, 0.0]], [[1.0, -2.0]]]])
    values, note = contributions(of, "layer", 0, NCHW)
    assert (values.tolist(), note) == ([10.0, 3.0 - 8.0], "")


def test_tokens_with_their_class_token():
    of = taken([[[5.0, 6.0], [1.0, 2.0], [3.0, 4.0]]], [[[1.0, 0.5], [2.0, 0.0], [0.0, 1.0]]])
    values, note = contributions(of, "layer", 0, TOKENS)
    assert (values.tolist(), note) == ([5.0 + 2.0, 3.0 + 4.0], "")
    places, extra = split_places(of.feature_map("layer"), TOKENS)
    assert places.tolist() == [[[1.0, 3.0]], [[2.0, 4.0]]]
    assert extra.tolist() == [[5.0, 6.0]]


def test_a_vector():
    of = taken([[2.0, 3.0]], [[0.0, -1.0]])
    values, note = contributions(of, "layer", 0, VECTOR)
    assert (values.tolist(), note) == ([0.0, -3.0], "")
    assert split_places(of.feature_map("layer"), VECTOR)[0].shape == (2, 1, 1)


def test_where_no_gradient_is():
    values, note = contributions(taken([[2.0, 3.0]], None), "layer", 0, VECTOR)
    assert values.tolist() == [0.0, 0.0]
    assert "cat (1) does not depend on it" in note
    _, note = contributions(taken([[2.0, 3.0]], [[0.0, 0.0]]), "layer", 0, VECTOR)
    assert "gradient of cat (1) is zero everywhere" in note
    only = [[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]
    values, note = contributions(taken([[[5.0, 6.0]] * 3], only), "layer", 0, TOKENS)
    assert values.tolist() == [5.0, 0.0]
    assert "those of the class token alone" in note
