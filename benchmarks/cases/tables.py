"""Tables to measure selection on: real ones, records of published networks, and generated truths, by name and seed.

Real tables are always the same records. Everything else is drawn anew for each seed, so that what was chosen on
development seeds can be measured on seeds that nobody has looked at.
"""

from __future__ import annotations

import csv
import itertools
import os
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from benchmarks.cases import mobility
from benchmarks.cases.coded import Coded, adult, wide
from benchmarks.cases.networks import network
from dpgm_core import Array, Clique, Domain, IntArray
from dpgm_core.sources import as_source

#: Seeds from here on are for reports alone: no option or default may be chosen on them.
REPORT = 1000
#: The variable that names the file of the EU labour-force survey's public use sample.
LFS = "DPGM_LFS"
#: A numeric column of more labels is cut into so many bins of about equally many records.
MOST_LABELS, BINS = 60, 20
HEALTH = Path(__file__).parents[2] / "docs" / "examples" / "health"


@frozen
class Source:
    """read: the folder of data and a seed -> the records. epsilons: those it is run at. file: below the folder; none is
    needed for what is generated."""

    read: Callable[[Path, int], Coded]
    epsilons: tuple[str, ...] = ("0.1", "1", "10")
    file: str = ""

    def missing(self, folder: Path) -> str | None:
        """Return why the records cannot be read."""
        if self.file == LFS:
            return None if Path(os.environ.get(LFS, "")).is_file() else f"{LFS} does not name the survey's CSV file"
        return None if (folder / self.file).exists() else f"there is no {folder / self.file}; name a folder with it"


# --------------------------------------------------------------------------------------------------
# Real tables. Their sizes are read off the records, which is for measuring only: it is not private.


def coded_csv(path: Path) -> Coded:
    """Return all columns that vary, as codes; numeric ones of more than 60 labels in 20 quantile bins."""
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    columns = dict(zip(names, map(_coded, zip(*rows, strict=True)), strict=True))
    return _of_columns({name: codes for name, codes in columns.items() if codes.max() > 0})


def _coded(values: tuple[str, ...]) -> IntArray:
    labels, codes = np.unique(np.array(values), return_inverse=True)
    if len(labels) > MOST_LABELS:
        numbers = np.array([_number(label) for label in labels])[codes]
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
        bins = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, "right"))
        codes = np.unique(bins, return_inverse=True)[1]
    return codes


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return np.nan


def _of_columns(columns: Mapping[str, IntArray]) -> Coded:
    domain = Domain.from_sizes({name: int(codes.max()) + 1 for name, codes in columns.items()})
    return Coded(domain=domain, codes=np.column_stack([codes.astype(np.uint8) for codes in columns.values()]))


def workweek(folder: Path) -> Coded:
    """Return person-days of 24 hours, each at home, at work, elsewhere or unknown."""
    days = mobility.load(str(folder), length=24)
    domain = Domain.from_sizes(dict.fromkeys(days.names, len(days.labels)))
    return Coded(domain=domain, codes=days.codes[:, 0])


def health() -> Coded:
    """Return the person-years of the project's example, in the bins of its domain."""
    domain = Domain.load(HEALTH / "domain.toml")
    batches = as_source(HEALTH / "health.csv").batches(domain, domain.names)
    return Coded(domain=domain, codes=np.concatenate([np.stack(batch, axis=1) for batch in batches]))


def drawn(folder: Path, name: str, seed: int) -> Coded:
    """Return 20,000 records of a published network."""
    found = network(folder, name)
    return Coded(
        domain=found.dag.domain, codes=found.records(20_000, seed).astype(np.uint8), planted=found.dag.families
    )


# --------------------------------------------------------------------------------------------------
# Generated truths.


