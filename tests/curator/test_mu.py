"""Runs and sessions under mu, and what a ledger of squares of mu is charged for an (epsilon, delta)."""

from fractions import Fraction

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Ledger, SeededRandomness, Structure, Terms, Workload
from dpgm_core.errors import BudgetError, Overspent
from dpgm_core.privacy.gaussian import gaussian_mu_squared
from dpgm_core.privacy.session_account import SessionAccount
from dpgm_core.releases.release_file import load_release
from dpgm_core.releases.session import spend_steps
from dpgm_core.sources import as_source

DOMAIN = Domain.from_sizes(dict.fromkeys("abcd", 2))
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])
MU = Budget.gdp("0.5")
WHOLE = Budget.approx(1, "1e-6")
PI = Fraction(355, 113)


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(5)
    made = rng.integers(0, 2, (2000, 4))
    made[:, 1] = np.where(rng.random(2000) < 0.8, made[:, 0], made[:, 1])
    return made


def run(codes, target, budget, **more):
    chosen = {} if isinstance(target, Structure) else {"workload": DOMAIN}
    terms = Terms(neighbours="add-remove", total=2000)
    settings = {"terms": terms, "randomness": SeededRandomness(7), "learner": "naive-mle"} | chosen
    return dpgm.fit(codes, target, budget, **settings | more)


def ledger_of(tmp_path, budget=WHOLE, **more):
    path = tmp_path / "x.ledger"
    return Ledger.create(path, name="x", budget=budget, neighbours="add-remove", account="gaussian", **more)


@pytest.mark.parametrize("split", ["even", "optimal", {"holdout": 0.1}, "contrasts"])
def test_named_tables_under_mu_cost_at_most_what_is_asked(codes, split, tmp_path):
    """Claim: the noise's certified price, for every split, within 1e-6; the guarantee says mu and what it implies."""
    ledger = ledger_of(tmp_path, MU)
    fitted = run(codes, PAIRS, MU, mechanism="gaussian", split=split, learner="eb-map", ledger=ledger)
    assert MU * Fraction(999_999, 10**6) <= ledger.spent() <= MU
    for one in fitted.releases[0].calibrations:
        event, square = one.noise.event, one.sensitivity.l2_squared
        assert gaussian_mu_squared(one.noise.sigma_squared, square) == one.noise.cost.mu_squared
        assert event.kind == "discrete-gaussian"
    said = fitted.releases[0].guarantee()
    assert "mu = " in said and "(GDP) under add-remove" in said and "It implies (epsilon, delta) = (" in said


def test_laplace_noise_under_mu_costs_by_its_pure_epsilon(codes):
    """Claim: (355/226) epsilon^2 of the scale, so a run of it under mu is honest."""
    fitted = run(codes, PAIRS, MU, mechanism="laplace")
    (one,) = fitted.releases[0].calibrations
    epsilon = one.sensitivity.l1 / one.noise.scale
    assert fitted.releases[0].cost.mu_squared == Fraction(355, 226) * epsilon**2 <= MU.mu_squared


@pytest.mark.parametrize("selector", ["mst", "oneshot", "privbayes", "grow"])
def test_a_session_under_mu_pays_pi_rho_for_each_choice(codes, selector, tmp_path):
    """Claim: B and what is planned for choices are the mu; the file verifies, and a mu less in it does not."""
    fitted = run(codes, selector, MU, save_release=tmp_path / "x.dpgm")
    release = load_release(tmp_path / "x.dpgm")
    account = release.session.account
    planned = sum(count * rho for count, rho in account.choices)
    assert (1 - Fraction(1, 10**4)) * MU.mu_squared < account.mu_squared + PI * planned <= MU.mu_squared
    left = spend_steps(release.session, release.cost, release.steps)
    assert release.cost == MU and left.mu_squared >= 0
    with pytest.raises(BudgetError, match="does not cover"):
        spend_steps(release.session, MU * Fraction(999, 1000), release.steps)
    assert fitted.releases[0].guarantee() == release.guarantee()


