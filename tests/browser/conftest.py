"""A headless Chromium, the site served on this machine, and reports: what a person opens.

Needs playwright and axe-playwright-python (`requirements-browser.txt`) and a Chromium: of the system, or the program
that DPGM_CHROMIUM names. Screenshots go to the folder DPGM_SCREENSHOTS, if it is set. Nothing here reaches a network.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser.pages import Opened

ROOT = Path(__file__).resolve().parents[2]
#: Without a sandbox, as in a container; without what a browser asks the world by itself.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


#: The browser's program, None where there is none.
PROGRAM = os.environ.get("DPGM_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
IS_HERE = PROGRAM is not None and all(map(find_spec, ("playwright", "axe_playwright_python")))
# Without a browser one test says so, in one line.
collect_ignore = [] if IS_HERE else ["test_report.py", "test_site.py"]


@pytest.fixture(scope="session")
def chromium():
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """(address, home, width, dark) -> an `Opened` page; closed after the test."""
    contexts = []

    def opener(address: str, home: str, width: int, *, dark: bool = False) -> Opened:
        size = {"width": width, "height": 844 if width < 500 else 800}
        context = chromium.new_context(viewport=size, color_scheme="dark" if dark else "light", has_touch=width < 500)
        contexts.append(context)
        one = Opened(context.new_page(), home)
        one.go(address)
        return one

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory, chromium) -> Iterator[str]:
    """The address of the site: of the folder DPGM_SITE, or built for these tests."""
    folder = os.environ.get("DPGM_SITE")
    if not folder:
        pytest.importorskip("mkdocs")
        folder = str(tmp_path_factory.mktemp("site"))
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder]
        subprocess.run(command, cwd=ROOT, check=True)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()
