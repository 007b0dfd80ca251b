"""The Explain page in Chromium: pictures in, files out, and what never runs the script again."""

import base64
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explain_page import Explain, offline
from PIL import Image
from playwright.sync_api import Download, Locator, Page, expect

from interp import open_picture, render

pytestmark = pytest.mark.browser

STEM = "coffee.efficientnet_lite0.features.8.1.grad-cam.espresso-967"


@pytest.fixture
def app(page: Page, serve: Any) -> Explain:
    return Explain(page, offline(serve))


@pytest.fixture
def turned(chelsea: Path, tmp_path: Path) -> Path:
    """A JPEG that lies on its side, 451 × 300, and whose EXIF says so: upright it is 300 × 451."""
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "turned.jpg"
    Image.open(chelsea).save(path, exif=exif)
    return path


def choose_upload(app: Explain) -> None:
    app.side.get_by_text("Upload", exact=True).click()
    expect(app.side.get_by_test_id("stFileUploader")).to_be_visible()
    app.idle()


def picture_of(download: Download) -> Image.Image:
    return Image.open(io.BytesIO(download.path().read_bytes()))


def test_an_upload_is_upright_and_survives_a_reload(app: Explain, turned: Path) -> None:
    choose_upload(app.open())
    app.upload(turned)
    expect(app.side).to_contain_text("turned.jpg · 300 × 451 · JPEG")
    app.settled()
    expect(app.page).to_have_url(re.compile(r"\?picture=[0-9a-f]{64}$"))
    expect(app.notes).to_contain_text(["Turned by its EXIF orientation"])
    box = app.part("canvas").bounding_box()
    assert box is not None
    assert box["width"] / box["height"] == pytest.approx(300 / 451, abs=0.01)
    assert picture_of(app.download("PNG")).size == (300, 451)

    app.bars.nth(1).click()
    expect(app.page).to_have_url(re.compile("target="))
    app.settled()
    said, drawn = app.headline.text_content(), app.pixels()
    app.page.reload()
    app.settled()
    expect(app.headline).to_have_text(said or "")
    expect(app.side).to_contain_text("turned.jpg · 300 × 451 · JPEG")
    assert app.pixels() == drawn
    assert app.console == []


