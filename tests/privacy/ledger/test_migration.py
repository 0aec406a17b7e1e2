"""Ledgers of schema 1 go on: same terms, same charges, out of WAL mode, with a tally; whatever happens meanwhile."""

import itertools
import os
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from dpgm_core.errors import BudgetError, ModelFileError, Overspent
from dpgm_core.privacy import ledger_file as access
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_file import SCHEMA, VERSION, bring_up_to_date
from tests.privacy.ledger.schema1 import write_old, write_second

TENTH = Budget.pure("0.1")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


def facts(path):
    """Mode, schema and tables of the file."""
    with closing(sqlite3.connect(path)) as database:
        return (
            database.execute("PRAGMA journal_mode").fetchone()[0],
            database.execute("PRAGMA user_version").fetchone()[0],
            dict(database.execute("SELECT name, sql FROM sqlite_master")),
        )


@pytest.mark.parametrize("killed", [False, True])
def test_an_old_ledger_is_brought_up_to_date_when_it_is_opened(path, killed):
    """Charges are as they were, also those that were in the log only; nothing is left beside the file."""
    write_old(path, killed=killed)
    assert (access.os.path.exists(f"{path}-wal")) is killed and facts_of_a_copy(path)[:2] == ("wal", 1)
    ledger = Ledger.open(path)
    assert [(one.id, one.when, one.cost, one.note, one.status) for one in ledger.history()] == [
        (number, "2026-01-01T00:00:00+00:00", TENTH, f"old {number}", "charged") for number in (1, 2, 3)
    ]
    assert ledger.remaining() == Budget.pure("0.7") and (ledger.name, ledger.terms.unit) == ("survey", "one record")
    assert [one.name for one in path.parent.iterdir() if not one.name.startswith("copy")] == [path.name]
    assert facts(path) == ("delete", VERSION, SCHEMA)
    assert ledger.charge(Budget.pure("0.7")) == 4
    with pytest.raises(Overspent):
        ledger.charge(Budget.pure("1e-9"))


