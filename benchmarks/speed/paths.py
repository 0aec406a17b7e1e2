"""Whole paths as users wait for them, CPU seconds of one process each, importing left out; before and now where another
checkout was named, and where the time goes now.

Tables are generated (`cases/`), epsilon = 1, delta = 1e-9, add-remove neighbours. Intervals are the first ones of a
model that was loaded from its file: 40 refits and the answer. It has random pairs and triples of near columns, 25,000
cells on 31 columns and 40,000 on 100. Compilation is that of an empty cache, numba's import included. Inferences are
those of junction trees, beside the sum of their limits, which are those of the table of limits. Where the time goes is
sampled every 5 ms of CPU time; what a function calls of C counts to its module. Each group of paths runs in one
checkout and then in the other.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the file is run by its path, with the modules of any checkout
    from benchmarks.cases.coded import Coded
    from dpgm_core import Structure

ROOT = Path(__file__).parents[2]
#: Path -> the CPU seconds aimed at.
PATHS: dict[str, float | None] = {
    "fit, auto, 1M x 12": 20,
    "fit, auto, 100k x 120": 60,
    "fit, aim, 40 rounds, 30k x 10": None,
    "first intervals, 31 columns": 5,
    "first intervals, 100 columns": None,
    "report, 100 columns": None,
    "sample, 10M rows x 31": None,
    "first compilation, all kernels": 5,
}
#: What one process measures, one after the other.
TOGETHER = {
    "million": ["fit, auto, 1M x 12"],
    "wide": ["fit, auto, 100k x 120"],
    "aim": ["fit, aim, 40 rounds, 30k x 10"],
    "31": ["first intervals, 31 columns", "sample, 10M rows x 31"],
    "100": ["first intervals, 100 columns", "report, 100 columns"],
    "kernels": ["first compilation, all kernels"],
}
#: Columns of a model for intervals -> cells of its tables.
RELATED = {4: 100, 31: 25_000, 100: 40_000}
#: Of one of its tables, and of its junction tree; columns after the first of a table among which the others are.
_MAX_TABLE_CELLS, _MAX_TREE_CELLS, _NEAR = 1500, 2**15, 8
_MOST_SHOWN = 4
_INTERVAL = 0.005  # seconds between samples


def measure(asked: Namespace) -> dict[str, Any]:
    """Path -> CPU seconds now, and before if asked; megabytes at most; shares of the time, largest first; inferences
    and their limit, seconds. Those that --models names, without their commas."""
    from benchmarks.speed.ours import rates

    figures: dict[str, Any] = {}
    rate = rates(3 if asked.smoke else 30)
    patterns = asked.models.split(",")
    for group, names in TOGETHER.items():
        if not any(fnmatch(name.replace(",", ""), pattern) for name in names for pattern in patterns):
            continue
        checkouts = [ROOT] if asked.before is None else [ROOT, asked.before.resolve()]
        now, *before = [_alone(group, checkout, smoke=asked.smoke) for checkout in checkouts]
        for name, found in now.items():
            figures[name] = _priced(found, rate)
            if before:
                figures[name]["before"] = _priced(before[0][name], rate)
    return figures


def _priced(found: dict[str, Any], rate: dict[str, float]) -> dict[str, Any]:
    """Return what a path took with the number of its inferences, and the seconds that they cannot take less than."""
    counts = found["inferences"]
    return {**found, "inferences": sum(count for *_, count in counts), "limit": limit_seconds(counts, rate)}


def _alone(group: str, checkout: Path, *, smoke: bool) -> dict[str, Any]:
    """Measure in a process of its own, with the code and, if there is one, the environment of a checkout."""
    from benchmarks.harness.alone import ONE_THREAD

    python = checkout / ".venv" / "bin" / "python"
    command = [python if checkout != ROOT and python.is_file() else sys.executable, __file__, group]
    command += ["smoke"] * smoke
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout), "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(group: str, *, smoke: bool) -> dict[str, Any]:
    """Measure the paths of one group in this process."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: _measured(call) for name, call in _calls(group, Path(folder), smoke).items()}


def _calls(group: str, folder: Path, smoke: bool) -> dict[str, Callable[[], object]]:
    """Return what is measured; models that it needs are learned first."""
    from benchmarks.cases.coded import wide
    from benchmarks.cases.tables import planted_graph
    from dpgm_core import Budget, SeededRandomness, Workload, bootstrap, fit, load_model
    from dpgm_core.inference.kernels.loading import kernels

    def fitted(table: Coded, selector: object) -> Any:
        return fit(
            table.codes, selector, Budget.approx(1, "1e-9"), "gaussian", workload=Workload.default(table.domain),
            neighbours="add-remove", randomness=SeededRandomness(1),
        )  # fmt: skip

    names = TOGETHER[group]
    if group == "kernels":
        os.environ |= dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(folder))
        return {names[0]: lambda: [kernels(name) for name in ("contractions", "loopy")]}
    if group == "million":
        table = wide(3, 500, 0) if smoke else wide(12, 1_000_000, 0)
        return {names[0]: lambda: fitted(table, "auto")}
    if group == "wide":
        graph = planted_graph(0, columns=4, records=500) if smoke else planted_graph(0)
        return {names[0]: lambda: fitted(graph, "auto")}
    if group == "aim":
        some = wide(3, 500, 0) if smoke else wide(10, 30_000, 0)
        return {names[0]: lambda: fitted(some, {"name": "aim", "rounds": 1 if smoke else 4})}
    file, columns = folder / "model.dpgm", 4 if smoke else int(group)
    table = wide(columns, 500 if smoke else 100_000, 0)
    fit(
        table.codes, related(table, RELATED[columns]), Budget.approx(1, "1e-9"), "gaussian",
        learner={"name": "eb-map", "target": "records", "rounds": 2}, neighbours="add-remove",
        randomness=SeededRandomness(1),
    ).model.save(file)  # fmt: skip

    def intervals() -> object:
        model = bootstrap(load_model(file), 5 if smoke else 40, randomness=SeededRandomness(0))
        return model.intervals(model.domain.names[0], level=0.9)

    def sample() -> object:
        return load_model(file).sample(100 if smoke else 10_000_000, randomness=SeededRandomness(0))

    def report() -> object:
        from dpgm.cli import main

        return main(["report", str(file), "-o", str(folder / "report.html")])

    return dict(zip(names, (intervals, sample if group == "31" else report), strict=True))


