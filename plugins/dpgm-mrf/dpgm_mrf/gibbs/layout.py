"""Block layout of a Gibbs sampler: tables of a structure's cliques, few and small enough to be indexed by records.

The conditional of an attribute is the product of the potentials of its cliques. Cliques are packed into blocks, as many
into one as its table has few cells. An attribute with one block has its conditional ready in it, summed up over codes;
one with several adds logarithms of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from attrs import field, frozen

from dpgm_core import Array, FloatArray, IntArray, Structure

__all__ = ["Block", "Layout", "Lookups", "Prepared", "compile_layout", "places"]

# Cells that the table of a block may have unless one clique alone has more: it stays in the processor's cache.
_CELLS = 4096


@frozen(kw_only=True)
class Block:
    """One table over some attributes, summed up from the potentials of the cliques inside.

    names: numbers of the attributes, the axes. shape: their sizes. parts: (group, order of its axes, shape among these
    axes) of each clique.
    """

    names: tuple[int, ...]
    shape: tuple[int, ...]
    parts: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]

    def table(self, groups: Sequence[FloatArray]) -> FloatArray:
        """The sum of its cliques' potentials, nats."""
        total = np.zeros(self.shape)
        for group, order, shape in self.parts:
            total += groups[group].transpose(order).reshape(shape)
        return total


@frozen(kw_only=True, eq=False)
class Lookups:
    """Tables in one buffer, as sweeps read them, and where each stands.

    attributes, sizes: of each conditional. blocks: of conditional n those from blocks[n] to blocks[n + 1]. partners,
    strides: of block b those from firsts[b] to firsts[b + 1]. starts, cells: of a block's rows of the buffer; a row
    has one number for each code of the partners. single: conditionals of one block, with size - 1 rows of cumulated
    probabilities; others have a row of log-odds for two codes, or one of logarithms for each code.
    """

    attributes: IntArray
    sizes: IntArray
    single: Array
    blocks: IntArray
    firsts: IntArray
    partners: IntArray
    strides: IntArray
    starts: IntArray
    cells: IntArray
    length: int


