"""The mechanisms drawn by OpenDP: what its map says, worst-case loss, densities, sampling, refusals, files."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from dpgm_opendp import measure
from dpgm_opendp.gaussian import OpendpGaussian, OpendpGaussianNoise
from dpgm_opendp.laplace import OpendpLaplace, OpendpLaplaceNoise
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpgm_core import (
    Budget,
    BudgetError,
    InferenceError,
    Mechanism,
    Noise,
    OptionError,
    SeededRandomness,
    Sensitivity,
    SystemRandomness,
    load_release,
    make,
    release,
)
from dpgm_core.privacy import discrete_delta

ALARM = 1e-9  # chance that a sampling test fails though nothing is wrong; the noise takes no seed
MECHANISMS = [OpendpLaplace(), OpendpGaussian()]


def cells(count, most=1):
    """The sensitivity of `count` cells, each moved by `most`."""
    return Sensitivity(l0=count, l1=count * most, l2_squared=count * most**2, linf=most)


def laplace(l1=1, epsilon=1):
    """Laplace noise for a pure budget."""
    return OpendpLaplace().noise(cells(l1), Budget.pure(epsilon))


def gaussian(count=1, rho="0.5"):
    """Gaussian noise for a zCDP budget."""
    return OpendpGaussian().noise(cells(count), Budget.zcdp(rho))


@settings(deadline=None)
@given(st.integers(1, 2000), st.fractions(Fraction(1, 10**5), 10**4))
@example(24, Fraction(1, 10))
@example(1, Fraction(1, 3))
def test_the_charge_covers_the_map_and_hardly_any_noise_is_wasted(l1, epsilon):
    """OpenDP's map is at most what is charged, which is what was asked; the scale is within 1e-12 of L1 / epsilon."""
    noise = laplace(l1, epsilon)
    assert noise.cost == Budget.pure(epsilon)
    mapped = dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=noise.scale
    ).map(l1)
    assert Fraction(mapped) <= epsilon
    assert l1 / Fraction(noise.scale) <= epsilon
    assert noise.scale <= l1 / epsilon * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rho", ["0.5", "0.02", "1/3", "40"])
def test_zcdp_is_spent_whole_by_both(rho):
    """sigma^2 is L2^2 / (2 rho), the Laplace scale L1 / sqrt(2 rho), up to 1e-12 and never below."""
    budget = Budget.zcdp(rho)
    one, other = (mechanism.noise(cells(5), budget) for mechanism in MECHANISMS)
    assert one.cost == other.cost == budget
    assert -1e-15 <= one.scale / (5 / math.sqrt(2 * budget.rho)) - 1 < 1e-9  # the quotient is rounded too
    assert 0 <= Fraction(other.scale) ** 2 / (5 / (2 * budget.rho)) - 1 < 1e-11


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("budget", [Budget.approx(1, "1e-6"), Budget.approx("0.1", "1e-9"), Budget.approx(8, "1e-3")])
def test_epsilon_delta_holds_by_the_exact_mass_of_the_noise(count, budget):
    """The exact delta over the worst shift is below what is charged, and 1 % less noise would not fit OpenDP's map."""
    noise = OpendpGaussian().noise(cells(count), budget)
    assert noise.cost == budget
    assert Fraction(discrete_delta(Fraction(noise.scale) ** 2, cells(count), budget.epsilon)) <= budget.delta
    with pytest.raises(BudgetError, match="OpenDP says"):
        OpendpGaussianNoise(scale=noise.scale * 0.99, sensitivity=cells(count), cost=budget)


@pytest.mark.parametrize("shift", [(6,), (3, 3), (1,) * 6, (4, 1, 1), (2, 2, 2)])
def test_no_way_to_spread_a_change_loses_more_than_epsilon(shift):
    """The largest log ratio, cell by cell, over a wide range of outputs: exactly epsilon for every spread of L1 = 6."""
    noise, z = laplace(6, "0.7"), np.arange(-80.0, 81.0)
    loss = sum(float((noise.logpdf(z) - noise.logpdf(z - s)).max()) for s in shift)
    assert loss == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("shift", [(2,), (1, 1, 1, 1), (1, -1, 1, 1)])
