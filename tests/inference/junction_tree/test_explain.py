"""What an engine says of itself is what its plan does."""

import math

import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree import engine as engines
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure


def test_the_figures_are_those_of_the_plan(awkward, monkeypatch):
    """All steps together take the time predicted, and their cells are the largest cluster's where one is that large."""
    monkeypatch.setattr(engines, "_DEAREST", 1000)
    engine = JunctionTree().compile(awkward)
    told = engine.explain()
    domain = awkward.domain
    assert told.needs == engine.needs
    assert set(told.order) == {one.name for one in domain if one.size > 1}
    assert told.steps == len(told.dearest)
    assert told.seconds == pytest.approx(sum(step.seconds for step in told.dearest))
    assert [step.seconds for step in told.dearest] == sorted((step.seconds for step in told.dearest), reverse=True)
    for step in told.dearest:
        union = set().union(*step.operands)
        assert step.cells == math.prod(domain.shape(union))
        assert step.summed is None or all(step.summed in operand for operand in step.operands)
    assert told.widest_cells == math.prod(domain.shape(told.widest))
    assert told.widest_cells >= max(math.prod(domain.shape(clique)) for clique in awkward.cliques)
    work = sum((1 + len(step.operands)) * step.cells for step in told.dearest)
    assert work == told.needs.multiply_adds


def test_it_reads_well():
    """A chain by hand: all of it on a few lines, the five dearest steps last."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 10 for i in range(12)}), 3)
    told = JunctionTree().compile(structure).explain()
    lines = str(told).splitlines()
    assert lines[0].startswith(f"executor {told.executor}, {told.steps} steps, about ")
    assert lines[1].endswith(f"the fastest of {told.tried} tried; treewidth 3")
    assert lines[2].startswith("widest cluster: x") and lines[2].endswith(", 10,000 cells")
    assert lines[4] == "dearest steps:" and len(lines) == 10
    assert any("sum over x" in line for line in lines[5:]) and "x" in repr(told)


def test_an_engine_that_honours_constraints_explains_the_one_within():
    """With the clique that the constraint needs; an engine that cannot explain itself says so."""
    rules = {"x": {"columns": ["a", "b"], "order": "<="}}
    domain = Domain.from_dict({"attributes": {name: {"size": 3, "unknown": 0} for name in "abc"}, "constraints": rules})
    structure = Structure(domain, [("a", "c")])
    told = JunctionTree().compile(structure).explain()
    assert set(told.widest) in ({"a", "b"}, {"a", "c"})
    with pytest.raises(InferenceError, match="LoopyEngine cannot say what an inference will do"):
        LoopyBP().compile(structure).explain()
