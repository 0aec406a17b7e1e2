"""Learners that a session can serve, and those that are refused before it is opened."""

from fractions import Fraction

import pytest
from attrs import evolve, frozen

import dpgm_core as dpgm
from dpgm_core import Budget, Dag, Domain, OptionError, Selection, Structure, StructureError, TooLarge, Workload
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.pipeline import run as pipeline
from dpgm_core.pipeline.run import Run
from tests.fixtures import Unchecked
from tests.learning.pairs import CODES, DOMAIN, RHO, TERMS, WORKLOAD, Undirected, new_ledger


def learned(curator, inference, randomness, progress):
    """As naive-mle does."""
    return dpgm.make("learner", "naive-mle").learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class Network:
    """A learner of directed graphs; it learns like another one."""

    def check(self, structure, inference):
        Dag.of(structure)

    def learn(self, curator, inference, *, randomness, progress):
        Dag.of(curator.structure)
        return learned(curator, inference, randomness, progress)


@frozen(kw_only=True)
class Arrow(Undirected):
    """a -> b, and whatever else there is on its own."""

    directed: bool = True

    def select(self, session, *, inference, fitting, randomness, progress):
        session.measure([one for one in session.workload.candidates if len(one) == 1], session.budget * Fraction(1, 2))
        graph = Dag(session.domain, {"b": ["a"]}).structure()
        fitting(session.pooled(), graph, None)
        return Selection(structure=graph, measure={("a", "b"): 1.0})


def test_a_learner_of_directed_graphs_with_a_selector_that_chooses_none(tmp_path):
    """Refused with a hint, by fit, check, plan and select alike; nothing is asked of the selector, nothing charged."""
    book = new_ledger(tmp_path)
    never = Undirected()
    for refused in (
        *ways_to_ask(never, Network(), WORKLOAD, book),
        lambda: pipeline.select(CODES, never, RHO, WORKLOAD, Network(), terms=TERMS, ledger=book),
        lambda: pipeline.plan_selection(never, RHO, Workload.all(DOMAIN, 2, never=[("d",)]), Network(), terms=TERMS),
    ):
        with pytest.raises(StructureError, match=r"without direction; take selector = 'privbayes'"):
            refused()
    assert not book.history()


@pytest.mark.parametrize("learner", [Network(), "naive-mle"])
def test_a_selector_of_directed_graphs_serves_every_learner(learner):
    """Attributes that the workload leaves out are nodes of the graph too."""
    for workload in (WORKLOAD, Workload.all(DOMAIN, 2, never=[("d",)])):
        Run(CODES, Arrow(), RHO, learner=learner, workload=workload, terms=TERMS).check()
        assert pipeline.plan_selection(Arrow(), RHO, workload, learner, terms=TERMS).directed
        done = pipeline.fit(CODES, Arrow(), RHO, learner=learner, workload=workload, terms=TERMS)
        assert Dag.of(done.model.structure).parents["b"] == ("a",)
        assert done.model.marginal(("a", "b"))[0, 0] == pytest.approx(0.5, abs=0.1)  # noise of half a record in 400


@frozen(kw_only=True)
class InParts(Network):
    """A tenth first, then the rest."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(budget=curator.remaining * Fraction(1, 10))
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class InSteps(Unchecked):
    """It opens a session of its own."""

    def learn(self, curator, inference, *, randomness, progress):
        with curator.session(workload=WORKLOAD):
            raise AssertionError("nothing was to be opened")


def test_learners_of_sessions_and_parts_are_refused_before_the_charge():
    """A session of the learner's own beside a selector, and a tenth of a session's release, are refused."""
    with pytest.raises(OptionError, match="asks more of the records than tables"):
        pipeline.plan_selection(Arrow(), RHO, WORKLOAD, InSteps(), terms=TERMS)
    pair = dpgm.Structure(DOMAIN, [("a", "b")])
    planned = pipeline.plan(pair, RHO, neighbours="add-remove", learner=InSteps(), mechanism="gaussian")
    assert "step by step" in planned.notes[-1]
    with pytest.raises(OptionError, match="spends a part of the budget first"):
        pipeline.plan_selection(Arrow(), RHO, WORKLOAD, InParts(), terms=TERMS)


@frozen(kw_only=True)
class InPartsOfPairs(Unchecked):
    """Attributes alone at once; of pairs a tenth first, then the rest."""

    order: int = 2

    def learn(self, curator, inference, *, randomness, progress):
        if max(map(len, curator.structure.cliques)) >= self.order:
            curator.release(budget=curator.remaining * Fraction(1, 10))
        return learned(curator, inference, randomness, progress)


@frozen(kw_only=True)
class InPartsOfReleases(InPartsOfPairs):
    """From records all at once; of saved releases a tenth first."""

    def learn(self, curator, inference, *, randomness, progress):
        if not curator.replayed:
            curator.release()
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class OfItsOwnTables(InPartsOfPairs):
    """It names the model's cliques, and a selector has measured the attributes alone too."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(cliques=curator.structure.cliques)
        raise AssertionError("it was served")


