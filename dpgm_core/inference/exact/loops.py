"""Loops of one contraction r = sum of p * q: which run inside, what they cost, and orders of axes that make runs.

A loop is over one letter, or over several that lie side by side in each table. Which three run inside decides the
speed: the innermost should go along cells side by side, in vectors, and be long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from dpgm_core.inference.compiled.format import DOTS, ELEMENTWISE, PRODUCTS, STRIDED
from dpgm_core.inference.exact.contraction import Letters

__all__ = ["PEAK", "Arrangement", "Loop", "arranged", "loops_of", "packings", "price"]

#: Codes, and the strides of r, p and q, 0 where a table lacks the letters.
Loop: TypeAlias = tuple[int, int, int, int]

#: Multiply-adds a nanosecond, of long runs, as measured (AVX-512, one core).
PEAK = 20.0
_NO_LOOP: Loop = (1, 0, 0, 0)
_SHORT = 6  # dot products of runs below this are dearer than loops of any strides
_KINDS = {(1, 1, 1): ELEMENTWISE, (1, 1, 0): PRODUCTS, (1, 0, 1): PRODUCTS, (0, 1, 1): DOTS}


class Arrangement(NamedTuple):
    """Loops in their order, for the kernels. kind: of the innermost loop. swap: whether p and q have changed places.

    inner: three loops. clear: whether r must be set to 0 before, as it is only added to.
    """

    kind: int
    inner: tuple[Loop, Loop, Loop]
    outer: tuple[Loop, ...]
    swap: bool
    clear: bool

    @property
    def nanoseconds(self) -> float:
        """About what it takes, measured on long and short runs."""
        rows, terms, cells = (loop[0] for loop in self.inner)
        if self.kind == STRIDED:
            block = rows * terms * (5 + 0.9 * cells)
        elif self.kind == ELEMENTWISE or (self.kind == DOTS and cells < 8):
            block = rows * terms * (8 + cells / 4)
        else:
            many, few = divmod(rows, 4) if self.inner[0][3] == 0 else (0, rows)
            full, part = divmod(terms, 4)
            block = many * (full * (40 + 16 * cells / PEAK) + part * (20 + cells / 2)) + few * (
                full * (18 + cells / 2.5) + part * (8 + cells / 5)
            )
        return 20 + math.prod([loop[0] for loop in self.outer]) * (10 + block)


def loops_of(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> list[Loop]:
    """The loops over all letters, those merged that lie side by side in each table.

    >>> loops_of((0, 1, 2), (3, 1, 2), (0, 3), [2, 3, 4, 5])
    [(2, 12, 0, 5), (12, 1, 1, 0), (5, 0, 12, 1)]
    """
    of_r, of_p, of_q = (_strides(table, sizes) for table in (r, p, q))
    loops: list[Loop] = []
    for letter in (*r, *[letter for letter in p if letter not in of_r]):
        size = sizes[letter]
        loop = (size, of_r.get(letter, 0), of_p.get(letter, 0), of_q.get(letter, 0))
        if loops:
            before = loops[-1]
            if before[1] == size * loop[1] and before[2] == size * loop[2] and before[3] == size * loop[3]:
                loops[-1] = (before[0] * size, *loop[1:])
                continue
        loops.append(loop)
    return loops or [_NO_LOOP]


def _strides(table: Letters, sizes: Sequence[int]) -> dict[int, int]:
    stride, found = 1, {}
    for letter in reversed(table):
        found[letter] = stride
        stride *= sizes[letter]
    return found


def arranged(loops: Sequence[Loop]) -> Arrangement:
    """The loops in the order in which they should run.

    >>> found = arranged(loops_of((0, 1, 2), (3, 1, 2), (0, 3), [2, 3, 4, 5]))
    >>> found.inner, found.outer, found.swap
    (((2, 12, 5, 0), (5, 0, 1, 12), (12, 1, 0, 1)), (), True)
    """
    best = max(loops, key=lambda loop: (loop[1:] in _KINDS, loop[0]))
    rest = [loop for loop in loops if loop is not best]
    kind = _KINDS.get(best[1:], STRIDED)
    if kind == DOTS and best[0] < _SHORT and rest:
        kind = STRIDED
    swap = kind == PRODUCTS and best[3] == 0  # the run must be q's
    if swap:
        best, rest = _swapped(best), [_swapped(loop) for loop in rest]

    def taken(wanted: Callable[[Loop], bool]) -> Loop:
        found = max((loop for loop in rest if wanted(loop)), key=lambda loop: loop[0], default=_NO_LOOP)
        if found is not _NO_LOOP:
            rest.remove(found)
        return found

    if kind == DOTS:
        row = taken(lambda loop: loop[1] != 0 and loop[3] == 0)
        column = taken(lambda loop: loop[1] != 0 and (loop[2] == 0 or row is _NO_LOOP))
    elif kind == STRIDED:
        column, row = taken(lambda loop: True), taken(lambda loop: True)
    else:
        # rows that all have the same runs of q are worth most
        row = taken(lambda loop: loop[1] != 0 and (kind == ELEMENTWISE or loop[3] == 0))
        column = taken(lambda loop: loop[1] == 0)
        if row is _NO_LOOP:
            row = taken(lambda loop: loop[1] != 0)
    added_to = rest if kind in (ELEMENTWISE, PRODUCTS) else [*rest, row, column]
    clear = kind == DOTS or any(loop[0] > 1 and loop[1] == 0 for loop in added_to)
    return Arrangement(kind, (row, column, best), tuple(rest), swap, clear)


def _swapped(loop: Loop) -> Loop:
    return loop[0], loop[1], loop[3], loop[2]


def price(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> float:
    """Nanoseconds of one contraction, about; two operands may change places."""
    return arranged(loops_of(r, p, q, sizes)).nanoseconds


def packings(r: Letters, p: Letters, q: Letters) -> list[tuple[Letters, Letters, Letters]]:
    """Other orders of the axes of r, p and q, each of which makes a run of the letters of one kind.

    >>> packings((0, 1), (1, 2), (2, 0))[0]
    ((0, 1), (2, 1), (2, 0))
    """
    inside = {*p} & {*q} & {*r}
    found = []
    for letters in ({*p} & {*r} - inside, {*q} & {*r} - inside, {*p} & {*q} - inside, inside):
        holders = [table for table in (r, p, q) if letters and letters <= {*table}]
        for order in dict.fromkeys(tuple([x for x in table if x in letters]) for table in holders):
            moved = [_last(table, order) if table in holders else table for table in (r, p, q)]
            found.append((moved[0], moved[1], moved[2]))
    return found


def _last(table: Letters, order: Letters) -> Letters:
    return (*[x for x in table if x not in order], *order)
