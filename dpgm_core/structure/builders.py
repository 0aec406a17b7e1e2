"""Sets of cliques over attribute names: chains, trees, grids, random pairs, directed graphs, [structure] tables."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpgm_core.errors import StructureError, did_you_mean, printable
from dpgm_core.structure.graphs import Clique, components, neighbours_of

__all__ = [
    "chain",
    "cliques_of_table",
    "complete",
    "cycle_text",
    "directed_cycle",
    "erdos_renyi",
    "families",
    "grid",
    "or_single",
    "read_singletons",
    "tree",
]

_MAX_CLIQUES = 2**20


def chain(names: Sequence[str], order: int = 1) -> tuple[Clique, ...]:
    """Edges between attributes at most `order` places apart: the paper's first- and third-order chains."""
    _whole("order", order, 1)
    return tuple((names[i], names[j]) for i in range(len(names)) for j in range(i + 1, min(i + order + 1, len(names))))


def tree(names: Sequence[str], branching: int = 2) -> tuple[Clique, ...]:
    """The balanced tree in which the i-th attribute hangs on attribute (i - 1) // branching.

    >>> tree(["a", "b", "c", "d"])
    (('a', 'b'), ('a', 'c'), ('b', 'd'))
    """
    _whole("branching", branching, 1)
    return tuple((names[(i - 1) // branching], names[i]) for i in range(1, len(names)))


def complete(names: Sequence[str], order: int = 2) -> tuple[Clique, ...]:
    """All cliques of `order` attributes."""
    _whole("order", order, 1)
    if len(names) == 1 < order:
        return ()
    if order > len(names):
        raise StructureError(f"complete: cliques of {order} attributes need as many, got {len(names)}")
    if math.comb(len(names), order) > _MAX_CLIQUES:
        raise StructureError(
            f"complete: {len(names)} attributes have over {_MAX_CLIQUES} cliques of {order}; name those that matter"
        )
    return tuple(itertools.combinations(names, order))


def grid(names: Sequence[str], rows: int, columns: int) -> tuple[Clique, ...]:
    """Edges of a rows x columns grid filled row by row; needs rows * columns names.

    >>> grid(["a", "b", "c", "d"], rows=2, columns=2)
    (('a', 'b'), ('a', 'c'), ('b', 'd'), ('c', 'd'))
    """
    _whole("rows", rows, 1)
    _whole("columns", columns, 1)
    if rows * columns != len(names):
        raise StructureError(f"a {rows} x {columns} grid needs {rows * columns} attributes, got {len(names)}")
    edges = []
    for i in range(rows * columns):
        if (i + 1) % columns:
            edges.append((names[i], names[i + 1]))
        if i + columns < rows * columns:
            edges.append((names[i], names[i + columns]))
    return tuple(edges)


def erdos_renyi(names: Sequence[str], p: float, seed: int, *, connected: bool = True) -> tuple[Clique, ...]:
    """Each pair is an edge with probability `p`; drawn again until connected (the paper's ER graphs).

    seed: whole number; the same seed gives the same graph on every machine. Raises StructureError when no
    connected graph turns up in 10,000 draws.
    """
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise StructureError(f"erdos_renyi: p must be a probability between 0 and 1, got {p!r}")
    _whole("seed", seed, 0)
    if not isinstance(connected, bool):
        raise StructureError(f"erdos_renyi: connected must be true or false, got {connected!r}")
    draws = random.Random(seed)
    for _ in range(10_000):
        edges = tuple(pair for pair in itertools.combinations(names, 2) if draws.random() < p)
        if not connected or len(components(neighbours_of(names, edges))) <= 1:
            return edges
    raise StructureError(f"erdos_renyi: no connected graph in 10000 draws at p = {p}; raise p or set connected = false")


def _whole(what: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise StructureError(f"{what} must be a whole number of at least {least}, got {value!r}")


# --------------------------------------------------------------------------------------------------
# Directed graphs as plain tables, child -> parents

# A cycle of more names is spelled out at its ends only: an error is one line.
_MAX_NAMES_SHOWN = 30


def families(names: Sequence[str], parents: Mapping[str, Sequence[str]]) -> tuple[Clique, ...]:
    """(child, *parents) of every name, in the order of the names; one without an entry is a root.

    Raises StructureError for names that are not there, parents named twice and directed cycles, which it spells out.
    """
    if not isinstance(parents, Mapping):
        raise StructureError(f"parents must be a table such as {{ b = ['a'] }}, got {parents!r:.80}")
    known = dict.fromkeys(names)
    for child, above in parents.items():
        if child not in known:
            raise StructureError(
                f"parents are given to {child!r:.80}, which is no attribute{did_you_mean(child, names)}"
            )
        if isinstance(above, str) or not isinstance(above, Sequence):
            raise StructureError(f"the parents of {child!r} must be a list of attribute names, got {above!r:.80}")
        for parent in above:
            if not isinstance(parent, str) or parent not in known:
                near = did_you_mean(parent, names)
                raise StructureError(f"{parent!r:.80} is named as a parent of {child!r}, but is no attribute{near}")
        if len(set(above)) < len(above):
            twice = next(parent for at, parent in enumerate(above) if parent in above[:at])
            raise StructureError(f"{twice!r} is named twice as a parent of {child!r}; name it once")
    complete_parents = {name: tuple(parents.get(name, ())) for name in names}
    cycle = directed_cycle(complete_parents)
    if cycle:
        raise StructureError(f"attributes are their own ancestors: {cycle_text(cycle)}; take one of these parents out")
    return tuple((name, *above) for name, above in complete_parents.items())


def directed_cycle(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Names each the parent of the next, and the last of the first; [] if there is no directed cycle.

    Every name has an entry. Linear in the number of parents: names whose parents are all gone go (Kahn 1962); each
    that stays has a parent that stays, so that walking from parent to parent must come back.
    """
    waiting = {child: len(above) for child, above in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    free = [name for name, count in waiting.items() if not count]
    while free:
        name = free.pop()
        del waiting[name]
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                free.append(child)
    if not waiting:
        return []
    walked: dict[str, int] = {}
    name = next(iter(waiting))
    while name not in walked:
        walked[name] = len(walked)
        name = next(parent for parent in parents[name] if parent in waiting)
    cycle = list(walked)[walked[name] :][::-1]
    first = min(range(len(cycle)), key=cycle.__getitem__)
    return cycle[first:] + cycle[:first]


def cycle_text(cycle: Sequence[str]) -> str:
    """A cycle in words, from parent to child and back to the first; of a long one the ends."""
    names = [printable(name[:40]) for name in (*cycle, cycle[0])]
    if len(cycle) > _MAX_NAMES_SHOWN:
        names[5:-5] = [f"... {len(names) - 10:,} more ..."]
    return " -> ".join(names)


# --------------------------------------------------------------------------------------------------
# Reading of a [structure] table

_KEYS = ("cliques", "tied", "graph", "parents", "singletons")
_GRAPHS: dict[str, tuple[Any, dict[str, bool]]] = {
    # name -> (function, {argument: required})
    "chain": (chain, {"order": False}),
    "tree": (tree, {"branching": False}),
    "complete": (complete, {"order": False}),
    "grid": (grid, {"rows": True, "columns": True}),
    "erdos-renyi": (erdos_renyi, {"p": True, "seed": True, "connected": False}),
}


def cliques_of_table(names: Sequence[str], plain: Mapping[str, Any]) -> tuple[list[Clique], list[list[Clique]]]:
    """The plain cliques and the tied groups that a [structure] table names, over these attributes.

    Those of a directed graph come first, then those of a helper, then those listed. Raises StructureError.

    >>> cliques_of_table(["a", "b"], {"graph": "chain", "cliques": [["b"]]})
    ([('a', 'b'), ('b',)], [])
    """
    arguments = {key: value for key, value in plain.items() if key not in _KEYS}
    cliques = list(_clique_list("cliques", plain.get("cliques", [])))
    tied_plain = plain.get("tied", [])
    if not isinstance(tied_plain, (list, tuple)):
        raise StructureError(f"tied must be a list of groups of cliques, got {tied_plain!r}")
    tied = [list(_clique_list("tied", group)) for group in tied_plain]
    if "graph" in plain:
        cliques = [*_graph(names, plain["graph"], arguments), *cliques]
    elif arguments:
        key = next(iter(arguments))
        raise StructureError(f"a structure has no setting {key!r}{did_you_mean(key, _KEYS)}")
    if "parents" in plain:
        cliques = [*families(names, plain["parents"]), *cliques]
    return cliques, tied


def read_singletons(plain: Mapping[str, Any]) -> bool:
    """What a [structure] table says of singletons. Raises StructureError.

    >>> read_singletons({"singletons": True}), read_singletons({})
    (True, False)
    """
    value = plain.get("singletons", False)
    if not isinstance(value, bool):
        raise StructureError(f"singletons must be true or false, got {value!r:.80}")
    return value


def _graph(names: Sequence[str], name: object, arguments: Mapping[str, Any]) -> tuple[Clique, ...]:
    if not isinstance(name, str) or name not in _GRAPHS:
        raise StructureError(f"there is no graph {name!r}{did_you_mean(name, _GRAPHS)}")
    function, known = _GRAPHS[name]
    for key in arguments:
        if key not in known:
            raise StructureError(f"graph {name!r} has no setting {key!r}{did_you_mean(key, known)}")
    for key, required in known.items():
        if required and key not in arguments:
            raise StructureError(f"graph {name!r} needs {key}")
    return or_single(function(names, **arguments), names)


def or_single(cliques: tuple[Clique, ...], names: Sequence[str]) -> tuple[Clique, ...]:
    """A helper's cliques; on one attribute it gives no edge, and its table alone is the only sensible model.

    >>> or_single((), ["a"])
    (('a',),)
    """
    return cliques or tuple((name,) for name in names)


def _clique_list(what: str, plain: object) -> Iterator[tuple[str, ...]]:
    if not isinstance(plain, (list, tuple)):
        raise StructureError(f"{what} must be a list of lists of attribute names, got {plain!r}")
    for clique in plain:
        if not isinstance(clique, (list, tuple)) or not all(isinstance(name, str) for name in clique):
            near = f"; write {what} = [[...]] with a list for each clique" if isinstance(clique, str) else ""
            raise StructureError(f"{what}: a clique must be a list of attribute names, got {clique!r}{near}")
        yield tuple(clique)
