"""Comparison of noisy tables with noisy tables and with a model."""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from dpgm_core.comparison.distances import difference_of
from dpgm_core.comparison.matching import Overlap
from dpgm_core.comparison.values import Difference, Gap
from dpgm_core.evaluate import normalise
from dpgm_core.models.misfit import table_scores
from dpgm_core.models.model import Model
from dpgm_core.releases.coarse import cell_variances
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique
from dpgm_core.tables import Tables

__all__ = ["against_model", "gaps"]


def gaps(first: NoisyTables, other: NoisyTables, matching: Overlap) -> tuple[list[Gap], list[str]]:
    """Tables that both measured, the furthest apart first, and what was left out.

    d = y - y' has the variance of both noises where both counted the same records, so the root mean square of
    d / sqrt(v + v') is about 1. Tied tables, which are sums over other tables, are left out.
    """
    if first.contributions != other.contributions:
        return [], ["their tables are not compared: they weight the rows of a person differently"]
    if first.contrasts or other.contrasts:
        return [], ["their tables are not compared: sums of products were measured, and no cells"]
    result = []
    theirs = _shared_tables(other, matching)
    for names, number in _shared_tables(first, matching).items():
        if names not in theirs:
            continue
        clique = first.structure.groups[number][0]
        variances = cell_variances(first, clique), cell_variances(other, clique)
        counts = matching.aligned(clique, np.asarray(other.tables[clique], dtype=np.float64))
        both = variances[0] + matching.aligned(clique, variances[1])
        apart = (np.asarray(first.tables.group(number)) - counts) / np.sqrt(both)
        result.append(
            Gap(
                attributes=clique,
                deviations=float(np.sqrt(np.mean(apart**2))),
                largest=float(np.abs(apart).max()),
                noise_first=math.sqrt(variances[0].mean()),
                noise_other=math.sqrt(variances[1].mean()),
            )
        )
    notes = [] if result else ["no table was measured by both"]
    if result and not any(one.largest for one in result):
        notes.append("all numbers of these tables are the same: it is one release under two names")
    return sorted(result, key=lambda one: -one.deviations), notes


def against_model(
    model: Model, release: NoisyTables, matching: Overlap, *, model_first: bool
) -> tuple[list[Difference], list[str]]:
    """The model's probabilities against noisy tables as shares; the scores are those of `Model.misfit`.

    matching: of the two domains, the first's first.
    """
    ours = [release.structure.groups[number][0] for number in _shared_tables(release, matching).values()]
    if not ours:
        return [], ["the model answers about no whole table of the release"]
    answers = model.marginals_of(ours)
    domain = (model if model_first else release.structure).domain
    scores = _scores(model, release, matching, model_first=model_first)
    differences = []
    for clique in ours:
        probabilities, shares = answers[clique], normalise(np.asarray(release.tables[clique], dtype=np.float64))
        both = (
            (probabilities, matching.aligned(clique, shares))
            if model_first
            else (
                shares,
                matching.aligned(clique, probabilities),
            )
        )
        standing = (model.standing(clique), "measured") if model_first else ("measured", model.standing(clique))
        differences.append(evolve(difference_of(clique, domain, both, standing), score=scores.get(clique)))
    return sorted(differences, key=lambda one: -one.total_variation), []


def _shared_tables(release: NoisyTables, matching: Overlap) -> dict[frozenset[str], int]:
    """The number of each table, not tied and not empty, whose attributes are all shared."""
    return {
        frozenset(group[0]): number
        for number, group in enumerate(release.structure.groups)
        if len(group) == 1 and group[0] and set(group[0]) <= set(matching.shared)
    }


def _scores(model: Model, release: NoisyTables, matching: Overlap, *, model_first: bool) -> dict[Clique, float]:
    """Return how many standard errors each table lies from the model; empty where it lacks some of them."""
    groups = release.structure.groups
    if matching.reordered or any(len(group) > 1 or not set(group[0]) <= set(matching.shared) for group in groups):
        return {}
    if release.contributions is not None:
        return {}
    answers = model.marginals_of([group[0] for group in groups if group[0]])
    arrays = {group[0]: answers.get(group[0], np.ones(())) for group in groups}
    scores = table_scores(release, Tables.from_arrays(release.structure, arrays))
    return {clique: max(0.0, score) for clique, score in scores.items()}
