"""Reference releases take any mechanism; constrained structures; what is said on the side is heard, not shown."""

import itertools
import logging
import math
import os
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, Domain, SeededRandomness, Sensitivity, Structure, StructureError, Tables
from dpgm_core.privacy.gaussian import unit_shift_delta
from dpgm_testing import (
    ReferenceGaussian,
    ReferenceLaplace,
    admissible_shifts,
    awkward_structures,
    enumerated,
    example_release,
    hockey_stick,
    in_local_polytope,
    in_marginal_polytope,
    incidence,
    renyi_divergence,
    worst_change,
    worst_hockey_stick,
    worst_loss,
    worst_renyi,
)
from dpgm_testing.cases import constrained_structures
from dpgm_testing.curators import overhearing
from dpgm_testing.privacy_loss import even_shifts, largest_loss, summed_hockey_stick

ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


def test_an_example_release_takes_any_mechanism():
    """Its noise is calibrated to the structure's sensitivity."""
    structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
    release = example_release(
        structure,
        np.zeros(8),
        total=5,
        mechanism=ReferenceGaussian(),
        budget=Budget.zcdp("1/10"),
        neighbours="replace-one",
    )
    assert release.noise[0].sigma_squared == 20 and release.cost == Budget.zcdp("1/10")
    assert worst_loss(ReferenceLaplace().noise(ONE, Budget.pure(2)), ONE)[0] == pytest.approx(2)


def test_a_scale_that_no_sampler_draws_is_rounded_up():
    """As a subsampled round asks for: wider, never narrower, and by less than 1/1024."""
    exact = Fraction(2**50 + 1, 2**49)
    noise = ReferenceLaplace().noise(ONE, Budget.pure(1 / exact))
    assert exact < noise.scale <= exact + Fraction(1, 2**10)
    assert noise.draw((3,), SeededRandomness(1)).shape == (3,)


def test_each_lies_to_the_constraints_as_its_name_says():
    """All inside of cliques; some across; none held; a column that is only told; beside a tied group."""
    found = constrained_structures()
    assert found["inside"].constrained is found["inside"] and not found["inside"].derived
    assert len(found["across"].constrained.cliques) == len(found["across"].cliques) + 3
    assert [one.column for one in found["beside"].derived] == ["b"]
    assert found["derived"].impossible is None and max(found["tied"].multiplicities) == 2


def test_every_way_of_saying_something_is_heard(capfd):
    """Printed, written to the descriptors, by a process that starts meanwhile, warned of, logged; then as before."""
    with overhearing() as heard:
        sys.stdout.write("one ")
        sys.stderr.write("two ")
        os.write(1, b"three ")
        os.write(2, b"four ")
        subprocess.run([sys.executable, "-c", "print('five')"], check=True)
        warnings.warn("six", stacklevel=1)
        logging.getLogger("somewhere.else").warning("seven %s", "eight")
    assert set(heard.text.split()) == {"one", "two", "three", "four", "five", "six", "seven", "eight"}
    assert "five" not in repr(heard)
    os.write(1, b"after")
    assert capfd.readouterr() == ("after", "")


def test_what_is_raised_comes_through():
    """And what was said before it is there."""
    heard = None
    try:
        with overhearing() as heard:
            sys.stdout.write("before")
            raise KeyError
    except KeyError:
        pass
    assert heard.text == "before"


# --- The kit's own oracles and strategies, against closed forms and by what they must be able to tell apart -----------


def test_enumeration_is_the_model():
    """A pair of attributes by hand, with an impossible cell; too many records are refused."""
    pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    found = enumerated(Tables(pair, np.log(np.array([1.0, 2.0, 0.5, 0.5])) + np.array([0, 0, 0, -np.inf])))
    np.testing.assert_allclose(found.marginals.values, np.array([1, 2, 0.5, 0]) / 3.5)
    assert math.isclose(found.log_partition, math.log(3.5))
    with pytest.raises(StructureError, match="enumeration"):
        incidence(Structure(Domain.from_sizes(dict.fromkeys("abcdefgh", 10)), [("a",)]))
    with pytest.raises(StructureError, match="probability 0"):
        enumerated(Tables(pair, np.full(4, -np.inf)))


