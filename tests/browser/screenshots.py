"""The two pictures of the README: the Explain page in light and in dark, with the hook panel open.

    make screenshots

or, from the root of the repository, `python -m tests.browser.screenshots`. It starts the dashboard,
waits until all is painted, and writes `assets/readme-light.png` and `assets/readme-dark.png`.
"""

import io
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES, EXPECT_MS, ROOT, Servers
from tests.browser.explain_page import Explain

SCHEMES = ("light", "dark")
WIDTH, MARGIN = 1440, 24
MOST_BYTES = 600_000


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
            for scheme in SCHEMES:
                path = ROOT / "assets" / f"readme-{scheme}.png"
                path.write_bytes(small_png(take(browser, url, scheme)))
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
            browser.close()
        finally:
            servers.stop()


def take(browser: Browser, url: str, scheme: str) -> Image.Image:
    """The page down to the end of its hook panel, in a window high enough to show all of it."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 2000}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = Explain(context.new_page(), url).open()
    page.hooks.locator("summary").click()
    expect(page.hooks.locator("canvas")).to_be_visible()
    page.pixels()  # which waits for the frame that is being drawn
    box = page.hooks.bounding_box()
    assert box is not None
    area = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + MARGIN}
    png = page.page.screenshot(clip=area)
    context.close()
    return Image.open(io.BytesIO(png)).convert("RGB")


def small_png(image: Image.Image) -> bytes:
    """As a PNG of no more bytes than a README's reader should wait for: in coarser colours."""
    for step in (1, 2, 4, 8):
        written = io.BytesIO()
        coarser = image.point([min(round(value / step) * step, 255) for value in range(256)] * 3)
        coarser.save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= MOST_BYTES:
            return written.getvalue()
    sys.exit(f"a picture of {image.width} × {image.height} is larger than {MOST_BYTES} bytes")


if __name__ == "__main__":
    main()
