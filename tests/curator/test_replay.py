"""A replay tells learners that nothing they ask of it costs anything; the curator of records that it does."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, LiveCurator, ReplayCurator, SeededRandomness, Structure
from dpgm_core.releases.levelled import LevelledCurator
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
        neighbours="add-remove",
        budget=Budget.pure(1),
        randomness=SeededRandomness(1),
    )


@pytest.mark.parametrize("wrapped", [lambda made: made, LevelledCurator, Door], ids=["itself", "levelled", "door"])
def test_curators_say_whether_their_releases_were_paid_for_before(wrapped):
    """A wrapped curator says what the one inside says, so a learner need not know which class serves it."""
    assert wrapped(live()).replayed is False
    assert wrapped(ReplayCurator(live().release())).replayed is True
