"""A loopy plan as flat whole numbers, which compiled sweeps read."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.inference.loopy.plan import LoopyPlan

__all__ = ["FlatPlan", "flatten"]


# Factors worked on at a time, at most and by their cells, so that their rows stay in the fastest caches.
WIDTH, BLOCK = 256, 2**15


@frozen(kw_only=True, eq=False)
class FlatPlan:
    """Where everything stands in one memory of floats: the factors' potentials; three buffers of all messages; two of
    what factors of three attributes and more need on the way. A buffer of messages has, per size k of attributes, k
    rows, and in each one entry per message and a last one, which padding points at.

    memory: floats. places: cells of the factors, entries of all messages, and where the five buffers begin. variables:
    (classes, 8), per variable class where its size's messages stand in a buffer, the size, the length of a row, the
    degree, the attributes, where in `incoming` their slots stand, whether it is the first class of its size, and where
    in `incoming` their weights stand. incoming: the columns of messages, and the weights. factors: per class of factors
    its order, how many, where their cells stand, and how many to work on at a time; then per axis its size, where the
    messages stand in a buffer, the length of their rows, and where tables over the axes before it stand in the last two
    buffers. starts: where in `factors` each class begins.
    """

    memory: int
    places: IntArray
    variables: IntArray
    incoming: IntArray
    factors: IntArray
    starts: IntArray


def flatten(plan: LoopyPlan) -> FlatPlan:
    """Return the plan in arrays of int64.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.loopy.plan import compile_plan
    >>> from dpgm_core.structure import Structure
    >>> flat = flatten(compile_plan(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))))
    >>> flat.places.tolist(), flat.factors.tolist()[:4]
    ([8, 10, 8, 18, 28, 38, 38], [2, 2, 0, 2])
    """
    offsets, entries = [], 0
    variables, incoming, first = [], [], 0
    for sizes in plan.sizes:
        row = sizes.messages + 1
        offsets.append((entries, row))
        for number, one in enumerate(sizes.classes):
            slots = one.degree * one.count
            variables.append([entries, sizes.size, row, one.degree, one.count, first, number == 0, first + slots])
            incoming += [one.incoming, one.weights]
            first += slots + one.count
        entries += sizes.size * row
    factors: list[int] = []
    starts, between = [], 0
    for factor in plan.factors:
        starts.append(len(factors))
        width = min(WIDTH, factor.count, max(8, BLOCK // math.prod(factor.shape)))
        factors += [len(factor.shape), factor.count, factor.cells.start, width]
        used = 0
        for axis, (size, (number, columns)) in enumerate(zip(factor.shape, factor.ports, strict=True)):
            offset, row = offsets[number]
            factors += [size, offset + columns.start, row, used]
            used += width * math.prod(factor.shape[:axis]) if axis > 1 else 0
        between = max(between, used)
    begins = [plan.cells + i * entries for i in range(4)]
    return FlatPlan(
        memory=begins[-1] + 2 * between,
        places=np.array([plan.cells, entries, *begins, begins[-1] + between], dtype=np.int64),
        variables=np.array(variables, dtype=np.int64).reshape(-1, 8),
        incoming=np.concatenate([np.zeros(0, dtype=np.int64), *incoming]),
        factors=np.array(factors, dtype=np.int64),
        starts=np.array(starts, dtype=np.int64),
    )
