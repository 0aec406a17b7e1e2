"""The conformance kit on Laplace noise, exact and textbook."""

import pytest
from dpgm_laplace.mechanism import Laplace

from dpgm_testing import MechanismConformance


class TestLaplace(MechanismConformance):
    """Every check, default options."""

    component = Laplace


@pytest.mark.landing
class TestTextbookLaplace(MechanismConformance):
    """The floats that reproduce papers: they say why they are unsafe, and keep everything else."""

    component = Laplace(exact=False, allow_unsafe=True)
