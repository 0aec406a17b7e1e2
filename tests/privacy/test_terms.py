"""Terms: what does not go together, every sensitivity in one place, conditions of a guarantee, and what it means."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import norm

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, Ledger, OptionError, SeededRandomness, Sensitivity, Structure, Terms
from dpgm_core.privacy.terms import (
    PUBLIC_N,
    SEEDED,
    UNSAFE,
    best_guess,
    change_factor,
    charge_conditions,
    grow_budget,
    odds_factor,
    public_domain,
)
from tests.fixtures import live_curator

CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
SHARES = dpgm.Contributions(per="clique", grid=60)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_one_place_works_out_every_sensitivity(neighbours):
    """Counts, shares and clipped scores each have the norms that their own class proves."""
    several = Terms(neighbours=neighbours, person="id", rows_per_person=4)
    assert several.sensitivity(CHAIN) == Sensitivity.of(CHAIN, neighbours, rows_per_person=4)
    shares = evolve(several, contributions=SHARES)
    assert shares.sensitivity(CHAIN) == SHARES.sensitivity(CHAIN, several.neighbours, rows_per_person=4)
    clip = dpgm.ClippedScore(norm=2, grid=8)
    assert several.sensitivity(CHAIN, clip) == clip.sensitivity(CHAIN.cells, several.neighbours)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"neighbours": "bounded"}, BudgetError, "add-remove"),
        ({"rows_per_person": 2}, BudgetError, "needs a person key"),
        ({"person": "id", "rows_per_person": 0}, BudgetError, "at least 1"),
        ({"person": ""}, BudgetError, "person key must be a text"),
        ({"unit": 3}, BudgetError, "unit must be a text"),
        ({"total": "exact"}, BudgetError, "'estimated', 'public' or a declared number"),
        ({"total": 0.5}, BudgetError, "at least 1"),
        ({"total": 0}, BudgetError, "at least 1"),
        ({"total": np.zeros(2)}, BudgetError, "'estimated', 'public'"),
        ({"total": True}, BudgetError, "declared number"),
        ({"total": float("nan")}, BudgetError, "declared number"),
        ({"contributions": "clique"}, OptionError, "must be Contributions"),
        ({"contributions": SHARES, "total": "public"}, BudgetError, "do not sum to the number of records"),
        ({"contributions": SHARES, "total": 100}, BudgetError, "do not sum to the number of records"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong, error, words):
    with pytest.raises(error, match=words):
        Terms(**{"neighbours": "add-remove"} | wrong)


def test_the_relation_is_stated_once():
    """As terms or as the relation alone; both, neither and something else are refused."""
    terms = Terms(neighbours="replace-one")
    assert Terms.of(terms, None) is terms
    assert Terms.of(None, "replace-one") == terms
    for stated in ((None, None), (terms, "replace-one"), ("replace-one", None)):
        with pytest.raises(BudgetError):
            Terms.of(*stated)


def test_plain_values_give_the_same_terms_back():
    """Every combination that is let in survives to_dict and from_dict, as a file needs it."""
    choices = itertools.product(
        [{"neighbours": "add-remove"}, {"neighbours": "replace-one"}],
        [{}, {"unit": "one visit"}],
        [{}, {"person": "id"}, {"person": "id", "rows_per_person": 5}],
        [{}, {"total": "public"}, {"total": 250.0}, {"contributions": SHARES}],
    )
    for parts in choices:
        terms = Terms(**{key: value for part in parts for key, value in part.items()})
        assert Terms.from_dict(terms.to_dict()) == terms


@pytest.mark.parametrize(
    ("neighbours", "total", "person", "published"),
    [
        ("add-remove", "estimated", None, False),
        ("add-remove", "public", None, True),
        ("add-remove", "public", "id", True),
        ("add-remove", 100, None, False),  # the owner's number, not the data's
        ("replace-one", "public", None, False),
        ("replace-one", "public", "id", True),
        ("replace-one", "estimated", "id", False),
    ],
)
def test_a_published_total_is_a_condition_where_somebody_can_change_it(neighbours, total, person, published):
    """Under add-remove, and wherever rows have a person key, which can be lost and moves rows to nobody."""
    terms = Terms(neighbours=neighbours, total=total, person=person)
    assert (terms.condition is not None) is published
    assert charge_conditions(terms, unsafe=None, private=True) == ((PUBLIC_N,) if published else ())
    if total == "public":
        assert terms.covers_total is not published


def test_the_unit_is_the_stated_one_or_the_ledgers_or_what_a_row_is():
    bare = Terms(neighbours="add-remove")
    assert bare.protected == "one record" and bare.with_default_unit().unit == "one record"
    assert bare.with_default_unit("one visit").unit == "one visit"
    assert evolve(bare, person="id").with_default_unit().unit == "one person"
    assert evolve(bare, unit="one day").with_default_unit("one visit").unit == "one day"


def test_the_sentence_names_what_is_promised():
    """Relation, unit, rows and weights, as the guarantee needs them."""
    terms = Terms(neighbours="add-remove", unit="one walker", person="id", rows_per_person=24, contributions=SHARES)
    for part in ("add-remove neighbours", "one walker, counted with at most 24 rows", SHARES.describe().strip()):
        assert part in terms.sentence()


def test_a_guarantee_calls_nothing_public_that_was_found_privately():
    """The columns are named, up to twenty of them, and the sentence is the usual one without any."""
    terms = Terms(neighbours="add-remove")
    for structure in ("named", "chosen", "both"):
        assert "Assumed public: the domain, " in terms.sentence(structure)
        found = terms.sentence(structure, public_domain(labels=["a{0}b"]))
        assert "the domain but for the labels of 'a{0}b', which were found privately" in found
    assert public_domain(bins=["a", "b", "c"]).count("bins of 'a', 'b' and 'c', which") == 1
    assert "'x19' and 5 others, which" in public_domain(labels=[f"x{n}" for n in range(25)])


STRUCTURE = Structure(dpgm.Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
CODES = np.array([[0, 0], [1, 1]] * 20)
TEXTBOOK = {"name": "laplace", "exact": False, "allow_unsafe": True}


@pytest.mark.parametrize(("public", "unsafe", "seeded"), list(itertools.product((False, True), repeat=3)))
def test_the_entry_says_what_the_guarantee_says(tmp_path, public, unsafe, seeded):
    """Each of the three, and all together: in the ledger's entry before, in the release's guarantee after the noise."""
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")
    release = dpgm.release(
        CODES, STRUCTURE, Budget.pure(1), TEXTBOOK if unsafe else "laplace", ledger=ledger,
        terms=Terms(neighbours="add-remove", total="public" if public else "estimated"),
        randomness=SeededRandomness(1) if seeded else None,
    )  # fmt: skip
    (entry,) = Ledger.open(ledger.path).history()
    said = release.guarantee()
    for condition, there in ((PUBLIC_N, public), (f"{UNSAFE} noise", unsafe), (SEEDED, seeded)):
        assert (condition in entry.conditions) is there
        words = {PUBLIC_N: PUBLIC_N.upper(), f"{UNSAFE} noise": "UNSAFE: "}.get(condition, condition)
        assert (words in said) is there
    assert ("conditional" in ledger.describe()) is bool(entry.conditions)


def test_rounds_are_charged_with_their_conditions(tmp_path):
    """The other way to a charge."""
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")
    with live_curator(CODES, STRUCTURE, total="public", ledger=ledger).rounds(2, sampling_rate=0.5) as rounds:
        rounds.next()
    assert [entry.conditions for entry in ledger.history()] == [(PUBLIC_N,)]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "7"])
def test_the_guess_at_pure_epsilon_is_what_randomised_response_gives(epsilon):
    """The bound is attained: who answers truly with probability e^eps / (1 + e^eps) is found out as often."""
    e = float(epsilon)
    assert best_guess(Budget.pure(epsilon)) == pytest.approx(math.exp(e) / (1 + math.exp(e)), rel=1e-12)
    assert odds_factor(Budget.pure(epsilon)) == pytest.approx(math.exp(e), rel=1e-12)


@pytest.mark.parametrize("rho", ["0.001", "0.02", "0.5", "3", "50"])
def test_the_guess_at_rho_is_no_less_than_gaussian_noise_allows(rho):
    """Gaussian noise of one unit's shift mu is mu^2/2-zCDP, and its best test is right with Phi(mu / 2)."""
    mu = math.sqrt(2 * float(rho))
    assert best_guess(Budget.zcdp(rho)) >= norm.cdf(mu / 2)
    assert 0.5 < best_guess(Budget.zcdp(rho)) <= 1


