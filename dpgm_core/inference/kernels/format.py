"""The layout of a flat program: one array of whole numbers that the interpreter reads and the lowering writes.

It begins with HEAD numbers, at the places named below: how many there are of something, or where it stands, in the
program itself (AT_..., TABLES, FORWARD, BACKWARD, END) or in memory (LOWS to COUNTERS). Then come

    tables  3 numbers a group: where its cells begin and end, and its cliques
    inputs  of each input node, its group
    steps   STEP numbers a step: instructions forwards from and to, backwards from and to, nodes left and right (-1:
            none), the place of its value in memory, its cells, the place of its adjoint
    roots   2 numbers a root: the places of its value and its adjoint
    free    2 numbers a table without letters: its place among the results and its cliques

the instructions, and the bits of doubles (AT_LOGS): of each step the logarithm of the codes summed, the sum of those,
and what potentials may be without being shifted. Each instruction has a HEADER: length, kind, whether r is written
first (1) or added to (0), cells of r to set to 0 before (of MASK and FINISH: all cells), places of r, p and q, how many
outer loops. Then DIMENSION numbers a loop, codes and strides of r, p and q: three inner loops, the outer ones after
them.

Memory is one array of doubles: potentials first, then values, adjoints and scratch.
"""

from __future__ import annotations

import math

__all__ = ["FLOOR", "LOST", "RAISED", "REACH"]

# Kinds of instructions: how the cells of the innermost loop lie, side by side in r, p and q; r and q; p and q; or not.
# MASK sets cells of r to 0 where those of p are; FINISH makes marginals r, in the results, of p and its adjoint q.
# MATRIX is one product of matrices that lie there row by row, large enough for BLAS.
ELEMENTWISE, PRODUCTS, DOTS, STRIDED, MASK, FINISH, MATRIX = range(7)
HEADER, DIMENSION, STEP = 8, 4, 9
#: Doubles in a vector of `tiles`.
LANES = 8
#: The most outer loops that an instruction may have: a table in memory has fewer than 61 axes of two codes or more, and
#: the letters of an instruction are those of two tables.
LOOPS = 128

HEAD = 32
CELLS, GROUPS, INPUTS, STEPS, ROOTS, FREE, TABLES, AT_INPUTS, AT_STEPS, AT_ROOTS, AT_FREE = range(11)
FORWARD, BACKWARD, END, LOWS, HIGHS, NODE_LOWS, NODE_HIGHS, SCALES, COUNTERS, AT_LOGS = range(11, 21)

#: How an inference ended: FINE; ZEROS is FINE with potentials of -inf; REFUSED for NaN, +inf and a table of -inf only;
#: BEYOND where double precision may not do.
FINE, ZEROS, REFUSED, BEYOND = range(4)

#: Nats that the nonzero cells of a table may span, and the probability that may pass through cells that were raised
#: for it; see `dpgm_core.inference.junction_tree.probability`.
REACH = 300.0
LOST = 1e-37
#: What nonzero cells of a table that spans more are raised to, and up to what they are taken for raised: the safe side.
FLOOR = math.exp(-REACH)
RAISED = FLOOR * (1 + 1e-9)
