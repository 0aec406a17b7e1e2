"""Contractions: pairwise products of tables, and their cost."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from dpgm_core.structure.graphs import Played, places
from dpgm_core.structure.structure import Structure

__all__ = [
    "Bucket",
    "Contraction",
    "CostModel",
    "Letters",
    "NUMBA",
    "NUMPY",
    "Pairing",
    "Pairings",
    "Step",
    "Tree",
    "buckets_of",
    "contraction_of",
    "scopes_of",
]


# --- Cost model -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class CostModel:
    """Nanoseconds of one core.

    call: what any kernel costs before it does something. block: a small matrix product inside a batch. multiply_add:
    one in a matrix product. cell: reading or writing one in a pass.
    """

    call: float
    block: float
    multiply_add: float
    cell: float

    def product(self, p: int, q: int, r: int, union: int, blocks: int) -> float:
        """A step r = sum p * q forwards, and the adjoint of either operand backwards.

        p, q, r: cells of each table. union: of a table over all their attributes. blocks: over those all three have.

        >>> NUMPY.product(10, 10, 10, 10, 10) < NUMPY.product(10, 10, 10, 100, 1)
        True
        """
        # Each is a product of the two others; it is one pass where nothing is summed, else a batch of matrix products.
        passes = self.cell * (p + q + r)
        summed = (p != union) + (q != union) + (r != union)
        return (
            3 * self.call
            + (3 - summed) * passes / 2
            + summed * (self.block * blocks + self.multiply_add * union + passes / 4)
        )

    def sum_out(self, cells: int) -> float:
        """A step that only sums, over a table of so many cells, and the adjoint of its operand.

        >>> NUMPY.sum_out(1000) - NUMPY.sum_out(0) == 1000 * NUMPY.cell
        True
        """
        return 2 * self.call + self.cell * cells


#: numpy with OpenBLAS, as measured.
NUMPY = CostModel(call=700.0, block=100.0, multiply_add=0.06, cell=0.7)
#: What numba compiles: calls and blocks cost next to nothing, multiply-adds more than in BLAS.
NUMBA = CostModel(call=40.0, block=8.0, multiply_add=0.08, cell=0.25)


# --- Pairing of the tables of a bucket ------------------------------------------------------------
# A table's scope is a set of attributes as bits, see `structure.bitgraph`: what a bucket costs depends on scopes alone,
# and many elimination orders share buckets.

_MAX_TABLES_PAIRED = 5  # a bucket of at most this many tables is paired optimally under the model

#: A binary tree over the tables of a bucket, by number.
Tree = int | tuple["Tree", "Tree"]
# A tree in the making: nanoseconds, how, the scope of what it makes and the cells of all that it makes.
_Part = tuple[float, Tree, int, int]


@frozen
class Pairing:
    """tree: over the numbers of the tables. nanoseconds: predicted, adjoints included. made: cells of the tables made
    on the way, without the last."""

    tree: Tree
    nanoseconds: float
    made: int


class Cells(dict[int, int]):
    """Scope -> cells of a table over it; remembered."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def __missing__(self, scope: int) -> int:
        cells = self[scope] = math.prod([self.sizes[place] for place in places(scope)])
        return cells


