"""What the kit calls the shapes of structures, and how it finds out which a learner refuses."""

import pytest
from attrs import frozen

from dpgm_core import StructureError
from dpgm_testing.cases import BINARY_CHAIN, CHAIN, SHAPES, shapes_of
from dpgm_testing.check import Unserved
from dpgm_testing.runner import subject_of
from dpgm_testing.strategies import awkward_structures


def test_each_shape_is_found_where_it_is():
    """In its own example, and in none of an ordinary chain."""
    for name, structure in SHAPES.items():
        assert name in shapes_of(structure)
    assert shapes_of(CHAIN) == shapes_of(BINARY_CHAIN) == frozenset()
    found = {name for name, structure in awkward_structures().items() if "tied cliques" in shapes_of(structure)}
    assert found == {"tied", "tied cycle"}


@frozen(kw_only=True)
class _Learner:
    labels: int
    ties: bool

    def check(self, structure, inference):
        sizes = structure.domain.sizes.values()
        if max(sizes) > self.labels or (not self.ties and max(structure.multiplicities) > 1):
            raise StructureError("no")

    def learn(self, curator, inference, *, randomness, progress):
        raise NotImplementedError


@pytest.mark.parametrize(("labels", "ties"), [(2, True), (9, False), (9, True), (2, False)])
def test_a_learner_shows_what_it_refuses(labels, ties):
    """Two labels alone, ties, both, or nothing; what it refuses is not served, and anything else is."""
    subject, _ = subject_of(_Learner(labels=labels, ties=ties), "learner")
    assert subject.binary is (labels == 2)
    assert subject.refused == (frozenset() if ties else {"tied cliques"})
    assert ("restricted" in subject.capabilities) is not (labels == 9 and ties)
    assert not subject.directed
    tied = awkward_structures()["tied"]
    if ties:
        assert subject.served(tied) == subject.in_domain(tied)
    else:
        with pytest.raises(Unserved, match="has tied cliques, which _Learner refuses"):
            subject.served(tied)
        assert subject.in_domain(tied).multiplicities == tied.multiplicities
    assert subject.chain == subject.in_domain(CHAIN) == (BINARY_CHAIN if labels == 2 else CHAIN)
