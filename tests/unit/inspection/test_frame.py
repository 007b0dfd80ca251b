"""What results about one layer share."""

import numpy as np
import pytest
import torch

from interp import HookSession, load_model, open_picture, predict
from interp.errors import LayerError
from interp.inspection.frame import find_call, frame_of, read_only
from interp.targets import parse_target


def test_any_layer_that_ran(bundled):
    assert find_call(bundled, "features.8").path == "features.8"
    assert find_call(bundled, "classifier.1").layout == "vector"
    with pytest.raises(LayerError, match=r"no layer «features\.99» in this model: did you mean"):
        find_call(bundled, "features.99")
    with pytest.raises(LayerError, match=r"«features\.8» has no call 1: it runs 1 time"):
        find_call(bundled, "features.8", 1)
    with pytest.raises(LayerError, match="has no call -1"):
        find_call(bundled, "features.8", -1)


def test_each_call_has_its_row_and_a_silent_layer_its_reason():
    model = load_model("resnet18", weights="none", device="cpu")
    first, second = (find_call(model, "layer2.0.relu", call) for call in (0, 1))
    assert first.shape == second.shape == (1, 128, 28, 28)

    class Unused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.spare = torch.nn.Conv2d(3, 2, 1), torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.conv(x).mean((2, 3))

    model = load_model(module=Unused(), device="cpu")
    with pytest.raises(LayerError, match="«spare» never runs: its Unused predicts without"):
        find_call(model, "spare")


def test_the_frame_says_what_explain_would(bundled, coffee):
    picture = open_picture(coffee)
    with HookSession(bundled.module) as session, torch.no_grad():
        logits = session.module(bundled.prepare(picture))
        target = parse_target(None, bundled.categories).resolve(logits)
        frame = frame_of(bundled, picture, "crop", logits, target, session.ledger, 0.5)
    assert frame.predictions == tuple(predict(bundled, picture))
    assert frame.target.label == "espresso (967)"
    assert np.array_equal(frame.logits, logits[0].numpy())
    assert (frame.notes, frame.manifest()["model"]["trained"]) == ((), True)


def test_an_untrained_model_is_said_to_be_one(chelsea):
    model = load_model("squeezenet1_1", weights="none", device="cpu")
    logits = torch.randn(1, 1000)
    target = parse_target(0, model.categories)
    with HookSession(model.module) as session:
        frame = frame_of(model, open_picture(chelsea), "stretch", logits, target, session.ledger, 0)
    assert "untrained" in frame.notes[0]
    assert frame.geometry.fit == "stretch"


def test_read_only_shares_nothing():
    tensor = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T
    values = read_only(tensor)
    tensor += 1
    assert values.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert read_only(torch.tensor([1.5], dtype=torch.bfloat16)).dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 9
