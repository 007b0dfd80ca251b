"""The autograd operations inside a module: a `Linear` is more than one of them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from interp.attribution.explanation import check_input
from interp.errors import LayerError
from interp.geometry import Fit
from interp.hooks.ledger import HookLedger
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.hooks.writes import tensors_in
from interp.inspection.frame import find_call
from interp.models.copies import frozen_copy
from interp.models.loading import LoadedModel
from interp.picture import Picture

MAX_OPERATIONS = 400

_TITLES = {
    "TBackward": "transpose (t)",
    "NativeBatchNormBackward": "batch norm (native)",
    "NativeLayerNormBackward": "layer norm (native)",
    "MmBackward": "matrix product (mm)",
    "BmmBackward": "batched matrix product (bmm)",
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+D?")


@dataclass(frozen=True)
class Operation:
    """One node of the autograd graph.

    Attributes
    ----------
    id : int
        Its place in forward order, from 0.
    name : str
        What `grad_fn` calls itself, such as «AddmmBackward0»; «AccumulateGrad» for a leaf.
    title : str
        In words: «addmm», «transpose (t)», «input 0», «parameter weight».
    inputs : tuple of int
        Ids of the nodes whose results it takes.
    shapes : tuple of tuple of int
        Of what it returns.
    """

    id: int
    name: str
    title: str
    inputs: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of one call of a module, in forward order; `note` says what is left out."""

    nodes: tuple[Operation, ...]
    path: str
    call: int
    kind: str
    note: str
    ledger: HookLedger


def operations(
    model: LoadedModel, picture: Picture, path: str, call: int = 0, fit: Fit = "crop"
) -> Operations:
    """Run a module again with what it was called with, and read its graph from `grad_fn`.

    Parameters
    ----------
    path, call
        Any layer that ran.

    Returns
    -------
    Operations
        At most 400 nodes, the first ones in forward order.

    Raises
    ------
    LayerError
        If there is no such layer or call.
    """
    check_input(model, picture, fit)
    ledger, tensor = HookLedger(), model.prepare(picture, fit)
    info = find_call(model, path, call, tensor)
    copy = frozen_copy(model.module)
    with undisturbed(tensor.device, gradients=True, seed=model.seed):
        args, kwargs = _given(model.module, copy, tensor, path, call, ledger)
        nodes, note = _graph(copy.get_submodule(path), args, kwargs)
    return Operations(nodes, path, call, info.kind, note, ledger)


def _given(
    module: nn.Module, copy: nn.Module, tensor: Tensor, path: str, call: int, ledger: HookLedger
) -> tuple[Any, Any]:
    """What the module is called with, as it was when it was called."""
    calls: list[tuple[Any, Any]] = []

    def keep(part: nn.Module, args: Any, kwargs: Any) -> None:
        # A network may add to a list after it was handed on, as DenseNet does.
        given = _mapped((args, kwargs), lambda tensor: tensor)
        calls.append(given if len(calls) == call else ((), {}))

    with torch.no_grad(), HookSession(module, ledger, copy=copy) as session:
        session.forward_pre(
            path, keep, with_kwargs=True, purpose="what it is called with", origin="engine"
        )
        session.module(tensor)
    if len(calls) <= call:
        raise LayerError(
            f"layer «{path}» ran {len(calls)} time(s) on this picture: there is no call {call}"
        )
    return calls[call]


def _graph(part: nn.Module, args: Any, kwargs: Any) -> tuple[tuple[Operation, ...], str]:
    inputs: dict[int, Tensor] = {}

    def follow(given: Tensor) -> Tensor:
        """A clone, since a network may write over its input, which no leaf allows."""
        if id(given) not in inputs:
            own = given.detach()
            followed = own.is_floating_point() or own.is_complex()
            inputs[id(given)] = own.requires_grad_().clone() if followed else own
        return inputs[id(given)]

    args, kwargs = _mapped(args, follow), _mapped(kwargs, follow)
    names: dict[Any, tuple[str, str, tuple[int, ...]]] = {}
    followed = [value for value in inputs.values() if value.grad_fn is not None]
    for number, value in enumerate(followed):
        names[value.grad_fn] = ("Input", f"input {number}", tuple(value.shape))
    parameters = _follow_parameters(part)
    returned = tensors_in(part(*args, **kwargs))
    ends = [value.grad_fn for value in returned if value.grad_fn is not None]
    if not ends:
        return (), "Autograd follows nothing here: what this module returns depends on no gradient."
    # What it is called with stands first, wherever it is used.
    order = sorted(_forward_order(ends, stop=set(names)), key=lambda node: node not in names)
    return _described(order, names, parameters), _note(len(order), returned, ends, names)


def _note(count: int, returned: list[Tensor], ends: list[Any], names: Any) -> str:
    if all(end in names for end in ends):
        return "This module hands its input on and does nothing with it."
    if count > MAX_OPERATIONS:
        return f"{count} operations: the first {MAX_OPERATIONS} in forward order are shown."
    return ""


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nested tuples, lists and dicts with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, change) for item in value)
    return value


def _follow_parameters(part: nn.Module) -> dict[int, str]:
    """Let autograd follow the copy's own parameters; their names by identity."""
    names = {}
    for name, parameter in part.named_parameters():
        if parameter.is_floating_point() or parameter.is_complex():
            names[id(parameter.requires_grad_())] = name
    return names


def _forward_order(ends: list[Any], stop: set[Any]) -> Iterator[Any]:
    """Every node that leads to `ends`, each after the ones whose results it takes."""
    done: set[Any] = set()
    waiting = [(end, False) for end in reversed(ends)]
    while waiting:
        node, ready = waiting.pop()
        if node in done:
            continue
        if ready or node in stop:
            done.add(node)
            yield node
            continue
        waiting.append((node, True))
        before = [earlier for earlier, _ in node.next_functions if earlier is not None]
        waiting += [(earlier, False) for earlier in reversed(before) if earlier not in done]


def _described(
    order: list[Any], names: dict[Any, tuple[str, str, tuple[int, ...]]], parameters: dict[int, str]
) -> tuple[Operation, ...]:
    ids = {node: number for number, node in enumerate(order)}
    described = []
    for node in order[:MAX_OPERATIONS]:
        number = ids[node]
        if node in names:
            name, title, shape = names[node]
            described.append(Operation(number, name, title, (), (shape,)))
        elif (leaf := getattr(node, "variable", None)) is not None:
            title = f"parameter {parameters.get(id(leaf), 'of another module')}"
            described.append(Operation(number, _name(node), title, (), (tuple(leaf.shape),)))
        else:
            before = [ids[earlier] for earlier, _ in node.next_functions if earlier is not None]
            shapes = tuple(tuple(meta.shape) for meta in node._input_metadata)
            described.append(
                Operation(number, _name(node), _title(_name(node)), tuple(before), shapes)
            )
    return tuple(described)


def _name(node: Any) -> str:
    return str(node.name()).rpartition(":")[2]


def _title(name: str) -> str:
    """«NativeBatchNormBackward0» in words."""
    bare = re.sub(r"\d+$", "", name)
    if bare in _TITLES:
        return _TITLES[bare]
    return " ".join(word.lower() for word in _WORDS.findall(bare.removesuffix("Backward")))
