"""The conformance kit on `gibbs`, with few and short chains: what it claims holds for any number of them."""

import pytest
from dpgm_mrf.gibbs.engine import Gibbs

from dpgm_testing import InferenceConformance, Profile


@pytest.mark.landing
class TestGibbs(InferenceConformance):
    """Every check; statistical ones with few examples, as each takes some hundred sweeps."""

    component = Gibbs(chains=60, annealing=4, burn_in=12, thinning=2, draws=8)
    profile = Profile(name="short", examples=3, draws=1000, shrink=False)
