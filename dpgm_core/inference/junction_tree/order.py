"""Elimination orders, the choice among them, and the refusal of a plan that is too large."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cached_property, lru_cache

from attrs import frozen

from dpgm_core.errors import TooLarge, clipped, human_bytes, thousands
from dpgm_core.inference.junction_tree.contraction import (
    NUMBA,
    NUMPY,
    Contraction,
    CostModel,
    Pairings,
    buckets_of,
    contraction_of,
    scopes_of,
)
from dpgm_core.inference.junction_tree.flat import flat_scratch, flatten
from dpgm_core.inference.junction_tree.lowering import LINE, Program, lower
from dpgm_core.structure import graphs
from dpgm_core.structure.graphs import BitGraph, Played, places
from dpgm_core.structure.structure import Structure

__all__ = [
    "Candidate",
    "Cost",
    "JunctionTreePlan",
    "Search",
    "list_members",
    "plan_along",
    "plan_inference",
    "search",
    "too_large",
    "widest",
]


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


@frozen(kw_only=True, eq=False)
class Search:
    """Result of the search for a structure's elimination order.

    graph: its attributes as bits, places in the domain's order. candidates: orders that may fit, fastest first. tried:
    the number of orders that were played. thriftiest: the one, fitting or not, whose largest message is smallest.
    pairings: those of the buckets of all candidates.
    """

    structure: Structure
    graph: BitGraph
    candidates: tuple[Candidate, ...]
    tried: int
    thriftiest: Played
    pairings: Pairings

    def contraction(self, candidate: Candidate) -> Contraction:
        """A candidate written down."""
        return contraction_of(self.structure, candidate.played, self.pairings)


def search(structure: Structure, model: CostModel = NUMPY, max_bytes: int = _ADDRESSABLE) -> Search:
    """Orders for inference in at most max_bytes, by predicted time; deterministic.

    >>> from dpgm_core.domain.domain import Domain
    >>> found = search(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})))
    >>> found.candidates[0].played.width, found.candidates[0].bytes
    (1, 240)
    """
    return _Search(structure, model, min(max_bytes, _ADDRESSABLE)).run()


class _Search:
    def __init__(self, structure: Structure, model: CostModel, max_bytes: int) -> None:
        self.structure, self.max_bytes = structure, max_bytes
        self.graph = BitGraph.of(structure.adjacency, structure.domain.sizes)
        self.scopes = scopes_of(structure)
        self.pairings = Pairings(self.graph.sizes, model)
        self.seen: dict[tuple[int, ...], Played] = {}
        self.found: list[Candidate] = []

    def run(self) -> Search:
        graph = self.graph
        # The largest message has at least the cells of the largest cluster over those of one attribute.
        too_many = math.log(self.max_bytes // 8 + 1) + math.log(max(graph.sizes))
        for rule, played in graphs.greedy_orders(graph, too_many):
            self.consider(rule, played)
        if len(self.seen) > 1 or self.found:
            self.try_more()
        self.found.sort(key=lambda one: one.nanoseconds)
        return Search(
            structure=self.structure,
            graph=self.graph,
            candidates=tuple(self.found),
            tried=len(self.seen),
            thriftiest=min(self.seen.values(), key=lambda one: (one.message, one.total)),
            pairings=self.pairings,
        )

    def try_more(self) -> None:
        """The domain's order and its reverse, then the greedy rules with ties broken at random."""
        graph = self.graph
        natural = range(len(graph.sizes))
        most = 2.0 * min(played.total for played in self.seen.values())
        for name, order in (("natural", natural), ("reverse", natural[::-1])):
            self.consider(name, graph.play(order, most), most)
        ranks = list(natural)
        shuffle = random.Random(0).shuffle
        number = 0
        while number < self.tries():  # fewer once something faster is found
            if number % len(graph.rules) == 0:
                shuffle(ranks)
            rule = graph.rules[number % len(graph.rules)]
            most = _HOPELESS * min(played.total for played in self.seen.values())
            self.consider(f"{rule}, random ties", graph.greedy(rule, ranks, most), most)
            number += 1

    def tries(self) -> int:
        if not self.found:  # luck may halve what is needed, not more
            least = min(played.message for played in self.seen.values())
            return _MAX_ORDERS if 8 * least <= 4 * self.max_bytes else 0
        best = min(self.found, key=lambda one: one.nanoseconds)
        neighbours = sum(near.bit_count() for near in best.played.around)
        return int(
            min(_MAX_ORDERS, _PLANNING_CALLS * best.nanoseconds / (_NS_PER_TRY * (len(self.scopes) + neighbours)))
        )

    def consider(self, heuristic: str, played: Played, most: float = math.inf) -> None:
        """Price an order, if it is new and was played to the end."""
        if played.total > most or played.order in self.seen:
            return
        self.seen[played.order] = played
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
            self.found.append(Candidate(heuristic=heuristic, played=played, nanoseconds=nanoseconds, bytes=8 * live))


# --- Refusal of models that are too large ---------------------------------------------------------

_MAX_TRIES, _MAX_ATTRIBUTES = 4, 500  # attributes left out for a try, and those of a graph in which that is tried


def too_large(
    structure: Structure, graph: BitGraph, played: Played, max_bytes: int, what: str, needed: int
) -> TooLarge:
    """The refusal of a structure. played: the order that needs least. what: is made along it, and takes `needed` bytes.

    >>> from dpgm_core.domain.domain import Domain
    >>> structure, graph = Structure.chain(Domain.from_sizes({"a": 20, "b": 30})), BitGraph((2, 1), (20, 30))
    >>> str(too_large(structure, graph, graph.play([0, 1]), 100, "a table of 30 cells", 240)).split('; ')[1]
    'its widest cluster is the clique a, b'
    """
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
    """The attributes of an order's largest cluster, as bits.

    >>> graph = BitGraph((0b010, 0b101, 0b010), (2, 2, 3))
    >>> widest(graph, graph.play([0, 1, 2]))
    6
    """
    sizes = graph.sizes

    def cells(cluster: int) -> tuple[int, int]:
        return math.prod([sizes[place] for place in places(cluster)]), cluster.bit_count()

    return max((1 << place | near for place, near in zip(played.order, played.around, strict=True)), key=cells)


