"""A learner against a curator: what fails after something was paid for keeps it, what costs nothing fails as it is."""

import pickle

import numpy as np
import pytest
from attrs import frozen

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
from dpgm_core.learning.learner_run import run_learner
from dpgm_core.sources import as_source

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
CODES = np.array([[0, 1], [1, 1], [0, 0]] * 20)
EXACT = dpgm.make("inference", "junction-tree")


@frozen(kw_only=True)
class Asks:
    """Takes releases of the given budgets, then does as told."""

    budgets: tuple = ()
    then: object = None

    def check(self, structure, inference):
        pass

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
    """In the order of the releases; the original error is the cause, and the message is one line."""
    door, fault = curator(), ArithmeticError("no luck")
    with pytest.raises(LearningFailed, match="Asks failed, ArithmeticError: no luck; 2 releases are") as caught:
        run_learner(Asks(budgets=(HALF, HALF), then=fault), door, EXACT)
    assert caught.value.releases == door.released and len(door.released) == 2
    assert "from one of them with dpgm learn FILE where it was saved or with learn(error.releases[0])" in str(
        caught.value
    )
    assert caught.value.__cause__ is fault
    assert "\n" not in str(caught.value)


def test_asking_for_too_much_keeps_what_was_paid_for_before():
    """The second release is refused, the first one is not lost."""
    with pytest.raises(LearningFailed, match="was asked") as caught:
        run_learner(Asks(budgets=(HALF, Budget.pure(1))), curator(), EXACT)
    assert [one.cost for one in caught.value.releases] == [HALF]
    assert isinstance(caught.value.__cause__, Overspent)


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
    """Nothing is stamped that is not a Fit with a Model."""
    with pytest.raises(IncompatiblePlugin, match="Asks returned str, not a Fit"):
        run_learner(Asks(then="done"), curator(), EXACT)


def test_a_fit_to_nothing_is_the_learners_fault():
    """A model of no records has no cost and no guarantee, and nobody would see it."""
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


@pytest.mark.parametrize("given", ["r.dpgm", None, 1, [1], ["r.dpgm"], {"a": 1}], ids=repr)
def test_learn_refuses_what_is_no_release(given):
    """One line that says what would do."""
    with pytest.raises(dpgm.OptionError, match=r"learn takes a release \(NoisyTables\) or several"):
        learn(given)


def test_learn_refuses_no_release():
    """There is nothing to learn from."""
    with pytest.raises(dpgm.BudgetError, match="at least one release"):
        learn([])


def test_the_error_travels_between_processes():
    """A worker of a pool pickles it: message and releases arrive."""
    with pytest.raises(LearningFailed) as caught:
        run_learner(Asks(budgets=(None,), then=ArithmeticError("no luck")), curator(), EXACT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert [one.cost for one in again.releases] == [Budget.pure(1)]
