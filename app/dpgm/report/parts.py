"""Parts of a page, and their text."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from functools import wraps
from typing import TypeAlias

from attrs import frozen

from dpgm.plots.picture import Picture
from dpgm.report.inputs import Material
from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core._util.html import Html, tag, text
from dpgm_core.errors import InferenceError, TooLarge, printable
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import best_guess, odds_factor

__all__ = [
    "CONVERTED_AT",
    "Section",
    "amounts",
    "at_most",
    "cut",
    "data_table",
    "facts",
    "figure",
    "fold",
    "guess_text",
    "join",
    "listing",
    "long_table",
    "name",
    "number",
    "odds_text",
    "paragraph",
    "per_cent",
    "rounded_up",
    "section",
    "several",
    "stamp",
]


# --- Building blocks ---

#: Letters of a name or label that are shown; one label could fill the page.
_MAX_LETTERS = 120
#: Letters from which a cell is wrapped.
_MAX_LINE_LETTERS = 32
#: Width in pixels from which a picture scrolls.
_PAGE_PX = 1200


@frozen
class Section:
    """One section of the page. key: its anchor. title: its heading. body: what stands under it."""

    key: str
    title: str
    body: Html


#: The parts of a section's body.
Parts: TypeAlias = Callable[[Material], Iterable[object]]


def join(parts: Iterable[object]) -> Html:
    """Several pieces one after the other.

    >>> join(["<", Html("<br>")])
    '&lt;<br>'
    """
    return Html("".join(text(part) for part in parts))


def section(key: str, title: str) -> Callable[[Parts], Callable[[Material], Section]]:
    """Decorate a function that returns the parts of a section's body: it then returns the section."""

    def make(parts: Parts) -> Callable[[Material], Section]:
        return wraps(parts)(lambda material: Section(key, title, join(parts(material))))

    return make


def long_table(
    caption: str,
    header: Sequence[object],
    rows: Sequence[Sequence[object]],
    what: str,
    *,
    most: tuple[int, int],
    number_columns: Collection[int] = (),
) -> Html:
    """Return a table whose first rows are seen, and the rows after these on demand, up to a limit. what: a row is."""
    shown, listed = most
    table = data_table(caption, header, rows[:shown], number_columns=number_columns)
    if len(rows) <= shown:
        return table
    more = data_table(f"Further {what}s", header, rows[shown:listed], number_columns=number_columns)
    return join([table, fold(f"The other {several(len(rows) - shown, what)}", more)])