def list_members(members: Sequence[str]) -> str:
    """At most four attributes by name, and how many there are.

    >>> list_members("ab"), list_members("abcdef")
    ('a, b', 'a, b, c, d, ... (6 attributes)')
    """
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


# --- The plan of a structure ----------------------------------------------------------------------


@frozen(kw_only=True)
class Cost:
    """Cost of one exact inference.

    treewidth: attributes in the largest cluster, less one. cells: cells of all tables made on the way. largest: cells
    of the largest one. multiply_adds: of one call. peak_bytes: memory of one call besides its result.
    """

    treewidth: int
    cells: int
    largest: int
    multiply_adds: int
    peak_bytes: int

    def __str__(self) -> str:
        return (
            f"treewidth {self.treewidth}, {self.cells:,} cells in intermediate tables (largest {self.largest:,}), "
            f"{self.multiply_adds:,} multiply-adds and {human_bytes(self.peak_bytes)} per inference"
        )


@frozen(kw_only=True, eq=False, slots=False)
class JunctionTreePlan:
    """Plan of exact inference on a structure.

    candidate: the order. tried: how many there were. model: by what they were compared, that of what runs the plan.
    widest: the attributes of the largest cluster.
    """

    structure: Structure
    contraction: Contraction
    candidate: Candidate
    tried: int
    model: CostModel
    widest: tuple[str, ...]

    @cached_property
    def program(self) -> Program:
        """The contraction as numpy calls. Made when it is asked for: compiled kernels have a program of their own."""
        return lower(self.contraction, self.structure)

    @cached_property
    def needs(self) -> Cost:
        """Cost of an inference."""
        contraction = self.contraction
        made = [contraction.cells(step.out) for step in contraction.steps] or [0]
        return Cost(
            treewidth=self.candidate.played.width,
            cells=sum(made),
            largest=max(made),
            multiply_adds=contraction.multiply_adds,
            peak_bytes=self.flat_bytes if self.model == NUMBA else self.numpy_bytes,
        )

    @property
    def numpy_bytes(self) -> int:
        """Bytes of one call of numpy's program besides its result."""
        return 8 * (2 * self.structure.cells + self.program.arena + self.program.ones)

    @cached_property
    def flat_bytes(self) -> int:
        """Bytes of one call of compiled kernels, with their result as in numpy's program: twice the tables."""
        return 8 * (self.structure.cells + flatten(self.contraction, self.structure, 0.0).memory)

    def fits(self, max_bytes: int) -> bool:
        """Whether an inference takes no more, also where compiled kernels hand over to numpy's program; programs are
        made only where that is close."""
        if self.most_bytes <= max_bytes:
            return True
        return self.numpy_bytes <= max_bytes and (self.model != NUMBA or self.flat_bytes <= max_bytes)

    @cached_property
    def most_bytes(self) -> int:
        """Upper bound of every program's bytes: no buffer is used twice, every operand is copied."""
        contraction = self.contraction
        most = max(contraction.sizes, default=1)
        doubles = 2 * self.structure.cells + most + flat_scratch(contraction, self.structure)
        for node in range(len(contraction.nodes)):
            doubles += 2 * (contraction.cells(node) + LINE)
        for step in contraction.steps:
            # At most three products, with three tables each; what only sums is a product with ones.
            other = most if step.right is None else contraction.cells(step.right)
            doubles += 3 * (contraction.cells(step.left) + other + contraction.cells(step.out) + 3 * LINE)
        return 8 * doubles


@lru_cache(maxsize=16)
def plan_inference(structure: Structure, max_bytes: int, model: CostModel = NUMPY) -> JunctionTreePlan:
    """The fastest plan that fits; remembered, as learners and selectors ask for the same structures again and again.

    Of numpy's model also where NUMBA is asked for, and only numpy's program fits. Raises TooLarge.

    >>> from dpgm_core.domain.domain import Domain
    >>> plan_inference(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})), 2**20).needs.treewidth
    1
    """
    best = search(structure, model, max_bytes)
    closest: JunctionTreePlan | None = None
    for candidate in best.candidates:
        plan = plan_along(best, candidate)
        if plan.fits(max_bytes):
            return plan
        if closest is None or plan.needs.peak_bytes < closest.needs.peak_bytes:
            closest = plan
    if closest is not None and model == NUMBA:
        return plan_inference(structure, max_bytes, NUMPY)
    if closest is not None:
        played, needed = closest.candidate.played, closest.needs.peak_bytes
        what = f"{thousands(closest.needs.cells)} cells in intermediate tables"
    else:
        played = best.thriftiest
        what, needed = f"a table of {thousands(played.message)} cells", 8 * max(played.message, 2 * structure.cells)
    raise too_large(structure, best.graph, played, max_bytes, what, needed)


def plan_along(search: Search, candidate: Candidate) -> JunctionTreePlan:
    """The plan along one of the candidates."""
    names = search.structure.domain.names
    return JunctionTreePlan(
        structure=search.structure,
        contraction=search.contraction(candidate),
        candidate=candidate,
        tried=search.tried,
        model=search.pairings.model,
        widest=tuple([names[place] for place in places(widest(search.graph, candidate.played))]),
    )
