"""Merged codes of an attribute, with a label for each."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dpgm_core.errors import DomainError

__all__ = ["merge_labels"]


def merge_labels(name: str, labels: Sequence[str], codes: object) -> tuple[list[int], tuple[str, ...]]:
    """Old code -> new code as plain numbers, and the label of each new one; those of single codes stay.

    codes: the new code of each label, onto 0, 1, ... without a gap. Raises DomainError.

    >>> merge_labels("job", ["cook", "pilot", "diver"], [0, 1, 1])
    ([0, 1, 1], ('cook', 'other (2 labels)'))
    """
    new = _merge(name, len(labels), codes)
    counted = Counter(new)
    taken, merged = set(labels), [""] * len(counted)
    for code, into in enumerate(new):
        if counted[into] == 1:
            merged[into] = labels[code]
        elif not merged[into]:
            merged[into] = _unused(f"other ({counted[into]} labels)", taken)
    return new, tuple(merged)


def _merge(name: str, size: int, codes: object) -> list[int]:
    """Old code -> new code as plain numbers, onto 0, 1, ... without a gap."""
    if isinstance(codes, (str, bytes)) or not isinstance(codes, (Sequence, np.ndarray)):
        raise DomainError(f"attribute {name!r}: a merge must be a list of new codes, got {type(codes).__name__}")
    new = list(codes)
    if len(new) != size:
        raise DomainError(f"attribute {name!r}: a merge must give each of its {size} codes a new one, got {len(new)}")
    for code in new:
        if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or code < 0:
            raise DomainError(f"attribute {name!r}: a new code must be a whole number from 0 on, got {code!r}")
    plain = [int(code) for code in new]
    used = set(plain)
    missing = next(code for code in range(size + 1) if code not in used)
    if missing <= max(used):
        raise DomainError(
            f"attribute {name!r}: the merge leaves new code {missing} empty; number them 0, 1, ... without gaps"
        )
    return plain


def _unused(label: str, taken: set[str]) -> str:
    unused = next(text for n in itertools.count(1) if (text := label if n == 1 else f"{label} {n}") not in taken)
    taken.add(unused)
    return unused
