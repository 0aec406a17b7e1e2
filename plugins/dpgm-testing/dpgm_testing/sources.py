"""Records and cases for checks of sources, and makers of core's own sources."""

from __future__ import annotations

import importlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import numpy as np
import pyarrow as pa
from attrs import frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core.counting.descent import GradientSums
from dpgm_core.counting.rows import Recoded
from dpgm_core.counting.statistic import Sum
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import IncompatiblePlugin, PluginLoadError
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.sources.arrow import ArrowIpcSource, ArrowSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.contract import AnySource, Pinned, Reading, ReducingSource, Source
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.parquet import ParquetSource
from dpgm_core.structure.structure import Structure
from dpgm_testing.check import Profile, require
from dpgm_testing.reductions import Hidden, Large, embedded, tallies
from dpgm_testing.subjects import SourceSubject

if TYPE_CHECKING:
    from dpgm_core.components.registry import Offer

__all__ = [
    "Case",
    "Cases",
    "DOMAIN",
    "ODD_TEXTS",
    "Study",
    "arrow",
    "arrow_ipc",
    "attempted",
    "coded",
    "codes",
    "codes_of",
    "csv",
    "example_table",
    "expected_codes",
    "features_of",
    "in_chunks",
    "in_one_sum",
    "opened",
    "parquet",
    "pinned",
    "records_of",
    "rows_of",
    "study",
    "text_table",
    "together",
]


# --- Sources and their records --------------------------------------------------------------------
# A source's declaration names a function ``(table, folder) -> source`` that makes a source holding the rows of a
# pyarrow table (it may write into the empty folder): ``Component(..., records="package.module:function")``. A class
# that is not installed is given one by `check_component(records=...)` or its `SourceConformance`. Without either,
# checks that need records are skipped.

#: Labels, bins and codes; unknown and null with labels of their own, with existing ones, and shared.
DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
        Attribute.of_labels("coded", ["low", "high"], unknown="low", coded=True),
    ]
)

#: Texts that have led readers to guess types, and none that needs quoting.
ODD_TEXTS = ("", "nan", "NULL", "1e3", "-0", "0x1", " A", "a", "Infinity", "2020-01-01", "true", "1_0", "A" * 300, "é")


