"""Selectors run: planned before the charge, checked after it, what is left measured, and nothing paid for lost."""

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve, field, frozen

import dpgm_core as dpgm
from dpgm_core import (
    Budget,
    BudgetError,
    DataError,
    Domain,
    DpgmError,
    LearningFailed,
    OptionError,
    SeededRandomness,
    Structure,
    Terms,
    Workload,
    load_release,
)
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.learning.selector import Selection, SelectionPlan
from dpgm_core.learning.selector_run import workload_of
from dpgm_core.pipeline import run as pipeline
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.votes import ThresholdVotes
from dpgm_core.releases.steps import session_budget
from tests.fixtures import Unchecked
from tests.learning.pairs import CODES, DOMAIN, RHO, TERMS, WORKLOAD, Unread, new_ledger

#: What `Toy` plans that nobody should.
PLANS = {
    "noise that nobody draws": {"deviation": 1e12},
    "noise of a text": {"deviation": "wide"},
    "contrasts perhaps": {"contrasts": "perhaps"},
    "choices without a number": {"choices": (Budget.zcdp("1/100"),)},
    "choices of another kind": {"choices": ((1, Budget.pure(1)),)},
    "no choices": {"choices": ((0, Budget.zcdp("1/100")),)},
    "more choices than it has": {"choices": ((2, Budget.zcdp(10**6)),)},
    "choices as a list": {"choices": [(1, Budget.zcdp("1/100"))]},
}


@frozen(kw_only=True)
class Toy:
    """One-way tables, one or two pairs by choice, and the rest of the budget on what `measure` says.

    does: changes what it returns, or fails.
    """

    does: object = None
    measure: object = field(factory=dict)
    log: list = field(factory=list)

    def plan(self, workload, budget, terms, records=None):
        self.log.append(("plan", budget))
        if self.does == "refuse":
            raise BudgetError("that is too little for me")
        if self.does == "plan nothing":
            return None
        told = {"shares": {"all": budget}, "deviation": 1.0, "detectable": None, "limits": {}}
        return SelectionPlan(candidates=len(workload.candidates), **told | PLANS.get(self.does, {}))

    def select(self, session, *, inference, fitting, randomness, progress):
        self.log.append(("select", session.budget))
        if self.does == "fail at once":
            raise ValueError("no idea")
        each = session.budget * Fraction(1, 8)
        session.measure([("a",), ("b",), ("c",), ("d",)], each)
        if self.does == "fail":
            raise ValueError("no idea")
        if self.does == "interrupt":
            raise KeyboardInterrupt
        pairs = Structure(session.domain, [clique for clique in session.workload.candidates if len(clique) == 2])
        flat = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, session.pooled().total / 4))
        choice = session.select(flat, each, 2)
        fit = fitting(session.pooled(), Structure(session.domain, [("a",), ("b",), ("c",), ("d",)]), None)
        fit = fitting(session.pooled(), Structure(session.domain, list(choice.cliques)), fit)
        self.log.append(("fitted", len(fit.model.structure.cliques)))
        if callable(self.does):
            return self.does(session, choice)
        return Selection(
            structure=Structure(session.domain, list(choice.cliques)),
            measure=self.measure or dict.fromkeys(choice.cliques, 1.0),
            trace=[{"kind": "select", "cliques": [list(one) for one in choice.cliques]}],
            notes=["that was easy"],
        )


class Choosing(Toy):
    """The same, which states its choices."""

    def plan(self, workload, budget, terms, records=None):
        return evolve(super().plan(workload, budget, terms, records), choices=((2, budget * Fraction(1, 16)),))


def fit(selector, budget=RHO, data=CODES, **more):
    asked = {"learner": "naive-mle", "workload": WORKLOAD, "terms": TERMS, "randomness": SeededRandomness(1)} | more
    return pipeline.fit(data, selector, budget, **asked)


