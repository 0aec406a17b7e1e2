"""Tree-reweighted belief propagation against exact inference: the bound, its gradient, forests, zeros, refusals."""

import itertools
import math

import numpy as np
import pytest
from dpgm_trw.engine import TrwBP
from dpgm_trw.plan import edge_probabilities
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import (
    Budget,
    Domain,
    InferenceError,
    NotConverged,
    OptionError,
    Structure,
    StructureError,
    Tables,
    TooLarge,
    fit,
    make,
    release,
)

JUNCTION_TREE = make("inference", "junction-tree")
TIGHT = TrwBP(tolerance=1e-11, max_iterations=20_000)


def domain(*sizes):
    """Attributes a, b, c, ... of these sizes."""
    return Domain.from_sizes({chr(97 + i): size for i, size in enumerate(sizes)})


def normal(structure, seed, scale=1.0):
    """Gaussian log-potentials."""
    return Tables(structure, scale * np.random.default_rng(seed).normal(size=structure.cells))


LOOPS = {
    "triangle": Structure(domain(2, 3, 4), [("a", "b"), ("c", "b"), ("a", "c")]),
    "grid": Structure.grid(domain(*[2] * 9), 3, 3),
    "complete": Structure.complete(domain(3, 2, 3, 2, 2)),
    "loop and tail, nested, isolated": Structure(
        domain(2, 3, 2, 2, 5), [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d",), ("b",), ()]
    ),
    "tied": Structure(domain(2, 2, 2, 2), [("a", "c"), ("d", "b")], tied=[[("a", "b"), ("b", "c"), ("c", "d")]]),
    "one label": Structure(domain(2, 1, 3, 2), [("a", "b", "c"), ("c", "d"), ("d", "a"), ("b",)]),
}
FORESTS = {
    "chain": Structure.chain(domain(2, 3, 2, 4)),
    "star and pair": Structure(domain(3, 2, 2, 2, 2, 3), [("a", "b"), ("c", "a"), ("a", "d"), ("e", "f"), ("a",)]),
    "nothing": Structure(domain(2, 3), [()]),
    "one label joins": Structure(domain(2, 1, 3), [("a", "b"), ("b", "c"), ("c", "a")]),
}


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", LOOPS)
def test_log_partition_bounds_log_z_from_above(name, scale):
    """For every loopy structure and strength, log Z <= log_partition, strictly; marginals sum to the total."""
    structure = LOOPS[name]
    for seed in range(3):
        potentials = normal(structure, seed, scale)
        beliefs = TIGHT.compile(structure).infer(potentials, total=7)
        exact = JUNCTION_TREE.compile(structure).infer(potentials, total=7)
        assert beliefs.converged
        assert beliefs.log_partition > exact.log_partition + 1e-9
        assert beliefs.marginals.sums() == pytest.approx(exact.marginals.sums(), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.1, 10), st.integers(1, 12), st.sampled_from(sorted(LOOPS)))
@example(3, 10.0, 1, "complete")
def test_the_bound_holds_whether_or_not_the_messages_converged(seed, scale, sweeps, name):
    """After any number of sweeps, from the first on, what the messages lack is added to the bound."""
    potentials = normal(LOOPS[name], seed, scale)
    beliefs = TrwBP(max_iterations=sweeps, damping=0.0).compile(LOOPS[name]).infer(potentials)
    assert beliefs.log_partition >= JUNCTION_TREE.compile(LOOPS[name]).infer(potentials).log_partition - 1e-9
    assert math.isfinite(beliefs.log_partition)


@pytest.mark.parametrize("name", FORESTS)
def test_forests_are_exact(name):
    """Bound and marginals are those of exact inference, from weak potentials to zeros and to 700 nats."""
    structure = FORESTS[name]
    engine = TrwBP().compile(structure)
    assert engine.exact and not TrwBP().compile(LOOPS["grid"]).exact
    for scale in (1.0, 300.0):
        potentials = normal(structure, 1, scale)
        exact = JUNCTION_TREE.compile(structure).infer(potentials)
        beliefs = engine.infer(potentials)
        assert beliefs.converged
        assert beliefs.log_partition == pytest.approx(exact.log_partition, rel=1e-12)
        assert beliefs.marginals.values == pytest.approx(exact.marginals.values, abs=1e-10)


def test_forests_take_no_more_sweeps_than_edges():
    """Three edges need three sweeps and one to see that nothing changes, also where last digits change for ever."""
    structure = Structure.chain(domain(2, 3, 2, 3))
    engine, generator = TrwBP().compile(structure), np.random.default_rng(1)
    for _ in range(200):
        theta = Tables(structure, generator.normal(size=structure.cells))
        assert engine.infer(theta).iterations <= 4


