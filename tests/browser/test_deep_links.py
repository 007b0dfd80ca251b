"""A fresh server whose first visitor comes by a link to a page other than the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from conftest import Servers
    from playwright.sync_api import Page


@pytest.mark.parametrize(
    ("address", "heading"),
    [("/gradients?target=504", "coffee mug (504)"), ("/lessons?lesson=3", "handle")],
)
def test_the_first_address_of_a_server_may_be_any_page(
    page: Page, serve: Servers, address: str, heading: str
) -> None:
    url = serve("app.py")
    page.goto(url + address)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(heading).first).to_be_visible(timeout=90_000)
    expect(page.get_by_role("link", name="Hook lab")).to_be_visible()
    expect(page.get_by_test_id("stSidebarLogo")).to_be_visible()
    colour = page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--hook-forward')"
    )
    assert colour.strip() == "#3062b8"
    assert page.evaluate("location.pathname + location.search") == address
