"""Statistics, channels and operations of one untrained classifier of each family."""

import numpy as np
import pytest

from interp import audit, load_model, open_picture
from interp.inspection.channels import channel_maps
from interp.inspection.operations import operations
from interp.inspection.statistics import statistics

FAMILIES = {
    "resnet18": "layer4.1",
    "densenet121": "features.denseblock3.denselayer5",
    "mobilenet_v2": "features.18",
    "efficientnet_b0": "features.6.1.block.2",
    "convnext_tiny": "features.5.2.block.0",
    "swin_t": "features.5.1",
    "vit_b_32": "encoder.layers.encoder_layer_4.mlp",
    "maxvit_t": "blocks.3.layers.0.layers.MBconv",
}


@pytest.mark.parametrize(("name", "path"), FAMILIES.items())
def test_a_family(name, path, chelsea):
    model = load_model(name, weights="none", device="cpu")
    picture = open_picture(chelsea)

    rows = statistics(model, picture).rows
    shapes = {
        (info.path, call): one.shape
        for info in model.layers
        for call, one in enumerate((info, *info.later_calls)[: info.calls])
    }
    assert {(row.path, row.call): row.shape for row in rows} == shapes
    numbers = [(row.mean, row.std, row.zeros, row.largest, row.norm) for row in rows]
    assert np.isfinite(numbers).all()

    found = channel_maps(model, picture, path, target=3)
    row = next(row for row in rows if (row.path, row.call) == (path, 0))
    size = found.maps.size + (0 if found.tokens is None else found.tokens.size)
    assert size == np.prod(row.shape)
    values = np.concatenate([found.maps.ravel(), *(() if found.tokens is None else found.tokens)])
    assert values.mean() == pytest.approx(row.mean, rel=1e-3, abs=1e-5)
    assert np.linalg.norm(values) == pytest.approx(row.norm, rel=1e-4)
    assert len(found.order()) == row.channels

    graph = operations(model, picture, path)
    assert graph.nodes[0].title == "input 0"
    assert graph.nodes[-1].shapes == (row.shape,)
    assert all(before < node.id for node in graph.nodes for before in node.inputs)
    assert audit(model.module) == []