def related(table: Coded, cells: int) -> Structure:
    """Return all columns, and random pairs and triples of columns near each other, of at most so many cells in all."""
    import numpy as np

    from dpgm_core import Structure
    from dpgm_core.learning import Limits, ModelSize

    names, sizes = table.domain.names, table.domain.sizes
    near = [
        (name, *others)
        for place, name in enumerate(names)
        for count in (1, 2)
        for others in itertools.combinations(names[place + 1 : place + 1 + _NEAR], count)
    ]
    cliques: list[tuple[str, ...]] = [(name,) for name in names]
    size, limits = ModelSize(table.domain, cliques), Limits(seconds=math.inf, memory=16 * _MAX_TREE_CELLS)
    left = cells
    for clique in (near[place] for place in np.random.default_rng(0).permutation(len(near))):
        count = math.prod(sizes[name] for name in clique)
        if count <= min(left, _MAX_TABLE_CELLS) and size.fits(clique, limits):
            size.add(clique)
            cliques.append(clique)
            left -= count
    return Structure(table.domain, cliques)


@contextmanager
def counted() -> Iterator[Counter[tuple[int, int, int]]]:
    """Count the inferences of junction trees: (cells, multiply-adds, bytes) of one -> how many."""
    from dpgm_core.inference.junction_tree.engine import JunctionTreeEngine

    counts: Counter[tuple[int, int, int]] = Counter()
    infer = JunctionTreeEngine.infer

    def counting(self: JunctionTreeEngine, *args: Any, **options: Any) -> Any:
        needs = self.needs
        counts[self.structure.cells, needs.multiply_adds, needs.peak_bytes] += 1
        return infer(self, *args, **options)

    JunctionTreeEngine.infer = counting  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        JunctionTreeEngine.infer = infer  # type: ignore[method-assign]


def listed(counts: Counter[tuple[int, int, int]]) -> list[list[int]]:
    """Return what was counted as plain values: cells, multiply-adds and bytes of an inference, and how many."""
    return [[*needs, count] for needs, count in counts.items()]


def limit_seconds(inferences: list[list[int]], rate: dict[str, float]) -> float:
    """Return the seconds that inferences cannot take less than, at a machine's rates."""
    from benchmarks.speed.ours import limit

    return sum(count * limit(*needs, rate) for *needs, count in inferences) / 1e3


def _measured(call: Callable[[], object]) -> dict[str, Any]:
    from benchmarks.harness.alone import peak_megabytes

    modules: Counter[str] = Counter()

    def note(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            modules[_module(frame.f_code.co_filename)] += 1

    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)
    start = time.process_time()
    with counted() as counts:
        call()
    seconds = time.process_time() - start
    signal.setitimer(signal.ITIMER_PROF, 0)
    total = max(1, modules.total())
    shares = [(name, count / total) for name, count in modules.most_common(_MOST_SHOWN)]
    return {"seconds": seconds, "peak": peak_megabytes(), "shares": shares, "inferences": listed(counts)}


def _module(file: str) -> str:
    """Return short names: of ours folder and module, of others the distribution."""
    parts = Path(file).parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    return "/".join((*parts[-2:-1], Path(file).stem)) if any(part.startswith("dpgm") for part in parts) else "Python"


def table(figures: dict[str, Any]) -> str:
    """A row for each path."""
    from benchmarks.harness.output import markdown

    rows = []
    for name, found in ((name, figures[name]) for name in PATHS if name in figures):
        before = f"{found['before']['seconds']:.1f}" if "before" in found else "-"
        shares = ", ".join(f"{module} {100 * share:.0f} %" for module, share in found["shares"])
        limit = f"{found['limit']:.2g}" if found["inferences"] else "-"
        counted = f"{found['inferences']:,}"
        rows.append([name, before, f"{found['seconds']:.1f}", counted, limit, f"{found['peak']:.0f}", shares])
    head = ["path", "before, CPU s", "now", "inferences", "their limit, s", "peak MB", "where"]
    return markdown(head, rows)


def aims(figures: dict[str, Any]) -> list[Any]:
    """Of the paths that have one."""
    from benchmarks.speed.page import Aim

    return [
        Aim(f"{name}, CPU s", found["seconds"], PATHS[name])
        for name, found in figures.items()
        if PATHS.get(name) is not None
    ]


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], smoke="smoke" in sys.argv)))
