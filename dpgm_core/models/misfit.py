"""Misfit of a structure: its estimate, and the holdout measurement's error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, aligned, ratio
from dpgm_core.errors import OptionError
from dpgm_core.models.intervals import Interval
from dpgm_core.models.range_margins import covariance_of
from dpgm_core.privacy.contrasts import products
from dpgm_core.privacy.holdout import unmeasured_pairs
from dpgm_core.privacy.mechanism import Noise, ScaledNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.totals import counted
from dpgm_core.releases.views import equalize_totals
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Component",
    "cell_scales",
    "component",
    "distance",
    "joint_score",
    "margin_scales",
    "measure_structure_error",
    "pairs_left",
    "scores_of",
    "squared_errors",
    "structure_variance",
    "table_scores",
]


# --- Distances of a model from noisy tables -------------------------------------------------------
# This is post-processing of releases and free. Tables that the model was learned from: each noisy cell is compared with
# its distribution if the model were the truth, a Poisson count around N q plus the noise. Counts of N records vary less
# than independent Poisson counts, and a fit bends towards its tables; both make the test more cautious, never less.
#
# Tables of a holdout: the part of their squared distance that noise and sampling do not explain is the error of
# the structure. It is measured as one number, tau: the error of a cell (i, j) of a pair that no clique contains has
# standard deviation tau s_i s_j, s_i = (p_i (1 - p_i))^a / (sum over the codes of these)^b. Of a structure that was
# named a is 3/4, between one correlation (1/2) and one ratio (1) for all cells, and b is 0: of three powers this covers
# large and small cells best (`python -m benchmarks.misfit`). After a selection a is 1/2 and b is 1: each pair misses
# as much total variation, as what is left by structure is what scores could not tell from noise (decision 0049).

#: Expected records from which a Poisson count is taken as normal; points and deviations of its quadrature.
_MIN_NORMAL_MEAN, _QUADRATURE_POINTS, _MAX_DEVIATIONS = 400.0, 401, 10.0
#: The powers a and b; see above.
_NAMED, _SELECTED = (0.75, 0.0), (0.5, 1.0)
#: Cells whose distributions are summed at once; bounds memory.
_CELLS_AT_ONCE = 2000


@frozen(kw_only=True)
class Component:
    """The structure's error as a variance component. variance: tau squared, unbiased, so that it may be negative.

    error: its standard error. pairs: how many tables it was measured on.
    """

    variance: float
    error: float
    pairs: int

    @property
    def expected(self) -> float:
        """tau squared as it is to be used, above 0: its mean given what was measured and that it is not negative.

        >>> clear, hidden = (Component(variance=v, error=0.01, pairs=9) for v in (0.1, -0.01))
        >>> round(clear.expected, 4), round(hidden.expected, 4)
        (0.1, 0.0053)
        """
        from scipy.special import log_ndtr

        ratio = self.variance / self.error
        return self.variance + self.error * math.exp(
            -(ratio**2) / 2 - math.log(math.sqrt(2 * math.pi)) - log_ndtr(ratio)
        )

    def limits(self, level: float) -> tuple[float, float]:
        """An interval of tau squared, not below 0; Student's t with as many degrees as pairs, less one."""
        from scipy.special import stdtrit

        width = float(stdtrit(max(self.pairs - 1, 1), (1 + level) / 2)) * self.error
        return max(self.variance - width, 0.0), max(self.variance + width, 0.0)


def table_scores(release: NoisyTables, marginals: Tables) -> dict[Clique, float]:
    """Return how many standard errors each noisy table lies from a model, by the first clique of its group.

    marginals: the model's, over the release's structure, as counts of one record. The scores of a right model are at
    most those of a normal deviate: above z with the chance that one exceeds z, for whatever noise, N and size of table.
    Of contrasts each clique's own is compared, as the difference of two Poisson counts around N (1 + m) / 2 and
    N (1 - m) / 2, m the model's, plus the noise; and none for the empty clique, which is N.
    """
    from scipy.special import gammaincc, ndtri

    view = equalize_totals(release)
    scores = {}
    noisy, sums = view.tables.arrays(), view.measured
    # The two counts of a contrast vary as one of N records does, so it is compared as such a count, moved.
    moved = view.total * (1 - products(marginals)) if view.contrasts else np.zeros(len(noisy))
    for number, group in enumerate(view.structure.groups):
        table, expected = noisy[number].reshape(-1), view.total * np.maximum(marginals.group(number).reshape(-1), 0.0)
        if view.contrasts:
            if group == ((),):
                continue
            table, expected = sums[number : number + 1] + moved[number], np.array([view.total])
        covariance = covariance_of(view.noise[number])
        if covariance is None:
            deviates = _deviates(table.astype(np.float64), expected, view.noise[number], len(group))
            squares, cells = float(deviates @ deviates), len(deviates)
        else:  # of ranges the noise of cells is not independent; counts are taken as normal beside it
            apart = table - expected
            squares, cells = float(apart @ np.linalg.solve(covariance + np.diag(expected), apart)), len(apart)
        chance = float(gammaincc(cells / 2, squares / 2))
        # Where the chance underflows: Fisher's approximation of the distribution of chi-square.
        scores[group[0]] = -float(ndtri(chance)) if chance > 0 else math.sqrt(2 * squares) - math.sqrt(2 * cells - 1)
    return scores


