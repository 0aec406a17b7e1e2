"""Neighbours cannot be told apart by anything but the noise; a version that lets it slip is found out."""

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from fractions import Fraction
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm.comparison import task_release
from dpgm_core import LiveCurator, Structure, learn, make
from dpgm_core.counting import statistic
from dpgm_core.curator import labels as discovery
from dpgm_core.curator import redaction as shield
from dpgm_core.curator import session
from dpgm_core.errors import DataError
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.sources import arrow, as_source, csv, reading, related
from dpgm_core.sources import arrow as objects
from dpgm_core.sources import parquet as lanes
from dpgm_core.structure.workload import Workload
from tests.neighbours import observe
from tests.neighbours.cells import named_cells, typed_pair
from tests.neighbours.differences import choosing, differences, pairs, scratch
from tests.neighbours.lines import Style, line_pair, named_lines
from tests.neighbours.observe import MODES
from tests.neighbours.related import related_pairs
from tests.neighbours.runs import DOMAIN, Pair, by_discovery, by_selector, by_task, with_uses


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with scratch() as found:
        yield found / "run"


def told_apart(pairs: Iterable[Pair], folder: Path) -> list[str]:
    found: list[str] = []
    for pair, mode in zip(pairs, cycle(MODES), strict=False):
        found += [f"{pair.name} ({mode}) {what}" for what in differences(pair, folder, mode)]
    return found


def test_lines_cannot_be_told_apart(folder):
    """Some of the named lines; `python -m tests.neighbours` tries all of them, and any number of random ones."""
    assert told_apart(islice(named_lines(), 0, None, 4), folder) == []


def test_cells_cannot_be_told_apart(folder):
    """Some of the named cells."""
    pytest.importorskip("pandas")
    assert told_apart(islice(named_cells(), 0, None, 3), folder) == []


def test_random_pairs_cannot_be_told_apart(folder):
    """After all named ones; a fixed seed."""
    assert told_apart((pair for pair, _ in islice(pairs(500, seed=1), 420, None)), folder) == []


def test_keys_of_two_tables_cannot_be_told_apart(folder):
    """A key with its rows in both tables, added or replaced; some runs choose their structure."""
    assert told_apart(islice(related_pairs(seed=1), 16), folder) == []


def through_a_session(data, structure, budget, *, learner, terms, ledger, save_release) -> Any:
    """What a `fit` is given, for a choice, a mean error where noise may be Gaussian, and a table."""
    asked = {"terms": terms, "budget": budget, "ledger": ledger, "save_to": save_release}
    curator = LiveCurator(as_source(data), structure, make("mechanism", "laplace"), **asked)
    with curator.session(workload=Workload.all(structure.domain)) as session:
        each = budget * Fraction(1, 3)
        pairs = Structure(structure.domain, [("sex",), ("age",)])
        scores = TableDistance(candidates=pairs, predicted=np.zeros(pairs.cells))
        choice = session.select(scores, each)
        if budget.kind == "zcdp":
            session.score(scores, each, mean=True)
        session.measure(choice.cliques, each)
    return learn(curator.released[0], learner)


def test_sessions_cannot_be_told_apart(folder, monkeypatch):
    """The same pairs, their records in the hands of a session: all but its choices and numbers is the same."""
    monkeypatch.setattr(dpgm, "fit", through_a_session)
    by_python = [pair for pair in named_cells() if pair.one.python is not None]
    assert told_apart(islice(by_python, 0, None, 12), folder) == []
    assert told_apart(map(under_zcdp, islice(by_python, 5, None, 24)), folder) == []


def under_zcdp(pair: Pair) -> Pair:
    """The same records, under a budget that allows Gaussian noise."""
    return Pair(
        f"zcdp {pair.name}", *(evolve(run, python=partial(run.python, kind="rho")) for run in (pair.one, pair.other))
    )


def warning_of_means(apart: Any, scores: Any) -> Any:
    warnings.warn(f"the mean error is {MEANS(apart, scores)[0]}", stacklevel=1)
    return MEANS(apart, scores)


def test_a_mean_that_is_told_is_found_out(folder, monkeypatch):
    """A version of core that warns of the true mean error."""
    monkeypatch.setattr(dpgm, "fit", through_a_session)
    by_python = [under_zcdp(pair) for pair in named_cells() if pair.one.python is not None][:4]
    monkeypatch.setattr(session, "mean_distances", warning_of_means)
    assert told_apart(by_python, folder)


