"""What a learner says it will measure is believed, where a curator would follow it."""

import pytest

from dpgm_core import Domain, Structure
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.learning.ahead import foreseen

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b"), ("b",)])
LARGEST = Structure(DOMAIN, [("a", "b")])


class Says:
    """A learner that foresees what the test says."""

    def __init__(self, answer):
        self.answer = answer

    def foreseen(self, structure):
        return self.answer


@pytest.mark.parametrize("split", ["even", "optimal", None])
def test_tables_and_split_are_passed_on(split):
    """None leaves the split to the run; who foresees nothing says nothing of either."""
    assert foreseen(Says((LARGEST, split)), STRUCTURE) == (LARGEST, split)
    assert foreseen(object(), STRUCTURE) == (None, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (LARGEST, "Structure, not a pair"),
        ((LARGEST,), "not a pair"),
        ((LARGEST.cliques, None), "not a pair"),
        ((LARGEST, "most"), "no split"),
        ((LARGEST, 2), "no split"),
        ((Structure(DOMAIN, [("a", "c")]), None), r"a table of \('a', 'c'\), which no clique"),
        ((Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")]), None), "another domain"),
    ],
)
def test_what_no_curator_would_follow_is_the_plugins_fault(answer, words):
    """One line that names the learner."""
    with pytest.raises(IncompatiblePlugin, match=f"learner Says foresees .*{words}") as error:
        foreseen(Says(answer), STRUCTURE)
    assert "\n" not in str(error.value)
