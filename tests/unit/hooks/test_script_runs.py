"""Scripts are run as a reader runs them: in a process of their own, in a folder of their own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fresh_process import printed_by, run_fresh
from PIL import Image

from interp import LoadedModel, Picture, load_model, open_picture, run_experiment
from interp.__main__ import main
from interp.geometry import Preset
from interp.hooks.lab import Lab
from interp.hooks.ledger import KINDS
from interp.hooks.recipe import Recipe, Step
from interp.hooks.script import script
from interp.models.catalog import build, get_spec
from interp.picture import sample_pictures

PRESET = Preset(64, 72, (0.5,) * 3, (0.25,) * 3, "bilinear")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def residual() -> LoadedModel:
    return load_model("resnet18", weights="none", device="cpu", transforms=PRESET)


def sample(name: str) -> Picture:
    return open_picture(sample_pictures()[name])


def logits_after(model: LoadedModel, steps: tuple[Step, ...], picture: Picture) -> dict[str, float]:
    """The five best classes with the hooks of the lab, by name."""
    with Lab(model) as lab:
        lab.sync(Recipe(steps))
        logits = run_experiment(lab, picture).after.logits
    best = np.argsort(-logits, kind="stable")[:5]
    return {model.categories[index]: float(logits[index]) for index in best}


def agrees(printed: str, expected: Mapping[str, float], *, named: bool = True) -> None:
    """Whether a script's lines under «after» are these classes and logits."""
    after = printed.split("\nafter\n")[1].splitlines()
    assert [float(line[32:].split()[0]) for line in after] == pytest.approx(
        list(expected.values()), abs=2e-4
    )
    if named:
        assert [line[2:32].strip() for line in after] == list(expected)


def test_every_kind_of_hook_on_the_bundled_model(bundled: LoadedModel, elsewhere: Path) -> None:
    paths = ("features.1", "features.6.0", "features.5.0.block.0", "features.4", "features.2.0")
    steps = tuple(
        Step(kind, path, "scale", {"factor": 0.9}) for kind, path in zip(KINDS, paths, strict=True)
    )
    steps += (Step("forward", "features.8", "patch", {"picture": "chelsea"}),)

    source = script(Recipe(steps), bundled, str(sample_pictures()["coffee"]))

    agrees(printed_by(source, elsewhere), logits_after(bundled, steps, sample("coffee")))
    assert str(sample_pictures()["coffee"]) not in source  # another machine has it elsewhere


def test_an_untrained_net_needs_nothing_of_this_package(
    residual: LoadedModel, elsewhere: Path
) -> None:
    steps = (
        Step("forward", "layer2.0.bn2", "scale", {"factor": 1.7}),
        Step("full_backward", "layer3.0.conv2", "patch", {"picture": "chelsea"}),
    )

    source = script(Recipe(steps), residual, str(sample_pictures()["coffee"]))

    assert "interp" not in source.replace("InterpolationMode", "")
    expected = logits_after(residual, steps, sample("coffee"))
    agrees(printed_by(source, elsewhere), expected, named=False)


def test_published_weights_of_torchvision(squeezenet_home: Path, elsewhere: Path) -> None:
    model = load_model("squeezenet1_0", device="cpu")
    steps = (Step("forward", "features.5", "channels", {"which": "0-9"}),)

    source = script(Recipe(steps), model, str(sample_pictures()["coffee"]))

    agrees(printed_by(source, elsewhere), logits_after(model, steps, sample("coffee")))


