"""Noises of unequal widths drawn together: brute force, exact fractions, dp-accounting, limits, mutants, searches."""

import itertools
import math
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from dpgm_core.errors import BudgetError
from dpgm_core.privacy import joint_gaussian as together
from dpgm_core.privacy.budget import zcdp_rho
from dpgm_core.privacy.gaussian import (
    concentrated_delta,
    discrete_delta,
    least_variance,
    normal_delta,
    smoothed_delta,
    unit_shift_delta,
)
from dpgm_core.privacy.joint_gaussian import largest_rho, normal_parts_delta, together_delta
from dpgm_core.privacy.sensitivity import Sensitivity
from tests.privacy.test_gaussian import enumerated, units

# variances, one cell each; epsilons from where delta is near 1 to where it is near 1e-9
UNEQUAL = [(1.0, 2.0), (0.3, 0.7, 5.0), (4.0, 9.0, 17.0), (0.1, 0.5), (30.0, 50.0), (0.5, 0.5, 0.9), (2.0, 70.0)]


def parts(variances, cells=1):
    return Counter((Fraction(one), units(cells)) for one in variances)


def convolved(counted, epsilon):
    return together._convolved(frozenset(counted.items()), Fraction(epsilon))


@pytest.fixture
def fresh():
    """What is remembered of an earlier call would hide a mutant."""
    together._convolved.cache_clear()
    yield
    together._convolved.cache_clear()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("variances", UNEQUAL)
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_delta_is_that_of_the_product_space(variances, epsilon):
    """Against the enumeration of all outputs: never below it, and within 1e-3 relatively; the bound is that at most."""
    exact = enumerated(variances, (1,) * len(variances), float(epsilon))
    if exact < 1e-14:  # where the enumeration has no digits left
        return
    found = convolved(parts(variances), epsilon)
    assert exact * (1 - 1e-11) <= found <= exact * (1 + 1e-3) + 1e-15
    assert together_delta(parts(variances), Fraction(epsilon)) <= found


@pytest.mark.parametrize(("variance", "cells"), [("0.09", 1), ("0.5", 3), ("3", 24), ("428", 24), ("700", 300)])
def test_equal_noise_is_the_curve_of_one_noise(variance, cells):
    """However it is told: as one table of k cells, or as k tables of one; at deltas down to 1e-40."""
    for spread in (0.5, 3, 6, 13):
        size = math.sqrt(cells / Fraction(variance))
        epsilon = Fraction(size**2 / 2 + spread * size).limit_denominator(10**4)
        exact = unit_shift_delta(Fraction(variance), cells, epsilon)
        for counted in ({(Fraction(variance), units(cells)): 1}, {(Fraction(variance), units(1)): cells}):
            # the one curve is itself rounded up, by 1e-9
            assert 1 - 2e-9 <= convolved(counted, epsilon) / exact <= 1.005


@pytest.mark.landing
@pytest.mark.parametrize(
    "counted",
    [
        {(Fraction(6), units(2)): 3, (Fraction(50), units(2)): 5, (Fraction(333), units(2)): 2},
        {(Fraction(25), units(1)): 1, (Fraction(100), units(1)): 1},
        {(Fraction(9), units(1)): 7, (Fraction(2500), units(1)): 40},
    ],
)
def test_delta_agrees_with_dp_accounting(counted):
    """An independent library's upper bound, on a grid of 1e-4: ours is at most that, and within 1 % of it."""
    theirs = None
    for (variance, sensitivity), count in counted.items():
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            math.sqrt(variance), sensitivity=1, value_discretization_interval=1e-4
        ).self_compose(count * sensitivity.l0)
        theirs = one if theirs is None else theirs.compose(one)
    for epsilon in (0.5, 1.0, 1.5):
        delta = theirs.get_delta_for_epsilon(epsilon)
        if delta > 1e-9 or epsilon == 0.5:  # below that their transforms have no digits
            assert 0.99 * delta <= convolved(Counter(counted), epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1, 10, 100])
def test_delta_converges_to_that_of_continuous_noise(scale):
    """sigma^2 of 30 and 90 times a scale, in as many more cells: the relative difference falls with the scale."""
    counted = {(Fraction(30 * scale), units(1)): scale, (Fraction(90 * scale), units(1)): scale}
    smooth = normal_parts_delta(counted, Fraction(1))
    assert abs(convolved(Counter(counted), 1) / smooth - 1) < 2e-2 / scale + 2e-4


