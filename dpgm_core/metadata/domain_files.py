"""Domain files as plain tables: short forms, NIST schemas, and `from`, another file with changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpgm_core.columns.tables import FORM, KEYS
from dpgm_core.errors import DomainError, did_you_mean
from dpgm_core.files import bounded_bytes
from dpgm_core.metadata.described import apply_defaults, check_defaults
from dpgm_core.metadata.reading import CSV, read_metadata, resolve_map_path
from dpgm_core.toml import parse_toml

__all__ = ["domain_tables", "override_tables", "plain_file"]

MAX_BYTES = 2**26  # of a domain file
_MAX_NESTED_FILES = 16  # files that name one another
_TOP = ("attributes", "constraints", "defaults", "from")


def plain_file(path: Path) -> Any:
    """The plain values of a `.toml` or `.json` file. DomainError, with the file's name, if it cannot be read."""
    try:
        content = bounded_bytes(path, MAX_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise DomainError(f"cannot read the domain file {str(path)!r}: {reason}") from None
    try:
        if path.suffix == ".json":
            return json.loads(content)
        if path.suffix == ".toml":
            return parse_toml(content)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise DomainError(f"domain file {path} is not valid {path.suffix[1:].upper()}: {reason}") from None
    raise DomainError(f"domain file {path}: the name must end in .toml or .json")


def domain_tables(plain: object, folder: Path | None, inside: tuple[Path, ...] = ()) -> dict[str, dict[str, Any]]:
    """`{"attributes": {name: table}, "constraints": {name: table}}` of any shape that `Domain.from_dict` reads.

    `defaults`, beside them, are rules for raw texts in all columns whose own table does not say otherwise. folder:
    where files are that `from` names; None refuses it, so that nothing stored in a release or a model opens a file.
    inside: the files that led here. Raises DomainError.

    >>> domain_tables({"a": 3, "b": ["x", "y"]}, None)["attributes"]
    {'a': {'size': 3}, 'b': {'labels': ['x', 'y']}}
    """
    if not isinstance(plain, Mapping) or not plain:
        raise DomainError("a domain must be a non-empty table of attributes")
    if set(plain) == {"schema"} and isinstance(plain["schema"], Mapping):
        return {"attributes": dict(read_metadata(plain).tables)}
    based = isinstance(plain.get("from"), str)
    if not based and not isinstance(plain.get("attributes"), Mapping):
        return {"attributes": {name: _table(name, entry) for name, entry in plain.items()}}
    for key in plain:
        if key not in (_TOP if based else _TOP[:3]):
            raise DomainError(f"a domain has no setting {key!r}; attributes stand under [attributes.NAME]")
    tables = plain.get("attributes", {})
    if not isinstance(tables, Mapping):
        raise DomainError(f"the attributes of a domain must be tables, [attributes.NAME]; got {tables!r:.80}")
    rules = plain.get("constraints", {})
    defaults = check_defaults(plain.get("defaults", {}))
    if not based:
        return {"attributes": apply_defaults(tables, defaults), "constraints": rules}
    if not isinstance(rules, Mapping):
        raise DomainError(f"the constraints of a domain must be tables, [constraints.NAME]; got {rules!r:.80}")
    if folder is None:
        raise DomainError("'from' names a file, and no folder is given for it; use Domain.load, or say folder = ...")
    base = _base(folder, plain["from"], inside)
    changes = {name: _table(name, entry) for name, entry in tables.items()}
    attributes = override_tables(base["attributes"], changes, origin=plain["from"])
    return {
        "attributes": apply_defaults(attributes, defaults),
        "constraints": {**base.get("constraints", {}), **rules},
    }


def override_tables(
    base: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Mapping[str, Any]], *, origin: str
) -> dict[str, Any]:
    """The tables of `base` with some keys changed, column by column.

    A change of form takes the place of the old form: bins that of labels, edges that of bounds; it also settles a
    `todo`. Labels, or bounds, or bins say all of a form but bounds, which stay when only the number of bins changes.
    Raises DomainError for a column that `base` does not have.

    >>> nist = {"AGEP": {"type": "integer", "min": 0, "max": 94, "unknown": "?"}}
    >>> override_tables(nist, {"AGEP": {"bins": [0, 18, 65, 94]}}, origin="nist.json")
    {'AGEP': {'type': 'integer', 'unknown': '?', 'bins': [0, 18, 65, 94]}}
    """
    attributes: dict[str, Any] = {name: dict(table) for name, table in base.items()}
    for name, change in changes.items():
        if name not in attributes:
            raise DomainError(
                f"[attributes.{name}] changes a column that {origin} does not have{did_you_mean(name, attributes)}"
            )
        gone = _replaced_keys(attributes[name], change)
        attributes[name] = {key: value for key, value in attributes[name].items() if key not in gone} | dict(change)
    return attributes


