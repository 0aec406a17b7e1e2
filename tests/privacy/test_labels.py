"""What finding labels costs: told from public facts, and its exact delta over all neighbours of small label sets."""

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from attrs import evolve

from dpgm_core import Budget, BudgetError, Domain, SeededRandomness, Terms
from dpgm_core.privacy.labels import ThresholdNoise, open_columns, plan_labels, threshold_noise, with_placeholders

OPEN = {"labels": {"private": True, "keep": 4}}


def test_each_open_column_has_its_share_and_the_least_threshold():
    """An exchange moves twice as many counts, so it takes twice the noise; a person of r rows r times as much."""
    domain = Domain.from_dict({"attributes": {"a": OPEN, "b": {"size": 2}, "c": OPEN}})
    assert [one.name for one in open_columns(domain)] == ["a", "c"]
    budget = Budget.approx(1, "1e-6")
    asked = plan_labels(domain, budget, Terms(neighbours="add-remove"))
    assert [(one.column, one.keep, one.budget) for one in asked] == [(n, 4, budget * Fraction(1, 10)) for n in "ac"]
    assert asked[0].noise.scale == 10
    twice = plan_labels(domain, budget, Terms(neighbours="replace-one"))[0].noise
    several = plan_labels(domain, budget, Terms(neighbours="add-remove", person="id", rows_per_person=3))[0].noise
    assert (twice.scale, several.scale) == (20, 30)
    assert asked[0].noise.threshold < twice.threshold < several.threshold
    assert f"a label that {asked[0].noise.threshold} persons have" in asked[0].notes()[0]


def test_placeholders_hold_the_largest_sizes():
    """As many labels as may be found, `other` and `missing`; constraints on open columns wait until they are."""
    rules = {
        "x": {"columns": ["a", "b"], "impossible": [["cook", "1"]]},
        "y": {"columns": ["b", "c"], "impossible": [["1", "1"]]},
    }
    domain = Domain.from_dict({"attributes": {"a": OPEN, "b": {"size": 2}, "c": {"size": 2}}, "constraints": rules})
    held = with_placeholders(domain)
    assert held.undetermined == () and held["a"].size == 6
    assert [one.name for one in held.constraints] == ["y"]
    assert with_placeholders(held) is held


BOTH = ["add-remove", "replace-one"]
BUDGET = Budget.approx(1, "0.04")


def law(count, noise, most):
    """The law of what is published of a label: nothing, each noisy count from the threshold to `most`, and the rest."""
    p, low = math.exp(-1 / noise.scale), noise.threshold
    if count == 0:
        return np.array([1.0] + [0.0] * (most - low + 2))

    def above(z):  # P(Z >= z)
        return p**z / (1 + p) if z > 0 else 1 - p ** (1 - z) / (1 + p)

    exact = [(1 - p) / (1 + p) * p ** abs(y - count) for y in range(low, most + 1)]
    return np.array([1 - above(low - count), *exact, above(most + 1 - count)])


