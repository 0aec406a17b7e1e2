"""Directed acyclic graphs over a domain: the structure of a Bayesian network."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from dpgm_core._util.arrays import FloatArray, aligned
from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.constraints import Mask
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError, TooLarge, did_you_mean, listed, thousands
from dpgm_core.structure.builders import families
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["Dag", "MOST_CELLS", "check_dag"]

#: Largest table of a family, cells.
MOST_CELLS = 10**7
#: Largest probability of what a constraint rules out that counts as rounding.
_ROUNDING = 1e-9


class Dag:
    """A directed acyclic graph whose nodes are the attributes of a domain.

    Parameters
    ----------
    domain : Domain
        The attributes.
    parents : mapping of str to sequences of str
        Attribute -> its parents. An attribute without an entry is a root.

    Raises
    ------
    StructureError
        For unknown attributes, repeated parents and cycles.
    TooLarge
        For a family of more than 10,000,000 cells; no table is allocated.

    Examples
    --------
    >>> dag = Dag(Domain.from_sizes({"rain": 2, "sprinkler": 2, "wet": 2}), {"wet": ["rain", "sprinkler"]})
    >>> dag.families, dag.maximal
    ((('rain',), ('sprinkler',), ('wet', 'rain', 'sprinkler')), (('wet', 'rain', 'sprinkler'),))
    """

    domain: Domain
    families: tuple[Clique, ...]

    def __init__(self, domain: Domain, parents: Mapping[str, Sequence[str]]) -> None:
        if not isinstance(domain, Domain):
            raise StructureError(f"a Dag needs a Domain first, got {type(domain).__name__}")
        self.domain = domain
        self.families = families(domain.names, parents)
        for family in self.families:
            cells = math.prod(domain.shape(family))
            if cells > MOST_CELLS:
                raise TooLarge(
                    f"the family of {family[0]!r} with its {len(family) - 1:,} parents has {thousands(cells)} cells; "
                    f"at most {MOST_CELLS:,} can be counted, so take parents out or coarsen labels"
                )

    @classmethod
    def of(cls, structure: Structure) -> Dag:
        """Return the graph of a structure whose cliques are families: the first name is the child, the rest parents.

        Every attribute must be first in one clique, as `Structure.from_dict(domain, {"parents": ...})`, `read_bif` and
        `Dag.structure` make it. Raises StructureError.

        >>> Dag.of(Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b", "a")])).parents
        {'a': (), 'b': ('a',)}
        """
        if not isinstance(structure, Structure):
            raise StructureError(f"a directed graph is read from a Structure, got {type(structure).__name__}")
        wrong = (
            "this structure is no directed graph: {}; a Bayesian network has one clique (child, parents...) for each "
            "attribute, as parents = {{ ... }} or bif = ... in [structure] makes it"
        )
        if max(structure.multiplicities) > 1:
            raise StructureError(wrong.format("some of its cliques are tied"))
        parents: dict[str, Clique] = {}
        for clique in structure.cliques:
            if not clique:
                raise StructureError(wrong.format("it has the empty clique"))
            if clique[0] in parents:
                raise StructureError(wrong.format(f"{clique[0]!r} stands first in two cliques"))
            parents[clique[0]] = clique[1:]
        for name in structure.domain.names:
            if name not in parents:
                raise StructureError(wrong.format(f"{name!r} stands first in no clique"))
        return cls(structure.domain, parents)

    @cached_property
    def parents(self) -> dict[str, Clique]:
        """Attribute -> its parents, in the order given; all attributes, in the domain's order."""
        return {family[0]: family[1:] for family in self.families}

    @cached_property
    def children(self) -> dict[str, Clique]:
        """Attribute -> its children, in the domain's order."""
        children: dict[str, list[str]] = {name: [] for name in self.domain.names}
        for child, *above in self.families:
            for parent in above:
                children[parent].append(child)
        return {name: tuple(below) for name, below in children.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The attributes, parents before children; as near to the domain's order as that allows.

        >>> Dag(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), {"a": ["c"]}).order
        ('b', 'c', 'a')
        """
        names = self.domain.names
        place = {name: at for at, name in enumerate(names)}
        waiting = {name: len(above) for name, above in self.parents.items()}
        free = [place[name] for name, count in waiting.items() if not count]
        heapq.heapify(free)
        order = []
        while free:
            name = names[heapq.heappop(free)]
            order.append(name)
            for child in self.children[name]:
                waiting[child] -= 1
                if not waiting[child]:
                    heapq.heappush(free, place[child])
        return tuple(order)

    @cached_property
    def maximal(self) -> tuple[Clique, ...]:
        """The families that lie in no other one: their tables hold every family's counts."""
        return self.structure().maximal

    @cached_property
    def heights(self) -> dict[str, int]:
        """Attribute -> arcs of the longest directed path from it to a leaf; 0 for a leaf.

        >>> Dag(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), {"b": ["a"], "c": ["a", "b"]}).heights
        {'a': 2, 'b': 1, 'c': 0}
        """
        heights: dict[str, int] = {}
        for name in reversed(self.order):
            heights[name] = max((1 + heights[child] for child in self.children[name]), default=0)
        return {name: heights[name] for name in self.domain.names}

    @property
    def out_degrees(self) -> dict[str, int]:
        """Attribute -> the number of its children."""
        return {name: len(below) for name, below in self.children.items()}

    @property
    def parameters(self) -> int:
        """Free parameters of all conditional tables together.

        >>> Dag(Domain.from_sizes({"a": 2, "b": 3}), {"b": ["a"]}).parameters
        5
        """
        return sum(
            math.prod(self.domain.shape(above)) * (self.domain[name].size - 1) for name, above in self.parents.items()
        )

    def markov_blanket(self, name: str) -> frozenset[str]:
        """Return parents, children and the children's other parents. Raises StructureError for an unknown name.

        >>> sorted(Dag(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), {"c": ["a", "b"]}).markov_blanket("a"))
        ['b', 'c']
        """
        if not isinstance(name, str) or name not in self.parents:
            raise StructureError(f"{name!r} is no attribute of the graph{did_you_mean(name, self.domain.names)}")
        around = {*self.parents[name], *self.children[name]}
        for child in self.children[name]:
            around.update(self.parents[child])
        return frozenset(around - {name})

    def possible(self, child: str) -> Mask | None:
        """Return the cells of the family's table that constraints of the domain leave possible; None where all are."""
        impossible = self.domain.impossible((child, *self.parents[child]))
        return None if impossible is None else ~impossible

    def check_constraints(self, cpds: Mapping[str, FloatArray] | None = None) -> None:
        """Refuse a graph whose conditional tables cannot express the domain's constraints as zeros.

        Each constraint must lie in the family of one of its attributes, and each state of parents that the other
        families leave possible needs a possible code of the child. Then ancestral sampling never reaches a state
        without a possible code, and tables with zeros there have log Z = 0. The condition is sufficient and needs no
        inference. cpds: P(child | parents) by child, which must have these zeros. Raises StructureError.

        >>> from dpgm_core.domain import Ordered
        >>> plain = Domain.from_sizes(dict.fromkeys("ab", 2))
        >>> domain = Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))])
        >>> Dag(domain, {"b": ["a"]}).check_constraints()
        >>> Dag(domain, {}).check_constraints()
        Traceback (most recent call last):
        dpgm_core.errors.StructureError: constraint 'x' lies in no family of the graph; make one of its columns ...
        """
        for one in self.domain.rules:
            if not set(self.domain.undetermined).isdisjoint(one.columns):
                raise StructureError(
                    f"constraint {one.name!r} is about bins or labels that are still to be found, so that conditional "
                    "tables may not hold it; take a learner of cliques, such as 'eb-map'"
                )
            if not any(set(one.columns) <= set(family) and family[0] in one.columns for family in self.families):
                raise StructureError(
                    f"constraint {one.name!r} lies in no family of the graph; make one of its columns a child of the "
                    "others, or take a learner of cliques, such as 'eb-map'"
                )
        for child, above in self.parents.items():
            there = self.possible(child) if self.domain.constraints else None
            if there is None:
                continue
            reached = np.ones(self.domain.shape(above), dtype=bool)
            for other in above:
                scope = [name for name in above if name == other or name in self.parents[other]]
                ruled = self.domain.impossible(scope)
                if ruled is not None:
                    reached &= ~aligned(ruled, scope, above)
            if (reached & ~there.any(axis=0)).any():
                raise StructureError(
                    f"constraints leave {child!r} no label for some of its parents' labels, which the graph leaves "
                    "possible; make its parents children of each other, or take a learner of cliques, such as 'eb-map'"
                )
            lost = 0.0 if cpds is None else np.where(there, 0.0, cpds[child]).sum(axis=0)
            if (np.asarray(lost > _ROUNDING) & there.any(axis=0)).any():
                raise StructureError(
                    f"the conditional table of {child!r} gives a probability to what a constraint rules out; it must "
                    "be 0 there"
                )

    def structure(self) -> Structure:
        """Return the families as cliques, children first, in the domain's order; `Dag.of` reads them."""
        return Structure(self.domain, self.families)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Dag) and self.families == other.families and self.domain == other.domain
        )

    def __hash__(self) -> int:
        return hash((self.domain, self.families))

    def __repr__(self) -> str:
        return f"Dag({len(self.families)} attributes, {sum(len(family) - 1 for family in self.families)} arcs)"

    def _repr_html_(self) -> Html:
        facts = [("attributes", f"{len(self.families):,}")]
        facts += [("arcs", f"{sum(len(family) - 1 for family in self.families):,}")]
        rows = ((child, listed(above, 8) if above else "") for child, *above in self.families)
        return card("Dag", facts, first(["attribute", "parents"], rows, len(self.families)))


def check_dag(dag: object) -> Dag:
    """Return `dag`. Raises StructureError for another type, such as a Structure.

    >>> check_dag(Dag(Domain.from_sizes({"a": 2}), {}))
    Dag(1 attributes, 0 arcs)
    """
    if not isinstance(dag, Dag):
        raise StructureError(f"a Dag is needed, got {type(dag).__name__}; Dag.of(structure) makes one")
    return dag
