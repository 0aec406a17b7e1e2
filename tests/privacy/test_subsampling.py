"""What subsampling costs against exact losses, and the noise of rounds."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpgm_core import Budget, BudgetError, Domain, PrivacyEvent, Sensitivity, Structure, Terms
from dpgm_core.privacy.accounting import (
    ORDERS,
    amplified_epsilon,
    compose,
    replaced_epsilon,
    replaced_gaussian,
    sampled_gaussian,
    sampling_probability,
)
from dpgm_core.privacy.rounds import round_noise
from tests.fixtures import Gauss, Lap, accountant, unit

RATES = [0.05, 0.5, 0.9]


def law(kind, scale, shift, reach):
    """Logarithms of the joint masses of noisy cells on -reach ... reach, one per entry of the shift, up to a constant
    that is the same for every shift. Of Laplace noise the ends stand for all beyond, where ratios of masses are alike.
    """
    z = np.arange(-reach, reach + 1.0)
    found = np.zeros(1)
    for step in shift:
        one = -np.abs(z - step) / scale if kind == "laplace" else -((z - step) ** 2) / (2 * scale**2)
        if kind == "laplace":
            one[[0, -1]] -= math.log1p(-math.exp(-1 / scale))
        found = np.add.outer(found, one).reshape(-1)
    return found


def mixed(rate, without, there):
    """The law of a person who takes part with probability `rate`."""
    return np.logaddexp(math.log1p(-rate) + without, math.log(rate) + there)


def counts(structure, rows):
    """What rows of codes add to all cells of tables of one attribute each."""
    found = np.zeros(structure.cells, int)
    for row in rows:
        for code, part in zip(row, structure.slices, strict=True):
            found[part.start + code] += 1
    return tuple(found.tolist())


TABLES = {
    "two cells": ({"a": 2}, 1),
    "three cells": ({"a": 3}, 1),
    "two tables": ({"a": 2, "b": 2}, 1),
    "one cell beside": ({"a": 2, "b": 1}, 1),
    "one cell alone": ({"a": 1}, 1),
    "two rows": ({"a": 2}, 2),
    "two rows, one cell beside": ({"a": 2, "b": 1}, 2),
}


def exactly(structure, most, scale, rate):
    """The largest loss over all outputs and all pairs of persons with 1 (or up to `most`) rows each, enumerated."""
    row = list(itertools.product(*(range(size) for size in structure.domain.sizes.values())))
    # with one row each nobody is without rows; of several some may be left out
    persons = [rows for n in {1, most} for rows in itertools.product(row, repeat=n)] + [()] * (most > 1)
    shifts = {counts(structure, rows) for rows in persons}
    reach = most + 1  # beyond the shifts a likelihood ratio is what it is there
    without = law("laplace", scale, (0,) * structure.cells, reach)
    laws = [mixed(rate, without, law("laplace", scale, shift, reach)) for shift in shifts]
    return max(float(np.max(one - other)) for one in laws for other in laws)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("scale", [0.7, 3.0])
@pytest.mark.parametrize("case", TABLES)
def test_the_pure_loss_is_the_largest_of_all_outputs_and_persons(case, scale, rate):
    """Never exceeded, and attained with one row each; with several rows only where no table has one cell."""
    sizes, most = TABLES[case]
    structure = Structure(Domain.from_sizes(sizes), [(name,) for name in sizes])
    terms = Terms(neighbours="replace-one", person="id" if most > 1 else None, rows_per_person=most)
    presence, exchange = terms.presence(structure).l1 / scale, terms.sensitivity(structure).l1 / scale
    found, exact = replaced_epsilon(presence, exchange, rate), exactly(structure, most, scale, rate)
    assert exact <= found + 1e-9
    if case != "two rows, one cell beside":  # there the sensitivity is an upper bound itself
        assert found == pytest.approx(exact, abs=1e-9)
    assert found <= exchange + 1e-12


@pytest.mark.parametrize("mutant", ["one cell forgotten", "presence as exchange", "as add-remove", "nobody without"])
def test_mutants_of_the_pure_bound_miss_the_exact_loss(mutant):
    """Each slip is off by more than the tolerance; those that forget something lie below the truth."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 1}), [("a",), ("b",), ("c",)])
    exact = exactly(structure, 1, 1.0, 0.5)
    wrong = {
        "one cell forgotten": replaced_epsilon(2.0, 4.0, 0.5),
        "presence as exchange": replaced_epsilon(4.0, 4.0, 0.5),
        "as add-remove": amplified_epsilon(3.0, 0.5),
        "nobody without": 4.0,  # the coin cannot help where P0 is in neither law
    }[mutant]
    assert replaced_epsilon(3.0, 4.0, 0.5) == pytest.approx(exact, abs=1e-9)
    assert abs(wrong - exact) > 0.01
    assert (wrong < exact) == (mutant in ("one cell forgotten", "as add-remove"))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rate", [Fraction(1, 2**32), Fraction(1, 3), 1 - Fraction(1, 2**32)])
