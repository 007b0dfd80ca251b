"""Files of an attribution: names, contents read back, and all or nothing on disk."""

import errno
import io
import json
import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from interp.drawing import Drawing, draw
from interp.errors import InterpError
from interp.export import (
    default_stem,
    figure_bytes,
    filmstrip_bytes,
    json_bytes,
    npz_bytes,
    png_bytes,
    safe_stem,
    save,
    zip_bytes,
)
from interp.geometry import Geometry, Preset, plan
from interp.render import DEFAULT_OPACITY, DEFAULT_THRESHOLD, figure, overlay, scale_for

RNG = np.random.default_rng(5)
PRESET = Preset(224, 256, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "bicubic")
PHOTO = Image.fromarray(RNG.integers(0, 256, (40, 60, 3), dtype=np.uint8))
GRID = np.array([[0.0, 1.5], [-0.5, 0.75]], np.float32)
VIEW = {
    "mode": "overlay",
    "colours": "plasma",
    "opacity": DEFAULT_OPACITY,
    "threshold": DEFAULT_THRESHOLD,
    "low": 0.0,
    "high": 1.5,
    "signed": False,
}
CHOSEN = Drawing("viridis", 0.85, 0.4, "swipe", 0.25)


@dataclass
class StandIn:
    """The attributes of an Attribution that a file is made of."""

    map: np.ndarray = field(default_factory=GRID.copy)
    logits: np.ndarray = field(default_factory=lambda: np.arange(5, dtype=np.float32))
    method: str = "grad-cam"
    layers: tuple[str, ...] = ("features.8",)
    model_name: str = "efficientnet_lite0"
    source: str = "bundled"
    signed: bool = False
    picture: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(image=PHOTO, name="coffee.png", size=PHOTO.size)
    )
    target: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(slug="espresso-967", label="espresso (967)")
    )
    weights: str = "imagenet"
    geometry: Geometry = field(default_factory=lambda: plan(PHOTO.size, PRESET, "crop"))
    details: dict = field(default_factory=lambda: {"version": 1, "label": "tabby − tiger cat"})

    def on_picture(self) -> np.ndarray:
        heat = np.repeat(np.repeat(self.map, 20, axis=0), 30, axis=1)
        heat[:, :4] = np.nan
        return heat

    def manifest(self) -> dict:
        return self.details


# Names


def test_the_default_name_says_picture_model_layer_method_target() -> None:
    expected = "coffee.efficientnet_lite0.features.8.grad-cam.espresso-967"
    assert default_stem(StandIn()) == expected


def test_untrained_is_in_the_name() -> None:
    stem = default_stem(StandIn(source="untrained", method="grad-cam++"))
    assert stem == "coffee.efficientnet_lite0.untrained.features.8.grad-cam++.espresso-967"


def test_folders_of_any_system_are_no_part_of_the_name() -> None:
    for name in ("../../x.png", "C:\\pictures\\x.PNG", "/etc/x", "..\\x.tar.gz"):
        stem = default_stem(StandIn(picture=SimpleNamespace(name=name)))
        assert stem.startswith("x."), stem


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("a", "", "b"), "a.b"),
        (("my cat: photo*?",), "my-cat-photo"),
        (("../../etc/passwd",), "etc-passwd"),
        (("a/b\\c",), "a-b-c"),
        ((".hidden", "-rf"), "hidden.rf"),
        (("trailing. ",), "trailing"),
        (("tête à tête",), "tete-a-tete"),
        (("a..b",), "a.b"),
        (("con",), "_con"),
        (("COM1", "x"), "_COM1.x"),
        (("lpt¹",), "_lpt1"),
        (("console",), "console"),
        (("line\nbreak\x00",), "line-break"),
        ((), "heatmap"),
        (("", "...", "?"), "heatmap"),
    ],
)
def test_safe_names(parts: tuple[str, ...], expected: str) -> None:
    assert safe_stem(*parts) == expected


