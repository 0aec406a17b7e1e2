"""Counting: the blocked kernel against a dictionary count, one record at a time."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from attrs import field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.counting.kernel import BLOCK_CELLS, Counted, Counts, count, count_batch, plan_counting, tables_of
from dpgm_core.counting.statistic import pieces, summed
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, TooLarge
from dpgm_core.sources import as_source
from dpgm_core.structure import Structure


def brute_force(structure: Structure, records: np.ndarray) -> list[np.ndarray]:
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


def assert_counts(structure: Structure, records: np.ndarray, counted: Counted) -> None:
    assert counted.records == len(records)
    assert counted.tables.values.dtype == np.int64
    for expected, actual in zip(brute_force(structure, records), counted.tables.arrays(), strict=True):
        np.testing.assert_array_equal(expected, actual)


@st.composite
def structures_with_records(draw: st.DrawFn) -> tuple[Structure, np.ndarray]:
    """Any cliques, the empty one and duplicates included, any tied groups, and a few records."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5, 40, 300]), min_size=1, max_size=6))
    domain = Domain.from_sizes({f"x{i}": size for i, size in enumerate(sizes)})
    cliques_of = st.lists(st.sampled_from(domain.names), unique=True, max_size=3).map(tuple)
    cliques = draw(st.lists(cliques_of, min_size=1, max_size=8))
    tied = []
    for clique in draw(st.lists(cliques_of, max_size=2)):
        shape = domain.shape(clique)
        alike = [other for other in itertools.permutations(domain.names, len(clique)) if domain.shape(other) == shape]
        tied.append(list({frozenset(other): other for other in alike}.values()))
    rows = draw(st.integers(0, 30))
    seed = draw(st.integers(0, 2**32 - 1))
    records = np.random.default_rng(seed).integers(0, sizes, size=(rows, len(sizes)))
    return Structure(domain, cliques, tied=tied), records


@settings(deadline=None, max_examples=150)
@given(structures_with_records())
def test_counts_equal_a_dictionary_count(case: tuple[Structure, np.ndarray]) -> None:
    """Any structure, tied or not, with empty, nested and duplicate cliques, is counted exactly."""
    structure, records = case
    assert_counts(structure, records, count(as_source(records), structure))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64])
def test_every_integer_dtype_counts_the_same(dtype: type) -> None:
    """The width of the codes is storage, not meaning."""
    records = np.random.default_rng(0).integers(0, 10, size=(1000, 4))
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 10)))
    assert_counts(structure, records, count(as_source(records.astype(dtype)), structure))


def test_several_batches_and_threads_add_up() -> None:
    """More records than a batch holds, read in threads, lose and repeat nothing."""
    records = np.random.default_rng(1).integers(0, 7, size=(300_001, 5), dtype=np.uint8)
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcde", 7)))
    tables = count(as_source(records), structure).tables
    for (first, second), table in tables.items():
        pair = records[:, "abcde".index(first)].astype(int) * 7 + records[:, "abcde".index(second)]
        np.testing.assert_array_equal(np.bincount(pair, minlength=49), table.ravel())


def test_a_plan_travels_and_partial_counts_merge_by_addition() -> None:
    """What a worker elsewhere needs is pickled, and its vectors add up to the whole count."""
    records = np.random.default_rng(2).integers(0, 4, size=(60, 3), dtype=np.uint8)
    structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 4)))
    plan, work = pickle.loads(pickle.dumps((plan_counting(structure), count_batch)))
    parts = [work(plan, list(records[start : start + 7].T)) for start in range(0, 60, 7)]
    merged = pickle.loads(pickle.dumps(sum(parts)))
    assert_counts(structure, records, Counted(tables=tables_of(structure, plan, merged), records=int(merged[-1])))


def test_blocks_are_bounded_and_cover_every_clique() -> None:
    """No block of several cliques is larger than promised, and blocks are fewer than cliques."""
    structure = Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(10)}))
    plan = plan_counting(structure)
    names = [{plan.columns[position] for position in block} for block in plan.blocks]
    assert all(any(set(clique) <= block for block in names) for clique in structure.cliques)
    assert max(plan.block_cells()) <= BLOCK_CELLS
    assert len(plan.blocks) * 3 <= len(structure.cliques)


def test_a_clique_larger_than_a_block_is_counted_sparsely() -> None:
    """Ten million cells and five records: exact, and no table-sized temporary beside the counts themselves."""
    domain = Domain.from_sizes({"a": 3000, "b": 3400})
    records = np.array([[0, 0], [2999, 3399], [2999, 3399], [5, 7], [7, 5]])
    structure = Structure(domain, [("b", "a")])
    plan, size = plan_counting(structure), structure.cells * 8
    tracemalloc.start()
    count_batch(plan, [records[:, 0], records[:, 1]])
    of_batch = tracemalloc.get_traced_memory()[1]
    tables = count(as_source(records), structure).tables
    of_all = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tables["a", "b"][2999, 3399] == 2 and tables["a", "b"][5, 7] == 1 and tables.values.sum() == 5
    assert of_batch < 1.1 * size
    assert of_all < 2.2 * size


