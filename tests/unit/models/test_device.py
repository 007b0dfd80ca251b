import pytest
import torch
from torch import nn

from interp.errors import ModelError
from interp.models.device import choose_device


@pytest.fixture
def machine(monkeypatch):
    def has(cuda=0, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return has


@pytest.mark.parametrize(
    ("cuda", "mps", "chosen"), [(1, True, "cuda"), (0, True, "mps"), (0, False, "cpu")]
)
def test_auto(machine, cuda, mps, chosen):
    machine(cuda, mps)
    assert choose_device("auto") == torch.device(chosen)


def test_auto_leaves_a_module_where_it_is(machine):
    machine(cuda=1)
    assert choose_device("auto", nn.Linear(1, 1)) == torch.device("cpu")
    assert choose_device("auto", nn.ReLU()) == torch.device("cuda")


def test_a_device_that_is_there(machine):
    machine(cuda=2)
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert choose_device("cpu", nn.Linear(1, 1, device="meta")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:2", "mps", "meta", "xpu", "gpu", "", "cpu:1"])
def test_a_device_that_is_not_there(machine, name):
    machine(cuda=2)
    with pytest.raises(ModelError, match="take auto or cuda or cpu"):
        choose_device(name)