def test_selectors_cannot_be_told_apart(folder):
    """Whole runs that choose their structure, given the same noisy answers; each selector meets each of the modes."""
    assert told_apart((pair for pair, _ in choosing(24, seed=2)), folder) == []


def test_what_is_made_of_the_files_cannot_be_told_apart(folder):
    """Models, reports, comparisons, answers and samples, byte for byte, and the size of the ledger."""
    style = Style(keyed=True)
    lines = [line_pair("line", style, [b"M,50,p"] * 3, odd, random.Random(1)) for odd in (b"F,3,p", b"F,1e999,\xff")]
    assert told_apart(map(with_uses, lines), folder) == []
    assert observe.observed(with_uses(lines[0]).one, folder)["exit"] == [0] * 8


def find_labels() -> Iterator[Pair]:
    """Pairs of files whose labels and bins are to be found."""
    in_files = [pair for pair in (*named_lines(), *named_cells()) if pair.one.python is None]
    return (by_discovery(pair) for pair in islice(in_files, 5, None, 24))


def test_what_is_found_first_cannot_be_told_apart(folder):
    """Whole runs that find labels and bins, given the same ones and the same tables."""
    assert told_apart(find_labels(), folder) == []


def test_labels_that_refuse_a_record_are_found_out(folder, monkeypatch):
    """A version that fails where one record more has a label of its own."""

    def picky(*given: Any, **more: Any) -> Any:
        counted = persons_by_label(*given, **more)
        if len(counted[0]) > 2:
            raise DataError("too many labels")
        return counted

    persons_by_label = discovery.persons_by_label
    monkeypatch.setattr(discovery, "persons_by_label", picky)
    line = line_pair("line", Style(), [b"M,50,p", b"F,50,p"], b"SECRET,3,p", random.Random(1))
    assert told_apart([by_discovery(line)], folder)


@pytest.fixture(scope="module")
def task_model(tmp_path_factory) -> bytes:
    """A model file whose classifiers are not constant; sex has two labels, age three."""
    pytest.importorskip("sklearn")
    file = tmp_path_factory.mktemp("task") / "m.dpgm"
    (file.parent / "domain.toml").write_bytes(DOMAIN.replace(b'"F", "M", "1"', b'"F", "M"'))
    structure = Structure(dpgm.Domain.load(file.parent / "domain.toml"), [("sex", "age")])
    values = np.log([[8, 1, 1], [1, 7, 1]]).reshape(-1)
    dpgm.Model(structure, dpgm.Tables(structure, values)).save(file)
    return file.read_bytes()


def on_tasks(model: bytes, step: int) -> Iterator[Pair]:
    """Pairs of files, in turn for a binned score and for more than two labels."""
    in_files = (pair for pair in named_lines() if pair.one.python is None)
    pairs = islice(in_files, 2, None, step)
    return (by_task(pair, target, model) for pair, target in zip(pairs, cycle(("sex", "age")), strict=False))


def test_tasks_cannot_be_told_apart(folder, task_model):
    """Whole tests of a classifier, given the same noisy table: no message, file or charge depends on a prediction."""
    assert told_apart(on_tasks(task_model, step=30), folder) == []
    first = next(on_tasks(task_model, step=30))
    assert observe.observed(first.one, folder)["exit"] == [0]  # they are not all refused


def refusing_a_prediction(self: Any, domain: Any, columns: Any, key: Any) -> Any:
    for codes, keys in BATCHES(self, domain, columns, key):  # type: ignore[name-defined]  # noqa: F821
        if (codes[0] != 0).any():
            raise DataError("a row has a high score")
        yield codes, keys


def test_a_prediction_that_is_told_is_found_out(folder, task_model, monkeypatch):
    """A version whose message depends on the score of one record."""
    source = task_release.ScoredSource
    monkeypatch.setitem(vars(task_release), "BATCHES", source.keyed_batches)
    monkeypatch.setitem(vars(task_release), "DataError", DataError)
    monkeypatch.setattr(source, "keyed_batches", planted(task_release, refusing_a_prediction))
    line = line_pair("line", Style(), [b"F,3,p"] * 3, b"M,50,p", random.Random(1))
    assert told_apart([by_task(line, "sex", task_model)], folder)


def first_lines() -> Iterator[Pair]:
    """Headers forgotten, as whoever has none does. A line that names most of the columns is a header, and public."""
    for odd in (b"SECRET,1,2", b"\xff", b"sex,1,2", b"sex,sex,2"):
        for change in ("add", "replace"):
            style = Style(header="forgotten", change=change)
            yield line_pair(f"line {odd!r}", style, [b"M,50,p"], odd, random.Random(1))


