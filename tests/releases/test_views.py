"""What learners see of releases: weighted ones in persons, and noises of sums and means."""

import numpy as np
import pytest
from scipy import stats

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Contributions, Domain, SeededRandomness, Sensitivity, Structure, Terms
from dpgm_core.releases.views import DerivedNoise, ScaledNoise, equalize_totals

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a",)], tied=[[("a", "b"), ("c", "b")]])


def released(contributions):
    """Of 200 persons with up to three rows each."""
    rng = np.random.default_rng(1)
    persons = np.repeat(np.arange(200), rng.integers(1, 4, 200))
    table = {name: rng.integers(size, size=len(persons)) for name, size in STRUCTURE.domain.sizes.items()}
    return dpgm.release(
        {"id": persons.astype(str).astype(object)} | table, STRUCTURE, Budget.pure(1),
        terms=Terms(neighbours="add-remove", person="id", rows_per_person=3, contributions=contributions),
        randomness=SeededRandomness(1),
    )  # fmt: skip


@pytest.mark.parametrize("per", ["clique", "group"])
def test_every_table_has_one_total(per):
    """m_g N, where the weighted tables sum to what persons had to add; shares within a table do not change."""
    release = released(Contributions(per=per, grid=60))
    view = equalize_totals(release)
    assert view.tables.sums() == pytest.approx(release.total * np.array([1, 2]), rel=1e-12)
    assert view.contributions is None and view.original is release
    assert view.cost == release.cost and view.private == release.private
    for before, after in zip(release.tables.arrays(), view.tables.arrays(), strict=True):
        np.testing.assert_allclose(after / after.sum(), before / before.sum(), rtol=1e-12)
    factors = view.tables.sums() / release.tables.sums()
    assert view.variances == pytest.approx(factors**2 * release.variances, rel=1e-12)


def test_a_release_of_counts_is_its_own_view():
    """There is nothing to level."""
    release = released(None)
    assert equalize_totals(release) is release


@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_scaled_noise_has_the_law_of_a_scaled_draw(factor):
    """Density of f z at f r is that of z at r over f, so mass adds up to 1; its slope is the score."""
    noise = dpgm.make("mechanism", "laplace").noise(Sensitivity(l0=1, l1=3, l2_squared=9, linf=3), Budget.pure(1))
    scaled, points = ScaledNoise(noise=noise, factor=factor), np.arange(-400, 401).astype(float)
    mass = np.exp(scaled.logpdf(factor * points)) * factor
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    assert np.sum(mass * (factor * points) ** 2) == pytest.approx(scaled.variance, rel=1e-6)
    at, step = factor * (points[points != 0] + 0.5), 1e-6
    slope = (scaled.logpdf(at + step) - scaled.logpdf(at - step)) / (2 * step)
    np.testing.assert_allclose(scaled.score(at), slope, rtol=1e-6)


class Wide(DerivedNoise):
    """Of a stated variance."""

    variance = 7.0


def test_its_density_is_the_gaussian_of_its_variance():
    """Against scipy's, and the slope against differences of it."""
    residual = np.array([-30.0, -3.0, 0.0, 2.0])
    noise = Wide()
    np.testing.assert_allclose(noise.logpdf(residual), stats.norm.logpdf(residual, scale=7**0.5))
    slope = (noise.logpdf(residual + 1e-5) - noise.logpdf(residual - 1e-5)) / 2e-5
    np.testing.assert_allclose(noise.score(residual), slope, atol=1e-6)
    assert noise.dual.curvature == 7 and noise.dual.bound == noise.support[1] == -noise.support[0] == np.inf


@pytest.mark.parametrize("ask", ["cost", "event"])
def test_it_has_no_price(ask):
    """Nobody takes a view for what was paid."""
    with pytest.raises(BudgetError, match="Wide costs nothing of its own; ask the releases behind it"):
        getattr(Wide(), ask)
