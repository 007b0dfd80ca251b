"""The heatmap canvas in a real browser: numbers and pixels equal Python's, and nothing reruns."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from canvas_demo import PRESET, make_attribution, make_map, picture_of
from numpy.typing import NDArray
from PIL import Image

from interp import render
from interp.drawing import MODES, Drawing, draw
from interp.geometry import plan
from interp.ui.heatmap_view import describe

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

DEMO = Path(__file__).with_name("canvas_demo.py")
# At this width the canvas shows the 600 × 400 sample pixel by pixel.
EXACT_WIDTH = 600


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(DEMO, str(EXACT_WIDTH))


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """One page for the file: with its cache warm, a fresh Streamlit session takes no time."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script("sessionStorage.clear()")
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors


@pytest.fixture
def demo(tab: Page, url: str) -> Page:
    tab.goto(url)
    ready(tab)
    return tab


def part(page: Page, name: str) -> Locator:
    return page.get_by_test_id(f"heatmap-{name}" if name else "heatmap")


def ready(page: Page) -> None:
    page.locator("[data-testid=heatmap][data-ready=true]").wait_for()


def choose(page: Page, text: str, runs: int) -> None:
    """Pick an option of the demo's sidebar: each is one rerun with a new payload."""
    page.get_by_test_id("stSidebar").get_by_text(text, exact=True).click()
    page.get_by_text(f"script runs: {runs}", exact=True).wait_for()
    if part(page, "").count():
        ready(page)


def pixels(page: Page) -> NDArray[np.int16]:
    """What stands on the canvas, (height, width, 3), after the frame that is being drawn."""
    packed: dict[str, Any] = part(page, "canvas").evaluate(
        """async (canvas) => {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const { width, height } = canvas;
            const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
            let text = "";
            for (let i = 0; i < data.length; i += 8192) {
              text += String.fromCharCode(...data.subarray(i, i + 8192));
            }
            return { width, height, text: btoa(text) };
        }"""
    )
    data = np.frombuffer(base64.b64decode(packed["text"]), np.uint8)
    return data.reshape(packed["height"], packed["width"], 4)[..., :3].astype(np.int16)


def expected(kind: str = "positive", fit: str = "crop", **drawing: Any) -> NDArray[np.int16]:
    picture = picture_of("coffee")
    heat = plan(picture.size, PRESET, fit).on_picture(make_map(kind))  # type: ignore[arg-type]
    scale = render.scale_for(make_map(kind), signed=kind == "signed")
    return np.asarray(render.overlay(picture.image, heat, scale, **drawing)).astype(np.int16)


def seen_inside(margin: int = 3) -> tuple[slice, slice]:
    left, top, right, bottom = plan((600, 400), PRESET, "crop").seen
    return (
        slice(int(top) + margin, int(bottom) - margin),
        slice(int(left) + margin, int(right) - margin),
    )


def assert_same(shown: NDArray[np.int16], wanted: NDArray[np.int16]) -> None:
    """Within 3 levels, but for pixels that rounding puts on the other side of the threshold."""
    assert shown.shape == wanted.shape
    off = (np.abs(shown - wanted) > 3).any(axis=-1)
    assert off.mean() < 2e-4


def set_slider(page: Page, name: str, value: float) -> None:
    part(page, name).fill(str(value))


def point_at(page: Page, x: int, y: int, size: tuple[int, int]) -> None:
    box = part(page, "canvas").bounding_box()
    assert box is not None
    across, down = (x + 0.5) / size[0], (y + 0.5) / size[1]
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])


def value_shown(page: Page) -> float:
    return float(part(page, "readout").get_attribute("data-value") or "no value")


def test_canvas_equals_the_python_overlay(demo: Page) -> None:
    shown = pixels(demo)
    assert shown.shape == (400, 600, 3)
    assert_same(shown, expected())


@pytest.mark.parametrize("colours", ["turbo", "grey"])
def test_choices_repaint_like_python_without_a_rerun(demo: Page, colours: str) -> None:
    set_slider(demo, "opacity", 0.85)
    set_slider(demo, "threshold", 0.4)
    part(demo, f"colours-{colours}").check(force=True)
    inside = seen_inside()
    wanted = expected(opacity=0.85, threshold=0.4, colours=colours)
    assert_same(pixels(demo)[inside], wanted[inside])
    for mode in ("swipe", "side-by-side", "overlay"):
        part(demo, f"mode-{mode}").check(force=True)
    demo.wait_for_timeout(500)
    assert demo.get_by_text("script runs: 1", exact=True).is_visible()


def test_signed_map_is_drawn_about_zero(demo: Page) -> None:
    choose(demo, "stretch", 2)
    choose(demo, "signed", 3)
    assert_same(pixels(demo), expected("signed", "stretch"))
    numbers = part(demo, "legend").inner_text()
    assert "−0.0" in numbers
    assert part(demo, "colours").get_by_role("radio").count() == 1


