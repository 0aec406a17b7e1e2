"""Expectations and covariances of the reduced statistics, and the pilot fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpgm_core import Engine, FloatArray, InferenceError, NoisyTables, Progress, SecondOrder, Tables
from dpgm_core.inference import infer_all
from dpgm_core.learning import Likelihood, consistent, expected_distance
from dpgm_core.privacy import products
from dpgm_eb_map.contrasts import Basis
from dpgm_eb_map.joints import covariance_by_pairs

__all__ = ["Moments", "Product", "measured", "pilot", "statistics_of"]

# V -> F V, F the covariance of the statistics of one record
Product = Callable[[FloatArray], FloatArray]

_PILOT_STEPS = 60
_CAUTIOUS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)  # penalties, strongest first
_PILOT_SLOPE = 0.1  # standard deviations of a noisy cell, sampling and noise: the pilot's largest derivative
# Differences: nats that the largest potential moves. Loopy beliefs are good to about 1e-8, so theirs are central. Exact
# engines take `Basis.bound` for it and one side, which errs by 5e-8 to 1e-6 of the product.
_MOVE, _MOVE_EXACT = 1e-3, 1e-6


class Moments:
    """The statistics under the model, through an engine; counts what it asks in `calls` and `products`."""

    def __init__(self, engine: Engine, basis: Basis) -> None:
        self.engine, self.basis = engine, basis
        self.exact = isinstance(engine, SecondOrder)
        self.calls = 0
        self.products = 0

    def mean(self, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """log Z, marginals of one record (cells,), and their statistics (p,)."""
        self.calls += 1
        beliefs = self.engine.infer(self._potentials(phi))
        marginals = beliefs.marginals.values
        return beliefs.log_partition, marginals, self.basis.statistics(marginals)

    def means(self, points: Sequence[FloatArray]) -> list[FloatArray | None]:
        """The statistics (p,) at each of the parameters (p,); None where the engine gives up."""
        potentials = self.basis.potentials(np.array(points).T)
        try:
            beliefs = infer_all(self.engine, list(np.ascontiguousarray(potentials.T)))
        except InferenceError:
            return [self._mean_or_none(phi) for phi in points]
        self.calls += len(points)
        marginals = np.array([one.marginals.values for one in beliefs])
        return list(np.ascontiguousarray(self.basis.statistics(marginals.T).T))

    def _mean_or_none(self, phi: FloatArray) -> FloatArray | None:
        try:
            return self.mean(phi)[2]
        except InferenceError:
            return None

    def covariance(self, phi: FloatArray) -> Product:
        """F at phi, as a map of (p,) or (p, m): exact if the engine can, else by central differences."""
        product = self._exact(phi) if isinstance(self.engine, SecondOrder) else self._differences(phi)

        def counted(directions: FloatArray) -> FloatArray:
            self.products += directions.size // max(1, self.basis.size)
            return product(directions)

        return counted

    def covariances(self, phi: FloatArray) -> FloatArray:
        """F at phi, (p, p), symmetric."""
        potentials = self._potentials(phi)
        covariances = covariance_by_pairs(self.engine, self.basis, potentials)
        if covariances is not None:
            self.calls += 1
            return covariances
        if isinstance(self.engine, SecondOrder):
            self.products += self.basis.size
            covariances = self.basis.statistics(self.engine.curvature(potentials)(self.basis.matrix()))
        else:
            covariances = self.covariance(phi)(np.eye(self.basis.size))
        covariances = covariances + covariances.T
        covariances *= 0.5
        return covariances

    def _exact(self, phi: FloatArray) -> Product:
        assert isinstance(self.engine, SecondOrder)
        curvature = self.engine.curvature(self._potentials(phi))

        def product(directions: FloatArray) -> FloatArray:
            return self.basis.statistics(curvature(self.basis.potentials(directions)))

        return product

    def along(self, phi: FloatArray, direction: FloatArray) -> FloatArray:
        """F v (p,) at phi, good to about a millionth: central differences, as two inferences cost less than to prepare
        exact second derivatives for one direction."""
        move = self._central_move(direction)
        if move == 0.0:
            return np.zeros_like(direction)
        up, down = (self.mean(phi + sign * move * direction)[2] for sign in (1, -1))
        slope: FloatArray = (up - down) / (2 * move)
        return slope

    def move(self, direction: FloatArray) -> float:
        """Return the step of differences, to one side of exact engines; 0 where the direction moves no potential."""
        if not self.exact:
            return self._central_move(direction)
        bound = self.basis.bound(direction)
        return _MOVE_EXACT / bound if bound > 0.0 else 0.0

    def _central_move(self, direction: FloatArray) -> float:
        """Return the step of central differences."""
        largest = float(np.abs(self.basis.potentials(direction)).max(initial=0.0))
        return _MOVE / largest if largest > 0.0 else 0.0

    def _differences(self, phi: FloatArray) -> Product:
        def product(directions: FloatArray) -> FloatArray:
            products: FloatArray = np.apply_along_axis(lambda one: self.along(phi, one), 0, directions)
            return products

        return product

    def _potentials(self, phi: FloatArray) -> Tables:
        return Tables(self.basis.structure, self.basis.potentials(phi))


def statistics_of(basis: Basis, release: NoisyTables) -> FloatArray:
    """z = B'y of a release's tables, records (p,). Raises InferenceError for values that are not finite."""
    noisy = release.tables.values.astype(np.float64)
    if not np.isfinite(noisy).all():
        raise InferenceError("eb-map: the noisy tables hold NaN or infinite values")
    return basis.statistics(noisy)


def measured(release: NoisyTables, tables: Tables) -> FloatArray:
    """The numbers of tables like the release's that it measured: their cells, or their contrasts; records."""
    return (products(tables) if release.contrasts else tables.values).astype(np.float64)


def pilot(moments: Moments, release: NoisyTables, progress: Progress, *, cautious: bool) -> FloatArray:
    """Ridge regression on the noisy tables with the penalty of a standard normal prior, noise considered; phi (p,).

    A cell of mu N records tells (mu N)^2 / (v + mu N) about its logarithm, and mu N if the noise v is not considered:
    where it is not, the prior's precision is raised by the quotient, here at equal cells. cautious: come from strong
    penalties, and stop where the fit is as near to the tables as noise would be, for rounds that cannot go far.
    """
    structure = release.structure
    # Without its part outside the model's span, which no fit can reach; the constant part does not count.
    target = consistent(Tables(structure, release.tables.values / release.total), release.variances)
    sizes = np.asarray(structure.sizes)
    centred = target.values + target.repeat((np.asarray(structure.multiplicities) - target.sums()) / sizes)
    sampling = release.totals / sizes
    variances = release.variances + sampling
    penalty = float(np.mean(variances / sampling)) / (2 * release.total)
    slope = _PILOT_SLOPE * math.sqrt(float(variances.min())) / release.total
    problem = Likelihood(moments.engine, Tables(structure, centred), progress, "first fit")
    allowed, _ = expected_distance(release)
    theta = np.zeros(structure.cells)
    for strength in [*(one for one in _CAUTIOUS if cautious and one > penalty), penalty]:
        theta, _ = problem.minimise(theta, strength, slope, _PILOT_STEPS)
        fitted = measured(release, Tables(structure, release.total * problem.marginals))
        if float(np.abs(measured(release, release.tables) - fitted).sum()) <= allowed:
            break
    moments.calls += problem.calls
    return moments.basis.parameters(Tables(structure, theta))
