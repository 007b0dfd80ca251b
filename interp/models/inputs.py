"""What every module of a network is called with: the other half of the layer table."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.values import unusual
from interp.hooks.writes import tensors_in
from interp.models.axes import AxisTrace
from interp.models.layers import Layout, layout_of


@dataclass(frozen=True)
class InputInfo:
    """The first tensor that a module is given at one call; `shape` is None where there is none."""

    shape: tuple[int, ...] | None
    layout: Layout


def input_table(module: nn.Module, example: Tensor) -> dict[str, tuple[InputInfo, ...]]:
    """Run the network once on an example and note what each module is called with.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode; it is not changed.
    example : Tensor
        Shape (1, 3, h, w).

    Returns
    -------
    dict
        From the path of each module that ran to an entry for each of its calls.
    """
    found: dict[str, list[InputInfo]] = {}
    with (
        undisturbed(example.device, gradients=False),
        HookSession(module) as session,
    ):
        example = example.clone()
        trace = AxisTrace(example)

        def note(path: str) -> Any:
            def hook(part: nn.Module, args: Any, kwargs: Any) -> None:
                tensor = first_tensor((args, kwargs))
                if tensor is None:
                    info = InputInfo(None, "other")
                else:
                    shape = tuple(tensor.shape)
                    axes = None if unusual(tensor) else trace.settle(tensor, ())
                    info = InputInfo(shape, layout_of(shape, axes)[0])
                found.setdefault(path, []).append(info)

            return hook

        def settle(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            for tensor in tensors_in(output)[:1]:
                trace.settle(tensor, (args, kwargs))

        options: dict[str, Any] = {
            "with_kwargs": True,
            "keeps": "nothing",
            "purpose": "dry run of inputs",
            "origin": "engine",
        }
        for path, _ in module.named_modules():
            session.forward_pre(path, note(path), **options)
            session.forward(path, settle, **options)
        with trace:
            session.module(example)
    return {path: tuple(calls) for path, calls in found.items()}
