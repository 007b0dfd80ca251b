"""Attention maps and rollout, against PyTorch's own weights and by hand."""

import copy
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models import VisionTransformer

from interp import audit, load_model, open_picture
from interp.errors import LayerError
from interp.geometry import Preset
from interp.inspection import attention_blocks
from interp.inspection.attention import attention, has_attention

SIDE = Preset(32, 32, (0.5,) * 3, (0.25,) * 3, "bilinear")


@pytest.fixture(scope="module")
def picture():
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return open_picture(buffer.getvalue(), name="random.png")


@pytest.fixture(scope="module")
def vit():
    """Two blocks of four heads over 4 × 4 patches, none of its weights zero."""
    torch.manual_seed(0)
    net = VisionTransformer(32, 8, 2, 4, 16, 32, num_classes=5)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.5)
    return load_model(module=net, transforms=SIDE, device="cpu")


def torch_weights(module, shown):
    """What each block's attention returns when asked for the weights of every head."""
    net = copy.deepcopy(module)
    found = []
    for part in net.modules():
        if isinstance(part, nn.MultiheadAttention):

            def asking(q, k, v, need_weights, plain=part.forward):
                out, weights = plain(q, k, v, need_weights=True, average_attn_weights=False)
                found.append(weights[0])
                return out, None

            part.forward = asking
    net(shown)
    return torch.stack(found).numpy()


def test_equal_to_torch(vit, picture):
    result = attention(vit, picture)
    expected = torch_weights(vit.module, vit.prepare(picture))
    assert result.weights.shape == (2, 4, 17, 17)
    assert result.weights == pytest.approx(expected, abs=1e-6)
    assert expected.std(axis=-1).mean() > 0.02  # far from uniform, which much would equal
    assert result.paths == tuple(f"encoder.layers.encoder_layer_{i}.self_attention" for i in (0, 1))
    assert (result.grid, result.extra_tokens, result.heads) == ((4, 4), 1, 4)
    assert has_attention(vit) == result.paths
    logits = vit.module(vit.prepare(picture))[0].numpy()
    assert result.frame.logits == pytest.approx(logits, abs=1e-5)


def test_equal_to_torch_in_a_model_of_the_catalogue(chelsea):
    model = load_model("vit_b_32", weights="none", device="cpu")
    shown = open_picture(chelsea)
    result = attention(model, shown)
    assert result.weights.shape == (12, 12, 50, 50)
    expected = torch_weights(model.module, model.prepare(shown))
    assert np.abs(result.weights - expected).max() <= 1e-5


