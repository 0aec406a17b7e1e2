"""Plans and checks: what a run would spend, see and refuse, told before it starts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, DataError, Domain, Structure, Terms
from dpgm_core.pipeline.run import Run

STRUCTURE = Structure(Domain.from_sizes({"a": 3, "b": 2}), [("a", "b")])


def dry_run(*settings, **named):
    """The run's own check, with the arguments of `fit`."""
    Run(*settings, **named).check()


def test_the_check_asks_for_batches_and_takes_none(tmp_path):
    """What a release would refuse by names and types alone is refused before it, in the same words; no row is read."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    tables = {
        "names": pa.table({"a": [0], "x": [1]}),
        "labels": pa.table({"a": pa.array([[0]]), "b": [1]}),
        "keys": pa.table({"a": [0], "b": [1], "id": [1.0]}),
        "fine": pa.table({"a": [0], "b": [1], "id": [1]}),
    }
    for name, table in tables.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        terms = Terms(neighbours="add-remove", person="id" if "id" in table.column_names else None)
        said = []
        for call in (dry_run, dpgm.release):
            try:
                call(path, structure, Budget.pure(1), terms=terms)
                said.append("")
            except DataError as error:
                said.append(str(error))
        assert said[0] == said[1] and bool(said[0]) == (name != "fine"), name

    class Yields:
        def batches(self, domain, columns):
            raise AssertionError("it was read")
            yield

    Run(Yields(), structure, Budget.pure(1), terms=Terms(neighbours="add-remove")).check()
    with pytest.raises(DataError, match="cannot read a person key"):
        Run(Yields(), structure, Budget.pure(1), terms=Terms(neighbours="add-remove", person="id")).check()


def test_a_folder_is_looked_at_before_the_charge(tmp_path):
    """A file of it that lacks a column refuses the run; folders and patterns that are there are found."""
    structure, terms = Structure(Domain.from_sizes({"a": 2}), [("a",)]), Terms(neighbours="add-remove")
    folder = tmp_path / "t"
    for name, column in (("1.parquet", "a"), ("2.parquet", "b")):
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({column: [0, 1]}), folder / name)
    ledger = dpgm.Ledger.create(tmp_path / "l", name="x", budget=Budget.pure(1), neighbours="add-remove")
    for call in (dry_run, dpgm.release):
        with pytest.raises(DataError, match=r"t/2\.parquet has no column 'a'"):
            call(folder, structure, Budget.pure(1), terms=terms, **({"ledger": ledger} if call is dpgm.release else {}))
    assert ledger.remaining() == Budget.pure(1)
    Run(folder / "1*.parquet", structure, Budget.pure(1), terms=terms).check()
    with pytest.raises(DataError, match="holds no Parquet file"):
        Run(folder / "3*.parquet", structure, Budget.pure(1), terms=terms).check()
    with pytest.raises(DataError, match="there is no data file"):
        Run(folder / "3.parquet", structure, Budget.pure(1), terms=terms).check()


class InTwo:
    """A learner of two releases, that takes pure budgets alone and foresees nothing."""

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        if curator.budget.kind != "pure":
            raise dpgm.BudgetError("two releases take a pure budget")
        curator.release(budget=curator.remaining * Fraction(1, 10))


def test_a_plan_says_where_the_learner_does_otherwise_and_refuses_what_it_refuses_of_a_budget():
    """`check` is told of no budget, so the learner is asked to learn, from a curator that gives nothing."""
    asked = {"mechanism": "gaussian", "neighbours": "add-remove", "learner": InTwo()}
    told = dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", learner=InTwo())
    assert "a first look" in told.notes[0] and told.tables[0].noise > 0
    for kind in (Budget.zcdp(1), Budget.approx(1, "1e-6")):
        with pytest.raises(dpgm.BudgetError, match="take a pure budget"):
            dpgm.plan(STRUCTURE, kind, **asked)
        with pytest.raises(dpgm.BudgetError, match="take a pure budget"):
            Run(
                np.zeros((5, 2), int), STRUCTURE, kind, "gaussian", InTwo(), terms=Terms(neighbours="add-remove")
            ).check()
    assert dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", learner="naive-mle").notes == ()
