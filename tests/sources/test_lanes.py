"""Streams in threads: the order of one after the other, bounded memory, errors where they belong, no thread left."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.parquet import in_lanes
from dpgm_core.sources.reading import attempt


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("ahead", [1, 7, 10**6])
def test_the_order_is_that_of_one_after_the_other(lanes: int, ahead: int) -> None:
    """Whichever lane is faster, and however little room there is; empty streams included."""
    draw = random.Random(lanes)
    lengths = [draw.randrange(6) for _ in range(25)]

    def stream(number: int) -> Iterator[tuple[int, int]]:
        for item in range(lengths[number]):
            time.sleep(draw.random() / 3000)
            yield number, item

    made = in_lanes([lambda n=n: stream(n) for n in range(25)], lambda item: 2, lanes, ahead)  # type: ignore[misc]
    assert list(made) == [(number, item) for number, length in enumerate(lengths) for item in range(length)]


def test_lanes_wait_where_nobody_takes() -> None:
    """What is made and not taken stays within the room, and one item that is being made for each lane."""
    made = []

    def stream(number: int) -> Iterator[int]:
        for item in range(1000):
            made.append(number)
            yield item

    items = in_lanes([lambda n=n: stream(n) for n in range(9)], lambda item: 10, 2, 300)  # type: ignore[misc]
    next(items)
    time.sleep(0.05)
    assert 3 <= len(made) <= 1 + 300 // 10 + 2
    items.close()  # type: ignore[attr-defined]


def test_an_item_larger_than_the_room_passes() -> None:
    """Alone; else nothing would ever move."""
    assert list(in_lanes([lambda: iter("ab"), lambda: iter("c")], lambda item: 10**9, 2, 8)) == ["a", "b", "c"]


def test_an_error_comes_behind_the_items_before_it() -> None:
    """As it would without threads, also where a later stream fails first; and what follows it is not handed out."""

    def failing() -> Iterator[int]:
        yield 1
        attempt("it is damaged", lambda: 1 // 0)

    taken: list[int] = []
    with pytest.raises(DataError, match=r"^it is damaged$"):
        for item in in_lanes([lambda: iter([0]), failing, lambda: iter([2])], lambda item: 1, 2):
            taken.append(item)
    assert taken == [0, 1]


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError, KeyboardInterrupt])
def test_what_is_no_ordinary_error_ends_the_lane_too(kind: type[BaseException]) -> None:
    """Such as an event loop's cancellation: whoever takes the items gets it, and does not wait for ever."""

    def failing() -> Iterator[int]:
        yield 1
        raise kind("it ended")

    caught: list[BaseException] = []

    def take() -> None:
        try:
            list(in_lanes([failing, failing], lambda item: 1, 2))
        except BaseException as error:
            caught.append(error)

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    taker.join(20)
    assert not taker.is_alive()
    assert [type(error) for error in caught] == [kind]


def test_no_thread_outlives_an_iterator_that_is_dropped() -> None:
    """Full lanes end at their next item."""
    before = threading.active_count()
    items = in_lanes([lambda: iter(range(10**9)) for _ in range(4)], lambda item: 1, 3, 30)
    next(items)
    assert threading.active_count() == before + 3
    del items
    assert threading.active_count() == before


def test_an_iterator_that_is_kept_lets_the_interpreter_end() -> None:
    """Though its lanes are full and wait."""
    code = (
        "from dpgm_core.sources.parquet import in_lanes\n"
        "kept = in_lanes([lambda: iter(range(10**9)) for _ in range(4)], lambda item: 1, 2, 30)\n"
        "print(next(kept))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n" and not done.stderr


def test_row_groups_in_threads_change_no_code_and_no_order(tmp_path: Path) -> None:
    """Runs of several row groups, of a file and of a folder: the codes are those of the table, row by row."""
    draw = np.random.default_rng(0)
    rows = 2**21
    table = pa.table({"a": draw.integers(0, 250, rows, np.uint8), "b": draw.integers(-1, 3, rows, np.int8)})
    (tmp_path / "t").mkdir()
    pq.write_table(table, tmp_path / "t" / "1.parquet", row_group_size=2**18)
    pq.write_table(table.slice(0, 1000), tmp_path / "t" / "2.parquet")
    domain = Domain.from_sizes({"a": 250, "b": 2})
    batches = list(as_source(tmp_path / "t").batches(domain, ["b", "a"]))
    first, second = (np.concatenate([batch[column] for batch in batches]) for column in (0, 1))
    a, b = (np.concatenate([table[name].to_numpy(), table[name].to_numpy()[:1000]]) for name in "ab")
    assert np.array_equal(second, a) and np.array_equal(first, np.where((b < 0) | (b > 1), 0, b))
