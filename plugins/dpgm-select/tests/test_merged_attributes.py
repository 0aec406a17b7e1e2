"""Attributes that merging leaves one code: no table of several attributes holds one, and no budget is lost for that."""

from fractions import Fraction

import numpy as np
import pytest
from dpgm_select.aim import Aim
from dpgm_select.auto import Auto
from dpgm_select.grow import Grow
from dpgm_select.mst import Mst
from dpgm_select.oneshot import Oneshot
from dpgm_select.privbayes import PrivBayes

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_sizes({f"x{place}": 3 for place in range(9)})
TERMS = dpgm.Terms(neighbours="add-remove")
#: epsilon = .1, or the rho of (.1, 1e-9).
BUDGETS = {"pure": dpgm.Budget.pure("0.1"), "zcdp": dpgm.Budget.approx("0.1", "1e-9").zcdp_within()}
SERVED = [
    (selector, kind)
    for selector in (Mst(), Grow(), Oneshot(), Aim(), PrivBayes(), Auto())
    for kind in BUDGETS
    if kind != "pure" or not isinstance(selector, (Grow, Oneshot))
]


def select(
    selector: object, budget: dpgm.Budget, codes: np.ndarray, seed: int, workload: dpgm.Workload
) -> dpgm.NoisyTables:
    release, _ = dpgm.select(
        codes, selector, budget, workload, "eb-map", terms=TERMS, randomness=dpgm.SeededRandomness(seed)
    )
    return release


def of_several(release: dpgm.NoisyTables) -> set[tuple[str, ...]]:
    """The cliques of several attributes that any step scored, chose among or measured."""
    steps = [
        step.structure.cliques if isinstance(step, dpgm.NoisyTables) else step.candidates for step in release.steps
    ]
    return {clique for cliques in steps for clique in cliques if len(clique) > 1}


def check(release: dpgm.NoisyTables) -> None:
    sizes = release.structure.domain.sizes
    assert [clique for clique in of_several(release) if min(sizes[name] for name in clique) == 1] == []
    spent = dpgm.Budget.sum(step.cost for step in release.steps)
    assert release.session.budget * Fraction(999_999, 1_000_000) <= spent <= release.session.budget


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("selector", "kind"), SERVED)
def test_three_hundred_rows_of_nine_columns_at_a_tenth(selector: object, kind: str) -> None:
    """Noise merges codes down to one in most columns; over two seeds no table of several attributes holds one."""
    codes = np.random.default_rng(0).integers(0, 3, (300, 9))
    for seed in (1, 2):
        release = select(selector, BUDGETS[kind], codes, seed, dpgm.Workload.all(DOMAIN, order=2))
        # where a selector gives up pairs before it merges there is no table of several at all
        assert 1 in release.structure.domain.sizes.values() or not of_several(release)
        check(release)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("selector", "kind"), SERVED)
def test_where_some_columns_keep_their_codes_those_are_chosen_from(selector: object, kind: str) -> None:
    """Four of nine columns have one code: tables of up to three of the other five are measured."""
    domain = dpgm.Domain.from_sizes({f"x{place}": 1 if place % 2 else 3 for place in range(9)})
    codes = np.zeros((20_000, 9), np.int64)
    codes[:, ::2] = np.random.default_rng(0).integers(0, 3, (20_000, 1))
    release = select(selector, BUDGETS[kind] * 10, codes, 1, dpgm.Workload.all(domain, order=3))
    check(release)
    assert of_several(release)
