"""Models as Bayesian networks: enumeration of all records decides; what projection keeps, and what it may not."""

import numpy as np
import pytest
from attrs import evolve
from scipy import stats

import dpgm_core as dpgm
from dpgm_core import Budget, Dag, Domain, Model, SeededRandomness, Structure, Tables, cpds, project
from dpgm_core.errors import StructureError, TooLarge
from dpgm_core.models.model_file import load_model
from dpgm_core.models.networks import network_of
from tests.fixtures import seeded
from tests.models.enumerated import joint as joint_of
from tests.models.enumerated import merge_columns, merged_session, random_model, summed, uniform_model

NAMES = "abcde"
SEEDS = range(12)


def some_dag(rng, domain) -> Dag:
    """At most three parents each, the order of the attributes another than the domain's."""
    order = [str(name) for name in rng.permutation(domain.names)]
    above = (rng.permutation(order[:at])[: rng.integers(0, 4)] for at in range(len(order)))
    return Dag(domain, {name: [*map(str, parents)] for name, parents in zip(order, above, strict=True)})


def some_cpds(rng, dag, zeros=0.0) -> dict[str, np.ndarray]:
    """Rows drawn from a Dirichlet distribution; a share of the cells is zero, but no whole row."""
    found = {}
    for family in dag.families:
        table = rng.gamma(0.7, size=dag.domain.shape(family)) + 1e-3
        table[rng.random(table.shape) < zeros] = 0
        table[rng.integers(len(table))] += 0.1
        found[family[0]] = table / table.sum(axis=0)
    return found


def some_domain(rng) -> Domain:
    return Domain.from_sizes({name: int(rng.integers(1, 4)) for name in NAMES[: rng.integers(1, 6)]})


def some_model(rng, domain, zeros=0.0) -> Model:
    """Random potentials on random cliques, loops among them; all records may not be impossible."""
    picked = [rng.permutation(domain.names)[: rng.integers(1, 4)] for _ in domain.names]
    structure = Structure(domain, [tuple(map(str, clique)) for clique in picked])
    record = {name: int(rng.integers(domain[name].size)) for name in domain.names}
    tables = {clique: rng.normal(size=domain.shape(clique)) * 1.5 for clique in structure.cliques}
    for clique, table in tables.items():
        never = rng.random(table.shape) < zeros
        never[tuple(record[name] for name in clique)] = False
        table[never] = -np.inf
    return Model(structure, Tables.from_arrays(structure, tables))


def some_case(seed, zeros=0.0):
    """A generator, a model, and a graph over its domain."""
    rng = np.random.default_rng(seed)
    domain = some_domain(rng)
    return rng, some_model(rng, domain, zeros), some_dag(rng, domain)


def some_network(seed, zeros=0.0):
    """A generator, a graph and its conditional tables."""
    rng = np.random.default_rng(seed)
    dag = some_dag(rng, some_domain(rng))
    return rng, dag, some_cpds(rng, dag, zeros)


def product(dag, tables) -> np.ndarray:
    """The joint table of all attributes, record by record."""
    names = dag.domain.names
    joint = np.ones(dag.domain.shape(names))
    for codes in np.ndindex(*joint.shape):
        record = dict(zip(names, codes, strict=True))
        for family in dag.families:
            joint[codes] *= tables[family[0]][tuple(record[name] for name in family)]
    return joint


def conditionals(joint, dag) -> tuple[dict[str, np.ndarray], int]:
    """P(child | parents) of a joint table by division, uniform where there is nothing to divide."""
    found, uniform = {}, 0
    for family in dag.families:
        table = summed(joint, family, dag.domain.names).copy()
        for above in np.ndindex(*table.shape[1:]):
            row = (slice(None), *above)
            mass = table[row].sum()
            uniform += mass == 0
            table[row] = table[row] / mass if mass else 1 / len(table)
        found[family[0]] = table
    return found, uniform