def test_a_table_with_several_rows_of_a_person_enters_as_a_normal_number():
    """Shifts by more than 1 beside unit shifts: above the enumeration of each, and below the closed form for all."""
    several = Sensitivity(l0=1, l1=3, l2_squared=9, linf=3)
    for small, wide, epsilon in ((2, 40, "1"), (5, 30, "0.7"), (1, 90, "2")):
        counted = {(Fraction(small), units(1)): 1, (Fraction(wide), several): 1}
        found = convolved(Counter(counted), epsilon)
        for moved in range(-3, 4):
            assert enumerated((float(small), float(wide)), (1, moved), float(epsilon)) <= found
        assert found < smoothed_delta(counted, Fraction(epsilon))


def test_wide_tables_are_taken_as_continuous():
    """sigma^2 of 10^9, which nobody could sum up, costs next to nothing in time and in delta."""
    counted = {(Fraction(30), units(1)): 1, (Fraction(10**9), units(1)): 10**5}
    alone = convolved(parts([30]), 1)
    assert alone < convolved(Counter(counted), 1) < 1.02 * alone


def test_small_deltas_keep_their_digits():
    """Down to 1e-200 and beyond, against one noise of the same cells: what is lost is lost relatively to delta.

    Most is lost where a loss is exactly epsilon, a multiple of 1/20: a part of it is rounded to above.
    """
    for epsilon, most in (("5.02", 1 + 1e-9), ("8.03", 1 + 1e-9), ("10", 1.3), ("10.02", 1 + 1e-9)):
        exact = unit_shift_delta(Fraction(20), 2, Fraction(epsilon))
        split = {(Fraction(20), units(1)): 1, (Fraction(20) + Fraction(1, 10**14), units(1)): 1}
        assert exact * (1 - 1e-8) <= convolved(Counter(split), epsilon) <= most * exact
    assert exact < 1e-200


CASES = [(one, epsilon) for one in UNEQUAL for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)]


def refuted():
    """Whether some true delta lies above what is computed."""
    together._convolved.cache_clear()
    for variances, epsilon in CASES:
        exact = enumerated(variances, (1,) * len(variances), epsilon)
        if exact > 1e-12 and convolved(parts(variances), epsilon) < exact * (1 - 1e-9):
            return True
    return False


def rounding_down(self, step):
    place = np.floor(self.losses / step)
    masses = self.masses * np.exp(self.tilt * (place * step - self.losses))
    return place, masses / masses.sum(), self.log_moment + math.log(masses.sum())


def splitting_tilted_masses(self, step):
    place = np.floor(self.losses / step)
    upper = np.expm1(place * step - self.losses) / math.expm1(-step)
    return (
        np.concatenate([place, place + 1]),
        np.concatenate([self.masses * (1 - upper), self.masses * upper]),
        self.log_moment,
    )


@pytest.mark.parametrize("mutant", [rounding_down, splitting_tilted_masses])
def test_other_ways_onto_the_grid_are_refuted(monkeypatch, fresh, mutant):
    """Losses rounded down, and masses split after they were tilted, give less than the truth; ours does not."""
    assert not refuted()
    monkeypatch.setattr(together._Cell, "on_grid", mutant)
    assert refuted()


def test_tails_that_are_dropped_are_paid_for(monkeypatch, fresh):
    """With the tails cut at one standard deviation or so the bound still holds; not if what was cut is forgotten."""
    monkeypatch.setattr(together, "_FAR", 0.5)
    assert not refuted()
    plain = together._Cell.tilted.__func__

    def forgetful(cls, variance, tilt):
        one = plain(cls, variance, tilt)
        return cls(one.nominal, one.tilt, one.losses, one.masses, 0.0, one.log_moment)

    monkeypatch.setattr(together._Cell, "tilted", classmethod(forgetful))
    assert refuted()


def test_what_lies_beyond_the_grid_is_paid_for(monkeypatch, fresh):
    """A grid of two standard deviations only: the bound holds by Chernoff's, too large rather than wrong."""
    monkeypatch.setattr(together, "_REACH", 2.0)
    monkeypatch.setattr(together, "_FEWEST_POINTS", 64)
    assert not refuted()
    exact = enumerated((4.0, 9.0, 17.0), (1, 1, 1), 2.0)
    assert convolved(parts((4.0, 9.0, 17.0)), 2) > 1.5 * exact


