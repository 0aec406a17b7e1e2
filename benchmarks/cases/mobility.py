"""The mobility case of Bernstein et al. (2017): person-days cut into segments, a chain, and how models are scored.

A person-day is the unit. It is cut into segments of equal length; each segment is a row x1, x2, ... of the chain
p(x) ~ exp(phi(x1) + sum_t theta(x_t, x_t+1)), whose edges share one table. Two views of the data:

* segments: all of them, absent or not, and the log-likelihood of whole segments;
* pairs: only pairs (x_t, x_t+1) that are not absent twice are of interest. Then contributions leave the others out, the
  model has edges only, and what is scored is what such tables identify: the probability of a pair given that it is not
  absent twice, by the model's mean pair marginal. Models of all weightings are scored alike.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from attrs import evolve, frozen

from benchmarks.traces import BUILDINGS, segments, traces
from dpgm_core import (
    Attribute,
    Budget,
    Contributions,
    DataError,
    Domain,
    FloatArray,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    make,
    release,
)
from dpgm_core._util.progress import silent
from dpgm_core.counting.statistic import pieces, sum_pieces
from dpgm_core.counting.table_counts import Counts
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.learning import Likelihood
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource

VIEWS = ("segments", "pairs")
# the weightings compared: tied or not, and how much a row counts
WEIGHTS: dict[str, tuple[bool, str | None]] = {
    "untied": (False, None),
    "tied": (True, None),
    "R1": (True, "clique"),
    "R2": (True, "group"),
}


@frozen(kw_only=True, eq=False)
class Days:
    """Person-days: codes (days, segments, slots), the labels of the codes, and the one that means absent, if any."""

    codes: np.ndarray
    labels: tuple[str, ...]
    empty: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """x1, x2, ..."""
        return tuple(f"x{slot + 1}" for slot in range(self.codes.shape[2]))

    @property
    def rows(self) -> int:
        """Segments of a day: rows per person-day."""
        return int(self.codes.shape[1])

    def table(self) -> dict[str, np.ndarray]:
        """One row per segment, with the key of its person-day."""
        columns = {"person_day": np.repeat(np.arange(len(self.codes)), self.rows)}
        return columns | {name: self.codes[:, :, slot].ravel() for slot, name in enumerate(self.names)}


@lru_cache(maxsize=2)
def load(source: str | None, persons: int = 1000, days: int = 20, length: int = 6) -> Days:
    """Person-days from a folder or file; None: the campus that `benchmarks.traces` makes up.

    A folder holds one .csv or .parquet file and one domain file of the form {column: [label, ...]} whose name ends in
    domain.json. Each row is a person-day, its slots are the columns that the domain names, in that order, and values
    are labels or codes; other columns are left alone. Absent is a label "absent" or "null". Raises DataError.
    """
    if source is None:
        return Days(codes=segments(traces(persons, days, seed=1), length), labels=BUILDINGS, empty="absent")
    import json

    if not Path(source).exists():
        raise DataError(f"there is no {source}; give a folder or a file of person-days")
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".csv", ".parquet")]
    file = Path(source) if Path(source).is_file() else files[0] if len(files) == 1 else None
    domains = sorted(folder.glob("*domain.json"))
    if file is None or len(domains) != 1:
        raise DataError(f"{folder} must hold one .csv or .parquet file (or name it) and one file named ...domain.json")
    domain: dict[str, list[str]] = json.loads(domains[0].read_text())
    labels = tuple(next(iter(domain.values())))
    table = pyarrow.parquet.read_table(file) if file.suffix == ".parquet" else pyarrow.csv.read_csv(file)
    missing = sorted(set(domain) - set(table.column_names))
    if missing or any(tuple(own) != labels for own in domain.values()):
        raise DataError(f"{file.name}: each slot of {domains[0].name} must be a column, and all have the same labels")
    place = {label: code for code, label in enumerate(labels)} | {str(code): code for code in range(len(labels))}
    slots = [[place.get(str(value), 0) for value in table[name].to_pylist()] for name in domain]
    empty = next((label for label in ("absent", "null") if label in labels), None)
    return Days(codes=segments(np.array(slots, np.uint8).T, length), labels=labels, empty=empty)


def split(days: Days, share: float = 0.25) -> tuple[Days, Days]:
    """(train, test): whole person-days, always the same ones."""
    order = np.random.default_rng(0).permutation(len(days.codes))
    held_out = round(share * len(order))
    return evolve(days, codes=days.codes[order[held_out:]]), evolve(days, codes=days.codes[order[:held_out]])


def structure_of(days: Days, view: str, tied: bool) -> Structure:
    """The chain; segments have a node potential on x1 besides tied edges (untied ones hold it already)."""
    first = Attribute.of_labels("x1", days.labels, unknown=days.empty or days.labels[0])
    domain = Domain([evolve(first, name=name) for name in days.names])
    edges = list(zip(days.names, days.names[1:], strict=False))
    if not tied:
        return Structure(domain, edges)
    return Structure(domain, [("x1",)] if view == "segments" else [], tied=[edges])


def _contributions(days: Days, view: str, per: Any) -> Contributions | None:
    return None if per is None else Contributions(per=per, empty=days.empty if view == "pairs" else None)


def draw(days: Days, view: str, weights: str, epsilon: float, trial: int) -> NoisyTables:
    """A release of the training days; add-remove neighbours, Laplace noise, N estimated."""
    tied, per = WEIGHTS[weights]
    return release(
        days.table(),
        structure_of(days, view, tied),
        Budget.pure(epsilon),
        terms=Terms(
            neighbours="add-remove",
            unit="one person-day",
            person="person_day",
            rows_per_person=days.rows,
            contributions=_contributions(days, view, per),
        ),
        randomness=SeededRandomness(1000 + trial),
    )


def reference(days: Days, view: str, weights: str) -> tuple[Structure, FloatArray]:
    """The non-private model: maximum likelihood of the training days' own tables, hardly penalised."""
    tied, per = WEIGHTS[weights]
    structure = structure_of(days, view, tied)
    contributions = _contributions(days, view, per)
    source = PersonSource(source=as_source(days.table()), person="person_day", rows_per_person=days.rows)
    tables = counted(source, structure, contributions)
    shares = tables.values / tables.repeat(tables.sums() / np.asarray(structure.multiplicities))
    engine = make("inference", "junction-tree").compile(structure)
    theta, _ = Likelihood(engine, Tables(structure, shares), silent).minimise(
        np.zeros(structure.cells), 1e-7, 1e-6, 3000
    )
    return structure, theta


