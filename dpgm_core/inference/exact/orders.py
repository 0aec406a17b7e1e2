"""The search for an elimination order: several heuristics, priced on scopes alone; only the best is written down."""

from __future__ import annotations

import math
import random

from attrs import frozen

from dpgm_core.inference.exact.contraction import Contraction, buckets_of, contraction_of, scopes_of
from dpgm_core.inference.exact.costs import NUMPY, CostModel
from dpgm_core.inference.exact.pairing import Pairings
from dpgm_core.structure import Structure, graphs
from dpgm_core.structure.bitgraph import BitGraph, Played

__all__ = ["Candidate", "Search", "search"]

# Orders tied for the greedy rules differ in speed by up to 2: other ties are tried, for about as long as 10 calls take.
MOST_TRIES, CALLS_WORTH = 16, 10
TRY = 3e3  # nanoseconds of planning per table and neighbour
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

    >>> from dpgm_core.domain import Domain
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
            return MOST_TRIES if 8 * least <= 4 * self.max_bytes else 0
        best = min(self.found, key=lambda one: one.nanoseconds)
        neighbours = sum(near.bit_count() for near in best.played.around)
        return int(min(MOST_TRIES, CALLS_WORTH * best.nanoseconds / (TRY * (len(self.scopes) + neighbours))))

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
