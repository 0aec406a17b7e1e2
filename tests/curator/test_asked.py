"""What may be asked of a session: core's own scores, and candidates by the names of its workload."""

import attrs
import pytest

from dpgm_core import Budget, Domain, OptionError, Structure, StructureError, TableDistance
from dpgm_core.curator.steps import Candidates
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.votes import ThresholdVotes
from tests.curator.opened import DOMAIN, MERGED, PAIRS, WORKLOAD, curator, flat, slopes


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
    """Whatever the order of a clique's attributes; what is asked as a structure must have it, and the domain."""
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
