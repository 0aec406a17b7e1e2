"""What plans say of sources that sum where their rows are."""

from __future__ import annotations

import time

import pytest

from dpgm_core import Budget, Contributions, Domain, Structure, Terms, plan, plan_selection
from dpgm_core.pipeline.planning import describe_release_passes, describe_session_passes
from dpgm_core.structure.workload import Workload
from tests.partitioned import Partitioned
from tests.private_columns import private_bins

TERMS = Terms(neighbours="add-remove")
NAMES = [f"x{number}" for number in range(100)]
SOURCE = Partitioned(table=None)


def wide(size, order, count=100):
    domain = Domain.from_sizes(dict.fromkeys(NAMES[:count], size))
    return Workload.all(domain, order=order)


def test_a_release_says_passes_tables_and_bytes():
    """Claim: as many passes as counting will take; nothing of a source that is read here."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b"), ("b",)])
    (told,) = plan(structure, Budget.pure(1), terms=TERMS, data=SOURCE).notes
    assert told == "source Partitioned sums where its rows are: 2 tables (72 B) in one pass"
    assert not plan(structure, Budget.pure(1), terms=TERMS, data="visits.csv").notes
    large = Structure(Domain.from_sizes({"a": 3000, "b": 3000, "c": 2}), [("a", "b"), ("c",)])
    (told,) = describe_release_passes(SOURCE, large, TERMS)
    assert told.endswith("2 tables (68.7 MiB) in 2 passes, of at most 68.7 MiB each")
    shares = Terms(
        neighbours="add-remove", person="id", rows_per_person=2, contributions=Contributions(per="clique", grid=2)
    )
    assert describe_release_passes(SOURCE, structure, shares)[0].endswith("2 tables (72 B) in one pass")


def test_a_session_says_what_is_counted_before_the_charge(monkeypatch):
    """Claim: all candidates where they fit, else so many of them; private bins come first."""
    (told,) = describe_session_passes(SOURCE, wide(2, 2))
    assert told == (
        "source Partitioned sums where its rows are: 5,050 tables (156.2 KiB) in one pass, before anything is charged"
    )
    binned = Domain([private_bins("age", 8), *Domain.from_sizes({"a": 2}).attributes])
    (told,) = describe_session_passes(SOURCE, Workload.all(binned))
    assert told.endswith(", once the bins of age are found")
    monkeypatch.setattr("dpgm_core.curator.records._MAX_AHEAD_BYTES", 1000)
    (told,) = describe_session_passes(SOURCE, wide(10, 2, 3))
    assert told.endswith(
        "3 tables (240 B) in one pass; 3 tables (2.3 KiB) more do not fit beside them and are counted "
        "when a step asks for them"
    )


def test_selections_say_it_among_their_notes():
    """Claim: in `plan_selection`, for the workload."""
    told = plan_selection("aim", Budget.zcdp(1), wide(2, 2, 5), terms=TERMS, data=SOURCE).notes
    assert "15 tables (400 B) in one pass" in told[-1]
    assert not any(
        "sums where" in one for one in plan_selection("aim", Budget.zcdp(1), wide(2, 2, 5), terms=TERMS).notes
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "order", "count"), [(10, 2, 100), (10, 3, 50)])
def test_wide_jobs_are_planned_fast(size, order, count):
    """Claim: 4,950 pairs and 20,000 triples in less than 5 seconds of this process; measured at 0.1 and 0.4."""
    workload = wide(size, order, count)
    began = time.process_time()
    describe_session_passes(SOURCE, workload)
    assert time.process_time() - began < 5
