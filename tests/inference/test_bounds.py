"""Certified bounds against enumeration, exact inference and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, TooLarge
from dpgm_core.inference.bounds import Attractive, PartwiseBounds, _slope, blocks, cover
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.models.model import Model
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import enumerated
from dpgm_testing.strategies import potentials


def grid(rows, columns, size):
    return Structure.grid(Domain.from_sizes({f"x{i}": size for i in range(rows * columns)}), rows, columns)


def normal(structure, seed, scale=1.0):
    return Tables(structure, scale * np.random.default_rng(seed).normal(size=structure.cells))


@settings(max_examples=30)
@given(potentials())
def test_log_z_is_inside_whatever_the_model(theta):
    """On any structure of the kit's, with zeros and potentials to 700 nats; clusters of two cells at most."""
    found = PartwiseBounds(theta.structure, cells=2).bounds(theta)
    truth = enumerated(theta).log_partition
    assert found.low <= truth <= found.high
    assert math.isfinite(found.low) and math.isfinite(found.high)


def test_forests_are_exact():
    """One part holds a forest, or whatever fits: both bounds are log Z, to 1e-9."""
    structure = Structure(
        Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 3, "f": 4}),
        [("c", "a", "b"), ("a", "b"), ("e",), (), ("c", "d", "e"), ("e", "d")],
    )
    theta = normal(structure, seed=0)
    found = PartwiseBounds(structure, cells=2).bounds(theta)
    assert found.low <= enumerated(theta).log_partition <= found.high < found.low + 1e-9
    assert found.notes == ("one junction tree holds the model: both are exact",)


@pytest.mark.landing
def test_a_grid_of_a_hundred_attributes_is_bounded_closely():
    """Standard normal potentials, against the exact junction tree: .99 nats of log Z = 118.7 as measured."""
    structure = grid(10, 10, 2)
    theta = normal(structure, seed=0)
    found = PartwiseBounds(structure).bounds(theta)
    assert found.low <= JunctionTree().compile(structure).infer(theta).log_partition <= found.high < found.low + 1.5


@pytest.mark.landing
def test_wider_clusters_are_tighter():
    """Both bounds, on a grid of three labels."""
    structure = grid(5, 5, 3)
    theta = normal(structure, seed=0)
    narrow, wide = (PartwiseBounds(structure, cells=cells).bounds(theta) for cells in (9, 81))
    exact = JunctionTree().compile(structure).infer(theta).log_partition
    assert narrow.low < wide.low <= exact <= wide.high < narrow.high


def test_spanning_trees_reach_the_tree_reweighted_optimum():
    """A ring of four without fields: by symmetry every edge is in 3/4 of the trees, and the bound is Wainwright's."""
    coupling = 0.8
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    theta = Tables(structure, np.tile([coupling, -coupling, -coupling, coupling], 4))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    # Each tree has three edges of coupling 4/3 of the true one: log Z = log 2 + 3 log(2 cosh(4/3 J)).
    assert found.high == pytest.approx(math.log(2) + 3 * math.log(2 * math.cosh(4 / 3 * coupling)), abs=1e-6)
    assert found.low <= enumerated(theta).log_partition


def test_one_block_of_mean_field_is_the_closed_form():
    """Two blocks of a ring without fields: strong coupling breaks the symmetry, and a start at a record finds it."""
    structure = grid(3, 3, 2)
    theta = Tables(structure, np.tile([4.0, -4.0, -4.0, 4.0], 12))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    # One of the two modes, which hold nearly all of Z: log Z - log 2.
    truth = enumerated(theta).log_partition
    assert truth - math.log(2) - 1e-2 <= found.low <= truth


def test_zeros_everywhere_still_leave_a_record_to_start_from():
    """Colourings of a grid by three colours: all zeros, log Z is the log of their number."""
    structure = grid(3, 4, 3)
    table = np.where(np.eye(3, dtype=bool), -np.inf, 0.0).reshape(-1)
    theta = Tables(structure, np.tile(table, len(structure.groups)))
    found = PartwiseBounds(structure, cells=9).bounds(theta)
    exact = JunctionTree().compile(structure).infer(theta).log_partition
    assert 0 < found.low <= exact <= found.high < math.inf


