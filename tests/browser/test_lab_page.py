"""The Hook lab in Chromium: hooks that are composed, run, kept, and taken off again."""

import json
import re
from typing import Any

import pytest
from lab_page import LabPage, dashboard, log_says
from PIL import Image
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

SCRIPT = "tests/browser/lab_probe.py"


@pytest.fixture
def lab(page: Page, browser: Browser, serve: Any) -> LabPage:
    return LabPage(page, dashboard(serve, browser))


def test_a_first_hook_is_one_click_and_shows_before_and_after(lab: LabPage) -> None:
    lab.open()
    expect(lab.main).to_contain_text("No hook is live.")
    lab.press("Silence a channel").counts_live(1)
    expect(lab.steps).to_contain_text("A forward hook on features.8.1 silences channel")
    expect(lab.outcome).to_contain_text("The answer is still espresso (967)")
    rows = lab.answer.locator("tbody tr")
    expect(rows.first).to_contain_text("espresso (967)")
    expect(rows.first.locator(".less").first).to_have_text(re.compile(r"^−\d+\.\d pp$"))
    pictures = lab.outcome.get_by_role("img", name=re.compile("^(Before|After) the hooks. Heat"))
    expect(pictures).to_have_count(2)
    expect(lab.outcome).to_contain_text("Values downstream")
    expect(lab.drawing.locator(".mark")).to_have_count(1)
    expect(lab.drawing.locator(".mark")).to_have_attribute(
        "aria-label", re.compile("^forward hook: 1. A forward hook on features.8.1 silences")
    )
    assert lab.console == []


def test_three_hooks_stay_live_while_another_page_is_shown_and_are_removed_one_by_one(
    lab: LabPage,
) -> None:
    lab.open().add().layer("features.5.1 _lite")
    lab.add().layer("features.3.1 _lite")
    lab.main.get_by_text("forward pre-hook", exact=True).click()
    lab.add()
    lab.main.get_by_text("full backward hook", exact=True).click()
    expect(lab.steps.last).to_contain_text("A full backward hook on features.8.1")
    expect(lab.drawing.locator("[data-kind=full_backward]")).to_have_count(1)
    lab.counts_live(3)
    handles = lab.live.get_by_text(re.compile(r"handle \d+")).all_text_contents()
    lab.visit("Explain")
    expect(lab.page.get_by_test_id("heatmap")).to_be_visible()
    elsewhere = lab.page.get_by_test_id("stSidebar").get_by_text("hooks of yours are live")
    expect(elsewhere).to_contain_text("3 hooks of yours are live in the Hook lab")
    lab.visit("Hook lab")
    lab.settled().counts_live(3)
    expect(elsewhere).to_have_count(0)
    assert lab.live.get_by_text(re.compile(r"handle \d+")).all_text_contents() == handles
    for left in (2, 1, 0):
        lab.live.get_by_role("button", name=re.compile("^Remove hook")).first.click()
        lab.counts_live(left)
    expect(lab.steps).to_have_count(3)
    expect(lab.drawing.locator(".mark")).to_have_count(0)
    for toggle in lab.steps.get_by_role("switch").all():
        expect(toggle).not_to_be_checked()


def test_nothing_is_left_when_the_browser_goes_away(browser: Browser, serve: Any) -> None:
    url = serve(SCRIPT)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    lab = LabPage(page, url)
    lab.open("").press("Silence a channel").counts_live(1).add().counts_live(2)
    assert "lab closed" not in serve.log(url)
    context.close()
    other = browser.new_context()
    log_says(serve, url, "lab closed: 2 hooks before, 0 left", other.new_page())
    other.close()


def test_a_click_before_the_address_has_arrived_undoes_nothing_and_the_panel_takes_a_hook_off(
    lab: LabPage,
) -> None:
    lab.open()
    lab.button("Add noise to the input").click()
    lab.button("Add a hook").click()
    lab.counts_live(2)
    expect(lab.steps.first).to_contain_text("adds noise to its input")
    panel = lab.page.get_by_role("region", name="Hooks")
    panel.locator("summary").click()
    panel.get_by_role("button", name=re.compile("^Remove")).first.click()
    lab.counts_live(1)
    expect(lab.steps.first.get_by_role("switch")).not_to_be_checked()