@pytest.mark.parametrize("budget", [Budget.pure(20), RHO, Budget.approx(8, "1e-6")])
def test_a_model_without_a_clique_being_named(tmp_path, budget):
    """The pairs that go together are found, the budget is spent on them, and the model costs all of it."""
    toy = Toy()
    done = fit(toy, budget, save_release=tmp_path / "x.dpgm")
    assert sorted(done.model.structure.cliques) == [("a", "b"), ("c", "d")]
    assert done.model.cost == budget and len(done.releases) == 1
    assert done.model.marginal(("a", "b")) == pytest.approx(np.array([[0.5, 0], [0, 0.5]]), abs=0.06)
    assert "chosen privately" in done.model.guarantee() and "that was easy" in done.notes
    assert done.model.provenance["selection"]["trace"][0]["kind"] == "select"
    steps = done.releases[0].steps
    left = session_budget(budget) * Fraction(3, 4)
    assert steps[-1].structure.cliques == steps[1].cliques and left * Fraction(99, 100) <= steps[-1].cost
    assert [what for what, _ in toy.log] == ["plan", "select", "fitted"] and toy.log[0][1] == session_budget(budget)
    assert load_release(tmp_path / "x.dpgm").guarantee() == done.releases[0].guarantee()


def test_what_is_left_goes_by_weight():
    """Two tables of weights 1 and 3; next to nothing is a millionth; whole numbers and fractions."""
    for weights, ratio in (((1, 3.0), 3), ((Fraction(1, 7), Fraction(3, 7)), 3), ((1e-300, 1.0), 10**6)):
        found = fit(Toy(measure=dict(zip([("a", "b"), ("c", "d")], weights, strict=True)))).releases[0].steps[-1]
        costs = [one.noise.cost.rho for one in found.calibrations]
        assert float(costs[1] / costs[0]) == pytest.approx(ratio, rel=0.01)


def test_a_share_is_kept_for_the_check():
    """A twentieth of all, on random pairs that were not measured; the selector never has it, nobody learns from it."""
    toy = Toy()
    done = fit(toy, split={"holdout": 0.05})
    assert [budget for what, budget in toy.log if what != "fitted"] == [Budget.zcdp("3.8")] * 2
    *_, last = done.releases[0].steps
    assert last.holdout and Budget.zcdp("0.199") <= last.cost <= Budget.zcdp("0.2")
    assert not set(last.structure.cliques) & set(done.releases[0].structure.cliques)
    assert Budget.sum(step.cost for step in done.releases[0].steps) <= RHO == done.model.cost
    assert len(pipeline.plan_selection(toy, RHO, WORKLOAD, terms=TERMS, split={"holdout": 0.05}).shares) == 1
    assert toy.log[-1] == ("plan", Budget.zcdp("3.8"))


def every_pair(measure):
    """A selection of all pairs, which names these tables for half of the rest, or none."""

    def select(session, choice):
        pairs = [clique for clique in session.workload.candidates if len(clique) == 2]
        session.measure(pairs, session.remaining * (Fraction(1, 2) if measure else 1))
        return Selection(structure=Structure(session.domain, [DOMAIN.names]), measure=dict.fromkeys(measure, 1.0))

    return select


@pytest.mark.parametrize("measure", [(), (("a", "b"), ("c", "d"))], ids=["all is measured", "some is left"])
def test_where_there_is_nothing_to_check_the_tables_get_the_share(measure):
    """It was paid for, and no pair was left to be checked: nothing of the budget stays unused."""
    done = fit(Toy(does=every_pair(measure)), split={"holdout": 0.05})
    steps = done.releases[0].steps
    assert not any(getattr(step, "holdout", False) for step in steps)
    spent = Budget.sum(step.cost for step in steps)
    assert RHO * Fraction(999, 1000) <= spent <= RHO == done.model.cost
    pairs = {clique for clique in WORKLOAD.candidates if len(clique) == 2}
    assert set(steps[-1].structure.cliques) == (set(measure) or pairs)
    assert any("its share of the budget went to the tables" in note for note in done.notes)


class Alone(Toy):
    """Measures each attribute by itself."""

    def select(self, session, **_):
        self.log.append(("select", session.budget))
        alone = [(name,) for name in session.domain.names]
        return Selection(structure=Structure(session.domain, alone), measure=dict.fromkeys(alone, 1.0))


