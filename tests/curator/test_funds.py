"""Funds: what is set aside, charged and given back, with and without a ledger, in threads too."""

import os
import signal
import subprocess
import sys
from fractions import Fraction
from threading import Barrier

import numpy as np
import pytest

from dpgm_core import Budget, BudgetError, Domain, Ledger, ModelFileError, Overspent, Structure, load_release, release
from dpgm_core.curator.funds import Funds
from dpgm_core.sources import as_source
from tests.fixtures import in_threads

TENTH = Budget.pure("1/10")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")


def test_parts_add_up_exactly():
    funds = Funds(Budget.pure(1))
    for _ in range(10):
        with funds.charge(funds.resolve(TENTH)):
            pass
    assert funds.remaining.is_zero
    for more in (TENTH, None):
        with pytest.raises(Overspent):
            funds.resolve(more)
    with pytest.raises(Overspent), funds.charge(TENTH):
        pytest.fail("it was paid")


def test_the_charge_follows_the_body_and_is_on_the_receipt(ledger):
    """The ledger is charged when counting is done, not before; the receipt has its number."""
    funds = Funds(Budget.pure("1/2"), ledger)
    with funds.charge(TENTH) as receipt:
        assert not ledger.history() and receipt.entry is None
        assert funds.remaining == Budget.pure("2/5")  # set aside all the same
    (entry,) = ledger.history()
    assert entry.cost == TENTH and receipt.provenance == {
        "ledger": "x", "entry": receipt.entry, "ledger_identity": ledger.identity, "entry_identity": entry.identity
    }  # fmt: skip


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_what_fails_is_given_back(ledger, failure):
    funds = Funds(Budget.pure(1), ledger)
    with pytest.raises(failure), funds.charge(TENTH):
        raise failure
    assert funds.remaining == Budget.pure(1) and not ledger.history()


def test_a_ledger_that_is_full_refuses_before_the_body(ledger):
    ledger.charge(Budget.pure("0.95"))
    funds = Funds(Budget.pure(1), ledger)
    with pytest.raises(Overspent), funds.charge(TENTH):
        pytest.fail("the body ran")
    assert funds.remaining == Budget.pure(1)


def names_of(funds, count=2):
    names = []
    for _ in range(count):
        with funds.charge(TENTH) as receipt:
            names.append(receipt.path.name)
    return names


def test_files_are_numbered_and_failed_numbers_are_used_again(tmp_path):
    """x, x-2, ...; a release that was not made leaves no gap."""
    funds = Funds(Budget.pure(1), None, tmp_path / "x.dpgm")
    with pytest.raises(ValueError), funds.charge(TENTH):
        raise ValueError
    assert names_of(funds) == ["x.dpgm", "x-2.dpgm"]


def test_threads_never_spend_the_same_budget_twice():
    funds, start, served = Funds(Budget.pure(1)), Barrier(16), []

    def ask():
        start.wait()
        try:
            with funds.charge(TENTH):
                served.append(TENTH)
        except Overspent:
            pass

    in_threads(ask, 16)
    assert len(served) == 10 and funds.remaining.is_zero


@pytest.mark.parametrize("budget", [Budget.zero("pure"), 1, None, "1"])
def test_funds_are_a_positive_budget_of_one_kind(budget):
    with pytest.raises(BudgetError):
        Funds(budget)
    with pytest.raises(BudgetError):
        Funds(Budget.pure(1)).resolve(Budget.zcdp(Fraction(1, 10)))


RUN = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
import dpgm_core as dpgm
from dpgm_core.sources import as_source

folder, me, others, dies = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]

class Waiting:
    "Counts only when all processes have looked at the name and found it free."
    def batches(self, domain, columns):
        (folder / f"{me}.here").touch()
        while len(list(folder.glob("*.here"))) < others:
            time.sleep(0.01)
        return as_source(np.zeros((9, 1), int)).batches(domain, columns)

link = os.link
def die(*names):
    if dies == "after":
        link(*names)
    os.kill(os.getpid(), signal.SIGKILL)
if dies:
    os.link = die
structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
made = dpgm.release(Waiting(), structure, dpgm.Budget.pure("1/10"), neighbours="add-remove",
                    ledger=folder / "x.ledger", save_release=folder / "r.dpgm")
print(made.saved_as.name)
"""


def releasing(folder, me, others=1, dies=""):
    """A process that charges a tenth and saves the release as r.dpgm."""
    words = [sys.executable, "-c", RUN, str(folder), me, str(others), dies]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def saved(folder):
    """The ledger's number of each release in the folder; each is whole."""
    return {path.name: load_release(path).provenance["entry"] for path in folder.glob("*.dpgm")}


@pytest.mark.landing
def test_no_process_loses_a_release_to_another(tmp_path, ledger):
    """Three that found the same name free: three charges, three files, and each process says where its own is."""
    running = [releasing(tmp_path, str(number), 3) for number in range(3)]
    names = [one.communicate(timeout=60) for one in running]
    assert all(one.returncode == 0 for one in running), names
    found = saved(tmp_path)
    assert sorted(out.strip() for out, _ in names) == sorted(found) == ["r-2.dpgm", "r-3.dpgm", "r.dpgm"]
    assert sorted(found.values()) == [entry.id for entry in ledger.history()] == [1, 2, 3]
    assert {entry.status for entry in ledger.history()} == {"released"}


@pytest.mark.landing
@pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL")
@pytest.mark.parametrize(("dies", "left"), [("before", {}), ("after", {"r.dpgm": 1})])
def test_a_kill_while_saving_leaves_no_half_file_and_blocks_nobody(tmp_path, ledger, dies, left):
    """kill -9 just before and just after the file has its name: nothing there, or all; the next run finds its way."""
    killed = releasing(tmp_path, "killed", dies=dies)
    assert killed.wait(60) == -signal.SIGKILL
    killed.communicate()
    assert saved(tmp_path) == left
    again = releasing(tmp_path, "again", 2)
    out, err = again.communicate(timeout=60)
    if left:  # the name was taken before anything was charged
        assert again.returncode and "r.dpgm exists and is a dpgm release; nothing is replaced there" in err
        assert len(ledger.history()) == 1
    else:
        assert out == "r.dpgm\n" and saved(tmp_path) == {"r.dpgm": 2}


def test_no_thread_loses_a_release_to_another(tmp_path, ledger):
    """Two curators that found the same name free, in one process; each release knows its file."""
    both = Barrier(2)

    class Waiting:
        def batches(self, domain, columns):
            both.wait(30)
            return as_source(np.zeros((9, 1), int)).batches(domain, columns)

    made = []
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    settings = {"neighbours": "add-remove", "ledger": ledger, "save_release": tmp_path / "r.dpgm"}
    in_threads(lambda: made.append(release(Waiting(), structure, TENTH, **settings)), 2)
    assert sorted(saved(tmp_path)) == ["r-2.dpgm", "r.dpgm"]
    assert {one.saved_as.name: one.provenance["entry"] for one in made} == saved(tmp_path)


def test_later_releases_go_around_the_files_of_others(tmp_path):
    """The first name was chosen, so it is refused where it is taken; the numbers of later ones skip what is there."""
    funds = Funds(Budget.pure(1), None, tmp_path / "x.dpgm")
    (tmp_path / "x-2.dpgm").write_text("another's")
    assert names_of(funds) == ["x.dpgm", "x-3.dpgm"]
    (tmp_path / "x.dpgm").write_text("another's")
    with pytest.raises(ModelFileError, match="nothing is replaced"):
        names_of(Funds(TENTH, None, tmp_path / "x.dpgm"), 1)
