"""Attribute tables: the description of one column in a domain file, read into the parts of an `Attribute`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, TypeVar

from dpgm_core.domain.bins import (
    DAY,
    OTHER,
    UNITS,
    PrivateBins,
    PrivateLabels,
    bin_edge,
    bounds,
    calendar_edges,
    equal_edges,
    exact_share,
    grid_cells,
)
from dpgm_core.domain.labels import Matching, bin_labels
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError, did_you_mean

__all__ = ["ABSENT", "FORM", "KEYS", "MATCHING", "MAX_SIZE", "MISSING", "VALUES", "attribute_fields", "special_codes"]

T = TypeVar("T")

#: The most labels an attribute may have.
MAX_SIZE = 2**22
#: The label of values that are null or unknown, where the domain names none.
MISSING = "missing"
#: The label of what does not exist, such as a child of a root that has none; `absent = true` adds it to bins.
ABSENT = "absent"

#: Settings that are parts of `Values`, and what these are called there.
VALUES = {"type": "kind", "format": "format", "decimals": "decimals", "scale": "scale", "shape": "shape"}
#: Rules by which raw texts match.
MATCHING = ("case", "blanks", "numbers", "thousands", "decimal", "symbol")
#: What says which labels there are.
FORM = ("labels", "bins", "size", "min", "max", "cap", "coded")
#: What a table may hold.
KEYS = (*FORM, *VALUES, *MATCHING, "null_values", "unknown", "missing", "null", ABSENT, "todo")
KEYS += ("private", "keep", "share")
#: What a table of a column of any type may hold.
_OF_ANY_TYPE = ("private", "keep", "share", "case", "blanks", "null_values", "missing", "null")

_SINGLE = 200  # whole numbers and days get a bin each up to here, if nobody says how many
_BINS = 32
_HOURS = 24  # bins of a whole day
_KEEP = 64  # labels or bins of a column of any type
_NULL_VALUES = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")  # of a column of any type


def attribute_fields(name: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Attribute` that a table stands for. Raises DomainError, with the attribute's name.

    >>> attribute_fields("a", {"labels": ["x", "y"]})["labels"]
    ('x', 'y', 'missing')
    """
    where = f"attribute {name!r}"
    if isinstance(plain, Mapping) and not {"private", "keep", "share"}.isdisjoint(plain):
        return _any_type(where, plain)
    _check(where, plain)
    values = _named(where, lambda: Values(**_values(plain)))
    rules = {key: plain[key] for key in MATCHING if key in plain}
    matching = _named(where, lambda: Matching(**rules))
    fields: dict[str, Any] = {"values": values, "matching": matching}
    if "null_values" in plain:
        fields["null_values"] = tuple(_texts(where, "null_values", plain["null_values"]))
    if "size" in plain:
        return fields | _sized(name, where, plain)
    if "bins" in plain or "min" in plain or "max" in plain or (values.kind == "time" and "labels" not in plain):
        more, labels = _binned(name, where, plain, values)
    elif isinstance(plain.get("labels"), Mapping):
        return fields | _open(where, plain)
    else:
        if "labels" not in plain and values.kind == "boolean":
            labels = ["false", "true"]
            fields["matching"] = _named(where, lambda: Matching(**{"case": False} | rules))
        else:
            labels = _texts(where, "labels", plain["labels"])
        if not isinstance(plain.get("coded", False), bool):
            raise DomainError(f"{where}: coded must be true or false, got {plain['coded']!r}")
        more = {"coded": plain.get("coded", False)}
    every, unknown, null = _special(where, labels, plain)
    if ABSENT in plain:
        if plain[ABSENT] is not True or "edges" not in more:
            raise DomainError(f"{where}: absent must be true, and goes with bins; others list the label {ABSENT!r}")
        every += (ABSENT,)
    return fields | more | {"labels": every, "unknown": unknown, "null": null}


def special_codes(labels: Sequence[str], unknown: str, null: str | None) -> tuple[tuple[str, ...], int, int]:
    """Return the labels with those of unknown and null values, appended where they are new, and the codes of the two.

    Null values have the label of unknown ones where `null` is None.

    >>> special_codes(["x"], "?", "x")
    (('x', '?'), 1, 0)
    """
    every, null = list(labels), unknown if null is None else null
    for label in (unknown, null):
        if label not in every:
            every.append(label)
    return tuple(every), every.index(unknown), every.index(null)


