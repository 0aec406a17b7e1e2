"""Means of monomials out of releases of contrasts and of cells, against sums written out."""

import numpy as np
import pytest
from dpgm_mrf.polynomials import monomials_of
from dpgm_mrf.walsh import parities_of

import dpgm_core as dpgm

NAMES = ("a", "b", "c")
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2))
CODES = np.random.default_rng(0).integers(0, 2, (400, 3)) & np.array([1, 1, 0]) ^ np.array([0, 1, 1])


def released(cliques, rho=1, split="even", total=400, model=("a", "b", "c")):
    curator = dpgm.LiveCurator(
        CODES_OF,
        dpgm.Structure(DOMAIN, [model]),
        dpgm.make("mechanism", "gaussian"),
        terms=dpgm.Terms(neighbours="add-remove", total=total),
        budget=dpgm.Budget.zcdp(rho),
        randomness=dpgm.SeededRandomness(1),
    )
    return curator.release(cliques=cliques, split=split)


class Codes:
    """The records."""

    def batches(self, domain, columns):
        yield [CODES[:, domain.names.index(name)] for name in columns]


CODES_OF = Codes()


def test_contrasts_tell_one_product_each():
    """With the noise that was calibrated: the variance of m sums at rho is m / (2 rho)."""
    release = released([("c", "b", "a")], split="contrasts")
    actual = parities_of(release, NAMES, np.arange(1, 8))
    assert actual.monomials.tolist() == list(range(1, 8))
    assert actual.variances * 400**2 == pytest.approx(np.full(7, 7 / 2), rel=0.01)
    spun = 1 - 2 * CODES
    for monomial, mean in zip(actual.monomials, actual.values, strict=True):
        true = np.prod(spun[:, [place for place in range(3) if monomial >> place & 1]], axis=1).mean()
        assert mean == pytest.approx(true, abs=6 * np.sqrt(3.5) / 400)


def test_cells_tell_all_products_inside_them_and_are_averaged_by_their_noise():
    """y_ab and y_b of tables over c, b and b, a, the same names in other orders; b from both, by inverse variance."""
    release = released([("c", "b"), ("b", "a")])
    actual = parities_of(release, NAMES, np.arange(1, 8))
    assert set(actual.monomials.tolist()) == {0b001, 0b010, 0b100, 0b011, 0b110}  # not a c, and not all three
    noise = dict(zip(actual.monomials.tolist(), (actual.variances * 400**2).tolist(), strict=True))
    # Two tables at rho = 1: a cell has variance 1, a mean of four cells 4; b is told twice.
    assert noise == pytest.approx({1: 4, 4: 4, 3: 4, 6: 4, 2: 2}, rel=0.01)
    sign = np.array([1, -1])
    one, other = (np.asarray(release.tables[pair], float) for pair in (("b", "c"), ("b", "a")))
    means = dict(zip(actual.monomials.tolist(), actual.values.tolist(), strict=True))
    assert means[0b011] == pytest.approx(float(sign @ other @ sign) / 400)
    assert means[0b010] == pytest.approx(float(sign @ (one + other).sum(axis=1)) / 800)


def test_unequal_noise_counts_by_its_variance():
    """A table with 100 times the budget has all the say, nearly."""
    curator = dpgm.LiveCurator(
        CODES_OF,
        dpgm.Structure(DOMAIN, [("a", "b", "c")]),
        dpgm.make("mechanism", "gaussian"),
        terms=dpgm.Terms(neighbours="add-remove", total=400),
        budget=dpgm.Budget.zcdp(2),
        randomness=dpgm.SeededRandomness(1),
    )
    budgets = {("a", "b"): dpgm.Budget.zcdp("0.01"), ("b", "c"): dpgm.Budget.zcdp(1)}
    release = curator.release(budget=budgets)
    actual = parities_of(release, NAMES, np.array([0b010]))
    expected = 1 / (1 / (4 * 50) + 1 / (4 * 0.5)) / 400**2
    assert actual.variances[0] == pytest.approx(expected, rel=0.01)
    quiet = np.asarray(release.tables["b", "c"], float)
    assert actual.values[0] == pytest.approx(float(quiet.sum(axis=1) @ [1, -1]) / 400, abs=0.02)


def test_only_requested_and_measured_monomials():
    """Products beyond the order are left out, and what noise takes beyond 1 is put there."""
    release = released([("a", "b")], rho="1e-6", split="contrasts")
    structure = dpgm.Structure(DOMAIN, [("a", "b"), ("b", "c")])
    actual = parities_of(release, NAMES, monomials_of(structure, NAMES, 1))
    assert actual.monomials.tolist() == [1, 2]
    assert np.abs(actual.values).max() <= 1
    assert np.sqrt(actual.variances[0]) * 400 == pytest.approx(np.sqrt(3 / 2e-6), rel=0.01)
