"""Quantized parts answer, and say that they have no gradient."""

import pytest
import torch
from torch import Tensor, nn

from interp import capture, load_model
from interp.errors import LayerError
from interp.hooks.passes import forward_pass
from interp.models.copies import frozen_copy, own_copy, private_copy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


class Net(nn.Module):
    """Two convolutions around a branch, and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.last = nn.Conv2d(4, 4, 3)
        self.fc = nn.Linear(4, 3)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.last(self.conv(x)).relu().mean((2, 3)))


def _quantized() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(Net(), {nn.Linear})


def test_a_quantized_head_answers_and_has_no_gradient() -> None:
    net = _quantized()
    x = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = net(x)
        for copier in (private_copy, frozen_copy, own_copy):
            assert torch.equal(copier(net)(x), expected)
    model = load_model(module=net, device="cpu")
    assert [info.path for info in model.layers if info.recommended] == ["last"]
    assert torch.equal(capture(model, x, ["conv"], gradients=False).logits, expected)
    with pytest.raises(
        LayerError, match=r"^«fc» is quantized and has no gradient: [^\n]*before it"
    ):
        capture(model, x, ["conv"])


def test_a_gradient_behind_the_quantized_part_is_given() -> None:
    net = nn.Sequential(_quantized(), nn.Linear(3, 3)).eval()
    with forward_pass(net, torch.randn(1, 3, 16, 16), ["0.fc"]) as run:
        (gradient,) = run.gradients(run.logits.sum()).values()
    torch.testing.assert_close(gradient, net[1].weight.detach().sum(0, keepdim=True))


def test_a_network_that_is_quantized_all_through_is_refused_in_words() -> None:
    net = torch.ao.quantization.QuantWrapper(Net()).eval()
    engine = "x86" if "x86" in torch.backends.quantized.supported_engines else "qnnpack"
    net.qconfig = torch.ao.quantization.get_default_qconfig(engine)
    x = torch.randn(1, 3, 16, 16)
    torch.ao.quantization.prepare(net, inplace=True)(x)
    torch.ao.quantization.convert(net, inplace=True)
    model = load_model(module=net, device="cpu")
    assert torch.equal(capture(model, x, ["module.conv"], gradients=False).logits, net(x))
    with pytest.raises(LayerError, match="is quantized and has no gradient"):
        capture(model, x, ["module.conv"])
