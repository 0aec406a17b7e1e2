"""What a domain that is found costs: errors of shares, over those with a domain that was written by hand.

    python -m benchmarks.any_type [DIR] [--smoke|--full|--report] [--cells "health 3"]

Both models are fitted by `auto` at (EPSILON, 1e-6) to the same records, all columns as texts. Error: total variation
distance of each column's shares, in the labels and bins of the domain that was written, between the records and 200,000
rounded ones of a model; the mean over columns. "Lost" is the part of it in labels that were not found. Finding has a
twentieth of mu^2, or a fifth. "Searched" is the same with a public domain that was found nearly without noise, for 19
twentieths of mu^2 at epsilon = 60: what its ratio is above 1 is the bins. "But one" is the ratio without the column for
which finding costs most. DIR holds `adult_raw` and `nist_acs_ma2019`; without them their cells are left out of --cells.
"homes" and "tests" are made up: what numbers have in common counts there.

The rules of `dpgm_core.domain.tables_of_shapes` were set on made-up columns before the first run; that a range is told
by the sides of what certainly occurs, and bins of small whole numbers, were set after looks at seed 1 of all but
"nist", and that few texts among numbers mark what is missing after one at seed 7 of "nist". How many bins there are was
set at seed 7 of "stays" and "health". That many zeros draw no other numbers to them was set after a look at seed 100 of
"health", which is among those reported. Where ranges of numbers end, and bins of common values, were chosen by
`benchmarks.made_columns` after looks at seeds 107 and 108 of "health" and "stays"; that labels of all decimals are not
searched, and bins are not fewer, also after looks at seed 100 of both, which is among those reported. Cells and common
labels were chosen by `benchmarks.made_columns` after looks at the search alone at seed 300 of all tables. How far
ranges of dates reach, and that places in a row occur together, were chosen by it, the latter also by three other
tables; how many persons a bin has by it and by the search alone at seeds 300 to 302 and 400 to 403 of all tables but
"adult", of which noise in place of a model told the errors. Cells of codes and calendar years, and from where common
labels occur, were chosen by it and by columns that a tester made up. Where a range thins out was chosen by it and by
columns of statsmodels' data sets. That noise of texts is no other text was seen in the search alone at seeds 0 to 39 of
"nist". What share shapes have, what is far from all that is clear, that ends go where cells show it, parts of cells and
cells of words were chosen by made-up columns and the search alone at seeds 500 to 639 of all tables. Shares inside
merged blocks were chosen on made-up blocks after looks at the dates of "stays" at seeds 300 to 303. Numbers such as
27.0, of many decimals, and codes such as 9999 were mended after looks at the files of statsmodels and of a labour
survey, which are none of these tables. Days, values, half-hours and borders of cells were built after looks at made-up
rides, invoices, loans and stays, which are none either; that edges of values ascend was mended after an error at seeds
101 and 102 of "health".

Beside it, what no search can give: the least ratio where a column of so many bins is asked for by parts that nobody
knows, `least_ratio`.
"""

from __future__ import annotations

import itertools
import math
import time
import tomllib
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, section
from benchmarks.harness.runs import Line, Task
from dpgm_core import Budget, Domain, FloatArray, IntArray, Model, SeededRandomness, fit
from dpgm_core.domain import read_metadata
from dpgm_core.sources.encoding import encoder

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
MADE = ("homes", "tests")
SOURCES = ("health", "adult", "stays", "nist", *MADE)
FEW_COLUMNS = ("health", "adult")
HAND, FOUND, FIFTH, SEARCHED = METHODS = ("by hand", "found", "a fifth", "searched")
DRAWN, SMOKE_DRAWN = 200_000, 5_000
EIGHTHS = 8


