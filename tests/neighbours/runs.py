"""Runs of the whole way on given records: `dpgm fit` on a file, and `fit` on what Python holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

import dpgm_core as dpgm
from tests.neighbours.observe import Run

__all__ = ["TERMS", "Pair", "file_run", "python_run"]

#: What changes between neighbours: a record more, or another record in the place of one.
TERMS = {"add": "add-remove", "replace": "replace-one"}

_SPEC = """
name = "x"
domain = "domain.toml"
neighbours = "{neighbours}"
budget = {{ epsilon = 1 }}
learner = {{ name = "naive-mle", l2 = 0.01 }}
structure = {{ cliques = [["sex", "age"]] }}
{more}
[ledger]
path = "x.ledger"
budget = {{ epsilon = 9 }}
create = true
[output]
folder = "out"
"""
_DOMAIN = b"""
[attributes.sex]
labels = ["F", "M", "1"]
unknown = "F"
null = "M"
[attributes.age]
bins = [0, 40, 99]
unknown = "?"
"""


@frozen
class Pair:
    """Two runs that may differ in their noise only."""

    name: str
    one: Run
    other: Run


def file_run(name: str, content: bytes, data: str, change: str, keyed: bool) -> Run:
    """`dpgm fit` or, faster, `dpgm release` on a file of this content. data: its value in the spec."""
    person = 'person = "id"\nrows_per_person = 2' if keyed else ""
    spec = _SPEC.format(neighbours=TERMS[change], more=f"data = {data}\n{person}")
    command = "fit" if keyed else "release"
    return Run(
        words=("--debug", command, "FOLDER/x.toml"),
        files={"x.toml": spec.encode(), "domain.toml": _DOMAIN, name: content},
    )


def python_run(data: Callable[[], object], change: str, keyed: bool) -> Run:
    """`fit` on what `data` makes, with a ledger and a file for the release."""

    def run(folder: Path) -> object:
        (folder / "domain.toml").write_bytes(_DOMAIN)
        structure = dpgm.Structure(dpgm.Domain.load(folder / "domain.toml"), [("sex", "age")])
        terms = dpgm.Terms(
            neighbours=TERMS[change], person="id" if keyed else None, rows_per_person=2 if keyed else 1, unit="one"
        )
        ledger = dpgm.Ledger.create(
            folder / "x.ledger", name="x", budget=dpgm.Budget.pure(1), neighbours=terms.neighbours, unit=terms.unit,
            person=terms.person, rows_per_person=terms.rows_per_person,
        )  # fmt: skip
        learner = {"name": "naive-mle", "l2": 0.01}
        path = folder / "x.release.dpgm"
        done = dpgm.fit(
            data(), structure, dpgm.Budget.pure(1), learner=learner, terms=terms, ledger=ledger, save_release=path
        )
        return done.model.guarantee()

    return Run(python=run)
