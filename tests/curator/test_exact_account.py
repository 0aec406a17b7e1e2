"""Sessions under an exact Gaussian account: what steps cost, what is refused, votes and private bins beside it."""

from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpgm_core import Budget, BudgetError, Domain, Overspent, SeededRandomness, Structure, Workload, load_release, make
from dpgm_core.domain.attribute import Attribute
from dpgm_core.privacy.bins import bins_choices, plan_bins
from dpgm_core.privacy.gaussian import gaussian_mu_squared
from dpgm_core.privacy.session_account import SessionAccount, settle_account
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.steps import Choice
from tests.curator.opened import DOMAIN, WORKLOAD, curator, flat, ledger, slopes
from tests.curator.test_voting import HALF, TWICE, VOTES_ON, edge_votes, voting
from tests.fixtures import Unread, live_curator
from tests.private_columns import private_bins

WHOLE = Budget.approx(1, "1e-6")


def account(*choices, whole=WHOLE, fixed=()):
    """With room for so many choices, each of a part of the budget."""
    made = settle_account(whole, fixed, lambda rho: tuple((count, part * rho) for count, part in choices))
    assert isinstance(made, SessionAccount)
    return made


def opened(own, **more):
    return curator(**{"budget": WHOLE} | more).session(workload=WORKLOAD, account=own)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_noise_costs_its_exact_price_and_planned_choices_nothing_more(tmp_path, neighbours):
    """Tables, scores and means take mu^2; choices as planned take none; the whole is charged once and can be read."""
    own, book = account((3, Fraction(1, 20))), ledger(tmp_path / "x.ledger", WHOLE, neighbours)
    settings = {"neighbours": neighbours, "save_to": tmp_path / "x.dpgm", "ledger": book}
    with opened(own, **settings) as session:
        assert session.budget == own.budget and WHOLE.zcdp_within() <= session.budget
        assert session.remaining == Budget.zcdp(own.mu_squared / 2)
        assert session.choices_left == (session.budget * Fraction(1, 20),) * 3
        each = session.budget * Fraction(1, 20)
        session.select(flat(groups=((0, 1), (1, 2))), each * 2)
        assert session.remaining == Budget.zcdp(own.mu_squared / 2) and len(session.choices_left) == 1
        before = session.remaining
        session.measure(["a", ("c", "b")], each)
        session.measure({("b", "a"): each, "d": each * 2})
        session.score(flat(), each)
        session.score(flat(), each, mean=True)
        session.select(flat(), each)
        assert session.choices_left == ()
        noises = [one for step in session.steps for one in getattr(step, "calibrations", [])]
        noises += [step.calibration for step in session.steps if hasattr(step, "calibration")]
        prices = [gaussian_mu_squared(one.noise.sigma_squared, one.sensitivity.l2_squared) for one in noises]
        assert len(prices) == 5 and before.rho - session.remaining.rho == sum(prices) / 2
        assert each * Fraction(99, 100) * 6 <= before - session.remaining <= each * 6
        session.measure([("c", "d")], session.remaining)
    assert [one.cost for one in book.history()] == [WHOLE]
    again = load_release(tmp_path / "x.dpgm")
    assert again.cost == WHOLE and "exact Gaussian curve of its noise with 3 planned choices" in again.guarantee()
    assert again.session is not None and again.session.account == own


def test_noise_is_narrower_than_under_zcdp():
    """By what the curve allows: the same share of the same (epsilon, delta) has 6.7 % less standard deviation."""
    with opened(account()) as session, curator(budget=WHOLE).session(workload=WORKLOAD) as other:
        narrow, wide = (one.measure(["a"], one.remaining).variances[0] for one in (session, other))
    assert 1 - np.sqrt(narrow / wide) == pytest.approx(0.067, abs=0.002)


def test_what_was_not_planned_is_paid_at_pi_over_two():
    """A choice sharper than any planned, one more than planned, and a descent; planned ones stay free meanwhile."""
    own = account((1, Fraction(1, 20)))
    with opened(own) as session:
        each, before = session.budget * Fraction(1, 20), session.remaining
        choice = session.select(flat(), each * 2)
        assert len(session.choices_left) == 1
        after = before.rho - choice.cost.rho * Fraction(355, 226)
        assert session.remaining.rho == after
        session.select(flat(), each)
        assert session.choices_left == () and session.remaining.rho == after
        choice = session.select(flat(), each * Fraction(1, 2))
        after -= choice.cost.rho * Fraction(355, 226)
        descent = session.descend(slopes(), each)
        assert session.remaining.rho == after - descent.cost.rho * Fraction(355, 226)
        with pytest.raises(Overspent):
            session.select(flat(), session.remaining)
        with pytest.raises(Overspent):
            session.measure(["a"], session.budget)
        session.measure(["a"], session.remaining)


