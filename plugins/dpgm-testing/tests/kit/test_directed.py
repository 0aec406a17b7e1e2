"""Directed forms: every clique has a family, and no model of the structure is lost."""

import pytest
from hypothesis import given, settings

from dpgm_core import Dag, Model, StructureError, TooLarge, project
from dpgm_testing.cases import CHAIN, DIRECTED_CHAIN, awkward_networks, directed_form
from dpgm_testing.check import Unserved
from dpgm_testing.runner import subject_of
from dpgm_testing.strategies import awkward_structures, potentials, structures


@settings(max_examples=40)
@given(potentials(over=structures(max_attributes=4, max_size=3, tied=False), scales=(1.0,), zeros=(0.0,)))
def test_every_model_over_a_structure_is_a_network_over_its_directed_form(theta):
    """Projected on it, it stays the same law: KL is 0 to rounding; and each clique lies in a family."""
    form = directed_form(theta.structure)
    model = Model(theta.structure, theta).using(unmeasured="uniform")
    assert abs(model.kl(project(model, Dag.of(form)).using(unmeasured="uniform"))) < 1e-9
    assert all(form.covering(clique) is not None for clique in theta.structure.cliques)


def test_a_directed_graph_stays_as_it_is_and_ties_have_no_form():
    """Its families are not turned round."""
    for structure in awkward_networks().values():
        assert directed_form(structure) == structure
    found = {name for name, structure in awkward_structures().items() if directed_form(structure) is None}
    assert found == {"tied", "tied cycle"}


class Refuses:
    """A learner whose check raises what the test says, of whatever is no directed graph or of everything."""

    def __init__(self, error, everything=False):
        self.error, self.everything = error, everything

    def check(self, structure, inference):
        if self.everything or structure == CHAIN:
            raise self.error


@pytest.mark.parametrize(
    ("learner", "directed"),
    [
        (Refuses(StructureError("no graph")), True),
        (Refuses(StructureError("no graph"), everything=True), False),
        (Refuses(TooLarge("wide")), False),
        (Refuses(ValueError("broken")), False),
        (Refuses(None), False),
    ],
    ids=["graphs alone", "nothing", "too large", "broken", "raises no error"],
)
def test_who_takes_directed_graphs_alone_is_found_by_asking(learner, directed):
    """One refusal decides it: StructureError of a chain, and none of the chain as a graph."""
    subject, _ = subject_of(learner, "learner")
    assert (subject.directed, subject.capabilities) == (directed, {"directed"} if directed else set())
    assert subject.served(CHAIN) == (DIRECTED_CHAIN if directed else CHAIN)


def test_tied_cliques_are_not_served_and_the_reason_says_so():
    """A check that loops over structures goes on to the next one."""
    subject, _ = subject_of(Refuses(StructureError("no graph")), "learner")
    with pytest.raises(Unserved, match="has no directed form, and Refuses takes no other"):
        subject.served(awkward_structures()["tied"])
