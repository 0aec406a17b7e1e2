"""Tables as they come: from metadata to a domain, bins found privately, constraints, and records of the columns' types.

    python -m benchmarks.table [DIR] [--smoke] [--seeds N] [--only init,bins,adult,decoding,complete,constraints,lines]

DIR holds `adult/` and `nist_acs_ma2019/`, by default in $DPGM_SHARED/data or ../shared/data; parts that need one that
is not there say so. Each run is a process of its own on one thread; seconds on the wall without Python's start, and of
the CPU.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks.cases.binned import JUDGES, WAYS
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import say
from benchmarks.protocol.columns import (
    adult_errors,
    bins_found,
    commands,
    completed,
    constraints_broken,
    cut_errors,
    sampled,
    typed_model,
)
from dpgm_core import FloatArray


def init(asked: Namespace) -> None:
    """`dpgm init` on 100 columns: a header alone, and with a codebook of ten codes each (target: 2 s)."""
    columns = [f"column {number}" for number in range(100)]
    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        records, codebook = Path(made, "people.csv"), Path(made, "codes.csv")
        records.write_text(",".join(columns) + "\n" + ",".join(["1"] * 100) + "\n", encoding="utf-8")
        lines = [f"{column},{code},answer {code}" for column in columns for code in range(10)]
        codebook.write_text("\n".join(["column,code,label", *lines]) + "\n", encoding="utf-8")
        for what, more in (("header", []), ("codebook", ["--codebook", str(codebook)])):
            words = ["init", str(records), *more, "-o", str(Path(made, what))]
            start, used = time.perf_counter(), _used_by_others()
            subprocess.run(
                [sys.executable, "-c", "from dpgm.cli import main; main()", *words], check=True, capture_output=True
            )
            wall, used = time.perf_counter() - start, _used_by_others() - used
            print(f"{what:10} {wall:6.2f} s, CPU {used:.2f}, Python's start included", flush=True)


def bins(asked: Namespace) -> None:
    """32 private bins of each of ten columns of a million records, epsilon = 1 (target: 10 s)."""
    records = 20_000 if asked.smoke else 1_000_000
    for kind in ("approx",) if asked.smoke else ("pure", "approx"):
        found = alone(bins_found, records, 10, kind)
        print(
            f"{kind:7} {records:9,} records x 10: {found['private']:6.2f} s, CPU {found['private CPU']:.2f}; "
            f"with public bins {found['public']:.2f}, CPU {found['public CPU']:.2f}; peak {found['peak']:.0f} MB",
            flush=True,
        )


def adult(asked: Namespace) -> None:
    """`auto` at epsilon = 1 on Adult's numbers: ways to cut them, beside bins an expert writes down (target: 1.05)."""
    folder = _folder(asked, "adult/adult.csv")
    if folder is None:
        return
    seeds = 1 if asked.smoke else asked.seeds
    hidden = {way: alone(cut_errors, folder, way, 0) for way in WAYS}
    cut = [[way, *(f"{off[judge]:.4f}" for judge in JUDGES)] for way, off in hidden.items()]
    print(markdown(["what bins hide, no noise", *JUDGES], cut), flush=True)
    for kind in ("approx", "pure"):
        found = {way: [alone(adult_errors, folder, way, kind, seed) for seed in range(seeds)] for way in WAYS}
        rows = []
        for way, runs in found.items():
            rows.append([kind, way])
            for judge in JUDGES:
                errors = np.array([run[judge] for run in runs])
                others = np.array([run[judge] for run in found["by hand"]])
                rows[-1] += [f"{errors.mean():.4f}", _with_error(errors / others)]
            rows[-1].append(f"{np.mean([run['CPU'] for run in runs]):.1f}")
        titles = [title for judge in JUDGES for title in (judge, "over by hand")]
        print(markdown(["budget", "way", *titles, "CPU s"], rows), flush=True)


