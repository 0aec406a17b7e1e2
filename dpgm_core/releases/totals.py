"""Comparison of a stated number of records with the sums of the noisy tables; post-processing, free.

Each table of group g sums to m_g N plus the noise of its K_g cells, of variance v_g each: s_g. With the weights w_g =
m_g / (K_g v_g) and their sum W = sum_g w_g m_g, N_hat = sum_g w_g s_g / W is N plus noise of variance 1 / W, the least
that there is. It is taken over all tables of all releases that state this total, as their noises are independent; and
of those that estimate N, if only one total is stated: pooled with the others they are about as many records.

A distance above 6 standard errors is said, if noise alone goes that far with probability 1/100 at most: so the false
alarm is never more, whatever the noise. It is nearly always much less. By Chernoff's bound, at 6 standard errors:

* Gaussian noise: E exp(sX) <= exp(s^2 sigma^2 / 2) (Canonne, Kamath, Steinke 2020, Corollary 9), so 2 exp(-18) = 3e-8.
* Laplace noise: E exp(sX) = 1 / (1 - v (cosh s - 1)), v its variance: for wide noise 5e-3 for a table of one cell
  (the truth is exp(-6 sqrt 2) = 2e-4), 1e-3 for two cells, 3e-6 for 16, 1e-7 for 100.
  Noise that ends somewhere has less. (For continuous noise s^2 / 2 stands for cosh s - 1, which is more.)

Where noise is so small that 6 standard errors are less than a record, more is asked for: a draw that is not 0 is rare,
but always that far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.noise.contract import Noise
from dpgm_core.releases.release import NoisyTables

__all__ = ["contradictions", "false_alarm", "far_from"]

#: Standard errors from which on a distance is said, and what noise alone may do so with.
_FAR, _CHANCE = 6.0, 1e-2
#: Slopes at which Chernoff's bound is computed; each gives a bound.
_SLOPES = np.geomspace(0.05, 100, 400)


def contradictions(releases: Sequence[NoisyTables]) -> list[str]:
    """A sentence for each total that was stated as public and lies far from the noisy tables' own; mostly none.

    Rounds are left out, as subsamples have totals of their own. Those of a holdout speak too, and each step of
    a session speaks for itself. Contrasts speak of N by that of the empty clique, if they have it.

    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, Terms
    >>> from dpgm_core import release as released
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> terms, codes = Terms(neighbours="add-remove", total=900), np.zeros((90, 1), int)
    >>> contradictions([released(codes, structure, Budget.pure(1), terms=terms, randomness=SeededRandomness(0))])
    ['the total of 900 is stated as public, but the noisy tables sum to 90.0 (standard error 1.9), ...']
    """
    stated: dict[float, list[NoisyTables]] = {}
    measured = _measured(releases)
    for one in measured:
        if one.total_policy != "estimated" and one.round is None and one.contributions is None:
            stated.setdefault(one.total, []).append(one)
    if len(stated) == 1:
        others = (one for one in measured if one.total_policy == "estimated" and one.round is None)
        next(iter(stated.values())).extend(one for one in others if one.contributions is None)
    return [sentence for total, group in stated.items() if (sentence := _contradiction(total, group))]


def far_from(records: float, releases: Sequence[NoisyTables]) -> list[str]:
    """Return a sentence where the tables sum to another number of records than their owner expected; mostly none.

    records: the number that is public or guessed, of no influence on the release. What is far is said above. Totals
    that are declared are left out, as `contradictions` is about them.
    """
    counted = [one for one in _measured(releases) if one.round is None and one.contributions is None]
    far = _far(records, [one for one in counted if one.total_policy != "declared"])
    if far is None:
        return []
    total, error = far
    person = counted[0].terms.person
    rows = counted[0].rows_per_person
    cut = (
        ""
        if person is None
        else f"; of a person with more than {rows} row{'s' * (rows > 1)} the others are left out, and rows without a "
        f"{person} count as those of one person"
    )
    return [
        f"{records:,.0f} records were expected (records = ... in the spec), and about {total:,.0f} were counted "
        f"(standard error {error:,.2g}){cut}: if that is a surprise, see whether the file is read as it is written "
        "(delimiter, quoting, encoding); dpgm validate shows the owner"
    ]


def false_alarm(noises: Sequence[Noise], cells: FloatArray, factors: FloatArray, distance: float) -> float:
    """An upper bound of the probability that sums of noise, each times its factor, are further than `distance` from 0.

    noises, cells, factors: of each sum, (sums,); how many independent draws it has. distance: > 0, records. For noises
    that are wider than their event says it takes the law of the event with that variance.
    """
    variance = float(np.sum(cells * factors**2 * [noise.variance for noise in noises]))
    # of noise that is hardly ever not 0 the best slope is that of a record, not that of a standard error
    slopes = np.concatenate([_SLOPES / math.sqrt(variance), _SLOPES / float(np.max(factors))])
    exponent = -slopes * distance
    for noise, count, factor in zip(noises, cells, factors, strict=True):
        exponent += count * _log_moment(noise, factor * slopes)
    return min(1.0, 2 * math.exp(min(0.0, float(np.min(exponent)))))


def _measured(releases: Sequence[NoisyTables]) -> list[NoisyTables]:
    """The releases, and what a session's tables are the means of: a mean has no event to bound its noise by."""
    return [step for one in releases for step in (one.steps or (one,)) if isinstance(step, NoisyTables)]


