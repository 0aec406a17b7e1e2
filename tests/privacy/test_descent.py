"""What a descent costs, held against exact probabilities between all data sets that one person tells apart.

The same comparison finds the paper's printed noise out. And what is regressed on what, as values.
"""

import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import chisquare

from dpgm_core import Budget, BudgetError, Domain, OptionError, SeededRandomness, Structure, StructureError, TooLarge
from dpgm_core.counting.descent import GradientSums
from dpgm_core.privacy.descent import (
    NodeGradients,
    Regressions,
    descent_cost,
    descent_temperature,
    largest_residual,
    reach,
    steepest,
)
from dpgm_core.privacy.selection import MAX_TABLE_LENGTH, MIN_TABLE_LENGTH, probabilities, table_length
from dpgm_core.privacy.terms import change_factor
from tests.fixtures import Words
from tests.privacy.candidates import regressions

ORDERS = (1.01, 2.0, 8.0, 64.0)
KINDS = [Budget.pure("0.6"), Budget.zcdp("0.02")]
RELATIONS = {"add-remove": 1, "replace-one": 2}


def lost(one, other, order):
    """The Renyi divergence of that order between two laws."""
    return float(logsumexp(order * np.log(one) + (1 - order) * np.log(other))) / (order - 1)


def covered(ones, others, budget):
    """Whether independent choices with these laws, before and after, keep a budget; 1e-12 of room for doubles."""
    if budget.kind == "pure":
        worst = sum(
            max(abs(math.log(p / q)) for p, q in zip(a, b, strict=True)) for a, b in zip(ones, others, strict=True)
        )
        return worst <= budget.epsilon + 1e-12
    floats = [(np.array(a, float), np.array(b, float)) for a, b in zip(ones, others, strict=True)]
    return all(
        sum(lost(one, other, order) for one, other in pair) <= order * budget.rho + 1e-12
        for order in ORDERS
        for pair in (floats, [(other, one) for one, other in floats])
    )


def pair_gradients(weights=None, loss="logistic", **given):
    own = regressions(loss)
    return gradients(own, **given | ({} if weights is None else {"weights": weights}))


