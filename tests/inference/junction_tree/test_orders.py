"""The search for an order: all that is found is right, priced as it will be run, and the same on every machine."""

import math
import subprocess
import sys

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY, Search
from dpgm_core.inference.junction_tree.engine import JunctionTreeEngine, plan_along
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


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
