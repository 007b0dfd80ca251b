"""The hooks of a recipe as lines of plain PyTorch."""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from interp.hooks.interventions import ACTIONS
from interp.hooks.places import Key, Place, Way, read, rebuilt
from interp.hooks.steps import INPUT_KINDS, Step

_WIDTH = 96
_NEW = "\0"  # no key of a dict holds it


@dataclass(frozen=True)
class Written:
    """A step as a script writes it: its number, place, channel axis, and calls of its module."""

    number: int
    step: Step
    place: Place
    axis: int | None
    calls: int

    @property
    def by_tensor(self) -> bool:
        """Whether a tensor hook on what the module is given or returns has to serve."""
        one_of_several = self.step.call is not None and self.calls > 1
        backward = self.step.kind in ("full_backward_pre", "full_backward")
        return backward and (one_of_several or self.place.written)

    @property
    def way(self) -> Way:
        """From what the module is given (args, kwargs) or returns to the tensor that is meant."""
        of_input = self.step.kind in INPUT_KINDS
        return self.place.inputs if of_input else self.place.outputs


def hooks_function(
    name: str, about: str, hooks: Sequence[Written], *, given: str, look: bool = False
) -> list[str]:
    """A function that puts hooks on `net` and returns their handles.

    Parameters
    ----------
    name, about : str
        Of the function, and its docstring.
    hooks : sequence of Written
    given : str
        What the function is called with.
    look : bool
        Whether the hooks only keep what they are given in `donors`, rather than act.
    """
    lines = [f"def {name}({given}):", f'    """{about}"""', "    handles = []"]
    for hook in _as_they_run(hooks):
        lines += ["", *_indented(comment(hook.step.sentence())), *_indented(_hook(hook, look))]
    return [*lines, "", "    return handles"]


def _as_they_run(hooks: Sequence[Written]) -> list[Written]:
    """The hooks in the order to put them on.

    A gradient meets the copies that stand for full backward hooks in the opposite order.
    """
    ordered = list(hooks)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, hook in enumerate(hooks):
        if hook.by_tensor:
            groups.setdefault((hook.step.path, hook.step.kind), []).append(place)
    for places in groups.values():
        early = [hooks[place] for place in reversed(places) if hooks[place].step.first]
        late = [hooks[place] for place in places if not hooks[place].step.first]
        for place, hook in zip(places, reversed([*early, *late]), strict=True):
            ordered[place] = hook
    return ordered


