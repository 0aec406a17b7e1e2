"""Guarded sessions: they pass on what a session answers, and a replay answers the same requests alone."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Domain, LiveCurator, SeededRandomness, Structure, TableDistance, Terms, Workload
from dpgm_core.sources import as_source
from dpgm_testing.check import CheckFailed
from dpgm_testing.reference import ReferenceLaplace
from dpgm_testing.sessions import live, replayed

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})


def test_scores_and_their_mean_are_two_requests():
    """A replay answers either as the session did, and refuses one for the other."""
    pairs = Structure.complete(DOMAIN)
    scores = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 9.0))
    curator = LiveCurator(
        as_source(np.zeros((40, 3), np.int64)), pairs, ReferenceLaplace(), terms=Terms(neighbours="add-remove"),
        budget=Budget.zcdp(1), randomness=SeededRandomness(1),
    )  # fmt: skip
    with curator.session(workload=Workload.all(DOMAIN)) as session:
        guarded = live(session)
        each = session.budget * Fraction(1, 4)
        asked = [guarded.score(scores, each), guarded.score(scores, each, mean=True)]
        assert [len(one.values) for one in asked] == [3, 1] and tuple(asked) == session.steps
    again = replayed(guarded.log)
    assert [again.score(scores, each), again.score(scores, each, mean=True)] == asked
    again = replayed(guarded.log)
    with pytest.raises(CheckFailed, match="with other arguments"):
        again.score(scores, each, mean=True)