def test_flat_map_draws_nothing_and_says_so(demo: Page) -> None:
    choose(demo, "letterbox", 2)
    choose(demo, "flat", 3)
    photo = np.asarray(picture_of("coffee").image).astype(np.int16)
    assert np.abs(pixels(demo) - photo).max() <= 1
    assert "nothing to draw" in part(demo, "legend").inner_text()
    assert part(demo, "readout").inner_text().startswith("Nothing to draw: the map is flat")


@pytest.mark.parametrize("fit", ["crop", "stretch", "letterbox"])
def test_value_under_the_pointer_is_the_exact_one(demo: Page, fit: str) -> None:
    choose(demo, "chelsea", 2)
    if fit != "crop":
        choose(demo, fit, 3)
    size = picture_of("chelsea").size
    heat = plan(size, PRESET, fit).on_picture(make_map("positive"))  # type: ignore[arg-type]
    for x, y in [(225, 150), (130, 40), (301, 211), (188, 277)]:
        point_at(demo, x, y, size)
        assert part(demo, "readout").inner_text().startswith(f"x {x}, y {y} · value")
        assert value_shown(demo) == pytest.approx(float(heat[y, x]), abs=1e-4)


def test_outside_what_the_model_saw_there_is_no_value(demo: Page) -> None:
    point_at(demo, 3, 200, (600, 400))
    assert part(demo, "readout").inner_text() == "x 3, y 200 · outside what the model saw"
    shown, photo = pixels(demo), np.asarray(picture_of("coffee").image)
    assert shown[:, :100].mean() < 0.75 * photo[:, :100].mean()


def test_keyboard_reads_pixel_by_pixel(demo: Page) -> None:
    heat = plan((600, 400), PRESET, "crop").on_picture(make_map("positive"))
    part(demo, "mode-overlay").focus()
    for _ in range(3):  # reset, save, canvas
        demo.keyboard.press("Tab")
    assert part(demo, "canvas").evaluate("(canvas) => canvas.matches(':focus-visible')")
    start = re.match(r"x (\d+), y (\d+) ", part(demo, "readout").inner_text())
    assert start is not None
    x, y = int(start[1]), int(start[2])
    assert heat[y, x] == pytest.approx(np.nanmax(heat), rel=1e-3)
    demo.keyboard.press("ArrowRight")
    demo.keyboard.press("Shift+ArrowUp")
    assert part(demo, "readout").inner_text().startswith(f"x {x + 1}, y {y - 10} ·")
    assert value_shown(demo) == pytest.approx(float(heat[y - 10, x + 1]), abs=1e-4)


def test_swipe_shows_the_photo_left_of_its_divider(demo: Page) -> None:
    choose(demo, "stretch", 2)
    part(demo, "mode-swipe").check(force=True)
    photo = np.asarray(picture_of("coffee").image).astype(np.int16)
    heat = expected(fit="stretch")

    def is_cut_at(column: int) -> None:
        shown = pixels(demo)
        assert np.abs(shown[:, : column - 3] - photo[:, : column - 3]).max() <= 1
        assert_same(shown[:, column + 3 :], heat[:, column + 3 :])

    is_cut_at(300)
    part(demo, "divider").focus()
    for key in ("ArrowLeft", "Shift+ArrowRight", "Shift+ArrowRight"):
        demo.keyboard.press(key)
    is_cut_at(408)
    box = part(demo, "canvas").bounding_box()
    assert box is not None
    demo.mouse.move(box["x"] + 408, box["y"] + 200)
    demo.mouse.down()
    demo.mouse.move(box["x"] + 150, box["y"] + 200, steps=4)
    demo.mouse.up()
    is_cut_at(150)
    assert part(demo, "divider").get_attribute("aria-valuenow") == "25"


def test_side_by_side_reads_in_either_picture(demo: Page) -> None:
    part(demo, "mode-side-by-side").check(force=True)
    shown = pixels(demo)
    width = (EXACT_WIDTH - 12) // 2
    assert shown.shape == (196, EXACT_WIDTH, 3)
    photo = np.asarray(picture_of("coffee").image.resize((width, 196), Image.Resampling.BOX))
    assert np.abs(shown[:, :width] - photo).mean() < 8
    assert np.abs(shown[:, width + 12 :] - photo).mean() > 20
    box = part(demo, "canvas").bounding_box()
    assert box is not None
    texts = []
    for left in (0, width + 12):
        demo.mouse.move(box["x"] + left + 160.2, box["y"] + 100.2)
        texts.append(part(demo, "readout").inner_text())
    assert texts[0] == texts[1]
    assert texts[0].startswith("x 326, y 204 · value ")


def saved(page: Page) -> tuple[str, Image.Image]:
    """Press «Save this view»: the name of the file and the picture."""
    with page.expect_download() as download:
        part(page, "save").click()
    content = Path(download.value.path()).read_bytes()
    return download.value.suggested_filename, Image.open(io.BytesIO(content))


