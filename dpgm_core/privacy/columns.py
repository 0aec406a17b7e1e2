"""Columns of any type: what finding their types, ranges and labels costs, in one account with the tables.

First persons by shape (`dpgm_core.domain.shapes`) of each column, then persons by label of those columns whose shapes
leave labels open, and by cell of those with numbers or dates, of a few also by part of a cell; last, persons by value
of columns of numbers of which cells show that few values are common. A person counts once for a label and for at most r
labels of a column; likewise for values, shapes, cells, and parts of cells, which count as another column with cells.

Distribution. Discrete Gaussian noise is added to the count of each shape there is; noise of variance sigma^2 to that of
each common label, a public list, and of each other label that somebody has; and noise of a variance of its own to each
cell of a place that the shapes leave open. A label that is not common is published with its noisy count where that is
at least T; of such a label that nobody has nothing is. Shapes, cells and common labels are public, so any of their
noisy counts may be published. Values are labels of which none is common, with a variance and a T of their own.

Cost. In k columns neighbours differ in at most r k counts of each kind (add-remove) or 2 r k (replace-one), by one
each. Let the noise of all steps, and tables that are measured after them, cost mu^2 together
(`dpgm_core.privacy.gaussian.gaussian_mu_squared`), delta_1 be what mu implies at epsilon (`dpgm_core.privacy.gdp`), and
q = P(Z >= T - 1), the probability that a label of one person is published. With k q summed over labels of k columns
and values of others all of it is (epsilon, delta_1 + (1 + e^epsilon) r k q)-DP. The search alone is so with its own mu,
at a smaller epsilon and delta.

Proof. Before `ColumnsNoise`. Source: as for labels (`dpgm_core.privacy.labels`), with Gaussian noise as in Canonne,
Kamath, Steinke (2020) and the labels of one person taken apart as in Bun, Nissim, Stemmer (2016), section 3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from attrs import evolve, field, frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import decimal_text, exp_up, sqrt_floor, whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.domain.shapes import EDGE
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.gaussian import gaussian_mu_squared, gaussian_variance
from dpgm_core.privacy.gdp import DRAWN_APART, MOVED_CELLS, gdp_delta, gdp_mu_squared
from dpgm_core.privacy.samplers import bounded_variance, discrete_gaussian
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms

__all__ = ["ColumnsNoise", "ColumnsPlan", "plan_columns"]

# Proof of the cost, with k, r, T, q, mu, delta_1 as in the documentation of the module.
#
# Let D and D' be neighbours, and call a label own to D if it is not common, and D has it and D' has it not. Nobody whom
# both have has it, so only the person in D who is not in D' does: its count is 1, and D has at most r k of them. Let M*
# publish as M does, with the same noise, but nothing of own labels: they differ only where an own label is published,
# with a probability of at most delta_2 = r k q whatever shapes and cells say, which `ColumnsPlan.noise` ensures for
# each k of labels and of values. Values are labels here, and all of them may be own.
# So for every event A:
#   (1) P(M(D) in A) <= P(M*(D) in A) + delta_2, and (2) P(M*(D) in A) <= P(M(D) in A) + delta_2.
# Both also hold for D'. M* adds noise to the counts of the shapes and, of the columns that these leave open, to those
# of common labels, of other labels that D and D' both have, and of cells. These are the same for D and D', they differ
# by at most one in as many as the documentation says, and what is published is a function of the noisy counts; the
# later steps have no more than the same mu whatever was published before. So M* is mu-GDP, as adaptive composition adds
# mu^2 (Dong, Roth, Su 2022, Theorem 3.2), and P(M*(D) in A) <= e^epsilon P(M*(D') in A) + delta_1. Together:
# P(M(D) in A) <= delta_2 + delta_1 + e^epsilon (P(M(D') in A) + delta_2). QED
#
# With tables. Let R release tables of the records, mu_2-GDP for each outcome of M that it is given, and A be an event
# of both outcomes. (1) and (2) hold for (M, R) too: M and M* have the same noise, so their outcomes, and the tables
# after them, differ only where an own label is published. (M*, R) adds mu^2 and mu_2^2. A ledger is charged twice: what
# M alone costs before M, the rest before R. If nothing follows M, the first charge is the whole cost.
#
# Instead of R, after a look at what M found, the rest may be spent on X, which is (epsilon - epsilon_1, delta_X)-DP;
# epsilon_1 is of the first charge. Let R follow where the outcome of M is in B, and X elsewhere. In B, M* and R have at
# most e^epsilon and delta_1; elsewhere M*, which is (epsilon_1, delta_s)-DP, and X at most e^epsilon and delta_s +
# delta_X. So all is (epsilon, delta_1 + (1 + e^epsilon) delta_2 + delta_s + delta_X)-DP. Therefore the first charge has
# all of the delta but delta_X: the parts `_OF_NOISE`, `_OF_LABELS` and `_OF_SEARCH` of it.
#
# Rounding. q is bounded by exp(-x^2 / 2) / (x sqrt(2 pi)), x = (T - 2) / sigma, as P(Z >= m) <= P(N >= m - 1) for
# whole m (Canonne, Kamath, Steinke, Proposition 25) and by Mills' ratio; exp is rounded up, x down where it divides.
# delta_1 has the (1 + e^epsilon) `DRAWN_APART` of each count that drawn noise differs by, the tables `MOVED_CELLS`.

#: Just below sqrt(2 pi).
_ROOT = Fraction("2.50662827463")
_MAX_EPSILON = 12
#: Up to this mu^2 the noise of tables is not too narrow to have a price (`dpgm_core.privacy.session_account`).
_MAX_MU_SQUARED = Fraction(6)
_MAX_THRESHOLD = 2**52
_MAX_CELLS = 2**20
#: Of the delta, for noise on counts; for labels of one person; and for the noise of the search where other tables
#: follow. What is left is not charged before the search.
_OF_NOISE, _OF_LABELS, _OF_SEARCH = Fraction(7, 10), Fraction(1, 10), Fraction(1, 10)
#: Of mu^2, for shapes, which are few, and for values; the rest is for labels and cells.
_OF_SHAPES, _OF_VALUES = Fraction(1, 3), Fraction(1, 30)
#: The variance of the noise of cells, over that of labels, which need a threshold.
_OF_CELLS = 4


def _relation(name: Neighbours | str) -> Neighbours:
    return Neighbours.of(name)


@frozen(kw_only=True)
class ColumnsNoise:
    """Discrete Gaussian noise on the shapes of columns, on the labels of some, published from T on, and on cells.

    Parameters
    ----------
    shapes_variance, variance, cells_variance, values_variance : Fraction
        Of the counts of shapes, sigma^2 of those of labels, and those of cells and of values, persons**2.
    threshold, values_threshold : int
        T, in persons; for labels that are not common, and for values.
    columns, labelled, celled, valued : int
        How many columns there are, k, how many of these have labels searched, how many cells or parts of cells
        counted, together, and how many have values searched.
    labels : int
        r, the most labels, and the most shapes, of one person in a column.
    neighbours : Neighbours or str
        The neighbouring relation.

    Raises
    ------
    BudgetError
        For values out of range.

    Examples
    --------
    >>> variances = {"shapes_variance": Fraction(1600), "variance": Fraction(400), "cells_variance": Fraction(1600)}
    >>> counts = {"columns": 2, "labelled": 2, "celled": 0, "labels": 1}
    >>> noise = ColumnsNoise(**variances, **counts, threshold=130, neighbours="add-remove")
    >>> float(noise.delta(Fraction(1, 2)))
    4.23...e-10
    """

    shapes_variance: Fraction
    variance: Fraction
    cells_variance: Fraction
    threshold: int
    columns: int
    labelled: int
    celled: int
    labels: int
    neighbours: Neighbours = field(converter=_relation)
    values_variance: Fraction = Fraction(1)
    values_threshold: int = 3
    valued: int = 0

    def __attrs_post_init__(self) -> None:
        for variance in (self.shapes_variance, self.variance, self.cells_variance, self.values_variance):
            if not isinstance(variance, Fraction) or bounded_variance(variance) != variance:
                raise BudgetError(f"the noise of columns needs a variance that can be drawn, got {variance!r:.80}")
        for threshold in (self.threshold, self.values_threshold):
            whole("the threshold of columns", threshold, least=3, most=_MAX_THRESHOLD)
        whole("how many labels a person has", self.labels, least=1, most=_MAX_CELLS)
        whole("the number of columns", self.columns, least=1, most=_MAX_CELLS)
        whole("the number of columns with labels", self.labelled, least=0, most=self.columns)
        whole("the number of columns with cells", self.celled, least=0, most=2 * self.columns)
        whole("the number of columns with values", self.valued, least=0, most=self.columns)

    @property
    def edge(self) -> int:
        """The noisy count from which shapes are published, persons."""
        return math.ceil(EDGE * self.shapes_sigma)

    @property
    def low(self) -> int:
        """The noisy count from which common labels are published, which have noise whether they occur or not."""
        return math.ceil(EDGE * self.sigma)

    def least(self, is_common: bool) -> int:
        """Return the noisy count from which a label is published."""
        return self.low if is_common else self.threshold

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of labels, persons."""
        return math.sqrt(self.variance)

    @property
    def cells_sigma(self) -> float:
        """The standard deviation of the noise of cells, persons."""
        return math.sqrt(self.cells_variance)

    @property
    def shapes_sigma(self) -> float:
        """The standard deviation of the noise of shapes, persons."""
        return math.sqrt(self.shapes_variance)

    @property
    def values_sigma(self) -> float:
        """The standard deviation of the noise of values, persons."""
        return math.sqrt(self.values_variance)

    @property
    def published(self) -> Fraction:
        """q, rounded up: the probability that a label of one person only is published."""
        return _chance_of_one(self.threshold, self.variance)

    @property
    def mu_squared(self) -> Fraction:
        """mu^2 of the noise of all steps."""
        counted = (
            (self.shapes_variance, self.columns), (self.variance, self.labelled), (self.cells_variance, self.celled),
            (self.values_variance, self.valued),
        )  # fmt: skip
        return sum((gaussian_mu_squared(one, self._moved(columns)) for one, columns in counted if columns), Fraction(0))

    def delta(self, epsilon: Fraction, tables: Fraction = Fraction(0)) -> Fraction:
        """Return the delta at an epsilon of the search, and of tables after it that cost this mu^2."""
        epsilon = min(epsilon, Fraction(_MAX_EPSILON))  # what holds there holds at a larger one
        twice, cells = 1 + exp_up(epsilon), self._moved(self.columns + self.labelled + self.celled + self.valued)
        drawn = (cells + (MOVED_CELLS if tables else 0)) * Fraction(DRAWN_APART)
        values = self.valued * _chance_of_one(self.values_threshold, self.values_variance)
        own = self.labels * (self.labelled * self.published + values)
        return min(Fraction(1), Fraction(gdp_delta(self.mu_squared + tables, epsilon)) + twice * (drawn + own))

    def likely(self, chance: float = 0.9) -> int:
        """Return how many persons a label needs to be published with about this probability, which is at least 1/2."""
        return self.threshold + math.ceil(NormalDist().inv_cdf(chance) * math.sqrt(self.variance))

    def draw_shapes(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many shapes; draw it after the charge."""
        return discrete_gaussian(self.shapes_variance, count, randomness)

    def draw_cells(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many cells; draw it after the charge."""
        return discrete_gaussian(self.cells_variance, count, randomness)

    def draw_labels(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many labels; draw it after the charge."""
        return discrete_gaussian(self.variance, count, randomness)

    def draw_values(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many values; draw it after the charge."""
        return discrete_gaussian(self.values_variance, count, randomness)

    def _moved(self, columns: int) -> int:
        return self.labels * columns * (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)


def _chance_of_one(threshold: int, variance: Fraction) -> Fraction:
    """Return q, rounded up, for T and the variance of the noise."""
    square = Fraction(threshold - 2) ** 2 / variance
    return min(Fraction(1), exp_up(-square / 2) / (_ROOT * sqrt_floor(square)))


def _least_threshold(chance: Fraction, variance: Fraction) -> int | None:
    """Return the least T with q of at most this chance; None where it is too large."""
    low, high = 2, 3
    while _chance_of_one(high, variance) > chance:
        low, high = high, 2 * high
        if high > _MAX_THRESHOLD:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _chance_of_one(middle, variance) > chance else (low, middle)
    return high


@frozen(kw_only=True)
class ColumnsPlan:
    """What a run will find of its columns of any type, before anything else.

    Parameters
    ----------
    columns : tuple of str
        The attributes.
    whole : Budget
        The (epsilon, delta) of the search and of the tables after it.
    share : Fraction
        Of mu^2, for the search.
    labels : int
        r, the most labels, and the most shapes, of one person in a column.
    neighbours : Neighbours or str
        The neighbouring relation.

    Raises
    ------
    BudgetError
        For another kind of budget, and for one that is too small for any noise that can be drawn.

    Examples
    --------
    >>> whole = Budget.approx(3, "1e-6")
    >>> plan = ColumnsPlan(columns=("a", "b"), whole=whole, share=Fraction(1, 20), labels=1, neighbours="add-remove")
    >>> noise = plan.noise(2)
    >>> round(noise.shapes_sigma), noise.threshold, noise.delta(Fraction(3), plan.tables.mu_squared) <= whole.delta
    (17, 77, True)
    >>> print(plan.budget, plan.tables)
    (epsilon, delta) = (~0.651438, 9e-07) mu = ~0.622188 (GDP)
    """

    columns: tuple[str, ...]
    whole: Budget
    share: Fraction
    labels: int
    neighbours: Neighbours = field(converter=_relation)

    def __attrs_post_init__(self) -> None:
        check_budget(self.whole)
        if self.whole.kind != "approx" or not self.whole.epsilon or not self.whole.delta:
            raise BudgetError(f"columns of any type are found for an (epsilon, delta), got {self.whole}")
        if not isinstance(self.share, Fraction) or not 0 < self.share < 1:
            raise BudgetError(f"the share of columns of any type must lie between 0 and 1, got {self.share!r:.60}")
        self.noise(len(self.columns), len(self.columns), len(self.columns))
        if not self.budget <= self.whole:
            raise BudgetError(
                f"finding columns of any type would take {self.budget} of {self.whole}; give them a smaller share"
            )

    @property
    def budget(self) -> Budget:
        """What the search alone costs, (epsilon, delta)."""
        search = Budget("gdp", mu_squared=self._mu_squared * self.share)
        charged = self.whole.delta * (_OF_NOISE + _OF_LABELS + _OF_SEARCH)
        return evolve(search.to_approx(self.whole.delta * _OF_SEARCH), delta=charged)

    @property
    def tables(self) -> Budget:
        """What is left for tables, in mu."""
        return Budget("gdp", mu_squared=self._mu_squared * (1 - self.share))

    @property
    def _mu_squared(self) -> Fraction:
        epsilon = min(self.whole.epsilon, Fraction(_MAX_EPSILON))
        try:
            return min(gdp_mu_squared(epsilon, self.whole.delta * _OF_NOISE), _MAX_MU_SQUARED)
        except BudgetError:
            raise self._too_little() from None

    @property
    def what(self) -> str:
        """What the budget buys, in a word."""
        return f"types, ranges and labels of {len(self.columns)} columns"

    def noise(self, labelled: int, celled: int = 0, valued: int = 0) -> ColumnsNoise:
        """Return the noise where so many columns have labels searched, cells, and values, with the least thresholds."""
        mu_squared = self._mu_squared * self.share
        moved = self.labels * (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)
        try:
            shapes = gaussian_variance(mu_squared * _OF_SHAPES, moved * len(self.columns))
            values = gaussian_variance(mu_squared * _OF_VALUES, moved * max(1, valued))
            rest = mu_squared * (1 - _OF_SHAPES - _OF_VALUES) / max(1, _OF_CELLS * labelled + celled)
            labels = gaussian_variance(rest * _OF_CELLS * max(1, labelled), moved * max(1, labelled))
            cells = gaussian_variance(rest * max(1, celled), moved * max(1, celled))
        except BudgetError:
            raise self._too_little() from None
        # Half of the delta of labels each for those of texts and for values, which are searched later.
        own = self.whole.delta * _OF_LABELS / (1 + exp_up(min(self.whole.epsilon, Fraction(_MAX_EPSILON)))) / 2
        threshold = _least_threshold(own / (self.labels * max(1, labelled)), labels)
        values_threshold = _least_threshold(own / (self.labels * max(1, valued)), values)
        if threshold is None or values_threshold is None:
            raise self._too_little()
        noise = ColumnsNoise(
            shapes_variance=shapes,
            variance=labels,
            cells_variance=cells,
            values_variance=values,
            threshold=threshold,
            values_threshold=values_threshold,
            columns=len(self.columns),
            labelled=labelled,
            celled=celled,
            valued=valued,
            labels=self.labels,
            neighbours=self.neighbours,
        )
        if not noise.delta(self.whole.epsilon, self.tables.mu_squared) <= self.whole.delta * (_OF_NOISE + _OF_LABELS):
            raise self._too_little()  # such noise cannot be drawn
        return noise

    def _too_little(self) -> BudgetError:
        rows = "" if self.labels == 1 else f", or fewer rows of a person than {self.labels:,}"
        return BudgetError(
            f"{self.whole} is too little to find columns by; give a larger epsilon or delta, or fewer columns{rows}"
        )

    @property
    def unused(self) -> str | None:
        """What is said of an epsilon above the one that the noise is drawn for; None where all of it is used."""
        largest = Budget("gdp", mu_squared=_MAX_MU_SQUARED).to_approx(self.whole.delta * _OF_NOISE).epsilon
        used = min(largest, Fraction(_MAX_EPSILON))
        if self.whole.epsilon <= used:
            return None
        most = decimal_text(Fraction(math.floor(100 * used), 100))
        return (
            f"only {most} of epsilon = {decimal_text(self.whole.epsilon)} buys less noise in a search of columns and "
            f"in the tables after it, yet all of it is charged; choose at most {most}, or describe the columns"
        )

    def notes(self) -> tuple[str, ...]:
        """Return what a plan says of the columns."""
        noise = self.noise(len(self.columns), len(self.columns))
        note = (
            f"{self.what} are found first, for {self.budget}, and {self.whole} with the tables after it: a range of "
            f"numbers that {noise.edge:,} persons have, next to one that many have, and a label that "
            f"{noise.threshold:,} have, or fewer where not all columns have labels, is found about every second time, "
            f"a label that {noise.likely():,} have nine times in ten; sizes are shown as if each column had as many "
            "labels as it may have"
        )
        return (note,) if self.unused is None else (note, self.unused)


def plan_columns(columns: tuple[str, ...], whole: Budget, terms: Terms, share: Fraction) -> ColumnsPlan:
    """Return the plan for the columns of any type of a run with this budget; share: of its mu^2.

    Raises BudgetError where so few records are declared that nothing would be found.
    """
    plan = ColumnsPlan(
        columns=columns, whole=whole, share=share, labels=terms.rows_per_person, neighbours=terms.neighbours
    )
    records, needed = terms.declared_total, plan.noise(len(columns)).threshold
    if records is not None and needed > records / 2:
        raise BudgetError(
            f"{plan.what} are to be found for {whole}: a label needs {needed:,} persons, and {records:,.0f} records "
            "are declared; give a larger epsilon or fewer columns, or describe columns in the domain"
        )
    return plan
