"""Refusal of models too large for exact inference: how large, where, and what would do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpgm_core.errors import TooLarge
from dpgm_core.printable import clipped, thousands
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.structure.bitgraph import BitGraph, Played, places

__all__ = ["list_members", "too_large", "widest"]

_MAX_TRIES, _MAX_ATTRIBUTES = 4, 500  # attributes left out for a try, and those of a graph in which that is tried


def too_large(
    structure: Structure, graph: BitGraph, played: Played, max_bytes: int, what: str, needed: int
) -> TooLarge:
    """The refusal of a structure. played: the order that needs least. what: is made along it, and takes `needed` bytes.

    >>> from dpgm_core.domain import Domain
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
