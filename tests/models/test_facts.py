"""What a model states of itself, and what it does with attributes that no release measured."""

import json

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables
from dpgm_core.errors import DpgmError, OptionError, StructureError
from dpgm_core.models.model import Model
from tests.models.enumerated import uniform_model

LABELS = {"a": "xy", "c": "uv", "b": "pqr", "d": "st"}
DOMAIN = Domain.from_dict({name: {"labels": list(own), "unknown": own[0]} for name, own in LABELS.items()})
MEASURED = Structure(DOMAIN, [("a", "b")])
WIDER = Structure(DOMAIN, [("a", "b"), ("b", "c")])  # the model's own: c was not measured for that, nor was d
CODES = np.column_stack([np.arange(60) % one.size for one in DOMAIN])
RELEASE = dpgm.release(CODES, MEASURED, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))


def model(structure: Structure = WIDER) -> Model:
    theta = np.random.default_rng(0).normal(size=(4, structure.cells))
    theta[:, 6:] = 0  # as a learner leaves what no table speaks of
    return Model(structure, Tables(structure, theta[0]), releases=[RELEASE], replicates=theta[1:].astype(np.float32))


NAMED = {
    "marginal": lambda one: one.marginal("c"),
    "pair": lambda one: one.marginal(["a", "c"]),
    "elsewhere": lambda one: one.marginal("d"),
    "given": lambda one: one.marginal("a", given={"c": "u"}),
    "one of many": lambda one: one.marginals_of(["a", ("b", "c")]),
    "given many": lambda one: one.marginals_of(["a"], given={"c": 1}),
    "conditional": lambda one: one.conditional("c", on="a"),
    "condition": lambda one: one.conditional("a", on=["b", "c"]),
    "table": lambda one: one.table("c"),
    "table with intervals": lambda one: one.table("c", level=0.9),
    "intervals": lambda one: one.intervals("c"),
    "intervals given": lambda one: one.intervals("a", given={"c": "v"}),
    "standard errors": lambda one: one.standard_errors("c"),
    "any function": lambda one: one.interval_of(lambda model: model.marginal("c")),
    "a replicate": lambda one: one.replicates[0].marginal("c"),
    "map": lambda one: one.map_assignment({"c": "u"}),
    "another engine": lambda one: one.using("loopy-bp").marginal("c"),
    "distance": lambda one: dpgm.total_variation(one, one, [("c",)]),
    "distance from tables": lambda one: dpgm.total_variation(one, Tables.zeros(WIDER), [("b", "c")]),
}


@pytest.mark.parametrize("structure", [MEASURED, WIDER], ids=["learned as measured", "wider than measured"])
@pytest.mark.parametrize("verb", NAMED)
def test_what_no_release_measured_is_refused_by_name(verb, structure):
    """Every question that names it, wherever it stands in the question and whatever the model's own cliques are."""
    with pytest.raises(StructureError, match=r"no release behind the model measured '[cd]'") as refused:
        NAMED[verb](model(structure))
    assert "unmeasured" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("verb", NAMED)
def test_where_asked_for_it_is_uniform(verb):
    """The same questions, answered; replicates and other engines know of it too."""
    NAMED[verb](model().using(unmeasured="uniform"))
    NAMED[verb](model().using(unmeasured="uniform").using("junction-tree"))
    with pytest.raises(StructureError):
        NAMED[verb](model().using(unmeasured="uniform").using(unmeasured="omit"))


def test_uniform_answers_are_marked():
    """In tables, intervals and stamps; what was measured keeps its standing."""
    uniform = model().using(unmeasured="uniform")
    np.testing.assert_allclose(uniform.marginal("c"), [0.5, 0.5])
    assert uniform.unmeasured == ("c", "d") and uniform.left_out == ()
    assert uniform.with_replicates(np.zeros((2, WIDER.cells))).left_out == ()
    assert set(uniform.table("a", given={"c": "u"})["standing"].to_pylist()) == {"not measured"}
    assert set(uniform.table("c")["standing"].to_pylist()) == {"not measured"}
    assert uniform.intervals("c").standing == "not measured"
    assert uniform.table("a", level=0.5)["standing"].to_pylist() == ["measured"] * 2
    assert (uniform.stamp()["unmeasured"], uniform.stamp()["unmeasured_as"]) == (["c", "d"], "uniform")
    with pytest.raises(OptionError, match="'omit' or 'uniform', got 'maybe'"):
        model().using(unmeasured="maybe")


def test_records_are_without_what_no_release_measured():
    """Samples, data sets and the most probable record, in the domain's order; the others are the same draw."""
    one, seed = model(), SeededRandomness(1)
    drawn = one.sample(50, randomness=seed)
    whole = one.using(unmeasured="uniform").sample(50, randomness=SeededRandomness(1))
    assert drawn.column_names == ["a", "b"] and whole.column_names == ["a", "c", "b", "d"]
    assert drawn["b"].equals(whole["b"])
    stamp = json.loads(drawn.schema.metadata[b"dpgm"])
    assert (stamp["unmeasured"], stamp["unmeasured_as"]) == (["c", "d"], "omit")
    assert [table.column_names for table in one.sample_datasets(3, 2)] == [["a", "b"]] * 2
    datasets = one.using(unmeasured="uniform").sample_datasets(3, 2)
    assert [table.column_names for table in datasets] == [["a", "c", "b", "d"]] * 2
    assert list(one.map_assignment({"a": "x"})) == ["a", "b"]
    assert list(one.using(unmeasured="uniform").map_assignment({"c": "u"})) == ["a", "c", "b", "d"]


def test_releases_of_nothing_and_no_release():
    """A release of N alone has no column to sample; a model without a release is uniform where it is open."""
    structure = Structure(DOMAIN, [()])
    release = dpgm.release(np.zeros((9, 4), int), structure, Budget.pure(1), neighbours="add-remove")
    empty = uniform_model(structure, releases=[release])
    assert empty.unmeasured == DOMAIN.names
    for ask in (lambda: empty.sample(3), empty.map_assignment):
        with pytest.raises(StructureError, match="no release behind the model measured 'a', 'c', 'b', 'd'"):
            ask()
    one = uniform_model(MEASURED)
    np.testing.assert_allclose(one.marginal("c", given={"d": "s"}), [0.5, 0.5])
    assert one.sample(3).column_names == list(DOMAIN.names)
    assert (one.unmeasured, one.left_out, one.stamp()["unmeasured"]) == ((), (), [])


def test_files_say_what_was_not_measured(tmp_path):
    """The document lists it; a loaded model knows it from its releases, and no answer about it comes back by saving."""
    path = tmp_path / "m.dpgm"
    model().using(unmeasured="uniform").save(path)
    loaded = dpgm.load_model(path)
    assert loaded.to_document()["unmeasured"] == ["c", "d"]
    assert loaded.left_out == ("c", "d")
    assert loaded.standing("a", given={"b": "p"}) == "measured"
    with pytest.raises(DpgmError, match="no release"):
        loaded.marginal("c")
