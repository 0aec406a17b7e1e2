"""What a source yields is checked, and what it raises is dropped whole."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import field, frozen

from dpgm_core.counting.table_counts import count
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.structure.structure import Structure


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