@pytest.mark.parametrize(("name", "size"), [("coffee", (600, 400)), ("large", (2600, 1800))])
def test_a_saved_view_is_drawn_at_the_original_size_as_it_is_shown(
    demo: Page, name: str, size: tuple[int, int]
) -> None:
    if name != "coffee":
        choose(demo, name, 2)
    set_slider(demo, "opacity", 0.85)
    set_slider(demo, "threshold", 0.4)
    part(demo, "colours-viridis").check(force=True)
    picture = picture_of(name)
    attribution: Any = make_attribution(picture, plan(picture.size, PRESET, "crop"), "positive")
    chosen = Drawing("viridis", 0.85, 0.4)
    for mode in MODES:
        part(demo, f"mode-{mode}").check(force=True)
        called, view = saved(demo)  # at once: the server must wait for what was chosen last
        assert called.startswith(name)
        assert called.endswith(f"espresso-967.{mode}.png")
        wanted = draw(attribution, replace(chosen, mode=mode))
        assert np.array_equal(np.asarray(view), np.asarray(wanted))
        if mode == "overlay":
            assert view.size == size
        said = json.loads(view.text["hookscope"])  # type: ignore[attr-defined]
        assert said["made"] == "by hand"
        given = {key: said["view"][key] for key in ("mode", "colours", "opacity", "threshold")}
        assert given == {"mode": mode, "colours": "viridis", "opacity": 0.85, "threshold": 0.4}
    assert demo.get_by_text(f"script runs: {1 + (name != 'coffee')}", exact=True).is_visible()


def test_nothing_is_saved_where_the_server_cannot_be_told_what_is_shown(demo: Page) -> None:
    demo.wait_for_timeout(500)
    demo.route("**/upload_file/**", lambda route: route.abort())
    set_slider(demo, "opacity", 0.2)
    downloads: list[Any] = []
    demo.on("download", lambda download: downloads.append(download))
    part(demo, "save").click()
    demo.get_by_text("Not saved, since the server cannot be told what is shown").wait_for()
    demo.wait_for_timeout(500)
    assert downloads == []
    demo.unroute("**/upload_file/**")
    _, view = saved(demo)
    said = json.loads(view.text["hookscope"])  # type: ignore[attr-defined]
    assert said["view"]["opacity"] == 0.2


def test_choices_survive_a_new_picture_and_a_new_mount(demo: Page) -> None:
    set_slider(demo, "opacity", 0.3)
    part(demo, "colours-viridis").check(force=True)
    choose(demo, "chelsea", 2)
    assert part(demo, "opacity-value").inner_text() == "30 %"
    choose(demo, "Show", 3)
    assert part(demo, "").count() == 0
    choose(demo, "Show", 4)
    assert part(demo, "opacity-value").inner_text() == "30 %"
    assert part(demo, "colours-viridis").is_checked()
    part(demo, "reset").click()
    assert part(demo, "opacity-value").inner_text() == f"{round(100 * render.DEFAULT_OPACITY)} %"
    assert part(demo, f"colours-{render.DEFAULT_COLOURS}").is_checked()


@pytest.mark.parametrize("name", ["wide", "tall"])
def test_odd_formats_keep_their_shape_and_fit(demo: Page, name: str) -> None:
    choose(demo, name, 2)
    width, height = picture_of(name).size
    box = part(demo, "canvas").bounding_box()
    assert box is not None
    assert box["height"] <= 560.5
    assert box["width"] <= EXACT_WIDTH
    assert box["width"] / box["height"] == pytest.approx(width / height, rel=0.03)


@pytest.mark.parametrize("page", [{"width": 900, "device_scale_factor": 2}], indirect=True)
def test_canvas_follows_its_room_and_the_screen(page: Page, url: str) -> None:
    page.goto(url)
    ready(page)
    canvas = part(page, "canvas")

    def widths() -> tuple[float, int]:
        box = canvas.bounding_box()
        assert box is not None
        return box["width"], canvas.evaluate("(canvas) => canvas.width")

    before = widths()
    assert before[1] == pytest.approx(2 * before[0], abs=1)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(300)
    after = widths()
    assert after != before
    assert after[1] == pytest.approx(2 * after[0], abs=1)


def test_the_canvas_is_named_in_words(demo: Page) -> None:
    picture = picture_of("coffee")
    attribution: Any = make_attribution(picture, plan(picture.size, PRESET, "crop"), "positive")
    words = describe(attribution)
    assert words == "Heat strongest over the centre, maximum 3.07, for espresso (967)"
    assert demo.get_by_role("img", name=words).count() == 1


def test_words_follow_the_fit_and_the_sign() -> None:
    picture = picture_of("wide")
    letterbox: Any = make_attribution(picture, plan(picture.size, PRESET, "letterbox"), "signed")
    letterbox.map = np.zeros((4, 4), np.float32)
    letterbox.map[1, 0] = -2.0
    letterbox.map[0, 3] = 1.0
    assert describe(letterbox) == (
        "Heat for and against espresso (967), strongest over the top left, -2 to 1"
    )
    letterbox.map = np.full((4, 4), np.nan, np.float32)
    assert describe(letterbox).startswith("No heat to draw for espresso (967)")
