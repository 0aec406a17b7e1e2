"""What a domain leaves to be found privately: the bins of a number, the labels of an open column."""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

__all__ = ["OTHER", "PrivateBins", "PrivateLabels"]

#: The label of all values of an open column that are not among those found.
OTHER = "other"


@frozen(kw_only=True)
class PrivateBins:
    """Bins whose edges are found in a session by exact selection, from a public grid between public bounds.

    count: how many bins at most, a power of two (others are rounded down). cells: of the grid, at most 65,536; whole
    numbers and days have one each where there are not more. share: of the session's budget; None: 2 %, and at most 10 %
    for all such columns together.
    """

    count: int
    low: float
    high: float
    cells: int
    share: Fraction | None = None


@frozen(kw_only=True)
class PrivateLabels:
    """Labels found by a thresholded release, which costs an (epsilon, delta) of its own before anything else.

    keep: at most so many, those with the largest noisy counts. share: of the run's epsilon and delta.
    """

    keep: int
    share: Fraction = Fraction(1, 10)