def test_impossible_models_are_told_or_bounded():
    """A contradiction within a part raises; one around a loop no part sees leaves nothing known below, and says so."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    unequal = np.tile([-np.inf, 0.0, 0.0, -np.inf], 3)
    found = PartwiseBounds(ring, cells=4).bounds(Tables(ring, unequal))
    assert found.low == -math.inf and "no possible record" in found.notes[0]
    with pytest.raises(InferenceError, match="probability 0"):
        PartwiseBounds(ring, cells=8).bounds(Tables(ring, unequal))
    for bad in (np.nan, np.inf):
        with pytest.raises(InferenceError):
            PartwiseBounds(ring, cells=4).bounds(Tables(ring, np.where(np.arange(12) == 5, bad, 0.0)))


def test_loopy_belief_propagation_offers_them():
    """Converged or not, over constrained domains too, for its own structure only, and no wider than asked for."""
    structure = grid(4, 4, 2)
    theta = normal(structure, seed=1, scale=3.0)
    engine = LoopyBP(damping=0.0, max_iterations=1, bound_cells=16, executor="numpy").compile(structure)
    found = engine.bounds(theta)
    assert "bounds" in engine.capabilities and not engine.infer(theta).converged
    assert found.low <= enumerated(theta).log_partition <= found.high and found == engine.bounds(theta)
    with pytest.raises(InferenceError, match="compiled for"):
        engine.bounds(normal(grid(2, 2, 2), seed=0))
    wide = Structure(Domain.from_sizes({f"x{i}": 10 for i in range(6)}), [tuple(f"x{i}" for i in range(6))])
    with pytest.raises(TooLarge):
        PartwiseBounds(wide, max_bytes=1000).bounds(Tables.zeros(wide))
    rules = {"le": {"columns": ["a", "b"], "order": "<="}}
    sizes = {name: {"size": 3, "unknown": 0} for name in "abcd"}
    domain = Domain.from_dict({"attributes": sizes, "constraints": rules})
    ring = Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    theta = normal(ring, seed=2)
    found = LoopyBP(bound_cells=9, executor="numpy").compile(ring).bounds(theta)
    assert found.low <= enumerated(theta).log_partition <= found.high


def test_a_model_over_a_constrained_domain_has_them():
    """Through the model's own engine and potentials, as its documentation says, with a derived column too."""
    rules = {
        "le": {"columns": ["a", "b"], "order": "<="},
        "of": {"columns": ["c", "e"], "map": {"0": "0", "1": "1", "2": "1"}},
    }
    attributes = {name: {"size": 3, "unknown": 0} for name in "abcd"} | {"e": {"size": 2, "unknown": 0}}
    domain = Domain.from_dict({"attributes": attributes, "constraints": rules})
    ring = Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("e",)])
    model = Model(ring, normal(ring, seed=4), inference=LoopyBP(bound_cells=9, executor="numpy"))
    found = model.engine.bounds(model.potentials)
    assert found.low <= model.using("junction-tree").log_partition <= found.high < found.low + 1.0
    assert found.high - found.low > 1e-6  # not by one junction tree


# --- Parts of a model: narrow, complete together, and as full as they can be


CASES = {
    "grid": Structure.grid(Domain.from_sizes({f"x{i}": 2 + i % 2 for i in range(36)}), 6, 6),
    "random": Structure.erdos_renyi(Domain.from_sizes({f"x{i}": 3 for i in range(20)}), 0.3, seed=1),
    "triples": Structure(
        Domain.from_sizes(dict.fromkeys("abcdefgh", 2)),
        [("a", "b", "c"), ("c", "d", "e"), ("e", "f", "a"), ("b", "d", "f"), ("g",)],
    ),
}


@pytest.fixture(params=CASES)
def structure(request):
    return CASES[request.param]


