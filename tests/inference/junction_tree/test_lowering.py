"""Sums of products become array calls that do what they say, wherever a stack of directions stands."""

import numpy as np
import pytest

from dpgm_core.inference.junction_tree.lowering import Lowering, bind

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
