"""Products of a cluster's marginal with messages and their sums: one matrix product for each message.

The attributes are letters, their places in the elimination order, and sets of them are the bits of an integer. A
message has an axis for each letter of its separator, ascending, and one last axis for all that it carries together: so
how it is taken in depends on the clusters and not on what is asked, and is found once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attrs import frozen

__all__ = ["ClusterSum", "Stage", "cluster_sum", "letters_of"]

Axes = tuple[int, ...]


class Stage(NamedTuple):
    """One message taken in: (batch, rows, inner) times (batch, inner, carried); the batch is absent where empty.

    turned, taken: axes of the table so far, and of the message, for that. left, right: their shapes. made: that of the
    product: one axis for each letter that is left, and a last one for all that was carried.
    """

    turned: Axes
    taken: Axes | None
    left: Axes
    right: Axes
    made: Axes


@frozen(eq=False)
class ClusterSum:
    """The sum of a cluster's marginal times messages over the letters that are not kept.

    summed: axes of the cluster's table that nothing needs. stages: one for each message. letters: the letters of the
    result in the order of its axes; what was carried comes last. cells: of the letters left before, and after, each
    stage. order: axes that bring the separator to the front, None where it is there. shared: its shape. own: the other
    letters kept, in order.
    """

    summed: Axes
    stages: tuple[Stage, ...]
    letters: Axes
    cells: tuple[int, ...]
    order: Axes | None
    shared: Axes
    own: Axes

    def work(self, carried: Sequence[int]) -> int:
        """Cells of all tables made, the cluster's own not counted. carried: cells of each message's last axis."""
        total, product = self.cells[0], 1
        for cells, more in zip(self.cells[1:], carried, strict=True):
            product *= more
            total += cells * product
        return total


def cluster_sum(members: int, taken: Sequence[int], keep: int, separator: int, sizes: Sequence[int]) -> ClusterSum:
    """The stages for a cluster of these members.

    taken: the separators of the messages, in order. keep: of the members, those of the result. separator: towards the
    parent.

    >>> cluster_sum(0b11, [0b10], 0b01, 0b01, [2, 3]).stages
    (Stage(turned=(0, 1), taken=None, left=(-1, 3), right=(3, -1), made=(2, -1)),)
    """
    needed = [keep]
    for one in reversed(taken):
        needed.append(needed[-1] | one)
    needed.reverse()
    axes = tuple(letters_of(members))
    axes_left = tuple(letters_of(needed[0]))
    summed = tuple(at for at, letter in enumerate(axes) if letter not in axes_left)
    stages: list[Stage] = []
    cells = [_cells(axes_left, sizes)]
    for one, left in zip(taken, needed[1:], strict=True):
        stage, axes_left = _stage(axes_left, one, left, sizes, first=not stages)
        stages.append(stage)
        cells.append(_cells(axes_left, sizes))
    front = tuple(letters_of(separator & keep))
    own = tuple(letter for letter in axes_left if letter not in front)
    order = (*(axes_left.index(letter) for letter in (*front, *own)), *([len(axes_left)] if stages else ()))
    return ClusterSum(
        summed=summed,
        stages=tuple(stages),
        letters=axes_left,
        cells=tuple(cells),
        order=None if order == tuple(range(len(order))) else order,
        shared=tuple(sizes[letter] for letter in front),
        own=own,
    )


def _stage(axes: Axes, separator: int, left: int, sizes: Sequence[int], *, first: bool) -> tuple[Stage, Axes]:
    """Return how a message over a separator is multiplied in, and the axes that are left."""
    message = tuple(letters_of(separator))
    batch = tuple(letter for letter in message if left >> letter & 1)
    inner = tuple(letter for letter in message if not left >> letter & 1)
    rows = tuple(letter for letter in axes if not separator >> letter & 1)
    carried = () if first else (len(axes),)
    turned = tuple(axes.index(letter) for letter in (*batch, *rows))
    taken = (*(message.index(letter) for letter in (*batch, *inner)), len(message))
    front = (_cells(batch, sizes),) if batch else ()
    stage = Stage(
        turned=(*turned, *carried, *(axes.index(letter) for letter in inner)),
        taken=None if taken == tuple(range(len(taken))) else taken,
        left=(*front, -1, _cells(inner, sizes)),
        right=(*front, _cells(inner, sizes), -1),
        made=(*(sizes[letter] for letter in (*batch, *rows)), -1),
    )
    return stage, (*batch, *rows)


def letters_of(mask: int) -> Iterator[int]:
    """The bits of a mask, ascending.

    >>> list(letters_of(0b1011))
    [0, 1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _cells(letters: Sequence[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[letter] for letter in letters)