ONE_LABEL = Domain.from_sizes({"a": 2, "b": 1, "c": 1, "d": 1})


@pytest.mark.parametrize(
    ("workload", "codes"),
    [(Workload.all(DOMAIN, 1), CODES), (Workload.all(ONE_LABEL, 2), CODES * [1, 0, 0, 0])],
    ids=["attributes alone", "pairs of which one has a single label"],
)
def test_where_no_pair_can_be_checked_the_selector_has_the_share_from_the_start(workload, codes):
    """It plans and selects with all of the budget, and notes say why."""
    toy = Alone()
    done = fit(toy, data=codes, workload=workload, split={"holdout": 0.05})
    assert toy.log == [("plan", RHO), ("select", RHO)]
    spent = Budget.sum(step.cost for step in done.releases[0].steps)
    assert RHO * Fraction(999_999, 1_000_000) <= spent <= RHO
    told = pipeline.plan_selection(toy, RHO, workload, terms=TERMS, split={"holdout": 0.05})
    words = "nothing is left for a holdout; its share of the budget goes to the selection"
    assert [words in note for note in told.notes] == [True] and any(words in note for note in done.notes)
    assert toy.log[-1] == ("plan", RHO) and Budget.sum(told.shares.values()) == RHO


def leaving(share, measure=()):
    """A selection that measured its two pairs, but for this share of the budget, and names these tables for it."""

    def select(session, choice):
        chosen = [("a", "b"), ("c", "d")]
        session.measure(chosen, session.remaining - session.budget * Fraction(share))
        named = dict.fromkeys(measure, 1.0)
        return Selection(structure=Structure(session.domain, [*chosen, *measure]), measure=named)

    return select


@pytest.mark.parametrize("share", ["1/2", "1/50", "1/200", "1/20000", "1/500000"])
@pytest.mark.parametrize("budget", [RHO, Budget.pure(20)], ids=["zcdp", "pure"])
def test_what_a_selector_leaves_for_nothing_goes_to_its_widest_tables(share, budget):
    """It names no table; the budget is spent all the same, on what it measured, down to what is only rounding."""
    done = fit(Toy(does=leaving(share)), budget)
    *_, before, last = done.releases[0].steps
    assert last.structure.cliques == before.structure.cliques == (("a", "b"), ("c", "d"))
    spent = Budget.sum(step.cost for step in done.releases[0].steps)
    assert budget * Fraction(999_999, 1_000_000) <= spent <= budget
    assert not any("was left" in note for note in done.notes)


def test_less_than_a_hundredth_goes_to_tables_that_there_are():
    """A new table would be noise alone; of the two named the one that was measured gets all, or else the widest."""
    both = (("a", "b"), ("c", "d"))
    for named, taken in ([("b", "a"), ("b", "c")], both[:1]), ([("c", "d")], both[1:]), ([("b", "c")], both):
        done = fit(Toy(does=leaving("1/200", named)))
        steps = done.releases[0].steps
        assert steps[-1].structure.cliques == taken
        assert RHO * Fraction(999_999, 1_000_000) <= Budget.sum(step.cost for step in steps) <= RHO
        assert any("no more tables were measured" in note for note in done.notes) is (("b", "c") in named)


def test_what_is_left_and_too_little_to_draw_noise_for_is_no_error():
    """A hundred-thousandth of a budget that is hardly enough: its noise would be wider than 64-bit counts hold."""
    least = Budget.zcdp(Fraction(1, 10**13))

    class Least(Toy):
        def select(self, session, **_):
            session.measure([("a", "b")], session.budget * Fraction(99_999, 100_000))
            return Selection(structure=Structure(session.domain, [("a", "b")]), measure={})

    done = fit(Least(), least)
    assert len(done.releases[0].steps) == 1


