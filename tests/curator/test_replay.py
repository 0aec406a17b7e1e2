"""A replay tells learners that nothing they ask of it costs anything; the curator of records that it does."""

import numpy as np

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, LiveCurator, ReplayCurator, SeededRandomness, Structure, Terms
from dpgm_core.sources import as_source
from dpgm_core.testing.doors import Door

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
CODES = np.array([[0, 1], [1, 1]] * 20)


def live() -> LiveCurator:
    """A curator over a few records."""
    return LiveCurator(
        as_source(CODES),
        STRUCTURE,
        dpgm.make("mechanism", "laplace"),
        terms=Terms(neighbours="add-remove"),
        budget=Budget.pure(1),
        randomness=SeededRandomness(1),
    )


def test_curators_say_whether_their_releases_were_paid_for_before():
    """A learner need not know which class serves it."""
    assert live().replayed is False and Door(live()).replayed is False
    assert ReplayCurator(live().release()).replayed is True
