"""The page of a comparison, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpgm.comparison.values import Comparison, Difference, Gap, Pair
from dpgm.report.page import page
from dpgm.report.parts import Section, cut, data_table, fold, join, listing, paragraph, per_cent, several, stamp
from dpgm_core._util.html import Html, tag
from dpgm_core._util.version import __version__

__all__ = ["BEYOND", "GAPS_MEAN", "apart", "few", "make_page", "shared_lines", "short_names", "side_by_side"]


# --- Text, for the terminal and the page ---

#: Score above which errors do not explain a difference.
BEYOND = 3.0
GAPS_MEAN = "About 1 noise sd apart is what noise does to the same records; more means that the records differ."

_MAX_NAMES = 15  # names and labels in a line

#: Facts by their key -> the words before them.
_FACT_NAMES = {
    "cost": "cost",
    "neighbours": "relation",
    "unit": "unit",
    "records": "records",
    "attributes": "attributes",
    "tables": "tables",
    "cells": "cells",
    "noise": "noise per cell (sd)",
    "learner": "learner",
    "converged": "converged",
    "replicates": "replicates",
    "entropy": "entropy (nats)",
}


def short_names(comparison: Comparison) -> dict[str, str]:
    """Return each subject's name for display: the file's name alone, where these differ."""
    names = [one.name for one in comparison.subjects]
    alone = [Path(name).name for name in names]
    return dict(zip(names, alone if len(set(alone)) == len(alone) else names, strict=True))


def side_by_side(comparison: Comparison) -> list[list[str]]:
    """Return rows of facts about the subjects: a name, then one text for each subject."""
    rows = [["is a", *(one.kind for one in comparison.subjects)]]
    for key, words in _FACT_NAMES.items():
        values = [one.facts[key] for one in comparison.subjects]
        if any(value is not None for value in values):
            rows.append([words, *map(_fact_text, values)])
    if any(one.caveats for one in comparison.subjects):
        rows.append(["private", *("with reservations" if one.caveats else "yes" for one in comparison.subjects)])
    if any(one.unmeasured for one in comparison.subjects):
        rows.append(["not measured", *(few(one.unmeasured) or "-" for one in comparison.subjects)])
    return rows


def shared_lines(pair: Pair, first: str, other: str) -> list[str]:
    """Return lines on what domains and structures share, and on KL. first, other: names of the two."""
    overlap = pair.matching
    lines = [f"attributes: {len(overlap.shared)} compared"]
    for name, alone in ((first, overlap.only_first), (other, overlap.only_other)):
        lines += [f"only in {name}: {few(alone)}"] if alone else []
    for name, (ours, theirs) in list(overlap.labels.items())[:_MAX_NAMES]:
        lines.append(f"not compared, other labels: {name}, {len(ours)} only in the first, {len(theirs)} in the other")
    lines += [f"matched by label, in another order: {few(overlap.reordered)}"] if overlap.reordered else []
    lines += [f"not compared, as no release measured them: {few(overlap.unmeasured)}"] if overlap.unmeasured else []
    if pair.only_first is not None and pair.only_other is not None:
        counts = f"{len(pair.only_first)} in {first} alone, {len(pair.only_other)} in {other} alone"
        lines.append(f"cliques: {pair.common} in both, {counts}")
        for name, cliques in ((first, pair.only_first), (other, pair.only_other)):
            lines += [f"only in {name}: {few([' x '.join(clique) for clique in cliques])}"] if cliques else []
    if pair.kl is not None:
        lines.append(f"KL(first || other) = {pair.kl[0]:.6g}, KL(other || first) = {pair.kl[1]:.6g} nats")
    elif pair.no_kl is not None:
        lines.append(f"no KL: {pair.no_kl}")
    return lines


def apart(pair: Pair) -> str | None:
    """State how many tables differ by more than errors explain; None where no errors are known."""
    scored = [one.score for one in pair.differences if one.score is not None]
    if not scored:
        return None
    beyond = sum(score > BEYOND for score in scored)
    return f"{beyond} of {len(scored)} tables differ by more than errors explain (score above {BEYOND:g})."


def few(names: Sequence[str]) -> str:
    """Return names for a line: the first ones, and their number.

    >>> few(["a", "b"]), few(["a"] * 16)[-14:]
    ('a, b', '... 16 in all')
    """
    shown = ", ".join(names[:_MAX_NAMES])
    return shown + (f", ... {len(names):,} in all" if len(names) > _MAX_NAMES else "")


def _fact_text(value: Any) -> str:
    """Return a fact as text: thousands separated, a range as such."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        low, high = value
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    if isinstance(value, (int, float)):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.6g}"
    return str(value)


