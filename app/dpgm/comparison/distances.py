"""Distances between subjects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from attrs import evolve

from dpgm.comparison.subjects import ModelSide, RecordsSide, Side
from dpgm.comparison.values import Difference, Gap, Overlap
from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.domain import Domain
from dpgm_core.models.misfit import joint_score, table_scores
from dpgm_core.models.model import Model
from dpgm_core.pipeline.evaluation import normalise, variation_distance
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.views import cell_variances
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import Tables

__all__ = [
    "Aligned",
    "MAX_PAIRS",
    "against_model",
    "choose_tables",
    "difference_of",
    "differences",
    "gaps",
    "has_scores",
    "joint_cell_score",
    "scores",
]


# --- Scores ---

#: Expected records from which a cell of drawn records is taken as normal; smaller cells are ignored.
_MIN_EXPECTED = 5.0
_DIFFERENCE_TOLERANCE = 1e-12

#: Answers of two sides about one table, in the first's order of labels.
Aligned: TypeAlias = tuple[FloatArray, FloatArray]


def has_scores(first: Side, other: Side) -> bool:
    """Whether the errors of both are known: of models that have replicates, and of drawn records."""
    models = [side.model for side in (first, other) if isinstance(side, ModelSide)]
    return len(models) < 2 or all(model.replicates for model in models)


def scores(
    first: Side, other: Side, cliques: Sequence[Clique], matching: Overlap, tables: Sequence[Aligned]
) -> list[float]:
    """Return each table's furthest cell as a normal deviate, corrected for the number of cells (Bonferroni).

    Two models: their errors are those of their replicates, taken as independent, so that of models about the same
    people the scores are too small rather than too large. A model and records: whether the model as it is could have
    drawn them. tables: the two probabilities of each clique, aligned.
    """
    if isinstance(first, ModelSide) and isinstance(other, ModelSide):
        errors = zip(cliques, first.errors(cliques), other.errors(cliques), strict=True)
        variances = [one**2 + matching.aligned(names, two) ** 2 for names, one, two in errors]
        degrees = min(len(side.model.replicates) for side in (first, other)) - 1.0
    else:
        variances, degrees = [_sampling_variances(first, other, p, q) for p, q in tables], math.inf
    return [joint_cell_score(p - q, variance, degrees) for (p, q), variance in zip(tables, variances, strict=True)]


def _sampling_variances(first: Side, other: Side, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the sampling variance of each cell's difference; infinite in small cells.

    Under the model's probabilities p, or the mean of two files, it is p (1 - p) / n for n independent records. Rounded
    records vary less, so the score is cautious for them.
    """
    counts = [side.records for side in (first, other) if isinstance(side, RecordsSide)]
    if len(counts) == 1:
        expected = p if isinstance(first, ModelSide) else q
    else:
        expected = (counts[0] * p + counts[1] * q) / max(sum(counts), 1)
    if not min(counts):
        return np.full(expected.shape, np.inf)
    variances = sum(expected * (1 - expected) / count for count in counts)
    return np.where(min(counts) * np.minimum(expected, 1 - expected) >= _MIN_EXPECTED, variances, np.inf)


def joint_cell_score(differences: FloatArray, variances: FloatArray, degrees: float = math.inf) -> float:
    """One score of many cells; degrees: of freedom of Student's t, as of so few replicates.

    >>> round(joint_cell_score(np.array([0.03, 0.0]), np.array([1e-4, 1e-4])), 2)
    2.55
    """
    from scipy.special import ndtri, stdtr

    apart = np.where(np.abs(differences) > _DIFFERENCE_TOLERANCE, np.abs(differences), 0.0).reshape(-1)
    errors = np.sqrt(variances).reshape(-1)
    ratios = np.divide(apart, errors, out=np.where(apart > 0, np.inf, 0.0), where=errors > 0)
    worst = float(ratios.max())
    if math.isfinite(degrees) and math.isfinite(worst):
        worst = -float(ndtri(max(float(stdtr(degrees, -worst)), 1e-300)))
    # Either sign could have been the furthest.
    return max(0.0, joint_score([worst, *[0.0] * (2 * len(ratios) - 1)]))


# --- Distances between sides ---

#: Compared pairs of attributes, cells of a table, cells of tables at once, and tables with scores.
MAX_PAIRS, _MAX_TABLE_CELLS, _CELLS_AT_ONCE, _MAX_TABLES_SCORED = 2000, 2**20, 2**22, 40


def differences(
    first: Side, other: Side, matching: Overlap, cliques: Sequence[Clique]
) -> tuple[list[Difference], list[str]]:
    """Return the differences of shared attributes, their pairs and larger tables, and notes on what was left out.

    cliques: of both structures. Of more than `MAX_PAIRS` pairs those inside a clique come first, then those of the
    attributes that differ most.
    """
    single = _differences_of_tables(first, other, matching, [(name,) for name in matching.shared])
    ranked = [one.attributes[0] for one in _worst_first(single)]
    queries, notes = choose_tables(matching.shared, ranked, cliques, first.domain)
    differing = [*single, *_differences_of_tables(first, other, matching, queries)]
    return _with_scores(first, other, matching, _worst_first(differing), notes), notes


