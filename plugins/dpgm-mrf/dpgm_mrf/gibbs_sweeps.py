"""Sweeps: every attribute of every chain is drawn again, given the others, one attribute after the other.

With numpy all chains move together, an attribute at a time; with numba (extra `fast`) the same draws are made of the
same uniform numbers in compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dpgm_core import FloatArray, IntArray
from dpgm_mrf.gibbs_law import Lookups

__all__ = ["Sweep", "compiled", "sweep"]

#: (lookups, buffer of tables, codes, uniform numbers): codes change in place.
Sweep: TypeAlias = Callable[[Lookups, FloatArray, IntArray, FloatArray], None]


def sweep(lookups: Lookups, buffer: FloatArray, codes: IntArray, uniform: FloatArray) -> None:
    """One sweep with numpy. codes: (attributes, chains), int64; uniform: (conditionals, chains), in [0, 1)."""
    with np.errstate(over="ignore"):
        for number, attribute in enumerate(lookups.attributes.tolist()):
            blocks = range(lookups.blocks[number], lookups.blocks[number + 1])
            size, draw = int(lookups.sizes[number]), uniform[number]
            rows = [_looked_up(lookups, buffer, codes, block, size, len(blocks)) for block in blocks]
            if len(blocks) == 1:
                codes[attribute] = _code(rows[0], draw)
                continue
            logs = rows[0]
            for more in rows[1:]:
                logs += more
            if size == 2:
                codes[attribute] = draw >= 1.0 / (1.0 + np.exp(logs[0]))
                continue
            sums = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
            codes[attribute] = _code(sums[:-1], draw * sums[-1])


def _looked_up(lookups: Lookups, buffer: FloatArray, codes: IntArray, block: int, size: int, blocks: int) -> FloatArray:
    """(rows, chains) of one block's table."""
    first, end = int(lookups.firsts[block]), int(lookups.firsts[block + 1])
    start, cells = int(lookups.starts[block]), int(lookups.cells[block])
    rows = size - 1 if blocks == 1 or size == 2 else size
    table = buffer[start : start + rows * cells].reshape(rows, cells)
    if first == end:
        return np.repeat(table, codes.shape[1], axis=1)
    at = codes[lookups.partners[first]] * lookups.strides[first]
    for place in range(first + 1, end):
        at += codes[lookups.partners[place]] * lookups.strides[place]
    return table[:, at] if rows > 1 else table[0].take(at)[np.newaxis]


def _code(sums: FloatArray, draw: FloatArray) -> IntArray:
    """How many of the cumulated probabilities a number reaches."""
    if len(sums) == 1:
        one: IntArray = draw >= sums[0]
        return one
    found: IntArray = (draw >= sums).sum(axis=0)
    return found


@lru_cache(maxsize=1)
def compiled() -> Sweep | None:
    """`sweep` compiled by numba, or None where numba is not installed."""
    try:
        from numba import njit
    except ImportError:
        return None
    try:
        kernel = njit(nogil=True, cache=True)(_kernel)
    except RuntimeError:  # there is no folder that may keep what is compiled
        kernel = njit(nogil=True)(_kernel)

    def run(lookups: Lookups, buffer: FloatArray, codes: IntArray, uniform: FloatArray) -> None:
        kernel(
            lookups.attributes,
            lookups.sizes,
            lookups.single,
            lookups.blocks,
            lookups.firsts,
            lookups.partners,
            lookups.strides,
            lookups.starts,
            lookups.cells,
            buffer,
            codes,
            uniform,
        )

    return run


def _kernel(
    attributes: Any,
    sizes: Any,
    single: Any,
    blocks: Any,
    firsts: Any,
    partners: Any,
    strides: Any,
    starts: Any,
    cells: Any,
    buffer: Any,
    codes: Any,
    uniform: Any,
) -> None:
    """The same as `sweep`, as loops over plain arrays."""
    chains = codes.shape[1]
    logs = np.empty(sizes.max())
    at = np.empty(chains, np.int64)
    odds = np.empty(chains)
    for number in range(len(attributes)):
        attribute, size = attributes[number], sizes[number]
        low, high = blocks[number], blocks[number + 1]
        if size == 2:
            odds[:] = 0.0
            for block in range(low, high):
                at[:] = starts[block]
                for place in range(firsts[block], firsts[block + 1]):
                    partner, stride = partners[place], strides[place]
                    for chain in range(chains):
                        at[chain] += codes[partner, chain] * stride
                for chain in range(chains):
                    odds[chain] += buffer[at[chain]]
            if not single[number]:
                for chain in range(chains):
                    odds[chain] = 1.0 / (1.0 + np.exp(odds[chain]))
            for chain in range(chains):
                codes[attribute, chain] = 1 if uniform[number, chain] >= odds[chain] else 0
            continue
        for chain in range(chains):
            draw = uniform[number, chain]
            code = 0
            if single[number]:
                where = starts[low]
                for place in range(firsts[low], firsts[low + 1]):
                    where += codes[partners[place], chain] * strides[place]
                while code < size - 1 and draw >= buffer[where + code * cells[low]]:
                    code += 1
            else:
                logs[:size] = 0.0
                for block in range(low, high):
                    where = starts[block]
                    for place in range(firsts[block], firsts[block + 1]):
                        where += codes[partners[place], chain] * strides[place]
                    for value in range(size):
                        logs[value] += buffer[where + value * cells[block]]
                top = logs[:size].max()
                total = 0.0
                for value in range(size):
                    total += np.exp(logs[value] - top)
                    logs[value] = total
                while code < size - 1 and draw * total >= logs[code]:
                    code += 1
            codes[attribute, chain] = code
