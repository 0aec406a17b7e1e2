"""The basis of an answer: released tables, the model's structure, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.noise.contrasts import has_all_contrasts
from dpgm_core.structure import Structure

__all__ = [
    "BY_DEFINITION",
    "BY_STRUCTURE",
    "MEASURED",
    "NOT_MEASURED",
    "Basis",
    "Unmeasured",
    "refuse_unmeasured",
    "quote_names",
]

#: The attributes lie inside one released table.
MEASURED = "measured"
#: Each attribute was measured, but not together: the answer needs independences or tied tables.
BY_STRUCTURE = "by structure"
#: One of them is in no released table.
NOT_MEASURED = "not measured"
#: The model carries no release, or all attributes have one label only.
BY_DEFINITION = "by definition"


#: Treatment of attributes that no release measured: left out, or as the potentials have them.
Unmeasured: TypeAlias = Literal["omit", "uniform"]


class Basis:
    """What the releases behind a model measured.

    domain: the model's. structures: those of its releases; without any, nothing was measured and nothing is unknown.
    contrasts: those among them whose cliques were measured only by their products.

    >>> structure = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), [("a", "b"), ("b", "c")])
    >>> basis = Basis(structure.domain, [structure])
    >>> basis.unmeasured, [basis.standing(names) for names in (["a"], ["b", "a"], ["a", "c"], ["a", "d"])]
    (('d',), ['measured', 'measured', 'by structure', 'not measured'])
    """

    def __init__(self, domain: Domain, structures: Iterable[Structure], contrasts: Collection[Structure] = ()) -> None:
        different = dict.fromkeys(structures)  # rounds are many releases of one structure
        unseen = [set(one.uncovered) for one in different]
        nowhere = set.intersection(*unseen) if unseen else set()
        self.unmeasured = tuple(name for name in domain.names if name in nowhere)
        # What a map tells from a column that was measured is known as that is, though no table holds it.
        sources = {one.column: one.of for one in domain.derived(set(domain.names) - nowhere)}
        self._told = {name: of for name in sources if (of := _teller(name, sources)) not in nowhere}
        self.unmeasured = tuple(name for name in self.unmeasured if name not in self._told)
        self._known = bool(different)
        self._single = {one.name for one in domain if one.size == 1}
        # A table that cliques share is their sum: it tells none of them without the assumption that ties them.
        tables = {
            frozenset(group[0])
            for one in different
            for group in one.groups
            if len(group) == 1 and (one not in contrasts or has_all_contrasts(one, group[0]))
        }
        self._around: dict[str, list[frozenset[str]]] = {}
        for clique in tables:
            for name in clique:
                self._around.setdefault(name, []).append(clique)

    def standing(self, names: Iterable[str]) -> str:
        """Return the basis of an answer about these attributes together, evidence included."""
        queried = frozenset(self._told.get(name, name) for name in names) - self._single
        if not self._known or not queried:
            return BY_DEFINITION
        if not queried.isdisjoint(self.unmeasured):
            return NOT_MEASURED
        around = min((self._around.get(name, []) for name in queried), key=len)
        return MEASURED if any(queried <= clique for clique in around) else BY_STRUCTURE


def _teller(name: str, sources: Mapping[str, str]) -> str:
    while name in sources:
        name = sources[name]
    return name


def refuse_unmeasured(names: Iterable[str], left_out: Collection[str]) -> None:
    """Refuse, with StructureError, a query that names an attribute that no release measured."""
    nothing = set(left_out)
    unknown = [name for name in dict.fromkeys(names) if name in nothing]
    if unknown:
        raise StructureError(
            f"no release behind the model measured {quote_names(unknown)}, so it has no answer about it; leave it out, "
            "release a table that holds it, or have it taken as uniform: --unmeasured uniform, in Python "
            "model.using(unmeasured='uniform')"
        )


def quote_names(names: Sequence[str], most: int = 5) -> str:
    """Return names for an error or a note: the first few, and how many there are.

    >>> quote_names(["a", "b"]), quote_names(["a", "b", "c"], most=2)
    ("'a', 'b'", "'a', 'b', ... 3 in all")
    """
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f", ... {len(names)} in all" if len(names) > most else "")
