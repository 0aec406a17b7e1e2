"""Tiles: blocks of rows by vectors of eight doubles, in which sums of products are made.

A tile keeps its sums in registers, and short runs cost no loop over single cells. Vectors that the compiler makes of
loops are slower where runs are short: it checks each time whether tables overlap, and adds the rest of a run cell by
cell. Processors with shorter vectors run the same code on several of theirs.
"""

from __future__ import annotations

from typing import Any

from dpgm_core.inference.kernels.loading import Intrinsic, has_wide_vectors

__all__ = ["MAX_ROWS", "MAX_VECTORS", "dot_tile", "extremes", "product_tile"]

#: The most rows and vectors of a tile, whose sums fill the registers of a processor with wide vectors.
MAX_ROWS, MAX_VECTORS = 4, 4 if has_wide_vectors() else 1

#: product_tile(memory, (r, row of r), (p, row of p, term of p), (q, term of q), (rows, terms, lanes), fresh):
#: r[i, j] (= if fresh, else +=) sum over k of p[i, k] * q[k, j], where `memory` is one array, r, p and q are places in
#: it, the other numbers of a table strides, and r and q are runs along j. There are at most MAX_ROWS rows and
#: MAX_VECTORS * LANES lanes j. rows = 0 means one row, in which p is p[k, j], also a run along j.
product_tile: Any = Intrinsic("dpgm_core.inference.kernels.tile_code", "product_tile")
#: dot_tile(memory, (r, row of r, column of r), (p, row of p, column of p), (q, column of q), (rows, columns, cells),
#: fresh): r[i, l] (= if fresh, else +=) sum over j of p[i, l, j] * q[l, j], where p and q are runs along j. There are
#: at most MAX_ROWS rows and as many columns, and one row where p has strides of columns.
dot_tile: Any = Intrinsic("dpgm_core.inference.kernels.tile_code", "dot_tile")
#: extremes(memory, start, stop): the least number that is not -inf, the largest, whether some are -inf, and whether all
#: are below +inf, thus numbers; the first two are inf and -inf where there are none, and mean nothing with a NaN.
extremes: Any = Intrinsic("dpgm_core.inference.kernels.tile_code", "extremes")
