"""What noises of sums and means have in common: the Gaussian's density, and no price."""

import numpy as np
import pytest
from scipy import stats

from dpgm_core import BudgetError
from dpgm_core.releases.views import DerivedNoise


class Wide(DerivedNoise):
    """Of a stated variance."""

    variance = 7.0


def test_its_density_is_the_gaussian_of_its_variance():
    """Against scipy's, and the slope against differences of it."""
    residual = np.array([-30.0, -3.0, 0.0, 2.0])
    noise = Wide()
    np.testing.assert_allclose(noise.logpdf(residual), stats.norm.logpdf(residual, scale=7**0.5))
    slope = (noise.logpdf(residual + 1e-5) - noise.logpdf(residual - 1e-5)) / 2e-5
    np.testing.assert_allclose(noise.score(residual), slope, atol=1e-6)
    assert noise.dual.curvature == 7 and noise.dual.bound == noise.support[1] == -noise.support[0] == np.inf


@pytest.mark.parametrize("ask", ["cost", "event"])
def test_it_has_no_price(ask):
    """Nobody takes a view for what was paid."""
    with pytest.raises(BudgetError, match="Wide costs nothing of its own; ask the releases behind it"):
        getattr(Wide(), ask)
