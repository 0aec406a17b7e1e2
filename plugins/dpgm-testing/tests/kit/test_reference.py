"""Releases for examples take any mechanism."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Domain, SeededRandomness, Sensitivity, Structure
from dpgm_testing import ReferenceGaussian, ReferenceLaplace, example_release, worst_loss

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
