"""Which tables are measured, and how the budget is split over them."""

import math

import numpy as np
from dpgm_select.split import best_subset, level_up, pull

CLIQUES = [(name,) for name in "abcde"]
COSTS = dict(zip(CLIQUES, (4.0, 40.0, 12.0, 300.0, 900.0), strict=True))
PULLS = {clique: pull(cost) for clique, cost in COSTS.items()}
ERRORS = dict(zip(CLIQUES, (900.0, 5000.0, 2000.0, 9000.0, 10.0), strict=True))


def noise_error(shares: dict[tuple[str, ...], float], precision: float) -> float:
    """The weighted error of measuring with these shares of the precision, without shrinking."""
    return sum(
        COSTS[clique] * math.sqrt(2 / math.pi) / math.sqrt(share * precision) for clique, share in shares.items()
    )


def test_no_other_split_has_less_error() -> None:
    """Of 2,000 random splits over the same tables none is better, nor the even one."""
    rng = np.random.default_rng(1)
    taken = best_subset(CLIQUES, ERRORS, COSTS, 0.01).taken
    shares = level_up({clique: PULLS[clique] for clique in taken}, {}, 1.0)
    best = noise_error(shares, 0.01)
    assert math.isclose(sum(shares.values()), 1.0)
    assert len(taken) > 2
    assert best < 0.97 * noise_error(dict.fromkeys(taken, 1 / len(taken)), 0.01)
    for _ in range(2000):
        other = dict(zip(taken, rng.dirichlet(np.ones(len(taken))), strict=True))
        assert best <= noise_error(other, 0.01) + 1e-9


def test_what_is_left_makes_up_for_what_was_spent() -> None:
    """Spent in two parts the whole is divided as if in one, and what had too much gets nothing more."""
    once = level_up(PULLS, {}, 1.0)
    first = level_up({clique: PULLS[clique] for clique in CLIQUES[:3]}, {}, 0.02)
    second = level_up(PULLS, first, 0.98)
    assert math.isclose(sum(second.values()), 0.98)
    for clique in CLIQUES:
        assert math.isclose(first.get(clique, 0.0) + second.get(clique, 0.0), once[clique])
    assert ("a",) not in level_up(PULLS, {("a",): 0.5}, 0.5)


def test_what_costs_more_than_it_tells_is_left_out() -> None:
    """A large table of little error is not measured; with no budget to speak of, or where others need it, none is."""
    assert ("e",) not in best_subset(CLIQUES, ERRORS, COSTS, 0.01).taken
    assert not best_subset(CLIQUES, ERRORS, COSTS, 1e-9).taken
    assert len(best_subset(CLIQUES, ERRORS, COSTS, 0.01, committed=1e4).taken) < 3


def test_a_negative_error_is_never_worth_a_table() -> None:
    assert not best_subset([("a",)], {("a",): -5.0}, {("a",): 1.0}, 1e9).taken
