"""Public constraints: listed combinations, orders, and their parsing."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.files import bounded_bytes
from dpgm_core.domain.attribute import Attribute, first_repeated
from dpgm_core.domain.bins import PrivateBins, PrivateLabels
from dpgm_core.domain.values import parse_number
from dpgm_core.errors import DomainError, did_you_mean

__all__ = [
    "ANY",
    "Constraint",
    "Listed",
    "Mapped",
    "Mask",
    "Ordered",
    "WHOLE",
    "axis_intervals",
    "read_constraints",
    "undetermined_mask",
]

# A block of labels, such as `other` of labels found privately, is impossible only where all that falls into it is.

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

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it is about."""

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse, with DomainError, labels and types that these attributes, one for each column, do not have."""

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """Which cells of the table of `columns` no record can be in, over these attributes, one for each column.

        A block of labels or a bin is impossible where all that falls into it is. Nothing is while labels or bins are
        still to be found.
        """

    def over(self, attributes: Sequence[Attribute]) -> Constraint:
        """The same for labels that were found: those that were not are part of the unknown label."""

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""


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
            at = slice(None) if other == ANY else others.get(other, coarse.unknown)
            mask[ones.get(one, fine.unknown), at] = False
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
        if label in (attribute.labels[attribute.unknown], attribute.labels[attribute.null]):
            return  # no bin can be called so
        raise DomainError(
            f"constraint {name!r} names {label!r}, a bin of {attribute.name}, whose bins are found privately; state "
            'an order between columns, order = "<=", or give public bins'
        )
    if isinstance(attribute.private, PrivateLabels) and attribute.private.any_type:
        raise DomainError(
            f"constraint {name!r} names {label!r} of {attribute.name}, a column of any type, whose labels or bins are "
            "found from the records; describe the column, or leave the constraint out"
        )
    if attribute.private is None and label not in attribute.labels:
        raise DomainError(
            f"constraint {name!r}: {attribute.name} has no label {label!r}{did_you_mean(label, attribute.labels)}"
        )


# --- Constraints by order -------------------------------------------------------------------------

#: From, to, and whether the end belongs to it; None of what has no place.
_Interval: TypeAlias = tuple[float, float, bool] | None

#: Kinds whose places on the axis are whole.
WHOLE = ("integer", "date")
#: Kinds that stand on one axis; plain texts and booleans on none of their own.
_AXES = {"integer": "numbers", "number": "numbers", "text": "numbers", "boolean": "numbers"}


@frozen(kw_only=True)
class Ordered:
    """The value of the first column is never above that of the second; missing values are above nothing.

    strict: nor equal to it. Bins, and labels that are numbers or dates, are compared by the values that fall on them:
    two are impossible together only if no two such values fit. Other labels by their places, which then must be the
    same labels in the same order in both columns. Orders of several columns also rule out what no values of all of
    them fit, see `dpgm_core.domain.Rule`.

    >>> start, end = Attribute.of_bins("start", [0, 10, 20], unknown="?"), Attribute.of_size("end", 12)
    >>> Ordered(name="time", columns=("start", "end")).impossible((start, end)).sum(axis=1).tolist()
    [0, 10, 0]
    """

    name: str
    columns: tuple[str, str]
    strict: bool = False

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse columns that cannot be compared."""
        if any(one.private is not None and one.edges is None for one in attributes):
            raise DomainError(
                f"constraint {self.name!r} orders columns whose labels are found privately; these have none"
            )
        _places(self.name, attributes)

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """The pairs in which no value of the first is below any of the second."""
        waiting = undetermined_mask(self.name, attributes)
        if waiting is not None:
            return waiting
        first, second = _places(self.name, attributes)
        low = np.array([-math.inf if one is None else one[0] for one in first])[:, None]
        high = np.array([math.inf if one is None else one[1] for one in second])[None, :]
        closed = np.array([one is None or one[2] for one in second])[None, :]
        # The least value of the first is in its bin; some value of the second is above it if the bin's end is.
        fits = high > low if self.strict else (high > low) | (closed & (high == low))
        fits |= np.array([one is None for one in first])[:, None] | np.array([one is None for one in second])[None, :]
        return np.asarray(~fits, dtype=bool)

    def over(self, attributes: Sequence[Attribute]) -> Ordered:
        """Itself: no label is named."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        return {"columns": list(self.columns), "order": "<" if self.strict else "<="}


def _places(name: str, attributes: Sequence[Attribute]) -> tuple[list[_Interval], list[_Interval]]:
    kinds = [_AXES.get(one.values.kind, one.values.kind) for one in attributes]
    if kinds[0] != kinds[1]:
        raise DomainError(
            f"constraint {name!r} compares {kinds[0]}, {attributes[0].name}, with {kinds[1]}, "
            f"{attributes[1].name}; give both columns one type"
        )
    first, second = (axis_intervals(one) for one in attributes)
    if first is None and second is None:
        return _in_order(name, attributes)
    if first is None or second is None:
        number, other = attributes if second is None else attributes[::-1]
        raise DomainError(
            f"constraint {name!r} compares {number.name}, which are numbers, with {other.name}, whose labels are none; "
            "give both columns one type"
        )
    return first, second


def axis_intervals(attribute: Attribute) -> list[_Interval] | None:
    """Which values fall on each code; None where no label is a value on an axis."""
    whole = attribute.values.kind in WHOLE
    if attribute.edges is not None:
        bins = len(attribute.edges) - 1
        ends = list(itertools.pairwise(attribute.edges))
        intervals = [_bin(low, high, closed=number == bins - 1, whole=whole) for number, (low, high) in enumerate(ends)]
        return [*intervals, *[None] * (attribute.size - bins)]
    places = [_number(attribute, label) for label in attribute.labels]
    if all(place is None for place in places):
        return None
    return [None if place is None else (place, place, True) for place in places]


def _bin(low: float, high: float, *, closed: bool, whole: bool) -> _Interval:
    if whole and math.isfinite(low) and math.isfinite(high):
        first, last = math.ceil(low), math.floor(high) if closed or high != math.floor(high) else math.floor(high) - 1
        if first <= last:  # else no value falls on it, and nothing needs to be said
            return float(first), float(last), True
    return low, high, closed


def _number(attribute: Attribute, label: str) -> float | None:
    place = attribute.values.number(label) if attribute.values.is_numeric else parse_number(label.encode())
    return place if place is not None and math.isfinite(place) else None


def _in_order(name: str, attributes: Sequence[Attribute]) -> tuple[list[_Interval], list[_Interval]]:
    """Labels by their places; those of missing and unknown values have none."""
    real = [
        [label for code, label in enumerate(one.labels) if code not in (one.null, one.unknown)] for one in attributes
    ]
    if real[0] != real[1]:
        raise DomainError(
            f"constraint {name!r} compares {attributes[0].name} with {attributes[1].name} by the places of their "
            "labels, which differ; give both columns the same labels in the same order"
        )
    at = {label: (float(place), float(place), True) for place, label in enumerate(real[0])}
    first, second = ([at.get(label) for label in one.labels] for one in attributes)
    return list(first), list(second)


# --- Reading of constraints: `[constraints.NAME]` with columns and one form -----------------------

_FORMS = ("impossible", "possible", "map", "order")
_MAX_FILE_BYTES = 2**26  # of a CSV file with a map


def read_constraints(
    plain: object, attributes: Mapping[str, Attribute], folder: Path | None = None
) -> tuple[Constraint, ...]:
    """All of a domain's, checked against its attributes. folder: where CSV files of maps are. Raises DomainError.

    >>> pair = {"a": Attribute.of_size("a", 2), "b": Attribute.of_size("b", 2)}
    >>> [one.name for one in read_constraints({"x": {"columns": ["a", "b"], "order": "<="}}, pair)]
    ['x']
    """
    if not isinstance(plain, Mapping):
        raise DomainError(f"constraints stand under [constraints.NAME], a table each; got {plain!r:.80}")
    constraints = tuple(read_constraint(name, entry, folder) for name, entry in plain.items())
    for one in constraints:
        for column in one.columns:
            if column not in attributes:
                raise DomainError(
                    f"constraint {one.name!r} is about {column!r}, which is no column{did_you_mean(column, attributes)}"
                )
        one.check([attributes[column] for column in one.columns])
    return constraints


def read_constraint(name: str, plain: object, folder: Path | None = None) -> Constraint:
    """One table: `columns`, and one of `impossible`, `possible`, `map` and `order`. Raises DomainError.

    >>> read_constraint("x", {"columns": ["a", "b"], "order": "<"})
    Ordered(name='x', columns=('a', 'b'), strict=True)
    """
    where = f"constraint {name!r}"
    if not isinstance(plain, Mapping):
        raise DomainError(f"{where} must be a table with columns and one of {', '.join(_FORMS)}, got {plain!r:.80}")
    for key in plain:
        if key not in ("columns", *_FORMS):
            raise DomainError(f"{where} has no setting {key!r}{did_you_mean(key, ('columns', *_FORMS))}")
    forms = [key for key in _FORMS if key in plain]
    if len(forms) != 1:
        raise DomainError(f"{where} needs one of {', '.join(_FORMS)}; it has {' and '.join(forms) or 'none of them'}")
    columns = _columns(where, plain.get("columns"))
    form = forms[0]
    if form in ("impossible", "possible"):
        rows = _rows(where, form, plain[form], columns)
        return Listed(name=name, columns=columns, combinations=rows, possible=form == "possible")
    if len(columns) != 2:
        raise DomainError(f"{where}: {form} is about two columns, got {len(columns)}")
    pair = (columns[0], columns[1])
    if form == "map":
        return Mapped(name=name, columns=pair, to=_map(where, plain["map"], pair, folder))
    if plain["order"] not in ("<=", "<"):
        raise DomainError(f'{where}: order must be "<=" or "<", got {plain["order"]!r:.80}; for ">" swap the columns')
    return Ordered(name=name, columns=pair, strict=plain["order"] == "<")


def _columns(where: str, plain: object) -> tuple[str, ...]:
    if not isinstance(plain, (list, tuple)) or not plain or not all(isinstance(one, str) for one in plain):
        raise DomainError(f"{where} needs columns, a list of the columns it is about, got {plain!r:.80}")
    twice = first_repeated(plain)
    if twice is not None:
        raise DomainError(f"{where} names the column {twice!r} twice; name each once")
    return tuple(plain)


def _rows(where: str, form: str, plain: object, columns: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if not isinstance(plain, (list, tuple)) or not plain:
        raise DomainError(f"{where}: {form} must be a list of combinations, a label for each column, got {plain!r:.80}")
    for row in plain:
        if not isinstance(row, (list, tuple)) or len(row) != len(columns):
            raise DomainError(
                f'{where}: each combination has a label, or "*" for any, for each of {len(columns)} columns, got '
                f"{row!r:.80}"
            )
    return tuple(dict.fromkeys(tuple(_label(where, label) for label in row) for row in plain))


def _map(where: str, plain: object, columns: tuple[str, str], folder: Path | None) -> tuple[tuple[str, str], ...]:
    pairs: Sequence[Any]
    if isinstance(plain, str):
        pairs = _file(where, plain, columns, folder)
    elif isinstance(plain, Mapping):
        pairs = list(plain.items())
    elif isinstance(plain, (list, tuple)):
        pairs = plain
    else:
        raise DomainError(f"{where}: map must be a table, a list of pairs or a CSV file, got {plain!r:.80}")
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise DomainError(f"{where}: a map is made of pairs, a label of each column, got {pair!r:.80}")
    if not pairs:
        raise DomainError(f"{where}: the map is empty; give a label of {columns[1]} for each of {columns[0]}")
    return tuple(dict.fromkeys((_label(where, one), _label(where, other)) for one, other in pairs))


def _label(where: str, plain: object) -> str:
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int) and not isinstance(plain, bool):
        return str(plain)
    raise DomainError(f"{where}: labels are texts in quotes, or codes, got {plain!r:.80}")


def _file(where: str, name: str, columns: tuple[str, str], folder: Path | None) -> list[tuple[str, str]]:
    """Pairs from a CSV file whose first line names the columns; it may have more. Raises DomainError."""
    path = Path(name) if folder is None else folder / name
    try:
        text = bounded_bytes(path, _MAX_FILE_BYTES).decode("utf-8-sig")
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DomainError(f"{where}: cannot read the map {name!r}: {reason}") from None
    if not lines or any(column not in lines[0] for column in columns):
        raise DomainError(
            f"{where}: the first line of the map {name!r} must name the columns {columns[0]} and {columns[1]}"
        )
    one, other = (lines[0].index(column) for column in columns)
    values: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(lines[0]):
            raise DomainError(f"{where}: row {number} of the map {name!r} has {len(line)} fields, not {len(lines[0])}")
        if values.setdefault(line[one], line[other]) != line[other]:
            raise DomainError(f"{where}: the map {name!r} has {line[one]!r} twice, with different {columns[1]}")
    return list(values.items())
