"""Engines around engines: what they compile, what they hand on, and what they refuse. Answers: tests/properties."""

import pickle

import numpy as np
import pytest
from attrs import evolve, frozen
from attrs.exceptions import FrozenInstanceError

from dpgm_core.components.registry import make
from dpgm_core.domain import Listed, Mapped, Ordered
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, InferenceError, OptionError, StructureError
from dpgm_core.inference.constraints import ConstrainedEngine, check_constraints, constrained
from dpgm_core.inference.contract import Batched, Beliefs, Engine, Explainer, SecondOrder
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.inference.kernels import loading
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.inference.quasi_newton import Secants, infer_all, steady
from dpgm_core.models.distribution import Distribution
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

PLAIN = Domain.from_sizes({"a": 4, "b": 2, "c": 3})
TO = (("0", "0"), ("1", "1"), ("2", "1"), ("3", "0"))
MAPPED = Domain(PLAIN.attributes, [Mapped(name="where", columns=("a", "b"), to=TO)])
ORDERED = Domain(PLAIN.attributes, [Ordered(name="time", columns=("b", "c"))])


def test_without_constraints_it_is_the_engine_itself():
    """Nothing is wrapped, so nothing costs."""
    structure = Structure(PLAIN, [("a", "b")])
    assert type(JunctionTree().compile(structure)) is JunctionTreeEngine
    assert constrained(structure, lambda one: one) is structure


def test_it_is_compiled_over_what_is_needed():
    """A clique for a constraint that none holds; none for a column that a map tells, unless others stand beside it."""
    compiled = []

    def plain(structure):
        compiled.append(structure.cliques)
        return JunctionTree().plain(structure)

    constrained(Structure(ORDERED, [("a", "b"), ("c",)]), plain)
    constrained(Structure(MAPPED, [("b",), ("a", "c")]), plain)
    constrained(Structure(MAPPED, [("b", "c"), ("a",)]), plain)
    assert compiled == [(("a", "b"), ("c",), ("b", "c")), (("a", "c"),), (("b", "c"), ("a",), ("a", "b"))]


def test_it_can_do_what_the_engine_within_can():
    """And honour constraints; what the other cannot is refused by its name."""
    structure = Structure(ORDERED, [("a", "b")])
    exact, loopy = JunctionTree().compile(structure), LoopyBP().compile(structure)
    assert exact.capabilities == JunctionTree().plain(structure).capabilities | {"constraints"}
    assert exact.exact and exact.cost == JunctionTree().plain(structure.narrowed).cost
    assert loopy.capabilities == {"bounds", "constraints"} and isinstance(loopy, ConstrainedEngine)
    theta, generator = Tables.zeros(structure), np.random.default_rng(0)
    assert loopy.caveats(theta) == () and isinstance(exact, SecondOrder) and not isinstance(loopy, SecondOrder)
    for call in (
        lambda: loopy.sample(theta, 1, generator),
        lambda: loopy.rounded(theta, 1, generator),
        lambda: loopy.maximize(theta),
        lambda: loopy.answers(theta, [("a",)]),
        lambda: loopy.estimates(theta, [("a",)]),
    ):
        with pytest.raises(InferenceError, match=r"LoopyEngine cannot .*; use junction-tree"):
            call()
    with pytest.raises(InferenceError, match=r"JunctionTreeEngine cannot bound log Z; use loopy-bp"):
        exact.bounds(theta)
    model = Distribution(theta, LoopyBP())
    for call in (
        lambda: model.sample(1, generator),
        lambda: model.rounded(1, generator),
        lambda: model.most_probable({}),
    ):
        with pytest.raises(InferenceError, match=r"^LoopyEngine cannot"):
            call()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonsense_is_refused_where_nothing_is_possible_too(bad):
    """NaN and +inf in an impossible cell are no less wrong than elsewhere."""
    structure = Structure(ORDERED, [("b", "c")])
    values = np.zeros(6)
    values[np.flatnonzero(structure.impossible)[0]] = bad
    with pytest.raises(InferenceError, match="NaN or"):
        JunctionTree().compile(structure).infer(Tables(structure, values))
    with pytest.raises(StructureError, match="do not fit an engine"):
        JunctionTree().compile(structure).infer(Tables.zeros(Structure(PLAIN, [("a",)])))


