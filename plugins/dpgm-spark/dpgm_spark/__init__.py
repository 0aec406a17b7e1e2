"""The source `spark` of dpgm: counts are taken by Apache Spark, where the rows are."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """Yield the one component of this distribution."""
    yield Component(
        kind="source",
        name="spark",
        target="dpgm_spark.source:SparkSource",
        summary="a Spark data frame, files or a table; the executors count, and hand over sums only",
        records="dpgm_spark.records:of_table",
        takes=("pyspark.sql.dataframe:DataFrame", "pyspark.sql.classic.dataframe:DataFrame"),
    )