def paragraph(*children: object, class_: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", *children, class_=class_)


def listing(items: Iterable[object], *, ordered: bool = False) -> Html:
    """A list."""
    return tag("ol" if ordered else "ul", *(tag("li", item) for item in items))


def cut(value: object, most: int = _MAX_LETTERS) -> str:
    """Return a name or label for display: unprintable letters escaped, long ones cut.

    >>> cut("a" * 500)[-24:]
    'aaaa... (500 characters)'
    """
    shown = str(value)
    if len(shown) > most:
        return f"{printable(shown[:most])}... ({len(shown):,} characters)"
    return printable(shown)


def name(value: object) -> Html:
    """Return a user's name or label inside a sentence, isolated from its direction of writing."""
    return tag("bdi", cut(value))


def stamp(words: object, *, condition: bool = False) -> Html:
    """Return a prominent mark."""
    return tag("p", words, class_="stamp condition" if condition else "stamp")


def fold(summary: object, *children: object) -> Html:
    """Return content that opens on demand."""
    return tag("details", tag("summary", summary), *children)


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return a list of facts with their names."""
    return tag("dl", *(tag("div", tag("dt", key), tag("dd", value)) for key, value in pairs), class_="facts")


def data_table(
    caption: object,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    number_columns: Collection[int] = (),
    label: str | None = None,
) -> Html:
    """Return a table in a scrollable region that takes the focus; the first cell of a row is its heading."""

    def kind(column: int, cell: object = "") -> str | None:
        return (
            "n"
            if column in number_columns
            else "w"
            if len(str(cell)) > _MAX_LINE_LETTERS and not isinstance(cell, Html)
            else None
        )

    head = tag("tr", *(tag("th", one, scope="col", class_=kind(at)) for at, one in enumerate(header)))
    body = (
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=kind(0)),
            *(tag("td", one, class_=kind(at, one)) for at, one in enumerate(row[1:], start=1)),
        )
        for row in rows
    )
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", made, class_="scroll", role="group", aria_label=label or str(caption), tabindex="0")


def figure(draw: Callable[[], Picture], *, most: int, bare: bool = False) -> Html:
    """Return a picture; nothing if exact answers do not fit in memory, a sentence if it has more bytes than `most`."""
    try:
        svg = Html(draw().svg(bare=bare))
    except (TooLarge, InferenceError):
        return Html("")
    if len(svg.encode()) > most:
        return paragraph("The picture is left out: the names and labels in it are too long.", class_="note")
    wide = re.match(r'[^>]* width="(\d+)', svg)
    if wide is not None and int(wide[1]) > _PAGE_PX:  # shrunk to the sheet nobody could read it
        return tag("div", tag("figure", svg), class_="scroll wide", role="group", aria_label="A picture", tabindex="0")
    return tag("figure", svg)


def several(count: int, what: str) -> str:
    """Return a number of things, with the plural.

    >>> several(1, "table"), several(2000, "table")
    ('1 table', '2,000 tables')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def per_cent(share: float, digits: int = 1) -> str:
    """Return a share in per cent.

    >>> per_cent(0.3125), per_cent(0.00004)
    ('31.2 %', '< 0.1 %')
    """
    if 0 < share < 0.5 * 10 ** -(digits + 2):
        return f"< {10**-digits:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, whole ones with separators of thousands.

    >>> number(20189.5), number(0.012345), number(3.0)
    ('20,190', '0.0123', '3')
    """
    if value and not math.isfinite(value):
        return "infinite"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def at_most(value: float, digits: int = 3) -> str:
    """Return a bound with so many digits, rounded up, so that it holds as printed.

    >>> at_most(2.71828), at_most(0.73105857), at_most(22026.4)
    ('2.72', '0.732', '22,100')
    """
    if value <= 0:
        return "0"
    grid = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    up = round(math.ceil(value / grid - 1e-12) * grid, 12)
    return f"{up:,.0f}" if grid >= 1 else f"{up:.{max(0, -round(math.log10(grid)))}f}"


# --- Budgets and units ---

#: The deltas at which zCDP and GDP are converted to (epsilon, delta).
CONVERTED_AT = ("1e-6", "1e-9")


def amounts(budget: Budget) -> str:
    """Return a budget in Greek letters.

    >>> amounts(Budget.pure("0.5")), amounts(Budget.approx(1, "1e-6")), amounts(Budget.gdp("0.1"))
    ('ε = 0.5', 'ε = 1, δ = 1e-06', 'μ = 0.1')
    """
    if budget.kind == "zcdp":
        return f"ρ = {decimal_text(budget.rho)}"
    if budget.kind == "gdp":
        return f"μ{str(budget).removeprefix('mu').removesuffix(' (GDP)')}"
    delta = "" if budget.kind == "pure" else f", δ = {decimal_text(budget.delta)}"
    return f"ε = {decimal_text(budget.epsilon)}{delta}"


def rounded_up(value: Fraction, digits: int = 3) -> str:
    """Return an exact amount with so many digits, rounded up, however small.

    >>> rounded_up(Fraction(1, 10**6)), rounded_up(Fraction("1.2341e-7"))
    ('1e-06', '1.24e-07')
    """
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))):.{digits}g}"


def odds_text(budget: Budget) -> str | None:
    """Return the largest factor by which odds change, rounded up; None if no factor holds for every outcome.

    >>> odds_text(Budget.pure(1)), odds_text(Budget.pure(30)), odds_text(Budget.zcdp(1))
    ('2.72', 'more than a million', None)
    """
    factor = odds_factor(budget)
    if factor is None:
        return None
    return at_most(factor) if factor <= 1e6 else "more than a million"


def guess_text(budget: Budget) -> str:
    """Return how often the best-informed guess is right, in per cent, rounded up.

    >>> guess_text(Budget.pure(1)), guess_text(Budget.pure(50))
    ('73.2 %', '100 %')
    """
    tenths = math.ceil(1000 * best_guess(budget) - 1e-9)
    return f"{tenths / 10:g} %" if tenths < 1000 else "100 %"
