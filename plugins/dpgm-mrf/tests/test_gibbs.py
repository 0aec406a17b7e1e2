"""Gibbs sampling against exact inference, and what it says of itself. Seeds are fixed: nothing fails by chance."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from dpgm_mrf.gibbs.engine import Gibbs

import dpgm_core as dpgm
from dpgm.cli import cli
from dpgm_testing.cases import constrained_structures

# |error| / stated error is Student's t of 49 degrees of freedom: beyond 7 with probability 7e-9 per cell, so below
# 1e-5 for all cells of this file together, were the seeds not fixed.
FAR = 7.0


def ising(structure, strength, seed=1):
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(structure.cliques))
    return dpgm.Tables(structure, np.concatenate([strength * sign * np.array([1, -1, -1, 1]) for sign in signs]))


def off(beliefs, exact):
    errors = np.abs(beliefs.marginals.values - exact.marginals.values) / (beliefs.errors.values + 1e-12)
    return errors.max(), abs(beliefs.log_partition - exact.log_partition) / beliefs.log_partition_error


def test_a_tree_of_60_attributes_within_its_errors():
    """On a tree with couplings of .4 and fields the errors stated hold, and are the size that sampling has."""
    domain = dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(60)})
    structure = dpgm.Structure(domain, [*dpgm.Structure.tree(domain, 2).cliques, *((name,) for name in domain.names)])
    pairs = ising(dpgm.Structure(domain, structure.cliques[:59]), 0.4)
    theta = dpgm.Tables(structure, np.concatenate([pairs.values, np.random.default_rng(2).normal(0, 0.3, 120)]))
    beliefs = Gibbs(chains=500, draws=20).compile(structure).infer(theta)
    exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta)
    marginal, log_partition = off(beliefs, exact)
    assert beliefs.converged
    assert marginal < FAR
    assert log_partition < FAR
    assert 0.003 < beliefs.errors.values.max() < 0.012  # independent records: .5 / sqrt(10,000) = .005


@pytest.mark.landing
def test_stated_errors_are_the_spread_over_seeds():
    """Over 40 seeds answers spread by what one run states, to a third (the ratio's own error is an eighth)."""
    structure = dpgm.Structure.grid(dpgm.Domain.from_sizes(dict.fromkeys("abcdefghi", 2)), 3, 3)
    theta = ising(structure, 0.4)
    runs = [
        Gibbs(chains=60, annealing=15, burn_in=30, draws=8, seed=seed).compile(structure).infer(theta)
        for seed in range(40)
    ]
    spread = np.std([one.marginals.values for one in runs], axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.errors.values**2 for one in runs], axis=0))
    assert 0.75 < np.sqrt((stated**2).mean() / (spread**2).mean()) < 1.33
    logs = np.array([one.log_partition for one in runs])
    exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta).log_partition
    assert abs(np.mean(np.exp(logs - exact)) - 1) < 7 * np.mean([one.log_partition_error for one in runs]) / 40**0.5


def test_large_cliques_many_labels_and_several_blocks():
    """A clique of four attributes, one of 70 labels and pairs that no one table holds: within the errors."""
    domain = dpgm.Domain.from_sizes({"a": 70, "b": 60, "c": 3, "d": 2, "e": 3})
    structure = dpgm.Structure(domain, [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("e", "d", "c"), ("b", "d")])
    theta = dpgm.Tables(structure, np.random.default_rng(4).normal(0, 0.5, structure.cells))
    engine = Gibbs(chains=300, draws=20).compile(structure)
    assert not all(engine.layout.lookups.single)
    beliefs = engine.infer(theta)
    exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta)
    assert max(off(beliefs, exact)) < FAR
    assert beliefs.converged


