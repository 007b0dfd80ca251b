"""The command line: what it writes and prints, its exit codes, and that nothing surprises it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from interp import __main__, cli, explain, list_layers, list_methods, open_picture
from interp.__main__ import main
from interp.geometry import Fit
from interp.models.catalog import catalog
from interp.models.loading import LoadedModel
from interp.render import DEFAULT_COLOURS, DEFAULT_OPACITY, DEFAULT_THRESHOLD

ROOT = Path(__file__).resolve().parents[2]
DEAD_PROXY = "http://127.0.0.1:9"


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "interp", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )


def call(*arguments: str | Path) -> int:
    return main(list(map(str, arguments)))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """Makes a small picture of one colour: `small("a/b.png")`."""

    def make(name: str, size: tuple[int, int] = (40, 30)) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (200, 120, 40)).save(path, "PNG")
        return path

    return make


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, DEAD_PROXY)


# --- explain -------------------------------------------------------------------------------------


def test_two_photographs_are_named_and_written(
    chelsea: Path, coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "out"
    assert call("explain", chelsea, coffee, "--out", out) == 0
    printed = capsys.readouterr()
    assert printed.err == "EfficientNet-Lite0, weights BUNDLED, bundled\n"
    cat, cup = printed.out.splitlines()
    assert cat.startswith("chelsea.png  ")
    assert "cat " in cat.split("·")[0]
    assert cup.startswith("coffee.png  espresso 9")
    assert cup.endswith(f"Grad-CAM at features.8.1 (7 × 7)  →  {out / 'coffee.grad-cam.png'}")
    assert names(out) == [
        f"{stem}.grad-cam.{end}" for stem in ("chelsea", "coffee") for end in ("json", "npz", "png")
    ]
    manifest = json.loads((out / "coffee.grad-cam.json").read_text(encoding="utf-8"))
    assert manifest["predictions"][0]["name"] == "espresso"
    assert manifest["predictions"][0]["probability"] >= 0.9
    with Image.open(out / "coffee.grad-cam.png") as picture:
        assert picture.size == (600, 400)
        assert json.loads(picture.info["hookscope"]) == manifest


def test_the_numbers_are_those_of_the_api(
    bundled: LoadedModel, coffee: Path, tmp_path: Path
) -> None:
    layers = ["features.7", "features.5"]
    arguments = ["--layer", layers[0], "--layer", layers[1], "--target", "cup-espresso:prob"]
    arguments += ["--method", "hirescam", "--fit", "letterbox", "--device", "cpu"]
    assert call("explain", coffee, *arguments, "--out", tmp_path) == 0
    expected = explain(
        bundled, open_picture(coffee), "hirescam", layers, "cup-espresso:prob", "letterbox"
    )
    with np.load(tmp_path / "coffee.hirescam.npz") as saved:
        assert sorted(saved) == ["heatmap", "logits", "manifest", "map"]
        inside = json.loads(str(saved["manifest"]))
        np.testing.assert_allclose(saved["map"], expected.map, atol=1e-6)
        np.testing.assert_allclose(saved["logits"], expected.logits, atol=1e-5)
        assert saved["heatmap"].shape == (400, 600)
        np.testing.assert_allclose(saved["heatmap"], expected.on_picture(), atol=1e-6)
    manifest = json.loads((tmp_path / "coffee.hirescam.json").read_text(encoding="utf-8"))
    assert manifest["layers"] == layers
    assert manifest["target"]["text"] == "968-967:prob"
    assert manifest["input"]["fit"] == "letterbox"
    assert manifest["view"]["colours"] == DEFAULT_COLOURS
    assert manifest["view"]["opacity"] == DEFAULT_OPACITY
    assert manifest["view"]["threshold"] == DEFAULT_THRESHOLD
    assert manifest["view"]["mode"] == "overlay"
    assert inside == manifest


def test_json_prints_the_manifests_and_nothing_else(
    chelsea: Path, coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.png"
    assert call("explain", chelsea, missing, coffee, "--json", "--out", tmp_path) == 1
    printed = capsys.readouterr()
    manifests = json.loads(printed.out)
    saved = [
        json.loads((tmp_path / f"{stem}.grad-cam.json").read_text(encoding="utf-8"))
        for stem in ("chelsea", "coffee")
    ]
    assert manifests == saved
    assert "missing.png: does not exist: check the path" in printed.err.splitlines()


def test_bad_pictures_get_a_line_each_and_the_good_ones_are_explained(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pictures = ten_pictures(folder)
    done = run("explain", *pictures, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    first, *refused = done.stderr.splitlines()
    assert first == "EfficientNet-Lite0, weights BUNDLED, bundled"
    assert [line.split(":")[0] for line in refused] == [
        "empty.png",
        "truncated.jpg",
        "text.png",
        "bomb.png",
        "thin.png",
    ]
    good = ["one.png", "deep.png", "cmyk.jpg", "palette.png", "animated.gif"]
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if not line.startswith(" ")] == good
    notes = [line.strip() for line in lines if line.startswith("    ")]
    assert "frame 1 of 3" in notes
    assert "transparent, composited on white" in notes
    stems = sorted(Path(name).stem for name in good)
    assert names(tmp_path / "out") == [
        f"{stem}.grad-cam.{end}" for stem in stems for end in ("json", "npz", "png")
    ]


def ten_pictures(folder: Path) -> list[Path]:
    ramp = np.linspace(0, 255, 60 * 80 * 3).reshape(60, 80, 3).astype(np.uint8)
    photo = Image.fromarray(ramp)
    (folder / "empty.png").write_bytes(b"")
    photo.save(folder / "whole.jpg")
    (folder / "truncated.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:700])
    (folder / "text.png").write_text("not a picture")
    Image.new("1", (20_000, 20_000)).save(folder / "bomb.png")
    Image.new("RGB", (1, 1), "red").save(folder / "one.png")
    Image.new("RGB", (1, 5000), "red").save(folder / "thin.png")
    Image.fromarray(ramp[..., 0].astype(np.uint16) * 200).save(folder / "deep.png")
    photo.convert("CMYK").save(folder / "cmyk.jpg")
    palette = photo.quantize(16)
    palette.info["transparency"] = 3
    palette.save(folder / "palette.png", transparency=3)
    frames = [photo.rotate(angle) for angle in (0, 10, 20)]
    frames[0].save(folder / "animated.gif", save_all=True, append_images=frames[1:])
    order = "empty.png truncated.jpg text.png bomb.png one.png thin.png deep.png cmyk.jpg"
    return [folder / name for name in f"{order} palette.png animated.gif".split()]


def test_pictures_of_one_name_keep_files_of_their_own(
    small: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = [small("a/x.png"), small("b/X.png"), small("b/x-2.png"), small("a/x.png")]
    long = [small(f"{'n' * 90}{end}.png") for end in "ab"]
    call("explain", *pictures, *long, "--out", tmp_path / "out")
    stems = [name.removesuffix(".grad-cam.npz") for name in names(tmp_path / "out")][1::3]
    assert sorted(stems, key=str.casefold)[-4:] == ["x", "X-2", "x-2-2", "x-3"]
    assert len(stems) == 6
    assert len({stem.casefold() for stem in stems}) == 6
    # What the name alone does not tell apart is called by its path.
    labels = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if "→" in line]
    assert labels[:4] == [str(pictures[0]), "X.png", "x-2.png", str(pictures[0])]


def test_untrained_is_said_on_the_screen_and_in_the_names(
    coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", "squeezenet1_1", "--weights", "none", "--target", "espresso"]
    assert call("explain", coffee, *arguments, "--out", tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.err == "SqueezeNet 1.1, untrained: the weights are random\n"
    line, note = printed.out.splitlines()
    assert "Grad-CAM for espresso (967) at " in line
    assert note.startswith("    The model is untrained")
    assert names(tmp_path) == [f"coffee.untrained.grad-cam.{end}" for end in ("json", "npz", "png")]


def test_weights_of_ones_own(
    coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from torchvision.models import squeezenet1_1

    torch.save(squeezenet1_1(num_classes=3).state_dict(), tmp_path / "mine.pth")
    arguments: list[str | Path] = ["--model", "squeezenet1_1", "--target", "2"]
    arguments += ["--weights", tmp_path / "mine.pth"]
    assert call("explain", coffee, *arguments, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert printed.err == "SqueezeNet 1.1, weights file:mine.pth\n"
    assert printed.out.startswith("coffee.png  class ")
    with np.load(tmp_path / "out" / "coffee.grad-cam.npz") as saved:
        assert saved["logits"].shape == (3,)


@pytest.mark.usefixtures("squeezenet_home", "no_network")
def test_a_checkpoint_on_disk_needs_no_network(
    coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("explain", coffee, "--model", "squeezenet1_0", "--out", tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.err == "SqueezeNet 1.0, weights IMAGENET1K_V1, on disk\n"
    assert printed.out.startswith("coffee.png  espresso ")


def test_weights_that_cannot_be_had(coffee: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    arguments = ("explain", coffee, "--model", "resnet50", "--out", tmp_path / "out")
    done = run(*arguments, TORCH_HOME=str(home), https_proxy=DEAD_PROXY, HTTPS_PROXY=DEAD_PROXY)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "resnet50-11ad3fa6.pth" in line
    assert str(home / "hub" / "checkpoints") in line
    assert not (tmp_path / "out").exists()
    assert not list(home.rglob("*.p*"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--method", "gradcam"], "no method «gradcam»: there are grad-cam, hirescam"),
        (["--model", "resnet5"], "there is no model 'resnet5': did you mean resnet50"),
        (["--layer", "features.99"], "no layer «features.99»"),
        (["--layer", "features.8#1"], "features.8"),
        (["--layer", "features.8", "--layer", "classifier"], "which has no grid of places"),
        (["--target", "esprso"], "no class is named «esprso»: did you mean espresso"),
        (["--target", "1000"], "no class has the index 1000"),
        (["--target", "-5"], "no class has the index -5"),
        (["--device", "abacus"], "there is no device 'abacus'"),
        (["--out", ""], "--out is empty"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    arguments: list[str],
    text: str,
    coffee: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a picture was opened")

    monkeypatch.setattr(cli, "open_picture", fail)
    assert call("explain", coffee, "--out", tmp_path / "out", *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    last = printed.err.splitlines()[-1]
    assert last.startswith("python -m interp: ")
    assert text in last
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("under", ["", "deeper"])
def test_a_file_in_the_place_of_the_folder(
    under: str, coffee: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("mine")
    assert call("explain", coffee, "--out", tmp_path / "taken" / under) == 2
    assert "choose a folder you can write to" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_picture_may_follow_an_option(
    small: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert call("explain", small("a.png"), "--out", out, small("b.png"), "--fit", "stretch") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "→" in line]
    assert [line.split("  ")[0] for line in lines] == ["a.png", "b.png"]


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_keeps_what_was_finished(
    as_json: bool,
    small: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(model: Any, picture: Any, *rest: Any) -> Any:
        if picture.name == "b.png":
            raise KeyboardInterrupt
        return explain(model, picture, *rest)

    monkeypatch.setattr(cli, "explain", interrupted)
    pictures = [small(f"{letter}.png") for letter in "abc"]
    arguments = ["--json"] if as_json else []
    assert call("explain", *pictures, "--out", tmp_path / "out", *arguments) == 130
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "interrupted; what was finished is kept"
    assert names(tmp_path / "out") == [f"a.grad-cam.{end}" for end in ("json", "npz", "png")]
    if as_json:
        assert [manifest["picture"]["name"] for manifest in json.loads(printed.out)] == ["a.png"]


def test_a_bar_is_drawn_on_a_terminal_for_several_pictures_only(
    small: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pictures = [small("a.png"), small("b.png")]
    call("explain", *pictures, "--out", tmp_path)
    assert "\r" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    call("explain", pictures[0], "--out", tmp_path)
    assert "1 of 1" not in capsys.readouterr().err
    call("explain", *pictures, "--out", tmp_path)
    drawn = capsys.readouterr().err
    assert f"[{'.' * 20}] 1 of 2  a.png" in drawn
    assert f"[{'#' * 10}{'.' * 10}] 2 of 2  b.png" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_a_download_draws_its_progress(
    monkeypatch: pytest.MonkeyPatch,
    bundled: LoadedModel,
    small: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def load(*_: Any, progress: Callable[[int, int], None]) -> LoadedModel:
        progress(2**20, 4 * 2**20)
        progress(3 * 2**20, 0)
        return bundled

    monkeypatch.setattr(cli, "load_model", load)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    call("explain", small("a.png"), "--out", tmp_path)
    drawn = capsys.readouterr().err
    assert f"[{'#' * 5}{'.' * 15}] downloading weights, 1.0 of 4.0 MB" in drawn
    assert f"[{'.' * 20}] downloading weights, 3.0 MB" in drawn


# --- models, layers, methods ---------------------------------------------------------------------


def test_models_lists_every_set_of_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert call("models") == 0
    head, first, *rest = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "model weights title M param. top-1 availability"
    assert (
        " ".join(first.split()) == "efficientnet_lite0 BUNDLED EfficientNet-Lite0 4.7 75.1 bundled"
    )
    assert len(rest) + 1 == sum(len(spec.entries) for spec in catalog().values())
    (row,) = [line for line in rest if line.startswith("resnet50 ") and "_V2" in line]
    assert " ".join(row.split()) == "resnet50 IMAGENET1K_V2 ResNet-50 25.6 80.9 download 98 MB"
    (row,) = [line for line in rest if "unavailable" in line]
    assert row.startswith("vgg16 ")
    assert row.endswith("  –  unavailable: holds no classifier")
    assert all(len(line) <= 100 for line in rest if line is not row)
    starts = {line.index(word) for line in rest for word in ("download", "unavail") if word in line}
    assert starts == {head.index("availability")}


def test_models_available_is_what_needs_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "resnet18-f37072fd.pth").touch()
    assert call("models", "--available") == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["efficientnet_lite0", "resnet18"]
    assert rows[1].endswith("  on disk")


def test_layers_stars_the_recommended_one_with_its_reason(
    bundled: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("layers", "efficientnet_lite0") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    head, *lines = printed.out.splitlines()
    assert " ".join(head.split()) == "layer calls shape layout class"
    (star,) = [number for number, line in enumerate(lines) if line.startswith("*")]
    recommended = next(info for info in list_layers(bundled) if info.recommended)
    assert lines[star].split()[1] == recommended.path
    assert lines[star + 1] == f"      {recommended.reason}"
    row = next(line for line in lines if line.startswith("  features.0.0 "))
    assert row.split()[1:4] == ["1", "1×32×112×112", "nchw"]


@pytest.mark.usefixtures("no_network")
def test_layers_needs_no_weights_and_says_what_never_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("layers", "vit_b_32") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    silent = next(n for n, line in enumerate(lines) if "self_attention.out_proj" in line)
    assert lines[silent].split()[1:4] == ["0", "–", "–"]
    assert lines[silent + 1] == (
        "      MultiheadAttention uses this layer's weights and never calls it"
    )
    assert call("layers", "resnet50", "--weights", "IMAGENET1K_V1") == 1
    assert "resnet50-0676ba61.pth" in capsys.readouterr().err


def test_methods_names_each_with_a_sentence_and_its_paper(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("methods") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "grad-cam  Grad-CAM: which regions raise the score of the target."
    assert lines[1] == "          Selvaraju et al., Grad-CAM, ICCV 2017, arXiv 1610.02391"
    assert [line.split()[0] for line in lines[::2]] == [method.name for method in list_methods()]


# --- the command line itself ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--help"], 0),
        (["explain", "--help"], 0),
        (["explain", "a.png", "--fit", "x", "--out", "o"], 2),
    ],
)
def test_help_and_wrong_arguments_load_no_torch(arguments: list[str], code: int) -> None:
    script = (
        "import sys\n"
        "from interp.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    sys.exit(99 if 'torch' in sys.modules or 'numpy' in sys.modules else end.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, check=False)
    assert done.returncode == code


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["explain", "--out", "o"], "required: PICTURE"),
        (["explain", "a.png"], "required: --out"),
        (["explain", "a.png", "--out", "o", "--fit", "x"], "argument --fit: invalid choice: 'x'"),
        (["explain", "a.png", "--out", "o", "--lay", "x"], "explain knows no --lay x"),
        (["models", "resnet18"], "models knows no resnet18"),
        (["layers"], "required: MODEL"),
        (["explan"], "invalid choice: 'explan'"),
    ],
)
def test_what_cannot_be_parsed_is_one_line_and_code_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert text in line
    assert line.endswith(" --help")
    assert printed.out == ""


def test_the_fits_offered_are_those_there_are() -> None:
    assert get_args(Fit) == __main__.FITS


def test_a_terminal_without_the_signs_gets_others() -> None:
    done = run("models", "--available", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "bundled" in done.stdout
    assert run("explain", "--help", PYTHONIOENCODING="ascii").returncode == 0


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "interp", "models"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1
