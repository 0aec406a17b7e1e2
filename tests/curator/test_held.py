"""Sessions and releases of records that are summed where they are: the same bits, the same order, and what is lost."""

import gc
import os
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, BudgetError, Contributions, DataError, Domain, SeededRandomness, Structure, Workload, make
from dpgm_core.counting.rows import Persons
from dpgm_core.curator import records as counted_module
from dpgm_core.curator.records import CountedTables
from tests.curator.opened import (
    CODES,
    DOMAIN,
    KINDS,
    WORKLOAD,
    Noted,
    curator,
    flat,
    ledger,
    noted_ledger,
    slopes,
    take,
)
from tests.fixtures import in_a_fork, live_curator
from tests.partitioned import PLANTED, Partitioned
from tests.private_columns import private_bins

TABLE = pa.table({name: CODES[:, place] for place, name in enumerate(DOMAIN.names)})
#: 500 rows of about 150 persons.
OF_PERSONS = TABLE.append_column("id", pa.array(np.random.default_rng(1).integers(0, 150, 500)))


GAUSSIAN, TWO = make("mechanism", "gaussian"), {"budget": Budget.zcdp(2)}


def same(one, other):
    assert one.tables.values.tolist() == other.tables.values.tolist()
    for name in ("total", "total_variance", "cost", "terms"):
        assert getattr(one, name) == getattr(other, name)
    return True


def noted(tmp_path, source, refuses=False, **more):
    """A curator over a source, its ledger and its words, all in the source's log."""
    book = noted_ledger(tmp_path, source.log, refuses)
    return curator(source, ledger=book, randomness=Noted(source.log), **more), book


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "rows"), [("pure", 3), ("zcdp", None), ("zcdp", 3), ("approx", 1)])
def test_a_session_draws_what_it_draws_of_records_held_here(kind, rows):
    person = {} if rows is None else {"person": "id", "rows_per_person": rows}
    kept = np.minimum(np.bincount(OF_PERSONS["id"]), rows or 500).sum()
    found = []
    for source in (OF_PERSONS, Partitioned(table=OF_PERSONS, parts=1), Partitioned(table=OF_PERSONS, parts=7)):
        opened = curator(source, budget=KINDS[kind], **person)
        with opened.session(workload=WORKLOAD) as session:
            assert session._open_records.records == kept
            take(session)
            session.descend(slopes(), session.remaining * Fraction(1, 2))
        found.append((opened.released[-1], session.steps))
    here, *others = found
    for release, steps in others:
        assert same(here[0], release) and [type(one) for one in steps] == [type(one) for one in here[1]]
        for mine, theirs in zip(here[1], steps, strict=True):
            assert repr(mine) == repr(theirs)
            for name in ("chosen", "picks"):
                assert getattr(mine, name, None) == getattr(theirs, name, None)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("pure", {}),
        ("zcdp", {"person": "id"}),
        ("approx", {"person": "id", "rows_per_person": 3}),
        ("zcdp", {"total": "estimated"}),
    ],
)
@pytest.mark.parametrize(
    "structure",
    [
        Structure(DOMAIN, [("a", "b", "c"), ("c", "d"), ()]),
        Structure(DOMAIN, [("a", "b")], tied=[[("c", "b"), ("c", "d")], [("b",), ("d",)]]),
    ],
)
def test_a_release_is_that_of_records_held_here(kind, more, structure):
    """Claim: bit for bit, tied cliques and a holdout among it, whatever the terms."""
    mechanism, found = make("mechanism", "laplace" if kind == "pure" else "gaussian"), []
    settings = {"budget": KINDS[kind], "split": {"tables": "even", "holdout": 0.1}} | more
    for source in (OF_PERSONS, Partitioned(table=OF_PERSONS, parts=5)):
        opened = live_curator(source, structure, mechanism, randomness=SeededRandomness(3), **settings)
        found.append((opened.release(), opened._holdouts[0]))
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


