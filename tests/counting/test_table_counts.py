"""Counting: the blocked kernel against a dictionary count, one record at a time."""

import math
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Domain, Structure
from dpgm_core.counting.statistic import sum_pieces
from dpgm_core.counting.table_counts import BLOCK_CELLS, Counted, Counts, choose_blocks, count
from dpgm_core.sources import as_source
from tests.persons import structures


def brute_force(structure, records):
    """The tables by counting tuples in a dictionary."""
    names = structure.domain.names
    tables = []
    for group, shape in zip(structure.groups, structure.shapes, strict=True):
        table = np.zeros(shape, np.int64)
        for clique in group:
            hits = Counter(tuple(int(record[names.index(name)]) for name in clique) for record in records)
            for cell, times in hits.items():
                table[cell] += times
        tables.append(table)
    return tables


def assert_counts(structure, records, counted):
    assert counted.records == len(records)
    assert counted.tables.values.dtype == np.int64
    for expected, actual in zip(brute_force(structure, records), counted.tables.arrays(), strict=True):
        np.testing.assert_array_equal(expected, actual)


@st.composite
def structures_with_records(draw):
    """Any cliques, the empty one and duplicates included, any tied groups, and a few records."""
    sizes = st.lists(st.sampled_from([1, 2, 3, 5, 40, 300]), min_size=1, max_size=6)
    structure = draw(structures(8, sizes))
    rows = draw(st.integers(0, 30))
    seed = draw(st.integers(0, 2**32 - 1))
    records = np.random.default_rng(seed).integers(
        0, list(structure.domain.sizes.values()), (rows, len(structure.domain))
    )
    return structure, records


@settings(max_examples=60)
@given(structures_with_records())
def test_counts_equal_a_dictionary_count(case):
    structure, records = case
    assert_counts(structure, records, count(as_source(records), structure))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64])
def test_every_integer_dtype_counts_the_same(dtype):
    """The width of the codes is storage, not meaning."""
    records = np.random.default_rng(0).integers(0, 10, size=(1000, 4))
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 10)))
    assert_counts(structure, records, count(as_source(records.astype(dtype)), structure))


def test_a_plan_travels_and_partial_counts_merge_by_addition():
    """What a worker elsewhere needs is pickled, and its vectors add up to the whole count."""
    records = np.random.default_rng(2).integers(0, 4, size=(60, 3), dtype=np.uint8)
    structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 4)))
    counts = pickle.loads(pickle.dumps(Counts.of(structure)))
    parts = [sum_pieces(counts, [(list(records[start : start + 7].T), None)]) for start in range(0, 60, 7)]
    merged = pickle.loads(pickle.dumps(sum(parts)))
    assert_counts(structure, records, Counted(tables=counts.tables(merged), records=counts.records(merged)))


def test_blocks_are_bounded_and_cover_every_clique():
    """No block of several cliques is larger than promised, and blocks are fewer than cliques."""
    structure = Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(10)}))
    blocks = choose_blocks(structure)
    names = [{blocks.columns[position] for position in block} for block in blocks.positions]
    assert all(any(set(clique) <= block for block in names) for clique in structure.cliques)
    assert max(blocks.block_cells()) <= BLOCK_CELLS
    assert len(blocks.positions) * 3 <= len(structure.cliques)


def test_a_clique_larger_than_a_block_is_counted_sparsely():
    """Ten million cells and five records: exact, and no table-sized temporary beside the counts themselves."""
    domain = Domain.from_sizes({"a": 3000, "b": 3400})
    records = np.array([[0, 0], [2999, 3399], [2999, 3399], [5, 7], [7, 5]])
    structure = Structure(domain, [("b", "a")])
    counts, size = Counts.of(structure), structure.cells * 8
    tracemalloc.start()
    sum_pieces(counts, [([records[:, 0], records[:, 1]], None)])
    of_batch = tracemalloc.get_traced_memory()[1]
    tables = count(as_source(records), structure).tables
    of_all = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tables["a", "b"][2999, 3399] == 2 and tables["a", "b"][5, 7] == 1 and tables.values.sum() == 5
    assert of_batch < 1.1 * size
    assert of_all < 2.2 * size


def test_the_empty_clique_counts_records():
    counted = count(as_source(np.zeros((12, 2), int)), Structure(Domain.from_sizes({"a": 2, "b": 2}), [()]))
    assert counted.tables[()] == 12


def test_the_plan_of_many_cliques_is_quick_and_small():
    structure = Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(50)}))
    assert len(choose_blocks(structure).positions) < math.comb(50, 2) / 3
