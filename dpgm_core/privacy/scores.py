"""Selection, sensitivity: the scores of candidates, as values whose sensitivity core knows.

Nobody hands in a score function: core alone computes scores from records, and knows how far one person moves them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import StructureError
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure import Structure

__all__ = ["SCORE_GRID", "TableDistance"]

#: Distances are whole multiples of its inverse, records: predictions are rounded to it, which is post-processing.
SCORE_GRID = 1024
#: Weights are multiples of its inverse.
WEIGHT_GRID = 4096
#: Expected records of a cell beyond which a prediction is cut; far beyond any cell.
_MAX_RECORDS = 2.0**30


def _copied(value: FloatArray) -> FloatArray:
    """Return a plain, read-only copy: no subclass that would see true counts, and nobody changes it later."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "if":
        return value  # refused by its validator
    copy = np.array(value, np.float64)
    copy.flags.writeable = False
    return copy


def _numbers(groups: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    try:
        lists = [tuple(group) for group in groups]
        if not any(isinstance(number, bool) for group in lists for number in group):
            return tuple(tuple(operator.index(number) for number in group) for group in lists)
    except TypeError:
        pass
    raise StructureError("groups must be lists of numbers of candidates, such as [(0, 1), (1, 2)]")


def _fractions(weights: Iterable[Fraction]) -> tuple[Fraction, ...]:
    try:
        return tuple(weights)
    except TypeError:
        raise StructureError("weights must be positive Fractions, one for each candidate") from None


def _records(offsets: Iterable[float]) -> tuple[float, ...]:
    try:
        values = tuple(offsets)
        if not any(isinstance(one, bool) for one in values):
            return tuple(float(one) for one in values)
    except (TypeError, ValueError):
        pass
    raise StructureError("offsets must be finite numbers of records, one for each candidate")


def _shaped(instance: TableDistance, attribute: object, value: FloatArray) -> None:
    if not isinstance(instance.candidates, Structure):
        raise StructureError(f"candidates must be a Structure of them, got {type(instance.candidates).__name__}")
    if not isinstance(value, np.ndarray) or value.shape != (instance.candidates.cells,) or value.dtype.kind not in "if":
        raise StructureError(
            f"predictions must be {instance.candidates.cells} numbers, one for each cell of the candidates' tables"
        )
    if not np.isfinite(value).all():
        raise StructureError("predictions hold NaN or infinite values; they are expected numbers of records")


def _check_contrasts(candidates: Structure) -> None:
    names = dict.fromkeys(name for clique in candidates.cliques for name in clique)
    wide = [name for name in names if candidates.domain.shape((name,)) != (2,)]
    if wide:
        raise StructureError(
            f"contrasts are of binary attributes, and {', '.join(map(repr, wide[:5]))}"
            f"{' and others' if len(wide) > 5 else ''} do not have two labels; leave contrast out to compare tables"
        )
    if () in candidates.cliques:
        raise StructureError(
            "the contrast of no attributes is the number of records, which is no candidate; leave () out"
        )


@frozen(kw_only=True, eq=False)
class TableDistance:
    """Scores of candidates: how far the table of each is from a public prediction, w (|n - m|_1 - b).

    Parameters
    ----------
    candidates : Structure
        Their cliques, each once and none tied; n is the table of true counts.
    predicted : ndarray of shape (cells,)
        m, in records, in the order of the candidates' tables; a function of released values only.
    weights : tuple of Fraction, optional
        w, positive, one for each candidate. They are divided by the greatest and rounded to multiples of 1/4096.
    offsets : tuple of float, optional
        b, in records, one for each candidate.
    groups : tuple of tuple of int, optional
        The numbers of the candidates of each choice; a candidate may be in several. All candidates if left out.
    contrast : bool
        Score by |c - m_c| in place of |n - m|_1, for binary attributes: c is the sum of the products of the clique's
        codes (code 0 is +1, code 1 is -1), and m_c that of the prediction.

    Raises
    ------
    StructureError
        For values that do not fit, and for contrasts of other than binary attributes, by name.

    Notes
    -----
    Sensitivity. One person moves |n - m|_1 by at most r, rows per person, under add-remove and 2 r under replace-one
    (triangle inequality); m and b do not enter. The distance is not monotone: one person may move one score up and
    another one down. |c - m_c| moves no further: a row adds its own product, +1 or -1, to c, so that r rows more or
    less move c by at most r, and r rows in place of r others by at most 2 r.

    References
    ----------
    McKenna et al. (2022), AIM.

    Examples
    --------
    >>> from dpgm_core.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> TableDistance(candidates=pair, predicted=np.full(4, 25.0)).rounded.tolist()
    [25600, 25600, 25600, 25600]
    """

    candidates: Structure
    predicted: FloatArray = field(converter=_copied, validator=_shaped)
    weights: tuple[Fraction, ...] = field(default=(), converter=_fractions)
    offsets: tuple[float, ...] = field(default=(), converter=_records)
    groups: tuple[tuple[int, ...], ...] = field(default=(), converter=_numbers)
    contrast: bool = False

    def __attrs_post_init__(self) -> None:
        count = len(self.candidates.groups)
        if max(self.candidates.multiplicities) > 1:
            raise StructureError("candidates cannot be tied cliques: what one person adds to them is not told apart")
        if not isinstance(self.contrast, bool):
            raise StructureError(f"contrast must be True or False, got {type(self.contrast).__name__}")
        if self.contrast:
            _check_contrasts(self.candidates)
        for name, values in (("weights", self.weights), ("offsets", self.offsets)):
            if len(values) not in (0, count):
                raise StructureError(f"{len(values)} {name} do not fit {count} candidates; give one each, or none")
        if not all(isinstance(one, Fraction) and one > 0 for one in self.weights):
            raise StructureError("weights must be positive Fractions")
        if not np.isfinite(np.asarray(self.offsets, float)).all():
            raise StructureError("offsets must be finite numbers of records")
        for group in self.groups:
            if not group or len(set(group)) < len(group) or not all(0 <= number < count for number in group):
                raise StructureError(f"a group must hold numbers of candidates, below {count} and each once")

    @staticmethod
    def move(terms: Terms) -> int:
        """Return the sensitivity: how far one person moves an unweighted distance at most, in records.

        Examples
        --------
        >>> TableDistance.move(Terms(neighbours="replace-one", person="id", rows_per_person=3))
        6
        """
        return terms.rows_per_person * (2 if terms.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def choices(self) -> tuple[Sequence[int], ...]:
        """The candidates of each choice, by number."""
        return self.groups or (range(len(self.candidates.groups)),)

    @property
    def rounded(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """m in units of 1/1024 record, (cells,), cut far beyond any table, and at 0 where cells are compared."""
        least = -_MAX_RECORDS if self.contrast else 0.0
        units: np.ndarray[tuple[int], np.dtype[np.int64]] = np.rint(
            np.clip(self.predicted, least, _MAX_RECORDS) * SCORE_GRID
        ).astype(np.int64)
        return units

    @property
    def whole_weights(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """w over the greatest, in units of 1/4096, (candidates,); at least 1, and 4096 for the greatest."""
        weights = self.weights or (Fraction(1),) * len(self.candidates.groups)
        most = max(weights)
        return np.array([max(1, round(one / most * WEIGHT_GRID)) for one in weights], np.int64)

    @property
    def whole_offsets(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """b in units of 1/1024 record, (candidates,)."""
        offsets = np.asarray(self.offsets or (0.0,) * len(self.candidates.groups))
        units: np.ndarray[tuple[int], np.dtype[np.int64]] = np.rint(
            np.clip(offsets, -_MAX_RECORDS, _MAX_RECORDS) * SCORE_GRID
        ).astype(np.int64)
        return units
