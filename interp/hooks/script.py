"""A recipe as a script of its own: plain hooks, and handles to take them off."""

import ast
import re
from collections.abc import Mapping

from interp.errors import PictureError
from interp.geometry import FITS, Fit
from interp.hooks.places import Place, find_places
from interp.hooks.recipe import Recipe, check
from interp.hooks.script_constants import constants, uses_samples
from interp.hooks.script_hooks import Written, comment, hooks_function
from interp.hooks.script_loading import imports, load_input, load_net, names
from interp.hooks.steps import channel_axis
from interp.models.loading import LoadedModel
from interp.targets import Target, parse_target

_RUN = '''\
def run(net, x, add=None, target=None):
    """Logits, the gradient of the target's score at the input, and the target."""
    net.zero_grad()
    x = x.detach().clone().requires_grad_()
    handles = add(net) if add else []
    try:
        logits = net(x)
        target = int(logits[0].argmax()) if target is None else target
        if logits.requires_grad:  # a constant in its place has no gradient
SCORE
    finally:
        for handle in handles:
            handle.remove()
    return logits.detach(), x.grad, target


def show(title, logits, names):
    probabilities = logits.softmax(dim=1)[0]
    print(title)
    for index in logits[0].argsort(descending=True)[:5].tolist():
        name = names[index] if index < len(names) else f"class {index}"
        print(f"  {name:30} {logits[0, index]:9.4f} {100 * probabilities[index]:6.1f} %")
'''


def script(
    recipe: Recipe,
    model: LoadedModel,
    picture_name: str,
    *,
    target: str | int | Target | None = "",
    fit: Fit = "crop",
    frame: int = 0,
    files: Mapping[str, str] | None = None,
) -> str:
    """The plain PyTorch script that does what the recipe's enabled steps do.

    It runs from any folder of this machine. It needs torch, torchvision and Pillow, and
    scikit-image for a sample; for the bundled model and for weights from a file also this package,
    which knows how to load them. It prints the five best classes before and after
    and sets `before`, `after` (logits) and `gradient` (of the target's score at the input).

    Parameters
    ----------
    recipe : Recipe
    model : LoadedModel
    picture_name : str
        The picture's file, as the script is to open it; the path of a sample is written so that
        the script finds it on another machine too.
    target : str, int, Target or None
        As `parse_target` takes it; by default the class that is best without hooks.
    fit : "crop", "stretch" or "letterbox"
    frame : int
        Of the picture, from 0.
    files : mapping, optional
        Files of second pictures, as the script is to open them, by what the recipe names them by.

    Returns
    -------
    str
        Python source.

    Raises
    ------
    HookError, LayerError
        If a step cannot work on the model.
    TargetError
        If the model has no such class.
    PictureError
        If there is no such fit.
    """
    if fit not in FITS:
        raise PictureError(f"there is no fit {fit!r}: choose {', '.join(FITS)}")
    wanted = parse_target(target, model.categories)
    hooks = _written(recipe, model)
    patches = [hook for hook in hooks if hook.step.action == "patch"]
    seconds = list(dict.fromkeys(hook.step.values["picture"] for hook in patches))
    counts = bool(patches) or any(hook.step.call is not None for hook in hooks)
    backward = any(hook.step.kind in ("full_backward_pre", "full_backward") for hook in hooks)
    title = re.sub(r'[\\"]|[^\x20-\uffff]', "?", model.spec.title)
    parts = [
        [f'"""Hooks on {title}, in plain PyTorch."""'],
        imports(model, fit, counts=counts, samples=uses_samples(picture_name, seconds)),
        [*constants(model, picture_name, frame, seconds, files or {}), *_target(wanted)],
        load_net(model, in_place=not backward),
        load_input(model, fit, frame),
        hooks_function(
            "add_hooks",
            "Put every hook on; a handle takes one off.",
            hooks,
            given="net, donors" if patches else "net",
        ),
    ]
    for number, picture in enumerate(seconds, 1):
        there = [hook for hook in patches if hook.step.values["picture"] == picture]
        about = f"Hooks that keep what stands at these places on SECOND_{number}."
        parts.append(
            hooks_function(f"look_at_{number}", about, there, given="net, donors", look=True)
        )
    parts += [_run(model, wanted), _main(model, len(seconds), frame)]
    top, *rest = ("\n".join(part).rstrip("\n") for part in parts)
    source = "\n\n".join([top, *rest[:2]]) + "\n\n\n" + "\n\n\n".join(rest[2:]) + "\n"
    ast.parse(source)  # a path or a name must not end what it stands in
    return source


def _written(recipe: Recipe, model: LoadedModel) -> list[Written]:
    steps = [step for step in recipe.steps if step.enabled]
    for step in steps:
        check(step, model)
    places = find_places(model, [step.path for step in steps])
    calls = {info.path: info.calls for info in model.layers}
    none = Place(None, None, written=False)
    return [
        Written(
            number,
            step,
            places.get(step.path, none),
            channel_axis(step, model, step.call or 0) if step.action == "channels" else None,
            calls[step.path],
        )
        for number, step in enumerate(steps, 1)
    ]


def _target(target: Target) -> list[str]:
    if target.index is None:
        return ["TARGET = None  # the class that is best without hooks"]
    return [*comment(f"The gradient is of {target.label}."), f"TARGET = {target.index}"]


def _run(model: LoadedModel, target: Target) -> list[str]:
    one_logit = len(model.categories) == 1
    lines = (" " * 12 + line for line in _backward(target, one_logit))
    source = _RUN.replace("SCORE", "\n".join(lines))
    if one_logit:
        two = "torch.cat([-logits, logits], dim=1)  # one logit stands for two classes"
        source = source.replace(
            "        logits = net(x)\n", f"        logits = net(x)\n        logits = {two}\n"
        ).replace("logits.softmax(dim=1)[0]", "logits.sigmoid()[0]")
    return source.rstrip("\n").split("\n")


def _backward(target: Target, one_logit: bool) -> list[str]:
    """Lines that take the gradient of what `Target.score` gives."""
    lines, name = [], "logits"
    if target.scale != "logit":
        logs = "torch.nn.functional.logsigmoid(logits)" if one_logit else "logits.log_softmax(1)"
        lines.append(f"scores = {logs}{'.exp()' if target.scale == 'prob' else ''}")
        name = "scores"
    if target.against is None:
        return [*lines, f"{name}[0, target].backward()"]
    return [*lines, f"({name}[0, target] - {name}[0, {target.against}]).backward()"]


def _main(model: LoadedModel, seconds: int, frame: int) -> list[str]:
    picture = "PICTURE, FRAME" if frame else "PICTURE"
    lines = [
        "def main():",
        f"    net, x = load_net(), load_input({picture})",
        "    before, _, target = run(net, x, target=TARGET)",
    ]
    if seconds:
        lines.append("    donors = {}  # what stands on another picture, by hook and call")
    for number in range(1, seconds + 1):
        lines += [
            f"    second = load_input(SECOND_{number})",
            f"    run(net, second, lambda net: look_at_{number}(net, donors), target)",
        ]
    add = "lambda net: add_hooks(net, donors)" if seconds else "add_hooks"
    return [
        *lines,
        f"    after, gradient, _ = run(net, x, {add}, target)",
        f"    names = {names(model)}",
        '    show("before", before, names)',
        '    show("after", after, names)',
        "    return before, after, gradient",
        "",
        "",
        'if __name__ == "__main__":',
        "    before, after, gradient = main()",
    ]
