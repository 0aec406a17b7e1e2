"""Models with latent classes: every kind of answer against the table of all records, with the class summed out."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm.plots.functions import graph
from dpgm_core import (
    Budget,
    Domain,
    InferenceError,
    Model,
    ModelFileError,
    SeededRandomness,
    Structure,
    StructureError,
    Tables,
    load_model,
    log_likelihood,
    total_variation,
)
from dpgm_core.learning import Simulator
from dpgm_core.models.dependence import measure_dependence
from tests.fixtures import seeded
from tests.models.enumerated import merge_columns, merged_session, summed, uniform_model

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4})
NAMES = DOMAIN.names
RNG = np.random.default_rng(7)
SHARES = RNG.dirichlet(np.ones(3))
TABLES = {one.name: RNG.dirichlet(np.ones(one.size), size=3) for one in DOMAIN}  # (classes, labels)
#: p(a, b, c), by the formula.
JOINT = np.einsum("h,ha,hb,hc->abc", SHARES, *TABLES.values())


def mixture(domain: Domain = DOMAIN, **facts) -> Model:
    """p(x) = sum over h of pi_h prod p(x_i | h), h first in the domain."""
    whole = Domain([dpgm.Attribute.of_size("h", 3), *domain.attributes])
    structure = Structure(whole, [("h",), *(("h", name) for name in domain.names)])
    tables = {("h",): np.log(SHARES), **{("h", name): np.log(TABLES[name]) for name in domain.names}}
    return Model(structure, Tables.from_arrays(structure, tables), latent=["h"], **facts)


MODEL = mixture()


def released(seed: int = 1, cliques=(("a", "b"), ("b", "c")), count: int = 600) -> dpgm.NoisyTables:
    """A release of tables that no clique of the mixture contains."""
    codes = np.stack(np.unravel_index(RNG.choice(JOINT.size, count, p=JOINT.reshape(-1)), JOINT.shape), axis=1)
    return dpgm.release(codes, Structure(DOMAIN, cliques), Budget.pure(1), **seeded(seed))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_marginals_of_any_order_are_sums_over_the_classes(order):
    """With and without something given, in any order of names."""
    for names in itertools.permutations(NAMES, order):
        np.testing.assert_allclose(MODEL.marginal(names), summed(JOINT, names, NAMES), atol=1e-12)
        if order < 3:
            free = next(name for name in NAMES if name not in names)
            cut = JOINT.take(1, axis=NAMES.index(free))
            table = summed(cut / cut.sum(), names, [name for name in NAMES if name != free])
            np.testing.assert_allclose(MODEL.marginal(names, {free: 1}), table, atol=1e-12)


def test_the_class_is_in_the_structure_and_in_nothing_that_a_user_asks_for():
    """The domain, the columns of records and the tables that are compared are those of the records."""
    assert MODEL.domain == DOMAIN and "h" in MODEL.structure.domain and MODEL.latent == ("h",)
    for method in ("independent", "rounded"):
        assert MODEL.sample(50, method=method, randomness=SeededRandomness(1)).column_names == list(NAMES)
    assert MODEL.complete(pa.table({"b": ["1", None]}), randomness=SeededRandomness(1)).column_names == ["b", "a", "c"]
    assert set(total_variation(MODEL, MODEL)) == {(name,) for name in NAMES}
    assert measure_dependence(MODEL).pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    assert len(graph(MODEL, junction_tree=True).nodes) == 3 and not graph(MODEL).lines


QUERIES = {
    "marginal": lambda model: model.marginal(["a", "h"]),
    "given": lambda model: model.marginal("a", {"h": 0}),
    "many": lambda model: model.marginals_of([("a",), ("h", "b")]),
    "estimates": lambda model: model.estimates_of(["h"]),
    "conditional": lambda model: model.conditional("a", on="h"),
    "standing": lambda model: model.standing("h"),
    "table": lambda model: model.table("h"),
    "map": lambda model: model.map_assignment({"h": 1}),
    "mean": lambda model: model.mean("h"),
    "correlation": lambda model: model.correlation("h", "a"),
    "sample": lambda model: model.sample(3, given={"h": 1}),
    "intervals": lambda model: model.intervals("h"),
    "dependence": lambda model: measure_dependence(model, pairs=[("a", "h")]),
    "dependence of all": lambda model: measure_dependence(model, ["a", "h"]),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_naming_the_class_is_refused_in_every_query(query):
    """And the refusal says what it is."""
    with pytest.raises(StructureError, match="'h' is a latent class of the model, not an attribute of the records"):
        query(MODEL)


def test_what_would_need_the_class_of_each_record_is_refused():
    """Entropy, divergence, most probable record and likelihood sum over classes inside a logarithm or a maximum."""
    uniform = uniform_model(Structure(DOMAIN, [("a",)]))
    wrong = [
        MODEL.entropy,
        MODEL.map_assignment,
        lambda: MODEL.kl(uniform),
        lambda: uniform.kl(MODEL),
        lambda: log_likelihood(MODEL, np.zeros((3, 3), int), allow_non_private=True),
    ]
    for query in wrong:
        with pytest.raises(InferenceError, match="has latent classes, so"):
            query()


@pytest.mark.parametrize("method", ["independent", "rounded"])
def test_records_follow_the_mixture(method):
    """40,000 records: chi-squared with 23 degrees of freedom is above 60 in fewer than one of 10,000 runs; rounded ones
    match each attribute's shares to a record."""
    table = MODEL.sample(40_000, method=method, form="labels", randomness=SeededRandomness(3))
    codes = np.stack([np.array(table[name].to_pylist(), int) for name in NAMES])
    counts = np.bincount(np.ravel_multi_index(codes, JOINT.shape), minlength=JOINT.size).reshape(JOINT.shape)
    expected = 40_000 * JOINT
    assert ((counts - expected) ** 2 / expected).sum() < 60
    if method == "rounded":
        assert np.abs(counts.sum(axis=(1, 2)) - expected.sum(axis=(1, 2))).max() < 4


