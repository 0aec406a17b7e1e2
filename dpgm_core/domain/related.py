"""Two related tables as one: a pair of children of each root, over one domain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.attribute_tables import ABSENT
from dpgm_core.domain.constraints import ANY, Constraint, Listed, Mask, read_constraints
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, brief, did_you_mean

__all__ = ["ABSENT", "FIRST", "POSITION", "PREVIOUS", "SIZE", "Related", "is_description", "named_columns"]

#: The attributes of the number of children, and of which child is looked at.
SIZE, POSITION = "size", "position"
#: What names of copies of child columns begin with: of the first child, and of the one before the child looked at.
FIRST, PREVIOUS = "first.", "previous."

_POSITIONS = ("none", "second", "later")
_MAX_CHILDREN = 1_000
#: Records of which a root's part of a table may be the mean: whole parts of the unit of scores, 1/1024 record.
_DRAWS = (1, 2, 4, 8, 16)
#: Labels of child columns, each of which stands in the structural zeros.
_MAX_LABELS = 2**17
#: Combinations of labels that one copy of a constraint lists.
_MAX_COMBINATIONS = 2**20


def _as_keys(key: object) -> Any:
    """One name for both tables, a pair, or a mapping with `root` and `children`; what is none of these is left."""
    if isinstance(key, str):
        return (key, key)
    if isinstance(key, Mapping) and set(key) == {"root", "children"}:
        return (key["root"], key["children"])
    return tuple(key) if isinstance(key, (list, tuple)) else key


def _as_tuple(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    return tuple(constraints)


@frozen(kw_only=True, repr=False)
class Related:
    """The public statement about two tables, of roots (such as households) and of their children (such as persons).

    A run sees each root as *one* record over `pair`: the root columns, `size` (the number of children, at most r), the
    first child, one of the others, drawn by a hash of the key, and the child before that one. Tables are the means over
    `draws` such records. So every table has the sensitivity of one record, whatever r is; docs/proofs.md has the claim.
    The statement is a part of `Terms`, which releases, and so models, carry: that needs no other place, and files with
    it are refused by a dpgm that does not know it.

    Parameters
    ----------
    root, children : Domain
        The columns of each table, without keys. Names differ.
    key : str or (str, str)
        The column of the key: of both tables, or of the roots and of the children.
    max_children : int
        The children that count for each root, r; public, and never computed from the records.
    order : str, optional
        A column of the child table that says who is first. None: a hash does.
    constraints : sequence of Constraint
        What holds of roots and their children together. Columns are those of the roots, `size`, those of the first
        child (`first.COLUMN`), and child columns: these mean each child, and together with `first.COLUMN` each other
        child.
    draws : int, optional
        The records of which a root's part of a table is the mean, a power of two: each looks at another child where
        there are enough. Counts are multiples of 1/draws then. By default the least that is r - 1, at most 4. No part
        of comparisons, as what is released is in roots in any case.

    Raises
    ------
    DomainError
        For parts that do not fit.

    Examples
    --------
    >>> root, children = Domain.from_sizes({"own": 2}), Domain.from_sizes({"age": 4})
    >>> household = Related(root=root, children=children, key="household_id", max_children=3)
    >>> household.pair
    Domain(own: 2, size: 4, position: 3, first.age: 5, age: 5, previous.age: 5)
    """

    root: Domain
    children: Domain
    key: tuple[str, str] = field(converter=_as_keys)
    max_children: int = field(default=None)
    order: str | None = None
    constraints: tuple[Constraint, ...] = field(default=(), converter=_as_tuple)
    draws: int = field(default=None, eq=False)
    _pair: Domain = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        for what in ("root", "children"):
            if not isinstance(getattr(self, what), Domain):
                raise DomainError(f"{what} must be a Domain, got {type(getattr(self, what)).__name__}")
        _check_key(self.key)
        _check_most(self.max_children)
        if self.draws is None:
            object.__setattr__(self, "draws", min(_DRAWS[2], 1 << max(self.max_children - 2, 0).bit_length()))
        if type(self.draws) is not int or self.draws not in _DRAWS:
            raise DomainError(f"draws must be one of {', '.join(map(str, _DRAWS))}, got {self.draws!r:.80}")
        self._check_names()
        self._check_labels()
        object.__setattr__(self, "_pair", Domain(self._attributes(), self._all_constraints()))

    @property
    def pair(self) -> Domain:
        """The domain of the records that a run sees, one for each root, with its structural zeros as constraints."""
        return self._pair

    @property
    def slots(self) -> tuple[str, ...]:
        """What names of copies of child columns begin with: `first.`, then nothing, then `previous.`, up to r."""
        return (FIRST, "", PREVIOUS)[: self.max_children]

    @property
    def stated(self) -> tuple[Constraint, ...]:
        """The constraints that the owner stated: of the roots, of the children and of both; `pair` has their copies."""
        return (*self.root.constraints, *self.children.constraints, *self.constraints)

    def check(self, domain: Domain) -> None:
        """Refuse, with DomainError, a domain that is not of these tables; root columns may have other labels or bins.

        These are found privately, or merged by a selector.
        """
        for one in domain:
            if one.name not in self.pair or (one.name not in self.root and one != self.pair[one.name]):
                raise DomainError(
                    f"attribute {one.name!r} is not one of the two related tables as they are stated; use the domain "
                    "that their statement gives, Related.pair"
                )

    def __repr__(self) -> str:
        return brief(
            "Related", f"{len(self.root)} root columns", f"{len(self.children)} child columns", self.describe()
        )

    def describe(self) -> str:
        """Return key, r and order in words.

        >>> Related(root=Domain.from_sizes({"a": 2}), children=Domain.from_sizes({"b": 2}), key="id", max_children=2)
        Related(1 root columns, 1 child columns, at most 2 children for each key 'id')
        """
        one, other = self.key
        key = repr(one) if one == other else f"{one!r} of the roots and {other!r} of the children"
        order = "" if self.order is None else f", ordered by {self.order!r}"
        return f"at most {self.max_children} children for each key {key}{order}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which `from_dict` reads.

        >>> one = Related(root=Domain.from_sizes({"a": 2}), children=Domain.from_sizes({"b": 2}), key="id",
        ...     max_children=2)
        >>> Related.from_dict(one.to_dict()) == one
        True
        """
        return {
            "key": list(self.key),
            "max_children": self.max_children,
            "order": self.order,
            "root": self.root.to_dict(),
            "children": self.children.to_dict(),
            "constraints": {one.name: one.to_dict() for one in self.constraints},
            "draws": self.draws,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Related:
        """Read what `to_dict` wrote, also before there were draws. Raises DomainError."""
        keys = ("key", "max_children", "order", "root", "children", "constraints")
        if not isinstance(plain, Mapping) or set(plain) - {"draws"} != set(keys):
            raise DomainError(f"two related tables must state {', '.join(keys)}")
        root, children = Domain.from_dict(plain["root"]), Domain.from_dict(plain["children"])
        return cls(
            root=root,
            children=children,
            key=plain["key"],
            max_children=plain["max_children"],
            order=plain["order"],
            constraints=read_constraints(plain["constraints"], named_columns(root, children, plain["max_children"])),
            draws=plain.get("draws", 1),
        )

    # --- Refusals ---------------------------------------------------------------------------------

    def _check_names(self) -> None:
        for column in (*self.root.names, *self.children.names):
            if column in self.root and column in self.children:
                raise DomainError(
                    f"column {column!r} is in both tables; rename one, as a model has one attribute of each name"
                )
            if column in (SIZE, POSITION) or column.startswith((FIRST, PREVIOUS)):
                raise DomainError(
                    f"column {column!r} has a name that the model of two tables uses itself ({SIZE}, {POSITION}, "
                    f"{FIRST}COLUMN, {PREVIOUS}COLUMN); rename it"
                )
        for key in self.key:
            if key == SIZE:
                raise DomainError(
                    f"key {SIZE!r} has the name of the number of children, which given roots may state; rename it"
                )
            if key in self.root or key in self.children:
                raise DomainError(f"key {key!r} is a column of the domain; a key is not modelled, remove it")
        if self.order is None:
            return
        if not isinstance(self.order, str) or not self.order:
            raise DomainError(f"order must be the name of a column of the child table, got {self.order!r}")
        if self.order == self.key[1]:
            raise DomainError(f"order {self.order!r} is the key of the children, which says nothing of their order")
        if self.order in self.children or self.order in self.root:
            raise DomainError(
                f"order {self.order!r} is a column of the domain; samples number the children in it, so it is not "
                "modelled: remove it, or order by a copy of it"
            )

    def _check_labels(self) -> None:
        if sum(attribute.size for attribute in self.children) > _MAX_LABELS:
            raise DomainError(f"the child columns have more than {_MAX_LABELS:,} labels together; make them coarser")
        for attribute in self.children:
            form = attribute.matching.form
            if form(ABSENT.encode()) in {form(label.encode()) for label in attribute.labels}:
                raise DomainError(
                    f"column {attribute.name!r} has a label {ABSENT!r}, which marks children that do not exist; "
                    "rename it"
                )
            if ANY in attribute.labels:
                raise DomainError(f"column {attribute.name!r} has a label {ANY!r}, which means any label; rename it")
        for attribute in (*self.root, *self.children):
            if attribute.private is not None and (attribute.name in self.children or attribute.edges is None):
                raise DomainError(
                    f"column {attribute.name!r} has labels or bins that are found privately, which is possible for "
                    "bins of root columns alone; list its labels or bins"
                )

    # --- The pair domain --------------------------------------------------------------------------

    @property
    def _positions(self) -> tuple[str, ...]:
        return _POSITIONS[: self.max_children]

    def _attributes(self) -> list[Attribute]:
        attributes = [*self.root, Attribute.of_size(SIZE, self.max_children + 1)]
        if self.max_children > 1:
            attributes.append(Attribute.of_labels(POSITION, self._positions, unknown=_POSITIONS[0]))
        for slot in self.slots:
            attributes += [evolve(one, name=slot + one.name, labels=(*one.labels, ABSENT)) for one in self.children]
        return attributes

    def _all_constraints(self) -> list[Constraint]:
        result: list[Constraint] = [*self.root.constraints, *self._zeros()]
        for rule in self.children.rules:
            attributes = [self.children[column] for column in rule.columns]
            places = dict.fromkeys(rule.columns, True)
            result += [_copied(slot, rule.name, attributes, rule.mask, places) for slot in self.slots]
        for one in self.constraints:
            result += self._across(one)
        return result

    def _zeros(self) -> list[Constraint]:
        """The structural zeros, as pairs: no size without its children, and no child without a size."""
        counts = [str(size) for size in range(self.max_children + 1)]
        none, *some = self._positions
        zeros: list[Constraint] = []
        for child in self.children:
            zeros.append(_absent(FIRST + child.name, child, SIZE, counts[:1], counts[1:]))
            if self.max_children > 1:
                zeros.append(_absent(child.name, child, POSITION, [none], some))
            if self.max_children > 2:
                zeros.append(_absent(PREVIOUS + child.name, child, POSITION, [none, some[0]], some[1:]))
        if self.max_children > 1:
            wrong = [(count, one) for count in counts[:2] for one in some] + [(count, none) for count in counts[2:]]
            wrong += [(counts[2], later) for later in some[1:]]
            zeros.append(Listed(name=f"{POSITION} and {SIZE}", columns=(SIZE, POSITION), combinations=tuple(wrong)))
        return zeros

    def _across(self, one: Constraint) -> list[Constraint]:
        """A constraint across the tables: itself where it is about roots, else a copy for each child that it means."""
        where, columns = f"constraint {one.name!r}", named_columns(self.root, self.children, self.max_children)
        for column in one.columns:
            if column not in columns:
                raise DomainError(
                    f"{where} is about {column!r}; columns of the two tables, {SIZE!r} and {FIRST}COLUMN are possible"
                    f"{did_you_mean(column, columns)}"
                )
        attributes = [columns[column] for column in one.columns]
        one.check(attributes)
        each = [column for column in one.columns if column in self.children]
        first = [column for column in one.columns if column.startswith(FIRST)]
        if not each and not first:
            return [one]
        if any(attribute.private is not None for attribute in attributes):
            raise DomainError(f"{where} is about children and about bins that are found privately; list these bins")
        if any(ANY in attribute.labels for attribute in attributes):
            raise DomainError(f"{where} is about a column with a label {ANY!r}, which means any label; rename it")
        places = {column: column in each for column in one.columns if column in each or column in first}
        slots = ("",) if not each else self.slots[1:] if first else self.slots
        return [_copied(slot, one.name, attributes, one.impossible(attributes), places) for slot in slots]


def is_description(text: str) -> bool:
    """Return whether a ledger's text is of two related tables, as `Related.describe` writes it, and no person key."""
    return re.match(r"at most \d+ children for each key ", text) is not None


def _check_key(key: object) -> None:
    if not isinstance(key, tuple) or len(key) != 2 or not all(isinstance(one, str) and one for one in key):
        raise DomainError(
            "key must name the column of the key in both tables, or be { root = NAME, children = NAME }, got "
            f"{key!r:.80}; a third table has no place here"
        )


def _check_most(most: object) -> None:
    if most is None:
        raise DomainError(
            "max_children is missing: the number of children counted for each root must be known without the records; "
            "give it"
        )
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= _MAX_CHILDREN:
        raise DomainError(f"max_children must be a whole number from 1 to {_MAX_CHILDREN:,}, got {most!r:.80}")


def named_columns(root: Domain, children: Domain, most: int) -> dict[str, Attribute]:
    """The columns that a constraint across the tables may name, without the code of absent children."""
    _check_most(most)
    first = [evolve(one, name=FIRST + one.name) for one in children]
    return {one.name: one for one in (*root, Attribute.of_size(SIZE, most + 1), *first, *children)}


def _absent(column: str, child: Attribute, given: str, without: Sequence[str], some: Sequence[str]) -> Listed:
    """The column is absent where the given one has a label of `without`, and not where it has one of `some`."""
    wrong = [(one, label) for one in without for label in child.labels] + [(one, ABSENT) for one in some]
    return Listed(name=f"{column} {ABSENT}", columns=(given, column), combinations=tuple(wrong))


def _copied(slot: str, name: str, attributes: Sequence[Attribute], mask: Mask, of_child: Mapping[str, bool]) -> Listed:
    """A mask as a list of labels, of the shorter kind; it says nothing where a child is absent.

    of_child: the columns that are of children, and whether their names are to begin with the slot.
    """
    possible = 2 * int(np.count_nonzero(mask)) > mask.size
    at = np.argwhere(~mask if possible else mask)
    if len(at) > _MAX_COMBINATIONS:
        raise DomainError(
            f"constraint {name!r} lists more than {_MAX_COMBINATIONS:,} combinations of labels for children; state it "
            "of fewer columns, or of coarser ones"
        )
    rows = [tuple(one.labels[code] for one, code in zip(attributes, row, strict=True)) for row in at.tolist()]
    if possible:
        rows += [
            tuple(ABSENT if other is one else ANY for other in attributes) for one in attributes if one.name in of_child
        ]
    columns = tuple(slot + one.name if of_child.get(one.name) else one.name for one in attributes)
    return Listed(name=slot + name, columns=columns, combinations=tuple(rows), possible=possible)
