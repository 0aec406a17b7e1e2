"""Distances between models, tables and (by explicit request) records."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpgm_core.errors import StructureError
from dpgm_core.model import Model, require_non_private
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Array, Tables

__all__ = ["kl_divergence", "total_variation"]


def kl_divergence(truth: Model, learned: Model) -> float:
    """KL(truth || learned), nats: the paper's measure of accuracy.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> uniform = Model(structure, Tables.zeros(structure))
    >>> round(kl_divergence(uniform, uniform), 9)
    0.0
    """
    return truth.kl(learned)


def total_variation(
    model: Model,
    reference: Model | Tables | object,
    cliques: Iterable[Clique] | None = None,
    *,
    allow_non_private: bool = False,
) -> dict[Clique, float]:
    """Total variation distance, half the L1 distance of probabilities, on each clique: between 0 and 1.

    reference: a Model, Tables (normalised table by table; noisy ones may have negative cells and be further away
    than 1), or records (a path, data frame, code array or Source),
    which are exact and NOT PRIVATE and need `allow_non_private`. cliques: those of the model when None; with Tables,
    those of the tables.
    """
    names = None if cliques is None else [tuple(clique) for clique in cliques]
    if isinstance(reference, Model):
        pairs = names or list(model.structure.cliques)
        return {clique: _distance(model.marginal(clique), reference.marginal(clique)) for clique in pairs}
    if isinstance(reference, Tables):
        tables = reference
    else:
        require_non_private("total variation against records", allow_non_private)
        from dpgm_core import counting
        from dpgm_core.sources import as_source

        wanted = Structure(model.domain, names or model.structure.cliques)
        tables = counting.count(as_source(reference), wanted).tables
    if tables.structure.domain != model.domain:
        raise StructureError("total variation compares tables over the same domain; these differ")
    distances = {}
    for clique in names or [group[0] for group in tables.structure.groups]:
        # A tied group's table is the sum over its cliques, so it is held against the model's mean over them.
        number = tables.structure.find(clique)[0]
        group = tables.structure.groups[number]
        ours = np.mean([model.marginal(member) for member in group], axis=0)
        distances[clique] = _distance(ours, _normalised(tables.group(number)))
    return distances


def _normalised(table: Array) -> Array:
    total = table.sum()
    return table / total if total > 0 else np.full(table.shape, 1 / table.size)


def _distance(one: Array, other: Array) -> float:
    return 0.5 * float(np.abs(one - other).sum())
