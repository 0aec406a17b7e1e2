"""Where records are read: CSV, Parquet, Arrow and integer codes, all as batches of codes over a public domain.

The face is for those who write sources: what one may offer besides `Source`, and `as_source`, to wrap another.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgm_core.errors import DataError
from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.sources.contract import FileSource, KeyedSource, NamedColumns, RawBatch, RawValues, Source

# module -> its public names
_LAZY = {"contract": ["FileSource", "KeyedSource", "NamedColumns", "RawBatch", "RawValues"]}

__all__ = ["FileSource", "KeyedSource", "NamedColumns", "RawBatch", "RawValues", "as_source"]

__getattr__, __dir__ = face(__name__, _LAZY)

_SUFFIXES = ".csv, .csv.gz, .parquet, .arrow, .feather or .ipc, or be a folder of Parquet files"
_FRAME = "read it with pandas.{} in Python and give the data frame in place of the path"
# Endings of files that are read in another way -> that way.
_OTHERS = {
    (".tsv", ".tab", ".txt", ".dat", ".data"): "if it is delimited text, name the source, as in a spec's data = "
    '{ source = "csv", path = "...", delimiter = "\\t" }',
    (".xlsx", ".xls", ".ods"): _FRAME.format("read_excel"),
    (".sav", ".zsav"): _FRAME.format("read_spss"),
    (".sas7bdat", ".xpt"): _FRAME.format("read_sas"),
    (".dta",): _FRAME.format("read_stata"),
}


def as_source(data: Any) -> Source:
    """A source for whatever holds the records.

    data: a path (its ending says the format; a folder is one of Parquet files), a table as in a spec file,
    {"source": "csv", "path": ..., option: ...}, an object with `__arrow_c_stream__` (pandas, polars, pyarrow, DuckDB),
    a 2-d array of integer codes, a mapping from attribute name to a code array, or a Source. Raises DataError, and for
    a table what making its source raises.

    >>> as_source("visits.csv.gz").path.name
    'visits.csv.gz'
    >>> as_source({"source": "csv", "path": "visits.csv", "delimiter": ";"}).delimiter
    ';'
    """
    # Imported here so that no format is loaded before it is needed.
    from dpgm_core.sources.contract import Source

    if isinstance(data, (str, PathLike)):
        return _file(Path(data))
    if isinstance(data, type):
        raise DataError(f"records must be an object, not the class {data.__name__}")
    if hasattr(data, "__arrow_c_stream__"):
        from dpgm_core.sources.arrow import ArrowSource

        return ArrowSource(data=data)
    if isinstance(data, Source):
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


def _named(table: Mapping[str, Any]) -> Source:
    """The source that a table names. Columns of codes are arrays, so a text among the values tells a table."""
    from dpgm_core.components.registry import make

    name = table.get("source")
    if not isinstance(name, str):
        raise DataError(
            "records given as a mapping with texts in it need a source, as in {'source': 'csv', 'path': 'x.csv', "
            "'delimiter': ';'}; a mapping without texts holds a code array for each attribute"
        )
    made: Source = make("source", name, **{key: value for key, value in table.items() if key != "source"})
    return made


def _file(path: Path) -> Source:
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        from dpgm_core.sources.csv import CsvSource

        return CsvSource(path=path)
    if name.endswith(".parquet") or path.is_dir():
        from dpgm_core.sources.parquet import ParquetSource

        return ParquetSource(path=path)
    if name.endswith((".arrow", ".feather", ".ipc")):
        from dpgm_core.sources.arrow import ArrowIpcSource

        return ArrowIpcSource(path=path)
    known = next((how for endings, how in _OTHERS.items() if name.endswith(endings)), None)
    hint = "" if known is None else f"; {known}"
    raise DataError(f"the format of {path} is not known from its name; it must end in {_SUFFIXES}{hint}")
