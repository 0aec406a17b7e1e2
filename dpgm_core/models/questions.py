"""Checks of queries: names and labels as users write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dpgm_core.domain import Domain
from dpgm_core.errors import DomainError, StructureError, did_you_mean
from dpgm_core.structure import Clique

__all__ = ["encode_evidence", "check_queries", "read_names"]


def read_names(domain: Domain, attributes: Sequence[str] | str, evidence: Mapping[str, object]) -> Clique:
    """Return the queried attributes, each once and none of them in the evidence. Raises StructureError.

    >>> read_names(Domain.from_sizes({"a": 2, "b": 2}), "a", {"b": 0})
    ('a',)
    """
    if not isinstance(attributes, (str, Iterable)):
        raise StructureError(f"a query is the names of attributes, got {type(attributes).__name__}")
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if not names:
        raise StructureError("name at least one attribute to query")
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


def encode_evidence(domain: Domain, evidence: Mapping[str, object]) -> dict[str, int]:
    """Return attribute -> code for evidence given as labels or codes.

    Raises StructureError and DomainError, also for evidence that a constraint rules out.

    >>> encode_evidence(Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}}), {"sex": "M"})
    {'sex': 1}
    """
    for name in evidence:
        if name not in domain:
            raise StructureError(f"given names {name!r}, which the model lacks{did_you_mean(name, domain.names)}")
    codes = {name: domain[name].label_code(label) for name, label in evidence.items()}
    for one in domain.rules:
        if one.mask[tuple(codes.get(name, slice(None)) for name in one.columns)].all():
            shown = ", ".join(f"{name}={domain[name].labels[codes[name]]}" for name in one.columns if name in codes)
            raise DomainError(f"what is given, {shown}, is impossible: constraint {one.name!r} rules it out")
    return codes