def _check(where: str, plain: object) -> None:
    if not isinstance(plain, Mapping):
        raise DomainError(f"{where} must be a table such as {{ size = 3 }}, got {plain!r}")
    for key in plain:
        if key not in KEYS:
            raise DomainError(f"{where} has no setting {key!r}{did_you_mean(key, KEYS)}")
    if "todo" in plain:
        raise DomainError(f"{where} is incomplete: {plain['todo']!s:.200}")
    if "missing" in plain and "null" in plain:
        raise DomainError(f"{where} has both missing and null, which is its old name; leave null out")
    shapes = [key for key in ("bins", "size", "labels") if key in plain]
    if "size" in shapes and len(shapes) > 1:
        raise DomainError(f"{where} needs one of labels, bins or size; it has {shapes}")
    ranged = "min" in plain or "max" in plain
    if not shapes and not ranged and plain.get("type") not in ("boolean", "time"):
        raise DomainError(f"{where} needs one of labels, bins or size; it has none of them")
    if ranged and not ("min" in plain and "max" in plain):
        raise DomainError(f"{where} needs both min and max, or neither")
    if ranged and ("size" in plain or ("labels" in plain and "bins" not in plain)):
        raise DomainError(f"{where}: min and max go with bins, not with {shapes[0]}")
    if "coded" in plain and ("size" in plain or "bins" in plain or ranged):
        raise DomainError(f"{where}: coded goes with labels, not with {'size' if 'size' in plain else 'bins'}")
    if "cap" in plain and not ("bins" in plain or ranged):
        raise DomainError(f"{where}: cap goes with bins, not with {shapes[0] if shapes else 'labels'}")


def _values(plain: Mapping[str, Any]) -> dict[str, Any]:
    parts = {part: plain[key] for key, part in VALUES.items() if key in plain}
    if "kind" not in parts:
        bins = plain.get("bins")
        ends = [plain.get("min"), plain.get("max"), *(bins if isinstance(bins, (list, tuple)) else [])]
        kinds = {"datetime": datetime, "date": date, "time": time}
        matching = [kind for kind, of in kinds.items() if any(isinstance(end, of) for end in ends)]
        if matching:
            parts["kind"] = matching[0]
        elif "min" in plain or parts:
            parts["kind"] = "number" if "format" not in parts else "date"
    return parts


