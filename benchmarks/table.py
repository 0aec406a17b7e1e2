"""Tables as they come: from metadata to a domain, bins found privately, constraints, and records of the columns' types.

    python -m benchmarks.table [DIR] [--smoke] [--seeds N] [--only init,bins,adult,decoding,complete,constraints,lines]

DIR holds `adult/` and `nist_acs_ma2019/`, by default in $DPGM_SHARED/data or ../shared/data; parts that need one that
is not there say so. Each run is a process of its own on one thread; seconds on the wall without Python's start, and of
the CPU.
"""

from __future__ import annotations

import datetime
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from benchmarks.cases import coded
from benchmarks.cases.binned import JUDGES, WAYS, binned, exact, off_numbers
from benchmarks.harness.alone import alone, peak_megabytes
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown, mean_and_error
from benchmarks.harness.runs import say
from dpgm.cli import main as dpgm_command
from dpgm_core import Budget, Domain, Model, SeededRandomness, Structure, Tables, Workload, fit, load_model
from dpgm_core.models.merged_codes import SampleMethod

# --- What is run, each in a process of its own ---

DELTA = "1e-9"
TYPES: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer", "min": 0, "max": 99, "bins": 20},
    "number": {"type": "number", "min": 0, "max": 1e5, "bins": 20, "decimals": 2},
    "date": {"type": "date", "min": datetime.date(2020, 1, 1), "max": datetime.date(2021, 12, 31), "bins": "month"},
    "text": {"labels": [f"label {number}" for number in range(20)]},
}

#: A county tells its state, nobody leaves before coming, children are not married, one city is in one county.
COUNTIES = {f"county {number}": f"state {number % 4}" for number in range(12)}
CONSTRAINED: dict[str, Any] = {
    "attributes": {
        "county": {"labels": list(COUNTIES)},
        "state": {"labels": [f"state {number}" for number in range(4)]},
        "city": {"labels": ["metropolis", "elsewhere"]},
        "came": {"type": "integer", "min": 0, "max": 29, "bins": 30},
        "left": {"type": "integer", "min": 0, "max": 29, "bins": 10},
        "age": {"type": "integer", "bins": [0, 15, 30, 65, 99]},
        "married": {"labels": ["no", "yes"]},
    },
    "constraints": {
        "states": {"columns": ["county", "state"], "map": COUNTIES},
        "stay": {"columns": ["came", "left"], "order": "<="},
        "children": {"columns": ["age", "married"], "impossible": [["0-14", "yes"]]},
        "metropolis": {
            "columns": ["city", "county"],
            "possible": [["metropolis", "county 3"], ["elsewhere", "*"], ["missing", "*"]],
        },
    },
}


def bins_found(records: int, columns: int, kind: str) -> dict[str, float]:
    """Wall and CPU seconds of a fit of all columns alone, with private and with public bins; peak memory."""
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(columns)]
    shapes = [rng.lognormal(9, 1, records), rng.normal(4e4, 1e4, records), rng.integers(0, 100, records) * 1e3]
    table = pa.table({name: shapes[place % 3].clip(0, 1e5).round(2) for place, name in enumerate(names)})
    budget = Budget.pure(1) if kind == "pure" else Budget.approx(1, DELTA)
    found: dict[str, float] = {}
    for how, cut in (("public", 32), ("private", {"private": 32})):
        one = {"type": "number", "min": 0, "max": 100_000, "bins": cut}
        structure = Structure(Domain.from_dict({"attributes": dict.fromkeys(names, one)}), [(name,) for name in names])
        start, used = time.perf_counter(), time.process_time()
        done = fit(
            table, structure, budget, mechanism="laplace" if kind == "pure" else "gaussian",
            neighbours="add-remove", randomness=SeededRandomness(1),
        )  # fmt: skip
        found |= {how: time.perf_counter() - start, f"{how} CPU": time.process_time() - used}
        assert not done.model.domain.undetermined
    return found | {"peak": peak_megabytes()}


