"""Which files a table is, in which order, and what messages call them; here and in fsspec's memory alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpgm_core._util.locations import Place, Url
from dpgm_core.errors import DataError
from dpgm_core.sources.parquet import parts_of

FILES = (
    "b=2/x.parquet",
    "b=1/z.parquet",
    "b=1/y.PQ",
    "b=1/.y.parquet",
    "b=1/notes.txt",
    "_old/b=3/x.parquet",
    "b=a%2Fb/x.parquet",
    "b=__HIVE_DEFAULT_PARTITION__/x.parquet",
)


@pytest.fixture(params=["here", "remote"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A folder of empty files."""
    if request.param == "here":
        for name in FILES:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        yield tmp_path
        return
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for name in FILES:
        memory.pipe(f"/t/{name}", b"")
    yield Url("memory://t")
    memory.store.clear()


def inside(folder: Place, name: str) -> Place:
    return folder / name if isinstance(folder, Path) else Url(f"{folder}/{name}")


def test_files_stand_in_the_order_of_their_names(folder: Place) -> None:
    """Hidden ones and other kinds left out; keys without escapes, null for null, and never in what is shown."""
    parts = parts_of(folder)
    assert [part.values["b"] for part in parts] == ["1", "1", "2", None, "a/b"]
    names = ["y.PQ", "z.parquet", "x.parquet", "x.parquet", "x.parquet"]
    assert [part.shown for part in parts] == [f"{folder}/b=.../{name}" for name in names]


def test_a_pattern_and_a_file(folder: Place) -> None:
    """A pattern's folders below its plain start have keys; a file that is named is just that file, by its own name."""
    assert [part.values for part in parts_of(inside(folder, "b=[12]/[xz].*"))] == [{"b": "1"}, {"b": "2"}]
    assert [part.values for part in parts_of(inside(folder, "b=*"))][:3] == [{"b": "1"}, {"b": "1"}, {"b": "2"}]
    (alone,) = parts_of(inside(folder, "b=1/z.parquet"))
    assert alone.values == {} and alone.shown == f"{folder}/b=1/z.parquet"
    with pytest.raises(DataError, match="holds no Parquet file"):
        parts_of(inside(folder, "c=*"))