# --- networks from conditional tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_is_the_product_of_its_tables(seed):
    """Of random graphs, some with zeros: log Z = 0, all records, entropy; graph and tables can be read off it."""
    _, dag, tables = some_network(seed, zeros=(seed % 2) / 3)
    model = Model.from_cpds(dag, tables)
    joint = product(dag, tables)
    assert abs(model.log_partition) < 1e-9
    np.testing.assert_allclose(model.marginal(dag.domain.names), joint, atol=1e-12)
    assert model.entropy() == pytest.approx(stats.entropy(joint.reshape(-1)), abs=1e-10)
    found, ours = network_of(model)
    assert found == dag
    for name, table in tables.items():
        np.testing.assert_allclose(ours[name], table, rtol=1e-14, atol=0)
    assert model.release is None and model.standing(dag.domain.names[0]) == "by definition"


def test_a_structure_is_no_graph():
    """What else is wrong with tables is said by `log_cpds`, in test_cpds.py."""
    dag = Dag(Domain.from_sizes({"a": 2}), {})
    with pytest.raises(StructureError, match="conditional table of 'a'"):
        Model.from_cpds(dag, {"a": np.array([0.5, 0.6])})
    for call in (lambda: Model.from_cpds(dag.structure(), {}), lambda: project(Model.from_cpds(dag, HALF), dag.domain)):
        with pytest.raises(StructureError, match=r"a Dag is needed, got \w+; Dag.of\(structure\) makes one"):
            call()


HALF = {"a": np.array([0.5, 0.5])}


# --- conditional tables of models, and projection ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_conditional_tables_are_those_of_the_joint_table(seed):
    """Of loopy models with impossible cells, on graphs that are not theirs; the rows made uniform are counted."""
    _, model, dag = some_case(100 + seed, zeros=(seed % 2) / 2)
    expected, uniform = conditionals(joint_of(model), dag)
    found = cpds(model, dag)
    assert list(found) == list(model.domain.names)
    for name, table in expected.items():
        np.testing.assert_allclose(found[name], table, atol=1e-10)
    network = project(model, dag)
    assert network.structure == dag.structure() and abs(network.log_partition) < 1e-9
    np.testing.assert_allclose(joint_of(network), product(dag, expected), atol=1e-12)
    told = [f"{uniform} rows of conditional tables are uniform: the model rules their parents' states out"]
    assert network.provenance.get("notes", []) == (told if uniform else [])


def test_impossible_parents_are_among_the_cases():
    """The test above and those below see rows that nothing is known of, and models without."""
    cases = [some_case(100 + seed, zeros=(seed % 2) / 2) for seed in SEEDS]
    rows = [conditionals(joint_of(model), dag)[1] for _, model, dag in cases]
    assert sum(uniform > 0 for uniform in rows) >= 2 and sum(uniform == 0 for uniform in rows) >= 6


