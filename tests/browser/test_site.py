"""Three pages of the site and a fourth with code, as a desk and as a phone show them."""

import pytest

from tests.browser.pages import named

PAGES = ["", "tutorial/", "my-csv/", "cli/", "reference/privacy/"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_asks_nobody_and_can_be_read(opened, site, page, width, dark):
    one = opened(site + page, site, width, dark=dark)
    one.shoot(f"site-{named(page) or 'front'}-{width}-{'dark' if dark else 'light'}")
    assert one.page.title()
    assert one.overflowing() == []
    assert one.violations() == []
    assert one.faults == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_tab_key_goes_through_the_front_page_in_order(opened, site, width):
    one = opened(site, site, width)
    stops = one.tab_stops(12)
    assert len(stops) == 12 and len({stop["at"] for stop in stops}) == 12
    assert stops[0]["at"] == min(stop["at"] for stop in stops)  # the link that skips to the text comes first


#: Marked words that are broken over two lines, and messages of which a part is hidden at the right.
BROKEN = """() => [...document.querySelectorAll(".whole")].filter((one) => one.getClientRects().length > 1)
    .map((one) => one.textContent)"""
CUT = """() => [...document.querySelectorAll(".message")].filter((one) =>
    one.getBoundingClientRect().right > one.closest("pre").getBoundingClientRect().right)
    .map((one) => one.textContent)"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", ["", "my-csv/", "cli/", "numeric/"])
def test_options_are_not_broken_and_messages_not_cut(opened, site, page, width):
    one = opened(site + page, site, width)
    assert one.page.locator(".whole").count() > 0
    assert (one.page.locator(".message").count() > 0) == (page in ("my-csv/", "numeric/"))
    assert one.page.evaluate(BROKEN) == [] and one.page.evaluate(CUT) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_first_screen_is_for_data_owners(opened, site, width):
    one = opened(site, site, width)
    seen = "(one) => one.getBoundingClientRect().bottom <= innerHeight"
    for text in ("dpgm init", "dpgm fit"):
        assert one.page.locator("code", has_text=text).first.evaluate(seen)
    assert one.page.get_by_role("link", name="Your own table").evaluate(seen)
    assert not one.page.get_by_role("heading", name="For others").evaluate(seen)
