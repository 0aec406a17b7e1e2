"""Private labels: the labels that occur, found by a stability histogram.

Sensitivity. Of each label that occurs the persons who have it are counted, each once for a label and for at most r
labels. The counts c and c' of neighbours differ in at most s labels, by one each: those of the person who comes or
goes, s = r (add-remove); or those that one of two persons has and the other has not, s = 2r (replace-one).

Distribution. Discrete Laplace noise of scale t is added, and label and noisy count are published where that is at least
T. A label that nobody has draws no noise and is never published, so the labels need not be known before. The noise is
`discrete_laplace`: whole numbers from random bits, no floating point on the way.

Cost. Let p = exp(-1/t) and q = P(Z >= T - 1) = p^(T-1) / (1 + p), T >= 1: the probability that a label of one person
is published. Where q <= 1 - p, this is (s/t, 1 - (1 - q)^r)-DP. No lesser delta holds at that epsilon.

Proof. Before `ThresholdNoise`, for whole-numbered noise, r labels and both relations. Source: Korolova, Kenthapadi,
Mishra, Ntoulas (2009), Releasing search queries and clicks privately, WWW; Bun, Nissim, Stemmer (2016), Simultaneous
private learning of multiple concepts, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import decimal_text, exp_down, exp_up, whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DomainError, OptionError
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.columns import ColumnsPlan, plan_columns
from dpgm_core.privacy.samplers import SCALE_LIMIT, discrete_laplace
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms

__all__ = [
    "LabelsPlan",
    "OpenPlan",
    "ThresholdNoise",
    "open_columns",
    "plan_labels",
    "threshold_noise",
    "with_placeholders",
]

# Proof of the cost, with c, t, T, p, q, r and s as in the documentation of the module.
#
# Noise is independent, so it is enough to look at the labels that differ one by one, with P and P' the distributions of
# what is published of one. (1) c, c' >= 1: both add noise and publish by the same rule, so the log ratio of P and P' is
# at most 1/t. (2) c = 0, c' = 1: P publishes nothing, with probability 1, and P' nothing with 1 - q, so P <= P' /
# (1 - q) <= e^(1/t) P' as q <= 1 - p. (3) c = 1, c' = 0: P publishes with probability q what P' never does; of
# "nothing" P has no more than P'. Labels of kind (3) are labels of one person, the one in the first data set: at most
# r. Let E be that none of them is published. P(not E) is at most 1 - (1 - q)^r, and on E the labels of kind (3) lose
# nothing and the others at most 1/t each: for every event A, P(A) <= P(not E) + P(A and E) <= 1 - (1 - q)^r +
# e^(s/t) P'(A). Conversely r labels that only one person has are published with probability 1 - (1 - q)^r in all, and
# never without that person. Keeping the largest noisy counts, or any other function of what is published, is
# post-processing. QED
#
# Several columns add up. Rounding: exp is rounded so that q is above and 1 - p below its true value, by less than 1e-55
# of it, and r q stands for 1 - (1 - q)^r, which it bounds; all else is exact.

#: Greater epsilons are taken for this one: nothing changes by then.
_MAX_EPSILON = 64
#: Thresholds stay far below where counts and noise are clamped.
_MAX_THRESHOLD = 2**52
_MAX_LABELS = 2**20


def _scale(instance: object, attribute: object, value: Any) -> None:
    if not isinstance(value, Fraction) or value <= 0 or max(value.as_integer_ratio()) >= SCALE_LIMIT:
        raise BudgetError(f"the noise of labels needs a positive scale, both parts below 2**32; got {value!r:.80}")


def _threshold(instance: object, attribute: object, value: Any) -> None:
    whole("the threshold of labels", value, least=1, most=_MAX_THRESHOLD)


def _labels(instance: object, attribute: object, value: Any) -> None:
    whole("how many labels a person has", value, least=1, most=_MAX_LABELS)


def _relation(name: Neighbours | str) -> Neighbours:
    return Neighbours.of(name)


@frozen(kw_only=True)
class ThresholdNoise:
    """Discrete Laplace noise on counts of persons by label, which are published from a threshold on.

    Parameters
    ----------
    scale : Fraction
        t, in persons.
    threshold : int
        T, in persons.
    labels : int
        r, the most labels of one person.
    neighbours : Neighbours or str
        The neighbouring relation.

    Raises
    ------
    BudgetError
        For values out of range, and for a threshold so low that what one person alone has would be published as a rule.

    Examples
    --------
    >>> noise = ThresholdNoise(scale=Fraction(10), threshold=121, labels=1, neighbours=Neighbours.ADD_REMOVE)
    >>> noise.cost.epsilon, float(noise.cost.delta)
    (Fraction(1, 10), 3.22...e-06)
    """

    scale: Fraction = field(validator=_scale)
    threshold: int = field(validator=_threshold)
    labels: int = field(validator=_labels)
    neighbours: Neighbours = field(converter=_relation)

    def __attrs_post_init__(self) -> None:
        if not self.published < 1 - exp_up(-1 / self.scale) or self.labels * self.published >= 1:
            raise BudgetError(
                f"a threshold of {self.threshold} is too low for noise of scale {float(self.scale):.6g}: what one "
                "person alone has would be published as a rule"
            )

    @property
    def moved(self) -> int:
        """The sensitivity s: how many counts one person moves, by one each."""
        return self.labels if self.neighbours is Neighbours.ADD_REMOVE else 2 * self.labels

    @property
    def published(self) -> Fraction:
        """q, rounded up: the probability that a label of one person only is published."""
        tail = exp_up(-(self.threshold - 1) / self.scale)
        return tail / (1 + exp_down(-1 / self.scale))

    @property
    def cost(self) -> Budget:
        """The cost, (s / t, r q)."""
        return Budget("approx", epsilon=self.moved / self.scale, delta=self.labels * self.published)

    def likely(self, chance: Fraction = Fraction(9, 10)) -> int:
        """Return how many persons a label needs to be published with about this probability, which is at least 1/2."""
        # P(Z >= -k) = 1 - p^(k+1) / (1 + p)
        rate = float(1 / self.scale)
        miss = float(1 - chance) * (1 + math.exp(-rate))
        return self.threshold + max(0, math.ceil(-math.log(miss) / rate) - 1)

    def draw(self, count: int, randomness: Randomness) -> IntArray:
        """Return fresh noise for so many labels; draw it after the charge."""
        return discrete_laplace(self.scale, count, randomness)


def threshold_noise(budget: Budget, labels: int, neighbours: Neighbours | str) -> ThresholdNoise:
    """Return the noise of one column within an (epsilon, delta), with the least threshold that this allows.

    Parameters
    ----------
    budget : Budget
        Of the column; an (epsilon, delta).
    labels : int
        r, the most labels of one person.
    neighbours : Neighbours or str
        The neighbouring relation.

    Raises
    ------
    BudgetError
        For another kind of budget, and for one that is too small for any threshold.

    Examples
    --------
    >>> noise = threshold_noise(Budget.approx("0.1", "1e-7"), 1, "add-remove")
    >>> noise.scale, noise.threshold, noise.cost <= Budget.approx("0.1", "1e-7")
    (Fraction(10, 1), 156, True)
    """
    check_budget(budget)
    relation = Neighbours.of(neighbours)
    _labels(None, None, labels)
    if budget.kind != "approx" or not budget.epsilon or not budget.delta:
        raise BudgetError(
            f"labels found privately cost an (epsilon, delta), as no purely private release tells which labels occur; "
            f"got {budget}"
        )
    moved = labels if relation is Neighbours.ADD_REMOVE else 2 * labels
    scale = _round_up(moved / min(budget.epsilon, Fraction(_MAX_EPSILON)))

    def holds(threshold: int) -> bool:
        try:
            noise = ThresholdNoise(scale=scale, threshold=threshold, labels=labels, neighbours=relation)
        except BudgetError:
            return False
        return noise.cost.delta <= budget.delta

    low, high = 0, 2
    while not holds(high):
        low, high = high, 2 * high
        if high > _MAX_THRESHOLD:
            raise _too_little(budget)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return ThresholdNoise(scale=scale, threshold=high, labels=labels, neighbours=relation)


def _round_up(value: Fraction) -> Fraction:
    """Return the value, or one just above it, with both parts below 2^32."""
    if max(value.as_integer_ratio()) < SCALE_LIMIT:
        return value
    if value >= SCALE_LIMIT // 2:
        raise _too_little(1 / value)
    bottom = min(SCALE_LIMIT - 1, math.floor((SCALE_LIMIT - 1) / value))
    return Fraction(math.ceil(value * bottom), bottom)


def _too_little(budget: object) -> BudgetError:
    shown = f"epsilon = {float(budget):.3g} a label" if isinstance(budget, Fraction) else budget
    return BudgetError(
        f"{shown} is too little to find labels by: no number of persons would be enough; give a larger budget, share, "
        "or fewer rows per person"
    )


@frozen(kw_only=True)
class LabelsPlan:
    """The labels that a run will find for one open column.

    Parameters
    ----------
    column : str
        The attribute.
    keep : int
        The most labels that are kept.
    budget : Budget
        The (epsilon, delta) of the column.
    noise : ThresholdNoise
        The noise that the budget buys.

    Examples
    --------
    >>> from dpgm_core.privacy.terms import Terms
    >>> noise = threshold_noise(Budget.approx("0.1", "1e-7"), 1, "add-remove")
    >>> LabelsPlan(column="job", keep=9, budget=Budget.approx("0.1", "1e-7"), noise=noise).notes()[0]
    "at most 9 labels of 'job' are found first, for (epsilon, delta) = (0.1, 1e-07): a label that 156 persons ..."
    """

    column: str
    keep: int
    budget: Budget
    noise: ThresholdNoise

    @property
    def what(self) -> str:
        """What the budget buys, in a word."""
        return f"labels of {self.column!r}"

    def notes(self) -> tuple[str, ...]:
        """Return what a plan says of the column."""
        likely, noise = self.noise.likely(), self.noise
        return (
            f"at most {self.keep:,} labels of {self.column!r} are found first, for {self.budget}: a label that "
            f"{noise.threshold:,} persons have is found about every second time, one that {likely:,} have nine times "
            f"in ten, and one that a single person has with probability {float(noise.published):.2g}; all others count "
            "as one label, and sizes are shown as if so many were found",
        )


#: What a run finds before its tables: labels of one column, or all columns of any type.
OpenPlan: TypeAlias = LabelsPlan | ColumnsPlan


def open_columns(domain: Domain) -> tuple[Attribute, ...]:
    """Return the attributes whose labels are still to be found.

    >>> open_columns(Domain.from_sizes({"a": 2}))
    ()
    """
    return tuple(one for one in domain.attributes if isinstance(one.private, PrivateLabels))


def with_placeholders(domain: Domain) -> Domain:
    """Return the domain with placeholders for the labels of open columns: for sizes, and for checks.

    Constraints on open columns are left out: they rule out nothing before labels are found.
    """
    columns = {one.name: evolve(one, private=None) for one in open_columns(domain)}
    if not columns:
        return domain
    constraints = [one for one in domain.constraints if columns.keys().isdisjoint(one.columns)]
    return Domain((columns.get(one.name, one) for one in domain.attributes), constraints)


def plan_labels(domain: Domain, budget: Budget, terms: Terms) -> tuple[OpenPlan, ...]:
    """Return the labels that a run with this budget finds, each column for its own share; () where no column is open.

    Columns of any type come last, all in one plan.

    Raises BudgetError, OptionError and DomainError for what cannot work, whatever the records are.
    """
    columns = open_columns(domain)
    if not columns:
        return ()
    names = ", ".join(repr(one.name) for one in columns[:4]) + (", ..." if len(columns) > 4 else "")
    if budget.kind != "approx":
        raise BudgetError(
            f"the labels of {names} are to be found privately, which costs an (epsilon, delta), and the budget is "
            f"{budget}; give it a delta (budget = {{ epsilon = 1, delta = 1e-6 }}), or list the labels"
        )
    if terms.contributions is not None:
        raise OptionError(
            f"the labels of {names} are to be found privately, which counts each person once for a label and does not "
            "go with normalised contributions; list the labels, or leave contributions out"
        )
    any_type = tuple(one.name for one in columns if _declared(one).any_type)
    listed = [one for one in columns if not _declared(one).any_type]
    for one in listed:
        _check(one)
    _check_shares(names, (_declared(one).share for one in listed))
    plans = tuple(_plan(one, budget, terms) for one in listed)
    if not any_type:
        return plans
    left = budget - Budget.sum(one.budget for one in plans) if plans else budget
    share = max(_declared(one).share for one in columns if _declared(one).any_type)
    return (*plans, plan_columns(any_type, left, terms, share))


def _declared(attribute: Attribute) -> PrivateLabels:
    assert isinstance(attribute.private, PrivateLabels)
    return attribute.private


def _check(attribute: Attribute) -> None:
    share: object = _declared(attribute).share
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise DomainError(
            f"attribute {attribute.name!r}: share, of the budget, must be a Fraction between 0 and 1, got {share!r:.60}"
        )


def _check_shares(names: str, shares: Iterable[Fraction]) -> None:
    together = sum(shares, Fraction(0))
    if together >= 1:
        raise BudgetError(
            f"finding the labels of {names} takes {decimal_text(together)} of the budget together, which leaves "
            "nothing to measure tables with; give them smaller shares"
        )


def _plan(attribute: Attribute, budget: Budget, terms: Terms) -> LabelsPlan:
    declared, own = _declared(attribute), budget * _declared(attribute).share
    try:
        noise = threshold_noise(own, terms.rows_per_person, terms.neighbours)
    except BudgetError as error:
        raise BudgetError(f"the labels of {attribute.name!r} cannot be found: {error}") from None
    records, threshold = terms.declared_total, noise.threshold
    if records is not None and declared.keep * threshold > records:
        most = int(records // threshold)
        advice = f"say keep = {most}, or " if most else ""
        raise BudgetError(
            f"{declared.keep:,} labels of {attribute.name!r} are to be found for {own}, which takes about "
            f"{threshold:,} persons each, but only {records:,.0f} records are declared; {advice}give a larger "
            "share, epsilon or delta"
        )
    return LabelsPlan(column=attribute.name, keep=declared.keep, budget=own, noise=noise)
