"""The numbers in a tensor, whatever kind it is of."""

import torch
from torch import Tensor


def numbers(tensor: Tensor) -> Tensor | None:
    """Every value of a tensor, dense, in float32 or float64, or complex.

    None for a tensor that has no values, which a «meta» tensor is, or no single shape.
    """
    tensor = tensor.detach()
    if tensor.is_meta or tensor.is_nested:
        return None
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        return tensor.to(torch.complex64) if tensor.dtype is torch.complex32 else tensor
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def followed(tensor: Tensor) -> bool:
    """Whether autograd can be asked for a gradient at a tensor of this type."""
    return tensor.is_floating_point() or tensor.is_complex()


def unusual(tensor: Tensor) -> str:
    """What a tensor holds that is no dense array of real numbers; empty for one."""
    if tensor.is_complex():
        return "complex numbers"
    if tensor.layout is not torch.strided:
        return "values of a sparse tensor"
    if tensor.is_quantized:
        return "quantized values"
    return "places without values (a «meta» tensor)" if tensor.is_meta else ""
