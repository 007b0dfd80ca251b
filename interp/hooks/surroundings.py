"""What of the caller's process and thread a pass runs in, and that may change its values."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack


def global_hooks() -> dict[str, int]:
    """How many hooks on all modules of this process there are, of each kind that has any.

    No private copy is without them: PyTorch runs them for every module there is.
    """
    full = torch_module._global_is_full_backward_hook is not False
    found = {
        "forward_pre": torch_module._global_forward_pre_hooks,
        "forward": torch_module._global_forward_hooks,
        "full_backward_pre": torch_module._global_backward_pre_hooks,
        "full_backward" if full else "backward": torch_module._global_backward_hooks,
    }
    return {kind: len(hooks) for kind, hooks in found.items() if hooks}


@dataclass(frozen=True)
class Surroundings:
    """What was in force around a run. All of it is respected: a run changes none of it.

    Inference mode and the grad mode are not among them, since no run heeds those of the caller.

    Attributes
    ----------
    global_hooks : hooks on all modules of the process: how many of each kind.
    autocast : the type that `torch.autocast` computes in, or None where it is off.
    default_dtype : of the tensors that a network makes itself.
    modes : classes of `TorchFunctionMode` and `TorchDispatchMode` that the caller has entered.
    deterministic : whether only deterministic kernels are allowed.
    float32_precision : of matrix products: "highest", "high" or "medium".
    """

    global_hooks: dict[str, int]
    autocast: str | None
    default_dtype: str
    modes: tuple[str, ...]
    deterministic: bool
    float32_precision: str

    @classmethod
    def now(cls, device: torch.device) -> "Surroundings":
        """Those of this thread, for a run on that device."""
        kind, autocast = device.type, None
        if torch.is_autocast_enabled(kind):
            autocast = _short(torch.get_autocast_dtype(kind))
        return cls(
            global_hooks=global_hooks(),
            autocast=autocast,
            default_dtype=_short(torch.get_default_dtype()),
            modes=tuple(_modes()),
            deterministic=torch.are_deterministic_algorithms_enabled(),
            float32_precision=torch.get_float32_matmul_precision(),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"modes": list(self.modes)}

    def notes(self) -> tuple[str, ...]:
        """A sentence for each thing that may have changed values."""
        notes = []
        if count := sum(self.global_hooks.values()):
            kinds = ", ".join(f"{kind} {number}" for kind, number in self.global_hooks.items())
            some = f"{count} global module hook{'s' * (count > 1)}"
            notes.append(
                f"{some} of the caller's process ran too, and may have changed values: {kinds}."
            )
        if self.autocast:
            notes.append(
                f"Run under autocast to {self.autocast}, as the caller asked: many operations "
                "computed in that type."
            )
        if self.default_dtype != "float32":
            notes.append(
                f"Run with {self.default_dtype} as PyTorch's default type: tensors that the "
                "network makes are of it."
            )
        if self.modes:
            notes.append(
                f"Run under modes of the caller that may have changed values: "
                f"{', '.join(self.modes)}."
            )
        return tuple(notes)


def _modes() -> list[str]:
    stack = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]
    kinds = [type(mode) for mode in stack]
    # The engine's own, where a result is put together inside a pass.
    return [kind.__qualname__ for kind in kinds if not kind.__module__.startswith("interp.")]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
