"""Loopy belief propagation against enumeration, closed forms and its own promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, NotConverged, OptionError, TooLarge
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing import enumerated


def enumerate_all(potentials):
    """Group marginals (flat) and log Z by summing over every record."""
    found = enumerated(potentials)
    return found.marginals.values, found.log_partition


@pytest.mark.parametrize("scale", [1.0, 700.0])
def test_forests_are_exact(forest, scale, lab):
    """On a forest marginals and Bethe's log Z equal enumeration, for |theta| up to 700, and the engine says so."""
    potentials = lab.random_potentials(forest, seed=3, scale=scale)
    engine = LoopyBP().compile(forest)
    beliefs = engine.infer(potentials, total=5.0)
    marginals, log_z = enumerate_all(potentials)
    assert engine.exact and beliefs.converged
    np.testing.assert_allclose(beliefs.marginals.values, 5 * marginals, rtol=1e-9, atol=1e-12)
    assert beliefs.log_partition == pytest.approx(log_z, rel=1e-12, abs=1e-11)


def test_a_hub_of_a_thousand_factors_is_exact(lab):
    """Products over high degrees neither underflow nor lose the closed form Z = sum_a prod_leaf sum_x exp(theta)."""
    names = [f"x{i}" for i in range(1000)]
    structure = Structure(Domain.from_sizes({"hub": 3} | dict.fromkeys(names, 2)), [("hub", name) for name in names])
    potentials = lab.random_potentials(structure, seed=1)
    beliefs = LoopyBP().compile(structure).infer(potentials)
    per_state = sum(np.logaddexp.reduce(table, axis=1) for table in potentials.arrays())
    log_z = np.logaddexp.reduce(per_state)
    assert beliefs.log_partition == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(
        beliefs.marginals["hub", "x0"].sum(axis=1), np.exp(per_state - log_z), rtol=1e-9, atol=1e-15
    )


def test_a_single_loop_reproduces_the_known_correction(lab):
    """Weiss (2000): on a symmetric Ising ring the beliefs are exact, and Bethe's Z is lambda_1^n."""
    n, coupling = 6, 0.7
    structure = Structure(
        Domain.from_sizes({f"x{i}": 2 for i in range(n)}), [(f"x{i}", f"x{(i + 1) % n}") for i in range(n)]
    )
    table = np.array([[coupling, -coupling], [-coupling, coupling]])
    beliefs = lab.TIGHT.compile(structure).infer(Tables(structure, np.tile(table.reshape(-1), n)))
    largest = np.exp(coupling) + np.exp(-coupling)
    assert beliefs.log_partition == pytest.approx(n * math.log(largest), abs=1e-12)
    np.testing.assert_allclose(beliefs.marginals["x0", "x1"], np.exp(table) / (2 * largest), rtol=1e-10)


def test_weak_loops_are_nearly_exact(lab):
    """On a 3x3 grid with weak potentials the approximation is close to enumeration, and is not claimed exact."""
    structure = lab.grid(3, 3, 3)
    potentials = lab.random_potentials(structure, seed=5, scale=0.3)
    engine = lab.TIGHT.compile(structure)
    beliefs = engine.infer(potentials)
    marginals, log_z = enumerate_all(potentials)
    assert not engine.exact and beliefs.converged
    assert np.abs(beliefs.marginals.values - marginals).max() < 1e-3
    assert beliefs.log_partition == pytest.approx(log_z, abs=1e-2)


def frustrated(lab):
    """A 5x5 grid of strong random couplings on which undamped flooding oscillates."""
    structure = lab.grid(5, 5, 2)
    draws = np.random.default_rng(1)
    coupling = draws.choice([-3.0, 3.0], len(structure.groups))
    values = np.concatenate([[j, -j, -j, j] for j in coupling]) + draws.normal(scale=0.3, size=structure.cells)
    return Tables(structure, values)


def test_running_out_of_sweeps_is_flagged(lab):
    """An unconverged run returns usable, normalised beliefs that say so."""
    potentials = frustrated(lab)
    beliefs = LoopyBP(damping=0.0, max_iterations=7).compile(potentials.structure).infer(potentials, total=2)
    assert not beliefs.converged and beliefs.iterations == 7
    np.testing.assert_allclose(beliefs.marginals.sums(), 2.0)


