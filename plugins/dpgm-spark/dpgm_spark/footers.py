"""Types in the footers of Parquet files, which Spark compares with those of a frame only where a file has a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dpgm_core.sources import SourceRefused
from dpgm_spark.session import attempt

__all__ = ["check_footers"]

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
#: Where Spark writes its own types into a footer.
_OWN_TYPES = "org.apache.spark.sql.parquet.row.metadata"
_THREADS = 16
_FAILED = "Spark cannot read the footers of the Parquet files; look for damaged files, or ones that are no Parquet"


def check_footers(spark: Any, frame: Any) -> None:
    """Refuse, with SourceRefused, a frame that reads Parquet files of other types than it has, with rows or without.

    Spark reads a file without rows whatever its types are, and fails at the first row: one record would decide whether
    a run is refused, after the charge. The driver reads each footer; Spark interprets one of each kind of footer.
    """
    for read, files in attempt(_FAILED, lambda: list(_scans(spark, frame))):
        for file in files:
            for field in attempt(_FAILED, lambda file=file: spark.read.parquet(file).schema.fields):  # type: ignore[misc]
                expected = read.get(field.name.lower(), field.dataType)
                if expected != field.dataType:
                    raise SourceRefused(
                        f"column {field.name!r} is read as {expected.simpleString()}, and is "
                        f"{field.dataType.simpleString()} in a Parquet file; write all files with one type"
                    )


def _scans(spark: Any, frame: Any) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """For each scan of Parquet files, the plain types that it reads by name and a file of each kind of footer."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    for leaf in map(leaves.apply, range(leaves.size())):
        if leaf.getClass().getSimpleName() != "FileSourceScanExec":
            continue
        relation = leaf.relation()
        if relation.fileFormat().getClass().getName() != _PARQUET:
            continue  # a reader of other types, as of ORC, does not look at rows, or has its own rules
        schema = StructType.fromJson(json.loads(leaf.requiredSchema().json()))
        # Of nested columns Spark may read a part, and they have no codes. Names match in any case of letters.
        read = {
            field.name.lower(): field.dataType
            for field in schema.fields
            if not isinstance(field.dataType, ArrayType | MapType | StructType)
        }
        conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(relation.options())
        paths = list(_paths(leaf, relation))
        with ThreadPoolExecutor(_THREADS) as pool:
            kinds = pool.map(lambda path, conf=conf: _footer(spark.sparkContext._jvm, path, conf), paths)
            # Spark takes a path as a pattern.
            files = [re.sub(r"([\\{}\[\]*?])", r"\\\1", path.toString()) for path in paths]
            one_of_each = dict(zip(kinds, files, strict=True))
        yield read, list(one_of_each.values())


def _paths(leaf: Any, relation: Any) -> Iterator[Any]:
    """The paths of the files that a scan reads; Spark passes over a file of no bytes."""
    filters = leaf.partitionFilters()
    if "dynamicpruning" in filters.toString().lower():  # not known before the run: all files
        filters = filters.take(0)
    folders = relation.location().listFiles(filters, leaf.dataFilters())
    for folder in map(folders.apply, range(folders.size())):
        files = folder.files()
        for file in map(files.apply, range(files.size())):
            if file.getLen():
                yield file.getPath()


def _footer(jvm: Any, path: Any, conf: Any) -> tuple[str, str | None]:
    """The types in the footer of a file, as Parquet writes them and as Spark does."""
    hadoop = jvm.org.apache.parquet.hadoop
    reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(path, conf))
    try:
        data = reader.getFileMetaData()
        return data.getSchema().toString(), data.getKeyValueMetaData().get(_OWN_TYPES)
    finally:
        reader.close()
