"""The stages of a network, from input to output: where one class can be followed through it."""

from collections.abc import Sequence

from interp.models.layers import LayerInfo


def stages(table: Sequence[LayerInfo], at_most: int = 8) -> tuple[LayerInfo, ...]:
    """A few layers that stand for the depth of a network, ending with the recommended one.

    Parameters
    ----------
    table : sequence of LayerInfo
        Of the whole network.
    at_most : int
        How many to return; where there are more, evenly spaced ones.

    Returns
    -------
    tuple of LayerInfo
        All with a grid of places, in the order in which they run; empty where there are none.
    """
    rows = {info.path: info for info in table}
    last = next((info for info in table if info.recommended), None)
    if last is None:
        return ()
    usable = [info for info in table if info.spatial and info.parameters and not info.same_as]
    chain = [_like_the_last(info, last, rows) for info in _row_of_blocks(usable)]
    before = {info.path: info for info in chain if info.order < last.order}
    inside = [path for path in before if last.path.startswith(f"{path}.")]
    for path in inside:
        del before[path]
    ordered = [*sorted(before.values(), key=lambda info: info.order), last]
    if len(ordered) <= at_most:
        return tuple(ordered)
    step = (len(ordered) - 1) / (at_most - 1)
    return tuple(ordered[round(i * step)] for i in range(at_most))


def _row_of_blocks(usable: Sequence[LayerInfo]) -> list[LayerInfo]:
    """The shallowest modules that follow one another: the children of one parent, three or more."""
    children: dict[str, list[LayerInfo]] = {}
    for info in usable:
        children.setdefault(info.path.rpartition(".")[0], []).append(info)
    for _, row in sorted(children.items(), key=lambda item: (item[0].count("."), item[0] != "")):
        blocks = [info for info in row if info.path in children]
        if len(blocks) >= 3:
            return blocks
        if len(row) >= 3:
            return row
    return list(usable)


def _like_the_last(info: LayerInfo, last: LayerInfo, rows: dict[str, LayerInfo]) -> LayerInfo:
    """In a transformer, the same place inside an earlier block as the recommended layer's."""
    if not last.extra_tokens:
        return info
    depth = info.path.count(".") + 1
    inner = rows.get(".".join([info.path, *last.path.split(".")[depth:]]))
    return inner if inner is not None and inner.spatial else info
