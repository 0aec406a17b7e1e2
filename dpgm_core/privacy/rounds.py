"""Noise of many subsampled rounds: the least with which they stay within a budget; touches no data."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpgm_core._util.exact_numbers import Amount, whole
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.accounting import (
    MAX_ROUNDS,
    checked_presence,
    compose,
    has_dp_accounting,
    replaced_epsilon,
    sampling_probability,
)
from dpgm_core.privacy.budget import Budget, Split
from dpgm_core.privacy.mechanism import Mechanism, Noise, event_of
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.terms import Terms

__all__ = ["check_rounds_budget", "check_rounds_go_with", "round_noise"]

# log2 of the rhos among which noise is sought.
_MIN_LOG2_RHO, _MAX_LOG2_RHO = -40, 40


def check_rounds_go_with(terms: Terms, split: Split) -> None:
    """Raise BudgetError for terms, and a split of the budget over tables, under which no rounds are taken."""
    if terms.contributions is not None:
        raise BudgetError(
            "rounds of subsamples count each row as 1; for normalised contributions use a learner of one release, "
            "such as naive-mle, cgm-em or eb-map"
        )
    if split.tables != "even" or split.ranges:
        raise BudgetError("rounds give every table the same noise; leave split = 'even', and ranges out")


def round_noise(
    mechanism: Mechanism,
    sensitivity: Sensitivity,
    budget: Budget,
    *,
    rounds: int,
    sampling_rate: Amount,
    neighbours: Neighbours | str,
    presence: Sensitivity | None = None,
) -> tuple[Noise, Budget]:
    """Return the least noise with which all subsampled rounds stay within a budget, and what it is calibrated for.

    budget: of all rounds together. sensitivity, presence: see `compose`. Pure: rounds add, each amplified by the rate.
    zCDP: rhos add, without amplification (a mixture of rho-zCDP releases is rho-zCDP). (epsilon, delta): by bisection
    with `Accountant`. Raises BudgetError for mu, and when no noise of this mechanism can do it.
    """
    rate = sampling_probability(sampling_rate)
    whole("the number of rounds", rounds, least=1, most=MAX_ROUNDS)
    check_rounds_budget(budget)
    if budget.kind == "zcdp":
        each = budget * Fraction(1, rounds)
        return mechanism.noise(sensitivity, each), each
    if budget.kind == "pure":
        each = budget * Fraction(1, rounds)
        if rate < 1 and Neighbours.of(neighbours) is Neighbours.ADD_REMOVE:
            each = Budget.pure(_base_epsilon(each.epsilon, rate))
        elif rate < 1:
            there = checked_presence(presence, sensitivity)
            # a mechanism calibrates to an L1 of 1 where nobody can change a thing
            each = Budget.pure(_replaced_epsilon(each.epsilon, rate, there.l1 / max(1, sensitivity.l1)))
        return mechanism.noise(sensitivity, each), each
    return _bisect_epsilon(mechanism, sensitivity, budget, rounds, rate, neighbours, presence)


def check_rounds_budget(budget: Budget) -> None:
    """Refuse, with BudgetError, mu: a subsample has no mu that is less than that of all records."""
    if budget.kind == "gdp":
        raise BudgetError(f"{budget} has no account for rounds of subsamples; ask for (epsilon, delta), rho or epsilon")


def _bisect_epsilon(
    mechanism: Mechanism,
    sensitivity: Sensitivity,
    budget: Budget,
    rounds: int,
    rate: Fraction,
    neighbours: Neighbours | str,
    presence: Sensitivity | None,
) -> tuple[Noise, Budget]:
    target = float(budget.epsilon) * (1 - 1e-9)

    def budget_at(log2_rho: float) -> Budget:
        return Budget.zcdp(Fraction(2.0**log2_rho))

    def noise_at(log2_rho: float) -> Noise | None:
        try:
            return mechanism.noise(sensitivity, budget_at(log2_rho))
        except BudgetError:
            return None

    def excess(log2_rho: float, tight: bool) -> float:
        """Return ln of the epsilon of the rounds over the one they may have; infinite where no noise can be drawn."""
        noise = noise_at(log2_rho)
        if noise is None:
            return math.inf
        accountant = compose(
            event_of(noise), sensitivity, rounds=rounds, sampling_rate=rate, neighbours=neighbours, presence=presence
        )
        epsilon = accountant.epsilon(budget.delta) if tight else accountant.renyi_epsilon(budget.delta)
        return math.log(epsilon / target) if epsilon > 0 else -math.inf

    if noise_at(0.0) is None:
        mechanism.noise(sensitivity, budget_at(0.0))  # a mechanism that refuses zCDP says so itself
    # The widest noise that can be drawn. From there up the Renyi bound first, because it is cheap, then all bounds.
    # Of subsampled rounds, and of Laplace noise, it knows no epsilon below about ln(1/delta) / 4096: there the others
    # find a start on their own.
    tight = has_dp_accounting()
    widest = next(float(at) for at in range(_MIN_LOG2_RHO, 1) if noise_at(at) is not None)
    low: float | None = None
    if excess(widest, False) <= 0:
        low = _edge(lambda at: excess(at, False), widest, _MAX_LOG2_RHO)
    elif tight:
        low = next((float(at) for at in range(20, int(widest) - 1, -1) if excess(at, True) <= 0), None)
    if low is None:
        raise BudgetError(
            f"{rounds} rounds at sampling rate {float(rate):g} within {budget} need more noise than "
            f"{type(mechanism).__name__} can draw or the accountant can tell apart; ask for fewer rounds or more budget"
        )
    if tight:
        high = low + 0.5
        while high < _MAX_LOG2_RHO and excess(high, True) <= 0:
            low, high = high, high + 1
        low = _edge(lambda at: excess(at, True), low, high)
    return mechanism.noise(sensitivity, budget_at(low)), budget_at(low)


def _edge(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest point, to 2^-10, where a rising function that is at most 0 at `low` still is; by secants."""
    near = 2.0**-10
    below, above = excess(low), excess(high)

    def probe(at: float) -> None:
        nonlocal low, high, below, above
        if low < at < high:
            value = excess(at)
            if value <= 0:
                low, below = at, value
            else:
                high, above = at, value

    while high - low > near:
        width = high - low
        middle = (low + high) / 2
        cross = low + width * below / (below - above) if math.isfinite(above) and math.isfinite(below) else middle
        probe(min(max(cross, low + near / 2), high - near / 2))
        probe(low + near if low >= cross - near else high - near)  # a step across the root closes the bracket
        if high - low > width / 2:
            probe((low + high) / 2)
    return low


def _base_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the eps0 that subsampling at `rate` amplifies to `epsilon`: ln(1 + (e^eps - 1) / q), rounded down."""
    target, q = float(epsilon), float(rate)
    if target < 1:
        base = math.log1p(math.expm1(target) / q)
    else:
        base = target + math.log(math.exp(-target) - math.expm1(-target) / q)
    return Fraction(base * (1 - 1e-12))


def _replaced_epsilon(epsilon: Fraction, rate: Fraction, presence: float) -> Fraction:
    """Return the largest eps0 under replace-one, by bisection.

    presence: what a person's rows cost over what replacing them costs.
    """
    target, q = float(epsilon), float(rate)
    low, high = target, 2 * target  # a subsample costs no more than the whole
    while replaced_epsilon(presence * high, high, q) <= target:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if replaced_epsilon(presence * middle, middle, q) <= target else (low, middle)
    return Fraction(low * (1 - 1e-12))
