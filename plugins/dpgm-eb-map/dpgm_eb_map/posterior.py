"""What the noisy tables say about the parameters: expectations and covariances of the reduced statistics."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpgm_core import (
    Engine,
    FloatArray,
    InferenceError,
    Likelihood,
    NoisyTables,
    Progress,
    SecondOrder,
    Tables,
    consistent,
    expected_absolute,
)
from dpgm_eb_map.contrasts import Basis

__all__ = ["Moments", "Product", "pilot", "statistics_of"]

# V -> F V, F the covariance of the statistics of one record
Product = Callable[[FloatArray], FloatArray]

# The pilot's penalties, strongest first, and the steps of L-BFGS under each.
_PILOT = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
_PILOT_STEPS = 60
_PILOT_SLOPE = 0.1  # standard deviations of a noisy cell, sampling and noise: the pilot's largest derivative
# Central differences: nats that the largest potential moves. Loopy beliefs are good to about 1e-8.
_MOVE = 1e-3


class Moments:
    """The statistics under the model, through an engine; counts what it asks in `calls` and `products`."""

    def __init__(self, engine: Engine, basis: Basis) -> None:
        self.engine, self.basis = engine, basis
        self.calls = 0
        self.products = 0

    def mean(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """log Z, marginals of one record (cells,), and their statistics (p,)."""
        self.calls += 1
        beliefs = self.engine.infer(self._potentials(phi))
        marginals = beliefs.marginals.values
        return beliefs.log_partition, marginals, self.basis.statistics(marginals)

    def covariance(self, phi: FloatArray) -> Product:
        """F at phi, as a map of (p,) or (p, m): exact if the engine can, else by central differences."""
        product = self._exact(phi) if isinstance(self.engine, SecondOrder) else self._differences(phi)

        def counted(directions: FloatArray) -> FloatArray:
            self.products += directions.size // max(1, self.basis.size)
            return product(directions)

        return counted

    def _exact(self, phi: FloatArray) -> Product:
        assert isinstance(self.engine, SecondOrder)
        curvature = self.engine.curvature(self._potentials(phi))

        def product(directions: FloatArray) -> FloatArray:
            return self.basis.statistics(curvature(self.basis.potentials(directions)))

        return product

    def along(self, phi: FloatArray, direction: FloatArray) -> FloatArray:
        """F v (p,) at phi, good to about a millionth: central differences, as two inferences cost less than to prepare
        exact second derivatives for one direction."""
        largest = np.abs(self.basis.potentials(direction)).max(initial=0.0)
        if largest == 0.0:
            return np.zeros_like(direction)
        move = _MOVE / largest
        up, down = (self.mean(phi + sign * move * direction)[2] for sign in (1, -1))
        slope: FloatArray = (up - down) / (2 * move)
        return slope

    def _differences(self, phi: FloatArray) -> Product:
        def product(directions: FloatArray) -> FloatArray:
            found: FloatArray = np.apply_along_axis(lambda one: self.along(phi, one), 0, directions)
            return found

        return product

    def _potentials(self, phi: FloatArray) -> Tables:
        return Tables(self.basis.structure, self.basis.potentials(phi))


def statistics_of(basis: Basis, release: NoisyTables) -> FloatArray:
    """z = B'y of a release's tables, records (p,). Raises InferenceError for values that are not finite."""
    noisy = release.tables.values.astype(np.float64)
    if not np.isfinite(noisy).all():
        raise InferenceError("eb-map: the noisy tables hold NaN or infinite values")
    return basis.statistics(noisy)


def pilot(moments: Moments, release: NoisyTables, progress: Progress) -> FloatArray:
    """Ridge regression on the noisy tables, weakened until the fit is as near to them as noise would be; phi (p,)."""
    noisy = release.tables.values.astype(np.float64)
    allowed = sum(
        cells * expected_absolute(noise) for cells, noise in zip(release.structure.sizes, release.noise, strict=True)
    )
    # Without its part outside the model's span, which no fit can reach; the constant part does not count.
    target = consistent(Tables(release.structure, noisy / release.total))
    centred = target.values + target.repeat(
        (np.asarray(release.structure.multiplicities) - target.sums()) / np.asarray(release.structure.sizes)
    )
    problem = Likelihood(moments.engine, Tables(release.structure, centred), progress)
    sampling = release.totals / np.asarray(release.structure.sizes)
    slope = _PILOT_SLOPE * math.sqrt(float((release.variances + sampling).min())) / release.total
    theta = np.zeros(release.structure.cells)
    for strength in _PILOT:
        theta, _ = problem.minimise(theta, strength, slope, _PILOT_STEPS)
        if float(np.abs(noisy - release.total * problem.marginals).sum()) <= allowed:
            break
    moments.calls += problem.calls
    return moments.basis.parameters(theta)
