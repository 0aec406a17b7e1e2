"""Tables in several passes and in short vectors: the same numbers as in one pass and in blocks."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Contributions, DataError, Domain, Structure
from dpgm_core.counting.rows import Persons
from dpgm_core.counting.statistic import PairCounts
from dpgm_core.counting.table_counts import Counts, Passes, TableCounts, fewest_sums

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 4})
#: Nested, tied, turned and empty cliques; ("a", "b") is counted for two groups.
TANGLED = Structure(
    DOMAIN,
    [("b", "a"), ("a",), ("c", "d", "e"), ("e", "c"), (), ("d",)],
    tied=[[("a", "b"), ("c", "d")], [("c", "e"), ("a", "e")]],
)


def persons(records, seed=0, lengths=None):
    rng = np.random.default_rng(seed)
    return Persons(DOMAIN.names, [rng.integers(0, one.size, records).astype(np.uint8) for one in DOMAIN], lengths)


@given(most=st.integers(1, 120), records=st.integers(0, 30), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_passes_count_what_one_does(most, records, seed):
    """Claim: whatever the limit, tables and records are bit for bit those of a single pass."""
    rows = persons(records, seed)
    one, several = Passes.single(TANGLED), Passes.under(TANGLED, most=most)
    found = several.count(rows)
    assert found.tables.values.tolist() == one.count(rows).tables.values.tolist()
    assert found.records == records
    parts = Passes.in_memory(TANGLED, most=most)
    assert parts.count(rows).tables.values.tolist() == found.tables.values.tolist()
    assert most > 60 or len(parts.statistics) > 1


@pytest.mark.parametrize("most", [1, 10**6])
@pytest.mark.parametrize(
    "structure",
    [
        Structure(DOMAIN, [("a", "c", "e")], tied=[[("a", "e"), ("c", "e")]]),
        Structure(DOMAIN, [("b",), (), ("d", "b"), ("d",)]),
    ],
    ids=["tied", "nested"],
)
def test_one_clique_that_holds_all_others_and_is_too_large_is_one_pass(structure, most):
    """Claim: its tables are those that were asked for, in their order, and tied ones are summed over all of a group."""
    rows = persons(100)
    found = Passes.under(structure, most=most).count(rows)
    assert len(Passes.under(structure, most=most).statistics) == 1
    assert found.tables.structure == structure
    assert found.tables.values.tolist() == Passes.single(structure).count(rows).tables.values.tolist()


@given(most=st.integers(1, 60), per=st.sampled_from(["clique", "group"]), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_shares_in_passes_are_those_of_one(most, per, seed):
    """Claim: a person's shares of a group are worked out together, in whichever pass the group is."""
    rows = persons(12, seed, np.array([3, 1, 5, 3]))
    weighted = Contributions(per=per, grid=60)
    one, several = Passes.single(TANGLED, weighted), Passes.under(TANGLED, weighted, most=most)
    assert several.count(rows).tables.values.tolist() == one.count(rows).tables.values.tolist()
    assert len(several.statistics) > 1 or most >= TANGLED.cells


def test_no_pass_has_more_cells_than_it_may_unless_one_table_has():
    """Claim: the limit holds for what comes back; a table that is larger has a pass of its own."""
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcdefgh", 10)), order=2)
    passes = Passes.under(structure, most=500)
    assert len(passes.statistics) == 7 and passes.cells <= 500  # 28 pairs of 100 cells, 4 to a pass
    assert len(Passes.under(structure, most=50).statistics) == 28
    assert len(Passes.under(structure).statistics) == 1


def test_passes_over_other_records_are_refused():
    """Claim: where records come or go between two passes, nothing is made of them; no count is in the words."""

    class Growing:
        seen = 7

        def total(self, statistic):
            Growing.seen += 1
            return persons(Growing.seen).total(statistic)

    with pytest.raises(DataError, match="changed from one pass over them to the next") as caught:
        Passes.under(TANGLED, most=30).count(Growing())
    assert not any(word in str(caught.value) for word in "78")


def test_progress_says_which_pass_it_is_at():
    """Claim: of several passes each is told, of one what was always told."""
    told = []
    Passes.under(TANGLED, most=20).count(persons(3), lambda *what: told.append(what))
    count = len(told)
    assert count > 1 and told == [(f"counting: pass {k} of {count}", k, count) for k in range(1, count + 1)]
    told.clear()
    Passes.under(TANGLED).count(persons(3), lambda *what: told.append(what))
    assert told == [("counting", 0, None), ("counting", 1, 1)]


FIVE = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 3, "e": 1})
CODES = [np.random.default_rng(1).integers(0, size, 500).astype(np.uint8) for size in FIVE.sizes.values()]


def of(structure, counts):
    codes = dict(zip(FIVE.names, CODES, strict=True))
    return counts.partial([codes[name] for name in counts.columns], None)


@given(st.lists(st.lists(st.sampled_from(FIVE.names), unique=True, max_size=4), min_size=1, max_size=8))
def test_the_tables_are_those_of_blocks(cliques):
    structure = Structure(FIVE, cliques)
    short, blocks = TableCounts(structure), Counts.of(structure)
    sums = of(structure, pickle.loads(pickle.dumps(short)))
    short.check(sums)
    assert np.array_equal(short.tables(sums).values, blocks.tables(of(structure, blocks)).values)
    assert sums[-1] == 500 and len(sums) == short.cells <= structure.cells + 1


def test_the_vector_is_the_groupings_one_after_the_other():
    structure = Structure(FIVE, [("c", "a"), ("b",), ("a",), ("d", "b")])
    counts = TableCounts(structure)
    codes, at = dict(zip(FIVE.names, CODES, strict=True)), 0
    sums = of(structure, counts)
    for names in counts.groupings:
        shape = [FIVE[name].size for name in names]
        table = np.zeros(shape, np.int64)
        np.add.at(table, tuple(codes[name] for name in names), 1)
        assert sums[at : at + table.size].tolist() == table.ravel().tolist()
        at += table.size
    assert counts.groupings == (("a", "c"), ("b", "d")) and at == counts.cells - 1


def test_tied_cliques_are_summed_at_the_end_and_records_can_be_counted_alone():
    structure = Structure(FIVE, [("a", "c")], tied=[[("a", "b"), ("a", "d")]])
    short, blocks = TableCounts(structure), Counts.of(structure)
    assert np.array_equal(short.tables(of(structure, short)).values, blocks.tables(of(structure, blocks)).values)
    counts = TableCounts(Structure(FIVE, [()]))
    sums = of(None, counts)
    counts.check(sums)
    assert sums.tolist() == [500] and counts.groupings == ()
    assert isinstance(fewest_sums(Structure(FIVE, [("a", "b")])), TableCounts)
    many = Domain.from_sizes({f"a{number}": 2 for number in range(50)})
    assert isinstance(fewest_sums(Structure.complete(many, 2)), PairCounts)


@pytest.mark.parametrize("damage", [(0, 1), (-1, 1), (-1, -1), (0, -1000)])
def test_counts_that_do_not_fit_together_are_refused(damage):
    structure = Structure(FIVE, [("a", "b"), ("c", "d")])
    counts = TableCounts(structure)
    sums = of(structure, counts)
    counts.check(sums)
    sums[damage[0]] += damage[1]
    with pytest.raises(DataError, match="do not fit together"):
        counts.check(sums)
