"""Programs of array calls: they do what their contraction says, in the memory that they state."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree.contraction import Search
from dpgm_core.inference.junction_tree.lowering import Lowering, bind, cut_into_runs, first_fit, is_run, lower
from dpgm_testing import awkward_structures

SIZES = (2, 3, 4, 2, 5)
STACKED = 4
# p, q and r of r = sum p * q; letter 4 is the stack's
CONTRACTIONS = {
    "matrix product": ((0, 1, 2), (0, 3), (1, 2, 3)),
    "batches": ((0, 1, 2), (0, 1, 3), (1, 2, 3)),
    "batches, letters astray": ((2, 0, 1), (3, 1, 0), (3, 1, 2)),
    "stack in front": ((4, 0, 1, 2), (0, 3), (4, 1, 2, 3)),
    "stack in front, vector": ((4, 0), (0, 1), (4, 1)),
    "stack in the second": ((0, 1), (4, 0, 2), (4, 1, 2)),
    "stack and batches": ((4, 0, 1, 2), (0, 1, 3), (4, 1, 2, 3)),
    "all summed": ((4, 0, 1), (0, 1), (4,)),
    "no sum": ((4, 1, 0), (0, 2), (4, 0, 1, 2)),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contracts_as_einsum_does(name):
    """Each call on the memory that was laid out, inputs and output where they were fixed."""
    letters = CONTRACTIONS[name]
    lowering = Lowering(SIZES, STACKED)
    spaces = ("potentials", "kept", "tangents")
    tables = [
        (lowering.buffer(lowering.cells(some), (space, 0)), some) for some, space in zip(letters, spaces, strict=True)
    ]
    lowering.contract(*tables)
    (code,), _, arena = lowering.place([len(lowering.code)], {}, {})
    rng = np.random.default_rng(0)
    memory = {space: rng.normal(size=table[0].cells) for space, table in zip(spaces, tables, strict=True)}
    memory |= {"arena": np.full(arena, np.nan), "ones": np.ones(lowering.ones_cells)}
    for instruction in code:
        function, arguments = bind(instruction, memory)
        function(*arguments)
    p, q, r = (
        memory[space].reshape([SIZES[letter] for letter in some]) for some, space in zip(letters, spaces, strict=True)
    )
    np.testing.assert_allclose(r, np.einsum(p, letters[0], q, letters[1], letters[2]), rtol=1e-12, atol=1e-12)


def test_sums_one_letter_out():
    """First, last or in the middle."""
    for at in range(3):
        lowering = Lowering((2, 3, 4))
        out = tuple(letter for letter in range(3) if letter != at)
        table = lowering.buffer(24, ("potentials", 0)), (0, 1, 2)
        lowering.sum_out(table, (lowering.buffer(lowering.cells(out), ("kept", 0)), out))
        (code,), _, _ = lowering.place([1], {}, {})
        memory = {"potentials": np.arange(24.0), "kept": np.zeros(24 // (2 + at)), "ones": np.ones(lowering.ones_cells)}
        function, arguments = bind(code[0], memory)
        function(*arguments)
        np.testing.assert_allclose(memory["kept"], np.arange(24.0).reshape(2, 3, 4).sum(axis=at).reshape(-1))


# --- Where buffers go: none overlaps another that is live, and the longest runs of axes are found


LIVES = st.dictionaries(
    st.integers(0, 30),
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 100)).map(
        lambda one: (min(one[:2]), max(one[:2]), one[2])
    ),
    max_size=20,
)


@given(LIVES)
def test_no_two_live_buffers_overlap(wanted):
    """Each starts on a cache line and ends within the memory stated; freed room is used again."""
    starts, size = first_fit(wanted)
    assert starts.keys() == wanted.keys()
    for (one, (first, last, cells)), (other, (begins, ends, more)) in itertools.combinations(wanted.items(), 2):
        if first <= ends and begins <= last:
            assert starts[one] + cells <= starts[other] or starts[other] + more <= starts[one]
    for number, (_, _, cells) in wanted.items():
        assert starts[number] % 8 == 0 and starts[number] + cells <= size
    assert size <= sum(-(-cells // 8) * 8 for _, _, cells in wanted.values())


def test_room_is_used_again_as_soon_as_it_is_free():
    """A chain of buffers, each live with the next only, needs room for two."""
    assert first_fit({number: (number, number + 1, 64) for number in range(50)})[1] == 128


@given(st.permutations(range(5)), st.lists(st.permutations(range(5)), min_size=1, max_size=3), st.data())
def test_runs_are_the_longest_that_every_table_has_together(order, tables, data):
    """They make up the order, stand side by side in each table or not at all, and no two neighbours could be one."""
    some = [tuple(table[: data.draw(st.integers(0, 5))]) for table in tables]

    def together(run):
        return all((is_run(table, run) if set(run) <= set(table) else not set(run) & set(table)) for table in some)

    runs = cut_into_runs(tuple(order), some)
    assert [letter for run in runs for letter in run] == list(order)
    assert all(together(run) for run in runs)
    assert not any(together(first + second) for first, second in itertools.pairwise(runs))


# --- The lowered program does what its contraction says, step by step, in the memory that it states


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
