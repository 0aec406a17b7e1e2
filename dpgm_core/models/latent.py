"""Latent classes: attributes of a model's structure that no record has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["SCHEMA", "checked_latent", "file_schema", "hide", "observed_structure", "refuse_sums"]

#: Version of the model file format. Versions 1 (at most one release) and 2 (no latent classes) remain readable.
SCHEMA = 3
_SCHEMA_WITHOUT_LATENT = 2


def checked_latent(structure: Structure, latent: Sequence[str]) -> tuple[str, ...]:
    """Return the names of latent classes. Raises StructureError for names that the structure lacks or that are all.

    >>> checked_latent(Structure(Domain.from_sizes({"h": 2, "a": 3}), [("h", "a")]), ["h"])
    ('h',)
    """
    names = tuple(latent)
    domain = structure.domain
    for name in names:
        if name not in domain:
            raise StructureError(f"latent class {name!r} is not in the domain of the structure; add it there")
        if any(name in one.columns for one in domain.constraints):
            raise StructureError(f"latent class {name!r} is in a constraint, and constraints are about records")
    if len(set(names)) < len(names) or len(names) == len(domain):
        raise StructureError("latent classes must be named once each, and leave at least one attribute of the records")
    return names


def hide(domain: Domain, latent: Collection[str]) -> Domain:
    """Return the domain without its latent classes; itself where there are none.

    >>> hide(Domain.from_sizes({"h": 2, "a": 3}), ("h",))
    Domain(a: 3)
    """
    return domain.subset(name for name in domain.names if name not in latent) if latent else domain


def observed_structure(structure: Structure, latent: Collection[str], measured: Iterable[Clique]) -> Structure:
    """Return the structure over the attributes of records: that of the measured tables where some are latent.

    >>> whole = Structure(Domain.from_sizes({"h": 2, "a": 3, "b": 2}), [("h", "a"), ("h", "b")])
    >>> observed_structure(whole, ("h",), [("a", "b")]).cliques, observed_structure(whole, ("h",), []).cliques
    ((('a', 'b'),), (('a',), ('b',)))
    """
    if not latent:
        return structure
    domain = hide(structure.domain, latent)
    return Structure(domain, list(measured) or [(name,) for name in domain.names])


def file_schema(latent: Collection[str]) -> int:
    """Return the version of a model's file: an older dpgm must not take a class for an attribute of the records.

    >>> file_schema([]), file_schema(["h"])
    (2, 3)
    """
    return SCHEMA if latent else _SCHEMA_WITHOUT_LATENT


def refuse_sums(what: str, latent: Collection[str]) -> None:
    """Refuse, with InferenceError, an answer about whole records that needs a sum over the latent classes inside it."""
    if latent:
        raise InferenceError(
            f"the model has latent classes, so {what} has no closed form; ask for marginals or estimate it from samples"
        )
