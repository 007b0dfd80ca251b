"""Hooks as a person composes them: a list of steps that can be changed, saved and read again."""

import json
import secrets
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interp.errors import HookError
from interp.hooks.options import is_one_line
from interp.hooks.steps import Step, cannot_change_logits, check

__all__ = ["Recipe", "Step", "cannot_change_logits", "check"]

VERSION = 1
_LONGEST = 1000  # characters of a path, an id or another text


@dataclass(frozen=True)
class Recipe:
    """Steps in the order in which their hooks are registered.

    `model` is the name of the model that the recipe was made for, or empty.

    Raises
    ------
    HookError
        If two steps have one id.
    """

    steps: tuple[Step, ...] = ()
    model: str = ""

    def __post_init__(self) -> None:
        ids = set()
        for step in self.steps:
            if step.id in ids:
                raise _taken(step)
            ids.add(step.id)

    def add(self, step: Step) -> "Recipe":
        """With one more step at the end.

        Raises
        ------
        HookError
            If there is a step with its id already.
        """
        return replace(self, steps=(*self.steps, step))

    def replace(self, step: Step) -> "Recipe":
        """With this step in place of the one with its id.

        Raises
        ------
        HookError
            If there is no step with that id.
        """
        place = self._place(step.id)
        return replace(self, steps=(*self.steps[:place], step, *self.steps[place + 1 :]))

    def without(self, id: str) -> "Recipe":
        """Without the step of that id.

        Raises
        ------
        HookError
            If there is none.
        """
        place = self._place(id)
        return replace(self, steps=self.steps[:place] + self.steps[place + 1 :])

    def move(self, id: str, by: int) -> "Recipe":
        """With that step earlier (`by` below 0) or later, at most to an end.

        Raises
        ------
        HookError
            If there is no step with that id.
        """
        place = self._place(id)
        rest = [step for step in self.steps if step.id != id]
        rest.insert(max(0, min(len(rest), place + by)), self.steps[place])
        return replace(self, steps=tuple(rest))

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        steps = [
            {
                "id": step.id,
                "kind": step.kind,
                "path": step.path,
                "action": step.action,
                "values": dict(step.values),
                "call": step.call,
                "of": step.of,
                "first": step.first,
                "enabled": step.enabled,
            }
            for step in self.steps
        ]
        model = {"model": self.model} if self.model else {}
        return json.dumps({"recipe": VERSION, **model, "steps": steps}, indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> "Recipe":
        """Read a recipe.

        Raises
        ------
        HookError
            In one line: what is wrong, and in which step.
        """
        try:
            data = json.loads(text.removeprefix("\ufeff"))  # which editors on Windows write
        except (ValueError, RecursionError) as error:
            raise HookError(
                f"the recipe is not JSON ({error}): save it from the Hook lab"
            ) from None
        if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
            raise HookError('the recipe has no list «steps»: write {"recipe": 1, "steps": […]}')
        version = data.get("recipe", VERSION)
        if type(version) is not int or version != VERSION:
            raise HookError(f"the recipe is of version {version!r}: this reads {VERSION}")
        model = _typed(data, "model", str, "", "the recipe")
        steps: dict[str, Step] = {}
        for number, entry in enumerate(data["steps"], 1):
            try:
                step = _step(entry)
                if step.id in steps:
                    raise _taken(step)
            except HookError as error:
                why = textwrap.shorten(str(error), 300, placeholder=" …")
                raise HookError(f"step {number} of the recipe: {why}") from None
            steps[step.id] = step
        return Recipe(tuple(steps.values()), model)

    def _place(self, id: str) -> int:
        for place, step in enumerate(self.steps):
            if step.id == id:
                return place
        have = ", ".join(step.id for step in self.steps) or "none"
        raise HookError(f"the recipe has no step «{id}»: it has {have}")


def _taken(step: Step) -> HookError:
    return HookError(f"the recipe has a step «{step.id}» already: give this one another id")


def _step(entry: Any) -> Step:
    if not isinstance(entry, dict):
        raise HookError(f"{entry!r} is no step: write an object with kind, path and action")
    known = list(Step.__dataclass_fields__)
    for name in entry:
        if name not in known:
            raise HookError(f"«{name}» is no part of a step: it has {', '.join(known)}")
    for name in ("kind", "path"):
        if name not in entry:
            raise HookError(f"«{name}» is missing: name it")
    call = entry.get("call")
    if call is not None and (type(call) is not int or call < 0):
        raise HookError(f"call is {call!r}: give the index of a call from 0, or null for every one")
    return Step(
        kind=_typed(entry, "kind", str, "", "the step"),
        path=_typed(entry, "path", str, "", "the step"),
        action=_typed(entry, "action", str, "watch", "the step"),
        values=_typed(entry, "values", dict, {}, "the step"),
        call=call,
        of=_typed(entry, "of", str, "output", "the step"),
        first=_typed(entry, "first", bool, False, "the step"),
        enabled=_typed(entry, "enabled", bool, True, "the step"),
        id=_typed(entry, "id", str, "", "the step") or secrets.token_hex(4),
    )


def _typed(data: Mapping[str, Any], name: str, kind: type, default: Any, whose: str) -> Any:
    value = data.get(name, default)
    if not isinstance(value, kind):
        raise HookError(f"«{name}» of {whose} is {value!r}: it has to be of type {kind.__name__}")
    if isinstance(value, str) and not (len(value) <= _LONGEST and is_one_line(value)):
        raise HookError(
            f"«{name}» of {whose} is longer than {_LONGEST} characters, or holds a line break or a "
            "control character: write it plainly"
        )
    return value
