"""Cost model of exact inference: the time of a step from the sizes of its tables alone."""

from __future__ import annotations

from attrs import frozen

__all__ = ["NUMBA", "NUMPY", "CostModel"]


@frozen(kw_only=True)
class CostModel:
    """Nanoseconds of one core.

    call: what any kernel costs before it does something. block: a small matrix product inside a batch. multiply_add:
    one in a matrix product. cell: reading or writing one in a pass.
    """

    call: float
    block: float
    multiply_add: float
    cell: float

    def product(self, p: int, q: int, r: int, union: int, blocks: int) -> float:
        """A step r = sum p * q forwards, and the adjoint of either operand backwards.

        p, q, r: cells of each table. union: of a table over all their attributes. blocks: over those all three have.

        >>> NUMPY.product(10, 10, 10, 10, 10) < NUMPY.product(10, 10, 10, 100, 1)
        True
        """
        # Each is a product of the two others; it is one pass where nothing is summed, else a batch of matrix products.
        passes = self.cell * (p + q + r)
        summed = (p != union) + (q != union) + (r != union)
        return (
            3 * self.call
            + (3 - summed) * passes / 2
            + summed * (self.block * blocks + self.multiply_add * union + passes / 4)
        )

    def sum_out(self, cells: int) -> float:
        """A step that only sums, over a table of so many cells, and the adjoint of its operand.

        >>> NUMPY.sum_out(1000) - NUMPY.sum_out(0) == 1000 * NUMPY.cell
        True
        """
        return 2 * self.call + self.cell * cells


#: numpy with OpenBLAS, as measured.
NUMPY = CostModel(call=700.0, block=100.0, multiply_add=0.06, cell=0.7)
#: What numba compiles: calls and blocks cost next to nothing, multiply-adds more than in BLAS.
NUMBA = CostModel(call=40.0, block=8.0, multiply_add=0.08, cell=0.25)