def test_not_converged_names_iterations_residual_and_remedy(lab):
    """With require_convergence the same run raises, saying what would do."""
    potentials = frustrated(lab)
    engine = LoopyBP(damping=0.0, max_iterations=7, require_convergence=True).compile(potentials.structure)
    with pytest.raises(NotConverged, match=r"after 7 sweeps, messages still change by \d.*raise damping"):
        engine.infer(potentials)


def test_contradictory_zeros_are_refused():
    """Zeros that rule out every record raise, on trees and in loops, in one table or across several."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c"), ("c", "a")])
    values = np.zeros(12)
    values[[1, 3]] = -np.inf  # a, b: b = 0
    values[[4, 5]] = -np.inf  # b, c: b = 1
    with pytest.raises(InferenceError, match="every record has probability 0"):
        LoopyBP().compile(structure).infer(Tables(structure, values))
    with pytest.raises(InferenceError, match="every record has probability 0"):
        LoopyBP().compile(structure).infer(Tables(structure, np.full(12, -np.inf)))
    values[8] = -5000.0  # log space
    with pytest.raises(InferenceError, match="every record has probability 0"):
        LoopyBP().compile(structure).infer(Tables(structure, values))
    empty = Structure(structure.domain, [(), ("a",)])
    with pytest.raises(InferenceError, match="every record has probability 0"):
        LoopyBP().compile(empty).infer(Tables(empty, np.array([-np.inf, 0.0, 0.0])))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("cell", [0, 10, 14])
def test_potentials_that_are_no_numbers_are_refused(bad, cell):
    """NaN and +inf raise wherever they stand: in a factor, in a nested clique, in the empty clique."""
    structure = Structure(Domain.from_sizes({"a": 3, "b": 3}), [("a", "b"), ("a",), (), ("b",)])
    values = np.zeros(structure.cells)
    values[cell] = bad
    with pytest.raises(InferenceError, match=r"NaN or \+inf"):
        LoopyBP().compile(structure).infer(Tables(structure, values))


def test_bad_requests_are_refused(lab):
    """Foreign potentials and senseless totals raise InferenceError."""
    structure = lab.FORESTS["chain"]
    engine = LoopyBP().compile(structure)
    with pytest.raises(InferenceError, match="compiled for"):
        engine.infer(Tables.zeros(lab.FORESTS["star"]))
    for total in (math.nan, math.inf, -1.0, True):
        with pytest.raises(InferenceError, match="total"):
            engine.infer(Tables.zeros(structure), total=total)


@pytest.mark.parametrize("options", [
    {"damping": 1.0}, {"damping": -0.1}, {"damping": math.nan}, {"damping": True}, {"tolerance": -1e-9},
    {"tolerance": math.inf}, {"max_iterations": 0}, {"max_iterations": 2.5}, {"schedule": "random"},
    {"require_convergence": 1}, {"max_bytes": True},
])  # fmt: skip
def test_options_out_of_range_are_refused(options):
    """The message names the option and what it must be."""
    with pytest.raises(OptionError, match=f"{next(iter(options))} must be"):
        LoopyBP(**options)


# --- Sweeps in either space and order reach one fixed point


def test_an_underflowing_product_does_not_make_a_record_impossible():
    """Five messages of e^-300 each against a hard zero: the only possible record keeps probability 1."""
    leaves = "bcdef"
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcdef", 2)), [("a", leaf) for leaf in leaves] + [("a",)])
    arrays = {("a", leaf): np.array([[0.0, 0.0], [-300.0, -300.0]]) for leaf in leaves}
    potentials = Tables.from_arrays(structure, arrays | {("a",): np.array([-np.inf, 0.0])})
    beliefs = LoopyBP().compile(structure).infer(potentials)
    assert beliefs.log_partition == pytest.approx(-1500 + 5 * math.log(2), abs=1e-9)
    assert beliefs.marginals["a"][0] == 0 and beliefs.marginals["a"][1] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("zeros", [False, True])
def test_schedules_and_damping_reach_the_same_fixed_point(loopy, zeros, lab):
    """Flooding, damped flooding and the residual schedule agree on moderate potentials, zeros included."""
    values = lab.random_potentials(loopy, seed=11, scale=0.7).values.copy()
    if zeros:
        values[1] = values[loopy.slices[-1].stop - 1] = -np.inf
    potentials = Tables(loopy, values)
    results = [
        LoopyBP(damping=damping, schedule=schedule, tolerance=1e-12, max_iterations=5000).compile(loopy)
        for damping, schedule in [(0.0, "flooding"), (0.5, "flooding"), (0.0, "residual"), (0.3, "residual")]
    ]
    first, *others = (engine.infer(potentials) for engine in results)
    assert first.converged and all(other.converged for other in others)
    for other in others:
        np.testing.assert_allclose(other.marginals.values, first.marginals.values, atol=1e-10)
        assert other.log_partition == pytest.approx(first.log_partition, abs=1e-9)


@pytest.mark.parametrize(("loopy", "low", "lower"), [(False, -690.0, -2000.0), (True, -np.inf, -5000.0)])
def test_log_space_finds_the_same_fixed_point(lab, loopy, low, lower):
    """One potential out of float's range forces log space, of a chain and of a grid; other figures hardly move."""
    structure = lab.grid(4, 4, 3) if loopy else lab.FORESTS["chain"]
    values = lab.random_potentials(structure, seed=4, scale=0.5).values.copy()
    near, far = (
        lab.TIGHT.compile(structure).infer(Tables(structure, np.concatenate([[cell], values[1:]])))
        for cell in (low, lower)
    )
    np.testing.assert_allclose(far.marginals.values, near.marginals.values, atol=1e-11)
    assert far.log_partition == pytest.approx(near.log_partition, abs=1e-11)
    assert abs(far.iterations - near.iterations) <= 1  # the last one is decided by rounding


