"""The exponential mechanism, exactly: what it costs, what it draws, and the scores by which it chooses.

Statistical tests: one of their runs in a thousand fails by chance, so seeds are fixed.
"""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare

from dpgm_core import Budget, BudgetError, Domain, SeededRandomness, Structure, StructureError, Terms
from dpgm_core.privacy.selection import (
    MAX_TABLE_LENGTH,
    MIN_TABLE_LENGTH,
    SCORE_GRID,
    SLACK,
    WEIGHT_GRID,
    TableDistance,
    cost_of,
    count_forest,
    draw_candidates,
    forest_ends,
    probabilities,
    table_length,
    temperature,
)
from tests.fixtures import Words

ORDERS = (1.01, 2.0, 8.0, 64.0)
NODES = "abcde"


def losses(one, other, h):
    """log P(c) - log P'(c) of each candidate, to 1e-15."""
    pairs = zip(probabilities(np.array(one), h), probabilities(np.array(other), h), strict=True)
    return [math.log(p / q) for p, q in pairs], [float(p) for p in probabilities(np.array(one), h)]


def divergence(loss, weights, order):
    return float(logsumexp((order - 1) * np.array(loss), b=weights)) / (order - 1)


def covered(one, other, h, e):
    """Whether e-DP and e^2/8-zCDP hold between two vectors of scores; 1e-12 of room for the doubles used here."""
    loss, weights = losses(one, other, h)
    pure = max(map(abs, loss)) <= e + 1e-12
    return pure and all(divergence(loss, weights, order) <= order * e**2 / 8 + 1e-12 for order in ORDERS)


def neighbouring(move):
    """Pairs of small vectors of scores, each entry moved by at most `move`, up or down; far and near ones."""
    for base in ((0, 0, 0), (0, 3, 5), (7, 7, 0), (0, 400, 380)):
        for shift in itertools.product((-move, 0, move), repeat=3):
            yield base, tuple(x + y for x, y in zip(base, shift, strict=True))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("move", [1, 2, 4])  # rows per person 1 and 2, add-remove and replace-one
@pytest.mark.parametrize("h", [Fraction(1, 40), Fraction(1, 3), Fraction(2)])
def test_no_pair_of_neighbours_loses_more_than_is_charged(h, move):
    """Exactly, of every pair: the log-ratio is at most epsilon, Renyi divergences at most a epsilon^2 / 8."""
    e = float(cost_of(h, 1, move, "pure").epsilon)
    assert float(cost_of(h, 1, move, "zcdp").rho) == pytest.approx(e**2 / 8)
    assert all(covered(one, other, h, e) for one, other in neighbouring(move))


def test_the_monotone_shortcut_fails():
    """h = e / U, without the factor 1/2, is right for scores that all go one way, not with one up and one down."""
    e, move = 0.2, 2
    shortcut = Fraction(1, 10)
    assert float(shortcut) == e / move
    assert covered((0, 0), (0, 2), shortcut, e) and covered((0, 0), (2, 2), shortcut, e)
    assert not covered((0, 0), (2, -2), shortcut, e)
    assert covered((0, 0), (2, -2), shortcut / 2, e)


def test_the_charge_is_not_far_above_what_is_lost():
    """A candidate that is far behind and comes up while the first goes down loses 99 % of epsilon."""
    h, move = Fraction(1, 1000), 1
    loss, _ = losses((0, 9000), (1, 8999), h)
    assert max(map(abs, loss)) > 0.99 * float(cost_of(h, 1, move, "pure").epsilon)


@given(
    st.lists(st.tuples(st.integers(-2000, 2000), st.integers(-3, 3)), min_size=2, max_size=8),
    st.sampled_from([temperature(Budget.pure(e), 1, 3) for e in ("1/1000", "1/10", 2, 10**6)]),
)
def test_no_scores_lose_more_than_is_charged(moved, h):
    """Any scores, also across the clamp where a table of weights ends, at both ends of the temperature's range."""
    one, other = [x for x, _ in moved], [x + y for x, y in moved]
    assert covered(one, other, h, float(cost_of(h, 1, 3, "pure").epsilon))


