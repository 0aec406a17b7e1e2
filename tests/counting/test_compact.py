"""Short vectors of counts: the same tables as blocks have, whatever is asked for, and no larger than that."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.counting.passes import TableCounts, fewest_sums
from dpgm_core.counting.statistic import PairCounts
from dpgm_core.counting.table_counts import Counts
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.structure.structure import Structure

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 3, "e": 1})
CODES = [np.random.default_rng(1).integers(0, size, 500).astype(np.uint8) for size in DOMAIN.sizes.values()]


def of(structure, counts):
    codes = dict(zip(DOMAIN.names, CODES, strict=True))
    return counts.partial([codes[name] for name in counts.columns], None)


@given(st.lists(st.lists(st.sampled_from(DOMAIN.names), unique=True, max_size=4), min_size=1, max_size=8))
def test_the_tables_are_those_of_blocks(cliques):
    structure = Structure(DOMAIN, cliques)
    short, blocks = TableCounts(structure), Counts.of(structure)
    sums = of(structure, pickle.loads(pickle.dumps(short)))
    short.check(sums)
    assert np.array_equal(short.tables(sums).values, blocks.tables(of(structure, blocks)).values)
    assert sums[-1] == 500 and len(sums) == short.cells <= structure.cells + 1


def test_the_vector_is_the_groupings_one_after_the_other():
    structure = Structure(DOMAIN, [("c", "a"), ("b",), ("a",), ("d", "b")])
    counts = TableCounts(structure)
    codes, at = dict(zip(DOMAIN.names, CODES, strict=True)), 0
    sums = of(structure, counts)
    for names in counts.groupings:
        shape = [DOMAIN[name].size for name in names]
        table = np.zeros(shape, np.int64)
        np.add.at(table, tuple(codes[name] for name in names), 1)
        assert sums[at : at + table.size].tolist() == table.ravel().tolist()
        at += table.size
    assert counts.groupings == (("a", "c"), ("b", "d")) and at == counts.cells - 1


def test_tied_cliques_are_summed_at_the_end():
    structure = Structure(DOMAIN, [("a", "c")], tied=[[("a", "b"), ("a", "d")]])
    short, blocks = TableCounts(structure), Counts.of(structure)
    assert np.array_equal(short.tables(of(structure, short)).values, blocks.tables(of(structure, blocks)).values)


@pytest.mark.parametrize("damage", [(0, 1), (-1, 1), (-1, -1), (0, -1000)])
def test_counts_that_do_not_fit_together_are_refused(damage):
    structure = Structure(DOMAIN, [("a", "b"), ("c", "d")])
    counts = TableCounts(structure)
    sums = of(structure, counts)
    counts.check(sums)
    sums[damage[0]] += damage[1]
    with pytest.raises(DataError, match="do not fit together"):
        counts.check(sums)


def test_only_records_can_be_counted():
    counts = TableCounts(Structure(DOMAIN, [()]))
    sums = of(None, counts)
    counts.check(sums)
    assert sums.tolist() == [500] and counts.groupings == ()


def test_many_pairs_of_few_labels_are_products():
    domain = Domain.from_sizes({f"a{number}": 2 for number in range(50)})
    assert isinstance(fewest_sums(Structure.complete(domain, 2)), PairCounts)
    assert isinstance(fewest_sums(Structure(DOMAIN, [("a", "b")])), TableCounts)
