"""What a model says it cost is what its curator handed out and charged, whatever its learner shows."""

from fractions import Fraction

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, Ledger, LiveCurator, Model, Structure, Terms, load_model, make
from dpgm_core.learning.learner_run import run_learner
from dpgm_core.privacy.budget import zcdp_epsilon
from dpgm_core.sources import as_source
from tests.fixtures import Unchecked
from tests.models.enumerated import uniform_model

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
CODES = np.array([[0, 1], [1, 2]] * 20)
EXACT = make("inference", "junction-tree")
ONE = Budget.pure(1)
SPLITS = [("9/10", "1/10"), ("1/4", "1/4", "1/2"), ("999/1000", "rest"), ("1/3", "1/3", "rest")]


@pytest.fixture
def ledger(tmp_path):
    """Of epsilon = 5, nothing spent."""
    return Ledger.create(tmp_path / "l.ledger", name="l", budget=Budget.pure(5), neighbours="add-remove")


def learned(learner, ledger=None, budget=ONE, mechanism="laplace", codes=CODES, **terms):
    """A fit, and the curator that served it."""
    stated = Terms(**{"neighbours": "add-remove"} | terms)
    door = LiveCurator(
        as_source(codes), STRUCTURE, make("mechanism", mechanism), terms=stated, budget=budget, ledger=ledger
    )
    return run_learner(learner, door, EXACT), door


@pytest.mark.parametrize("shares", SPLITS, ids=" ".join)
def test_a_model_states_what_was_spent(tmp_path, adaptive, ledger, shares):
    """Cost, guarantee, file and loaded file say epsilon = 1, as the ledger does."""
    fit, door = learned(adaptive(shares=shares), ledger)
    model = fit.model
    assert model.cost == ONE == ledger.spent() == Budget.sum(one.cost for one in door.released)
    assert model.guarantee().startswith("Differential privacy with epsilon = 1 under add-remove neighbours;")
    assert f"It holds for all {len(shares)} releases together." in model.guarantee()
    assert fit.releases == model.releases == door.released and len(fit.releases) == len(shares)
    assert fit.release is model.release is door.released[-1]
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.cost == ONE and again.guarantee() == model.guarantee()
    assert [one.cost for one in again.releases] == [one.cost for one in door.released]
    document = again.to_document()
    assert Budget.parse(document["cost"]) == ONE and document["guarantee"] == model.guarantee()


@pytest.mark.parametrize("shows", ["none", (0,), (1,), (1, 0), (1, 1), ()])
def test_what_a_learner_shows_changes_nothing(adaptive, ledger, shows):
    """A tiny last release, a dropped first one, another order: the model says what the curator says."""
    fit, door = learned(adaptive(shares=("9/10", "1/10"), shows=shows), ledger)
    assert fit.model.cost == ONE == ledger.spent()
    assert fit.model.releases == fit.releases == door.released


def test_a_model_keeps_its_cost_through_its_copies(adaptive):
    """Through another engine, with replicates, and in each of these."""
    model = learned(adaptive())[0].model
    with_replicates = model.with_replicates(np.zeros((2, STRUCTURE.cells)))
    for copy in (model.using("loopy-bp"), with_replicates, *with_replicates.replicates):
        assert copy.cost == ONE and copy.guarantee() == model.guarantee()


def test_one_seeded_release_makes_the_model_a_simulation():
    """Not only the last one is looked at."""

    def release(randomness):
        return dpgm.release(CODES, STRUCTURE, ONE, neighbours="add-remove", randomness=randomness)

    model = uniform_model(STRUCTURE, releases=[release(dpgm.SeededRandomness(1)), release(None)])
    assert model.private is False and model.guarantee().startswith("NOT PRIVATE")


def test_rounds_count_once_and_with_their_full_cost(adaptive, ledger):
    """Many rounds under one charge are one release that cost the whole charge, also when they end early."""

    class Trains(Unchecked):
        def learn(self, curator, inference, *, randomness, progress):
            curator.release(budget=curator.budget * Fraction(1, 4))
            with curator.rounds(5, sampling_rate=0.5) as rounds:
                rounds.next()
                rounds.next()
            return dpgm.Fit(model=uniform_model(curator.structure))

    fit, _ = learned(Trains(), ledger)
    assert [one.cost for one in fit.releases] == [Budget.pure("1/4"), Budget.pure("3/4")]
    assert fit.model.cost == ONE == ledger.spent()
    assert "This is round 2 of 5" in fit.model.guarantee()


def test_views_of_releases_stand_for_what_is_behind_them(tmp_path, adaptive):
    """Normalised contributions are handed out levelled; the model carries and saves them as they were released."""
    import pyarrow as pa

    persons = pa.table({"who": ["x", "x", "y"] * 13, "a": ["0", "1", "1"] * 13, "b": ["0", "1", "2"] * 13})
    weights = dpgm.Contributions(per="clique", grid=12)
    terms = {"person": "who", "rows_per_person": 2, "contributions": weights}
    fit, door = learned(adaptive(), codes=persons, **terms)
    assert adaptive.handed[0] is not door.released[0]
    by_hand = uniform_model(STRUCTURE, releases=adaptive.handed)
    assert by_hand.releases == fit.releases == door.released
    by_hand.save(tmp_path / "m.dpgm")
    assert load_model(tmp_path / "m.dpgm").cost == ONE


