"""Small releases with any noise, and brute-force answers to compare the collective engines with."""

import math
import sys

import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Budget, Calibration, Domain, DualTerm, NoisyTables, Structure, Tables, Terms
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.privacy.measurement import Measurement
from dpgm_testing import incidence


class Boundless:
    """Noise that reaches any residual."""

    support, log_concave = (-math.inf, math.inf), True


@frozen
class Laplace(Boundless):
    """Density proportional to exp(-|z| / scale)."""

    scale: float

    @property
    def variance(self):
        return 2 * self.scale**2

    @property
    def dual(self):
        return DualTerm(bound=1 / self.scale, curvature=0.0)

    def logpdf(self, residual):
        return -np.abs(residual) / self.scale - math.log(2 * self.scale)

    def score(self, residual):
        return -np.sign(residual) / self.scale


@frozen
class Huber(Boundless):
    """Quadratic within bound * curvature of 0, then straight: a box and a curvature at once."""

    bound: float
    curvature: float

    @property
    def variance(self):
        return self.curvature + 2 / self.bound**2

    @property
    def dual(self):
        return DualTerm(bound=self.bound, curvature=self.curvature)

    def logpdf(self, residual):
        u = np.clip(residual / self.curvature, -self.bound, self.bound)
        return self.curvature * u**2 / 2 - u * residual

    def score(self, residual):
        return -np.clip(residual / self.curvature, -self.bound, self.bound)


def gaussian(sd):
    """Normal noise: no box, curvature sd^2."""
    return Huber(bound=math.inf, curvature=sd**2)


@frozen
class Hidden(Boundless):
    """The same noise without its dual term: only the general path serves it."""

    noise: object

    @property
    def variance(self):
        return self.noise.variance

    @property
    def dual(self):
        return None

    def logpdf(self, residual):
        return self.noise.logpdf(residual)

    def score(self, residual):
        return self.noise.score(residual)


@frozen
class Broken(Hidden):
    """A mechanism whose score is not a number."""

    def score(self, residual):
        return residual * np.nan


def chain(length, size):
    """A first-order chain."""
    return Structure.chain(Domain.from_sizes({f"x{place}": size for place in range(length)}))


def released(structure, noisy, noises, total):
    """A release of given noisy values, one noise for all tables or one each."""
    noises = noises if isinstance(noises, list) else [noises] * len(structure.groups)
    values = np.asarray(noisy, dtype=np.float64)
    return NoisyTables(
        tables=Tables(structure, values),
        measurement=Measurement(
            structure=structure,
            calibrations=tuple(
                Calibration(noise=noise, component=None, options={}, sensitivity=None, budget=Budget.pure(1))
                for noise in noises
            ),
            of_group=tuple(range(len(noises))),
        ),
        terms=Terms(neighbours="add-remove", total=float(total)),
        total=float(total),
        total_variance=0.0,
        cost=Budget.pure(1),
        private=False,
    )


def noisy_chain(length, size, total, scale, seed):
    """An engine of a chain, and a release of a random model's expected tables with Laplace noise."""
    structure, rng = chain(length, size), np.random.default_rng(seed)
    engine = JunctionTree().compile(structure)
    truth = engine.infer(Tables(structure, rng.normal(size=structure.cells)), total=total).marginals.values
    return engine, released(structure, truth + rng.laplace(0, scale, structure.cells), Laplace(scale), total)


def draw(structure, total, seed, spread=1.0):
    """True tables of `total` records of a random population, (cells,), and the incidence matrix."""
    rng = np.random.default_rng(seed)
    matrix = incidence(structure)
    weights = np.exp(spread * matrix.T @ rng.normal(size=structure.cells))
    return matrix @ rng.multinomial(total, weights / weights.sum()), matrix


@pytest.fixture(scope="session")
def lab():
    """This module."""
    return sys.modules[__name__]
