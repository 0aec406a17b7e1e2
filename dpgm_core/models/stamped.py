"""Stamps of files of synthetic records: their location and content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpgm_core.files import open_regular

__all__ = ["sidecar_path", "read_stamp"]

_MAX_STAMP_BYTES = 2**20


def sidecar_path(path: Path) -> Path:
    """Return the path of the stamp of a CSV file, which has no metadata: NAME.csv.dpgm.json.

    >>> sidecar_path(Path("s.csv")).name
    's.csv.dpgm.json'
    """
    return path.with_name(f"{path.name}.dpgm.json")


def read_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp in a JSON file, or in the metadata `dpgm` of a Parquet or Arrow file; None where there is none.

    Nothing proves it: plain values, of which only `dpgm` and `guarantee` are known to exist.
    """
    try:
        facts = json.loads(_text(path))
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and {"dpgm", "guarantee"} <= set(facts) else None


def _text(path: Path) -> bytes:
    """Return the bytes that may be a stamp; empty for other files."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        with open_regular(path) as file:
            if path.suffix == ".json":
                return file.read(_MAX_STAMP_BYTES)
            if path.suffix == ".parquet":
                schema = pyarrow.parquet.read_schema(file)
            else:
                with pyarrow.ipc.open_file(file) as reader:
                    schema = reader.schema
        return bytes((schema.metadata or {}).get(b"dpgm", b""))
    except (OSError, pyarrow.ArrowException):
        return b""
