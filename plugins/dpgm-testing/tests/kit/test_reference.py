"""Reference releases take any mechanism; constrained structures; what is said on the side is heard, not shown."""

import logging
import os
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Domain, SeededRandomness, Sensitivity, Structure
from dpgm_testing import ReferenceGaussian, ReferenceLaplace, example_release, worst_loss
from dpgm_testing.cases import constrained_structures
from dpgm_testing.curators import overhearing

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