def comment(text: str) -> list[str]:
    """Text as comment lines, none of which a name in it can end."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return textwrap.wrap(plain, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _indented(lines: Sequence[str], by: int = 4) -> list[str]:
    return [f"{' ' * by}{line}" if line else line for line in lines]


def _hook(hook: Written, look: bool) -> list[str]:
    step = hook.step
    counts = _counts(hook, look)
    head = [f"calls_{hook.number} = itertools.count()", ""] if counts else []
    if hook.way is None and not step.of_parameter:
        return ["# It would do nothing: there is no tensor there."]
    if step.of_parameter:
        function = [f"def hook_{hook.number}(value):", *_indented(_body(hook, look, "value", ()))]
        name = json.dumps(f"{step.path}.{step.of}")
        put = f"handles.append(net.get_parameter({name}).register_hook(hook_{hook.number}))"
        return [*head, *function, "", put]
    if step.kind == "tensor" or hook.by_tensor:
        return [*head, *_tensor_hook(hook, look)]
    return [*head, *_module_hook(hook, look)]


def _counts(hook: Written, look: bool) -> bool:
    return hook.step.call is not None or look or hook.step.action == "patch"


def _module_hook(hook: Written, look: bool) -> list[str]:
    kind, number, way, options = hook.step.kind, hook.number, hook.way or (), ""
    if kind == "forward":
        given, body = "module, args, output", _body(hook, look, "output", way)
    elif kind == "full_backward_pre":
        given, body = "module, grad_output", _gradients(hook, look, "grad_output")
    elif kind == "full_backward":
        given = "module, grad_input, grad_output"
        body = _gradients(hook, look, "grad_input")
    elif way[0] == ("tuple", 1):
        given, options = "module, args, kwargs", ", with_kwargs=True"
        body = _body(hook, look, "kwargs", way[1:], "args, {}")
    else:
        given, body = "module, args", _body(hook, look, "args", way[1:])
    put = _put(hook, f"register_{kind}_hook", options + _prepend(hook))
    return [f"def hook_{number}({given}):", *_indented(body), "", put]


def _gradients(hook: Written, look: bool, name: str) -> list[str]:
    """A tuple of gradients, of which an input that needs none has None."""
    if hook.step.action == "watch" and not look:
        return _act(hook, look, name, "{}")
    if name == "grad_output" and not hook.way:
        return _act(hook, look, "grad_output[0]", "({},)")
    return [
        f"place = next((i for i, one in enumerate({name}) if one is not None), None)",
        "if place is None:  # nothing before it needs a gradient",
        "    return None",
        *_act(hook, look, f"{name}[place]", f"(*{name}[:place], {{}}, *{name}[place + 1 :])"),
    ]


def _tensor_hook(hook: Written, look: bool) -> list[str]:
    """A hook on a tensor, which a forward hook has to put on anew in each pass."""
    step, number, way, options = hook.step, hook.number, hook.way or (), ""
    what, given, register = "output", "module, args, output", "register_forward_hook"
    around = "{}"
    if step.kind == "full_backward":
        what, given, register = "args", "module, args", "register_forward_pre_hook"
        if way[0] == ("tuple", 1):
            what, given, options = "kwargs", "module, args, kwargs", ", with_kwargs=True"
            around = "args, {}"
        way = way[1:]
    body = [f"call = next(calls_{number})"] if _counts(hook, look) else []
    if step.call is not None:
        body += [f"if call != {step.call}:", "    return None"]
    inner = _act(hook, look, "value", "{}", counted=True)
    body += [*([""] if body else []), "def gradient_hook(value):", *_indented(inner), ""]
    if step.kind == "tensor":
        body += [f"{read(what, way)}.register_hook(gradient_hook)  # it goes with the graph"]
    else:
        body += [
            f"copy = {read(what, way)}.clone()  # its gradient is of this call alone",
            "copy.register_hook(gradient_hook)  # it goes with the graph",
            f"return {around.replace('{}', rebuilt(what, way, 'copy'))}",
        ]
    return [
        *_why_by_tensor(hook),
        f"def hook_{number}({given}):",
        *_indented(body),
        "",
        _put(hook, register, options if hook.by_tensor else options + _prepend(hook)),
    ]


def _why_by_tensor(hook: Written) -> list[str]:
    if hook.step.kind == "tensor":
        return []
    if hook.place.written:
        return comment(
            "The network writes over a tensor there in place (such as x += y), where a full "
            "backward hook raises: a tensor hook on a copy serves."
        )
    return comment(
        "A full backward hook is not told which call it fires for: a tensor hook on what this call "
        "is given or returns serves."
    )


def _body(
    hook: Written, look: bool, what: str, way: Sequence[Key], around: str = "{}"
) -> list[str]:
    whole = around.replace("{}", rebuilt(what, way, _NEW))
    return _act(hook, look, read(what, way), whole, new=_NEW)


def _act(
    hook: Written, look: bool, value: str, around: str, *, counted: bool = False, new: str = "{}"
) -> list[str]:
    """Lines that get the value, act on it, and return what takes the place of `around`."""
    step, number = hook.step, hook.number
    lines = []
    if _counts(hook, look) and not counted:
        lines.append(f"call = next(calls_{number})")
        if step.call is not None:
            lines += [f"if call != {step.call}:", "    return None"]
    if look:
        return [*lines, f"donors[{number}, call] = {value}.detach().clone()", "return None"]
    if step.action == "watch":
        return [*lines, *ACTIONS["watch"].code({})]
    if value != "value":
        lines.append(f"value = {value}")
    if step.action == "patch":
        lines.append(f"donor = donors[{number}, call]")
    *before, last = ACTIONS[step.action].code(step.values, hook.axis)
    result = last.removeprefix("return ")
    if around in (new, "{}"):
        return [*lines, *before, last]
    if re.fullmatch(r"[\w.(),\s*-]+", result) and around.count(new) == 1 and len(result) < 40:
        return [*lines, *before, f"return {around.replace(new, result)}"]
    return [*lines, *before, f"new = {result}", f"return {around.replace(new, 'new')}"]


def _prepend(hook: Written) -> str:
    return ", prepend=True" if hook.step.first else ""


def _put(hook: Written, register: str, options: str) -> str:
    name = json.dumps(hook.step.path)
    return f"handles.append(net.get_submodule({name}).{register}(hook_{hook.number}{options}))"
