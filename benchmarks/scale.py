"""One count of 27 pairs, wherever the rows are: each engine against what it is measured against, in one run.

    python -m benchmarks.scale [--smoke] [--rows N] [--kind text] [--engines embedded,...] [--python-spark PYTHON]
        [--before CHECKOUT]

Every run is a process of its own, in the virtual environment of its engine (`--python-ENGINE`); the engines take turns
and the fastest run of each counts. First all count a small table: one that counts otherwise than the embedded path is
refused before anything is timed, and later runs are compared as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attrs import field, frozen

from benchmarks.cases.pairs import make
from benchmarks.harness.alone import ONE_THREAD
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import refuse, say
from benchmarks.peers.engines import Taken

ROOT = Path(__file__).parents[1]
_SMALL = 10_000

# What runs in the engine's environment; dpgm_core may be another checkout's.
_RUN = """
import json, sys
from pathlib import Path
root, core, folder, function, *options = sys.argv[1:]
sys.path[0] = core
import dpgm_core
sys.path[0] = root
from benchmarks.peers import engines
print("\\n" + json.dumps(getattr(engines, function)(Path(folder), *options)))
"""


@frozen
class Engine:
    """home: its environment. call: of `peers.engines`, with its options. against: what its seconds are divided by.
    target: the most they may be of it."""

    home: str
    call: tuple[str, ...]
    against: str
    target: float | str = "-"


ENGINES = {
    "embedded": Engine("embedded", ("embedded",), "embedded, before", 1.0),
    "spark": Engine("spark", ("spark",), "bare `mapInArrow` that only decodes", 1.5),
    "dask": Engine("dask", ("dask",), "embedded", 1.5),
    "duckdb": Engine("duckdb", ("sql", "duckdb"), "embedded", 5.0),
    "postgresql": Engine("postgresql", ("sql", "postgresql"), "the same GROUP BY by hand", 1.2),
    "sqlite": Engine("duckdb", ("sql", "sqlite"), "embedded"),
}
#: Streamed, and by hand, as one statement of GROUPING SETS and as 27.
ENGINES |= {
    f"{name}-{how}": Engine(name, ("sql", name, how), ENGINES[name].against)
    for name in ("duckdb", "postgresql")
    for how in ("stream", "sets", "pairs")
} | {"sqlite-stream": Engine("duckdb", ("sql", "sqlite", "stream"), "embedded")}


@frozen
class Runs:
    """What the runs of all engines took. The engine `before` is the embedded path of another checkout."""

    asked: Namespace
    taken: dict[str, list[Taken]] = field(factory=dict)

    def run(self, name: str, folder: Path) -> Taken:
        """One run, in a process of its own."""
        engine = ENGINES["embedded" if name == "before" else name]
        python = getattr(self.asked, f"python_{engine.home}")
        core = self.asked.before if name == "before" else ROOT
        command = [python, "-c", _RUN, ROOT, core, folder, *engine.call]
        done = subprocess.run(
            list(map(str, command)), cwd=ROOT, env=os.environ | ONE_THREAD, text=True, capture_output=True, check=False
        )
        if done.returncode:
            refuse(f"{name} failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
        taken: Taken = json.loads(done.stdout.strip().splitlines()[-1])
        return taken

    def check(self, names: list[str], folder: Path) -> None:
        """Refuse engines whose counts differ."""
        shas = {name: self.run(name, folder)["counts_sha"] for name in names}
        others = [name for name in names if shas[name] != shas[names[0]]]
        if others:
            refuse(f"{', '.join(others)} counted otherwise than {names[0]}")

    def time(self, names: list[str], folder: Path) -> None:
        """The engines in turn."""
        for _ in range(self.asked.repeats):
            for name in names:
                one = self.run(name, folder)
                base = one["baseline_seconds"]
                say(f"{name}: {one['seconds']:.2f} s" + ("" if base is None else f", beside {base:.2f} s"))
                self.taken.setdefault(name, []).append(one)
                if one["counts_sha"] != self.taken[names[0]][0]["counts_sha"]:
                    refuse(f"{name} counted otherwise than {names[0]}")

    def least(self, name: str) -> float:
        """Its fastest run."""
        return min(one["seconds"] for one in self.taken[name])

    def baseline(self, name: str) -> float | None:
        """What its seconds are divided by; None where it was not measured."""
        own = [one["baseline_seconds"] for one in self.taken[name] if one["baseline_seconds"] is not None]
        other = "before" if name == "embedded" else "embedded"
        return min(own) if own else self.least(other) if other in self.taken else None

    def table(self) -> str:
        """Markdown, a line for each engine."""
        rows = []
        for name in (one for one in self.taken if one != "before"):
            engine, least, base = ENGINES[name], self.least(name), self.baseline(name)
            cpu, peak = min(one["cpu"] for one in self.taken[name]), max(one["peak_mb"] for one in self.taken[name])
            than = ["", ""] if base is None else [f"{base:.2f}", f"{least / base:.2f}"]
            rows.append([name, f"{least:.2f}", engine.against, *than, engine.target, f"{cpu:.2f}", f"{peak:.0f}"])
        head = ["engine", "seconds", "against", "seconds", "ratio", "target", "CPU s", "driver's peak above idle, MB"]
        return markdown(head, rows)


def table(asked: Namespace) -> None:
    """All engines that are asked for."""
    names = asked.engines.split(",")
    for name in names:
        if name not in ENGINES:
            refuse(f"there is no engine {name!r}; there are {', '.join(ENGINES)}")
    if asked.before:
        names.append("before")
    rows = min(asked.rows, _SMALL) if asked.smoke else asked.rows
    runs = Runs(asked)
    with tempfile.TemporaryDirectory(dir=asked.folder) as temporary:
        small = Path(temporary) / f"small-{os.getpid()}"  # engines may keep a database beside it
        make(small, _SMALL, asked.kind)
        runs.check(names, small)
        folder = (
            small if rows == _SMALL else (asked.folder or Path(tempfile.gettempdir())) / f"scale-{asked.kind}-{rows}"
        )
        make(folder, rows, asked.kind)
        runs.time(names, folder)
    print(f"{rows:,} records, 10 columns, 27 pairs, {os.cpu_count()} cores\n")
    print(runs.table())


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="records")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine")
    parser.add_argument("--engines", default="embedded", help=f"of {', '.join(ENGINES)}, separated by commas")
    parser.add_argument("--before", type=Path, help="a checkout of another version, for the embedded path's ratio")
    parser.add_argument("--folder", type=Path, default=None, help="where tables are made and kept")
    parser.add_argument("--kind", choices=("int8", "text"), default="int8", help="how labels are stored")
    for name in dict.fromkeys(one.home for one in ENGINES.values()):
        parser.add_argument(f"--python-{name}", default=sys.executable, help=f"the Python of {name}'s environment")


MEASUREMENT = Measurement(about=__doc__, parts={"table": table}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
