"""The kit's example of a source that sums keeps to what it is an example of."""

import pyarrow as pa
import pytest

from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Reading, SourceRefused
from dpgm_testing import SourceConformance
from dpgm_testing.reductions import PartitionedSource, partitioned

DOMAIN = Domain.from_sizes({"a": 3})
COUNTS = Counts.of(Structure(DOMAIN, [("a",)]))


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
    reading = Reading(domain=DOMAIN, columns=("a",), person="id")
    with PartitionedSource(table=table, parts=parts).pinned(reading) as pin:
        assert pin.reduce(COUNTS)[-1] == 3


def test_an_error_in_the_block_lets_the_records_go():
    """A pin is left however its context ends."""
    source = PartitionedSource(table=pa.table({"a": [0]}))
    with pytest.raises(KeyError), source.pinned(Reading(domain=DOMAIN, columns=("a",))) as pin:
        raise KeyError
    with pytest.raises(SourceRefused, match="let go"):
        pin.reduce(COUNTS)
