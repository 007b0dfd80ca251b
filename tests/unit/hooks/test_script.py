"""Scripts: each is run as it stands, and gives the logits and gradients that the lab gives."""

from __future__ import annotations

import ast
import contextlib
import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lab_nets import Nested, Plain, load
from PIL import Image
from torch import Tensor, nn

from interp import LoadedModel, load_model, open_picture
from interp.errors import HookError, LayerError, PictureError, TargetError
from interp.geometry import FITS, Fit, Preset
from interp.hooks.interventions import ACTIONS
from interp.hooks.lab import Lab
from interp.hooks.ledger import KINDS, HookLedger
from interp.hooks.passes import Pass
from interp.hooks.recipe import Recipe, Step
from interp.hooks.script import script
from interp.models.catalog import get_spec
from interp.picture import Picture, sample_pictures
from interp.targets import find_logits, parse_target

VALUES: dict[str, dict[str, Any]] = {
    "scale": {"factor": 1.7},
    "clamp": {"low": -0.01, "high": 0.02},
    "channels": {"which": "0-3, 5"},
    "patch": {"picture": "chelsea"},
    "constant": {"value": 0.1},
    "noise": {"seed": 3},
}
PRESET = Preset(32, 32, (0.5,) * 3, (0.25,) * 3, "bilinear")


