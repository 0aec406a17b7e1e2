"""Votes as values, and publishing what is stable: in exact fractions, nothing more often, one coin of two words."""

import itertools
from fractions import Fraction

import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, ModelFileError, OptionError, Structure, StructureError, Terms
from dpgm_core.privacy.votes import (
    EdgeVotes,
    ThresholdVotes,
    draw_publication,
    likely_distance,
    publication_odds,
    voter_of,
)
from tests.fixtures import Words

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3})
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])
BINARY = Structure(DOMAIN, [("a", "b")])

NONE = (True, "1", None, float("nan"), float("inf"), -1, 0, 10**400)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("blocks", value) for value in (*NONE[:-1], 1.5, 2**16 + 1)),
        *(("order", value) for value in (True, 1, 0, -3, 2.0, "3", None)),
        *itertools.product(["least", "penalty", "tau"], NONE),
    ],
)
def test_options_are_numbers_of_their_range(name, value):
    """Blocks and orders are whole, other numbers finite and positive, and tau is a share."""
    range_of = {"blocks": "a whole number from 1 to 65,536", "order": "a whole number of at least 2"}.get(name, "")
    with pytest.raises(OptionError, match=f"^{name} must be {range_of}"):
        if name == "tau":
            ThresholdVotes(pairs=BINARY, tau=value)
        else:
            EdgeVotes(**{"pairs": BINARY, "blocks": 3, name: value})


def test_what_else_is_refused():
    with pytest.raises(OptionError, match="whole must be true or false"):
        EdgeVotes(pairs=PAIRS, blocks=3, whole=1)
    with pytest.raises(OptionError, match="tau must be a number between 0 and 1"):
        ThresholdVotes(pairs=BINARY, tau=1)
    tied = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [], tied=[[("a", "b"), ("b", "c")]])
    for pairs in (Structure(DOMAIN, [("a",)]), Structure(DOMAIN, [("a", "b", "c")]), tied, "a"):
        with pytest.raises(StructureError, match="the candidates of votes must be"):
            EdgeVotes(pairs=pairs, blocks=3)
    with pytest.raises(StructureError, match="two labels, and c has another number"):
        ThresholdVotes(pairs=PAIRS, tau=0.3)
    with pytest.raises(StructureError, match=r"of order 3 multiply .* two labels, and c .* set order = 2"):
        EdgeVotes(pairs=PAIRS, blocks=3, order=3)
    for neighbours in ("add-remove", "replace-one"):
        with pytest.raises(OptionError, match="declare the number of records"):
            ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours))
        ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours, total=100))
        ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours, total="public"))
        EdgeVotes(pairs=PAIRS, blocks=3).check(Terms(neighbours=neighbours))


@pytest.mark.parametrize(("count", "order"), [(90, 3), (29, 4), (12, 12), (12, 10**9), (4096, 2)])
def test_products_are_limited_by_what_is_public(count, order):
    """4,096 products: 90 attributes and all their pairs are 4,095; one attribute more is refused, but for pairs."""
    names = [f"x{place}" for place in range(count + 1)]
    domain = Domain.from_sizes(dict.fromkeys(names, 2))

    def voter(attributes):
        pairs = Structure(domain, list(itertools.pairwise(names[:attributes])))
        return EdgeVotes(pairs=pairs, blocks=3, order=order)

    assert voter(count).order == order
    if order == 2:
        assert voter(count + 1).order == 2
    else:
        with pytest.raises(OptionError, match=f"^order = {order} .* of {count + 1} attributes, and 4,096 products"):
            voter(count + 1)


def test_plain_values_and_back():
    """The same voter; anything else is no file of ours. Pairs alone state no order, as before there was one."""
    plain = EdgeVotes(pairs=PAIRS, blocks=7).to_dict()
    assert plain == {"by": "edges", "blocks": 7, "least": 0.4, "penalty": 0.2, "whole": False}
    for voter in (
        EdgeVotes(pairs=PAIRS, blocks=7, least=0.3, penalty=1, whole=True),
        EdgeVotes(pairs=BINARY, blocks=7, order=3),
        ThresholdVotes(pairs=BINARY, tau=0.3),
    ):
        assert voter_of(voter.to_dict(), voter.pairs) == voter
        changes = ({"by": "all"}, {"by": []}, {"x": 1}, {"order": "3"})
        for wrong in (None, {}, *(voter.to_dict() | one for one in changes)):
            with pytest.raises(ModelFileError):
                voter_of(wrong, voter.pairs)
    with pytest.raises(ModelFileError, match="blocks must be"):
        voter_of(EdgeVotes(pairs=PAIRS, blocks=7).to_dict() | {"blocks": "7"}, PAIRS)


BUDGETS = [("0.75", "1e-6"), ("0.2", "1e-3"), ("3", "1e-9"), ("0.5", "1/3"), ("1/3", "0.9")]


def power(epsilon):
    """Bounds of e^epsilon: 80 terms of its series, and with what all others come to at most."""
    term, total = Fraction(1), Fraction(1)
    for number in range(1, 80):
        term *= epsilon / number
        total += term
    return total, total + 2 * term