def choose_tables(
    shared: Clique, ranked: Sequence[str], cliques: Sequence[Clique], domain: Domain
) -> tuple[list[Clique], list[str]]:
    """Return the larger tables to compare, and notes on what was left out. ranked: `shared`, the worst first.

    >>> domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    >>> choose_tables(("a", "b", "c"), "cab", [("c", "b", "a")], domain)[0]
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
    """
    at = {name: number for number, name in enumerate(shared)}
    inside = dict.fromkeys(
        tuple(sorted(clique, key=at.__getitem__)) for clique in cliques if len(clique) > 1 and set(clique) <= set(at)
    )
    together = itertools.chain.from_iterable(itertools.combinations(clique, 2) for clique in inside)
    several = math.comb(len(shared), 2)
    # More attributes than these have more pairs than are compared.
    near = ranked[: (1 + math.isqrt(1 + 8 * MAX_PAIRS)) // 2 + 1]
    among = (tuple(sorted(pair, key=at.__getitem__)) for pair in itertools.combinations(near, 2))
    everything = itertools.combinations(shared, 2) if several <= MAX_PAIRS else among
    pairs = list(itertools.islice(dict.fromkeys([*together, *everything]), MAX_PAIRS))
    notes = []
    if len(pairs) < several:
        notes.append(
            f"{len(pairs):,} of {several:,} pairs of attributes were compared: those in a table of one of the two, "
            "then those of the attributes that differ most"
        )
    queries = [*pairs, *(clique for clique in inside if len(clique) > 2)]
    fit = [clique for clique in queries if math.prod(domain.shape(clique)) <= _MAX_TABLE_CELLS]
    if len(fit) < len(queries):
        notes.append(f"{len(queries) - len(fit)} tables of more than {_MAX_TABLE_CELLS:,} cells were not compared")
    return fit, notes


def difference_of(names: Clique, domain: Domain, tables: Aligned, standing: tuple[str, str]) -> Difference:
    """Return the difference of one table. tables: probabilities or noisy shares, in the domain's order of labels."""
    one, other = tables
    cell = np.unravel_index(int(np.argmax(np.abs(one - other))), one.shape)
    return Difference(
        attributes=names,
        total_variation=variation_distance(one, other),
        cell={name: domain[name].labels[code] for name, code in zip(names, cell, strict=True)},
        first=float(one[cell]),
        other=float(other[cell]),
        score=None,
        standing=standing,
    )


def _differences_of_tables(first: Side, other: Side, matching: Overlap, cliques: Iterable[Clique]) -> list[Difference]:
    result = []
    for block in _blocks(cliques, first.domain):
        for names, tables in zip(block, _aligned_tables(first, other, matching, block), strict=True):
            standing = first.standing(names), other.standing(names)
            result.append(difference_of(names, first.domain, tables, standing))
    return result


def _aligned_tables(first: Side, other: Side, matching: Overlap, cliques: Sequence[Clique]) -> list[Aligned]:
    """Return both answers about each table, in the first's order of labels."""
    answers = zip(cliques, first.tables(cliques), other.tables(cliques), strict=True)
    return [(one, matching.aligned(names, two)) for names, one, two in answers]


def _with_scores(
    first: Side, other: Side, matching: Overlap, differing: list[Difference], notes: list[str]
) -> list[Difference]:
    """Return the differences, with scores of the worst attributes and tables where errors are known."""
    if not has_scores(first, other):
        notes.append(
            "whether errors explain these differences is not known: a model lacks replicates, which dpgm query MODEL "
            "ATTRIBUTE --intervals 0.9 makes and keeps"
        )
        return differing
    single = [one for one in differing if len(one.attributes) == 1][:_MAX_TABLES_SCORED]
    several = [one for one in differing if len(one.attributes) > 1][:_MAX_TABLES_SCORED]
    cliques = [one.attributes for one in (*single, *several)]
    if len(cliques) < len(differing):
        notes.append(f"scores are those of the {len(cliques)} tables that differ most")
    score_of: dict[Clique, float] = {}
    for block in _blocks(cliques, first.domain):
        score_of |= zip(
            block, scores(first, other, block, matching, _aligned_tables(first, other, matching, block)), strict=True
        )
    return [evolve(one, score=score_of.get(one.attributes)) for one in differing]


def _worst_first(differing: Iterable[Difference]) -> list[Difference]:
    return sorted(differing, key=lambda one: -one.total_variation)


def _blocks(cliques: Iterable[Clique], domain: Domain) -> Iterator[list[Clique]]:
    """Yield groups of cliques whose tables fit in memory together."""
    block: list[Clique] = []
    cells = 0
    for clique in cliques:
        size = math.prod(domain.shape(clique))
        if block and cells + size > _CELLS_AT_ONCE:
            yield block
            block, cells = [], 0
        block.append(clique)
        cells += size
    if block:
        yield block


# --- Noisy tables ---


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
    scores = _misfit_scores(model, release, matching, model_first=model_first)
    differences = []
    for clique in ours:
        probabilities, shares = answers[clique], normalise(np.asarray(release.tables[clique], dtype=np.float64))
        both = (
            (probabilities, matching.aligned(clique, shares))
            if model_first
            else (shares, matching.aligned(clique, probabilities))
        )
        standing = (model.standing(clique), "measured") if model_first else ("measured", model.standing(clique))
        differences.append(evolve(difference_of(clique, domain, both, standing), score=scores.get(clique)))
    return sorted(differences, key=lambda one: -one.total_variation), []


def _shared_tables(release: NoisyTables, matching: Overlap) -> dict[frozenset[str], int]:
    """Return the number of each table that is not tied, not empty and of shared attributes only."""
    return {
        frozenset(group[0]): number
        for number, group in enumerate(release.structure.groups)
        if len(group) == 1 and group[0] and set(group[0]) <= set(matching.shared)
    }


def _misfit_scores(model: Model, release: NoisyTables, matching: Overlap, *, model_first: bool) -> dict[Clique, float]:
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