# --- The page ---

#: Rows that are seen at once, and rows that are there on demand.
_MAX_ROWS_SHOWN, _MAX_MORE_ROWS = 15, 500


def make_page(comparison: Comparison) -> str:
    """Return one HTML page that loads nothing: the subjects side by side, each pair, and every guarantee.

    Notes
    -----
    The page is as private as the subjects, whose caveats are on each section. `Comparison.to_dict` has all numbers; of
    long tables the page has the worst 515 rows.
    """
    short = {name: cut(text) for name, text in short_names(comparison).items()}
    caveats = dict.fromkeys(caveat for one in comparison.subjects for caveat in one.caveats)
    first, *others = short.values()
    table = data_table("What is known of each", ["fact", *short.values()], side_by_side(comparison))
    sections = [Section("facts", "Side by side", table)]
    for number, pair in enumerate(comparison.pairs, start=1):
        names = short[pair.first], short[pair.other]
        sections.append(Section(f"pair-{number}", f"{names[1]} against {names[0]}", _pair_body(pair, *names)))
    sections.append(Section("guarantees", "What each promises", _guarantees(comparison, short)))
    return page(
        kind="dpgm comparison",
        title=f"{', '.join(others)} against {first}",
        opening=join([paragraph(f"Made from released things alone: {comparison.privacy}.", class_="lead")]),
        sections=sections,
        mark=join(stamp(caveat) for caveat in caveats) if caveats else None,
        footer=f"Made by dpgm {__version__} from the files named here and nothing else.",
    )


def _pair_body(pair: Pair, first: str, other: str) -> Html:
    single = [one for one in pair.differences if len(one.attributes) == 1]
    together = [one for one in pair.differences if len(one.attributes) > 1]
    summary = apart(pair)
    parts: list[object] = [listing(shared_lines(pair, first, other))]
    parts += [paragraph(summary)] if summary is not None else []
    parts += [_differences_table("Attributes, the furthest first", single)] if single else []
    parts += [_differences_table("Tables of several attributes, the furthest first", together)] if together else []
    parts += [_gaps_table(pair.gaps), paragraph(GAPS_MEAN)] if pair.gaps else []
    parts += [listing(pair.notes)] if pair.notes else []
    return join(parts)


def _differences_table(caption: str, differences: Sequence[Difference]) -> Html:
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


def _gaps_table(gaps: Sequence[Gap]) -> Html:
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
    """Return the worst rows, and more on demand."""
    top = data_table(caption, header, rows[:_MAX_ROWS_SHOWN], number_columns=numbers)
    rest = rows[_MAX_ROWS_SHOWN : _MAX_ROWS_SHOWN + _MAX_MORE_ROWS]
    if not rest:
        return top
    left = len(rows) - _MAX_ROWS_SHOWN - len(rest)
    more = f"The next {several(len(rest), 'row')}" + (f"; {left:,} are closer together yet" if left else "")
    return join([top, fold(more, data_table(f"{caption}, continued", header, rest, number_columns=numbers))])


def _guarantees(comparison: Comparison, short: dict[str, str]) -> Html:
    parts = []
    for one in comparison.subjects:
        word = " (by the stamp of its file)" if one.kind == "synthetic" else ""
        parts += [tag("h3", f"{short[one.name]}{word}"), tag("blockquote", paragraph(one.stamp["guarantee"]))]
    return join(parts)
