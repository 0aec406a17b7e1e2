"""Engines over constrained domains against enumeration; beliefs of loopy BP lie in the local polytope."""

import itertools
import math

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, InferenceError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

NAMES = "abcd"


@st.composite
def constrained(draw):
    """A domain of up to four attributes with up to three constraints, and who breaks them, record by record."""
    sizes = {name: draw(st.integers(1, 3)) for name in NAMES[: draw(st.integers(2, 4))]}
    rules, judges = {}, []
    for number in range(draw(st.integers(1, 3))):
        columns = draw(st.permutations(list(sizes)))[: draw(st.integers(1, min(3, len(sizes))))]
        form = draw(st.sampled_from(["impossible", "possible", "map", "order"]))
        if form in ("map", "order") and len(columns) < 2:
            form = "impossible"
        rule = {"columns": columns}
        if form == "order":
            rule = {"columns": columns[:2], "order": draw(st.sampled_from(["<=", "<"]))}
            less = rule["order"] == "<"
            judges.append(lambda x, c=columns, less=less: x[c[0]] > x[c[1]] or (less and x[c[0]] == x[c[1]]))
        elif form == "map":
            rule = {"columns": columns[:2]}
            to = [draw(st.integers(0, sizes[columns[1]] - 1)) for _ in range(sizes[columns[0]])]
            rule["map"] = {str(fine): str(coarse) for fine, coarse in enumerate(to)}
            judges.append(lambda x, c=columns, to=to: to[x[c[0]]] != x[c[1]])
        else:
            cells = list(itertools.product(*(range(sizes[column]) for column in columns)))
            listed = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=len(cells), unique=True))
            rule[form] = [[str(code) for code in cell] for cell in listed]
            wanted = form == "impossible"
            judges.append(lambda x, c=columns, of=frozenset(listed), w=wanted: (tuple(x[n] for n in c) in of) is w)
        rules[f"rule {number}"] = rule
    plain = {"attributes": {name: {"size": size, "unknown": 0} for name, size in sizes.items()}, "constraints": rules}
    records = [dict(zip(sizes, codes, strict=True)) for codes in itertools.product(*map(range, sizes.values()))]
    return plain, records, np.array([any(judge(record) for judge in judges) for record in records])


@st.composite
def models(draw):
    """Potentials over random cliques of such a domain, sometimes tied; and its records and who is impossible."""
    plain, records, broken = draw(constrained())
    try:
        domain = Domain.from_dict(plain)
    except DomainError:
        assert broken.all()  # refused only if no record is left
        assume(False)
    subsets = [clique for size in (1, 2, 3) for clique in itertools.combinations(domain.names, size)]
    cliques = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=4, unique=True))
    tied = []
    alike = [one for one in cliques if domain.shape(one) == domain.shape(cliques[0])]
    if len(alike) > 1 and draw(st.booleans()):
        tied = [alike]
        cliques = [one for one in cliques if one not in alike]
    structure = Structure(domain, cliques, tied=tied)
    seed = draw(st.integers(0, 2**16))
    values = np.random.default_rng(seed).normal(size=structure.cells) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    return Tables(structure, values), records, broken


def weighed(theta, records, broken):
    """(records,): the weights of those that break nothing, by their cells in every clique, and 0."""
    columns = {name: np.array([record[name] for record in records]) for name in theta.structure.domain.names}
    logs = sum(
        theta.group(number)[tuple(columns[name] for name in clique)]
        for number, group in enumerate(theta.structure.groups)
        for clique in group
    )
    return np.where(broken, 0.0, np.exp(logs)), columns


def enumerated(theta, records, broken, *queries):
    """p(names) of each query, and log Z, summed over the records that break nothing."""
    weights, columns = weighed(theta, records, broken)
    found = []
    for names in queries:
        table = np.zeros(theta.structure.domain.shape(names))
        np.add.at(table, tuple(columns[name] for name in names), weights)
        found.append(table / weights.sum())
    return found, math.log(math.fsum(weights))


@given(models())
@settings(max_examples=30)
def test_exact_answers_are_sums_over_possible_records(model):
    """Marginals, log Z, answers across cliques, the most probable record and its weight; zeros are zeros exactly."""
    theta, records, broken = model
    structure, domain = theta.structure, theta.structure.domain
    engine = JunctionTree().compile(structure)
    if broken.all():
        try:
            engine.infer(theta)
        except InferenceError:
            return
        raise AssertionError("no record is possible, and inference gave marginals")
    beliefs = engine.infer(theta)
    queries = [domain.names, domain.names[::-1], domain.names[-1:], domain.names[:2]]
    truths, log_partition = enumerated(theta, records, broken, *queries)
    whole = truths[0]
    assert math.isclose(beliefs.log_partition, log_partition, rel_tol=1e-12, abs_tol=1e-9)
    for group, table in zip(structure.groups, beliefs.marginals.arrays(), strict=True):
        truth = sum(enumerated(theta, records, broken, *group)[0])
        np.testing.assert_allclose(table, truth, rtol=1e-7, atol=1e-10)
        assert not table[truth == 0].any()
    for truth, table in zip(truths, engine.answers(theta, queries), strict=True):
        np.testing.assert_allclose(table, truth, rtol=1e-7, atol=1e-10)
        assert not table[truth == 0].any()
    record, best = engine.maximize(theta)
    assert not broken[records.index(record)]
    assert math.isclose(best - log_partition, math.log(whole.max()), rel_tol=1e-9, abs_tol=1e-9)
    cells = structure.impossible
    assert cells is None or not beliefs.marginals.values[cells].any()


