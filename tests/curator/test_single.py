"""What may be spent once exists once: no copies, no pickles, no twins in forked processes."""

import copy
import os
import pickle
import time

import numpy as np
import pytest

from dpgm_core import Budget, BudgetError, Domain, Ledger, ReplayCurator, Structure, SystemRandomness
from dpgm_core.curator.funds import Funds, Single, Turns
from dpgm_testing.curators import GuardedCurator
from tests.fixtures import in_a_fork, in_threads, live_curator

STRUCTURE = Structure(Domain.from_sizes({"a": 2}), [("a",)])
CODES = np.array([[0], [1], [1]])


def curator(source=CODES, **more):
    return live_curator(source, STRUCTURE, budget=Budget.pure(10), **more)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.mark.parametrize(
    "made",
    [
        Single,
        curator,
        lambda: curator().rounds(2, sampling_rate=1),
        lambda: Funds(Budget.pure(1)),
        lambda: Funds(Budget.pure(1)).charge(Budget.pure(1)).__enter__(),
        lambda: ReplayCurator(curator().release()),
        lambda: GuardedCurator(curator()),
        lambda: GuardedCurator(curator()).rounds(2, sampling_rate=1).__enter__(),
    ],
    ids=["single", "curator", "rounds", "funds", "receipt", "replay", "door", "watched rounds"],
)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda one: copy.deepcopy([one]), lambda one: pickle.dumps({1: one}, 0)],
    ids=["copy", "deepcopy", "pickle", "inside a list", "inside a dict"],
)
def test_nothing_that_pays_is_copied(made, copied):
    """One line of our own; without it a shallow copy of rounds counts anew and hands out what nobody paid for."""
    with pytest.raises(BudgetError, match="spend its budget twice; hand over the object itself") as caught:
        copied(made())
    assert "\n" not in str(caught.value)


@needs_fork
def test_a_forked_twin_spends_nothing():
    made = curator()
    rounds = made.rounds(2, sampling_rate=1, budget=Budget.pure(1))
    for work in (made.release, lambda: made.rounds(1, sampling_rate=1), rounds.next):
        assert in_a_fork(work).startswith("BudgetError: this Live")
    assert in_a_fork(lambda: rounds.__exit__(None, None, None)) == "None"  # leaving there is no news
    assert in_a_fork(lambda: in_a_fork(made.release)).startswith("BudgetError")  # nor does the child's child
    rounds.next()
    made.release()


@needs_fork
def test_a_curator_made_in_the_fork_works(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(15), neighbours="add-remove")
    assert in_a_fork(lambda: curator(ledger=ledger).release(budget=Budget.pure(6)).cost) == "epsilon = 6"
    curator(ledger=ledger).release(budget=Budget.pure(7))
    assert in_a_fork(lambda: curator(ledger=ledger).release(budget=Budget.pure(6))).startswith("Overspent")


@needs_fork
@pytest.mark.parametrize("where", ["source", "noise"])
def test_what_forks_in_the_middle_comes_back_once(where):
    """A source that forks while it is read, or a noise while it is drawn, gives one release, in one process."""
    read, write = os.pipe()
    parent = os.getpid()

    def fork():
        if os.getpid() == parent and os.fork():
            os.wait()

    class Forking:
        def batches(self, domain, columns):
            fork()
            yield [CODES[:, 0].astype(np.uint8)]

    class ForkingRandomness(SystemRandomness):
        calls = 0

        def words(self, count):
            ForkingRandomness.calls += 1
            if self.calls == 1:
                fork()
            return super().words(count)

    more = {"source": Forking()} if where == "source" else {"randomness": ForkingRandomness()}
    try:
        curator(**more).release()
        said = b"released "
    except BudgetError:
        said = b"refused "
    os.write(write, said)
    if os.getpid() != parent:
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert sorted(pipe.read().split()) == [b"refused", b"released"]


@needs_fork
@pytest.mark.system_randomness
def test_system_randomness_repeats_nothing_after_a_fork():
    """Parent and child draw other words (false alarm 2^-512), and so do both after it."""
    randomness = SystemRandomness()
    randomness.words(8)
    child = in_a_fork(lambda: randomness.words(8).tolist())
    assert child != str(randomness.words(8).tolist())


def test_turns_are_taken_one_after_the_other():
    """What is called within a turn has none; the turn goes on, and the next one is free; eight threads wait."""
    turns, inside, most = Turns(), [], []
    with turns.turn():
        for _ in range(2):
            with pytest.raises(BudgetError, match="while one of its steps is drawn"), turns.turn():
                raise AssertionError("two turns at once")
    with pytest.raises(ValueError, match="mine"), turns.turn():
        raise ValueError("mine")

    def work():
        with turns.turn():
            inside.append(1)
            time.sleep(0.002)
            most.append(len(inside))
            inside.pop()

    in_threads(work, 8)
    assert most == [1] * 8


@needs_fork
def test_a_twin_has_no_turn():
    """Also where the fork came in the middle of one, and its lock is never opened."""
    turns = Turns()
    with turns.turn():
        assert "made before the process was forked" in in_a_fork(lambda: turns.turn().__enter__())