def test_a_session_by_hand_under_mu(codes):
    """Claim: Gaussian steps spend half of B, then the rest, and nothing beyond B is drawn."""
    curator = dpgm.LiveCurator(
        as_source(codes), Structure(DOMAIN, [(one,) for one in "abcd"]), dpgm.make("mechanism", "gaussian"),
        terms=Terms(neighbours="add-remove", total=2000), budget=MU, randomness=SeededRandomness(1),
    )  # fmt: skip
    with curator.session(workload=Workload.of(DOMAIN, [("a", "b"), ("c", "d")])) as session:
        assert session.budget == MU.to_zcdp() and session.choices_left == ()
        session.measure([("a",)], session.remaining * Fraction(1, 2))
        before = session.remaining.rho
        assert MU.to_zcdp().rho / 2 <= before < MU.to_zcdp().rho * Fraction(50_001, 100_000)
        with pytest.raises(Overspent):
            session.measure([("b",)], session.remaining * Fraction(1001, 1000))
        session.measure([("b",)], session.remaining)
        assert session.remaining.rho < Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        (PAIRS, {"learner": "psgd"}, "no account for rounds of subsamples; ask for"),
        ({"name": "mrf-fw", "width": 1}, {}, "cannot spend mu = 0.5 .GDP.: its choices are not planned; ask for"),
        ({"name": "mrf-stable", "blocks": 5}, {}, "needs an \\(epsilon, delta\\)"),
        ("mst", {"mechanism": "laplace"}, "exact|core's own"),
        (PAIRS, {"budget": Budget.zcdp("0.01"), "mechanism": "gaussian"}, "zCDP does not imply GDP; ask for mu, or"),
        (Structure(DOMAIN, [("a", "b")]), {"learner": {"name": "mrf-fw", "width": 1}}, "spends epsilon or rho, not mu"),
    ],
)
def test_what_has_no_price_in_mu_is_refused_before_the_charge(codes, target, more, words, tmp_path):
    ledger = ledger_of(tmp_path, Budget.gdp(2))
    with pytest.raises(BudgetError, match=words) as caught:
        run(codes, target, more.pop("budget", MU), ledger=ledger, **more)
    assert not ledger.history() and "\n" not in str(caught.value)


@pytest.mark.parametrize("target", [PAIRS, "mst", "oneshot"])
def test_a_run_of_an_epsilon_and_delta_is_charged_the_mu_within_it(codes, target, tmp_path):
    """Claim: where all it does has a price in mu; three runs fit where the sum of epsilons would not."""
    ledger = ledger_of(tmp_path)
    each = Budget.approx("0.5", "1e-6")
    for _ in range(3):
        fitted = run(codes, target, each, ledger=ledger, mechanism="gaussian")
        assert fitted.releases[0].cost <= each.gdp_within()
    costs = [one.cost for one in ledger.history()]
    assert all(each.gdp_within() * Fraction(999_999, 10**6) <= one <= each.gdp_within() for one in costs)
    assert ledger.terms.total(costs).epsilon < Fraction(19, 20)
    with pytest.raises(Overspent, match=r"of mu = ~0\.236704 \(GDP\) is spent"):
        run(codes, target, each, ledger=ledger, mechanism="gaussian")


def test_what_has_no_mu_goes_to_the_part_for_it_or_is_refused(codes, tmp_path):
    """Claim: subsampled rounds are an (epsilon, delta), charged to `other`; Gaussian runs never take from there."""
    each = Budget.approx("0.4", "4e-7")
    plain = ledger_of(tmp_path, Budget.approx(2, "1e-6"))
    rounds = {"learner": {"name": "psgd", "epochs": 1, "sampling_rate": 0.5}, "mechanism": "gaussian"}
    with pytest.raises(BudgetError, match="has no part for charges that have none"):
        run(codes, PAIRS, each, ledger=plain, **rounds)
    assert not plain.history()
    path = tmp_path / "y"
    path.mkdir()
    ledger = ledger_of(path, Budget.approx(2, "1e-6"), other=Budget.approx("0.5", "5e-7"))
    run(codes, PAIRS, each, ledger=ledger, **rounds)
    run(codes, PAIRS, each, ledger=ledger, mechanism="gaussian")
    assert [one.cost.kind for one in ledger.history()] == ["approx", "gdp"]
    with pytest.raises(Overspent):
        run(codes, PAIRS, each, ledger=ledger, **rounds)


@pytest.mark.parametrize("count", [0, 3])
def test_an_account_under_mu_counts_planned_choices_as_pi_rho(count):
    each = Fraction(1, 100)
    account = SessionAccount(mu_squared=Fraction(1, 4) - PI * count * each, choices=((count, each),) if count else ())
    account.check(Budget.gdp("0.5"))
    with pytest.raises(BudgetError, match="does not cover"):
        account.check(Budget("gdp", mu_squared=Fraction(1, 4) - Fraction(1, 10**30)))
