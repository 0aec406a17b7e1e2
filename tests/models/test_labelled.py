"""Labelled tables: every number stands beside its labels."""

import itertools
import json

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.models.arrow_tables import probability_table
from dpgm_core.models.model import Model
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

LABELS = {"sex": ["F", "M"], "town": ["A", "B", "C"], "one": ["only"], "low": ["x", "y"]}
DOMAIN = Domain.from_dict({name: {"labels": own, "unknown": own[0]} for name, own in LABELS.items()})


@pytest.mark.parametrize("names", [("sex",), ("town", "sex"), ("sex", "one", "town"), ("low", "town", "sex", "one")])
def test_each_cell_stands_beside_its_labels(names):
    """Rows are the cells, whatever the order of the names; the stamp is in the metadata."""
    values = np.random.default_rng(0).random(DOMAIN.shape(names))
    found = probability_table(DOMAIN, names, {"probability": values, "error": values + 1}, {"cost": None}, standing="s")
    assert found.column_names == [*names, "probability", "error", "standing"]
    assert set(found["standing"].to_pylist()) == {"s"}
    assert json.loads(found.schema.metadata[b"dpgm"]) == {"cost": None}
    cells = list(itertools.product(*(enumerate(DOMAIN[name].labels) for name in names)))
    assert found.num_rows == len(cells)
    for row, cell in zip(found.to_pylist(), cells, strict=True):
        assert [row[name] for name in names] == [label for _, label in cell]
        value = values[tuple(code for code, _ in cell)]
        assert (row["probability"], row["error"]) == (value, value + 1)


def test_models_give_labelled_answers():
    """Given labels, with intervals where there are replicates; what is not there is said."""
    structure = Structure(DOMAIN, [("sex", "town"), ("low",)])
    theta = np.random.default_rng(1).normal(size=structure.cells)
    model = Model(structure, Tables(structure, theta))
    found = model.table(["town"], given={"sex": "M"})
    assert found["town"].to_pylist() == ["A", "B", "C"]
    np.testing.assert_array_equal(found["probability"], model.marginal("town", given={"sex": "M"}))
    with pytest.raises(OptionError, match="no replicates"):
        model.table("town", level=0.9)
    refitted = model.with_replicates(theta + 0.1 * np.random.default_rng(2).normal(size=(5, theta.size)))
    found, interval = refitted.table("town", level=0.5), refitted.intervals("town", level=0.5)
    np.testing.assert_array_equal(found["probability"], interval.estimate)
    for column in ("standard_error", "low", "high"):
        np.testing.assert_array_equal(found[column], getattr(interval, column))
    assert model.table("low").column_names == ["low", "probability", "standing"]
    with pytest.raises(StructureError, match="two columns 'low'"):
        refitted.table("low", level=0.9)
