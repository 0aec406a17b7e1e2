"""Columns whose records are mostly missing, according to the noisy tables; post-processing, free.

A file that is read in another dialect than it is written in, or labels that are spelled otherwise, fill a release with
the label of missing values. A table in which n of the m labels of a column are that label sums to T, and the n labels
to M, each with noise of variance v a cell, c cells in all. Then p = M / T is their share, with the standard error
sqrt(v c ((1 - p)^2 n / m + p^2 (1 - n / m))) / T of a ratio (delta method). Of the tables that hold the column the one
with the least standard error counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpgm_core.columns.tables import MISSING
from dpgm_core.releases.release import NoisyTables

__all__ = ["mostly_missing"]

#: Standard errors by which a share must exceed one half: Gaussian noise alone does that with probability 1.4e-3.
_SURE = 3.0
_SHOWN = 5


def mostly_missing(releases: Sequence[NoisyTables]) -> list[str]:
    """Return a sentence about the columns of which more than half is missing; empty where there are none.

    It is computed from the noisy tables. Rounds and contrasts are left out, and columns whose missing values have a
    label of another name, which somebody may have given as an answer.

    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure
    >>> from dpgm_core import release as released
    >>> domain = Domain.from_dict({"smoker": ["no", "yes"]})
    >>> structure, seeded = Structure(domain, [("smoker",)]), SeededRandomness(0)
    >>> codes = np.full((500, 1), 2)
    >>> noisy = released(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=seeded)
    >>> print(*mostly_missing([noisy]))
    mostly missing: smoker (100 %), where empty cells go and values that are not as the domain says; if that is a ...
    """
    shares: dict[str, tuple[float, float]] = {}
    for release in (step for one in releases for step in (one.steps or (one,)) if isinstance(step, NoisyTables)):
        if release.round is not None or release.contrasts:
            continue
        structure = release.structure
        for number, (group, variance) in enumerate(zip(structure.groups, release.variances.tolist(), strict=True)):
            if len(group) > 1:  # tied tables are sums over several columns
                continue
            table = release.tables.group(number)
            total = float(table.sum())
            for axis, name in enumerate(group[0]):
                one = structure.domain[name]
                codes = [code for code in {one.unknown, one.null} if one.labels[code] == MISSING]
                if not codes or one.size == 1 or total <= 0:
                    continue
                share = float(table.take(codes, axis).sum()) / total
                part = len(codes) / one.size
                spread = (1 - share) ** 2 * part + share**2 * (1 - part)
                error = math.sqrt(variance * table.size * spread) / total
                if name not in shares or error < shares[name][1]:
                    shares[name] = share, error
    missing = {name: share for name, (share, error) in shares.items() if share - _SURE * error > 0.5}
    if not missing:
        return []
    shown = [f"{name} ({min(share, 1):.0%})".replace("%", " %") for name, share in list(missing.items())[:_SHOWN]]
    more = f" and {len(missing) - _SHOWN} more columns" if len(missing) > _SHOWN else ""
    lines = ", or lines that cannot be told apart (see delimiter, quoting, encoding)" if len(missing) > 1 else ""
    return [
        f"mostly missing: {', '.join(shown)}{more}, where empty cells go and values that are not as the domain says; "
        f"if that is a surprise, labels may be spelled otherwise in the file (upper and lower case: case = false)"
        f"{lines}: dpgm validate shows the owner"
    ]
