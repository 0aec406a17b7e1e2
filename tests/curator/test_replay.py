"""A replay serves what was asked then, in its order, to who asks for it again; all else is refused with the reason."""

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, ReplayCurator, Structure, StructureError, Tables, Workload, make
from dpgm_core.learning.learner_run import run_learner
from dpgm_testing.curators import GuardedCurator
from tests.fixtures import live_curator

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b"), ("b",)])
CODES = np.array([[0, 1], [1, 1]] * 20)
EXACT = make("inference", "junction-tree")
ONE, HALF, QUARTER = Budget.pure(1), Budget.pure("1/2"), Budget.pure("1/4")
PAIR, MARGIN = [("a", "b")], [("b",)]


def live(data=CODES, structure=STRUCTURE, **more):
    return live_curator(data, structure, randomness=dpgm.SeededRandomness(1), **more)


def made(*asked, **more):
    door = live(**more)
    for one in asked:
        door.release(**one)
    return door.released


@pytest.mark.parametrize("wrapped", [lambda made: made, GuardedCurator], ids=["itself", "door"])
def test_curators_say_whether_their_releases_were_paid_for_before(wrapped):
    assert wrapped(live()).replayed is False
    assert ReplayCurator(live().release()).replayed is True


REQUESTS = {
    "9/10 and 1/10": [{"budget": Budget.pure("9/10")}, {"budget": Budget.pure("1/10")}],
    "quarters and a half": [{"budget": QUARTER}, {"budget": QUARTER}, {"budget": HALF}],
    "a quarter and the rest": [{"budget": QUARTER}, {}],
    "the margin and the pair": [{"budget": QUARTER, "cliques": MARGIN}, {"cliques": PAIR}],
    "per clique and the rest": [{"budget": {("a", "b"): QUARTER, ("b",): QUARTER}}, {}],
    "one": [{}],
}


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_an_adaptive_learner_is_served_what_it_was_served(asked):
    before, saved = live(), made(*asked)
    again = ReplayCurator(saved, STRUCTURE)
    assert again.budget == before.budget and again.terms == before.terms and again.structure == STRUCTURE
    for number, one in enumerate(asked):
        assert (again.remaining, again.released) == (before.remaining, saved[:number])
        before.release(**one)
        assert again.release(**one) is saved[number]
    assert again.remaining.is_zero and again.released == saved


@pytest.mark.parametrize("shares", [("9/10", "1/10"), ("1/4", "1/4", "1/2"), ("1/3", "rest")], ids=" ".join)
def test_an_adaptive_fit_is_learned_again_from_its_releases(adaptive, shares):
    """The model says the same cost, at none, and so does one that was learned from it again."""
    learner = adaptive(shares=shares)
    first = run_learner(learner, live(), EXACT)
    again = dpgm.learn(first.releases, learner, structure=STRUCTURE)
    assert again.releases == first.releases
    assert (again.model.cost, again.model.guarantee()) == (ONE, first.model.guarantee())


def test_an_optimal_split_is_asked_for_as_one_budget():
    """Whose division of the tables is no business of the learner."""
    saved = made({}, split="optimal")
    assert len(saved[0].calibrations) == 2
    assert ReplayCurator(saved).release(budget=ONE) is saved[0]
    assert ReplayCurator(saved).release(budget=ONE, split="even") is saved[0]  # split as it once was


def test_cliques_are_matched_in_any_order_and_serve_a_wider_model():
    saved = made({"budget": HALF, "cliques": [("a", "b"), ("b",)]}, {"cliques": MARGIN})
    replay = ReplayCurator(saved, STRUCTURE)
    assert replay.release(budget=HALF, cliques=["b", ("b", "a")]) is saved[0]
    assert replay.release(cliques=["b"]) is saved[1]
    saved = made({"budget": HALF, "cliques": MARGIN}, {"cliques": MARGIN})
    assert ReplayCurator(saved[0], STRUCTURE).release() is saved[0]
    replay = ReplayCurator(saved, STRUCTURE)
    assert (replay.release(budget=HALF), replay.release()) == saved