def survey(columns: int, records: int, seed: int) -> Coded:
    """Return yes/no questions about difficulties, of body or mind, as surveys of disability ask them; most say no.

    A person has difficulties of neither kind, of one, or of both, more or less severe. Questions rise from easy to
    hard, and a yes has the probability logistic(2 (severity - hardness)). Planted: the questions of either kind.
    """
    rng = _generator("survey", seed)
    kind = np.arange(columns) % 2
    hardness = np.sort(rng.uniform(0, 4, columns))
    classes = rng.choice(4, size=records, p=(0.6, 0.2, 0.1, 0.1))
    has = np.column_stack([classes % 2 == 1, classes >= 2])
    severity = np.where(has, rng.normal(2.5, 1.2, (records, 2)), rng.normal(-1, 0.7, (records, 2)))
    yes = 1 / (1 + np.exp(-2 * (severity[:, kind] - hardness)))
    table = _binary(rng.random((records, columns)) < yes)
    names = table.domain.names
    return evolve(table, planted=(names[::2], names[1::2]))


def parities(seed: int, columns: int = 16, records: int = 20_000) -> Coded:
    """Return six binary columns, and ten more, each the parity of three of the six before it but for one record in 12.

    As the first ones are uneven, parts of a parity show in fewer columns. Planted: each parity with its three columns.
    """
    rng = _generator("parities", seed)
    codes = np.zeros((records, columns), dtype=bool)
    codes[:, :6] = rng.random((records, 6)) < rng.uniform(0.2, 0.45, 6)
    planted = []
    for place in range(6, columns):
        above = np.sort(rng.choice(np.arange(place - 6, place), size=3, replace=False))
        codes[:, place] = np.logical_xor.reduce(codes[:, above], axis=1) ^ (rng.random(records) < 1 / 12)
        planted.append(tuple(f"x{one}" for one in (*above, place)))
    return evolve(_binary(codes), planted=tuple(planted))


