"""Networks whose backward pass fails, is cut off, or runs layers a second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from odd_nets import Base, conv, loaded, noise
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from interp import Lab, capture, channel_maps, explain, run_experiment, statistics, travel
from interp.errors import LayerError
from interp.models.layers import recommended_layer

pytestmark = pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")


class _NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        raise ValueError("there is no way back here")


class Early(Base):
    """Backward fails between `stem` and `last`."""

    def between(self, x: Tensor) -> Tensor:
        return _NoBackward.apply(x)


class Late(Base):
    """Backward fails behind every layer that has a map."""

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(_NoBackward.apply(self.last(self.stem(x)).relu()).mean((2, 3)))


def test_a_failing_backward_leaves_the_layers_behind_it() -> None:
    model, plain, picture = loaded(Early()), loaded(Base()), noise()
    assert recommended_layer(model.layers).path == "last"
    assert np.array_equal(explain(model, picture).map, explain(plain, picture).map)
    refusal = (
        r"cannot be followed back to «stem», as an operation behind it raises \(ValueError: there "
        r"is no way back here\): choose a layer behind that operation, such as «last»$"
    )
    with pytest.raises(LayerError, match=refusal):
        explain(model, picture, layers="stem")
    for ask in (lambda: capture(model, picture, ["stem"]), lambda: travel(model, picture)):
        with pytest.raises(LayerError, match="ValueError: there is no way back here"):
            ask()


def test_without_a_recommended_layer_there_is_a_table_that_says_why() -> None:
    model, picture = loaded(Late()), noise()
    assert [info.recommended for info in model.layers] == [False, False, False]
    assert "ValueError: there is no way back here" in model.layers[1].obstacle
    assert len(statistics(model, picture).rows) == 3
    with pytest.raises(LayerError, match="no recommended layer, because the gradient cannot be fo"):
        explain(model, picture)


class Checkpointed(Base):
    """A part of two layers is run again in backward, as PyTorch's checkpoints do."""

    def __init__(self, how: str, reentrant: bool, inplace: bool) -> None:
        super().__init__()
        self.part = nn.Sequential(conv(4, 4), nn.ReLU(inplace))
        self.how, self.reentrant = how, reentrant

    def between(self, x: Tensor) -> Tensor:
        def twice(tensor: Tensor) -> Tensor:
            return self.part(self.part(tensor * 2))

        if self.how == "plain twice":
            return twice(x)
        if self.how == "plain":
            return self.part(x)
        run = self.part if self.how == "module" else twice
        return checkpoint(run, x, use_reentrant=self.reentrant)


LAYERS = ("stem", "part", "part.0", "part.1", "last")


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(("how", "plain"), [("module", "plain"), ("function", "plain twice")])
def test_a_checkpoint_gives_the_gradients_of_the_network_without(
    how: str, plain: str, inplace: bool
) -> None:
    ours, theirs = (
        loaded(Checkpointed(how, False, inplace)),
        loaded(Checkpointed(plain, False, False)),
    )
    picture = noise()
    for asked in (LAYERS, *((layer,) for layer in LAYERS)):
        found, expected = (capture(model, picture, asked, 2) for model in (ours, theirs))
        for layer in asked:
            assert found.calls(layer) == expected.calls(layer)
            for call in range(found.calls(layer)):
                assert expected.gradient(layer, call).any()
                assert torch.equal(found.gradient(layer, call), expected.gradient(layer, call))
    assert (
        travel(ours, picture).rows
        == travel(loaded(Checkpointed(plain, False, inplace)), picture).rows
    )


@pytest.mark.parametrize("how", ["module", "function"])
def test_a_reentrant_checkpoint_is_refused_with_what_to_do(how: str) -> None:
    model, picture = loaded(Checkpointed(how, True, True)), noise()
    plain = loaded(Checkpointed({"module": "plain", "function": "plain twice"}[how], True, True))
    assert np.array_equal(explain(model, picture).map, explain(plain, picture).map)
    for layer in ("part", "part.0", "part.1"):
        inside = rf"at «{layer}(#0)?», as it runs with gradients off.*use_reentrant=False.*«last»$"
        with pytest.raises(LayerError, match=inside):
            explain(model, picture, layers=layer)
        for ask in (
            capture(model, picture, [layer]).gradient,
            lambda p: channel_maps(model, picture, p),
        ):
            with pytest.raises(LayerError, match="use_reentrant=False there"):
                ask(layer)
    with pytest.raises(LayerError, match=r"before a checkpoint.*use_reentrant=False.*«last»$"):
        explain(model, picture, layers="stem")
    for ask in (lambda: travel(model, picture), lambda: run_experiment(Lab(model), picture)):
        with pytest.raises(LayerError, match="pass use_reentrant=False there"):
            ask()
