"""The exact engine against brute force over every record, on awkward structures and hostile potentials."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.junction_tree import engine as engines
from dpgm_core.inference.junction_tree.engine import JunctionTree, Potentials, plan_inference
from dpgm_core.inference.kernels.format import FLOOR, REACH
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_impossible_everywhere_is_refused(lab, executor):
    """No record with positive probability: an error, not a distribution; also when no single table is all -inf."""
    structure = lab.AWKWARD["cyclic"]
    engine = JunctionTree(executor=executor).compile(structure)
    contradiction = {
        ("a", "b"): np.array([[0, 0, 0], [-np.inf] * 3]),
        ("c", "b"): np.zeros((4, 3)),
        ("a", "c"): np.array([[-np.inf] * 4, [0] * 4]),
    }
    for theta in (Tables(structure, np.full(structure.cells, -np.inf)), Tables.from_arrays(structure, contradiction)):
        for ask in (engine.infer, engine.maximize, lambda theta: engine.sample(theta, 1, np.random.default_rng(0))):
            with pytest.raises(InferenceError, match="every record has probability 0"):
                ask(theta)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_is_refused(bad, lab, executor):
    """NaN and +inf potentials name their table."""
    structure = lab.AWKWARD["nested"]
    values = np.zeros(structure.cells)
    values[structure.slices[2]] = bad
    values[0] = -np.inf
    with pytest.raises(InferenceError, match="'a', 'b'"):
        JunctionTree(executor=executor).compile(structure).infer(Tables(structure, values))


def test_potentials_beyond_double_precision_are_refused(lab, executor):
    """A log-partition, or a most probable record, that overflows is an error, not infinity."""
    structure = lab.AWKWARD["cyclic"]
    engine = JunctionTree(executor=executor).compile(structure)
    theta = Tables(structure, np.full(structure.cells, 1e308))
    for ask in (engine.infer, engine.maximize, lambda theta: engine.sample(theta, 1, np.random.default_rng(0))):
        with pytest.raises(InferenceError, match="too large"):
            ask(theta)


CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdef", 3)), 2)


def test_numbers_of_records_that_are_none_are_refused(executor):
    engine, row = JunctionTree(executor=executor).compile(CHAIN), np.zeros(CHAIN.cells)
    for total in (True, -1.0, np.nan, np.inf):
        with pytest.raises(InferenceError, match="the total must be a finite number"):
            engine.infer(Tables(CHAIN, row), total=total)
        with pytest.raises(InferenceError, match="the total must be a finite number"):
            engine.infer_many(np.array([row, row]), total=total)
    for rows in (row, np.zeros((2, 3)), np.array([["a"] * CHAIN.cells]), np.ones((2, CHAIN.cells), dtype=bool)):
        with pytest.raises(StructureError, match="potentials must be numbers of shape"):
            engine.infer_many(rows)


def test_many_at_once_are_each_alone(executor):
    engine = JunctionTree(executor=executor).compile(CHAIN)
    rows = np.random.default_rng(1).normal(size=(11, CHAIN.cells))
    many = engine.infer_many(rows, total=3.0)
    for row, found in zip(rows, many, strict=True):
        alone = engine.infer(Tables(CHAIN, row), total=3.0)
        np.testing.assert_array_equal(found.marginals.values, alone.marginals.values)
        assert found.log_partition == alone.log_partition
    assert engine.infer_many(np.zeros((0, CHAIN.cells))) == []


@pytest.mark.sampled(5)
def test_every_executor_gives_the_same(awkward, executor, lab):
    """With zeros and without, also where every table must be measured on the way."""
    engine = JunctionTree(executor=executor).compile(awkward)
    rng = np.random.default_rng(3)
    for scale, zeros in ((0.0, False), (1.0, False), (1.0, True), (90.0, False), (90.0, True), (1e3, False)):
        theta = scale * rng.normal(size=awkward.cells)
        if zeros:
            theta[rng.random(awkward.cells) < 0.2] = -np.inf
            theta[[part.start for part in awkward.slices]] = 0.0  # the record of zeros stays possible
        potentials = Tables(awkward, theta)
        marginals, log_partition = lab.brute_force(awkward, potentials)
        beliefs = engine.infer(potentials, total=2.0)
        np.testing.assert_allclose(beliefs.marginals.values, 2 * marginals, rtol=1e-9, atol=1e-11)
        assert not beliefs.marginals.values[marginals == 0].any() and beliefs.converged and beliefs.iterations == 1
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-11)


@pytest.mark.sampled(3)
def test_results_own_their_memory_and_calls_share_nothing(executor):
    """Eight threads on one engine get what one call at a time gets; earlier results never change."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 6 for i in range(8)}), order=2)
    engine = JunctionTree(executor=executor).compile(structure)
    rng = np.random.default_rng(0)
    inputs = [Tables(structure, rng.normal(size=structure.cells)) for _ in range(40)]
    kept = [engine.infer(theta).marginals for theta in inputs]
    expected = [marginals.values.copy() for marginals in kept]
    barrier = threading.Barrier(8)

    def work(worker):
        barrier.wait()
        return [engine.infer(theta).marginals.values for theta in inputs]

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal([marginals.values for marginals in kept], expected)


