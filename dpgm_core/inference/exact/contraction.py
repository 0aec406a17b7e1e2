"""The contraction of exact inference: which tables are multiplied, in which order, and what is summed when.

Bucket elimination written down as data. A *letter* is an attribute's place in the elimination order; attributes of
one label carry no letter. A *node* is a table over letters: first the inputs (one per clique), then one per step.
Each node but the last of a component is used by exactly one step, so log Z is multilinear in the nodes and every
executor (probabilities, logarithms, max-plus, derivatives) is a walk over `Contraction.steps`, forwards or backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from dpgm_core.inference.exact.pairing import Pairing, Pairings, Tree
from dpgm_core.structure import Structure
from dpgm_core.structure.bitgraph import Played, places

__all__ = ["Bucket", "Contraction", "Letters", "Step", "buckets_of", "contraction_of", "scopes_of"]

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

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.costs import NUMPY
    >>> from dpgm_core.structure.bitgraph import BitGraph
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

    >>> from dpgm_core.domain import Domain
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