def test_the_guess_with_a_delta_is_that_of_the_worst_pair():
    """With probability delta the answer is told outright, else as by randomised response."""
    epsilon, delta = 0.7, 0.05
    factor = math.exp(epsilon)
    # the worst pair: P = (delta, (1-delta) e/(1+e), (1-delta)/(1+e), 0), Q mirrored; the test picks the larger
    right = delta + (1 - delta) * factor / (1 + factor)
    assert best_guess(Budget.approx("0.7", "0.05")) == pytest.approx(right, rel=1e-9)


def test_a_large_epsilon_is_told_as_no_limit():
    """Beyond what a double holds nothing is bounded, and nothing fails."""
    assert odds_factor(Budget.pure(10_000)) == math.inf
    assert best_guess(Budget.pure(10_000)) == 1.0
    assert grow_budget(Budget.approx(900, "1e-6"), Fraction(2)) is None


def test_groups_pay_more_than_their_size_for_delta_and_rho():
    """Hand-computed: delta (1 + e^eps) of two, rho four times."""
    two = grow_budget(Budget.approx(1, "1e-6"), change_factor("approx", 2))
    assert two is not None
    assert float(two.delta) == pytest.approx(1e-6 * (1 + math.e), rel=1e-12)
    assert two.epsilon == 2
    assert grow_budget(Budget.zcdp("0.1"), change_factor("zcdp", 3)) == Budget.zcdp(Fraction(9, 10))
    for one in (Budget.pure("0.1"), Budget.approx("1.5", "1.1e-6"), Budget.zcdp("0.3")):
        assert grow_budget(one, change_factor(one.kind, 1)) == one
