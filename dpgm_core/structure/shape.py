"""Structures: a domain, cliques over it, and tied groups of cliques that share one parameter table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpgm_core.constraints.forms import Mask
from dpgm_core.constraints.resolved import Derived
from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.markup import Html, card, first
from dpgm_core.printable import brief, listed, thousands
from dpgm_core.structure import graphs, ready_made
from dpgm_core.structure.cliques import Cliques, group_cliques, group_text
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.reading import cliques_of_table, or_single, read_singletons
from dpgm_core.structure.report import StructureReport

__all__ = ["Structure"]


class Structure(Cliques):
    """A domain, cliques of any order over it, and optionally tied groups of cliques with one table each.

    Parameters
    ----------
    domain : Domain
        The attributes.
    cliques : iterable of sequences of str
        Attribute names, in the order of the table's axes. Of cliques equal up to order the first is used.
    tied : iterable of groups of cliques
        Each group shares one parameter table. Its cliques must be distinct and have the same shape, axis by axis. The
        table of a group is the sum over its cliques, and its total is (number of cliques) * N.

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
        self.groups, self.duplicates = group_cliques(domain, cliques, tied)

    def over(self, domain: Domain) -> Structure:
        """Return the same cliques over another domain that has their attributes, such as one with released bins.

        >>> Structure(Domain.from_sizes({"a": 2}), [("a",)]).over(Domain.from_sizes({"a": 5})).cells
        5
        """
        plain = [group[0] for group in self.groups if len(group) == 1]
        return Structure(domain, plain, tied=[group for group in self.groups if len(group) > 1])

    @classmethod
    def chain(cls, domain: Domain, order: int = 1) -> Structure:
        """Return edges between attributes at most `order` places apart in the domain.

        >>> Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))).cliques
        (('a', 'b'), ('b', 'c'))
        """
        return cls(domain, or_single(ready_made.chain(domain.names, order), domain.names))

    @classmethod
    def tree(cls, domain: Domain, branching: int = 2) -> Structure:
        """Return a balanced tree over the domain's attributes in order."""
        return cls(domain, or_single(ready_made.tree(domain.names, branching), domain.names))

    @classmethod
    def complete(cls, domain: Domain, order: int = 2) -> Structure:
        """Return all cliques of `order` attributes."""
        return cls(domain, or_single(ready_made.complete(domain.names, order), domain.names))

    @classmethod
    def grid(cls, domain: Domain, rows: int, columns: int) -> Structure:
        """Return a rows x columns grid over the domain's attributes, row by row."""
        return cls(domain, or_single(ready_made.grid(domain.names, rows, columns), domain.names))

    @classmethod
    def erdos_renyi(cls, domain: Domain, p: float, seed: int, *, connected: bool = True) -> Structure:
        """Return a random graph in which each pair of attributes is an edge with probability `p`."""
        return cls(domain, or_single(ready_made.erdos_renyi(domain.names, p, seed, connected=connected), domain.names))

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

        >>> from dpgm_core.constraints import Mapped
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
        """These in place of the plain cliques, and what constraints need besides; itself where nothing changes."""
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
        plain = [group[0] for group in self.groups if len(group) == 1]
        tied = [group for group in self.groups if len(group) > 1]
        return Structure(self.domain, [*plain, *((name,) for name in self.uncovered)], tied=tied)

    def untied(self) -> Structure:
        """Return the structure with a table for each clique, duplicates merged."""
        return Structure(self.domain, self.cliques)

    def only(self, number: int) -> Structure:
        """Return the structure with only one of the groups."""
        group = self.groups[number]
        return Structure(self.domain, group if len(group) == 1 else (), tied=(group,) if len(group) > 1 else ())

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
