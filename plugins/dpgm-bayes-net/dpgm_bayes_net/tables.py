"""Conditional tables from noisy counts of families: margins that agree, their noise, and rows that are distributions.

Post-processing: pure functions of what was released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core import Clique, Dag, FloatArray, Model, NoisyTables, Structure, StructureError, Tables
from dpgm_core.learning import consistent

BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

__all__ = [
    "Counts",
    "make_tables_agree",
    "clip",
    "conditionals",
    "counts_of",
    "faint_rows",
    "finite",
    "smooth_counts",
    "reorder_families",
]

#: Of the loudest noise, the least that another table is taken to have: weights stay finite at any budget.
_QUIETEST = 1e-12


@frozen(kw_only=True, eq=False)
class Counts:
    """The noisy counts of one family.

    table: records, one axis per attribute of the family, the child's first; may be negative. variance: of the noise in
    a cell, records**2. measured: the attributes of the family that were measured together; over the others the counts
    are spread evenly.
    """

    table: FloatArray
    variance: float
    measured: Clique

    @property
    def sd(self) -> float:
        """Standard deviation of the noise in a cell, records."""
        return math.sqrt(self.variance)


def make_tables_agree(release: NoisyTables) -> tuple[Tables, FloatArray]:
    """The release's tables made to agree on all that they share, and the noise variance of each as it was drawn.

    Generalised least squares over all tables. Raises StructureError for tied tables, which are of no clique alone.
    """
    if max(release.structure.multiplicities) > 1:
        raise StructureError(
            "the release has tied tables, which are of no family; learn with bayes-net and learner = 'eb-map'"
        )
    return consistent(release.tables, finite(release.variances)), release.variances


def counts_of(tables: Tables, variances: FloatArray, families: Iterable[Clique]) -> dict[str, Counts]:
    """The counts of each family, by child, from all tables that contain it, weighted by their noise.

    tables: untied, records; made to agree first they all say the same. variances: of the noise in a cell of each group,
    (groups,), records**2. The variance of a family is 1 / sum_C 1 / (K v_C), K the cells of table C per cell of the
    family, an upper bound once the tables agree. Of a family that no table contains, the largest part with its child
    that one does.

    >>> from dpgm_core import Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("b", "a")])
    >>> tables = Tables(structure, np.array([3.0, 1.0, 2.0, 4.0]))
    >>> found = counts_of(tables, np.array([2.0]), [("a",), ("b", "a")])
    >>> found["a"].table.tolist(), found["a"].variance, found["b"].table.tolist()
    ([5.0, 5.0], 4.0, [[3.0, 1.0], [2.0, 4.0]])
    """
    structure = tables.structure
    numbers_of: dict[str, list[int]] = {}
    for number, group in enumerate(structure.groups):
        for name in group[0]:
            numbers_of.setdefault(name, []).append(number)
    weights = finite(variances)
    return {family[0]: _family(tables, weights, family, numbers_of.get(family[0], [])) for family in families}


def _family(tables: Tables, variances: FloatArray, family: Clique, numbers: Sequence[int]) -> Counts:
    """numbers: of the tables that hold the child."""
    structure = tables.structure
    shape = structure.domain.shape(family)
    parts = (tuple(name for name in family if name in structure.groups[number][0]) for number in numbers)
    measured = max(parts, key=lambda part: (len(part), math.prod(structure.domain.shape(part))), default=())
    if not measured:
        return Counts(table=np.zeros(shape), variance=float(variances.max()), measured=())
    total, precision = np.zeros(structure.domain.shape(measured)), 0.0
    for number in numbers:
        clique = structure.groups[number][0]
        if set(measured) <= set(clique):
            outside = tuple(axis for axis, name in enumerate(clique) if name not in measured)
            inside = [name for name in clique if name in measured]
            margin = tables.group(number).sum(axis=outside, dtype=np.float64)
            weight = total.size / (structure.sizes[number] * float(variances[number]))
            total += weight * margin.transpose([inside.index(name) for name in measured])
            precision += weight
    counts, variance = total / precision, 1 / precision
    if measured != family:
        spread = math.prod(shape) // counts.size
        there = [size if name in measured else 1 for name, size in zip(family, shape, strict=True)]
        counts = np.broadcast_to(counts.reshape(there) / spread, shape)
        variance /= spread**2
    return Counts(table=counts, variance=variance, measured=measured)


def finite(variances: FloatArray) -> FloatArray:
    """Variances that can be divided by, whatever the budget."""
    most = float(np.max(variances))
    return np.maximum(variances, most * _QUIETEST) if most > 0 else np.ones_like(variances)


def clip(table: FloatArray, possible: BoolArray | None = None) -> FloatArray:
    """P(child | parents) in proportion to the counts, those below 0 taken as 0; rows without counts are uniform.

    table: any finite numbers, the child's axis first; the same shape. possible: where constraints allow records; the
    rest is 0 in each row that has something possible.

    >>> clip(np.array([[3.0, -1.0], [1.0, 0.0]])).tolist()
    [[0.75, 0.5], [0.25, 0.5]]
    """
    counts = np.maximum(np.asarray(table, dtype=np.float64), 0.0)
    room = np.ones(counts.shape)
    if possible is not None:
        counts, room = np.where(possible, counts, 0.0), np.where(possible.any(axis=0), possible, 1.0)
    most = counts.max(axis=0, keepdims=True)
    # Relative to the row's largest, so that no sum overflows.
    shares = np.divide(counts, most, out=room, where=np.broadcast_to(most > 0, counts.shape))
    conditional: FloatArray = shares / shares.sum(axis=0, keepdims=True)
    return conditional


def smooth_counts(
    table: FloatArray, sd: float, smoothing: float = 0.25, possible: BoolArray | None = None
) -> FloatArray:
    """P(child | parents) from noisy counts with a pseudo-count in each cell that matches the noise: smoothing * sd.

    sd: of the noise in a cell, in the unit of the table. smoothing 0 is `clip`. Else no probability is 0 but of what is
    not possible.

    >>> smooth_counts(np.array([[3.0, -1.0], [1.0, 0.0]]), sd=4.0).tolist()
    [[0.6666666666666666, 0.5], [0.3333333333333333, 0.5]]
    """
    return clip(np.maximum(table, 0.0) + smoothing * sd, possible)


def faint_rows(counts: Mapping[str, Counts], rows: Mapping[str, FloatArray] | None = None) -> list[str]:
    """Return a note on rows that expect fewer records than the noise in their sum has standard deviation.

    rows: child -> expected records of each state of the parents; None: the sums of the counts.
    """
    sums = {child: one.table.sum(axis=0) for child, one in counts.items()} if rows is None else rows
    faint = sum(np.count_nonzero(sums[child] < one.sd * math.sqrt(len(one.table))) for child, one in counts.items())
    if not faint:
        return []
    return [
        f"{faint} of {sum(np.size(one) for one in sums.values())} rows of the conditional tables expect fewer records "
        "than the standard deviation of their noise; they say what the learner assumes, not what the records say"
    ]


def conditionals(counts: Mapping[str, Counts], smoothing: float, dag: Dag | None = None) -> dict[str, FloatArray]:
    """P(child | parents) of every family, `smooth_counts`. dag: of the families; what its domain rules out gets 0."""
    possible = {child: None if dag is None else dag.possible(child) for child in counts}
    return {child: smooth_counts(one.table, one.sd, smoothing, possible[child]) for child, one in counts.items()}


def reorder_families(network: Model, structure: Structure) -> Model:
    """Return the same network over these families in this order; `Dag.structure` has them in the domain's."""
    return Model(
        structure,
        Tables.from_arrays(structure, dict(network.potentials.items())),
        releases=network.releases,
        provenance=network.provenance,
        conversion_delta=network.conversion_delta,
    )
