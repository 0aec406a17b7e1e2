"""Distances between models, tables and (by explicit request) records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.counting.table_counts import count
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError, require_non_private
from dpgm_core.models.distribution import expectation
from dpgm_core.models.latent import refuse_sums
from dpgm_core.models.model import Model
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import NamedColumns
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "column_names",
    "variation_distance",
    "kl_divergence",
    "log_likelihood",
    "normalise",
    "tabulate",
    "total_variation",
    "true_shares",
]


def kl_divergence(truth: Model, learned: Model) -> float:
    """Return KL(truth || learned), nats. See `Model.kl` on unmeasured attributes.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> uniform = Model(structure, Tables.zeros(structure))
    >>> round(kl_divergence(uniform, uniform), 9)
    0.0
    """
    return truth.kl(learned)


def log_likelihood(model: Model, records: object, *, allow_non_private: bool = False) -> float:
    """Return the sum of log p(x) over records, nats. NOT PRIVATE: an exact function of the records.

    Parameters
    ----------
    model : Model
    records : path, data frame, code array or Source
    allow_non_private : bool
        Must be True.

    Returns
    -------
    float
        Divide it by the number of records for the mean. Unmeasured attributes count as the potentials have them.

    Raises
    ------
    NonPrivateError
        `allow_non_private` is not True.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> uniform = Model(structure, Tables.zeros(structure))
    >>> f"{log_likelihood(uniform, np.array([[0], [1], [1]]), allow_non_private=True) / np.log(2):.6f}"
    '-3.000000'
    """
    require_non_private("log_likelihood of records", allow_non_private)
    refuse_sums("the likelihood of records", model.latent)
    whole = model.expanded()
    counted = count(as_source(records), whole.structure)
    return expectation(counted.tables.values, whole.values) - counted.records * model.log_partition


def total_variation(
    model: Model,
    reference: Model | Tables | object,
    cliques: Iterable[Clique] | None = None,
    *,
    allow_non_private: bool = False,
) -> dict[Clique, float]:
    """Return the total variation distance, half the L1 distance of probabilities, on each clique.

    Parameters
    ----------
    model : Model
    reference : Model, Tables, path, data frame, code array or Source
        Tables are normalised one by one; noisy ones may have negative cells and be further away than 1. Records are
        exact and NOT PRIVATE, and need `allow_non_private`.
    cliques : iterable of cliques, optional
        By default those of the model, or of the tables, without attributes that no release measured and without the
        empty clique. Unmeasured attributes that are named are refused.
    allow_non_private : bool

    Returns
    -------
    dict of clique to float
        From 0 to 1.
    """
    names = None if cliques is None else [tuple(clique) for clique in cliques]
    nothing = {*model.left_out, *(reference.left_out if isinstance(reference, Model) else ())}
    known = [clique for clique in model.observed.cliques if clique and nothing.isdisjoint(clique)]
    if isinstance(reference, Model):
        pairs = names or known
        ours, theirs = model.marginals_of(pairs), reference.marginals_of(pairs)
        return {clique: variation_distance(ours[clique], theirs[clique]) for clique in pairs}
    if isinstance(reference, Tables):
        tables = reference
    else:
        require_non_private("total variation against records", allow_non_private)
        targets = names or known
        if not targets:
            return {}
        tables = tabulate(reference, Structure(model.domain, targets), allow_non_private=True)
    if tables.structure.domain == model.coarse.domain:
        model = model.coarse  # as the noisy tables of its session are, where that merged codes
    if tables.structure.domain != model.domain:
        raise StructureError("total variation compares tables over the same domain; these differ")
    distances = {}
    whole = [group[0] for group in tables.structure.groups if group[0] and nothing.isdisjoint(itertools.chain(*group))]
    for clique in names or whole:
        # A tied group's table is the sum over its cliques, so it is held against the model's mean over them.
        number = tables.structure.find(clique)[0]
        group = tables.structure.groups[number]
        ours = np.mean([model.marginal(member) for member in group], axis=0)
        distances[clique] = variation_distance(ours, normalise(tables.group(number)))
    return distances


def true_shares(
    domain: Domain, records: object, cliques: Iterable[Clique], *, allow_non_private: bool = False
) -> tuple[dict[Clique, FloatArray], int]:
    """Return the records' own shares in the cells of each clique's table, and the number of records. NOT PRIVATE.

    Raises NonPrivateError unless `allow_non_private` is True. Without records all shares of a table are equal.

    >>> shares, count = true_shares(
    ...     Domain.from_sizes({"a": 2}), np.array([[0], [1], [1], [1]]), [("a",)], allow_non_private=True
    ... )
    >>> shares["a",].tolist(), count
    ([0.25, 0.75], 4)
    """
    structure = Structure(domain, cliques)
    tables = tabulate(records, structure, allow_non_private=allow_non_private).arrays()
    counts = {group[0]: table.astype(np.float64) for group, table in zip(structure.groups, tables, strict=True)}
    number = next((round(float(table.sum())) for table in counts.values()), 0)
    return {clique: normalise(table) for clique, table in counts.items()}, number


def tabulate(records: object, structure: Structure, *, allow_non_private: bool = False) -> Tables:
    """Return exact counts of records (a path, data frame, code array or Source) over a structure. NOT PRIVATE.

    Raises NonPrivateError unless `allow_non_private` is True, which is right for synthetic records.

    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> tabulate(np.array([[0], [1], [1]]), structure, allow_non_private=True)["a"].tolist()
    [1, 2]
    """
    require_non_private("counting records", allow_non_private)
    return count(as_source(records), structure).tables


def column_names(records: object) -> tuple[str, ...]:
    """Return the names of the columns of records; () for a source without names.

    >>> column_names({"source": "csv", "path": "no-such.csv"})
    Traceback (most recent call last):
    dpgm_core.errors.DataError: ...
    """
    source = as_source(records)
    return tuple(source.names()) if isinstance(source, NamedColumns) else ()


def normalise(table: Array) -> Array:
    """Return a table of counts as shares of their sum; uniform where the sum is not positive.

    >>> normalise(np.array([1, 3])).tolist()
    [0.25, 0.75]
    """
    total = table.sum()
    return table / total if total > 0 else np.full(table.shape, 1 / table.size)


def variation_distance(one: Array, other: Array) -> float:
    """Return the total variation distance of two tables of probabilities, half their L1 distance.

    >>> variation_distance(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return 0.5 * float(np.abs(one - other).sum())
