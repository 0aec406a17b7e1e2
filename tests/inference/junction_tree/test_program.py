"""The lowered program does what its contraction says, step by step, in the memory that it states."""

import math

import numpy as np
import pytest

from dpgm_core.inference.junction_tree.contraction import Search
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_testing import awkward_structures

NAMES = sorted(awkward_structures())


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_the_sum_that_the_contraction_says(name):
    """Run call by call on the stated buffers, each step's table is `einsum` of its operands' tables."""
    structure = awkward_structures()[name]
    found = Search(structure)
    for contraction in map(found.contraction, found.candidates):
        program = lower(contraction, structure)
        buffers = {
            "potentials": np.random.default_rng(1).uniform(0.5, 2, structure.cells),
            "adjoints": np.full(structure.cells, np.nan),
            "arena": np.full(program.arena, np.nan),
            "ones": np.ones(program.ones),
        }

        def array(view, buffers=buffers):
            flat = buffers[view.space][view.start : view.start + math.prod(view.shape)]
            assert flat.size == math.prod(view.shape), "the view leaves its buffer"
            return flat.reshape(view.shape).transpose(view.axes)

        known = {
            node: array(program.values[node]).reshape(contraction.shape(node)).copy()
            for node in range(len(contraction.groups))
        }
        for step, instructions in zip(contraction.steps, program.forward, strict=True):
            for one in instructions:
                out, inputs = array(one.out), [array(view) for view in one.inputs]
                if one.call == "copy":
                    out[...] = inputs[0]
                elif one.call == "add":
                    out += inputs[0]
                else:
                    out[...] = np.multiply(*inputs) if one.call == "multiply" else inputs[0] @ inputs[1]
            nodes = [step.left] if step.right is None else [step.left, step.right]
            operands = [part for node in nodes for part in (known[node], list(contraction.nodes[node]))]
            known[step.out] = np.einsum(*operands, list(contraction.nodes[step.out]))
            found = array(program.values[step.out]).reshape(contraction.shape(step.out))
            np.testing.assert_allclose(found, known[step.out], rtol=1e-12)