@pytest.mark.parametrize("order", [1.01, 2.0, 8.0])
def test_renyi_divergence_stays_below_rho(shift, order):
    """sum_z P^a Q^(1-a) of each cell: (1 / (a - 1)) log of the product is at most a rho (L2 = 2, sigma small)."""
    noise, z = gaussian(4, "0.9"), np.arange(-60.0, 61.0)
    total = sum(
        math.log(np.exp(order * noise.logpdf(z) + (1 - order) * noise.logpdf(z - s)).sum()) / (order - 1) for s in shift
    )
    assert total <= order * 0.9 * (1 + 1e-9)


@pytest.mark.parametrize("noise", [laplace(1, "0.05"), laplace(1, 5), gaussian(1, "0.01"), gaussian(1, 3)], ids=str)
def test_masses_sum_to_one_and_have_the_variance_and_the_score(noise):
    """logpdf is a log mass on the whole numbers with second moment `variance`; score is its slope off the kinks."""
    z = np.arange(-4000.0, 4001.0)
    mass = np.exp(noise.logpdf(z))
    assert mass.sum() == pytest.approx(1, rel=1e-9)
    assert (mass * z**2).sum() == pytest.approx(noise.variance, rel=1e-9)
    at = np.array([-7.5, -1.0, 0.25, 3.0])
    assert noise.score(at) == pytest.approx((noise.logpdf(at + 1e-5) - noise.logpdf(at - 1e-5)) / 2e-5, rel=1e-5)
    assert noise.score(np.zeros(1)) == 0
    for call in (noise.logpdf, noise.score):
        with pytest.raises(InferenceError, match="NaN"):
            call(np.array([math.nan]))


@pytest.mark.parametrize("noise", [laplace(1, "0.4"), gaussian(1, "0.02")], ids=str)
def test_samples_follow_the_mass(noise):
    """Chi-squared of 50 000 draws against exp(logpdf), tails merged, at level ALARM; 3 % off in scale is refused."""
    draws = noise.draw((250, 200), SystemRandomness())
    assert draws.dtype == np.int64 and draws.shape == (250, 200)
    assert noise.draw((), SystemRandomness()).shape == () and noise.draw((0, 3), SystemRandomness()).size == 0
    reach = math.ceil(3 * math.sqrt(noise.variance))
    z = np.arange(-reach, reach + 1)
    expected = np.exp(noise.logpdf(z.astype(float)))
    expected[[0, -1]] += (1 - expected.sum()) / 2
    observed = np.bincount(np.clip(draws, -reach, reach).reshape(-1) + reach, minlength=z.size)
    assert stats.chisquare(observed, expected * draws.size).pvalue > ALARM
    # the same statistic sees the next grid of noise: draws a fifth wider
    wide = np.clip(np.rint(draws * 1.2).astype(int), -reach, reach).reshape(-1) + reach
    assert stats.chisquare(np.bincount(wide, minlength=z.size), expected * draws.size).pvalue < ALARM


@pytest.mark.parametrize("noise", [laplace(), gaussian()], ids=str)
def test_seeds_are_refused(noise):
    """OpenDP cannot repeat its noise; the refusal says what can."""
    with pytest.raises(OptionError, match=r"takes no seed.*dpgm-laplace"):
        noise.draw((3,), SeededRandomness(1))


@pytest.mark.parametrize("loss", [math.inf, math.nan, 0.0, -1.0, None])
def test_a_map_that_bounds_nothing_is_never_believed(loss):
    """Scale 0 maps to infinity in OpenDP 0.16; whatever is not finite and positive stops the noise being made."""
    with pytest.raises(BudgetError, match="bounds nothing"):
        measure.exactly("map", lambda: loss)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**31 * 1.1, 1, True, "3", None, 1e-320])
def test_no_noise_exists_without_a_finite_map(scale):
    """Scales that release data in the clear, or mean nothing, are refused whatever the cost."""
    with pytest.raises(BudgetError):
        OpendpLaplaceNoise(scale=scale, l1=1, cost=Budget.pure(10**30))
    with pytest.raises(BudgetError):
        OpendpGaussianNoise(scale=scale, sensitivity=cells(1), cost=Budget.zcdp(10**30))


