"""The Gradients page in Chromium: the chart, its clicks, comparisons, the address, the keyboard."""

import re
from typing import Any

import pytest
from explain_page import offline
from gradients_page import Gradients
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture
def app(page: Page, serve: Any) -> Gradients:
    return Gradients(page, offline(serve))


def test_the_chart_is_drawn_with_words_and_marks_nothing_on_the_trained_net(
    app: Gradients,
) -> None:
    app.open()
    expect(app.lines()).to_have_count(1)
    expect(app.chart.locator("[role=graphics-document]")).to_have_attribute(
        "aria-label", re.compile(r"^gradient norm .+ lowest [\d.]+ at features.2.1, highest")
    )
    expect(app.verdicts.first).to_contain_text("No layer is marked.")
    expect(app.drawing).to_contain_text("gradient norm (loss per unit)")
    expect(app.drawing).to_contain_text("features.1")
    for name in ("Gradient", "Activation"):
        histogram = app.main.locator(f".st-key-histogram-{name}")
        histogram.scroll_into_view_if_needed()
        expect(histogram.locator("svg.marks")).to_be_visible()
    expect(app.main.get_by_role("img", name="The gradient at the input in grey")).to_be_visible()
    expect(app.hooks.locator(".counts")).to_contain_text("0 live · 0 foreign")
    assert app.overflow() == [0, 0, 0]
    # Streamlit itself asks for its health under the page's own address first.
    assert [said for said in app.console if "404" not in said] == []


def test_a_click_in_the_chart_chooses_the_layer_each_time_it_is_made(app: Gradients) -> None:
    app.open()
    app.click_chart(0.5)
    expect(app.page).to_have_url(re.compile(r"at=features\.\d\.\d"))
    app.settled()
    first = app.picker("at").inner_text()
    path = re.search(r"features\.\d\.\d", first)
    assert path is not None
    app.shows_layer(path[0])
    app.search("at", "features.3.0.block.0.0")  # by the keyboard alone
    app.shows_layer("features.3.0.block.0.0")
    expect(app.page).to_have_url(re.compile(r"at=features\.3\.0\.block\.0\.0"))
    app.click_chart(0.5)  # the same place again, which Streamlit must not take for the same choice
    app.shows_layer(path[0])
    assert app.picker("at").inner_text() == first


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "width": 900}], indirect=True)
def test_two_lines_and_the_sentence_on_each_in_a_narrow_dark_window(app: Gradients) -> None:
    app.open().choose("Untrained twin")
    assert app.overflow() == [0, 0, 0]
    expect(app.lines()).to_have_count(2)
    expect(app.drawing).to_contain_text("untrained")
    expect(app.verdicts.nth(0)).to_contain_text("trained: no layer is marked")
    expect(app.verdicts.nth(1)).to_contain_text("untrained: the gradient vanishes in")
    expect(app.page).to_have_url(re.compile("compare=untrained"))


def test_an_address_brings_the_view_back(app: Gradients) -> None:
    query = (
        "?compare=picture&other=rocket&show=zeros&detail=layers&at=features.3&loss=label&label=968"
    )
    app.open(query).shows_layer("features.3")
    expect(app.main).to_contain_text("the cross-entropy against cup (968)")
    expect(app.drawing).to_contain_text("rocket")
    expect(app.drawing).to_contain_text("zeros in the gradient (%)")
    expect(app.lines()).to_have_count(2)
    app.page.reload()
    app.shows_layer("features.3")
    expect(app.drawing).to_contain_text("rocket")
    expect(app.picker("label")).to_contain_text("cup")