def records(source: str, folder: Path) -> tuple[pa.Table, Domain]:
    """Return the records as texts, with the domain that was written for them."""
    if source in MADE:
        return _made(source)
    if source == "health":
        domain = Domain.from_dict(tomllib.loads((EXAMPLES / "health/domain.toml").read_text(encoding="utf-8")))
        return _texts(EXAMPLES / "health/health.csv", domain)
    if source == "stays":
        metadata = read_metadata(EXAMPLES / "extract/stays.csv", codebooks=[EXAMPLES / "extract/codes.csv"])
    elif source == "nist":
        file = folder / "nist_acs_ma2019/ma2019.csv"
        metadata = read_metadata(file.with_suffix(".json"), schema_is_public=True)
    else:
        table = pa.csv.read_csv(folder / "adult_raw/adult.csv")
        labels = {name: {"labels": sorted(set(map(str, table[name].to_pylist())))} for name in table.column_names}
        return _texts(folder / "adult_raw/adult.csv", Domain.from_dict({"attributes": labels}))
    described = {name: table for name, table in metadata.tables.items() if "todo" not in table}
    path = EXAMPLES / "extract/stays.csv" if source == "stays" else file
    return _texts(path, Domain.from_dict({"attributes": described}), ";" if source == "stays" else ",")


def _texts(path: Path, domain: Domain, delimiter: str = ",") -> tuple[pa.Table, Domain]:
    types = dict.fromkeys(domain.names, pa.string())
    convert = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False, include_columns=list(domain.names))
    return pa.csv.read_csv(
        path, parse_options=pa.csv.ParseOptions(delimiter=delimiter), convert_options=convert
    ), domain


def _made(source: str) -> tuple[pa.Table, Domain]:
    """Return 12,000 homes whose price follows area, year and district, or 6,000 blood tests in which one value falls
    as another rises; with 20 to 60 even bins by hand. No rule was chosen on them."""
    rng = np.random.default_rng(41)
    columns: dict[str, tuple[Any, dict[str, Any]]]
    if source == "homes":
        area, district = np.exp(rng.normal(4.4, 0.35, 12_000)), rng.choice(4, 12_000, p=(0.4, 0.3, 0.2, 0.1))
        year = np.where(rng.random(12_000) < 0.4, rng.integers(1890, 1950, 12_000), rng.integers(1950, 2022, 12_000))
        price = area * np.exp(0.5 + 0.25 * district + 0.004 * (year - 1950) + 0.2 * rng.normal(size=12_000))
        columns = {
            "area": (area.round(), {"type": "integer", "min": 0, "max": 300, "bins": 60}),
            "year": (year, {"type": "integer", "min": 1890, "max": 2021, "bins": 44}),
            "rooms": (
                (area / 25 + 0.6 * rng.normal(size=12_000)).round().clip(1, 9),
                {"type": "integer", "min": 1, "max": 9},
            ),
            "price": (price.round(), {"type": "integer", "min": 0, "max": 1500, "bins": 60}),
            "district": (district, {"labels": list("0123")}),
            "garden": (rng.random(12_000) < 0.2 + 0.15 * district, {"labels": ["0", "1"]}),
        }
    else:
        age = rng.integers(18, 95, 6000)
        creatinine = np.exp(rng.normal(0.006 * (age - 50) - 0.1, 0.3)).clip(0, 5.9)
        filtration = (140 - 0.6 * age - 55 * (creatinine - 1)).clip(5, 150) + 4 * rng.normal(size=6000)
        columns = {
            "age": (age, {"type": "integer", "min": 18, "max": 94}),
            "creatinine": (10 * creatinine, {"type": "integer", "min": 0, "max": 59}),
            "filtration": (filtration.clip(0, 179), {"type": "integer", "min": 0, "max": 179, "bins": 60}),
            "potassium": (
                10 * rng.normal(4.2 + 0.3 * (creatinine - 1), 0.4),
                {"type": "integer", "min": 20, "max": 79},
            ),
            "haemoglobin": (rng.normal(140 - 8 * (creatinine - 1), 13), {"type": "integer", "min": 70, "max": 209}),
            "sex": (rng.random(6000) < 0.5, {"labels": ["0", "1"]}),
        }
    texts = {name: pa.array([str(int(value)) for value in values]) for name, (values, _) in columns.items()}
    return pa.table(texts), Domain.from_dict({"attributes": {name: one for name, (_, one) in columns.items()}})


def codes_of(table: pa.Table, domain: Domain) -> Mapping[str, IntArray]:
    """Return the codes of records, by column."""
    return {one.name: np.asarray(encoder(one)(table[one.name].combine_chunks()), np.int64) for one in domain}