@pytest.mark.parametrize("presence", ["1e-9", "0.3", "20", "249", "251", "1000"])
@pytest.mark.parametrize("part", ["0.001", "1", "2"])
def test_the_pure_bound_keeps_its_digits(rate, presence, part):
    """Tiny and huge epsilons and rates, against 400 digits."""
    with localcontext(prec=1000):
        e, q = Decimal(float(presence)), Decimal(rate.numerator) / Decimal(rate.denominator)
        d = e * Decimal(float(part))
        exact = ((1 - q + q * e.exp()) / (1 - q + q * (e - d).exp())).ln()
        found = replaced_epsilon(float(e), float(e) * float(part), float(rate))
        assert abs(Decimal(found) / exact - 1) < Decimal("1e-12")


SHIFTS = {  # of one person and another, and whether there is more than one row each
    "different cells": ((1, 0), (0, 1)),
    "other way": ((1,), (-1,)),  # clipped scores
    "a cell in common": ((1, 1, 0), (1, 0, 1)),
    "two rows": ((2, 0), (0, 2)),
    "fewer rows": ((2,), (1,)),
    "no rows": ((1,), (0,)),
    "two rows in two cells": ((1, 1), (0, 2)),
}


def squares(one, other):
    """The longest of two shifts and their distance, squared."""
    longest = max(sum(x * x for x in one), sum(x * x for x in other))
    return longest, sum((x - y) ** 2 for x, y in zip(one, other, strict=True))


def gaussian_laws(scale, rate, one, other):
    """Logarithms of P and Q, masses, of discrete Gaussian noise, all that counts enumerated."""
    reach = math.ceil(9 * scale) + 2
    reach = reach if len(one) < 3 else math.ceil(6 * scale) + 1
    without = law("gaussian", scale, (0,) * len(one), reach)
    without, *shifted = (
        found - np.logaddexp.reduce(without)
        for found in (without, *(law("gaussian", scale, s, reach) for s in (one, other)))
    )
    return tuple(mixed(rate, without, there) for there in shifted)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("scale", [0.6, 2.5])
