"""Error of the structure from a holdout, and the variance that it adds to answers.

The model answers about a pair of attributes in no clique by its independences. The holdout measured some such pairs; the
error found there is taken to hold for all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import OptionError
from dpgm_core.models.intervals import Interval
from dpgm_core.models.misfit import Component, cell_scales, component, joint_score, margin_scales, table_scores
from dpgm_core.noise.check import unmeasured_pairs
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["distance", "measure_structure_error", "pairs_left", "scores_of", "squared_errors", "structure_variance"]

#: Answers of a model to several queries at once.
Answers: TypeAlias = Callable[[Sequence[Clique]], Mapping[Clique, FloatArray]]


class Answering(Protocol):
    """A model, as far as it is needed here."""

    def marginals_of(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Answers to several queries at once."""
        ...


def pairs_left(holdout: Structure, structure: Structure, unmeasured: Collection[str]) -> list[Clique]:
    """The pairs of a holdout that a model over `structure` answers by its independences.

    Since the holdout a wider structure may have been learned, which holds some of them, or one from other releases,
    which did not measure all of their attributes: what the model says of those is no answer.

    >>> from dpgm_core.domain import Domain
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
) -> Component:
    """The structure's error from the tables of these pairs in a holdout. Raises OptionError where there are none.

    learned: the releases that tell N. spreads: variances of answers beside the structure's error, from replicates; None
    without them.
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
    # Weighted tables were levelled to their own total.
    weighted = holdout.published[0].contributions is not None
    return component(
        [
            (holdout.tables[pair].astype(np.float64), holdout.noise[holdout.structure.find(pair)[0]].variance)
            for pair in pairs
        ],
        _total(holdout) if weighted else min(map(_total, learned), key=lambda one: one[1]),
        [expected[pair] for pair in pairs],
        None if known is None else [known[pair] for pair in pairs],
    )


def distance(
    error: Component, structure: Structure, unmeasured: Collection[str], answers: Answers, level: float
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
    sums = {name: float(margin_scales(shares[name,]).sum()) for name in names}
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
    model: Answering, replicates: Sequence[Answering], cliques: Sequence[Clique]
) -> dict[Clique, FloatArray]:
    """The squared errors to expect of several answers, spread and bias together, from replicates."""
    here, drawn = model.marginals_of(cliques), [one.marginals_of(cliques) for one in replicates]
    squares = {}
    for clique in cliques:
        rows = np.stack([one[clique] for one in drawn])
        squares[clique] = rows.var(axis=0, ddof=1) + (rows.mean(axis=0) - here[clique]) ** 2
    return squares


def structure_variance(
    structure: Structure, names: Clique, fixed: Mapping[str, int], answer: FloatArray, answers: Answers
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
        scale, table = cell_scales(marginals[one,], marginals[two,]), marginals[one, two]
        share = np.divide(scale, table, out=np.zeros_like(scale), where=table > 0)
        # `whole` has the names first and in their order, so the axes of what is left of the pair are in order too.
        share = share[tuple(fixed.get(name, slice(None)) for name in (one, two))]
        free = [name for name in (one, two) if name not in fixed]
        shape = [answer.shape[axis] if name in free else 1 for axis, name in enumerate(names)]
        variance += (answer * share.reshape(shape)) ** 2
    return variance


def _total(release: NoisyTables) -> tuple[float, float]:
    """N and its variance; a round's own total is that of its subsample."""
    rate = 1.0 if release.round is None else float(release.round.sampling_rate)
    return release.total / rate, release.total_variance / rate**2
