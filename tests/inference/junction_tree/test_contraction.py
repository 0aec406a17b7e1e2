"""Contractions and elimination orders: what they cost, how they are found, and what is refused."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY, Pairings, Search, contraction_of
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine, plan_along, plan_inference
from dpgm_core.structure.graphs import BitGraph, places
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [14, 60])
def test_what_cannot_fit_is_refused_at_once(rows):
    """A wide grid is refused with its sizes and a way out, before anything is allocated."""
    structure = Structure.grid(Domain.from_sizes({f"x{i}": 10 for i in range(rows**2)}), rows, rows)
    with pytest.raises(TooLarge, match=r"treewidth.*max_bytes = 2\.0 GiB.*loopy-bp"):
        JunctionTree().compile(structure)


def test_the_limit_is_the_memory_taken():
    """A limit of exactly the announced bytes is enough; one byte less is not."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 5 for i in range(8)}), order=3)
    engine = JunctionTree(executor="numpy").compile(structure)
    assert JunctionTree(executor="numpy", max_bytes=engine.needs.peak_bytes).compile(structure).needs == engine.needs
    with pytest.raises(TooLarge, match="treewidth 3"):
        JunctionTree(executor="numpy", max_bytes=engine.needs.peak_bytes - 1).compile(structure)


def test_cost_of_a_chain():
    """Sizes by hand: a - b - c of 2, 3, 2 labels; sum a, sum c, and the product of both over b."""
    engine = JunctionTree(executor="numpy").compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})))
    assert (engine.needs.treewidth, engine.needs.cells, engine.needs.largest) == (1, 3 + 3 + 1, 3)
    assert engine.needs.multiply_adds == 2 * 6 + 2 * 6 + 3 * 3


@pytest.mark.landing
def test_a_star_of_many_leaves():
    """A naive-Bayes model: 1,200 messages meet in one bucket, more than Python's stack is deep."""
    domain = Domain.from_sizes({"root": 3} | {f"leaf{i}": 2 for i in range(1200)})
    structure = Structure(domain, [(f"leaf{i}", "root") for i in range(1200)])
    theta = Tables(structure, 4 * np.random.default_rng(4).normal(size=structure.cells))
    beliefs = JunctionTree().compile(structure).infer(theta)
    tables = theta.values.reshape(1200, 2, 3)
    leaves = np.logaddexp(tables[:, 0], tables[:, 1])
    root = leaves.sum(axis=0)
    log_partition = np.logaddexp.reduce(root)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)
    expected = np.exp(tables - leaves[:, None] + root - log_partition)
    np.testing.assert_allclose(beliefs.marginals.values, expected.reshape(-1), rtol=1e-9, atol=1e-300)