def test_select_alone_and_learn_later():
    """The release is what a model can be made of, with any learner."""
    asked = {"learner": "naive-mle", "terms": TERMS, "randomness": SeededRandomness(1)}
    noisy, selection = pipeline.select(CODES, Toy(), RHO, WORKLOAD, **asked)
    assert noisy.cost == RHO and selection.notes[0] == "that was easy"
    model = pipeline.learn(noisy, "naive-mle", structure=selection.structure).model
    assert model.structure == selection.structure and model.cost == RHO


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_plan_with_choices_has_the_exact_curve():
    """Under an (epsilon, delta) the selector has more rho, the plan says so, and the model states the charge."""
    budget, stated = Budget.approx(8, "1e-6"), Choosing()
    done = fit(stated, budget)
    session, rho = done.releases[0].session, session_budget(budget).rho
    assert session.account is not None and session.account.choices == ((2, session.budget.rho / 16),)
    assert done.model.cost == budget and 1.05 * rho < session.budget.rho < 1.15 * rho
    assert stated.log[-2] == ("select", session.budget) and ("plan", session.budget) in stated.log
    plan = pipeline.plan_selection(Choosing(), budget, WORKLOAD, terms=TERMS, learner="naive-mle")
    assert plan.notes[-1].startswith("the exact Gaussian curve with room for 2 planned choices narrows noise by")
    assert dict(plan.shares) == {"all": session.budget}
    plan = pipeline.plan_selection(Toy(), budget, WORKLOAD, terms=TERMS, learner="naive-mle")
    assert plan.notes[-1].endswith("without the exact Gaussian curve: its choices are not planned")
    assert dict(plan.shares) == {"all": session_budget(budget)}
    for other in (RHO, Budget.pure(20)):
        done = fit(Choosing(), other)
        assert done.releases[0].session.account is None and done.releases[0].session.budget == other


@pytest.mark.parametrize("does", ["refuse", "plan nothing", *PLANS])
def test_what_cannot_be_planned_costs_nothing(tmp_path, does):
    """No record is read, nothing is charged; `check` says the same words."""
    book = new_ledger(tmp_path)
    with pytest.raises(IncompatiblePlugin if does == "plan nothing" else DpgmError) as caught:
        fit(Toy(does=does), data=Unread(), ledger=book)
    assert does != "plan nothing" or "not a SelectionPlan" in str(caught.value)
    assert not book.history() and not isinstance(caught.value, DataError)
    with pytest.raises(type(caught.value), match=str(caught.value)[:20]):
        Run(Unread(), Toy(does=does), RHO, learner="naive-mle", workload=WORKLOAD, terms=TERMS).check()


def test_a_mechanism_that_costs_more_than_it_claims_is_refused_before_the_charge(tmp_path):
    """No record is read, and the ledger stays empty; tests/e2e/test_mechanisms_and_selectors.py has the other pairs."""

    class Foreign(type(dpgm.make("mechanism", "gaussian"))):
        """A mechanism of somebody else, which spends twice what it is allowed."""

        def noise(self, sensitivity, budget):
            return super().noise(sensitivity, budget * 2)

    book = new_ledger(tmp_path)
    with pytest.raises(BudgetError, match="mechanism fault: it was asked for"):
        fit(Toy(), data=Unread(), ledger=book, mechanism=Foreign())
    assert not book.history()


def test_check_reads_and_charges_nothing():
    """It asks for batches and takes none."""

    class Source:
        def batches(self, domain, columns):
            assert list(columns) == list("abcd")
            return iter([None])

    Run(Source(), Toy(), RHO, learner="naive-mle", workload=DOMAIN, terms=TERMS).check()
    with pytest.raises(DataError):
        Run("no/such.csv", Toy(), RHO, workload=DOMAIN, terms=TERMS).check()


def selection_of(cliques, measure=None):
    """What a selector does that returns these whatever was chosen."""
    cliques = list(cliques)
    return lambda session, _: Selection(structure=Structure(session.domain, cliques), measure=measure or {})


