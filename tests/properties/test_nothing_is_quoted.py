"""Wherever a release fails, no record and no true count is in what is left: words, causes, variables of frames, logs.

`said` shows of an error what a traceback with the variables of all frames would.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core.counting.table_counts import Counts
from dpgm_core.curator import funds
from dpgm_core.curator.live import LiveCurator
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy import measurement
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources import arrow, csv, encoding, persons
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.persons import PersonSource
from tests.neighbours.observe import said
from tests.neighbours.runs import file_run

RECORD, COUNT = "PLANTED-77c1", 7919
LINES = "sex,age,id\nF,50,x\n" + f"{RECORD},{RECORD},{RECORD}\n" * COUNT
PANIC = type("Panic", (BaseException,), {})  # what a library written in Rust raises
KINDS = [ValueError, dpgm.DataError, dpgm.ModelFileError]
KINDS += [MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit, PANIC]


def raising(kind: type[BaseException], quotes: bool = True) -> Callable[..., Any]:
    """A function that fails, with all it was given in its words and notes."""

    def fail(*given: Any, **more: Any) -> Any:
        error = kind(f"{RECORD} {given!r}" if quotes else "no room left")
        error.add_note(RECORD if quotes else "none at all")
        raise error

    return fail


#: Where a release may fail: what is replaced, and whether it is paid for by then.
STAGES: dict[str, tuple[Any, str, bool]] = {
    "opening": (csv.CsvSource, "_open", False),
    "parsing": (csv, "malformed_lines", False),
    "decoding": (encoding, "_through", False),
    "keys": (persons, "key_texts", False),
    "checking": (persons, "checked_batch", False),
    "merging": (PersonSource, "merged", False),
    "counting": (Counts, "add", False),
    "tables": (Counts, "tables", False),
    "drawing": (Measurement, "draw", True),
    "adding noise": (measurement, "add_noise", True),
    "totalling": (funds, "estimate_total", True),
    "saving": (NoisyTables, "write", True),
}


def assert_silent(text: str) -> None:
    """Neither the record nor how often it stands there, nor how many records there are."""
    assert not any(secret in text for secret in (RECORD, str(COUNT), str(COUNT + 1))), text


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = file_run("data.csv", LINES.encode(), '"data.csv"', "add", keyed=True)
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path / "x.toml"


@pytest.fixture
def same_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy counts that are not the true ones by chance."""
    draw = Measurement.draw

    def drawn(self: Measurement, counts: Any, randomness: Any, *total: float) -> Any:
        made = draw(self, counts, randomness, *total)
        return dpgm.Tables(made.structure, np.full_like(made.values, 3))

    monkeypatch.setattr(Measurement, "draw", drawn)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.usefixtures("same_for_all")
def test_an_error_holds_no_record(stage: str, kind: Any, run: Path, monkeypatch: Any, caplog: Any) -> None:
    """Left of the noise nothing of it stays; right of it, where nobody was told a record, its words do."""
    where, name, paid = STAGES[stage]
    monkeypatch.setattr(where, name, raising(kind, quotes=not paid))
    structure = dpgm.Structure(dpgm.Domain.load(run.parent / "domain.toml"), [("sex", "age")])
    terms = dpgm.Terms(neighbours="add-remove", person="id", rows_per_person=10_000)
    with pytest.raises(BaseException) as caught:
        data, path = run.parent / "data.csv", run.parent / "x.release.dpgm"
        dpgm.fit(data, structure, dpgm.Budget.pure(1), terms=terms, save_release=path)
    assert_silent(said(caught.value))
    assert not paid or "no room left" in said(caught.value)
    assert not caplog.records


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.usefixtures("same_for_all")
def test_debug_shows_no_record(stage: str, run: Path, monkeypatch: Any, capfd: Any) -> None:
    """The command line's traceback, at the most talkative."""
    where, name, paid = STAGES[stage]
    monkeypatch.setattr(where, name, raising(ValueError, quotes=not paid))
    with pytest.raises(SystemExit) as left:
        main(["--debug", "-v", "fit", str(run), "--set", "rows_per_person=10000"])
    out, err = capfd.readouterr()
    assert left.value.code == (1 if paid else 2) and "Traceback" in err
    assert_silent(out + err)


