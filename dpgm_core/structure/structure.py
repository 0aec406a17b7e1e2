"""Structures: cliques over a domain, and their report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.constraints import Mask
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Derived
from dpgm_core.errors import StructureError, brief, clipped, did_you_mean, human_bytes, listed, thousands
from dpgm_core.structure import builders, graphs
from dpgm_core.structure.builders import cliques_of_table, or_single, read_singletons
from dpgm_core.structure.graphs import Clique

__all__ = ["Groups", "Structure", "StructureReport", "group_text"]

#: Cliques that share one parameter table; most groups are of one.
Groups = tuple[tuple[Clique, ...], ...]


class Structure:
    """A domain, cliques of any order over it, and optionally tied groups of cliques with one table each.

    Parameters
    ----------
    domain : Domain
        The attributes.
    cliques : iterable of sequences of str
        Attribute names, in the order of the table's axes. Of cliques equal up to order the first is used. There must be
        one here or in `tied`; the empty clique `()` will do, whose table is the number of records.
    tied : iterable of groups of cliques
        Each group shares one parameter table. Its cliques must be distinct and have the same shape, axis by axis. The
        table of a group is the sum over its cliques, and its total is (number of cliques) * N. A group of one clique is
        the same as that clique in `cliques`.

    Raises
    ------
    StructureError
        For unknown or repeated names, and for groups that do not fit.

    Examples
    --------
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a", "b"), ("b", "c")])
    >>> structure.shapes, structure.cells
    (((2, 3), (3, 2)), 12)
    """

    domain: Domain
    groups: Groups
    duplicates: tuple[Clique, ...]

    def __init__(
        self, domain: Domain, cliques: Iterable[Sequence[str]], *, tied: Iterable[Iterable[Sequence[str]]] = ()
    ) -> None:
        if not isinstance(domain, Domain):
            raise StructureError(f"a structure needs a Domain first, got {type(domain).__name__}")
        self.domain = domain
        self.groups, self.duplicates = group_cliques(domain, cliques, tied)

    @classmethod
    def of_distinct(cls, domain: Domain, cliques: Iterable[Clique]) -> Structure:
        """Return a structure of cliques that were checked before: tuples of the domain's names, no two of one set.

        Thousands of candidates are scored a hundred times in one selection, and checks take most of the time.

        >>> Structure.of_distinct(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]).cells
        6
        """
        structure = cls.__new__(cls)
        structure.domain, structure.duplicates = domain, ()
        structure.groups = tuple((clique,) for clique in cliques)
        return structure

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
        ends = itertools.accumulate(self.sizes, initial=0)
        return tuple(slice(low, high) for low, high in itertools.pairwise(ends))

    @cached_property
    def cells(self) -> int:
        """The number of cells of all tables: the size of the structure, and of a model's potentials over it.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 5}), [("a", "b"), ("a",)]).cells
        12
        """
        return sum(self.sizes)

    @cached_property
    def _index(self) -> dict[Clique, int]:
        # Reversed, so that the first of equal cliques stays.
        return {clique: number for number, group in reversed([*enumerate(self.groups)]) for clique in group}

    @cached_property
    def _index_up_to_order(self) -> dict[frozenset[str], Clique]:
        return {frozenset(clique): clique for clique in reversed(self.cliques)}

    def find(self, clique: Sequence[str] | str) -> tuple[int, tuple[int, ...] | None]:
        """The group number of a clique and, if its names stand in another order, the transposition to apply.

        Raises StructureError for a clique that is not in the structure.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 5}), [("a", "b")]).find(("b", "a"))
        (0, (1, 0))
        """
        if not isinstance(clique, (tuple, Sequence)):  # the abstract class alone is slow to ask
            raise StructureError(f"a table is named by its clique, a tuple of attribute names, got {clique!r}")
        key = (clique,) if isinstance(clique, str) else tuple(clique)
        number = self._index.get(key)
        if number is not None:
            return number, None
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
        # Every clique that could contain the names: those of the name in the fewest cliques.
        around = min((self._members.get(name, []) for name in names), key=len, default=self.cliques)
        return min(
            (other for other in around if names <= frozenset(other)),
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

    @cached_property
    def nested(self) -> tuple[Clique, ...]:
        """Cliques strictly contained in another clique; they cost budget like any other."""
        # Only longer cliques can contain a clique: most structures have few lengths, and many cliques of each.
        longest = {name: sorted(cliques, key=len, reverse=True) for name, cliques in self._members.items()}
        anything = [max(self.cliques, key=len)]  # contains the empty clique

        def longer(clique: Clique) -> Iterator[Clique]:
            around = min((longest[name] for name in clique), key=len, default=anything)
            return itertools.takewhile(lambda other: len(other) > len(clique), around)

        return tuple(clique for clique in self.cliques if any(set(clique).issubset(other) for other in longer(clique)))

    @cached_property
    def maximal(self) -> tuple[Clique, ...]:
        """Cliques that lie in no other one, each set of attributes once.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b", "a")]).maximal
        (('b', 'a'),)
        """
        covered = set(map(frozenset, self.nested))
        distinct = dict.fromkeys(map(frozenset, self.cliques))
        return tuple(self._index_up_to_order[names] for names in distinct if names not in covered)

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """The attributes in no clique, of which tables over it say nothing; one with a single label needs no table.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 1}), [("a",)]).uncovered
        ('b',)
        """
        return tuple(one.name for one in self.domain if one.size > 1 and one.name not in self._members)

    def over(self, domain: Domain) -> Structure:
        """Return the same cliques over another domain that has their attributes, such as one with released bins.

        >>> Structure(Domain.from_sizes({"a": 2}), [("a",)]).over(Domain.from_sizes({"a": 5})).cells
        5
        """
        return Structure(domain, (), tied=self.groups)

    @classmethod
    def chain(cls, domain: Domain, order: int = 1) -> Structure:
        """Return edges between attributes at most `order` places apart in the domain.

        >>> Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))).cliques
        (('a', 'b'), ('b', 'c'))
        """
        return cls(domain, or_single(builders.chain(domain.names, order), domain.names))

    @classmethod
    def tree(cls, domain: Domain, branching: int = 2) -> Structure:
        """Return a balanced tree over the domain's attributes in order."""
        return cls(domain, or_single(builders.tree(domain.names, branching), domain.names))

    @classmethod
    def complete(cls, domain: Domain, order: int = 2) -> Structure:
        """Return all cliques of `order` attributes."""
        return cls(domain, or_single(builders.complete(domain.names, order), domain.names))

    @classmethod
    def grid(cls, domain: Domain, rows: int, columns: int) -> Structure:
        """Return a rows x columns grid over the domain's attributes, row by row."""
        return cls(domain, or_single(builders.grid(domain.names, rows, columns), domain.names))

    @classmethod
    def erdos_renyi(cls, domain: Domain, p: float, seed: int, *, connected: bool = True) -> Structure:
        """Return a random graph in which each pair of attributes is an edge with probability `p`."""
        return cls(domain, or_single(builders.erdos_renyi(domain.names, p, seed, connected=connected), domain.names))

    @cached_property
    def untold(self) -> tuple[str, ...]:
        """The `uncovered` attributes that no map derives from a column in a clique: models know nothing about them.

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
        """The columns that a map derives from another and that no clique joins with others, each after its source.

        They need no table, only the map.
        """
        joined = (group for group in self.groups if len(group) > 1 or len(group[0]) > 1)
        return self.domain.derived({name for group in joined for clique in group for name in clique})

    @cached_property
    def constrained(self) -> Structure:
        """The structure with a clique for each constraint that no clique of its own holds; itself where none is needed.

        What is exact of a model over a constrained domain is over this one's junction tree. Its own cliques come first,
        then those of constraints, tied groups last. Columns in no clique that a map derives get none.

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
        """`constrained`, without tables for columns that are `derived`: a clique of one such column becomes one of its
        source.

        >>> from dpgm_core.domain import Mapped
        >>> plain, to = Domain.from_sizes({"a": 3, "b": 2}), (("0", "0"), ("1", "1"), ("2", "1"))
        >>> domain = Domain(plain.attributes, [Mapped(name="x", columns=("a", "b"), to=to)])
        >>> structure = Structure(domain, [("a",), ("b",)])
        >>> structure.constrained.cliques, structure.narrowed.cliques
        ((('a',), ('b',), ('a', 'b')), (('a',),))
        """
        if not self.domain.scopes:
            return self
        sources = {one.column: one.of for one in self.derived}
        plain = [group[0] for group in self.groups if len(group) == 1]
        cliques = [clique for clique in plain if sources.keys().isdisjoint(clique)]
        covered = {name for clique in cliques for name in clique}
        for (name,) in (clique for clique in plain if not sources.keys().isdisjoint(clique)):
            while name in sources:
                name = sources[name]
            if name not in covered:
                covered.add(name)
                cliques.append((name,))
        return self._with_scopes(cliques, self.derived)

    def _with_scopes(self, plain: Sequence[Clique], derived: Iterable[Derived]) -> Structure:
        """These in place of the plain cliques, and what constraints need in addition; itself where nothing changes."""
        derived_names = {one.column for one in derived}
        sets = [frozenset(clique) for clique in plain]
        scopes = [scope for scope in self.domain.scopes if derived_names.isdisjoint(scope)]
        more = [scope for scope in scopes if not any(other.issuperset(scope) for other in sets)]
        if not more and list(plain) == [group[0] for group in self.groups if len(group) == 1]:
            return self
        return Structure(self.domain, [*plain, *more], tied=[group for group in self.groups if len(group) > 1])

    @cached_property
    def impossible(self) -> Mask | None:
        """The cells that some constraint alone rules out, (cells,); None where there are none.

        A cell of a tied group is ruled out if it is for all of its cliques.
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
        whole = np.concatenate(parts)
        whole.flags.writeable = False
        return whole if whole.any() else None

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
        """Return the structure with a clique for each attribute in no clique, so that every attribute is measured.

        >>> Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b")]).with_singletons().cliques
        (('a', 'b'), ('c',))
        """
        return Structure(self.domain, (), tied=[*self.groups, *(((name,),) for name in self.uncovered)])

    def untied(self) -> Structure:
        """Return the structure with a table for each clique, duplicates merged."""
        return Structure(self.domain, self.cliques)

    def only(self, number: int) -> Structure:
        """Return the structure with only one of the groups."""
        return Structure(self.domain, (), tied=[self.groups[number]])

    def measuring(self, cliques: Iterable[Clique]) -> Structure:
        """Return the structure of the tables that a release of these cliques measures.

        Each must be contained in one of this structure's cliques; one of a tied group stands for the group. Raises
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
        """Return sizes, triangulation and redundant cliques; reads no data.

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
        """Return cliques and tied groups as plain values, without the domain; `from_dict` reads them."""
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
                "a structure must be a table such as { graph = 'chain' }, or { selector = 'auto' } to have it chosen, "
                f"got {plain!r:.80}"
            )
        cliques, tied = cliques_of_table(domain.names, plain)
        if not read_singletons(plain):
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
        sizes = f"{len(self.domain)} attributes", f"{len(self.cliques)} cliques", f"{thousands(self.cells)} cells"
        return brief("Structure", *sizes)

    def _repr_html_(self) -> Html:
        facts = [("attributes", f"{len(self.domain):,}"), ("tables", f"{len(self.groups):,}")]
        facts += [("cells", thousands(self.cells)), ("in no clique", listed(self.uncovered) if self.uncovered else "")]
        rows = ((group_text(group), cells) for group, cells in zip(self.groups, self.sizes, strict=True))
        return card("Structure", facts, first(["clique", "cells"], rows, len(self.groups)))


def group_cliques(
    domain: Domain, cliques: Iterable[Sequence[str]], tied: Iterable[Iterable[Sequence[str]]]
) -> tuple[Groups, tuple[Clique, ...]]:
    """The groups, plain cliques first, and the cliques that were merged with an earlier one. Raises StructureError.

    >>> group_cliques(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b"), ("b", "a")], [])
    (((('a', 'b'),),), (('b', 'a'),))
    """
    plain: dict[frozenset[str], Clique] = {}
    duplicates = []
    for raw in cliques:
        clique = _checked_clique(domain, raw)
        if plain.setdefault(frozenset(clique), clique) is not clique:
            duplicates.append(clique)
    bundles = []
    for number, raw_group in enumerate(tied):
        bundle = tuple(_checked_clique(domain, raw) for raw in raw_group)
        _check_group(domain, number, bundle)
        if len(bundle) > 1:
            bundles.append(bundle)
        elif plain.setdefault(frozenset(bundle[0]), bundle[0]) is not bundle[0]:  # tied to nothing: plain
            duplicates.append(bundle[0])
    groups = (*((clique,) for clique in plain.values()), *bundles)
    if not groups:
        raise StructureError("a structure needs at least one clique, such as ('a', 'b')")
    return groups, tuple(duplicates)


def _checked_clique(domain: Domain, raw: Sequence[str]) -> Clique:
    if not isinstance(raw, tuple) and (isinstance(raw, str) or not isinstance(raw, Sequence)):
        raise StructureError(f"a clique must be a tuple of attribute names, got {raw!r}; write ({raw!r},) for one")
    clique = tuple(raw)
    for name in clique:
        if name not in domain:
            known = did_you_mean(name, domain.names)
            raise StructureError(f"clique {clique!r} names {name!r}, which is not in the domain{known}")
    if len(set(clique)) < len(clique):
        raise StructureError(f"clique {clique!r} names an attribute twice; name each once")
    return clique


def _check_group(domain: Domain, number: int, bundle: tuple[Clique, ...]) -> None:
    if not bundle:
        raise StructureError(f"tied group {number} is empty; name the cliques that share a table")
    shape = domain.shape(bundle[0])
    for clique in bundle:
        if domain.shape(clique) != shape:
            raise StructureError(
                f"tied group {number}: {clique!r} has shape {domain.shape(clique)}, but {bundle[0]!r} has "
                f"{shape}; cliques share a table only if their shapes agree axis by axis"
            )
    if len({frozenset(clique) for clique in bundle}) < len(bundle):
        raise StructureError(f"tied group {number} holds a clique twice (up to order); name each once")


def group_text(group: Sequence[Clique]) -> str:
    """A group for people: its first clique, and how many are tied to that.

    >>> group_text([("a", "b")]), group_text([("a", "b"), ("b", "c")])
    ('a, b', 'a, b and 1 tied to it')
    """
    first = listed(group[0], 8)
    return first if len(group) == 1 else f"{first} and {len(group) - 1} tied to it"


# --------------------------------------------------------------------------------------------------
# Sizes of a structure, for people


@frozen(kw_only=True)
class StructureReport:
    """Sizes of a structure, as `Structure.describe` returns them; exact integers.

    Attributes
    ----------
    attributes, cliques, groups, components : int
        Numbers of attributes, cliques, tables and connected components.
    cells : int
        Cells of all tables, each of which has a potential.
    treewidth : int
        Attributes in the largest cluster of the triangulated graph, less one.
    triangulated_cells, peak_cells : int
        Cells of all clusters that exact inference works through, and of the largest.
    duplicates : tuple of cliques
        Cliques that were merged with an equal one.
    nested : tuple of cliques
        Cliques contained in another one.
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
        """Bytes of the largest cluster in float64, which bounds any single array of exact inference."""
        return 8 * self.peak_cells

    def __repr__(self) -> str:
        sizes = f"{self.attributes} attributes", f"{self.cliques} cliques", f"{thousands(self.cells)} cells"
        return brief("StructureReport", *sizes, f"treewidth {self.treewidth}")

    def _repr_html_(self) -> Html:
        sizes = ["attributes", "cliques", "groups", "cells"]
        sizes += ["components", "treewidth", "triangulated_cells", "peak_cells"]
        facts = [(what.replace("_", " "), thousands(getattr(self, what))) for what in sizes]
        facts += [("memory", human_bytes(self.memory)), ("merged duplicates", _listed(self.duplicates))]
        return card("StructureReport", [*facts, ("contained in another clique", _listed(self.nested))])

    def __str__(self) -> str:
        cells, triangulated, peak = map(thousands, (self.cells, self.triangulated_cells, self.peak_cells))
        lines = [
            f"{self.attributes} attributes, {self.cliques} cliques in {self.groups} tables, {cells} cells",
            f"{self.components} connected component(s), treewidth {self.treewidth}",
            f"triangulated: {triangulated} cells, largest cluster {peak} cells ({human_bytes(self.memory)})",
        ]
        if self.duplicates:
            lines.append(f"merged duplicates: {_listed(self.duplicates)}")
        if self.nested:
            lines.append(f"contained in another clique: {_listed(self.nested)}")
        return "\n".join(lines)


def _listed(cliques: Sequence[Clique]) -> str:
    shown = ", ".join("(" + ", ".join(map(clipped, clique)) + ")" for clique in cliques[:5])
    return shown + (f", ... {len(cliques)} in all" if len(cliques) > 5 else "")
