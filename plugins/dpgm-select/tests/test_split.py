"""Which tables are measured, and how the budget is split over them."""

import math

import numpy as np
from dpgm_select.split import best_subset

CLIQUES = [(name,) for name in "abcde"]
COSTS = dict(zip(CLIQUES, (4.0, 40.0, 12.0, 300.0, 900.0), strict=True))
ERRORS = dict(zip(CLIQUES, (900.0, 5000.0, 2000.0, 9000.0, 10.0), strict=True))


def noise_error(shares: dict[tuple[str, ...], float], precision: float) -> float:
    """The weighted error of measuring with these shares of the precision, without shrinking."""
    return sum(
        COSTS[clique] * math.sqrt(2 / math.pi) / math.sqrt(share * precision) for clique, share in shares.items()
    )


def test_no_other_split_has_less_error() -> None:
    """Of 2,000 random splits over the same tables none is better, nor the even one."""
    rng = np.random.default_rng(1)
    worth = best_subset(CLIQUES, ERRORS, COSTS, 0.01)
    best = noise_error(dict(worth.shares), 0.01)
    assert math.isclose(sum(worth.shares.values()), 1.0)
    assert len(worth.shares) > 2
    even = dict.fromkeys(worth.shares, 1 / len(worth.shares))
    assert best < 0.97 * noise_error(even, 0.01)
    for _ in range(2000):
        other = dict(zip(worth.shares, rng.dirichlet(np.ones(len(worth.shares))), strict=True))
        assert best <= noise_error(other, 0.01) + 1e-9


def test_what_costs_more_than_it_tells_is_left_out() -> None:
    """A large table of little error is not measured, and with no budget to speak of none is."""
    assert ("e",) not in best_subset(CLIQUES, ERRORS, COSTS, 0.01).shares
    assert not best_subset(CLIQUES, ERRORS, COSTS, 1e-9).shares


def test_a_negative_error_is_never_worth_a_table() -> None:
    """Noisy scores may be below 0."""
    assert not best_subset([("a",)], {("a",): -5.0}, {("a",): 1.0}, 1e9).shares