@pytest.mark.parametrize("h", [temperature(Budget.pure(10**6), 1, 1), Fraction(1, 20), Fraction(1, 50_000)])
def test_the_numbers_of_the_proof(h):
    """Weights of 2^33 to 2^62, each within 2^-34 of its exponential, which the charge beyond h R covers four times."""
    last = table_length(h) - 1
    scores = -np.array([0, 1, 2, last // 2, last - 1, last, last + 1, 10 * last])
    told = probabilities(scores, h)
    clamped = np.maximum(scores, -last)
    constant = [math.log(p) - float(h) * int(k) for p, k in zip(told, clamped, strict=True)]
    assert max(constant) - min(constant) <= 2 * 2**-33
    assert 28 * math.log(2) - float(h) < float(h) * last <= 28 * math.log(2) + 1e-12
    assert told[0] / told[-1] < 2**29 and 2**62 * Fraction(told[-1] / told[0]) > 2**33
    assert 4 * Fraction(1, 2**33) < SLACK and sum(told) == 1


def test_many_candidates_fit_the_words():
    """100,000 candidates, as many as a workload has: sums need more than 64 bits, and nobody's share is lost."""

    def shares(scores):
        return [one.numerator * (2**128 // one.denominator) for one in probabilities(scores, Fraction(1, 20))]

    scores = np.zeros(100_000, np.int64)
    told = shares(scores)
    assert sum(told) == 2**128 and max(told) - min(told) <= 1
    scores[7] = 10**9
    told = shares(scores)
    assert all(told) and 2**128 - told[7] < 100_000 * 2**101


@given(
    st.fractions(Fraction(1, 1000), 1000),
    st.integers(1, 20),
    st.sampled_from([1, 2, 1024, 3072]),
    st.sampled_from(["pure", "zcdp"]),
)
def test_a_temperature_costs_at_most_its_budget(amount, picks, move, kind):
    """And nearly all of it, unless it is sharper than any table: then less."""
    budget = Budget.pure(amount) if kind == "pure" else Budget.zcdp(amount)
    try:
        h = temperature(budget, picks, move)
    except BudgetError:
        return
    cost = cost_of(h, picks, move, kind)
    assert cost <= budget and MIN_TABLE_LENGTH <= table_length(h) <= MAX_TABLE_LENGTH
    assert table_length(h) == MIN_TABLE_LENGTH or budget * Fraction(999, 1000) <= cost


@pytest.mark.parametrize(("picks", "move"), [(1, 1), (1, 3), (7, 1), (7, 3), (40, 2)])
@pytest.mark.parametrize("budget", [Budget.pure("1e-9"), Budget.zcdp("1e-16")])
def test_too_little_is_refused_with_what_would_do(budget, picks, move):
    """The amount in the message is enough, as it is printed, and a thousandth less is not."""
    with pytest.raises(BudgetError, match="too little to choose by") as caught:
        temperature(budget, picks, move)
    kind, said = re.search(r"(epsilon|rho) = ~?([0-9.e-]+),", str(caught.value)).groups()
    make = Budget.pure if kind == "epsilon" else Budget.zcdp
    assert table_length(temperature(make(said), picks, move)) <= MAX_TABLE_LENGTH
    with pytest.raises(BudgetError, match="too little"):
        temperature(make(said) * Fraction(999, 1000), picks, move)


@pytest.mark.parametrize(("picks", "move"), [(0, 1), (True, 1), (1.0, 1), (1, 0), (1, "2")])
def test_nonsense_has_no_temperature(picks, move):
    with pytest.raises(BudgetError, match="whole number"):
        temperature(Budget.pure(1), picks, move)
    with pytest.raises(BudgetError, match="share of the session's rho"):
        temperature(Budget.approx(1, "1e-6"), 1, 1)


SCORES, H = np.array([0, 40, 25, 39, -10_000, 40]), Fraction(1, 20)


def frequencies(picks, count):
    """How often each sequence of picks came out, and its exact probability."""
    randomness, seen = SeededRandomness(3), {}
    for _ in range(count):
        found = tuple(draw_candidates(SCORES, H, picks, randomness))
        seen[found] = seen.get(found, 0) + 1
    exact = {}
    for order in itertools.permutations(range(len(SCORES)), picks):
        left, chance = list(range(len(SCORES))), Fraction(1)
        for one in order:
            chance *= probabilities(SCORES[left], H)[left.index(one)]
            left.remove(one)
        exact[order] = chance
    return seen, exact


@pytest.mark.landing
@pytest.mark.parametrize(("picks", "count"), [(1, 100_000), (2, 10_000)])
def test_draws_follow_the_exact_probabilities(picks, count):
    """Chi-squared over all outcomes, those expected less than 10 times as one; p > .001, fixed seed."""
    seen, exact = frequencies(picks, count)
    assert sum(exact.values()) == 1
    often = [order for order, chance in exact.items() if chance * count >= 10]
    observed = [seen.get(order, 0) for order in often]
    expected = [float(exact[order] * count) for order in often]
    rest = count - sum(observed), count - sum(expected)
    if rest[1] > 1:
        observed, expected = [*observed, rest[0]], [*expected, rest[1]]
    assert chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue > 0.001
    assert rest[0] <= 30  # what is hardly ever chosen hardly ever is


@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 10**6, -(10**6)], [5, 4, 3], [2**58, -(2**58), 0]])
def test_the_words_do_not_depend_on_the_scores(scores):
    """Two words a pick, whatever is chosen."""
    spy = Words(rest=2**63)
    assert len(set(draw_candidates(np.array(scores), H, 3, spy))) == 3
    assert spy.asked == [2, 2, 2]


def test_each_share_begins_and_ends_where_it_should():
    """The first and the last number of 128 bits of a candidate's share choose it, the next one its neighbour."""
    end = 0
    for place, chance in enumerate(probabilities(SCORES, H)):
        start, end = end, end + int(chance * 2**128)
        for number in (start, end - 1):
            assert draw_candidates(SCORES, H, 1, Words(number >> 64, number % 2**64)) == [place]
    assert end == 2**128


DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])