ALL = ("a", "b", "c", "d")
WRONG = {
    "no selection": (lambda session, choice: choice, "not a Selection"),
    "no structure": (lambda *_: Selection(structure=None), "not a Selection"),
    "other domain": (
        lambda *_: Selection(structure=Structure(Domain.from_sizes({"a": 2}), [("a",)])),
        "another domain",
    ),
    "left out": (selection_of([("a", "b")]), "out of its structure"),
    "asked outside": (selection_of(zip(ALL, strict=True), {("a", "b"): 1}), "out of its structure"),
    **{
        f"weight {weight}": (selection_of([ALL], {("a", "b"): weight}), "no positive number")
        for weight in (0, float("nan"), True, "1")
    },
    "no candidate": (selection_of([ALL], {("a", "b", "c"): 1}), "not a candidate"),
    "too much": (lambda session, choice: session.measure(["a"], session.budget), "only rho"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", WRONG)
def test_a_selector_that_errs_is_told_and_what_it_measured_is_kept(tmp_path, case):
    """LearningFailed in one line, with the release so far, which is saved; the ledger is spent."""
    does, words = WRONG[case]
    book = new_ledger(tmp_path)
    with pytest.raises(LearningFailed, match=words) as caught:
        fit(Toy(does=does), ledger=book, save_release=tmp_path / "x.dpgm")
    assert "\n" not in str(caught.value) and book.spent() == RHO
    (kept,) = caught.value.releases
    assert kept.saved_as == tmp_path / "x.dpgm" and load_release(kept.saved_as).cost == RHO
    assert pipeline.learn(kept, "naive-mle").model.cost == RHO


def test_a_selector_that_fails(tmp_path):
    """Before and after measuring, by an interrupt, which stays one, and by SystemExit, which becomes a failure."""
    with pytest.raises(LearningFailed, match=r"ValueError: no idea; .* nothing was measured yet") as caught:
        fit(Toy(does="fail at once"))
    assert not caught.value.releases
    with pytest.raises(LearningFailed, match=r"no idea; the session's budget is spent, and what it measured is kept"):
        fit(Toy(does="fail"))
    with pytest.raises(KeyboardInterrupt) as interrupted:
        fit(Toy(does="interrupt"), save_release=tmp_path / "x.dpgm")
    assert isinstance(interrupted.value.__cause__, LearningFailed) and (tmp_path / "x.dpgm").exists()

    def leave(session, choice):
        raise SystemExit(0)

    with pytest.raises(LearningFailed, match=r"failed, it tried to end the program \(0\)") as failed:
        fit(Toy(does=leave))
    assert len(failed.value.releases) == 1


@pytest.mark.parametrize("selector", ["oneshot", "mst"])
def test_tails_that_underflow_cost_no_budget(selector):
    """An owner who has numpy raise at everything: densities too small for a float are 0, before and behind the charge.

    Calibrating the first noise raised behind the charge, with the whole budget spent for nothing; then the learner, and
    then the verdict on the fit did.
    """
    with np.errstate(all="raise"):
        assert fit(selector).releases


@frozen(kw_only=True)
class Looping(Unchecked):
    """A learner with a fitter that is what a tired person wrote."""

    made: object = None

    def learn(self, curator, inference, *, randomness, progress):
        raise AssertionError("the selection never comes so far")

    def fitter(self, inference):
        return self.made


def _fitter_raises(release, structure, before):
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda *_: None, "the fitter of learner Looping returned NoneType, not a Fit"),
        (lambda release: None, "learner Looping failed in its fitter, TypeError"),
        (_fitter_raises, "learner Looping failed in its fitter, ValueError: no idea"),
    ],
)
def test_a_wrong_fitter_is_the_learner_s_fault(made, words):
    """It comes up in the middle of a selector, which is not to blame; what was measured is kept."""
    with pytest.raises(LearningFailed, match=words) as failed:
        fit(Toy(), mechanism="gaussian", learner=Looping(made=made))
    assert failed.value.releases[0].structure.cliques == (("a",), ("b",), ("c",), ("d",))


def test_a_fitter_that_is_none_costs_nothing(tmp_path):
    """It is asked for before the charge."""
    ledger = new_ledger(tmp_path)
    with pytest.raises(IncompatiblePlugin, match=r"learner Looping made a NoneType of fitter\(inference\)"):
        fit(Toy(), mechanism="gaussian", learner=Looping(), ledger=ledger)
    assert ledger.remaining() == RHO


