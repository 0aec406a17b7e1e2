"""Cliques of a [structure] table: lists, graph helpers with their settings, families of a directed graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpgm_core.errors import StructureError, did_you_mean
from dpgm_core.structure import ready_made
from dpgm_core.structure.directed import families
from dpgm_core.structure.graphs import Clique

__all__ = ["read_singletons", "cliques_of_table", "or_single"]

_KEYS = ("cliques", "tied", "graph", "parents", "singletons")
_GRAPHS: dict[str, tuple[Any, dict[str, bool]]] = {
    # name -> (function, {argument: required})
    "chain": (ready_made.chain, {"order": False}),
    "tree": (ready_made.tree, {"branching": False}),
    "complete": (ready_made.complete, {"order": False}),
    "grid": (ready_made.grid, {"rows": True, "columns": True}),
    "erdos-renyi": (ready_made.erdos_renyi, {"p": True, "seed": True, "connected": False}),
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