def joint_score(scores: Sequence[float]) -> float:
    """Return one score for several tables: the largest score, corrected for the number of tables (Bonferroni)."""
    from scipy.special import ndtr, ndtri

    worst = max(scores)
    if worst > 37:  # the chance underflows, and how many tables there are no longer matters
        return worst
    return -float(ndtri(min(1.0, len(scores) * float(ndtr(-worst))))) if len(scores) > 1 else worst


def cell_scales(one: FloatArray, two: FloatArray, selected: bool) -> FloatArray:
    """Return the factor of tau in each cell, (labels of one, of two); selected: whether the structure was."""
    return np.outer(margin_scales(one, selected), margin_scales(two, selected))


def margin_scales(shares: FloatArray, selected: bool) -> FloatArray:
    """The part of `cell_scales` that comes from one attribute."""
    power, size_power = _SELECTED if selected else _NAMED
    scales = (shares * (1 - shares)).clip(0.0) ** power
    return np.asarray(ratio(scales, scales.sum() ** size_power))


def component(
    tables: Sequence[tuple[FloatArray, float]],
    total: tuple[float, float],
    answers: Sequence[FloatArray],
    spreads: Sequence[FloatArray] | None = None,
    *,
    selected: bool = False,
) -> Component:
    """The structure's error from noisy tables of pairs that no clique holds.

    tables: noisy counts and the variance of their noise. total: N and its variance. answers: the model's
    probabilities of each table. spreads: the variances of these answers without the structure's error, None where
    unknown; then the error of the fit counts as the structure's. selected: whether the structure was. Fisher
    scoring of R ~ Normal(0, noise + N q + N^2 tau^2 scale^2) over all cells; the standard error is that between
    tables, or that of normal residuals where it is larger.
    """
    n, variance = total
    excess, lever, base = [], [], []
    for number, ((noisy, noise), q) in enumerate(zip(tables, answers, strict=True)):
        known = noise + n * q + variance * q**2
        if spreads is not None:
            known = known + n**2 * spreads[number]
        scale = cell_scales(q.sum(axis=1), q.sum(axis=0), selected)
        excess.append(((noisy - n * q) ** 2 - known).reshape(-1))
        lever.append((n * scale).reshape(-1) ** 2)
        base.append(known.reshape(-1))
    tau2, tops, bottoms = 0.0, np.zeros(1), np.zeros(1)
    for _ in range(50):
        weights = [one / (known + one * max(tau2, 0.0)) ** 2 for one, known in zip(lever, base, strict=True)]
        tops = np.array([float(w @ one) for w, one in zip(weights, excess, strict=True)])
        bottoms = np.array([float(w @ one) for w, one in zip(weights, lever, strict=True)])
        before, tau2 = tau2, float(tops.sum() / bottoms.sum())
        if abs(tau2 - before) <= 1e-6 * abs(tau2):
            break
    pairs = len(answers)
    between = float(np.sum((tops - tau2 * bottoms) ** 2)) * pairs / max(pairs - 1, 1)
    return Component(variance=tau2, error=math.sqrt(max(between / bottoms.sum() ** 2, 2 / bottoms.sum())), pairs=pairs)


