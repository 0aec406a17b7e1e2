"""Calibrations in files: the same again, and nothing believed that their mechanism would not say."""

import json

import attrs
import pytest

from dpgm_core import Budget, ModelFileError, Sensitivity, make
from dpgm_core.privacy.mechanism import calibrate
from dpgm_core.releases.calibrations import calibration_of, calibration_to, check_noise_facts

RHO = Budget.zcdp("1/3")
UNIT = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)


def calibration(name="gaussian", budget=RHO, sensitivity=UNIT):
    mechanism = make("mechanism", name)
    return calibrate(mechanism, mechanism.noise(sensitivity, budget), sensitivity, budget)


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("laplace", Budget.pure("1/3")),
        ("laplace", Budget.zcdp("1/3")),
        ("gaussian", Budget.zcdp("1/3")),
        ("gaussian", Budget.approx(1, "1e-6")),
        ({"name": "gaussian", "exact": False, "allow_unsafe": True}, Budget.zcdp("1/3")),
    ],
)
def test_a_calibration_comes_back(name, budget):
    """Through JSON, equal in all of its parts, exact amounts among them."""
    one = calibration(name, budget)
    again = calibration_of(json.loads(json.dumps(calibration_to(one), allow_nan=False)))
    assert again == one and again.noise.cost == one.noise.cost


def test_a_mechanism_object_cannot_be_restored():
    """Whose it is nobody knows; the error says what to do."""
    plain = calibration_to(attrs.evolve(calibration(), component=None))
    with pytest.raises(ModelFileError, match="register the mechanism"):
        calibration_of(plain)
    with pytest.raises(ModelFileError, match="named by a text"):
        calibration_of(plain | {"component": 3})


def test_facts_are_those_of_the_mechanism():
    """A noise that says it was calibrated to less, or that it is safe, is not believed."""
    one, other = calibration().noise, calibration(sensitivity=attrs.evolve(UNIT, l2_squared=8)).noise
    check_noise_facts(one, one)
    with pytest.raises(ModelFileError, match="edited"):
        check_noise_facts(one, other)
    unsafe = calibration({"name": "gaussian", "exact": False, "allow_unsafe": True}).noise
    with pytest.raises(ModelFileError, match="edited"):
        check_noise_facts(one, unsafe)
