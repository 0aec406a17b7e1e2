"""Constraints as a domain file states them: `[constraints.NAME]` with columns and one form."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpgm_core.attribute import Attribute, first_repeated
from dpgm_core.constraints.forms import Constraint, Listed, Mapped
from dpgm_core.constraints.order import Ordered
from dpgm_core.errors import DomainError, did_you_mean
from dpgm_core.files import bounded_bytes

__all__ = ["read_constraint", "read_constraints"]

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