def test_missing_cells_are_drawn_given_the_others():
    """p(a | b = 1, c = 2), of which the class is summed out: 20,000 rows, six standard errors."""
    rows = pa.table({"b": ["1"] * 20_000, "c": ["2"] * 20_000})
    drawn = np.array(MODEL.complete(rows, randomness=SeededRandomness(2))["a"].to_pylist(), int)
    expected = JOINT[:, 1, 2] / JOINT[:, 1, 2].sum()
    assert np.abs(np.bincount(drawn, minlength=3) / 20_000 - expected).max() < 6 * 0.5 / np.sqrt(20_000)


def test_what_was_measured_is_told_from_what_the_classes_say():
    """The standing of an answer, and the pairs that a holdout checks, are about tables and not about cliques."""
    model = mixture(releases=[released(), evolve(released(2, [("a", "c")]), holdout=True)])
    assert model.standing(("a", "b")) == "measured" and model.standing(("a", "c")) == "by structure"
    assert model.observed.cliques == (("a", "b"), ("b", "c")) and model.checked
    assert 0 <= float(model.structure_error().estimate) <= 1
    assert len(graph(model).lines) == 2
    assert set(model.misfit()) == {("a", "b"), ("b", "c")}


def test_answers_about_merged_codes_split_the_blocks():
    """p(code) = p(block) times the code's part of it, as in models without classes."""
    fine = Domain.from_sizes({"a": 5, "b": 2, "c": 4})
    merges = {"a": (0, 1, 2, 2, 1)}
    codes = np.stack([RNG.integers(0, size, 600) for size in (5, 2, 4)], axis=1)
    pairs, budget = Structure(fine.coarsened(merges), [("a", "b"), ("b", "c")]), Budget.pure("1/2")
    steps = [
        dpgm.release(codes, Structure(fine, [(name,) for name in NAMES]), budget, **seeded(1)),
        dpgm.release(merge_columns(codes, fine, merges), pairs, budget, **seeded(2)),
    ]
    model = mixture(fine.coarsened(merges), releases=[merged_session(fine, merges, steps)])
    assert model.domain == fine and model.coarse.domain == fine.coarsened(merges)
    np.testing.assert_allclose(model.coarse.marginal(["a", "b"]), JOINT.sum(axis=2), atol=1e-12)
    split = model.marginal(["a", "b"])
    blocks = np.zeros((3, 2))
    np.add.at(blocks, np.array(merges["a"]), split)
    np.testing.assert_allclose(blocks, JOINT.sum(axis=2), atol=1e-12)
    weights = model._merged_codes.of["a"].weights
    np.testing.assert_allclose(split[4], weights[4] * JOINT.sum(axis=2)[1], atol=1e-12)
    assert model.sample(20, randomness=SeededRandomness(1)).column_names == list(NAMES)
    assert model.expanded().structure.domain.sizes == {"h": 3, **fine.sizes}


@pytest.mark.parametrize("records", [500, 200_000])
def test_simulated_releases_of_a_mixture_have_its_tables(records):
    """Also of so many records that the deviation of fewer is scaled up: six standard errors in every cell."""
    noisy = evolve(released(count=500), total=float(records))
    engine = MODEL.engine
    drawn = Simulator(noisy, engine, MODEL.potentials).draw(SeededRandomness(1))
    for clique in noisy.structure.cliques:
        expected = records * MODEL.marginal(clique)
        variance = noisy.noise[noisy.structure.find(clique)[0]].variance
        assert (np.abs(drawn.tables[clique] - expected) < 6 * np.sqrt(expected + variance)).all()
        assert not np.array_equal(drawn.tables[clique], expected)


def test_a_file_keeps_the_class(tmp_path):
    """With its replicates; only such a model needs the newest schema."""
    rows = np.stack([MODEL.potentials.values, MODEL.potentials.values + 0.01])
    model = mixture(releases=[released()]).with_replicates(rows)
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.latent == ("h",) and again.domain == DOMAIN and again.observed == model.observed
    np.testing.assert_array_equal(again.marginal(NAMES), model.marginal(NAMES))
    np.testing.assert_allclose(again.intervals("a").estimate, JOINT.sum(axis=(1, 2)), atol=1e-12)
    assert model.to_document()["schema"] == 3
    assert uniform_model(Structure(DOMAIN, [("a",)])).to_document()["schema"] == 2


@pytest.mark.parametrize("latent", ["h", ["x"], [1], ["h", "h"], {"h": 1}])
def test_a_file_with_other_classes_than_it_has_is_refused(tmp_path, members_of, written, changed, latent):
    """A name that is not in its domain, or something that is no list of names."""
    MODEL.save(tmp_path / "m.dpgm")
    members = members_of(tmp_path / "m.dpgm")
    document = changed(members["model.json"], {("latent",): latent})
    with pytest.raises(ModelFileError):
        load_model(written(tmp_path / "m.dpgm", members | {"model.json": document}))


def test_a_class_that_is_none_is_refused():
    """One that the structure lacks, one named twice, and classes without records."""
    structure = Structure(Domain.from_sizes({"h": 2, "a": 2}), [("h", "a")])
    for latent, words in ((["x"], "'x' is not in the domain"), (["h", "h"], "once each"), (["h", "a"], "at least one")):
        with pytest.raises(StructureError, match=words):
            Model(structure, Tables.zeros(structure), latent=latent)