def test_names_in_other_scripts_stay_different() -> None:
    names = ["猫", "犬", "猫1", "犬1", "кот", "😀", "😁", "Straße", "Strae"]
    stems = {safe_stem(name, "x") for name in names}
    assert len(stems) == len(names)
    assert all(stem.isascii() for stem in stems)


def test_long_names_are_cut_and_stay_different() -> None:
    first, second = (safe_stem("p" * 300 + end, *["q" * 60] * 9) for end in "ab")
    assert len(first) == len(second) == 150
    assert first != second
    assert safe_stem("p" * 300, "espresso-967").endswith(".espresso-967")


@given(st.lists(st.text(), max_size=6))
def test_any_text_gives_a_safe_name(parts: list[str]) -> None:
    stem = safe_stem(*parts)
    assert re.fullmatch(r"[A-Za-z0-9_+][A-Za-z0-9._+-]{0,149}", stem)
    assert not stem.endswith((".", "-"))
    assert ".." not in stem
    assert not re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", stem, re.IGNORECASE)


# Contents


def test_the_png_is_the_overlay_and_carries_the_manifest() -> None:
    attribution = StandIn()
    with Image.open(io.BytesIO(png_bytes(attribution))) as picture:
        picture.load()
        manifest = json.loads(picture.text["hookscope"])
        drawing = json.loads(picture.text["hookscope-drawing"])
        pixels = np.asarray(picture)
    expected = overlay(PHOTO, attribution.on_picture(), scale_for(GRID, signed=False))
    assert manifest == {**attribution.details, "view": VIEW}
    assert drawing == VIEW
    np.testing.assert_array_equal(pixels, np.asarray(expected))


def test_a_signed_png_says_so() -> None:
    with Image.open(io.BytesIO(png_bytes(StandIn(signed=True)))) as picture:
        drawing = json.loads(picture.text["hookscope-drawing"])
    assert (drawing["low"], drawing["high"], drawing["colours"]) == (-1.5, 1.5, "blue-red")


def test_a_long_manifest_can_be_read_back() -> None:
    details = {"events": ["fired × 1"] * 200_000}
    with Image.open(io.BytesIO(png_bytes(StandIn(details=details)))) as picture:
        manifest = json.loads(picture.text["hookscope"])
    assert manifest["events"] == details["events"]


def test_the_npz_holds_the_raw_numbers() -> None:
    attribution = StandIn()
    with np.load(io.BytesIO(npz_bytes(attribution)), allow_pickle=False) as numbers:
        assert set(numbers) == {"map", "heatmap", "logits", "manifest"}
        assert json.loads(str(numbers["manifest"])) == {**attribution.details, "view": VIEW}
        types = {numbers[name].dtype for name in numbers if name != "manifest"}
        assert types == {np.dtype(np.float32)}
        np.testing.assert_array_equal(numbers["map"], GRID)
        np.testing.assert_array_equal(numbers["heatmap"], attribution.on_picture())
        np.testing.assert_array_equal(numbers["logits"], attribution.logits)
        assert numbers["heatmap"].shape == (40, 60)


def test_the_json_is_the_manifest() -> None:
    content = json_bytes(StandIn())
    assert json.loads(content) == {"version": 1, "label": "tabby − tiger cat", "view": VIEW}
    assert "−".encode() in content


def test_numbers_that_are_not_finite_stay_valid_json() -> None:
    details = {"raw": [math.nan, math.inf, {"low": -math.inf}], "tuple": (1, 2.5)}
    expected = {"raw": ["NaN", "Infinity", {"low": "-Infinity"}], "tuple": [1, 2.5], "view": VIEW}

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    attribution = StandIn(details=details)
    assert json.loads(json_bytes(attribution), parse_constant=refuse) == expected
    with Image.open(io.BytesIO(png_bytes(attribution))) as picture:
        assert json.loads(picture.text["hookscope"], parse_constant=refuse) == expected


def test_a_file_name_that_is_no_text_can_be_exported() -> None:
    attribution = StandIn(details={"name": "\udcff.png"})
    assert json.loads(json_bytes(attribution))["name"] == "\udcff.png"
    with Image.open(io.BytesIO(png_bytes(attribution))) as picture:
        assert json.loads(picture.text["hookscope"])["name"] == "\udcff.png"


