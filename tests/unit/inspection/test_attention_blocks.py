"""Attention weights of one layer, against what PyTorch's own layer returns."""

import copy

import pytest
import torch
from torch import nn

from interp import load_model
from interp.inspection.attention_blocks import attention_blocks, attention_weights, token_grid


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 8, "vdim": 8}])
def test_every_form_of_the_projections(first, options):
    part = nn.MultiheadAttention(12, 3, batch_first=first, **options)
    if part.in_proj_bias is not None:
        nn.init.normal_(part.in_proj_bias)
    query = torch.randn(2, 5, 12)
    key = torch.randn(2, 5, part.kdim)
    if not first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    _, expected = part(query, key, key, need_weights=True, average_attn_weights=False)
    found = attention_weights(part, query, key)
    assert found.shape == (2, 3, 5, 5)
    assert torch.allclose(found, expected, atol=1e-6)


def test_blocks_of_a_vit_in_running_order():
    model = load_model("vit_b_32", weights="none", device="cpu")
    blocks = attention_blocks(model)
    assert [info.path for info in blocks] == [
        f"encoder.layers.encoder_layer_{i}.self_attention" for i in range(12)
    ]
    assert {token_grid(model, info) for info in blocks} == {((7, 7), 1)}


def test_a_block_of_two_names_counts_once():
    model = load_model("vit_b_32", weights="none", device="cpu")
    net = copy.copy(model.module)
    net._modules = dict(net._modules)
    net.again = net.encoder.layers[3]
    tied = load_model(module=net, device="cpu")
    assert any(info.same_as for info in tied.layers)
    assert [i.path for i in attention_blocks(tied)] == [i.path for i in attention_blocks(model)]