def test_a_learner_that_fails_in_the_end_loses_nothing():
    """The session's release is in the error."""

    class Failing(Unchecked):
        def fitter(self, inference):
            learner = dpgm.make("learner", "naive-mle")
            return lambda release, structure, before: pipeline.learn(release, learner, structure=structure)

        def learn(self, curator, inference, *, randomness, progress):
            raise ValueError("too hard")

    with pytest.raises(LearningFailed, match="too hard") as caught:
        fit(Toy(), learner=Failing())
    (kept,) = caught.value.releases
    assert kept.cost == RHO


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workload": None}, "what the model is for"),
        ({"workload": 3}, "what the model is for"),
        ({"split": "optimal"}, "divides it itself"),
        ({"mechanism": "gaussian", "budget": Budget.pure(1)}, "mechanism 'gaussian' cannot serve pure epsilon"),
        ({"structure": 3}, "needs a Structure after the data"),
        ({"budget": "1"}, "budget must be a Budget such as"),
        ({"structure": Structure(DOMAIN, [ALL])}, "leave it out"),
        ({"terms": None}, "neighbours"),
    ],
)
def test_arguments_that_do_not_go_together(more, words):
    """One line, before anything is read."""
    given = {"structure": Toy(), "budget": RHO, "learner": "naive-mle", "workload": WORKLOAD, "terms": TERMS} | more
    with pytest.raises(DpgmError, match=words) as caught:
        pipeline.fit(CODES, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("terms", "words"), [(None, "must be stated"), ("add-remove", "terms must be Terms")])
def test_terms_that_are_none(terms, words):
    """A plan and a selection take them whole, and say so."""
    for ask in (
        lambda: pipeline.plan_selection(Toy(), RHO, WORKLOAD, "naive-mle", terms=terms),
        lambda: pipeline.select(CODES, Toy(), RHO, WORKLOAD, "naive-mle", terms=terms),
    ):
        with pytest.raises(DpgmError, match=words):
            ask()


# --- selectors that vote --------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Voting(Toy):
    """A quarter of everything for votes by a threshold; then the pairs that were agreed on."""

    def votes(self, budget):
        self.log.append(("votes", budget))
        if self.does == "votes of nothing":
            return 1
        return budget * Fraction(1, 4)

    def foretell(self, workload, votes, terms, records=None):
        self.log.append(("foretell", votes, records))
        if self.does == "refuse votes":
            raise OptionError("not under these terms")
        return [f"{len(workload.candidates)} candidates"]

    def select(self, session, *, inference, fitting, randomness, progress):
        self.log.append(("select", session.budget, session.votes))
        pairs = Structure(session.domain, [clique for clique in session.workload.candidates if len(clique) == 2])
        verdict = session.vote(ThresholdVotes(pairs=pairs, tau=0.4), session.votes)
        cliques = verdict.edges or (("a",),)
        return Selection(structure=Structure(session.domain, cliques), measure=dict.fromkeys(cliques, 1.0))


APPROX = Budget.approx(8, "4e-6")
KNOWN = Terms(neighbours="add-remove", total=400)


def test_votes_and_what_they_leave(tmp_path):
    """The plan has the rho that votes leave, also for a holdout; the ledger and the model have the whole."""
    book = new_ledger(tmp_path, APPROX)
    toy, rest = Voting(), Budget.approx(6, "3e-6").zcdp_within()
    done = fit(toy, APPROX, terms=KNOWN, ledger=book, split={"holdout": 0.05})
    assert set(done.model.structure.cliques) == {("a", "b"), ("c", "d")}
    assert [one.cost for one in book.history()] == [APPROX] == [done.model.cost]
    assert done.model.guarantee().count("for votes of records on the structure") == 1
    part, left = Budget.approx(2, "1e-6"), rest * Fraction(19, 20)
    wanted = [("plan", left), ("foretell", part, None), ("select", left, part)]
    assert [one for one in toy.log if one[0] != "votes"] == wanted
    told = pipeline.plan_selection(toy, APPROX, WORKLOAD, terms=KNOWN, records=77, learner="naive-mle")
    assert dict(told.shares) == {"votes on the structure": part, "all": rest} and told.notes[0] == "10 candidates"
    assert toy.log[-1] == ("foretell", part, 77)
    Run(CODES, toy, APPROX, learner="naive-mle", workload=WORKLOAD, terms=KNOWN).check()


