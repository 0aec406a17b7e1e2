"""What many subsampled releases cost together.

Two upper bounds are computed and the smaller one counts: Renyi divergences, here, and privacy loss distributions,
through dp-accounting (extra `accounting`; without it the Renyi bound stands alone, which is sound and asks for a
little more noise). Discrete noise is accounted for as what it is, see `dpgm_core.dominating`. Every parameter is
checked to be finite first: an accountant that meets NaN may answer 0.

Poisson subsampling (each person takes part with probability q, on its own) amplifies privacy under add-remove only.
"""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from attrs import evolve, frozen
from scipy.special import gammaln, logsumexp

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.amounts import Amount, amount, whole
from dpgm_core.privacy.budget import PrivacyEvent
from dpgm_core.privacy.conversion import zcdp_epsilon
from dpgm_core.privacy.dominating import DominatingPair, composed_epsilon, gaussian_pair, lessened, response_pair
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.truncated import revealing_mass

__all__ = ["RATE_GRID", "Accountant", "amplified", "compose", "has_dp_accounting", "sampling_probability"]

_LAPLACE = ("discrete-laplace", "laplace")

#: Rates are multiples of it, because a coin of such a rate can be flipped exactly.
RATE_GRID = 2**32
MOST_ROUNDS = 10**7
#: An epsilon that is as good as none.
_FARTHEST = 10**300

# Renyi orders: whole ones, and quarters between the small ones.
_ORDERS = np.unique(np.concatenate([np.arange(1.25, 16, 0.25), np.arange(16, 65), np.geomspace(64, 4096, 40).round()]))