def test_weights_from_a_file_with_names_and_transforms_of_their_own(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    net = build(get_spec("squeezenet1_1"), None, 3)
    torch.save(net.state_dict(), tmp_path / "mine é.pth")
    monkeypatch.chdir(tmp_path)
    names = ("ash", 'the "red" beech', "cedar é")
    model = load_model(
        "squeezenet1_1", "./mine é.pth", device="cpu", categories=names, transforms=PRESET
    )
    steps = (Step("forward", "features.5", "scale", {"factor": 1.7}),)

    source = script(Recipe(steps), model, str(sample_pictures()["coffee"]))

    expected = logits_after(model, steps, sample("coffee"))
    agrees(printed_by(source, elsewhere), expected)


def test_an_untrained_bundled_model_with_other_classes(elsewhere: Path) -> None:
    model = load_model(
        "efficientnet_lite0", "none", device="cpu", categories=["a", "b"], transforms=PRESET
    )

    source = script(Recipe(), model, str(sample_pictures()["coffee"]))

    agrees(printed_by(source, elsewhere), logits_after(model, (), sample("coffee")))


@pytest.mark.parametrize("name", ["resnet18", "efficientnet_lite0"])
def test_a_picture_that_is_missing_is_said_in_one_line(
    residual: LoadedModel, bundled: LoadedModel, elsewhere: Path, name: str
) -> None:
    model = residual if name == "resnet18" else bundled

    done = run_fresh(script(Recipe(), model, "mine é.png"), elsewhere)

    assert done.returncode == 1
    assert done.stderr == (
        "there is no picture mine é.png: write its path at the top of this script\n"
    )
    shutil.copy(sample_pictures()["coffee"], elsewhere / "mine é.png")
    assert run_fresh(script(Recipe(), model, "mine é.png"), elsewhere).returncode == 0


@pytest.mark.parametrize("name", ["resnet18", "efficientnet_lite0"])
def test_a_second_picture_that_was_uploaded_has_its_name(
    residual: LoadedModel, bundled: LoadedModel, elsewhere: Path, name: str
) -> None:
    model, path = (residual, "layer3") if name == "resnet18" else (bundled, "features.7")
    step = Step("forward", path, "patch", {"picture": "a" * 64})
    shutil.copy(sample_pictures()["chelsea"], elsewhere / "my own.png")

    source = script(
        Recipe((step,)),
        model,
        str(sample_pictures()["coffee"]),
        files={"a" * 64: "my own.png"},
    )

    same = replace(step, values={"picture": "chelsea"})
    expected = logits_after(model, (same,), sample("coffee"))
    agrees(printed_by(source, elsewhere), expected, named=name != "resnet18")


def test_two_uploads_of_one_name_are_two_files(residual: LoadedModel) -> None:
    steps = tuple(
        Step("forward", path, "patch", {"picture": sha * 64})
        for path, sha in (("layer3", "a"), ("layer2", "b"))
    )
    files = {sha * 64: "camera.jpg" for sha in "ab"}

    source = script(Recipe(steps), residual, "camera.jpg", files=files)

    assert 'PICTURE = "camera.jpg"' in source
    assert 'SECOND_1 = "aaaaaaaa camera.jpg"' in source
    assert 'SECOND_2 = "bbbbbbbb camera.jpg"' in source


@pytest.mark.parametrize("name", ["resnet18", "efficientnet_lite0"])
def test_the_frame_that_was_chosen(
    residual: LoadedModel, bundled: LoadedModel, elsewhere: Path, name: str
) -> None:
    model = residual if name == "resnet18" else bundled
    first, second = (Image.open(sample_pictures()[name]) for name in ("camera", "coffee"))
    path = elsewhere / "two.tiff"
    first.convert("RGB").save(path, save_all=True, append_images=[second.convert("RGB")])
    picture = open_picture(path, frame=1)

    source = script(Recipe(), model, "two.tiff", frame=1)

    expected = logits_after(model, (), picture)
    agrees(printed_by(source, elsewhere), expected, named=name != "resnet18")


@pytest.mark.parametrize("kind", ["16 bit", "float", "constant"])
def test_more_than_8_bits_are_scaled_as_in_the_lab(
    residual: LoadedModel, tmp_path: Path, kind: str
) -> None:
    path, rows = tmp_path / "deep.tiff", np.arange(70 * 80).reshape(70, 80)
    deep = {
        "16 bit": (rows * 9 + 1000).astype(np.uint16),
        "float": (rows / 7).astype(np.float32),
        "constant": np.full((70, 80), 7, np.int32),
    }[kind]
    Image.fromarray(deep).save(path)
    space: dict[str, Any] = {"__name__": "hooks"}
    exec(script(Recipe(), residual, str(path)), space)

    assert torch.equal(space["load_input"](path), residual.prepare(open_picture(path)))


def test_the_command_writes_whole_paths(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Any
) -> None:
    """The picture lies here, the second one beside the recipe; the script runs elsewhere."""
    (tmp_path / "ü").mkdir()
    shutil.copy(sample_pictures()["chelsea"], tmp_path / "ü" / "cat ☕.png")
    shutil.copy(sample_pictures()["coffee"], tmp_path / "caf\udce9.png")  # no valid UTF-8
    step = Step("forward", "layer3", "patch", {"picture": "cat ☕.png"})
    (tmp_path / "ü" / "recipe.json").write_text(Recipe((step,)).to_json(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    sys.stdout.reconfigure(encoding="cp1252")  # which has no such letters
    options = ("--recipe", "ü/recipe.json", "--model", "resnet18", "--weights", "none")

    assert main(["hook", "caf\udce9.png", *options, "--code"]) == 0

    source = capsysbinary.readouterr().out.decode("utf-8")
    model = load_model("resnet18", "none", device="cpu")
    same = replace(step, values={"picture": "chelsea"})
    expected = logits_after(model, (same,), sample("coffee"))
    agrees(printed_by(source, elsewhere), expected, named=False)