def _deviates(noisy: FloatArray, expected: FloatArray, noise: Noise, tied: int) -> FloatArray:
    """Each noisy cell as the standard normal deviate that is as likely to be exceeded; ties count half.

    expected: records of the table's m cliques together, whose counts vary together; they vary at most like m times a
    Poisson count of the m-th part.
    """
    from scipy.special import ndtri

    points, below, above = _noise_distribution(noise)
    deviates = np.empty_like(noisy)
    means = expected / tied
    few = means < _MIN_NORMAL_MEAN
    for cells, nodes_of in ((np.flatnonzero(few), _poisson), (np.flatnonzero(~few), _normal)):
        for start in range(0, len(cells), _CELLS_AT_ONCE):
            some = cells[start : start + _CELLS_AT_ONCE]
            counts, weights = nodes_of(means[some])
            residual = noisy[some, None] - tied * counts
            # Both tails by themselves: 1 minus the one would lose the other's digits.
            low = np.sum(weights * np.interp(residual, points, below), axis=1)
            high = np.sum(weights * np.interp(residual, points, above), axis=1)
            deviates[some] = np.where(low < high, ndtri(np.maximum(low, 1e-300)), -ndtri(np.maximum(high, 1e-300)))
    return deviates


def _noise_distribution(noise: Noise) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, and the chances of less and of more than each, of itself counted half; the lattice of a narrow noise."""
    if isinstance(noise, ScaledNoise):
        bare, *chances = _noise_distribution(noise.noise)
        return bare * noise.factor, chances[0], chances[1]
    spread = math.sqrt(noise.variance)
    reach = 40 * spread + 2
    if spread < 500:
        points = np.arange(-math.ceil(reach), math.ceil(reach) + 1.0)
    else:
        points = np.linspace(-reach, reach, 40_001)
    density = noise.logpdf(points)
    mass = np.exp(density - density.max())
    mass /= mass.sum()
    return points, np.cumsum(mass) - mass / 2, np.cumsum(mass[::-1])[::-1] - mass / 2


def _poisson(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts and their chances, (cells, counts), for means below `_MIN_NORMAL_MEAN`."""
    from scipy.special import gammaln, xlogy

    root = np.sqrt(means)
    low = np.floor(np.maximum(means - _MAX_DEVIATIONS * root - 2, 0.0))
    width = math.ceil(float(2 * _MAX_DEVIATIONS * root.max() + 30))
    counts = low[:, None] + np.arange(float(width))
    weights: FloatArray = np.exp(xlogy(counts, means[:, None]) - means[:, None] - gammaln(counts + 1))
    return counts, weights / weights.sum(axis=1, keepdims=True)