def test_a_dense_model_that_no_junction_tree_holds():
    """All pairs of 40 attributes, weak couplings of one sign: marginals stay even by symmetry, pairs as mean field
    theory to second order has them, and no error is far beyond that stated."""
    domain = dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(40)})
    structure = dpgm.Structure.complete(domain)
    with pytest.raises(dpgm.TooLarge):
        dpgm.make("inference", "junction-tree").compile(structure)
    weak = 0.005
    theta = dpgm.Tables(structure, np.tile(weak * np.array([1.0, -1, -1, 1]), len(structure.cliques)))
    engine = Gibbs(chains=200, annealing=5, burn_in=10, thinning=2, draws=5).compile(structure)
    queries = [(f"x{number}", f"x{number + 1}") for number in range(0, 40, 2)]
    actual = engine.estimates(theta, queries)
    even = [(table.sum(axis=1) - 0.5) / error.max() for table, error in zip(actual.tables, actual.errors, strict=True)]
    assert np.abs(even).max() < FAR
    correlation = np.mean([table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0] for table in actual.tables])
    expected = np.tanh(weak) + 38 * np.tanh(weak) ** 2
    assert abs(correlation - expected) < 7 / np.sqrt(20 * 1000)
    assert actual.converged
    assert actual.notes == ()


@pytest.mark.landing
def test_numba_draws_the_same():
    """Compiled loops make the same records from the same numbers: single tables, several, two labels and more."""
    pytest.importorskip("numba")
    from dpgm_mrf.gibbs.chains import compiled, sweep
    from dpgm_mrf.gibbs.layout import compile_layout

    domain = dpgm.Domain.from_sizes({"a": 70, "b": 60, "c": 3, "d": 2, "e": 2, "f": 2})
    structure = dpgm.Structure(domain, [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "b"), ("e",)])
    layout = compile_layout(structure)
    theta = dpgm.Tables(structure, np.random.default_rng(4).normal(size=structure.cells))
    tables = layout.prepared(theta.arrays()).tables()
    generator = np.random.default_rng(5)
    one = np.zeros((6, 200), dtype=np.int64)
    two = one.copy()
    for _ in range(5):
        uniform = generator.random((6, 200))
        sweep(layout.lookups, tables, one, uniform)
        compiled()(layout.lookups, tables, two, uniform)
        assert np.array_equal(one, two)
    assert len(np.unique(one[0])) > 20


def test_without_numba_nothing_is_compiled(monkeypatch):
    """Short runs do not wait for a compiler, and long ones do without one where there is none."""
    from dpgm_mrf.gibbs import chains
    from dpgm_mrf.gibbs.layout import compile_layout

    layout = compile_layout(dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 2, "b": 2})))
    monkeypatch.setattr(chains, "compiled", lambda: None)
    assert chains.sweeper(layout, 10**6, 10**6) is chains.sweep