def test_the_marginal_polytope_is_inside_the_local_one():
    """Frustrated triangle margins agree on every attribute, and no distribution has them."""
    triangle = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    odd = Tables(triangle, np.array([0, 0.5, 0.5, 0] * 3))
    assert in_local_polytope(odd) and not in_marginal_polytope(odd)
    even = Tables(triangle, np.array([0.5, 0, 0, 0.5] * 3))
    assert in_local_polytope(even) and in_marginal_polytope(even)
    assert not in_local_polytope(Tables(triangle, np.array([0.5, 0, 0, 0.5] * 2 + [0.4, 0, 0, 0.6])))
    assert not in_local_polytope(Tables(triangle, np.array([-0.1, 0.6, 0.6, -0.1] * 3)))


@pytest.mark.parametrize("name", sorted(awkward_structures()))
def test_models_lie_in_both_polytopes(name):
    """The margins of any model, tied groups included, are in both; moved by 1e-3 in one cell they are in neither."""
    structure = awkward_structures()[name]
    margins = enumerated(Tables(structure, np.random.default_rng(1).normal(size=structure.cells))).marginals
    assert in_local_polytope(margins) and in_marginal_polytope(margins)
    moved = margins.values.copy()
    moved[-1] += 1e-3
    assert not in_local_polytope(margins.like(moved)) and not in_marginal_polytope(margins.like(moved))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", sorted(awkward_structures()))
def test_the_worst_change_is_what_core_declares(name, relation):
    """L1, L2 and Linf of Sensitivity.of by brute force over all pairs of records."""
    structure = awkward_structures()[name]
    declared = Sensitivity.of(structure, relation)
    l0, *rest = worst_change(structure, relation)
    assert rest == [declared.l1, declared.l2_squared, declared.linf] and l0 <= declared.l0


# --- strategies ---------------------------------------------------------------------------------------------------


# --- The kit's privacy losses against closed forms and each other -----------------------------------------------------

HOME = Sensitivity(l0=3, l1=3, l2_squared=9, linf=3)


def sensitivities():
    numbers = st.integers(1, 4)
    return st.builds(
        lambda l0, linf, l1: Sensitivity(l0=l0, l1=l1, l2_squared=min(l1 * linf, l0 * linf**2), linf=linf),
        numbers, st.integers(1, 3), st.integers(1, 6),
    )  # fmt: skip


@given(sensitivities())
@settings(max_examples=60)
def test_every_admissible_shift_is_listed_once(sensitivity):
    """Against all vectors up to order: none is missing, none is inadmissible, none comes twice."""
    found = list(admissible_shifts(sensitivity))
    wanted = {
        tuple(sorted((size for size in vector if size), reverse=True))
        for vector in itertools.product(range(sensitivity.linf + 1), repeat=sensitivity.l0)
        if sum(vector) <= sensitivity.l1 and sum(size**2 for size in vector) <= sensitivity.l2_squared
    } - {()}
    assert len(found) == len(set(found)) and set(found) == wanted


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_the_worst_loss_of_laplace_noise_is_epsilon(epsilon):
    """Discrete Laplace at scale L1 / eps loses exactly eps under every full shift; at linf alone it would lose less."""
    noise = ReferenceLaplace().noise(HOME, Budget.pure(epsilon))
    loss, shift = worst_loss(noise, HOME)
    assert math.isclose(loss, float(Fraction(epsilon)), rel_tol=1e-9) and sum(shift) == 3


