"""A plan is remembered, takes the memory it says, and is refused before anything is allocated."""

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY
from dpgm_core.inference.junction_tree.engine import JunctionTree, plan_inference
from dpgm_core.structure.structure import Structure


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