def test_by_keyboard_alone_a_hook_is_added_changed_run_and_removed(lab: LabPage) -> None:
    lab.open()
    keys = lab.page.keyboard
    lab.tab_to("Add a hook$")
    keys.press("Enter")
    lab.counts_live(1)
    lab.tab_to("^picker-lab layer .*-button$")
    keys.press("Enter")
    keys.type("features.7.0 _lite")
    keys.press("Enter")
    expect(lab.steps).to_contain_text("A forward hook on features.7.0 ")
    lab.settled().tab_to("^Action$")
    keys.press("ArrowDown")
    keys.type("Zero")
    keys.press("Enter")
    expect(lab.steps).to_contain_text("sets its output to zero")
    lab.settled().tab_to("Run$")
    keys.press("Enter")
    expect(lab.outcome).to_contain_text("The answer")
    lab.settled().tab_to("^Remove hook 1$")
    keys.press("Enter")
    lab.counts_live(0)
    expect(lab.stale).to_be_visible()
    expect(lab.main).to_contain_text("This result is of before: the live hooks have changed.")


def test_the_recipe_survives_a_reload_and_the_back_button_undoes(lab: LabPage) -> None:
    lab.open().add().layer("features.2.1 _lite")
    lab.add().counts_live(2)
    lab.page.reload()
    lab.settled().counts_live(2)
    expect(lab.steps.first).to_contain_text("features.2.1")
    lab.press("Delete step 2").counts_live(1)
    lab.page.go_back()
    lab.counts_live(2)


def test_recipe_and_script_are_files_and_a_recipe_comes_back(lab: LabPage, tmp_path: Any) -> None:
    lab.open().add()
    lab.button("Save or load").click()
    with lab.page.expect_download() as waiting:
        lab.page.get_by_role("button", name="Save the recipe").click()
    file = tmp_path / "recipe.json"
    waiting.value.save_as(file)
    saved = json.loads(file.read_text("utf-8"))
    assert saved["steps"][0]["action"] == "channels"
    saved["steps"][0]["values"]["which"] = "0-9"
    file.write_text(json.dumps(saved), "utf-8")
    field = lab.page.get_by_test_id("stPopoverBody").get_by_test_id("stFileUploaderDropzoneInput")
    field.set_input_files(file)
    expect(lab.alerts).to_contain_text("Loaded recipe.json: 1 step.")
    expect(lab.steps).to_contain_text("silences channels 0-9 of its output")
    lab.page.keyboard.press("Escape")
    lab.main.get_by_role("tab", name="Code").click()
    with lab.page.expect_download() as waiting:
        lab.button("Download the script").click()
    assert "register_forward_hook" in waiting.value.path().read_text("utf-8")


def test_the_second_picture_of_a_patch_may_be_ones_own(lab: LabPage, tmp_path: Any) -> None:
    lab.open().add().choose("Action", "Patch from another picture").counts_live(0)
    expect(lab.main).to_contain_text("has no second picture: choose one. The hook is not live.")
    lab.press("Upload another")
    field = lab.page.get_by_test_id("stPopoverBody").get_by_test_id("stFileUploaderDropzoneInput")
    bad, own = tmp_path / "notes.png", tmp_path / "my own.png"
    bad.write_bytes(b"no picture")
    Image.new("RGBA", (60, 40), (200, 30, 10, 128)).save(own)
    field.set_input_files(bad)
    expect(lab.page.get_by_test_id("stPopoverBody")).to_contain_text("notes.png is not a picture")
    field.set_input_files(own)
    expect(lab.steps).to_contain_text("what stands there on your picture my own.png.")
    expect(lab.main.get_by_role("img", name="Second picture: my own.png")).to_be_visible()
    expect(lab.page.get_by_test_id("stPopoverBody")).to_have_count(0)
    lab.counts_live(1).press("Run")
    expect(lab.outcome).to_contain_text("The answer changes from espresso (967)")
    expect(lab.outcome).to_contain_text("it is 0 now: nothing arrives there")
    assert lab.console == []


@pytest.mark.parametrize(
    "page", [{"width": 1440}, {"width": 900, "color_scheme": "dark"}], indirect=True
)
def test_nothing_is_wider_than_the_page(lab: LabPage) -> None:
    lab.open().press("Clamp gradients").press("Edit step 1")
    lab.main.get_by_text("After ÷ before", exact=True).click()
    lab.settled()
    expect(lab.outcome).to_contain_text("The answer is the same")
    assert lab.overflow() == [0, 0]
    assert lab.console == []
