"""Totals estimated from noisy tables, and warnings that follow from tables alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.attribute_tables import MISSING
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.privacy.tabulated import log_moment, tabulated_variance
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["contradictions", "counted", "estimate_total", "false_alarm", "far_from", "mostly_missing", "stated_total"]


# --- The number of records, stated or estimated ---------------------------------------------------


def stated_total(terms: Terms, records: int) -> float:
    """N as the terms state it, `records` where it is public, at least 1 then; 0 where it is estimated."""
    return max(1.0, float(records)) if terms.total_policy == "public" else terms.declared_total or 0.0


def estimate_total(
    tables: Tables, variances: FloatArray, contributions: Contributions | None = None, *, contrasts: bool = False
) -> tuple[float, float]:
    """(N_hat, its variance): the minimum-variance estimate from the noisy sums; records, at least 1.

    N_hat = sum_g m_g s_g/(K_g sigma_g^2) / sum_g m_g^2/(K_g sigma_g^2), s_g the noisy sum and K_g the cells of
    group g (docs/proofs.md). Post-processing: free. With contributions N is in persons, and m_g is what one person
    adds to a table at most; some add less, to some tables. contrasts: N is that of the empty clique, one of the tables.
    """
    structure = tables.structure
    if contrasts:
        number, _ = structure.find(())
        return max(1.0, float(tables.group(number))), float(variances[number])
    cells = np.asarray(structure.sizes, dtype=np.float64)
    tied = (
        np.asarray(structure.multiplicities, np.float64) if contributions is None else contributions.wholes(structure)
    )
    weights = tied / (cells * variances)
    precision = float(np.sum(weights * tied))
    return max(1.0, float(np.sum(weights * tables.sums()) / precision)), 1.0 / precision


def counted(release: NoisyTables) -> tuple[float, float]:
    """N and its variance behind a release; the total of a round is that of its subsample."""
    rate = 1.0 if release.round is None else float(release.round.sampling_rate)
    return release.total / rate, release.total_variance / rate**2


# --- A stated number of records against the sums of the noisy tables ------------------------------
# Each table of group g sums to m_g N plus the noise of its K_g cells, of variance v_g each: s_g. With the weights w_g
# = m_g / (K_g v_g) and their sum W = sum_g w_g m_g, N_hat = sum_g w_g s_g / W is N plus noise of variance 1 / W, the
# least that there is. It is taken over all tables of all releases that state this total, as their noises are
# independent; and of those that estimate N, if only one total is stated: pooled with the others they are about as many
# records.
#
# Distances above 6 standard errors are reported if noise alone goes so far with probability 1/100 at most: that bounds
# the false alarm for every noise. It is nearly always much less. By Chernoff's bound, at 6 standard errors:
#
# * Gaussian noise: E exp(sX) <= exp(s^2 sigma^2 / 2) (Canonne, Kamath, Steinke 2020, Corollary 9), so 2 exp(-18)
#   = 3e-8.
# * Laplace noise: E exp(sX) = 1 / (1 - v (cosh s - 1)), v its variance: for wide noise 5e-3 for a table of one cell
#   (the truth is exp(-6 sqrt 2) = 2e-4), 1e-3 for two cells, 3e-6 for 16, 1e-7 for 100. Bounded noise has less. (For
#   continuous noise s^2 / 2 stands for cosh s - 1, which is more.)
#
# Where noise is so small that 6 standard errors are less than a record, a draw that is not 0 is rare but always that
# far, so the bound asks for more.

#: Standard errors from which a distance is reported, and the largest probability that noise alone goes so far.
_MIN_STANDARD_ERRORS, _MAX_FALSE_ALARM = 6.0, 1e-2
#: Slopes at which Chernoff's bound is computed; each gives a bound.
_SLOPES = np.geomspace(0.05, 100, 400)


def contradictions(releases: Sequence[NoisyTables]) -> list[str]:
    """A sentence for each total that was stated as public and lies far from the noisy tables' own; mostly none.

    Rounds are left out, as subsamples have totals of their own. Releases of a holdout count, and so does each step of a
    session. Of contrasts only that of the empty clique tells N.
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
    that are wider than their event says it takes the distribution of the event with that variance.
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
    # The tables of contrasts were all filled up with one N, and no event bounds the noise of ranges.
    independent = [
        [
            (group == ((),) or not one.contrasts) and not isinstance(noise, RangeNoise)
            for group, noise in zip(one.structure.groups, one.noise, strict=True)
        ]
        for one in releases
    ]
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
    if distance <= _MIN_STANDARD_ERRORS * error:
        return None
    if false_alarm(noises, cells, weights / precision, distance) > _MAX_FALSE_ALARM:
        return None
    return estimate, error