def holes(odds, epsilon, delta):
    """Distances d at which publishing with q_d and q_{d+1}, or another output at d <= 1, is not (epsilon, delta)-DP."""
    e, _ = power(epsilon)
    found = []
    for d, (q, more) in enumerate(itertools.pairwise(odds)):
        both = [(q, more), (more, q), (1 - q, 1 - more), (1 - more, 1 - q)]
        if any(one > e * other + delta for one, other in both):
            found.append(d)
    if odds[0] != 0 or odds[1] > delta:  # where another output may be next door
        found.append(0)
    return found


@pytest.mark.parametrize("budget", BUDGETS)
def test_every_neighbour_is_within_epsilon_and_delta(budget):
    """In fractions, both events, both directions, to the end of the table; it starts at 0 and never falls."""
    epsilon, delta = map(Fraction, budget)
    odds = publication_odds(Budget.approx(*budget))
    assert not holes(odds, epsilon, delta)
    assert odds[0] == 0 and odds[-1] == 1 and all(one <= other for one, other in itertools.pairwise(odds))
    assert all((q * 2**128).denominator == 1 for q in odds)


@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_is_published_more_often(budget):
    """Within 2^-80 of the recursion without rounding, at e^epsilon rounded up; one part in 10^9 more is a hole."""
    epsilon, delta = map(Fraction, budget)
    _, e = power(epsilon)
    odds, best = publication_odds(Budget.approx(*budget)), Fraction(0)
    for d, q in enumerate(odds):
        assert 0 <= best - q < Fraction(1, 2**80)
        best = min(e * best + delta, 1 - (1 - best - delta) / e, Fraction(1))
        if 0 < q < 1 - Fraction(1, 10**6):
            more = q * (1 + Fraction(1, 10**9))
            assert more > delta if d == 1 else holes([Fraction(0), Fraction(0), odds[d - 1], more], epsilon, delta)


def test_the_first_bound_alone_is_not_enough():
    """E q + delta without the second bound, and a table of a larger epsilon, are caught by the same test."""
    epsilon, delta = Fraction(3, 4), Fraction(1, 10**6)
    e, _ = power(epsilon)
    wrong = [Fraction(0)]
    while wrong[-1] < 1:
        wrong.append(min(e * wrong[-1] + delta, Fraction(1)))
    assert holes(wrong, epsilon, delta)
    assert holes(publication_odds(Budget.approx("0.751", "1e-6")), epsilon, delta)
    assert holes([Fraction(0), *publication_odds(Budget.approx("0.75", "1e-6"))[2:]], epsilon, delta)


def test_the_numbers_of_the_specification():
    """eps = .75, delta = 1e-6; a Laplace threshold has .08 to .96 there."""
    odds = publication_odds(Budget.approx("0.75", "1e-6"))
    found = [round(float(odds[d]), 2) for d in (16, 17, 18, 19, 20, 22)]
    assert found == [0.15, 0.31, 0.65, 0.84, 0.92, 0.98]
    assert likely_distance(Budget.approx("0.75", "1e-6")) == 20


def test_the_coin_is_exact_and_takes_two_words_whatever_the_distance():
    """The last number below q_d 2^128 publishes, the next does not; distances beyond the table are its last."""
    budget = Budget.approx("0.75", "1e-6")
    odds = publication_odds(budget)
    for distance in (0, 1, 2, 17, len(odds) - 2, len(odds) - 1, 10**9):
        threshold = int(odds[min(distance, len(odds) - 1)] * 2**128)
        below = max(threshold - 1, 0)
        words = Words(below >> 64, below % 2**64)
        assert draw_publication(distance, budget, words) is (threshold > 0) and words.asked == [2]
        if threshold < 2**128:
            words = Words(threshold >> 64, threshold % 2**64)
            assert draw_publication(distance, budget, words) is False and words.asked == [2]


def test_the_coin_falls_as_often_as_it_should():
    """20,000 coins at four distances: within 5 standard deviations; a false alarm once in 400,000 seeds."""
    budget, source = Budget.approx("0.75", "1e-6"), dpgm.SeededRandomness(3)
    odds, count = publication_odds(budget), 5000
    for distance in (16, 18, 20, 22):
        q = float(odds[distance])
        shown = sum(draw_publication(distance, budget, source) for _ in range(count))
        assert abs(shown - count * q) < 5 * (count * q * (1 - q)) ** 0.5


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget.pure(1), "delta is what stability spends"),
        (Budget.zcdp(1), "delta is what stability spends"),
        (Budget("approx", delta=Fraction(1, 100)), "cost an"),
        (Budget.approx(1, Fraction(1, 2**101)), "below 2\\^-100"),
        ("1", "must be a Budget"),
    ],
)
def test_what_stability_cannot_be_bought_with(budget, why):
    with pytest.raises(BudgetError, match=why):
        draw_publication(3, budget, Words())


def test_too_little_to_ever_be_heard():
    """The table ends, and what would take more is refused with what to do."""
    with pytest.raises(BudgetError, match=r"too little for votes.*larger epsilon or delta"):
        likely_distance(Budget.approx("1e-6", "1e-9"))
