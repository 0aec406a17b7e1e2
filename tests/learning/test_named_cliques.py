"""Named cliques over private bins, what is refused before anything is charged; parts of budgets and their noise."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Attribute, Budget, Contributions, Domain, Ledger, Structure, Terms, fit, make, plan, release
from dpgm_core.errors import BudgetError, LearningFailed, OptionError, StructureError
from dpgm_core.learning.named_cliques import NamedCliques, deviation, left_for_tables, share_of
from dpgm_core.pipeline.run import Run, plan_selection
from dpgm_core.privacy.measurement import measure, noisy_contrasts
from dpgm_testing.unusual import Power
from tests.fixtures import dry_run
from tests.learning.pairs import Unread
from tests.private_columns import private_bins

DOMAIN = Domain([private_bins("age", 8), private_bins("hours", 8), Attribute.of_size("b", 2)])
STRUCTURE = Structure(DOMAIN, [("b", "age"), ("age", "hours")])
TERMS = Terms(neighbours="add-remove")
RNG = np.random.default_rng(0)
DATA = {name: RNG.integers(0, size, 500) for name, size in (("age", 100), ("hours", 100), ("b", 2))}
PER_GROUP = Contributions(per="group")
TEXTBOOK = {"name": "laplace", "exact": False, "allow_unsafe": True}
TWO_ROWS = {"neighbours": "add-remove", "person": "id", "rows_per_person": 2}


REFUSED = {
    "tied": ({"structure": Structure(DOMAIN, [("b",)], tied=[[("age",), ("hours",)]])}, StructureError, "tied cliques"),
    "the empty clique": ({"structure": Structure(DOMAIN, [(), ("age",)])}, StructureError, "empty clique"),
    "a split": ({"split": "optimal"}, OptionError, "split = 'optimal'"),
    "contrasts": ({"split": "contrasts"}, OptionError, "split = 'contrasts'"),
    "another mechanism": ({"mechanism": "gaussian"}, BudgetError, "'gaussian' cannot serve pure epsilon"),
    "textbook noise": ({"mechanism": TEXTBOOK}, BudgetError, "takes exact noise only"),
    "contributions": ({"terms": Terms(**TWO_ROWS, contributions=PER_GROUP)}, BudgetError, "contributions weigh rows"),
    "too little": ({"budget": Budget.pure("0.0001")}, BudgetError, "too little to choose by"),
    "a workload": ({"workload": DOMAIN}, OptionError, "workload"),
}


@pytest.mark.parametrize(
    ("verb", "case"),
    [(verb, case) for verb in (fit, dry_run) for case in REFUSED if verb is fit or case != "a workload"],
)
def test_what_does_not_go_with_private_bins_is_refused_unread(verb, case):
    """Claim: one line that says what is wrong, before any record is read."""
    asked, kind, match = REFUSED[case]
    more = {"budget": Budget.pure(1), "structure": STRUCTURE, "terms": TERMS} | asked
    with pytest.raises(kind, match=match):
        verb(Unread(), more.pop("structure"), more.pop("budget"), **more)


def test_a_release_is_refused_with_what_would_do():
    """Claim: plain noisy tables cannot find bins."""
    with pytest.raises(BudgetError, match=r"'age', 'hours'.*fit with named cliques"):
        release(Unread(), STRUCTURE, Budget.pure(1), terms=TERMS)


@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp("0.1"), Budget.approx(1, "1e-9")])
def test_plans_say_what_bins_cost(budget):
    """Claim: with named cliques and with a selector, the same cost; and the noise is that of what is left."""
    cost, left = left_for_tables(STRUCTURE, budget, TERMS)
    assert not cost.is_zero
    told = plan(STRUCTURE, budget, terms=TERMS)
    assert (told.asked, told.cost) == (budget, budget)
    assert any("'age', 'hours'" in note and str(cost) in note for note in told.notes)
    assert [one.cells for one in told.tables] == [18, 81]
    wanted = NamedCliques(structure=STRUCTURE).workload
    selected = plan_selection("auto", budget, wanted, terms=TERMS)
    assert selected.shares["private bins of age, hours"] == cost
    assert Budget.sum(one for what, one in selected.shares.items() if "bins" not in what) <= left
    Run(Unread(), STRUCTURE, budget, terms=TERMS).check()
    Run(Unread(), "auto", budget, terms=TERMS, workload=wanted).check()


def test_what_fails_once_bins_are_paid_for_is_work_that_failed(monkeypatch, tmp_path):
    """Claim: the ledger keeps the charge, and the error is LearningFailed and says that the budget is spent."""

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr("dpgm_core.curator.live.find_bins", broken)
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(2), neighbours="add-remove")
    data = {name: np.zeros(9, int) for name in DOMAIN.names}
    with pytest.raises(LearningFailed, match="budget is spent"):
        fit(data, STRUCTURE, Budget.pure(1), neighbours="add-remove", ledger=ledger)
    assert ledger.remaining() == Budget.pure(1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_named_cliques_are_fitted_over_the_bins_found(neighbours):
    """The structure is the one that was named, over the bins that were found; the cost is the whole budget."""
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 100, 3000)
    data = {"age": ages, "hours": np.minimum(ages // 2 + rng.integers(0, 20, 3000), 99), "b": ages % 2}
    done = fit(data, STRUCTURE, Budget.approx(4, "1e-6"), neighbours=neighbours)
    (found, other) = done.release.session.bins
    assert done.model.domain["age"] == found.attribute
    assert done.model.domain["hours"] == other.attribute
    assert done.model.structure.cliques == STRUCTURE.cliques
    assert done.model.cost == Budget.approx(4, "1e-6")
    text = done.model.guarantee()
    found_privately = "the bins of 'age' and 'hours', which were found privately within the stated budget"
    assert f"Assumed public: the domain but for {found_privately}, the structure and" in text
    truth = np.histogram(ages, bins=np.asarray(found.attribute.edges))[0] / 3000
    # 4 times the noise at this budget; a right version fails with probability below 1e-6
    assert np.abs(done.model.marginal("age")[: len(truth)] - truth).max() < 0.1


@pytest.mark.parametrize("budget", [Budget.pure(4), Budget.approx(4, "1e-6")], ids=str)
@pytest.mark.parametrize(("mechanism", "kind"), [(Power(), "tabulated"), ("laplace", "discrete-laplace")])
def test_tables_over_private_bins_have_the_mechanism_that_is_named(mechanism, kind, budget):
    """Claim: the bins are core's own, and the plan shows the noise of the mechanism."""
    done = fit(DATA, STRUCTURE, budget, mechanism, neighbours="add-remove")
    assert len(done.release.session.bins) == 2
    assert {noise.event.kind for noise in done.release.noise} == {kind}
    planned = plan(STRUCTURE, budget, mechanism, terms=TERMS)
    assert planned.tables[0].noise == pytest.approx(done.release.noise[0].variance ** 0.5, rel=0.01)


