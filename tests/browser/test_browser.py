"""Whether there is a browser to open pages in."""

import pytest

from tests.browser.conftest import IS_HERE


@pytest.mark.skipif(not IS_HERE, reason="no browser: pip install -r requirements-browser.txt, and Debian's chromium")
def test_a_browser_opens_a_page(chromium):
    page = chromium.new_page()
    page.set_content("<title>here</title>")
    assert page.title() == "here"
    page.close()
