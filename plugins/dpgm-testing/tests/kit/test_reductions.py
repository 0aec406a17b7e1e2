"""The kit's sums come to what they say."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import Domain
from dpgm_core.sources import Grouped, Reading
from dpgm_testing.reductions import PLANTED, Failing, Hidden, Large, embedded, tallies

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
    """The same vector, and nothing that says how it may be counted."""
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