@pytest.mark.parametrize("name", LOOPS)
def test_the_marginals_are_the_gradient_of_the_bound(name):
    """Central differences of log_partition along the directions of eight parameters, at random."""
    structure = LOOPS[name]
    engine, potentials = TIGHT.compile(structure), normal(structure, 2)
    marginals, step = engine.infer(potentials).marginals.values, 1e-4
    for cell in np.random.default_rng(3).permutation(structure.cells)[:8]:
        bump = step * np.eye(structure.cells)[cell]
        up, down = (engine.infer(potentials.like(potentials.values + sign * bump)).log_partition for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(marginals[cell], abs=1e-6)


@pytest.mark.parametrize("name", LOOPS)
def test_the_bound_is_convex(name):
    """Halfway between two potentials the bound is at most the mean of theirs."""
    engine = TIGHT.compile(LOOPS[name])
    for seed in range(4):
        one, other = normal(LOOPS[name], seed, 2.0), normal(LOOPS[name], seed + 100, 2.0)
        middle = engine.infer((one + other) / 2).log_partition
        ends = [engine.infer(potentials).log_partition for potentials in (one, other)]
        assert middle <= sum(ends) / 2 + 1e-9


def test_edge_probabilities_are_those_of_uniform_spanning_trees():
    """Against the enumeration of all spanning trees of a graph of 5 nodes and 7 edges; they sum to 4."""
    edges = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 2], [1, 3]])
    trees = []
    for chosen in itertools.combinations(range(len(edges)), 4):
        seen = {0}
        for _ in range(4):
            seen |= {int(v) for edge in edges[list(chosen)] if seen & set(edge.tolist()) for v in edge}
        if len(seen) == 5:
            trees.append(chosen)
    share = [sum(edge in tree for tree in trees) / len(trees) for edge in range(len(edges))]
    rho = edge_probabilities(5, edges)
    assert rho == pytest.approx(share, rel=1e-12)
    assert rho.sum() == pytest.approx(4)


def test_bridges_are_certain():
    """An edge whose loss disconnects the graph has probability exactly 1, in graphs of several components too."""
    rho = edge_probabilities(7, np.array([[0, 1], [1, 2], [2, 0], [2, 3], [5, 6]]))
    assert rho[3:].tolist() == [1.0, 1.0] and (rho[:3] < 0.7).all()


def test_zeros_are_exact_and_contradictions_are_refused():
    """Forbidden pairs have belief 0 and the bound holds; when nothing is possible it says so."""
    structure = LOOPS["triangle"]
    potentials = Tables(structure, np.where(np.random.default_rng(4).random(structure.cells) < 0.3, -np.inf, 0.5))
    exact = JUNCTION_TREE.compile(structure).infer(potentials)
    beliefs = TIGHT.compile(structure).infer(potentials)
    assert (beliefs.marginals.values[np.isneginf(potentials.values)] == 0).all()
    assert beliefs.log_partition >= exact.log_partition - 1e-9
    with pytest.raises(InferenceError, match="probability 0"):
        TrwBP().compile(structure).infer(Tables(structure, np.full(structure.cells, -np.inf)))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_potential_is_refused(bad):
    """NaN and +inf raise; so do other structures' tables and totals that are no numbers of records."""
    structure = LOOPS["triangle"]
    engine, values = TrwBP().compile(structure), np.zeros(structure.cells)
    values[3] = bad
    with pytest.raises(InferenceError, match="NaN"):
        engine.infer(Tables(structure, values))
    with pytest.raises(InferenceError, match="total"):
        engine.infer(Tables.zeros(structure), total=bad)
    with pytest.raises(InferenceError, match="compiled for"):
        engine.infer(Tables.zeros(LOOPS["grid"]))


def test_larger_cliques_and_too_many_attributes_are_refused():
    """Three attributes of several labels: StructureError naming the clique; a vast domain: TooLarge, at once."""
    with pytest.raises(StructureError, match=r"'a', 'b', 'c'.*junction-tree"):
        TrwBP().compile(Structure(domain(2, 2, 2), [("a", "b", "c")]))
    many = Domain.from_sizes({f"x{i}": 2 for i in range(30_000)})
    with pytest.raises(TooLarge, match="30,000 attributes"):
        TrwBP().compile(Structure(many, [("x0", "x1")]))


@pytest.mark.parametrize(
    "options",
    [{"damping": 1.0}, {"damping": -0.1}, {"damping": True}, {"tolerance": math.nan}, {"max_iterations": 0},
     {"max_iterations": 1.5}, {"require_convergence": 1}, {"max_bytes": -1}],
)  # fmt: skip
def test_options_out_of_range_are_refused(options):
    """Each names the option."""
    with pytest.raises(OptionError, match=next(iter(options))):
        TrwBP(**options)


def test_not_converging_can_be_an_error():
    """One sweep is not enough on a strong grid: flagged by default, raised when asked."""
    potentials = normal(LOOPS["grid"], 1, 5.0)
    assert not TrwBP(max_iterations=1).compile(LOOPS["grid"]).infer(potentials).converged
    with pytest.raises(NotConverged, match="after 1 sweeps"):
        TrwBP(max_iterations=1, require_convergence=True).compile(LOOPS["grid"]).infer(potentials)


def test_it_serves_the_learners():
    """naive-mle learns a 3 x 3 grid of Ising spins with it: close to what exact inference learns."""
    structure = LOOPS["grid"]
    truth = normal(structure, 5, 0.5)
    codes = dict(
        zip(
            structure.domain.names,
            JUNCTION_TREE.compile(structure).sample(truth, 20_000, np.random.default_rng(1)),
            strict=True,
        )
    )
    done = fit(codes, structure, Budget.pure(20), learner="naive-mle", inference="trw-bp", neighbours="add-remove")
    learned = TIGHT.compile(structure).infer(done.model.potentials).marginals
    expected = JUNCTION_TREE.compile(structure).infer(truth).marginals
    assert np.abs(learned.values - expected.values).max() < 0.03


def test_it_serves_collective_inference():
    """collective-dual on a triangle: a convergent solve, tables that sum to the total, and no gap claimed."""
    structure = LOOPS["triangle"]
    codes = dict(zip("abc", np.random.default_rng(2).integers(0, 2, (3, 500)), strict=True))
    evidence = release(codes, structure, Budget.pure(1), neighbours="add-remove")
    beliefs = (
        make("collective", "collective-dual")
        .compile(TrwBP().compile(structure), evidence)
        .infer(Tables.zeros(structure))
    )
    assert beliefs.converged and beliefs.gap is None
    assert beliefs.marginals.sums() == pytest.approx(evidence.totals)
