"""A source that sums where its rows are, over partitions of an Arrow table in this process, for tests."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from dpgm_core.sources.contract import Pinned, Reading, Reduction
from dpgm_core.sources.engines import Shipped, received

#: What no error, log or model may hold.
PLANTED = "Miss Marple, 1890-09-15"


@frozen(kw_only=True)
class Partitioned:
    """The rows of a table in any order, cut into so many partitions, each worked on in bytes alone.

    seed: of order and cuts. fails_at: the number of the sum that is lost, from 1; with 0 it cannot be reached. lies:
    what is done to each sum that comes back. log: notes "enter", "sum" and "exit".
    """

    table: pa.Table
    parts: int = 3
    seed: int = 0
    fails_at: int | None = None
    lies: Callable[[np.ndarray], Any] = lambda sums: sums
    fails_to_leave: bool = False
    log: list[str] = field(factory=list)

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[Pinned]:
        self.log.append("enter")
        if self.fails_at == 0:
            raise OSError(f"no route to {PLANTED}")
        work = Shipped(reading=reading)
        work.check(self.table.schema)
        try:
            yield _Still(self, work, [list(part) for part in self._parts(work)])
        finally:
            self.log.append("exit")
            if self.fails_to_leave:
                raise OSError(PLANTED)

    def _parts(self, work: Shipped) -> Iterator[Iterator[bytes]]:
        """Blocks of codes, of whole persons."""
        rng = random.Random(self.seed)
        table = self.table.take(pa.array(rng.sample(range(self.table.num_rows), self.table.num_rows), pa.int64()))
        cuts = [0, *sorted(rng.choices(range(table.num_rows + 1), k=self.parts - 1)), table.num_rows]
        cut = [table.slice(one, other - one).to_batches(max_chunksize=97) for one, other in itertools.pairwise(cuts)]
        if work.reading.person is None:
            return (_sent(work).blocks(part) for part in cut)
        met: list[list[bytes]] = [[] for _ in cut]
        for part in cut:
            for number, block in _sent(work).spread(part, self.parts):
                met[number].append(block)
        return (_sent(work).limit_rows(blocks) for blocks in met)


@frozen
class _Still:
    source: Partitioned
    work: Shipped
    parts: list[list[bytes]]

    def reduce(self, reduction: Reduction) -> np.ndarray:
        source = self.source
        source.log.append("sum")
        if source.log.count("sum") == source.fails_at:
            raise OSError(PLANTED)
        back = [_sent(self.work).partial(_sent(reduction), part) for part in self.parts]
        random.Random(source.seed).shuffle(back)
        return source.lies(received(back, reduction))


def _sent(thing: Any) -> Any:
    """What a worker makes of what it is sent."""
    return pickle.loads(pickle.dumps(thing))