def _normal(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same as points of a normal distribution with the mean and variance of the count."""
    steps = np.linspace(-_MAX_DEVIATIONS, _MAX_DEVIATIONS, _QUADRATURE_POINTS)
    weights = np.exp(-(steps**2) / 2)
    return means[:, None] + np.sqrt(means)[:, None] * steps, (weights / weights.sum())[None, :]


# --- Error of the structure -----------------------------------------------------------------------
# The model answers about a pair of attributes in no clique by its independences. The holdout measured some such pairs;
# the error found there is taken to hold for all of them.

#: Answers of a model to several queries at once.
Answers: TypeAlias = Callable[[Sequence[Clique]], Mapping[Clique, FloatArray]]


def pairs_left(holdout: Structure, structure: Structure, unmeasured: Collection[str]) -> list[Clique]:
    """The pairs of a holdout that a model over `structure` answers by its independences.

    Since the holdout a wider structure may have been learned, which holds some of them, or one from other releases,
    which did not measure all of their attributes: what the model says of those is no answer.

    >>> from dpgm_core.domain.domain import Domain
    >>> domain = Domain.from_sizes(dict.fromkeys("abcd", 2))
    >>> holdout = Structure(domain, [("a", "c"), ("b", "c"), ("a", "d")])
    >>> pairs_left(holdout, Structure(domain, [("a", "b"), ("b", "c")]), ["d"])
    [('a', 'c')]
    """
    nothing = set(unmeasured)
    return [pair for pair in holdout.cliques if structure.covering(pair) is None and nothing.isdisjoint(pair)]


def measure_structure_error(
    holdout: NoisyTables | None,
    pairs: Sequence[Clique],
    learned: Sequence[NoisyTables],
    answers: Answers,
    spreads: Callable[[Sequence[Clique]], Mapping[Clique, FloatArray]] | None,
    selected: bool,
) -> Component:
    """The structure's error from the tables of these pairs in a holdout. Raises OptionError where there are none.

    learned: the releases that tell N. spreads: variances of answers from replicates, without the structure's error, or
    None.
    """
    if holdout is None:
        raise OptionError(
            "the model has no holdout, which measures the structure's error; reserve a share of the budget "
            'for one: fit(..., split={"holdout": 0.05}), or [holdout] share = 0.05'
        )
    if not pairs:
        raise OptionError(
            "every pair of the holdout is inside a clique of the model or not measured by its releases, so the "
            "structure's error cannot be estimated"
        )
    expected, known = answers(pairs), None if spreads is None else spreads(pairs)
    # The totals of weighted tables were equalized to their own.
    weighted = holdout.published[0].contributions is not None
    return component(
        [
            (holdout.tables[pair].astype(np.float64), holdout.noise[holdout.structure.find(pair)[0]].variance)
            for pair in pairs
        ],
        counted(holdout) if weighted else min(map(counted, learned), key=lambda one: one[1]),
        [expected[pair] for pair in pairs],
        None if known is None else [known[pair] for pair in pairs],
        selected=selected,
    )


def distance(
    error: Component, structure: Structure, unmeasured: Collection[str], answers: Answers, level: float, selected: bool
) -> Interval:
    """The total variation between truth and model that the component comes to, the mean over unmeasured pairs.

    unmeasured: attributes in no release. For normal errors of the cells it is half the sum of their mean absolute
    values, sqrt(2 / pi) tau scale, and 1 at most. Errors with heavier tails have less of it, so it is rather too large
    than too small.
    """
    nothing = set(unmeasured)
    pairs = [pair for pair in unmeasured_pairs(structure) if nothing.isdisjoint(pair)]
    names = sorted({name for pair in pairs for name in pair})
    shares = answers([(name,) for name in names])
    sums = {name: float(margin_scales(shares[name,], selected).sum()) for name in names}
    unit = math.sqrt(0.5 / math.pi) * float(np.mean([sums[one] * sums[two] for one, two in pairs]))
    tau = math.sqrt(max(error.variance, 0.0))
    low, high = (min(unit * math.sqrt(limit), 1.0) for limit in error.limits(level))
    return Interval(
        estimate=np.asarray(min(unit * tau, 1.0)),
        # The delta method; near 0, where it has no derivative, the root of the error.
        standard_error=np.asarray(unit * error.error / max(2 * tau, math.sqrt(error.error))),
        bias=np.zeros(()),
        low=np.asarray(low),
        high=np.asarray(high),
        level=level,
    )


def scores_of(releases: Sequence[NoisyTables], answers: Answers) -> dict[Clique, float]:
    """The `table_scores` of releases of counts; of a clique in several their `joint_score`: chance has more of them."""
    scores: dict[Clique, list[float]] = {}
    for one in releases:
        if one.round is not None and one.round.clip is not None:
            continue
        marginals = {(): np.ones(()), **answers([clique for clique in one.structure.cliques if clique])}
        tables = [np.sum([marginals[clique] for clique in group], axis=0).reshape(-1) for group in one.structure.groups]
        for clique, score in table_scores(one, Tables(one.structure, np.concatenate(tables))).items():
            scores.setdefault(clique, []).append(score)
    return {clique: joint_score(marginals) for clique, marginals in scores.items()}


def squared_errors(
    answers: Answers, replicates: Sequence[Answers], cliques: Sequence[Clique]
) -> dict[Clique, FloatArray]:
    """The squared errors to expect of several answers, spread and bias together, from those of replicates."""
    here, drawn = answers(cliques), [one(cliques) for one in replicates]
    squares = {}
    for clique in cliques:
        rows = np.stack([one[clique] for one in drawn])
        squares[clique] = rows.var(axis=0, ddof=1) + (rows.mean(axis=0) - here[clique]) ** 2
    return squares


def structure_variance(
    structure: Structure, names: Clique, fixed: Mapping[str, int], answer: FloatArray, answers: Answers, selected: bool
) -> FloatArray | None:
    """Return the factor of tau squared in the variance of p(names | fixed), by entry; None where all is measured.

    Errors of pairs are taken as independent, and to first order: that of a pair moves p(x) in the proportion in which
    it moves the pair's own cell. Pairs among what is given cancel out.
    """
    missed = {frozenset(pair) for pair in unmeasured_pairs(structure)}
    whole = (*names, *fixed)
    pairs = [
        (one, two)
        for one, two in itertools.combinations(whole, 2)
        if frozenset((one, two)) in missed and not (one in fixed and two in fixed)
    ]
    if not pairs:
        return None
    marginals = answers([*pairs, *((name,) for name in {name for pair in pairs for name in pair})])
    variance = np.zeros_like(answer)
    for one, two in pairs:
        share = ratio(cell_scales(marginals[one,], marginals[two,], selected), marginals[one, two])
        share = share[tuple(fixed.get(name, slice(None)) for name in (one, two))]
        free = [name for name in (one, two) if name not in fixed]
        variance += (answer * aligned(share, free, names)) ** 2
    return variance
