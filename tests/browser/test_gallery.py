"""The gallery in Chromium, as a grid and as a filmstrip (`gallery_demo.py`)."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.stolen=1">'
NARROW = {"width": 900}
OVERFLOW = "() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@pytest.fixture(scope="module")
def demo(serve: Callable[..., str]) -> str:
    return serve("tests/browser/gallery_demo.py", env={"PYTHONPATH": "."})


def opened(page: Page, url: str) -> tuple[Locator, Locator]:
    """The grid and the strip."""
    page.goto(url)
    grid, strip = page.get_by_test_id("gallery-samples"), page.get_by_test_id("gallery-stages")
    strip.locator("[data-value]").first.wait_for()
    return grid, strip


def tile(gallery: Locator, value: str) -> Locator:
    return gallery.locator(f"[data-value='{value}']")


def expect_picks(page: Page, *values: str) -> None:
    """Exactly these picks, each with one run after the first."""
    expect(page.get_by_text(" ".join(["picks:", *values]), exact=True)).to_be_visible()
    page.wait_for_timeout(500)  # a run too many would come now
    expect(page.get_by_text(f"runs: {len(values) + 1}", exact=True)).to_be_visible()


def expect_chosen(gallery: Locator, value: str) -> None:
    chosen = gallery.get_by_role("radio", checked=True)
    expect(chosen).to_have_count(1)
    expect(chosen).to_have_attribute("data-value", value)


def test_a_click_picks_once(page: Page, demo: str) -> None:
    grid, strip = opened(page, demo)
    expect_chosen(grid, "coffee")
    tile(grid, "rocket").dblclick()
    expect_chosen(grid, "rocket")
    expect_chosen(strip, "features.2")
    expect_picks(page, "rocket")
    tile(grid, "rocket").click()  # is chosen already
    expect_picks(page, "rocket")


def test_radio_group_has_names_and_pictures_with_words(page: Page, demo: str) -> None:
    grid, _ = opened(page, demo)
    expect(page.get_by_role("radiogroup", name="Sample")).to_be_visible()
    expect(grid.get_by_role("radio", name="Sample: chelsea chelsea")).to_be_visible()
    stage = page.get_by_role("radio", name="Heat at features.3 features.3 56 × 56 max 0.21")
    expect(stage.locator(".title")).to_have_text("features.3")
    expect(stage).to_have_attribute("title", "features.3 · 56 × 56 · max 0.21")
    expect(grid.locator("[tabindex='0']")).to_have_attribute("data-value", "coffee")
    expect(grid.locator("[tabindex='0']")).to_have_count(1)


def test_arrow_keys_choose_where_they_come_to_rest(page: Page, demo: str) -> None:
    grid, strip = opened(page, demo)
    tile(strip, "features.2").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(tile(strip, "features.5")).to_be_focused()
    expect_picks(page, "features.5")
    expect_chosen(strip, "features.5")
    expect(tile(strip, "features.5")).to_be_focused()
    assert tile(strip, "features.5").evaluate("t => getComputedStyle(t).outlineStyle") == "solid"

    tile(grid, "coffee").focus()
    page.keyboard.press("ArrowDown")
    expect(tile(grid, "motorcycle_left")).to_be_focused()
    page.keyboard.press("Enter")  # at once, and not a second time when the key has rested
    expect_picks(page, "features.5", "motorcycle_left")
    page.keyboard.press("ArrowDown")  # nothing is below
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    expect(tile(grid, "chelsea")).to_be_focused()
    expect_picks(page, "features.5", "motorcycle_left", "chelsea")


def test_there_and_back_is_no_pick(page: Page, demo: str) -> None:
    _, strip = opened(page, demo)
    tile(strip, "features.2").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(500)
    expect_picks(page)


def test_a_refused_pick_gives_the_mark_back(page: Page, demo: str) -> None:
    _, strip = opened(page, demo)
    for times in (1, 2):
        tile(strip, "features.1").click()
        expect_picks(page, *["features.1"] * times)
        expect_chosen(strip, "features.2")


def test_the_chosen_one_follows_python_and_comes_into_view(page: Page, demo: str) -> None:
    page.set_viewport_size({"width": 900, "height": 700})
    _, strip = opened(page, demo)
    row = strip.get_by_role("radiogroup")
    expect(tile(strip, "features.8")).not_to_be_in_viewport(ratio=0.9)
    page.get_by_role("button", name="Choose the last from Python").click()
    expect_chosen(strip, "features.8")
    expect(tile(strip, "features.8")).to_be_in_viewport(ratio=0.99)
    expect(row).to_have_attribute("data-more", "before")


@pytest.mark.parametrize(("width", "scrolls"), [(1440, False), (900, True)])
def test_the_strip_scrolls_only_where_it_must(
    page: Page, demo: str, width: int, scrolls: bool
) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    _, strip = opened(page, demo)
    row = strip.get_by_role("radiogroup")
    assert row.evaluate("r => r.scrollWidth > r.clientWidth") is scrolls
    boxes = [t.bounding_box() for t in strip.get_by_role("radio").all()]
    assert len(boxes) == 9
    assert len({(round(box["y"]), round(box["width"], 1)) for box in boxes if box}) == 1
    assert page.evaluate(OVERFLOW) <= 0


def test_the_grid_is_three_by_two_squares_in_the_sidebar(page: Page, demo: str) -> None:
    grid, _ = opened(page, demo)
    frames = [frame.bounding_box() for frame in grid.locator(".frame").all()]
    assert len({round(frame["x"]) for frame in frames if frame}) == 3
    assert len({round(frame["y"]) for frame in frames if frame}) == 2
    assert all(frame and abs(frame["width"] - frame["height"]) < 0.5 for frame in frames)
    assert grid.evaluate("g => g.scrollWidth <= g.clientWidth")


def test_pictures_travel_small(page: Page, demo: str) -> None:
    grid, _ = opened(page, demo)
    url = tile(grid, "motorcycle_left").locator("img").get_attribute("src") or ""
    kind, _, data = url.partition(";base64,")
    assert kind == "data:image/jpeg"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (320, 216)  # of 741 × 500


@pytest.mark.parametrize("page", [NARROW, {**NARROW, "color_scheme": "dark"}], indirect=True)
def test_long_paths_are_cut_at_their_beginning(page: Page, demo: str) -> None:
    _, strip = opened(page, f"{demo}/?tiles=4")
    title = strip.locator(".title").nth(3)
    assert title.evaluate("t => t.scrollWidth > t.clientWidth")
    # The last letter is inside of the box, the first one is not.
    inside = """t => {
      const range = document.createRange();
      const node = t.firstElementChild.firstChild;
      const left = t.getBoundingClientRect().left;
      return [[0, 1], [node.length - 1, node.length]].map(([from, to]) => {
        range.setStart(node, from);
        range.setEnd(node, to);
        return range.getBoundingClientRect().left >= left;
      });
    }"""
    assert title.evaluate(inside) == [False, True]
    assert page.evaluate(OVERFLOW) <= 0


def test_text_stays_text_and_a_missing_picture_keeps_its_place(page: Page, demo: str) -> None:
    grid, strip = opened(page, f"{demo}/?hostile=1&blank=1")
    last = grid.get_by_role("radio").last
    expect(last.locator(".title")).to_have_text(HOSTILE)
    expect(last.locator("img")).to_have_count(1)
    expect(last.locator("img")).to_be_hidden()
    expect(last.locator(".blank")).to_be_visible()
    expect(strip.locator(".blank:visible")).to_have_count(9)
    last.click()
    expect(page.get_by_text(f"picks: {HOSTILE}", exact=True)).to_be_visible()
    assert page.evaluate("window.stolen") is None
