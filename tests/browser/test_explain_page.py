"""The Explain page in Chromium: every choice, the address that holds them, and what goes wrong."""

import re
from typing import Any

import pytest
from explain_page import SQUEEZENET_HOME, Explain, offline
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

ESPRESSO = "espresso (967)"
TIGER_CAT = "tiger cat (282)"
TABBY = "tabby (281)"
WATCH = """() => {
    [window.heights, window.places] = [new Set(), new Set()];
    const main = document.querySelector("[data-testid=stMain]");
    const look = () => {
        heights.add(main.scrollHeight);
        const heatmap = main.querySelector(".st-key-heatmap");
        places.add(Math.round(heatmap.getBoundingClientRect().top + main.scrollTop));
        requestAnimationFrame(look);
    };
    look();
}"""
DEEPEST = """
let focus = document.activeElement;
while (focus.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement;
"""


@pytest.fixture
def app(page: Page, serve: Any) -> Explain:
    return Explain(page, offline(serve))


def test_the_first_screen_says_everything_in_one_run(app: Explain, serve: Any) -> None:
    app.open().shows(ESPRESSO, {})
    assert app.reruns == 1
    expect(app.bars).to_have_count(5)
    expect(app.bars.first).to_have_attribute("aria-current", "true")
    expect(app.caption).to_contain_text("EfficientNet-Lite0 (bundled weights)")
    expect(app.part("canvas")).to_have_attribute(
        "aria-label", re.compile(r"^Heat strongest over the .+, maximum [\d.]+, for espresso")
    )
    counts = app.hooks.locator(".counts")
    expect(counts).to_have_text("2 registered · 2 removed · 0 live · 0 foreign")
    assert all(picture.get_attribute("alt") for picture in app.page.locator("img").all())
    assert app.console == []
    said = [line for line in serve.log(app.url).splitlines() if line.strip()]
    assert len(said) == 3, said
    assert "server started" in said[0]
    assert "URL: http" in said[2]


def test_every_choice_is_in_the_address_and_comes_back_on_reload(app: Explain) -> None:
    app.open()
    app.sample("chelsea").click()
    app.shows(TIGER_CAT, {"picture": "chelsea"})
    app.search("target", "tabby")
    app.shows(TABBY, {"picture": "chelsea", "target": "281"})
    app.side.get_by_role("button", name="Contrast, probability").click()
    app.search("against", "tiger cat")
    app.shows(f"{TABBY} − {TIGER_CAT}", {"picture": "chelsea", "target": "281-282"})
    app.page.get_by_test_id("stPopoverBody").get_by_text("Probability", exact=True).click()
    app.shows(f"{TABBY} − {TIGER_CAT}, probability")
    app.search("layer", "features.3.1 add")
    app.page.keyboard.press("Escape")
    app.search("layer", "features.3 sequential")
    expect(app.caption).to_contain_text("layer features.3 ")
    app.main.get_by_text("Whole picture", exact=True).click()
    expect(app.page).to_have_url(re.compile("fit=letterbox"))
    whole = {
        "picture": "chelsea",
        "target": "281-282:prob",
        "layer": "features.3",
        "fit": "letterbox",
    }
    app.shows(f"{TABBY} − {TIGER_CAT}, probability", whole)
    before = app.pixels()
    app.page.reload()
    app.shows(f"{TABBY} − {TIGER_CAT}, probability", whole)
    expect(app.picker("layer")).to_contain_text("features.3")
    expect(app.sample("chelsea")).to_have_attribute("aria-checked", "true")
    expect(app.tile("features.3")).to_have_attribute("aria-checked", "true")
    expect(app.side.get_by_role("button", name="Against tiger cat · Probability")).to_be_visible()
    assert app.pixels() == before
    assert app.console == []


def test_a_bar_and_a_tile_are_each_picked_with_one_click_in_one_run(app: Explain) -> None:
    app.open("/?picture=chelsea").shows(TIGER_CAT)
    third = app.bars.nth(2)
    third.click()
    app.shows(TABBY, {"picture": "chelsea", "target": "281"})
    expect(third).to_have_attribute("aria-current", "true")
    expect(app.picker("target")).to_contain_text("tabby")
    assert app.reruns == 2
    app.tile("features.3").click()
    expect(app.caption).to_contain_text("layer features.3 ")
    app.shows(TABBY, {"picture": "chelsea", "target": "281", "layer": "features.3"})
    expect(app.picker("layer")).to_contain_text("features.3")
    expect(app.main).to_contain_text("28 × 28 grid")
    assert app.reruns == 3


def test_nothing_jumps_while_a_pick_is_worked_out(app: Explain) -> None:
    app.open()
    app.sample("chelsea").click()
    app.shows(TIGER_CAT)
    app.page.evaluate(WATCH)
    app.tile("features.3").click()
    expect(app.caption).to_contain_text("layer features.3 ")
    app.settled()
    app.bars.nth(2).click()
    app.shows(TABBY)
    heights, places = app.page.evaluate("[[...heights], [...places]]")
    assert max(heights) - min(heights) <= 2
    assert max(places) - min(places) <= 2


def test_two_quick_picks_end_with_the_second(app: Explain) -> None:
    app.open()
    app.sample("chelsea").click()
    app.sample("rocket").click()
    app.shows("missile (657)", {"picture": "rocket"})
    expect(app.sample("rocket")).to_have_attribute("aria-checked", "true")