@frozen(kw_only=True, eq=False)
class Prepared:
    """Blocks of one model, from which the tables of p^share * q follow quickly.

    buffer: of conditionals with several blocks, as `Lookups` has it. single: (attribute, its place in the buffer,
    logarithms, (configurations, codes)) of the others. first: (attribute, place of its first block, rows).
    """

    buffer: FloatArray
    single: tuple[tuple[int, slice, FloatArray], ...]
    first: tuple[tuple[int, slice, int], ...]

    def tables(self, share: float = 1.0, free: Sequence[FloatArray] | None = None) -> FloatArray:
        """Return the tables that sweeps read. free: log q of each attribute, nats; uniform if left out."""
        with np.errstate(all="ignore"):  # of configurations that have probability 0, which are never looked up
            buffer = share * self.buffer
            for attribute, where, logs in self.single:
                own = share * logs if free is None else share * logs + free[attribute]
                buffer[where] = _cumulated(own).reshape(-1)
            if free is not None:
                for attribute, where, rows in self.first:
                    own = _linear(free[attribute][np.newaxis])
                    buffer[where] += np.broadcast_to(own, (rows, (where.stop - where.start) // rows)).reshape(-1)
        return buffer


@frozen(kw_only=True, eq=False)
class Layout:
    """Blocks of one structure: for the conditional of each attribute with several labels, and for log-weights.

    conditionals: (attribute, its blocks, whose last axis it is). whole: blocks that hold each clique once. sizes: of
    all attributes.
    """

    structure: Structure
    sizes: tuple[int, ...]
    conditionals: tuple[tuple[int, tuple[Block, ...]], ...]
    whole: tuple[Block, ...]
    lookups: Lookups = field(repr=False)

    @property
    def cells(self) -> int:
        """Numbers that the tables of one model take."""
        return self.lookups.length + sum(math.prod(block.shape) for block in self.whole)

    def prepared(self, groups: Sequence[FloatArray]) -> Prepared:
        """The blocks of all conditionals for potentials, a table per group."""
        buffer = np.zeros(self.lookups.length)
        single, first = [], []
        at = 0
        with np.errstate(invalid="ignore"):  # of codes that are both ruled out: never looked up
            for attribute, blocks in self.conditionals:
                size = self.sizes[attribute]
                for number, block in enumerate(blocks):
                    logs = block.table(groups).reshape(-1, size)
                    rows = size - 1 if len(blocks) == 1 or size == 2 else size
                    where = slice(at, at + rows * len(logs))
                    if len(blocks) == 1:
                        single.append((attribute, where, logs))
                    else:
                        buffer[where] = _linear(logs).reshape(-1)
                    if len(blocks) > 1 and number == 0:
                        first.append((attribute, where, rows))
                    at = where.stop
        return Prepared(buffer=buffer, single=tuple(single), first=tuple(first))

    def log_weights(self, tables: Sequence[FloatArray], codes: IntArray) -> FloatArray:
        """The sum of potentials of each record, (records,); codes: (attributes, records); tables: of `whole`."""
        total = np.zeros(codes.shape[1])
        for block, table in zip(self.whole, tables, strict=True):
            total += table.reshape(-1)[places(block.names, block.shape, codes)]
        return total


def places(names: Iterable[int], shape: Iterable[int], codes: Array) -> IntArray:
    """The cell of each record in a table over these attributes, (records,); codes: (attributes, records)."""
    at = np.zeros(codes.shape[1], dtype=np.int64)
    for name, size in zip(names, shape, strict=True):
        at *= size
        at += codes[name]
    return at


def _linear(logs: FloatArray) -> FloatArray:
    """(rows, configurations) of (configurations, codes): log-odds of two codes, logarithms of more."""
    return logs[:, 1:].T - logs[:, 0] if logs.shape[1] == 2 else logs.T


def _cumulated(logs: FloatArray) -> FloatArray:
    """(rows, configurations) of (configurations, codes): probabilities of codes up to each but the last."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    sums = np.cumsum(weights, axis=1)
    # The last sum over itself is 1, so a last code of probability 0 is drawn by no number below 1.
    cumulated: FloatArray = np.nan_to_num((sums / sums[:, -1:])[:, :-1].T, nan=1.0)
    return cumulated


def compile_layout(structure: Structure) -> Layout:
    """Return all that depends on the structure alone."""
    names = structure.domain.names
    number = {name: place for place, name in enumerate(names)}
    sizes = tuple(structure.domain.sizes.values())
    cliques = [
        (group, tuple(number[name] for name in clique))
        for group, members in enumerate(structure.groups)
        for clique in members
    ]
    around: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in names]
    for group, clique in cliques:
        for attribute in clique:
            around[attribute].append((group, clique))
    conditionals = tuple(
        (attribute, _packed(around[attribute], sizes, last=attribute)) for attribute in range(len(names))
        if sizes[attribute] > 1
    )  # fmt: skip
    return Layout(
        structure=structure,
        sizes=sizes,
        conditionals=conditionals,
        whole=_packed(cliques, sizes, last=None),
        lookups=_lookups(conditionals, sizes),
    )


def _packed(
    cliques: Iterable[tuple[int, tuple[int, ...]]], sizes: Sequence[int], *, last: int | None
) -> tuple[Block, ...]:
    """Blocks that hold the cliques in turn, each as many as fit; at least one block if an attribute is to be last."""
    packs: list[tuple[list[int], list[tuple[int, tuple[int, ...]]]]] = []
    in_block: set[int] = set()
    for group, clique in cliques:
        wider = in_block | set(clique) - {last}
        if not packs or math.prod(sizes[one] for one in wider) > _CELLS:
            packs.append(([], []))
            in_block, wider = set(), set(clique) - {last}
        packs[-1][0].extend(one for one in clique if one in wider - in_block)
        packs[-1][1].append((group, clique))
        in_block = wider
    if not packs and last is not None:
        packs.append(([], []))
    return tuple(_block(axes if last is None else [*axes, last], members, sizes) for axes, members in packs)


def _block(axes: list[int], members: list[tuple[int, tuple[int, ...]]], sizes: Sequence[int]) -> Block:
    parts = []
    for group, clique in members:
        order = sorted((axes.index(one), place) for place, one in enumerate(clique))
        parts.append(
            (group, tuple(place for _, place in order), tuple(sizes[one] if one in clique else 1 for one in axes))
        )
    return Block(names=tuple(axes), shape=tuple(sizes[one] for one in axes), parts=tuple(parts))


def _lookups(conditionals: Iterable[tuple[int, tuple[Block, ...]]], sizes: Sequence[int]) -> Lookups:
    attributes: list[int] = []
    single: list[bool] = []
    blocks, firsts = [0], [0]
    partners: list[int] = []
    strides: list[int] = []
    starts: list[int] = []
    cells: list[int] = []
    at = 0
    for attribute, own in conditionals:
        attributes.append(attribute)
        single.append(len(own) == 1)
        blocks.append(blocks[-1] + len(own))
        size = sizes[attribute]
        rows = size - 1 if len(own) == 1 or size == 2 else size
        for block in own:
            shape = block.shape[:-1]
            partners += block.names[:-1]
            strides += [math.prod(shape[place + 1 :]) for place in range(len(shape))]
            firsts.append(len(partners))
            starts.append(at)
            cells.append(math.prod(shape))
            at += rows * cells[-1]

    def whole(numbers: list[int]) -> IntArray:
        return np.array(numbers, dtype=np.int64)

    return Lookups(
        attributes=whole(attributes),
        sizes=whole([sizes[one] for one in attributes]),
        single=np.array(single, dtype=bool),
        blocks=whole(blocks),
        firsts=whole(firsts),
        partners=whole(partners),
        strides=whole(strides),
        starts=whole(starts),
        cells=whole(cells),
        length=at,
    )