def test_a_holdout_is_not_spent_by_choices():
    with opened(account((1, Fraction(1, 20)))) as session:
        session.reserve_holdout(Fraction(1, 2))
        kept = session.budget
        with pytest.raises(Overspent):
            session.select(flat(), session.remaining)
        session.measure(["a"], session.remaining)
        assert session.remaining <= kept * Fraction(1, 10**6) and session.budget == kept
        session.measure_holdout(Structure(DOMAIN, [("a", "b")]))
        assert session.steps[-1].holdout


@pytest.mark.parametrize(
    ("own", "budget"),
    [
        (account(whole=Budget.approx(2, "1e-6")), WHOLE),
        (account(whole=Budget.approx(1, "1e-5")), WHOLE),
        (account(), Budget.zcdp(1)),
        (account(), Budget.pure(1)),
    ],
)
def test_an_account_that_is_not_paid_for_is_refused(tmp_path, own, budget):
    book = ledger(tmp_path / "x.ledger", budget)
    with pytest.raises(BudgetError, match="account"):
        opened(own, budget=budget, source=Unread(), ledger=book)
    assert not book.history()


def test_votes_are_taken_off_first(tmp_path):
    own = account(whole=TWICE - HALF)
    with pytest.raises(BudgetError, match="does not cover"):
        voting(Unread()).session(workload=VOTES_ON, votes=HALF, account=account(whole=TWICE))
    made = voting(save_to=tmp_path / "x.dpgm")
    with made.session(workload=VOTES_ON, votes=HALF, account=own) as session:
        session.vote(edge_votes(), HALF)
        session.measure([("x", "y")], session.remaining)
    (release,) = made.released
    assert (
        f"the sum of {HALF} for votes" in release.guarantee() and f"and {TWICE - HALF} for what" in release.guarantee()
    )
    assert load_release(tmp_path / "x.dpgm").guarantee() == release.guarantee()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_private_bins_are_planned_choices(tmp_path, neighbours):
    """Each level of each column; an account without room for them pays for them, or is refused before the charge."""
    domain = Domain([private_bins("age", 8), Attribute.of_size("b", 2)])
    ages = np.random.default_rng(0).integers(0, 100, 4000)
    workload, terms = Workload.all(domain), Terms(neighbours=neighbours)
    levels = bins_choices(plan_bins(domain, ("age", "b"), WHOLE.zcdp_within(), terms))
    assert len(levels) == 3
    own = account(fixed=levels)

    def session(own):
        more = {"budget": WHOLE, "neighbours": neighbours, "randomness": SeededRandomness(1)}
        saved, data = tmp_path / f"{own.count}.dpgm", {"age": ages, "b": ages % 2}
        made = live_curator(data, Structure(domain, [("b",)]), save_to=saved, **more)
        return made, made.session(workload=workload, account=own)

    made, opened_with = session(own)
    with opened_with as session_open:
        assert session_open.choices_left == () and session_open.remaining.rho * 2 == own.mu_squared
        session_open.measure([("age", "b")], session_open.remaining)
    assert load_release(tmp_path / "3.dpgm").guarantee() == made.released[0].guarantee()
    made, opened_with = session(account())
    with opened_with as session_open:
        taken = sum(rho for _, rho in levels)
        assert session_open.remaining.rho == account().mu_squared / 2 - taken * Fraction(355, 226)
        session_open.measure([("age", "b")], session_open.remaining)
    load_release(tmp_path / "0.dpgm")


@attrs.frozen
class Switches:
    """Gaussian noise where a person moves at most so many cells, Laplace noise elsewhere."""

    cells: int
    own_randomness = None

    def noise(self, sensitivity, budget):
        return make("mechanism", "gaussian" if sensitivity.l0 <= self.cells else "laplace").noise(sensitivity, budget)


def test_another_noise_than_the_accounts_is_refused_before_the_charge(monkeypatch):
    """Also Gaussian noise where one cell moves, as it is tried, that would be refused at the first table of more."""
    made = curator(Unread(), budget=WHOLE)
    with pytest.raises(BudgetError, match="discrete Gaussian noise only; leave the mechanism out"):
        made.session(workload=WORKLOAD, account=account(), mechanism=Switches(1))
    monkeypatch.setattr("dpgm_core.curator.live.session_mechanism", lambda *_: Switches(0))
    with pytest.raises(BudgetError, match="discrete Gaussian noise only"):
        made.session(workload=WORKLOAD, account=account())
    assert made.remaining == WHOLE


def test_amounts_of_an_account_are_exact():
    made = SessionAccount(mu_squared=0.1, choices=((2, "0.3"),))
    assert made == SessionAccount(mu_squared=Fraction(1, 10), choices=((2, Fraction(3, 10)),))
    assert type(made.mu_squared) is type(made.choices[0][1]) is Fraction


def test_choices_come_out_as_under_zcdp():
    with opened(account((1, Fraction(1, 20)))) as session:
        each = session.budget * Fraction(1, 20)
        choice = session.select(flat(), each)
    assert isinstance(choice, Choice) and each * Fraction(999, 1000) <= choice.cost <= each