def test_back_and_forward_go_through_the_views(app: Explain) -> None:
    app.open()
    app.sample("chelsea").click()
    app.shows(TIGER_CAT)
    app.main.get_by_text("Whole picture", exact=True).click()
    expect(app.page).to_have_url(re.compile("fit=letterbox"))
    app.settled()
    app.bars.nth(2).click()
    expect(app.page).to_have_url(re.compile("target="))
    app.settled()

    app.page.go_back()
    expect(app.page).not_to_have_url(re.compile("target="))
    app.page.go_back()
    app.shows(TIGER_CAT, {"picture": "chelsea"})
    crop = app.main.get_by_role("radio", name="Centre crop")
    expect(crop).to_be_checked()
    app.page.go_back()
    app.shows(ESPRESSO, {})
    expect(app.sample("coffee")).to_have_attribute("aria-checked", "true")
    app.page.go_forward()
    app.shows(TIGER_CAT, {"picture": "chelsea"})


def test_weights_that_cannot_be_had_say_what_to_do_and_one_click_goes_on(app: Explain) -> None:
    app.open()
    app.search("model", "squeezenet 1.1")
    expect(app.errors).to_have_count(1)
    expect(app.errors).to_contain_text(re.compile(r"Cannot download squeezenet1_1-\w+\.pth \("))
    expect(app.errors).to_contain_text(re.compile(r"put the file into \S+/hub/checkpoints"))
    expect(app.heatmap).to_have_count(0)  # a result of the former model would be taken for its own
    app.main.get_by_role("button", name="Use it untrained").click()
    expect(app.caption).to_contain_text("SqueezeNet 1.1 (untrained)")
    app.settled()
    expect(app.notes.filter(has_text="its weights are random")).to_be_visible()
    expect(app.picker("model")).to_have_attribute("title", re.compile("untrained"))
    expect(app.picker("model")).not_to_contain_text("%")
    expect(app.page).to_have_url(re.compile(r"\?model=squeezenet1_1&weights=none$"))
    app.search("model", "lite0")
    expect(app.caption).to_contain_text("bundled weights")
    app.shows(ESPRESSO, {})


def test_another_kind_of_weights_is_picked(app: Explain) -> None:
    app.page.goto(f"{app.url}/?model=mobilenet_v2")
    expect(app.errors).to_contain_text("mobilenet_v2")
    app.search("weights", "untrained")
    expect(app.caption).to_contain_text("MobileNetV2 (untrained)")
    app.settled()
    expect(app.errors).to_have_count(0)


@pytest.mark.skipif(not SQUEEZENET_HOME.is_dir(), reason="no ../shared/torch_home")
def test_a_model_on_disk(app: Explain) -> None:
    app.open()
    app.search("model", "squeezenet 1.0")
    expect(app.caption).to_contain_text("SqueezeNet 1.0 (IMAGENET1K_V1, on disk)")
    app.shows(ESPRESSO, {"model": "squeezenet1_0"})
    expect(app.main).to_contain_text("13 × 13 grid")


def test_two_people_do_not_disturb_each_other(app: Explain, browser: Browser) -> None:
    app.open("/?picture=chelsea").shows(TIGER_CAT)
    context = browser.new_context(locale="en-US")
    other = Explain(context.new_page(), app.url)
    other.open().shows(ESPRESSO)
    other.sample("rocket").click()
    app.bars.nth(2).click()
    app.shows(TABBY, {"picture": "chelsea", "target": "281"})
    other.shows("missile (657)", {"picture": "rocket"})
    expect(app.hooks.locator(".counts")).to_contain_text("0 live · 0 foreign")
    expect(other.hooks.locator(".counts")).to_contain_text("0 live · 0 foreign")
    context.close()


def test_the_keyboard_alone_does_the_main_job(app: Explain) -> None:
    keyboard = app.open().page.keyboard

    def tab_to(script: str) -> None:
        for _ in range(60):
            keyboard.press("Tab")
            if app.page.evaluate(f"() => {{ {DEEPEST} return Boolean({script}); }}"):
                return
        raise AssertionError(f"no {script} within 60 tabs")

    tab_to("focus.dataset.value === 'coffee'")
    keyboard.press("ArrowLeft")
    app.shows(TIGER_CAT, {"picture": "chelsea"})
    tab_to("focus.dataset.testid === 'picker-model-button'")
    keyboard.type("squeezenet 1.1")
    keyboard.press("Enter")
    expect(app.errors).to_be_visible()
    tab_to("focus.matches('button') && focus.textContent.includes('Use it untrained')")
    keyboard.press("Enter")
    expect(app.caption).to_contain_text("SqueezeNet 1.1 (untrained)")
    app.settled()
    tab_to("focus.dataset.testid === 'picker-target-button'")
    keyboard.press("ArrowDown")
    keyboard.type("espresso")
    keyboard.press("Enter")
    app.shows(ESPRESSO)
    tab_to("focus.dataset.testid === 'picker-layer-button'")
    keyboard.press("ArrowDown")
    keyboard.press("End")
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    tab_to("focus.id === 'opacity'")
    keyboard.press("End")
    expect(app.part("opacity-value")).to_have_text("100 %")


@pytest.mark.parametrize(
    "page",
    [{"width": 900, "color_scheme": scheme} for scheme in ("light", "dark")],
    indirect=True,
    ids=["light", "dark"],
)
def test_nothing_is_wider_than_a_narrow_page(app: Explain, page: Page) -> None:
    app.open("/?picture=chelsea&target=281-282:logprob&layer=features.8.0")
    app.hooks.locator("summary").click()
    expect(app.hooks.locator("canvas")).to_be_visible()
    assert app.overflow() == [0, 0, 0]
    page.goto(f"{app.url}/?model=squeezenet1_1")
    expect(app.errors).to_be_visible()
    assert app.overflow() == [0, 0, 0]


def test_the_server_had_nothing_to_complain_of(app: Explain, serve: Any) -> None:
    log = serve.log(app.url)
    assert not re.search("Traceback|[Ww]arning|torch.classes|[Dd]eprecat", log), log
