"""What the browser tests share: a Streamlit server of their own and a real Chromium.

    def test_title(page, app_url):
        page.goto(app_url)

A page opens at 1440 × 900 in the light scheme. Another size or scheme is an indirect parameter:

    @pytest.mark.parametrize("page", [{"color_scheme": "dark", "width": 900}], indirect=True)
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
START_SECONDS = 60.0
# Streamlit answers from a thread that may be importing torch: Playwright's 5 s are too few.
EXPECT_MS = 20_000
ACTION_MS = 30_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder `browser` and run them after all others.

    Playwright's loop counts as running in the main thread until the session ends, and
    `asyncio.run` in a later test would refuse.
    """
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("browser")
    items.sort(key=lambda item: item.path.is_relative_to(here))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of the Chromium to drive: `CHROMIUM` where it is set, else the first one on PATH."""
    asked = os.environ.get("CHROMIUM")
    for name in [asked] if asked else CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(
        f"CHROMIUM={asked} cannot be run"
        if asked
        else "no Chromium on this machine: install the package chromium, or set CHROMIUM"
    )


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    """One Chromium for the whole session."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=EXPECT_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in a fresh context; an uncaught error on it fails the test.

    The indirect parameter is a dict: `width` and `height` (pixels), and any option of Playwright's
    `new_context`, such as `color_scheme`.
    """
    options = {"color_scheme": "light", "locale": "en-US", **getattr(request, "param", {})}
    viewport = {"width": options.pop("width", 1440), "height": options.pop("height", 900)}
    context = browser.new_context(viewport=viewport, **options)
    context.set_default_timeout(ACTION_MS)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors, "uncaught on the page: " + "; ".join(errors)


class Servers:
    """Streamlit servers of one test session: call it to start one, `log(url)` to read what it said.

    Two calls give two servers: what a server holds in memory is shared by the tests that share it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}

    def __call__(self, script: str | Path, *args: str, env: dict[str, str] | None = None) -> str:
        """Serve `script` and return its address once it is healthy.

        Parameters
        ----------
        script
            The Streamlit script; relative to the repository where it is not absolute.
        *args
            Arguments of the script, seen in its `sys.argv`.
        env
            Variables set over those of the test process.
        """
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        log = self._folder / f"server-{port}.log"
        # By flags: a script of a test may be served where no .streamlit/config.toml is read.
        flags = ["--server.address=127.0.0.1", f"--server.port={port}", "--server.headless=true"]
        flags += ["--browser.gatherUsageStats=false", "--server.fileWatcherType=none"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", str(ROOT / script), *flags, "--", *args],
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running[url] = (process, log)
        self._wait(url)
        return url

    def log(self, url: str) -> str:
        """Everything the server at `url` has printed so far."""
        return self._running[url][1].read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End every server, with the processes it started."""
        for process, _ in self._running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process, _ in self._running.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _wait(self, url: str) -> None:
        # A proxy set in the environment must not be asked for this machine's own address.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        process = self._running[url][0]
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                with opener.open(f"{url}/_stcore/health", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        why = "did not start in time" if process.poll() is None else f"ended ({process.returncode})"
        raise RuntimeError(f"the server at {url} {why}:\n{self.log(url)}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Start servers: `serve(script, *args, env=None) -> url`; `serve.log(url)` is their log."""
    servers = Servers(tmp_path_factory.mktemp("servers"))
    yield servers
    servers.stop()


@pytest.fixture(scope="session")
def app_url(serve: Servers) -> str:
    """Address of the dashboard itself, one server for the whole session."""
    return serve("app.py")