@pytest.mark.parametrize(
    ("does", "budget", "error", "why"),
    [
        (None, Budget.pure(8), BudgetError, "votes cost an"),
        (None, Budget.zcdp(8), BudgetError, "votes cost an"),
        ("votes of nothing", APPROX, IncompatiblePlugin, "gives votes a int"),
        ("refuse votes", APPROX, OptionError, "not under these terms"),
    ],
)
def test_votes_that_cannot_be_cast_cost_nothing(tmp_path, does, budget, error, why):
    """Refused alike by a fit, a plan and a dry run; no record is read."""
    book = new_ledger(tmp_path, budget)
    toy, more = Voting(does=does), {"learner": "naive-mle", "terms": KNOWN}
    with pytest.raises(error, match=why):
        pipeline.fit(Unread(), toy, budget, workload=WORKLOAD, ledger=book, **more)
    with pytest.raises(error, match=why):
        pipeline.plan_selection(toy, budget, WORKLOAD, **more)
    with pytest.raises(error, match=why):
        Run(Unread(), toy, budget, workload=WORKLOAD, **more).check()
    assert not book.history()


def test_a_domain_is_short_for_its_default_workload():
    """And only the attributes that are wanted stand alone in the first structure."""
    assert workload_of(DOMAIN) == Workload.default(DOMAIN)
    wanted = Workload.all(DOMAIN, 1)
    assert workload_of(wanted) is wanted


class Widening(Toy):
    """Chooses among `wanted` where nobody said what the model is for."""

    def __init__(self, wanted):
        super().__init__()
        object.__setattr__(self, "wanted", wanted)

    def widen(self, workload, budget):
        self.log.append(("widen", workload, budget))
        return self.wanted


def test_a_selector_widens_the_default_workload_alone():
    """It is called once, before the plan; a workload or a learner that the user named is left as it is."""
    default, wide = Workload.default(DOMAIN), Workload.of(DOMAIN, [DOMAIN.names[:2]])
    for workload, learner, widened in ((DOMAIN, None, True), (Workload.all(DOMAIN), None, False), (DOMAIN, "x", False)):
        selector = Widening(wide)
        run = Run(None, selector, RHO, workload=workload, terms=TERMS, may_switch=learner is None)
        assert run.workload == (wide if widened else default)
        assert selector.log == ([("widen", default, RHO)] if widened else [])
        again = evolve(run, workload=run.workload.over(DOMAIN))  # as when labels were found
        assert again.workload == run.workload and len(selector.log) == widened
    other = Workload.all(Domain.from_sizes({"z": 2}))
    for wrong in (None, other, Workload.of(DOMAIN, [DOMAIN.names[:2]], max_cells=7)):
        with pytest.raises(IncompatiblePlugin, match="to another domain, or dropped its limits"):
            fit(Widening(wrong), workload=DOMAIN, learner=None)


def test_a_default_workload_whose_labels_were_found_is_not_widened():
    """Its candidates are those of the plan."""
    default = Workload.default(DOMAIN)
    assert default.is_default
    assert not any(one.is_default for one in (default.over(DOMAIN), default.with_domain(DOMAIN), Workload.all(DOMAIN)))
    assert not Workload.default(DOMAIN, DOMAIN.names[0]).is_default  # whose targets somebody named


@frozen(kw_only=True)
class Switching(Toy):
    """It asks for another learner of its tables, or of a structure outside of its plan."""

    learner: str | None = "naive-mle"
    asks: str | None = "naive-mle"
    planned: tuple = (("a", "b"), ("c", "d"))
    switches: bool = True

    def without_switch(self):
        return evolve(self, switches=False)

    def plan(self, workload, budget, terms, records=None):
        plan = super().plan(workload, budget, terms, records)
        structure = None if self.planned is None else Structure(workload.domain, self.planned)
        return evolve(plan, learner=self.learner, switched=structure) if self.switches else plan

    def select(self, session, *, inference, fitting, randomness, progress):
        tools = {"inference": inference, "fitting": fitting, "randomness": randomness, "progress": progress}
        chosen = super().select(session, **tools)
        return evolve(chosen, learner=self.asks) if self.switches else chosen


