"""All attributes and pairs are compared, and of very many the important ones."""

import itertools

import numpy as np

from dpgm.comparison import compare, distances
from dpgm_core import Domain, Model, Structure, Tables


def test_of_many_pairs_some_are_compared(monkeypatch):
    """Those in tables, then those of the attributes that differ most; it says how many."""
    monkeypatch.setattr(distances, "MAX_PAIRS", 10)
    domain = Domain.from_sizes({f"x{number}": 2 for number in range(7)})
    structure = Structure.chain(domain)
    uniform = Tables.zeros(structure)
    far = Tables(structure, np.array([0.0, 0.0, 3.0, *[0.0] * 21]))  # x0 and x1 tend to be 1 and 0
    found = compare(Model(structure, uniform), Model(structure, far)).pairs[0]
    pairs = {one.attributes for one in found.differences if len(one.attributes) == 2}
    assert len(pairs) == 10 and pairs >= {*itertools.pairwise(domain.names), ("x0", "x2"), ("x0", "x3")}
    assert "10 of 21 pairs" in found.notes[0]


def test_large_tables_are_left_out(monkeypatch):
    """And said to be; what fits is compared, in as many runs as memory asks for."""
    domain = Domain.from_sizes({"a": 4, "b": 4, "c": 2})
    structure = Structure(domain, [("a", "b"), ("b", "c")])
    models = [Model(structure, Tables(structure, np.random.default_rng(n).normal(size=24))) for n in (1, 2)]
    whole = {one.attributes: one.total_variation for one in compare(*models).pairs[0].differences}
    monkeypatch.setattr(distances, "_MAX_TABLE_CELLS", 10)
    monkeypatch.setattr(distances, "_CELLS_AT_ONCE", 9)
    found = compare(*models).pairs[0]
    assert {one.attributes: one.total_variation for one in found.differences} == {
        names: value for names, value in whole.items() if names != ("a", "b")
    }
    assert "1 tables of more than 10 cells" in found.notes[0]