def _with_error(ratios: FloatArray) -> str:
    """The mean, and its standard error where there are several."""
    error = f" ± {np.std(ratios, ddof=1) / np.sqrt(len(ratios)):.3f}" if len(ratios) > 1 else ""
    return f"{ratios.mean():.3f}{error}"


def decoding(asked: Namespace) -> None:
    """A million records x 24 columns, numbers, dates and texts, into a file (target: 10 s); memory must not grow."""
    counts = (2_000,) if asked.smoke else (100_000, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        typed_model(24).save(Path(made, "m.dpgm"))
        for suffix in ("arrow",) if asked.smoke else ("parquet", "csv", "arrow"):
            for count in counts:
                _told(f"{suffix}, {count:,} records", alone(sampled, Path(made), count, suffix))


def complete(asked: Namespace) -> None:
    """Rows of 24 columns, a third of whose cells is missing by tens of patterns, filled in from a chain."""
    rows = 2_000 if asked.smoke else 100_000
    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        typed_model(24).save(Path(made, "m.dpgm"))
        for suffix in ("csv",) if asked.smoke else ("parquet", "csv"):
            for patterns in (10,) if asked.smoke else (10, 50):
                what = f"{suffix}, {rows:,} rows, {patterns} patterns"
                _told(what, alone(completed, Path(made), rows, patterns, suffix))


def constraints(asked: Namespace) -> None:
    """Sampled records that break a constraint, of a million of each model (target: none), at epsilon = .1."""
    count = 20_000 if asked.smoke else 1_000_000
    for how in ("auto",) if asked.smoke else ("chain", "mst", "auto"):
        for method in ("rounded",) if asked.smoke else ("independent", "rounded"):
            found = alone(constraints_broken, how, method, count)
            print(f"{how:6} {method:12} {count:9,} records, broken: {found}", flush=True)


def lines(asked: Namespace) -> None:
    """What is typed from the NIST excerpt to a synthetic file that pandas reads with the types it had (target: 10)."""
    folder = _folder(asked, "nist_acs_ma2019/ma2019.csv")
    if folder is None:
        return
    import pandas  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        records, run = folder / "ma2019.csv", Path(made, "run")
        typed = [
            ["init", f"{folder / 'ma2019.json'}", "--data", f"{records}", "-o", f"{run}"],
            ["fit", f"{run / 'spec.toml'}"],
            ["sample", f"{run / 'ma2019.dpgm'}", "-n", "7634", "-o", f"{run / 'synthetic.csv'}"],
        ]
        _told(f"{len(typed)} lines typed", alone(commands, *typed))
        for backend, read in (("numpy", {}), ("nullable", {"dtype_backend": "numpy_nullable"})):
            theirs, ours = (pandas.read_csv(path, **read) for path in (records, run / "synthetic.csv"))
            other = [name for name in theirs if name not in ours or theirs[name].dtype != ours[name].dtype]
            print(f"{backend:9} types of pandas: {len(theirs.columns) - len(other)} of {len(theirs.columns)} the same")
            print("".join(f"  {name}: {theirs[name].dtype}, {ours[name].dtype}\n" for name in other), end="")


def _used_by_others() -> float:
    """CPU seconds of processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told(what: str, found: dict[str, float]) -> None:
    print(f"{what:38} {found['seconds']:6.2f} s, CPU {found['CPU']:6.2f}, peak {found['peak']:.0f} MB", flush=True)


def _folder(asked: Namespace, file: str) -> Path | None:
    path: Path = asked.folder / file
    if path.is_file():
        return path.parent
    say(f"there is no {path}: left out; name a folder with it")
    return None


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=5, help="of the runs on Adult")


PARTS = {
    "init": init,
    "bins": bins,
    "adult": adult,
    "decoding": decoding,
    "complete": complete,
    "constraints": constraints,
    "lines": lines,
}
MEASUREMENT = Measurement(about=__doc__, parts=PARTS, data="adult/ and nist_acs_ma2019/", arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