def family_kl(joint, dag, tables) -> float:
    """Sum over families and parents' states of p(u) KL(p(. | u), q(. | u)): section 2 of our study."""
    found = 0.0
    for family in dag.families:
        table = summed(joint, family, dag.domain.names)
        for above in np.ndindex(*table.shape[1:]):
            row = table[(slice(None), *above)]
            if row.sum() > 0:
                found += row.sum() * stats.entropy(row, tables[family[0]][(slice(None), *above)])
    return float(found)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_is_the_nearest_network(seed):
    """Any other network is farther by exactly sum p(u) KL(p(. | u), q(. | u))."""
    rng, model, dag = some_case(200 + seed)
    joint, nearest = joint_of(model), project(model, dag)
    least = model.kl(nearest)
    ours = cpds(model, dag)
    assert least == pytest.approx(stats.entropy(joint.reshape(-1), joint_of(nearest).reshape(-1)), abs=1e-9)
    for weight in (1.0, 0.3, 1e-3):
        tables = {name: (1 - weight) * ours[name] + weight * table for name, table in some_cpds(rng, dag).items()}
        excess = family_kl(joint, dag, tables)
        assert excess > 0 or max(one.size for one in model.domain) == 1
        assert model.kl(Model.from_cpds(dag, tables)) - least == pytest.approx(excess, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_divergence_of_networks_is_the_sum_over_families(seed):
    """On one graph, without and with impossible cells, infinite where the second rules out what the first allows."""
    rng, dag, one = some_network(300 + seed, zeros=(seed % 2) / 3)
    two = some_cpds(rng, dag, zeros=(seed % 3) / 6)
    expected = family_kl(product(dag, one), dag, two)
    assert Model.from_cpds(dag, one).kl(Model.from_cpds(dag, two)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_on_its_own_graph_stays_as_it_is(seed):
    """Its distribution, and all rows but those of impossible parents; a second projection changes nothing at all."""
    _, dag, tables = some_network(400 + seed, zeros=(seed % 2) / 2)
    model = Model.from_cpds(dag, tables)
    again = project(model, dag)
    joint = product(dag, tables)
    np.testing.assert_allclose(joint_of(again), joint, atol=1e-12)
    for family in dag.families:
        there = np.broadcast_to(summed(joint, family, dag.domain.names).sum(axis=0) > 0, dag.domain.shape(family))
        np.testing.assert_allclose(np.exp(again.potentials[family])[there], tables[family[0]][there], rtol=1e-9)
    twice = project(again, dag)
    np.testing.assert_allclose(np.exp(twice.potentials.values), np.exp(again.potentials.values), rtol=1e-9)


# --- what is kept -----------------------------------------------------------------------------------------------------

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
DAG = Dag(DOMAIN, {"b": ["a"], "c": ["b"]})
CODES = np.random.default_rng(1).integers(0, 2, size=(300, 3))


def released(cliques, budget=None, seed=3, mechanism="laplace", codes=CODES, domain=DOMAIN) -> dpgm.NoisyTables:
    return dpgm.release(codes, Structure(domain, cliques), budget or Budget.pure(1), mechanism, **seeded(seed))


def test_facts_and_files_survive_projection(tmp_path):
    """Releases, cost of both kinds at its delta, guarantee, notes, engine; saved and read again; error bars are not."""
    releases = [released([("a", "b")]), released([("b", "c")], Budget.zcdp("0.1"), 4, mechanism="gaussian")]
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c"), ("a", "c")])
    values = np.random.default_rng(2).normal(size=structure.cells)
    values[:3] = -np.inf  # a = 0 cannot be
    model = Model(
        structure,
        Tables(structure, values),
        releases=releases,
        provenance={"learner": {"name": "x"}, "converged": False, "notes": ["first"]},
        inference="loopy-bp",
        conversion_delta=dpgm.Budget.approx(1, "1e-6").delta,
        replicates=np.stack([values, values]),
    )
    network = project(model, DAG)
    assert network.releases == model.releases and network.cost == model.cost and model.cost.kind == "approx"
    assert network.conversion_delta == model.conversion_delta and network.inference == "loopy-bp"
    assert network.guarantee() == model.guarantee() and network.private is model.private is False
    assert network.converged is False and network.provenance["learner"] == {"name": "x"}
    assert network.provenance["notes"] == [
        "first", "1 rows of conditional tables are uniform: the model rules their parents' states out",
    ]  # fmt: skip
    assert model.provenance["notes"] == ["first"]
    assert network.standing(["a", "b"]) == "measured" and network.standing(["a", "c"]) == "by structure"
    assert model.replicates and not network.replicates
    network.save(tmp_path / "n.dpgm")
    read = load_model(tmp_path / "n.dpgm")
    assert read.structure == network.structure and Dag.of(read.structure) == DAG
    np.testing.assert_array_equal(read.potentials.values, network.potentials.values)
    assert read.guarantee() == network.guarantee() and read.provenance["notes"] == network.provenance["notes"]
    assert network_of(read)[0] == DAG


def test_attributes_that_were_not_measured_stay_so():
    """Their tables are what the potentials say; they are left out of answers as before, and named as not measured."""
    structure = Structure(DOMAIN, [("a", "b"), ("c",)])
    model = Model(structure, Tables(structure, np.arange(8.0) / 4), releases=[released([("a", "b")])])
    with pytest.raises(StructureError, match="no release behind the model measured 'c'"):
        model.marginal("c")
    found = cpds(model, DAG)
    expected, _ = conditionals(joint_of(model), DAG)
    for name, table in expected.items():
        np.testing.assert_allclose(found[name], table, atol=1e-12)
    network = project(model, DAG)
    assert network.unmeasured == network.left_out == ("c",)
    assert network.sample(5, randomness=SeededRandomness(1)).column_names == ["a", "b"]
    np.testing.assert_allclose(network.using(unmeasured="uniform").marginal("c"), expected["c"][:, 0], atol=1e-12)


MERGES = {"b": (1, 0, 1)}


def merged_model() -> Model:
    """Over a domain in which a session put the first and last label of b together."""
    coarse = DOMAIN.coarsened(MERGES)
    one = released([("a",), ("b",), ("c",)], seed=5)
    two = released([("a", "b"), ("b", "c")], seed=6, codes=merge_columns(CODES, DOMAIN, MERGES), domain=coarse)
    one = evolve(one, tables=Tables(one.structure, np.array([150, 150, 120, 60, 30, 100, 200])))
    structure = Structure(coarse, [("a", "b"), ("b", "c"), ("a", "c")])
    return random_model(structure, 7, releases=[merged_session(DOMAIN, MERGES, [one, two], 2)])


def test_merged_codes_are_projected_as_blocks_and_answered_as_codes(tmp_path):
    """The network is over blocks, and its answers about codes are those of the network over codes."""
    model = merged_model()
    coarse, fine = Dag(model.structure.domain, DAG.parents), DAG
    assert coarse.domain != fine.domain == model.domain
    joint = model.marginal(DOMAIN.names)
    assert joint[0, 0, 0] > 1.5 * joint[0, 2, 0]  # codes of one block do not weigh the same
    for dag, law in ((fine, joint), (coarse, model.coarse.marginal(DOMAIN.names))):
        for name, table in conditionals(law, dag)[0].items():
            np.testing.assert_allclose(cpds(model, dag)[name], table, atol=1e-12)
    network = project(model, coarse)
    assert network.structure == coarse.structure() and network.domain == DOMAIN
    expected = product(fine, cpds(model, fine))
    np.testing.assert_allclose(network.marginal(DOMAIN.names), expected, atol=1e-12)
    shown, tables = network_of(network)
    assert shown == fine
    np.testing.assert_allclose(product(shown, tables), expected, atol=1e-12)
    assert network.releases == model.releases and network.kl(network) == pytest.approx(0, abs=1e-12)
    network.save(tmp_path / "n.dpgm")
    np.testing.assert_array_equal(
        load_model(tmp_path / "n.dpgm").marginal(DOMAIN.names), network.marginal(DOMAIN.names)
    )
    with pytest.raises(StructureError, match="over the domain of its structure"):
        project(model, fine)


def test_what_cannot_be_projected_is_refused():
    """Graphs over other domains, a model that no engine can hold, and what is no model."""
    model = uniform_model(Structure(DOMAIN, [("a", "b", "c")]))
    other = Dag(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), {})
    with pytest.raises(StructureError, match="over another domain than the model"):
        cpds(model, other)
    with pytest.raises(StructureError, match="over the domain of its structure"):
        project(model, other)
    wide = Structure.complete(Domain.from_sizes({f"x{at}": 2 for at in range(60)}))
    with pytest.raises(TooLarge):
        cpds(uniform_model(wide), Dag(wide.domain, {"x1": ["x0"]}))
    for ask in (lambda: cpds(None, DAG), lambda: project(5, DAG), lambda: network_of(DAG)):
        with pytest.raises(StructureError, match="a Model is needed, got"):
            ask()


def test_models_that_are_no_network_are_told_from_those_that_are():
    """By structure and by tables, also where their exponentials are beyond every float; what would make one is said."""
    pair = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    no = "the model is no Bayesian network: .*; learner 'bayes-net' makes one, and project\\(model, dag\\)"
    with pytest.raises(StructureError, match=no.replace(".*", ".*'c' stands first in no clique.*")):
        network_of(uniform_model(pair))
    families = DAG.structure()
    with pytest.raises(StructureError, match=no.replace(".*", "its tables are no conditional probabilities")):
        network_of(uniform_model(families))
    dag, tables = network_of(project(uniform_model(families), DAG))
    assert dag == DAG
    for family in DAG.families:
        np.testing.assert_allclose(tables[family[0]], 1 / DOMAIN[family[0]].size)
    structure = DAG.structure()
    with pytest.raises(StructureError, match="no conditional probabilities"):
        network_of(Model(structure, Tables.zeros(structure).like(np.full(structure.cells, 1e4))))


def test_a_second_projection_says_nothing_twice():
    """The note on rows that are ruled out stands once."""
    dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {"b": ["a"]})
    one = Model.from_cpds(dag, {"a": np.array([1.0, 0.0]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])})
    twice = project(project(one, dag), dag)
    assert len(twice.provenance["notes"]) == 1