# --- A plan of messages refuses what is too large, and ties as copies do


def test_a_tied_group_equals_its_copies(lab):
    """Tying is bookkeeping: the tied table is the sum of the tables of the untied model with equal potentials."""
    tied = lab.LOOPY["tied ring"]
    table = np.random.default_rng(0).normal(size=9)
    untied = tied.untied()
    one = lab.TIGHT.compile(tied).infer(Tables(tied, table))
    many = lab.TIGHT.compile(untied).infer(Tables(untied, np.tile(table, 4)))
    np.testing.assert_allclose(one.marginals.values, sum(part.reshape(-1) for part in many.marginals.arrays()))
    assert one.log_partition == pytest.approx(many.log_partition, rel=1e-12)


def test_structures_beyond_memory_are_refused_before_allocating():
    """A table of 10^12 cells is priced, not attempted."""
    structure = Structure(Domain.from_sizes({f"x{i}": 10 for i in range(12)}), [tuple(f"x{i}" for i in range(12))])
    with pytest.raises(TooLarge, match=r"1,000,000,000,000 factor cells need about 90\.9 TiB"):
        LoopyBP().compile(structure)


@pytest.mark.landing
def test_a_large_grid_runs(lab):
    """A 100 x 100 grid, far beyond any junction tree, converges and stays locally consistent."""
    structure = lab.grid(100, 100, 2)
    beliefs = LoopyBP(tolerance=1e-6).compile(structure).infer(lab.random_potentials(structure, seed=0))
    assert beliefs.converged
    np.testing.assert_allclose(
        beliefs.marginals["x0", "x1"].sum(axis=0), beliefs.marginals["x1", "x2"].sum(axis=1), atol=1e-5
    )


# --- Compiled sweeps give what numpy's do: the same schedule, damping and stopping


MIXED = Structure(
    Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3}),
    [("a", "b", "c", "e"), ("c", "d", "f"), ("e", "f", "b"), ("a", "f"), ("c",), (), ("e", "a")],
)


def both(structure, potentials, **options):
    """Beliefs by numba and by numpy."""
    pytest.importorskip("numba")
    return [LoopyBP(executor=name, **options).compile(structure).infer(potentials) for name in ("numba", "numpy")]


