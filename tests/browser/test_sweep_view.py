"""The channel sweep in Chromium (`sweep_demo.py`): start, stop, go on, choose, take away."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

QUICK = "?sweep_layer=features.7.0.block.2"  # 320 channels
OVERFLOW = "() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@pytest.fixture(scope="module")
def demo(serve: Callable[..., str]) -> str:
    return serve("tests/browser/sweep_demo.py", env={"PYTHONPATH": "."})


def opened(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.get_by_text("ledger: none")).to_be_visible(timeout=60_000)  # torch is imported


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name)


def swept(page: Page, url: str, count: int = 320) -> None:
    opened(page, url)
    button(page, f"Sweep {count} channels").click()
    expect(page.get_by_text("Rank correlation")).to_be_visible(timeout=60_000)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)


def tiles(page: Page) -> Locator:
    return page.get_by_test_id("gallery-sweep channels").get_by_role("radio")


def test_stop_keeps_what_was_found_and_it_goes_on(page: Page, demo: str) -> None:
    opened(page, f"{demo}?slow=1")
    button(page, "Sweep 1280 channels").click()
    bar = page.get_by_test_id("stProgress")
    expect(bar).to_contain_text(re.compile(r"\d+ of 1280 channels · .* left"))
    button(page, "Stop").click()
    partial = page.get_by_text(re.compile(r"Partial: \d+ of 1280 channels"))
    expect(partial).to_be_visible()
    done = int(re.search(r"(\d+) of", partial.inner_text())[1])  # type: ignore[index]
    assert 0 < done < 1280
    expect(button(page, "Stop")).to_have_count(0)
    expect(page.get_by_text(f"over the {done} channels done")).to_be_visible()

    button(page, "Go on").click()
    expect(page.get_by_text(re.compile(r"Rank correlation [01]\.\d\d: "))).to_be_visible(
        timeout=60_000
    )
    expect(partial).to_have_count(0)
    expect(button(page, "Sweep 1280 channels")).to_be_disabled()
    expect(bar).to_have_count(0)
    expect(page.get_by_text("Channel 1213 of")).to_be_visible()
    expect(page.get_by_text("'live': 0")).to_be_visible()
    expect(page.get_by_text("runs: ['Channel sweep of features.8.1']")).to_be_visible()


def test_a_result_is_looked_at_by_keyboard_taken_away_and_stands_under_its_own_choices(
    page: Page, demo: str
) -> None:
    swept(page, demo + QUICK)
    expect(tiles(page)).to_have_count(10)
    every_channel_has_a_line(page)

    page.get_by_role("radio", name="To its mean").click()
    expect(button(page, "Sweep 320 channels")).to_be_enabled()
    expect(page.get_by_text("Not swept yet")).to_be_visible()
    expect(tiles(page)).to_have_count(0)
    expect(page.get_by_text("Rank correlation")).to_have_count(0)
    page.get_by_role("radio", name="To zero").click()
    expect(tiles(page)).to_have_count(10)
    assert "sweep_layer=features.7.0.block.2" in page.url

    name = tiles(page).nth(2).get_attribute("data-value")
    tiles(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("It matters 3rd most of 320")).to_be_visible()
    add = button(page, f"Add a hook that silences channel {name}")
    add.focus()
    page.keyboard.press("Enter")
    said = page.get_by_text(
        f"recipe: A forward hook on features.7.0.block.2 silences channel {name}"
    )
    expect(said).to_have_count(1)
    assert f"sweep_channel={name}" in page.url


def every_channel_has_a_line(page: Page) -> None:
    """The file has a line for each of the 320 channels, with the drop that the page shows."""
    with page.expect_download() as waiting:
        button(page, "CSV of all channels").click()
    download = waiting.value
    assert download.suggested_filename == (
        "coffee.efficientnet_lite0.features.7.0.block.2.sweep.zero.espresso-967.csv"
    )
    rows = list(csv.DictReader(download.path().read_text("utf-8").splitlines()))
    assert [int(row["channel"]) for row in rows] == list(range(320))
    shown = tiles(page).first
    channel = int(shown.get_attribute("data-value") or -1)
    drops = {int(row["channel"]): float(row["measured_drop"]) for row in rows}
    assert channel == max(drops, key=lambda one: abs(drops[one]))
    change = f"{-drops[channel]:+.3g}".replace("-", "−")
    expect(shown).to_contain_text(change)


def test_a_vector_has_no_maps(page: Page, demo: str) -> None:
    swept(page, f"{demo}?sweep_layer=classifier.0", 1280)
    expect(page.get_by_text("Measured against predicted")).to_be_visible()
    expect(tiles(page)).to_have_count(0)
    numbers = page.get_by_role("radio", name=re.compile(r"^channel \d+: [−+]\d"))
    expect(numbers).to_have_count(10)
    numbers.nth(2).click()
    expect(page.get_by_text("It matters 3rd most of 1280")).to_be_visible()


def test_an_address_that_is_wrong(page: Page, demo: str) -> None:
    for query, message in (
        ("?sweep_layer=features.9", "no layer «features.9»"),
        ("?sweep_to=noise", "cannot be silenced to «noise»"),
    ):
        page.goto(demo + query)
        expect(page.get_by_text(message, exact=False)).to_be_visible()
        button(page, "Take the recommended layer").click()
        expect(button(page, "Sweep 1280 channels")).to_be_visible()


@pytest.mark.parametrize("page", [{"width": 900, "color_scheme": "dark"}], indirect=True)
def test_nothing_is_wider_than_a_narrow_window(page: Page, demo: str) -> None:
    swept(page, demo + QUICK)
    expect(tiles(page)).to_have_count(10)
    assert page.evaluate(OVERFLOW) <= 0
    layer = page.get_by_test_id("picker-sweep layer-button").bounding_box()
    assert layer is not None
    assert layer["width"] > 340  # its path is read whole