def test_a_failed_map_exports_the_plain_photograph() -> None:
    attribution = StandIn(map=np.full((2, 2), np.nan, np.float32))
    with Image.open(io.BytesIO(png_bytes(attribution))) as picture:
        np.testing.assert_array_equal(np.asarray(picture), np.asarray(PHOTO))


def manifest_in(name: str, content: bytes) -> dict:
    """The manifest of a file, whatever its kind."""
    if name.endswith("json"):
        return json.loads(content)
    if name.endswith("npz"):
        with np.load(io.BytesIO(content), allow_pickle=False) as numbers:
            return json.loads(str(numbers["manifest"]))
    with Image.open(io.BytesIO(content)) as picture:
        return json.loads(picture.text["hookscope"])


def test_the_zip_holds_every_file_and_is_deterministic() -> None:
    attribution = StandIn()
    content = zip_bytes(attribution)
    assert content == zip_bytes(StandIn())
    stem = "coffee.efficientnet_lite0.features.8.grad-cam.espresso-967"
    ends = ["npz", "png", "json", "figure.png"]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"{stem}.{end}" for end in ends]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        with zipfile.ZipFile(io.BytesIO(archive.read(f"{stem}.npz"))) as numbers:
            assert {entry.date_time for entry in numbers.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        files = {name: archive.read(name) for name in archive.namelist()}
    makers = (npz_bytes, png_bytes, json_bytes, figure_bytes)
    assert list(files.values()) == [make(attribution) for make in makers]
    for name, data in files.items():
        assert manifest_in(name, data) == {**attribution.details, "view": VIEW}


def test_every_file_is_drawn_as_chosen_and_says_so() -> None:
    attribution, scale = StandIn(), scale_for(GRID, signed=False)
    choices = scale, CHOSEN.colours, CHOSEN.opacity, CHOSEN.threshold
    with zipfile.ZipFile(io.BytesIO(zip_bytes(attribution, CHOSEN, [attribution]))) as archive:
        files = {name.partition("967.")[2]: archive.read(name) for name in archive.namelist()}
    assert list(files) == ["npz", "png", "json", "figure.png", "filmstrip.png"]
    wanted = overlay(PHOTO, attribution.on_picture(), *choices)
    with Image.open(io.BytesIO(files["png"])) as picture:
        np.testing.assert_array_equal(np.asarray(picture), np.asarray(wanted))
    page = figure(PHOTO, attribution.on_picture(), *choices)
    with Image.open(io.BytesIO(files["figure.png"])) as picture:
        drawn = np.asarray(picture)[: page.height - 12]
        np.testing.assert_array_equal(drawn, np.asarray(page)[: page.height - 12])
    with Image.open(io.BytesIO(filmstrip_bytes([attribution], CHOSEN))) as picture:
        heat = attribution.geometry.on_picture(GRID)
        strip = np.asarray(picture)
        frame = np.asarray(overlay(PHOTO, heat, *choices))
        top, left = (strip.shape[1] - 60) // 2, (strip.shape[1] - 60) // 2
        np.testing.assert_array_equal(strip[top : top + 40, left : left + 60], frame)
    view = {**VIEW, "colours": "viridis", "opacity": 0.85, "threshold": 0.4}
    for name in ("png", "figure.png"):
        assert manifest_in(name, files[name])["view"] == view
    for name in ("npz", "json"):
        assert manifest_in(name, files[name])["view"] == {**view, "mode": "swipe", "divider": 0.25}
    strip_of = manifest_in("filmstrip.png", files["filmstrip.png"])
    assert strip_of == [{**attribution.details, "view": view}]


def test_a_view_is_drawn_as_on_the_screen() -> None:
    attribution = StandIn()
    photo, heat = np.asarray(PHOTO), np.asarray(draw(attribution, Drawing()))
    swipe = np.asarray(draw(attribution, Drawing(mode="swipe", divider=0.25)))
    np.testing.assert_array_equal(swipe[:, :14], photo[:, :14])
    assert (swipe[:, 14:16] == 255).all()
    np.testing.assert_array_equal(swipe[:, 16:], heat[:, 16:])
    beside = np.asarray(draw(attribution, Drawing(mode="side-by-side")))
    np.testing.assert_array_equal(beside[:, :60], photo)
    np.testing.assert_array_equal(beside[:, -60:], heat)
    stacked = np.asarray(draw(attribution, Drawing(mode="side-by-side", stacked=True)))
    np.testing.assert_array_equal(stacked[:40], photo)
    np.testing.assert_array_equal(stacked[-40:], heat)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"colours": "jet"}, "unknown colour map 'jet'"),
        ({"mode": "split"}, "unknown view 'split'"),
        ({"opacity": 1.5}, r"opacity 1\.5 is out of range"),
        ({"threshold": math.nan}, "threshold nan is out of range"),
        ({"divider": -0.1}, r"divider -0\.1 is out of range"),
    ],
)
def test_what_cannot_be_drawn_is_refused(choice: dict, words: str) -> None:
    with pytest.raises(InterpError, match=words):
        Drawing(**choice)


