"""The pictures of the README, taken from the dashboard itself.

    make screenshots

or, from the root of the repository, `python -m tests.browser.screenshots`. It starts the dashboard,
waits until all is painted, and writes `assets/readme-NAME.png`: the Explain page in light and in
dark with its hook panel open, the Layers page, and the Hook lab after a run.
"""

import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES, EXPECT_MS, ROOT, Servers
from tests.browser.explain_page import Explain

WIDTH, MARGIN = 1440, 24
MOST_BYTES = 500_000


def main() -> None:
    names = [os.environ["CHROMIUM"]] if "CHROMIUM" in os.environ else CHROMIUM_NAMES
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        sys.exit("no Chromium on this machine: install the package chromium, or set CHROMIUM")
    expect.set_options(timeout=3 * EXPECT_MS)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        servers = Servers(Path(folder))
        try:
            url = servers("app.py")
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
            for name, (scheme, ready) in SHOTS.items():
                path = ROOT / "assets" / f"readme-{name}.png"
                path.write_bytes(small_png(take(browser, url, scheme, ready)))
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
            browser.close()
        finally:
            servers.stop()


def take(
    browser: Browser, url: str, scheme: str, ready: Callable[[Page, str], Locator]
) -> Image.Image:
    """The page down to the end of its last part, in a window high enough to show all of it."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 2600}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    box = ready(page, url).bounding_box()
    assert box is not None
    area = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + MARGIN}
    png = page.screenshot(clip=area)
    context.close()
    return Image.open(io.BytesIO(png)).convert("RGB")


def explain(page: Page, url: str) -> Locator:
    shown = Explain(page, url).open()
    shown.hooks.locator("summary").click()
    expect(shown.hooks.locator("canvas")).to_be_visible()
    shown.pixels()  # which waits for the frame that is being drawn
    return shown.hooks


def layers(page: Page, url: str) -> Locator:
    page.goto(f"{url}/layers")
    expect(page.get_by_test_id("heatmap")).to_have_attribute("data-ready", "true")
    expect(page.get_by_test_id("grid-channels").locator(".tile").first).to_be_visible()
    return at_rest(page).get_by_role("region", name="Hooks of this run")


def lab(page: Page, url: str) -> Locator:
    page.goto(f"{url}/lab")
    expect(page.locator(".st-key-lab-live")).to_be_visible()
    at_rest(page).get_by_role("button", name="Silence a channel", exact=True).click()
    expect(page.locator(".st-key-lab-live")).to_contain_text("1 hook")
    at_rest(page).get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".st-key-lab-outcome")).to_be_visible()
    expect(page.locator(".st-key-lab-outcome svg.marks").first).to_be_visible()
    return at_rest(page).get_by_role("region", name="Hooks")


def at_rest(page: Page) -> Page:
    """The page once its script has ended and what it sent has been painted."""
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    page.mouse.move(0, 0)  # no tooltip stands over what is shown
    page.wait_for_timeout(1500)
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    return page


def small_png(image: Image.Image) -> bytes:
    """As a PNG of no more bytes than a README's reader should wait for: in coarser colours."""
    for step in (1, 2, 4, 8):
        written = io.BytesIO()
        coarser = image.point([min(round(value / step) * step, 255) for value in range(256)] * 3)
        coarser.save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= MOST_BYTES:
            return written.getvalue()
    sys.exit(f"a picture of {image.width} × {image.height} is larger than {MOST_BYTES} bytes")


SHOTS = {
    "light": ("light", explain),
    "dark": ("dark", explain),
    "layers": ("light", layers),
    "lab": ("dark", lab),
}

if __name__ == "__main__":
    main()
