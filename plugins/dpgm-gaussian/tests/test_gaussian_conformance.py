"""The conformance kit on Gaussian noise, exact and textbook."""

import pytest
from dpgm_gaussian.mechanism import Gaussian

from dpgm_testing import MechanismConformance


class TestGaussian(MechanismConformance):
    """Every check, default options."""

    component = Gaussian


@pytest.mark.landing
class TestTextbookGaussian(MechanismConformance):
    """The floats that reproduce papers: they say why they are unsafe, and keep everything else."""

    component = Gaussian(exact=False, allow_unsafe=True)