def test_a_contradiction_is_an_error_and_islands_are_reported():
    """Where every record is impossible it raises; records that no step joins are not said to be mixed."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2})
    structure = dpgm.Structure(domain, [("a", "b"), ("a",), ("b",)])
    equal = np.where(np.eye(2), 0, -np.inf)
    one, two = np.array([0.0, -np.inf]), np.array([-np.inf, 0.0])
    never = dpgm.Tables.from_arrays(structure, {("a", "b"): equal, ("a",): one, ("b",): two})
    with pytest.raises(dpgm.InferenceError, match=r"probability 0|positive probability"):
        Gibbs().compile(structure).infer(never)
    islands = dpgm.Tables.from_arrays(structure, {("a", "b"): equal, ("a",): np.zeros(2), ("b",): np.zeros(2)})
    engine = Gibbs().compile(structure)
    beliefs = engine.infer(islands)
    assert not beliefs.converged
    assert abs(beliefs.marginals["a"][0] - 0.5) < 0.2  # chains start on both
    actual = engine.estimates(islands, [("a",)])
    assert "has not converged" in actual.notes[0]


def test_frozen_chains_do_not_count_as_converged():
    """Couplings of 700 nats in a cycle that cannot be met by all: chains stay where they first come, and that shows."""
    structure = dpgm.Structure(
        dpgm.Domain.from_sizes(dict.fromkeys("abcd", 3)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    )
    for seed in range(5):
        theta = dpgm.Tables(structure, np.random.default_rng(seed).uniform(-700, 700, structure.cells))
        beliefs = Gibbs(chains=200).compile(structure).infer(theta)
        exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta)
        right = np.abs(beliefs.marginals.values - exact.marginals.values) < FAR * beliefs.errors.values
        assert right.all() or not beliefs.converged


def test_strong_pairs_are_said_to_mix_slowly():
    """|tanh A| (degree - 1) from 1 on is told by name; weak dense couplings, proven fast, and a chain are not."""
    grid = dpgm.Structure.grid(dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(16)}), 4, 4)
    engine = Gibbs().compile(grid)
    assert "raise burn_in" in engine.caveats(ising(grid, 0.4))[0]
    assert engine.caveats(ising(grid, 0.3)) == ()
    chain = dpgm.Structure.chain(grid.domain)
    assert Gibbs().compile(chain).caveats(ising(chain, 3.0)) == ()
    dense = dpgm.Structure.complete(grid.domain)
    assert Gibbs().compile(dense).caveats(ising(dense, 0.05)) == ()
    assert Gibbs().compile(dense).caveats(ising(dense, 0.5))


def test_records_follow_the_model_and_their_seed():
    """The same generator gives the same records; their tables are those of the model to chance (t below 7)."""
    structure = dpgm.Structure.grid(dpgm.Domain.from_sizes(dict.fromkeys("abcdefghi", 2)), 3, 3)
    theta = ising(structure, 0.4)
    engine = Gibbs().compile(structure)
    one, two = (engine.sample(theta, 20_500, np.random.default_rng(3)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta).marginals
    for number, (name, other) in enumerate(structure.cliques):
        places = structure.domain.names.index(name), structure.domain.names.index(other)
        share = np.mean(one[places[0]] == one[places[1]])
        p = exact.arrays()[number].trace()
        assert abs(share - p) < 7 * np.sqrt(1.5 * p * (1 - p) / 20_500)
    assert [len(column) for column in engine.sample(theta, 0, np.random.default_rng(3))] == [0] * 9
    assert len(engine.sample(theta, 1, np.random.default_rng(3))[0]) == 1


def test_what_does_not_fit_is_refused_with_its_size():
    """Cliques, chains and queries that take more than max_bytes, before they are made."""
    wide = dpgm.Domain.from_sizes({f"x{number}": 10 for number in range(20)})
    with pytest.raises(dpgm.TooLarge, match="MiB"):
        Gibbs().compile(dpgm.Structure(wide, [wide.names[:15]]))
    with pytest.raises(dpgm.TooLarge, match="chains"):
        Gibbs(chains=10**9).compile(dpgm.Structure.chain(wide))
    engine = Gibbs(chains=100).compile(dpgm.Structure.chain(wide))
    with pytest.raises(dpgm.TooLarge, match="fewer attributes"):
        engine.estimates(dpgm.Tables.zeros(dpgm.Structure.chain(wide)), [wide.names[:12]])
    assert "Monte Carlo" in engine.cost


@pytest.mark.parametrize("name", ["chains", "annealing", "burn_in", "thinning", "draws", "seed", "max_bytes"])
@pytest.mark.parametrize("value", [-1, True, 1.5, "many", None, float("nan"), float("inf")])
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(dpgm.OptionError, match=name):
        Gibbs(**{name: value})


def test_few_chains_tell_no_error():
    """Nine chains are refused; ten pass."""
    with pytest.raises(dpgm.OptionError, match="at least 10"):
        Gibbs(chains=9)
    assert Gibbs(chains=10).chains == 10


def test_potentials_of_another_structure_are_refused():
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2})
    engine = Gibbs().compile(dpgm.Structure.chain(domain))
    with pytest.raises(dpgm.StructureError):
        engine.infer(dpgm.Tables.zeros(dpgm.Structure(domain, [("a",)])))
    for count in (-1, True, 1.5):
        with pytest.raises(dpgm.InferenceError, match="number of records"):
            engine.sample(dpgm.Tables.zeros(engine.structure), count, np.random.default_rng(0))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (2000, 6))
    codes[:, 1] = np.where(generator.random(2000) < 0.8, codes[:, 0], codes[:, 1])
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes(dict.fromkeys("abcdef", 2)))
    done = dpgm.fit(
        codes, structure, dpgm.Budget.zcdp("0.5"), neighbours="add-remove", inference="loopy-bp",
        randomness=dpgm.SeededRandomness(1), learner={"name": "naive-mle", "l2": 0.001},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("gibbs") / "m.dpgm"
    done.model.save(path)
    return path


def test_a_model_answers_and_samples_through_gibbs(saved):
    """Learned with loopy-bp and saved, it is asked and sampled through gibbs, in Python and on the command line."""
    run = CliRunner().invoke(cli, ["query", str(saved), "a", "c", "--inference", "gibbs"])
    assert run.exit_code == 0, run.output
    assert "approximate: gibbs averages over draws, with a Monte Carlo standard error of up to 0.00" in run.output
    run = CliRunner().invoke(cli, ["query", str(saved), "a", "--given", "b=1", "--inference", "gibbs", "--json"])
    parsed = json.loads(run.stdout)
    assert parsed["monte_carlo"]["converged"]
    assert 0 < parsed["monte_carlo"]["standard_error"] < 0.01
    output = saved.with_name("s.csv")
    arguments = ["sample", str(saved), "-n", "3000", "-o", str(output), "--inference", "gibbs", "--seed", "1"]
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 0, run.output
    assert "approximate: gibbs draws records by chains" in run.output
    assert len(output.read_text().splitlines()) == 3001
    run = CliRunner().invoke(cli, ["query", str(saved), "a", "c"])
    assert "approximate" not in run.output


def test_estimates_of_a_model_are_its_answers(saved):
    """The same averages with or without errors, given something or not; engines that do not draw have none."""
    from dpgm_core import load_model

    model = load_model(saved)
    assert model.estimates_of(["a"]) is None
    assert model.caveats == ()
    model_by_gibbs = model.using(Gibbs(chains=200))
    for cliques, evidence in (([("a", "b"), "d"], None), ([("a", "f")], {"c": "1"})):
        actual = model_by_gibbs.estimates_of(cliques, evidence)
        answers = model_by_gibbs.marginals_of(cliques, evidence).values()
        exact = model.marginals_of(cliques, evidence).values()
        for table, error, answer, truth in zip(actual.tables, actual.errors, answers, exact, strict=True):
            assert np.allclose(table, answer, atol=1e-12)
            assert np.all(np.abs(table - truth) < FAR * error)


def test_entropy_uses_log_z_with_its_error():
    """Entropy, which needs log Z, is near the exact one."""
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes(dict.fromkeys("abcd", 3)))
    model = dpgm.Model(structure, dpgm.Tables(structure, np.random.default_rng(0).normal(size=structure.cells)))
    assert abs(model.using("gibbs").entropy() - model.entropy()) < 0.1


@pytest.mark.parametrize("learner", ["naive-mle", "eb-map", "cgm-em"])
def test_learners_that_follow_gradients_to_their_end_refuse_it(learner):
    """Before anything is charged, and they say what would do."""
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 2, "b": 2}))
    with pytest.raises(dpgm.OptionError, match=r"averages over draws have errors; learn with junction-tree"):
        dpgm.fit(
            np.zeros((10, 2), dtype=int), structure, dpgm.Budget.zcdp(1), neighbours="add-remove", learner=learner,
            inference="gibbs",
        )  # fmt: skip


def test_constraints_are_never_broken_and_islands_are_reported():
    """Impossible cells are 0; chains that constraints keep from moving do not count as converged."""
    for name in ("beside", "across"):
        structure = constrained_structures()[name]
        theta = dpgm.Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
        engine = Gibbs(chains=200, draws=20).compile(structure)
        beliefs = engine.infer(theta)
        exact = dpgm.make("inference", "junction-tree").compile(structure).infer(theta)
        assert not beliefs.marginals.values[exact.marginals.values == 0].any()
        assert beliefs.converged == (name == "beside")
        if beliefs.converged:
            assert off(beliefs, exact)[0] < FAR
        codes = engine.sample(theta, 500, np.random.default_rng(2))
        assert not any(structure.domain.broken(dict(zip(structure.domain.names, codes, strict=True))).values())
