"""How far noisy tables are expected to be from the truth."""

import math

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure
from dpgm_core.learning.likelihood import expected_absolute
from dpgm_core.releases.pooling import PooledNoise


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "40"])
def test_the_expected_noise_of_discrete_laplace(epsilon):
    """E|Z| = 2 p / (1 - p^2) with p = exp(-epsilon), from narrow to wide."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noise = dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(epsilon))
    p = math.exp(-float(epsilon))
    assert expected_absolute(noise) == pytest.approx(2 * p / (1 - p * p), rel=1e-3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilons", [("0.1", "0.1"), ("0.1", "0.01"), ("0.5", "0.3", "0.4"), ("0.001", "1")], ids=str)
def test_the_expected_noise_of_a_mean(epsilons):
    """Of Laplace noise it is not the Gaussian's: the true law of the mean, lattices and all, by 4e5 draws (.6 per cent
    is four standard errors, of a fixed seed). Of two equal wide ones it is 3/4 of the scale."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noises = tuple(dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(one)) for one in epsilons)
    precisions = np.array([1 / noise.variance for noise in noises])
    mean = PooledNoise(noises=noises, weights=tuple(precisions / precisions.sum()))
    drawn = np.abs(mean.draw((400_000,), dpgm.SeededRandomness(1))).mean()
    assert expected_absolute(mean) == pytest.approx(drawn, rel=6e-3)
    if len(set(epsilons)) == 1:
        assert expected_absolute(mean) == pytest.approx(0.75 / float(epsilons[0]), rel=2e-3)