def shares(codes: Mapping[str, IntArray], domain: Domain) -> Mapping[str, FloatArray]:
    """Return the share of each label, by column."""
    return {one.name: np.bincount(codes[one.name], minlength=one.size) / len(codes[one.name]) for one in domain}


def pairs(codes: Mapping[str, IntArray], domain: Domain) -> list[FloatArray]:
    """Return the shares of each pair of columns, bins in `EIGHTHS` groups at most."""
    few = {
        one.name: codes[one.name] * EIGHTHS // one.size
        if one.edges is not None and one.size > EIGHTHS
        else codes[one.name]
        for one in domain
    }
    return [
        np.bincount(few[one] * domain[other].size + few[other], minlength=domain[one].size * domain[other].size)
        / len(few[one])
        for one, other in itertools.combinations(domain.names, 2)
    ]


def rank_correlations(codes: Mapping[str, IntArray], domain: Domain) -> FloatArray:
    """Return Spearman's correlation of each pair of columns of more than `EIGHTHS` bins; unknown values come last."""
    numbers = [one.name for one in domain if one.edges is not None and one.size > EIGHTHS]
    ranks = []
    for name in numbers:
        counts = np.bincount(codes[name], minlength=domain[name].size)
        ranks.append((np.cumsum(counts) - counts / 2)[codes[name]])
    return np.atleast_2d(np.corrcoef(ranks))[np.triu_indices(len(numbers), 1)] if len(numbers) > 1 else np.zeros(0)


def errors(source: str, epsilon: str, method: str, seed: int, folder: Path, drawn: int) -> dict[str, Any]:
    """Return the mean error of a model's columns, what of it is in lost labels, and CPU seconds."""
    table, domain = records(source, folder)

    def fitted(epsilon: str, known: Domain | str) -> Model:
        """known: the domain, or the share of its search."""
        names = {name: {"private": True, "share": known} for name in domain.names}
        return fit(
            table,
            "auto",
            Budget.approx(epsilon, "1e-6"),
            workload=Domain.from_dict({"attributes": names}) if isinstance(known, str) else known,
            neighbours="add-remove",
            randomness=SeededRandomness(seed),
        ).model

    known = fitted("60", "19/20").domain if method == SEARCHED else {HAND: domain, FOUND: "1/20", FIFTH: "1/5"}[method]
    start = time.process_time()
    model = fitted(epsilon, known)
    seconds = time.process_time() - start
    there = codes_of(table, domain)
    # Rows whose tables err by roundings alone: independent ones err by .001, as much as a model of few columns.
    drawn_rows = model.sample(drawn, form="texts", method="rounded", randomness=SeededRandomness(seed))
    ours = codes_of(drawn_rows, domain)
    true, here = shares(there, domain), shares(ours, domain)
    each = [0.5 * float(np.abs(here[name] - true[name]).sum()) for name in domain.names]
    lost = [float(true[name][(here[name] == 0) & (true[name] > 0)].sum()) for name in domain.names]
    columns = {name: round(error, 6) for name, error in zip(domain.names, each, strict=True)}
    of_pairs = [
        0.5 * float(np.abs(one - two).sum()) for one, two in zip(pairs(there, domain), pairs(ours, domain), strict=True)
    ]
    ranks = np.abs(rank_correlations(there, domain) - rank_correlations(ours, domain))
    return {
        "tv": float(np.mean(each)),
        "lost": float(np.mean(lost)),
        "pairs": float(np.mean(of_pairs)),
        "ranks": float(np.mean(ranks)) if len(ranks) else None,
        "most": float(np.max(ranks)) if len(ranks) else None,
        "seconds": seconds,
        "columns": columns,
    }


def least_ratio(bins: int, parts: int) -> float:
    """Return the least ratio of errors of any unbiased measurement with Gaussian noise, over the parts measured alone.

    The parts are contiguous and chosen evenly among all that there are of this number; errors are root mean squares.
    Of Gaussian measurements W that move by 1, the trace of V Cov is at least (trace V^1/2)^2 / bins (Li and Miklau
    2013), V being the mean over partitions of the sum of outer products of their indicators.

    >>> [round(least_ratio(64, parts), 2) for parts in (4, 5, 64)]
    [2.09, 2.03, 1.0]
    """
    apart = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    together = np.array([math.comb(bins - 1 - d, parts - 1) / math.comb(bins - 1, parts - 1) for d in range(bins)])
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(together[apart]), 0))
    return float(roots.sum() / math.sqrt(bins * parts))