# --- Zeros and ranges beyond doubles: every path of the exact engine gives what all records together say


DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2})
STRUCTURES = [
    Structure(DOMAIN, map(tuple, cliques))
    for cliques in (
        ["e"],
        ["ab", "bc", "cd", "de", "ea"],
        ["abd", "cd", "e", "ce"],
        ["ab", "ac", "ad", "ae", "a"],
        ["bd", "ce"],
        ["abcde", "bc"],
    )
]
CANCELLING = Tables(
    Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")]),
    np.array([0.0, -700.0, 0.0, -700.0, -np.inf, -np.inf, -5.0, 0.0]),
)
ENGINES = {structure: JunctionTree().compile(structure) for structure in (*STRUCTURES, CANCELLING.structure)}


@st.composite
def forbidding(draw):
    """Potentials of one of the structures, many cells -inf, others thousands of nats apart; shrink to mild."""
    structure = draw(st.sampled_from(STRUCTURES))
    scale = draw(st.sampled_from([0.0, 1.0, 30.0, 150.0, 320.0, 700.0, 5000.0]))
    zeros, penalties = draw(st.sampled_from([0.0, 0.3, 0.6])), draw(st.sampled_from([0.0, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.normal(size=structure.cells)
    values -= scale * (rng.random(structure.cells) < penalties)
    values += scale * rng.normal(size=structure.cells) * (penalties == 0.0)
    values[rng.random(structure.cells) < zeros] = -np.inf
    return Tables(structure, values)


@given(forbidding())
@example(CANCELLING)
@settings(max_examples=150, deadline=None)
def test_every_path_gives_what_all_records_say(lab, theta):
    """Probabilities, unless they give up, and logarithms: log Z, and marginals to the last digits that the potentials
    have; what is impossible is 0. Contradictions are one error on either path."""
    structure = theta.structure
    engine = ENGINES[structure]
    if (lab.log_joint(structure, theta) == -np.inf).all():
        for path in (engine.infer, lambda theta: lab.in_logarithms(engine, theta), engine.maximize, engine.curvature):
            with pytest.raises(InferenceError, match="every record has probability 0"):
                path(theta)
        return
    marginals, log_partition = lab.brute_force(structure, theta)
    beliefs = engine.infer(theta)
    digits = 1e-12 + 4e-16 * np.abs(theta.values[theta.values > -np.inf]).max()  # those of a sum of potentials
    for found, log_z in ((beliefs.marginals.values, beliefs.log_partition), lab.in_logarithms(engine, theta)):
        assert log_z == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found, marginals, rtol=4 * digits, atol=1e-36)
        assert not found[marginals == 0].any()


@given(forbidding(), st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_curvature_samples_and_maxima_are_right_too(lab, theta, seed):
    """Cov(T) along a direction by its definition; records drawn are possible; the maximum is one."""
    structure = theta.structure
    joint = lab.log_joint(structure, theta)
    if (joint == -np.inf).all():
        return
    engine, direction = ENGINES[structure], np.random.default_rng(seed).normal(size=structure.cells)
    weights = np.exp(joint - joint.max())
    weights /= weights.sum()
    slope = lab.log_joint(structure, Tables(structure, direction))
    expected = lab.project(structure, weights * (slope - (weights * slope).sum()))
    np.testing.assert_allclose(engine.curvature(theta)(direction), expected, atol=1e-9)
    codes, best = engine.maximize(theta)
    assert best == pytest.approx(joint.max(), rel=1e-12, abs=1e-12)
    assert joint[tuple(codes.values())] == pytest.approx(best, rel=1e-12, abs=1e-12)
    for draw in (engine.sample, engine.rounded):
        assert (joint[tuple(draw(theta, 50, np.random.default_rng(seed)))] > -np.inf).all()


# --- Potentials as an engine takes them: checked, and ready for an executor of probabilities


def potentials_of(structure):
    contraction = plan_inference(structure, 2**30).contraction
    return Potentials(contraction, structure)


@pytest.mark.parametrize("scale", [1, 1000])
def test_what_was_taken_from_the_tables_is_in_the_shift(awkward, scale):
    """Whatever the size: log-probability of every record = that of the tables written + the shift - log of the free."""
    made, rng = potentials_of(awkward), np.random.default_rng(0)
    theta = Tables(awkward, scale * rng.normal(size=awkward.cells))
    values, top = made.checked(theta)
    ready = made.ready(values, top)
    out = np.empty(awkward.cells)
    ready.fill(out)
    taken = np.zeros(awkward.cells) if ready.above is None else ready.above
    with np.errstate(divide="ignore"):
        found = np.log(out)
    seen = found > -REACH + 1e-9
    assert found.min() >= -REACH - 1e-9  # what lies deeper is raised
    assert (values - taken)[~seen].max(initial=-np.inf) <= -REACH + 1e-9
    np.testing.assert_allclose(found[seen], (values - taken)[seen], rtol=1e-9, atol=1e-9)
    for number, part in enumerate(awkward.slices):
        assert ready.lows[number] == pytest.approx((values - taken)[part].min())
        assert ready.highs[number] == pytest.approx((values - taken)[part].max())
    blank = made.ready(*made.checked(Tables.zeros(awkward))).shift  # of attributes in no clique
    free = [awkward.domain[name].size for name in awkward.uncovered]
    assert blank == pytest.approx(np.log(free).sum() if free else 0.0)
    shift = sum(count * taken[part][0] for count, part in zip(awkward.multiplicities, awkward.slices, strict=True))
    assert ready.shift - blank == pytest.approx(shift)
    assert scale == 1 or ready.above is not None


def test_zeros_are_said_and_have_no_part_in_the_bounds(lab):
    """-inf is legal in a table that has another value."""
    structure = lab.AWKWARD["single"]
    made = potentials_of(structure)
    ready = made.ready(*made.checked(Tables(structure, np.array([-np.inf, 2.0]))))
    assert ready.zeros and ready.lows == ready.highs == [2.0]
    deep = Structure(lab.DOMAIN, [("b",)])
    made, out = potentials_of(deep), np.empty(3)
    made.ready(*made.checked(Tables(deep, np.array([-np.inf, 0.0, -1e4])))).fill(out)
    assert out[0] == 0.0 and out[2] == pytest.approx(FLOOR)


# --- What an engine says of itself is what its plan does


def test_the_figures_are_those_of_the_plan(awkward, monkeypatch):
    """All steps together take the time predicted, and their cells are the largest cluster's where one is that large."""
    monkeypatch.setattr(engines, "_DEAREST", 1000)
    engine = JunctionTree().compile(awkward)
    told = engine.explain()
    domain = awkward.domain
    assert told.needs == engine.needs
    assert set(told.order) == {one.name for one in domain if one.size > 1}
    assert told.steps == len(told.dearest)
    assert told.seconds == pytest.approx(sum(step.seconds for step in told.dearest))
    assert [step.seconds for step in told.dearest] == sorted((step.seconds for step in told.dearest), reverse=True)
    for step in told.dearest:
        union = set().union(*step.operands)
        assert step.cells == math.prod(domain.shape(union))
        assert step.summed is None or all(step.summed in operand for operand in step.operands)
    assert told.widest_cells == math.prod(domain.shape(told.widest))
    assert told.widest_cells >= max(math.prod(domain.shape(clique)) for clique in awkward.cliques)
    work = sum((1 + len(step.operands)) * step.cells for step in told.dearest)
    assert work == told.needs.multiply_adds


def test_it_reads_well():
    """A chain by hand: all of it on a few lines, the five dearest steps last."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 10 for i in range(12)}), 3)
    told = JunctionTree().compile(structure).explain()
    lines = str(told).splitlines()
    assert lines[0].startswith(f"executor {told.executor}, {told.steps} steps, about ")
    assert lines[1].endswith(f"the fastest of {told.tried} tried; treewidth 3")
    assert lines[2].startswith("widest cluster: x") and lines[2].endswith(", 10,000 cells")
    assert lines[4] == "dearest steps:" and len(lines) == 10
    assert any("sum over x" in line for line in lines[5:]) and "x" in repr(told)


def test_an_engine_that_honours_constraints_explains_the_one_within():
    """With the clique that the constraint needs; an engine that cannot explain itself says so."""
    rules = {"x": {"columns": ["a", "b"], "order": "<="}}
    domain = Domain.from_dict({"attributes": {name: {"size": 3, "unknown": 0} for name in "abc"}, "constraints": rules})
    structure = Structure(domain, [("a", "c")])
    told = JunctionTree().compile(structure).explain()
    assert set(told.widest) in ({"a", "b"}, {"a", "c"})
    with pytest.raises(InferenceError, match="LoopyEngine cannot say what an inference will do"):
        LoopyBP().compile(structure).explain()