REFUSALS = {
    "other budget": (
        [{"budget": QUARTER}, {}], [{"budget": HALF}],
        "saved release 1 of 2 was made for epsilon = 0.25; the learner asks for epsilon = 0.5",
    ),
    "other budget of the second": (
        [{"budget": QUARTER}, {}], [{"budget": QUARTER}, {"budget": HALF}], "saved release 2 of 2 was made for",
    ),
    "other kind of budget": ([{}], [{"budget": Budget.zcdp(1)}], "the saved release was made for epsilon = 1;"),
    "all of it for the first": ([{"budget": HALF}, {}], [{"budget": ONE}], "saved release 1 of 2 was made for"),
    "other cliques": (
        [{"budget": HALF, "cliques": PAIR}, {}], [{"budget": HALF, "cliques": MARGIN}],
        "saved release 1 of 2 holds other cliques than the learner asks for: a x b",
    ),
    "one clique more": (
        [{"budget": HALF, "cliques": PAIR}, {}], [{"budget": HALF, "cliques": PAIR + MARGIN}], "holds other cliques",
    ),
    "one clique fewer": ([{}], [{"cliques": PAIR}], "the saved release holds other cliques"),
    "other order of budgets": (
        [{"budget": QUARTER}, {"budget": Budget.pure("3/4")}], [{"budget": Budget.pure("3/4")}], "saved release 1 of 2",
    ),
    "other order of cliques": (
        [{"budget": HALF, "cliques": PAIR}, {"cliques": MARGIN}], [{"budget": HALF, "cliques": MARGIN}],
        "holds other cliques than the learner asks for",
    ),
    "one more": (
        [{"budget": HALF}, {}], [{"budget": HALF}, {"budget": HALF}, {"budget": HALF}],
        "asks for one release more than the 2 saved; a replay cannot make new ones",
    ),
    "a second of one": ([{}], [{}, {}], "asks for one release more than the 1 saved"),
    "the rest with two of three left": (
        [{"budget": QUARTER}, {"budget": QUARTER}, {}], [{"budget": QUARTER}, {}], "but 2 saved ones are left",
    ),
    "other split": (
        [{"budget": {("a", "b"): QUARTER, ("b",): HALF}}], [{"budget": {("a", "b"): HALF, ("b",): QUARTER}}],
        "the saved release was paid for with other budgets per clique",
    ),
    "a split of an even one": (
        [{}], [{"budget": {("a", "b"): HALF, ("b",): HALF}}], "was paid for with other budgets per clique",
    ),
    "a split of other cliques": (
        [{"budget": {("a", "b"): QUARTER, ("b",): HALF}}], [{"budget": {("a", "b"): QUARTER}}], "holds other cliques",
    ),
    "a number for a budget": ([{}], [{"budget": 1}], "Budget"),
}  # fmt: skip


@pytest.mark.parametrize("key", REFUSALS)
def test_what_was_not_made_is_refused_with_the_reason(key):
    """One line that says which release of how many, and what it is; nothing is served."""
    saved, asked, words = REFUSALS[key]
    replay = ReplayCurator(made(*saved), STRUCTURE)
    for one in asked[:-1]:
        replay.release(**one)
    before = replay.released
    with pytest.raises(BudgetError, match=words) as caught:
        replay.release(**asked[-1])
    assert "\n" not in str(caught.value)
    assert replay.released == before


def test_a_learner_of_one_release_gets_several_as_one(adaptive):
    """It is handed their pool, and all are in the model; what it asks of cliques and noise is asked of the pool."""
    saved = made({"budget": HALF, "cliques": PAIR}, {"budget": QUARTER, "cliques": MARGIN}, {})
    asked = []
    for wanted in (None, [("b",), ("b", "a")]):
        replay = ReplayCurator(saved, STRUCTURE)
        assert not replay.pooled
        served = replay.release(cliques=wanted, accept=asked.append)
        assert replay.pooled and replay.released == served.published == saved and replay.remaining.is_zero
    assert asked[-1] == served.noise
    with pytest.raises(BudgetError, match="the 3 saved releases together holds other cliques"):
        ReplayCurator(saved, STRUCTURE).release(cliques=PAIR)
    done = dpgm.learn(saved, adaptive(shares=("rest",)))
    assert done.releases == done.model.releases == saved and done.model.pooled
    assert (done.model.cost, done.release.cost) == (ONE, ONE)
    assert adaptive.handed[0].published == saved
    alone = dpgm.learn(saved[1], adaptive(shares=("rest",)))
    assert alone.model.cost == QUARTER and not alone.model.pooled


def test_without_a_structure_there_is_room_for_all_that_was_measured():
    """The first release's structure if it holds all others, else all tables, where files say nothing of it."""
    saved = [evolve(one, modelled=None) for one in made({"budget": HALF, "cliques": MARGIN}, {"cliques": PAIR})]
    assert ReplayCurator(saved).structure.cliques == (("b",), ("a", "b"))
    assert ReplayCurator(saved[::-1]).structure.cliques == (("a", "b"),)


def test_a_learner_that_leaves_releases_unused_is_refused(adaptive):
    """Who gives three believes that three were learned from."""
    saved = made({"budget": QUARTER}, {"budget": QUARTER}, {})
    with pytest.raises(BudgetError, match=r"asked for 1 of the saved releases and left epsilon = 0\.75 of them unused"):
        dpgm.learn(saved, adaptive(shares=("1/4",)))


def test_releases_that_do_not_add_up_are_refused():
    with pytest.raises(BudgetError, match="at least one release"):
        ReplayCurator([])
    one, _ = made({"budget": HALF}, {})
    for terms in ({"neighbours": "replace-one"}, {"unit": "one visit"}):
        with pytest.raises(BudgetError, match="do not add up to one guarantee"):
            ReplayCurator([one, *made({}, **terms)])


