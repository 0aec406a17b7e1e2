"""Records by which a source's codes are judged: each case some records over a domain, and the codes they must get.

A source that hands out rows is given one case after the other. One that sums where the rows are may be slow to begin,
so all cases of all checks become columns of one table, and one sum tells all of them.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pyarrow as pa
from attrs import frozen

from dpgm_core.domain import Attribute, Domain
from dpgm_core.sources.contract import Reading
from dpgm_core.testing.check import Profile
from dpgm_core.testing.reductions import Hidden, tallies
from dpgm_core.testing.source_records import DOMAIN, expected_codes, in_chunks, rows_of
from dpgm_core.testing.subjects import SourceSubject

__all__ = ["Case", "Cases", "coded", "in_one_sum", "together"]

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
    """A decorator: these cases are told by the same sum as others that need no more than the source shows."""

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
            with tempfile.TemporaryDirectory() as folder:
                source: Any = subject.open(case.table, Path(folder))
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
        with tempfile.TemporaryDirectory() as folder:
            source: Any = subject.open(table, Path(folder))
            with source.pinned(Reading(domain=domain, columns=counts.columns, several=True)) as pin:
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