def _but_one(hand: Sequence[Line], found: Sequence[Line]) -> float:
    """Return the ratio of errors without the column whose error is most above that by hand."""
    means = [
        {name: float(np.mean([line["columns"][name] for line in lines])) for name in hand[0]["columns"]}
        for lines in (hand, found)
    ]
    worst = max(means[0], key=lambda name: means[1][name] - means[0][name])
    sums = [sum(error for name, error in one.items() if name != worst) for one in means]
    return sums[1] / sums[0]


def _mean(values: Sequence[float | None]) -> str:
    numbers = [one for one in values if one is not None]
    return f"{np.mean(numbers):.4f}" if numbers else "-"


def work(task: Task, asked: Namespace) -> Any:
    """One model, in a process of its own."""
    from benchmarks.any_type import errors as run  # by its module, which is __main__ here

    source, epsilon = task.cell.split()
    drawn = SMOKE_DRAWN if asked.extent == "smoke" else DRAWN
    return alone(run, source, epsilon, task.method, task.trial, asked.folder, drawn)


def cells(asked: Namespace) -> dict[str, int]:
    """Return cell -> seeds."""
    if asked.extent == "smoke":
        return {"health 3": 1}
    here = [source for source in SOURCES if source not in ("adult", "nist") or (asked.folder / "adult_raw").exists()]
    draws = dict.fromkeys(here, 2) if asked.extent != "full" else {one: 10 if one in FEW_COLUMNS else 5 for one in here}
    return {f"{source} {epsilon}": draws[source] for source in here for epsilon in ("3", "1")}


def text(lines: Sequence[Line]) -> str:
    """Return the table of errors."""
    rows = []
    for cell, some in grouped(lines, "cell").items():
        each = [having(some, method=method) for method in METHODS]
        if not all(each):
            continue
        tv = [float(np.mean([line["tv"] for line in lines])) for lines in each]
        lost = [float(np.mean([line["lost"] for line in lines])) for lines in each[1:3]]
        source, epsilon = cell.split()
        seconds = max(line["seconds"] for line in some)
        row = [source, epsilon, min(map(len, each)), *(f"{one:.4f}" for one in tv[:3])]
        rows.append(
            [
                *row,
                *(f"{one / tv[0]:.2f}" for one in tv[1:]),
                f"{_but_one(*each[:2]):.2f}",
                *(f"{one:.3f}" for one in lost),
                f"{seconds:.0f}",
            ]
        )
    head = ["records", "epsilon", "seeds", HAND, FOUND, FIFTH, "ratio", FIFTH, SEARCHED, "but one", "lost", FIFTH]
    head.append("CPU s, most")
    together = []
    for cell, some in grouped(lines, "cell").items():
        each = [having(some, method=method) for method in METHODS[:2]]
        if all(each):
            means = [[_mean([line[kind] for line in lines]) for lines in each] for kind in ("pairs", "ranks", "most")]
            together.append([*cell.split(), *itertools.chain.from_iterable(means)])
    parts = (3, 4, 6, 8, 16)
    least = [
        [bins, *(f"{least_ratio(bins, each):.2f}" if each <= bins else "-" for each in parts)]
        for bins in (8, 16, 32, 64)
    ]
    return "\n".join(
        (
            section("Errors of shares, mean total variation distance of columns", head, rows, name="table"),
            section(
                "Errors of pairs, total variation, and of rank correlations, mean and most",
                ["records", "epsilon", "pairs, by hand", "found", "ranks, by hand", "found", "most, by hand", "found"],
                together,
                name="pairs",
            ),
            section("Least ratio by bins found (rows) and parts asked for", ["bins", *map(str, parts)], least),
        )
    )


STUDY = Study(
    about=__doc__, name="any_type", data="adult_raw and nist_acs_ma2019", cells=cells, methods=METHODS,
    work=work, text=text, trial=lambda asked, cell, draw: 100 + draw,
)  # fmt: skip

if __name__ == "__main__":
    main(STUDY)
