"""Tables as they come: from metadata to a domain, bins found privately, constraints, and records of the columns' types.

    python -m benchmarks.table [DIR] [--smoke] [--seeds N] [--only init,bins,adult,decoding,constraints,lines]

DIR holds `adult/` and `nist_acs_ma2019/`, by default in $DPGM_SHARED/data or ../shared/data; parts that need one that
is not there say so. Seconds are of processes on one thread, imports included, on the wall unless said otherwise.
"""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.cases.binned import binned, off_numbers
from benchmarks.cases.coded import adult as adult_codes
from benchmarks.harness.alone import alone, peak_megabytes
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.runs import say
from dpgm_core import Budget, Domain, Model, SeededRandomness, Structure, Tables, Workload, fit
from dpgm_core.cli import main as command

DELTA = "1e-9"
TYPES = ("integer", "number", "date", "text")


# --- init -----------------------------------------------------------------------------------------------------------


# --- private bins ---------------------------------------------------------------------------------------------------


def bins(asked: Namespace) -> None:
    """32 private bins of each of ten columns of a million records, epsilon = 1 (target: 10 s)."""
    records = 20_000 if asked.smoke else 1_000_000
    for words in ("pure", "approx"):
        found = alone(bins_found, records, 10, words)
        print(f"{words:7} {records:9,} records x 10: {found['seconds']:6.2f} s, of which a fit to public bins of the same "
              f"number would take {found['public']:.2f}; peak {found['peak']:.0f} MB", flush=True)  # fmt: skip


def bins_found(records: int, columns: int, kind: str) -> dict[str, float]:
    """Wall seconds of a fit of all columns alone, with private and with public bins, and the peak of the memory."""
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(columns)]
    shapes = [rng.lognormal(9, 1, records), rng.normal(4e4, 1e4, records), rng.integers(0, 100, records) * 1e3]
    table = pa.table({name: shapes[place % 3].clip(0, 1e5).round(2) for place, name in enumerate(names)})
    budget = Budget.pure(1) if kind == "pure" else Budget.approx(1, DELTA)
    seconds = {}
    for how, cut in (("public", 32), ("private", {"private": 32})):
        one = {"type": "number", "min": 0, "max": 100_000, "bins": cut}
        structure = Structure(Domain.from_dict({"attributes": dict.fromkeys(names, one)}), [(name,) for name in names])
        start = time.perf_counter()
        done = fit(
            table, structure, budget, mechanism="laplace" if kind == "pure" else "gaussian",
            neighbours="add-remove", randomness=SeededRandomness(1),
        )  # fmt: skip
        seconds[how] = time.perf_counter() - start
        assert not done.model.domain.undetermined
    return {"seconds": seconds["private"], "public": seconds["public"], "peak": peak_megabytes()}


# --- Adult ----------------------------------------------------------------------------------------------------------


def adult(asked: Namespace) -> None:
    """`auto` at epsilon = 1 on Adult's numbers: private bins beside bins an expert writes down (target: 1.05)."""
    folder = asked.folder / "adult"
    if not (folder / "adult.csv").is_file():
        say(f"there is no {folder / 'adult.csv'}: left out; name a folder with it")
        return
    seeds = 1 if asked.smoke else asked.seeds
    found = {how: np.array([alone(adult_errors, folder, how, seed) for seed in range(seeds)]) for how in (0, 16, 32)}
    for how, errors in found.items():
        ratios = errors / found[0]
        said = [f"{mean:.4f} (ratio {ratio:.3f}" for mean, ratio in zip(errors.mean(0), ratios.mean(0), strict=True)]
        if seeds > 1:
            spreads = np.std(ratios, axis=0, ddof=1) / np.sqrt(seeds)
            said = [f"{text}, standard error {error:.3f}" for text, error in zip(said, spreads, strict=True)]
        name = f"{how} private bins" if how else "bins by hand"
        print(f"{name:16} 2-way TV of numbers {said[0]}), in bins by hand {said[1]}); {seeds} seeds", flush=True)


def adult_errors(folder: Path, private: int, seed: int) -> tuple[float, float]:
    """Of one selection and fit; private: how many private bins, 0 for those of `HAND`."""
    table = adult_codes(folder)
    domain = binned(table.domain, private or None)
    done = fit(
        folder / "adult.csv", "auto", Budget.approx(1, DELTA), workload=Workload.all(domain, order=2),
        neighbours="add-remove", randomness=SeededRandomness(seed),
    )  # fmt: skip
    return off_numbers(table, done.model)


# --- records of the columns' types ----------------------------------------------------------------------------------


def decoding(asked: Namespace) -> None:
    """A million records x 24 columns with numbers, dates and texts, into a file (target: 10 s); memory must not grow."""
    counts = (2_000, 20_000) if asked.smoke else (100_000, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        typed_model(24).save(Path(made, "m.dpgm"))
        for suffix in ("parquet", "csv", "arrow"):
            for count in counts:
                found = alone(sampled, Path(made), count, suffix)
                print(f"{suffix:8} {count:9,} records: {found['seconds']:6.2f} s, peak {found['peak']:.0f} MB", flush=True)


def typed_model(columns: int) -> Model:
    """A chain of columns of each type in turn, with random log-potentials."""
    kinds: dict[str, dict[str, Any]] = {
        "integer": {"type": "integer", "min": 0, "max": 99, "bins": 20},
        "number": {"type": "number", "min": 0, "max": 1e5, "bins": 20, "decimals": 2},
        "date": {"type": "date", "min": datetime.date(2020, 1, 1), "max": datetime.date(2021, 12, 31), "bins": "month"},
        "text": {"labels": [f"label {number}" for number in range(20)]},
    }
    named = {f"{kind}{number}": kinds[kind] for number, kind in enumerate((TYPES * columns)[:columns])}
    structure = Structure.chain(Domain.from_dict({"attributes": named}))
    values = np.random.default_rng(0).normal(size=structure.cells)
    return Model(structure, Tables(structure, values))


def sampled(folder: Path, count: int, suffix: str) -> dict[str, float]:
    """What `dpgm sample` takes."""
    start = time.perf_counter()
    words = ["sample", str(folder / "m.dpgm"), "-n", str(count), "-o", str(folder / f"{count}.{suffix}"), "--seed", "1"]
    command(words, standalone_mode=False)
    return {"seconds": time.perf_counter() - start, "peak": peak_megabytes()}


# --- constraints ----------------------------------------------------------------------------------------------------


# --- lines typed by hand --------------------------------------------------------------------------------------------


def _arguments(parser: ArgumentParser) -> None:
    named = os.environ.get("DPGM_SHARED")
    default = (Path(named) if named else Path(__file__).parents[2] / "shared") / "data"
    parser.add_argument("folder", type=Path, nargs="?", default=default, help="holds adult/ and nist_acs_ma2019/")
    parser.add_argument("--seeds", type=int, default=5, help="of the runs on Adult")


PARTS = {"bins": bins, "adult": adult, "decoding": decoding}
MEASUREMENT = Measurement(about=__doc__, parts=PARTS, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
