"""Cliques over a domain in groups: sizes, offsets of tables, and lookup of cliques."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError, did_you_mean
from dpgm_core.printable import listed
from dpgm_core.structure.graphs import Clique

__all__ = ["Cliques", "Groups", "group_text", "group_cliques"]

#: Cliques that share one parameter table; most groups are of one.
Groups = tuple[tuple[Clique, ...], ...]


class Cliques:
    """A domain and groups of cliques over it; the base of `Structure`, which explains."""

    domain: Domain
    groups: Groups

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """All cliques, group by group.

        >>> from dpgm_core import Structure
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

        >>> from dpgm_core import Structure
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

        >>> from dpgm_core import Structure
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

        >>> from dpgm_core import Structure
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
        longest = {name: sorted(cliques, key=len, reverse=True) for name, cliques in self._members.items()}
        anything = [max(self.cliques, key=len)]  # contains the empty clique

        def longer(clique: Clique) -> Iterator[Clique]:
            around = min((longest[name] for name in clique), key=len, default=anything)
            return itertools.takewhile(lambda other: len(other) > len(clique), around)

        return tuple(clique for clique in self.cliques if any(set(clique).issubset(other) for other in longer(clique)))

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """The attributes in no clique, of which tables over it say nothing; one with a single label needs no table.

        >>> from dpgm_core import Structure
        >>> Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 1}), [("a",)]).uncovered
        ('b',)
        """
        return tuple(one.name for one in self.domain if one.size > 1 and one.name not in self._members)


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
        clique = _checked(domain, raw)
        if plain.setdefault(frozenset(clique), clique) is not clique:
            duplicates.append(clique)
    bundles = []
    for number, raw_group in enumerate(tied):
        bundle = tuple(_checked(domain, raw) for raw in raw_group)
        _check_group(domain, number, bundle)
        if len(bundle) > 1:
            bundles.append(bundle)
        elif plain.setdefault(frozenset(bundle[0]), bundle[0]) is not bundle[0]:  # tied to nothing: plain
            duplicates.append(bundle[0])
    groups = (*((clique,) for clique in plain.values()), *bundles)
    if not groups:
        raise StructureError("a structure needs at least one clique, such as ('a', 'b')")
    return groups, tuple(duplicates)


def _checked(domain: Domain, raw: Sequence[str]) -> Clique:
    if isinstance(raw, str) or not isinstance(raw, Sequence):
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