def ways_to_ask(selector, learner, workload, ledger):
    """Of a selection, by plan, check and fit."""
    return (
        lambda: pipeline.plan_selection(selector, RHO, workload, learner, terms=TERMS),
        lambda: Run(CODES, selector, RHO, learner=learner, workload=workload, terms=TERMS).check(),
        lambda: pipeline.fit(CODES, selector, RHO, learner=learner, workload=workload, terms=TERMS, ledger=ledger),
    )


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (InPartsOfPairs(), "spends a part of the budget first"),
        (InPartsOfPairs(order=3), "spends a part of the budget first"),
        (InPartsOfReleases(), "spends a part of the budget first"),
        (OfItsOwnTables(), "names the tables"),
    ],
    ids=["pairs", "triples", "releases", "tables"],
)
@pytest.mark.parametrize("selector", [Undirected(), Undirected(directed=True)], ids=["cliques", "network"])
def test_what_a_learner_asks_for_may_depend_on_the_structure(tmp_path, learner, words, selector):
    """Plan, check and fit ask over pairs and triples, of records and of the session's release; nothing is charged."""
    book = new_ledger(tmp_path)
    wanted = Workload.all(DOMAIN, 3)
    for refused in ways_to_ask(selector, learner, wanted, book):
        with pytest.raises(OptionError, match=words):
            refused()
    assert not book.history()


def test_a_learner_that_divides_triples_alone_goes_with_a_workload_of_pairs():
    """No candidate has three attributes, so it will never ask for a part."""
    learner = InPartsOfPairs(order=3)
    done = pipeline.fit(CODES, Arrow(), RHO, learner=learner, workload=WORKLOAD, terms=TERMS)
    assert done.model.marginal(("a", "b"))[0, 0] == pytest.approx(0.5, abs=0.1)  # as above


@frozen(kw_only=True)
class UpTo(Network):
    """It refuses larger cliques, in `check` or as it learns."""

    order: int = 2
    late: bool = False

    def check(self, structure, inference):
        if not self.late:
            self._refuse(structure)

    def learn(self, curator, inference, *, randomness, progress):
        self._refuse(curator.structure)
        return learned(curator, inference, randomness, progress)

    def _refuse(self, structure):
        if max(map(len, structure.cliques)) > self.order:
            raise StructureError(f"no clique of more than {self.order}")


@pytest.mark.parametrize("late", [False, True], ids=["check", "learn"])
@pytest.mark.parametrize("selector", [Undirected(), Undirected(directed=True)], ids=["cliques", "network"])
def test_a_learner_that_refuses_what_the_selector_may_choose(tmp_path, selector, late):
    """Refused by plan, check and fit, with nothing charged, and with the setting that would do; which does."""
    book = new_ledger(tmp_path)
    wanted, learner = Workload.all(DOMAIN, 3), UpTo(late=late)
    for refused in ways_to_ask(selector, learner, wanted, book):
        with pytest.raises(StructureError, match=r"no clique of more than 2; .* order = 2 in the workload"):
            refused()
    assert not book.history()
    assert pipeline.plan_selection(selector, RHO, WORKLOAD, learner, terms=TERMS)
    with pytest.raises(StructureError, match=r"name the cliques"):
        pipeline.plan_selection(selector, RHO, WORKLOAD, UpTo(order=1, late=late), terms=TERMS)


@pytest.mark.parametrize(
    ("selector", "budget", "largest"),
    [
        ("auto", Budget.pure(1), 3),
        ("auto", RHO, 3),
        ("mst", RHO, 2),
        ("oneshot", RHO, 3),
        ({"name": "oneshot", "looks": 1}, RHO, 2),
        ("aim", RHO, 3),
        ("privbayes", RHO, 3),
        ({"name": "privbayes", "parents": 1}, RHO, 2),
        ({"name": "mrf-select", "measure": "tables"}, RHO, 2),
        ({"name": "mrf-fw", "width": 1.0}, RHO, 2),
        ("mrf-stable", Budget.approx(4, "1e-6"), 2),
    ],
)
def test_each_selector_says_how_large_its_cliques_may_become(selector, budget, largest):
    """A learner of pairs goes with those that choose pairs, and is refused by the others."""
    wanted = Workload.all(DOMAIN, 3)
    assert pipeline.plan_selection(selector, budget, wanted, UpTo(order=largest), terms=TERMS)
    with pytest.raises(StructureError, match=f"no clique of more than {largest - 1}"):
        pipeline.plan_selection(selector, budget, wanted, UpTo(order=largest - 1), terms=TERMS)


def test_an_order_that_is_none_or_not_kept_is_the_selectors_fault():
    """The learner was not asked about what was not planned."""
    for order in (0, True, "2"):
        with pytest.raises(IncompatiblePlugin, match="planned an order"):
            pipeline.plan_selection(Undirected(order=order), RHO, WORKLOAD, terms=TERMS)
    with pytest.raises(dpgm.LearningFailed, match="planned cliques of up to 1 attributes"):
        pipeline.fit(CODES, Arrow(order=1), RHO, learner="naive-mle", workload=WORKLOAD, terms=TERMS)


@frozen(kw_only=True)
class Stated(Arrow):
    """States this structure in its plan, whatever it chooses."""

    stated: Structure

    def plan(self, workload, budget, terms, records=None):
        return evolve(super().plan(workload, budget, terms, records), structure=self.stated)


def test_a_structure_in_a_plan_is_checked_before_the_charge_and_kept():
    """The learner is asked about it, whatever it says of smaller ones; to choose beyond it is the selector's fault."""
    alone = Structure(DOMAIN, [(name,) for name in DOMAIN.names])
    with pytest.raises(dpgm.LearningFailed, match="chose a clique outside of the structure in its plan"):
        pipeline.fit(CODES, Stated(stated=alone), RHO, learner="naive-mle", workload=WORKLOAD, terms=TERMS)
    wide = Domain.from_sizes(dict.fromkeys("abcdefghij", 40))
    selector, workload = Stated(stated=Structure.complete(wide)), Workload.all(wide, 2)
    with pytest.raises(TooLarge, match=r"the 45 tables that the selector measures.*take learner = 'mixture'"):
        pipeline.plan_selection(selector, RHO, workload, "naive-mle", terms=TERMS)
    assert pipeline.plan_selection(selector, RHO, workload, "mixture", terms=TERMS).structure == selector.stated
