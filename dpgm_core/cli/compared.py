"""What `dpgm compare` prints of several files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgm_core.cli.common import print_table, say, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpgm_core.comparison import Comparison, Difference, Pair

__all__ = ["print_comparison"]

_MOST_SHOWN = 15  # rows of a table, cliques and names

#: Facts by their key -> the words before them, and how a value is written.
_ROWS = {
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


def print_comparison(found: Comparison) -> None:
    """Side by side, then each of the others against the first; caveats on stderr."""
    for one in found.subjects:
        stamp(Path(one.name), one.caveats)
    short = _short([one.name for one in found.subjects])
    rows = [["is a", *(one.kind for one in found.subjects)]]
    for key, words in _ROWS.items():
        told = [one.facts[key] for one in found.subjects]
        if any(value is not None for value in told):
            rows.append([words, *(_fact(value) for value in told)])
    if any(one.caveats for one in found.subjects):
        rows.append(["private", *("with reservations" if one.caveats else "yes" for one in found.subjects)])
    if any(one.unmeasured for one in found.subjects):
        rows.append(["not measured", *(_few(one.unmeasured) or "-" for one in found.subjects)])
    print_table(["", *short.values()], rows)
    for pair in found.pairs:
        say()
        _print_pair(pair, short[pair.first], short[pair.other])
    say()
    say(found.privacy)


def _short(names: Sequence[str]) -> dict[str, str]:
    """What each file is called on the screen: its name alone, where no two have the same."""
    alone = [Path(name).name for name in names]
    return dict(zip(names, alone if len(set(alone)) == len(alone) else names, strict=True))


def _fact(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        low, high = value
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return (
        f"{value:,.0f}"
        if isinstance(value, float) and value >= 1000
        else f"{value:,.6g}"
        if isinstance(value, (int, float))
        else str(value)
    )


def _print_pair(pair: Pair, first: str, other: str) -> None:
    """What sets the two apart. first, other: what they are called here."""
    say(f"{other} against {first}")
    for line in _domain_lines(pair, first, other):
        say(f"  {line}")
    if pair.only_first is not None and pair.only_other is not None:
        say(f"  cliques: {pair.common} in both, {len(pair.only_first)} and {len(pair.only_other)} in one alone")
        for name, alone in ((first, pair.only_first), (other, pair.only_other)):
            if alone:
                say(f"    only in {name}: {_few([' x '.join(clique) for clique in alone])}")
    if pair.kl is not None:
        say(f"  KL(first || other) = {pair.kl[0]:.6g}, KL(other || first) = {pair.kl[1]:.6g} nats")
    elif pair.no_kl is not None:
        say(f"  no KL: {pair.no_kl}")
    single = [one for one in pair.differences if len(one.attributes) == 1]
    several = [one for one in pair.differences if len(one.attributes) > 1]
    for what, some in (("attribute", single), ("table", several)):
        if some:
            say()
            _print_differences(what, some)
    if pair.gaps:
        say()
        _print_gaps(pair)
    if any(one.score is not None for one in pair.differences):
        say()
        scored = [one.score for one in pair.differences if one.score is not None]
        beyond = sum(score > 3 for score in scored)
        say(f"{beyond} of {len(scored)} tables differ by more than errors explain (score above 3).")
    for note in pair.notes:
        say(f"note: {note}")


def _domain_lines(pair: Pair, first: str, other: str) -> list[str]:
    """What the two domains do not share, one line each."""
    found = pair.matching
    lines = [f"attributes: {len(found.shared)} compared"]
    for name, alone in ((first, found.only_first), (other, found.only_other)):
        if alone:
            lines.append(f"only in {name}: {_few(alone)}")
    for name, (ours, theirs) in list(found.labels.items())[:_MOST_SHOWN]:
        lines.append(f"not compared, other labels: {name}, {len(ours)} only in the first, {len(theirs)} in the other")
    if found.reordered:
        lines.append(f"matched by label, in another order: {_few(found.reordered)}")
    if found.unmeasured:
        lines.append(f"not compared, as no release measured them: {_few(found.unmeasured)}")
    return lines


def _print_differences(what: str, found: Sequence[Difference]) -> None:
    scores = any(one.score is not None for one in found)
    rows = []
    for one in found[:_MOST_SHOWN]:
        cell = ", ".join(one.cell.values())
        score = [] if not scores else ["-" if one.score is None else f"{one.score:.1f}"]
        shares = [cell, f"{one.first:.2%}", f"{one.other:.2%}"]
        rows.append([" x ".join(one.attributes), f"{one.total_variation:.4f}", *score, *shares])
    print_table([what, "total variation", *(["score"] if scores else []), "most at", "first", "other"], rows)
    _say_more(len(found))


def _print_gaps(pair: Pair) -> None:
    rows = [
        [
            " x ".join(one.attributes),
            *(f"{value:.4g}" for value in (one.deviations, one.largest, one.noise_first, one.noise_other)),
        ]
        for one in pair.gaps[:_MOST_SHOWN]
    ]
    print_table(["table", "apart (noise sds)", "furthest cell", "noise, first", "noise, other"], rows)
    _say_more(len(pair.gaps))
    say()
    say("About 1 noise sd apart is what noise does to the same records; more means that the records differ.")


def _say_more(count: int) -> None:
    if count > _MOST_SHOWN:
        say(f"... {count - _MOST_SHOWN:,} more, closer together; --json has all")


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN])
    return shown + (f", ... {len(names):,} in all" if len(names) > _MOST_SHOWN else "")