def random_weights(own, units, generator):
    """Within the radius: each choice's spread over some of its allowed weights."""
    found = own.zeros()
    for rows in own.choices:
        at = [(row, column) for row in rows for column in np.flatnonzero(own.allowed[row])]
        for place in generator.integers(0, len(at), 3):
            found[at[place]] += generator.choice([-1, 1]) * (units // 3)
    return found


def laws(sums, own, h):
    grid = sums.reshape(own.allowed.shape)
    for rows in own.choices:
        up = np.concatenate([grid[row][own.allowed[row]] for row in rows])
        yield probabilities(np.concatenate([up, -up]), h)


def neighbours(own, count, relation):
    """Small data sets, (records, attributes) codes, and each neighbour of them."""
    sizes = [own.candidates.domain.sizes[name] for name in own.nodes]
    every = list(itertools.product(*map(range, sizes)))
    base = every[1 : 1 + count]
    for record in every:
        if relation == "add-remove":
            yield base, [*base, record]
        else:
            yield from (([*base, other], [*base, record]) for other in every if other < record)


def summed(gradients, kind, records):
    sums = GradientSums(gradients, kind)
    codes = [np.array([record[place] for record in records], np.uint8) for place in range(len(sums.columns))]
    return sums.partial(codes, None)


def checks(gradients, budget, relation, claimed=lambda cost: cost, person=None):
    """Whether every pair of neighbours is covered by what the descent claims. person: records it is calibrated for."""
    person = person or RELATIONS[relation]
    own = gradients.regressions
    h = descent_temperature(budget, gradients.reach(budget.kind), person, len(own.choices))
    cost = descent_cost(h, gradients.reach(budget.kind), person, len(own.choices), budget.kind)
    assert cost <= budget
    known = {}

    def law(records):
        key = tuple(sorted(records))
        if key not in known:
            known[key] = list(laws(summed(gradients, budget.kind, records), own, h))
        return known[key]

    return all(covered(law(one), law(other), claimed(cost)) for one, other in neighbours(own, 2, relation))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", KINDS, ids=lambda one: one.kind)
@pytest.mark.parametrize("loss", ["logistic", "softmax", "pairs"])
@pytest.mark.parametrize("clip", [None, "0.3"])
def test_no_pair_of_neighbours_loses_more_than_is_charged(loss, clip, budget, relation):
    """Exact laws of all choices together, p = 3, at a vertex under add-remove, at random weights under replace-one."""
    own = pair_gradients(loss=loss).regressions
    weights = random_weights(own, 128, np.random.default_rng(5))
    if relation == "add-remove":
        weights = own.zeros()
        for rows in own.choices:
            weights[rows[0], -1] = -128
    assert checks(pair_gradients(weights, loss=loss, clip=clip), budget, relation)


def test_a_claim_of_much_less_is_found_out():
    """Half the epsilon, or a third of the rho, of one record that every regression has wrong: the bounds are near."""
    own = pair_gradients().regressions
    vertex = own.zeros()
    vertex[:, -1] = 128
    made = pair_gradients(vertex)
    assert not checks(made, KINDS[0], "add-remove", lambda cost: Budget.pure(cost.epsilon / 2))
    assert not checks(made, KINDS[1], "add-remove", lambda cost: Budget.zcdp(cost.rho / 3))


@pytest.mark.parametrize("budget", KINDS, ids=lambda one: one.kind)
def test_an_exchange_costs_what_a_guarantee_with_a_public_number_says(budget):
    """At most 2 epsilon or 4 rho at the price of add-remove; one epsilon, or the 2 rho of tables, is found out."""
    vertex = pair_gradients().regressions.zeros()
    vertex[:, -1] = 128
    made = pair_gradients(vertex, clip="0.3")
    less = Budget.pure("0.6") if budget.kind == "pure" else budget * change_factor("zcdp", 1, 1, tables_alone=True)
    assert checks(made, budget, "replace-one", lambda cost: cost * change_factor(cost.kind, 1, 1), person=1)
    assert not checks(made, budget, "replace-one", lambda _: less, person=1)


def noisy_argmax(scores):
    """The law of the largest of scores with Laplace noise of scale 1, by quadrature."""
    places = sorted({-40.0, *scores, 40.0})

    def density(at, own):
        below = [math.exp(-abs(at - score)) / 2 for score in scores]  # density, and distribution on the left
        others = [part if at < score else 1 - part for part, score in zip(below, scores, strict=True)]
        return below[own] * math.prod(others[:own] + others[own + 1 :])

    return [
        sum(quad(density, a, b, args=(own,), epsabs=1e-10)[0] for a, b in itertools.pairwise(places))
        for own in range(len(scores))
    ]


def test_the_printed_laplace_scale_is_found_out_and_ours_is_not():
    """One record for one with the opposite label, both predicted wrongly for certain, R = 12: Lap(R sqrt(T) / (n
    sqrt(rho))) of Zhang et al. (2020), Algorithm 1 with L1 = 1, costs 1.36 rho / T under replace-one."""
    radius, rho = 12, Fraction(1, 400)  # of one selection, rho / T
    scale = radius / math.sqrt(rho)
    sigma = 1 / (1 + math.exp(-radius))
    printed = []
    for label in (1, -1):
        feature = -label  # so that label * w x = -R
        gradient = [label * sigma * x * radius for x in (feature, 1)]
        printed.append(noisy_argmax([sign * one / scale for sign in (1, -1) for one in gradient]))
    assert not covered([printed[0]], [printed[1]], Budget.zcdp(rho))
    one, other = map(np.array, printed)
    assert float((one * np.log(one / other)).sum()) / float(rho) == pytest.approx(1.36, abs=0.01)

    # Ours on the same two data sets, at the same budget for the whole round of both regressions.
    own = regressions("logistic", p=2)
    weights = own.zeros()
    weights[0, 1] = weights[1, 0] = 12 * 64
    made = NodeGradients(regressions=own, weights=weights, radius=radius)
    h = descent_temperature(Budget.zcdp(rho), made.reach("zcdp"), 2, 2)
    ours = [list(laws(summed(made, "zcdp", [record]), own, h)) for record in ((0, 1), (1, 0))]
    assert covered(*ours, Budget.zcdp(rho))


@pytest.mark.parametrize("budget", [Budget.pure(3), KINDS[1]], ids=lambda one: one.kind)
@pytest.mark.parametrize("steps", [1, 15])
@pytest.mark.parametrize("clip", [None, Fraction(3, 10)])
def test_all_steps_together_cost_at_most_their_budget(budget, steps, clip):
    """T descents of p choices: nearly all and not more; replace-one costs 4 times the rho, 2 times the epsilon."""
    made = pair_gradients(clip=clip)
    far, choices = made.reach(budget.kind), 3
    share = budget * Fraction(1, steps)
    hs = {person: descent_temperature(share, far, person, choices) for person in (1, 2, 6)}
    for person, h in hs.items():
        cost = descent_cost(h, far, person, choices, budget.kind) * steps
        assert cost <= budget
        assert budget * Fraction(999_999, 10**6) <= cost
    once, twice = (descent_cost(hs[1], far, person, choices, budget.kind) for person in (1, 2))
    ratio = twice.epsilon / once.epsilon if budget.kind == "pure" else twice.rho / once.rho
    assert float(ratio) == pytest.approx(2 if budget.kind == "pure" else 4, rel=1e-6)


def test_too_little_says_what_would_do_and_much_is_cut():
    """The budget that the message names is enough; without end of budget the table keeps two weights."""
    for budget in (Budget.pure("1e-9"), Budget.zcdp("1e-18"), Budget.zcdp("1e-9")):
        with pytest.raises(BudgetError, match="give at least") as caught:
            descent_temperature(budget, 49152, 2, 10)
        told = re.search(r"(epsilon|rho) = ~?([0-9.e-]+)", str(caught.value).partition("give")[2])
        enough = Budget.pure(told[2]) if told[1] == "epsilon" else Budget.zcdp(told[2])
        assert table_length(descent_temperature(enough, 49152, 2, 10)) <= MAX_TABLE_LENGTH
    assert table_length(descent_temperature(Budget.pure(10**9), 10, 1, 1)) == MIN_TABLE_LENGTH
    with pytest.raises(BudgetError, match="share of the session's rho"):
        descent_temperature(Budget.approx(1, "1e-6"), 10, 1, 1)


def test_a_choice_draws_two_words_whatever_the_scores():
    """No rejection: near and far scores, equal ones and huge ones take the same random bits."""
    own = pair_gradients().regressions
    for sums in (np.zeros(12, np.int64), np.arange(12) * 10**9, np.full(12, -(2**40))):
        randomness = Words(rest=2**63)
        assert len(list(steepest(sums, own, Fraction(1, 50), randomness))) == 3
        assert sum(randomness.asked) == 6


def test_directions_follow_the_exact_law():
    """1,500 descents against the exact probabilities of each choice; one run in a thousand fails by chance."""
    own = regressions("softmax", p=2)
    sums, h, randomness = np.arange(20) * 3 - 30, Fraction(1, 25), SeededRandomness(11)
    seen = [list(steepest(sums, own, h, randomness)) for _ in range(1500)]
    for number, (rows, law) in enumerate(zip(own.choices, laws(sums, own, h), strict=True)):
        at = [(row, int(column)) for row in rows for column in np.flatnonzero(own.allowed[row])]
        every = [(*place, sign) for sign in (1, -1) for place in at]
        picked = [every.index(one[number]) for one in seen]
        counts = np.bincount(picked, minlength=len(every))
        assert chisquare(counts, [1500 * float(p) for p in law]).pvalue > 5e-4


def gradients(own, **given):
    """With no weights, unless they are given."""
    return NodeGradients(**{"regressions": own, "weights": own.zeros(), "radius": 2, **given})


@pytest.mark.parametrize("name", ["radius", "clip", "weights_grid", "residual_grid"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 0, True, "many", 2**30, Fraction(3, 10**9)])
def test_units_that_do_not_fit_are_refused(name, value):
    with pytest.raises(BudgetError):
        gradients(regressions("logistic"), **{name: value})


WEIGHTS = np.zeros((3, 4), np.int64)
SPOILT = {
    "shape": WEIGHTS[:2], "float": WEIGHTS.astype(float), "bool": WEIGHTS.astype(bool), "nan": np.full((3, 4), np.nan),
    "list": WEIGHTS.tolist(), "self": ((0, 0), 1), "long": ((0, 1), 129), "far": ((0, 1), 2**62),
    "least": ((0, 1), -(2**63)),
}  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILT)
def test_weights_that_do_not_fit_are_refused(spoil):
    """Whole numbers of the right shape, 0 where none is allowed, and within the radius."""
    own, weights = regressions("logistic"), SPOILT[spoil]
    assert own.zeros().shape == WEIGHTS.shape and own.zeros().dtype == WEIGHTS.dtype
    if isinstance(weights, tuple):
        weights, (place, units) = WEIGHTS.copy(), weights
        weights[place] = units
    with pytest.raises(OptionError, match="weights"):
        gradients(own, weights=weights)


