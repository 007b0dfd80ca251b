import pytest
import torch
from torch import nn

from interp.errors import ModelError
from interp.models.foreign import count_outputs, frozen_alias

EXAMPLE = torch.zeros(1, 3, 8, 8)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(self.norm(self.conv(x)).mean((2, 3))))


def test_the_copy_is_frozen_and_shares_memory():
    net = Tied()
    alias = frozen_alias(net)
    for name, parameter in net.named_parameters():
        other = alias.get_parameter(name)
        assert other is not parameter
        assert other.data_ptr() == parameter.data_ptr()
        assert parameter.requires_grad
        assert not other.requires_grad
    assert alias.first.weight is alias.second.weight
    assert alias.norm.running_mean.data_ptr() == net.norm.running_mean.data_ptr()
    assert torch.equal(alias.eval()(EXAMPLE), net.eval()(EXAMPLE))


def test_the_callers_module_is_untouched():
    net = Tied().train()
    net.conv.weight.requires_grad_(False)
    net.first.weight.grad = torch.ones(4, 4)
    calls = []
    net.conv.register_forward_hook(lambda *_: calls.append(1))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    alias = frozen_alias(net).eval()
    assert count_outputs(alias, EXAMPLE) == 4
    assert calls == [1]  # it is part of the network
    assert len(net.conv._forward_hooks) == len(alias.conv._forward_hooks) == 1
    assert net.conv._forward_hooks is not alias.conv._forward_hooks
    assert all(module.training for module in net.modules())
    assert [p.requires_grad for p in net.parameters()] == [False] + [True] * 6
    assert torch.equal(net.first.weight.grad, torch.ones(4, 4))
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_a_module_made_in_inference_mode_can_be_differentiated():
    with torch.inference_mode():
        net = Tied()
    alias = frozen_alias(net).eval()
    pixels = torch.randn(1, 3, 8, 8, requires_grad=True)
    alias(pixels).sum().backward()
    assert pixels.grad.abs().sum() > 0


def test_lazy_parameters_are_refused():
    with pytest.raises(ModelError, match="lazy parameters"):
        frozen_alias(nn.LazyLinear(3))


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ({"logits": torch.zeros(1, 3)}, "dict"),
        ((torch.zeros(1, 3),), "tuple"),
        (torch.zeros(3), "3"),
        (torch.zeros(2, 3), "2×3"),
        (torch.zeros(1, 3, 7, 7), "1×3×7×7"),
        (torch.zeros(()), "a scalar"),
        (None, "NoneType"),
    ],
)
def test_what_are_no_logits_is_refused(value, got):
    with pytest.raises(ModelError, match=f"^Returns returns {got} for a 1×3×8×8 input"):
        count_outputs(Returns(value), EXAMPLE)


def test_one_logit_will_do():
    assert count_outputs(Returns(torch.zeros(1, 1)), EXAMPLE) == 1


def test_a_module_that_fails_is_refused_in_one_line():
    with pytest.raises(ModelError, match=r"^Linear fails on a 1×3×8×8 input \(mat1 and") as error:
        count_outputs(nn.Linear(3, 4), EXAMPLE)
    assert "\n" not in str(error.value)


def test_a_dry_run_draws_no_random_numbers_of_the_caller():
    class Noisy(nn.Module):
        def forward(self, x):
            return torch.randn(1, 3)

    before = torch.get_rng_state()
    count_outputs(Noisy(), EXAMPLE)
    assert torch.equal(torch.get_rng_state(), before)
