"""A contraction lowered to straight-line array calls on fixed buffers: forwards to log Z, backwards to every adjoint.

With probabilities, a step is a broadcast product or a (batched) matrix product, and so is its adjoint: with
out = sum left * right, adjoint(left) = sum adjoint(out) * right.
"""

from __future__ import annotations

from attrs import frozen

from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.lowering import Instruction, Lowering, Space, Table, View
from dpgm_core.structure import Structure

__all__ = ["InferenceLowering", "Program", "lower"]


@frozen(kw_only=True)
class Program:
    """The instructions of each step, forwards and backwards, and the memory they need.

    values, adjoints: per node, its flat buffer (None where it has none). arena, ones, retained: doubles to
    allocate. The values and adjoints of all steps are retained on request.
    """

    forward: tuple[tuple[Instruction, ...], ...]
    backward: tuple[tuple[Instruction, ...], ...]
    values: tuple[View, ...]
    adjoints: tuple[View | None, ...]
    arena: int
    ones: int
    retained: int


def lower(contraction: Contraction, structure: Structure, *, keep: bool = False) -> Program:
    """Lower a contraction whose input nodes read and whose marginals fill the buffer layout of `structure`'s tables.

    keep: whether every value and adjoint stays readable to the end, which takes more memory.
    """
    return InferenceLowering(contraction, structure, keep=keep).program()


class InferenceLowering(Lowering):
    """The code of an inference, step by step, and the buffers it needs."""

    def __init__(self, contraction: Contraction, structure: Structure, *, keep: bool) -> None:
        super().__init__(contraction.sizes)
        self.contraction, self.keep, self.retained = contraction, keep, 0
        self.value: list[Table] = []
        self.adjoint: list[Table | None] = [None] * len(contraction.nodes)
        self.starts = [part.start for part in structure.slices]
        for node, letters in enumerate(contraction.nodes):
            if node < len(contraction.groups):
                where: tuple[Space, int] = ("potentials", self.starts[contraction.groups[node]])
                self.value.append((self.buffer(contraction.cells(node), where), letters))
            else:
                self.value.append(self.made(node))

    def made(self, node: int) -> Table:
        """A new table of a node, to be kept if all are."""
        cells = self.contraction.cells(node)
        where: tuple[Space, int] | None = None
        if self.keep:
            where, self.retained = ("retained", self.retained), self.retained + cells
        return self.buffer(cells, where), self.contraction.nodes[node]

    def program(self) -> Program:
        contraction, value = self.contraction, self.value
        ends = []
        for step in contraction.steps:
            if step.right is None:
                self.sum_out(value[step.left], value[step.out])
            else:
                self.contract(value[step.left], value[step.right], value[step.out])
            ends.append(len(self.code))
        filled: set[int] = set()
        for step in reversed(contraction.steps):
            if self.adjoint[step.out] is None:
                self.adjoint[step.out] = self.made(step.out)
            above = self.adjoint[step.out]
            assert above is not None
            pairs = (
                [(step.left, step.right)] if step.right is None else [(step.left, step.right), (step.right, step.left)]
            )
            for node, other in pairs:
                self.into_adjoint(node, above, None if other is None else value[other], filled)
            ends.append(len(self.code))
        return self.placed(ends)

    def into_adjoint(self, node: int, above: Table, other: Table | None, filled: set[int]) -> None:
        contraction = self.contraction
        letters = contraction.nodes[node]
        add_to = None
        if node >= len(contraction.groups):
            table = self.made(node)
        else:
            table = (self.buffer(contraction.cells(node)), letters)
            group = contraction.groups[node]
            slot = (self.buffer(contraction.cells(node), ("adjoints", self.starts[group])), letters)
            if group in filled:  # tied: the group's adjoint is the sum over its cliques
                add_to = slot
            else:
                table = slot
            filled.add(group)
        self.adjoint[node] = table
        if other is None:
            self.spread(above, table)
        else:
            self.contract(above, other, table)
        if add_to is not None:
            self.add(table, add_to)

    def placed(self, ends: list[int]) -> Program:
        contraction = self.contraction
        turn = ends[len(contraction.steps) - 1] if contraction.steps else 0
        # Roots are read between the passes; their adjoints are written there.
        roots = [(self.value[root], self.adjoint[root]) for root in contraction.roots]
        parts, view, arena = self.place(
            ends,
            {value[0].number: turn for value, _ in roots},
            {above[0].number: turn - 1 for _, above in roots if above is not None},
        )

        def flat(table: Table) -> View:
            return view((table[0], (table[0].cells,), (0,)))

        return Program(
            forward=tuple(parts[: len(contraction.steps)]),
            backward=tuple(parts[len(contraction.steps) :]),
            values=tuple(flat(table) for table in self.value),
            adjoints=tuple(None if table is None else flat(table) for table in self.adjoint),
            arena=arena,
            ones=self.ones_cells,
            retained=self.retained,
        )
