"""The file of a vision transformer's attention."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import VisionTransformer

from interp import load_model, open_picture
from interp.errors import LayerError
from interp.geometry import Preset
from interp.inspection.attention import Attention, attention
from interp.inspection.channels import channel_maps
from interp.models.loading import LoadedModel
from interp.ui.layers_attention import parse_token
from interp.ui.layers_files import attention_npz, montage_png, vector_npz


@pytest.fixture(scope="module")
def found(coffee: object) -> Attention:
    torch.manual_seed(0)
    preset = Preset(32, 32, (0.5,) * 3, (0.25,) * 3, "bilinear")
    net = VisionTransformer(32, 8, 2, 4, 16, 32, num_classes=5)
    model = load_model(module=net, transforms=preset, device="cpu")
    return attention(model, open_picture(str(coffee)))


def test_the_file_holds_every_weight_and_what_they_belong_to(found: Attention) -> None:
    held = np.load(io.BytesIO(attention_npz(found)))
    np.testing.assert_array_equal(held["weights"], found.weights)
    assert held["weights"].shape == (2, 4, 17, 17)
    np.testing.assert_allclose(held["weights"].sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(held["rollout"], found.rollout())
    assert held["grid"].tolist() == [4, 4]
    assert int(held["extra_tokens"]) == 1
    assert held["paths"].tolist() == list(found.paths)
    assert str(held["picture"]) == found.frame.picture.sha256
    manifest = json.loads(str(held["manifest"]))
    assert manifest["layers"] == list(found.paths)
    assert manifest["map"]["shape"] == [2, 4, 17, 17]
    assert manifest["picture"]["sha256"] == found.frame.picture.sha256


def test_montage_and_vector_say_how_they_came_about(bundled: LoadedModel, coffee: object) -> None:
    maps = channel_maps(bundled, open_picture(str(coffee)), "features.8.2")
    with Image.open(io.BytesIO(montage_png(maps, "mean", 3, True))) as montage:
        manifest = json.loads(montage.text["hookscope"])
    assert manifest["layers"] == ["features.8.2"]
    assert manifest["view"] == {
        "mode": "montage",
        "colours": "plasma",
        "signed": False,
        "order": "mean",
        "scale": "shared",
        "channels": maps.order("mean")[:3].tolist(),
    }
    vector = np.load(io.BytesIO(vector_npz(maps)))
    assert json.loads(str(vector["manifest"])) == maps.manifest()


def test_a_patch_is_the_token_of_its_row_and_column(found: Attention) -> None:
    assert parse_token("", found) == 0
    assert parse_token("0-0", found) == 1
    assert parse_token("2-3", found) == 1 + 2 * 4 + 3
    assert parse_token("2-3", replace(found, extra_tokens=0)) == 2 * 4 + 3
    for wrong in ("4-0", "0-4", "1", "-1", "1-", "1-1-1", "x-y", "²-0"):
        with pytest.raises(LayerError, match="there is no patch"):
            parse_token(wrong, found)
