"""Elimination orders, and the contractions that they are: pairwise products of tables, with their cost.

Also the refusal of structures for which no order fits.
"""

from __future__ import annotations

import math
import random
from bisect import insort
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from dpgm_core.errors import TooLarge, clipped, human_bytes, thousands
from dpgm_core.structure import graphs
from dpgm_core.structure.graphs import BitGraph, Played, places
from dpgm_core.structure.structure import Structure

__all__ = [
    "Candidate",
    "Contraction",
    "CostModel",
    "Letters",
    "NUMBA",
    "NUMPY",
    "Search",
    "Step",
    "list_members",
    "too_large",
    "widest",
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
        """A step that only sums, over a table of so many cells, and the adjoint of its operand."""
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
    """The pairings of buckets over attributes of these sizes, each found once."""

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

    @property
    def operands(self) -> tuple[int, ...]:
        """`left`, and `right` where there is one."""
        return (self.left,) if self.right is None else (self.left, self.right)


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
            union = {letter for node in step.operands for letter in self.nodes[node]}
            work += (1 + len(step.operands)) * math.prod(self.sizes[letter] for letter in union)
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
    """The attributes of each clique as bits, places in the domain's order, without those of one label."""
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


# --- Search for an elimination order --------------------------------------------------------------

# Orders tied for the greedy rules differ in speed by up to 2: other ties are tried, for about as long as 10 calls take.
_MAX_ORDERS, _PLANNING_CALLS = 16, 10
_NS_PER_TRY = 3e3  # nanoseconds of planning per table and neighbour
_HOPELESS = 1.3  # times the cells of the best order: few with more are faster
_ADDRESSABLE = 2**62


@frozen(kw_only=True)
class Candidate:
    """An order and what it takes.

    heuristic: what found it. nanoseconds: predicted for one inference. bytes: of the tables of probabilities that all
    exist at once; an inference takes at least these.
    """

    heuristic: str
    played: Played
    nanoseconds: float
    bytes: int


class Search:
    """Search for a structure's elimination order for inference in at most max_bytes; deterministic.

    graph: the attributes as bits, places in the domain's order. candidates: orders that may fit, by predicted time,
    fastest first. played: every order that was tried. pairings: those of the buckets of all candidates.
    """

    def __init__(self, structure: Structure, model: CostModel = NUMPY, max_bytes: int = _ADDRESSABLE) -> None:
        self.structure, self.max_bytes = structure, min(max_bytes, _ADDRESSABLE)
        self.graph = graph = BitGraph.of(structure.adjacency, structure.domain.sizes)
        self.scopes = scopes_of(structure)
        self.pairings = Pairings(graph.sizes, model)
        self.played: dict[tuple[int, ...], Played] = {}
        self.candidates: list[Candidate] = []
        # The largest message has at least the cells of the largest cluster over those of one attribute.
        too_many = math.log(self.max_bytes // 8 + 1) + math.log(max(graph.sizes))
        for rule, played in graphs.greedy_orders(graph, too_many):
            self._consider(rule, played)
        if len(self.played) > 1 or self.candidates:
            self._try_more()
        self.candidates.sort(key=lambda one: one.nanoseconds)

    @property
    def thriftiest(self) -> Played:
        """The order, fitting or not, whose largest message is smallest."""
        return min(self.played.values(), key=lambda one: (one.message, one.total))

    def contraction(self, candidate: Candidate) -> Contraction:
        """A candidate written down."""
        return contraction_of(self.structure, candidate.played, self.pairings)

    def _try_more(self) -> None:
        """The domain's order and its reverse, then the greedy rules with ties broken at random."""
        graph = self.graph
        natural = range(len(graph.sizes))
        most = 2.0 * min(played.total for played in self.played.values())
        for name, order in (("natural", natural), ("reverse", natural[::-1])):
            self._consider(name, graph.play(order, most), most)
        ranks = list(natural)
        shuffle = random.Random(0).shuffle
        number = 0
        while number < self._tries():  # fewer once something faster is found
            if number % len(graph.rules) == 0:
                shuffle(ranks)
            rule = graph.rules[number % len(graph.rules)]
            most = _HOPELESS * min(played.total for played in self.played.values())
            self._consider(f"{rule}, random ties", graph.greedy(rule, ranks, most), most)
            number += 1

    def _tries(self) -> int:
        if not self.candidates:  # luck may halve what is needed, not more
            least = min(played.message for played in self.played.values())
            return _MAX_ORDERS if 8 * least <= 4 * self.max_bytes else 0
        best = min(self.candidates, key=lambda one: one.nanoseconds)
        neighbours = sum(near.bit_count() for near in best.played.around)
        return int(
            min(_MAX_ORDERS, _PLANNING_CALLS * best.nanoseconds / (_NS_PER_TRY * (len(self.scopes) + neighbours)))
        )

    def _consider(self, heuristic: str, played: Played, most: float = math.inf) -> None:
        """Price an order, if it is new and was played to the end."""
        if played.total > most or played.order in self.played:
            return
        self.played[played.order] = played
        if 8 * played.message > self.max_bytes:
            return
        cells, nanoseconds, live = self.pairings.cells, 0.0, 2 * self.structure.cells
        messages: dict[int, int] = {}
        for bucket in buckets_of(self.scopes, played, self.pairings):
            nanoseconds += bucket.pairing.nanoseconds
            live += bucket.pairing.made
            messages[bucket.place] = cells[bucket.message]
            if len(bucket.tables) > 1:  # each is needed again for the adjoints of the others
                live += sum([messages[~table] for table in bucket.tables if table < 0])
        if 8 * live <= self.max_bytes:
            self.candidates.append(
                Candidate(heuristic=heuristic, played=played, nanoseconds=nanoseconds, bytes=8 * live)
            )


# --- Refusal of models that are too large ---------------------------------------------------------

_MAX_TRIES, _MAX_ATTRIBUTES = 4, 500  # attributes left out for a try, and those of a graph in which that is tried


def too_large(
    structure: Structure, graph: BitGraph, played: Played, max_bytes: int, what: str, needed: int
) -> TooLarge:
    """The refusal of a structure. played: the order that needs least. what: made along it, of `needed` bytes."""
    cluster = widest(graph, played)
    names = structure.domain.names
    members = [names[place] for place in places(cluster)]
    is_clique = any(len(clique) >= len(members) and set(members) <= set(clique) for clique in structure.cliques)
    size = human_bytes(needed) if needed < 2**60 else f"{thousands(needed)} bytes"
    relief = _relief(names, graph, cluster, max_bytes)
    return TooLarge(
        f"exact inference over {len(structure.cliques)} cliques (treewidth {played.width}) needs {what}, {size} "
        f"against max_bytes = {human_bytes(max_bytes)}; its widest cluster {'is the clique' if is_clique else 'joins'} "
        f"{list_members(members)}; use fewer or smaller cliques{relief}, or loopy-bp for approximate inference"
    )


def widest(graph: BitGraph, played: Played) -> int:
    """The attributes of an order's largest cluster, as bits."""
    sizes = graph.sizes

    def cells(cluster: int) -> tuple[int, int]:
        return math.prod([sizes[place] for place in places(cluster)]), cluster.bit_count()

    return max((1 << place | near for place, near in zip(played.order, played.around, strict=True)), key=cells)


def list_members(members: Sequence[str]) -> str:
    """At most four attributes by name, and how many there are."""
    shown = ", ".join(map(clipped, members[:4]))
    return shown if len(members) <= 4 else f"{shown}, ... ({len(members)} attributes)"


def _relief(names: Sequence[str], graph: BitGraph, cluster: int, max_bytes: int) -> str:
    """Return which attribute of the widest cluster to leave out, where that alone would do."""
    if len(graph.sizes) > _MAX_ATTRIBUTES:
        return ""
    busiest = sorted(places(cluster), key=lambda place: -graph.around[place].bit_count())[:_MAX_TRIES]
    message, place = min((_without(graph, place), place) for place in busiest)
    if 8 * message > max_bytes:
        return ""
    return f" (without {clipped(names[place])} the largest table has {thousands(message)} cells)"


def _without(graph: BitGraph, place: int) -> int:
    """Cells of the largest message of what is left without an attribute."""
    around = [0 if other == place else near & ~(1 << place) for other, near in enumerate(graph.around)]
    return BitGraph(tuple(around), graph.sizes).greedy("cells", range(len(around))).message
