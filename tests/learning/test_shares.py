"""Parts of budgets, and the noise that tables for them have."""

from fractions import Fraction

import pytest

from dpgm_core import Budget, Domain, Structure, Terms, make
from dpgm_core.learning.named_cliques import deviation, share_of
from dpgm_core.privacy.measurement import measure, noisy_contrasts

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
