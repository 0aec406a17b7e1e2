"""Sums of pieces add up, and say nothing on the way."""

from __future__ import annotations

import numpy as np
import pytest

from dpgm_core.counting.kernel import Counts, count
from dpgm_core.counting.statistic import pieces, summed
from dpgm_core.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.sources import as_source
from dpgm_core.structure import Structure


def test_several_batches_and_threads_add_up() -> None:
    """More records than a batch holds, read in threads, lose and repeat nothing."""
    records = np.random.default_rng(1).integers(0, 7, size=(300_001, 5), dtype=np.uint8)
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcde", 7)))
    tables = count(as_source(records), structure).tables
    for (first, second), table in tables.items():
        pair = records[:, "abcde".index(first)].astype(int) * 7 + records[:, "abcde".index(second)]
        np.testing.assert_array_equal(np.bincount(pair, minlength=49), table.ravel())


def test_no_records_count_zero() -> None:
    """An empty source is an ordinary source."""
    counted = count(as_source(np.zeros((0, 2), int)), Structure.chain(Domain.from_sizes({"a": 2, "b": 2})))
    assert counted.records == 0 and not counted.tables.values.any()


def test_a_structure_too_large_says_its_size() -> None:
    """A table that cannot exist is refused in one line, before records are read."""
    domain = Domain.from_sizes({f"x{i}": 1000 for i in range(5)})
    with pytest.raises(TooLarge, match="1,000,000,000,000,001 cells"):
        count(as_source(np.zeros((1, 5), int)), Structure(domain, [domain.names]))


CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3}, unknown={"a": 1, "b": 2}))


def test_progress_learns_nothing_of_the_records() -> None:
    """The calls are the same for no record and for many."""

    def calls(rows: int) -> list[tuple[str, int, int | None]]:
        seen: list[tuple[str, int, int | None]] = []
        counts, source = Counts.of(CHAIN), as_source(np.zeros((rows, 2), np.uint8))
        summed(counts, pieces(source, CHAIN.domain, counts.columns), lambda *call: seen.append(call))
        return seen

    assert calls(0) == calls(300_000)