def cells(kinds: Iterable[str], role: str, form: str) -> Callable[[], Iterator[Pair]]:
    def make() -> Iterator[Pair]:
        for kind in kinds:
            for seed in range(12):
                yield typed_pair(f"typed {kind}", kind, role, form, random.Random(seed))

    return make


def more_records() -> Iterator[Pair]:
    yield by_selector(line_pair("line", Style(), [b"M,50,p"] * 3, b"F,3,p", random.Random(1)), 1)


def odd_objects() -> Iterator[Pair]:
    """Objects that cannot be told as text among them."""
    odd = ("object _Refuses", "object list", "object Decimal")
    return (pair for pair in named_cells() if pair.name.startswith(odd))


def planted(module: ModuleType, function: Any) -> Any:
    """The function as one of core's module: foreign words would be withheld anyway. Its names are the module's."""
    return FunctionType(function.__code__, vars(module))


def quoting_the_first_line(self: Any, columns: Any) -> Any:
    names = self.names()
    return locate(f"{names} of {self.path}", columns, names), len(names)  # type: ignore[name-defined]  # noqa: F821


def saying_what_is_missing(self: Any, columns: Any) -> Any:
    names = self.names()
    return locate(str(self.path), columns, names), len(names)  # type: ignore[name-defined]  # noqa: F821


def raising_on_a_bad_cell(value: Any) -> Any:
    if not isinstance(value, (str, int, float)):
        raise DataError("a cell cannot be read")
    return BY_TYPE(value)


def warning_of_scores(counts: Any, scores: Any) -> Any:
    warnings.warn(f"the best score is {DISTANCES(counts, scores).max()}", stacklevel=1)
    return DISTANCES(counts, scores)


def drawing_by_scores(scores: Any, h: Any, picks: int, randomness: Any, ends: Any = None) -> Any:
    randomness.words(int(np.abs(scores).sum()) % 97)
    return CHOSEN(scores, h, picks, randomness, ends)


def refusing_orphans(self: Any) -> None:
    keys = pa.concat_arrays([keys for _, keys, _ in self._waiting])  # type: ignore[name-defined]  # noqa: F821
    if pc.index_in(keys, value_set=self._keys).null_count:  # type: ignore[name-defined]  # noqa: F821
        raise DataError("a child has no root")


def orphans() -> Iterator[Pair]:
    """Pairs that differ in a key without a root, among others."""
    return islice(related_pairs(seed=3), 12)


BY_TYPE, DISTANCES, CHOSEN = objects._by_type, session.distances, observe._CHOSEN
MEANS = session.mean_distances


QUOTING, MISSING = planted(csv, quoting_the_first_line), planted(csv, saying_what_is_missing)
ALL_QUIET = [(where, "quiet", nullcontext) for where in (reading, shield, statistic, lanes)]
#: What is wrong: the pairs that find it out, and what is replaced in core.
WRONG: dict[str, tuple[Callable[[], Iterator[Pair]], list[tuple[Any, str, Any]]]] = {
    "quotes the first line": (first_lines, [(csv.CsvSource, "_located", QUOTING)]),
    "says which column is missing": (first_lines, [(csv.CsvSource, "_located", MISSING)]),
    "raises on a bad cell": (odd_objects, [(objects, "_classified", raising_on_a_bad_cell)]),
    "warns of scores": (more_records, [(session, "distances", warning_of_scores)]),
    "draws words by scores": (more_records, [(observe, "_CHOSEN", drawing_by_scores)]),
    "judges keys by batches": (cells(["double"], "id", "parquet"), [(arrow, "check_key", lambda key, kind: None)]),
    "judges labels by batches": (
        cells(["month_day_nano_interval"], "sex", "arrow"),
        [(arrow, "check_types", lambda domain, types: None)],
    ),
    "refuses a child without a root": (orphans, [(related._Children, "_merge", planted(related, refusing_orphans))]),
    "lets numpy warn": (cells(["double", "float"], "sex", "parquet"), ALL_QUIET),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_version_is_told(wrong, folder):
    """The pairs that find it out find nothing in core as it is."""
    pytest.importorskip("pandas")
    make, replaced = WRONG[wrong]
    with pytest.MonkeyPatch.context() as patch:
        for where, name, new in replaced:
            patch.setattr(where, name, new)
        assert told_apart(make(), folder) != []
    assert told_apart(make(), folder) == []
