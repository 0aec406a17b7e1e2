"""Neighbours in a database, in Spark or in dask cannot be told apart; engines that are not installed are left out."""

from collections.abc import Iterator
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path

import pytest

from dpgm_core.sources import SourceRefused
from tests.neighbours.differences import differences, scratch
from tests.neighbours.engines import ENGINES, engine_pairs, is_installed
from tests.neighbours.observe import MODES

#: So many pairs take some seconds; `python -m tests.neighbours --engine NAME` tries any number.
PAIRS = {"spark-frames": 2, "spark-files": 2, "dask-client": 6}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with scratch() as found:
        yield found / "run"


def told_apart(engine: str, pairs: int, folder: Path) -> list[str]:
    with engine_pairs(engine, seed=1) as made:
        return [
            f"{pair.name} ({mode}) {what}"
            for pair, mode in zip(islice(made, pairs), cycle(MODES), strict=False)
            for what in differences(pair, folder, mode)
        ]


@pytest.mark.parametrize("engine", ENGINES)
def test_neighbours_in_an_engine_cannot_be_told_apart(engine: str, folder: Path) -> None:
    """Typed columns, over partitions that may be empty and of several types, with and without a person key."""
    if not is_installed(engine):
        pytest.skip(f"what {engine} needs is not installed")
    assert told_apart(engine, PAIRS.get(engine, 15), folder) == []


def test_an_engine_that_counts_aloud_is_found_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that fails at the second row."""
    if not is_installed("sqlite"):
        pytest.skip("dpgm-sql is not installed")
    pinned = import_module("dpgm_sql.pinned")
    reduce = pinned.Streamed.reduce

    def at_most_one(self: object, reduction: object) -> object:
        sums = reduce(self, reduction)
        if sums[-1] > 1:
            raise SourceRefused("the table is too long")
        return sums

    monkeypatch.setattr(pinned.Streamed, "reduce", at_most_one)
    assert told_apart("sqlite", 15, folder) != []
