"""Pairs of two related tables that differ in one key, with its rows in both; files with odd fields, and odd types."""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

import dpgm_core as dpgm
from dpgm_core.sources.related import RelatedSource
from tests.neighbours.cells import KINDS, cell_of
from tests.neighbours.observe import Run
from tests.neighbours.runs import BUDGETS, TERMS, Pair, by_selector

_FIELDS = (
    b"F", b"M", b"3", b"50", b"", b" ", b"nan", b"-inf", b"1e999", b"\xff\xfe", b"\0", b"\r", b"9" * 400, b"x" * 70_000,
    b"2020-02-29", b"SECRET", b"\xef\xbb\xbf7", b"absent", b"-0.0",
)  # fmt: skip
_HEADS = {"roots": ("id", "sex"), "children": ("id", "line", "age", "job")}
#: Of each table the rows of a key: cells.
Unit: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]


def related_pairs(seed: int = 0) -> Iterator[Pair]:
    """Pairs without end; every fourth chooses its structure."""
    for number in count():
        draw = random.Random(f"related {seed} {number}")
        pair = _pair(f"related {number} of seed {seed}", draw)
        yield by_selector(pair, number // 4) if number % 4 == 3 else pair


def _pair(name: str, draw: random.Random) -> Pair:
    change, most = draw.choice(list(TERMS)), draw.choice([1, 2, 3, 5])
    order = draw.choice(["line", None])
    kind = draw.choice([None, *KINDS])
    while True:
        try:
            units = [_unit(f"{key}", kind, draw, root=key == 1 or draw.random() < 0.8) for key in range(1, 4)]
            own = [_unit(key, kind, draw, root=change == "replace" or draw.random() < 0.8) for key in ("7", "88")]
            sides = [units, [*units, own[0]]] if change == "add" else [[*units, one] for one in own]
            made = [_files(side, draw) if kind is None else _tables(side, kind, draw) for side in sides]
        except Exception:  # this type has no such cell
            kind = draw.choice([None, *KINDS])
            continue
        return Pair(
            f"{name}: {kind or 'csv'} {change} r = {most} {order}", *(_run(*one, change, most, order) for one in made)
        )


def _unit(key: str, kind: str | None, draw: random.Random, *, root: bool) -> Unit:
    def odd() -> Any:
        return draw.choice(_FIELDS) if kind is None else cell_of(KINDS[kind], draw)

    plain = key.encode()
    roots = [(plain, odd()) for _ in range(draw.choice([1, 1, 2]) if root else 0)]
    children = range(draw.choice([0, 1, 2, 4]) if root else 1)
    if key == "1":  # so that no file ends with its first line
        children = range(2)
    return {"roots": roots, "children": [(plain, odd(), odd(), odd()) for _ in children]}


def _files(units: Sequence[Unit], draw: random.Random) -> tuple[dict[str, bytes], Any]:
    """CSV files, and how they are opened."""
    files = {}
    for table, head in _HEADS.items():
        rows = [row for unit in units for row in unit[table]]
        draw.shuffle(rows)
        lines = [",".join(head).encode(), *(b",".join(row) for row in rows)]
        files[f"{table}.csv"] = b"".join(line + b"\n" for line in lines)
    return files, lambda folder: [
        {"source": "csv", "path": str(folder / f"{one}.csv"), "quoting": False} for one in _HEADS
    ]


def _tables(units: Sequence[Unit], kind: str, draw: random.Random) -> tuple[dict[str, bytes], Any]:
    """Tables of Arrow whose columns, but for the key, are of one type."""
    tables = []
    for table, head in _HEADS.items():
        rows = [row for unit in units for row in unit[table]]
        draw.shuffle(rows)
        keys = pa.array([row[0].decode() for row in rows], pa.string())
        odd = [pa.concat_arrays([pa.nulls(0, KINDS[kind]), *(row[at] for row in rows)]) for at in range(1, len(head))]
        tables.append(pa.table([keys, *odd], head))
    return {}, lambda folder: [one.to_reader(max_chunksize=2) for one in tables]


def _run(files: dict[str, bytes], data: Any, change: str, most: int, order: str | None) -> Run:
    """`fit` on both, with a ledger and a file for the release."""

    def run(folder: Path, selector: Mapping[str, object] | None = None, kind: str = "epsilon") -> object:
        roots, persons = (
            dpgm.Domain.from_dict({"attributes": attributes})
            for attributes in (
                {"sex": {"labels": ["F", "M"]}},
                {"age": {"bins": [0, 40, 99]}, "job": {"labels": ["3", "F"]}},
            )
        )
        related = dpgm.Related(root=roots, children=persons, key="id", max_children=most, order=order)
        terms = {"neighbours": TERMS[change], "unit": "one key", "related": related}
        root, children = data(folder)
        ledger = dpgm.Ledger.create(folder / "x.ledger", name="x", budget=BUDGETS[kind], **terms)
        asked = {"terms": dpgm.Terms(**terms), "ledger": ledger, "save_release": folder / "x.release.dpgm"}
        source = RelatedSource(root=root, children=children, related=related)
        if selector is None:
            structure = dpgm.Structure(
                related.pair, [("sex", "size"), ("size", "first.age"), ("first.age", "first.job")]
            )
            return dpgm.fit(source, structure, BUDGETS[kind], **asked).model.guarantee()
        seeded = {"randomness": dpgm.SeededRandomness(7)}
        done = dpgm.fit(source, selector, BUDGETS[kind], workload=related.pair, **asked, **seeded)
        return done.model.guarantee(), done.model.structure, done.notes

    return Run(python=run, files=files)
