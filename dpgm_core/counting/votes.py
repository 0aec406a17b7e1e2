"""Votes of blocks of records on a graph, and their agreement."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, Codes, FloatArray, IntArray
from dpgm_core.counting.rows import Persons
from dpgm_core.counting.statistic import Piece, columns_of
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter
from dpgm_core.structure.structure import Structure

__all__ = [
    "Agreed",
    "find_agreement",
    "agreed_edges",
    "agreed_graph",
    "block_edges",
    "blocks_of",
    "agreement_by_threshold",
    "pair_sums",
    "votes_of",
]


Pair: TypeAlias = tuple[int, int]

# --------------------------------------------------------------------------------------------------
# Votes of a block: penalised regressions of every attribute on the others, or on products of them
#
# A vote is a function of the block's records as a multiset: rows are sorted first, so that neither their order nor any
# other block changes a bit of it. The number of iterations is fixed, and a block that fails votes for no edge.

#: Number of proximal gradient steps; fixed, so that how long a block takes tells nothing about its records.
_ITERATIONS = 80


def block_edges(
    codes: Codes, sizes: Sequence[int], pairs: Sequence[Pair], *, least: float, penalty: float, order: int = 2
) -> Array:
    """For which pairs a block votes, (pairs,) of bool.

    codes: one column for each attribute, of the block's rows. sizes: of the attributes. pairs: by the numbers of their
    columns; an attribute is regressed on its partners alone. least, penalty, order: see `EdgeVotes`.

    >>> one, other = np.arange(200) % 2, np.arange(200) // 2 % 2
    >>> block_edges([one, one, other], [2, 2, 2], [(0, 1), (0, 2)], least=0.4, penalty=0.2).tolist()
    [True, False]
    """
    none = np.zeros(len(pairs), np.bool_)
    try:
        with np.errstate(all="ignore"):
            if not len(codes[0]):
                return none
            rows = np.lexsort(tuple(codes))
            columns = [np.asarray(column)[rows] for column in codes]
            varies = np.array([column.min() != column.max() for column in columns])
            products = _products(len(codes), tuple(pairs), order)
            weight = penalty * math.sqrt(math.log(len(products.sets)) / len(rows))
            binary = all(size == 2 for size in sizes)
            strengths = _binary(columns, products, weight) if binary else _labelled(columns, sizes, pairs, weight)
            ends = np.array(pairs)
            return np.asarray((strengths > least / 2) & varies[ends[:, 0]] & varies[ends[:, 1]])
    except Exception:
        return none


@frozen(kw_only=True, eq=False)
class _Products:
    """Sets of attributes of which every two are a pair: the products that attributes are regressed on.

    sets: of up to order - 1 attributes, single ones first. targets, others, numbers: for each attribute of each set of
    2 to order attributes, the attribute, the place in `sets` of the set without it, and the set's number, (entries,).
    sizes: of the sets of 2 to order. pair_sets: for each pair, the numbers of those that hold it.
    """

    sets: list[tuple[int, ...]]
    targets: IntArray
    others: IntArray
    numbers: IntArray
    sizes: IntArray
    pair_sets: list[IntArray]


@lru_cache(maxsize=4)
def _products(count: int, pairs: tuple[Pair, ...], order: int) -> _Products:
    """Of so many attributes with these pairs."""
    near: list[set[int]] = [set() for _ in range(count)]
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    levels: list[list[tuple[int, ...]]] = [[(place,) for place in range(count)]]
    for _ in range(min(order, count) - 1):
        grown = [(*some, j) for some in levels[-1] for j in range(some[-1] + 1, count) if near[j].issuperset(some)]
        levels.append(grown)
    sets = [some for level in levels[:-1] for some in level]
    wholes = [some for level in levels[1:] for some in level]
    place = {some: number for number, some in enumerate(sets)}
    entries = np.array(
        [
            (some[at], place[some[:at] + some[at + 1 :]], number)
            for number, some in enumerate(wholes)
            for at in range(len(some))
        ]
    )
    holding: dict[Pair, list[int]] = {}
    for number, some in enumerate(wholes):
        for pair in itertools.combinations(some, 2):
            holding.setdefault(pair, []).append(number)
    return _Products(
        sets=sets,
        targets=entries[:, 0],
        others=entries[:, 1],
        numbers=entries[:, 2],
        sizes=np.array([len(some) for some in wholes]),
        pair_sets=[np.array(holding[min(pair), max(pair)]) for pair in pairs],
    )


def _binary(columns: Codes, products: _Products, penalty: float) -> FloatArray:
    """The largest |A| of each pair's sets, (pairs,): logistic regressions of codes +1 and -1, whose weights are 2 A.

    The A of a set is the mean of what the regressions of its attributes have, each on the product of the others.
    """
    signs = 1.0 - 2.0 * np.stack([column.astype(np.float64) for column in columns], axis=1)
    count, p = signs.shape
    free = len(products.sets)
    parts = [signs[:, some].prod(axis=1, keepdims=True) for some in products.sets]
    design = np.concatenate([*parts, np.ones((count, 1))], axis=1)
    room = np.zeros((p, free + 1))
    room[:, free] = room[products.targets, products.others] = 1
    shrink = np.concatenate([np.full((p, free), penalty), np.zeros((p, 1))], axis=1)

    def gradient(weights: FloatArray) -> FloatArray:
        residuals = signs / (1.0 + np.exp(signs * (design @ weights.T)))
        return np.asarray(-(residuals.T @ design) / count)

    weights = _minimum(gradient, room, shrink, curvature=_largest(design) / 4)
    sums = np.bincount(products.numbers, weights=weights[products.targets, products.others])
    parameters = np.abs(sums) / (2 * products.sizes)
    return np.array([parameters[numbers].max() for numbers in products.pair_sets])


def _labelled(columns: Codes, sizes: Sequence[int], pairs: Sequence[Pair], penalty: float) -> FloatArray:
    """max |W| of each pair's centred table, (pairs,): softmax regressions on one column for each label.

    Where a table of two labels each has weights of 4 |A| in l1, the logistic regression has 2 |A|, hence half the
    penalty: with two labels both fit the same.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    count, cells = len(columns[0]), int(starts[-1])
    hot = np.zeros((count, cells))
    for column, start in zip(columns, starts[:-1], strict=True):
        hot[np.arange(count), start + column.astype(np.int64)] = 1
    # Centred by a public amount, which the free constant takes up: the problem is the same, and steps are longer.
    centred = hot - np.repeat(1 / np.asarray(sizes, np.float64), sizes)
    design = np.concatenate([centred, np.ones((count, 1))], axis=1)
    parts = [slice(int(start), int(end)) for start, end in itertools.pairwise(starts)]
    room = np.zeros((cells, cells + 1))
    room[:, cells] = 1
    for i, j in pairs:
        room[parts[i], parts[j]] = room[parts[j], parts[i]] = 1
    shrink = np.concatenate([np.full((cells, cells), penalty / 2), np.zeros((cells, 1))], axis=1)
    labels = np.asarray(sizes)

    def gradient(weights: FloatArray) -> FloatArray:
        scores = design @ weights.T
        scores -= np.repeat(np.maximum.reduceat(scores, starts[:-1], axis=1), labels, axis=1)
        odds = np.exp(scores)
        odds /= np.repeat(np.add.reduceat(odds, starts[:-1], axis=1), labels, axis=1)
        return np.asarray(-((hot - odds).T @ design) / count)

    weights = _minimum(gradient, room, shrink, curvature=_largest(design) / 2)
    strengths = []
    for i, j in pairs:
        one, other = weights[parts[i], parts[j]], weights[parts[j], parts[i]].T
        table = (one + other) / 2
        table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        strengths.append(np.abs(table).max())
    return np.array(strengths)


