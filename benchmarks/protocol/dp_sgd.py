"""DP-SGD as it is compared: its settings, and the curator of the records that it reads in every step."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from benchmarks.protocol.populations import Population
from dpgm_core import Budget, LiveCurator, SeededRandomness, Terms, make
from dpgm_core.sources import as_source

__all__ = ["curator", "learners"]


def curator(codes: np.ndarray, population: Population, epsilon: float, seed: int) -> LiveCurator:
    """A curator with (epsilon, 1/N) to spend."""
    return LiveCurator(
        as_source(codes),
        population.structure,
        make("mechanism", "gaussian"),
        terms=Terms(neighbours="add-remove", total=float(len(codes))),
        budget=Budget.approx(epsilon, 1 / len(codes)),
        randomness=SeededRandomness(seed),
    )


def learners() -> dict[str, object]:
    """What is compared: name -> a function from a learning rate to a learner, and whether it takes one release."""
    psgd = make("learner", "psgd", epochs=10, sampling_rate=0.1, momentum=0.9)
    return {
        "DP-SGD, q = .01, 10 epochs": evolve(psgd, sampling_rate=0.01),
        "DP-SGD, q = .1, 10 epochs": psgd,
        "DP-SGD, q = .1, 10 epochs, clipped": evolve(psgd, mode="clip"),
        "DP-SGD, q = 1, 100 epochs": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 100 steps": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 1000 steps": evolve(psgd, sampling_rate=1.0, epochs=1000),
    }
