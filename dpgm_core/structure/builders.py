"""Ready-made sets of cliques over attribute names: chains, trees, grids, all of one order, random pairs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique, components, neighbours_of

__all__ = ["chain", "complete", "erdos_renyi", "grid", "tree"]

_MAX_CLIQUES = 2**20


def chain(names: Sequence[str], order: int = 1) -> tuple[Clique, ...]:
    """Edges between attributes at most `order` places apart: the paper's first- and third-order chains.

    >>> chain(["a", "b", "c"], order=1)
    (('a', 'b'), ('b', 'c'))
    >>> len(chain([f"x{i}" for i in range(10)], order=3))
    24
    """
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
    """All cliques of `order` attributes.

    >>> complete(["a", "b", "c"])
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
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

    >>> erdos_renyi(["a", "b", "c"], p=1.0, seed=0)
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
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