def _sized(name: str, where: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    size = plain["size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise DomainError(f"{where}: size must be a whole number of at least 1, got {size!r}")
    if size > MAX_SIZE:
        raise DomainError(f"{where}: size {size} is above the largest possible, {MAX_SIZE}")
    if "null_values" in plain:
        raise DomainError(f"{where}: null_values and coded go with labels, not with size")
    labels = [str(code) for code in range(size)]
    # The codes of a size may be given as numbers.
    codes = {key: _code(where, key, plain[key], size) for key in ("unknown", "missing", "null") if key in plain}
    every, unknown, null = _special(where, labels, codes)
    return {"labels": every, "unknown": unknown, "null": null}


def _binned(name: str, where: str, plain: Mapping[str, Any], values: Values) -> tuple[dict[str, Any], list[str]]:
    bins, cap = plain.get("bins"), plain.get("cap", False)
    if not isinstance(cap, bool):
        raise DomainError(f"{where}: cap must be true or false, got {cap!r}")
    if values.kind == "boolean":
        raise DomainError(f"{where}: bins do not go with type = 'boolean'; leave them out")
    if isinstance(bins, (list, tuple)):
        if "min" in plain:
            raise DomainError(f"{where} has both min and max and the edges of its bins, which say them; leave one out")
        edges = tuple(bin_edge(name, edge, values) for edge in bins)
        private = None
        if len(edges) < 2:
            raise DomainError(f"{where}: bins need at least two edges, got {len(edges)}")
        if any(not low < high for low, high in itertools.pairwise(edges)):
            raise DomainError(f"{where}: bin edges must ascend strictly, got {list(edges)!r:.200}")
    else:
        edges, private = _cut(name, where, plain, values)
    if cap and not all(map(math.isfinite, edges)):
        raise DomainError(f"{where}: cap goes with finite bounds; infinite edges take everything already")
    labels = bin_labels(name, edges, values, cap=cap)
    if "labels" in plain:
        own_labels = _texts(where, "labels", plain["labels"])
        if private is not None:
            raise DomainError(f"{where}: private bins are named by their edges; leave labels out")
        if len(own_labels) != len(labels):
            raise DomainError(
                f"{where}: {len(edges)} edges make {len(labels)} bins, but {len(own_labels)} labels are given"
            )
        labels = own_labels
    return {"edges": edges, "cap": cap, "private": private}, labels


def _cut(
    name: str, where: str, plain: Mapping[str, Any], values: Values
) -> tuple[tuple[float, ...], PrivateBins | None]:
    """Edges that are computed from min and max; placeholders if they are to be found privately."""
    bins = plain.get("bins")
    if "min" not in plain and values.kind == "time":
        plain = {**plain, "min": 0, "max": DAY}
    if "min" not in plain:
        raise DomainError(
            f"{where}: bins must be a list of edges, or stand with min and max, as bins = 32, 'month' or "
            f"{{ private = 32 }} do; got {bins!r:.60}"
        )
    low, high = bounds(name, plain["min"], plain["max"], values)
    if bins is None:
        whole = values.kind in ("integer", "date")
        bins = int(high - low) + 1 if whole and high - low < _SINGLE else _BINS
        if values.kind == "time" and high - low == DAY:
            bins = _HOURS
    if isinstance(bins, str):
        if bins not in UNITS:
            raise DomainError(f"{where}: bins = {bins!r} is no unit of the calendar: {', '.join(UNITS)}")
        return calendar_edges(name, low, high, bins, values), None
    if not isinstance(bins, Mapping):
        return equal_edges(name, low, high, bins, values), None
    for key in bins:
        if key not in ("private", "share"):
            raise DomainError(f"{where}: bins has no setting {key!r}{did_you_mean(key, ('private', 'share'))}")
    if "private" not in bins:
        raise DomainError(f"{where}: bins as a table needs private, as in bins = {{ private = 32 }}")
    share = _named(where, lambda: exact_share(bins["share"])) if "share" in bins else None
    cells = grid_cells(low, high, values)
    private = _named(where, lambda: PrivateBins(count=bins["private"], low=low, high=high, cells=cells, share=share))
    return equal_edges(name, low, high, private.count, values), private


def _open(where: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Labels that are to be found privately, with placeholders."""
    table = plain["labels"]
    known = ("private", "keep", "share")
    for key in table:
        if key not in known:
            raise DomainError(f"{where}: labels has no setting {key!r}{did_you_mean(key, known)}")
    if table.get("private") is not True or "keep" not in table:
        raise DomainError(f"{where}: labels as a table must be as in labels = {{ private = true, keep = 100 }}")
    if "coded" in plain:
        raise DomainError(f"{where}: coded goes with public labels")
    if "unknown" in plain:
        raise DomainError(f"{where}: values of an open column that are not found are {OTHER!r}; leave unknown out")
    share: dict[str, Any] = {"share": _named(where, lambda: exact_share(table["share"]))} if "share" in table else {}
    return _placeholders(where, plain, _named(where, lambda: PrivateLabels(keep=table["keep"], **share)))


def _any_type(where: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing is known of the column; with placeholders."""
    for key in plain:
        if key not in _OF_ANY_TYPE:
            raise DomainError(
                f"{where}: {key} does not go with private = true, by which all of the column is found; leave one out"
            )
    if plain.get("private") is not True:
        raise DomainError(f"{where}: a column of which nothing is known has private = true, as a word of its own")
    share = _named(where, lambda: exact_share(plain.get("share", "1/20")))
    private = _named(where, lambda: PrivateLabels(keep=plain.get("keep", _KEEP), share=share, any_type=True))
    rules = {"blanks": "strip"} | {key: plain[key] for key in MATCHING if key in plain}
    fields: dict[str, Any] = {"matching": _named(where, lambda: Matching(**rules))}
    fields["null_values"] = tuple(_texts(where, "null_values", plain.get("null_values", _NULL_VALUES)))
    return fields | _placeholders(where, plain, private)


def _placeholders(where: str, plain: Mapping[str, Any], private: PrivateLabels) -> dict[str, Any]:
    labels = [f"label {number}" for number in range(1, private.keep + 1)]
    # Where no text is null, as the domain says, other values are the label of all that is not found.
    never = plain.get("null_values") in ([], ())
    missing = plain.get("missing", plain.get("null", OTHER if never else MISSING))
    _text(where, "missing", missing)
    every, unknown, null = special_codes(labels, OTHER, missing)
    return {"labels": every, "unknown": unknown, "null": null, "private": private}


def _special(where: str, labels: list[str], plain: Mapping[str, Any]) -> tuple[tuple[str, ...], int, int]:
    if not labels:
        raise DomainError(f"{where} has no labels; give at least one")
    for key in ("unknown", "missing", "null"):
        if key in plain:
            _text(where, key, plain[key])
    null = plain.get("missing", plain.get("null"))
    if "unknown" in plain:
        return special_codes(labels, plain["unknown"], null)
    # A label of its own: no answer that somebody may have given.
    own = MISSING if null is None or null in labels else null
    return special_codes(labels, own, null)


def _named(where: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except DomainError as error:
        raise DomainError(f"{where}: {error}") from None


def _text(where: str, key: str, value: object) -> None:
    if not isinstance(value, str):
        raise DomainError(f"{where}: {key} must be a label (a text in quotes), got {value!r}")


def _texts(where: str, key: str, values: object) -> list[str]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise DomainError(f"{where}: {key} must be a list of texts in quotes, got {values!r}")
    return list(values)


def _code(where: str, key: str, value: object, size: int) -> str:
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            return value  # a label of its own
        value = int(value[:30])
    if not isinstance(value, int) or isinstance(value, bool):
        raise DomainError(f"{where}: {key} must be a code such as 0, got {value!r}")
    if not 0 <= value < size:
        raise DomainError(f"{where}: {key} must be a code below {size}, got {value!r}")
    return str(value)
