"""What may be asked of a session, its true tables, and its descents."""

from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpgm_core import Budget, Domain, DpgmError, OptionError, Overspent, Structure, StructureError, TableDistance
from dpgm_core.curator import records as module
from dpgm_core.curator.steps import Candidates
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.votes import ThresholdVotes
from tests.curator.opened import CODES, DOMAIN, MERGED, PAIRS, WORKLOAD, curator, flat, slopes


class Still(TableDistance):
    """It says that nobody moves it, so that every choice would be nearly free."""

    def move(self, terms):
        return 1


class Short(NodeGradients):
    """It says that its residuals reach less far than they do."""

    def reach(self, kind):
        return 1


@pytest.mark.parametrize(("kind", "made"), [(Still, flat()), (Short, slopes())], ids=["score", "gradients"])
def test_a_child_of_what_core_asks_is_none(kind, made):
    """Core's own classes alone know how far a person moves them."""
    own = kind(**{one.name: getattr(made, one.name) for one in attrs.fields(type(made)) if one.init})
    opened = curator(neighbours="replace-one").session(workload=WORKLOAD)
    with opened as session, pytest.raises(OptionError, match="core alone knows"):
        (session.select if kind is Still else session.descend)(own, session.budget)


def test_candidates_have_the_names_of_the_workload():
    candidates = Candidates(WORKLOAD)
    assert candidates.named([("b", "a"), "d"], MERGED) == Structure(MERGED, [("a", "b"), ("d",)])
    assert candidates.own(PAIRS, DOMAIN) == PAIRS
    for asked, words in ((PAIRS, "another domain"), (Structure(MERGED, [("b", "a")]), "in the order of the domain")):
        with pytest.raises(StructureError, match=words):
            candidates.own(asked, MERGED)


class Alike(Domain):
    """Equal to every domain, whatever it says of the labels."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = Domain.__hash__


def test_a_child_of_a_domain_does_not_say_how_far_a_person_moves():
    """It could call codes 0 to 3 binary: their products would be up to 25, and one person is charged for 1."""
    binary = Alike(Domain.from_sizes(dict.fromkeys("abcd", 2)).attributes)
    pairs = Structure(binary, PAIRS.cliques)
    own = Regressions(candidates=pairs, loss="logistic")
    steps = NodeGradients(regressions=own, weights=own.zeros(), radius=2)
    votes, part = Budget.approx("0.5", "5e-7"), Budget.zcdp("0.001")
    for step in (
        lambda session: session.vote(ThresholdVotes(pairs=pairs, tau=0.3), votes),
        lambda session: session.descend(steps, part),
        lambda session: session.select(flat(pairs, contrast=True), part),
        lambda session: session.score(flat(pairs), part),
        lambda session: session.score(flat(pairs), part, mean=True),
    ):
        with curator(budget=Budget.approx(1, "1e-6"), total=500).session(workload=WORKLOAD, votes=votes) as session:
            with pytest.raises((StructureError, OptionError)):
                step(session)
            assert (session.remaining, session.votes) == (session.budget, votes)


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


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_descents_out_of_one_budget(kind, neighbours):
    """Ten of them and a table spend what they were given and no more; merged codes have regressions of their own."""
    budget = {"pure": Budget.pure(200), "zcdp": Budget.zcdp(100)}[kind]
    with curator(budget=budget, neighbours=neighbours).session(workload=WORKLOAD) as session:
        session.measure(["a"], budget * Fraction(1, 11))
        domain = session.coarsen({"c": [0, 1, 1, 1]})
        for _ in range(10):
            descent = session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 11))
            assert budget * Fraction(9, 100) <= descent.cost <= budget * Fraction(1, 11)
        assert len(session.steps) == 11 and session.pooled().steps == session.steps
        with pytest.raises(Overspent):
            session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 1000))


def test_with_no_noise_to_speak_of_a_descent_goes_the_steepest_way():
    """Sign and place of the largest gradient of each attribute, from the counts: own code less its share."""
    with curator(budget=Budget.zcdp(10**6)).session(workload=WORKLOAD) as session:
        descent = session.descend(slopes(clip=None), Budget.zcdp(10**5))
    own = descent.regressions
    hot = np.column_stack([CODES[:, DOMAIN.names.index(name)] == code for (name,), (code,) in own.columns[:-1]])
    hot = np.column_stack([hot, np.ones(len(hot), bool)])
    for rows, (row, column, sign) in zip(own.choices, descent.picks, strict=True):
        size = len(rows)
        sums = {
            (one, other): sum((128 * hot[:, one] - 128 // size) * hot[:, other])
            for one in rows
            for other in np.flatnonzero(own.allowed[one])
        }
        assert row in rows and sign * sums[row, column] == max(map(abs, sums.values()))