def test_what_only_an_attribute_of_one_label_joins_has_no_message():
    """d is eliminated first and makes a and b neighbours, though no table has both: a's message goes nowhere."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "d": 1}), [("a", "d"), ("d", "b")])
    graph = BitGraph.of(structure.adjacency, structure.domain.sizes)
    contraction = contraction_of(structure, graph.play([2, 0, 1]), Pairings(graph.sizes, NUMPY))
    assert [contraction.nodes[root] for root in contraction.roots] == [(), ()]
    assert [step.right for step in contraction.steps] == [None, None]


# --- The cost model prices a step as its three products, forwards and backwards, each by its own formula


SIZES = (3, 2, 5, 4, 7)
# r = sum p * q: a matrix product, batches of them, an outer product, one table into another, a sum over all
STEPS = [("ab", "bc", "ac"), ("abc", "abd", "acd"), ("a", "b", "ab"), ("abc", "b", "abc"), ("ab", "ab", "")]


@pytest.mark.parametrize("model", [NUMPY, NUMBA])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_costs_its_three_products(model, step):
    """A broadcast product is one pass over half of what is read and written; else blocks, multiply-adds and passes."""

    def cells(letters):
        return math.prod(SIZES["abcd".index(letter)] for letter in letters)

    expected = 0.0
    for one, two, out in [step, (step[2], step[1], step[0]), (step[2], step[0], step[1])]:
        passes = model.cell * sum(map(cells, step))
        if set(one) | set(two) == set(out):
            expected += model.call + passes / 2
        else:
            blocks, union = cells(set.intersection(*map(set, step))), cells(set(one) | set(two))
            expected += model.call + model.block * blocks + model.multiply_add * union + passes / 4
    p, q, r = map(cells, step)
    union, blocks = cells(set(step[0]) | set(step[1])), cells(set.intersection(*map(set, step)))
    assert model.product(p, q, r, union, blocks) == pytest.approx(expected)


def test_compiled_calls_are_cheap():
    """Where tables are small, calls are all that numpy pays for."""
    for model, other in itertools.permutations([NUMPY, NUMBA]):
        if model is NUMPY:
            assert model.product(2, 2, 2, 4, 1) > 10 * other.product(2, 2, 2, 4, 1)
            assert model.sum_out(2) > 10 * other.sum_out(2)


# --- How the tables of a bucket are paired: at the least predicted cost of all trees while they are few


def cells(scope):
    return math.prod(SIZES[place] for place in places(scope))


def trees(numbers):
    """All binary trees over some numbers."""
    if len(numbers) == 1:
        yield numbers[0]
        return
    for count in range(1, len(numbers)):
        for some in itertools.combinations(numbers, count):
            if numbers[0] in some:
                rest = tuple(number for number in numbers if number not in some)
                yield from itertools.product(trees(some), trees(rest))


def price(tree, scopes, top=True):
    """(scope, nanoseconds, cells made below the top) of a tree; attribute 0 is summed at the top."""
    if isinstance(tree, int):
        return scopes[tree], 0.0, 0
    (p, one, few), (q, two, more) = (price(part, scopes, top=False) for part in tree)
    out = (p | q) & ~1 if top else p | q
    step = NUMPY.product(cells(p), cells(q), cells(out), cells(p | q), cells(p & q & out))
    return out, one + two + step, few + more + (0 if top else cells(out))


@given(st.lists(st.integers(0, 15).map(lambda more: 2 * more + 1), min_size=2, max_size=4))
def test_few_tables_are_paired_at_the_least_cost(scopes):
    """Against every tree over up to four tables that hold the attribute."""
    found = Pairings(SIZES, NUMPY).of(0, tuple(scopes))
    _, nanoseconds, made = price(found.tree, scopes)
    assert (found.made, round(found.nanoseconds, 6)) == (made, round(nanoseconds, 6))
    best = min(price(tree, scopes)[1] for tree in trees(tuple(range(len(scopes)))))
    assert nanoseconds <= best * (1 + 1e-12)


@given(st.lists(st.integers(0, 15).map(lambda more: 2 * more + 1), min_size=6, max_size=12))
def test_many_tables_are_each_multiplied_once(scopes):
    """Greedily, and priced as what it is."""
    found = Pairings(SIZES, NUMPY).of(0, tuple(scopes))

    def leaves(tree):
        return [tree] if isinstance(tree, int) else leaves(tree[0]) + leaves(tree[1])

    assert sorted(leaves(found.tree)) == list(range(len(scopes)))
    assert found.made == price(found.tree, scopes)[2]
    if len(set(scopes)) > 1:  # else the last product still has the attribute when it is priced
        assert math.isclose(found.nanoseconds, price(found.tree, scopes)[1])


# --- The search for an order: all that is found is right, priced as it will be run, and the same on every machine


@pytest.mark.sampled(5)
@pytest.mark.parametrize("model", [NUMPY, NUMBA], ids=["numpy", "numba"])
def test_every_order_gives_the_same_marginals(awkward, model, lab):
    """Whatever heuristic found it, inference along it is what summing over all records gives."""
    found = Search(awkward, model)
    theta = Tables(awkward, np.random.default_rng(2).normal(size=awkward.cells))
    marginals, log_partition = lab.brute_force(awkward, theta)
    for candidate in found.candidates:
        beliefs = JunctionTreeEngine(awkward, plan_along(found, candidate), 2**31, "numpy").infer(theta)
        np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-9, atol=1e-12)
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)


def nanoseconds(contraction, step):
    """Of one step, from its tables."""

    def cells(letters):
        return math.prod(contraction.sizes[letter] for letter in letters)

    if step.right is None:
        return NUMPY.sum_out(contraction.cells(step.left))
    p, q, r = (set(contraction.nodes[node]) for node in (step.left, step.right, step.out))
    return NUMPY.product(cells(p), cells(q), cells(r), cells(p | q), cells(p & q & r))


@pytest.mark.sampled(4)
def test_what_is_priced_is_what_is_run(awkward):
    """Time is that of the contraction's steps, and no program along an order takes less memory than was said."""
    found = Search(awkward)
    for candidate in found.candidates:
        contraction = found.contraction(candidate)
        total = sum(nanoseconds(contraction, step) for step in contraction.steps)
        assert candidate.nanoseconds == pytest.approx(total)
        assert candidate.bytes <= plan_along(found, candidate).needs.peak_bytes