def test_a_bad_upload_is_one_line_and_the_old_result_stays(
    app: Explain, turned: Path, coffee: Path, tmp_path: Path
) -> None:
    choose_upload(app.open("/?picture=chelsea"))
    address, drawn = app.page.url, app.pixels()
    refusal = app.side.get_by_test_id("stAlertContentError")
    whole = turned.read_bytes()
    for name, content, line in [
        ("a*b*_.png", b"no picture at all", "a*b*_.png is not a picture of a known type"),
        ("cut.jpg", whole[: len(whole) // 2], "cut.jpg is damaged, cut short, or a kind of JPEG"),
        ("empty.png", b"", "empty.png is empty (0 bytes): export or download it again"),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        app.upload(path)
        expect(refusal).to_contain_text(line)
        expect(refusal.locator("p")).to_have_count(1)
        app.shows("tiger cat (282)")
        assert (app.page.url, app.pixels()) == (address, drawn)
    app.side.get_by_text("Samples", exact=True).click()
    expect(refusal).to_have_count(0)
    expect(app.side.get_by_test_id("stFileUploader")).to_have_count(0)
    choose_upload(app)
    app.upload(coffee)
    app.shows("espresso (967)")
    expect(refusal).to_have_count(0)


def test_a_gif_says_which_frame_and_offers_the_others(
    app: Explain, chelsea: Path, coffee: Path, tmp_path: Path
) -> None:
    path, other = tmp_path / "three.gif", tmp_path / "other.gif"
    first, *rest = [Image.open(p).resize((300, 200)) for p in (chelsea, coffee, chelsea)]
    first.save(path, save_all=True, append_images=rest)
    rest[0].save(other, save_all=True, append_images=[first, rest[0]])
    choose_upload(app.open())
    app.upload(path)
    expect(app.notes).to_contain_text(["Frame 1 of 3"])
    frame = app.side.get_by_role("spinbutton", name="Frame, of 3")
    expect(frame).to_have_value("1")
    frame.fill("2")
    frame.press("Enter")
    app.shows("espresso (967)")
    expect(app.notes).to_contain_text(["Frame 2 of 3"])
    expect(app.page).to_have_url(re.compile("&frame=1$"))

    app.upload(other)
    expect(app.notes).to_contain_text(["Frame 1 of 3"])
    expect(app.page).not_to_have_url(re.compile("frame="))
    expect(frame).to_have_value("1")


def test_what_is_drawn_changes_without_a_rerun(app: Explain) -> None:
    app.open()
    views = [app.pixels()]

    def changed() -> None:
        views.append(app.pixels())
        assert views[-1] not in views[:-1]

    for part in ("opacity", "threshold"):
        for value in ("0.3", "0.9"):
            app.part(part).fill(value)
            changed()
    swatches = app.part("colours").get_by_role("radio")
    swatches.nth(1).check(force=True)
    changed()
    app.part("mode-side-by-side").check(force=True)
    changed()
    app.part("mode-swipe").check(force=True)
    changed()
    app.part("divider").focus()
    app.page.keyboard.press("ArrowLeft")
    changed()
    app.part("canvas").hover(position={"x": 200, "y": 200})
    expect(app.part("readout")).to_have_text(re.compile(r"^x \d+, y \d+ · value "))
    app.part("reset").click()
    assert app.pixels() == views[0]
    app.idle()
    assert app.reruns == 1
    app.bars.nth(1).click()  # the count would have shown it
    app.shows("cup (968)")
    assert app.reruns == 2


def test_each_file_is_right_and_none_reruns_the_page(app: Explain) -> None:
    app.open()
    size = (600, 400)
    png = app.download("PNG")
    assert png.suggested_filename == f"{STEM}.png"
    overlay = picture_of(png)
    assert overlay.size == size
    manifest = json.loads(overlay.text["hookscope"])  # type: ignore[attr-defined]
    assert manifest["target"]["label"] == "espresso (967)"

    npz = app.download("NPZ")
    assert npz.suggested_filename == f"{STEM}.npz"
    with np.load(npz.path()) as arrays:
        assert {name: array.shape for name, array in arrays.items()} == {
            "map": (7, 7),
            "heatmap": size[::-1],
            "logits": (1000,),
            "manifest": (),
        }
        assert json.loads(str(arrays["manifest"])) == manifest
        assert arrays["logits"].argmax() == 967
        assert arrays["map"].max() == pytest.approx(manifest["map"]["maximum"])

    written = app.download("JSON")
    assert written.suggested_filename == f"{STEM}.json"
    assert json.loads(written.path().read_text("utf-8")) == manifest

    figure = app.download("Figure")
    assert figure.suggested_filename == f"{STEM}.figure.png"
    wide, tall = picture_of(figure).size
    assert wide >= size[0]
    assert tall > size[1]

    together = app.download("All")
    assert together.suggested_filename == f"{STEM}.zip"
    with zipfile.ZipFile(together.path()) as archive:
        ends = ("npz", "png", "json", "figure.png", "filmstrip.png")
        assert set(archive.namelist()) == {f"{STEM}.{end}" for end in ends}
        packed = Image.open(io.BytesIO(archive.read(f"{STEM}.png")))
        assert np.array_equal(np.asarray(packed), np.asarray(overlay))

    view = app.download("Save this view")
    assert view.suggested_filename == f"{STEM}.overlay.png"
    assert picture_of(view).size == size
    app.idle()
    assert app.reruns == 1
    assert app.console == []


def canvas_of(part: Locator) -> np.ndarray:
    """What stands on a canvas, (height, width, 4), after the frame that is being drawn."""
    url = part.evaluate(
        """async (canvas) => {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return canvas.toDataURL();
        }"""
    )
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


def test_every_file_is_what_is_on_the_screen(app: Explain, coffee: Path) -> None:
    app.open()
    with np.load(app.download("NPZ").path()) as arrays:
        raw, heat = arrays["map"], arrays["heatmap"]
    app.part("opacity").fill("0.85")
    app.part("colours-viridis").check(force=True)
    app.part("mode-swipe").check(force=True)
    app.part("threshold").fill("0.4")
    png = picture_of(app.download("PNG"))  # at once after the last change
    scale = render.scale_for(raw, signed=False)
    wanted = render.overlay(open_picture(coffee).image, heat, scale, "viridis", 0.85, 0.4)
    assert np.array_equal(np.asarray(png), np.asarray(wanted))
    view = {
        "mode": "overlay",
        "colours": "viridis",
        "opacity": 0.85,
        "threshold": 0.4,
        "low": 0.0,
        "high": pytest.approx(float(raw.max())),
        "signed": False,
    }
    figure = picture_of(app.download("Figure"))
    pad = 13  # 600 / 45, rounded
    assert np.array_equal(np.asarray(figure)[pad : pad + 400, pad : pad + 600], np.asarray(wanted))
    for picture in (png, figure):
        assert json.loads(picture.text["hookscope"])["view"] == view  # type: ignore[attr-defined]
    shown = {**view, "mode": "swipe", "divider": 0.5}
    assert json.loads(app.download("JSON").path().read_text("utf-8"))["view"] == shown
    with np.load(app.download("NPZ").path()) as arrays:
        assert json.loads(str(arrays["manifest"]))["view"] == shown
    with zipfile.ZipFile(app.download("All").path()) as archive:
        packed = Image.open(io.BytesIO(archive.read(f"{STEM}.png")))
        strip = Image.open(io.BytesIO(archive.read(f"{STEM}.filmstrip.png")))
    assert np.array_equal(np.asarray(packed), np.asarray(wanted))
    frames = json.loads(strip.text["hookscope"])  # type: ignore[attr-defined]
    assert [frame["layers"] for frame in frames][-1] == ["features.8.1"]
    assert {frame["view"]["colours"] for frame in frames} == {"viridis"}
    assert {frame["view"]["threshold"] for frame in frames} == {0.4}
    assert app.reruns == 1


def test_raw_map_and_filmstrip_take_colours_and_threshold_without_a_rerun(app: Explain) -> None:
    app.open()
    with np.load(app.download("NPZ").path()) as arrays:
        raw = arrays["map"]
    scale = render.scale_for(raw, signed=False)
    value = render.normalise(raw, scale)
    grid = app.page.get_by_test_id("raw-map").locator("canvas")
    tile = app.tile("features.8.1").locator("canvas[data-ready=true]")
    frames = [canvas_of(tile)]
    for colours, threshold in (("plasma", 0.15), ("viridis", 0.4), ("grey", 0.0)):
        app.part("threshold").fill(str(threshold))
        app.part(f"colours-{colours}").check(force=True)
        drawn = canvas_of(grid)
        assert drawn.shape == (7, 7, 4)
        solid = value >= threshold
        assert np.array_equal(drawn[..., 3] == 255, solid)
        index = np.floor(255 * value + 0.5).astype(int)
        assert np.array_equal(drawn[solid][:, :3], render.lookup(colours)[index][solid])
        frames.append(canvas_of(tile))
    assert np.array_equal(frames[0], frames[1])
    assert not np.array_equal(frames[1], frames[2])
    assert not np.array_equal(frames[2], frames[3])
    # A tile shows the same heat as the picture: grey is laid over as much of it as of the picture.
    app.part("opacity").fill("0")
    assert np.ptp(canvas_of(tile)[..., :3].astype(int), axis=-1).max() > 100
    app.part("opacity").fill("1")
    inside = canvas_of(tile)[90:120, 140:180, :3].astype(int)
    assert np.ptp(inside, axis=-1).max() == 0
    app.page.reload()
    app.settled()
    expect(tile).to_be_visible()
    again = canvas_of(tile)[90:120, 140:180, :3].astype(int)
    assert np.array_equal(again, inside)
    assert app.reruns == 2


def test_the_hook_panel_shows_the_run_above_it(app: Explain) -> None:
    app.open()
    app.hooks.locator("summary").click()
    app.hooks.get_by_role("tab", name="Table").click()
    table = app.hooks.get_by_role("table", name="Hook records")
    rows = table.locator("tbody tr[aria-rowindex]")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="full backward")).to_contain_text("features.8.1")
    expect(rows).to_contain_text(["removed", "removed"])
    assert app.reruns == 1
    app.tile("features.3").click()
    expect(rows.filter(has_text="full backward")).to_contain_text("features.3")
    expect(app.hooks.locator(".counts")).to_have_text(
        "2 registered · 2 removed · 0 live · 0 foreign"
    )
