"""Queries: validation of arguments, evidence, and provenance of answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import frozen

from dpgm_core.domain.constraints import Ordered
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Derived
from dpgm_core.errors import DomainError, StructureError, did_you_mean
from dpgm_core.models.within_bins import bin_distribution
from dpgm_core.privacy.contrasts import has_all_contrasts
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "BY_DEFINITION",
    "BY_STRUCTURE",
    "Basis",
    "Evidence",
    "MEASURED",
    "NOT_MEASURED",
    "Unmeasured",
    "check_queries",
    "encode_evidence",
    "quote_names",
    "read_evidence",
    "read_names",
    "read_queries",
    "refuse_unmeasured",
]


# --- Arguments ------------------------------------------------------------------------------------


def read_names(
    domain: Domain, attributes: Sequence[str] | str, evidence: Mapping[str, object], latent: Collection[str] = ()
) -> Clique:
    """Return the queried attributes, each once and none of them in the evidence. Raises StructureError.

    latent: names of latent classes, which the domain lacks.
    """
    if not isinstance(attributes, (str, Iterable)):
        raise StructureError(f"a query is the names of attributes, got {type(attributes).__name__}")
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if not names:
        raise StructureError("name at least one attribute to query")
    _refuse_latent(names, latent)
    for name in names:
        if name not in domain:
            raise StructureError(f"the model has no attribute {name!r}{did_you_mean(name, domain.names)}")
        if name in evidence:
            raise StructureError(f"attribute {name!r} is both asked for and given; leave it out of one")
    if len(set(names)) < len(names):
        raise StructureError(f"query {names!r} names an attribute twice")
    return names


def check_queries(cliques: Iterable[Sequence[str] | str]) -> Iterable[Sequence[str] | str]:
    """Return a list of queries unchanged. Raises StructureError for a single name, read letter by letter."""
    if isinstance(cliques, str) or not isinstance(cliques, Iterable):
        shown = repr(cliques)[:40]
        raise StructureError(f"marginals_of takes a list of cliques, got {shown}; write [{shown}] for one")
    return cliques


def read_queries(
    domain: Domain,
    cliques: Iterable[Sequence[str] | str],
    given: Mapping[str, object],
    left_out: Collection[str],
    latent: Collection[str] = (),
) -> tuple[list[Clique], dict[str, int]]:
    """Return queries as tuples of names and the evidence as codes; refuse attributes that the model leaves out."""
    queries = [read_names(domain, clique, given, latent) for clique in check_queries(cliques)]
    fixed = encode_evidence(domain, given, latent)
    refuse_unmeasured((*itertools.chain.from_iterable(queries), *fixed), left_out)
    return queries, fixed


def encode_evidence(domain: Domain, evidence: Mapping[str, object], latent: Collection[str] = ()) -> dict[str, int]:
    """Return attribute -> code for evidence given as labels or codes.

    Raises StructureError and DomainError, also for evidence that a constraint rules out.
    """
    _refuse_latent(evidence, latent)
    for name in evidence:
        if name not in domain:
            raise StructureError(f"given names {name!r}, which the model lacks{did_you_mean(name, domain.names)}")
    codes = {name: domain[name].label_code(label) for name, label in evidence.items()}
    for one in domain.rules:
        if one.mask[tuple(codes.get(name, slice(None)) for name in one.columns)].all():
            shown = ", ".join(f"{name}={domain[name].labels[codes[name]]}" for name in one.columns if name in codes)
            raise DomainError(f"what is given, {shown}, is impossible: constraint {one.name!r} rules it out")
    return codes


# --- The basis of an answer -----------------------------------------------------------------------

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
    contrasts: those among them whose cliques were measured only by their products. derived: the columns that no release
    measured, but one that determines them.
    """

    def __init__(self, domain: Domain, structures: Iterable[Structure], contrasts: Collection[Structure] = ()) -> None:
        different = dict.fromkeys(structures)  # rounds are many releases of one structure
        unseen = [set(one.uncovered) for one in different]
        nowhere = set.intersection(*unseen) if unseen else set()
        self.unmeasured = tuple(name for name in domain.names if name in nowhere)
        # A column derived from a measured one is known like that one, although no table contains it.
        sources = {one.column: one for one in domain.derived(set(domain.names) - nowhere)}
        traced = {name: _trace(one, sources) for name, one in sources.items()}
        self.derived = {name: one for name, one in traced.items() if one.of not in nowhere}
        self.unmeasured = tuple(name for name in self.unmeasured if name not in self.derived)
        self._known = bool(different)
        self._single = {one.name for one in domain if one.size == 1}
        # A table that cliques share is their sum: it determines none of them without the assumption that ties them.
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
        queried = frozenset(self.derived[name].of if name in self.derived else name for name in names) - self._single
        if not self._known or not queried:
            return BY_DEFINITION
        if not queried.isdisjoint(self.unmeasured):
            return NOT_MEASURED
        around = min((self._around.get(name, []) for name in queried), key=len)
        return MEASURED if any(queried <= clique for clique in around) else BY_STRUCTURE