def test_the_empty_clique_counts_records() -> None:
    """A table of order 0 holds N, also when no other clique is there to be read."""
    counted = count(as_source(np.zeros((12, 2), int)), Structure(Domain.from_sizes({"a": 2, "b": 2}), [()]))
    assert counted.tables[()] == 12


def test_no_records_count_zero() -> None:
    """An empty source is an ordinary source."""
    counted = count(as_source(np.zeros((0, 2), int)), Structure.chain(Domain.from_sizes({"a": 2, "b": 2})))
    assert counted.records == 0 and not counted.tables.values.any()


def test_a_structure_too_large_says_its_size() -> None:
    """A table that cannot exist is refused in one line, before records are read."""
    domain = Domain.from_sizes({f"x{i}": 1000 for i in range(5)})
    with pytest.raises(TooLarge, match="1,000,000,000,000,001 cells"):
        count(as_source(np.zeros((1, 5), int)), Structure(domain, [domain.names]))


def test_the_plan_of_many_cliques_is_quick_and_small() -> None:
    """All 1225 pairs of 50 attributes are planned into far fewer passes."""
    structure = Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(50)}))
    assert len(plan_counting(structure).blocks) < math.comb(50, 2) / 3


@frozen
class Yields:
    """A third party's source that yields what it is told to."""

    batch: object = field()

    def batches(self, domain, columns):  # type: ignore[no-untyped-def]
        yield self.batch


CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3}, unknown={"a": 1, "b": 2}))


@pytest.mark.parametrize(
    "batch",
    [
        [np.array([0, 1])],
        [np.array([0, 1]), np.array([0])],
        [np.array([0.0, 1.0]), np.array([0, 1])],
        [np.array([True, False]), np.array([0, 1])],
        [np.array(["SECRET", "x"]), np.array([0, 1])],
        [[0, 1], [0, 1]],
        [np.zeros((2, 2), int), np.zeros(2, int)],
        np.zeros((2, 2), int),
        {"a": np.zeros(2, int), "b": np.zeros(2, int)},
        None,
        "SECRET",
    ],
)
def test_a_malformed_batch_names_the_source_and_no_content(batch: object) -> None:
    """Structural faults of a third party's source are DataErrors that quote nothing."""
    with pytest.raises(DataError, match="Yields") as caught:
        count(Yields(batch), CHAIN)
    assert "SECRET" not in str(caught.value)


def test_codes_out_of_range_count_as_unknown() -> None:
    """A third party's code beyond the labels, negative or huge, hits the unknown label and no other cell."""
    batch = [np.array([0, 2, -1, 255]), np.array([2**40, 0, 1, -7])]
    table = count(Yields(batch), CHAIN).tables["a", "b"]
    assert table.tolist() == [[0, 0, 1], [1, 1, 1]]


class Fails:
    """A source whose own error quotes a record, at the call or on the way."""

    def __init__(self, late: bool) -> None:
        self.late = late

    def batches(self, domain, columns):  # type: ignore[no-untyped-def]
        if not self.late:
            raise ValueError("SECRET")
        return self._late()

    def _late(self):  # type: ignore[no-untyped-def]
        yield [np.zeros(2, np.uint8), np.zeros(2, np.uint8)]
        raise KeyError("SECRET")


@pytest.mark.parametrize("late", [False, True])
def test_a_foreign_error_is_replaced_and_leaves_no_trace(late: bool) -> None:
    """Neither message, cause nor context of what a source raises survives."""
    with pytest.raises(DataError, match="Fails failed while reading") as caught:
        count(Fails(late), CHAIN)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_progress_learns_nothing_of_the_records() -> None:
    """The calls are the same for no record and for many."""

    def calls(rows: int) -> list[tuple[str, int, int | None]]:
        seen: list[tuple[str, int, int | None]] = []
        counts, source = Counts.of(CHAIN), as_source(np.zeros((rows, 2), np.uint8))
        summed(counts, pieces(source, CHAIN.domain, counts.columns), lambda *call: seen.append(call))
        return seen

    assert calls(0) == calls(300_000)


def test_reprs_hide_the_counts() -> None:
    """Neither N nor a cell is shown."""
    assert "77" not in repr(count(as_source(np.zeros((77, 2), int)), CHAIN))
