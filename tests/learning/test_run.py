"""A learner against a curator: what fails after something was paid for keeps it; and what a fit is told of itself."""

import pickle

import numpy as np
import pytest
from attrs import evolve, frozen

import dpgm_core as dpgm
from dpgm_core import (
    Budget,
    Domain,
    Fit,
    LiveCurator,
    Model,
    ReplayCurator,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    learn,
)
from dpgm_core.errors import IncompatiblePlugin, LearningFailed, Overspent
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.learner_run import goodness_of_fit, run_learner, with_goodness_of_fit
from dpgm_core.sources import as_source
from tests.fixtures import Unchecked

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
CODES = np.array([[0, 1], [1, 1], [0, 0]] * 20)
EXACT = dpgm.make("inference", "junction-tree")


@frozen(kw_only=True)
class Asks(Unchecked):
    """Takes releases of the given budgets, then does as told."""

    budgets: tuple = ()
    then: object = None

    def learn(self, curator, inference, *, randomness, progress):
        for budget in self.budgets:
            curator.release(budget=budget)
        if isinstance(self.then, BaseException):
            raise self.then
        if self.then is not None:
            return self.then
        model = Model(curator.structure, Tables.zeros(curator.structure))
        return Fit(model=model, notes=["well done"], tuning={})


def curator() -> LiveCurator:
    """Of sixty records, with epsilon = 1 to spend."""
    mechanism = dpgm.make("mechanism", "laplace")
    budget, seed = Budget.pure(1), SeededRandomness(1)
    terms = Terms(neighbours="add-remove")
    return LiveCurator(as_source(CODES), STRUCTURE, mechanism, terms=terms, budget=budget, randomness=seed)


HALF = Budget.pure("1/2")


def test_a_fit_is_stamped_with_its_makers():
    """Learner, inference and what the learner said are in the model's provenance; the release is the curator's."""
    door = curator()
    fit = run_learner(Asks(budgets=(None,)), door, EXACT)
    assert (fit.model.release,) == fit.releases == door.released
    assert fit.model.provenance["learner"] == {"class": f"{__name__}:Asks"}
    assert fit.model.provenance["inference"]["name"] == "junction-tree"
    assert fit.model.provenance["notes"] == ["well done"]


