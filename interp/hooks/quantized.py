"""Quantized parts of a network, which have no gradient."""

from torch import Tensor, nn

from interp.errors import LayerError

_QUANTIZED = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.", "torch.nn.quantized.")
_NO_GRADIENT = "WarnNotImplemented"


def first_quantized(module: nn.Module) -> str | None:
    """The path of the first quantized part; None where there is none."""
    for path, part in module.named_modules():
        if type(part).__module__.startswith(_QUANTIZED):
            return path
    return None


def check_gradient(module: nn.Module, score: Tensor) -> None:
    """Refuse the gradient of a score that is computed through quantized numbers.

    PyTorch gives zeros there, with a warning at most.

    Raises
    ------
    LayerError
        A quantized part stands between the score and what its gradient is asked for.
    """
    path = first_quantized(module)
    if path is not None and (not score.requires_grad or _ends_early(score)):
        raise LayerError(
            f"«{path or 'the network'}» is quantized and has no gradient: take the network from "
            "before it was quantized, or a question that needs no gradient"
        )


def _ends_early(score: Tensor) -> bool:
    seen, waiting = set(), [score.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node.name().endswith(_NO_GRADIENT):
            return True
        seen.add(node)
        waiting += [before for before, _ in node.next_functions]
    return False
