"""The Gaussian account of a ledger: its claim against every adaptive sequence of charges, wrong ones, and its file."""

import contextlib
import json
import math
import sqlite3
from fractions import Fraction

import attrs
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.errors import BudgetError, ModelFileError, Overspent
from dpgm_core.privacy import gdp, ledger_terms
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gaussian import gaussian_mu_squared, normal_delta
from dpgm_core.privacy.ledger import Ledger, largest_release
from dpgm_core.privacy.ledger_file import GAUSSIAN_VERSION, VERSION, digest
from dpgm_core.privacy.ledger_terms import LedgerTerms
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import best_guess
from tests.pages import DOCS
from tests.privacy import test_session_account as adaptive

EPSILONS = np.array([float(one) for one in adaptive.EPSILONS])


def terms_of(budget, other=None, mu_squared=None):
    """Terms of a Gaussian ledger as `Ledger.create` makes them."""
    if mu_squared is None:
        curve = budget if other is None else budget - other
        mu_squared = (curve.gdp_within() if curve.kind == "approx" else curve).mu_squared
    return LedgerTerms(
        name="x", budget=budget, neighbours=Neighbours.ADD_REMOVE, unit="one", person=None, rows_per_person=1,
        conversion_delta=None, account="gaussian", mu_squared=mu_squared, other=other,
    )  # fmt: skip


# --- Releases, exactly, and what they are charged ---------------------------------------------------


@attrs.frozen
class Gaussian(adaptive.Noise):
    @property
    def cost(self):
        return Budget("gdp", mu_squared=gaussian_mu_squared(self.variance, self.shift**2))


@attrs.frozen
class Response:
    epsilon: Fraction

    def pair(self):
        p = 1 / (1 + math.exp(-self.epsilon))
        return np.array([p, 1 - p]), np.array([1 - p, p])

    @property
    def cost(self):
        return Budget.pure(self.epsilon)


@attrs.frozen
class Revealing:
    """Randomised response of epsilon that reveals all with probability delta: the worst (epsilon, delta)-DP pair."""

    epsilon: Fraction
    chance: Fraction

    def pair(self):
        p, q = Response(self.epsilon).pair()
        rest = 1 - float(self.chance)
        return np.array([self.chance, *(rest * p), 1e-300], float), np.array([1e-300, *(rest * q), self.chance], float)

    @property
    def cost(self):
        return Budget.approx(self.epsilon, self.chance)


def worst(menu, terms, depth, **more):
    """The largest divergence at each of EPSILONS of any sequence of charges that the ledger takes."""

    def charged(one, costs):
        try:
            terms.refuse(one.cost, costs)
        except (Overspent, BudgetError):
            return None
        return [*costs, one.cost]

    return adaptive.worst(menu, [], charged, depth, **more)


def excess(menu, terms, depth, **more):
    """By how much sequences of charges exceed what the ledger promises at most, and the largest ratio that counts.

    Of mu its whole curve; of an (epsilon, delta) the curve of its mu, with the part for others added.
    """
    other = terms.other or Budget.zero("approx")
    shifted = EPSILONS - float(other.epsilon)
    claim = normal_delta(math.sqrt(terms.mu_squared), shifted) + float(other.delta)
    return adaptive.compare(worst(menu, terms, depth, **more), claim)


def sum_of(*releases):
    """A ledger of the mu that these come to."""
    total = sum((one.cost.to_gdp() for one in releases), Budget.zero("gdp"))
    return terms_of(total)