def test_what_no_record_satisfies_is_refused_by_name():
    """Three constraints of which any two leave records: only together do they contradict."""
    two = Domain.from_sizes(dict.fromkeys("abc", 2))
    unlike = (("0", "0"), ("1", "1"))
    rules = [
        Listed(name=name, columns=columns, combinations=unlike)
        for name, columns in (("one", ("a", "b")), ("two", ("b", "c")), ("three", ("a", "c")))
    ]
    check_constraints(Domain(two.attributes, rules[:2]), JunctionTree(), JunctionTree())
    with pytest.raises(DomainError, match="constraints 'one', 'two', 'three' leave no record possible together"):
        check_constraints(Domain(two.attributes, rules), None, JunctionTree())


class Forgetful(JunctionTree):
    """An engine that knows of no constraints."""

    def compile(self, structure):
        return self.plain(structure)


def test_an_engine_that_ignores_constraints_is_refused_by_name():
    """Unless there are none."""
    check_constraints(PLAIN, Forgetful(), JunctionTree())
    with pytest.raises(OptionError, match="inference Forgetful ignores constraints, and the domain has 'where'"):
        check_constraints(MAPPED, Forgetful(), JunctionTree())


@pytest.mark.parametrize("inference", [JunctionTree(), LoopyBP()])
@pytest.mark.parametrize("domain, cliques", [(ORDERED, ["ab", "c"]), (MAPPED, ["ac", "b"]), (MAPPED, ["bc", "a"])])
def test_many_at_once_are_each_alone(inference, domain, cliques):
    """A clique added for a constraint, a column that is read off and one that is not; also potentials of -inf."""
    structure = Structure(domain, [tuple(clique) for clique in cliques])
    engine = inference.compile(structure)
    rows = np.random.default_rng(0).normal(size=(5, structure.cells))
    rows[1, 0] = -np.inf
    many = engine.infer_many(rows, total=7.0)
    for row, found in zip(rows, many, strict=True):
        alone = engine.infer(Tables(structure, row), total=7.0)
        np.testing.assert_array_equal(found.marginals.values, alone.marginals.values)
        assert found.marginals.structure == structure and found.log_partition == alone.log_partition
    assert engine.infer_many(np.zeros((0, structure.cells))) == []
    assert isinstance(engine, Batched)
    with pytest.raises(StructureError, match="infer_many"):
        engine.infer_many(rows[:, 1:])
    with pytest.raises(InferenceError, match="NaN"):
        engine.infer_many(np.full((2, structure.cells), np.nan))


def test_it_says_what_the_engine_within_will_do():
    structure = Structure(ORDERED, [("a", "b"), ("c",)])
    engine = JunctionTree().compile(structure)
    assert isinstance(engine, Explainer)
    assert str(engine.explain()) == str(JunctionTree().plain(structure.narrowed).explain())
    with pytest.raises(InferenceError, match="cannot say"):
        LoopyBP().compile(structure).explain()


@pytest.mark.parametrize(
    ("inference", "runs_on"), [(JunctionTree(), "executor"), (LoopyBP(), "flat")], ids=["junction-tree", "loopy-bp"]
)
def test_engines_travel_to_machines_without_numba_and_back(inference, runs_on, monkeypatch):
    """What was asked for travels, not what it meant: "auto" is chosen again."""
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 2)))
    engine = inference.compile(structure)
    theta = Tables(structure, np.random.default_rng(0).normal(size=structure.cells))
    expected, sent = engine.infer(theta).log_partition, pickle.dumps(engine)
    with monkeypatch.context() as there:
        there.setattr(loading, "_LACKS", ["is not installed"])
        travelled = pickle.loads(sent)
        assert getattr(travelled, runs_on) in ("numpy", None)
        assert travelled.infer(theta).log_partition == pytest.approx(expected, rel=1e-12)
        sent = pickle.dumps(travelled)
    again = getattr(pickle.loads(sent), runs_on)
    assert again == engine.executor if runs_on == "executor" else (again is None) == (engine.flat is None)


# --- Many inferences on one structure


CHAIN = Structure.chain(Domain.from_sizes({"a": 3, "b": 2, "c": 4}))


@frozen
class Counting:
    """An engine that notes how many potentials it is asked about at once, and marks what it answers together."""

    inner: Engine
    asked: list[int]

    @property
    def structure(self):
        return self.inner.structure

    def infer(self, potentials, *, total=1.0):
        self.asked.append(1)
        return self.inner.infer(potentials, total=total)

    def infer_many(self, potentials, *, total=1.0):
        self.asked.append(len(potentials))
        return [Beliefs(marginals=Tables(CHAIN, row), log_partition=0.0) for row in potentials]