class TokensFirst(nn.Module):
    """Attention over (T, N, C) tokens without a class token."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 8, stride=8)
        self.tokens = nn.Identity()
        self.attend = nn.MultiheadAttention(8, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.tokens(self.patches(x).flatten(2).mT).transpose(0, 1)
        x, _ = self.attend(query=x, key=x, value=x, need_weights=False)
        return self.head(x.mean(0))


def test_tokens_first_and_no_class_token(picture):
    model = load_model(module=TokensFirst(), transforms=SIDE, device="cpu")
    result = attention(model, picture)
    tokens = model.module.patches(model.prepare(picture)).flatten(2).mT.transpose(0, 1)
    _, expected = model.module.attend(
        tokens, tokens, tokens, need_weights=True, average_attn_weights=False
    )
    assert result.weights[0] == pytest.approx(expected[0].numpy(), abs=1e-6)
    assert (result.grid, result.extra_tokens) == ((4, 4), 0)
    mixed = 0.5 * result.weights[0].mean(0) + 0.5 * np.eye(16)
    assert result.rollout() == pytest.approx(mixed.mean(0).reshape(4, 4), abs=1e-6)


@pytest.fixture(scope="module")
def by_hand(vit, picture):
    """Two blocks of two heads; a class token and two patches side by side."""
    first = [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]]
    mean = np.array([first, [[0, 1, 0], [0, 1, 0], [0, 0, 1]]])
    shift = np.array([[0.1, -0.1, 0.0], [0, 0, 0], [0, 0, 0]])
    weights = np.stack([mean + shift, mean - shift], axis=1).astype(np.float32)
    return replace(attention(vit, picture), weights=weights, grid=(1, 2), extra_tokens=1)


def test_maps_by_hand(by_hand):
    assert by_hand.map(0) == pytest.approx(np.array([[0.25, 0.25]]))
    assert by_hand.map(0, head=0) == pytest.approx(np.array([[0.15, 0.25]]))
    assert by_hand.map(0, head=1) == pytest.approx(np.array([[0.35, 0.25]]))
    assert by_hand.map(1, token=2).tolist() == [[0.0, 1.0]]


def test_rollout_by_hand(by_hand):
    # B1 = ½A1 + ½I has the first row .75 .125 .125, and B2 .5 .5 0; the others are identity.
    # The first row of B2·B1 is ½ (.75 .125 .125) + ½ (0 1 0); B1·B2 would give .5 and .125.
    assert by_hand.rollout() == pytest.approx(np.array([[0.5625, 0.0625]]))
    assert by_hand.rollout(start=1) == pytest.approx(np.array([[0.5, 0.0]]))


def test_refused_numbers(by_hand):
    for what, arguments in {"block 2": (2,), "head 2": (0, 2), "token 3": (0, None, 3)}.items():
        with pytest.raises(LayerError, match=f"no attention {what}: they are 0 to"):
            by_hand.map(*arguments)
    with pytest.raises(LayerError, match="no attention block -1"):
        by_hand.rollout(-1)


def test_as_attributions(vit, picture):
    result = attention(vit, picture)
    one = result.attribution(1, head=2, token=5)
    assert np.array_equal(one.map, result.map(1, 2, 5))
    assert one.on_picture().shape == (40, 64)
    manifest = json.loads(json.dumps(one.manifest()))
    assert manifest["parameters"] == {"block": 1, "head": 2, "token": 5}
    assert manifest["layers"] == [result.paths[1]]
    assert manifest["hooks"] == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}
    assert "do not depend on the target" in one.notes[-1]
    whole = result.rollout_attribution()
    assert np.array_equal(whole.map, result.rollout())
    names = {result.attribution(0).method, result.attribution(0, 1).method, one.method}
    assert len(names | {whole.method, result.rollout_attribution(1).method}) == 5


@pytest.mark.parametrize("name", ["resnet18", "swin_t"])
def test_models_without_it(name, chelsea):
    model = load_model(name, weights="none", device="cpu")
    assert has_attention(model) == ()
    with pytest.raises(LayerError, match=rf"{name} has no attention .* ViT family, such as vit_b"):
        attention(model, open_picture(chelsea))


def test_a_mask_is_refused_and_nothing_stays(picture):
    class Masked(TokensFirst):
        def forward(self, x):
            x = self.tokens(self.patches(x).flatten(2).mT).transpose(0, 1)
            mask = torch.zeros(16, 16)
            x, _ = self.attend(x, x, x, need_weights=False, attn_mask=mask)
            return self.head(x.mean(0))

    model = load_model(module=Masked(), transforms=SIDE, device="cpu")
    with pytest.raises(LayerError, match="«attend» attends to a second input or under a mask"):
        attention(model, picture)
    assert audit(model.module) == []


def test_too_many_tokens_are_refused_before_running(vit, picture, monkeypatch):
    monkeypatch.setattr(attention_blocks, "MAX_BYTES", 4 * 8 * 17 * 17 - 1)
    with pytest.raises(LayerError, match="take a ViT with fewer tokens"):
        attention(vit, picture)
    monkeypatch.setattr(attention_blocks, "MAX_BYTES", 4 * 8 * 17 * 17)
    assert np.array_equal(attention(vit, picture).weights, attention(vit, picture).weights)


def test_a_block_that_a_picture_skips_is_left_out(vit, picture):
    class Skips(nn.Module):
        """A picture of much contrast does without the second block."""

        def __init__(self):
            super().__init__()
            self.net = copy.deepcopy(vit.module)

        def forward(self, x):
            blocks = self.net.encoder.layers
            tokens = self.net._process_input(x)
            tokens = torch.cat([self.net.class_token.expand(len(x), -1, -1), tokens], 1)
            for block in list(blocks)[: 1 if x.std() > 0.2 else 2]:
                tokens = block(tokens)
            return self.net.heads(tokens[:, 0])

    model = load_model(module=Skips(), transforms=SIDE, device="cpu")
    assert len(has_attention(model)) == 2
    result = attention(model, picture)
    assert result.paths == ("net.encoder.layers.encoder_layer_0.self_attention",)
    assert result.weights.shape == (1, 4, 17, 17)
