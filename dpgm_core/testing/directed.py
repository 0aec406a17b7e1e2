"""The structures that learners are given, as directed graphs or of binary attributes, for learners of no other."""

from __future__ import annotations

from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag

__all__ = ["BINARY_CHAIN", "CHAIN", "DIRECTED_CHAIN", "awkward_networks", "binary_form", "directed_form"]

#: What most checks of learners learn; no directed graph, because nothing depends on c alone.
CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 3)))
#: And what those learn that take attributes of two labels only.
BINARY_CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
#: The network whose models are those of the chain.
DIRECTED_CHAIN = Dag(CHAIN.domain, {"b": ["a"], "c": ["b"]}).structure()


def binary_form(structure: Structure) -> Structure:
    """The same cliques, tied as they are, over attributes of two labels each.

    >>> binary_form(CHAIN) == BINARY_CHAIN
    True
    """
    domain = Domain.from_sizes(dict.fromkeys(structure.domain.names, 2))
    plain = [group[0] for group in structure.groups if len(group) == 1]
    return Structure(domain, plain, tied=[group for group in structure.groups if len(group) > 1])


def directed_form(structure: Structure) -> Structure | None:
    """A directed graph over the domain such that every model over the structure is a network over it; None if tied.

    One that is a directed graph stays as it is. Of others the attributes are taken out, the last one first: the parents
    of each are its neighbours that are left, given which it depends on nothing else there; they become neighbours of
    each other. Every clique lies in a family. A chain gets no arc too many, a cycle gets some.

    >>> directed_form(CHAIN) == DIRECTED_CHAIN, directed_form(CHAIN).cliques
    (True, (('a',), ('b', 'a'), ('c', 'b')))
    """
    try:
        return Dag.of(structure).structure()
    except StructureError:
        if max(structure.multiplicities) > 1:
            return None
    beside = {name: set(others) for name, others in structure.adjacency.items()}
    parents = {}
    for name in reversed(structure.domain.names):
        parents[name] = [other for other in reversed(structure.domain.names) if other in beside[name]]
        for other in parents[name]:
            beside[other] |= beside[name] - {other}
            beside[other].discard(name)
    return Dag(structure.domain, parents).structure()


def awkward_networks() -> dict[str, Structure]:
    """Directed graphs that no chain or cycle turns into, by name, small enough to enumerate.

    >>> awkward_networks()["two parents"].cliques
    (('a',), ('b',), ('c', 'b', 'a'), ('d',))
    """
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3})
    single = Domain.from_sizes({"a": 2, "b": 1, "c": 2})
    return {
        "two parents": Dag(domain, {"c": ["b", "a"]}).structure(),
        "diamond": Dag(domain, {"b": ["a"], "c": ["a"], "d": ["b", "c"]}).structure(),
        "against the domain's order": Dag(domain, {"a": ["d", "b"], "b": ["c"]}).structure(),
        "a family in another": Dag(domain, {"b": ["a"], "c": ["a", "b"], "d": ["c"]}).structure(),
        "a parent of one label": Dag(single, {"b": ["a"], "c": ["b", "a"]}).structure(),
        "no arcs": Dag(domain, {}).structure(),
    }
