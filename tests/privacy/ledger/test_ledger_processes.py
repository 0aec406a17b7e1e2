"""The ledger across processes and kills: no kill point frees a charge, no race passes the budget."""

import os
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path

import pytest

import dpgm_core
from dpgm_core.errors import BudgetError, Overspent
from dpgm_core.privacy import ledger as ledger_module
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_file import add
from dpgm_core.privacy.ledger_terms import LedgerTerms
from dpgm_core.privacy.sensitivity import Neighbours
from tests.privacy.ledger.conftest import HEAD
from tests.privacy.ledger.schema1 import write_old

ROOT = Path(dpgm_core.__file__).parents[1]
TENTH = Budget.pure("0.1")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


class Steps:
    """Counts steps, and kills its process with SIGKILL before (even) or after (odd) the n-th.

    Steps are the statements sent to SQLite, the closing of the file, and the link and unlink that make a new ledger.
    """

    def __init__(self, stop):
        self.stop, self.count = stop, 0

    def stepped(self, real):
        """The function, as two steps."""

        def step(*args, **kwargs):
            self.tick()
            result = real(*args, **kwargs)
            self.tick()
            return result

        return step

    def tick(self):
        """One step more, or the end."""
        if self.count == self.stop:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def put_in(self):
        """Take the place of what makes a step, in a process of its own."""
        steps, connect = self, sqlite3.connect

        class Killer(sqlite3.Connection):
            def execute(self, *args):
                return steps.stepped(super().execute)(*args)

            def close(self):
                return steps.stepped(super().close)()

        sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Killer, **kwargs)
        os.link = self.stepped(os.link)
        Path.unlink = self.stepped(Path.unlink)


JOBS = {
    "create": lambda path: Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove") and None,
    "open": lambda path: Ledger.open(path) and None,
    "charge": lambda path: Ledger(path.resolve(), TERMS).charge(TENTH),
    "mark": lambda path: Ledger(path.resolve(), TERMS).mark_released(1),
}
TERMS = LedgerTerms(
    name="s", budget=Budget.pure(1), neighbours=Neighbours.of("add-remove"), unit="one record", person=None,
    rows_per_person=1, conversion_delta=None, identity="9f",
)  # fmt: skip


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Every ledger has the identity of `TERMS`, so that its object is made without a look at the file."""
    monkeypatch.setattr(ledger_module, "new_identity", lambda: "9f")


def forked(path, job, stop):
    """Do a job in a fork that kills itself at a step; what it said before, and how many steps it took."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            steps = Steps(stop)
            steps.put_in()
            os.write(writing, f"did {JOBS[job](path)};".encode())
            os.write(writing, f"{steps.count};".encode())
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(path, job, stop):
    said, code = forked(path, job, stop)
    assert code == -signal.SIGKILL, said
    return said


def steps_of(path, job):
    said, code = forked(path, job, -1)
    assert code == 0 and said.startswith("did "), said
    return int(said.split(";")[1])


