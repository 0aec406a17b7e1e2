"""Noise of simulated releases: the distribution of the released noise, drawn in doubles.

Simulated releases hold no record, so nobody needs exact arithmetic or random bits that cannot be repeated. Layers below
`learning` cannot import this module, so no curator can draw from it.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.mechanism import DerivedNoise, Noise, ScaledNoise
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.releases.pooling import PooledNoise
from dpgm_core.releases.views import SummedNoise

__all__ = ["SimulatedNoise", "simulated_measurement", "simulated_noise"]

#: Largest |z| of a table; wider noise is drawn as releases draw it.
_MAX_REACH = 1 << 17
#: A mass whose logarithm is below it ends the table, nats: what is left out is smaller than the rounding of a double.
_LEAST_LOG_MASS = -45.0
#: By how much the sum of the masses may differ from 1.
_MAX_MISSING_MASS = 1e-9


@frozen(kw_only=True, eq=False)
class SimulatedNoise(DerivedNoise):
    """Whole numbers, drawn by inversion of their distribution function; without a cost, so nothing can be released.

    first: the least value. cumulative: P(z <= first + i), (values,), the last is 1.
    """

    variance: float
    first: int
    cumulative: FloatArray = field(repr=False)

    exact, unsafe = False, None

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Return fresh noise, int64, from the generator of `randomness` and not from its words."""
        places = np.searchsorted(self.cumulative, randomness.generator().random(shape), side="right")
        return self.first + np.asarray(places, dtype=np.int64)


def simulated_measurement(measurement: Measurement) -> Measurement:
    """Return the measurement with noises that are quicker to draw, of the same distributions."""
    calibrations = tuple(evolve(one, noise=simulated_noise(one.noise)) for one in measurement.calibrations)
    return evolve(measurement, calibrations=calibrations)


def simulated_noise(noise: Noise) -> Noise:
    """Return noise with the same distribution, for `draw` alone; the noise itself where no table serves.

    That is noise of other than whole numbers, noise that is too wide, and noise whose `logpdf` is not that of masses.
    """
    if isinstance(noise, PooledNoise):
        return evolve(noise, noises=tuple(map(simulated_noise, noise.noises)))
    if isinstance(noise, (ScaledNoise, SummedNoise, RangeNoise)):
        return evolve(noise, noise=simulated_noise(noise.noise))
    return (_tabulated(noise) or noise) if noise.exact is True else noise


def _tabulated(noise: Noise) -> Noise | None:
    reach = 16
    while reach < _MAX_REACH and noise.logpdf(np.array([-reach, reach], np.float64)).max() > _LEAST_LOG_MASS:
        reach *= 2
    with np.errstate(under="ignore"):
        cumulative = np.cumsum(np.exp(noise.logpdf(np.arange(-reach, reach + 1, dtype=np.float64))))
    if not abs(cumulative[-1] - 1.0) <= _MAX_MISSING_MASS:
        return None
    return SimulatedNoise(variance=noise.variance, first=-reach, cumulative=cumulative / cumulative[-1])