def test_rounding_is_paid_for(monkeypatch, fresh):
    """With transforms that are wrong by 1e-12 of their norm, as if a word had fewer bits, the bound still holds."""
    random, transform = np.random.default_rng(0), np.fft.irfft

    def noisy(values, points):
        found = transform(values, points)
        wrong = random.standard_normal(points)
        return found - np.abs(wrong) / np.linalg.norm(wrong) * 1e-12

    monkeypatch.setattr(together, "_UNIT", 2.0**-40)
    monkeypatch.setattr(together.np.fft, "irfft", noisy)
    assert not refuted()


def test_a_forgotten_cell_tells_less():
    for epsilon in (0.5, 1, 2):
        whole = convolved(parts((4, 9, 17)), epsilon)
        assert all(convolved(parts(some), epsilon) < whole for some in itertools.combinations((4, 9, 17), 2))
        assert convolved(parts((5, 9, 17)), epsilon) < whole


def test_out_of_reach_is_one_and_not_less():
    """Too many cells for the grid, and small noise under shifts by more than 1: the closed forms stand in."""
    assert convolved(Counter({(Fraction(10**4), units(3000)): 1}), 1) == 1
    small = {(Fraction(1, 2), Sensitivity(l0=1, l1=2, l2_squared=4, linf=2)): 1, (Fraction(9), units(1)): 1}
    assert convolved(Counter(small), 1) == 1
    assert together_delta(small, Fraction(30)) == concentrated_delta(Fraction(4) + Fraction(1, 18), Fraction(30)) < 1
    assert together_delta({}, Fraction(1)) == normal_parts_delta({}, Fraction(1)) == 0
    for epsilon in ("1e-9", "1e-3", "1", "50", "1e6", "4.4e7", "1e24"):
        few = [(Fraction(1, 2**29), 10), (Fraction(1, 10**8), 50), (Fraction(1, 100), Fraction(1, 50))]
        for variances in (*few, (1, 10**12), (2**57, 2**58)):
            assert 0 < together_delta(parts(variances), Fraction(epsilon)) <= 1


def test_no_file_keeps_its_reader_long():
    """Many widths, or many cells, are left to the closed forms; what is convolved takes some 10 MB."""
    widths = {(Fraction(1000 + one), units(2)): 1 for one in range(300)}
    assert convolved(Counter(widths), 1) == 1 and together_delta(widths, Fraction(1)) < 1
    tracemalloc.start()
    assert convolved(Counter({(Fraction(3000), units(2000)): 1}), 1) < 1
    assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    tracemalloc.stop()


SIZES = {"few": [5000, 100, 2], "many": [2, 4, 8, 100] * 10, "alike": [6, 6, 6, 6]}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("1", "1e-9"), ("1", "1e-6"), ("8", "1e-9")])
def test_what_is_found_is_private_and_nearly_all_there_is(sizes, cells, epsilon, delta):
    """Its delta is below what was asked, more rho by 0.5 % is too much, and no sigma is wider than zCDP's (mbi's)."""
    shares = np.sqrt(np.array(SIZES[sizes], dtype=float))
    shares = [Fraction(one) for one in (shares / shares.sum()).round(6)]

    def parts_of(rho):
        return Counter((cells / (2 * share * rho), units(cells)) for share in shares)

    epsilon, delta = Fraction(epsilon), Fraction(delta)
    rho = largest_rho(together_delta, parts_of, epsilon, delta)
    assert together_delta(parts_of(rho), epsilon) <= delta < together_delta(parts_of(rho * Fraction("1.005")), epsilon)
    assert rho >= Fraction("1.02") * zcdp_rho(epsilon, delta)
    even = units(cells * len(shares))
    assert rho > Fraction("0.99") * even.l2_squared / (2 * least_variance(discrete_delta, even, epsilon, delta))


def test_textbook_noise_has_its_own_curve():
    """mu^2 = 2 rho whatever the widths; found to 1e-5."""

    def parts_of(rho):
        return {(1 / rho, units(1)): 1, (2 / rho, units(1)): 2}

    rho = largest_rho(normal_parts_delta, parts_of, Fraction(1), Fraction(1, 10**6))
    assert float(normal_delta(math.sqrt(2 * rho), np.array(1.0))) == pytest.approx(1e-6, rel=1e-3)
    assert normal_parts_delta(parts_of(rho), Fraction(1)) <= 1e-6
    with pytest.raises(BudgetError, match="too small to calibrate"):
        largest_rho(normal_parts_delta, parts_of, Fraction(1), Fraction(1, 10**201))