def run(script, *arguments):
    command = [sys.executable, "-c", f"{HEAD}{script}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.landing
def test_a_kill_while_charging_wastes_at_most_the_charge_and_frees_nothing(tmp_path):
    """At each kill point the old charges and at most the new one are there; once `charge` has returned it is."""
    steps = steps_of(make(tmp_path / "count"), "charge")
    assert steps >= 20, steps
    kept = []
    for stop in range(steps):
        path = make(tmp_path / f"{stop}")
        printed = kill_at(path, "charge", stop)
        ledger = Ledger.open(path)
        charges = len(ledger.history()) - 1
        assert charges in (0, 1)
        assert not printed or charges == 1
        kept.append(charges)
        ledger.charge(Budget.pure("0.9") - TENTH * charges if charges else Budget.pure("0.9"))
        with pytest.raises(Overspent):
            ledger.charge(Budget.pure("1e-9"))
    # Never charged, then always: the commit is the one moment that decides.
    assert kept == sorted(kept) and kept[0] == 0 and kept[-1] == 1


def make(path):
    Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove").charge(TENTH)
    return path


def test_a_kill_after_the_charge_leaves_it_charged_and_not_released(tmp_path):
    """Between charge and saving, the budget is spent and history says that no release was saved."""
    path = make(tmp_path / "s.ledger")
    script = 'Ledger.open(sys.argv[1]).charge(Budget.pure("0.2"))\nos.kill(os.getpid(), signal.SIGKILL)'
    assert run(script, path).returncode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert ledger.spent() == Budget.pure("0.3")
    assert [entry.status for entry in ledger.history()] == ["charged", "charged"]


@pytest.mark.landing
def test_a_kill_while_marking_changes_no_amount(tmp_path):
    path = make(tmp_path / "s.ledger")
    seen = Counter()
    for stop in range(0, steps_of(make(tmp_path / "count"), "mark"), 2):
        kill_at(path, "mark", stop)
        (entry,) = Ledger.open(path).history()
        assert entry.cost == TENTH
        seen[entry.status] += 1
    assert set(seen) == {"charged", "released"}


@pytest.mark.landing
def test_a_kill_while_creating_leaves_a_whole_ledger_or_none(tmp_path):
    """There is never a half-made ledger, and creating it again works where there is none."""
    whole = linked = 0
    for stop in range(steps_of(tmp_path / "count", "create")):
        path = tmp_path / f"{stop}.ledger"
        kill_at(path, "create", stop)
        if path.exists():
            whole += 1
            linked += path.stat().st_nlink == 2  # killed before the name it was made under was removed
            assert Ledger.open(path).history() == ()
            assert path.stat().st_nlink == 1
            with pytest.raises(BudgetError, match="the file exists"):
                make(path)
        else:
            make(path)
            assert Ledger.open(path).spent() == TENTH
    assert whole >= 1 and linked >= 1


@pytest.mark.landing
@pytest.mark.parametrize("killed", [False, True])
def test_a_kill_while_an_old_ledger_is_brought_up_to_date_changes_no_charge(tmp_path, killed):
    """At each kill point, whether its last charges were in its file or only in its log: the same entries after it."""
    for stop in range(0, steps_of(write_old(tmp_path / "count", killed=killed), "open"), 2):
        path = write_old(tmp_path / f"{stop}.ledger", killed=killed)
        kill_at(path, "open", stop)
        ledger = Ledger.open(path)
        assert [(entry.id, entry.cost, entry.note) for entry in ledger.history()] == [
            (number, TENTH, f"old {number}") for number in (1, 2, 3)
        ]
        assert ledger.charge(Budget.pure("0.7")) == 4


@pytest.mark.landing
def test_a_kill_while_a_needless_journal_is_removed_takes_no_charge_back(tmp_path):
    """A journal of before the last charge, left under this name: at each kill point the charge is kept."""

    def left(path):
        make(path)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")  # so that the journal counts before it is synced
        connection.execute("BEGIN IMMEDIATE")
        add(connection, "2026", TENTH, "cut off", (), "9f")
        kept = Path(f"{path}-journal").read_bytes()
        connection.close()
        Ledger.open(path).charge(TENTH)
        Path(f"{path}-journal").write_bytes(kept)
        return path

    for stop in range(0, steps_of(left(tmp_path / "count"), "open"), 2):
        path = left(tmp_path / f"{stop}.ledger")
        kill_at(path, "open", stop)
        assert Ledger.open(path).spent() == TENTH * 2
        assert not Path(f"{path}-journal").exists() and path.stat().st_nlink == 1


def test_four_processes_share_one_budget_exactly(tmp_path, race):
    """4 processes x 10 charges of 0.1 against 1: exactly 10 succeed, whatever the race, and 30 are refused."""
    path = tmp_path / "s.ledger"
    Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove")
    script = """
ledger = Ledger.open(sys.argv[1])
for _ in range(10):
    try:
        print(ledger.charge(Budget.pure("0.1")), flush=True)
    except Overspent:
        print("refused", flush=True)
"""
    lines = race(script, path)
    assert Counter(lines) == Counter({"refused": 30, **{str(number): 1 for number in range(1, 11)}})
    ledger = Ledger.open(path)
    assert ledger.spent() == Budget.pure(1) and len(ledger.history()) == 10


@pytest.mark.landing
def test_processes_racing_to_create_make_one_ledger(tmp_path, race):
    """One creator wins, the others are refused, and the terms are the winner's."""
    path = tmp_path / "s.ledger"
    script = """
try:
    Ledger.create(sys.argv[1], name=str(os.getpid()), budget=Budget.pure(1), neighbours="add-remove")
    print(os.getpid())
except BudgetError:
    pass
"""
    (winner,) = race(script, path)
    assert Ledger.open(path).name == winner
    assert list(tmp_path.iterdir()) == [path]


def test_a_ledger_object_survives_a_fork(tmp_path):
    """Parent and child may go on with the same object, because no file stays open in it."""
    path = make(tmp_path / "s.ledger")
    script = """
ledger = Ledger.open(sys.argv[1])
child = os.fork()
for _ in range(4):
    ledger.charge(Budget.pure("0.1"))
if child:
    os._exit(os.waitpid(child, 0)[1])
os._exit(0)
"""
    assert run(script, path).returncode == 0
    assert Ledger.open(path).spent() == Budget.pure("0.9")
