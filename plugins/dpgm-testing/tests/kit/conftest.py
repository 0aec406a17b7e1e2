"""What the tests of the kit share: a mechanism that fails one check, and whether a distribution is installed."""

from importlib import util

import attrs
import pytest
from attrs import frozen

from dpgm_core import DualTerm
from dpgm_testing.reference import ReferenceLaplace, ReferenceLaplaceNoise


@frozen(kw_only=True)
class WrongDualNoise(ReferenceLaplaceNoise):
    """Whose dual term is not its own."""

    @property
    def dual(self):
        return DualTerm(bound=1.0, curvature=1.0)


@frozen(kw_only=True)
class WrongDual(ReferenceLaplace):
    """A mechanism that fails exactly one check."""

    def noise(self, sensitivity, budget):
        return WrongDualNoise(**attrs.asdict(super().noise(sensitivity, budget), recurse=False))


@pytest.fixture(scope="session")
def wrong_dual():
    return WrongDual


@pytest.fixture(scope="session")
def installed():
    """Says whether a distribution is installed."""
    return lambda distribution: util.find_spec(distribution.replace("-", "_")) is not None
