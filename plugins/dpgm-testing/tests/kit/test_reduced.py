"""What a source that sums brought back is asked for once, however many checks look at it."""

from contextlib import contextmanager
from typing import ClassVar

import pytest
from attrs import frozen

from dpgm_testing import Profile, check_component
from dpgm_testing.reductions import PartitionedSource, PartitionPin

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
