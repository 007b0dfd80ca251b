"""What a copy of a network has in place of its tensors: the same, others over the same memory, or
twins whose memory is copied when one of the two is written to."""

import threading

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from interp.errors import ModelError
from interp.hooks.writes import copied_on_write, storage_of, with_strides
from interp.models.belongings import memory_of

# PyTorch prepares a memory for copies on write at the first of them, not safe between threads.
_FIRST = threading.Lock()


class Same:
    """The very tensors, but for those from inference mode, which autograd cannot follow."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        """The tensor for the copy; what is one tensor in the network is one in the copy.

        Raises
        ------
        ModelError
            It is lazy: it has no values yet.
        """
        known = self._made.get(id(tensor))
        if known is None:
            if is_lazy(tensor):
                raise ModelError("the network has lazy parameters: run it once before")
            known = self._made[id(tensor)] = tensor, self._make(tensor)
        return known[1]

    def _make(self, tensor: Tensor) -> Tensor:
        if not tensor.is_inference():
            return tensor
        return _of_its_kind(tensor, tensor.clone(), tensor.requires_grad)


class Aliases(Same):
    """Frozen tensors over the same memory."""

    def _make(self, tensor: Tensor) -> Tensor:
        plain = tensor.clone() if tensor.is_inference() else tensor.detach()
        return _of_its_kind(tensor, plain, False)


class Twins(Same):
    """Frozen tensors of the same values: what is written to them stays in the copy.

    Tensors that share memory share it in the copy as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memories: dict[int, torch.UntypedStorage] = {}

    def _make(self, tensor: Tensor) -> Tensor:
        return _of_its_kind(tensor, self._twin(tensor.detach()), False)

    def _twin(self, plain: Tensor) -> Tensor:
        if not is_plain_memory(plain):
            return lazy_clone(plain)
        key = storage_of(plain)
        if key in self._memories:
            return _over(self._memories[key], plain)
        own = lazy_clone(plain)
        self._memories[key] = own.untyped_storage()
        return own


class Beside(Twins):
    """The very tensors that need a gradient, so that it arrives there, and twins of the others.

    What shares memory with one of the former is the very tensor as well.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        needing = [one for one in module.parameters() if one.requires_grad]
        self._shared: set[int] = set().union(*map(memory_of, needing))

    def _make(self, tensor: Tensor) -> Tensor:
        if tensor.requires_grad or not self._shared.isdisjoint(memory_of(tensor)):
            return Same._make(self, tensor)
        return super()._make(tensor)


def lazy_clone(plain: Tensor) -> Tensor:
    """A detached tensor's values in a memory that is copied when one of the two is written to."""
    if not is_plain_memory(plain):
        return with_strides(plain.clone(), plain)
    with _FIRST:
        later = copied_on_write(plain)
    return _over(plain.untyped_storage().clone(), plain) if later is None else later


def _over(memory: torch.UntypedStorage, like: Tensor) -> Tensor:
    empty = torch.empty(0, dtype=like.dtype, device=like.device)
    return empty.set_(memory, like.storage_offset(), like.size(), like.stride())


def is_plain_memory(tensor: Tensor) -> bool:
    """Whether a tensor is no more than numbers in a memory: neither sparse nor quantized."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not (tensor.is_quantized or tensor.is_inference() or tensor.is_conj())
        and not tensor.is_neg()
    )


def _of_its_kind(tensor: Tensor, values: Tensor, requires_grad: bool) -> Tensor:
    if isinstance(tensor, nn.Parameter):
        values = nn.Parameter(values, requires_grad=requires_grad)
    if vars(tensor):
        vars(values).update(vars(tensor))
    return values
