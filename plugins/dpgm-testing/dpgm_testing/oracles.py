"""Reference answers by enumeration and linear programming: slow, short, and independent of every engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from attrs import frozen
from scipy.optimize import linprog

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.errors import StructureError
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Enumerated",
    "all_records",
    "enumerated",
    "in_local_polytope",
    "in_marginal_polytope",
    "incidence",
    "log_joint",
    "worst_change",
]

_MOST_RECORDS = 100_000


def all_records(structure: Structure) -> IntArray:
    """Every record of the domain, (records, attributes); codes in the domain's order, the last one fastest.

    Raises StructureError beyond 100 000 of them.
    """
    sizes = tuple(structure.domain.sizes.values())
    if math.prod(sizes) > _MOST_RECORDS:
        raise StructureError(f"enumeration of {math.prod(sizes):,} records; take a domain of at most {_MOST_RECORDS:,}")
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int64).reshape(-1, len(sizes))


def incidence(structure: Structure, records: IntArray | None = None) -> FloatArray:
    """How often each record falls into each cell, (cells, records): 0 or 1, more in tied tables.

    records: (records, attributes) codes; every record of the domain when None. The tables of a data set are this
    matrix times the number of times each record occurs.

    >>> from dpgm_core.domain.domain import Domain
    >>> incidence(Structure(Domain.from_sizes({"a": 2, "b": 2}), [("b",)])).tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """
    rows = all_records(structure) if records is None else records
    names = structure.domain.names
    matrix = np.zeros((structure.cells, len(rows)))
    for number, group in enumerate(structure.groups):
        for clique in group:
            cells = np.zeros(len(rows), dtype=np.int64)
            for name in clique:
                cells = cells * structure.domain[name].size + rows[:, names.index(name)]
            matrix[structure.slices[number].start + cells, np.arange(len(rows))] += 1.0
    return matrix


def log_joint(theta: Tables, matrix: FloatArray | None = None) -> FloatArray:
    """The unnormalised log-probability of every record of the domain, (records,); -inf where a cell it falls into is
    -inf, and where a constraint rules it out."""
    counts = incidence(theta.structure) if matrix is None else matrix
    with np.errstate(invalid="ignore"):
        found = np.asarray(np.where(counts.T > 0, counts.T * theta.values, 0.0).sum(axis=1))
    domain = theta.structure.domain
    rows = all_records(theta.structure) if domain.rules else None
    for one in domain.rules:
        assert rows is not None
        columns = tuple(rows[:, domain.names.index(column)] for column in one.columns)
        found[one.mask[columns]] = -np.inf
    return found


@frozen(kw_only=True)
class Enumerated:
    """The exact answer: marginals (of one record), log_partition and the probability of every record."""

    marginals: Tables
    log_partition: float
    probabilities: FloatArray
    log_joint: FloatArray


def enumerated(theta: Tables) -> Enumerated:
    """Marginals and log Z of p(x) proportional to exp(sum of potentials), summed over every record.

    Raises StructureError when there are too many records, or all of them are impossible.

    >>> from dpgm_core.domain.domain import Domain
    >>> uniform = enumerated(Tables.zeros(Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])))
    >>> round(math.exp(uniform.log_partition), 9), uniform.marginals["a", "b"].tolist()
    (4.0, [[0.25, 0.25], [0.25, 0.25]])
    """
    matrix = incidence(theta.structure)
    logs = log_joint(theta, matrix)
    top = logs.max()
    if top == -math.inf:
        raise StructureError("every record has probability 0; there is nothing to enumerate")
    weights = np.exp(logs - top)
    probabilities = weights / weights.sum()
    return Enumerated(
        marginals=Tables(theta.structure, matrix @ probabilities),
        log_partition=math.log(weights.sum()) + float(top),
        probabilities=probabilities,
        log_joint=logs,
    )


def in_marginal_polytope(marginals: Tables, *, tolerance: float = 1e-7) -> bool:
    """Whether some distribution over records has these marginals (of one record), by linear programming.

    tolerance: summed over all cells.

    >>> from dpgm_core.domain.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",), ("a", "b")])
    >>> in_marginal_polytope(Tables(pair, np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0.5])))
    True
    >>> in_marginal_polytope(Tables(pair, np.array([0.9, 0.1, 0.5, 0.5, 0.5, 0, 0, 0.5])))
    False
    """
    return _deviation(incidence(marginals.structure), marginals.values) <= tolerance


def in_local_polytope(marginals: Tables, *, tolerance: float = 1e-6) -> bool:
    """Whether the tables (of one record) are non-negative, sum to their number of cliques, and agree on attributes.

    The polytope of the factor graph: cliques have equal margins of each attribute they share. By linear programming
    over one pseudo-marginal per clique: the table of a tied group is the sum over its cliques.
    tolerance: summed over all cells.

    >>> from dpgm_core.domain.domain import Domain
    >>> chain = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    >>> in_local_polytope(Tables(chain, np.array([0.5, 0, 0, 0.5, 0, 0.5, 0.5, 0])))
    True
    >>> in_local_polytope(Tables(chain, np.array([0.5, 0, 0, 0.5, 0, 0.1, 0.9, 0])))
    False
    """
    structure = marginals.structure
    offsets: list[int] = [0]
    for clique in structure.cliques:
        offsets.append(offsets[-1] + math.prod(structure.domain.shape(clique)))
    rows: list[FloatArray] = []
    target: list[float] = []
    first = 0
    for number, group in enumerate(structure.groups):
        block = np.zeros((structure.sizes[number], offsets[-1]))
        for place in range(first, first + len(group)):
            block[:, offsets[place] : offsets[place + 1]] += np.eye(structure.sizes[number])
        first += len(group)
        rows += list(block)
        target += list(map(float, marginals.group(number).reshape(-1)))
    soft = len(rows)  # the tables may be off by the tolerance; what follows holds exactly
    for place in range(len(structure.cliques)):
        rows.append(np.zeros(offsets[-1]))
        rows[-1][offsets[place] : offsets[place + 1]] = 1.0
        target.append(1.0)
    for one, two in itertools.combinations(range(len(structure.cliques)), 2):
        for row in _agreement(structure, offsets, one, two):
            rows.append(row)
            target.append(0.0)
    return _deviation(np.array(rows), np.array(target), soft) <= tolerance


def _agreement(structure: Structure, offsets: list[int], one: int, two: int) -> Iterator[FloatArray]:
    """Rows that say: both cliques have the same margin of each attribute they share."""
    for name in set(structure.cliques[one]) & set(structure.cliques[two]):
        for code in range(structure.domain[name].size):
            row = np.zeros(offsets[-1])
            for place, sign in ((one, 1.0), (two, -1.0)):
                clique = structure.cliques[place]
                part = np.zeros(structure.domain.shape(clique))
                part[tuple(code if other == name else slice(None) for other in clique)] = sign
                row[offsets[place] : offsets[place + 1]] = part.reshape(-1)
            yield row


def _deviation(matrix: FloatArray, target: FloatArray, soft: int | None = None) -> float:
    """Least 1's of A p + s+ - s- = b, p >= 0, 1'p = 1 (or as the hard rows say); slack only on the first `soft` rows.

    Infinite when the hard rows cannot be met.
    """
    if soft is None:
        soft = len(matrix)
        matrix, target = np.vstack([matrix, np.ones(matrix.shape[1])]), np.append(target, 1.0)
    rows, variables = matrix.shape
    slack = np.vstack([np.eye(soft), np.zeros((rows - soft, soft))])
    found = linprog(
        np.concatenate([np.zeros(variables), np.ones(2 * soft)]),
        A_eq=np.hstack([matrix, slack, -slack]),
        b_eq=target,
        bounds=(0, None),
    )
    return float(found.fun) if found.status == 0 else math.inf


def worst_change(structure: Structure, neighbours: Neighbours | str) -> tuple[int, int, int, int]:
    """The largest L0, L1, squared L2 and Linf change of all tables over EVERY pair of neighbours, one row per person.

    By enumeration of records (all pairs of them under replace-one): for small domains.

    >>> from dpgm_core.domain.domain import Domain
    >>> worst_change(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))), "replace-one")
    (4, 4, 4, 1)
    """
    vectors = incidence(structure).T
    if Neighbours.of(neighbours) is Neighbours.REPLACE_ONE:
        changes = np.abs(vectors[:, None, :] - vectors[None, :, :]).reshape(-1, structure.cells)
    else:
        changes = np.abs(vectors)
    norms = ((changes > 0).sum(axis=1), changes.sum(axis=1), (changes**2).sum(axis=1), changes.max(axis=1))
    l0, l1, l2_squared, linf = (int(norm.max()) for norm in norms)
    return l0, l1, l2_squared, linf