@pytest.mark.parametrize("case", SHIFTS)
def test_gaussian_moments_bound_the_exact_ones(case, scale, rate):
    """At every order up to where tails are cut, in both directions."""
    presence, exchange = squares(*SHIFTS[case])
    bounds = replaced_gaussian(presence / scale**2, exchange / scale**2, rate)
    p, q = gaussian_laws(scale, rate, *SHIFTS[case])
    few = [place for place, order in enumerate(ORDERS) if order <= 6][::2]
    for upper, lower in ((p, q), (q, p)):
        for place in few:
            order = ORDERS[place]
            exact = np.logaddexp.reduce(order * upper - (order - 1) * lower)
            assert exact <= bounds[place] + 1e-9
            assert bounds[place] <= order * (order - 1) * exchange / scale**2 / 2 + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_even_central_moments_bound_the_exact_ones(seed):
    """E |f - f'|^j <= E |g - g'|^2 ^ (j / 2), g of shifts sqrt(j - 1) times as long: closed forms (fixed seed)."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        scale = rng.uniform(1.5, 8)
        one, other = rng.integers(-2, 3, (2, 3))
        g, d = squares(tuple(one), tuple(other))
        g, d = g / scale**2, max(g, d) / scale**2
        for j in (2, 4, 6, 8):
            exact = math.fsum(
                math.comb(j, k)
                * (-1) ** k
                * math.exp(((one * (j - k) + other * k) ** 2 - one**2 * (j - k) - other**2 * k).sum() / (2 * scale**2))
                for k in range(j + 1)
            )
            assert exact <= (2 * math.exp((j - 1) * g) * -math.expm1(-(j - 1) * d / 2)) ** (j / 2) * (1 + 1e-9) + 1e-9


def test_the_gaussian_bound_is_near_the_truth_and_takes_the_exchange():
    """Within 2 % at order 2 and 25 % at 12; half the exchange, or add-remove's moments, lie below the truth."""
    scale, rate = 4.0, 0.05
    p, q = gaussian_laws(scale, rate, *SHIFTS["different cells"])
    for order, room in ((2, 1.02), (12, 1.25)):
        place = int(np.flatnonzero(order == ORDERS)[0])
        exact = np.logaddexp.reduce(order * p - (order - 1) * q)
        assert exact <= replaced_gaussian(1 / 16, 2 / 16, rate)[place] <= room * exact
        assert replaced_gaussian(1 / 16, 1 / 16, rate)[place] < exact
        assert sampled_gaussian(1 / 32, rate)[place] < exact


NEAR = Structure(Domain.from_sizes({"a": 2}), [("a",)])
REPLACED = Terms(neighbours="replace-one")


