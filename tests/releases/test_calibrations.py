"""Calibrations in files: the same again, and nothing believed that their mechanism would not say."""

import json

import attrs
import pytest
from cattrs import BaseValidationError

from dpgm_core import Budget, BudgetError, ModelFileError, Sensitivity, make
from dpgm_core.privacy.mechanism import calibrate, check_claims
from dpgm_core.privacy.tabulated import calibrate_tabulated
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


def power(budget=RHO):
    """A tabulated noise, of a mechanism that is not registered."""
    noise = calibrate_tabulated(lambda z, scale: -((z / scale) ** 1.5), UNIT, budget)
    return calibrate(make("mechanism", "gaussian"), noise, UNIT, budget)


@pytest.mark.parametrize("budget", [Budget.pure(1), RHO, Budget.approx(1, "1e-6")], ids=str)
@pytest.mark.parametrize("component", [None, "a-plugin-that-nobody-has"])
def test_tabulated_noise_comes_back_without_its_plugin(component, budget):
    """All of it is in the file; so it is of a mechanism object, too."""
    one = attrs.evolve(power(budget), component=component)
    assert calibration_of(json.loads(json.dumps(calibration_to(one), allow_nan=False))) == one


def test_an_edited_table_is_refused():
    """A distribution of less noise does not go with the cost, nor does a lower cost with the distribution."""
    plain = json.loads(json.dumps(calibration_to(power())))
    noise = plain["noise"]
    narrow = noise | {"distribution": noise["distribution"] | {"weights": noise["distribution"]["weights"][::2]}}
    for edited in (narrow, noise | {"cost": {"rho": "1/4"}}, noise | {"sensitivity": attrs.asdict(UNIT) | {"l1": 0}}):
        with pytest.raises((BudgetError, BaseValidationError)):  # `read_archive` makes one line of it
            check_claims(calibration_of(plain | {"noise": edited}).noise, UNIT)