def _replaced_keys(base: Mapping[str, Any], change: Mapping[str, Any]) -> set[str]:
    new = {key for key in FORM if key in change}
    if not new or new == {"cap"}:
        return set()
    gone = {*FORM, "todo"}
    if "size" in new:
        return gone | {"type", "format", "decimals", "scale", "shape", "null_values"}
    if isinstance(change.get("bins"), (list, tuple)):
        return gone - {"cap"}
    if new & {"bins", "min", "max"}:
        # Bounds stay unless they are given; a number of bins stays with new bounds, edges do not.
        remaining = (
            {"min", "max", "cap"} if isinstance(base.get("bins"), (list, tuple)) else {"min", "max", "cap", "bins"}
        )
        return gone - remaining
    return gone


def _base(folder: Path, name: str, inside: tuple[Path, ...]) -> dict[str, dict[str, Any]]:
    path = folder / name
    where = path.absolute()
    if where in inside or len(inside) >= _MAX_NESTED_FILES:
        shown = " from ".join(repr(one.name) for one in (*inside[-3:], where))
        raise DomainError(f"domain files name one another in a circle, or too deeply: {shown}")
    if path.suffix.lower() == ".bif":
        raise DomainError(f"from = {name!r} is a network; say domain = {{ bif = {name!r} }} instead")
    if path.suffix not in (".toml", ".json"):
        return {"attributes": dict(_metadata(path))}
    plain = plain_file(path)
    if path.suffix == ".json" and not _is_domain(plain):
        return {"attributes": dict(_metadata(path))}
    loaded = domain_tables(plain, path.parent, (*inside, where))
    rules = loaded.get("constraints", {})
    if isinstance(rules, Mapping):
        # What a constraint names is beside the file that says so.
        loaded["constraints"] = {key: resolve_map_path(path.parent, rule) for key, rule in rules.items()}
    return loaded


def _metadata(path: Path) -> Mapping[str, Mapping[str, Any]]:
    if not path.exists():
        raise DomainError(f"cannot read the domain file {str(path)!r}: there is no such file")
    # Of a CSV file only a codebook says anything: the first line of records would leave all to do.
    codebook = path.name.lower().endswith(CSV)
    return read_metadata(None if codebook else path, codebooks=[path] if codebook else []).tables


def _is_domain(plain: object) -> bool:
    """Whether JSON is a domain of ours, and no description of somebody else's that only looks like one."""
    if not isinstance(plain, Mapping):
        return False
    if isinstance(plain.get("attributes"), Mapping) or isinstance(plain.get("from"), str) or set(plain) == {"schema"}:
        return True
    return all(
        isinstance(entry, int)
        or (isinstance(entry, list) and not any(isinstance(value, (Mapping, list)) for value in entry))
        or (isinstance(entry, Mapping) and set(entry) <= set(KEYS))
        for entry in plain.values()
    )


def _table(name: str, entry: object) -> dict[str, Any]:
    """One attribute's table, from a size, a list of labels, or itself."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        return {"size": entry}
    if isinstance(entry, list):
        if any(isinstance(value, (Mapping, list)) for value in entry):
            raise DomainError(
                f"attribute {name!r} has a table among its labels; the attributes of a domain stand under "
                "[attributes.NAME], each with its labels or bins"
            )
        return {"labels": [value if isinstance(value, str) else json.dumps(value, default=str) for value in entry]}
    if isinstance(entry, Mapping):
        return dict(entry)
    raise DomainError(f"attribute {name!r} must be a size, a list of labels or a table, got {entry!r:.80}")