def test_all_that_was_paid_for_is_in_the_error():
    """All releases in their order, one line, and the cause; a refused second release loses nothing; it pickles."""
    door, fault = curator(), ArithmeticError("no luck")
    with pytest.raises(LearningFailed, match="Asks failed, ArithmeticError: no luck; 2 releases are") as caught:
        run_learner(Asks(budgets=(HALF, HALF), then=fault), door, EXACT)
    assert caught.value.releases == door.released and len(door.released) == 2
    hint = "from one of them with dpgm learn FILE where it was saved or with learn(error.releases[0])"
    assert hint in str(caught.value)
    assert caught.value.__cause__ is fault
    assert "\n" not in str(caught.value)
    with pytest.raises(LearningFailed, match="was asked") as caught:
        run_learner(Asks(budgets=(HALF, Budget.pure(1))), curator(), EXACT)
    assert [one.cost for one in caught.value.releases] == [HALF]
    assert isinstance(caught.value.__cause__, Overspent)
    with pytest.raises(LearningFailed) as caught:
        run_learner(Asks(budgets=(None,), then=ArithmeticError("no luck")), curator(), EXACT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert [one.cost for one in again.releases] == [Budget.pure(1)]


@pytest.mark.parametrize("fault", [ArithmeticError("no luck"), dpgm.InferenceError("lost"), KeyboardInterrupt()])
def test_errors_before_any_release_are_left_alone(fault):
    """Nothing was paid for, so there is nothing to keep."""
    with pytest.raises(type(fault)) as caught:
        run_learner(Asks(then=fault), curator(), EXACT)
    assert caught.value is fault and fault.__cause__ is None


def test_errors_on_a_replay_are_left_alone():
    """Its releases were paid for long ago, and whoever replays them has them."""
    fault = ArithmeticError("no luck")
    with pytest.raises(ArithmeticError) as caught:
        run_learner(Asks(budgets=(None,), then=fault), ReplayCurator(curator().release()), EXACT)
    assert caught.value is fault


def test_an_interrupt_stays_an_interrupt():
    """Its cause holds what was paid for: whoever catches Exception only is interrupted all the same."""
    with pytest.raises(KeyboardInterrupt) as caught:
        run_learner(Asks(budgets=(None,), then=KeyboardInterrupt()), curator(), EXACT)
    assert isinstance(caught.value.__cause__, LearningFailed)
    assert [one.cost for one in caught.value.__cause__.releases] == [Budget.pure(1)]


def test_what_is_no_fit_is_the_learners_fault():
    """Only a Fit with a Model is stamped; a model for which no release was asked is refused."""
    with pytest.raises(IncompatiblePlugin, match="Asks returned str, not a Fit"):
        run_learner(Asks(then="done"), curator(), EXACT)
    model = Model(STRUCTURE, Tables.zeros(STRUCTURE))
    with pytest.raises(IncompatiblePlugin, match="Asks asked the curator for nothing"):
        run_learner(Asks(then=Fit(model=model)), curator(), EXACT)


def test_what_was_paid_for_can_be_learned_from_again():
    """What the message says: one of the error's releases makes a model, and all do for a learner that asks for each."""
    with pytest.raises(LearningFailed) as caught:
        run_learner(Asks(budgets=(HALF, HALF), then=ArithmeticError("no luck")), curator(), EXACT)
    assert learn(caught.value.releases[0]).model.cost == HALF
    again = learn(caught.value.releases, Asks(budgets=(HALF, HALF)))
    assert again.releases == caught.value.releases and again.model.cost == Budget.pure(1)


# --- what the verb `learn` takes ----------------------------------------------------------------------------------


def releases():
    """Two halves of epsilon = 1."""
    door = curator()
    return door.release(budget=HALF), door.release(budget=HALF)


def test_learn_takes_one_release_or_several():
    """A release, a list, a tuple; the model has them all, in their order."""
    one, two = releases()
    assert learn(one, Asks(budgets=(None,))).releases == (one,)
    assert learn([one], Asks(budgets=(None,))).releases == (one,)
    for given in ([one, two], (one, two)):
        fit = learn(given, Asks(budgets=(HALF, None)))
        assert fit.releases == fit.model.releases == (one, two)
        assert (fit.release, fit.model.cost) == (two, Budget.pure(1))


def test_learn_refuses_what_is_no_release():
    """One line that says what would do; from none there is nothing to learn."""
    for given in ("r.dpgm", None, 1, [1], ["r.dpgm"], {"a": 1}):
        with pytest.raises(dpgm.OptionError, match=r"learn takes a release \(NoisyTables\) or several"):
            learn(given)
    with pytest.raises(dpgm.BudgetError, match="at least one release"):
        learn([])


FOUR = Domain.from_sizes(dict.fromkeys("abcd", 3))
CHAIN = Structure.chain(FOUR)


class Flat(Unchecked):
    """Learns nothing: the uniform model, whatever the tables."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release()
        return dpgm.Fit(model=dpgm.Model(curator.structure, Tables.zeros(curator.structure)))


def fitted(learner, seed=0, split="even", codes=None, inference="junction-tree"):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, size=(4000, 1), p=[0.6, 0.3, 0.1])
    drawn = np.hstack([a, *[np.where(rng.random((4000, 1)) < 0.5, a, 2 - a) for _ in range(3)]])
    terms = {"neighbours": "add-remove", "randomness": SeededRandomness(seed), "split": split}
    codes = drawn if codes is None else codes
    return dpgm.fit(codes, CHAIN, Budget.pure(1), learner=learner, inference=inference, **terms)


def test_a_model_that_does_not_fit_its_tables_is_named_with_the_furthest():
    """In the fit's notes and in the model's provenance, so that a file has them."""
    done = fitted(Flat())
    (note,) = done.notes
    worst = max(done.model.misfit().items(), key=lambda one: one[1])
    said = f"table ({', '.join(worst[0])}) lies {worst[1]:.1f} standard errors from the model, and 2 more"
    assert note.startswith(said)
    assert done.model.provenance["notes"] == [note]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("learner", ["eb-map", "naive-mle", "cgm-em"])
def test_learners_are_not_accused(learner):
    """Three learners, 4 data sets each: nothing is said; of right models it is in one of 1,000 fits at most."""
    for seed in range(4):
        found = fitted(learner, seed)
        assert goodness_of_fit(found.model) == ([], [])


def test_what_the_structure_misses_is_said_where_it_was_checked():
    """One sentence, with an interval; without a check none."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(4000, 4))
    codes[:, 2] = np.where(rng.random(4000) < 0.8, codes[:, 0], codes[:, 2])
    done = fitted("naive-mle", split={"holdout": 0.1}, codes=codes)
    found = done.model.structure_error()
    estimate, low, high = (f"{float(one):.3f}" for one in (found.estimate, found.low, found.high))
    said = f"the structure misses about {estimate} TV on pairs it did not measure ({low} to {high})"
    assert done.notes[-1] == said
    assert found.estimate > 0.01  # c is much like a, and b, which lies between them, like neither


def test_what_cannot_be_judged_is_not():
    """Without a release, or where exact inference does not fit, the fit stays as it is."""
    done = dpgm.Fit(model=dpgm.Model(CHAIN, Tables.zeros(CHAIN)))
    assert with_goodness_of_fit(done, dpgm.make("inference", "junction-tree")) is done
    done = fitted(Flat())
    small = done.model.using(dpgm.make("inference", {"name": "junction-tree", "max_bytes": 64}))
    bare = evolve(done, model=small, notes=())
    assert with_goodness_of_fit(bare, JunctionTree()) is bare


def test_what_was_learned_with_an_approximate_engine_is_judged_with_it(monkeypatch):
    """No exact engine is compiled for a verdict, which might take longer than the fit."""
    monkeypatch.setattr(JunctionTree, "compile", lambda *_: pytest.fail("an exact engine was compiled"))
    done = fitted(Flat(), inference="loopy-bp")
    assert "standard errors from the model" in done.notes[0]


def test_no_verdict_costs_a_release_that_is_paid_for(monkeypatch):
    """Whatever it refuses to answer: the fit is whole, and says nothing of itself."""

    def refuse(*_):
        raise dpgm.StructureError("no")

    monkeypatch.setattr(dpgm.Model, "misfit", refuse)
    done = fitted(Flat())
    assert not done.notes and done.release is not None
