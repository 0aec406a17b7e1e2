"""The true tables of a session: counted once each, and forgotten with its records."""

from fractions import Fraction

import pytest

from dpgm_core import Budget, DpgmError
from dpgm_core.curator import records as module
from tests.curator.opened import WORKLOAD, curator, flat


def test_tables_are_counted_once_and_again_if_there_is_no_room(monkeypatch):
    """With room for no table at all each step counts what it needs, and says the same."""
    kept = []
    for room in (module._MAX_KEPT_BYTES, 64):
        monkeypatch.setattr(module, "_MAX_KEPT_BYTES", room)
        with curator(budget=Budget.zcdp(10**12)).session(workload=WORKLOAD) as session:
            each = session.budget * Fraction(1, 4)
            session.measure(["a", ("b", "c")], each)
            session.score(flat(), each)
            kept.append(
                [session.measure(["a", ("c", "d")], each).tables.values.tolist(), session.steps[1].values.round()]
            )
    assert kept[0][0] == kept[1][0] and (kept[0][1] == kept[1][1]).all()


def test_counting_that_runs_out_of_memory_says_so_and_stays_paid(monkeypatch):
    """Whether there is memory may depend on the records; so the step is paid for, and the words are ours."""

    def summed(*_):
        raise MemoryError

    with curator().session(workload=WORKLOAD) as session:
        with monkeypatch.context() as patched:
            patched.setattr("dpgm_core.counting.rows.sum_pieces", summed)
            with pytest.raises(DpgmError) as caught:
                session.measure(["a"], session.budget * Fraction(1, 2))
        assert "\n" not in str(caught.value)
        assert session.remaining <= session.budget * Fraction(51, 100)
