"""Standard errors between two answers, corrected for the number of cells of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.comparison.matching import Overlap
from dpgm_core.comparison.sides import ModelSide, RecordsSide, Side
from dpgm_core.models.misfit import joint_score
from dpgm_core.structure import Clique

__all__ = ["Aligned", "has_scores", "joint_cell_score", "scores"]

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
        variances, degrees = [_sampling(first, other, p, q) for p, q in tables], math.inf
    return [joint_cell_score(p - q, variance, degrees) for (p, q), variance in zip(tables, variances, strict=True)]


def _sampling(first: Side, other: Side, p: FloatArray, q: FloatArray) -> FloatArray:
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
