"""Parts of a domain that private queries release: bins of a number, labels of an open column."""

from __future__ import annotations

import contextlib
import re
from fractions import Fraction

from attrs import frozen

from dpgm_core.errors import DomainError

__all__ = ["OTHER", "PrivateBins", "PrivateLabels", "exact_share"]

#: The label of all values of an open column that are not among those found.
OTHER = "other"

_MAX_KEPT_LABELS = 2**16
# Digits are bounded: `Fraction` takes 1e-999999999 for a number and computes it.
_SHARE = re.compile(r"[0-9]{0,30}\.?[0-9]{1,30}(e-[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}")


@frozen(kw_only=True)
class PrivateBins:
    """Bins whose edges are found in a session by exact selection, from a public grid between public bounds.

    count: how many bins at most, a power of two (others are rounded down). cells: of the grid, at most 65,536; whole
    numbers and days have one each where there are not more. share: of the session's budget; None: 2 %, and at most 10 %
    for all such columns together. Raises DomainError.

    >>> PrivateBins(count=33, low=0.0, high=94.0, cells=95).count
    32
    """

    count: int
    low: float
    high: float
    cells: int
    share: Fraction | None = None

    def __attrs_post_init__(self) -> None:
        _check_count("bins = { private = ... }", self.count)
        if self.count > self.cells:
            raise DomainError(f"{self.count} private bins are more than the {self.cells} cells of their grid")
        object.__setattr__(self, "count", 1 << (self.count.bit_length() - 1))


@frozen(kw_only=True)
class PrivateLabels:
    """Labels found by a thresholded release, which costs an (epsilon, delta) of its own before anything else.

    keep: at most so many, those with the largest noisy counts. share: of the run's epsilon and delta. Raises
    DomainError.
    """

    keep: int
    share: Fraction = Fraction(1, 10)

    def __attrs_post_init__(self) -> None:
        _check_count("labels = { private = true, keep = ... }", self.keep)
        if self.keep > _MAX_KEPT_LABELS:
            raise DomainError(f"keep = {self.keep} labels is above the largest possible, {_MAX_KEPT_LABELS}")


def exact_share(share: object) -> Fraction:
    """A share of a budget as it is written: a number or a text such as "1/50", between 0 and 1. Raises DomainError.

    >>> exact_share(0.02), exact_share("1/3")
    (Fraction(1, 50), Fraction(1, 3))
    """
    if isinstance(share, (int, float, str, Fraction)) and not isinstance(share, bool) and _SHARE.fullmatch(str(share)):
        with contextlib.suppress(ZeroDivisionError):
            exact = Fraction(str(share))
            if 0 < exact < 1:
                return exact
    raise DomainError(f"share must be above 0 and below 1, such as 0.02 or '1/50'; got {share!r:.60}")


def _check_count(what: str, count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise DomainError(f"{what} must be a whole number of at least 1, got {count!r:.60}")
