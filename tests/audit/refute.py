"""Lower bounds on privacy loss from samples of two neighbouring outputs, each at a stated chance of being wrong.

One half of the draws chooses: a number per draw, bins of it, their likelihood ratios, the direction and the threshold.
The other half measures what was chosen, so that no choice is paid for. For an event E with probabilities p and q:

* pure epsilon: log(p/q) > epsilon refutes it; (epsilon, delta): p - exp(epsilon) q > delta. Clopper-Pearson bounds.
* rho-zCDP bounds the divergence KL(P|Q) by rho (Renyi divergences rise with their order). For any bounded T the
  divergence is at least E_P[T] - log E_Q[exp T] (Donsker and Varadhan 1983); both means by the empirical Bernstein
  bound (Maurer and Pontil 2009, Theorem 4). An event alone would not show 5 %: it hides a third of rho.
"""

import math

import numpy as np
from attrs import frozen
from scipy.stats import beta

from dpgm_core import Array, Budget, FloatArray

_BINS = 60
_CAPS = (0.5, 1.0, 2.0, 3.0, 4.0)


@frozen(kw_only=True)
class Verdict:
    """claimed, bound: epsilon, or rho; the true one is at least `bound` but for a chance of `alarm`. refuted: the claim
    is false but for that chance."""

    claimed: float
    bound: float
    refuted: bool


def verdict(claim: Budget, near: FloatArray, far: FloatArray, alarm: float) -> Verdict:
    """Hold a claim against two samples of the same size, (draws, statistics): numbers that a draw may be told by.

    alarm: the chance that a true claim is refuted.
    """
    half = len(near) // 2
    best: tuple[float, Array, int] | None = None
    for column in range(near.shape[1]):
        for direction in (0, 1):
            pair = (near[:, column], far[:, column])[:: 1 - 2 * direction]
            edges, ratios = _learned(pair[0][:half], pair[1][:half])
            for rule in _rules(claim, ratios):
                found = _bound(claim, rule, *(_binned(edges, one[:half]) for one in pair), alarm)[0]
                if best is None or found > best[0]:
                    best = found, (rule, edges), 2 * column + direction
    assert best is not None
    (rule, edges), column, direction = best[1], best[2] // 2, best[2] % 2
    pair = (near[:, column], far[:, column])[:: 1 - 2 * direction]
    excess, bound = _bound(claim, rule, *(_binned(edges, one[half:]) for one in pair), alarm)
    return Verdict(claimed=float(claim.rho or claim.epsilon), bound=bound, refuted=excess > 0)


def _learned(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bins of about equal mass, and the log-ratio of each."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, _BINS + 1)[1:-1]))
    return edges, np.log((_binned(edges, one) + 0.5) / (_binned(edges, other) + 0.5))


def _rules(claim: Budget, ratios: FloatArray) -> list[FloatArray]:
    """What may be measured: events {ratio >= t} as 0 and 1, or capped ratios."""
    if claim.kind == "zcdp":
        return [np.clip(ratios, -5.0, cap) for cap in _CAPS]
    return [(ratios >= threshold).astype(np.float64) for threshold in np.unique(ratios)]


def _binned(edges: FloatArray, values: FloatArray) -> Array:
    """How many values fall into each bin."""
    return np.bincount(np.searchsorted(edges, values, "right"), minlength=len(edges) + 1)


def _bound(claim: Budget, rule: FloatArray, one: Array, other: Array, alarm: float) -> tuple[float, float]:
    """By how much the claim is exceeded for certain, and the bound. one, other: draws in each bin of the rule."""
    if claim.kind == "zcdp":
        low, slack = _mean(rule, one, alarm / 2)
        high, more = _mean(np.exp(rule), other, alarm / 2)
        bound = low - slack - math.log(high + more)
        return bound - float(claim.rho), bound
    (hits, tries), (wrong, trials) = ((int(rule @ side), int(side.sum())) for side in (one, other))
    low = float(beta.ppf(alarm / 2, hits, tries - hits + 1)) if hits else 0.0
    high = float(beta.isf(alarm / 2, wrong + 1, trials - wrong)) if wrong < trials else 1.0
    epsilon, delta = float(claim.epsilon), float(claim.delta)
    bound = math.log((low - delta) / high) if low > delta else -math.inf
    return (low - math.exp(epsilon) * high - delta if delta else bound - epsilon), bound


def _mean(rule: FloatArray, counts: Array, alarm: float) -> tuple[float, float]:
    """The mean of what the rule says, and how far its expectation may be from it but for a chance of `alarm`."""
    count, log = int(counts.sum()), math.log(2 / alarm)
    mean = float(rule @ counts) / count
    variance = float((rule - mean) ** 2 @ counts) / (count - 1)
    reach = float(np.ptp(rule))
    return mean, math.sqrt(2 * variance * log / count) + 7 * reach * log / (3 * (count - 1))
