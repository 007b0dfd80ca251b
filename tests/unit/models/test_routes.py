"""Networks that go another way with each picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from odd_nets import Base, conv, loaded, noise
from torch import Tensor

from interp import (
    Lab,
    capture,
    channel_maps,
    dead_units,
    explain,
    operations,
    run_experiment,
    statistics,
    travel,
)
from interp.errors import LayerError
from interp.inspection.travel import layer_values
from interp.models.layers import recommended_layer
from interp.models.routes import same_way, table_for

BRIGHT, DARK = noise(), noise(high=30)


class Route(Base):
    """A picture of much contrast goes through `bright`, another through `dark`."""

    def __init__(self) -> None:
        super().__init__()
        self.bright, self.dark = conv(4, 6), conv(4, 6)
        self.fc = torch.nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        way = self.bright if x.std() > 0.2 else self.dark
        self.kept = way(self.stem(x).relu())
        return self.fc(self.kept.relu().mean((2, 3)))


class Loop(Base):
    """`last` runs 1 to 3 times; then `extra`, which halves the grid, where it ran three times."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = torch.nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        times = 1 + int(x.mean() * 5)
        self.kept = [self.stem(x).relu()]
        for _ in range(times):
            self.kept.append(self.last(self.kept[-1]).relu())
        y = self.kept[-1]
        return self.fc((self.extra(y) if times == 3 else y).mean((2, 3)))


def grad_cam(net, x, kept, target):
    """Grad-CAM from autograd alone; `kept` gives the feature map after the pass."""
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        score = net(x)[0, target]
        feature_map = kept(net)
        gradient = torch.autograd.grad(score, feature_map)[0]
    return (feature_map * gradient.mean((2, 3), keepdim=True)).sum(1)[0].detach()


@pytest.mark.parametrize(
    ("picture", "ran", "other", "refusal"),
    [
        (BRIGHT, "bright", "dark", r"«dark» did not run for this picture: .*, such as «bright»$"),
        (
            DARK,
            "dark",
            "bright",
            r"«bright» never runs: .*, or a way that only other pictures take",
        ),
    ],
)
def test_the_way_of_the_picture_is_explained_and_the_other_one_refused(
    picture, ran, other, refusal
):
    net = Route()
    model = loaded(net)
    assert recommended_layer(model.layers).path == "dark"  # zeros have no contrast
    expected = grad_cam(net, model.prepare(picture), lambda net: net.kept, 3)
    for layers in (ran, None):
        found = explain(model, picture, layers=layers, target=3)
        assert found.layers == (ran,)
        torch.testing.assert_close(torch.from_numpy(found.map.copy()), expected)
    for ask in (
        lambda: explain(model, picture, layers=[other]),
        lambda: explain(model, picture, layers=["stem", other]),
        lambda: channel_maps(model, picture, other),
    ):
        with pytest.raises(LayerError, match=refusal):
            ask()
    with pytest.raises(LayerError, match=f"«{other}» ran 0 times for this input"):
        capture(model, picture, [other]).gradient(other)


def test_everything_else_follows_the_picture():
    model = loaded(Route())
    for picture, ran, other in ((BRIGHT, "bright", "dark"), (DARK, "dark", "bright")):
        rows = {row.path: row for row in statistics(model, picture).rows}
        assert rows[ran].channels == 6
        assert other not in rows
        assert [row.path for row in travel(model, picture).rows] == ["stem", ran, "fc"]
        assert [row.path for row in run_experiment(Lab(model), picture).norms] == [
            *("stem", ran, "fc")
        ]
        assert channel_maps(model, picture, ran).count == 6
        assert operations(model, picture, ran).nodes
        assert layer_values(model, picture, ran).value.shape == (1, 6, 16, 16)
    both = {row.path: row.channels for row in dead_units(model, [BRIGHT, DARK])}
    assert both == {"stem": 4, "bright": 6, "dark": 6, "fc": 5}


def test_each_call_of_a_loop_is_found_and_paired_with_its_own_gradient():
    net = Loop()
    model, times = loaded(net), 3
    x = model.prepare(BRIGHT)
    assert [info.calls for info in model.layers if info.path == "last"] == [1]
    captured = capture(model, BRIGHT, ["last"], 1)
    assert captured.calls("last") == times
    for call in range(times):
        # The layer's own output stands before the ReLU whose result the net keeps.
        gradient = captured.gradient("last", call)
        weights = gradient.mean((2, 3), keepdim=True)
        expected = (captured.feature_map("last", call) * weights).sum(1)[0]
        found = explain(model, BRIGHT, layers=f"last#{call}", target=1)
        torch.testing.assert_close(torch.from_numpy(found.map.copy()), expected)
        assert channel_maps(model, BRIGHT, "last", call).count == 4
    with pytest.raises(
        LayerError, match=r"ran 3 time\(s\) for this picture: its calls are last#0, "
    ):
        explain(model, BRIGHT, layers="last#3")
    net(x.requires_grad_())
    first = travel(model, BRIGHT, target=1).row("last")
    assert first.gradient_norm == pytest.approx(float(captured.gradient("last", 0).norm()), 1e-5)
    assert first.value_norm == pytest.approx(float(captured.feature_map("last", 0).norm()), 1e-5)
    assert explain(model, BRIGHT, layers="extra").map.shape == (8, 8)
    assert [row.call for row in statistics(model, BRIGHT).rows if row.path == "last"] == [0, 1, 2]


def test_a_map_of_another_size_keeps_its_own_layout():
    class Turns(Base):
        """Of a bright picture the map is turned to channels last; both have the same sizes."""

        def __init__(self):
            super().__init__()
            self.turn = torch.nn.Identity()

        def forward(self, x):
            y = self.last(self.stem(x).relu())
            y = self.turn(y.permute(0, 2, 3, 1) if x.std() > 0.2 else y)
            return self.fc(y.mean((1, 2)) if y.shape[-1] == 4 else y.mean((2, 3)))

    model = loaded(Turns())
    maps = {p: channel_maps(model, p, "turn") for p in (BRIGHT, DARK)}
    assert {one.info.layout for one in maps.values()} == {"nhwc", "nchw"}
    assert [one.count for one in maps.values()] == [4, 4]
    for picture, found in maps.items():
        assert np.array_equal(found.maps, channel_maps(model, picture, "last").maps)
        assert {r.path: r.channels for r in statistics(model, picture).rows}["turn"] == 4
        cams = [explain(model, picture, layers=layer, target=0).map for layer in ("turn", "last")]
        assert np.allclose(*cams)


def test_a_picture_that_goes_the_way_of_the_example_has_its_table():
    model = loaded(Route())
    module, table = model.module, model.layers
    assert table_for(module, table, model.prepare(DARK)) is table
    own = table_for(module, table, model.prepare(BRIGHT))
    assert {info.path: info.calls for info in own} == {
        **{"stem": 1, "last": 0, "fc": 1},
        **{"bright": 1, "dark": 0},
    }
    assert not same_way(table, {"stem": [(1, 4, 16, 16)]})
