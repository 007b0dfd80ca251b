"""The Lessons page as its tests see it."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

FIRST_MS = 90_000  # of a server that has PyTorch to import


class Lessons:
    """One tab with the page: open it with `open`."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.console: list[str] = []
        page.on("console", lambda message: self._note(message))
        self.main = page.get_by_test_id("stMain")
        self.title = self.main.get_by_role("heading", level=2)
        self.list = page.get_by_test_id("lesson-list")
        self.select = page.get_by_test_id("lesson-select")
        self.lesson = page.get_by_test_id("lesson")
        self.printed = page.get_by_test_id("lesson-printed")
        self.recorded = page.get_by_test_id("lesson-hooks").get_by_role("listitem")
        self.left = page.get_by_test_id("lesson-left")
        self.drawing = page.get_by_test_id("lesson-drawing")
        self.marked = self.lesson.locator(".hooked")
        self.hooks = page.get_by_role("region", name="Hooks of this run")

    def open(self, query: str = "") -> Lessons:
        self.page.goto(f"{self.url}/lessons{query}")
        return self.settled()

    def settled(self) -> Lessons:
        """Wait until the script has ended and the lesson stands."""
        expect(self.lesson).to_be_visible(timeout=FIRST_MS)
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        return self

    def shows(self, number: int) -> Lessons:
        """Wait until that lesson is shown, with its address."""
        expect(self.title).to_contain_text(f"{number} ·")
        self.settled()
        assert (f"lesson={number}" in self.page.url) == (number > 1)
        return self

    def row(self, number: int) -> Locator:
        return self.list.locator(f"button[data-number='{number}']")

    def answer(self, text: str) -> None:
        self.main.get_by_role("textbox", name="Your answer").fill(text)
        self.page.keyboard.press("Enter")

    def overflow(self) -> int:
        """By how many pixels the page is wider than what is shown of it."""
        return int(self.main.evaluate("(pane) => pane.scrollWidth - pane.clientWidth"))

    def _note(self, message: ConsoleMessage) -> None:
        # Streamlit looks for its own files beside a page's address first.
        if message.type in ("error", "warning") and "404" not in message.text:
            self.console.append(message.text)
