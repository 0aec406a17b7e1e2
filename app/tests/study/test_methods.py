"""The combinations that are compared, told apart in words and in files."""

from attrs import evolve

from dpgm.study import run
from dpgm_core import Budget, Terms


def test_selectors_and_persons(study):
    """A selector draws the noise of each mechanism; several rows to a person make more of it."""
    chosen = evolve(study, learners="naive-mle", budgets=Budget.pure(1), selectors=["named", "mst"])
    chosen = evolve(chosen, mechanisms=["laplace", "gaussian"], repeat=1)
    labels = ["laplace / named", "laplace / mst", "gaussian / named", "gaussian / mst"]
    assert [method.label for method in chosen.methods] == labels
    rows = run(chosen).rows
    assert [row.failures for row in rows] == [0, 0, 1, 1]
    assert rows[1].names["mechanism"] == "laplace"
    alone = evolve(study, learners="naive-mle", repeat=8, budgets=Budget.pure(1))
    several = evolve(alone, terms=Terms(neighbours="add-remove", person="id", rows_per_person=20))
    assert run(several).rows[0].means["kl"].mean > 2 * run(alone).rows[0].means["kl"].mean
