"""The kit's sums, its example of a source that sums, and what such a source brought back."""

import pickle
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen

from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Grouped, Reading, SourceRefused
from dpgm_testing import Profile, SourceConformance, check_component
from dpgm_testing.reductions import (
    PLANTED,
    Failing,
    Hidden,
    Large,
    PartitionedSource,
    PartitionPin,
    embedded,
    partitioned,
    tallies,
)

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
CODES = [np.array(column, np.uint8) for column in ([2, 2, 0], [0, 1, 0], [0, 0, 1])]  # of b, a, c
COUNTS = tallies(DOMAIN, [("b", "a"), ("c", "b")])


def test_tables_are_not_merged_and_lie_row_major():
    """Against counts by hand, in the order in which cliques name columns; the last cell counts rows."""
    sums = COUNTS.partial(CODES, None)
    assert COUNTS.columns == ("b", "a", "c") and COUNTS.groupings == (("b", "a"), ("c", "b"))
    assert sums.tolist() == [1, 0, 0, 0, 1, 1, 0, 0, 2, 1, 0, 0, 3]
    assert COUNTS.hits(sums) == [{(2, 0): 1, (2, 1): 1, (0, 0): 1}, {(0, 2): 2, (1, 0): 1}]


def test_what_is_hidden_is_no_more_than_a_sum():
    hidden = pickle.loads(pickle.dumps(Hidden(COUNTS)))
    assert isinstance(COUNTS, Grouped) and not isinstance(hidden, Grouped)
    assert hidden.columns == COUNTS.columns
    assert (hidden.partial(CODES, None) == COUNTS.partial(CODES, None)).all()


def test_a_failing_sum_fails_over_records_only():
    """In words that hold the planted value."""
    with pytest.raises(ValueError, match=PLANTED):
        Failing(COUNTS).partial(CODES, None)
    assert not Failing(COUNTS).partial([column[:0] for column in CODES], None).any()


def test_large_sums_need_whole_numbers_of_64_bits():
    """Neither 32 bits nor a double hold them; persons count once each."""
    sums = Large(("b", "a")).partial(CODES[:2], np.array([2, 1]))
    assert sums.tolist() == [4 * 2**40 + 3, -3 * 2**50, 2 * 2**53 + 3]
    assert (sums.astype(float).astype(np.int64) != sums).any() and (sums.astype(np.int32) != sums).any()


def test_what_is_expected_is_what_core_sums_here():
    """With a person's rows bounded, and without."""
    table = pa.table({"a": [0, 1, 1], "b": [2, 2, 2], "c": [0, 0, 1], "id": [7, 7, 8]})
    for person, rows in ((None, 3), ("id", 2)):
        reading = Reading(domain=DOMAIN, columns=("b", "a", "c"), person=person)
        assert embedded(table, reading, COUNTS)[-1] == rows


#: What docs/conformance.md says.
PINS, SUMS = 12, 18


@frozen(kw_only=True)
class Counted(PartitionedSource):
    """Notes each pin that was entered, and each sum."""

    pins: ClassVar[list] = []
    sums: ClassVar[list] = []

    @contextmanager
    def pinned(self, reading):
        with PartitionedSource.pinned(self, reading) as pin:
            self.pins.append(reading)
            yield Noting(pin, self.sums)


@frozen
class Noting:
    pin: PartitionPin
    sums: list

    def reduce(self, reduction):
        if self.pin.partitions is not None:
            self.sums.append(reduction)
        return self.pin.reduce(reduction)


@pytest.mark.landing
def test_the_quick_profile_takes_few_jobs():
    """An engine that takes a second to begin a job passes in less than twenty."""
    del Counted.pins[:], Counted.sums[:]
    check_component(Counted, "source", profile="quick", records=lambda table, folder: Counted(table=table))
    assert (len(Counted.pins), len(Counted.sums)) == (PINS, SUMS)


@pytest.mark.landing
def test_more_examples_are_more_columns_and_few_more_jobs():
    """Thirty more examples of odd records are a further job or two, not thirty."""
    del Counted.sums[:]
    far = Profile(name="far", examples=60, draws=1, shrink=False)
    check_component(Counted, "source", profile=far, records=lambda table, folder: Counted(table=table))
    assert SUMS < len(Counted.sums) <= SUMS + 2


ONE = Domain.from_sizes({"a": 3})
COUNTS_OF_ONE = Counts.of(Structure(ONE, [("a",)]))


class TestPartitioned(SourceConformance):
    """It passes every check."""

    component = PartitionedSource
    profile = "quick"
    records = staticmethod(partitioned)


@pytest.mark.parametrize("parts", [1, 2, 50])
def test_persons_come_together_however_many_parts_there_are(parts):
    """Also more parts than persons: one row of each of three persons, the null key's among them."""
    table = pa.table(
        {
            "a": pa.chunked_array([[0, 0, 1], [2, 1, 2]]),
            "id": pa.chunked_array([["x", "y", ""], ["x", None, "y"]], pa.string()),
        }
    )
    reading = Reading(domain=ONE, columns=("a",), person="id")
    with PartitionedSource(table=table, parts=parts).pinned(reading) as pin:
        assert pin.reduce(COUNTS_OF_ONE)[-1] == 3


def test_an_error_in_the_block_lets_the_records_go():
    source = PartitionedSource(table=pa.table({"a": [0]}))
    with pytest.raises(KeyError), source.pinned(Reading(domain=ONE, columns=("a",))) as pin:
        raise KeyError
    with pytest.raises(SourceRefused, match="let go"):
        pin.reduce(COUNTS_OF_ONE)
