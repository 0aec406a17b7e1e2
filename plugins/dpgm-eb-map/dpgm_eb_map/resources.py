"""Memory and time of a fit, from the numbers of labels alone."""

from __future__ import annotations

import math
from typing import Literal

from dpgm_core import Structure
from dpgm_core.learning import Resources
from dpgm_eb_map.contrasts import effect_shapes
from dpgm_eb_map.diagonal import largest_block
from dpgm_eb_map.run import DENSE_AT_MOST

__all__ = ["resources"]

# Measured on one core of 2026 by benchmarks/eb_map.py and on columns of 300 to 10,000 labels: within a factor of 2 of
# memory beyond the program's own, and 3 of time.
_PROGRAM = 128 * 2**20  # bytes: Python, numpy, scipy and the engine
_MATRICES = 12  # of the order of all parameters, that the dense path holds at a time
_OF_BLOCK = 5  # that a block holds
_VECTORS = (600, 60)  # numbers for each parameter and for each cell: L-BFGS, the evidence of scales, several fits
_DENSE_SECONDS = (5e-10, 2e-6)  # times parameters cubed, squared
_BLOCK_SECONDS = 2.5e-6  # times parameters, times those of a block
_CALLS = 400


def resources(structure: Structure, curvature: Literal["auto", "dense", "diagonal"]) -> Resources:
    """Return what a fit over the structure takes; with "auto" for little noise, where the dense path goes furthest.

    >>> from dpgm_core import Domain
    >>> wide = Structure(Domain.from_sizes({"a": 10_000}), [("a",)])
    >>> resources(wide, "auto").memory // 2**20, resources(wide, "dense").memory // 2**20 > 9000
    (216, True)
    """
    shapes = effect_shapes(structure)
    sizes = [math.prod(labels - 1 for labels in shape) for shape in shapes]
    count, cells = sum(sizes), structure.cells
    within = sum(size * min(count, largest_block(shape)) for size, shape in zip(sizes, shapes, strict=True))
    numbers = _VECTORS[0] * count + _VECTORS[1] * cells + _OF_BLOCK * within
    seconds = _BLOCK_SECONDS * within
    if curvature == "dense" or (curvature == "auto" and count <= DENSE_AT_MOST):
        numbers += _MATRICES * count**2 + 3 * cells * count
        seconds += _DENSE_SECONDS[0] * count**3 + _DENSE_SECONDS[1] * count**2
    return Resources(memory=_PROGRAM + 8 * numbers, cpu_seconds=seconds, calls=_CALLS)