@pytest.mark.parametrize("per", ["clique", "group"])
def test_shares_of_persons_are_those_of_records_held_here(per):
    """Claim: with normalised contributions too, of which no sum knows how many records there are."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("c", "b"), ("c", "d")]])
    settings = {"person": "id", "rows_per_person": 4, "contributions": Contributions(per=per, grid=60)}
    assert same(
        *(
            live_curator(source, structure, GAUSSIAN, randomness=SeededRandomness(3), **TWO | settings).release()
            for source in (OF_PERSONS, Partitioned(table=OF_PERSONS, parts=5))
        )
    )


def test_contrasts_are_those_of_records_held_here():
    """Claim: sums of products, in a session and of one release, with N estimated."""
    binary = Domain.from_sizes(dict.fromkeys("abcd", 2))
    table = pa.table({name: CODES[:, place] % 2 for place, name in enumerate("abcd")})
    structure = Structure.complete(binary, order=3)
    found = []
    for source in (table, Partitioned(table=table)):
        opened = live_curator(source, structure, GAUSSIAN, randomness=SeededRandomness(3), total="estimated", **TWO)
        one = opened.release(budget=Budget.zcdp(1), split="contrasts")
        with opened.session(workload=Workload.of(binary, structure.cliques)) as session:
            session.measure([("a", "b"), ("c",)], session.budget * Fraction(1, 2), contrasts=True)
        found.append((one, opened.released[-1]))
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


BINNED = Domain([private_bins("age", 8), *DOMAIN.attributes])
AGED = TABLE.append_column("age", pa.array(np.random.default_rng(2).integers(0, 100, 500)))
OF_AGES = Workload.of(BINNED, [("age", "a"), ("a", "b", "c")])


def of_ages(source, **more):
    settings = {"budget": KINDS["zcdp"], "randomness": SeededRandomness(5)} | more
    return live_curator(source, Structure(BINNED, [(name,) for name in BINNED.names]), GAUSSIAN, **settings)


def test_private_bins_and_merged_codes_are_those_of_records_held_here():
    """Claim: found from one sum over the grids; then tables and gradients of records that are recoded elsewhere."""
    found = []
    for source in (AGED, Partitioned(table=AGED)):
        opened = of_ages(source)
        with opened.session(workload=OF_AGES) as session:
            each = session.budget * Fraction(1, 8)
            session.measure(["age", "a"], each)
            ages = [min(code, 3) for code in range(session.domain["age"].size)]
            domain = session.coarsen({"age": ages, "c": [0, 1, 1, 0]})
            session.measure([("age", "a"), ("b", "c")], each)
            session.descend(slopes(Structure(domain, [("age", "a"), ("b", "c")])), each)
        found.append((opened.released[-1], repr(session.steps), session.steps[-1].picks))
    assert same(found[0][0], found[1][0]) and found[0][1:] == found[1][1:]
    assert source.log == ["enter", "sum", "sum", "sum", "exit"]  # grids, all tables, gradients


@pytest.mark.parametrize("room", [0, 8 * 12, 8 * 20])
def test_what_does_not_fit_is_counted_when_it_is_asked_for(room, monkeypatch):
    """Claim: with any room the same bits; no more is kept than it says, and what is kept is not counted again."""
    wanted = curator(TABLE)
    with wanted.session(workload=WORKLOAD) as session:
        take(session)
    monkeypatch.setattr(counted_module, "_MAX_AHEAD_BYTES", room)
    source = Partitioned(table=TABLE)
    opened = curator(source)
    with opened.session(workload=WORKLOAD) as session:
        assert session._records == 500
        take(session)
        kept = session._open_records._counted._kept
        assert 8 * sum(len(table) for clique, table in kept.items() if clique) <= room
        before = source.log.count("sum")
        session.select(flat(Structure(DOMAIN, [one for one in kept if len(one) == 1] or [("a",)])), session.remaining)
        assert source.log.count("sum") == before + (not any(kept))
    assert same(wanted.released[-1], opened.released[-1])
    assert before > 1


def test_all_is_counted_then_charged_then_drawn_and_the_source_left(tmp_path):
    """Claim: one sum before the charge, none after it, and no word before; the context is left at the end, once."""
    source = Partitioned(table=TABLE)
    opened, book = noted(tmp_path, source)
    with opened.session(workload=WORKLOAD) as session:
        assert source.log == ["enter", "sum", "charge rho = 0.5 (zCDP)"]
        take(session)
    assert source.log[-1] == "exit" and set(source.log[3:-1]) == {"words"} and len(book.history()) == 1
    del source.log[:]
    with curator(source).session(workload=WORKLOAD) as session:
        session.coarsen({"c": [0, 1, 1, 1]})
        session.measure([("b", "c")], session.remaining)
    assert source.log == ["enter", "sum", "exit"]
    del source.log[:]
    curator(source, randomness=Noted(source.log)).release()
    assert source.log[:3] == ["enter", "sum", "exit"] and set(source.log[3:]) == {"words"}


def refused_before_the_charge(what, source, book, **more):
    """The error of a release, a session, or one with bins: nothing is charged, and all of the budget remains."""
    opened = (of_ages if what == "bins" else curator)(source, ledger=book, **more)
    with pytest.raises(DataError) as caught:
        if what == "release":
            opened.release()
        else:
            opened.session(workload=OF_AGES if what == "bins" else WORKLOAD)
    assert not book.history() and opened.remaining == opened.budget and not opened.released
    return caught


@pytest.mark.parametrize("fails_at", [0, 1])
@pytest.mark.parametrize("what", ["release", "session", "bins"])
def test_an_engine_that_is_lost_before_the_charge_costs_nothing(what, fails_at, tmp_path):
    """Claim: nothing is charged or drawn, the budget is there again, the source is left, and nothing is quoted."""
    source = Partitioned(table=AGED, fails_at=fails_at, fails_to_leave=True)
    caught = refused_before_the_charge(what, source, ledger(tmp_path / "x.ledger"), randomness=Noted(source.log))
    assert source.log == (["enter", "sum", "exit"] if fails_at else ["enter"])
    assert "Marple" not in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.__cause__ is None and (caught.value.__suppress_context__ or caught.value.__context__ is None)


def test_a_refused_charge_leaves_the_source(tmp_path):
    """Claim: and gives the budget back; a ledger that has too little is asked before the source is reached."""
    source = Partitioned(table=TABLE)
    opened, book = noted(tmp_path, source, refuses=True)
    with pytest.raises(OSError, match="no room"):
        opened.session(workload=WORKLOAD)
    assert source.log == ["enter", "sum", "exit"] and opened.remaining == opened.budget
    del source.log[:]
    with pytest.raises(BudgetError):
        curator(source, ledger=book, budget=Budget.zcdp(9)).session(workload=WORKLOAD)
    assert not source.log


def test_an_error_in_a_session_leaves_the_source_and_passes():
    """Claim: the error of whoever uses the session comes out as it is, also where the source fails to be left."""
    source = Partitioned(table=TABLE, fails_to_leave=True)
    with pytest.raises(ZeroDivisionError), curator(source).session(workload=WORKLOAD) as session:
        session.measure(["a"], session.remaining)
        raise ZeroDivisionError
    assert source.log == ["enter", "sum", "exit"]


@pytest.mark.parametrize("lost", ["bins", "descent"])
def test_an_engine_that_is_lost_after_the_charge_spends_it_and_what_was_saved_stays(lost, tmp_path):
    """Claim: the ledger holds the whole charge, the error is one line without a record, and the release is there."""
    source = Partitioned(table=AGED, fails_at=2 if lost == "bins" else 3)
    book = ledger(tmp_path / "x.ledger")
    opened = of_ages(source, ledger=book, save_to=tmp_path / "x.npz")
    with pytest.raises(DataError) as caught, opened.session(workload=OF_AGES) as session:
        session.measure(["a"], session.budget * Fraction(1, 4))
        session.descend(slopes(Structure(session.domain, [("a", "b")])), session.budget * Fraction(1, 4))
    assert book.spent() == Budget.zcdp("1/2") and opened.remaining.is_zero
    assert "\n" not in str(caught.value) and PLANTED not in str(caught.value)
    assert source.log[-1] == "exit" and (tmp_path / "x.npz").exists() == bool(opened.released) == (lost == "descent")


LIES = {
    "a cell": lambda sums: sums + np.eye(1, len(sums), 0, dtype=np.int64)[0],
    "a partition lost by some": lambda sums: np.concatenate([sums[:-1], sums[-1:] - 1]),
    "less than nothing": lambda sums: -sums,
    "fewer cells": lambda sums: sums[:-1],
    "floats": lambda sums: sums.astype(float),
    "a list": lambda sums: sums.tolist(),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("what", ["release", "session", "bins"])
def test_sums_that_cannot_be_are_refused_before_the_charge(lie, what, tmp_path):
    """Claim: whatever is asked for first, a sum that does not fit together costs nothing, and no count is quoted."""
    source = Partitioned(table=AGED, lies=LIES[lie])
    caught = refused_before_the_charge(what, source, ledger(tmp_path / "x.ledger"))
    assert source.log[-1] == "exit"
    assert not any(str(number) in str(caught.value) for number in (500, 499, 501))


def test_rounds_and_votes_are_refused_by_name_before_anything_is_spent(tmp_path):
    """Claim: neither the source nor the ledger is touched, and the words say what would do."""
    source = Partitioned(table=TABLE)
    opened, book = noted(tmp_path, source, budget=Budget.approx(1, "1e-6"))
    for ask, what in (
        (lambda: opened.rounds(3, sampling_rate=0.5), "rounds of subsamples"),
        (lambda: opened.session(workload=WORKLOAD, votes=Budget.approx("1/2", "1e-7")), "votes"),
    ):
        with pytest.raises(DataError, match=f"Partitioned .* {what} .* other coins; use .*, or give the records as"):
            ask()
    assert not source.log and not book.history() and opened.remaining == opened.budget


@given(
    sizes=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    merged=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=3, max_size=3),
    records=st.integers(0, 20),
)
@settings(max_examples=40)
def test_adding_up_cells_is_counting_recoded_rows(sizes, merged, records):
    """Claim: what is kept of tables as codes are merged is bit for bit what recoded rows would count."""
    rng = np.random.default_rng(records)
    domain = Domain.from_sizes(dict(zip("abc", sizes, strict=True)))
    codes = {
        name: np.unique(codes[:size], return_inverse=True)[1]
        for name, codes, size in zip("abc", merged, sizes, strict=True)
    }
    coarse = domain.coarsened({name: one.tolist() for name, one in codes.items()})
    rows = Persons(domain.names, [rng.integers(0, size, records).astype(np.uint8) for size in sizes], None)
    cliques = [("a",), ("b", "a"), ("c", "a", "b")]
    kept = CountedTables(None)
    kept.of(Structure(domain, cliques), rows)
    kept.coarsen(codes, coarse)
    afresh = CountedTables(None).of(Structure(coarse, cliques), rows.recoded(codes, coarse))
    assert kept.of(Structure(coarse, cliques), None).values.tolist() == afresh.values.tolist()


def test_records_that_come_in_the_middle_of_a_session_are_not_counted():
    """Claim: a later pass that saw more records than the first is refused; the words do not say how many."""

    def more(sums):
        return sums * 2 if source.log.count("sum") > 1 else sums

    source = Partitioned(table=AGED, lies=more)
    with of_ages(source).session(workload=OF_AGES) as session:
        with pytest.raises(DataError, match="changed from one pass over them to the next") as caught:
            session.measure(["a"], session.remaining)
        assert "500" not in str(caught.value) and session.remaining <= session.budget * Fraction(1, 10**6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_twin_in_a_forked_process_leaves_the_source_to_the_original():
    """Claim: neither leaving the twin's session nor forgetting it leaves the source, whose connection is shared."""
    source = Partitioned(table=TABLE)
    made = {"session": curator(source).session(workload=WORKLOAD)}

    def leave():
        with made["session"]:
            pass
        made.clear()
        gc.collect()
        return " ".join(source.log)

    with made["session"] as session:
        assert in_a_fork(leave) == "enter sum"
        session.measure(["a"], session.remaining)
    assert source.log == ["enter", "sum", "exit"]


def test_what_takes_long_is_told_records_read_here_and_passes_elsewhere():
    """Claim: a session says when records are read, or an engine counts, after the grids; the same of any records."""
    for source, wanted in (
        (AGED, [("counting: the records are read", 0, None), ("counting: the records are read", 1, 1)]),
        (Partitioned(table=AGED), [("counting", 0, None), ("counting", 1, 1)]),
    ):
        told = []
        opened = of_ages(source, progress=lambda *what, told=told: told.append(what))
        with opened.session(workload=OF_AGES) as session:
            assert told == ([] if isinstance(source, Partitioned) else wanted)  # there the grids come first
            session.measure(["a"], session.budget * Fraction(1, 4))
            session.measure(["b"], session.remaining)
        assert told == wanted