def counted(source: PersonSource, structure: Structure, contributions: Contributions | None) -> Tables:
    """The true tables, in units of 1/grid with contributions."""
    statistic = Counts.of(structure) if contributions is None else WeightedCounts(structure, contributions)
    return statistic.tables(sum_pieces(statistic, pieces(source, structure.domain, statistic.columns)))


def scores(days: Days, view: str, structure: Structure, theta: FloatArray) -> dict[str, float]:
    """Mean log-likelihood of held-out days, nats: of all (segments or) pairs, and of each day's mean."""
    beliefs = make("inference", "junction-tree").compile(structure).infer(Tables(structure, theta))
    size = len(days.labels)
    edges = [number for number, group in enumerate(structure.groups) if len(group[0]) == 2]
    mean = sum(beliefs.marginals.group(number) for number in edges) / (len(days.names) - 1)
    absent = -1 if days.empty is None else days.labels.index(days.empty)
    left, right = days.codes[:, :, :-1].astype(int), days.codes[:, :, 1:].astype(int)
    kept = ~((left == absent) & (right == absent))
    both = mean[absent, absent] if days.empty is not None else 0.0
    log = np.log(np.maximum(mean, 1e-300)) - np.log1p(-min(both, 1 - 1e-12))
    pairs, counts = np.where(kept, log[left, right], 0.0), kept.sum(axis=(1, 2))
    present = counts > 0
    found = {
        "pair": float(pairs.sum() / counts.sum()),
        "pair_by_day": float((pairs.sum(axis=(1, 2))[present] / counts[present]).mean()),
        "pair_uniform": -float(np.log(size**2 - (days.empty is not None))),
    }
    if view == "segments":
        place = {name: slot for slot, name in enumerate(days.names)}
        each = np.full(days.codes.shape[:2], -beliefs.log_partition)
        for group, table in zip(structure.groups, Tables(structure, theta).arrays(), strict=True):
            for clique in group:
                each += table[tuple(days.codes[:, :, place[name]] for name in clique)]
        # every day has equally many segments, so the mean over days is the same
        found |= {"segment": float(each.mean()), "segment_uniform": -float(len(days.names) * np.log(size))}
    return found
