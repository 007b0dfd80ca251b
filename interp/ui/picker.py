"""The searchable picker of the dashboard: models, layers and classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interp.ui.components import component
from interp.ui.picks import answer, answered


@dataclass(frozen=True)
class Option:
    """One thing to choose, in plain text.

    Parameters
    ----------
    value : what `pick` is given and gives back; never shown, but searched.
    title : its name.
    mono : whether the name is a module path, and `right` a shape.
    detail : in grey after the name: the class of a module, the parameters of a model.
    right : at the right edge: a shape, an accuracy, a probability.
    badge : before it, with `dot`: «bundled», «98 MB».
    dot : a sign before the badge: ready, neutral, needs care, not to be had.
    star : whether it is recommended.
    disabled : whether it is shown but cannot be chosen.
    reason : a second line that says why it is disabled or recommended.
    """

    value: str
    title: str
    mono: bool = False
    detail: str = ""
    right: str = ""
    badge: str = ""
    dot: Literal["", "good", "plain", "warn", "off"] = ""
    star: bool = False
    disabled: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Group:
    """Options under one heading; no heading where `title` is empty."""

    title: str
    options: tuple[Option, ...]


def pick(
    label: str,
    groups: Sequence[Group],
    value: str,
    *,
    key: str,
    on_pick: Callable[[str], None],
    help: str = "",
    placeholder: str = "Search",
    width: Literal["stretch"] | int = "stretch",
) -> None:
    """Show the chosen option as a control that opens a searchable list of all.

    Only choosing another option reruns the script: opening, searching and closing do not.

    Parameters
    ----------
    label : what is chosen, above the control.
    groups : the options in the order they are listed.
    value : the chosen option's. The control shows it and nothing else, whatever was picked last;
        where no option has it, it says «Choose…».
    key : names the control in the session and, as `picker-KEY`, in the page.
    on_pick : called with the picked value before the script runs, so that this run sees it.
    help : shown at a «?» beside the label, as plain text.
    placeholder : in the empty search field.
    width : of the control; the list is as wide as it needs.
    """
    data = {
        "key": key,
        "label": label,
        "help": help,
        "placeholder": placeholder,
        "value": value,
        "groups": [
            {"title": group.title, "options": [_given(option) for option in group.options]}
            for group in groups
        ],
        "answered": answered(key),
    }
    offered = [o.value for group in groups for o in group.options if not o.disabled]
    picked = answer(key, offered, on_pick)
    component("picker")(key=key, data=data, width=width, on_picked_change=picked)


def _given(option: Option) -> dict[str, Any]:
    """What is set in an option: a thousand of them are sent with every run."""
    return {name: content for name, content in vars(option).items() if content}