def composed(kind, scale, rounds, rate, structure=NEAR, terms=REPLACED):
    sensitivity = terms.sensitivity(structure)
    event = PrivacyEvent(
        kind=kind, scale=scale, sensitivity=float(sensitivity.l1 if "laplace" in kind else sensitivity.l2)
    )
    return compose(
        event, sensitivity, rounds=rounds, sampling_rate=rate, neighbours=terms.neighbours,
        presence=terms.presence(structure),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize(("rounds", "rate"), [(1, 0.5), (2, 0.1)])
def test_epsilon_holds_for_all_outputs(kind, rate, rounds):
    """At every bound's epsilon the exact hockey-stick divergence of the joint law is at most delta, both directions."""
    delta, family = 1e-3, kind.split("-")[1]
    reach = 3 if family == "laplace" else 9
    without, *shifted = (law(family, 1.5, shift, reach) for shift in ((0, 0), (1, 0), (0, 1)))
    laws = [np.exp(mixed(rate, without, there) - np.logaddexp.reduce(without)) for there in shifted]
    p, q = (one if rounds == 1 else np.multiply.outer(one, one).reshape(-1) for one in laws)
    accountant = composed(kind, 1.5, rounds, rate)
    for epsilon in (*accountant.bounds(delta).values(), accountant.epsilon(delta)):
        for upper, lower in ((p, q), (q, p)):
            assert np.maximum(upper - math.exp(epsilon) * lower, 0).sum() <= delta * 1.001


@pytest.mark.parametrize("kind", ["discrete-laplace", "discrete-gaussian"])
def test_a_subsample_costs_less_and_never_more_than_the_whole(kind):
    """Bounds fall with the rate, and meet those of the whole data set at 1."""
    whole = composed(kind, 20.0, 50, 1).epsilon(1e-6)
    found = [composed(kind, 20.0, 50, rate).epsilon(1e-6) for rate in (0.05, 0.3, 0.999)]
    assert found[0] < found[1] / 2 < whole / 2
    assert found == sorted(found) and found[-1] <= whole


def test_leaving_and_joining_is_a_bound():
    """Of Laplace noise on many tables it is the least, at a delta that pays for both steps; the exact law keeps it."""
    tables, scale, rate, delta = 24, 18.0, 0.3, 1e-6
    structure = Structure(
        Domain.from_sizes(dict.fromkeys(map(str, range(tables)), 2)), [(str(name),) for name in range(tables)]
    )
    epsilon = composed("discrete-laplace", scale, 2, rate, structure).epsilon(delta)
    joining = composed("discrete-laplace", scale, 2, rate, structure, Terms(neighbours="add-remove"))
    assert epsilon == pytest.approx(2 * joining.epsilon(delta / (1 + math.exp(epsilon / 2))), rel=0.02)
    assert epsilon >= 2 * joining.epsilon(delta / (1 + math.exp(epsilon / 2)))
    far = 1 / (1 + math.exp(1 / scale))
    without, there = (binom.logpmf(np.arange(tables + 1), tables, chance) for chance in (far, 1 - far))
    p = np.exp(np.add.outer(mixed(rate, without, there), without))
    p, q = (np.multiply.outer(one, one) for one in (p, p.T))
    assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta < np.maximum(p - math.exp(epsilon / 2) * q, 0).sum()


def test_truncated_noise_is_not_amplified():
    """It costs what the whole data set does."""
    event = PrivacyEvent(kind="truncated-discrete-laplace", scale=20.0, sensitivity=2.0, bound=400)
    one, whole = (
        compose(
            event, REPLACED.sensitivity(NEAR), rounds=3, sampling_rate=rate, neighbours="replace-one",
            presence=REPLACED.presence(NEAR),
        )
        for rate in (0.1, 1)
    )  # fmt: skip
    assert one.epsilon("1e-4") == whole.epsilon("1e-4") < math.inf


def test_subsamples_under_replace_one_need_both_sensitivities():
    """Without presence, or with the two in the wrong places, it is refused; at rate 1 neither matters."""
    small, large = (Sensitivity(l0=n, l1=n, l2_squared=n, linf=1) for n in (1, 5))
    event = PrivacyEvent(kind="discrete-laplace", scale=4.0, sensitivity=5.0)
    for presence, match in ((None, "need presence"), (small, "more than twice")):
        given = {"rounds": 2, "neighbours": "replace-one", "presence": presence}
        with pytest.raises(BudgetError, match=match):
            compose(event, large, sampling_rate=0.5, **given)
        with pytest.raises(BudgetError, match=match):
            round_noise(None, large, Budget.pure(1), sampling_rate=0.5, **given)
        assert compose(event, large, **given).pure_epsilon() == 2.5


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_subsampling_never_pays_for_counts(relation):
    """Counts over their rate are noisier than those of all: by beta ln(1 + t / beta), t = e^eps - 1, rising in beta."""
    terms, epsilon = Terms(neighbours=relation), Fraction(1, 10)
    rates = [0.01, 0.1, 0.5, 1]
    scaled = []
    for rate in rates:
        noise, _ = round_noise(
            Lap(), terms.sensitivity(NEAR), Budget.pure(epsilon), rounds=1, sampling_rate=rate, neighbours=relation,
            presence=terms.presence(NEAR),
        )  # fmt: skip
        scaled.append(noise.event.scale / rate)
    assert scaled == sorted(scaled, reverse=True) and scaled[0] > 2 * scaled[-1]
    if relation == "add-remove":
        t = math.expm1(epsilon)
        assert scaled == pytest.approx([1 / (beta * math.log(1 + t / beta)) for beta in rates], rel=1e-6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (8, 1e-9), (1, 1e-12)])
@pytest.mark.parametrize(("rounds", "rate"), [(1, 1.0), (50, 1.0), (200, 0.05)])
def test_bisected_noise_uses_the_budget_up_and_no_more(epsilon, delta, rounds, rate):
    """The noise found composes to within the budget, and 1 % less noise does not."""
    noise, each = round_noise(
        Gauss(), unit(24), Budget.approx(epsilon, delta), rounds=rounds, sampling_rate=rate, neighbours="add-remove"
    )
    assert noise.cost == each
    assert accountant("discrete-gaussian", noise.event.scale, 24, rounds=rounds, rate=rate).epsilon(
        delta
    ) <= epsilon * (1 + 1e-12)
    less = accountant("discrete-gaussian", noise.event.scale * 0.99, 24, rounds=rounds, rate=rate)
    assert less.epsilon(delta) > epsilon