def test_a_model_that_lacks_a_measured_clique_is_refused():
    saved = made({"budget": HALF, "cliques": MARGIN}, {"cliques": PAIR})
    for releases in (saved, saved[::-1]):
        with pytest.raises(StructureError, match=r"\('a', 'b'\), which no clique of the model contains"):
            ReplayCurator(releases, Structure(STRUCTURE.domain, [("a",), ("b",)]))


def test_a_replay_holds_no_session_and_no_rounds():
    """Nor clipped scores to learn from; counts of the last round can be learned from."""
    with pytest.raises(BudgetError, match="selecting needs"):
        ReplayCurator(made({})).session(workload=Workload.all(STRUCTURE.domain))
    with pytest.raises(BudgetError, match="holds finished releases, no rounds"):
        ReplayCurator(made({})).rounds(3, sampling_rate=0.5)
    door = live(total=40)
    with door.rounds(2, sampling_rate=0.5, budget=HALF) as rounds:
        rounds.next()
    assert ReplayCurator(door.released).release(budget=HALF) is door.released[0]
    beliefs = EXACT.compile(STRUCTURE).infer(Tables.zeros(STRUCTURE))
    with door.rounds(2, sampling_rate=0.5, clip=dpgm.ClippedScore(norm=1, grid=64)) as rounds:
        rounds.next(beliefs)
    with pytest.raises(BudgetError, match="holds clipped scores of a round of training, not counts"):
        ReplayCurator(door.released)


def test_mixed_kinds_are_replayed_at_a_stated_delta():
    """Budget and remaining are converted; each release is matched by what was asked for it."""
    delta = Fraction(1, 10**6)
    saved = [*made({}), dpgm.release(CODES, STRUCTURE, Budget.zcdp("1/2"), "gaussian", neighbours="add-remove")]
    with pytest.raises(BudgetError, match="state a conversion delta"):
        ReplayCurator(saved)
    replay = ReplayCurator(saved, conversion_delta=delta)
    model = dpgm.Model(STRUCTURE, Tables.zeros(STRUCTURE), releases=saved, conversion_delta=delta)
    assert replay.budget == replay.remaining == model.cost
    assert replay.release(budget=ONE) is saved[0]
    assert replay.remaining == Budget.zcdp("1/2")
    assert replay.release() is saved[1]
    assert replay.remaining.is_zero


def test_a_model_of_several_releases_cannot_be_bootstrapped(adaptive):
    """A simulated release cannot answer what the learner would have asked after seeing another first one."""
    model = run_learner(adaptive(), live(), EXACT).model
    with pytest.raises(dpgm.OptionError, match="it learned from 2 releases, one asked for after another") as caught:
        dpgm.bootstrap(model, 5, learner=adaptive())
    assert "\n" not in str(caught.value)


def test_a_release_is_not_served_twice_by_what_accept_calls():
    """Whoever asks again from within `accept` gets the next release, and the outer request is refused."""
    replay = ReplayCurator(made({"budget": HALF}, {"budget": HALF}))
    inner = []
    with pytest.raises(BudgetError, match="served in the meantime"):
        replay.release(budget=HALF, accept=lambda noises: inner.append(replay.release(budget=HALF)))
    assert len(inner) == len(replay.released) == 1


@pytest.mark.parametrize("wrong", [None, 2.5, "x.dpgm", b"x", {}, [1]])
def test_what_is_no_release_is_refused(wrong):
    with pytest.raises((dpgm.OptionError, BudgetError), match="a replay"):
        ReplayCurator(wrong)
    with pytest.raises(dpgm.StructureError, match="must be a Structure"):
        ReplayCurator(made({}), 7)


def test_a_release_of_other_tables_remembers_what_it_was_made_to_learn(tmp_path):
    """It is learned over its own structure again, from its file too, and with what other releases measured outside."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    wide = Structure(domain, [("b", "a"), ("a",)])
    door = live(np.zeros((9, 3), int), wide)
    part, whole = door.release(cliques=[("b", "a")], budget=HALF), door.release()
    assert part.modelled == wide and whole.modelled is None
    part.save(tmp_path / "part.dpgm")
    again = dpgm.load_release(tmp_path / "part.dpgm")
    assert again.modelled == wide and again.structure.cliques == (("b", "a"),)
    assert ReplayCurator(again).structure == wide == ReplayCurator([again, whole]).structure
    assert ReplayCurator(again, part.structure).structure == part.structure
    other = dpgm.release(np.zeros((9, 3), int), Structure(domain, [("c",)]), ONE, neighbours="add-remove")
    assert set(ReplayCurator([again, other]).structure.cliques) == {("b", "a"), ("a",), ("c",)}
