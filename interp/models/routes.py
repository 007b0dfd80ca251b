"""What ran for one picture, where the way through a network depends on what it is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from interp.errors import LayerError
from interp.hooks.nested import first_tensor
from interp.hooks.session import HookSession
from interp.hooks.undisturbed import undisturbed
from interp.models.copies import frozen_copy
from interp.models.layers import LayerInfo, did_not_run, find_layer, layer_table

Table = tuple[LayerInfo, ...]
Shape = tuple[int, ...] | None


def table_for(module: nn.Module, table: Table, tensor: Tensor) -> Table:
    """The layer table of this picture: `table` where it went the same way as the example did.

    It costs one forward pass without gradients, and a dry run where the ways differ.
    """
    seen: dict[str, list[Shape]] = {}
    with (
        undisturbed(tensor.device, gradients=False),
        HookSession(module, copy=frozen_copy(module)) as session,
    ):

        def note(path: str) -> Any:
            def hook(part: nn.Module, args: Any, output: Any) -> None:
                seen.setdefault(path, []).append(shape_of_first(output))

            return hook

        for info in table:
            if info.can_run:
                session.forward(
                    info.path, note(info.path), keeps="nothing", purpose="calls", origin="engine"
                )
        session.module(tensor)
    return table if same_way(table, seen) else layer_table(module, tensor)


def shape_of_first(output: Any) -> Shape:
    """The shape of the first tensor in what a module returned."""
    tensor = first_tensor(output)
    return None if tensor is None else tuple(tensor.shape)


def same_way(table: Table, seen: Mapping[str, Sequence[Shape]]) -> bool:
    """Whether the calls of a pass, by path, are those of the table."""
    return all(
        [row.shape for row in calls_of(info)] == list(seen.get(info.path, ()))
        for info in table
        if info.can_run
    )


def calls_of(info: LayerInfo) -> tuple[LayerInfo, ...]:
    """A row for each call of a layer."""
    return (info, *info.later_calls) if info.calls else ()


def find_for_picture(
    module: nn.Module, table: Table, tensor: Tensor, path: str, call: int
) -> LayerInfo:
    """As `find_layer`, and for a picture that makes a layer run which the example did not.

    Raises
    ------
    LayerError
        If the layer cannot carry a heatmap of this picture either.
    """
    try:
        return find_layer(table, path, call)
    except LayerError:
        # What the example ran is known, and needs no pass to be refused.
        if all(info.path != path or call < info.calls for info in table):
            raise
        own = table_for(module, table, tensor)
        if own is table:
            raise
    return find_layer(own, path, call, picture=True)


def as_it_ran(
    module: nn.Module,
    table: Table,
    tensor: Tensor,
    info: LayerInfo,
    call: int,
    calls: Sequence[Tensor | None],
    *,
    spatial: bool = True,
) -> LayerInfo:
    """The row of a call as it was in a pass of this picture.

    Parameters
    ----------
    spatial : bool
        Whether it has to carry a heatmap.
    info : LayerInfo
        The row that was chosen before the pass.
    calls : sequence of Tensor or None
        What the layer returned at each of its calls in the pass.

    Raises
    ------
    LayerError
        If there was no such call, or it cannot carry a heatmap.
    """
    ran = call < len(calls)
    shape = shape_of_first(calls[call]) if ran else None
    if ran and _one_picture(shape) == _one_picture(info.shape):
        return info
    own = table_for(module, table, tensor)
    if not calls:
        raise did_not_run(own, info, picture=True)
    rows = {row.path: calls_of(row) for row in own}[info.path]
    if spatial or call >= len(rows):
        find_layer(own, info.path, call, picture=own is not table)
    found = rows[call]
    if not ran or _one_picture(shape) != _one_picture(found.shape):
        raise LayerError(
            f"layer «{info.path}» did not do the same in two passes of this picture: this network "
            "draws random numbers, and where the places of this layer are is not known"
        )
    return found


def _one_picture(shape: Shape) -> Shape:
    """A shape without its first axis, along which pictures stand."""
    return None if shape is None else shape[1:]