def example_table(count: int = 300, seed: int = 0) -> Any:
    """Typed records with unknown, null and out-of-range values: texts, floats, whole numbers; a pyarrow Table."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "town": pa.array(rng.choice(np.array(["A", "B", "Zürich", "C", None], dtype=object), count), pa.string()),
            "age": pa.array(
                rng.choice([0.0, 3.5, 18.0, 64.9, 65.0, 99.0, -1.0, 1e9], count), mask=rng.random(count) < 0.1
            ),
            "visits": pa.array(rng.integers(-1, 6, count), mask=rng.random(count) < 0.1),
            "coded": pa.array(rng.integers(0, 3, count).astype(np.int16)),
        }
    )


def text_table(table: Any) -> Any:
    """The same records as texts only, nulls as nulls."""
    columns = {name: [None if v is None else str(v) for v in table[name].to_pylist()] for name in table.column_names}
    return pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns]))


def in_chunks(table: Any, cuts: Sequence[int]) -> Any:
    """The same rows with a chunk from each cut to the next.

    >>> in_chunks(pa.table({"a": [1, 2, 3]}), (0, 1, 1, 3))["a"].num_chunks
    3
    """
    columns = {name: pa.concat_arrays(table[name].chunks) for name in table.column_names}
    return pa.table(
        {
            name: pa.chunked_array([one[start:end] for start, end in itertools.pairwise(cuts)], one.type)
            for name, one in columns.items()
        }
    )


def expected_codes(table: Any, domain: Domain = DOMAIN) -> list[tuple[int, ...]]:
    """The codes of every record, value by value, by the public domain alone."""
    columns = [
        [domain[name].code(None if v is None else str(v)) for v in table[name].to_pylist()] for name in domain.names
    ]
    return list(zip(*columns, strict=True))


def codes_of(
    source: AnySource, domain: Domain = DOMAIN, columns: Sequence[str] | None = None
) -> Counter[tuple[int, ...]]:
    """How often each tuple of codes occurs in what a source yields, or sums; CheckFailed if it does both unequally."""
    names = domain.names if columns is None else tuple(columns)
    rows = rows_of(source, domain, names) if isinstance(source, Source) else None
    if not isinstance(source, ReducingSource):
        return Counter() if rows is None else rows
    counts = tallies(domain, [names])
    with source.pinned(Reading(domain=domain, columns=names)) as pinned:
        (sums,) = counts.hits(pinned.reduce(counts))
    require(rows is None or rows == sums, "the rows that it hands out are others than those that it sums")
    return sums


def rows_of(source: Source, domain: Domain, columns: Sequence[str]) -> Counter[tuple[int, ...]]:
    """How often each tuple of codes occurs in the batches of a source."""
    found: Counter[tuple[int, ...]] = Counter()
    for batch in source.batches(domain, columns):
        found.update(zip(*(np.asarray(part).tolist() for part in batch), strict=True))
    return found


def records_of(offer: Offer) -> Callable[[Any, Path], Source] | None:
    """The function that a declaration names as `records`, imported; None if it names none.

    Raises PluginLoadError, and IncompatiblePlugin for what cannot be called.
    """
    target = offer.component.records
    if target is None:
        return None
    where = f"the records {target!r} of {offer.component.kind} {offer.component.name!r} of {offer}"
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise PluginLoadError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise IncompatiblePlugin(f"{where}: it is a {type(found).__name__}, not a function (table, folder) -> source")
    return cast("Callable[[Any, Path], Source]", found)


def features_of(cls: type) -> dict[str, bool]:
    """What a source class shows it can do.

    "rows" if it hands them out, "reduces" if it sums where they are; "file" if it reads one, "files" if that or a
    folder of them, "labels" unless it takes codes only.
    """
    fields = {field.name for field in attrs.fields(cls)} if attrs.has(cls) else set()
    codes_only = any(
        f"{base.__module__}:{base.__qualname__}" == "dpgm_core.sources.codes:CodesSource" for base in cls.__mro__
    )
    return {
        "rows": issubclass(cls, Source),
        "reduces": issubclass(cls, ReducingSource),
        "file": "path" in fields,
        "files": not fields.isdisjoint(("path", "paths", "folder")),
        "labels": not codes_only,
    }


# --- Cases ----------------------------------------------------------------------------------------
# A source that hands out rows is given one case after the other. One that sums where the rows are may be slow to begin,
# so all cases of all checks become columns of one table, and one sum tells all of them.

#: Columns of a table of many cases.
_MOST_COLUMNS = 250


@frozen(kw_only=True)
class Case:
    """Records, a pyarrow Table of at least one row, and a domain of some of its columns."""

    table: Any
    domain: Domain = DOMAIN

    @property
    def expected(self) -> list[tuple[int, ...]]:
        """The codes of the records, in order of size."""
        return sorted(expected_codes(self.table, self.domain))


#: How often each tuple of codes occurs.
Hits: TypeAlias = Counter[tuple[int, ...]]
#: What each case is, in words of a message -> the case.
Cases: TypeAlias = Callable[[Profile], Mapping[str, Case]]

_IN_ONE_SUM: list[tuple[str, Cases]] = []


def in_one_sum(needs: str) -> Callable[[Cases], Cases]:
    """Return a decorator: these cases share one sum with others that need no more than the source shows."""

    def register(cases: Cases) -> Cases:
        _IN_ONE_SUM.append((needs, cases))
        return cases

    return register


def coded(subject: SourceSubject, cases: Cases, *, only: str | None = None) -> Iterator[tuple[str, Case, Hits]]:
    """Each case in words and how often the source gives each tuple of codes: by its rows, by its sums, or by both.

    only: "rows" or "reduces", where the other way is looked at elsewhere.
    """
    ways = subject.capabilities if only is None else subject.capabilities & {only}
    if "rows" in ways:
        for what, case in cases(subject.profile).items():
            with opened(subject, case.table) as source:
                yield what, case, rows_of(source, case.domain, case.domain.names)
    if "reduces" in ways:
        own = cases(subject.profile)
        for (what, case), found in zip(own.items(), _summed(subject, cases, list(own.values())), strict=True):
            for hits in found:
                yield what, case, hits


def _summed(subject: SourceSubject, cases: Cases, own: Sequence[Case]) -> list[tuple[Hits, Hits]]:
    """By a sum over all cases there are; where that fails, by one over these alone, so that what fails is found."""
    if "codes" not in subject.kept:
        makers = [one for needs, one in _IN_ONE_SUM if needs in subject.capabilities]
        each = [list(one(subject.profile).values()) for one in makers]
        try:
            found = iter(_sums(subject, [case for some in each for case in some]))
            subject.kept["codes"] = {one: [next(found) for _ in some] for one, some in zip(makers, each, strict=True)}
        except Exception:  # whoever asks for the case that is to blame meets it again
            subject.kept["codes"] = {}
    known: dict[Cases, list[tuple[Hits, Hits]]] = subject.kept["codes"]
    return known[cases] if cases in known else _sums(subject, own)


def _sums(subject: SourceSubject, cases: Sequence[Case]) -> list[tuple[Hits, Hits]]:
    """Of each case the counts, which an engine may take in its own way, and the same as a sum like any other."""
    found: list[tuple[Hits, Hits]] = []
    while some := _fitting(cases[len(found) :]):
        table, domain, cliques = together(some)
        counts = tallies(domain, cliques)
        with pinned(subject, table, Reading(domain=domain, columns=counts.columns, several=True)) as pin:
            both = [counts.hits(pin.reduce(one)) for one in (counts, Hidden(counts))]
        for case, grouped, plain in zip(some, *both, strict=True):
            again = expected_codes(_repeated(case.table, len(table) - len(case.table)), case.domain)
            found.append((_without(again, grouped), _without(again, plain)))
    return found


def _without(again: Sequence[tuple[int, ...]], hits: Hits) -> Hits:
    """The counts of the rows that are not there once more."""
    hits.subtract(again)
    return Counter({codes: count for codes, count in hits.items() if count})


def _fitting(cases: Sequence[Case]) -> Sequence[Case]:
    columns = 0
    for number, case in enumerate(cases):
        columns += len(case.domain)
        if number and columns > _MOST_COLUMNS:
            return cases[:number]
    return cases


def together(cases: Sequence[Case]) -> tuple[Any, Domain, list[tuple[str, ...]]]:
    """All cases side by side: a table, its domain, and the clique of each case.

    A case with fewer rows than another has its first ones again, as often as it takes. The table is in chunks: what one
    partition holds says nothing of another's codes.

    >>> both = [Case(table=pa.table({"a": codes}), domain=Domain.from_sizes({"a": 2})) for codes in ([0, 1], [1])]
    >>> together(both)[0].to_pydict()
    {'a_0': [0, 1], 'a_1': [1, 1]}
    """
    rows = max(len(case.table) for case in cases)
    columns: dict[str, Any] = {}
    attributes: list[Attribute] = []
    cliques = []
    for number, case in enumerate(cases):
        whole = pa.concat_tables([case.table, _repeated(case.table, rows - len(case.table))])
        clique = []
        for attribute in case.domain:
            name = f"{attribute.name}_{number}"
            columns[name] = whole[attribute.name]
            attributes.append(attrs.evolve(attribute, name=name))
            clique.append(name)
        cliques.append(tuple(clique))
    return in_chunks(pa.table(columns), sorted({0, 1, rows // 2, rows})), Domain(attributes), cliques


def _repeated(table: Any, rows: int) -> Any:
    return table.take(pa.array([row % len(table) for row in range(rows)], pa.int64()))


# --- Makers of core's own sources -----------------------------------------------------------------
# Each function takes a pyarrow table and an empty folder, and makes a source of its kind that holds the table's rows.


def csv(table: Any, folder: Path) -> CsvSource:
    """A file of texts; nulls are empty fields."""
    path = folder / "records.csv"
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(table.column_names), *lines]) + "\n", encoding="utf-8", newline="\n")
    return CsvSource(path=path)


def parquet(table: Any, folder: Path) -> ParquetSource:
    """A file of several row groups, where the table is long; a folder of files, where it has several chunks."""
    import pyarrow.parquet as pq

    if table.num_columns and table.column(0).num_chunks > 1:
        batches = table.to_batches()
        for number, batch in enumerate(batches):
            pq.write_table(pa.Table.from_batches([batch]), folder / f"part-{number:05}.parquet")
        return ParquetSource(path=folder)
    pq.write_table(table, folder / "records.parquet", row_group_size=100_000)
    return ParquetSource(path=folder / "records.parquet")


def arrow_ipc(table: Any, folder: Path) -> ArrowIpcSource:
    """A file of several batches, where the table is long."""
    import pyarrow.feather as feather

    feather.write_feather(table, str(folder / "records.arrow"), chunksize=50_000)
    return ArrowIpcSource(path=folder / "records.arrow")


def arrow(table: Any, folder: Path) -> ArrowSource:
    """The table itself, in several batches, where it is long."""
    return ArrowSource(data=pa.Table.from_batches(table.to_batches(max_chunksize=50_000), table.schema))


def codes(table: Any, folder: Path) -> CodesSource:
    """The codes of the kit's own domain: this source takes no labels."""
    # What has no code is unknown, which any code outside of the labels says; null has a code of its own.
    data = {
        name: np.array(
            [DOMAIN[name].code(None if v is None else str(v)) for v in table[name].to_pylist()], dtype=np.int64
        )
        for name in table.column_names
        if name in DOMAIN
    }
    return CodesSource(data=data)


