"""How a module of a net is called and what it returns, as a script has to write it down."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.writes import tensors_in
from interp.models.copies import frozen_copy
from interp.models.loading import LoadedModel

Key = tuple[str, Any]  # the class of a container, and an index or a name in it
Way = tuple[Key, ...] | None


@dataclass(frozen=True)
class Place:
    """Where a module's first tensors are.

    Attributes
    ----------
    inputs : tuple of Key or None
        The way to the first tensor in (args, kwargs); None where there is none.
    outputs : tuple of Key or None
        The way to the first tensor in what it returns; empty where it is that tensor itself.
    written : bool
        Whether the network itself writes over its input or its output, where PyTorch's full
        backward hooks raise, also with every `inplace` flag off.
    """

    inputs: Way
    outputs: Way
    written: bool


def way_to_tensor(value: Any) -> Way:
    """The way to the first tensor in nested tuples, lists and dicts; None where there is none."""
    way: list[Key] = []
    while not isinstance(value, Tensor):
        if not tensors_in(value):
            return None
        kind = "named" if hasattr(value, "_fields") else _class(value)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        key, value = next((key, item) for key, item in items if tensors_in(item))
        way.append((kind, key))
    return tuple(way)


def _class(value: Any) -> str:
    return next(kind.__name__ for kind in (dict, list, tuple) if isinstance(value, kind))


def read(expression: str, way: Sequence[Key]) -> str:
    """Source that gets what lies at the end of a way: `output["out"][0]`."""
    return expression + "".join(f"[{_literal(key)}]" for _, key in way)


def rebuilt(expression: str, way: Sequence[Key], new: str) -> str:
    """Source for the same value with `new` at the end of a way: `(new, *output[1:])`."""
    if not way:
        return new
    (kind, key), rest = way[0], way[1:]
    inner = rebuilt(f"{expression}[{_literal(key)}]", rest, new)
    if kind == "dict":
        return f"{{**{expression}, {_literal(key)}: {inner}}}"
    before = f"*{expression}[:{key}], " if key else ""
    items = f"{before}{inner}, *{expression}[{key + 1}:]"
    if kind == "list":
        return f"[{items}]"
    return f"type({expression})({items})" if kind == "named" else f"({items})"


def _literal(key: Any) -> str:
    return json.dumps(key) if isinstance(key, str) else repr(key)


def find_places(model: LoadedModel, paths: Iterable[str]) -> dict[str, Place]:
    """Run the network once and see how the modules at `paths` are called.

    Every `inplace` flag is off in this run, as it is in a script.
    """
    copy = frozen_copy(model.module)
    for part in copy.modules():
        if hasattr(part, "inplace"):
            vars(part)["inplace"] = False
    found: dict[str, tuple[Way, Way]] = {}
    outputs: dict[str, list[Any]] = {}
    written: set[str] = set()
    size = model.preset.crop_size
    session = HookSession(model.module, copy=copy)

    def note(path: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if session.was_written((args, kwargs)):
                written.add(path)
            outputs.setdefault(path, []).append(output)
            if path not in found:
                found[path] = way_to_tensor((args, kwargs)), way_to_tensor(output)

        return hook

    example = torch.zeros(1, 3, size, size, device=model.device, dtype=_dtype(model.module))
    with (
        undisturbed(example.device, gradients=False),
        session,
    ):
        for path in dict.fromkeys(paths):
            # A write to the input is seen from when a pre-hook was given it.
            session.forward_pre(path, lambda *given: None, purpose="dry run", origin="engine")
            session.forward(path, note(path), with_kwargs=True, purpose="dry run", origin="engine")
        copy(example)
        written |= {path for path, values in outputs.items() if session.was_written(values)}
    return {
        path: Place(given, returned, path in written) for path, (given, returned) in found.items()
    }


def _dtype(module: nn.Module) -> torch.dtype:
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