def factor(seed: int, columns: int = 30, records: int = 50_000, labels: int = 10) -> Coded:
    """Return columns of equally frequent labels: ranks of Gaussians with one factor, all correlated by .5."""
    rng = np.random.default_rng(5 + seed)
    values = np.sqrt(0.5) * (rng.standard_normal((records, 1)) + rng.standard_normal((records, columns)))
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    return _of_columns({f"x{place}": ranks[:, place] * labels // records for place in range(columns)})


def planted_graph(seed: int, columns: int = 120, records: int = 100_000) -> Coded:
    """Return columns of 2 to 30 labels, most of them at times a function of one or two of the twelve before.

    Planted: an edge from each column with two parents to either parent.
    """
    rng = np.random.default_rng(11 + seed)
    sizes = rng.integers(2, 31, columns)
    codes = np.zeros((records, columns), dtype=np.uint8)
    planted: list[Clique] = []
    for place, size in enumerate(sizes):
        codes[:, place] = rng.choice(size, records, p=rng.dirichlet(np.full(size, 0.6)))
        if place and rng.random() > 0.12:
            near = np.arange(max(0, place - 12), place)
            above = rng.choice(near, size=min(2 if rng.random() < 0.35 else 1, place), replace=False)
            function = rng.integers(0, size, sizes[above])
            follows = rng.random(records) < rng.uniform(0.15, 0.85)
            codes[follows, place] = function[tuple(codes[follows][:, above].T)]
            planted += [(f"x{one}", f"x{place}") for one in above if len(above) == 2]
    domain = Domain.from_sizes({f"x{place}": int(size) for place, size in enumerate(sizes)})
    return Coded(domain=domain, codes=codes, planted=tuple(planted))


def few(
    seed: int, columns: int = 9, records: int = 300, labels: int = 3, strength: float = 0.3, name: str = "few"
) -> Coded:
    """Return a small table, by default of mild dependence: three in ten labels are those of the column before.

    Planted: neighbours, unless the strength is 0.
    """
    rng = _generator(name, seed)
    codes = np.empty((records, columns), dtype=np.uint8)
    for place in range(columns):
        codes[:, place] = rng.choice(labels, size=records, p=rng.dirichlet(np.full(labels, 3.0)))
        if place:
            codes[:, place] = np.where(rng.random(records) < strength, codes[:, place - 1], codes[:, place])
    names = [f"x{place}" for place in range(columns)]
    domain = Domain.from_sizes(dict.fromkeys(names, labels))
    return Coded(domain=domain, codes=codes, planted=tuple(itertools.pairwise(names)) if strength else ())


def skewed_tree(seed: int, columns: int = 12, records: int = 20_000) -> Coded:
    """Return columns of 10 to 60 labels, the k-th with probability in proportion to 1 / k^1.3, so that most are rare.

    Half of the labels of a column are a function of the label of one column before it. Planted: the edges of that tree.
    """
    rng = _generator("skewed tree", seed)
    sizes, planted = rng.integers(10, 61, columns), list[Clique]()
    codes = np.zeros((records, columns), dtype=np.uint8)
    for place, size in enumerate(sizes):
        frequent = 1 / np.arange(1, size + 1) ** 1.3
        codes[:, place] = rng.choice(size, size=records, p=frequent / frequent.sum())
        if place:
            above = int(rng.integers(place))
            follows = rng.random(records) < 0.5
            codes[follows, place] = rng.integers(0, size, sizes[above])[codes[follows, above]]
            planted.append((f"x{above}", f"x{place}"))
    domain = Domain.from_sizes({f"x{place}": int(size) for place, size in enumerate(sizes)})
    return Coded(domain=domain, codes=codes, planted=tuple(planted))


def blocks(seed: int, count: int = 6, each: int = 4, records: int = 10_000, labels: int = 3) -> Coded:
    """Return independent blocks of columns; in a block every column copies a hidden one, more or less often.

    Planted: the blocks.
    """
    rng = _generator("blocks", seed)
    columns = count * each
    hidden = np.repeat(rng.integers(labels, size=(records, count)), each, axis=1)
    own = rng.integers(labels, size=(records, columns))
    codes = np.where(rng.random((records, columns)) < rng.uniform(0.4, 0.9, columns), hidden, own).astype(np.uint8)
    names = [f"x{place}" for place in range(columns)]
    planted = tuple(tuple(names[place : place + each]) for place in range(0, columns, each))
    return Coded(domain=Domain.from_sizes(dict.fromkeys(names, labels)), codes=codes, planted=planted)


def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


def _binary(codes: Array) -> Coded:
    names = [f"x{place}" for place in range(codes.shape[1])]
    return Coded(domain=Domain.from_sizes(dict.fromkeys(names, 2)), codes=codes.astype(np.uint8))


SOURCES: Mapping[str, Source] = {
    "adult": Source(lambda folder, seed: adult(folder / "adult"), file="adult/adult.csv"),
    "nist": Source(
        lambda folder, seed: coded_csv(folder / "nist_acs_ma2019" / "ma2019.csv"), file="nist_acs_ma2019/ma2019.csv"
    ),
    "lbs": Source(lambda folder, seed: workweek(folder / "lbs_workweek"), file="lbs_workweek"),
    "health": Source(lambda folder, seed: health()),
    **{
        name: Source(lambda folder, seed, name=name: drawn(folder / "bif", name, seed), file=f"bif/{name}.bif")
        for name in ("alarm", "insurance", "child")
    },
    "sparse16": Source(lambda folder, seed: survey(16, 20_000, seed)),
    "sparse23": Source(lambda folder, seed: survey(23, 10_000, seed)),
    "parity16": Source(lambda folder, seed: parities(seed)),
    "mixed14": Source(lambda folder, seed: wide(14, 30_000, 100 + seed)),
    "dense30": Source(lambda folder, seed: factor(seed)),
    "wide120": Source(lambda folder, seed: planted_graph(seed)),
    "skewed12": Source(lambda folder, seed: skewed_tree(seed)),
    "blocks24": Source(lambda folder, seed: blocks(seed)),
    "small9": Source(lambda folder, seed: few(seed), epsilons=("0.5", "1", "2")),
    "free12": Source(lambda folder, seed: few(seed, 12, 500, 4, 0.0, "free"), epsilons=("0.2", "0.5", "2", "5")),
    "copies6": Source(lambda folder, seed: few(seed, 6, 200, 3, 0.9, "copies"), epsilons=("0.2", "0.5", "2", "5")),
    "chain15": Source(lambda folder, seed: few(seed, 15, 1000, 2, 0.6, "chain"), epsilons=("0.2", "0.5", "2", "5")),
    "lfs": Source(lambda folder, seed: coded_csv(Path(os.environ[LFS])), file=LFS),
}


@lru_cache(maxsize=1)
def source_table(folder: Path, name: str, seed: int) -> Coded:
    """Return the records of a source; the last are kept. A cache in a script would keep jobs from other processes."""
    return SOURCES[name].read(folder, seed)
