"""Public metadata as attribute tables: what `dpgm init` and `[domain] from = "..."` read. No record is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

__all__ = ["Metadata", "read_metadata"]


@frozen(kw_only=True)
class Metadata:
    """What a description of a table says of its columns.

    tables: column -> its table as a domain file has it (`labels`, `bins`, `type`, ...); one that could not be settled
    holds `todo`, a sentence of what is to be filled in. comments: column -> what the description says about it.
    """

    tables: Mapping[str, Mapping[str, Any]]
    comments: Mapping[str, str] = field(factory=dict)


def read_metadata(path: str | Path, *, schema_is_public: bool = False) -> Metadata:
    """Read a CSV header, an Arrow or Parquet schema, a codebook, NIST JSON or a Frictionless table schema.

    schema_is_public: whether categories in the schema were written down before the data were seen; if not, they are
    left out, as they are usually the observed values. Raises DomainError.
    """
    raise NotImplementedError