class Pairings:
    """The pairings of buckets over attributes of these sizes, each found once.

    >>> from dpgm_core.inference.junction_tree.contraction import NUMPY
    >>> Pairings((2, 2, 9), NUMPY).of(0, (0b011, 0b101, 0b001)).tree
    ((2, 0), 1)
    """

    def __init__(self, sizes: Sequence[int], model: CostModel) -> None:
        self.cells, self.model = Cells(sizes), model
        self._known: dict[tuple[int, tuple[int, ...]], Pairing] = {}

    def of(self, place: int, scopes: tuple[int, ...]) -> Pairing:
        """Return the pairing of a bucket: tables with these scopes are multiplied, attribute `place` is summed out."""
        pairing = self._known.get((place, scopes))
        if pairing is None:
            pairing = self._known[place, scopes] = self._find_pairing(1 << place, scopes)
        return pairing

    def _find_pairing(self, bit: int, scopes: Sequence[int]) -> Pairing:
        if len(scopes) == 1:
            return Pairing(0, self.model.sum_out(self.cells[scopes[0]]), 0)
        parts: list[_Part] = [(0.0, number, scope, 0) for number, scope in enumerate(scopes)]
        if len(parts) > _MAX_TABLES_PAIRED:
            parts = self._few(parts)
        nanoseconds, tree, scope, made = self._cheapest(bit, parts)
        return Pairing(tree, nanoseconds, made - self.cells[scope])

    def _joined(self, one: _Part, two: _Part, out: int) -> _Part:
        cells, p, q = self.cells, one[2], two[2]
        cost = self.model.product(cells[p], cells[q], cells[out], cells[p | q], cells[p & q & out])
        return one[0] + two[0] + cost, (one[1], two[1]), out, one[3] + two[3] + cells[out]

    def _few(self, parts: Sequence[_Part]) -> list[_Part]:
        """Pair greedily until _MAX_TABLES_PAIRED are left: first tables over the same attributes, one pass each, then
        always the smallest with the table whose product with it is smallest."""
        cells = self.cells
        same: dict[int, list[_Part]] = {}
        for part in parts:
            same.setdefault(part[2], []).append(part)
        left = sorted(map(self._balanced, same.values()), key=lambda part: cells[part[2]])
        while len(left) > _MAX_TABLES_PAIRED:
            first = left.pop(0)
            mate = left.pop(min(range(len(left)), key=lambda i: cells[first[2] | left[i][2]]))
            insort(left, self._joined(first, mate, first[2] | mate[2]), key=lambda part: cells[part[2]])
        return left

    def _balanced(self, parts: Sequence[_Part]) -> _Part:
        # Halves, not a chain: hundreds of messages may meet at the hub of a star.
        half = len(parts) // 2
        if not half:
            return parts[0]
        return self._joined(self._balanced(parts[:half]), self._balanced(parts[half:]), parts[0][2])

    def _cheapest(self, bit: int, parts: Sequence[_Part]) -> _Part:
        # Dynamic programming over subsets, as bit masks; the product of all parts has the attribute summed out.
        full = (1 << len(parts)) - 1
        best: dict[int, _Part] = {1 << number: part for number, part in enumerate(parts)}
        for mask in range(1, full + 1):
            if mask in best:
                continue
            # Every split has the same product.
            half = (mask - 1) & mask
            out = best[half][2] | best[mask ^ half][2]
            if mask == full:
                out &= ~bit
            cheapest: _Part | None = None
            while half > mask ^ half:  # each split once
                joined = self._joined(best[half], best[mask ^ half], out)
                if cheapest is None or joined[0] < cheapest[0]:
                    cheapest = joined
                half = (half - 1) & mask
            assert cheapest is not None
            best[mask] = cheapest
        return best[full]


# --- Contractions ---------------------------------------------------------------------------------
# Bucket elimination written down as data. A *letter* is an attribute's place in the elimination order; attributes of
# one label carry no letter. A *node* is a table over letters: first the inputs (one per clique), then one per step.
# Each node but the last of a component is used by exactly one step, so log Z is multilinear in the nodes and every
# executor (probabilities, logarithms, max-plus, derivatives) is a walk over `Contraction.steps`, forwards or backwards.

Letters = tuple[int, ...]


@frozen
class Step:
    """out = sum over the letters of `left` and `right` that `out` lacks of left * right (right is None: sum only)."""

    left: int
    right: int | None
    out: int