def _trace(one: Derived, sources: Mapping[str, Derived]) -> Derived:
    """Return a derived column in terms of one that is not derived."""
    while one.of in sources:
        before = sources[one.of]
        one = Derived(column=one.column, of=before.of, code=one.code[before.code])
    return one


def _refuse_latent(names: Iterable[str], latent: Collection[str]) -> None:
    """Refuse, with StructureError, a query that names a latent class."""
    for name in names:
        if name in latent:
            raise StructureError(f"{name!r} is a latent class of the model, not an attribute of the records")


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
    """Return names for an error or a note: the first few, and how many there are."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f", ... {len(names)} in all" if len(names) > most else "")


# --- Evidence -------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Evidence:
    """The evidence that all records share. codes: attribute -> code. places: of evidence given as values, on the axis.

    >>> read_evidence(Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}}), {"sex": "M"}).codes
    {'sex': 1}
    """

    codes: Mapping[str, int]
    places: Mapping[str, float]

    def stamp(self, domain: Domain) -> dict[str, Any]:
        """Return the entry of the evidence in the stamp of records; empty without evidence."""
        return {"given": {name: domain[name].labels[code] for name, code in self.codes.items()}} if self.codes else {}

    def bins(self, domain: Domain) -> dict[str, str]:
        """Return attribute -> label of the bin, for evidence given as values."""
        return {name: domain[name].labels[self.codes[name]] for name in self.places}


def read_evidence(domain: Domain, values: Mapping[str, Any] | None, latent: Collection[str] = ()) -> Evidence:
    """Read evidence as a user writes it. Raises StructureError and DomainError, also where orders rule it out."""
    codes = encode_evidence(domain, values or {}, latent)
    places = {}
    for name, value in (values or {}).items():
        one = domain[name]
        place = None if one.edges is None or value in one.labels else one.place(value)
        dist = bin_distribution(one)
        if place is not None and dist is not None and math.isfinite(place) and dist.has(place):
            places[name] = place
    _check_orders(domain, places)
    return Evidence(codes=codes, places=places)


def _check_orders(domain: Domain, places: Mapping[str, float]) -> None:
    """Refuse values that an order, or a chain of orders, forbids though their bins do not, such as two in one bin."""
    orders = [one for one in domain.constraints if isinstance(one, Ordered)]
    for start, place in places.items():
        waiting, seen = [(start, False)], set[tuple[str, bool]]()
        while waiting:
            name, strict = waiting.pop()
            for one in orders:
                step = one.columns[1], strict or one.strict
                if one.columns[0] != name or step in seen:
                    continue
                seen.add(step)
                waiting.append(step)
                other = places.get(step[0])
                if other is not None and (place > other or (step[1] and place == other)):
                    raise DomainError(
                        f"the values given of {start!r} and {step[0]!r} are impossible: constraint {one.name!r} rules "
                        "them out"
                    )
