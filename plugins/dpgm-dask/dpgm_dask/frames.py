"""Data frames of dask as partitions, each made inside of the task that sums it."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping
from typing import Any

import dask
import pyarrow as pa
from attrs import field, frozen
from dask.dataframe.dispatch import make_meta
from dask.optimization import cull
from distributed import futures_of

from dpgm_core import DataError
from dpgm_core.sources import KeyedSource, RawValues, Reading, SourceRefused, as_source

__all__ = ["Frame", "Piece"]


def _interval(parts: tuple[int, int, int]) -> Any:
    return pa.MonthDayNano(parts)


# Arrow's intervals, as in a column of objects, do not pickle by themselves: one of them would fail the whole graph.
copyreg.pickle(pa.MonthDayNano, lambda interval: (_interval, (tuple(interval),)))


@frozen
class Piece:
    """One partition. graph: the tasks that make it, if no other partition needs one of them; if not, dask hands the
    frame over. meta: the frame without its rows, which says what the columns' types are."""

    key: Any
    graph: Mapping[Any, Any] | None = field(repr=False)
    meta: Any = field(repr=False)

    def batches(self, frame: Any) -> Iterator[Any]:
        """Its rows as Arrow record batches."""
        if self.graph is not None:
            frame = dask.get(dict(self.graph), self.key)  # in this thread, so what fails fails in here
        # A column that is not of the type it was said to have, as whole numbers that became floats, is read cell by
        # cell: the type of a partition's column may depend on its values, and one record may not change others.
        odd = [name for name in self.meta.columns if frame[name].dtype != self.meta[name].dtype]
        source = as_source(frame[list(self.meta.columns)].astype(dict.fromkeys(odd, object)))
        assert isinstance(source, RawValues)
        names = [str(name) for name in self.meta.columns]
        for raw in source.raw_batches(names):
            yield pa.RecordBatch.from_arrays(list(raw.columns), names)


@frozen
class Frame:
    """A data frame of dask."""

    data: Any

    def names(self) -> tuple[str, ...]:
        """Its columns."""
        return tuple(map(str, self.data.columns))

    def check(self, reading: Reading) -> None:
        """Refuse what core refuses of the frame without its rows: so what it says is of names and types alone."""
        for name in reading.names:
            if name not in self.names():
                raise SourceRefused(f"the dask data frame has no column {name!r}; names are compared letter by letter")
        source = as_source(make_meta(self.data))
        assert isinstance(source, KeyedSource)
        try:
            source.keyed_batches(reading.domain, reading.coded, reading.person)
            return
        except DataError as error:
            words = str(error)
        raise SourceRefused(words)

    def partitions(self, reading: Reading) -> list[tuple[Piece, Any]]:
        """Each partition with no more than the columns asked for, and the frame that dask is to make, or None."""
        frame = self.data[[name for name in self.data.columns if str(name) in reading.names]]
        made, meta = frame.to_delayed(), make_meta(frame)
        whole = dict(made[0].dask)
        graphs = [cull(whole, [one.key])[0] for one in made]
        shared = sum(map(len, graphs)) > len(set[Any]().union(*graphs))
        if shared or futures_of(frame):  # what partitions share is made once, by dask
            return [(Piece(one.key, None, meta), one) for one in made]
        return [(Piece(one.key, graph, meta), None) for one, graph in zip(made, graphs, strict=True)]
