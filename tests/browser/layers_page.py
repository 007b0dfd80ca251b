"""The Layers page as its tests see it: the tree, the grid of channels, and the sections."""

from __future__ import annotations

from typing import Any

from explain_page import offline
from playwright.sync_api import Download, Locator, Page, WebSocket, expect
from streamlit.proto.BackMsg_pb2 import BackMsg


class Layers:
    """One tab with the page: open it with `open`, and count the reruns that it asked for."""

    def __init__(self, page: Page, serve: Any) -> None:
        self.page, self.url = page, offline(serve)
        self.reruns = 0
        page.on("websocket", lambda socket: self._listen(socket))
        self.main = page.get_by_test_id("stMain")
        self.tree = page.get_by_test_id("tree-layers tree")
        self.lines = self.tree.get_by_role("treeitem")
        self.about = self.tree.locator(".about")
        self.grid = page.get_by_test_id("grid-channels")
        self.tiles = self.grid.locator(".tile")
        self.range = self.grid.locator(".range")
        self.headline = self.main.get_by_role("heading", level=3)
        self.errors = self.main.get_by_test_id("stAlertContentError")
        self.hooks = page.get_by_role("region", name="Hooks of this run")

    def open(self, query: str = "") -> Layers:
        self.page.goto(f"{self.url}/layers{query}")
        expect(self.lines.first).to_be_visible(timeout=60_000)  # the first loads PyTorch
        return self.idle()

    def idle(self) -> Layers:
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        return self

    def line(self, path: str) -> Locator:
        return self.tree.locator(f"[role=treeitem][data-path='{path}']")

    def tile(self, channel: int) -> Locator:
        return self.grid.locator(f"[role=option][data-channel='{channel}']")

    def shown(self) -> list[int]:
        """The channels on the page of the grid that is shown."""
        return [int(str(tile.get_attribute("data-channel"))) for tile in self.tiles.all()]

    def section(self, name: str) -> Layers:
        self.main.get_by_role("radio", name=name, exact=True).click(force=True)
        return self

    def at(self, **query: str) -> Layers:
        """Wait until the address has just these parameters, and the script has ended."""
        self.page.wait_for_function(
            """wanted => JSON.stringify([...new URLSearchParams(location.search)].sort())
                === JSON.stringify(wanted)""",
            arg=sorted(map(list, query.items())),
        )
        self.idle()
        return self

    def fits(self) -> None:
        """Nothing is wider than the window and its main pane."""
        wide = self.page.evaluate(
            """[document.documentElement, document.querySelector("[data-testid=stMain]")]
                .map((pane) => pane.scrollWidth - pane.clientWidth)"""
        )
        assert max(wide) <= 0

    def download(self, name: str) -> Download:
        with self.page.expect_download() as waiting:
            self.main.get_by_role("button", name=name, exact=True).click()
        return waiting.value

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self._count(frame))

    def _count(self, frame: Any) -> None:
        message = BackMsg()
        message.ParseFromString(frame)
        self.reruns += message.WhichOneof("type") == "rerun_script"