def _largest(design: FloatArray) -> float:
    """The largest eigenvalue of the design's second moments."""
    return float(np.linalg.eigvalsh(design.T @ design / len(design))[-1])


def _minimum(
    gradient: Callable[[FloatArray], FloatArray], room: FloatArray, shrink: FloatArray, curvature: float
) -> FloatArray:
    """Weights after so many accelerated proximal steps from 0. Source: Beck and Teboulle (2009), FISTA."""
    step = 1 / curvature
    weights, ahead, momentum = np.zeros_like(room), np.zeros_like(room), 1.0
    for _ in range(_ITERATIONS):
        moved = (ahead - step * gradient(ahead)) * room
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * shrink, 0)
        after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / after * (new - weights)
        weights, momentum = new, after
    return weights


# --------------------------------------------------------------------------------------------------
# Agreement of all blocks on a graph, and its distance to another graph; both are secret
#
# A distance is a whole number that one person moves by at most 1, and the graph changes from one person to the next
# only where the distance is at most 1 on both sides: what `dpgm_core.privacy.votes` asks for. Every person draws a
# block by a coin of its own, whatever the place of the person's rows in the data, and all rows of a person go to that
# block. So one person more changes one block's records, and nobody else's block; a person replaced by another hands on
# the coin.

#: Rows whose products are summed at once: sums below 2^24 are exact in single precision.
_BATCH_ROWS = 2**16


@frozen(kw_only=True, repr=False)
class Agreed:
    """A graph and its distance to instability, persons; inside the curator only.

    edges: for each candidate whether it is one. distance: see the module.
    """

    edges: tuple[bool, ...]
    distance: int


