"""What may be asked of a session: core's own scores, and candidates by the names of its workload."""

import numpy as np
import pytest

from dpgm_core import (
    OptionError,
    Structure,
    StructureError,
)
from dpgm_core.curator.asked import Candidates
from dpgm_core.privacy.scores import TableDistance
from tests.curator.opened import DOMAIN, MERGED, PAIRS, WORKLOAD, curator


def test_a_child_of_a_score_is_none():
    """It could say that nobody moves it, and every choice would be nearly free."""

    class Still(TableDistance):
        def move(self, terms):
            return 1

    still = Still(candidates=PAIRS, predicted=np.zeros(PAIRS.cells))
    opened = curator(neighbours="replace-one").session(workload=WORKLOAD)
    with opened as session, pytest.raises(OptionError, match="core alone knows"):
        session.select(still, session.budget)


def test_candidates_have_the_names_of_the_workload():
    """Whatever the order of a clique's attributes; what is asked as a structure must have it, and the domain."""
    candidates = Candidates(WORKLOAD)
    assert candidates.named([("b", "a"), "d"], MERGED) == Structure(MERGED, [("a", "b"), ("d",)])
    candidates.check(PAIRS, DOMAIN)
    for asked, words in ((PAIRS, "another domain"), (Structure(MERGED, [("b", "a")]), "in the order of the domain")):
        with pytest.raises(StructureError, match=words):
            candidates.check(asked, MERGED)
