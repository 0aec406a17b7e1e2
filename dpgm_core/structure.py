"""The shape of a model: a domain, its cliques, and groups of cliques that share one parameter table ("tied")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core import graphs
from dpgm_core.constraints.forms import Mask
from dpgm_core.constraints.resolved import Derived
from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError, did_you_mean
from dpgm_core.printable import printable

__all__ = ["Clique", "Structure", "StructureReport", "checked_singletons"]

Clique = tuple[str, ...]


@frozen(kw_only=True)
class StructureReport:
    """What `Structure.describe` says. Sizes are exact integers; memory is bytes of float64.

    cells: parameters, that is cells of all tables. triangulated_cells: summed cells of the clusters an exact
    engine works through. peak_cells: the largest such cluster. duplicates: cliques that were merged. nested:
    cliques contained in another one.
    """

    attributes: int
    cliques: int
    groups: int
    cells: int
    components: int
    treewidth: int
    triangulated_cells: int
    peak_cells: int
    duplicates: tuple[Clique, ...]
    nested: tuple[Clique, ...]

    @property
    def memory(self) -> int:
        """Bytes of the largest cluster in float64, a bound on any single array of exact inference."""
        return 8 * self.peak_cells

    def __str__(self) -> str:
        lines = [
            f"{self.attributes} attributes, {self.cliques} cliques in {self.groups} tables, {self.cells:,} cells",
            f"{self.components} connected component(s), treewidth {self.treewidth}",
            f"triangulated: {self.triangulated_cells:,} cells, largest cluster {self.peak_cells:,} cells "
            f"({human_bytes(self.memory)})",
        ]
        if self.duplicates:
            lines.append(f"merged duplicates: {_listed(self.duplicates)}")
        if self.nested:
            lines.append(f"contained in another clique: {_listed(self.nested)}")
        return "\n".join(lines)


class Structure:
    """A domain, cliques of any order over it, and optionally tied groups of cliques with one table each.

    domain: the attributes. cliques: tuples of attribute names; the order of the names is the order of the
    table's axes. Cliques equal up to order are merged (the first one stays). tied: groups of cliques that share
    one parameter table; all cliques of a group must have the same shape, axis by axis, and be distinct; a group
    of one is a plain clique. The table of a group is the sum over its cliques, and its total is
    (number of cliques) * N.

    Raises StructureError for unknown or repeated names and for groups that do not fit.

    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a", "b"), ("b", "c")])
    >>> structure.shapes, structure.cells
    (((2, 3), (3, 2)), 12)
    """

    domain: Domain
    groups: tuple[tuple[Clique, ...], ...]
    duplicates: tuple[Clique, ...]

    def __init__(
        self,
        domain: Domain,
        cliques: Iterable[Sequence[str]],
        *,
        tied: Iterable[Iterable[Sequence[str]]] = (),
    ) -> None:
        if not isinstance(domain, Domain):
            raise StructureError(f"a structure needs a Domain first, got {type(domain).__name__}")
        self.domain = domain
        plain: dict[frozenset[str], Clique] = {}
        duplicates = []
        for raw in cliques:
            clique = self._clique(raw)
            if plain.setdefault(frozenset(clique), clique) is not clique:
                duplicates.append(clique)
        bundles = []
        for number, raw_group in enumerate(tied):
            bundle = tuple(self._clique(raw) for raw in raw_group)
            self._check_group(number, bundle)
            if len(bundle) > 1:
                bundles.append(bundle)
            elif plain.setdefault(frozenset(bundle[0]), bundle[0]) is not bundle[0]:  # tied to nothing: plain
                duplicates.append(bundle[0])
        self.groups = (*((clique,) for clique in plain.values()), *bundles)
        self.duplicates = tuple(duplicates)
        if not self.groups:
            raise StructureError("a structure needs at least one clique, such as ('a', 'b')")

    def _clique(self, raw: Sequence[str]) -> Clique:
        if isinstance(raw, str) or not isinstance(raw, Sequence):
            raise StructureError(f"a clique must be a tuple of attribute names, got {raw!r}; write ({raw!r},) for one")
        clique = tuple(raw)
        for name in clique:
            if name not in self.domain:
                known = did_you_mean(name, self.domain.names)
                raise StructureError(f"clique {clique!r} names {name!r}, which is not in the domain{known}")
        if len(set(clique)) < len(clique):
            raise StructureError(f"clique {clique!r} names an attribute twice; name each once")
        return clique

    def _check_group(self, number: int, bundle: tuple[Clique, ...]) -> None:
        if not bundle:
            raise StructureError(f"tied group {number} is empty; name the cliques that share a table")
        shape = self.domain.shape(bundle[0])
        for clique in bundle:
            if self.domain.shape(clique) != shape:
                raise StructureError(
                    f"tied group {number}: {clique!r} has shape {self.domain.shape(clique)}, but {bundle[0]!r} has "
                    f"{shape}; cliques share a table only if their shapes agree axis by axis"
                )
        if len({frozenset(clique) for clique in bundle}) < len(bundle):
            raise StructureError(f"tied group {number} holds a clique twice (up to order); name each once")

    def over(self, domain: Domain) -> Structure:
        """The same cliques over another domain that has their attributes, such as one whose bins were found.

        >>> Structure(Domain.from_sizes({"a": 2}), [("a",)]).over(Domain.from_sizes({"a": 5})).cells
        5
        """
        plain = [group[0] for group in self.groups if len(group) == 1]
        return Structure(domain, plain, tied=[group for group in self.groups if len(group) > 1])

    @classmethod
    def chain(cls, domain: Domain, order: int = 1) -> Structure:
        """Edges between attributes at most `order` places apart in the domain.

        >>> Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))).cliques
        (('a', 'b'), ('b', 'c'))
        """
        return cls(domain, _or_single(graphs.chain(domain.names, order), domain))

    @classmethod
    def tree(cls, domain: Domain, branching: int = 2) -> Structure:
        """A balanced tree over the domain's attributes in order."""
        return cls(domain, _or_single(graphs.tree(domain.names, branching), domain))

    @classmethod
    def complete(cls, domain: Domain, order: int = 2) -> Structure:
        """All cliques of `order` attributes."""
        return cls(domain, _or_single(graphs.complete(domain.names, order), domain))

    @classmethod
    def grid(cls, domain: Domain, rows: int, columns: int) -> Structure:
        """A rows x columns grid over the domain's attributes, row by row."""
        return cls(domain, _or_single(graphs.grid(domain.names, rows, columns), domain))

    @classmethod
    def erdos_renyi(cls, domain: Domain, p: float, seed: int, *, connected: bool = True) -> Structure:
        """Each pair of attributes is an edge with probability `p`."""
        return cls(domain, _or_single(graphs.erdos_renyi(domain.names, p, seed, connected=connected), domain))

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """All cliques, group by group.

        >>> Structure(Domain.from_sizes({"a": 2}), [("a",)]).cliques
        (('a',),)
        """
        return tuple(clique for group in self.groups for clique in group)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The table shape of each group."""
        return tuple(self.domain.shape(group[0]) for group in self.groups)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each group's table."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @cached_property
    def multiplicities(self) -> tuple[int, ...]:
        """The number m_g of cliques in each group; a group's table sums to m_g * N."""
        return tuple(len(group) for group in self.groups)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each group's table stands in the contiguous buffer of `Tables`."""
        ends = [0]
        for size in self.sizes:
            ends.append(ends[-1] + size)
        return tuple(slice(low, high) for low, high in itertools.pairwise(ends))

    @cached_property
    def cells(self) -> int:
        """The number of cells of all tables, that is of parameters.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 5}), [("a", "b"), ("a",)]).cells
        12
        """
        return sum(self.sizes)

    @cached_property
    def _index(self) -> dict[Clique, int]:
        index: dict[Clique, int] = {}
        for number, group in enumerate(self.groups):
            for clique in group:
                index.setdefault(clique, number)
        return index

    @cached_property
    def _index_up_to_order(self) -> dict[frozenset[str], Clique]:
        index: dict[frozenset[str], Clique] = {}
        for clique in self.cliques:
            index.setdefault(frozenset(clique), clique)
        return index

    def find(self, clique: Sequence[str] | str) -> tuple[int, tuple[int, ...] | None]:
        """The group number of a clique and, if its names stand in another order, the transposition to apply.

        Raises StructureError for a clique that is not in the structure.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 5}), [("a", "b")]).find(("b", "a"))
        (0, (1, 0))
        """
        if not isinstance(clique, Sequence):
            raise StructureError(f"a table is named by its clique, a tuple of attribute names, got {clique!r}")
        key = (clique,) if isinstance(clique, str) else tuple(clique)
        if key in self._index:
            return self._index[key], None
        stored = self._index_up_to_order.get(frozenset(key))
        if stored is None or len(stored) != len(key):
            near = did_you_mean(key, map(str, self.cliques))
            raise StructureError(f"the structure has no clique {key!r}{near}")
        return self._index[stored], tuple(stored.index(name) for name in key)

    def covering(self, clique: Iterable[str]) -> Clique | None:
        """The smallest clique of the structure that contains all the names, or None.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 5}), [("a", "b")]).covering(["b"])
        ('a', 'b')
        """
        names = frozenset(clique)
        return min(
            (other for other in self._around(names) if names <= frozenset(other)),
            key=lambda other: math.prod(self.domain.shape(other)),
            default=None,
        )

    @cached_property
    def _members(self) -> dict[str, list[Clique]]:
        members: dict[str, list[Clique]] = {}
        for clique in self.cliques:
            for name in clique:
                members.setdefault(name, []).append(clique)
        return members

    def _around(self, names: frozenset[str]) -> Sequence[Clique]:
        # Every clique that could contain the names: those of the name in the fewest cliques.
        return min((self._members.get(name, []) for name in names), key=len, default=self.cliques)

    @cached_property
    def nested(self) -> tuple[Clique, ...]:
        """Cliques strictly contained in another clique; they are kept, and cost budget like any other."""
        # Only longer cliques can contain a clique: most structures have few lengths, and many cliques of each.
        longest = {name: sorted(held, key=len, reverse=True) for name, held in self._members.items()}
        anything = [max(self.cliques, key=len)]  # contains the empty clique

        def longer(clique: Clique) -> Iterator[Clique]:
            around = min((longest[name] for name in clique), key=len, default=anything)
            return itertools.takewhile(lambda other: len(other) > len(clique), around)

        return tuple(clique for clique in self.cliques if any(set(clique).issubset(other) for other in longer(clique)))

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """The attributes in no clique, of which tables over it say nothing; one with a single label needs no table.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 1}), [("a",)]).uncovered
        ('b',)
        """
        return tuple(one.name for one in self.domain if one.size > 1 and one.name not in self._members)

    @cached_property
    def untold(self) -> tuple[str, ...]:
        """What is `uncovered` and is not told by a map from a column in a clique either: a model knows nothing of it.

        >>> rules = {"x": {"columns": ["a", "b"], "map": {"0": "0", "1": "1"}}}
        >>> binary = {name: {"size": 2, "unknown": 0} for name in "abc"}
        >>> domain = Domain.from_dict({"attributes": binary, "constraints": rules})
        >>> Structure(domain, [("a",)]).uncovered, Structure(domain, [("a",)]).untold
        (('b', 'c'), ('c',))
        """
        known = set(self.domain.names).difference(self.uncovered)
        for one in self.domain.derived(frozenset(known)):
            if one.of in known:
                known.add(one.column)
        return tuple(name for name in self.uncovered if name not in known)

    @cached_property
    def derived(self) -> tuple[Derived, ...]:
        """The columns that a map tells from another and that no clique holds with others: they need no table, only the
        map. Each comes after the one it is told by.
        """
        joined = (group for group in self.groups if len(group) > 1 or len(group[0]) > 1)
        return self.domain.derived({name for group in joined for clique in group for name in clique})

    @cached_property
    def constrained(self) -> Structure:
        """The structure with a clique for each constraint that no clique of its own holds; itself where none is needed.

        What is exact of a model over a constrained domain is over this one's junction tree. Its own cliques come first,
        then those of constraints, tied groups last. Columns in no clique that a map tells are left alone.

        >>> rules = {"x": {"columns": ["a", "b"], "order": "<="}}
        >>> binary = {name: {"size": 2, "unknown": 0} for name in "abc"}
        >>> domain = Domain.from_dict({"attributes": binary, "constraints": rules})
        >>> Structure(domain, [("a", "c"), ("b", "c")]).constrained.cliques
        (('a', 'c'), ('b', 'c'), ('a', 'b'))
        """
        if not self.domain.scopes:
            return self
        plain = [group[0] for group in self.groups if len(group) == 1]
        return self._with_scopes(plain, self.domain.derived(self._members))

    @cached_property
    def narrowed(self) -> Structure:
        """`constrained`, without tables for columns that are `derived`: what a clique of one such column says is said
        of the column that tells it.

        >>> from dpgm_core.constraints import Mapped
        >>> plain, to = Domain.from_sizes({"a": 3, "b": 2}), (("0", "0"), ("1", "1"), ("2", "1"))
        >>> domain = Domain(plain.attributes, [Mapped(name="x", columns=("a", "b"), to=to)])
        >>> structure = Structure(domain, [("a",), ("b",)])
        >>> structure.constrained.cliques, structure.narrowed.cliques
        ((('a',), ('b',), ('a', 'b')), (('a',),))
        """
        if not self.domain.scopes:
            return self
        told = {one.column: one.of for one in self.derived}
        plain = [group[0] for group in self.groups if len(group) == 1]
        kept = [clique for clique in plain if told.keys().isdisjoint(clique)]
        held = {name for clique in kept for name in clique}
        for (name,) in (clique for clique in plain if not told.keys().isdisjoint(clique)):
            while name in told:
                name = told[name]
            if name not in held:
                held.add(name)
                kept.append((name,))
        return self._with_scopes(kept, self.derived)

    def _with_scopes(self, plain: Sequence[Clique], derived: Iterable[Derived]) -> Structure:
        """These in place of the plain cliques, and what constraints need besides; itself where nothing changes."""
        told = {one.column for one in derived}
        held = [frozenset(clique) for clique in plain]
        scopes = [scope for scope in self.domain.scopes if told.isdisjoint(scope)]
        more = [scope for scope in scopes if not any(other.issuperset(scope) for other in held)]
        if not more and list(plain) == [group[0] for group in self.groups if len(group) == 1]:
            return self
        return Structure(self.domain, [*plain, *more], tied=[group for group in self.groups if len(group) > 1])

    @cached_property
    def impossible(self) -> Mask | None:
        """(cells,): where no record can be, as each constraint alone tells; None where no cell is ruled out.

        A cell of a tied group is where it is for all of its cliques.
        """
        if not self.domain.scopes:
            return None
        parts = []
        for group, shape in zip(self.groups, self.shapes, strict=True):
            part = np.ones(shape, dtype=bool)
            for clique in group:
                mask = self.domain.impossible(clique)
                part &= np.zeros(shape, dtype=bool) if mask is None else mask
            parts.append(part.reshape(-1))
        found = np.concatenate(parts)
        found.flags.writeable = False
        return found if found.any() else None

    @cached_property
    def adjacency(self) -> Mapping[str, set[str]]:
        """The graph over all attributes of the domain, those in no clique included."""
        return graphs.neighbours_of(self.domain.names, self.cliques)

    @cached_property
    def elimination(self) -> graphs.Elimination:
        """The cheapest of several greedy elimination orders, by total cells and then peak."""
        return graphs.elimination_orders(self.adjacency, self.domain.sizes)[0]

    @cached_property
    def junction_tree(self) -> tuple[list[Clique], list[tuple[int, int]]]:
        """The maximal cliques of the triangulated graph and the edges of a junction forest over them."""
        return graphs.junction_tree(self.elimination)

    def with_singletons(self) -> Structure:
        """The structure with a clique of its own for each attribute in no clique, so that every attribute is measured.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b")]).with_singletons().cliques
        (('a', 'b'), ('c',))
        """
        plain = [group[0] for group in self.groups if len(group) == 1]
        tied = [group for group in self.groups if len(group) > 1]
        return Structure(self.domain, [*plain, *((name,) for name in self.uncovered)], tied=tied)

    def untied(self) -> Structure:
        """The structure with each clique on its own table, duplicates merged."""
        return Structure(self.domain, self.cliques)

    def only(self, number: int) -> Structure:
        """The structure with only one of the groups."""
        group = self.groups[number]
        return Structure(self.domain, group if len(group) == 1 else (), tied=(group,) if len(group) > 1 else ())

    def measuring(self, cliques: Iterable[Clique]) -> Structure:
        """The structure of the tables that a release of these cliques measures.

        Each must be contained in one of this structure's cliques; of a tied group one names the whole. Raises
        StructureError.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")]).measuring([("a",)]).cliques
        (('a',),)
        """
        plain: list[Clique] = []
        tied: dict[int, tuple[Clique, ...]] = {}
        for raw in cliques:
            clique = (raw,) if isinstance(raw, str) else tuple(raw)
            covering = self.covering(clique)
            if covering is None:
                raise StructureError(f"cannot measure {clique!r}: no clique of the model contains it")
            number = self.find(covering)[0]
            group = self.groups[number]
            if len(group) == 1:
                plain.append(clique)
            elif frozenset(clique) in map(frozenset, group):
                tied[number] = group
            else:
                raise StructureError(
                    f"cannot measure {clique!r}: it lies inside a tied group; name a clique of the group"
                )
        return Structure(self.domain, plain, tied=tied.values())

    def describe(self) -> StructureReport:
        """Sizes, triangulation and oddities, without touching any data.

        >>> print(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))).describe())
        3 attributes, 2 cliques in 2 tables, 8 cells
        1 connected component(s), treewidth 1
        triangulated: 10 cells, largest cluster 4 cells (32 B)
        """
        return StructureReport(
            attributes=len(self.domain),
            cliques=len(self.cliques),
            groups=len(self.groups),
            cells=self.cells,
            components=len(graphs.components(self.adjacency)),
            treewidth=self.narrowed.elimination.treewidth,
            triangulated_cells=self.narrowed.elimination.total,
            peak_cells=self.narrowed.elimination.peak,
            duplicates=self.duplicates,
            nested=self.nested,
        )

    def to_dict(self) -> dict[str, Any]:
        """Cliques and tied groups as plain values, without the domain; `from_dict` reads it back."""
        plain: dict[str, Any] = {"cliques": [list(group[0]) for group in self.groups if len(group) == 1]}
        tied = [[list(clique) for clique in group] for group in self.groups if len(group) > 1]
        return plain | ({"tied": tied} if tied else {})

    @classmethod
    def from_dict(cls, domain: Domain, plain: Mapping[str, Any]) -> Structure:
        """Read `{"cliques": [...], "tied": [...]}`, a graph helper such as `{"graph": "chain", "order": 3}`, or
        `{"parents": {"b": ["a"]}}`, the families of a directed graph over the whole domain, each child first.

        Helpers, families and cliques add up. With `{"singletons": True}` each attribute in none of them gets a clique
        of its own; with nothing else, every attribute does. Raises StructureError.

        >>> Structure.from_dict(Domain.from_sizes({"a": 2, "b": 2}), {"graph": "chain"}).cliques
        (('a', 'b'),)
        """
        if not isinstance(plain, Mapping):
            raise StructureError(
                "a structure must be a table such as { graph = 'chain' }, or { select = 'auto' } to have it chosen, "
                f"got {plain!r:.80}"
            )
        arguments = {key: value for key, value in plain.items() if key not in _KEYS}
        cliques = list(_clique_list("cliques", plain.get("cliques", [])))
        tied_plain = plain.get("tied", [])
        if not isinstance(tied_plain, (list, tuple)):
            raise StructureError(f"tied must be a list of groups of cliques, got {tied_plain!r}")
        tied = [list(_clique_list("tied", group)) for group in tied_plain]
        if "graph" in plain:
            cliques = [*_graph(domain, plain["graph"], arguments), *cliques]
        elif arguments:
            key = next(iter(arguments))
            raise StructureError(f"a structure has no setting {key!r}{did_you_mean(key, _KEYS)}")
        if "parents" in plain:
            cliques = [*graphs.families(domain.names, plain["parents"]), *cliques]
        if not checked_singletons(plain):
            return cls(domain, cliques, tied=tied)
        if not cliques and not tied:
            return cls(domain, [(name,) for name in domain.names])
        return cls(domain, cliques, tied=tied).with_singletons()

    def __iter__(self) -> Iterator[Clique]:
        return iter(self.cliques)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Structure) and self.groups == other.groups and self.domain == other.domain
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.domain, self.groups))

    def __repr__(self) -> str:
        return f"Structure({len(self.domain)} attributes, {len(self.cliques)} cliques, {self.cells} cells)"


