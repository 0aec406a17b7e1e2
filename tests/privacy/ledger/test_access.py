"""One file, one name: hard links are refused, what a killed creation leaves is removed."""

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import dpgm_core
from dpgm_core.errors import BudgetError, ModelFileError
from dpgm_core.privacy import ledger_file
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_file import check_one_name, part_name
from tests.privacy.ledger.conftest import HEAD

CENT = Budget.pure("0.01")


@pytest.fixture
def path(tmp_path):
    Ledger.create(tmp_path / "x.ledger", name="s", budget=Budget.pure(1), neighbours="add-remove")
    return tmp_path / "x.ledger"


def test_a_ledger_of_two_names_is_refused_at_every_call(path):
    """Also by an object that was made before; the message says what to do, and then everything works again."""
    ledger = Ledger.open(path)
    entry = ledger.charge(CENT)
    other = path.with_name("y.ledger")
    os.link(path, other)
    calls = (
        ledger.history, ledger.spent, ledger.remaining, ledger.describe, ledger.to_dict, lambda: ledger.charge(CENT),
        lambda: ledger.check(CENT), lambda: ledger.mark_released(entry), lambda: Ledger.open(path),
        lambda: Ledger.open(other),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ModelFileError, match=r"2 names \(hard links\).* remove all but one .*-samefile [xy]"):
            call()
    other.unlink()
    ledger.charge(CENT)
    assert len(Ledger.open(path).history()) == 2


@pytest.mark.landing
def test_two_processes_with_two_names_cannot_both_spend(path):
    """What was seen before: 100 paid, 200 acknowledged. A copy in another folder is another ledger; a link is none."""
    (path.parent / "other").mkdir()
    other = path.parent / "other" / "z.ledger"
    os.link(path, other)
    script = """
try:
    print(Ledger.open(sys.argv[1]).charge(Budget.pure("0.9")))
except DpgmError as error:
    print("refused", error)
"""
    racers = [
        subprocess.Popen([sys.executable, "-c", HEAD + script, name], text=True, stdout=subprocess.PIPE)
        for name in (path, other)
    ]
    assert all(racer.communicate(timeout=60)[0].startswith("refused") for racer in racers)
    other.unlink()
    assert Ledger.open(path).history() == ()


@pytest.mark.landing
def test_names_that_come_and_go_share_their_locks(path, monkeypatch):
    """Were hard links let in, a writer under one name would still hold off a writer under the other."""
    monkeypatch.setattr("dpgm_core.privacy.ledger_file.check_one_name", lambda path: None)
    monkeypatch.setattr("dpgm_core.privacy.ledger_file.BUSY_SECONDS", 0.05)
    other = path.with_name("y.ledger")
    os.link(path, other)
    first, second = Ledger.open(path), Ledger.open(other)
    with ledger_file.connect(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match="held by another process"):
            second.charge(CENT)
    for _ in range(50):
        first.charge(CENT)
        second.charge(CENT)
    with pytest.raises(BudgetError):
        second.charge(CENT)
    assert len(first.history()) == len(second.history()) == 100


def test_what_a_killed_creation_left_is_removed(path):
    """The name under which a ledger was made is a second one; a creation still under way has a file of its own."""
    left, part = part_name(path, "0123456789abcdef"), part_name(path, "fedcba9876543210")
    part.write_text("not yet linked")
    os.link(path, left)
    Ledger.open(path).charge(CENT)
    assert not left.exists() and path.stat().st_nlink == 1 and part.read_text() == "not yet linked"


@pytest.mark.parametrize("name", [
    ".x.ledger.0123456789abcdeg.part", ".x.ledger.part", "x.ledger.0123456789abcdef.part",
    ".y.ledger.0123456789abcdef.part", ".x.ledger.0123456789abcdef.part.bak",
])  # fmt: skip
def test_other_names_are_not_touched(path, name):
    os.link(path, path.with_name(name))
    with pytest.raises(ModelFileError, match="2 names"):
        Ledger.open(path)
    assert path.with_name(name).exists()


def test_a_name_that_comes_while_another_goes_is_no_reason_to_refuse(path, monkeypatch):
    """Processes that remove a needless journal lock the file under a name of their own for a moment."""
    remove, more = ledger_file._remove_parts, iter(["0" * 16, "1" * 16, "2" * 16])

    def busy(path):
        remove(path)
        for token in more:
            os.link(path, part_name(path, token))
            break

    os.link(path, part_name(path, "f" * 16))
    monkeypatch.setattr(ledger_file, "_remove_parts", busy)
    Ledger.open(path).charge(CENT)
    assert path.stat().st_nlink == 1 and next(more, None) is None


@pytest.mark.landing
def test_openers_race_with_a_creation(tmp_path, monkeypatch):
    """While a ledger appears, every opener finds none or a whole one: never two names, never a damaged file."""
    link = os.link
    seen = Counter()

    def slow(*names):
        link(*names)
        opened.wait(timeout=5)  # until somebody opened it while it has two names

    monkeypatch.setattr(os, "link", slow)
    for number in range(20):
        path, opened, done = tmp_path / f"{number}.ledger", threading.Event(), threading.Event()

        def look(path=path, opened=opened, done=done):
            while not done.is_set():
                try:
                    Ledger.open(path).charge(CENT)
                    opened.set()
                    seen["opened"] += 1
                except ModelFileError as error:
                    seen["none" if "there is no ledger" in str(error) else str(error)] += 1

        openers = [threading.Thread(target=look) for _ in range(2)]
        for opener in openers:
            opener.start()
        Ledger.create(path, name="s", budget=Budget.pure(100), neighbours="add-remove")
        done.set()
        for opener in openers:
            opener.join()
        assert path.stat().st_nlink == 1
    assert set(seen) <= {"none", "opened"} and seen["opened"] >= 20, seen


def test_a_missing_file_passes_and_is_refused_by_who_opens_it(tmp_path):
    """Looking at names is not looking for the file."""
    check_one_name(tmp_path / "none")
    with pytest.raises(BudgetError), ledger_file.connect(tmp_path / "none"):
        pass


ROOT = Path(dpgm_core.__file__).parents[1]


def test_git_ignores_what_lies_beside_a_ledger():
    """A journal holds pages of the ledger; none of its files belongs into a repository by accident."""
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {"*.ledger", "*.ledger-journal", "*.ledger-wal", "*.ledger-shm"} <= set(ignored)
