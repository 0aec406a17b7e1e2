"""Data sets of persons, any small structures, and the norms of a change: what tests of sensitivity share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.structure.structure import Structure

Row = tuple[int, ...]
Norms = tuple[int, int, int, int]
SIZES = st.lists(st.integers(1, 3), min_size=1, max_size=4)


def norms(change: np.ndarray) -> Norms:
    """L0, L1, squared L2 and Linf of an integer vector."""
    size = np.abs(change)
    return int((size > 0).sum()), int(size.sum()), int((size**2).sum()), int(size.max(initial=0))


def source_of(
    structure: Structure, persons: Sequence[Sequence[Row]], r: int, order: int = 0, chunk: int = 5
) -> PersonSource:
    """Persons with at most r rows each, the rows shuffled and cut into batches."""
    rows = [(number, *row) for number, person in enumerate(persons) for row in person]
    rows = [rows[place] for place in np.random.default_rng(order).permutation(len(rows))]
    names = ["id", *structure.domain.names]
    table = pa.table([pa.array([row[place] for row in rows], pa.int64()) for place in range(len(names))], names)
    return PersonSource(source=as_source(table.to_reader(max_chunksize=chunk)), person="id", rows_per_person=r)


@st.composite
def structures(draw: st.DrawFn, most: int, sizes: st.SearchStrategy[list[int]] = SIZES) -> Structure:
    """Small domains of codes (labels "0", "1", ...), any cliques, the empty one too, any tied groups of one shape."""
    domain = Domain.from_sizes({f"x{i}": size for i, size in enumerate(draw(sizes))})
    subset = st.lists(st.sampled_from(domain.names), unique=True, max_size=3).map(tuple)
    cliques = draw(st.lists(subset, min_size=1, max_size=most))
    tied = []
    for clique in draw(st.lists(subset, max_size=2)):
        shape = domain.shape(clique)
        alike = [other for other in itertools.permutations(domain.names, len(clique)) if domain.shape(other) == shape]
        tied.append(list({frozenset(other): other for other in alike}.values()))
    return Structure(domain, cliques, tied=tied)


def rows_of(structure: Structure) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.integers(0, size - 1) for size in structure.domain.sizes.values()))


def everybody(structure: Structure, r: int) -> list[tuple[Row, ...]]:
    """All persons there are, with one to r rows each, up to the order of their rows."""
    rows = list(itertools.product(*(range(size) for size in structure.domain.sizes.values())))
    return [one for n in range(1, r + 1) for one in itertools.combinations_with_replacement(rows, n)]
