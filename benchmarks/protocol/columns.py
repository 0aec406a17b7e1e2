"""What `benchmarks.table` runs, each in a process of its own."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from benchmarks.cases.binned import binned, exact, off_numbers
from benchmarks.cases.coded import adult
from benchmarks.harness.alone import peak_megabytes
from dpgm.cli import main
from dpgm_core import Budget, Domain, Model, SeededRandomness, Structure, Tables, Workload, fit, load_model
from dpgm_core.models.merged_codes import SampleMethod

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
    table = adult(folder)
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
    table = adult(folder)
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
            main(words)
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