def _log_moment(noise: Noise, slopes: FloatArray) -> FloatArray:
    """log E exp(s X) of one draw, or more; infinite where it has none."""
    event = noise.event
    if event.distribution is not None:
        factor = math.sqrt(noise.variance / tabulated_variance(event.distribution))  # of a view in other units
        return log_moment(event.distribution, slopes * factor)
    if event.kind in ("gaussian", "discrete-gaussian"):
        return np.asarray(np.square(slopes) * max(noise.variance, event.scale**2) / 2)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # of the unbounded distribution: 2 a / (1 - a)^2 with a = exp(-1 / scale)
        variance = max(noise.variance, float(1 / (np.cosh(1 / event.scale) - 1)))
        spread = variance * (np.cosh(slopes) - 1)
        return np.where(spread < 1, -np.log1p(-np.minimum(spread, 1.0)), math.inf)


# --- Columns that are mostly missing, according to the noisy tables -------------------------------
# A file read in another dialect than it was written in, or labels spelled otherwise, fill a release with the label of
# missing values. A table in which n of the m labels of a column are that label sums to T, and the n
# labels to M, each with noise of variance v a cell, c cells in all. Then p = M / T is their share, with the standard
# error sqrt(v c ((1 - p)^2 n / m + p^2 (1 - n / m))) / T of a ratio (delta method). Of the tables that hold the column
# the one with the least standard error counts.

#: Standard errors by which a share must exceed one half: Gaussian noise alone does that with probability 1.4e-3.
_SURE_STANDARD_ERRORS = 3.0
_MAX_SHOWN = 5


def mostly_missing(releases: Sequence[NoisyTables]) -> list[str]:
    """Return a sentence about the columns of which more than half is missing; empty where there are none.

    It is computed from the noisy tables. Rounds and contrasts are left out, and columns whose missing values have a
    label of another name, which may be an answer of its own.
    """
    shares: dict[str, tuple[float, float]] = {}
    for release in _measured(releases):
        if release.round is not None or release.contrasts:
            continue
        structure = release.structure
        for number, (group, variance) in enumerate(zip(structure.groups, release.variances.tolist(), strict=True)):
            if len(group) > 1:  # tied tables are sums over several columns
                continue
            table = release.tables.group(number)
            total = float(table.sum())
            for axis, name in enumerate(group[0]):
                one = structure.domain[name]
                codes = [code for code in {one.unknown, one.null} if one.labels[code] == MISSING]
                if not codes or one.size == 1 or total <= 0:
                    continue
                share = float(table.take(codes, axis).sum()) / total
                part = len(codes) / one.size
                spread = (1 - share) ** 2 * part + share**2 * (1 - part)
                error = math.sqrt(variance * table.size * spread) / total
                if name not in shares or error < shares[name][1]:
                    shares[name] = share, error
    missing = {name: share for name, (share, error) in shares.items() if share - _SURE_STANDARD_ERRORS * error > 0.5}
    if not missing:
        return []
    shown = [f"{name} ({min(share, 1):.0%})".replace("%", " %") for name, share in list(missing.items())[:_MAX_SHOWN]]
    more = f" and {len(missing) - _MAX_SHOWN} more columns" if len(missing) > _MAX_SHOWN else ""
    lines = ", or lines that cannot be told apart (see delimiter, quoting, encoding)" if len(missing) > 1 else ""
    return [
        f"mostly missing: {', '.join(shown)}{more}, where empty cells go and values that are not as the domain says; "
        f"if that is a surprise, labels may be spelled otherwise in the file (upper and lower case: case = false)"
        f"{lines}: dpgm validate shows the owner"
    ]
