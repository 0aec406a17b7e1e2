"""Domains and graphs from BIF files, without their probabilities.

A network has no place for a value that is none of its labels, and a file of records may hold any: a slip of the pen, an
empty field, another spelling of every label. Readers of networks send such values to the first label, which counts them
as an answer that nobody gave. So a domain made here has a label of its own for them, unless the owner names one that
they shall be counted as. A label more makes the tables larger; the remark says so, and how to do without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpgm_core.attribute import Attribute
from dpgm_core.domain import Domain
from dpgm_core.errors import DomainError, StructureError, did_you_mean
from dpgm_core.interop.bif import read_network
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag

__all__ = ["UNKNOWN", "bif_domain", "bif_structure"]

#: The label of values that are none of the file's, where nobody names another.
UNKNOWN = "unknown"
_MAX_NAMED = 20


def bif_domain(path: Path, unknown: str | Mapping[str, str] = UNKNOWN) -> tuple[Domain, list[str]]:
    """Names and labels of a network, and what its owner should know of them.

    unknown: the label of values that are none of the file's, for all attributes or name -> label; one that an attribute
    does not have is appended to its labels, after those of the file. Raises DataError for the file and DomainError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coin.bif"
    ...     _ = path.write_text("variable c { type discrete [2] {h, t}; } probability ( c ) { table 0.25, 0.75; }")
    ...     bif_domain(path)[0]["c"].labels, bif_domain(path, unknown="t")[0]["c"].labels
    (('h', 't', 'unknown'), ('h', 't'))
    """
    read = read_network(path)[0].domain
    if isinstance(unknown, Mapping):
        for name in unknown:
            if name not in read:
                raise DomainError(
                    f"domain.unknown names {name!r}, which is no variable of {path.name}"
                    f"{did_you_mean(name, read.names)}"
                )
    labels = {name: unknown.get(name, UNKNOWN) if isinstance(unknown, Mapping) else unknown for name in read.names}
    for name, label in labels.items():
        if not isinstance(label, str) or not label:
            raise DomainError(f"domain.unknown: a label in quotes is needed for {name!r}, got {label!r:.80}")
    domain = Domain(Attribute.of_labels(one.name, one.labels, unknown=labels[one.name]) for one in read)
    remarks = [_ignored(path)]
    longer = [one.name for one in domain if one.size > read[one.name].size]
    if longer:
        shown = " or ".join(map(repr, dict.fromkeys(labels[name] for name in longer)))
        remarks.append(
            f"{len(longer)} of {len(domain)} attributes have a label more than in {path.name}, {shown}, for values "
            f"that are none of its labels: {_named(longer)}; to count them as one of its own, say domain = {{ bif = "
            "..., unknown = LABEL }, or { NAME = LABEL } for each"
        )
    return domain, remarks


def bif_structure(path: Path, domain: Domain) -> tuple[Structure, list[str]]:
    """The families of a network's graph over a domain that has its variables, and what its owner should know of them.

    The labels are the domain's; its other attributes have no parents. Raises DataError for the file, StructureError
    for a variable that is no attribute, TooLarge for a family whose table cannot be counted.
    """
    parents = read_network(path)[0].parents
    for name in parents:
        if name not in domain:
            raise StructureError(
                f"{path.name} has the variable {name!r}, which is no attribute of the domain"
                f"{did_you_mean(name, domain.names)}; use a domain that has all its variables"
            )
    alone = [name for name in domain.names if name not in parents]
    remarks = [_ignored(path)]
    if alone:
        remarks.append(
            f"independent of all others, as {path.name} does not have them: {_named(alone)}; parents = {{ ... }} "
            "instead of bif gives them parents"
        )
    return Dag(domain, parents).structure(), remarks


def _ignored(path: Path) -> str:
    return f"the probabilities in {path.name} are ignored: what is learned comes from the records alone"


def _named(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
