"""Bins found privately: what they take, and how far models over them are off.

    python -m benchmarks.table [DIR] [--smoke] [--seeds N] [--only bins,adult]

DIR holds `adult/`, by default in $DPGM_SHARED/data or ../shared/data; where it is missing the part says so. Each run is
a process of its own on one thread; seconds on the wall without Python's start, and of the CPU.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.cases import coded
from benchmarks.cases.binned import JUDGES, WAYS, binned, exact, off_numbers
from benchmarks.harness.alone import alone, peak_megabytes
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown, mean_and_error
from benchmarks.harness.runs import say
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Workload, fit

# --- What is run, each in a process of its own ---

DELTA = "1e-9"


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


# --- Parts ---


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


def _folder(asked: Namespace, file: str) -> Path | None:
    path: Path = asked.folder / file
    if path.is_file():
        return path.parent
    say(f"there is no {path}: left out; name a folder with it")
    return None


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=5, help="of the runs on Adult")


PARTS = {"bins": bins, "adult": adult}
MEASUREMENT = Measurement(about=__doc__, parts=PARTS, data="adult/", arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
