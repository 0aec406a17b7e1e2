"""Records in dask data frames, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The source `dask`."""
    yield Component(
        kind="source",
        name="dask",
        target="dpgm_dask.source:DaskSource",
        summary="a dask data frame or Parquet files, summed where the partitions are, on any dask scheduler",
        records="dpgm_dask.records:of_table",
        takes=("dask.dataframe.dask_expr._collection:DataFrame",),
    )