def distance(**more):
    return TableDistance(**{"candidates": PAIRS, "predicted": np.full(8, 25.0)} | more)


@pytest.mark.parametrize(
    ("neighbours", "rows", "move"),
    [("add-remove", 1, 1), ("add-remove", 3, 3), ("replace-one", 1, 2), ("replace-one", 3, 6)],
)
def test_how_far_a_person_moves_a_distance(neighbours, rows, move):
    """r rows under add-remove, 2 r under replace-one; whatever weights, offsets and predictions are."""
    terms = Terms(neighbours=neighbours, person="id" if rows > 1 else None, rows_per_person=rows)
    assert distance().move(terms) == move
    assert distance(weights=(Fraction(1, 9), Fraction(900)), offsets=(1e9, 0.0)).move(terms) == move


def test_numbers_are_whole_and_bounded():
    """Predictions and offsets in units of 1/1024 record, weights in units of 1/4096 of the greatest, none of them 0."""
    scores = distance(
        predicted=np.array([0, -3, 0.5, 1e300, 1 / 3, 2, 2, 2]),
        weights=(Fraction(1, 10**9), Fraction(3)),
        offsets=(-1e300, 2.5),
    )
    assert scores.rounded.tolist() == [0, 0, 512, 2**40, 341, 2048, 2048, 2048]
    assert scores.whole_weights.tolist() == [1, WEIGHT_GRID]
    assert scores.whole_offsets.tolist() == [-(2**40), 2560]
    assert (distance().whole_weights.tolist(), distance().whole_offsets.tolist()) == ([4096, 4096], [0, 0])
    assert SCORE_GRID == 1024
    assert distance(offsets=np.array([1.0, 2.0])).whole_offsets.tolist() == [1024, 2048]
    # Cells filled up from noisy contrasts may be below 0, and count as they are.
    signed = distance(predicted=np.array([0, -3, 0.5, -1e300, 1 / 3, 2, 2, 2]), contrast=True)
    assert signed.rounded.tolist() == [0, -3072, 512, -(2**40), 341, 2048, 2048, 2048]


def test_one_choice_of_all_or_one_of_each_group():
    """Candidates may be in several groups; numbers may be numpy's."""
    assert [list(one) for one in distance().choices] == [[0, 1]]
    assert distance(groups=[[np.int64(1)], (0, 1)]).choices == ((1,), (0, 1))
    assert all(type(number) is int for group in distance(groups=[[np.int64(1)]]).groups for number in group)


def test_a_prediction_cannot_change_after_it_was_looked_at():
    """NaN put in later would be a huge whole number that a single record turns around."""
    given = np.full(8, 25.0)
    scores = distance(predicted=given)
    given[:] = np.nan
    assert (scores.predicted == 25).all()
    with pytest.raises(ValueError, match="read-only"):
        scores.predicted[0] = np.nan


def test_no_child_of_an_array_sees_counts():
    """What true counts are subtracted from is a plain array."""

    class Curious(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **more):
            raise AssertionError("shown what it must not see")

    scores = distance(predicted=np.full(8, 25.0).view(Curious))
    assert type(scores.predicted) is np.ndarray and type(scores.rounded) is np.ndarray


