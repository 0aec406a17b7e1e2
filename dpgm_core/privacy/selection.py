"""Private selection: scores of candidates, and choices among them by the exponential mechanism.

Sensitivity. Core alone computes scores from records; nobody hands in a score function. `TableDistance` says how far one
person moves them, with the proof. Scores that one person moves by at most U units each, up or down, have R = 2 U; that
is where the textbook's factor 1/2 stands, h = e / (2 U). It may be left out only for scores that all move the same way,
which distances do not.

Distribution. Candidate c is chosen with probability proportional to w[k_c], k_c = min(max score - score_c, K), w a
public table with w[k] = round(2^62 exp(-h k)) and h K at most 28 ln 2. Of 128 random bits, U, the candidate is taken
in whose share of the cumulated weights floor(U total / 2^128) lies: always the same two words, no rejection, so the
time does not depend on the scores.

Cost. Let one person move the vector of scores by v with max v - min v <= R. Then the choice is e-DP, e = h R + 2^-30,
and e^2/8-zCDP (McSherry and Talwar, 2007, Mechanism design via differential privacy; Cesar and Rogers, 2021).

Proof. Before `temperature`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.exact_numbers import decimal_text, round_down, sqrt_floor, whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.graphs import Clique, components, neighbours_of
from dpgm_core.structure.structure import Structure

__all__ = [
    "MAX_TABLE_LENGTH",
    "MAX_TEMPERATURE",
    "MIN_TABLE_LENGTH",
    "MIN_TEMPERATURE",
    "SCORE_GRID",
    "SLACK",
    "TableDistance",
    "choose_units",
    "cost_of",
    "count_forest",
    "draw_candidates",
    "forest_ends",
    "probabilities",
    "table_length",
    "temperature",
]

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
    less move c by at most r, and r rows in place of r others by at most 2 r. Nor does the mean distance of a group,
    sum w |n - m|_1 / sum w with the rounded weights, move further: it is a convex combination of such distances.

    References
    ----------
    McKenna et al. (2022), AIM.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
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
        if not all(isinstance(one, Fraction) and one.numerator > 0 for one in self.weights):
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
        distinct = {id(one): one for one in weights}  # thousands of candidates share few weights, slow to hash
        most = max(distinct.values())
        rounded = {key: max(1, round(one / most * WEIGHT_GRID)) for key, one in distinct.items()}
        return np.array([rounded[id(one)] for one in weights], np.int64)

    @property
    def whole_offsets(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """b in units of 1/1024 record, (candidates,)."""
        offsets = np.asarray(self.offsets or (0.0,) * len(self.candidates.groups))
        units: np.ndarray[tuple[int], np.dtype[np.int64]] = np.rint(
            np.clip(offsets, -_MAX_RECORDS, _MAX_RECORDS) * SCORE_GRID
        ).astype(np.int64)
        return units


# Proof of the cost, with h, k, K, w, R and e as in the documentation of the module.
#
# Clamping at K is max(score, max - K). Where scores move by between min v and max v, so does their maximum, and so do
# clamped scores: the range of what the weights see stays R. A weight differs from 2^62 exp(-h k) by rounding, a
# relative 2^-34 at most as the least weight is above 2^33, and by a double's exp, below 2^-45. Each probability
# differs from weight / total by less than 2^-128, relative 2^-78, as no share is below 2^-29 / 100,000. So log P(c) - h
# score_c, scores clamped, is a constant up to 2^-33 for either data set, and log P(c) - log P'(c) varies over c by at
# most h R + 4 * 2^-33: the mechanism has that bounded range. Its values are on both sides of 0, so it is e-DP, and by
# Cesar and Rogers (2021), Bounding, concentrating, and truncating, (e^2/8)-zCDP.

#: What is charged beyond h R, for the rounding of the weights.
SLACK = Fraction(1, 2**30)
#: Entries of a table; more would be slow to make and not stay in the cache.
MAX_TABLE_LENGTH, MIN_TABLE_LENGTH = 2**20, 2
#: And at most so many where scores are in units of less than a record.
_SMALL_TABLE = 2**18
_MAX_EXPONENT = 28 * math.log(2)  # of h K
_WEIGHT, _WORD = 62, 128
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

#: What has a table; a larger h would choose the best with certainty to 28 bits, whatever the rest.
MIN_TEMPERATURE = Fraction(_MAX_EXPONENT) / MAX_TABLE_LENGTH
MAX_TEMPERATURE = round_down(Fraction(_MAX_EXPONENT) / (MIN_TABLE_LENGTH - 1))


def temperature(budget: Budget, picks: int, move: int) -> Fraction:
    """Return the temperature of choices that cost a budget: the calibration of the exponential mechanism.

    Parameters
    ----------
    budget : Budget
        Of all picks together; pure or zCDP.
    picks : int
        The number of choices.
    move : int
        U, the units by which one person moves a score at most; at least 1.

    Returns
    -------
    Fraction
        h, rounded down, so that `cost_of` is at most the budget.

    Raises
    ------
    BudgetError
        Where h would be so small that there is no table of weights for it, and for an (epsilon, delta).

    Examples
    --------
    >>> float(temperature(Budget.pure(1), 10, 1))
    0.049999...
    """
    whole("the number of picks", picks, least=1)
    whole("how far one person moves a score", move, least=1)
    if budget.kind == "approx":
        raise BudgetError(f"a choice costs epsilon or rho, not {budget}; give it its share of the session's rho")
    each = budget.epsilon / picks if budget.kind == "pure" else sqrt_floor(8 * budget.rho / picks)
    h = round_down(max(each - SLACK, Fraction(0)) / (2 * move))
    if not h or table_length(h) > MAX_TABLE_LENGTH:
        # A little more than the least, so that what is said in six digits is enough.
        least = (MIN_TEMPERATURE * 2 * move + SLACK) * Fraction(100_001, 100_000)
        would = (
            f"epsilon = {decimal_text(least * picks)}"
            if budget.kind == "pure"
            else f"rho = {decimal_text(least**2 / 8 * picks)}"
        )
        raise BudgetError(
            f"{budget} for {picks} pick(s) is too little to choose by: every candidate would be as likely as any "
            f"other; give at least {would}, or choose less often"
        )
    return min(h, MAX_TEMPERATURE)


def choose_units(budget: Budget, picks: int, person: int) -> tuple[int, Fraction]:
    """Return the units of a record for scores, and the temperature per unit, as fine as a small table allows.

    Units are finer than a record where choices are sharp. person: by how many records one person moves a score at most.
    Raises BudgetError like `temperature`.

    >>> choose_units(Budget.pure(1), 1, 1)[0]
    1024
    """
    grid = SCORE_GRID
    while grid > 1:
        with suppress(BudgetError):
            h = temperature(budget, picks, grid * person)
            if table_length(h) <= _SMALL_TABLE:
                return grid, h
        grid //= 2
    return 1, temperature(budget, picks, person)


def cost_of(h: Fraction, picks: int, move: int, kind: Literal["pure", "zcdp"]) -> Budget:
    """Return the cost of so many picks at temperature h, pure or zCDP: that of the module, composed."""
    each = 2 * h * move + SLACK
    return Budget("pure", epsilon=picks * each) if kind == "pure" else Budget("zcdp", rho=picks * each**2 / 8)


def draw_candidates(
    scores: IntArray, h: Fraction, picks: int, randomness: Randomness, ends: IntArray | None = None
) -> list[int]:
    """Draw `picks` candidates without replacement, each by the exponential mechanism among those left.

    scores: (candidates,), whole numbers. ends: of a forest, (candidates, 2), the trees that each pair connects, as
    numbers; pairs inside a tree are left out from then on. There must be so many picks left. Source of the cost of
    several picks: Durfee and Rogers (2019); which are left is a function of the picks before.
    """
    left, trees = np.arange(len(scores)), None if ends is None else np.array(ends)
    picked = []
    for _ in range(picks):
        above, below = _cumulated(scores[left], h)
        high, low = (int(word) for word in randomness.words(2))
        share = ((high << 64 | low) * ((int(above[-1]) << 32) + int(below[-1]))) >> _WORD
        first, second = np.uint64(share >> 32), np.uint64(share & 2**32 - 1)
        # how many totals are at most the share; all are looked at, whatever it is
        place = int(np.count_nonzero((above < first) | ((above == first) & (below <= second))))
        picked.append(int(left[place]))
        if trees is None:
            left = np.delete(left, place)
        else:
            one, other = trees[left[place]]
            trees[trees == other] = one
            left = left[trees[left, 0] != trees[left, 1]]
    return picked


def forest_ends(pairs: Sequence[Clique], connected: Iterable[Clique]) -> IntArray:
    """Return the trees that each pair would connect, (pairs, 2), as numbers.

    connected: cliques whose attributes are in one tree before. Raises StructureError for pairs that are none, or lie
    inside a tree.

    >>> forest_ends([("a", "c"), ("b", "d")], [("a", "b")]).tolist()
    [[0, 1], [0, 2]]
    """
    if not all(len(pair) == 2 for pair in pairs):
        raise StructureError("a forest is chosen among pairs of attributes")
    names = dict.fromkeys(name for clique in (*connected, *pairs) for name in clique)
    trees = components(neighbours_of(names, connected))
    tree = {name: number for number, names in enumerate(trees) for name in names}
    ends = np.array([[tree[one], tree[other]] for one, other in pairs], np.int64)
    if np.any(ends[:, 0] == ends[:, 1]):
        raise StructureError("a pair of the forest's candidates is connected before; leave it out")
    return ends


def count_forest(ends: IntArray, order: Iterable[int] | None = None) -> int:
    """Return how many pairs connect two trees, one after the other: the edges of every largest forest of all of them.

    ends: of each pair, from `forest_ends`. order: of the pairs; all if left out.

    >>> count_forest(np.array([[0, 1], [1, 2], [0, 2]])), count_forest(np.array([[0, 1], [1, 2], [0, 2]]), [2, 0])
    (2, 2)
    """
    above = list(range(int(ends.max(initial=-1)) + 1))

    def root(tree: int) -> int:
        while above[tree] != tree:
            above[tree] = tree = above[above[tree]]
        return tree

    edges = 0
    for one, other in (ends if order is None else ends[list(order)]).tolist():
        first, second = root(one), root(other)
        above[second] = first
        edges += first != second
    return edges


def probabilities(scores: IntArray, h: Fraction) -> list[Fraction]:
    """Return the exact distribution of one pick: the probability of each candidate."""
    cumulated = [0, *((int(one) << 32) + int(other) for one, other in zip(*_cumulated(scores, h), strict=True))]
    # The words U with U total / 2^128 >= cumulated begin at its quotient, rounded up.
    starts = [-(-(one << _WORD) // cumulated[-1]) for one in cumulated]
    return [Fraction(end - start, 1 << _WORD) for start, end in itertools.pairwise(starts)]


def table_length(h: Fraction) -> int:
    """Return the length of the table of weights of a temperature: those that are not below 2^-28 of the largest."""
    return math.floor(_MAX_EXPONENT / h) + 1


def _cumulated(scores: IntArray, h: Fraction) -> tuple[_Words, _Words]:
    """Return the sums of weights up to each candidate, above 2^32 and below, as they have more than 64 bits."""
    table = _table(h)
    weights = table[np.minimum(scores.max() - scores, len(table) - 1)]
    half, rest = np.uint64(32), np.uint64(2**32 - 1)
    above, below = np.cumsum(weights >> half, dtype=np.uint64), np.cumsum(weights & rest, dtype=np.uint64)
    return above + (below >> half), below & rest


@lru_cache(maxsize=8)
def _table(h: Fraction) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the weights w[0], ..., w[K]."""
    steps = np.arange(table_length(h))
    weights: np.ndarray[Any, np.dtype[np.uint64]] = np.rint(np.exp(-float(h) * steps) * 2.0**_WEIGHT).astype(np.uint64)
    weights.flags.writeable = False
    return weights