@pytest.mark.parametrize("cells", [9, 64, 10**6])
def test_parts_hold_every_clique_and_fit(structure, cells):
    """An elimination of each part along its clusters needs no more cells than the limit, or than one clique has."""
    sizes = structure.domain.sizes
    limit = max([cells, *(math.prod(structure.domain.shape(clique)) for clique in structure.cliques)])
    parts = cover(structure.cliques, sizes, limit)
    assert set().union(*parts) == set(range(len(structure.cliques)))
    assert (len(parts) == 1) == (len(parts[0]) == len(structure.cliques))
    for part in parts:
        clusters = Structure(structure.domain, [structure.cliques[n] for n in part]).elimination.clusters
        assert max(math.prod(structure.domain.shape(one)) for one in clusters) <= 3 * limit


@pytest.mark.parametrize("cells", [9, 64, 10**6])
def test_blocks_are_disjoint_and_fit(structure, cells):
    """Every attribute is in one block, whose induced cliques fit."""
    found = blocks(structure.cliques, structure.domain.sizes, max(cells, 9))
    assert sorted(name for block in found for name in block) == sorted(structure.domain.names)
    assert cells < 10**6 or len(found) <= len(CASES)
    for block in found:
        inside = [tuple(name for name in clique if name in block) for clique in structure.cliques]
        induced = Structure(structure.domain.subset(block), [clique for clique in dict.fromkeys(inside) if clique])
        widest = max(math.prod(structure.domain.shape(one)) for one in induced.elimination.clusters)
        assert widest <= 3 * max(cells, 9)


def test_trees_are_one_part():
    """A random tree, a star and a chain, whatever the order of names."""
    draws = np.random.default_rng(0)
    for _ in range(5):
        edges = [(f"x{draws.integers(i)}", f"x{i}") for i in range(1, 40)]
        order = draws.permutation(39)
        assert len(cover([edges[i] for i in order], {f"x{i}": 2 for i in range(40)}, 4)) == 1


# --- Bethe's bound on attractive models: below log Z wherever it is evaluated, however labels are called


def attractive(draws, *, zeros, scale):
    """Potentials of 2 to 6 binary attributes, a label swapped here and there; zeros that leave it attractive."""
    names = [f"x{i}" for i in range(draws.integers(2, 7))]
    pairs = [pair for pair in itertools.combinations(names, 2) if draws.random() < 0.7]
    structure = Structure(Domain.from_sizes(dict.fromkeys(names, 2)), [*pairs, *((name,) for name in names)])
    swapped, values = draws.integers(0, 2, len(names)), []
    for clique in structure.cliques:
        table = scale * draws.normal(size=(2,) * len(clique))
        if len(clique) == 2:
            table[0, 1] -= max(0.0, table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1])
            if zeros:
                table[0, 1] = -np.inf if draws.random() < 0.2 else table[0, 1]
                table[1, 0] = -np.inf if draws.random() < 0.2 else table[1, 0]
                table[0] = -np.inf if draws.random() < 0.1 else table[0]
            for axis, name in enumerate(clique):
                table = np.flip(table, axis) if swapped[names.index(name)] else table
        values.append(table.reshape(-1))
    return Tables(structure, np.concatenate(values))


def log_z(theta):
    try:
        return enumerated(theta).log_partition
    except InferenceError:
        return -math.inf


@pytest.mark.parametrize("zeros", [False, True])
def test_any_locally_consistent_marginals_certify(zeros):
    """Random q, and those found: never above log Z; found to be possible wherever a record is."""
    draws = np.random.default_rng(int(zeros))
    gaps = []
    for number in range(80):
        theta = attractive(draws, zeros=zeros, scale=10 ** draws.uniform(-1, 1))
        model, truth = Attractive.of(theta), log_z(theta)
        rounding = 1e-12 * (1 + np.abs(truth)) if truth > -math.inf else 0.0
        for _ in range(5):
            assert model.value(model._possible(draws.random(len(model.names)))) <= truth + model.slack + rounding
        if number < 15:
            low, slack = model.bound([])
            assert low - slack <= truth and (low > -math.inf) == (truth > -math.inf) and slack < 1e-9
            gaps.append(truth - low if truth > -math.inf else 0.0)
    assert np.median(gaps) < 0.1