@pytest.fixture(scope="module")
def residual() -> LoadedModel:
    """ResNet-18 adds in place (`out += identity`) and runs one ReLU twice in a block."""
    return load_model("resnet18", weights="none", device="cpu", transforms=PRESET)


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, picture_path: Callable[[str], Path]
) -> Path:
    """A working folder with the pictures that the scripts open."""
    for name in ("coffee", "chelsea"):
        shutil.copy(picture_path(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(name: str) -> Picture:
    return open_picture(sample_pictures()[name])


def by_lab(
    model: LoadedModel,
    steps: tuple[Step, ...],
    tensor: Tensor,
    text: str = "",
    fit: Fit = "crop",
) -> tuple[Tensor, Any, Any]:
    """Logits, the gradient at the input, and those of the parameters with hooks."""
    lab = Lab(model)
    try:
        lab.sync(Recipe(steps), sample)
        with torch.no_grad():
            logits, binary = find_logits(model.module(tensor))
        target = parse_target(text, model.categories).resolve(logits, binary)
        with lab.running(HookLedger(), fit, target):
            inputs: list[Tensor] = []
            lab.session.forward_pre("", lambda module, args: inputs.append(args[0]))
            run = Pass(lab.session, (), gradients=True)
            try:
                run.run(tensor, from_input=True)
                gradients: tuple[Any, ...] = (None,)
                if run.logits.requires_grad:
                    gradients = torch.autograd.grad(
                        target.score(run.logits).sum(),
                        [inputs[0], *lab.starts],
                        allow_unused=True,
                    )
                return run.logits.detach().clone(), gradients[0], gradients[1:]
            finally:
                run.release()
    finally:
        lab.close()


def executed(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source, "hooks.py", "exec"), space)
    space["printed"] = printed.getvalue()
    return space


def close(ours: Tensor | None, theirs: Tensor | None) -> None:
    if ours is None or theirs is None:  # cut off: no gradient, or one of zeros
        assert all(one is None or not one.any() for one in (ours, theirs))
        return
    peak = float(theirs.abs().max())
    torch.testing.assert_close(ours, theirs, atol=1e-5 * max(peak, 1e-12), rtol=1e-5)


def compare(model: LoadedModel, *steps: Step, target: str = "", fit: Fit = "crop") -> str:
    source = script(Recipe(steps), model, "coffee.png", target=target, fit=fit)
    tensor = model.prepare(sample("coffee"), fit)
    logits, gradient, _ = by_lab(model, steps, tensor, target, fit)

    space = executed(source)

    torch.testing.assert_close(space["after"], logits, atol=1e-5, rtol=1e-5)
    close(space["gradient"], gradient)
    return source


@pytest.mark.parametrize("action", list(ACTIONS))
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_and_action_on_a_torchvision_net(
    residual: LoadedModel, folder: Path, kind: Any, action: str
) -> None:
    """On `bn2`, whose output the block then adds to in place."""
    source = compare(residual, Step(kind, "layer2.0.bn2", action, VALUES.get(action, {})))

    ast.parse(source)
    assert "from interp" not in source
    assert ".remove()" in source


@pytest.mark.parametrize(
    ("target", "fit"),
    [
        ("7", "crop"),
        ("281-282", "stretch"),
        ("281-282", "letterbox"),
        ("281:prob", "letterbox"),
        ("281-282:logprob", "crop"),
        (":logprob", "stretch"),
    ],
)
def test_the_target_and_the_fit(residual: LoadedModel, folder: Path, target: str, fit: Fit) -> None:
    """The patched gradient too is that of the target, on a second picture prepared alike."""
    steps = (
        Step("full_backward", "layer3.0.conv2", "patch", VALUES["patch"]),
        Step("forward", "layer2.0.bn2", "scale", {"factor": 1.7}),
    )

    compare(residual, *steps, target=target, fit=fit)


@pytest.mark.parametrize(("target", "fit"), [("967-968:prob", "stretch"), ("967", "letterbox")])
def test_the_target_and_the_fit_of_the_bundled_model(
    bundled: LoadedModel, folder: Path, target: str, fit: Fit
) -> None:
    source = compare(bundled, Step("forward", "features.4", "negate"), target=target, fit=fit)

    assert "# The gradient is of espresso (967)" in source


@pytest.mark.parametrize("target", ["", "0:prob", "1-0:logprob"])
def test_one_logit_for_two_classes(folder: Path, target: str) -> None:
    class One(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return 3 * super().forward(x)[:, :1]

    step, model = Step("forward", "act", "scale", {"factor": 2.0}), load(One())
    source = script(Recipe((step,)), model, "coffee.png", target=target)
    space: dict[str, Any] = {"__name__": "hooks", "mine": One()}
    exec(compile(source.replace("net = None", "net = mine"), "hooks.py", "exec"), space)

    before, after, gradient = space["main"]()

    x = model.prepare(sample("coffee"))
    logits, ours, _ = by_lab(model, (step,), x, target)
    torch.testing.assert_close(after, logits)
    torch.testing.assert_close(before, find_logits(model.module(x))[0])
    close(gradient, ours)


@pytest.mark.parametrize("source", ["untrained", "on disk"])
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("name", "side", "resize"), [("resnet18", 224, 256), ("swin_t", 75, 90)])
def test_the_input_is_the_models_own(
    tmp_path: Path, source: Any, fit: Fit, name: str, side: int, resize: int
) -> None:
    """As published weights prepare it, and spelled out; wide, tall and thin pictures."""
    spec = get_spec(name)
    preset = replace(spec.default.preset, crop_size=side, resize_size=resize)
    if source == "on disk":
        preset = spec.default.preset
    categories, device = spec.default.categories, torch.device("cpu")
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())  # only its input is looked at
    model = LoadedModel(net, spec, spec.default.name, source, categories, device, preset)
    space: dict[str, Any] = {"__name__": "hooks"}
    exec(script(Recipe(), model, "coffee.png", fit=fit), space)

    # The last is transparent: what is not there is white.
    shapes = [(61, 40, 3), (40, 61, 3), (150, 3, 3), (300, 301, 3), (70, 50, 4)]
    for number, shape in enumerate(shapes):
        path = tmp_path / f"{number}.png"
        noise = torch.randint(0, 256, shape, dtype=torch.uint8).numpy()
        Image.fromarray(noise).save(path)
        assert torch.equal(space["load_input"](path), model.prepare(open_picture(path), fit))