def facts_of_a_copy(path):
    """Looking at a file in WAL mode writes its log back, so look at a copy."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    return facts(copy)


def test_what_was_not_recorded_is_not_called_unconditional(path):
    """Old entries say so, one by one and of the total; new ones have their conditions."""
    ledger = Ledger.open(write_old(path))
    ledger.charge(TENTH, conditions=("unsafe noise",))
    assert [one.conditions for one in ledger.history()] == [("not recorded before schema 2",)] * 3 + [("unsafe noise",)]
    assert ledger.to_dict()["conditions"] == {"not recorded before schema 2": 3, "unsafe noise": 1}
    said = ledger.describe()
    assert "1 of 4 charge(s) are conditional: unsafe noise (1); the total is no unconditional guarantee." in said
    assert "3 of 4 charge(s): conditions not recorded before schema 2; the total is unconditional only if" in said


def test_an_up_to_date_ledger_is_not_written(path):
    """Opening one again changes no byte."""
    Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove").charge(TENTH)
    before = path.read_bytes(), path.stat().st_mtime_ns
    bring_up_to_date(path)
    Ledger.open(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_ledger_that_others_put_into_wal_mode_leaves_it(path):
    """Any program may do that, or put an old file under the name; an open object refuses it, opening it again mends."""
    ledger = Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove")
    ledger.charge(TENTH)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    for call in (ledger.history, lambda: ledger.charge(TENTH)):
        with pytest.raises(ModelFileError, match="open it again"):
            call()
    assert Ledger.open(path).charge(TENTH) == 2
    assert facts(path) == ("delete", VERSION, SCHEMA)
    path.unlink()
    write_old(path)
    with pytest.raises(ModelFileError, match="open it again"):
        ledger.charge(TENTH)


def test_an_older_process_that_holds_the_file_is_waited_for_and_then_named(path, monkeypatch):
    """A file in WAL mode cannot leave it while somebody has it open; nothing changes, and later it works."""
    write_old(path)
    monkeypatch.setattr(access, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("SELECT * FROM terms").fetchall()
        with pytest.raises(BudgetError, match=r"older dpgm and is held by another process .* nothing was charged"):
            Ledger.open(path)
        assert holder.execute("PRAGMA user_version").fetchone() == (1,)
    assert len(Ledger.open(path).history()) == 3


def test_two_names_of_an_old_ledger_are_refused_before_it_is_touched(path):
    """The log belongs to one of the names; under the other its charges would be lost for good."""
    write_old(path, killed=True)
    other = path.with_name("other.ledger")
    os.link(path, other)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(ModelFileError, match="2 names"):
            Ledger.open(name)
    assert path.read_bytes() == before
    other.unlink()
    assert len(Ledger.open(path).history()) == 3


def test_a_log_that_lost_its_ledger_is_not_left_behind(path):
    """Renamed without its log, an old ledger lacks charges; it is refused while the log lies there."""
    write_old(path, killed=True)
    renamed = path.rename(path.with_name("renamed.ledger"))
    with pytest.raises(ModelFileError, match=r"lies survey\.ledger-wal without its ledger"):
        Ledger.open(renamed)
    renamed.rename(path)
    assert len(Ledger.open(path).history()) == 3


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA application_id = 1", "not a dpgm ledger"),
        ("CREATE TABLE tally (charges INTEGER NOT NULL, digest TEXT NOT NULL)", "did not make"),
        ("ALTER TABLE charges ADD COLUMN conditions TEXT", "did not make"),
        ("DELETE FROM charges WHERE id = 2", "damaged"),
        ("UPDATE charges SET cost = 'x'", "damaged"),
        ('UPDATE charges SET cost = \'{"epsilon": "1/2"}\'', "damaged"),
    ],
)
def test_what_is_damaged_is_not_brought_up_to_date(path, statement, words):
    """A foreign or damaged file is refused and stays of its schema, in its mode."""
    write_old(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    with pytest.raises(ModelFileError, match=words):
        Ledger.open(path)
    assert facts_of_a_copy(path)[:2] == ("wal", 1)


def test_an_old_ledger_out_of_wal_mode_is_extended_too(path):
    """A kill between the two steps leaves this."""
    write_old(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    assert len(Ledger.open(path).history()) == 3 and facts(path) == ("delete", VERSION, SCHEMA)


@pytest.mark.parametrize("write", [write_old, write_second])
def test_torn_while_it_is_extended_the_file_shows_every_charge_or_is_refused(path, write):
    """Every mix of pages of before and after: no page that holds charges is moved, so that none can be lost."""
    write(path, 10)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    Ledger.open(path)
    after = path.read_bytes().ljust(len(before), b"\0")
    size, torn = 4096, path.with_name("torn")
    starts = [at for at in range(0, len(after), size) if before[at : at + size] != after[at : at + size]]
    read = 0
    for end in range(len(before), len(after) + 1, size):
        for chosen in itertools.product((False, True), repeat=len(starts)):
            mix = bytearray(before.ljust(len(after), b"\0"))
            for at in itertools.compress(starts, chosen):
                mix[at : at + size] = after[at : at + size]
            torn.write_bytes(mix[:end])
            try:
                shown = Ledger.open(torn).history()
            except (ModelFileError, BudgetError):
                continue
            assert [one.note for one in shown] == [f"old {number}" for number in range(1, 11)]
            read += 1
    assert read >= 2


def test_a_ledger_of_schema_2_gets_an_identity_once(path):
    """Charges stay as they are and have none of their own; new ones have; opening it again changes nothing."""
    ledger = Ledger.open(write_second(path))
    assert [(one.id, one.note, one.conditions, one.identity) for one in ledger.history()] == [
        (number, f"old {number}", ("seeded",), None) for number in (1, 2, 3)
    ]
    assert facts(path) == ("delete", VERSION, SCHEMA) and len(ledger.identity) == 32
    ledger.charge(TENTH)
    again = Ledger.open(path)
    assert again.identity == ledger.identity and again.history()[-1].identity == ledger.provenance(4)["entry_identity"]
    assert Ledger.open(write_second(path.with_name("other"))).identity != ledger.identity


@pytest.mark.parametrize(
    "statement",
    ["UPDATE tally SET charges = 2", "DELETE FROM charges WHERE id = 3", "UPDATE charges SET note = 'x' WHERE id = 1"],
)
def test_a_ledger_of_schema_2_that_does_not_add_up_is_left_alone(path, statement):
    """Its tally is checked before a new one is written over it."""
    write_second(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="damaged"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.landing
def test_processes_racing_to_open_an_old_ledger_change_it_once(path, race):
    """Four open and charge at the same time, the log of a killed one still there: all charges add up."""
    write_old(path, killed=True)
    script = """
ledger = Ledger.open(sys.argv[1])
try:
    for _ in range(4):
        print(ledger.charge(Budget.pure("0.1")), flush=True)
except Overspent:
    pass
"""
    numbers = list(map(int, race(script, path)))
    assert sorted(numbers) == list(range(4, 11))
    assert Ledger.open(path).remaining().is_zero and facts(path) == ("delete", VERSION, SCHEMA)