@given(models(), st.integers(0, 2**16))
@settings(max_examples=30)
def test_no_record_drawn_breaks_a_constraint(model, seed):
    """Neither independent records nor rounded ones; both are codes of the domain."""
    theta, records, broken = model
    assume(not broken.all())
    engine = JunctionTree().compile(theta.structure)
    bad = {tuple(record.values()) for record, wrong in zip(records, broken, strict=True) if wrong}
    for draw in (engine.sample, engine.rounded):
        codes = np.stack(draw(theta, 200, np.random.default_rng(seed)), axis=1)
        assert bad.isdisjoint(map(tuple, codes.tolist()))


@given(models())
@settings(max_examples=20)
def test_second_derivatives_are_those_of_the_marginals(model):
    """The curvature along a direction is the covariance of the cells under the enumerated distribution."""
    theta, _, broken = model
    assume(not broken.all())
    engine = JunctionTree().compile(theta.structure)
    direction = np.random.default_rng(1).normal(size=theta.structure.cells)
    found = engine.curvature(theta)(direction)
    step = 1e-5
    sides = [engine.infer(theta.like(theta.values + sign * step * direction)).marginals.values for sign in (1, -1)]
    np.testing.assert_allclose(found, (sides[0] - sides[1]) / (2 * step), atol=1e-5)


@given(models())
@settings(max_examples=20)
def test_loopy_answers_are_exact_on_forests(model):
    """Where its factor graph, constraints included, is a forest; elsewhere impossible cells still get nothing."""
    theta, _, broken = model
    assume(not broken.all())
    engine = LoopyBP().compile(theta.structure)
    beliefs = engine.infer(theta)
    cells = theta.structure.impossible
    assert cells is None or not beliefs.marginals.values[cells].any()
    if engine.exact:
        truth = JunctionTree().compile(theta.structure).infer(theta)
        np.testing.assert_allclose(beliefs.marginals.values, truth.marginals.values, atol=1e-6)


LETTERS = "abcdef"


@st.composite
def structures(draw):
    """Up to six attributes of sizes 1 to 4 and up to eight cliques of order 0 to 4; shrinks to few and small ones."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    names = LETTERS[: len(sizes)]
    clique = st.permutations(names).flatmap(lambda order: st.integers(0, 4).map(lambda n: tuple(order[:n])))
    cliques = draw(st.lists(clique, min_size=1, max_size=8))
    return Structure(Domain.from_sizes(dict(zip(names, sizes, strict=True))), cliques)


@st.composite
def with_zeros(draw):
    """Log-potentials over such a structure, some cells -inf, the record (0, ..., 0) always possible."""
    structure = draw(structures())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = generator.normal(scale=draw(st.sampled_from([0.0, 0.5, 3.0, 300.0])), size=structure.cells)
    values[generator.random(structure.cells) < draw(st.sampled_from([0.0, 0.2, 0.7]))] = -np.inf
    for where in structure.slices:
        values[where.start] = 0.0
    return Tables(structure, values)


def margins(tables, name):
    for clique, table in tables.items():
        if name in clique:
            yield table.sum(axis=tuple(axis for axis, other in enumerate(clique) if other != name))


def strong(seed):
    """A ring whose messages oppose each other by hundreds of nats: entries of e^-170 decide the beliefs, although a
    damped message looks settled long before it is there."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    return Tables(structure, np.random.default_rng(seed).normal(scale=100.0, size=12))


RING = Structure(Domain.from_sizes({"a": 1, "b": 2, "c": 3}), [("a", "b"), ("b", "c"), ("c", "a"), ("b",), ()])


@settings(max_examples=60)
@given(
    with_zeros(),
    st.sampled_from(["flooding", "residual"]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([1.0, 1e5]),
)
@example(Tables(RING, np.where(np.arange(RING.cells) % 5 == 4, -np.inf, 0.0)), "residual", 0.5, 1.0)
@example(strong(0), "flooding", 0.5, 1.0)
@example(strong(1), "flooding", 0.5, 1.0)
@example(strong(2), "residual", 0.5, 1.0)
def test_beliefs_are_locally_consistent(potentials, schedule, damping, total):
    """Non-negative, zero where the potential is, of the right total; if converged, cliques agree on shared margins."""
    structure = potentials.structure
    options = LoopyBP(schedule=schedule, damping=damping, tolerance=1e-10, max_iterations=300)
    beliefs = options.compile(structure).infer(potentials, total=total)
    marginals = beliefs.marginals.values
    assert (marginals >= 0).all() and (marginals[np.isneginf(potentials.values)] == 0).all()
    np.testing.assert_allclose(beliefs.marginals.sums(), total, rtol=1e-12)
    if beliefs.converged:
        for name in structure.domain.names:
            for one, two in itertools.pairwise(margins(beliefs.marginals, name)):
                np.testing.assert_allclose(one, two, rtol=0, atol=1e-6 * total)