# --- Results of reducing sources ------------------------------------------------------------------

#: Where the rows of the study's table are cut: uneven chunks; the first, one in the middle and the last are empty.
_CUTS = (0, 0, 11, 12, 12, 150, 300, 300)


@frozen(repr=False)
class Study:
    """What came of several sums over one pin of the example in 7 chunks, by name: a vector, or what was raised.

    expected: what had to come. "hidden" is "counts" again, of which no more is known than that it is a sum, and "again"
    is "counts" at the end, after the first vector was written into; "left" is of a pin that was left.
    """

    found: Mapping[str, Any]
    expected: Mapping[str, IntArray]

    def vector(self, name: str) -> Any:
        """What one sum came to. Raises what the source did."""
        found = self.found[name]
        if isinstance(found, Exception):
            raise found
        return found


def study(subject: SourceSubject) -> Study:
    """Made once; seven jobs at most."""
    if "study" not in subject.kept:
        subject.kept["study"] = _studied(subject)
    made: Study = subject.kept["study"]
    return made


def _studied(subject: SourceSubject) -> Study:
    table = in_chunks(example_table(), _CUTS)
    reading = Reading(domain=DOMAIN, columns=DOMAIN.names, several=True)
    asked = _asked()
    expected = {name: embedded(table, reading, one) for name, one in asked.items()}
    found: dict[str, Any] = {}
    pin: Pinned | None = None
    try:
        with pinned(subject, table, reading) as pin:
            for name, one in asked.items():
                found[name] = attempted(pin, one)
                if name == "counts":
                    found[name] = _taken(found[name])
    except Exception as error:
        found = dict.fromkeys(asked, error)
    found["left"] = None if pin is None else attempted(pin, asked["counts"])
    return Study(found=found, expected=expected)


