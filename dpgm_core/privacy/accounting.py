"""Cost of many subsampled releases together.

Two upper bounds are computed and the smaller one counts: Renyi divergences, here, and privacy loss distributions,
through dp-accounting (extra `accounting`; without it the Renyi bound stands alone, which is sound and asks for a
little more noise). Discrete noise is accounted for as what it is, see `dpgm_core.dominating`. Every parameter is
checked to be finite first: an accountant that meets NaN may answer 0.

What a Poisson subsample is worth (each person takes part with probability q, on its own) is proven in
`dpgm_core.privacy.subsampling`, under either relation. Under replace-one no single worst pair is known for subsamples:
there whole data sets, leaving and joining under add-remove, and (Laplace) a randomised response a round each give a
bound, and the smallest counts.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from attrs import evolve, frozen
from scipy.special import logsumexp

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.amounts import Amount, amount, whole
from dpgm_core.privacy.budget import PrivacyEvent
from dpgm_core.privacy.conversion import zcdp_epsilon
from dpgm_core.privacy.dominating import DominatingPair, composed_epsilon, gaussian_pair, reduce_delta, response_pair
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.subsampling import ORDERS, amplified, replaced, replaced_gaussian, sampled_gaussian
from dpgm_core.privacy.truncated import revealing_mass

__all__ = ["RATE_GRID", "Accountant", "checked_presence", "compose", "has_dp_accounting", "sampling_probability"]

_LAPLACE = ("discrete-laplace", "laplace")

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
        """Return the epsilon of one round times the rounds; infinite for Gaussian noise. See `amplified`."""
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
            return amplified(exchange, rate)
        return replaced(self.presence.l1 / self.event.scale, exchange, rate)

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
    """Return the rate as the exact multiple of 2^-32 at or just below it; BudgetError outside of (0, 1].

    >>> sampling_probability(0.25)
    Fraction(1, 4)
    """
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
