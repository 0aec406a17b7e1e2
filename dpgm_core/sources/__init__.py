"""Sources of records: CSV, Parquet, Arrow and integer codes, all as batches of codes over a public domain.

For authors of sources: what a source may offer in addition to `Source`; `as_source`, to wrap another source; and for
engines that sum where the rows are `ReducingSource` and the work that is sent there, `Shipped`. `RelatedSource` reads
two related tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgm_core._util.lazy import face
from dpgm_core._util.locations import Place, Url, place
from dpgm_core.errors import DataError, SourceRefused

if TYPE_CHECKING:
    from dpgm_core.sources.contract import (
        Adding,
        AnySource,
        FileSource,
        Grouped,
        KeyedSource,
        NamedColumns,
        Pinned,
        RawBatch,
        RawValues,
        Reading,
        ReducingSource,
        Reduction,
        Source,
    )
    from dpgm_core.sources.engines import Shipped, merged, received
    from dpgm_core.sources.related import RelatedSource

# module -> its public names
_LAZY = {
    "contract": [
        "Adding",
        "AnySource",
        "FileSource",
        "Grouped",
        "KeyedSource",
        "NamedColumns",
        "Pinned",
        "RawBatch",
        "RawValues",
        "Reading",
        "ReducingSource",
        "Reduction",
    ],
    "engines": ["Shipped", "merged", "received"],
    "related": ["RelatedSource"],
}

__all__ = [
    "Adding",
    "AnySource",
    "FileSource",
    "Grouped",
    "KeyedSource",
    "NamedColumns",
    "Pinned",
    "RawBatch",
    "RawValues",
    "Reading",
    "ReducingSource",
    "Reduction",
    "RelatedSource",
    "Shipped",
    "SourceRefused",
    "Url",
    "as_source",
    "merged",
    "received",
]

__getattr__, __dir__ = face(__name__, _LAZY)

_SUFFIXES = ".csv, .csv.gz, .parquet, .arrow, .feather or .ipc, or be a folder of Parquet files"
_FRAME = "read it with pandas.{} in Python and give the data frame in place of the path"
_DATABASE = (
    "name the source and the table, as in a spec's data = "
    '{ source = "sql", database = "duckdb:///FILE", table = "..." }; it comes with: pip install dpgm-sql'
)
# Endings of files that are read in another way -> that way.
_OTHERS = {
    (".tsv", ".tab", ".txt", ".dat", ".data"): "if it is delimited text, name the source, as in a spec's data = "
    '{ source = "csv", path = "...", delimiter = "\\t" }',
    (".xlsx", ".xls", ".ods"): _FRAME.format("read_excel"),
    (".sav", ".zsav"): _FRAME.format("read_spss"),
    (".sas7bdat", ".xpt"): _FRAME.format("read_sas"),
    (".dta",): _FRAME.format("read_stata"),
    (".db", ".duckdb", ".sqlite", ".sqlite3"): f"if it is a database, {_DATABASE}",
}
_DATABASES = ("duckdb", "mysql", "postgres", "postgresql", "sqlite")


def as_source(data: Any) -> AnySource:
    """Return a source for whatever holds the records.

    Parameters
    ----------
    data
        A path, or a URL that fsspec reads, such as s3://bucket/visits.parquet (its ending says the format; a folder is
        one of Parquet files); a table as in a spec file, {"source": "csv", "path": ..., option: ...}; an object with
        `__arrow_c_stream__` (pandas, polars, pyarrow, DuckDB), or one that a plugin takes (`Component.takes`); a 2-d
        array of integer codes, or a mapping from attribute name to a code array; a `Source` or `ReducingSource`.

    Raises
    ------
    DataError
        For anything else, and whatever making the source of a table or of a plugin raises.

    Examples
    --------
    >>> as_source("visits.csv.gz").path.name
    'visits.csv.gz'
    >>> as_source({"source": "csv", "path": "visits.csv", "delimiter": ";"}).delimiter
    ';'
    """
    # Imported here so that no format is loaded before it is needed.
    from dpgm_core.components.registry import default_registry
    from dpgm_core.sources.contract import ReducingSource, Source

    if isinstance(data, (str, PathLike, Url)):
        return _file(place(data))
    if isinstance(data, type):
        raise DataError(f"records must be an object, not the class {data.__name__}")
    # First, as an engine's frame may have a stream too, which would bring all of its rows here.
    taken: AnySource | None = default_registry().source_of(data)
    if taken is not None:
        return taken
    if hasattr(data, "__arrow_c_stream__"):
        from dpgm_core.sources.arrow import ArrowSource

        return ArrowSource(data=data)
    if isinstance(data, (Source, ReducingSource)):
        return data
    if isinstance(data, Mapping) and any(isinstance(value, (str, PathLike)) for value in data.values()):
        return _named(data)
    if isinstance(data, Mapping) or hasattr(data, "__array_interface__"):
        import numpy as np

        from dpgm_core.sources.codes import CodesSource

        return CodesSource(data=data if isinstance(data, Mapping) else np.asarray(data))
    raise DataError(
        f"records cannot be read from {type(data).__name__}; give a path, a data frame (pandas, polars, pyarrow, "
        "DuckDB), integer codes as a 2-d array or as a mapping from name to array, or a Source"
    )


def _named(table: Mapping[str, Any]) -> AnySource:
    """Return the source that a table names. Columns of codes are arrays, so a text among the values marks a table."""
    from dpgm_core.components.registry import make

    name = table.get("source")
    if not isinstance(name, str):
        raise DataError(
            "records given as a mapping with texts in it need a source, as in {'source': 'csv', 'path': 'x.csv', "
            "'delimiter': ';'}; a mapping without texts holds a code array for each attribute"
        )
    made: AnySource = make("source", name, **{key: value for key, value in table.items() if key != "source"})
    return made


def _file(path: Place) -> Source:
    # A URL of a database is not repeated: what its drivers take for a password is not known here.
    if isinstance(path, Url) and path.full.partition(":")[0].lower() in _DATABASES:
        raise DataError(f"the address of a database is no file of records; {_DATABASE}")
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        from dpgm_core.sources.csv import CsvSource

        return CsvSource(path=path)
    if name.endswith(".parquet") or (path.is_dir() if isinstance(path, Path) else not path.suffix):
        from dpgm_core.sources.parquet import ParquetSource

        return ParquetSource(path=path)
    if name.endswith((".arrow", ".feather", ".ipc")):
        from dpgm_core.sources.arrow import ArrowIpcSource

        return ArrowIpcSource(path=path)
    known = next((how for endings, how in _OTHERS.items() if name.endswith(endings)), None)
    hint = "" if known is None else f"; {known}"
    raise DataError(f"the format of {path} is not known from its name; it must end in {_SUFFIXES}{hint}")