def test_the_tables_of_pairs_are_consistent_and_the_best():
    """Their margins are q, and moving mass around in any of them only loses."""
    draws = np.random.default_rng(2)
    theta = attractive(draws, zeros=False, scale=0.5)
    model = Attractive.of(theta)
    q = draws.uniform(0.05, 0.95, len(model.names))
    tables = model._tables(q)
    np.testing.assert_allclose(tables.sum(axis=2)[:, 1], q[model.first], atol=1e-12)
    np.testing.assert_allclose(tables.sum(axis=1)[:, 1], q[model.second], atol=1e-12)

    def worth(some):
        return (some * (model.pairs - np.log(some))).sum(axis=(1, 2))

    for step in (1e-5, -1e-5):
        assert (worth(tables + step * np.array([[1, -1], [-1, 1]])) < worth(tables)).all()
    steps = 1e-6 * np.eye(q.size)
    slope = [(model.value(q + step) - model.value(q - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(_slope(model, q), slope, atol=1e-6)


def test_a_ring_without_fields_is_the_closed_form():
    """At q = 1/2 log Z_B = n log(2 cosh J), and Z is Z_B (1 + tanh(J)^n). A swapped label is no matter."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    alike = np.array([0.3, -0.3, -0.3, 0.3])
    theta = Tables(ring, np.concatenate([-alike, -alike, alike, alike]))
    low, slack = Attractive.of(theta).bound([])
    assert low == pytest.approx(4 * math.log(2 * math.cosh(0.3)), abs=1e-9) and slack < 1e-9
    assert log_z(theta) == pytest.approx(low + math.log1p(math.tanh(0.3) ** 4), abs=1e-9)


def test_only_attractive_models_have_it():
    """Not an odd number of pairs that favour unequal labels, three labels, three attributes; ties to rounding are."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    apart = np.array([0.0, 1.0, 1.0, 0.0])
    assert Attractive.of(Tables(ring, np.tile(apart, 3))) is None
    assert Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, 1e-3 * apart]))) is None
    tied = Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, [0.1 + 0.2, 0.3, 0.3, 0.3 - 1e-16]])))
    assert tied is not None
    below = Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, [0.3, 0.1 + 0.2, 0.3, 0.3]])))
    assert 0 < below.slack < 1e-15
    triple = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b", "c")])
    wide = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    assert Attractive.of(Tables.zeros(triple)) is None and Attractive.of(Tables.zeros(wide)) is None


def test_attributes_of_one_label_and_nested_cliques():
    """Two cliques that differ in attributes of one label are one pair; single ones and constants count."""
    structure = Structure(
        Domain.from_sizes({"a": 2, "b": 2, "c": 2, "s": 1, "t": 1}),
        [("a", "s", "b"), ("b", "a", "t"), ("b", "c"), ("c", "a"), ("s",), ("b",)],
    )
    values = [
        np.array([1.0, 0, 0, 1]),
        np.array([1.0, 0.2, 0, 1]),
        np.array([2.0, 0, 0.1, 1]),
        np.array([1.0, 0, 0, 2]),
    ]
    theta = Tables(structure, np.concatenate([*values, [0.7], [0.3, -0.4]]))
    model = Attractive.of(theta)
    low, slack = model.bound([])
    assert len(model.first) == 3 and low - slack <= log_z(theta) < low + 0.2


def test_the_better_of_both_is_given():
    """Weak couplings: Bethe's is 0.001 from log Z where mean field is not; and the note says whose it is."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(16)})
    structure = Structure.grid(domain, 4, 4)
    theta = Tables(structure, np.tile([0.2, -0.2, -0.2, 0.2], 24))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    truth = log_z(theta)
    assert found.notes == ("the lower bound is Bethe's, as the model is attractive",)
    assert found.low <= truth < found.low + 0.02
    frustrated = Tables(structure, np.where(np.arange(96) < 4, -1, 1) * theta.values)
    (note,) = PartwiseBounds(structure, cells=4).bounds(frustrated).notes
    assert note.startswith("the lower bound is structured mean field's")
