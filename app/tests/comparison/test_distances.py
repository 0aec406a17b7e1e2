"""Domains are matched by names and labels; all attributes and pairs are compared, of many the important ones."""

import itertools
import json

import numpy as np
import pytest
from scipy.stats import norm

import dpgm_core as dpgm
from app.tests.made import CODES, domain_of, release_of
from dpgm.comparison import compare, distances
from dpgm.comparison.distances import joint_cell_score
from dpgm.comparison.values import matching
from dpgm_core import Domain, Model, Structure, Tables
from dpgm_core._util.files import plain


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
    del whole["a", "b"]
    assert {one.attributes: one.total_variation for one in found.differences} == whole
    assert "1 tables of more than 10 cells" in found.notes[0]


@pytest.mark.parametrize(("cells", "degrees"), [(1, np.inf), (40, np.inf), (40, 5.0)])
def test_a_score_is_above_z_as_rarely_as_a_normal_deviate(cells, degrees):
    """Of 4,000 tables of noise alone, for any number of cells; with few replicates, Student's t."""
    generator = np.random.default_rng(7)
    noise = generator.normal(size=(4000, cells))
    if np.isfinite(degrees):
        noise /= np.sqrt(generator.chisquare(degrees, size=(4000, cells)) / degrees)
    scores = [joint_cell_score(row, np.ones(cells), degrees) for row in noise]
    assert np.mean(np.array(scores) > 1.5) <= 2 * norm.sf(1.5) * 1.15
    assert np.mean(np.array(scores) > 1.5) >= norm.sf(1.5) * 0.5


def test_no_error_and_no_difference():
    """Equal without an error is 0; different without one is beyond all errors; errors without end explain all."""
    assert joint_cell_score(np.zeros(3), np.zeros(3)) == 0
    assert joint_cell_score(np.array([0.1, 0.0]), np.zeros(2), 5.0) == np.inf
    assert joint_cell_score(np.array([0.1]), np.array([np.inf])) == 0


def test_scores_are_of_what_errors_do_not_explain(fitted, people):
    """Two models of the same people: nothing; one of other people: where they differ, and there only."""
    same = compare(*fitted).pairs[0]
    assert max(found.score for found in same.differences) < 3
    others = CODES.copy()
    others[:800, 1] = 2  # older
    other = dpgm.learn(release_of(people, others, ("sex", "job"), ("age",), seed=5), "naive-mle").model
    other = dpgm.bootstrap(other, 10, randomness=dpgm.SeededRandomness(5))
    scores = {found.attributes: found.score for found in compare(fitted[0], other).pairs[0].differences}
    assert scores["age",] > 3 and scores["sex",] < 3 and scores["sex", "job"] < 3


def test_other_orders_are_matched():
    """Of attributes and of labels: a table of the other is turned into the first's order, axis by axis."""
    one = domain_of(a=["x", "y", "z"], b=["1", "2"])
    two = domain_of(b=["2", "1"], a=["z", "x", "y"])
    found = matching(one, two)
    assert found.shared == found.reordered == ("a", "b")
    table = np.arange(6).reshape(3, 2)  # axes a, b, the other's labels
    aligned = found.aligned(("a", "b"), table)
    for label, code in {"x": 1, "y": 2, "z": 0}.items():
        for number, place in {"1": 1, "2": 0}.items():
            assert aligned[one["a"].labels.index(label), one["b"].labels.index(number)] == table[code, place]
    assert matching(two, one).aligned(("a", "b"), aligned) == pytest.approx(table)


def test_what_cannot_be_compared_is_named():
    """Other labels under one name, attributes of one side, and what was not measured."""
    found = matching(
        domain_of(a=["x", "y"], b=["1", "2"], c=["0", "1"], d=["0", "1"]),
        domain_of(a=["x", "w"], c=["0", "1"], d=["0", "1"], e=["0", "1"]),
        unknown=("d",),
    )
    assert found.shared == ("c",) and found.reordered == ()
    assert found.labels == {"a": (("y",), ("w",))}
    assert (found.only_first, found.only_other, found.unmeasured) == (("b",), ("e",), ("d",))
    assert found.to_dict()["other_labels"] == {"a": {"only_first": ["y"], "only_other": ["w"]}}


def test_the_plain_values_are_json(folder):
    found = compare(folder / "m.dpgm", folder / "n.dpgm", folder / "s.parquet", folder / "m.release.dpgm")
    told = json.loads(json.dumps(plain(found.to_dict())))
    assert [one["kind"] for one in told["subjects"]] == ["model", "model", "synthetic", "release"]
    assert [one["private"] for one in told["subjects"]] == [False] * 4  # all come from a seed
    assert "no more private than they are: NOT PRIVATE (private = false)" in told["privacy"]
    assert [bool(pair["kl"]) for pair in told["pairs"]] == [True, False, False]