def test_weights_of_a_choice_are_bounded_together():
    """Of "softmax" all rows of an attribute have one radius."""
    own = regressions("softmax", 2)
    weights = own.zeros()
    weights[0, 2], weights[1, 3] = 64, -64
    assert gradients(own, weights=weights).units == 128
    weights[1, 3] = -65
    with pytest.raises(OptionError, match="radius"):
        gradients(own, weights=weights)


def test_weights_cannot_be_changed_afterwards():
    own = regressions("logistic")
    weights = own.zeros()
    made = gradients(own, weights=weights)
    weights[0, 0] = 7
    assert not made.weights.any()
    assert not made.weights.flags.writeable


def test_only_core_says_what_is_regressed():
    """A child of Regressions could hide a residual."""

    class Mine(Regressions):
        pass

    own = regressions("logistic")
    with pytest.raises(OptionError, match="Mine"):
        gradients(Mine(candidates=own.candidates, loss="logistic"), weights=own.zeros())


@pytest.mark.parametrize("grid", [2, 3, 128, 4096])
@pytest.mark.parametrize("radius", ["1/1000", "0.8", "12", "40"])
def test_the_largest_residual_is_that_of_sigma_at_the_radius(grid, radius):
    """floor(G sigma(R)) by another formula, in decimals of 28 digits."""
    exact = Fraction(radius)
    power = (Decimal(exact.numerator) / Decimal(exact.denominator)).exp()
    found = largest_residual("logistic", exact, grid)
    assert found == math.floor(Decimal(grid) * power / (1 + power))
    assert found == largest_residual("pairs", exact, grid)
    assert largest_residual("softmax", exact, grid) == grid


