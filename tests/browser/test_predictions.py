"""The row of predictions in Chromium (`predictions_demo.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.stolen=1">'
OVERFLOW = "() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
SHARES = """bars => bars.map((bar) => {
  const [length, whole] = [bar, bar.parentElement].map((e) => e.getBoundingClientRect().width);
  return length / whole;
})"""


@pytest.fixture(scope="module")
def demo(serve: Callable[..., str]) -> str:
    return serve("tests/browser/predictions_demo.py", env={"PYTHONPATH": "."})


def opened(page: Page, demo: str, case: str = "coffee") -> Locator:
    page.goto(f"{demo}/?case={case}")
    row = page.get_by_test_id("predictions")
    row.locator("[data-index]").first.wait_for()
    return row


def item(row: Locator, index: int) -> Locator:
    return row.locator(f"[data-index='{index}']")


def expect_picks(page: Page, *indices: int) -> None:
    """Exactly these picks, each with one run after the first."""
    expect(page.get_by_text(" ".join(["picks:", *map(str, indices)]), exact=True)).to_be_visible()
    page.wait_for_timeout(500)  # a run too many would come now
    expect(page.get_by_text(f"runs: {len(indices) + 1}", exact=True)).to_be_visible()


def expect_explained(row: Locator, index: int) -> None:
    chosen = row.locator("[aria-current=true]")
    expect(chosen).to_have_count(1)
    expect(chosen).to_have_attribute("data-index", str(index))
    expect(row.get_by_role("button", name=re.compile("explained$"))).to_have_count(1)


def test_names_and_percentages_with_one_decimal(page: Page, demo: str) -> None:
    row = opened(page, demo)
    expect(row.locator(".name").first).to_have_text("espresso")
    expect(row.locator(".percent")).to_have_text(["95.1 %", "1.4 %", "0.7 %", "0.3 %", "0.0 %"])
    expect(item(row, 967)).to_have_attribute("title", "espresso (967) · logit 10.42")
    expect(item(row, 967)).to_have_accessible_name("espresso 95.1 % explained")
    expect(item(row, 968)).to_have_accessible_name("cup 1.4 %")


def test_bars_share_one_scale(page: Page, demo: str) -> None:
    row = opened(page, demo, "chelsea")
    tracks = [track.bounding_box() for track in row.locator(".track").all()]
    assert len({round(track["width"], 1) for track in tracks if track}) == 1
    shares = row.locator(".bar").evaluate_all(SHARES)
    assert shares == pytest.approx([0.384, 0.352, 0.181, 0.031, 0.012], abs=0.003)


def test_a_click_and_enter_pick_once(page: Page, demo: str) -> None:
    row = opened(page, demo)
    item(row, 968).dblclick()
    expect_explained(row, 968)
    expect_picks(page, 968)
    item(row, 968).click()  # is explained already
    expect_picks(page, 968)

    page.keyboard.press("Tab")
    expect(item(row, 925)).to_be_focused()
    assert item(row, 925).evaluate("b => getComputedStyle(b).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect_picks(page, 968, 925)
    expect_explained(row, 925)
    expect(item(row, 925)).to_be_focused()


def test_a_refused_pick_gives_the_mark_back(page: Page, demo: str) -> None:
    row = opened(page, demo)
    for times in (1, 2):
        item(row, 504).click()
        expect_picks(page, *[504] * times)
        expect_explained(row, 967)


def test_the_mark_and_the_bars_follow_python(page: Page, demo: str) -> None:
    row = opened(page, demo)
    page.get_by_role("button", name="Choose another picture").click()
    expect_explained(row, 364)
    expect(row.locator(".percent").first).to_have_text("38.4 %")
    expect(row.locator(".bar").first).to_have_attribute("style", "width: 38.4%;")
    page.get_by_role("button", name="Choose a class that is not there").click()
    expect(row.locator("[aria-current=true]")).to_have_count(0)


def test_nothing_moves_when_values_change(page: Page, demo: str) -> None:
    row = opened(page, demo)
    before = [button.bounding_box() for button in row.get_by_role("button").all()]
    page.get_by_role("button", name="Choose another picture").click()
    expect_explained(row, 364)
    assert [button.bounding_box() for button in row.get_by_role("button").all()] == before


@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True)
def test_reduced_motion_is_respected(page: Page, demo: str) -> None:
    bar = opened(page, demo).locator(".bar").first
    assert bar.evaluate("b => getComputedStyle(b).transitionDuration") in ("0s", "1e-05s")


@pytest.mark.parametrize(("width", "rows"), [(1440, 1), (900, 2)])
def test_one_row_and_two_at_900(page: Page, demo: str, width: int, rows: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    row = opened(page, demo, "chelsea")
    boxes = [button.bounding_box() for button in row.get_by_role("button").all()]
    assert len({round(box["y"]) for box in boxes if box}) == rows
    name = item(row, 364).locator(".name")
    assert name.evaluate("n => n.scrollWidth > n.clientWidth && n.offsetHeight < 24")
    title = "three-toed sloth, ai, Bradypus tridactylus (364) · logit 5.59"
    expect(item(row, 364)).to_have_attribute("title", title)
    assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.parametrize("page", [{"width": 900, "color_scheme": "dark"}], indirect=True)
def test_text_stays_text(page: Page, demo: str) -> None:
    row = opened(page, demo, "hostile")
    expect(item(row, 0).locator(".name")).to_have_text(HOSTILE)
    expect(row.locator("img")).to_have_count(0)
    assert page.evaluate("window.stolen") is None
    assert page.evaluate(OVERFLOW) <= 0


def test_a_broken_model_and_no_run_yet(page: Page, demo: str) -> None:
    row = opened(page, demo, "broken")
    expect(row.locator(".percent")).to_have_text("not a number")
    page.goto(f"{demo}/?case=none")
    expect(page.get_by_text("stand here after a run")).to_be_visible()
    expect(page.get_by_test_id("predictions")).to_be_hidden()