@pytest.mark.parametrize("inference", ["junction-tree", "loopy-bp"])
def test_each_is_what_it_would_be_alone(inference):
    """In their order, whether the engine takes many (junction-tree) or not; -inf is legal, NaN is refused."""
    engine = make("inference", inference).compile(CHAIN)
    points = list(np.random.default_rng(1).normal(size=(5, CHAIN.cells)))
    points[3][2] = -np.inf
    for point, found in zip(points, infer_all(engine, points), strict=True):
        expected = engine.infer(Tables(CHAIN, point))
        np.testing.assert_allclose(found.marginals.values, expected.marginals.values, atol=1e-12)
        assert found.log_partition == pytest.approx(expected.log_partition, abs=1e-12)
    assert infer_all(engine, []) == []
    with pytest.raises(InferenceError, match="NaN"):
        infer_all(engine, [points[0], np.full(CHAIN.cells, np.nan)])


def test_an_engine_that_takes_many_is_asked_once():
    """And one potential alone goes the plain way."""
    engine = Counting(make("inference", "junction-tree").compile(CHAIN), [])
    points = list(np.random.default_rng(1).normal(size=(4, CHAIN.cells)))
    found = infer_all(engine, points)
    assert all(np.array_equal(one.marginals.values, point) for one, point in zip(found, points, strict=True))
    infer_all(engine, points[:1])
    assert engine.asked == [4, 1]


# --- What learners that follow gradients take, and what an inference gives back


def test_engines_without_draws_pass():
    """junction-tree and loopy-bp, approximate or not, are returned as they are."""
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 2)))
    for name in ("junction-tree", "loopy-bp"):
        engine = make("inference", name).compile(structure)
        assert steady(engine, "mine") is engine


def test_beliefs_are_values():
    """Nobody changes them; they are copied with changes, sent to other processes, and named in full."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    beliefs = Beliefs(marginals=Tables(structure, np.array([1.0, 2.0])), log_partition=0.5)
    for name in ("log_partition", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(beliefs, name, 1.0)
    assert evolve(beliefs, iterations=3).iterations == 3 and beliefs.iterations == 1
    there = pickle.loads(pickle.dumps(beliefs))
    assert (there.log_partition, there.converged, there.errors) == (0.5, True, None)
    assert there.marginals["a"].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError):
        Beliefs(beliefs.marginals, 0.5)  # type: ignore[misc]


def test_beliefs_of_exact_engines_are_as_constructed():
    tables = Tables(CHAIN, np.zeros(CHAIN.cells))
    assert vars(Beliefs._exact(tables, 0.5)) == vars(Beliefs(marginals=tables, log_partition=0.5))


def test_the_direction_is_that_of_the_bfgs_update_written_out():
    """H <- (I - s y'/sy) H (I - y s'/sy) + s s'/sy from the scaled metric, over the pairs that are still kept."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    secants, pairs = Secants(memory=4), []
    for _ in range(7):
        step = rng.normal(size=6)
        secants.add(step, hessian @ step)
        pairs.append((step, hessian @ step))
    metric, gradient = rng.uniform(1, 5, size=6), rng.normal(size=6)
    step, change = pairs[-1]
    inverse = np.diag(1 / metric) * (step @ change) / (change @ (change / metric))
    for step, change in pairs[-4:]:
        left = np.eye(6) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    assert np.allclose(secants.descent(gradient, metric), -inverse @ gradient)


def test_without_pairs_it_is_the_gradient_in_the_metric():
    """And a step without positive curvature is not learned from."""
    secants = Secants(memory=4)
    secants.add(np.array([1.0, 0.0]), np.array([-1.0, 3.0]))
    assert np.array_equal(secants.descent(np.array([2.0, 8.0]), np.array([1.0, 4.0])), [-2.0, -2.0])


def test_coordinates_that_are_held_take_no_part():
    """The direction is 0 in them, and elsewhere that of the pairs' free parts alone."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    hessian = root @ root.T + np.eye(5)
    free = np.array([True, False, True, True, False])
    secants, among = Secants(memory=4), Secants(memory=4)
    for _ in range(4):
        step = rng.normal(size=5)
        secants.add(step, hessian @ step)
        among.add(step[free], (hessian @ step)[free])
    metric, gradient = rng.uniform(1, 5, size=5), rng.normal(size=5)
    found = secants.descent(gradient, metric, free)
    assert np.array_equal(found[~free], [0.0, 0.0])
    assert np.allclose(found[free], among.descent(gradient[free], metric[free]))