N1, N2, N4, N8 = (Gaussian(Fraction(v)) for v in (1, 2, 4, 8))
WIDE = Gaussian(Fraction(3), 2)
R1, R3, R7 = (Response(Fraction(e)) for e in ("0.1", "0.3", "0.7"))
LEAK = Revealing(Fraction(3, 10), Fraction(1, 50))
WHOLE, OTHER = Budget.approx("1.2", "0.05"), Budget.approx("0.3", "0.02")
CASES = {
    "noise": ([N1, N2], sum_of(N1, N2), 2),
    "noise of three widths": ([N2, N4, N8], sum_of(N2, N4), 3),
    "shifts": ([N2, WIDE], sum_of(WIDE, N2), 2),
    "pure": ([R3, R7], sum_of(R7, R3, R3), 3),
    "pure and noise": ([R3, R1, N4], sum_of(N4, R3, R1), 3),
    "an (epsilon, delta)": ([N4, N8, R3], terms_of(Budget.approx("1", "0.05")), 3),
    "with another part": ([N4, LEAK, R3], terms_of(WHOLE, OTHER), 3),
    "another part alone": ([LEAK], terms_of(WHOLE, OTHER), 2),
    "another part in two": (
        [N8, Revealing(Fraction(3, 20), Fraction(1, 100)), Revealing(Fraction(1, 10), Fraction(1, 200))],
        terms_of(WHOLE, OTHER),
        3,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_adaptive_sequence_of_charges_exceeds_the_claim(case):
    """Claim: of every strategy of the menu, exactly; amounts depend on what came out before, and some come close."""
    menu, terms, depth = CASES[case]
    above, ratio = excess(menu, terms, depth)
    assert above <= 1e-12 and ratio > (0.3 if terms.other or terms.budget.kind == "approx" else 0.85)


def test_a_whole_epsilon_and_delta_is_never_exceeded():
    """Claim: at the ledger's own (epsilon, delta), with a part for others, and the filter lets much through."""
    menu, terms = [N8, LEAK, R3], terms_of(WHOLE, OTHER)
    found = np.interp(float(WHOLE.epsilon), EPSILONS, worst(menu, terms, 3))
    assert 0.01 < found <= float(WHOLE.delta)


@pytest.mark.parametrize("release", [Gaussian(Fraction(8)), Response(Fraction(1, 100)), Gaussian(Fraction(60), 3)])
def test_one_charge_reaches_the_claim(release):
    """Claim: to 2e-3, so no price could be less."""
    above, ratio = excess([release], sum_of(release), 1)
    assert above <= 1e-12 and ratio > 0.998


def test_the_price_of_continuous_noise_is_found_wrong(monkeypatch):
    """Claim: mu^2 = L2^2 / sigma^2 exceeds the claim."""
    own = Gaussian.cost
    price = property(lambda one: Budget("gdp", mu_squared=Fraction(one.shift**2) / one.variance))
    monkeypatch.setattr(Gaussian, "cost", price)
    half = Gaussian(Fraction(1, 2))
    above, _ = excess([half], sum_of(half), 1)
    assert above > 0.04
    above, _ = excess([N1, N2], sum_of(N1, N2), 2)
    assert above > 0.003
    monkeypatch.setattr(Gaussian, "cost", own)
    assert excess([N1, N2], sum_of(N1, N2), 2)[0] <= 1e-12


@attrs.frozen
class Pick(adaptive.Pick):
    """A choice that is rho-zCDP, charged as mu^2 = 2 rho."""

    @property
    def cost(self):
        return Budget("gdp", mu_squared=2 * self.rho)


def test_half_of_mu_squared_for_rho_is_found_wrong():
    """Claim: charging what is rho-zCDP as mu^2 = 2 rho, in place of refusing it, exceeds the claim."""
    one = Pick(Fraction(8, 100))
    assert excess([one], sum_of(one), 1)[0] > 0.03
    with pytest.raises(BudgetError, match="zCDP does not imply GDP; ask for mu, or \\(epsilon, delta\\)"):
        sum_of(N1).refuse(Budget.zcdp("1e-9"), [])


def test_a_pure_epsilon_counted_as_its_square_is_found_wrong(monkeypatch):
    """Claim: mu^2 = epsilon^2 in place of (pi / 2) epsilon^2, by one charge and by three."""
    monkeypatch.setattr("dpgm_core.privacy.budget.PURE_MU_SQUARED", Fraction(1))
    assert excess([R7], sum_of(R7), 1)[0] > 0.04
    assert excess([R3], sum_of(R3, R3, R3), 3)[0] > 0.015
    assert gdp.PURE_MU_SQUARED > Fraction(math.pi) / 2 > Fraction(157, 100)


def test_an_epsilon_and_delta_added_into_mu_is_found_wrong(monkeypatch):
    """Claim: counting what is (epsilon, delta)-DP as the mu that stays within it exceeds the claim."""
    monkeypatch.setattr(Revealing, "cost", property(lambda one: Budget.approx(one.epsilon, one.chance).gdp_within()))
    above, _ = excess([LEAK], sum_of(LEAK), 1)
    assert above > 0.01
    above, _ = excess([LEAK], sum_of(LEAK, LEAK), 2)
    assert above > 0.02


def test_a_ledger_that_is_charged_after_the_outcome_is_found_wrong():
    """Claim: taking a charge back where the outcome speaks against a loss lets more through than it may."""
    above, _ = excess([N1], sum_of(N1), 3, refund=True)
    assert above > 0.02


def test_a_split_that_is_not_fixed_is_found_wrong():
    """Claim: a part for others that is not taken out of the curve exceeds the (epsilon, delta)."""
    whole = Budget.approx("1.2", "0.05")
    cheat = terms_of(whole).mu_squared
    terms = attrs.evolve(terms_of(whole, OTHER), mu_squared=terms_of(whole, OTHER).mu_squared)
    object.__setattr__(terms, "mu_squared", cheat)
    noise = Gaussian(1 / cheat + Fraction(1, 11))
    found = np.interp(1.2, EPSILONS, worst([noise, LEAK], terms, 2))
    assert found > 0.05 and worst([noise, LEAK], terms_of(whole, OTHER), 2).max() < 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(20))
def test_random_strategies_stay_within_the_claim(seed):
    """Claim: widths, shifts, epsilons and revealing charges drawn at random at each node, charged by the ledger."""
    rng = np.random.default_rng(seed)
    terms = terms_of(WHOLE, OTHER) if seed % 2 else terms_of(Budget.gdp(Fraction(int(rng.integers(30, 150)), 100)))

    def tree(costs, depth):
        kind = rng.integers(3)
        if kind == 0:
            one = Gaussian(Fraction(int(rng.integers(50, 900)), 100), int(rng.integers(1, 3)))
        elif kind == 1:
            one = Response(Fraction(int(rng.integers(1, 90)), 100))
        else:
            one = Revealing(Fraction(int(rng.integers(1, 20)), 100), Fraction(int(rng.integers(1, 15)), 1000))
        if depth == 0:
            return np.ones(1), np.ones(1)
        try:
            terms.refuse(one.cost, costs)
        except (Overspent, BudgetError):
            return tree(costs, depth - 1)
        return adaptive.branch(one, lambda: tree([*costs, one.cost], depth - 1))

    p, q = tree([], 3)
    other = terms.other or Budget.zero("approx")
    for epsilon in EPSILONS:
        claim = normal_delta(math.sqrt(terms.mu_squared), np.array(epsilon - float(other.epsilon)))
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= claim + float(other.delta) + 1e-12


# --- Conversions ----------------------------------------------------------------------------------


def exact_delta(mu_squared, epsilon):
    """By 60 digits."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


AMOUNTS = st.fractions("1/1000", 12, max_denominator=10**6)
DELTAS = st.sampled_from([Fraction(1, 10**k) for k in (1, 3, 6, 9, 12, 30)])


@settings(max_examples=60)
@given(AMOUNTS, AMOUNTS)
def test_delta_of_mu_is_rounded_up(mu, epsilon):
    """Claim: never below 60 digits, within 1e-6 of them, and at most scipy's `normal_delta` and that much more."""
    exact = exact_delta(mu**2, epsilon)
    if exact > mpmath.mpf(10) ** -200:
        assert exact <= gdp.gdp_delta(mu**2, epsilon) <= exact * (1 + mpmath.mpf("1e-6"))


@settings(max_examples=12)
@given(AMOUNTS, DELTAS)
def test_conversions_are_rounded_against_the_owner(epsilon, delta):
    """Claim: mu within an (epsilon, delta) implies it, no less than zCDP's; a little more does not."""
    whole = Budget.approx(epsilon, delta)
    try:
        within = whole.gdp_within()
    except BudgetError as error:
        assert "ask for zCDP" in str(error) and gdp.drawn_cells(epsilon, delta) < gdp.MOVED_CELLS
        return
    assert within.to_approx(delta) <= whole
    assert exact_delta(within.mu_squared, epsilon) <= float(delta)
    assert exact_delta(within.mu_squared * Fraction(100_002, 100_000), epsilon) > float(delta) * (1 - 3e-6)
    assert within.to_zcdp().rho > whole.zcdp_within().rho * Fraction(999, 1000)


@settings(max_examples=15)
@given(AMOUNTS, DELTAS)
def test_epsilon_of_mu_is_rounded_up_and_never_above_that_of_rho(mu, delta):
    """Claim: by 60 digits, the curve at it is within delta; 1e-9 less is not, where the curve says it."""
    budget = Budget.gdp(mu)
    epsilon = budget.to_approx(delta).epsilon
    assert 0 < epsilon <= budget.to_zcdp().to_approx(delta).epsilon
    assert exact_delta(mu**2, epsilon) <= float(delta)
    if epsilon < budget.to_zcdp().to_approx(delta).epsilon and epsilon > Fraction(1, 1000):
        assert exact_delta(mu**2, epsilon * (1 - Fraction(1, 10**6))) > float(delta) * (1 - 3e-6)


def test_kinds_that_imply_no_mu_say_so():
    """Claim: zCDP never becomes GDP, (epsilon, delta) only by what stays within it."""
    with pytest.raises(BudgetError, match="zCDP does not imply GDP"):
        Budget.zcdp(1).to_gdp()
    with pytest.raises(BudgetError, match="gdp_within"):
        Budget.approx(1, "1e-6").to_gdp()
    for budget in (Budget.pure(1), Budget.zcdp(1), Budget.gdp(1)):
        with pytest.raises(BudgetError, match="no mu stays within"):
            budget.gdp_within()
    # Of the last one the roundings of a double are more than such a delta at every mu; the search ends all the same.
    for parts in ((40, "1e-9"), (1, "1e-40"), (1, "1e-250"), ("1e-110", "1e-15")):
        with pytest.raises(BudgetError, match="no exact Gaussian curve"):
            Budget.approx(*parts).gdp_within()
    assert Budget.gdp(9).to_approx("1e-9") == Budget.gdp(9).to_zcdp().to_approx("1e-9")  # no room for drawn noise


@pytest.mark.parametrize("size", ["1e-180", "1e-30", "1e30", "1e180"])
def test_sizes_beyond_all_experience_are_converted_or_refused(size):
    """Claim: no error but ours, and what comes out is rounded against the owner as ever."""
    budget = Budget.gdp(size)
    implied = budget.to_approx("1e-9").epsilon
    assert 0 < implied <= budget.to_zcdp().to_approx("1e-9").epsilon
    assert 0.5 <= best_guess(budget) <= 1 and str(budget) and ledger_terms.part_text(budget, up=True)
    with pytest.raises(BudgetError, match="exact Gaussian curve"):
        Budget.approx(size, "1e-300").gdp_within()
    if Fraction(size) > 1:
        with pytest.raises(BudgetError, match="exact Gaussian curve"):
            Budget.approx(size, "1e-6").gdp_within()
    else:
        assert Budget.approx(size, "1e-6").gdp_within().to_approx("1e-6").epsilon <= max(
            Fraction(size), Fraction(1, 10**100)
        )


def test_a_pure_budget_and_its_mu_are_inverse():
    for epsilon in ("0.1", "1/3", "2"):
        back = Budget.pure(epsilon).to_gdp().to_pure()
        assert back <= Budget.pure(epsilon) <= back * (1 + Fraction(1, 10**15))


# --- Ledgers --------------------------------------------------------------------------------------


def create(path, budget, **more):
    return Ledger.create(path, name="survey", budget=budget, neighbours="add-remove", account="gaussian", **more)


def test_ten_runs_cost_less_than_their_sum(path):
    """Claim: the table of docs/privacy.md, rounded up: sums of epsilons, and of squares of mu, at 1e-6."""
    concentrated = Ledger.create(
        path.with_name("y"), name="y", budget=Budget.approx(9, "1e-5"), neighbours="add-remove"
    )
    gaussian = create(path, Budget.approx(9, "1e-6"))
    shown = (DOCS / "privacy.md").read_text(encoding="utf-8")
    for epsilon, most in (("0.1", 0.2982), ("0.5", 1.5341)):
        each = Budget.approx(epsilon, "1e-7")
        assert concentrated.terms.total([each] * 10) == Budget.approx(10 * each.epsilon, "1e-6")
        together = gaussian.terms.total([each.gdp_within()] * 10)
        assert together.delta == Fraction(1, 10**6) and most - 1e-4 < float(together.epsilon) <= most
        assert float(together.epsilon) < float((each.zcdp_within() * 10).to_approx("1e-6").epsilon)
        assert f"({10 * float(epsilon):.1f}, 10⁻⁶)" in shown and f"({most}, 10⁻⁶)" in shown


def test_a_ledger_of_mu_adds_squares_exactly(path):
    """Claim: 3/5 and 4/5 fill 1 to the last part, and a pure epsilon counts (355/226) epsilon^2."""
    ledger = Ledger.create(path, name="survey", budget=Budget.gdp(1), neighbours="add-remove")
    assert ledger.terms.account == "gaussian"
    ledger.charge(Budget.gdp("0.6"))
    assert ledger.remaining() == Budget.gdp("0.8")
    with pytest.raises(
        Overspent, match=r"mu = 0\.6 \(GDP\) of mu = 1 \(GDP\) is spent and only mu = 0\.8 \(GDP\) is left"
    ):
        ledger.charge(Budget("gdp", mu_squared=Fraction(64, 100) + Fraction(1, 10**300)))
    ledger.charge(Budget.pure("0.1"))
    assert ledger.spent().mu_squared == Fraction(36, 100) + Fraction(355, 22600)
    ledger.charge(ledger.remaining())
    assert ledger.remaining().is_zero and Ledger.open(path).spent() == Budget.gdp(1)
    for refused, words in (
        (Budget.zcdp("1e-9"), "zCDP does not imply GDP"),
        (Budget.approx("1e-9", "1e-9"), "no part"),
    ):
        with pytest.raises(BudgetError, match=words):
            ledger.check(refused)


def test_another_part_is_fixed_and_separate(path):
    """Claim: what has no mu is charged to its part alone, and never takes from the other."""
    other = Budget.approx("0.2", "2e-7")
    ledger = create(path, Budget.approx(1, "1e-6"), other=other)
    whole = Budget.approx("0.8", "8e-7").gdp_within()
    assert ledger.remaining() == whole
    ledger.charge(Budget.approx("0.1", "1e-7"), note="labels")
    assert ledger.remaining() == whole
    ledger.charge(whole)
    ledger.charge(Budget.approx("0.1", "1e-7"))
    with pytest.raises(Overspent, match="nothing was charged"):
        ledger.charge(Budget.approx("1e-9", "1e-30"))
    plain = ledger.to_dict()
    assert Budget.parse(plain["spent_in_all"]) <= Budget.approx(1, "1e-6") and plain["one_release"] is None
    assert Budget.parse(plain["other_spent"]) == other == Ledger.open(path).terms.other


@pytest.mark.parametrize("account", ["gaussian", "concentrated"])
def test_what_a_file_could_not_read_back_is_refused(path, account):
    """Claim: an (epsilon, delta) of which one is 0, such as what is left when all delta is spent, damages no ledger."""
    more = {"other": Budget.approx("0.2", "2e-7")} if account == "gaussian" else {}
    ledger = Ledger.create(
        path, name="survey", budget=Budget.approx(1, "1e-6"), neighbours="add-remove", account=account, **more
    )
    ledger.charge(Budget.approx("0.1", "1e-7"))
    for odd in (Budget("approx", epsilon=Fraction(1, 100)), Budget("approx", delta=Fraction(1, 10**9))):
        with pytest.raises(BudgetError, match="both are positive"):
            ledger.charge(odd)
    assert len(Ledger.open(path).history()) == 1


def test_describe_says_epsilon_spent_and_left(path):
    """Claim: rounded up and down, at the ledger's delta, and what one more release may ask for fits exactly."""
    ledger = create(path, Budget.approx(1, "1e-6"), other=Budget.approx("0.1", "1e-7"))
    for _ in range(3):
        ledger.charge(Budget.approx("0.3", "9e-7").gdp_within())
    said = ledger.describe()
    spent = ledger.terms.total([entry.cost for entry in ledger.history()])
    shown = Fraction(said.split("spent:     (epsilon, delta) = (")[1].split(",")[0])
    assert shown - Fraction(1, 10**5) < spent.epsilon <= shown
    assert "Gaussian account: squares of mu add" in said and "or one release of (epsilon, delta) = (" in said
    assert "Charges that have no mu, such as labels, come to (epsilon, delta) = (0, 0)" in said
    more = largest_release(ledger.terms, [entry.cost for entry in ledger.history()])
    ledger.check(more.gdp_within())
    with pytest.raises(Overspent):
        ledger.check((more + Budget.approx("1e-5", "1e-99")).gdp_within())


def test_the_total_of_a_concentrated_ledger_is_shown_rounded_up(path):
    """Claim: what a conversion makes of rho is never shown as less than it is, nor what is left as more."""
    ledger = Ledger.create(path, name="survey", budget=Budget.approx(2, "1e-6"), neighbours="add-remove")
    for number in range(1, 12):
        ledger.charge(Budget.zcdp(Fraction(1, 7000 + number)))
        said = ledger.describe()
        spent = Fraction(said.split("spent:     (epsilon, delta) = (")[1].split(",")[0])
        left = Fraction(said.split("remaining: (epsilon, delta) = (")[1].split(",")[0])
        assert spent >= ledger.spent().epsilon > spent * (1 - Fraction(2, 10**5))
        assert left <= ledger.remaining().epsilon < left * (1 + Fraction(2, 10**5))


@pytest.mark.parametrize(
    ("budget", "more", "words"),
    [
        (Budget.pure(1), {}, "holds mu or an \\(epsilon, delta\\)"),
        (Budget.zcdp(1), {}, "zCDP does not imply GDP"),
        (Budget.approx(1, "1e-6"), {"other": Budget.approx(1, "1e-7")}, "leaves nothing"),
        (Budget.approx(1, "1e-6"), {"other": Budget.pure("0.1")}, "the part for other charges"),
        (Budget.gdp(1), {"other": Budget.approx("0.1", "1e-7")}, "part for other charges"),
        (Budget.approx(1, "1e-6"), {"conversion_delta": "1e-7"}, "adds no rho"),
        (Budget.approx(40, "1e-9"), {}, "no exact Gaussian"),
        (Budget.approx(18, "1e-9"), {}, "no exact Gaussian"),
    ],
)
def test_terms_that_do_not_go_together_are_refused(path, budget, more, words):
    """Claim: in one sentence, and no file is made."""
    with pytest.raises(BudgetError, match=words):
        create(path, budget, **more)
    assert not path.exists()


def test_concentrated_ledgers_are_as_they_were(path):
    """Claim: schema 3, the same document; mu counts as mu^2 / 2 of rho; no mu budget and no other part."""
    ledger = Ledger.create(path, name="survey", budget=Budget.zcdp(1), neighbours="add-remove")
    assert "account" not in ledger.terms.to_dict() and version(path) == VERSION
    ledger.charge(Budget.gdp(1))
    assert ledger.spent() == Budget.zcdp("0.5") and [entry.cost for entry in ledger.history()] == [Budget.zcdp("0.5")]
    for budget, more, words in (
        (Budget.gdp(1), {"account": "concentrated"}, "account = 'gaussian'"),
        (Budget.approx(1, "1e-6"), {"other": Budget.approx("0.1", "1e-7")}, "account = 'gaussian'"),
        (Budget.approx(1, "1e-6"), {"account": "exact"}, "one of concentrated, gaussian"),
    ):
        with pytest.raises(BudgetError, match=words):
            Ledger.create(path.with_name("z"), name="z", budget=budget, neighbours="add-remove", **more)


@contextlib.contextmanager
def database(path):
    """The file behind the ledger's back, its tally mended."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
        connection.execute("UPDATE tally SET digest = ?", (digest(connection),))


def version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


EDITS = {
    "more mu": lambda plain: {"mu_squared": str(Fraction(plain["mu_squared"]) * Fraction(1_000_003, 1_000_000))},
    "less for others": lambda plain: {"other": {"epsilon": "1/20", "delta": "1/20000000"}},
    "nothing for others": lambda plain: {"other": None},
    "another budget": lambda plain: {"budget": {"epsilon": "99/100", "delta": "1/1000000"}},
    "concentrated": lambda plain: {"account": "concentrated", "conversion_delta": "1/2000000"},
    "no account": lambda plain: {"account": None},
    "no number": lambda plain: {"mu_squared": None},
    "a negative one": lambda plain: {"mu_squared": "-1"},
    "a huge one": lambda plain: {"mu_squared": "1" + "0" * 399},
    "a huge epsilon": lambda plain: {"budget": {"epsilon": "1" + "0" * 399, "delta": "1/1000000"}},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_account_edited_in_the_owners_favour_is_refused(path, edit):
    """Claim: though its tally is mended, in one line, whatever is called."""
    ledger = create(path, Budget.approx(1, "1e-6"), other=Budget.approx("0.1", "1e-7"))
    ledger.charge(ledger.remaining())
    ledger.charge(Budget.approx("0.1", "1e-7"))
    assert version(path) == GAUSSIAN_VERSION
    with database(path) as file:
        plain = json.loads(file.execute("SELECT document FROM terms").fetchone()[0])
        changed = {
            name: value for name, value in (plain | EDITS[edit](plain)).items() if value is not None or name == "person"
        }
        changed.setdefault("conversion_delta", None)
        file.execute("UPDATE terms SET document = ?", (json.dumps(changed),))
    for call in (lambda: Ledger.open(path), ledger.history, lambda: ledger.charge(Budget.gdp("0.001"))):
        with pytest.raises(ModelFileError, match="damaged") as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("schema", [VERSION, GAUSSIAN_VERSION])
def test_a_schema_that_does_not_fit_the_account_is_refused(path, schema):
    """Claim: an older dpgm never takes a Gaussian ledger for a concentrated one, nor this one the reverse."""
    if schema == VERSION:
        create(path, Budget.gdp(1))
    else:
        Ledger.create(path, name="survey", budget=Budget.pure(1), neighbours="add-remove")
    with database(path) as file:
        file.execute(f"PRAGMA user_version = {schema}")
    with pytest.raises(ModelFileError, match="damaged"):
        Ledger.open(path)


def test_the_number_of_charges_has_a_limit(monkeypatch):
    """Claim: that of the cells that the account has room for, told in words; a ledger of mu has none."""
    terms = terms_of(Budget.approx(1, "1e-9"))
    assert terms.max_charges > 10**7 and sum_of(N1).max_charges is None
    ledger_terms._max_charges.cache_clear()
    monkeypatch.setattr(ledger_terms, "MOVED_CELLS", gdp.drawn_cells(Fraction(1), Fraction(1, 10**9)) // 1500)
    tiny = Budget("gdp", mu_squared=Fraction(1, 10**9))
    terms.refuse(tiny, [tiny] * (terms.max_charges - 1))
    with pytest.raises(Overspent, match="has room for 15"):
        terms.refuse(tiny, [tiny] * terms.max_charges)
    ledger_terms._max_charges.cache_clear()


@pytest.mark.parametrize("budget", [Budget.gdp(1), Budget.approx(1, "1e-6")])
def test_public_n_is_bounded_by_twice_mu(path, budget):
    """Claim: charges of mu alone say 2 mu between data sets of equal N, also under an (epsilon, delta)."""
    ledger = create(path, budget)
    ledger.charge(Budget.gdp("0.1"), conditions=("conditional on public N",))
    assert "one person all charges cost at most mu = 0.2 (GDP)" in ledger.describe()