def test_pure_rounds_use_the_budget_up():
    """Pure budgets invert the amplification exactly, small, large and at rate 1."""
    for epsilon, rounds, rate in [(1, 10, 0.1), (5000, 2, 0.1), ("1/3", 3, 1), ("1e-8", 1, 1e-9)]:
        _, each = round_noise(
            Lap(), unit(3), Budget.pure(epsilon), rounds=rounds, sampling_rate=rate, neighbours="add-remove"
        )
        base, q = float(each.epsilon), float(sampling_probability(rate))
        amplified = math.log1p(q * math.expm1(base)) if base < 1 else base + math.log(q + (1 - q) * math.exp(-base))
        assert rounds * amplified == pytest.approx(float(Fraction(epsilon)), rel=1e-9)
        assert rounds * amplified <= float(Fraction(epsilon)) * (1 + 1e-12)


# Of three tables, one of them with one cell, under replace-one; and what a person's rows change there.
EXCHANGE, PRESENCE = Sensitivity(l0=4, l1=4, l2_squared=4, linf=1), Sensitivity(l0=3, l1=3, l2_squared=3, linf=1)
REPLACING = {"neighbours": "replace-one", "presence": PRESENCE}


def test_zcdp_rounds_share_rho():
    _, each = round_noise(Gauss(), unit(3), Budget.zcdp(1), rounds=4, sampling_rate=0.1, neighbours="add-remove")
    assert each == Budget.zcdp("1/4")
    noise, each = round_noise(Gauss(), EXCHANGE, Budget.zcdp(1), rounds=4, sampling_rate=0.1, **REPLACING)
    assert each == Budget.zcdp("1/4") and noise.event.sensitivity == 2


@pytest.mark.parametrize(
    ("epsilon", "rounds", "rate"), [(1, 10, 0.1), (5000, 2, 0.1), ("1/3", 3, 1), ("1e-6", 1, 1e-6)]
)
def test_pure_rounds_under_replace_one_use_the_budget_up(epsilon, rounds, rate):
    """The scale is that at which presence and exchange cost the budget together."""
    noise, _ = round_noise(Lap(), EXCHANGE, Budget.pure(epsilon), rounds=rounds, sampling_rate=rate, **REPLACING)
    q, scale = float(sampling_probability(rate)), noise.event.scale
    spent = rounds * replaced_epsilon(3 / scale, 4 / scale, q)
    wanted = float(Fraction(epsilon))
    assert wanted * (1 - 1e-9) <= spent <= wanted * (1 + 1e-12)


@pytest.mark.landing
def test_bisected_noise_under_replace_one_uses_the_budget_up():
    """The noise found composes to within the budget, 1 % less noise does not, and it needs more than add-remove."""
    budget, rate = Budget.approx(1, 1e-6), 0.3
    noise, _ = round_noise(Gauss(), EXCHANGE, budget, rounds=20, sampling_rate=rate, **REPLACING)
    for factor in (1, 0.99):
        event = PrivacyEvent(kind="discrete-gaussian", scale=noise.event.scale * factor, sensitivity=2.0)
        spent = compose(event, EXCHANGE, rounds=20, sampling_rate=rate, **REPLACING).epsilon(1e-6)
        assert (spent <= 1 + 1e-12) == (factor == 1)
    joining, _ = round_noise(Gauss(), PRESENCE, budget, rounds=20, sampling_rate=rate, neighbours="add-remove")
    assert joining.event.scale < noise.event.scale < 2 * joining.event.scale


@pytest.mark.parametrize("which", [Gauss, Lap])
def test_a_mechanism_that_cannot_says_so(which):
    """The mechanism's own refusal is what the user reads."""
    budget = Budget.pure(1) if which is Gauss else Budget.approx(1, 1e-6)
    with pytest.raises(BudgetError, match="only"):
        round_noise(which(), unit(3), budget, rounds=2, sampling_rate=0.5, neighbours="add-remove")


@pytest.mark.landing
def test_infeasible_budgets_are_refused():
    """An epsilon that no noise of 64 bits reaches is refused, with what would do."""

    class Narrow(Gauss):
        def noise(self, sensitivity, budget):
            if budget.rho < 1:
                raise BudgetError("too wide")
            return super().noise(sensitivity, budget)

    with pytest.raises(BudgetError, match="fewer rounds"):
        round_noise(Narrow(), unit(1), Budget.approx("0.01", 1e-6), rounds=9, sampling_rate=1, neighbours="add-remove")