@pytest.mark.parametrize("action", ["channels", "patch"])
def test_the_bundled_model(bundled: LoadedModel, folder: Path, action: str) -> None:
    paths = ("features.1", "features.6.0", "features.5.0.block.0", "features.4", "features.2.0")

    compare(
        bundled,
        *(
            Step(kind, path, action, VALUES[action])
            for kind, path in zip(KINDS, paths, strict=True)
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", [None, 0, 1])
def test_a_module_that_runs_twice(
    residual: LoadedModel, folder: Path, kind: Any, call: int | None
) -> None:
    compare(residual, Step(kind, "layer3.0.relu", "scale", {"factor": 1.7}, call=call))
    if call == 1:
        compare(residual, Step(kind, "layer3.0.relu", "patch", VALUES["patch"], call=call))


@pytest.mark.parametrize("kind", ["full_backward_pre", "full_backward", "tensor", "forward"])
@pytest.mark.parametrize("first", [False, True])
def test_several_hooks_keep_their_order(
    residual: LoadedModel, folder: Path, kind: Any, first: bool
) -> None:
    for path in ("layer2.0.bn2", "layer2.0.conv2"):
        compare(
            residual,
            Step(kind, path, "scale", {"factor": 3.0}),
            Step(kind, path, "clamp", {"low": -0.01, "high": 0.01}, first=first),
            Step("forward", path, "noise"),
        )


def test_the_gradient_of_a_parameter(residual: LoadedModel, folder: Path) -> None:
    step = Step("tensor", "layer4.1.conv2", "scale", {"factor": 3.0}, of="weight")
    source = script(Recipe((step,)), residual, "coffee.png")
    space = executed(
        source.replace("net, x = load_net(), ", "net, x = NET, ", 1).replace(
            "def main():", "NET = load_net()\n\n\ndef main():"
        )
    )

    _, _, (ours,) = by_lab(residual, (step,), residual.prepare(sample("coffee")))

    close(space["NET"].get_parameter("layer4.1.conv2.weight").grad, ours)


def test_nested_values_are_written_out(folder: Path) -> None:
    """The net is the caller's own, so the script says where it goes."""
    model = load(Nested())
    steps = (
        Step("forward", "pair", "scale", {"factor": 2.0}),
        Step("forward_pre", "named", "scale", {"factor": 3.0}),
        Step("forward", "named", "negate"),
        Step("full_backward_pre", "pair", "scale", {"factor": 5.0}),
        Step("full_backward_pre", "act", "scale", {"factor": 7.0}, call=2),
    )
    source = script(Recipe(steps), model, "coffee.png")
    space: dict[str, Any] = {"__name__": "hooks", "mine": Nested()}
    exec(compile(source.replace("net = None", "net = mine"), "hooks.py", "exec"), space)
    x = model.prepare(sample("coffee"))

    after, gradient, _ = space["run"](space["load_net"](), x, space["add_hooks"], 0)

    logits, ours, _ = by_lab(model, steps, x)
    torch.testing.assert_close(after, logits)
    assert int(model.module(x)[0].argmax()) == 0
    close(gradient, ours)
    with pytest.raises(SystemExit, match="put your own network into load_net"):
        executed(source)


def test_it_leaves_no_hook_and_prints_the_five_best(bundled: LoadedModel, folder: Path) -> None:
    steps = (Step("forward", "features.8", "zero"), Step("full_backward", "features.7", "negate"))

    space = executed(script(Recipe(steps), bundled, "coffee.png"))

    lines = space["printed"].splitlines()
    assert lines[0] == "before"
    assert lines[1].split()[0] == "espresso"
    assert lines[6] == "after"
    assert len(lines) == 12
    module: nn.Module = space["MODEL"].module
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())


def test_steps_that_are_off_are_left_out(residual: LoadedModel) -> None:
    off = Step("forward", "layer2.0.bn2", "zero", enabled=False)

    source = script(Recipe((off,)), residual, "coffee.png")

    assert "bn2" not in source


@pytest.mark.parametrize(
    "name", ['a".png', "a\\.png", "a\nimport os", "é ☕.png", "'''", '"""', "{x}"]
)
def test_no_name_ends_the_text_it_stands_in(residual: LoadedModel, name: str) -> None:
    second = name.replace("\n", " ")  # a step takes one line
    step = Step("forward", "layer2.0.bn2", "patch", {"picture": second})

    tree = ast.parse(script(Recipe((step,)), residual, name))

    values = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    ]
    assert values == [name, second, None]  # the last is the target


def test_a_recipe_that_does_not_fit_is_refused(residual: LoadedModel) -> None:
    with pytest.raises(LayerError):
        script(Recipe((Step("forward", "nowhere"),)), residual, "coffee.png")
    with pytest.raises(HookError):
        script(Recipe((Step("forward", "fc", "patch"),)), residual, "coffee.png")


def test_a_class_or_a_fit_that_is_not_there_is_refused(residual: LoadedModel) -> None:
    with pytest.raises(TargetError):
        script(Recipe(), residual, "coffee.png", target="1000")
    unknown: Any = "zoom"
    with pytest.raises(PictureError, match="no fit 'zoom'"):
        script(Recipe(), residual, "coffee.png", fit=unknown)
