"""The lifecycle component as its tests see it: the timeline, the player, the lists."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

HEAD, LANE = 44, 20  # px, as drawn
COLOURS = {"forward": "48,98,184", "full backward": "194,36,58"}
DRAWN = """(canvas, [left, top, width, height]) => {
  const scale = canvas.width / canvas.clientWidth;
  const box = [left, top, width, height].map((v) => Math.round(v * scale));
  const { data } = canvas.getContext("2d").getImageData(...box);
  const found = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const colour = [data[i], data[i + 1], data[i + 2]].join();
    found.set(colour, (found.get(colour) ?? 0) + 1);
  }
  return Object.fromEntries(found);
}"""
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Lifecycle:
    """One tab with the component of `lifecycle_demo.py`, or with the page itself."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.get_by_role("region", name="Lifecycle of all hooks")
        self.lanes = self.root.locator(".lanes")
        self.canvas = self.root.locator(".space canvas")
        self.track = self.root.locator(".track")
        self.detail = self.root.locator(".detail")
        self.search = self.root.get_by_role("searchbox")
        self.player = self.root.get_by_role("region", name="Step through a run")
        self.slider = self.player.get_by_role("slider")
        self.event = self.player.locator(".event")
        self.place = self.player.locator(".place")
        self.run = self.player.get_by_role("combobox", name="Run")
        self.log = self.root.get_by_role("table", name="Events of the run")
        self.records = self.root.get_by_role("table", name="Hooks of all runs")
        self.shown = self.root.locator(".shown")
        self.alive = self.root.locator(".alive")

    def open(self, url: str) -> Lifecycle:
        self.page.goto(url)
        self.root.wait_for()
        return self

    def tab(self, name: str) -> None:
        self.root.get_by_role("tab", name=name).click()

    def chip(self, group: str, value: str) -> Locator:
        return self.root.locator(f"[data-chips={group}] [data-value='{value}']")

    def width(self) -> int:
        width: int = self.canvas.evaluate("canvas => canvas.clientWidth")
        return width

    def left(self) -> int:
        """Where the labels end and time begins."""
        return max(130, min(250, round(self.width() * 0.24)))

    def lane_count(self) -> int:
        height: float = self.root.locator(".space").evaluate("space => space.clientHeight")
        return round((height - HEAD - 6) / LANE)

    def drawn(self, canvas: Locator, box: list[float]) -> dict[str, int]:
        """How many pixels of each colour a part of a canvas has."""
        self.page.evaluate(FRAME)
        found: dict[str, int] = canvas.evaluate(DRAWN, box)
        return found

    def pixels(self, canvas: Locator) -> Any:
        self.page.evaluate(FRAME)
        return canvas.evaluate("canvas => canvas.toDataURL()")

    def ran(self, times: int) -> None:
        """The script of the demo ran that often."""
        expect(self.page.get_by_text(f"script runs: {times};")).to_be_visible()