def worst_delta(noise, epsilon, rows, neighbours):
    """The least delta at this epsilon, exactly: over all neighbours whose counts are one of a few.

    A person with `rows` labels comes, goes or is exchanged. Beyond the largest count all outcomes have one ratio, so
    the last outcome stands for them.
    """
    counts = [(0, 1), (1, 2), (noise.threshold - 1, noise.threshold), (noise.threshold, noise.threshold + 1)]
    laws = {one: [law(count, noise, noise.threshold + 1) for count in one] for one in counts}

    def sides(up):
        """Pairs of laws, of all the labels of one person; up: who is the second data set's."""
        for chosen in itertools.combinations_with_replacement(counts, rows):
            pairs = [laws[one] if up else laws[one][::-1] for one in chosen]
            yield [reduce(np.kron, side) for side in zip(*pairs, strict=True)]

    pairs = [*sides(True), *sides(False)]
    if neighbours == "replace-one":
        pairs = [
            [np.kron(one, other) for one, other in zip(gone, come, strict=True)]
            for gone, come in itertools.product(sides(False), sides(True))
        ]
    return max(float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) for one, other in pairs)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_delta_is_exact_and_the_threshold_the_least(neighbours, rows):
    """No neighbours tell more than is paid for, and one person less at the threshold would."""
    noise = threshold_noise(BUDGET, rows, neighbours)
    found = worst_delta(noise, 1.0, rows, neighbours)
    assert found <= float(noise.cost.delta) * (1 + 1e-9) <= 0.04 * (1 + 1e-9)
    assert found == pytest.approx(1 - (1 - float(noise.published)) ** rows, rel=1e-9)
    assert worst_delta(evolve(noise, threshold=noise.threshold - 1), 1.0, rows, neighbours) > 0.04


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_sensitivity_too_small_by_half_is_found_out(neighbours):
    """Noise for one label a person, where persons have two; and for add-remove, where persons are exchanged."""
    noise = evolve(threshold_noise(BUDGET, 1, neighbours), labels=1)
    assert worst_delta(noise, 1.0, 2, neighbours) > 0.06
    assert worst_delta(threshold_noise(BUDGET, 1, "add-remove"), 1.0, 1, "replace-one") > 0.06


def test_the_tail_is_above_the_truth_and_hardly():
    """q against its sum in exact fractions, with p a fraction just below or above e^(-1/t)."""
    noise = ThresholdNoise(scale=Fraction(7, 2), threshold=30, labels=1, neighbours="add-remove")
    terms = [Fraction(-2, 7) ** n / math.factorial(n) for n in range(61)]  # of e^(-2/7), alternating and falling
    low, high = sum(terms[:-1]), sum(terms)  # around it
    assert low < high
    least, most = low**29 / (1 + high), high**29 / (1 + low)
    assert least < noise.published
    assert noise.published / most < 1 + Fraction(1, 10**55)
    assert noise.cost == Budget.approx(Fraction(2, 7), noise.published)


def test_draws_pass_the_threshold_as_often_as_stated():
    """One person's label with probability q, one of `likely` persons with .9: 100,000 seeded draws, 5 deviations."""
    noise = threshold_noise(Budget.approx(1, "0.01"), 1, "add-remove")
    drawn = noise.draw(100_000, SeededRandomness(3))
    for persons, chance in ((1, float(noise.published)), (noise.likely(), 0.9)):
        share = float(np.mean(drawn + persons >= noise.threshold))
        room = 5 * math.sqrt(chance * (1 - chance) / 1e5)
        assert share > chance - room
        assert persons > 1 or share < chance + room
    assert float(np.mean(drawn + noise.likely() - 1 >= noise.threshold)) < 0.9


@pytest.mark.parametrize(
    ("budget", "labels", "words"),
    [
        (Budget.pure(1), 1, "cost an .epsilon, delta"),
        (Budget.zcdp(1), 1, "cost an .epsilon, delta"),
        (Budget("approx", epsilon=Fraction(1)), 1, "cost an .epsilon, delta"),
        (Budget.approx("1e-12", "1e-6"), 1, "too little to find labels"),
        (Budget.approx(1, "1e-6"), 0, "whole number from 1"),
        (Budget.approx(1, "1e-6"), True, "whole number from 1"),
    ],
)
def test_budgets_that_find_nothing_are_refused(budget, labels, words):
    with pytest.raises(BudgetError, match=words):
        threshold_noise(budget, labels, "add-remove")


@pytest.mark.parametrize(
    "wrong", [{"threshold": 0}, {"threshold": 1}, {"scale": 2.0}, {"scale": Fraction(1, 2**33)}, {"labels": 0}]
)
def test_noise_that_proves_nothing_is_refused(wrong):
    """Thresholds at which one person's label is published as a rule, and parts that are none."""
    right = {"scale": Fraction(2), "threshold": 20, "labels": 1, "neighbours": "add-remove"}
    with pytest.raises(BudgetError):
        ThresholdNoise(**right | wrong)
