"""Learners tuned by the truth, which nobody has: the path of CGM-EM, and naive MLE at its best penalty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from dpgm_cgm_em.weighting import score_bound

from benchmarks.protocol.populations import Population
from dpgm_core import Collective, NoisyTables, Tables, learn, make

__all__ = ["oracle", "path"]

LAMBDAS = [10.0 ** (-half / 2) for half in range(4, 11)]


def path(
    population: Population, noisy: NoisyTables, e_step: Collective, *, tau: float, step: float
) -> Iterator[tuple[float, float, float, int]]:
    """EM written out: (tau, KL, |y - n|_1, inference calls) after each proximal step."""
    bound = score_bound(noisy)
    engine = e_step.compile(population.engine, noisy)
    theta, start = Tables.zeros(population.structure), None
    for number in range(round(tau / step)):
        beliefs = engine.infer(theta, evidence_weight=step / bound, start=start)
        start = beliefs.multipliers
        theta = theta + start
        distance = float(np.abs(noisy.tables.values - beliefs.marginals.values).sum())
        yield step * (number + 1), population.kl(theta.values), distance, beliefs.calls


def oracle(population: Population, noisy: NoisyTables) -> tuple[float, float]:
    """(lambda, KL) of the naive MLE whose penalty was chosen by the truth."""
    fits = {l2: learn(noisy, make("learner", "naive-mle", l2=l2)) for l2 in LAMBDAS}
    scores = {l2: population.kl(fit.model.potentials.values) for l2, fit in fits.items()}
    best = min(scores, key=scores.__getitem__)
    return best, scores[best]
