"""Draws the pictures of the site: `python docs/pictures/make.py`; with a report.html, that of the README.

Drawn ones are the same on every machine, and a test compares. Colours are the page's own, so they fit light and dark.
The picture of a report needs playwright and a Chromium (requirements-browser.txt).
"""

import math
import shutil
import sys
from pathlib import Path

from dpgm_core._util.html import Html, tag

HERE = Path(__file__).parent
TABLES = 5  # as in the health example: its noise has the scale 5 / epsilon
SHARES = (0.31, 0.19, 0.14, 0.16, 0.13, 0.07)  # made up, of the size of its answers
LINE, BAR, LOST = "var(--dpgm-line, currentColor)", "var(--dpgm-bar, #00796b)", "var(--dpgm-lost, #b26a00)"


def half_width(epsilon: float, tables: int = TABLES) -> float:
    """What the noise of a cell stays below nine times out of ten, records: P(|X| > t) = exp(-t epsilon / tables)."""
    return math.log(10) * tables / epsilon


def picture(width: int, height: int, title: str, description: str, *parts: object) -> Html:
    """One figure that is read aloud as its description, and scales with the page."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        style=f"width:{width / 12:.0f}em;max-width:100%;font:12px sans-serif",
        fill="currentColor",
    )


def line(x1: float, y1: float, x2: float, y2: float, **more: object) -> Html:
    """A stroke, to a tenth of a unit."""
    ends = {key: f"{value:.1f}" for key, value in {"x1": x1, "y1": y1, "x2": x2, "y2": y2}.items()}
    return tag("line", **ends, **{"stroke": LINE, "stroke_width": 1, **more})


def words(x: float, y: float, said: str, **more: object) -> Html:
    """A text whose start, middle or end is at x."""
    return tag("text", said, x=f"{x:.1f}", y=f"{y:.1f}", **more)


def panel(left: float, top: float, records: int, epsilon: float) -> list[Html]:
    """Counts of one table as bars, and what their noise may do as whiskers; amber where it may be all of the count."""
    high, wide, noise = 100.0, 130.0, half_width(epsilon)
    scale = 70 / (max(SHARES) * records)
    drawn = [words(left + wide / 2, top + 12, f"ε = {epsilon:g}", text_anchor="middle")]
    for place, share in enumerate(SHARES):
        count = share * records
        x, y = left + place * wide / 6 + 4, top + high - scale * count
        colour = LOST if noise >= count else BAR
        corner = {"x": f"{x:.1f}", "y": f"{y:.1f}"}
        drawn.append(tag("rect", **corner, width=14, height=f"{scale * count:.1f}", fill=colour, opacity=0.75))
        above = max(y - scale * noise, top + 18)
        drawn.append(line(x + 7, above, x + 7, min(y + scale * noise, top + high), stroke_width=2))
    return [*drawn, line(left, top + high, left + wide, top + high)]


def noise() -> Html:
    """Two tables under three budgets: what the noise does to counts of different sizes."""
    drawn: list[Html] = []
    for row, records in enumerate((500, 10_000)):
        drawn.append(words(0, 14 + 135 * row, f"{records:,} records", font_weight="bold"))
        for column, epsilon in enumerate((0.1, 0.5, 2)):
            drawn += panel(8 + 155 * column, 18 + 135 * row, records, epsilon)
    said = (
        "Bars are counts of 7 to 31 percent of the records, whiskers what noise adds or takes nine times out of ten. "
        "Of 500 records all bars but one drown at epsilon 0.1 and all stand at 2; of 10,000 all stand at 0.1."
    )
    return picture(480, 265, "The noise of one table among five, by records and epsilon", said, *drawn)


def sizes() -> Html:
    """The error of a count against its size, a line for each budget, on logarithmic axes."""
    left, top, wide, high = 44.0, 12.0, 390.0, 200.0

    def x(count: float) -> float:
        return left + wide * (math.log10(count) - 1) / 4

    def y(error: float) -> float:
        return top + high * (0 - math.log10(error)) / 3

    drawn: list[Html] = []
    for power in range(1, 6):
        drawn += [
            line(x(10**power), top, x(10**power), top + high, opacity=0.25),
            words(x(10**power), top + high + 16, f"{10**power:,}", text_anchor="middle"),
        ]
    for error in (1, 0.1, 0.01, 0.001):
        drawn += [
            line(left, y(error), left + wide, y(error), opacity=0.25),
            words(left - 5, y(error) + 4, f"{error:.1%}" if error < 0.01 else f"{error:.0%}", text_anchor="end"),
        ]
    for epsilon in (0.1, 0.3, 1, 3, 10):
        noise = half_width(epsilon)
        first, last = max(10, noise), min(1e5, noise * 1000)
        drawn.append(line(x(first), y(noise / first), x(last), y(noise / last), stroke=BAR, stroke_width=2))
        drawn.append(words(min(x(last) + 3, left + wide + 3), y(noise / last) - 3, f"ε {epsilon:g}"))
    drawn.append(words(left + wide / 2, top + high + 34, "count in the cell, records", text_anchor="middle"))
    said = (
        "Straight falling lines: the error of a count, in percent of the count, is its noise over its size. An error "
        "of 10 percent needs 1,151 records at epsilon 0.1, 115 at 1 and 12 at 10."
    )
    return picture(480, 250, "Error of a count nine times out of ten, one table among five", said, *drawn)


def way() -> Html:
    """The way of the data in two rows, left of the noise and right of it."""
    rows = {
        "secret: the records, and the only code that reads them": ("records", "counts", "counts + noise"),
        "released: safe to publish, and free": ("noisy tables", "learner", "model", "answers"),
    }
    drawn: list[Html] = []
    for row, (caption, stations) in enumerate(rows.items()):
        top = 16 + 60 * row
        drawn.append(words(0, (12, 132)[row], caption, font_weight="bold"))
        for place, station in enumerate(stations):
            left = 122 * place
            box = {"x": left + 1, "y": top + 4, "width": 100, "height": 32, "rx": 4}
            drawn.append(tag("rect", **box, fill="none", stroke=BAR if row else LOST, stroke_width=2))
            drawn.append(words(left + 51, top + 24, station, text_anchor="middle"))
            if place:
                drawn += arrow(left - 18, top + 20, left - 2, top + 20)
    drawn += [line(295, 54, 295, 66), line(52, 66, 295, 66), *arrow(52, 66, 52, 78)]
    said = "Records are counted and noise is added; from the noisy tables alone a learner makes a model, which answers."
    return picture(472, 138, "The way of the data", said, *drawn)


def arrow(x1: float, y1: float, x2: float, y2: float) -> list[Html]:
    """A stroke, and its head."""
    back = (-5, -4, -5, 4) if y1 == y2 else (-4, -5, 4, -5)
    head = f"M{x2 + back[0]:.1f} {y2 + back[1]:.1f}L{x2:.1f} {y2:.1f}L{x2 + back[2]:.1f} {y2 + back[3]:.1f}"
    return [line(x1, y1, x2, y2), tag("path", d=head, fill="none", stroke=LINE)]


DRAWN = {"way.svg": way, "noise.svg": noise, "sizes.svg": sizes}


def shoot(report: Path) -> None:
    """The first screen of a report, as a desk shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1000, "height": 500})
        page.goto(report.resolve().as_uri())
        page.screenshot(path=HERE / "report.png")
        browser.close()


if __name__ == "__main__":
    for report in map(Path, sys.argv[1:]):
        shoot(report)
    for name, draw in DRAWN.items():
        (HERE / name).write_text(draw() + "\n", encoding="utf-8")
        print(HERE / name, file=sys.stderr)
