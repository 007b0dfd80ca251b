"""The Hook lab page as its tests see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from explain_page import offline
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

START_MS = 60_000  # the first page of a server imports PyTorch and builds the model
ACTIVE = """() => {
    let focus = document.activeElement;
    while (focus.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement;
    return [focus.getAttribute("aria-label"), focus.dataset.testid, focus.textContent];
}"""


@cache
def dashboard(serve: Callable[..., str], browser: Browser) -> str:
    """Address of a dashboard that has shown its first page: Streamlit knows its pages only then."""
    url = offline(serve)
    page = browser.new_page()
    page.goto(url)
    expect(page.get_by_test_id("heatmap")).to_be_visible(timeout=START_MS)
    page.close()
    return url


class LabPage:
    """One tab with the Hook lab: open it with `open`."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.console: list[str] = []
        page.on("console", lambda message: self._note(message))
        self.main = page.get_by_test_id("stMain")
        self.drawing = page.get_by_test_id("network-lab")
        self.steps = self.main.locator("[class*='st-key-lab-row-']")
        self.live = self.main.locator(".st-key-lab-live")
        self.outcome = self.main.locator(".st-key-lab-outcome")
        self.stale = self.main.locator(".st-key-lab-stale")
        self.answer = self.main.locator(".lab-answer")
        self.alerts = self.main.get_by_test_id("stAlertContentInfo")
        self.counts = page.get_by_role("region", name="Hooks").locator(".counts")

    def open(self, path: str = "/lab") -> LabPage:
        self.page.goto(self.url + path)
        return self.settled()

    def settled(self) -> LabPage:
        expect(self.live).to_be_visible(timeout=START_MS)
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        return self

    def button(self, name: str) -> Locator:
        return self.main.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> LabPage:
        self.settled().button(name).click()
        return self.settled()

    def add(self) -> LabPage:
        """Add a hook and wait for its fields."""
        count = self.steps.count()
        self.press("Add a hook")
        expect(self.steps).to_have_count(count + 1)
        return self.settled()

    def counts_live(self, count: int) -> LabPage:
        """Wait until the page, its drawing and the panel agree on how many hooks are live."""
        noun = "hook" if count == 1 else "hooks"
        expect(self.live).to_contain_text(f"Live now: {count} {noun}")
        expect(self.live.get_by_role("button", name="Remove hook")).to_have_count(count)
        expect(self.counts).to_contain_text(f"{count} live")
        return self.settled()

    def visit(self, title: str) -> None:
        """Go to another page by the links of the sidebar."""
        self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()

    def choose(self, label: str, option: str) -> LabPage:
        """Choose in a select box that is open in the editor."""
        self.main.get_by_role("combobox", name=label).last.click()
        self.page.get_by_role("option", name=option, exact=True).click()
        return self.settled()

    def layer(self, text: str) -> LabPage:
        """Choose the layer of the open step: the best match of what is typed."""
        self.main.get_by_test_id(re.compile("^picker-lab layer .*-button$")).click()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        return self.settled()

    def tab_to(self, name: str, at_most: int = 150) -> None:
        """Press Tab until the element of that label, test id or text has the focus."""
        for _ in range(at_most):
            self.page.keyboard.press("Tab")
            words = [word or "" for word in self.page.evaluate(ACTIVE)]
            if any(re.search(name, word) for word in words):
                return
        raise AssertionError(f"Tab never led to {name}")

    def overflow(self) -> list[int]:
        """By how many pixels the page and its main pane are wider than what is shown of them."""
        wide: list[int] = self.page.evaluate(
            """[document.documentElement, document.querySelector("[data-testid=stMain]")]
                .map((pane) => pane.scrollWidth - pane.clientWidth)"""
        )
        return wide

    def _note(self, message: ConsoleMessage) -> None:
        # Below a page's own path Streamlit first looks for its server there.
        if message.type in ("error", "warning") and "/lab/_stcore" not in message.location["url"]:
            self.console.append(message.text)


def log_says(serve: Any, url: str, text: str, page: Page) -> None:
    """Wait until the server's log has a text."""
    for _ in range(100):
        if text in serve.log(url):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"the log never said «{text}»:\n{serve.log(url)}")