def checked_singletons(plain: Mapping[str, Any]) -> bool:
    """What a [structure] table says of singletons. Raises StructureError.

    >>> checked_singletons({"singletons": True}), checked_singletons({})
    (True, False)
    """
    asked = plain.get("singletons", False)
    if not isinstance(asked, bool):
        raise StructureError(f"singletons must be true or false, got {asked!r:.80}")
    return asked


_KEYS = ("cliques", "tied", "graph", "parents", "singletons")
_GRAPHS: dict[str, tuple[Any, dict[str, bool]]] = {
    # name -> (function, {argument: required})
    "chain": (graphs.chain, {"order": False}),
    "tree": (graphs.tree, {"branching": False}),
    "complete": (graphs.complete, {"order": False}),
    "grid": (graphs.grid, {"rows": True, "columns": True}),
    "erdos-renyi": (graphs.erdos_renyi, {"p": True, "seed": True, "connected": False}),
}


def _graph(domain: Domain, name: object, arguments: Mapping[str, Any]) -> tuple[Clique, ...]:
    if not isinstance(name, str) or name not in _GRAPHS:
        raise StructureError(f"there is no graph {name!r}{did_you_mean(name, _GRAPHS)}")
    function, known = _GRAPHS[name]
    for key in arguments:
        if key not in known:
            raise StructureError(f"graph {name!r} has no setting {key!r}{did_you_mean(key, known)}")
    for key, required in known.items():
        if required and key not in arguments:
            raise StructureError(f"graph {name!r} needs {key}")
    return _or_single(function(domain.names, **arguments), domain)