def _asked() -> dict[str, Sum]:
    counts = tallies(DOMAIN, [tuple(reversed(DOMAIN.names)), ("visits", "town")])
    regressions = Regressions(candidates=Structure.complete(DOMAIN), loss="softmax")
    weights = np.arange(regressions.allowed.size).reshape(regressions.allowed.shape) % 5 * regressions.allowed
    gradients = NodeGradients(regressions=regressions, weights=weights, radius=40, clip="0.5")
    fewer = Domain.from_sizes({"town": 2, "age": 3, "visits": 2})
    codes = {one.name: (np.arange(DOMAIN[one.name].size) % one.size).astype(code_dtype(one.size)) for one in fewer}
    return {
        "counts": counts,
        "hidden": Hidden(counts),
        "gradients": GradientSums(gradients, "zcdp"),
        "recoded": Recoded(tallies(fewer, [("visits", "town"), ("age",)]), codes),
        "large": Large(("visits", "town")),
        "again": counts,
    }


def _taken(found: Any) -> Any:
    """A copy of a vector that is then written into, as its caller may; the vector itself where that fails."""
    if not isinstance(found, np.ndarray) or not found.flags.writeable:
        return found
    copy = found.copy()
    found[...] = -7
    return copy


@contextmanager
def opened(subject: SourceSubject, table: Any) -> Iterator[Any]:
    """A source that holds the table's rows, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield subject.open(table, Path(folder))


@contextmanager
def pinned(subject: SourceSubject, table: Any, reading: Reading) -> Iterator[Pinned]:
    """The table's rows, pinned."""
    with opened(subject, table) as source, source.pinned(reading) as pin:
        yield pin


def attempted(pin: Pinned, reduction: Sum) -> Any:
    """The vector, or what was raised."""
    try:
        return pin.reduce(reduction)
    except Exception as error:
        return error