def test_a_selector_may_name_the_learner_where_the_user_did_not():
    """It learns the model, and is checked before the charge; of a learner that was named nothing is taken away."""

    def learner_of(*learner):
        tools = {"terms": TERMS, "randomness": SeededRandomness(1), "workload": WORKLOAD}
        done = pipeline.fit(CODES, Switching(), RHO, "laplace", *learner, **tools)
        return done.model.provenance["learner"]["name"]

    assert learner_of() == "naive-mle"
    assert learner_of("cgm-em") == "cgm-em" and learner_of("eb-map") == "eb-map"
    planned = pipeline.plan_selection(Switching(), RHO, WORKLOAD, terms=TERMS)
    assert planned.learner == planned.to_dict()["learner"] == "naive-mle"
    assert pipeline.plan_selection(Switching(), RHO, WORKLOAD, "eb-map", terms=TERMS).learner is None
    noisy, selection = pipeline.select(CODES, Switching(), RHO, WORKLOAD, terms=TERMS)
    assert selection.learner == "naive-mle" and noisy.session is not None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"learner": "nobody"}, "there is no learner 'nobody'"),
        ({"learner": "psgd"}, "learner psgd trains on many releases"),
        ({"learner": "bayes-net"}, "bayes-net"),
        ({"planned": None}, "another learner without its structure"),
        ({"learner": None}, "another learner without its structure"),
    ],
)
def test_another_learner_that_cannot_serve_is_refused_before_the_charge(tmp_path, options, says):
    """Nothing is charged and no record is read."""
    ledger = new_ledger(tmp_path)
    with pytest.raises(DpgmError, match=says):
        pipeline.fit(Unread(), Switching(**options), RHO, workload=WORKLOAD, terms=TERMS, ledger=ledger)
    assert ledger.remaining() == RHO


@pytest.mark.parametrize(
    ("options", "says"),
    [({"asks": "eb-map"}, "which its plan does not name"), ({"planned": (("a", "b"),)}, "outside of the structure")],
)
def test_what_the_plan_does_not_say_of_another_learner_is_refused(options, says):
    """It would not have been checked before the charge."""
    with pytest.raises(LearningFailed, match=says):
        pipeline.fit(CODES, Switching(**options), RHO, workload=WORKLOAD, terms=TERMS, randomness=SeededRandomness(1))


def test_when_another_learner_fails_the_error_names_it(monkeypatch):
    """So that learning again, at no cost, is one command."""
    monkeypatch.setattr(type(dpgm.make("learner", "naive-mle")), "learn", lambda *_, **__: 1 / 0)
    with pytest.raises(LearningFailed, match=r"dpgm learn FILE --learner naive-mle") as failed:
        pipeline.fit(CODES, Switching(), RHO, workload=WORKLOAD, terms=TERMS, randomness=SeededRandomness(1))
    assert len(failed.value.releases) == 1


@frozen
class Switches:
    """Gaussian noise where a person moves one cell, and Laplace noise elsewhere."""

    own_randomness = None

    def noise(self, sensitivity, budget):
        return dpgm.make("mechanism", "gaussian" if sensitivity.l0 <= 1 else "laplace").noise(sensitivity, budget)


def test_only_the_noise_of_core_has_the_exact_account():
    """Whatever another draws at one sensitivity: at the next it would be refused, when all is charged."""
    budget = Budget.approx(8, "1e-6")
    asked = {"workload": WORKLOAD, "terms": TERMS, "randomness": SeededRandomness(1)}
    accounts = {}
    for name, mechanism in (("core", None), ("gaussian", "gaussian"), ("switches", Switches())):
        done = pipeline.fit(CODES, "mst", budget, mechanism, "naive-mle", **asked)
        accounts[name] = done.release.session.account is not None
    assert accounts == {"core": True, "gaussian": True, "switches": False}
    planned = pipeline.plan_selection("mst", budget, WORKLOAD, terms=TERMS, mechanism=Switches())
    assert any("proven for core's own noise" in note for note in planned.notes)
