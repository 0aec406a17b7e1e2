"""What `dpgm compare` prints of several files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpgm_core.cli.common import print_out, print_table, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpgm_core.comparison import Comparison, Difference, Gap, Pair

__all__ = ["print_comparison"]

_MAX_ROWS_SHOWN = 15  # rows of a table


def print_comparison(comparison: Comparison) -> None:
    """Side by side, then each of the others against the first; caveats on stderr."""
    from dpgm_core.comparison.words import short_names, side_by_side

    for subject in comparison.subjects:
        stamp(Path(subject.name), subject.caveats)
    short = short_names(comparison)
    print_table(["", *short.values()], side_by_side(comparison))
    for pair in comparison.pairs:
        print_out()
        _print_pair(pair, short[pair.first], short[pair.other])
    print_out()
    print_out(comparison.privacy)


def _print_pair(pair: Pair, first: str, other: str) -> None:
    """What sets the two apart. first, other: what they are called here."""
    from dpgm_core.comparison.words import apart, shared_lines

    print_out(f"{other} against {first}")
    for line in shared_lines(pair, first, other):
        print_out(f"  {line}")
    single = [one for one in pair.differences if len(one.attributes) == 1]
    several = [one for one in pair.differences if len(one.attributes) > 1]
    for what, some in (("attribute", single), ("table", several)):
        if some:
            _print_differences(what, some)
    if pair.gaps:
        _print_gaps(pair.gaps)
    sentence = apart(pair)
    if sentence is not None:
        print_out()
        print_out(sentence)
    for note in pair.notes:
        print_out(f"note: {note}")


def _print_differences(what: str, differences: Sequence[Difference]) -> None:
    scores = any(one.score is not None for one in differences)
    rows = []
    for one in differences[:_MAX_ROWS_SHOWN]:
        score = [] if not scores else ["-" if one.score is None else f"{one.score:.1f}"]
        shares = [", ".join(one.cell.values()), f"{one.first:.2%}", f"{one.other:.2%}"]
        rows.append([" x ".join(one.attributes), f"{one.total_variation:.4f}", *score, *shares])
    print_out()
    print_table([what, "total variation", *(["score"] if scores else []), "most at", "first", "other"], rows)
    _print_rest(len(differences))


def _print_gaps(gaps: Sequence[Gap]) -> None:
    from dpgm_core.comparison.words import GAPS_MEAN

    rows = []
    for one in gaps[:_MAX_ROWS_SHOWN]:
        numbers = (one.deviations, one.largest, one.noise_first, one.noise_other)
        rows.append([" x ".join(one.attributes), *(f"{value:.4g}" for value in numbers)])
    print_out()
    print_table(["table", "apart (noise sds)", "furthest cell", "noise, first", "noise, other"], rows)
    _print_rest(len(gaps))
    print_out()
    print_out(GAPS_MEAN)


def _print_rest(count: int) -> None:
    if count > _MAX_ROWS_SHOWN:
        print_out(f"... {count - _MAX_ROWS_SHOWN:,} more, closer together; --json has all")
