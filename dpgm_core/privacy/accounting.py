"""Accounting: composition of guarantees, and subsampling."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from attrs import evolve, frozen
from scipy.special import gammaln, logsumexp

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.exact_numbers import Amount, amount, whole
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import PrivacyEvent, zcdp_epsilon
from dpgm_core.privacy.dominating_pairs import (
    DominatingPair,
    composed_epsilon,
    gaussian_pair,
    reduce_delta,
    response_pair,
    revealing_mass,
)
from dpgm_core.privacy.gaussian import moved_cells
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity

__all__ = [
    "Accountant",
    "RATE_GRID",
    "amplified_epsilon",
    "checked_presence",
    "compose",
    "has_dp_accounting",
    "replaced_epsilon",
    "sampling_probability",
]


# Two upper bounds are computed and the smaller one counts: Renyi divergences, here, and privacy loss distributions,
# through dp-accounting (extra `accounting`; without it the Renyi bound stands alone, which is sound and needs a little
# more noise). Discrete noise is accounted for as what it is, see `dpgm_core.privacy.dominating_pairs`. Every parameter
# is checked to be finite first: an accountant that meets NaN may answer 0. Under replace-one no single worst pair is
# known for subsamples: there whole data sets, leaving and joining under add-remove, and (Laplace) a randomised response
# a round each give a bound, and the smallest counts.

# Tabulated noise goes by the pure loss of a unit shift in each cell, as Laplace noise does; that is all that is used.
_LAPLACE = ("discrete-laplace", "laplace", "tabulated")

#: Rates are multiples of it, because a coin of such a rate can be flipped exactly.
RATE_GRID = 2**32
MAX_ROUNDS = 10**7
#: An epsilon that is as good as none.
_MAX_EPSILON = 10**300


@frozen(kw_only=True)
class Accountant:
    """The cost of many releases with one noise on Poisson subsamples; make one with `compose`.

    event: of one release without subsampling. sensitivity: what one person can change in one release. sampling_rate:
    the probability that a person takes part in a round. presence: where subsamples are accounted for under replace-one,
    what one person's rows change against none (add-remove); else None.

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
    presence: Sensitivity | None = None

    def epsilon(self, delta: Amount) -> float:
        """Return the smallest proven epsilon of all rounds together at `delta`, nats; infinite when there is none."""
        return min(self.bounds(delta).values())

    def bounds(self, delta: Amount) -> dict[str, float]:
        """Return the upper bounds on epsilon: "pure" (Laplace only), "renyi", and "pld" where it can be computed."""
        if self.event.bound is not None:
            within = self._within(delta)
            return {"renyi": math.inf} if within is None else within[0].bounds(within[1])
        by_method = {"renyi": self.renyi_epsilon(delta)}
        if self.event.kind in _LAPLACE:
            by_method["pure"] = self.pure_epsilon()
        if has_dp_accounting():
            tight = self.pld_epsilon(delta)
            if tight is not None:
                by_method["pld"] = tight
        return by_method

    def pure_epsilon(self) -> float:
        """Return the epsilon of one round times the rounds; infinite for Gaussian noise. See `amplified_epsilon`."""
        if self.event.kind not in _LAPLACE:
            return math.inf
        return self.rounds * self._pure_round()

    def renyi_epsilon(self, delta: Amount) -> float:
        """Return epsilon from Renyi divergences D_a: min over a of D_a + ln(1 - 1/a) - ln(a delta) / (a - 1).

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
            return math.nextafter(float(epsilon), math.inf) if epsilon < _MAX_EPSILON else math.inf
        moments = self.rounds * self._log_moments()
        with np.errstate(over="ignore", invalid="ignore"):
            epsilons = (moments - log_delta - np.log(ORDERS)) / (ORDERS - 1) + np.log1p(-1 / ORDERS)
        bound = max(0.0, float(np.min(epsilons[np.isfinite(epsilons)], initial=math.inf)))
        if self.presence is None:
            return bound
        bound = min(bound, self._unsampled().renyi_epsilon(delta))
        return self._by_absence(bound, delta, lambda there, less: there.renyi_epsilon(less))

    def pld_epsilon(self, delta: Amount) -> float | None:
        """epsilon from the exact privacy loss distribution; None where it is out of reach (then Renyi serves).

        Out of reach: more than 2^18 rounds, deltas so small that rounding errors matter (1e-10, and more for many
        rounds), losses too wide for the grid, and Gaussian noise where a person can move one cell by more than 1,
        because then no single worst pair is known. Of subsamples under replace-one it goes by the whole data set, by
        the one without the person, or by randomised responses. Raises BudgetError without dp-accounting.
        """
        if self.event.bound is not None:
            within = self._within(delta)
            return None if within is None else within[0].pld_epsilon(within[1])
        probability, rate = _delta(delta), float(self.sampling_rate)
        if self.presence is not None:
            bounds = [self._unsampled().pld_epsilon(delta)]
            if self.event.kind in _LAPLACE:
                bounds.append(composed_epsilon(response_pair(1, self._pure_round()), 1.0, self.rounds, probability))
            least = min((one for one in bounds if one is not None), default=self.renyi_epsilon(delta))
            return self._by_absence(least, delta, lambda there, less: there.pld_epsilon(less))
        if self.event.kind == "gaussian":
            from dp_accounting.pld import privacy_loss_distribution

            relative = self.event.scale / self.event.sensitivity
            less = reduce_delta(probability, self.rounds)
            if less is None or relative < 0.05:
                return None
            one = privacy_loss_distribution.from_gaussian_mechanism(relative, sampling_prob=rate)
            return float(one.self_compose(self.rounds).get_epsilon_for_delta(less))
        pair = self._pair()
        return None if pair is None else composed_epsilon(pair, rate, self.rounds, probability)

    def _within(self, delta: Amount) -> tuple[Accountant, float] | None:
        """Truncated noise as Laplace noise, and what is left of delta for it; None if nothing is.

        A round reveals all with probability r at most and is otherwise the pair of Laplace noise (see
        `dpgm_core.privacy.dominating_pairs`), subsampled or not: by joint convexity of the hockey-stick divergence
        telling which it was only helps. So delta = R + (1 - R) delta' with R = 1 - (1 - r)^rounds.
        """
        assert self.event.bound is not None
        once = revealing_mass(self.event.scale, self.event.bound, self.sensitivity)
        revealed = 1.0 if once >= 1 else -math.expm1(self.rounds * math.log1p(-once))
        left = (_delta(delta) - revealed) / (1 - revealed) if revealed < 1 else 0.0
        return (evolve(self, event=evolve(self.event, kind="discrete-laplace", bound=None)), left) if left > 0 else None

    def _pair(self) -> DominatingPair | None:
        unit, cells = self.sensitivity.linf <= 1, moved_cells(self.sensitivity)
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
            squared = (self.event.sensitivity / self.event.scale) ** 2
            if self.presence is None:
                return sampled_gaussian(squared / 2, rate)
            return replaced_gaussian(self.presence.l2_squared / self.event.scale**2, squared, rate)
        if self.presence is not None:
            response = _pair_moments(response_pair(1, self._pure_round()), 1.0)
            return np.minimum(response, self._unsampled()._log_moments())
        pair = self._pair()
        assert pair is not None
        return _pair_moments(pair, rate)

    def _pure_round(self) -> float:
        """Pure epsilon of one round of Laplace noise, L1 / scale amplified by the subsample."""
        rate, exchange = float(self.sampling_rate), self.event.sensitivity / self.event.scale
        if self.presence is None:
            return amplified_epsilon(exchange, rate)
        return replaced_epsilon(self.presence.l1 / self.event.scale, exchange, rate)

    def _by_absence(
        self, known: float, delta: Amount, epsilon_of: Callable[[Accountant, float], float | None]
    ) -> float:
        """Return the smaller of a known epsilon and twice that of leaving, and then joining, under add-remove.

        P <= e^eps P0 + d and P0 <= e^eps Q + d give P <= e^(2 eps) Q + (1 + e^eps) d, with P0 the distribution of all
        rounds without the person; d leaves room for every eps up to half of what is known.
        """
        assert self.presence is not None
        norm = self.presence.l1 if self.event.kind in _LAPLACE else self.presence.l2
        event = evolve(self.event, sensitivity=float(norm))
        there = evolve(self, event=event, sensitivity=self.presence, presence=None)
        room = min(known / 2, 300.0)
        one_way = epsilon_of(there, _delta(delta) / (1 + math.exp(room)))
        return known if one_way is None or one_way > room else 2 * one_way

    def _unsampled(self) -> Accountant:
        """Every round on the whole data set, which a subsample never costs more than."""
        return evolve(self, sampling_rate=Fraction(1), presence=None)


def compose(
    event: PrivacyEvent,
    sensitivity: Sensitivity,
    *,
    rounds: int = 1,
    sampling_rate: Amount = 1,
    neighbours: Neighbours | str,
    presence: Sensitivity | None = None,
) -> Accountant:
    """Return the accountant of `rounds` releases with one noise, each on a Poisson subsample.

    sampling_rate: in (0, 1]. sensitivity: under `neighbours`. presence: that of the same tables under add-remove, which
    subsamples need under replace-one (see `Terms.presence`). Truncated noise is not amplified under replace-one: each
    round costs what the whole data set does. Raises BudgetError for parameters that make no sense, and for an event
    calibrated to less than the sensitivity.
    """
    if not isinstance(event, PrivacyEvent) or not isinstance(sensitivity, Sensitivity):
        raise BudgetError("the accountant takes a PrivacyEvent and a Sensitivity, in this order")
    whole("the number of rounds", rounds, least=1, most=MAX_ROUNDS)
    rate, relation = sampling_probability(sampling_rate), Neighbours.of(neighbours)
    needed = sensitivity.l2 if event.kind in ("gaussian", "discrete-gaussian") else sensitivity.l1
    if event.sensitivity < needed * (1 - 1e-12):
        raise BudgetError(
            f"the noise was calibrated to a sensitivity of {event.sensitivity:g}, but a person can change {needed:g}"
        )
    if relation is Neighbours.ADD_REMOVE or rate == 1:
        return Accountant(event=event, sensitivity=sensitivity, rounds=rounds, sampling_rate=rate)
    there: Sensitivity | None = checked_presence(presence, sensitivity)
    if event.bound is not None:
        rate, there = Fraction(1), None
    return Accountant(event=event, sensitivity=sensitivity, rounds=rounds, sampling_rate=rate, presence=there)


def checked_presence(presence: object, exchange: Sensitivity) -> Sensitivity:
    """Return what a person's rows change against none, if it can be that; BudgetError otherwise.

    Replacing the rows (exchange) changes at most twice as much.
    """
    if not isinstance(presence, Sensitivity):
        raise BudgetError(
            "subsamples under replace-one need presence, the sensitivity of the same tables under add-remove: what a "
            f"person's rows change against none; got {type(presence).__name__}"
        )
    if exchange.l1 > 2 * presence.l1 or exchange.l2_squared > 4 * presence.l2_squared:
        raise BudgetError(
            f"replacing a person changes {exchange}, more than twice what the person's rows change, {presence}; state "
            "the sensitivity under replace-one first, and that under add-remove as presence"
        )
    return presence


def sampling_probability(rate: Amount) -> Fraction:
    """Return the rate as the exact multiple of 2^-32 at or just below it; BudgetError outside of (0, 1]."""
    exact = amount("the sampling rate", rate)
    if not Fraction(1, RATE_GRID) <= exact <= 1:
        raise BudgetError(f"the sampling rate must lie in (0, 1], such as 0.01 (at least 2**-32); got {rate!r}")
    return Fraction(math.floor(exact * RATE_GRID), RATE_GRID)


def has_dp_accounting() -> bool:
    """Whether dp-accounting is installed."""
    return importlib.util.find_spec("dp_accounting") is not None


def _pair_moments(pair: DominatingPair, rate: float) -> FloatArray:
    """(a - 1) D_a of a pair at `rate`, for each order a; the larger direction."""
    moments = []
    for log_upper, log_lower in pair.subsampled(rate):
        ratio = log_upper - log_lower
        moments.append(logsumexp(log_upper + np.multiply.outer(ORDERS - 1, ratio), axis=1))
    return np.asarray(np.maximum(*moments))


def _delta(delta: Amount) -> float:
    probability = float(amount("delta", delta))
    if not 0 < probability < 1:
        raise BudgetError(f"delta must be a probability between 0 and 1, such as 1e-6; got {delta!r}")
    return probability


# --------------------------------------------------------------------------------------------------
# One release on a Poisson subsample: each person takes part with probability q, independently
#
# Fix the coins of all others; everything below is jointly convex or quasi-convex, so that it holds for their mixture
# too. Let P0 be the distribution of the output without the person, P1 with the person's rows and P1' with other rows in
# their place. Add-remove compares (1 - q) P0 + q P1 with P0. Replace-one compares
#
#     P = (1 - q) P0 + q P1    with    Q = (1 - q) P0 + q P1'.
#
# P0 is in both, so what a person's *presence* changes matters, not only the *exchange* of rows: under replace-one with
# one row each a table of one cell never changes, but its noisy count still tells something of whether the person took
# part. Both persons are arbitrary, so what is shown for P against Q holds for Q against P.
#
# 1. Pure. Let x = ln P1/P0 and x' = ln P1'/P0 at an output, with |x|, |x'| <= e (presence) and |x - x'| <= d
#    (exchange), and g(x) = ln(1 - q + q exp(x)), which is rising and convex. ln P/Q = g(x) - g(x'). For a given x - x'
#    it is largest at x = e, and then at the least x', e - d with d <= 2 e. So it is at most g(e) - g(e - d) = ln(1 + w
#    (exp(d) - 1)), w = q exp(e - d) / (1 - q + q exp(e - d)): the exchange on a subsample at rate w, the chance that
#    the person took part, after the output that says so least. For d = 2 e it is ln(1 + q (exp(e) - 1)) - ln(1 - q (1 -
#    exp(-e))). Attained by one row each, in different cells of every table but those of one cell. As w <= 1 it never
#    exceeds d.
# 2. zCDP. Renyi divergences are jointly quasi-convex: D_a(P, Q) <= D_a(P1, P1') at every order. A smaller rho is not
#    claimed.
# 3. Renyi divergences of Gaussian noise at whole orders a. P = Q + q (P1 - P1'), and P1 - P1' sums to 0, so E_Q (P/Q)^a
#    <= 1 + sum_{j >= 2} C(a, j) q^j B_j with B_j = E_Q |(P1 - P1') / Q|^j. As |x|^j / y^(j - 1) is jointly convex, B_j
#    <= (1 - q) F_j + q S_j, F_j = E_P0 |f - f'|^j, f = P1 / P0, f' = P1' / P0, S_j = E_P1' |P1 / P1' - 1|^j. As Q >= (1
#    - q) P0, B_j <= (1 - q)^(1 - j) F_j too. For whole-numbered shifts s of P1 and s' of P1', in units of sigma, E_P0
#    f^k f'^l = exp((|k s + l s'|^2 - k |s|^2 - l |s'|^2) / 2) for whole k and l, of discrete noise as of continuous.
#    Let G bound |s|^2 and |s'|^2 (presence), and D >= G bound |s - s'|^2 (exchange).
#    * |x - y|^j <= x^j + y^j for x, y >= 0, so F_j <= 2 exp(j (j - 1) G / 2) and S_j <= exp(j (j - 1) D / 2) + 1.
#    * S_2 <= exp(D) - 1, as P1 / P1' has mean 1.
#    * F_2 = exp(|s|^2) + exp(|s'|^2) - 2 exp(<s, s'>), 2 <s, s'> = |s|^2 + |s'|^2 - |s - s'|^2. With u = exp(|s|^2 - G)
#      and v = exp(|s'|^2 - G), both in [exp(-G), 1], F_2 <= exp(G) (u + v) - 2 exp(G - D / 2) sqrt(u v), whose slope in
#      u is exp(G) (1 - exp(-D / 2) sqrt(v / u)) >= 0 as sqrt(v / u) <= exp(G / 2); in v likewise. So it is largest at u
#      = v = 1: F_2 <= 2 exp(G) (1 - exp(-D / 2)).
#    * For even j, F_j <= F_2^(j / 2) and S_j <= S_2^(j / 2) with G and D taken j - 1 times: f - f' is the smoothing
#      T_r, r^2 = 1 / (j - 1), of the same difference with shifts s / r and s' / r, and |T_r h|_j <= |h|_2 (Nelson
#      1973). For discrete noise even moments are the same sums of the same numbers.
#    * For odd j the logarithm is at most the mean of its neighbours', as it is convex in j (Lyapunov).
#    By 2. a moment is never more than that of the whole data set, exp(a (a - 1) D / 2).
#
# Between whole orders linear interpolation is an upper bound, as the logarithm of a moment is convex in its order.

#: Renyi orders: whole ones, and quarters between the small ones.
ORDERS = np.unique(np.concatenate([np.arange(1.25, 16, 0.25), np.arange(16, 65), np.geomspace(64, 4096, 40).round()]))

# Exponentials of it, and of its half times any rate, are doubles.
_MAX_EXPONENT = 500.0


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """ln(1 + q (e^eps - 1)): pure epsilon on a Poisson subsample at rate q under add-remove, without overflow.

    Source: Balle, Barthe, Gaboardi (2018), Theorem 9.
    """
    if epsilon < _MAX_EXPONENT:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def replaced_epsilon(presence: float, exchange: float, rate: float) -> float:
    """Pure epsilon on a Poisson subsample at rate q under replace-one; see the module, 1. Exact for Laplace noise.

    presence: epsilon of the whole data set with and without a person. exchange: with one person's rows or another's.
    """
    apart = min(exchange, 2 * presence)
    if rate == 1:
        return apart
    log_odds = math.log(rate) - math.log1p(-rate) + presence - apart
    log_share = -float(np.logaddexp(0.0, -log_odds))  # ln w
    if apart < _MAX_EXPONENT:
        return amplified_epsilon(apart, math.exp(log_share))
    return float(np.logaddexp(-np.logaddexp(0.0, log_odds), log_share + apart))


def sampled_gaussian(slope: float, rate: float) -> FloatArray:
    """ln E_Q[(((1 - q) Q + q P) / Q)^a] for each of ORDERS, with E_Q[(P / Q)^k] <= exp(k (k - 1) slope); q < 1.

    At whole orders the binomial sum. The other direction is never larger: x -> s - x swaps P and Q (Mironov, Talwar,
    Zhang 2019, Theorem 5, whose proof holds for sums over whole numbers as it does for integrals).
    """
    orders, counts, log_choose = _binomials()
    with np.errstate(invalid="ignore"):
        terms = log_choose + (orders[:, None] - counts) * math.log1p(-rate) + counts * math.log(rate)
        terms += counts * (counts - 1) * slope
    return _between(logsumexp(terms, axis=1))


def replaced_gaussian(presence: float, exchange: float, rate: float) -> FloatArray:
    """ln E_Q[(P / Q)^a] for each of ORDERS, of Gaussian noise under replace-one, both directions; q < 1.

    presence: L2^2 / sigma^2 of a person's rows against none. exchange: of one person's rows against another's. See the
    module, 3.
    """
    orders, counts, log_choose = _binomials()
    wide, doubled = max(exchange, presence), counts * (counts - 1)

    def within(times: FloatArray) -> FloatArray:
        return math.log(2) + times * presence + _log_less(times * wide / 2)

    def without(times: FloatArray) -> FloatArray:
        return times * exchange + _log_less(times * exchange)

    log_f = _central(counts, within, math.log(2) + doubled * presence / 2)
    log_s = _central(counts, without, np.logaddexp(doubled * exchange / 2, 0.0))
    log_b = np.minimum(
        np.logaddexp(math.log1p(-rate) + log_f, math.log(rate) + log_s), log_f + (1 - counts) * math.log1p(-rate)
    )
    sampled = np.logaddexp(0.0, logsumexp((log_choose + counts * math.log(rate) + log_b)[:, 2:], axis=1))
    at_whole = np.minimum(sampled, orders * (orders - 1) * exchange / 2)
    return np.asarray(np.minimum(_between(at_whole), ORDERS * (ORDERS - 1) * exchange / 2))


def _central(counts: FloatArray, log_second: Callable[[FloatArray], FloatArray], direct: FloatArray) -> FloatArray:
    """Logarithms of bounds on the moments of orders 0, 1, 2, ..., those from 2 on good.

    log_second: of the second moment, of shifts whose squares are so many times as long. direct: other bounds.
    """
    moments = np.minimum(direct, counts / 2 * log_second(np.maximum(counts - 1, 1.0)))
    odd = np.arange(3, len(counts) - 1, 2)
    moments[odd] = np.minimum(direct[odd], (moments[odd - 1] + moments[odd + 1]) / 2)
    return moments


def _log_less(x: FloatArray) -> FloatArray:
    """ln(1 - e^-x), x > 0."""
    return np.asarray(np.log(-np.expm1(-x)))


def _between(at_whole: FloatArray) -> FloatArray:
    """Return logarithms of moments at ORDERS from those at whole orders from 2 on; ln 1 = 0 at order 1."""
    interpolated: FloatArray = np.interp(ORDERS, np.append(1.0, _binomials()[0]), np.append(0.0, at_whole))
    return interpolated


@lru_cache(maxsize=1)
def _binomials() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole orders a, counts k, and ln C(a, k), -inf for k > a."""
    orders = np.unique(np.concatenate([np.arange(2.0, 17), ORDERS[ORDERS >= 16]]))
    counts = np.arange(orders[-1] + 1)
    above = np.maximum(orders[:, None] - counts, 0)
    log_choose = gammaln(orders + 1)[:, None] - gammaln(counts + 1) - gammaln(above + 1)
    return orders, counts, np.where(counts > orders[:, None], -math.inf, log_choose)