def test_the_domains_own_order_is_tried():
    """A ladder whose greedy orders are led astray by sizes: the natural order is among those found."""
    structure = Structure.grid(Domain.from_sizes({f"x{i}": 2 + i % 3 for i in range(12)}), 6, 2)
    assert {"natural", "reverse"} & {one.heuristic for one in Search(structure).candidates}


def test_memory_chooses_between_orders():
    """Orders that would take more than there is are left out; those left are the fastest of the rest."""
    structure = Structure.grid(Domain.from_sizes({f"x{i}": 3 for i in range(36)}), 6, 6)
    free = Search(structure)
    limit = sorted(one.bytes for one in free.candidates)[len(free.candidates) // 2]
    bound = Search(structure, NUMPY, limit)
    assert all(one.bytes <= limit for one in bound.candidates)
    assert 0 < len(bound.candidates) < len(bound.played)
    times = [one.nanoseconds for one in bound.candidates]
    assert times == sorted(times)


SCRIPT = """
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.contraction import Search
from dpgm_core.structure import Structure
domain = Domain.from_sizes({f"x{i}": 2 + i * i % 5 for i in range(20)})
structure = Structure.erdos_renyi(domain, 0.2, 3)
found = Search(structure)
print([(one.heuristic, one.played.order, one.nanoseconds) for one in found.candidates])
print(found.contraction(found.candidates[0]))
"""


@pytest.mark.landing
def test_the_same_order_in_every_process():
    """Hashes of names differ between processes; orders, ties and pairings do not."""
    said = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


# --- A plan is remembered, takes the memory it says, and is refused before anything is allocated


def test_an_equal_structure_is_planned_once():
    """Learners check, fit and refit over the same structure; the model and the memory are part of what is asked."""
    one, two = (Structure.chain(Domain.from_sizes(dict.fromkeys("abcd", 3)), 2) for _ in range(2))
    assert plan_inference(one, 2**20) is plan_inference(two, 2**20)
    assert plan_inference(one, 2**20) is not plan_inference(two, 2**21)
    assert plan_inference(one, 2**20, NUMBA) is not plan_inference(two, 2**20, NUMPY)


def test_the_memory_announced_is_what_is_allocated(awkward):
    """Potentials, marginals, the arena and ones of a workspace: every array of a call besides its result."""
    engine = JunctionTree(executor="numpy").compile(awkward)
    with engine._run._workspace() as work:
        arrays = {id(one): one for one in (work.potentials, work.adjoints, work.retained)}
        for _, arguments in work.forward + work.backward:
            for argument in arguments:
                while argument.base is not None:
                    argument = argument.base
                arrays[id(argument)] = argument
        sizes = sum(one.nbytes for one in arrays.values())
    unused = engine._plan.program.ones * 8  # where no step sums alone, nothing reads the ones
    assert engine.needs.peak_bytes - unused <= sizes <= engine.needs.peak_bytes <= engine._plan.most_bytes


@pytest.mark.sampled(4)
def test_compiled_kernels_announce_their_own_memory(awkward):
    """To the byte, and the tables' marginals; below it numpy's program does, until that no longer fits either."""
    pytest.importorskip("numba")
    engine = JunctionTree(executor="numba").compile(awkward)
    taken = engine._compiled.bytes + 8 * awkward.cells
    assert engine.needs.peak_bytes == taken <= engine._plan.most_bytes
    tight = JunctionTree(executor="numba", max_bytes=taken - 1).compile(awkward)
    assert (tight.executor, tight.explain().executor) == ("numpy", "numpy")
    assert tight.needs == JunctionTree(executor="numpy", max_bytes=taken - 1).compile(awkward).needs
    with pytest.raises(TooLarge):
        JunctionTree(executor="numba", max_bytes=tight.needs.peak_bytes // 2).compile(awkward)


def test_the_fastest_that_fits_is_taken():
    """With less memory the plan may be slower, never larger than allowed."""
    structure = Structure.erdos_renyi(Domain.from_sizes({f"x{i}": 2 + i * i % 5 for i in range(12)}), 0.35, 9)
    free = plan_inference(structure, 2**31)
    tight = plan_inference(structure, free.needs.peak_bytes - 1)
    assert tight.needs.peak_bytes < free.needs.peak_bytes
    assert tight.candidate.nanoseconds > free.candidate.nanoseconds


def test_a_table_that_no_memory_holds_is_priced_all_the_same():
    """Cells beyond what a float can be, and a limit beyond every address."""
    structure = Structure.complete(Domain.from_sizes({f"x{i}": 1000 for i in range(150)}))
    with pytest.raises(TooLarge, match=r"a table of 10\^447 cells"):
        plan_inference(structure, 10**400)


def test_dense_structures_are_refused_quickly():
    """200 attributes, 5000 edges: one bound and one order, not a search."""
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(rng.choice(200, 2, replace=False))) for _ in range(5000)}
    structure = Structure(Domain.from_sizes({f"x{i}": 2 for i in range(200)}), [(f"x{i}", f"x{j}") for i, j in pairs])
    with pytest.raises(TooLarge, match=r"its widest cluster joins (x\d+, ){4}\.\.\. \(\d+ attributes\); use fewer"):
        plan_inference(structure, 2**31)


