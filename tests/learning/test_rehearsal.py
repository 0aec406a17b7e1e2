"""Rehearsals: releases simulated from a pilot, and how far from it fits to them are."""

import numpy as np
import pytest

from dpgm_core import (
    Budget,
    Domain,
    InferenceError,
    Model,
    SeededRandomness,
    Structure,
    Tables,
    kl_divergence,
    make,
    release,
    silent,
)
from dpgm_core.learning import Rehearsal

STRUCTURE = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))


def noisy():
    """A release of records without any structure."""
    codes = np.random.default_rng(0).integers(0, 2, (500, 3))
    return release(codes, STRUCTURE, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))


def rehearsal(pilot, seed=1, engine="junction-tree"):
    """Three draws."""
    compiled = make("inference", engine).compile(STRUCTURE)
    return Rehearsal(noisy(), compiled, pilot, draws=3, randomness=SeededRandomness(seed), progress=silent)


def test_the_loss_is_the_mean_divergence_from_the_pilot():
    """KL(pilot || fit) as `kl_divergence` computes it, averaged; the pilot itself loses nothing."""
    rng = np.random.default_rng(3)
    pilot = Tables(STRUCTURE, rng.normal(size=STRUCTURE.cells))
    fits = [rng.normal(size=STRUCTURE.cells) for _ in range(3)]
    found = rehearsal(pilot)
    exact = [kl_divergence(model(pilot), model(Tables(STRUCTURE, theta))) for theta in fits]
    assert found.loss(fits) == pytest.approx(np.mean(exact), rel=1e-9)
    assert found.loss([pilot.values] * 3) == pytest.approx(0, abs=1e-12)


def model(potentials):
    """As users have it."""
    return Model(STRUCTURE, potentials)


def test_the_same_seed_rehearses_the_same():
    """Draws differ from each other, and are the same for the same randomness."""
    pilot = Tables.zeros(STRUCTURE)
    first, again, other = ([one.tables.values for one in rehearsal(pilot, seed).releases] for seed in (1, 1, 2))
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[0], other[0])


def test_an_engine_that_cannot_sample_is_refused():
    """With what to use instead."""
    with pytest.raises(InferenceError, match="use junction-tree"):
        rehearsal(Tables.zeros(STRUCTURE), engine="loopy-bp")


def test_the_vertex_of_a_parabola():
    """Of (x - .3)^2 it is .3; where there is no least place, the middle."""
    assert Rehearsal.vertex(1.3**2, 0.3**2, 0.7**2) == pytest.approx(0.3)
    assert Rehearsal.vertex(0.0, 1.0, 0.0) == 0.0
