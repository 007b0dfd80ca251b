"""A caller's own module as a net to explain, without changing it."""

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from interp.errors import ModelError
from interp.hooks.undisturbed import undisturbed
from interp.models.copies import frozen_copy, private_copy
from interp.models.twins import Aliases


def frozen_alias(module: nn.Module) -> nn.Module:
    """A private copy whose parameters are its own, frozen, over the memory of the caller's.

    Raises
    ------
    ModelError
        The module has lazy parameters, which have no values yet.
    """
    if any(is_lazy(parameter) for parameter in module.parameters()):
        raise ModelError(f"{type(module).__name__} has lazy parameters: run it once before")
    return private_copy(module, Aliases())


def count_outputs(module: nn.Module, example: Tensor) -> int:
    """Number of logits a module returns for one picture, from one dry run.

    Parameters
    ----------
    module : in evaluation mode; a private copy of it runs.
    example : (1, 3, h, w).

    Raises
    ------
    ModelError
        It fails, or returns something other than a tensor (1, classes).
    """
    kind = type(module).__name__
    size = "×".join(map(str, example.shape))
    try:
        with undisturbed(example.device, gradients=False):
            output = frozen_copy(module)(example)
    except Exception as error:  # whatever the caller's code raises
        reason = " ".join(str(error).split())[:160]
        raise ModelError(
            f"{kind} fails on a {size} input ({reason}): give transforms= of the size it wants"
        ) from error
    if not isinstance(output, Tensor) or output.ndim != 2 or len(output) != 1:
        got = type(output).__name__
        if isinstance(output, Tensor):
            got = "×".join(map(str, output.shape)) or "a scalar"
        raise ModelError(
            f"{kind} returns {got} for a {size} input, not logits 1×classes: wrap it in a module "
            "that returns these"
        )
    return output.shape[1]
