"""The Explain page as its tests see it: what stands where, and how often the script ran."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Download, Locator, Page, WebSocket, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

SQUEEZENET_HOME = Path(__file__).resolve().parents[3] / "shared" / "torch_home"
NOWHERE = "http://127.0.0.1:9"  # a proxy that refuses: no test may depend on a network


@cache
def offline(serve: Callable[..., str]) -> str:
    """Address of a dashboard without a network; with SqueezeNet on its disk where there is one."""
    env = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy"), NOWHERE)
    if SQUEEZENET_HOME.is_dir():
        env["TORCH_HOME"] = str(SQUEEZENET_HOME)
    return serve("app.py", env=env)


class Explain:
    """One tab with the page: open it with `open`, and count the reruns that it asked for."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.reruns = 0
        self.console: list[str] = []
        page.on("websocket", lambda socket: self._listen(socket))
        page.on("console", lambda message: self._note(message))
        self.side = page.get_by_test_id("stSidebar")
        self.main = page.get_by_test_id("stMain")
        self.headline = self.main.get_by_test_id("stMarkdown").filter(has=page.locator("em"))
        self.caption = self.main.get_by_test_id("stCaptionContainer").filter(has_text="layer")
        self.bars = page.get_by_test_id("predictions").get_by_role("button")
        self.tiles = page.get_by_test_id("gallery-filmstrip").get_by_role("radio")
        self.heatmap = page.get_by_test_id("heatmap")
        self.errors = self.main.get_by_test_id("stAlertContentError")
        self.notes = self.main.get_by_test_id("stAlertContentInfo")
        self.hooks = page.get_by_role("region", name="Hooks of this run")

    def open(self, query: str = "") -> Explain:
        self.page.goto(self.url + query)
        return self.settled()

    def settled(self) -> Explain:
        """Wait until the script has ended and the heatmap is painted."""
        expect(self.tiles.last).to_be_visible()
        self.idle()
        expect(self.heatmap).to_have_attribute("data-ready", "true")
        return self

    def idle(self) -> None:
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")

    def shows(self, target: str, query: dict[str, str] | None = None) -> Explain:
        """Wait until that target is explained, under an address with just those parameters."""
        expect(self.headline).to_contain_text(f"the score of {target}.")
        self.settled()
        if query is not None:
            wanted = sorted(query.items())
            found = self.page.evaluate("[...new URLSearchParams(location.search)].sort()")
            assert [tuple(pair) for pair in found] == wanted
        return self

    def sample(self, name: str) -> Locator:
        return self.page.get_by_test_id("gallery-samples").locator(f"[data-value={name}]")

    def tile(self, path: str) -> Locator:
        return self.page.get_by_test_id("gallery-filmstrip").locator(f"[data-value='{path}']")

    def picker(self, key: str) -> Locator:
        return self.page.get_by_test_id(f"picker-{key}-button")

    def search(self, key: str, text: str) -> None:
        """Open a picker, type, and take the best match: with the keyboard alone."""
        self.picker(key).focus()
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_test_id(f"picker-{key}-search")).to_be_focused()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def upload(self, path: Path) -> None:
        self.side.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(path)

    def part(self, name: str) -> Locator:
        return self.page.get_by_test_id(f"heatmap-{name}")

    def pixels(self) -> str:
        """What stands on the canvas after the frame that is being drawn, as a data URL."""
        drawn: str = self.part("canvas").evaluate(
            """async (canvas) => {
                const frame = () => new Promise(requestAnimationFrame);
                await frame().then(frame);
                return canvas.toDataURL();
            }"""
        )
        return drawn

    def download(self, name: str) -> Download:
        with self.page.expect_download() as waiting:
            self.main.get_by_role("button", name=name, exact=True).click()
        return waiting.value

    def overflow(self) -> list[int]:
        """By how many pixels the page and its two panes are wider than what is shown of them."""
        wide: list[int] = self.page.evaluate(
            """[document.documentElement, ...document.querySelectorAll(
                "[data-testid=stMain], [data-testid=stSidebarContent]")]
                .map((pane) => pane.scrollWidth - pane.clientWidth)"""
        )
        return wide

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self._count(frame))

    def _count(self, frame: Any) -> None:
        message = BackMsg()
        message.ParseFromString(frame)
        self.reruns += message.WhichOneof("type") == "rerun_script"

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console.append(message.text)
