"""`python -m interp hook`: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interp import LoadedModel, __main__, hook_command
from interp.__main__ import main
from interp.hooks.recipe import Recipe, Step


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch: pytest.MonkeyPatch, bundled: LoadedModel) -> None:
    monkeypatch.setattr(hook_command, "load", lambda name, weights, device: bundled)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    steps = (
        Step("forward", "features.8", "channels", {"which": "4"}),
        Step("full_backward", "features.8", "scale", {"factor": 2.0}, enabled=False),
        Step("tensor", "features.8", "negate"),
    )
    path = tmp_path / "recipe.json"
    path.write_text(Recipe(steps, "efficientnet_lite0").to_json(), encoding="utf-8")
    return path


def call(*arguments: str | Path) -> int:
    return main(["hook", *map(str, arguments)])


def test_a_recipe_saved_with_a_byte_order_mark_is_read(recipe: Path, coffee: Path) -> None:
    recipe.write_bytes(b"\xef\xbb\xbf" + recipe.read_bytes())
    assert call(coffee, "--recipe", recipe) == 0


def written(file: Path, step: dict[str, Any]) -> Path:
    file.write_text(json.dumps({"steps": [step]}), encoding="utf-8")
    return file


def patched(picture: str) -> dict[str, Any]:
    """A step that patches from a second picture."""
    values = {"picture": picture}
    return {"kind": "forward", "path": "features.8", "action": "patch", "values": values}


def test_it_prints_what_each_hook_does_and_what_changes(
    coffee: Path, recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(coffee, "--recipe", recipe) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "A forward hook on features.8 silences channel 4 of its output.",
        "(off) A full backward hook on features.8 multiplies the gradient of its input by 2.",
        "A tensor hook on features.8 flips the sign of the gradient of its output.",
    ]
    assert lines[4] == "coffee.png: espresso (967)"
    row = lines[6].split()
    assert row[:2] == ["espresso", "(967)"]
    before, after, change = map(float, row[2:5])
    assert before == pytest.approx(11.400, abs=0.01)
    assert change == pytest.approx(after - before, abs=0.002)
    assert "never the logits" in lines[-3]
    assert lines[-1].endswith("0 live, 0 foreign")
    assert "(2 of the recipe)" in lines[-1]


def test_it_writes_two_pictures_and_the_numbers(
    coffee: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    assert call(coffee, "--recipe", recipe, "--out", out, "--json") == 0

    names = sorted(path.name for path in out.iterdir())
    assert names == ["coffee.hooks.after.png", "coffee.hooks.before.png", "coffee.hooks.json"]
    report = json.loads((out / "coffee.hooks.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == report
    assert report["target"] == "espresso (967)"
    assert report["hooks"]["recipe"] == {"registered": 2, "removed": 2, "live": 0, "foreign": 0}
    assert report["recipe"]["steps"][0]["path"] == "features.8"
    assert report["changes"][0]["index"] == 967
    for name in names[:2]:
        with Image.open(out / name) as drawn:
            assert drawn.size == (600, 400)
            manifest = json.loads(drawn.text["hookscope"])
        side = name.split(".")[-2]
        assert manifest["side"] == side
        assert manifest["map"] == report[side]["map"]
        assert manifest["recipe"] == report["recipe"]
        assert manifest["view"]["colours"] == "plasma"


def test_it_prints_the_script_and_runs_nothing(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aim = ("--target", "968-967", "--fit", "stretch")
    assert call("no such.png", "--recipe", recipe, "--code", *aim) == 0

    out = capsys.readouterr().out
    compile(out, "hooks.py", "exec")
    assert f'PICTURE = "{Path("no such.png").absolute()}"' in out
    assert "TARGET = 968\n" in out
    assert "(logits[0, target] - logits[0, 967]).backward()" in out
    assert 'MODEL.prepare(open_picture(path), "stretch")' in out


def test_a_second_picture_is_found_by_name_or_beside_the_recipe(
    coffee: Path, chelsea: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(chelsea, tmp_path / "cat.png")

    outputs = []
    for name in ("chelsea", "cat.png", str(chelsea)):
        path = written(tmp_path / "r.json", patched(name))
        assert call(coffee, "--recipe", path, "--json") == 0
        outputs.append(json.loads(capsys.readouterr().out)["changes"])

    assert outputs[0] == outputs[1] == outputs[2]
    assert "cat" in outputs[0][5]["name"] + outputs[0][6]["name"]


def test_another_model_than_the_recipes_is_said(
    coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"model": "resnet18", "steps": []}', encoding="utf-8")

    assert call(coffee, "--recipe", path, "--model", "efficientnet_lite0") == 0

    assert "made for resnet18, this is efficientnet_lite0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"kind": "forward"}, "step 1 of the recipe: «path» is missing"),
        ({"kind": "forward", "path": "features.99"}, "no layer «features.99»"),
        (patched("a" * 64), "names its second picture by the SHA-256 aaaaaaaa…"),
    ],
)
def test_a_recipe_that_is_wrong_ends_with_2(
    coffee: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    step: dict[str, Any],
    message: str,
) -> None:
    assert call(coffee, "--recipe", written(tmp_path / "r.json", step)) == 2

    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_other_wrong_arguments_end_with_2(
    coffee: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(coffee, "--recipe", tmp_path / "none.json") == 2
    assert "none.json cannot be read (No such file or directory)" in capsys.readouterr().err
    assert call(coffee, "--recipe", coffee) == 2
    assert "it is no text in UTF-8" in capsys.readouterr().err
    assert call(coffee, "--recipe", recipe, "--target", "no such class") == 2
    assert call(coffee, "--recipe", recipe, "--out", "") == 2
    capsys.readouterr()
    for other in (("--json",), ("--out", tmp_path / "out")):
        assert call(coffee, "--recipe", recipe, "--code", *other) == 2
        assert "leave --json and --out away" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit) as ended:
        call(coffee)
    assert ended.value.code == 2


def test_a_picture_that_cannot_be_used_ends_with_1(
    coffee: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    assert call(tmp_path / "none.png", "--recipe", recipe, "--out", out) == 1

    assert capsys.readouterr().err == "none.png does not exist: check the path\n"
    assert list(out.iterdir()) == []
    missing = written(tmp_path / "r.json", patched("none.png"))
    assert call(coffee, "--recipe", missing) == 1


def test_the_help_names_every_action() -> None:
    from interp.hooks.interventions import ACTIONS

    for action in ACTIONS.values():
        (line,) = (
            line for line in __main__._HOOK.splitlines() if line.split()[:1] == [action.name]
        )
        assert all(option.name in line for option in action.options)