@frozen(kw_only=True)
class Accountant:
    """The cost of `rounds` releases with one noise on Poisson subsamples; make one with `compose`.

    event: of one release without subsampling. sensitivity: what one person can change in one release. sampling_rate:
    the probability that a person takes part in a round.

    >>> sensitivity = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> event = PrivacyEvent(kind="discrete-gaussian", scale=4.0, sensitivity=1.0)
    >>> accountant = compose(event, sensitivity, rounds=10_000, sampling_rate=0.01, neighbours="add-remove")
    >>> accountant.renyi_epsilon(1e-5) < 1.26  # Abadi et al. (2016), section 1
    True
    """

    event: PrivacyEvent
    sensitivity: Sensitivity
    rounds: int
    sampling_rate: Fraction

    def epsilon(self, delta: Amount) -> float:
        """The smallest proven epsilon of all rounds together at `delta`, nats; infinite when there is none."""
        return min(self.bounds(delta).values())

    def bounds(self, delta: Amount) -> dict[str, float]:
        """Each method's upper bound on epsilon: "pure" (Laplace only), "renyi", and "pld" where it can be had."""
        if self.event.bound is not None:
            within = self._within(delta)
            return {"renyi": math.inf} if within is None else within[0].bounds(within[1])
        found = {"renyi": self.renyi_epsilon(delta)}
        if self.event.kind in _LAPLACE:
            found["pure"] = self.pure_epsilon()
        if has_dp_accounting():
            tight = self.pld_epsilon(delta)
            if tight is not None:
                found["pld"] = tight
        return found

    def pure_epsilon(self) -> float:
        """rounds * ln(1 + q (e^eps0 - 1)), eps0 = L1 / scale: pure privacy amplified by subsampling, then added.

        Infinite for Gaussian noise. Source: Balle, Barthe, Gaboardi (2018), Theorem 9.
        """
        if self.event.kind not in _LAPLACE:
            return math.inf
        return self.rounds * amplified(self.event.sensitivity / self.event.scale, float(self.sampling_rate))

    def renyi_epsilon(self, delta: Amount) -> float:
        """epsilon from Renyi divergences D_a: min over a of D_a + ln(1 - 1/a) - ln(a delta) / (a - 1).

        Over some orders, or over all of them for Gaussian noise at full rate, whose rhos add. Source of the conversion:
        Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        if self.event.bound is not None:
            within = self._within(delta)
            return math.inf if within is None else within[0].renyi_epsilon(within[1])
        log_delta = math.log(_delta(delta))
        if self.event.kind not in _LAPLACE and self.sampling_rate == 1:
            rho = self.rounds * (Fraction(self.event.sensitivity) / Fraction(self.event.scale)) ** 2 / 2
            epsilon = zcdp_epsilon(rho, amount("delta", delta))
            return math.nextafter(float(epsilon), math.inf) if epsilon < _FARTHEST else math.inf
        moments = self.rounds * self._log_moments()
        with np.errstate(over="ignore", invalid="ignore"):
            epsilons = (moments - log_delta - np.log(_ORDERS)) / (_ORDERS - 1) + np.log1p(-1 / _ORDERS)
        return max(0.0, float(np.min(epsilons[np.isfinite(epsilons)], initial=math.inf)))

    def pld_epsilon(self, delta: Amount) -> float | None:
        """epsilon from the exact privacy loss distribution; None where it is out of reach (then Renyi serves).

        Out of reach: more than 2^18 rounds, deltas so small that rounding errors matter (1e-10, and more for many
        rounds), losses too wide for the grid, and Gaussian noise where a person can move one cell by more than 1,
        because then no single worst pair is known. Raises BudgetError without dp-accounting.
        """
        if self.event.bound is not None:
            within = self._within(delta)
            return None if within is None else within[0].pld_epsilon(within[1])
        probability, rate = _delta(delta), float(self.sampling_rate)
        if self.event.kind == "gaussian":
            from dp_accounting.pld import privacy_loss_distribution

            relative = self.event.scale / self.event.sensitivity
            less = lessened(probability, self.rounds)
            if less is None or relative < 0.05:
                return None
            one = privacy_loss_distribution.from_gaussian_mechanism(relative, sampling_prob=rate)
            return float(one.self_compose(self.rounds).get_epsilon_for_delta(less))
        pair = self._pair()
        return None if pair is None else composed_epsilon(pair, rate, self.rounds, probability)

    def _within(self, delta: Amount) -> tuple[Accountant, float] | None:
        """Truncated noise as Laplace noise, and what is left of delta for it; None if nothing is.

        A round reveals all with probability r at most and is otherwise the pair of Laplace noise (see
        `dpgm_core.privacy.truncated`), subsampled or not: by joint convexity of the hockey-stick divergence telling
        which it was only helps. So delta = R + (1 - R) delta' with R = 1 - (1 - r)^rounds.
        """
        assert self.event.bound is not None
        once = revealing_mass(self.event.scale, self.event.bound, self.sensitivity)
        revealed = 1.0 if once >= 1 else -math.expm1(self.rounds * math.log1p(-once))
        left = (_delta(delta) - revealed) / (1 - revealed) if revealed < 1 else 0.0
        return (evolve(self, event=evolve(self.event, kind="discrete-laplace", bound=None)), left) if left > 0 else None

    def _pair(self) -> DominatingPair | None:
        unit = self.sensitivity.linf <= 1
        # with unit shifts at most so many cells move: each adds 1 to L0, L1 and L2^2
        cells = max(1, min(self.sensitivity.l0, self.sensitivity.l1, self.sensitivity.l2_squared))
        if self.event.kind in _LAPLACE:
            whole_epsilon = self.event.sensitivity / self.event.scale
            # other shifts: the release is eps0-DP, so one randomised response of eps0 dominates it
            return response_pair(cells, 1 / self.event.scale) if unit else response_pair(1, whole_epsilon)
        return gaussian_pair(cells, self.event.scale) if unit else None

    def _log_moments(self) -> FloatArray:
        """(a - 1) D_a of one round, for each order a; the larger direction. Gaussian noise: for rates below 1."""
        rate = float(self.sampling_rate)
        if self.event.kind not in _LAPLACE:
            # (a - 1) D_a <= a (a - 1) L2^2 / (2 sigma^2) for every whole-numbered shift (Canonne et al. 2020, Prop. 5)
            slope = (self.event.sensitivity / self.event.scale) ** 2 / 2
            return _sampled_gaussian(slope, rate)
        pair = self._pair()
        assert pair is not None
        found = []
        for log_upper, log_lower in pair.subsampled(rate):
            ratio = log_upper - log_lower
            found.append(logsumexp(log_upper + np.multiply.outer(_ORDERS - 1, ratio), axis=1))
        return np.asarray(np.maximum(*found))


def compose(
    event: PrivacyEvent,
    sensitivity: Sensitivity,
    *,
    rounds: int = 1,
    sampling_rate: Amount = 1,
    neighbours: Neighbours | str,
) -> Accountant:
    """The accountant of `rounds` releases with one noise, each on a Poisson subsample at `sampling_rate` in (0, 1].

    Raises BudgetError for parameters that make no sense, for an event calibrated to less than the sensitivity, and
    for subsampling under replace-one, which it does not amplify in this analysis.
    """
    if not isinstance(event, PrivacyEvent) or not isinstance(sensitivity, Sensitivity):
        raise BudgetError("the accountant takes a PrivacyEvent and a Sensitivity, in this order")
    whole("the number of rounds", rounds, least=1, most=MOST_ROUNDS)
    rate = sampling_probability(sampling_rate, neighbours)
    needed = sensitivity.l2 if event.kind in ("gaussian", "discrete-gaussian") else sensitivity.l1
    if event.sensitivity < needed * (1 - 1e-12):
        raise BudgetError(
            f"the noise was calibrated to a sensitivity of {event.sensitivity:g}, but a person can change {needed:g}"
        )
    return Accountant(event=event, sensitivity=sensitivity, rounds=rounds, sampling_rate=rate)


def sampling_probability(rate: Amount, neighbours: Neighbours | str) -> Fraction:
    """The rate as the exact multiple of 2^-32 at or just below it; BudgetError outside of (0, 1] and for replace-one.

    >>> sampling_probability(0.25, "add-remove")
    Fraction(1, 4)
    """
    exact = amount("the sampling rate", rate)
    if not Fraction(1, RATE_GRID) <= exact <= 1:
        raise BudgetError(f"the sampling rate must lie in (0, 1], such as 0.01 (at least 2**-32); got {rate!r}")
    if exact < 1 and Neighbours.of(neighbours) is not Neighbours.ADD_REMOVE:
        raise BudgetError(
            f"a sampling rate of {rate} was asked under {Neighbours.of(neighbours).value} neighbours, but Poisson "
            "subsampling amplifies privacy under add-remove only; use sampling_rate = 1 or add-remove neighbours"
        )
    return Fraction(math.floor(exact * RATE_GRID), RATE_GRID)


def has_dp_accounting() -> bool:
    """Whether dp-accounting is installed."""
    return importlib.util.find_spec("dp_accounting") is not None


def _sampled_gaussian(slope: float, rate: float) -> FloatArray:
    """ln E_Q[(((1 - q) Q + q P) / Q)^a] for each order a, with E_Q[(P / Q)^k] <= exp(k (k - 1) slope).

    At whole orders the binomial sum; between them linear interpolation, an upper bound because the logarithm of a
    moment is convex in its order. The other direction is never larger: x -> s - x swaps P and Q (Mironov, Talwar,
    Zhang 2019, Theorem 5, whose proof holds for sums over whole numbers as it does for integrals).
    """
    orders, counts, log_choose = _binomials()
    with np.errstate(invalid="ignore"):
        terms = log_choose + (orders[:, None] - counts) * math.log1p(-rate) + counts * math.log(rate)
        terms += counts * (counts - 1) * slope
    between: FloatArray = np.interp(_ORDERS, np.append(1.0, orders), np.append(0.0, logsumexp(terms, axis=1)))
    return between


@lru_cache(maxsize=1)
def _binomials() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole orders a, counts k, and ln C(a, k), -inf for k > a."""
    orders = np.unique(np.concatenate([np.arange(2.0, 17), _ORDERS[_ORDERS >= 16]]))
    counts = np.arange(orders[-1] + 1)
    above = np.maximum(orders[:, None] - counts, 0)
    log_choose = gammaln(orders + 1)[:, None] - gammaln(counts + 1) - gammaln(above + 1)
    return orders, counts, np.where(counts > orders[:, None], -math.inf, log_choose)


def amplified(epsilon: float, rate: float) -> float:
    """ln(1 + q (e^eps - 1)): pure epsilon on a Poisson subsample at rate q, without overflow.

    >>> round(amplified(1.0, 0.5), 6) == round(math.log(1 + 0.5 * math.expm1(1.0)), 6)
    True
    """
    if epsilon < 1:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def _delta(delta: Amount) -> float:
    probability = float(amount("delta", delta))
    if not 0 < probability < 1:
        raise BudgetError(f"delta must be a probability between 0 and 1, such as 1e-6; got {delta!r}")
    return probability