def agree(structure, potentials, **options):
    """Marginals, log Z, sweeps and convergence are the same."""
    fast, plain = both(structure, potentials, **options)
    np.testing.assert_allclose(fast.marginals.values, plain.marginals.values, rtol=1e-12, atol=1e-15)
    assert fast.log_partition == pytest.approx(plain.log_partition, rel=1e-12, abs=1e-12)
    assert (fast.converged, fast.iterations) == (plain.converged, plain.iterations)
    return fast


def test_forests_agree(forest, lab):
    """Trees of any shape, nested, tied and empty cliques included, with and without zeros."""
    values = lab.random_potentials(forest, seed=1).values.copy()
    agree(forest, Tables(forest, values))
    values[np.random.default_rng(2).random(values.size) < 0.3] = -np.inf
    for where in forest.slices:
        values[where.start] = 0.0
    agree(forest, Tables(forest, values))


@pytest.mark.parametrize("damping", [0.0, 0.3, 0.5])
def test_loops_agree(loopy, damping, lab):
    """After a few sweeps and at convergence, whatever the damping."""
    potentials = lab.random_potentials(loopy, seed=4, scale=0.7)
    agree(loopy, potentials, damping=damping, max_iterations=3)
    assert agree(loopy, potentials, damping=damping).converged


def test_factors_of_many_orders_and_sizes_agree():
    """One to four attributes to a factor, sizes 1 to 4, some zeros."""
    values = np.random.default_rng(0).normal(size=MIXED.cells)
    values[5:20:3] = -np.inf
    agree(MIXED, Tables(MIXED, values))


def test_wide_classes_and_high_degrees_agree():
    """More factors of one shape than are worked on at a time, with hubs of 3 to 70 neighbours."""
    names = [f"x{i}" for i in range(60)]
    draws = np.random.default_rng(3)
    pairs = {tuple(sorted(draws.choice(60, 2, replace=False))) for _ in range(500)}
    pairs |= {(0, i) for i in range(1, 60)}
    structure = Structure(Domain.from_sizes(dict.fromkeys(names, 3)), [(names[i], names[j]) for i, j in sorted(pairs)])
    agree(structure, Tables(structure, draws.uniform(-0.05, 0.05, structure.cells)))


def test_what_underflows_is_left_to_numpy(lab):
    """Products that might leave float's range: hubs of strong messages, spans of thousands of nats."""
    names = [f"x{i}" for i in range(400)]
    structure = Structure(Domain.from_sizes({"hub": 3} | dict.fromkeys(names, 2)), [("hub", name) for name in names])
    agree(structure, lab.random_potentials(structure, seed=1, scale=3.0))
    grid = lab.grid(4, 4, 3)
    agree(grid, lab.random_potentials(grid, seed=1, scale=600.0), max_iterations=20)


def test_the_residual_schedule_is_numpys(lab):
    """It runs, and gives what it gave."""
    grid = lab.grid(4, 4, 3)
    agree(grid, lab.random_potentials(grid, seed=1), schedule="residual")


def test_contradictions_and_failures_to_converge_are_told_alike(lab):
    """Both say that every record is impossible, and by how much messages still change."""
    pytest.importorskip("numba")
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    values = np.zeros(12)
    values[[1, 3, 4, 5]] = -np.inf
    grid = lab.grid(5, 5, 2)
    strong = lab.random_potentials(grid, seed=1, scale=4.0)
    said = []
    for name in ("numba", "numpy"):
        with pytest.raises(InferenceError, match="every record has probability 0"):
            LoopyBP(executor=name).compile(ring).infer(Tables(ring, values))
        with pytest.raises(NotConverged) as caught:
            LoopyBP(executor=name, damping=0.0, max_iterations=5, require_convergence=True).compile(grid).infer(strong)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_other_executors_are_refused():
    """Also "log", which only the junction tree has."""
    with pytest.raises(OptionError, match="executor must be 'auto' or 'numpy' or 'numba', got 'log'"):
        LoopyBP(executor="log")