# --- A refusal names where a model is too wide, and what would do


def test_a_clique_too_large_is_named():
    """One clique of five large attributes in a chain of small ones."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(5)} | {f"big{i}": 100 for i in range(5)})
    structure = Structure(domain, [("x0", "x1"), ("x1", "x2"), ("x2", "big0"), tuple(f"big{i}" for i in range(5))])
    with pytest.raises(TooLarge) as found:
        JunctionTree().compile(structure)
    assert "widest cluster is the clique big0, big1, big2, big3, ... (5 attributes)" in str(found.value)


def test_the_attribute_that_joins_everything_is_named():
    """Twenty pairs, each with the hub: without the hub nothing is wide."""
    names = [f"x{i}" for i in range(40)]
    domain = Domain.from_sizes(dict.fromkeys(names, 10) | {"hub": 50})
    pairs = [(names[i], names[i + 1]) for i in range(39)]
    structure = Structure(domain, [*pairs, *((one, two, "hub") for one, two in pairs)])
    with pytest.raises(TooLarge, match=r"\(without hub the largest table has 10 cells\)"):
        JunctionTree(max_bytes=100_000).compile(structure)
    grid = Structure.grid(Domain.from_sizes({f"x{i}": 10 for i in range(196)}), 14, 14)
    with pytest.raises(TooLarge) as found:
        JunctionTree().compile(grid)
    assert "without" not in str(found.value)  # no single attribute helps