def find_agreement(voter: Voter, persons: Persons, words: Array, terms: Terms) -> Agreed:
    """The graph that a voter finds in all records, and its distance.

    words: 64 random bits for each person, drawn by the caller; for votes by blocks only.
    """
    columns = columns_of(voter.pairs)
    parts = persons.pieces(columns)
    if isinstance(voter, ThresholdVotes):
        total = Fraction(persons.records) if terms.declared_total is None else Fraction(terms.declared_total)
        move = terms.rows_per_person * (2 if terms.neighbours is Neighbours.REPLACE_ONE else 1)
        return agreement_by_threshold(pair_sums(voter.pairs, parts), Fraction(voter.tau) * total, move)
    codes, lengths = next(iter(parts), ([np.zeros(0, np.uint8) for _ in columns], None))
    votes = votes_of(voter, codes, lengths, blocks_of(words, voter.blocks))
    return agreed_graph(votes) if voter.whole else agreed_edges(votes)


def blocks_of(words: Array, blocks: int) -> IntArray:
    """Each person's block, 0 to blocks - 1, by a word of its own, (persons,).

    >>> blocks_of(np.array([0, 2**63, 2**64 - 1], np.uint64), 90).tolist()
    [0, 45, 89]
    """
    # The high half of the word, multiplied: nearly uniform is enough, as only independence is claimed.
    return (((words >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)).astype(np.int64)


def votes_of(voter: EdgeVotes, codes: Codes, lengths: IntArray | None, blocks: IntArray) -> Array:
    """For which pairs each block votes, (blocks, pairs) of bool.

    codes: of the pairs' attributes, in the domain's order, person by person. lengths: rows of each person; None: one
    each. blocks: of each person.
    """
    columns = columns_of(voter.pairs)
    place = {name: number for number, name in enumerate(columns)}
    pairs = [(place[one], place[other]) for one, other in voter.pairs.cliques]
    sizes = [voter.pairs.domain[name].size for name in columns]
    of_row = blocks if lengths is None else np.repeat(blocks, lengths)
    order = np.argsort(of_row, kind="stable")
    ends = np.cumsum(np.bincount(of_row, minlength=voter.blocks))[:-1]
    return np.stack(
        [
            block_edges(
                [column[rows] for column in codes],
                sizes,
                pairs,
                least=voter.least,
                penalty=voter.penalty,
                order=voter.order,
            )
            for rows in np.split(order, ends)
        ]
    )


def agreed_edges(votes: Array) -> Agreed:
    """The pairs that more than half of the blocks vote for, each by itself.

    votes: (blocks, pairs) of bool. With v votes of k blocks an edge is lost when v falls to k / 2, and a pair becomes
    one when v passes it; the distance is the least number of votes that does either, over all pairs. One person moves
    each v by at most 1.

    >>> agreed_edges(np.array([[True, False], [True, False], [True, True]])).distance
    1
    """
    count = len(votes)
    votes_for = votes.sum(axis=0, dtype=np.int64)
    edges = 2 * votes_for > count
    apart = np.where(edges, (2 * votes_for - count + 1) // 2, (count - 2 * votes_for) // 2 + 1)
    return Agreed(edges=tuple(map(bool, edges)), distance=int(apart.min()))


def agreed_graph(votes: Array) -> Agreed:
    """The graph that most blocks vote for as a whole; half the gap to the next, rounded up, is the distance.

    One person moves the gap by at most 2. Of graphs that are equally common the distance is 0, so that none is ever
    published. Source: Zhang et al. (2020), Lemma 5.1.

    >>> agreed_graph(np.array([[True], [True], [True], [False]])).distance
    1
    """
    common: Sequence[tuple[tuple[bool, ...], int]] = Counter(tuple(map(bool, row)) for row in votes).most_common(2)
    gap = common[0][1] - (common[1][1] if len(common) > 1 else 0)
    return Agreed(edges=common[0][0], distance=(gap + 1) // 2)


def pair_sums(pairs: Structure, parts: Iterable[Piece]) -> IntArray:
    """The sum over records of z_i z_j for each pair, (pairs,); code 0 is +1 and code 1 is -1."""
    columns = columns_of(pairs)
    place = {name: number for number, name in enumerate(columns)}
    products = np.zeros((len(columns), len(columns)), np.int64)
    for codes, _ in parts:
        for start in range(0, len(codes[0]), _BATCH_ROWS):
            rows = slice(start, start + _BATCH_ROWS)
            signs = np.stack([1 - 2 * column[rows].astype(np.float32) for column in codes], axis=1)
            products += (signs.T @ signs).astype(np.int64)
    return np.array([products[place[one], place[other]] for one, other in pairs.cliques], np.int64)


def agreement_by_threshold(sums: IntArray, threshold: Fraction, move: int) -> Agreed:
    """The pairs whose sum is above the threshold in size; so many persons as have to change before one crosses it.

    sums: (pairs,), whole. move: how far one person moves a sum at most.

    >>> agreement_by_threshold(np.array([9, -2]), Fraction(9, 2), 1).distance
    3
    """
    first = math.floor(threshold) + 1  # the smallest size of an edge
    sizes = np.abs(sums)
    edges = sizes >= first
    units = int(np.where(edges, sizes - first + 1, first - sizes).min())
    return Agreed(edges=tuple(map(bool, edges)), distance=-(-units // move))
