"""The Lessons page in Chromium: code, output, drawing and ledger of a run, and its question."""

import re
from pathlib import Path
from typing import Any

import pytest
from fresh_process import printed_by
from lessons_page import Lessons
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

NARROW = {"width": 900}
DARK = {"color_scheme": "dark"}


@pytest.fixture
def app(page: Page, app_url: str) -> Lessons:
    return Lessons(page, app_url)


def test_the_first_lesson_runs_on_opening(app: Lessons) -> None:
    app.open().shows(1)
    expect(app.printed).to_have_text(
        "gradient passing h: tensor([ 6., 12.])\nx.grad: tensor([18., 36.])"
    )
    expect(app.marked).to_have_count(1)
    expect(app.marked).to_contain_text("h.register_hook")
    expect(app.recorded).to_have_text(["tensor hook on h fired once, removed"])
    expect(app.left).to_be_hidden()
    picture = app.drawing.get_by_role("img")
    expect(picture).to_have_attribute(
        "aria-label", re.compile(r"h \(\[3, 6\], gradient \[6, 12\]\)")
    )
    expect(app.drawing.locator(".gradient")).to_have_text(["[18, 36]", "[6, 12]", "1"])
    expect(app.hooks.locator(".counts")).to_have_text(
        "1 registered · 1 removed · 0 live · 0 foreign"
    )
    assert app.console == []


def test_the_list_leads_to_a_lesson_and_reload_keeps_it(app: Lessons) -> None:
    app.open()
    expect(app.row(1)).to_have_attribute("aria-current", "true")
    app.row(10).click()
    app.shows(10)
    expect(app.row(10)).to_have_attribute("aria-current", "true")
    expect(app.recorded).to_have_count(4)
    expect(app.left).to_contain_text("3 hooks were never removed by this code")
    app.page.reload()
    app.shows(10)


def test_a_parameter_runs_the_lesson_again_and_stands_in_the_address(app: Lessons) -> None:
    app.open("?lesson=5")
    expect(app.printed).to_contain_text("[0.2500, 0.2500]")
    app.main.get_by_text("Write in place").click()
    expect(app.printed).not_to_contain_text("0.2500")
    expect(app.recorded).to_contain_text(["changed a value once"])
    app.settled()
    assert "in_place=True" in app.page.url
    app.row(6).click()
    app.shows(6)
    assert "in_place" not in app.page.url


def test_answers_are_checked_and_a_right_one_is_marked(app: Lessons) -> None:
    app.open()
    app.answer("18, 36")
    expect(app.main.get_by_text("Not yet.")).to_be_visible()
    app.answer("50, 100")
    expect(app.main.get_by_text("Right. h = [5, 10]")).to_be_visible()
    expect(app.row(1).locator(".done")).to_have_text("✓")
    expect(app.list).to_contain_text("1 of 18 exercises done")
    app.row(2).click()
    app.shows(2)
    expect(app.row(1).locator(".done")).to_have_text("✓")


def test_a_lesson_by_the_keyboard_alone(app: Lessons) -> None:
    app.open("?lesson=8")
    app.row(9).focus()
    app.page.keyboard.press("Enter")
    app.shows(9)
    toggle = app.main.get_by_role("switch").or_(app.main.get_by_role("checkbox")).first
    toggle.focus()
    app.page.keyboard.press("Space")
    expect(app.printed).to_contain_text("2 forward hook B")
    app.settled()
    app.main.get_by_role("radio", name="A, then B").focus()
    app.page.keyboard.press("ArrowDown")
    app.main.get_by_role("button", name="Check").focus()
    app.page.keyboard.press("Enter")
    expect(app.main.get_by_text("Right. prepend puts B")).to_be_visible()


def test_the_depth_chart_follows_its_controls(app: Lessons) -> None:
    app.open("?lesson=12")
    expect(app.printed).to_contain_text("norm at the first layer: 3.08e-12")
    app.main.get_by_role("radio", name="relu").click()
    expect(app.printed).not_to_contain_text("3.08e-12")
    expect(app.main.get_by_test_id("stVegaLiteChart")).to_be_visible()
    assert "activation=relu" in app.page.url


@pytest.mark.parametrize("page", [NARROW, NARROW | DARK], indirect=True)
def test_a_narrow_window_has_one_control_for_the_lessons(app: Lessons) -> None:
    app.open("?lesson=18")
    expect(app.row(1)).to_be_hidden()
    expect(app.select).to_have_value("18")
    expect(app.printed).to_contain_text("is a view and is being modified inplace")
    assert app.overflow() == 0
    app.select.select_option("17")
    app.shows(17)
    assert app.overflow() == 0


def test_the_view_survives_a_visit(app: Lessons, serve: Any) -> None:
    app.open("?picture=chelsea&lesson=3")
    app.shows(3)
    app.page.get_by_role("link", name="Explain", exact=True).click()
    expect(app.page).to_have_url(re.compile("picture=chelsea"))
    app.page.get_by_role("link", name="Lessons", exact=True).click()
    app.shows(3)


def test_copy_gives_a_program_with_what_was_chosen(app: Lessons, tmp_path: Path) -> None:
    app.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    app.open("?lesson=5&in_place=True")

    app.lesson.get_by_role("button", name="Copy").click()
    expect(app.lesson.get_by_role("button", name="Copied")).to_be_visible()

    copied = app.page.evaluate("navigator.clipboard.readText()")
    expect(app.printed).to_have_text(printed_by(copied, tmp_path).rstrip("\n"))
    assert copied.endswith("\ndouble(in_place=True)\n")
