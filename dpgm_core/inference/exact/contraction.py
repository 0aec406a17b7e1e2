"""The contraction of exact inference: which tables are multiplied, in which order, and what is summed when.

Bucket elimination written down as data. A *letter* is an attribute's place in the elimination order; attributes of
one label carry no letter. A *node* is a table over letters: first the inputs (one per clique), then one per step.
Each node but the last of a component is used by exactly one step, so log Z is multilinear in the nodes and every
executor (probabilities, logarithms, max-plus, derivatives) is a walk over `Contraction.steps`, forwards or backwards.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from dpgm_core.structure import Structure, graphs

__all__ = ["Letters", "Contraction", "Step", "candidates", "kernel_cost", "contraction_of"]

Letters = tuple[int, ...]

# The cost model, in nanoseconds of one core, measured with numpy and OpenBLAS: what a call costs, what a small
# matrix product inside a batch costs, what one multiply-add costs in a matrix product and one cell in a pass.
CALL, BLOCK, MULTIPLY_ADD, CELL = 700.0, 100.0, 0.06, 0.7
EXHAUSTIVE = 5  # a bucket of at most this many tables is paired optimally under the model
# Orders tied for the greedy rules differ in speed by up to 2: other ties are tried for about as long as 100 calls take.
MOST_TRIES, CALLS_WORTH, TRY = 16, 100, 5e5  # TRY: nanoseconds of planning per node


@frozen
class Step:
    """out = sum over the letters of `left` and `right` that `out` lacks of left * right (right is None: sum only)."""

    left: int
    right: int | None
    out: int


@frozen(kw_only=True)
class Contraction:
    """What every executor walks.

    order: attribute names by letter. sizes: labels by letter. nodes: the letters of each node in the order of its
    array's axes. groups: the group whose table each input node reads (inputs are the first `len(groups)` nodes).
    steps: in order of execution. roots: nodes without letters, one per component that has letters. buckets: for each
    letter the nodes multiplied when it was eliminated (none for an attribute in no clique).
    """

    order: tuple[str, ...]
    sizes: tuple[int, ...]
    nodes: tuple[Letters, ...]
    groups: tuple[int, ...]
    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    buckets: tuple[tuple[int, ...], ...]

    def shape(self, node: int) -> tuple[int, ...]:
        """The shape of a node's table."""
        return tuple(self.sizes[letter] for letter in self.nodes[node])

    def cells(self, node: int) -> int:
        """The cells of a node's table."""
        return math.prod(self.shape(node))

    @property
    def seconds(self) -> float:
        """The predicted time of one inference, under the cost model."""
        total = 0.0
        for step in self.steps:
            left, out = self.nodes[step.left], self.nodes[step.out]
            if step.right is None:
                total += 2 * CALL + CELL * self.cells(step.left)
            else:
                total += _step_cost(left, self.nodes[step.right], out, self.sizes)
        return 1e-9 * total

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one inference: each step once forwards, and once backwards per operand."""
        work = 0
        for step in self.steps:
            operands = [step.left] if step.right is None else [step.left, step.right]
            union = {letter for node in operands for letter in self.nodes[node]}
            work += (1 + len(operands)) * math.prod(self.sizes[letter] for letter in union)
        return work


def kernel_cost(p: Iterable[int], q: Iterable[int], r: Iterable[int], sizes: Sequence[int]) -> float:
    """Nanoseconds of r = sum p * q under the cost model.

    >>> kernel_cost([0, 1], [1, 2], [0, 2], [9, 9, 9]) < kernel_cost([0, 1], [1, 2], [0, 1, 2], [9, 9, 9]) + 700
    True
    """
    p, q, r = set(p), set(q), set(r)
    passes = _cells(p, sizes) + _cells(q, sizes) + _cells(r, sizes)
    if p | q == r:
        return CALL + CELL * passes / 2
    blocks, work = _cells(p & q & r, sizes), _cells(p | q, sizes)
    return CALL + BLOCK * blocks + MULTIPLY_ADD * work + CELL * passes / 4


def _step_cost(left: Iterable[int], right: Iterable[int], out: Iterable[int], sizes: Sequence[int]) -> float:
    # Forwards, and the adjoint of either operand.
    return (
        kernel_cost(left, right, out, sizes)
        + kernel_cost(out, right, left, sizes)
        + kernel_cost(out, left, right, sizes)
    )


def candidates(structure: Structure) -> list[tuple[Contraction, graphs.Elimination]]:
    """Plans along several greedy elimination orders, the fastest under the cost model first; deterministic.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
    >>> candidates(structure)[0][1].treewidth
    1
    """
    names, sizes = list(structure.domain.names), structure.domain.sizes
    found = [(contraction_of(structure, structure.elimination), structure.elimination)]
    seen = {structure.elimination.order}
    first, least = found[0][0], structure.elimination.total
    tries = int(min(MOST_TRIES, CALLS_WORTH * 1e9 * first.seconds / (TRY * max(1, len(first.nodes)))))
    shuffle = random.Random(0).shuffle
    for _ in range(tries):
        for elimination in graphs.elimination_orders({name: structure.adjacency[name] for name in names}, sizes):
            if elimination.total <= 2 * least and elimination.order not in seen:
                seen.add(elimination.order)
                found.append((contraction_of(structure, elimination), elimination))
        shuffle(names)  # ties break by position
    return sorted(found, key=lambda candidate: candidate[0].seconds)


def contraction_of(structure: Structure, elimination: graphs.Elimination) -> Contraction:
    """Write bucket elimination along an order down as steps, pairing the tables of each bucket cheaply.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
    >>> [step.right for step in contraction_of(structure, structure.elimination).steps]
    [None, 1, None]
    """
    domain = structure.domain
    order = tuple(name for name in elimination.order if domain[name].size > 1)
    letter_of = {name: letter for letter, name in enumerate(order)}
    sizes = tuple(domain[name].size for name in order)
    nodes: list[Letters] = []
    groups: list[int] = []
    for number, group in enumerate(structure.groups):
        for clique in group:
            nodes.append(tuple(letter_of[name] for name in clique if name in letter_of))
            groups.append(number)
    buckets: list[list[int]] = [[] for _ in order]
    for node, letters in enumerate(nodes):
        if letters:
            buckets[min(letters)].append(node)
    steps: list[Step] = []
    roots = []

    def add(left: int, right: int | None, letters: Letters) -> int:
        nodes.append(letters)
        steps.append(Step(left, right, len(nodes) - 1))
        return len(nodes) - 1

    for letter, bucket in enumerate(buckets):
        if not bucket:
            continue
        tree = _pairing(letter, bucket, nodes, sizes)
        message = _lay_out(letter, tree, nodes, add)
        if nodes[message]:
            buckets[min(nodes[message])].append(message)
        else:
            roots.append(message)
    return Contraction(
        order=order,
        sizes=sizes,
        nodes=tuple(nodes),
        groups=tuple(groups),
        steps=tuple(steps),
        roots=tuple(roots),
        buckets=tuple(tuple(bucket) for bucket in buckets),
    )


# A binary tree of node numbers: which tables of a bucket are multiplied with which.
_Tree = int | tuple["_Tree", "_Tree"]


def _pairing(letter: int, bucket: Sequence[int], nodes: Sequence[Letters], sizes: Sequence[int]) -> _Tree:
    """The pairing of a bucket that is cheapest under the cost model, adjoints included; greedy while it is large."""
    parts: list[tuple[_Tree, frozenset[int]]] = [(node, frozenset(nodes[node])) for node in bucket]
    if len(parts) > EXHAUSTIVE:  # tables over the same attributes first: one pass each, whatever comes after
        same: dict[frozenset[int], list[_Tree]] = {}
        for tree, scope in parts:
            same.setdefault(scope, []).append(tree)
        parts = sorted(
            ((_balanced(trees), scope) for scope, trees in same.items()), key=lambda part: _cells(part[1], sizes)
        )
    while len(parts) > EXHAUSTIVE:
        first = parts.pop(0)
        mate = min(range(len(parts)), key=lambda i: _cells(first[1] | parts[i][1], sizes))
        tree, scope = parts.pop(mate)
        merged = ((first[0], tree), first[1] | scope)
        place = next((i for i, part in enumerate(parts) if _cells(part[1], sizes) > _cells(merged[1], sizes)), None)
        parts.insert(len(parts) if place is None else place, merged)
    return _cheapest(letter, parts, sizes)


def _balanced(trees: list[_Tree]) -> _Tree:
    # Halves, not a chain: hundreds of messages may meet at the hub of a star.
    half = len(trees) // 2
    return (_balanced(trees[:half]), _balanced(trees[half:])) if half else trees[0]


def _cheapest(letter: int, parts: Sequence[tuple[_Tree, frozenset[int]]], sizes: Sequence[int]) -> _Tree:
    # Dynamic programming over subsets, as bit masks; the product of all parts has `letter` summed out.
    full = (1 << len(parts)) - 1
    best: dict[int, tuple[float, _Tree, frozenset[int]]] = {}
    for i, (tree, scope) in enumerate(parts):
        best[1 << i] = (0.0, tree, scope)
    for mask in range(1, full + 1):
        if mask in best:
            continue
        found: tuple[float, _Tree, frozenset[int]] | None = None
        half = (mask - 1) & mask
        while half:
            other = mask ^ half
            if half > other:  # each split once
                cost_one, tree_one, one = best[half]
                cost_two, tree_two, two = best[other]
                out = (one | two) - {letter} if mask == full else one | two
                cost = cost_one + cost_two + _step_cost(one, two, out, sizes)
                if found is None or cost < found[0]:
                    found = (cost, (tree_one, tree_two), out)
            half = (half - 1) & mask
        assert found is not None
        best[mask] = found
    return best[full][1]


def _lay_out(letter: int, tree: _Tree, nodes: Sequence[Letters], add: Callable[[int, int | None, Letters], int]) -> int:
    """Add the steps of a bucket and choose the axes of each product; returns the node of the message."""

    def build(part: _Tree) -> int:
        if isinstance(part, int):
            return part
        left, right = build(part[0]), build(part[1])
        # Ascending letters put the letter to be summed first and the others as one run behind it: a matrix.
        return add(left, right, tuple(sorted({*nodes[left], *nodes[right]})))

    if isinstance(tree, int):
        return add(tree, None, tuple(other for other in nodes[tree] if other != letter))
    left, right = build(tree[0]), build(tree[1])
    return add(left, right, _message_axes(letter, nodes[left], nodes[right]))


def _message_axes(letter: int, left: Letters, right: Letters) -> Letters:
    # (batch, rows, columns) or (batch, columns, rows), whichever has the next letter to go in front.
    batch = tuple(other for other in left if other in right and other != letter)
    rows = tuple(other for other in left if other not in right)
    columns = tuple(other for other in right if other not in left)
    return min(batch + rows + columns, batch + columns + rows)


def _cells(letters: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[letter] for letter in letters)