# On disk


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_save_writes_three_files_into_a_new_folder(tmp_path: Path) -> None:
    attribution, folder = StandIn(), tmp_path / "new" / "out"
    paths = save(attribution, folder)
    stem = default_stem(attribution)
    assert paths == [folder / f"{stem}.{end}" for end in ("npz", "png", "json")]
    assert listing(folder) == {
        f"{stem}.npz": npz_bytes(attribution),
        f"{stem}.png": png_bytes(attribution),
        f"{stem}.json": json_bytes(attribution),
    }


def test_save_makes_the_stem_safe_and_replaces_older_files(tmp_path: Path) -> None:
    old = StandIn(details={"run": 1})
    save(old, tmp_path, "../a b")
    paths = save(StandIn(details={"run": 2}), str(tmp_path), "../a b")
    assert sorted(listing(tmp_path)) == ["a-b.json", "a-b.npz", "a-b.png"]
    assert json.loads(paths[2].read_text("utf-8"))["run"] == 2


def fail_at(
    monkeypatch: pytest.MonkeyPatch, method: str, call: int, error: BaseException
) -> Callable[[], int]:
    """Make the n-th call of a Path method raise; the result counts the calls."""
    calls = 0
    original = getattr(Path, method)

    def fails(self: Path, *args: object) -> object:
        nonlocal calls
        calls += 1
        if calls == call:
            raise error
        return original(self, *args)

    monkeypatch.setattr(Path, method, fails)
    return lambda: calls


@pytest.mark.parametrize("before", ["nothing", "one", "all"])
@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("method", ["write_bytes", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_all_or_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    call: int,
    method: str,
    error: BaseException,
) -> None:
    (tmp_path / "neighbour.txt").write_bytes(b"mine")
    if before != "nothing":
        save(StandIn(details={"run": "old"}), tmp_path, "x")
    if before == "one":
        (tmp_path / "x.npz").unlink()
        (tmp_path / "x.json").unlink()
    kept = listing(tmp_path)
    with monkeypatch.context() as patch:
        count = fail_at(patch, method, call, error)
        with pytest.raises(InterpError if isinstance(error, OSError) else KeyboardInterrupt):
            save(StandIn(details={"run": "new"}, logits=np.ones(3, np.float32)), tmp_path, "x")
        assert count() >= call
    assert listing(tmp_path) == kept


def test_a_manifest_that_is_no_json_touches_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save(StandIn(details={"bad": object()}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_place_of_the_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InterpError, match=r"cannot write x into .*out.*exists") as caught:
        save(StandIn(), tmp_path / "out", "x")
    assert "\n" not in str(caught.value)


def test_a_folder_in_place_of_a_file_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "x.png").mkdir()
    with pytest.raises(InterpError, match="directory"):
        save(StandIn(), tmp_path, "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
