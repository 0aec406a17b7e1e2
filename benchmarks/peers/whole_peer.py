"""Whole programs, dpgm's own among them: records in, synthetic records out, each as far as it runs within its limit.

Programs are those of `whole_worker.py`, each in the environment of its peer (`environments.py`). mbi's AIM and MST are
scripts of its repository and not in its package: the folder with them is that of DPGM_MBI_MECHANISMS, by default
`sources/mbi/mechanisms` in the folder of environments. Records of a run are kept in a cache, if there is one, by
program, versions, table, budget and seed, so that several studies judge the same run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from argparse import ArgumentParser
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from benchmarks.cases.coded import Coded, of_records, off
from benchmarks.harness.alone import ROOT, Crashed, OutOfTime, alone
from benchmarks.peers.environments import FOLDER, python_of
from benchmarks.peers.whole_worker import PROGRAMS, synthetic, versions
from benchmarks.protocol.selecting import zcdp_within
from dpgm_core import __version__

OURS = "dpgm auto"
#: Programs whose rows are sampled, with the rows that they make by default, which a fault of mbi 1.1.0 spoils.
ROUNDED = tuple(program for program in PROGRAMS if program.endswith("rounded"))
WHOLE = tuple(program for program in PROGRAMS if program not in (OURS, *ROUNDED))
MECHANISMS = "DPGM_MBI_MECHANISMS"
#: Environment -> the packages whose versions count.
_COUNTED = {
    "mbi": ("mbi",),
    "dpmm": ("dpmm",),
    "dpsynth": ("dpsynth", "mbi"),
    "opendp": ("opendp", "mbi"),
    "smartnoise": ("smartnoise-synth", "mbi"),
    "twinify": ("twinify",),
}
#: Tables and programs that ended at their limit at epsilon 1, or before they had a result; other budgets are not tried.
OVER_LIMIT: frozenset[tuple[str, str]] = frozenset({("parity10", "dpsynth swift")})
#: Seeds of a program's runs: dpgm's, those of peers, and those of dpgm and of the best peer in cells where the first
#: seeds left it open within the error which of the two trains the better classifiers.
_DRAWS, _PEER_DRAWS, _CLOSE_DRAWS = 3, 2, 10
_CLOSE = {"health 0.1": "dpsynth mst", "health 10": "dpsynth swift", "nist14 1": "dpsynth swift"}


@frozen(kw_only=True)
class Run:
    """One run of a program.

    Attributes
    ----------
    facts
        Of a run that ended: `seconds` of the CPU, `peak` memory in MB, `version`, and errors of the `exact` answers of
        dpgm's model. Otherwise `version` and `ended`, what happened instead.
    records
        Synthetic records; None without a result.
    """

    facts: dict[str, Any]
    records: Coded | None = None


def whole_missing(program: str) -> str | None:
    """Return why a program cannot run here, None if it can be tried."""
    environment = PROGRAMS[program][0]
    if environment and python_of(environment) is None:
        return f"{FOLDER} names no folder with {environment}; python -m benchmarks.peers --install FOLDER makes it"
    if environment == "mbi" and not _mechanisms().is_dir():
        return f"there is no {_mechanisms()}; put a checkout of mbi's repository there, or name it by {MECHANISMS}"
    return None


def draws_of(program: str, cell: str) -> int:
    """Return how many seeds a program has in a cell."""
    if cell in _CLOSE and program in (OURS, _CLOSE[cell]):
        return _CLOSE_DRAWS
    return _DRAWS if program == OURS else _PEER_DRAWS


def synthesize(
    program: str,
    table: Coded,
    epsilon: str,
    delta: str,
    seed: int,
    *,
    limit: int,
    cache: Path | None = None,
    order: int | None = None,
) -> Run:
    """Run a program on a table, or take its run from the cache.

    Parameters
    ----------
    program : str
        A key of `PROGRAMS`.
    limit : int
        CPU seconds, after which the run ends without a result. Ten times as many on the wall end it too.
    cache : Path, optional
        Folder of runs. A run that ended at a lower limit is made again.
    order : int, optional
        Of the sets of attributes that programs with a workload answer; None for each program's default.
    """
    path = None
    version = version_of(program)
    if cache is not None:
        key = (program, version, _digest(table), epsilon, delta, seed, order)
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        path = cache / f"{program.replace(' ', '-')}-{name}.npz"
        if path.is_file():
            with np.load(path) as file:
                facts = json.loads(str(file["facts"]))
                if "ended" not in facts:
                    return Run(facts=facts, records=Coded(domain=table.domain, codes=file["codes"]))
                if facts["limit"] >= limit:
                    return Run(facts=facts)
    problem = {
        "program": program,
        "codes": table.codes.tolist(),
        "sizes": dict(table.domain.sizes),
        "epsilon": float(epsilon),
        "delta": float(delta),
        "rho": zcdp_within(float(epsilon), float(delta)),
        "seed": seed,
        "order": order,
        "mechanisms": str(_mechanisms()),
    }
    facts, records = _run(problem, version, limit)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, facts=json.dumps(facts), codes=np.zeros(0) if records is None else records)
    return Run(facts=facts, records=None if records is None else Coded(domain=table.domain, codes=records))


def errors_of(run: Run, table: Coded) -> dict[str, Any]:
    """Return the facts of a run and the errors of its records, as `off` has them."""
    return run.facts | ({} if run.records is None else off(table, of_records(run.records)))


def add_run_options(parser: ArgumentParser, limit: int) -> None:
    """Add the options of studies that run programs."""
    parser.add_argument("--limit", type=int, default=limit, help="CPU seconds for a run of a program")
    parser.add_argument("--seeds", type=int, default=_CLOSE_DRAWS, help="draws of a cell at most")
    add_cache(parser)


def add_cache(parser: ArgumentParser) -> None:
    """Add the folder of the cache."""
    parser.add_argument("--cache", type=lambda text: Path(text).absolute(), help="folder that keeps runs of programs")


@lru_cache
def version_of(program: str) -> str:
    """Return the versions that a program runs with; "" where they cannot be read."""
    environment = PROGRAMS[program][0]
    if not environment:
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", "dpgm_core", "plugins"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"dpgm {__version__} {done.stdout.strip()}".strip()
    try:
        found: str = alone(versions, _COUNTED[environment], python=str(python_of(environment)))
    except (Crashed, OSError):
        return ""
    if environment == "mbi":
        scripts = b"".join(path.read_bytes() for path in sorted(_mechanisms().glob("*.py")))
        found += f", scripts {hashlib.sha256(scripts).hexdigest()[:8]}"
    return found


def _run(problem: dict[str, Any], version: str, limit: int) -> tuple[dict[str, Any], Any]:
    """Return the facts of a run and its records, codes, or None."""
    environment = PROGRAMS[problem["program"]][0]
    python = str(python_of(environment)) if environment else None
    try:
        answer = alone(synthetic, problem, limit=10 * limit, cpu_limit=limit, python=python)
    except OutOfTime:
        return {"version": version, "limit": limit, "ended": f"no result in {limit} CPU seconds"}, None
    except subprocess.TimeoutExpired:  # a busy machine's doing
        return {"version": version, "limit": limit, "ended": f"no result in {10 * limit} seconds on the wall"}, None
    except Crashed as why:
        return {"version": version, "limit": limit, "ended": f"failed: {str(why)[:300]}"}, None
    sizes = np.array(list(problem["sizes"].values()))
    records = _fill_missing(np.array(answer["records"], dtype=np.int64), sizes, problem["seed"])
    facts = {"seconds": round(answer["seconds"], 1), "peak": round(answer["peak"]), "version": version}
    return facts | ({"exact": answer["exact"]} if "exact" in answer else {}), records


def _fill_missing(records: Any, sizes: Any, seed: int) -> Any:
    """Return records whose missing values (codes of `size` and above) are drawn from the column's other values."""
    generator = np.random.default_rng(seed)
    for column, size in zip(records.T, sizes, strict=True):
        missing = column >= size
        if missing.any():
            known = column[~missing] if not missing.all() else np.arange(size)
            column[missing] = generator.choice(known, int(missing.sum()))
    return records.astype(np.uint8 if sizes.max() <= 256 else np.uint16)


def _mechanisms() -> Path:
    """Return the folder of mbi's scripts."""
    return Path(os.environ.get(MECHANISMS) or Path(os.environ.get(FOLDER, "."), "sources", "mbi", "mechanisms"))


def _digest(table: Coded) -> str:
    """Return what is the same for the same records in the same order."""
    codes = np.ascontiguousarray(table.codes, dtype=np.int64)
    return hashlib.sha256(repr(dict(table.domain.sizes)).encode() + codes.tobytes()).hexdigest()[:16]