def adult_errors(folder: Path, way: str, kind: str, seed: int) -> dict[str, float]:
    """Of one selection and fit, epsilon = 1, in the cells of each judge, and CPU seconds; way: of `WAYS`."""
    table = coded.adult(folder)
    domain = binned(table.domain, way)
    used = time.process_time()
    done = fit(
        folder / "adult.csv", "auto", Budget.pure(1) if kind == "pure" else Budget.approx(1, DELTA),
        workload=Workload.all(domain, order=2), neighbours="add-remove", randomness=SeededRandomness(seed),
    )  # fmt: skip
    used = time.process_time() - used
    return off_numbers(table, done.model.domain, done.model.marginals_of) | {"CPU": used}


def cut_errors(folder: Path, way: str, seed: int) -> dict[str, float]:
    """What bins hide alone: the records' own tables, by bins found as in `adult_errors` under (1, 1e-9)."""
    table = coded.adult(folder)
    domain = binned(table.domain, way)
    if domain.undetermined:
        alone = Structure(domain, [(name,) for name in domain.names])
        domain = fit(
            folder / "adult.csv", alone, Budget.approx(1, DELTA), mechanism="gaussian",
            neighbours="add-remove", randomness=SeededRandomness(seed),
        ).model.domain  # fmt: skip
    return off_numbers(table, domain, exact(table, domain))


def typed_model(columns: int) -> Model:
    """A chain of columns of each type in turn, with random log-potentials."""
    kinds = (list(TYPES) * columns)[:columns]
    structure = Structure.chain(
        Domain.from_dict({"attributes": {f"{kind}{number}": TYPES[kind] for number, kind in enumerate(kinds)}})
    )
    return Model(structure, Tables(structure, np.random.default_rng(0).normal(size=structure.cells)))


def sampled(folder: Path, count: int, suffix: str) -> dict[str, float]:
    """What `dpgm sample` takes."""
    words = ["sample", str(folder / "m.dpgm"), "-n", str(count), "-o", str(folder / f"{count}.{suffix}"), "--seed", "1"]
    return commands(words)


def completed(folder: Path, rows: int, patterns: int, suffix: str) -> dict[str, float]:
    """What `dpgm complete` takes of rows, each of which lacks a third of its cells by one of so many patterns."""
    model = load_model(folder / "m.dpgm")
    whole = model.sample(rows, form="values", randomness=SeededRandomness(1))
    rng = np.random.default_rng(2)
    lacking = rng.random((patterns, len(model.domain))) < 1 / 3
    own = rng.integers(0, patterns, rows)
    given = pa.table(
        {
            name: pc.if_else(pa.array(lacking[own, place]), pa.scalar(None, whole[name].type), whole[name])
            for place, name in enumerate(whole.column_names)
        }
    )
    path = folder / f"partial.{suffix}"
    if suffix == "csv":
        csv.write_csv(given, path)
    else:
        parquet.write_table(given, path)
    del whole, given
    words = [str(folder / "m.dpgm"), str(path), "-o", str(folder / f"completed.{suffix}"), "--seed", "1"]
    return commands(["complete", *words])


def commands(*lines: list[str]) -> dict[str, float]:
    """Wall and CPU seconds of command lines in this process, and its peak memory."""
    start, used = time.perf_counter(), time.process_time()
    for words in lines:
        try:
            dpgm_command(words)
        except SystemExit as left:  # as a command ends
            if left.code:
                raise
    return {"seconds": time.perf_counter() - start, "CPU": time.process_time() - used, "peak": peak_megabytes()}