# --- mixed kinds of budget --------------------------------------------------------------------------------------------

DELTA = Fraction(1, 10**6)


@pytest.fixture(scope="module")
def mixed():
    """A release of epsilon = 1 and one of rho = 1/2."""
    return [
        dpgm.release(CODES, STRUCTURE, Budget.pure(1), neighbours="add-remove"),
        dpgm.release(CODES, STRUCTURE, Budget.zcdp("1/2"), "gaussian", neighbours="add-remove"),
    ]


def converted(delta=DELTA):
    return Budget("approx", epsilon=1 + zcdp_epsilon(Fraction(1, 2), delta), delta=delta)


class Both(Unchecked):
    """Takes the releases of `mixed`."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(budget=Budget.pure(1))
        curator.release(budget=Budget.zcdp("1/2"))
        return dpgm.Fit(model=uniform_model(curator.structure))


def test_mixed_kinds_are_refused_without_a_conversion_delta(mixed):
    """By the verb, the model and with one line that says what would do."""
    for attempt in (lambda: dpgm.learn(mixed, Both()), lambda: uniform_model(STRUCTURE, releases=mixed)):
        with pytest.raises(BudgetError, match="costs of kinds pure and zcdp do not add up; state a conversion delta"):
            attempt()


@pytest.mark.parametrize("delta", [0, 1, 2, -1, "1e-6x", Fraction(-1, 10**6)])
def test_a_conversion_delta_is_a_probability(mixed, delta):
    """Above 0 and below 1; at 1 or more the converted epsilon would be small, and mean nothing."""
    with pytest.raises(BudgetError, match="delta"):
        dpgm.learn(mixed, Both(), conversion_delta=delta)
    if isinstance(delta, (int, Fraction)):
        with pytest.raises(BudgetError, match="conversion_delta must be a probability above 0 and below 1"):
            uniform_model(STRUCTURE, releases=mixed, conversion_delta=Fraction(delta))


@pytest.mark.parametrize("delta", ["1e-6", 1e-6, DELTA])
def test_mixed_kinds_add_up_at_a_stated_delta(tmp_path, mixed, delta):
    """(1 + eps(rho, delta'), delta'), saved with the delta in the file and recomputed from it when read."""
    model = dpgm.learn(mixed, Both(), conversion_delta=delta).model
    assert model.cost == converted()
    assert f"Differential privacy with {converted()} under" in model.guarantee()
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert (again.cost, again.conversion_delta) == (converted(), DELTA)
    assert again.using("loopy-bp").cost == converted()
    assert again.to_document()["conversion_delta"] == "1/1000000"


@pytest.fixture
def edited(tmp_path, mixed, members_of, written, changed):
    """Reads the file x.dpgm of a model of both releases at DELTA, after changes to its facts."""
    dpgm.learn(mixed, Both(), conversion_delta=DELTA).model.save(tmp_path / "m.dpgm")
    members = members_of(tmp_path / "m.dpgm")

    def read(**facts) -> Model:
        content = changed(members["model.json"], {(key,): value for key, value in facts.items()})
        return load_model(written(tmp_path / "x.dpgm", members | {"model.json": content}))

    return read


@pytest.mark.parametrize("delta", ["1/1000", "1/10000000", None, "0", "2", "-1", "nan", 3, []])
def test_an_edited_conversion_delta_is_refused(edited, delta):
    """The cost that the file states must be the one at the delta that it states."""
    with pytest.raises(dpgm.ModelFileError) as caught:
        edited(conversion_delta=delta)
    assert "x.dpgm" in str(caught.value) and "\n" not in str(caught.value)


#: 1 + rho + 2 sqrt(rho ln(1/delta)), as it was computed and written under Bun and Steinke's conversion.
OLDER = {"epsilon": "67565217697569319786301213581009960043487/10000000000000000000000000000000000000000"}


def test_another_true_statement_is_read(edited):
    """Delta and cost that belong together, and a cost by the older conversion, of which the model states less."""
    cost = converted(Fraction(1, 1000))
    assert edited(conversion_delta="1/1000", cost=cost.to_dict()).cost == cost
    cost = OLDER | {"delta": "1/1000000"}
    assert Budget.parse(cost).epsilon > Fraction("1.08") * converted().epsilon
    assert edited(cost=cost).cost == converted()


TOO_LITTLE = {
    "less epsilon": {"epsilon": str(converted().epsilon - Fraction(1, 10**40)), "delta": "1/1000000"},
    "another delta": OLDER | {"delta": "1/2000000"},
    "more delta": OLDER | {"delta": "1/500000"},
    "another kind": OLDER,
    "nothing": None,
    "nonsense": {"epsilon": "nan", "delta": "1/1000000"},
}


@pytest.mark.parametrize("key", TOO_LITTLE)
def test_a_converted_cost_below_the_proof_is_refused(edited, key):
    """Less than the releases cost at the stated delta, by however little, or at another delta."""
    with pytest.raises(dpgm.ModelFileError, match=r"x\.dpgm"):
        edited(cost=TOO_LITTLE[key])
