import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from interp.attribution import explain, get_method, list_methods, register
from interp.attribution.base import Attribution, LayerCall
from interp.errors import MethodError
from interp.models.layers import LayerInfo
from interp.picture import open_picture


@pytest.fixture(scope="module")
def attribution(bundled, coffee) -> Attribution:
    return explain(bundled, open_picture(coffee), target="espresso-tiger cat:prob", fit="letterbox")


def test_the_methods_by_name():
    names = [method.name for method in list_methods()]
    assert names[:2] == ["grad-cam", "hirescam"]
    assert len(set(names)) == len(names)
    for method in list_methods():
        assert get_method(method.name) is method
        assert method.title
        assert method.definition
        assert method.paper
        assert "{target}" in method.summary
        assert method.summary.format(target="x")


@pytest.mark.parametrize("name", ["Grad-CAM", "gradcam", "", None])
def test_an_unknown_method_is_refused_with_the_list(name):
    with pytest.raises(MethodError, match=f"no method «{name}»: there are grad-cam, hirescam"):
        get_method(name)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'grad-cam' is registered already"):
        register(get_method("grad-cam"))
    assert [m.name for m in list_methods()].count("grad-cam") == 1


def test_a_call_is_numbered_where_there_are_several():
    assert str(LayerCall(LayerInfo("layer4", "Sequential", calls=1))) == "layer4"
    assert str(LayerCall(LayerInfo("relu", "ReLU", calls=2))) == "relu#0"
    assert str(LayerCall(LayerInfo("relu", "ReLU", calls=2), 1)) == "relu#1"


def test_the_manifest_says_it_all(attribution, bundled):
    manifest = attribution.manifest()
    assert json.loads(json.dumps(manifest, allow_nan=False)) == manifest
    assert manifest["manifest_version"] == 1
    assert manifest["picture"] == {
        "name": "coffee.png",
        "sha256": attribution.picture.sha256,
        "size": [600, 400],
        "format": "PNG",
        "frame": 0,
        "frames": 1,
    }
    assert manifest["model"] == {
        "name": "efficientnet_lite0",
        "weights": "BUNDLED",
        "source": "bundled",
        "trained": True,
        "device": "cpu",
    }
    assert manifest["input"] == {"fit": "letterbox", "size": [224, 224]}
    assert (manifest["method"], manifest["parameters"]) == ("grad-cam", {})
    assert manifest["layers"] == ["features.8.1"]
    assert manifest["target"] == {
        "text": "967-282:prob",
        "label": "espresso (967) − tiger cat (282), probability",
        "index": 967,
        "against": 282,
        "scale": "prob",
    }
    assert [p["index"] for p in manifest["predictions"]] == [
        p.index for p in attribution.predictions
    ]
    assert manifest["map"] == {
        "shape": [7, 7],
        "minimum": float(attribution.map.min()),
        "maximum": float(attribution.map.max()),
        "signed": False,
    }
    assert manifest["hooks"] == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}
    assert manifest["seconds"] > 0
    assert manifest["seed"] is None
    assert set(manifest["versions"]) == {"python", "torch", "torchvision"}


def test_the_target_of_a_manifest_gives_the_same_map_again(attribution, bundled):
    manifest = attribution.manifest()
    again = explain(
        bundled,
        attribution.picture,
        method=manifest["method"],
        layers=manifest["layers"],
        target=manifest["target"]["text"],
        fit=manifest["input"]["fit"],
    )
    assert np.array_equal(again.map, attribution.map)


def test_the_manifest_is_a_copy(attribution):
    manifest = attribution.manifest()
    manifest["predictions"][0]["name"] = "x"
    manifest["hooks"]["live"] = 9
    manifest["parameters"]["steps"] = 3
    assert attribution.manifest()["predictions"][0]["name"] == "espresso"
    assert attribution.hooks["live"] == 0
    assert attribution.parameters == {}


def test_a_map_without_a_finite_value_has_no_range(attribution):
    broken = replace(attribution, map=np.full((7, 7), np.nan, np.float32))
    manifest = broken.manifest()
    assert manifest["map"]["minimum"] is manifest["map"]["maximum"] is None
    json.dumps(manifest, allow_nan=False)


def test_it_is_frozen(attribution):
    with pytest.raises(FrozenInstanceError):
        attribution.map = np.zeros((7, 7), np.float32)
    for values in (attribution.map, attribution.logits):
        assert values.dtype == np.float32
        assert values.flags["C_CONTIGUOUS"]
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


def test_on_the_picture(attribution):
    heat = attribution.on_picture()
    assert (heat.dtype, heat.shape) == (np.float32, (400, 600))
    assert np.isfinite(heat).all()
    assert attribution.map.min() <= heat.min()
    assert heat.max() <= attribution.map.max()


def test_what_a_crop_hides_is_nan(attribution, bundled):
    cropped = explain(bundled, attribution.picture)
    heat = cropped.on_picture()
    left, top, right, bottom = cropped.geometry.seen
    assert np.isnan(heat[:, : int(left)]).all()
    assert np.isnan(heat[: int(top)]).all()
    assert np.isfinite(heat[int(top) + 1 : int(bottom), int(left) + 1 : int(right)]).all()
    assert np.isnan(heat).any()


def test_saving(attribution, tmp_path):
    paths = attribution.save(tmp_path)
    assert sorted(path.suffix for path in paths) == [".json", ".npz", ".png"]
    files = {path.suffix: path for path in paths}
    assert all(path.parent == tmp_path and path.is_file() for path in paths)
    with np.load(files[".npz"]) as arrays:
        assert np.array_equal(arrays["map"], attribution.map)
        assert np.array_equal(arrays["logits"], attribution.logits)
        assert arrays["heatmap"].shape == (400, 600)
    written = json.loads(files[".json"].read_text("utf-8"))
    assert written.pop("view")["colours"] == "plasma"
    assert written == attribution.manifest()
