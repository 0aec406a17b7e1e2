"""A page in a browser, and what is wrong with it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from attrs import define, field

#: Elements that end right of the page, though no box around them scrolls.
OVERFLOWING = """() => {
    const width = document.documentElement.clientWidth, found = [];
    const scrolls = (one) => ["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(one).overflowX);
    const held = (one) => { for (let up = one.parentElement; up && up !== document.body; up = up.parentElement)
        if (scrolls(up) && up.getBoundingClientRect().right <= width + 1) return true; return false; };
    for (const one of document.body.querySelectorAll("*")) {
        if (one.ownerSVGElement) continue;  // a picture ends where its box does
        const box = one.getBoundingClientRect();
        const seen = box.width > 1 && box.height > 1 && one.checkVisibility({visibilityProperty: true});
        if (seen && box.left < width && box.right > width + 1 && !held(one))
            found.push(`${one.tagName}.${one.getAttribute("class") || ""} ends at ${box.right.toFixed()}`);
    }
    if (document.documentElement.scrollWidth > width + 1)
        found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    return found;
}"""
#: Whether the site's own script has made the boxes that scroll stops of the Tab key.
REACHABLE = """() => [...document.querySelectorAll("pre > code")].every(
    (one) => one.scrollWidth <= one.clientWidth || one.tabIndex >= 0)"""
#: Where the focus is: its place among all elements, and what it is; null if nowhere.
FOCUSED = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const box = one.getBoundingClientRect();
    return {at: [...document.querySelectorAll("*")].indexOf(one), what: one.outerHTML.slice(0, 80),
            seen: box.width > 0 && box.height > 0};
}"""


@define
class Opened:
    """A page in the browser, and what went wrong on it."""

    page: object
    home: str
    faults: list[str] = field(factory=list)

    def go(self, address: str) -> None:
        self.page.on(
            "console", lambda message: message.type == "error" and self.faults.append(f"console: {message.text}")
        )
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("requestfailed", lambda request: self.faults.append(f"not there: {request.url}"))
        self.page.goto(address, wait_until="load")
        from playwright.sync_api import TimeoutError as TooLate

        with suppress(TooLate):  # then axe-core says which
            self.page.wait_for_function(REACHABLE, timeout=10_000)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.home, "data:", "blob:")):
            self.faults.append(f"asks {url}")

    def overflowing(self) -> list[str]:
        return self.page.evaluate(OVERFLOWING)

    def violations(self, *, leave_out: str | None = None) -> list[str]:
        """What axe-core finds against WCAG 2.1 at levels A and AA, and in the order of tabs and headings."""
        from axe_playwright_python.sync_playwright import Axe

        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        rules = {rule: {"enabled": True} for rule in ("heading-order", "skip-link", "tabindex")}
        options = {"runOnly": {"type": "tag", "values": tags}, "rules": rules, "resultTypes": ["violations"]}
        where = None if leave_out is None else {"exclude": [[leave_out]]}
        found = Axe().run(self.page, context=where, options=options).response["violations"]
        return [
            f"{one['id']}: {node['target']} {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
            for one in found
            for node in one["nodes"]
        ]

    def tab_stops(self, most: int) -> list[dict]:
        """What the Tab key comes to, one after the other."""
        stops = []
        for _ in range(most):
            self.page.keyboard.press("Tab")
            stop = self.page.evaluate(FOCUSED)
            if stop is None:
                break
            stops.append(stop)
        return stops

    def shoot(self, name: str, *, whole: bool = False) -> None:
        folder = os.environ.get("DPGM_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


def named(text: str) -> str:
    """A name for a file."""
    return re.sub(r"\W+", "-", text).strip("-")
