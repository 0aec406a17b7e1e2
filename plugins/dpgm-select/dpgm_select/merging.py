"""Merging of rare codes, whose counts are mostly noise: fewer cells, so that pairs become worth measuring."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpgm_core import Clique, FloatArray, NoisyTables, Session

__all__ = ["RARE", "find_merges", "measured_before", "merge_rare_codes", "merge_session_codes"]

#: Standard deviations of its noise below which a code's count is rare. MST takes 3 and merges all rare codes into one;
#: blocks of them keep more, and 2 was more accurate than 3 and 4.
RARE = 2.0
#: Bins of numbers are rare too where a cell of two such has, on average, fewer standard deviations than this. Of 0, 2
#: and 4, on twelve kinds of generated tables and three real ones, correlations erred least at 4, a half to a seventh of
#: 0; pairs of the generated ones too, while those of the real ones had up to 9 % more error than at 0.
_IN_PAIRS = 4.0
#: Unless a column has so few, which are chosen by hand for what they tell apart.
_FEW_BINS = 12


def merge_rare_codes(counts: FloatArray, deviation: float, least: float = 0.0, bins: int = 0) -> tuple[int, ...] | None:
    """The new code of each code, where at least two are rare; None where that changes nothing.

    counts: noisy, (codes,), records. deviation: of their noise, records. least: records below which bins are rare, if
    more than `RARE` deviations. bins: how many codes, the first ones, are bins in their order. Rare codes are gathered
    in their order, others passed over, until together they are rare no more. Blocks of bins have no gaps: a common bin
    ends a block; and no other codes, such as that of missing values, for which `least` does not hold.
    Source: McKenna, Miklau and Sheldon (2021), MST, for the rule of what is rare.

    >>> merge_rare_codes(np.array([100.0, 2.0, 1.0, 90.0]), 10.0)
    (0, 1, 1, 2)
    >>> merge_rare_codes(np.array([3.0, 90.0, 2.0, 1.0]), 10.0, bins=4)
    (0, 1, 2, 2)
    """
    wanted = np.full(len(counts), RARE * deviation)
    wanted[: bins or None] = max(least, RARE * deviation)
    rare = counts < wanted
    if np.count_nonzero(rare) < 2:
        return None
    blocks, size = 0, 0  # blocks so far; codes in the one that is open
    gathered, new_codes = 0.0, []
    last = -1
    for code, (count, one) in enumerate(zip(counts.tolist(), rare.tolist(), strict=True)):
        if code == bins or (code < bins and not one):
            size = 0
        if not one:
            new_codes.append(blocks)
            blocks += 1
            continue
        if not size:
            last, gathered = blocks, 0.0
            blocks += 1
        new_codes.append(last)
        gathered, size = gathered + count, size + 1
        if gathered >= max(wanted[code], RARE * deviation * math.sqrt(size)):
            size = 0
    return tuple(new_codes) if blocks < len(counts) else None


def find_merges(measured: NoisyTables, session: Session) -> dict[str, tuple[int, ...]]:
    """The new codes of each attribute that has rare ones, by noisy one-way tables. Codes that constraints are about
    stay as they are, and those that a table of several attributes told apart.

    With b bins each, a table of two columns has N / b^2 records in a cell, so bins have sqrt(4 deviations N) at least:
    more bins lose dependence in the noise.
    """
    told_apart = {name for clique in measured_before(session) for name in clique}
    merges = {}
    for number, (name, *others) in enumerate(measured.structure.cliques):
        if others or name in told_apart or name in measured.structure.domain.constrained:
            continue  # what constraints say of a label would be lost
        counts = measured.tables.group(number).reshape(-1).astype(np.float64)
        deviation = math.sqrt(float(measured.variances[number]))
        bins = len(measured.structure.domain[name].edges or (0,)) - 1
        in_pairs = math.sqrt(max(0.0, _IN_PAIRS * deviation * float(counts.sum()))) if bins > _FEW_BINS else 0.0
        new_codes = merge_rare_codes(counts, deviation, in_pairs, bins)
        if new_codes is not None:
            merges[name] = new_codes
    return merges


def measured_before(session: Session) -> list[Clique]:
    """The tables of several attributes that are measured already once a selector has measured each attribute alone:
    those of whoever had the session before."""
    return [clique for clique in session.pooled().structure.cliques if len(clique) > 1]


def merge_session_codes(session: Session, merges: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Merge codes of a session; what was merged, in words."""
    if not merges:
        return []
    session.coarsen(merges)
    listed = ", ".join(f"{name} {len(codes)} to {max(codes) + 1}" for name, codes in merges.items())
    return [
        f"codes rarer than {RARE:g} standard deviations of the noise, and bins too fine for tables of pairs, were "
        f"merged with others: {listed}; merge = false leaves them as they are"
    ]