@frozen(kw_only=True)
class Contraction:
    """Contraction of a structure's tables, which every executor walks.

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
        return tuple([self.sizes[letter] for letter in self.nodes[node]])

    def cells(self, node: int) -> int:
        """The cells of a node's table."""
        return math.prod(self.shape(node))

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one inference: each step once forwards, and once backwards per operand."""
        work = 0
        for step in self.steps:
            operands = [step.left] if step.right is None else [step.left, step.right]
            union = {letter for node in operands for letter in self.nodes[node]}
            work += (1 + len(operands)) * math.prod(self.sizes[letter] for letter in union)
        return work


@frozen
class Bucket:
    """Tables that are multiplied when an attribute is summed out.

    place: the attribute's. tables: the cliques, by number, and the messages, as ~place of the attribute each came from.
    pairing: over `tables`, by position. message: the scope of the product, once the attribute is summed out.
    """

    place: int
    tables: tuple[int, ...]
    pairing: Pairing
    message: int


def buckets_of(scopes: Sequence[int], played: Played, pairings: Pairings) -> Iterator[Bucket]:
    """Bucket elimination along an order, on scopes alone: of each attribute of some clique, in turn.

    scopes: of each clique, without attributes of one label.
    """
    rank = [0] * len(played.order)
    for turn, place in enumerate(played.order):
        rank[place] = turn
    by_turn = rank.__getitem__
    waiting: list[list[tuple[int, int]]] = [[] for _ in rank]
    for number, scope in enumerate(scopes):
        if scope:
            waiting[min(places(scope), key=by_turn)].append((scope, number))
    for place in played.order:
        bucket = waiting[place]
        if not bucket:
            continue
        bucket.sort()  # the same tables in another order are paired alike
        # Not the neighbours: attributes of one label, gone earlier, may have made some that no table has.
        message = 0
        for scope, _ in bucket:
            message |= scope
        message &= ~(1 << place)
        pairing = pairings.of(place, tuple([scope for scope, _ in bucket]))
        yield Bucket(place, tuple([number for _, number in bucket]), pairing, message)
        if message:
            waiting[min(places(message), key=by_turn)].append((message, ~place))


def contraction_of(structure: Structure, played: Played, pairings: Pairings) -> Contraction:
    """Write bucket elimination along an order down as steps.

    played: on the structure's graph, places in the domain's order.

    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.contraction import NUMPY
    >>> from dpgm_core.structure.graphs import BitGraph
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
    >>> played = BitGraph.of(structure.adjacency, structure.domain.sizes).play([0, 1, 2])
    >>> [step.right for step in contraction_of(structure, played, Pairings((2, 3, 2), NUMPY)).steps]
    [None, 2, None]
    """
    names, domain = structure.domain.names, structure.domain
    order = tuple(names[place] for place in played.order if domain[names[place]].size > 1)
    letter_of = {name: letter for letter, name in enumerate(order)}
    nodes: list[Letters] = []
    groups: list[int] = []
    for number, group in enumerate(structure.groups):
        for clique in group:
            nodes.append(tuple([letter_of[name] for name in clique if name in letter_of]))
            groups.append(number)
    steps: list[Step] = []
    roots = []

    def add(left: int, right: int | None, letters: Letters) -> int:
        nodes.append(letters)
        steps.append(Step(left, right, len(nodes) - 1))
        return len(nodes) - 1

    messages: dict[int, int] = {}
    multiplied_at: list[tuple[int, ...]] = [()] * len(order)
    for bucket in buckets_of(scopes_of(structure), played, pairings):
        letter = letter_of[names[bucket.place]]
        multiplied = tuple([table if table >= 0 else messages[~table] for table in bucket.tables])
        message = _lay_out(letter, bucket.pairing.tree, multiplied, nodes, add)
        multiplied_at[letter] = multiplied
        messages[bucket.place] = message
        if not nodes[message]:
            roots.append(message)
    return Contraction(
        order=order,
        sizes=tuple([domain[name].size for name in order]),
        nodes=tuple(nodes),
        groups=tuple(groups),
        steps=tuple(steps),
        roots=tuple(roots),
        buckets=tuple(multiplied_at),
    )


def scopes_of(structure: Structure) -> list[int]:
    """The attributes of each clique as bits, places in the domain's order, without those of one label.

    >>> from dpgm_core.domain.domain import Domain
    >>> scopes_of(Structure(Domain.from_sizes({"a": 2, "b": 1, "c": 3}), [("c", "b", "a")]))
    [5]
    """
    bit = {one.name: 1 << place if one.size > 1 else 0 for place, one in enumerate(structure.domain)}
    return [sum([bit[name] for name in clique]) for clique in structure.cliques]


def _lay_out(
    letter: int,
    tree: Tree,
    tables: Sequence[int],
    nodes: Sequence[Letters],
    add: Callable[[int, int | None, Letters], int],
) -> int:
    """Add the steps of a bucket and choose the axes of each product; returns the node of the message."""

    def build(part: Tree) -> int:
        if isinstance(part, int):
            return tables[part]
        left, right = build(part[0]), build(part[1])
        # Ascending letters put the letter to be summed first and the others as one run behind it: a matrix.
        return add(left, right, tuple(sorted({*nodes[left], *nodes[right]})))

    if isinstance(tree, int):
        return add(tables[tree], None, tuple([other for other in nodes[tables[tree]] if other != letter]))
    left, right = build(tree[0]), build(tree[1])
    return add(left, right, _message_axes(letter, nodes[left], nodes[right]))


def _message_axes(letter: int, left: Letters, right: Letters) -> Letters:
    # (batch, rows, columns) or (batch, columns, rows), whichever has the next letter to go in front.
    batch = tuple(other for other in left if other in right and other != letter)
    rows = tuple(other for other in left if other not in right)
    columns = tuple(other for other in right if other not in left)
    return min(batch + rows + columns, batch + columns + rows)
