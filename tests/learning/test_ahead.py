"""Dry runs of learners, and the tables that they plan to measure."""

import contextlib
from fractions import Fraction

import pytest

from dpgm_core import Budget, BudgetError, Domain, Structure, StructureError, Terms
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.dry_run import DryRun, planned_tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b"), ("b",)])
TERMS = Terms(neighbours="add-remove")
LARGEST = Structure(DOMAIN, [("a", "b")])


class Says:
    """A learner that plans what the test says."""

    def __init__(self, answer):
        self.answer = answer

    def planned_tables(self, structure):
        return self.answer


@pytest.mark.parametrize("split", ["even", "optimal", None])
def test_tables_and_split_are_passed_on(split):
    """None leaves the split to the run; who plans nothing says nothing of either."""
    assert planned_tables(Says((LARGEST, split)), STRUCTURE) == (LARGEST, split)
    assert planned_tables(object(), STRUCTURE) == (None, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (LARGEST, "Structure, not a pair"),
        ((LARGEST,), "not a pair"),
        ((LARGEST.cliques, None), "not a pair"),
        ((LARGEST, "most"), "no split"),
        ((LARGEST, 2), "no split"),
        ((Structure(DOMAIN, [("a", "c")]), None), r"a table of \('a', 'c'\), which no clique"),
        ((Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")]), None), "another domain"),
    ],
)
def test_what_no_curator_would_follow_is_the_plugins_fault(answer, words):
    """One line that names the learner."""
    with pytest.raises(IncompatiblePlugin, match=f"learner Says plans .*{words}") as error:
        planned_tables(Says(answer), STRUCTURE)
    assert "\n" not in str(error.value)


class Asks:
    """A learner that does with the curator what the test says."""

    def __init__(self, act):
        self.act = act

    def learn(self, curator, inference, *, randomness, progress):
        return self.act(curator)


def dry_run(act):
    return DryRun(learner=Asks(act), inference=JunctionTree(), structure=STRUCTURE, terms=TERMS, budget=Budget.pure(1))


def refuses(curator):
    raise StructureError("no graph")


def asks_and_refuses(curator):
    with contextlib.suppress(BudgetError):
        curator.release()
    raise StructureError("no graph")


@pytest.mark.parametrize(
    ("act", "first"),
    [
        (lambda curator: curator.release(), "release"),
        (lambda curator: curator.release(budget=curator.remaining, split="optimal"), "release"),
        (lambda curator: curator.release(budget=curator.remaining * Fraction(1, 10)), "part"),
        (lambda curator: curator.rounds(3, sampling_rate=0.1), "rounds"),
        (lambda curator: curator.session(workload=None), "session"),
        (lambda curator: 1 / 0, None),
        (lambda curator: curator.source, None),
        (lambda curator: None, None),
        (asks_and_refuses, "release"),
    ],
    ids=["all", "all of it", "a part", "rounds", "a session", "a fault", "more than there is", "nothing", "late"],
)
def test_a_learner_is_stopped_where_it_first_asks(act, first):
    """It gets nothing, and what it asked for is known; faults are told where they cost."""
    assert dry_run(act).first_request() == first


def test_what_it_refuses_before_it_asks_is_raised():
    """A fit would raise it, too, and charge nothing."""
    with pytest.raises(StructureError, match="no graph"):
        dry_run(refuses).requests()