def constrained_model(how: str, records: int, seed: int) -> Model:
    """Of records that keep the constraints, at epsilon = .1, so that noise would break them all. how: a selector, or
    "chain"."""
    domain = Domain.from_dict(CONSTRAINED)
    rng = np.random.default_rng(seed)
    county = rng.integers(0, 12, records)
    came = rng.integers(0, 30, records)
    age = rng.integers(0, 100, records)
    table = pa.table(
        {
            "county": [f"county {number}" for number in county],
            "state": [f"state {number % 4}" for number in county],
            "city": np.where((county == 3) & (rng.random(records) < 0.7), "metropolis", "elsewhere"),
            "came": came,
            "left": np.minimum(came + rng.integers(0, 5, records), 29),
            "age": age,
            "married": np.where((age >= 15) & (rng.random(records) < 0.5), "yes", "no"),
        }
    )
    structure = Structure.chain(domain) if how == "chain" else how
    return fit(
        table, structure, Budget.pure("0.1"), workload=None if how == "chain" else domain,
        neighbours="add-remove", randomness=SeededRandomness(seed),
    ).model  # fmt: skip


def constraints_broken(how: str, method: SampleMethod, count: int) -> dict[str, int]:
    """How many of so many records sampled from a model of 5,000 break each constraint."""
    model = constrained_model(how, 5_000, 1)
    found: Counter[str] = Counter()
    for batch in model.sample_batches(count, method=method, form="values", randomness=SeededRandomness(1)):
        found.update(broken(batch))
    return dict(found)


def broken(table: pa.Table) -> dict[str, int]:
    """How many records, as they are written, break each constraint, counted without anything of dpgm's."""
    county, state, city, married = (np.array(table[name].to_pylist(), object) for name in _TEXTS)
    came, left, age = (np.array([np.nan if one is None else one for one in table[name].to_pylist()]) for name in _WHOLE)
    real = np.array([one in COUNTIES for one in county])
    own = np.array([COUNTIES.get(one, "") for one in county], object)
    return {
        "states": int((real & (state != own)).sum()),
        "stay": int((came > left).sum()),
        "children": int(((age < 15) & (married == "yes")).sum()),
        "metropolis": int(((city == "metropolis") & (county != "county 3")).sum()),
    }


_TEXTS, _WHOLE = ("county", "state", "city", "married"), ("came", "left", "age")


# --- Parts ---


def init(asked: Namespace) -> None:
    """`dpgm init` on 100 columns: a header alone, and with a codebook of ten codes each (target: 2 s)."""
    columns = [f"column {number}" for number in range(100)]
    with tempfile.TemporaryDirectory(prefix="dpgm-table-") as made:
        records, codebook = Path(made, "people.csv"), Path(made, "codes.csv")
        records.write_text(",".join(columns) + "\n" + ",".join(["1"] * 100) + "\n", encoding="utf-8")
        lines = [f"{column},{code},answer {code}" for column in columns for code in range(10)]
        codebook.write_text("\n".join(["column,code,label", *lines]) + "\n", encoding="utf-8")
        kinds = {"header": [], "codebook": ["--codebook", str(codebook)]}
        for what, more in list(kinds.items())[-1 if asked.smoke else 0 :]:
            words = ["init", str(records), *more, "-o", str(Path(made, what))]
            start, used = time.perf_counter(), _used_by_others()
            subprocess.run(
                [sys.executable, "-c", "from dpgm.cli import main; main()", *words], check=True, capture_output=True
            )
            wall, used = time.perf_counter() - start, _used_by_others() - used
            print(f"{what:10} {wall:6.2f} s, CPU {used:.2f}, Python's start included", flush=True)


def bins(asked: Namespace) -> None:
    """32 private bins of each of ten columns of a million records, epsilon = 1 (target: 10 s)."""
    records = 2_000 if asked.smoke else 1_000_000
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
                rows[-1] += [f"{errors.mean():.4f}", mean_and_error(errors / others, "{:.3f}", " ± {:.3f}")]
            rows[-1].append(f"{np.mean([run['CPU'] for run in runs]):.1f}")
        titles = [title for judge in JUDGES for title in (judge, "over by hand")]
        print(markdown(["budget", "way", *titles, "CPU s"], rows), flush=True)


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
    count = 2_000 if asked.smoke else 1_000_000
    for how in ("chain",) if asked.smoke else ("chain", "mst", "auto"):
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