@pytest.mark.parametrize(
    ("make_noise", "match"),
    [
        (lambda: OpendpLaplaceNoise(scale=2.0, l1=1, cost=Budget.pure("0.49")), "OpenDP says"),
        (lambda: OpendpLaplaceNoise(scale=2.0, l1=1, cost=Budget.zcdp("0.12")), "OpenDP says"),
        (lambda: OpendpLaplaceNoise(scale=2.0, l1=1, cost=Budget.approx(1, "1e-6")), "not"),
        (lambda: OpendpLaplaceNoise(scale=2.0, l1=0, cost=Budget.pure(1)), "L1"),
        (lambda: OpendpLaplaceNoise(scale=2.0, l1=True, cost=Budget.pure(1)), "L1"),
        (lambda: OpendpGaussianNoise(scale=2.0, sensitivity=cells(1), cost=Budget.zcdp("0.12")), "OpenDP says"),
        (lambda: OpendpGaussianNoise(scale=2.0, sensitivity=cells(1), cost=Budget.pure(1)), "not"),
        (lambda: OpendpGaussianNoise(scale=2.0, sensitivity=cells(0), cost=Budget.zcdp(1)), "L2"),
    ],
)
def test_a_noise_from_a_file_cannot_claim_less_than_it_cost(make_noise, match):
    """OpenDP's own map is held against the stated cost whenever a noise is made."""
    with pytest.raises(BudgetError, match=match):
        make_noise()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize(
    "budget", [None, 1, "1", Budget.zero("pure"), Budget.zero("zcdp"), Budget.zero("approx"), Budget.zcdp("1e-30")]
)
def test_wrong_requests_are_refused(mechanism, budget):
    """No budget, nothing left of one, or so little that the noise would not fit into 64 bits."""
    with pytest.raises(BudgetError):
        mechanism.noise(cells(1), budget)
    with pytest.raises(BudgetError):
        mechanism.noise(1, Budget.zcdp(1))


def test_budgets_of_the_wrong_kind_say_what_would_do():
    """Pure noise has no use for delta, Gaussian noise is never pure."""
    with pytest.raises(BudgetError, match=r"Budget\.pure"):
        OpendpLaplace().noise(cells(1), Budget.approx(1, "1e-6"))
    with pytest.raises(BudgetError, match=r"Budget\.zcdp"):
        OpendpGaussian().noise(cells(1), Budget.pure(1))
    with pytest.raises(BudgetError, match="too large"):
        OpendpLaplace().noise(cells(2**31 + 1), Budget.pure(1))
    with pytest.raises(BudgetError, match="too wide"):
        OpendpGaussian().noise(cells(1), Budget.approx("1e-12", "1e-12"))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_they_keep_the_contract_and_a_change_of_nothing_counts_as_one(mechanism):
    """Mechanism and Noise as core states them; the event covers the noise."""
    wanted: Mechanism = mechanism
    noise = wanted.noise(cells(0), Budget.zcdp("0.5"))
    assert isinstance(noise, Noise) and noise == mechanism.noise(cells(1), Budget.zcdp("0.5"))
    assert noise.event.scale == noise.scale and noise.event.sensitivity == 1.0


@pytest.mark.parametrize("name", ["opendp-laplace", "opendp-gaussian"])
def test_a_release_is_saved_and_read_back(name, tmp_path):
    """Installed by name: release, file, the same noise again, private."""
    codes = {"a": [0, 1, 1] * 40, "b": [1, 1, 0] * 40}
    import dpgm_core

    structure = dpgm_core.Structure.chain(dpgm_core.Domain.from_sizes({"a": 2, "b": 2}))
    made = release(codes, structure, Budget.zcdp("0.5"), make("mechanism", name), neighbours="add-remove")
    made.save(tmp_path / "r.dpgm")
    again = load_release(tmp_path / "r.dpgm")
    assert again.noise == made.noise and again.tables.values.tolist() == made.tables.values.tolist()
    assert made.private and made.unsafe is None
