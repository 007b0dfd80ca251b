"""Which layer and which method: the choices of the Explain page, beside the picture."""

from collections import Counter

from interp.attribution import list_methods
from interp.models.layers import LayerInfo
from interp.ui import state
from interp.ui.picker import Group, Option, pick
from interp.ui.state import View

LOOSE_SHARE = 0.6


def choose_method(view: View) -> None:
    """The method, by what it says in a sentence."""
    options = tuple(
        Option(method.name, method.title, reason=method.summary.format(target="a class"))
        for method in list_methods()
    )
    chosen = next((method for method in list_methods() if method.name == view.method), None)
    pick(
        "Method",
        [Group("", options)],
        view.method,
        key="method",
        on_pick=lambda name: state.change(method=name),
        help=f"{chosen.definition} {chosen.paper}." if chosen else "",
        placeholder="Search methods",
    )


def choose_layer(view: View, table: tuple[LayerInfo, ...]) -> None:
    """The layer, the recommended one first; those that cannot carry a heatmap say why."""
    best = next((info for info in table if info.recommended), None)
    first = () if best is None else (_option(best, "", star=True),)
    groups = [Group("Recommended", first)]
    for title, rows in _by_part(table).items():
        groups.append(Group(title, tuple(option for info in rows for option in _options(info))))
    pick(
        "Layer",
        groups,
        view.layer,
        key="layer",
        on_pick=lambda path: state.change(layer=path),
        help=(
            "Where in the network to look. Early layers see edges in fine grids, late ones see "
            "things in coarse grids. Shapes are channels × height × width."
        ),
        placeholder=f"Search {len(table)} layers",
    )


def shape_text(info: LayerInfo) -> str:
    """«512 × 7 × 7» for a map, «50 tokens × 768» for tokens, the bare shape for anything else."""
    if info.shape is None:
        return ""
    if info.layout == "tokens":
        return f"{info.shape[1]} tokens × {info.shape[2]}"
    if info.grid is not None:
        return f"{info.channels} × {info.grid[0]} × {info.grid[1]}"
    return " × ".join(map(str, info.shape[1:])) or "scalar"


def _by_part(table: tuple[LayerInfo, ...]) -> dict[str, list[LayerInfo]]:
    """Rows by the part of the network they belong to, one level deeper where one part is most."""
    tops = Counter(info.path.partition(".")[0] for info in table)
    parts: dict[str, list[LayerInfo]] = {}
    for info in table:
        names = info.path.split(".")
        deep = tops[names[0]] > LOOSE_SHARE * len(table)
        parts.setdefault(".".join(names[: 2 if deep else 1]), []).append(info)
    return parts


def _options(info: LayerInfo) -> list[Option]:
    if info.calls < 2 or not info.spatial:
        return [_option(info, info.path)]
    return [
        _option(info, info.call_name(call), more=f"call {call + 1} of {info.calls}")
        for call in range(info.calls)
    ]


def _option(info: LayerInfo, value: str, star: bool = False, more: str = "") -> Option:
    reason = info.reason if star or info.same_as or not info.calls else more
    if info.calls and not info.spatial:
        reason = "no grid of places, so no heatmap"
    return Option(
        value,
        info.path,
        mono=True,
        detail=info.kind,
        right=shape_text(info),
        star=star,
        disabled=not info.spatial,
        reason=reason,
    )
