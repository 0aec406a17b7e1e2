"""The flat program stays within the memory that it states."""

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.compiled import flatten
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.kernels import format as layout
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_every_place_is_within_memory(awkward):
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    program = flatten(contraction, awkward, 30.0)
    plan, at, seen = program.plan, int(program.plan[layout.FORWARD]), 0
    while at < plan[layout.END]:
        length, kind, _, clear, r, p, q, outer = map(int, plan[at : at + layout.HEADER])
        limit = awkward.cells if kind == layout.FINISH else program.memory
        loops = plan[at + layout.HEADER : at + length].reshape(-1, layout.DIMENSION)
        assert len(loops) == (3 + outer if kind not in (layout.MASK, layout.FINISH) else 0)
        ends = [int(((loops[:, 0] - 1) * loops[:, table]).sum()) for table in (1, 2, 3)] or [clear - 1] * 3
        assert 0 <= r <= r + max(ends[0], clear - 1) < limit
        assert 0 <= p <= p + ends[1] < program.memory and 0 <= q <= q + ends[2] < program.memory
        at, seen = at + length, seen + 1
    assert (at == plan[layout.END] == len(plan) and seen > 0) or not contraction.steps


@pytest.mark.sampled(5)
def test_every_executor_gives_the_same(awkward, executor, lab):
    """With zeros and without, also where every table must be measured on the way."""
    engine = JunctionTree(executor=executor).compile(awkward)
    rng = np.random.default_rng(3)
    for scale, zeros in ((1.0, False), (1.0, True), (90.0, False), (90.0, True)):
        theta = scale * rng.normal(size=awkward.cells)
        if zeros:
            theta[rng.random(awkward.cells) < 0.2] = -np.inf
            theta[[part.start for part in awkward.slices]] = 0.0  # the record of zeros stays possible
        potentials = Tables(awkward, theta)
        marginals, log_partition = lab.brute_force(awkward, potentials)
        beliefs = engine.infer(potentials, total=2.0)
        np.testing.assert_allclose(beliefs.marginals.values, 2 * marginals, atol=1e-11)
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-11)


def test_a_table_of_many_unmerged_axes_has_an_instruction():
    """22 labels of two codes; every other one is also in a table of its own, so no two lie side by side in all."""
    names = [f"x{number:02d}" for number in range(22)]
    structure = Structure(
        Domain.from_sizes(dict.fromkeys(names, 2)), [tuple(names), tuple(names[::2]), tuple(names[1::2])]
    )
    program = flatten(JunctionTree(executor="numpy").compile(structure).contraction, structure, 30.0)
    plan, at, most = program.plan, int(program.plan[layout.FORWARD]), 0
    while at < plan[layout.END]:
        most = max(most, int(plan[at + layout.HEADER - 1]))
        at += int(plan[at])
    assert 16 < most <= layout.LOOPS