@pytest.mark.parametrize("epsilon", ["1", "8"])
def test_the_plan_of_tables_over_private_bins_shows_what_is_drawn(epsilon):
    """Claim: discrete noise of the exact account is a little wider than its rho alone says, at large epsilon by 4 %."""
    budget = Budget.approx(epsilon, "1e-5")
    done, planned = fit(DATA, STRUCTURE, budget, neighbours="add-remove"), plan(STRUCTURE, budget, terms=TERMS)
    assert planned.tables[0].noise == pytest.approx(done.release.noise[0].variance ** 0.5, rel=0.002)


def test_a_check_share_goes_with_named_cliques():
    """Claim: it is set aside of what the bins leave."""
    structure = Structure(DOMAIN, [("age",), ("hours",), ("b",)])
    done = fit(DATA, structure, Budget.pure(2), neighbours="add-remove", split={"tables": "even", "holdout": 0.1})
    assert [one.holdout for one in done.release.steps] == [False, True]
    spent = Budget.sum([*(one.cost for one in done.release.session.bins), *(one.cost for one in done.release.steps)])
    assert Budget.pure(2) * Fraction(999, 1000) <= spent <= Budget.pure(2)


PAIRS = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c")])


@pytest.mark.parametrize("whole", [Budget.pure(3), Budget.zcdp("0.01"), Budget.approx(1, "1e-6")])
def test_a_share_is_a_decimal_rounded_down(whole):
    """Never more than was meant, never nothing."""
    assert share_of(whole, 0.25) == whole * Fraction(1, 4)
    assert share_of(whole, 1 / 3) == whole * Fraction(333_333_333, 10**9)
    assert share_of(whole, 1e-12) == whole * Fraction(1, 10**9)


@pytest.mark.parametrize("total", ["estimated", 70])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_noise_is_that_of_a_measurement(kind, neighbours, total):
    """To 1 %, which discrete noise has less of than its scale's variance; of contrasts the variance of their tables."""
    budget, name = (Budget.pure("0.1"), "laplace") if kind == "pure" else (Budget.zcdp("0.01"), "gaussian")
    terms, mechanism = Terms(neighbours=neighbours, total=total), make("mechanism", name)
    cells = measure(mechanism, PAIRS, terms, budget)
    assert deviation(budget, PAIRS, terms) ** 2 == pytest.approx(cells.variances[0], rel=0.01)
    cliques = [(), *PAIRS.cliques] if total == "estimated" else PAIRS.cliques
    sums = noisy_contrasts(mechanism, Structure(PAIRS.domain, cliques), terms, budget)
    assert deviation(budget, PAIRS, terms, contrasts=True) ** 2 == pytest.approx(sums.variances[-1], rel=0.01)