def _contradiction(total: float, releases: Sequence[NoisyTables]) -> str | None:
    far = _far(total, releases)
    if far is None:
        return None
    counted, error = far
    return (
        f"the total of {total:,.0f} is stated as public, but the noisy tables sum to {counted:,.1f} (standard error "
        f"{error:,.2g}), {abs(counted - total) / error:.3g} standard errors away, which noise alone hardly ever does: "
        "the stated total or the tables are wrong; learners take the stated one"
    )


def _far(total: float, releases: Sequence[NoisyTables]) -> tuple[float, float] | None:
    """What the tables sum to and its standard error, where noise alone hardly ever goes so far from a total."""
    # The tables of contrasts were all filled up with one N.
    independent = [[group == ((),) or not one.contrasts for group in one.structure.groups] for one in releases]
    pairs = list(zip(releases, independent, strict=True))
    noises = [noise for one, own in pairs for noise in compress(one.noise, own)]
    if not noises:
        return None
    cells = np.concatenate([np.asarray(one.structure.sizes, dtype=np.float64)[own] for one, own in pairs])
    tied = np.concatenate([np.asarray(one.structure.multiplicities, dtype=np.float64)[own] for one, own in pairs])
    sums = np.concatenate([np.asarray(one.tables.sums(), dtype=np.float64)[own] for one, own in pairs])
    weights = tied / (cells * [noise.variance for noise in noises])
    precision = float(np.sum(weights * tied))
    estimate, error = float(np.sum(weights * sums)) / precision, precision**-0.5
    distance = abs(estimate - total)
    if distance <= _FAR * error or false_alarm(noises, cells, weights / precision, distance) > _CHANCE:
        return None
    return estimate, error


def _log_moment(noise: Noise, slopes: FloatArray) -> FloatArray:
    """log E exp(s X) of one draw, or more; infinite where it has none."""
    event = noise.event
    if event.kind in ("gaussian", "discrete-gaussian"):
        return np.asarray(np.square(slopes) * max(noise.variance, event.scale**2) / 2)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # of the law that does not end: 2 a / (1 - a)^2 with a = exp(-1 / scale)
        variance = max(noise.variance, float(1 / (np.cosh(1 / event.scale) - 1)))
        spread = variance * (np.cosh(slopes) - 1)
        return np.where(spread < 1, -np.log1p(-np.minimum(spread, 1.0)), math.inf)
