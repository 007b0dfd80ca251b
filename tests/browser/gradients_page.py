"""The Gradients page as its tests see it."""

from __future__ import annotations

from explain_page import Explain
from playwright.sync_api import Locator, Page, expect


class Gradients(Explain):
    """One tab with the page."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.chart = page.locator(".st-key-gradients-chart")
        self.drawing = self.chart.locator("svg.marks")
        self.verdicts = self.main.get_by_test_id("stAlertContainer")
        self.one = self.main.get_by_test_id("stMarkdown")

    def open(self, query: str = "") -> Gradients:
        self.page.goto(f"{self.url}/gradients{query}")
        return self.settled()

    def settled(self) -> Gradients:
        expect(self.drawing).to_be_visible(timeout=60_000)  # the first loads PyTorch
        expect(self.heatmap).to_have_attribute("data-ready", "true")
        self.idle()
        expect(self.main.locator("[data-stale=true]")).to_have_count(0)
        return self

    def choose(self, segment: str) -> Gradients:
        self.main.get_by_role("radio", name=segment, exact=True).click()
        return self.settled()

    def shows_layer(self, path: str) -> Gradients:
        expect(self.picker("at")).to_contain_text(path)
        expect(self.one.filter(has_text=path).first).to_be_visible()
        return self.settled()

    def lines(self) -> Locator:
        """The paths that are drawn as lines."""
        return self.drawing.locator("g.mark-line path")

    def click_chart(self, share: float) -> None:
        """A click at a share of the chart's width, at half its height, where its tooltip shows."""
        self.drawing.scroll_into_view_if_needed()
        box = self.drawing.bounding_box()
        assert box is not None
        tooltip = self.page.locator("#vg-tooltip-element.visible")
        self.page.mouse.move(0, 0)
        expect(tooltip).to_have_count(0)
        at = box["x"] + share * box["width"], box["y"] + box["height"] / 2
        self.page.mouse.move(*at)
        expect(tooltip).to_be_visible()
        self.page.mouse.click(*at)
