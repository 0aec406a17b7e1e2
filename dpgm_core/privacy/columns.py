"""Columns of any type: what finding their types, ranges and labels costs, all in one release.

Of each column persons by label and persons by shape (`dpgm_core.domain.shapes`) are counted. A person counts once for a
label and for at most r labels of a column; likewise for shapes.

Distribution. Discrete Gaussian noise of variance sigma^2 is added to the count of each shape there is, and to that of
each label that somebody has. A label and its noisy count are published where that is at least T; of a label that nobody
has nothing is. Shapes are public, so any of their noisy counts may be published.

Cost. With c columns neighbours differ in at most s = 2 r c counts (add-remove) or s = 4 r c (replace-one), by one each.
Let delta_1 be such that discrete Gaussian noise on s counts that move by one each is (epsilon, delta_1)-DP, and q =
P(Z >= T - 1), the probability that a label of one person is published. The release is (epsilon, delta_1 + (1 +
e^epsilon) r c q)-DP.

Proof. Before `JointThreshold`. Source: as for labels (`dpgm_core.privacy.labels`), with Gaussian noise as in Canonne,
Kamath, Steinke (2020) and the cells of one person taken apart as in Bun, Nissim, Stemmer (2016), section 3.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

from attrs import evolve, field, frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.domain.shapes import EDGE
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.gaussian import discrete_delta, least_variance
from dpgm_core.privacy.samplers import bounded_variance, discrete_gaussian
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity

__all__ = ["ColumnsPlan", "JointThreshold", "joint_threshold"]

# Proof of the cost, with c, r, s, T, q, delta_1 as in the documentation of the module.
#
# Let D and D' be neighbours, B the records that both have, and call a label own to D if D has it and D' has it not.
# Nobody in B has such a label, so only the person in D who is not in D' has it: its count is 1, and D has at most r c
# of them. Let M* publish as M does, but nothing of own labels. All noise is independent, so that M(D), given that no
# own label of D is published, has the distribution of M*(D). With delta_2 = r c q at least the probability that one is,
# for every event A:
#   (1) P(M(D) in A) <= P(M*(D) in A) + delta_2, and (2) P(M*(D) in A) <= P(M(D) in A) + delta_2,
# as P(M(D) in A) >= (1 - delta_2) P(M*(D) in A). Both also hold for D'. M* adds noise to the counts of the shapes, and
# of the labels that D and D' both have. These are the same cells for D and D'; their counts differ by at most one in at
# most s cells, and what is published is a function of the noisy counts. So P(M*(D) in A) <= e^epsilon P(M*(D') in A) +
# delta_1. Together: P(M(D) in A) <= delta_2 + delta_1 + e^epsilon (P(M(D') in A) + delta_2). QED
#
# Rounding. q is bounded by exp(-x^2 / 2) / (x sqrt(2 pi)), x = (T - 2) / sigma, as P(Z >= m) <= P(N >= m - 1) for
# whole m (Canonne, Kamath, Steinke, Proposition 25) and by Mills' ratio; exp is rounded up, x down where it divides.

_UP = decimal.Context(prec=40, rounding=decimal.ROUND_CEILING)
_DOWN = decimal.Context(prec=40, rounding=decimal.ROUND_FLOOR)
_NEAREST = decimal.Context(prec=40)  # exp is correctly rounded to the nearest in any context
#: Just below sqrt(2 pi).
_ROOT = Fraction("2.50662827463")
_MAX_EPSILON = 64
_MAX_THRESHOLD = 2**52
_MAX_CELLS = 2**20
#: Of the delta, for noise on counts; the rest is for cells of one person.
_OF_NOISE = Fraction(9, 10)


def _relation(name: Neighbours | str) -> Neighbours:
    return Neighbours.of(name)


@frozen(kw_only=True)
class JointThreshold:
    """Discrete Gaussian noise on the labels and shapes of several columns; labels are published from a threshold on.

    Parameters
    ----------
    variance : Fraction
        sigma^2, in persons**2.
    threshold : int
        T, in persons.
    labels : int
        r, the most labels, and the most shapes, of one person in a column.
    columns : int
        c.
    neighbours : Neighbours or str
        The neighbouring relation.

    Raises
    ------
    BudgetError
        For values out of range.

    Examples
    --------
    >>> noise = JointThreshold(variance=Fraction(400), threshold=130, labels=1, columns=2, neighbours="add-remove")
    >>> float(noise.delta(Fraction(1, 2)))
    7.26...e-09
    """

    variance: Fraction
    threshold: int
    labels: int
    columns: int
    neighbours: Neighbours = field(converter=_relation)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.variance, Fraction) or bounded_variance(self.variance) != self.variance:
            raise BudgetError(f"the noise of columns needs a variance that can be drawn, got {self.variance!r:.80}")
        whole("the threshold of columns", self.threshold, least=3, most=_MAX_THRESHOLD)
        whole("how many labels a person has", self.labels, least=1, most=_MAX_CELLS)
        whole("the number of columns", self.columns, least=1, most=_MAX_CELLS)

    @property
    def own(self) -> int:
        """The most labels that one person alone has, r c."""
        return self.labels * self.columns

    @property
    def moved(self) -> int:
        """s, how many counts one person moves, by one each."""
        return self.own * (2 if self.neighbours is Neighbours.ADD_REMOVE else 4)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise, persons."""
        return math.sqrt(self.variance)

    @property
    def edge(self) -> int:
        """The noisy count from which shapes are published, persons."""
        return math.ceil(EDGE * self.sigma)

    @property
    def published(self) -> Fraction:
        """q, rounded up: the probability that a label of one person only is published."""
        distance = Fraction(self.threshold - 2)
        square = distance * distance / self.variance
        tail = _exp_up(-square / 2) / (_ROOT * _root_down(square))
        return min(Fraction(1), tail)

    def delta(self, epsilon: Fraction) -> Fraction:
        """Return the delta of the release at an epsilon."""
        shift = Sensitivity(l0=self.moved, l1=self.moved, l2_squared=self.moved, linf=1)
        noise = Fraction(discrete_delta(self.variance, shift, epsilon))
        return min(Fraction(1), noise + (1 + _exp_up(epsilon)) * self.own * self.published)

    def likely(self, chance: float = 0.9) -> int:
        """Return how many persons a cell needs to be published with about this probability, which is at least 1/2."""
        from statistics import NormalDist

        return self.threshold + math.ceil(NormalDist().inv_cdf(chance) * self.sigma)

    def draw(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many cells; draw it after the charge."""
        return discrete_gaussian(self.variance, count, randomness)


def joint_threshold(budget: Budget, labels: int, columns: int, neighbours: Neighbours | str) -> JointThreshold:
    """Return the noise of several columns within an (epsilon, delta), with the least threshold that this allows.

    Raises BudgetError for another kind of budget, and for one that is too small for any noise that can be drawn.

    Examples
    --------
    >>> noise = joint_threshold(Budget.approx("0.15", "5e-7"), 1, 15, "add-remove")
    >>> round(float(noise.variance) ** 0.5), noise.threshold, noise.delta(Fraction("0.15")) <= Fraction("5e-7")
    (143, 848, True)
    """
    check_budget(budget)
    if budget.kind != "approx" or not budget.epsilon or not budget.delta:
        raise BudgetError(f"columns of any type are found for an (epsilon, delta), got {budget}")
    relation = Neighbours.of(neighbours)
    epsilon = min(budget.epsilon, Fraction(_MAX_EPSILON))
    moved = labels * columns * (2 if relation is Neighbours.ADD_REMOVE else 4)
    shift = Sensitivity(l0=moved, l1=moved, l2_squared=moved, linf=1)
    noise = JointThreshold(
        variance=least_variance(discrete_delta, shift, epsilon, budget.delta * _OF_NOISE),
        threshold=3,
        labels=labels,
        columns=columns,
        neighbours=relation,
    )

    def holds(threshold: int) -> bool:
        one = evolve(noise, threshold=threshold)
        return (1 + _exp_up(epsilon)) * one.own * one.published <= budget.delta * (1 - _OF_NOISE)

    low, high = 2, 3
    while not holds(high):
        low, high = high, 2 * high
        if high > _MAX_THRESHOLD:
            raise BudgetError(f"{budget} is too little to find columns by; give a larger budget")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return evolve(noise, threshold=high)


def _exp_up(exponent: Fraction) -> Fraction:
    """e^exponent or just above it."""
    return Fraction(_UP.next_plus(_NEAREST.exp(_UP.divide(exponent.numerator, exponent.denominator))))


def _root_down(square: Fraction) -> Fraction:
    """The square root or just below it."""
    return Fraction(_DOWN.next_minus(_DOWN.sqrt(_DOWN.divide(square.numerator, square.denominator))))


@frozen(kw_only=True)
class ColumnsPlan:
    """What a run will find of its columns of any type, before anything else.

    Parameters
    ----------
    columns : tuple of str
        The attributes.
    budget : Budget
        The (epsilon, delta) of all of them together.
    noise : JointThreshold
        The noise that the budget buys.
    """

    columns: tuple[str, ...]
    budget: Budget
    noise: JointThreshold

    @property
    def what(self) -> str:
        """What the budget buys, in a word."""
        return f"types, ranges and labels of {len(self.columns)} columns"

    def note(self) -> str:
        """Return what a plan says of the columns."""
        noise = self.noise
        return (
            f"{self.what} are found first, for {self.budget}: a label, or a range of numbers, that "
            f"{noise.threshold:,} persons have is found about every second time, one that {noise.likely():,} have nine "
            f"times in ten; sizes are shown as if each column had as many as it may have"
        )
