"""The numbers in tensors of every kind."""

import pytest
import torch

from interp.hooks.values import followed, numbers, unusual
from interp.hooks.writes import storage_of, tensors_in, twin

DENSE = torch.tensor([[0.0, 1.5], [-2.0, 0.0]])


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (DENSE, ""),
        (DENSE.half(), ""),
        (DENSE.double(), ""),
        (DENSE.to(torch.float8_e4m3fn), ""),
        (DENSE.to_sparse(), "values of a sparse tensor"),
        (DENSE.to_sparse_csr(), "values of a sparse tensor"),
        (torch.quantize_per_tensor(DENSE, 0.5, 8, torch.quint8), "quantized values"),
    ],
)
def test_the_same_values_whatever_holds_them(tensor, words):
    assert torch.equal(numbers(tensor).double(), DENSE.double())
    assert unusual(tensor) == words


def test_complex_numbers_stay_so_and_a_meta_tensor_has_none():
    tensor = torch.complex(DENSE, DENSE)
    assert numbers(tensor) is not None
    assert numbers(tensor).dtype is torch.complex64
    assert numbers(tensor.to(torch.complex32)).dtype is torch.complex64
    assert unusual(tensor) == "complex numbers"
    assert numbers(DENSE.to("meta")) is None
    assert numbers(DENSE > 0).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_where_a_gradient_can_be_asked_for():
    assert followed(DENSE)
    assert followed(DENSE.to(torch.complex64))
    assert not followed(DENSE.long())
    assert not followed(DENSE > 0)


@pytest.mark.parametrize("sparse", [DENSE.to_sparse(), DENSE.to_sparse_csr()])
def test_the_memory_of_a_sparse_tensor_is_that_of_its_values(sparse):
    assert storage_of(sparse) == storage_of(sparse.detach())
    assert storage_of(sparse) != storage_of(sparse.clone())
    assert torch.equal(twin(sparse).to_dense(), DENSE)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_tensor_of_several_sizes_is_left_out(layout):
    nested = torch.nested.nested_tensor([DENSE, DENSE[:1]], layout=layout)
    assert tensors_in([nested, {"a": DENSE}])[0] is DENSE
    assert tensors_in(nested) == []