@pytest.mark.parametrize("places", ["beside the ledger", "temporary", "nowhere"])
@pytest.mark.usefixtures("same_for_all")
def test_a_release_saved_elsewhere_quotes_no_record(places: str, run: Path, monkeypatch: Any, capfd: Any) -> None:
    """Its own folder becomes a file as it is paid for. What is said of it, of the other places and of the model."""
    charge, make, scratch = dpgm.Ledger.charge, tempfile.mkdtemp, run.parent / "scratch"
    scratch.mkdir()

    def charged(self: dpgm.Ledger, *what: Any, **how: Any) -> int:
        (run.parent / "out").rename(run.parent / "old")
        (run.parent / "out").write_text("in the way")
        return charge(self, *what, **how)

    def made(prefix: str, dir: Path | None) -> str:
        if places == "nowhere" or (places == "temporary" and dir is not None):
            raise OSError(28, "no room left")
        return make(prefix=prefix, dir=dir or scratch)

    monkeypatch.setattr(dpgm.Ledger, "charge", charged)
    monkeypatch.setattr(tempfile, "mkdtemp", made)
    with pytest.raises(SystemExit) if places == "nowhere" else nullcontext():
        main(["--debug", "-v", "fit", str(run), "--set", "rows_per_person=10000"])
    out, err = capfd.readouterr()
    saved = [path.parents[1] for path in run.parent.rglob("dpgm-*/x.*")]
    assert saved == {"beside the ledger": [run.parent] * 2, "temporary": [scratch] * 2, "nowhere": []}[places]
    assert ("the release is saved as" in err) is (places != "nowhere") and ("no room left" in err) is not bool(saved)
    assert_silent(out + err)


class Quotes:
    """A third party's source that shows records wherever it can."""

    def batches(self, domain: Any, columns: Any) -> Iterator[Any]:
        raise ValueError(RECORD)

    def names(self) -> Any:
        raise ValueError(RECORD)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_source_that_quotes_is_not_heard(kind: Any, monkeypatch: Any) -> None:
    """At the release and at the look before a ledger is made."""
    monkeypatch.setattr(Quotes, "batches", raising(kind))
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    for call in (
        lambda: dpgm.fit(Quotes(), structure, dpgm.Budget.pure(1), neighbours="add-remove"),
        lambda: Run(Quotes(), structure, dpgm.Budget.pure(1), terms=dpgm.Terms(neighbours="add-remove")).check(),
    ):
        with pytest.raises(BaseException) as caught:
            call()
        assert_silent(said(caught.value))
        assert isinstance(caught.value, (dpgm.DataError, KeyboardInterrupt))


def test_reprs_hide_records(run: Path) -> None:
    """Of what holds or reads them: sources, batches, counts and the curator."""
    table = pa.table({"a": [RECORD] * 3, "id": [RECORD] * 3})
    source = arrow.ArrowSource(data=table)
    (raw,) = source.raw_batches(["a", "id"])
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    codes = CodesSource(data={"a": np.full(COUNT, 1), "id": [RECORD] * COUNT})
    terms = dpgm.Terms(neighbours="add-remove", person="id", rows_per_person=10_000)
    curator = LiveCurator(codes, structure, dpgm.make("mechanism", "laplace"), terms=terms, budget=dpgm.Budget.pure(1))
    counted = curator._count(structure)
    persons_of = PersonSource(source=codes, person="id")
    assert int(counted.tables.values.sum()) == COUNT
    for thing in (source, raw, codes, curator, counted, counted.tables, persons_of, CsvSource(path=run)):
        assert_silent(repr(thing))