def test_clipping_never_reaches_further_than_none():
    """The lesser of both bounds, whole numbers, for every loss and kind."""
    for loss, kind in itertools.product(("logistic", "softmax", "pairs"), ("pure", "zcdp")):
        given = {"radius": Fraction(2), "grid": 128, "kind": kind}
        none = reach(loss, 10, clip=None, **given)
        assert [reach(loss, 10, clip=Fraction(clip, 10), **given) for clip in (3, 10)] == [
            math.floor(Fraction(3, 10) * 10 * (128 if kind == "pure" else 128**2)),
            none,
        ]
        assert none == 10 * largest_residual(loss, Fraction(2), 128) ** (1 if kind == "pure" else 2)


def test_gradients_are_alike_only_by_identity():
    """Arrays do not compare as values; evolving one is allowed and checked."""
    made = gradients(regressions("logistic"))
    assert attrs.evolve(made, clip="0.3").clip == Fraction(3, 10)
    with pytest.raises(BudgetError):
        attrs.evolve(made, clip=2)


@pytest.mark.parametrize(("loss", "k"), [("logistic", 2), ("softmax", 3), ("pairs", 3), ("pairs", 2)])
def test_an_attribute_is_never_regressed_on_itself_nor_on_pairs_left_out(loss, k):
    """A weight is allowed exactly where row and column together are a candidate, or the column is the constant."""
    own = regressions(loss, k, p=4, cliques=[("b", "a"), ("b", "c")])
    assert own.nodes == ("a", "b", "c")
    for row, (name, _) in enumerate(own.rows):
        for column, (others, _) in enumerate(own.columns):
            meant = not others or {name, *others} in ({"a", "b"}, {"b", "c"})
            assert own.allowed[row, column] == meant
    assert own.columns[-1] == ((), ())


def test_each_regression_has_the_rows_and_the_choices_of_its_loss():
    """One a node; one for each label and a choice over all of them; one for each two labels, and touched by k - 1."""
    logistic, softmax, pairs = regressions("logistic"), regressions("softmax", 3), regressions("pairs", 3)
    assert logistic.rows == (("a", (0, 1)), ("b", (0, 1)), ("c", (0, 1)))
    assert logistic.choices == ((0,), (1,), (2,))
    assert softmax.rows[:4] == (("a", (0,)), ("a", (1,)), ("a", (2,)), ("b", (0,)))
    assert softmax.choices == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert pairs.rows[:4] == (("a", (0, 1)), ("a", (0, 2)), ("a", (1, 2)), ("b", (0, 1)))
    assert pairs.choices == tuple((row,) for row in range(9))
    assert (logistic.touched, softmax.touched, pairs.touched) == (3, 3, 6)


def test_products_are_those_of_the_other_attributes_of_each_clique():
    """A triple gives each of its attributes the product of the two others, and no weight on them one by one."""
    own = regressions("logistic", cliques=[("c", "a", "b")])
    names = [names for names, _ in own.columns]
    assert names == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ()]
    assert [names[column] for column in np.flatnonzero(own.allowed[1])] == [("a", "c"), ()]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: regressions("logistic", 3), StructureError, "3 codes"),
        (lambda: regressions("softmax", 2, cliques=[("a", "b", "c")]), StructureError, "takes pairs"),
        (lambda: regressions("softmax", 1), StructureError, "one code"),
        (lambda: regressions("logistic", cliques=[("a",)]), StructureError, "nothing to be regressed on"),
        (lambda: regressions("hinge"), OptionError, "loss must be"),
        (lambda: regressions(True), OptionError, "loss must be"),
        (lambda: regressions("softmax", 1000, p=6), TooLarge, "6,000 x 6,001"),
        (lambda: Regressions(candidates=[("a", "b")], loss="pairs"), StructureError, "must be a Structure"),
    ],
)
def test_regressions_that_do_not_fit_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_tied_candidates_are_refused():
    """Tied cliques would share weights."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    with pytest.raises(StructureError, match="tied"):
        Regressions(candidates=Structure(domain, [], tied=[[("a", "b"), ("b", "c")]]), loss="logistic")