def _or_single(cliques: tuple[Clique, ...], domain: Domain) -> tuple[Clique, ...]:
    # A helper on one attribute gives no edge; its single-attribute tables are the only sensible model.
    return cliques or tuple((name,) for name in domain.names)


def _clique_list(what: str, plain: object) -> Iterator[tuple[str, ...]]:
    if not isinstance(plain, (list, tuple)):
        raise StructureError(f"{what} must be a list of lists of attribute names, got {plain!r}")
    for clique in plain:
        if not isinstance(clique, (list, tuple)) or not all(isinstance(name, str) for name in clique):
            near = f"; write {what} = [[...]] with a list for each clique" if isinstance(clique, str) else ""
            raise StructureError(f"{what}: a clique must be a list of attribute names, got {clique!r}{near}")
        yield tuple(clique)


def _listed(cliques: Sequence[Clique]) -> str:
    shown = ", ".join("(" + ", ".join(map(printable, clique)) + ")" for clique in cliques[:5])
    return shown + (f", ... {len(cliques)} in all" if len(cliques) > 5 else "")


def human_bytes(count: int) -> str:
    """Bytes for people, in powers of 1024.

    >>> human_bytes(32), human_bytes(3 * 2**20)
    ('32 B', '3.0 MiB')
    """
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")
