"""Domains: the ordered public attributes of a table, declared in a file or in code.

A :class:`Domain` is declared by the owner and never inferred from records: whatever is read from the data to
choose labels would be a leak. Every raw value, however broken, lands on exactly one code (docs/privacy.md).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.attribute import Attribute, code_dtype, first_repeated
from dpgm_core.domain.attribute_tables import MAX_SIZE
from dpgm_core.domain.constraints import Constraint, Mask, read_constraints
from dpgm_core.domain.domain_files import domain_tables, plain_file
from dpgm_core.domain.resolved_constraints import Derived, Resolved, Rule
from dpgm_core.errors import DomainError, brief, clipped, did_you_mean, listed, thousands

__all__ = ["Attribute", "Domain", "code_dtype"]


class Domain:
    """The public, ordered attributes of a table, and public constraints among them.

    Parameters
    ----------
    attributes : iterable of Attribute
        With unique names.
    constraints : iterable of Constraint
        What no record can be; see `dpgm_core.domain`.

    Raises
    ------
    DomainError
        For attributes that do not fit, and for constraints that leave an attribute no label.

    Examples
    --------
    >>> domain = Domain.from_sizes({"a": 3, "b": 2})
    >>> domain.names, domain.shape(("b", "a")), domain["a"].size, domain.cells
    (('a', 'b'), (2, 3), 3, 6)
    """

    __slots__ = ("_by_name", "_resolved", "_sizes", "attributes", "constraints")

    attributes: tuple[Attribute, ...]
    constraints: tuple[Constraint, ...]

    def __init__(self, attributes: Iterable[Attribute], constraints: Iterable[Constraint] = ()) -> None:
        self.attributes, self.constraints = tuple(attributes), tuple(constraints)
        if not self.attributes:
            raise DomainError("a domain needs at least one attribute")
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise DomainError(
                    f"a domain is made of Attribute objects, got {attribute!r}; see Domain.from_sizes and from_dict"
                )
        self._by_name = {attribute.name: attribute for attribute in self.attributes}
        twice = first_repeated(attribute.name for attribute in self.attributes)
        if twice is not None:
            raise DomainError(f"attribute {twice!r} stands twice in the domain; rename or remove one")
        self._sizes = {attribute.name: attribute.size for attribute in self.attributes}
        self._resolved = _resolved(self._by_name, self.constraints)

    @property
    def names(self) -> tuple[str, ...]:
        """The attribute names in order.

        >>> Domain.from_sizes({"b": 2, "a": 3}).names
        ('b', 'a')
        """
        return tuple(self._by_name)

    @property
    def sizes(self) -> dict[str, int]:
        """Name -> number of labels.

        >>> Domain.from_sizes({"a": 3}).sizes
        {'a': 3}
        """
        return self._sizes.copy()

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The attributes whose bins or labels a private query has yet to release.

        >>> Domain.from_sizes({"a": 3}).undetermined
        ()
        """
        return tuple(one.name for one in self.attributes if one.private is not None)

    def with_attributes(self, replacements: Mapping[str, Attribute]) -> Domain:
        """Return the domain with some attributes replaced, such as those with released bins; constraints are kept.

        >>> Domain.from_sizes({"a": 3}).with_attributes({"a": Attribute.of_size("a", 2)})
        Domain(a: 2)
        """
        new = {one.name: replacements.get(one.name, one) for one in self.attributes}
        # Only labels that were searched for can be missing: of others a constraint names none that are not there.
        opened = {name for name in replacements if name in self and self[name].private is not None}
        constraints = [
            one if opened.isdisjoint(one.columns) else one.over([new[column] for column in one.columns])
            for one in self.constraints
        ]
        # One that says nothing of the labels that were found, or cannot be said of them, is left out.
        stated = [one for one in constraints if opened.isdisjoint(one.columns) or _holds(one, new)]
        return Domain(new.values(), stated)

    @property
    def scopes(self) -> tuple[tuple[str, ...], ...]:
        """The sets of attributes that constraints are about: cliques of every model over the domain.

        >>> Domain.from_sizes({"a": 3}).scopes
        ()
        """
        return () if self._resolved is None else self._resolved.scopes

    @property
    def constrained(self) -> frozenset[str]:
        """The attributes that constraints are about; their codes are never merged."""
        return frozenset(name for scope in self.scopes for name in scope)

    def impossible(self, names: Sequence[str]) -> Mask | None:
        """Return the cells of the table of `names`, axes in their order, that a constraint rules out, or None.

        Constraints among the names are used, and the codes that others leave. What only several constraints together
        rule out needs inference.

        >>> plain = {"a": {"size": 2, "unknown": 0}, "b": {"size": 2, "unknown": 0}}
        >>> rules = {"x": {"columns": ["a", "b"], "impossible": [["0", "1"]]}}
        >>> domain = Domain.from_dict({"attributes": plain, "constraints": rules})
        >>> domain.impossible(("b", "a")).tolist(), domain.impossible(("a",))
        ([[False, False], [True, False]], None)
        """
        return None if self._resolved is None else self._resolved.impossible(tuple(names))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Masks of what no record can be: one for each constraint, then those that follow from chains of orders.

        >>> Domain.from_sizes({"a": 3}).rules
        ()
        """
        return () if self._resolved is None else self._resolved.rules

    def derived(self, taken: Container[str]) -> tuple[Derived, ...]:
        """Return the columns, none of them `taken`, that only a map determines; see `Structure.derived`."""
        return () if self._resolved is None else self._resolved.derived(taken)

    def broken(self, codes: Mapping[str, Any]) -> dict[str, int]:
        """Return how many records, given as codes of each attribute, break each constraint. The counts are NOT PRIVATE.

        Two values in overlapping bins may be in the wrong order; such records are not counted.
        """
        return {} if self._resolved is None else self._resolved.broken(codes)

    @property
    def cells(self) -> int:
        """The number of possible records, an exact Python integer.

        >>> Domain.from_sizes({f"x{i}": 10 for i in range(30)}).cells == 10**30
        True
        """
        return math.prod(attribute.size for attribute in self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise DomainError(f"the domain has no attribute {name!r}{did_you_mean(name, self._by_name)}") from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return False
        return self is other or (self.attributes == other.attributes and self.constraints == other.constraints)

    def __hash__(self) -> int:
        return hash((self.attributes, self.constraints))

    def __repr__(self) -> str:
        shown = [f"{clipped(one.name, 20)}: {one.size}" for one in self.attributes[:8]]
        return brief("Domain", *shown, *([f"... {len(self)} attributes"] if len(self) > 8 else []))

    def _repr_html_(self) -> Html:
        facts = [("attributes", f"{len(self):,}"), ("possible records", thousands(self.cells))]
        facts += [("constraints", listed([one.name for one in self.constraints]))] if self.constraints else []
        facts += [("found privately", listed(self.undetermined))] if self.undetermined else []
        rows = ((one.name, one.size, listed(one.labels), one.labels[one.unknown]) for one in self.attributes)
        return card("Domain", facts, first(["attribute", "labels", "", "unknown values are"], rows, len(self)))

    def shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the sizes of the named attributes, in this order. Raises DomainError for an unknown name.

        >>> Domain.from_sizes({"a": 3, "b": 2}).shape(["b"])
        (2,)
        """
        sizes, names = self._sizes, tuple(names)
        try:
            return tuple([sizes[name] for name in names])
        except (KeyError, TypeError):
            return tuple(self[name].size for name in names)  # says which it does not have

    def subset(self, names: Iterable[str]) -> Domain:
        """Return the domain of the named attributes, in this order, with the constraints among them.

        >>> Domain.from_sizes({"a": 3, "b": 2}).subset(["b"])
        Domain(b: 2)
        """
        attributes = [self[name] for name in names]
        inside = {one.name for one in attributes}
        return Domain(attributes, (one for one in self.constraints if inside.issuperset(one.columns)))

    def coarsened(self, merges: Mapping[str, Sequence[int]]) -> Domain:
        """Return the domain with merged codes; merges: attribute -> the new code of each of its codes.

        The new codes of an attribute run from 0 without gaps; see `Attribute.coarsened`. Raises DomainError, also for
        attributes in a constraint.

        >>> Domain.from_sizes({"a": 3, "b": 2}).coarsened({"a": [0, 1, 1]})["a"].labels
        ('0', 'other (2 labels)')
        """
        if not isinstance(merges, Mapping):
            raise DomainError(f"merges must be a mapping such as {{'a': [0, 1, 1]}}, got {type(merges).__name__}")
        for name in merges:
            self[name]  # DomainError with a hint
        new = [one.coarsened(merges[one.name]) if one.name in merges else one for one in self.attributes]
        for before, after in zip(self.attributes, new, strict=True):
            if before != after and before.name in self.constrained:
                rules = ", ".join(repr(one.name) for one in self.constraints if before.name in one.columns)
                raise DomainError(f"the codes of {before.name!r} cannot be merged: constraint {rules} is about them")
        return Domain(new, self.constraints)

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, int], *, unknown: int | Mapping[str, int] = 0) -> Domain:
        """Return attributes that are plain codes; unknown and null values get code `unknown`.

        A value outside of 0 ... size - 1 is unknown, so by default it counts as code 0, also where codes start at 1. No
        run can refuse it, as that would depend on a record; `dpgm validate` lists such values for the owner.

        >>> Domain.from_sizes({"a": 3}, unknown={"a": 2})["a"].unknown
        2
        """
        if not isinstance(sizes, Mapping):
            raise DomainError(f"sizes must be a mapping such as {{'a': 3}}, got {type(sizes).__name__}")
        if isinstance(unknown, Mapping):
            for name in unknown:
                if name not in sizes:
                    raise DomainError(f"unknown names {name!r}, which has no size{did_you_mean(name, sizes)}")
            where = {name: unknown.get(name, 0) for name in sizes}
        else:
            where = dict.fromkeys(sizes, unknown)
        return cls(Attribute.of_size(name, size, unknown=where[name]) for name, size in sizes.items())

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], *, folder: Path | None = None) -> Domain:
        """Read a domain from plain values; folder: where files that it names are. Four shapes are understood:

        `{"attributes": {name: {...}}}` (ours; with it may stand "constraints", "defaults" for all columns, and
        "from", a file whose columns the tables change key by key), `{name: size}`, `{name: [label, ...]}`, and the NIST
        schema (`{"schema": {name: {"values": [...]} | {"min": .., "max": ..}}}`). Null and unknown values have a label
        of their own, `missing`, where nothing else is said. In a NIST schema a declared null value is their label.

        >>> Domain.from_dict({"attributes": {"a": {"labels": ["x", "y"], "unknown": "?"}}})
        Domain(a: 3)
        """
        tables = domain_tables(plain, folder)
        _check_sizes(tables["attributes"])
        _check_no_todo(tables["attributes"])
        read: dict[str, Attribute] = {}
        declared = 0
        for name, entry in tables["attributes"].items():
            read[name] = Attribute.from_dict(name, entry)
            declared += 0 if isinstance(entry.get("labels"), (list, tuple)) else read[name].size
            if declared > MAX_SIZE + 2 * len(read):  # a few letters may declare many bins or private labels
                raise DomainError(f"the bins of a domain add up to more than {MAX_SIZE:,}; make them coarser")
        return cls(read.values(), read_constraints(tables.get("constraints", {}), read, folder))

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as plain values, which `from_dict` reads.

        >>> domain = Domain.from_sizes({"a": 2})
        >>> Domain.from_dict(domain.to_dict()) == domain
        True
        """
        plain: dict[str, Any] = {"attributes": {attribute.name: attribute.to_dict() for attribute in self.attributes}}
        if self.constraints:
            plain["constraints"] = {one.name: one.to_dict() for one in self.constraints}
        return plain

    @classmethod
    def load(cls, path: str | Path) -> Domain:
        """Read a `.toml` or `.json` domain file (see `from_dict` for the shapes). DomainError if it cannot.

        A top-level `from = "nist.json"` names any metadata file, relative to this one, that it starts from.
        """
        path = Path(path)
        return cls.from_dict(plain_file(path), folder=path.parent)


def _holds(constraint: Constraint, attributes: Mapping[str, Attribute]) -> bool:
    """Whether a constraint can be said of these attributes, as a file says it."""
    try:
        read_constraints({constraint.name: constraint.to_dict()}, attributes)
    except DomainError:
        return False
    return True


def _resolved(attributes: Mapping[str, Attribute], constraints: Sequence[Constraint]) -> Resolved | None:
    """What constraints say of the attributes; None without any. Raises DomainError."""
    for one in constraints:
        unknown = next((column for column in one.columns if column not in attributes), None)
        if unknown is not None:
            raise DomainError(f"constraint {one.name!r} is about {unknown!r}, which is not in the domain")
    twice = first_repeated(one.name for one in constraints)
    if twice is not None:
        raise DomainError(f"constraint {twice!r} stands twice in the domain; rename or remove one")
    resolved = Resolved(attributes, constraints) if constraints else None
    if resolved is not None:
        resolved.possible  # noqa: B018 - refuses a domain without records
    return resolved


def _check_sizes(entries: Mapping[str, Any]) -> None:
    """Refuse what a few letters declare and no memory holds; labels that are spelled out are bounded by their text."""
    sizes: list[object] = []
    for entry in entries.values():
        if isinstance(entry, Mapping):
            bins, labels = entry.get("bins"), entry.get("labels")
            sizes += [entry.get("size"), bins]
            sizes += [bins.get("private")] if isinstance(bins, Mapping) else []
            sizes += [labels.get("keep")] if isinstance(labels, Mapping) else []
    declared = sum(size for size in sizes if isinstance(size, int) and 0 < size <= MAX_SIZE)  # a larger one is named
    if declared > MAX_SIZE:
        raise DomainError(f"the sizes of a domain add up to {declared:,} labels; at most {MAX_SIZE:,} are possible")


def _check_no_todo(entries: Mapping[str, Any]) -> None:
    """Refuse what `dpgm init` left to its user, all at once."""
    open_ones = [name for name, entry in entries.items() if isinstance(entry, Mapping) and "todo" in entry]
    if open_ones:
        plural = len(open_ones) > 1
        shown = ", ".join(map(repr, open_ones[:10])) + (f" and {len(open_ones) - 10} more" if open_ones[10:] else "")
        raise DomainError(
            f"{len(open_ones)} attribute{'s' * plural} of the domain {'are' if plural else 'is'} incomplete: {shown}; "
            "see todo under [attributes.NAME], say labels or bins there, and delete the line; or delete a column "
            "that no model needs, such as the key of a person"
        )