@pytest.mark.parametrize("order", [1.5, 2.0, 16.0])
def test_the_renyi_divergence_of_a_gaussian_is_known(order):
    """alpha s^2 / (2 sigma^2) where alpha s is whole; additive over cells (Canonne, Kamath, Steinke 2020, Prop. 5)."""
    noise = ReferenceGaussian().noise(HOME, Budget.zcdp("1/8"))
    expected = order * 4 / (2 * float(noise.sigma_squared))
    assert math.isclose(renyi_divergence(noise, 2, order), expected, rel_tol=1e-9)
    assert math.isclose(worst_renyi(noise, HOME, order)[0], order / 8, rel_tol=1e-9)


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_the_hockey_stick_divergence_agrees_with_the_exact_delta(cells):
    """The lower bound here and core's upper bound meet: delta of unit shifts in k cells, to six digits."""
    sensitivity = Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)
    noise = ReferenceGaussian().noise(sensitivity, Budget.approx(1, "1e-5"))
    lower = hockey_stick(noise, (1,) * cells, 1.0)
    upper = unit_shift_delta(noise.sigma_squared, cells, Fraction(1))
    assert lower <= upper and math.isclose(lower, upper, rel_tol=1e-6)
    assert worst_hockey_stick(noise, sensitivity, 1.0) == (lower, (1,) * cells)


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [1, 20])
def test_the_sum_of_gaussian_cells_loses_what_the_cells_do(cells, epsilon):
    """By FFT and by convolving losses: delta agrees to four digits, at epsilon = 20 too, and is never above core's."""
    sensitivity = Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)
    noise = ReferenceGaussian().noise(sensitivity, Budget.approx(epsilon, "1e-6"))
    found = summed_hockey_stick(noise, 1, cells, float(epsilon))
    upper = unit_shift_delta(noise.sigma_squared, cells, Fraction(epsilon))
    if math.sqrt(noise.sigma_squared) > 0.4:  # narrower noise leaves the FFT no digits, and it claims nothing
        assert math.isclose(found, hockey_stick(noise, (1,) * cells, float(epsilon)), rel_tol=1e-4)
    assert found <= upper * (1 + 1e-6)


def test_ten_thousand_cells_cost_what_core_says():
    """Where no enumeration reaches: delta of unit shifts in 10,000 cells, to four digits; half the variance shows."""
    wide = Sensitivity(l0=10**4, l1=10**4, l2_squared=10**4, linf=1)
    noise = ReferenceGaussian().noise(wide, Budget.approx(1, "1e-6"))
    assert math.isclose(summed_hockey_stick(noise, 1, 10**4, 1.0), 1e-6, rel_tol=1e-3)
    small = ReferenceGaussian().noise(wide, Budget.approx("1.6", "1e-6"))
    assert summed_hockey_stick(small, 1, 10**4, 1.0) > 1e-4


def test_heavy_tails_are_not_judged_by_their_sum():
    """Laplace noise has tails that the FFT cannot bound: no claim is made, instead of a wrong one."""
    assert summed_hockey_stick(ReferenceLaplace().noise(ONE, Budget.pure(1)), 1, 1, 1.0) == 0.0


@given(sensitivities())
@settings(max_examples=60)
def test_even_shifts_are_admissible_and_reach_the_ends(sensitivity):
    """They are among all shifts, and hold the largest single move and the most cells."""
    all_shifts = set(admissible_shifts(sensitivity))
    found = [(size,) * cells for size, cells in even_shifts(sensitivity)]
    assert set(found) <= all_shifts
    ones = max((len(shift) for shift in all_shifts if set(shift) == {1}), default=0)
    assert not ones or (1,) * ones in found


@given(st.integers(1, 10**4), st.sampled_from(["1/100", "1", "20"]))
@settings(max_examples=40)
def test_the_largest_loss_is_a_lower_bound_to_twelve_digits(size, epsilon):
    """One cell moved by L1 under Laplace noise loses epsilon: never more by the bound, and hardly less."""
    one = Sensitivity(l0=1, l1=size, l2_squared=size**2, linf=size)
    found = largest_loss(ReferenceLaplace().noise(one, Budget.pure(epsilon)), size)
    assert Fraction(found) <= Fraction(epsilon) and math.isclose(found, float(Fraction(epsilon)), rel_tol=1e-10)
