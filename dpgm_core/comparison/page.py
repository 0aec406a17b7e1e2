"""A comparison as one page, in the frame of the report."""

from __future__ import annotations

from collections.abc import Sequence

from dpgm_core._version import __version__
from dpgm_core.comparison.values import Comparison, Difference, Gap, Pair
from dpgm_core.comparison.words import GAPS_MEAN, apart, shared_lines, short_names, side_by_side
from dpgm_core.markup import Html, tag
from dpgm_core.report.page import page
from dpgm_core.report.parts import Section, cut, data_table, fold, join, listing, paragraph, per_cent, several, stamp

__all__ = ["make_page"]

#: Rows that are seen at once, and rows that are there on demand.
_ROWS_SHOWN, _MAX_MORE_ROWS = 15, 500


def make_page(comparison: Comparison) -> str:
    """Return one HTML page that loads nothing: the subjects side by side, each pair, and every guarantee.

    The page is as private as the subjects, whose caveats are on each section. All numbers are in `Comparison.to_dict`;
    of long tables the page has the worst 515 rows.
    """
    short = {name: cut(text) for name, text in short_names(comparison).items()}
    caveats = dict.fromkeys(caveat for one in comparison.subjects for caveat in one.caveats)
    first, *others = short.values()
    sections = [Section("facts", "Side by side", _facts(comparison, list(short.values())))]
    for number, pair in enumerate(comparison.pairs, start=1):
        names = short[pair.first], short[pair.other]
        sections.append(Section(f"pair-{number}", f"{names[1]} against {names[0]}", _pair(pair, *names)))
    sections.append(Section("guarantees", "What each promises", _guarantees(comparison, short)))
    return page(
        kind="dpgm comparison",
        title=f"{', '.join(others)} against {first}",
        opening=join([paragraph(f"Made from released things alone: {comparison.privacy}.", class_="lead")]),
        sections=sections,
        mark=join(stamp(caveat) for caveat in caveats) if caveats else None,
        footer=f"Made by dpgm {__version__} from the files named here and nothing else.",
    )


def _facts(comparison: Comparison, names: Sequence[str]) -> Html:
    return data_table("What is known of each", ["fact", *names], side_by_side(comparison))


def _pair(pair: Pair, first: str, other: str) -> Html:
    single = [one for one in pair.differences if len(one.attributes) == 1]
    together = [one for one in pair.differences if len(one.attributes) > 1]
    summary = apart(pair)
    parts: list[object] = [listing(shared_lines(pair, first, other))]
    parts += [paragraph(summary)] if summary is not None else []
    parts += [_differences("Attributes, the furthest first", single)] if single else []
    parts += [_differences("Tables of several attributes, the furthest first", together)] if together else []
    parts += [_gaps(pair.gaps), paragraph(GAPS_MEAN)] if pair.gaps else []
    parts += [listing(pair.notes)] if pair.notes else []
    return join(parts)


def _differences(caption: str, differences: Sequence[Difference]) -> Html:
    header = ["attributes", "total variation", "score", "most at", "first", "other", "rests on"]
    rows = [
        [
            cut(" x ".join(one.attributes)),
            f"{one.total_variation:.4f}",
            "" if one.score is None else f"{one.score:.1f}",
            cut(", ".join(one.cell.values())),
            per_cent(one.first, 2),
            per_cent(one.other, 2),
            " / ".join(dict.fromkeys(one.standing)),
        ]
        for one in differences
    ]
    return _long_table(caption, header, rows, numbers=(1, 2, 4, 5))


def _gaps(gaps: Sequence[Gap]) -> Html:
    header = ["attributes", "apart (noise sds)", "furthest cell", "noise, first", "noise, other"]
    rows = [
        [
            cut(" x ".join(one.attributes)),
            *(f"{value:.4g}" for value in (one.deviations, one.largest, one.noise_first, one.noise_other)),
        ]
        for one in gaps
    ]
    return _long_table("Noisy tables that both measured, the furthest first", header, rows, numbers=(1, 2, 3, 4))


def _long_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> Html:
    """The worst rows, and more on demand."""
    top = data_table(caption, header, rows[:_ROWS_SHOWN], numbers=numbers)
    rest = rows[_ROWS_SHOWN : _ROWS_SHOWN + _MAX_MORE_ROWS]
    if not rest:
        return top
    left = len(rows) - _ROWS_SHOWN - len(rest)
    more = f"The next {several(len(rest), 'row')}" + (f"; {left:,} are closer together yet" if left else "")
    return join([top, fold(more, data_table(f"{caption}, continued", header, rest, numbers=numbers))])


def _guarantees(comparison: Comparison, short: dict[str, str]) -> Html:
    parts = []
    for one in comparison.subjects:
        word = " (by the stamp of its file)" if one.kind == "synthetic" else ""
        parts += [tag("h3", f"{short[one.name]}{word}"), tag("blockquote", paragraph(one.stamp["guarantee"]))]
    return join(parts)
