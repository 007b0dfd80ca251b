import pytest
import torch
from torch import nn

from interp.errors import LayerError
from interp.models.layers import layer_table, recommended_layer
from interp.models.loading import load_model

EXAMPLE = torch.zeros(1, 3, 16, 16)
CHOICES = {
    "alexnet": "features.10",
    "convnext_tiny": "features.7.2",
    "densenet121": "features.norm5",
    "efficientnet_lite0": "features.8.1",
    "mobilenet_v3_small": "features.12.1",
    "resnet18": "layer4.1",
    "squeezenet1_1": "features.12",
    "swin_t": "norm",
    "vit_b_32": "encoder.layers.encoder_layer_11.ln_1",
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_layer_of_known_models(name):
    table = load_model(name, weights="none", device="cpu").layers
    assert [info.path for info in table if info.recommended] == [CHOICES[name]]
    row = recommended_layer(table)
    assert row.spatial
    h, w = row.grid
    kind = "patch tokens still reach" if row.extra_tokens else "learned weights"
    assert kind in row.reason
    assert row.reason.endswith(f"{h} × {w}")


def choice(net):
    chosen = [info.path for info in layer_table(net.eval(), EXAMPLE) if info.recommended]
    assert len(chosen) < 2
    return chosen[0] if chosen else None


def test_the_convolution_before_the_pooling():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Conv2d(4, 5, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(5, 6, 1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )
    assert choice(net) == "1"


def test_a_last_convolution_that_makes_the_scores_is_passed_over():
    net = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()),
        nn.Conv2d(4, 6, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    assert choice(net) == "0.0"
    net[1] = nn.Sequential(nn.Conv2d(4, 6, 1), nn.ReLU())
    assert choice(net) == "0.0"
    assert choice(nn.Sequential(nn.Conv2d(3, 6, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())) == "0"


def test_as_many_channels_as_classes_mean_nothing_by_themselves():
    """A ResNet-18 with 512 classes has them in its whole last stage."""
    model = load_model("resnet18", weights="none", categories=map(str, range(512)), device="cpu")
    assert recommended_layer(model.layers).path == "layer4.1"


def test_one_output_does_not_make_every_map_a_score():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Conv2d(4, 1, 3),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 1),
    )
    assert choice(net) == "1"


class SideBranch(nn.Module):
    """What runs last is thrown away."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)
        self.side = nn.Conv2d(4, 7, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.body(x)
        self.side(x)
        return self.head(x.mean((2, 3)))


def test_a_layer_off_the_path_is_passed_over():
    assert choice(SideBranch()) == "body"


def test_a_blank_example_that_stops_every_gradient_does_not_matter():
    """Without biases a black picture leaves zeros behind each ReLU."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False),
        nn.ReLU(),
        nn.Conv2d(4, 5, 3, bias=False),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(5, 2),
    )
    assert choice(net) == "2"


class Tokens(nn.Module):
    """Patches and a class token through two blocks; the class token alone is read, or the mean."""

    def __init__(self, read_mean):
        super().__init__()
        self.read_mean = read_mean
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.first = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.last(self.first(torch.cat([self.token, x], 1)))
        return self.head(x[:, 1:].mean(1) if self.read_mean else x[:, 0])


def test_tokens_that_the_scores_no_longer_read_are_passed_over():
    assert choice(Tokens(read_mean=True)) == "last"
    assert choice(Tokens(read_mean=False)) != "last"


def test_a_head_of_zeros_hides_no_layer():
    net = Tokens(read_mean=True)
    nn.init.zeros_(net.head.weight)
    assert choice(net) == "last"
    assert not net.head.weight.any()


def test_nothing_to_recommend():
    assert choice(nn.Sequential(nn.Flatten(), nn.Linear(768, 4))) is None
    assert choice(nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(768, 4))) is None


def test_the_table_is_there_where_no_layer_can_be_recommended():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("no derivative is written")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.act, self.fc = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Linear(4, 3)

        def forward(self, x):
            return self.fc(Fails.apply(self.act(self.conv(x))).mean((2, 3)))

    table = layer_table(Net().eval(), EXAMPLE)
    assert [info.path for info in table] == ["conv", "act", "fc"]
    assert not any(info.recommended for info in table)
    with pytest.raises(LayerError, match=r"no recommended layer, because the gradient cannot be"):
        recommended_layer(table)
    assert "RuntimeError: no derivative is written" in table[0].obstacle