WRONG = {
    "too few": {"predicted": np.zeros(7)},
    "another shape": {"predicted": np.zeros((2, 4))},
    "a list": {"predicted": [25.0] * 8},
    "texts": {"predicted": np.array(["1"] * 8)},
    "complex": {"predicted": np.zeros(8, complex)},
    "NaN": {"predicted": np.array([np.nan] * 8)},
    "infinite": {"predicted": np.full(8, np.inf)},
    "no structure": {"candidates": [("a", "b")]},
    "tied": {"candidates": Structure(DOMAIN, [], tied=[(("a", "b"), ("b", "c"))]), "predicted": np.zeros(4)},
    "a number for contrast": {"contrast": 1},
    "contrasts of three labels": {
        "candidates": Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]),
        "predicted": np.zeros(6),
        "contrast": True,
    },
    "the contrast of nothing": {
        "candidates": Structure(DOMAIN, [("a", "b"), ()]),
        "predicted": np.zeros(5),
        "contrast": True,
    },
    "one weight": {"weights": (Fraction(1),)},
    "a weight for all": {"weights": Fraction(1)},
    "no weight": {"weights": (Fraction(1), Fraction(0))},
    "a negative weight": {"weights": (Fraction(1), Fraction(-1))},
    "float weights": {"weights": (1.0, 0.5)},
    "one offset": {"offsets": (1.0,)},
    "NaN offsets": {"offsets": (1.0, float("nan"))},
    "offsets of text": {"offsets": ("x", "y")},
    "no such candidate": {"groups": ((0, 2),)},
    "a negative number": {"groups": ((-1,),)},
    "an empty group": {"groups": ((0,), ())},
    "twice": {"groups": ((0, 0),)},
    "float numbers": {"groups": ((0.0,),)},
    "a bool for a number": {"groups": ((True,),)},
    "a bool for an offset": {"offsets": (True, 0.0)},
    "no groups": {"groups": 3},
}


@pytest.mark.parametrize("case", WRONG)
def test_nonsense_is_refused(case):
    with pytest.raises(StructureError) as caught:
        distance(**WRONG[case])
    assert "\n" not in str(caught.value)


def test_attributes_that_have_no_contrast_are_named():
    """Those of one label and of three, up to five of them."""
    sizes = {"a": 2, "b": 3, "c": 1} | {f"x{place}": 3 for place in range(9)}
    for names, said in ((("a", "b", "c"), "'b', 'c' do"), (tuple(sizes), "'x2' and others do")):
        wide = Structure(Domain.from_sizes({name: sizes[name] for name in names}), [(name,) for name in names])
        with pytest.raises(StructureError, match=said):
            TableDistance(candidates=wide, predicted=np.zeros(wide.cells), contrast=True)


@given(
    pairs=st.lists(st.sampled_from(list(itertools.combinations(NODES, 2))), min_size=1, unique=True),
    before=st.lists(st.sampled_from([("a",), ("a", "b"), ("b", "c", "d"), ("d", "e")]), max_size=2),
    seed=st.integers(0, 999),
    data=st.data(),
)
def test_a_forest_is_drawn_as_pick_after_pick_among_the_pairs_that_close_no_cycle(pairs, before, seed, data):
    """The same words give the same pairs as calls for one pick each, whose law is proven; a largest forest."""
    tree = {name: {name} for name in NODES}

    def connect(names):
        whole = set().union(*(tree[name] for name in names))
        for name in whole:
            tree[name] = whole

    for clique in before:
        connect(clique)
    pairs = [pair for pair in pairs if pair[1] not in tree[pair[0]]]
    if not pairs:
        return
    ends = forest_ends(pairs, before)
    scores = np.array(data.draw(st.lists(st.integers(0, 40), min_size=len(pairs), max_size=len(pairs))), np.int64)
    picks, h = count_forest(ends), Fraction(1, 16)
    drawn = draw_candidates(scores, h, picks, SeededRandomness(seed), ends)
    one_by_one, randomness = [], SeededRandomness(seed)
    while apart := [number for number, (one, other) in enumerate(pairs) if other not in tree[one]]:
        (place,) = draw_candidates(scores[apart], h, 1, randomness)
        one_by_one.append(apart[place])
        connect(pairs[apart[place]])
    assert drawn == one_by_one and count_forest(ends, drawn) == picks


def test_what_is_no_forest_is_refused():
    """Candidates that are no pairs, and one inside a tree; edges are counted in the order that is asked."""
    for pairs, before in (([("a",)], []), ([("a", "b", "c")], []), ([("a", "b")], [("b", "a")])):
        with pytest.raises(StructureError):
            forest_ends(pairs, before)
    ends = forest_ends([("a", "b"), ("b", "c"), ("a", "c"), ("d", "e")], [("c", "d")])
    assert count_forest(ends) == 3 and count_forest(ends, [0, 1, 2]) == 2 and count_forest(ends, []) == 0
