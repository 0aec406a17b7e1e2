"""A journal left by a killed process mends a torn file, and takes no charge back that was made under another name."""

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dpgm_core.privacy import ledger_file
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_file import connect
from tests.privacy.ledger.schema1 import write_second

CENT = Budget.pure("0.01")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="needs POSIX")


@pytest.fixture
def path(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", name="s", budget=Budget.pure(1), neighbours="add-remove")
    for number in range(3):
        ledger.charge(CENT, note=str(number))
    return tmp_path / "x.ledger"


def journal(path):
    return Path(f"{path}-journal")


def charge(connection):
    ledger_file.add(connection, "2026", CENT, "cut off", (), "9f")


def charge_of_schema_2(connection):
    """The row of one, which has no identity yet."""
    connection.execute("INSERT INTO charges (charged_at, cost, note, status) VALUES ('2026', '1', 'cut off', '')")


def cut_off(path, write=charge):
    """A process that is killed while it writes a charge: its journal is there, the file is as it was."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")  # so that the journal counts before it is synced
        connection.execute("BEGIN IMMEDIATE")
        write(connection)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert journal(path).stat().st_size > 512


def test_a_journal_of_before_takes_no_charge_of_schema_2_back(path):
    """A file that is whole is not rolled back before it is brought up to date either."""
    path.unlink()
    cut_off(write_second(path, 2), charge_of_schema_2)
    path.unlink()
    assert len(Ledger.open(write_second(path, 3)).history()) == 3


def notes(path):
    return [entry.note for entry in Ledger.open(path).history()]


def cut_off_and_charged(path):
    """A journal under this name, and a later charge that was made under another."""
    cut_off(path)
    other = path.rename(path.with_name("y.ledger"))
    Ledger.open(other).charge(CENT, note="acknowledged")
    other.rename(path)


def test_a_journal_of_before_takes_no_later_charge_back(path):
    """Cut off under one name, charged under another, opened under the first again: every charge is there."""
    cut_off_and_charged(path)
    assert notes(path) == ["0", "1", "2", "acknowledged"]
    assert not journal(path).exists() and [one.name for one in path.parent.iterdir()] == [path.name]


def test_sqlite_would_take_it_back(path, monkeypatch):
    """The test above can fail: without a look at the file first, the charge is gone."""
    monkeypatch.setattr(ledger_file, "_is_whole", lambda path: False)
    cut_off_and_charged(path)
    assert notes(path) == ["0", "1", "2"]


@pytest.mark.parametrize("call", ["history", "charge", "check", "mark_released"])
def test_an_object_that_is_open_looks_first_too(path, call):
    """At every call, not only at the opening."""
    ledger = Ledger.open(path)
    cut_off_and_charged(path)
    {"history": ledger.history, "charge": lambda: ledger.charge(CENT), "check": lambda: ledger.check(CENT),
     "mark_released": lambda: ledger.mark_released(4)}[call]()  # fmt: skip
    assert notes(path)[:4] == ["0", "1", "2", "acknowledged"]


def test_a_torn_file_is_mended_by_its_journal(path):
    """With any one page of a charge that never ended, refused alone or not, the journal brings back what was."""
    before = path.read_bytes()
    cut_off(path)
    kept = journal(path).read_bytes()
    whole = path.with_name("whole.ledger")
    shutil.copy(path, whole)
    Ledger.open(whole).charge(CENT, note="torn")
    after = whole.read_bytes()
    pages = [at for at in range(0, len(after), 4096) if before[at : at + 4096] != after[at : at + 4096]]
    assert len(pages) == 3
    for torn in pages:
        path.write_bytes(before[:torn] + after[torn : torn + 4096] + before[torn + 4096 :])
        journal(path).write_bytes(kept)
        assert notes(path) == ["0", "1", "2"] and not journal(path).exists()


def test_a_charge_that_was_whole_when_its_process_died_is_kept(path):
    """Nobody was told of it; it is wasted, which is what a crash may do."""
    before = path.read_bytes()
    cut_off(path)
    kept = journal(path).read_bytes()
    Ledger.open(path).charge(CENT, note="written")
    journal(path).write_bytes(kept)
    assert notes(path) == ["0", "1", "2", "written"] and path.read_bytes() != before


def test_the_journal_of_a_charge_under_way_is_left_alone(path):
    """A writer that lives holds the file: others wait for it, and take neither its journal nor its charge."""
    writing, go = threading.Event(), threading.Event()

    def write():
        with connect(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            ledger_file.add(connection, "2026", CENT, "under way", (), "9f")
            writing.set()
            go.wait(timeout=20)
            assert journal(path).exists()
            connection.execute("COMMIT")

    writer = threading.Thread(target=write)
    writer.start()
    assert writing.wait(timeout=20)
    found = []
    reader = threading.Thread(target=lambda: found.extend(notes(path)))
    reader.start()
    reader.join(timeout=0.3)
    go.set()
    writer.join()
    reader.join()
    assert notes(path) == ["0", "1", "2", "under way"] and found in (["0", "1", "2"], ["0", "1", "2", "under way"])


@pytest.mark.landing
def test_processes_that_find_a_journal_at_once_agree(path, race):
    """Four open at the same time where one was killed; all see the same charges and can charge."""
    cut_off(path)
    script = "for _ in range(5):\n    print(Ledger.open(sys.argv[1]).charge(Budget.pure('0.01')), flush=True)\n"
    numbers = list(map(int, race(script, path)))
    assert sorted(numbers) == list(range(4, 24)) and [one.name for one in path.parent.iterdir()] == [path.name]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
