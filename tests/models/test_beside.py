"""Labels stand beside their numbers, the last attribute's fastest, as `Model.table` has them."""

import re

import numpy as np

from dpgm_core import Domain, Model, Structure, Tables
from dpgm_core.models.notebook import number_table


def cells(html: str) -> list[list[str]]:
    """The rows of a table's body."""
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)[1:]]


def test_rows_are_those_of_the_arrow_table():
    """Three attributes of different sizes: every number stands beside the labels that `table` gives it."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a", "b", "c")])
    theta = np.log(np.arange(1.0, 13.0).reshape(2, 3, 2))
    model = Model(structure, Tables.from_arrays(structure, {("a", "b", "c"): theta}))
    names = ("c", "a", "b")
    labels = tuple(model.domain[name].labels for name in names)
    shown = cells(number_table(names, labels, {"probability": model.marginal(names)}, "measured"))
    expected = [
        [*(row[name] for name in names), f"{row['probability']:.4g}", "measured"]
        for row in model.table(names).to_pylist()
    ]
    assert shown == expected


def test_a_single_number_has_a_row_of_its_own():
    """An interval of an entropy has no axes and no labels."""
    assert cells(number_table((), (), {"low": np.array(0.25), "high": np.array(0.5)}, None)) == [["0.25", "0.5"]]
