"""Constraints by labels: impossible combinations, the only possible ones, and a column that another determines.

A block of labels, such as `other` of labels found privately, is impossible only where all that falls into it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import evolve, frozen

from dpgm_core.attribute import Attribute
from dpgm_core.columns.declared import PrivateBins
from dpgm_core.errors import DomainError, did_you_mean

__all__ = ["ANY", "Constraint", "Listed", "Mapped", "Mask", "undetermined_mask"]

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

#: In a list or a map: any label.
ANY = "*"
#: Cells of the table of one constraint.
_MAX_TABLE_CELLS = 2**26


class Constraint(Protocol):
    """What holds of every record. `name` is for messages, `columns` the attributes it is about."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it is about."""
        ...

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse, with DomainError, labels and types that these attributes, one for each column, do not have."""
        ...

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """Which cells of the table of `columns` no record can be in, over these attributes, one for each column.

        A block of labels or a bin is impossible where all that falls into it is. Nothing is while labels or bins are
        still to be found.
        """
        ...

    def over(self, attributes: Sequence[Attribute]) -> Constraint:
        """The same for labels that were found: those that were not are part of the unknown label."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        ...


def undetermined_mask(name: str, attributes: Sequence[Attribute]) -> Mask | None:
    """Nothing is impossible while labels or bins are placeholders; None where all are known.

    Raises DomainError for a table too large to write down.
    """
    shape = tuple(one.size for one in attributes)
    if math.prod(shape) > _MAX_TABLE_CELLS:
        raise DomainError(
            f"constraint {name!r} is about {math.prod(shape):,} combinations of labels, above the "
            f"{_MAX_TABLE_CELLS:,} that are written down; state it of fewer columns, or of coarser ones"
        )
    return np.zeros(shape, dtype=bool) if any(one.private is not None for one in attributes) else None


@frozen(kw_only=True)
class Listed:
    """Combinations of labels that are impossible, or, with `possible`, the only ones there are.

    combinations: a label for each column, `"*"` for any. Missing values are a label like others: a combination is about
    them where it names it, or says `"*"`.

    >>> sex, births = Attribute.of_size("sex", 2), Attribute.of_size("births", 3)
    >>> none = Listed(name="men", columns=("sex", "births"), combinations=(("1", "1"), ("1", "2")))
    >>> none.impossible((sex, births)).tolist()
    [[False, False, False], [False, True, True]]
    """

    name: str
    columns: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    possible: bool = False

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse labels that a column does not have, unless its labels are still to be found."""
        for row in self.combinations:
            for label, attribute in zip(row, attributes, strict=True):
                if label != ANY:
                    _check_label(self.name, label, attribute)

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """What is listed, or what is not."""
        waiting = undetermined_mask(self.name, attributes)
        if waiting is not None:
            return waiting
        listed = np.zeros(tuple(one.size for one in attributes), dtype=bool)
        codes = [_codes(one) for one in attributes]
        for row in self.combinations:
            at: list[slice | int] = []
            for label, known, attribute in zip(row, codes, attributes, strict=True):
                code = known.get(label)
                if code is None and label != ANY:
                    if not self.possible:
                        break  # part of a block that holds others too
                    code = attribute.unknown
                at.append(slice(None) if code is None else code)
            else:
                listed[tuple(at)] = True
        return ~listed if self.possible else listed

    def over(self, attributes: Sequence[Attribute]) -> Listed:
        """Impossible combinations of labels that were not found are dropped, possible ones are those of the rest."""
        codes = [_codes(one) for one in attributes]
        rows: list[tuple[str, ...]] = []
        for row in self.combinations:
            known = [label == ANY or label in of for label, of in zip(row, codes, strict=True)]
            if all(known) or self.possible:
                rows.append(
                    tuple(
                        label if here else one.labels[one.unknown]
                        for label, here, one in zip(row, known, attributes, strict=True)
                    )
                )
        return evolve(self, combinations=tuple(dict.fromkeys(rows)))

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        rows = [list(row) for row in self.combinations]
        return {"columns": list(self.columns), "possible" if self.possible else "impossible": rows}


@frozen(kw_only=True)
class Mapped:
    """One column is a function of another: fine label -> coarse label, such as county to state.

    to: the pairs. A fine label with several has one of theirs, with `"*"` any. Those with none fall on the coarse
    column's label of missing values, which must then be no answer that another one has.

    >>> fine = Attribute.of_labels("county", ["Cook", "Wayne"], unknown="missing")
    >>> coarse = Attribute.of_labels("state", ["Illinois", "Michigan"], unknown="missing")
    >>> to = (("Cook", "Illinois"), ("Wayne", "Michigan"))
    >>> Mapped(name="where", columns=("county", "state"), to=to).impossible((fine, coarse)).astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """

    name: str
    columns: tuple[str, str]
    to: tuple[tuple[str, str], ...]

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse labels that a column does not have, and fine ones without a coarse one, by name."""
        fine, coarse = attributes
        for one, other in self.to:
            _check_label(self.name, one, fine)
            if other != ANY:
                _check_label(self.name, other, coarse)
        if fine.private is not None or coarse.private is not None:
            return
        rest = coarse.labels[coarse.null]
        unmapped = next((label for label in fine.labels if label not in dict(self.to)), None)
        # The fine column's own label of missing values may have none; of any other it would say what is not known.
        if unmapped is not None and any(other == rest for _, other in self.to):
            raise DomainError(
                f"constraint {self.name!r} says no {coarse.name} for {fine.name} {unmapped!r}, and missing values of "
                f"{coarse.name} count as {rest!r}, a real one; map every label, or give {coarse.name} a label "
                'missing = "missing" of its own'
            )

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """All but the pairs."""
        waiting = undetermined_mask(self.name, attributes)
        if waiting is not None:
            return waiting
        fine, coarse = attributes
        ones, others = _codes(fine), _codes(coarse)
        mask = np.ones((fine.size, coarse.size), dtype=bool)
        for one, other in self.to:
            mask[ones.get(one, fine.unknown), slice(None) if other == ANY else others.get(other, coarse.unknown)] = (
                False
            )
        mask[mask.all(axis=1), coarse.null] = False
        return mask

    def over(self, attributes: Sequence[Attribute]) -> Mapped:
        """Fine labels that were not found are one, with all of their coarse ones."""
        fine, coarse = attributes
        ones, others = _codes(fine), {ANY, *_codes(coarse)}
        pairs = [
            (one if one in ones else fine.labels[fine.unknown], to if to in others else coarse.labels[coarse.unknown])
            for one, to in self.to
        ]
        return evolve(self, to=tuple(dict.fromkeys(pairs)))

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        return {"columns": list(self.columns), "map": [list(pair) for pair in self.to]}


def _codes(attribute: Attribute) -> dict[str, int]:
    return {label: code for code, label in enumerate(attribute.labels)}


def _check_label(name: str, label: str, attribute: Attribute) -> None:
    if isinstance(attribute.private, PrivateBins):
        raise DomainError(
            f"constraint {name!r} names {label!r}, a bin of {attribute.name}, whose bins are found privately; state "
            'an order between columns, order = "<=", or give public bins'
        )
    if attribute.private is None and label not in attribute.labels:
        raise DomainError(
            f"constraint {name!r}: {attribute.name} has no label {label!r}{did_you_mean(label, attribute.labels)}"
        )
