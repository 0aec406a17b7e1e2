"""Text of a comparison, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpgm_core.comparison.values import Comparison, Pair

__all__ = ["BEYOND", "GAPS_MEAN", "apart", "few", "shared_lines", "short_names", "side_by_side"]

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
    """Rows of what is known of the subjects: the words for it, then one text each."""
    rows = [["is a", *(one.kind for one in comparison.subjects)]]
    for key, words in _FACT_NAMES.items():
        values = [one.facts[key] for one in comparison.subjects]
        if any(value is not None for value in values):
            rows.append([words, *map(_fact, values)])
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
    """Names for a line: the first, and how many there are.

    >>> few(["a", "b"]), few(["a"] * 16)[-14:]
    ('a, b', '... 16 in all')
    """
    shown = ", ".join(names[:_MAX_NAMES])
    return shown + (f", ... {len(names):,} in all" if len(names) > _MAX_NAMES else "")


def _fact(value: Any) -> str:
    """A fact on the screen: its thousands apart, a range as such."""
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
