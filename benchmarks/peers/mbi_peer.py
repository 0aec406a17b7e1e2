"""mbi (private-pgm) as a peer: its mirror descent with L2 loss on the very tables that dpgm's learners get.

mbi lives in an environment of its own (`pip install mbi==2.0.0`), named by the variable DPGM_MBI_PYTHON: the path of
its interpreter. One worker process per process of ours is kept alive and asked through files (`mbi_worker.py`), so
that JAX starts once. What comes back are log-potentials over our structure: marginals and KL are then computed by our
exact engine; they agree with mbi's own to 1e-15. Floats have 64 bits, as mbi itself advises.

mbi is used in two ways: with its default 1000 iterations, and with the best number of iterations, chosen by the truth
(every iteration at first, then steps of a fifth; beyond 1000 only where 1000 were best). On a third-order chain with
k = 10, N = 1e6 and epsilon = 1, KL is .027 at 1000 and .0036 at 8000. Seconds are CPU seconds of one thread, compiled.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from attrs import frozen

from benchmarks.harness.alone import ONE_THREAD, XLA, Crashed, Served
from benchmarks.protocol.populations import Population
from dpgm_core import FloatArray, NoisyTables, Structure

VARIABLE = "DPGM_MBI_PYTHON"
DEFAULT_ITERATIONS = 1000  # mbi's own


class MissingPeer(Exception):
    """mbi's environment is not named, not there, or cannot import mbi."""


class PeerFailed(Exception):
    """mbi was there but did not answer."""


@frozen(kw_only=True, eq=False)
class MbiPath:
    """What mbi learned, over our structure.

    potentials: (cells,), of its estimate. stops: iterations, and path: (stops, cells), the potentials there.
    marginals: (cells,), by mbi's own inference, probabilities. total: the N it was given or estimated. seconds,
    path_seconds: CPU time, compiled, of the estimate and of the path. compile_seconds: CPU time, 0 unless the
    structure was new to the worker.
    """

    potentials: FloatArray
    stops: tuple[int, ...]
    path: FloatArray
    marginals: FloatArray
    total: float
    seconds: float
    path_seconds: float
    compile_seconds: float


def mbi_models(
    structure: Structure,
    values: FloatArray,
    stddev: FloatArray,
    *,
    total: float | None = None,
    iterations: int = DEFAULT_ITERATIONS,
    stops: tuple[int, ...] = (),
    oracle: str = "default",
    bits: int = 64,
) -> MbiPath:
    """Fit mbi's model to noisy tables. Raises MissingPeer and PeerFailed, each with one line.

    structure: untied. values: (cells,), records. stddev: (groups,), records. total: N; None lets mbi estimate it from
    the tables. stops: iteration counts, ascending, whose potentials are wanted too. oracle: what
    computes marginals, mbi's choice or a name in its marginal_oracles ("implicit"). bits: 64, or 32 as JAX starts.
    """
    if any(len(group) > 1 for group in structure.groups):
        raise PeerFailed("mbi was asked for tied tables, which it does not have; give it an untied structure")
    if not (np.all(np.isfinite(values)) and np.all(np.asarray(stddev) > 0)):
        raise PeerFailed("mbi was asked to fit NaN, infinite or noiseless tables, which it would answer without a word")
    names = structure.domain.names
    answer = worker(bits).ask(
        sizes=np.array([structure.domain.sizes[name] for name in names]),
        cliques=np.array([",".join(str(names.index(name)) for name in group[0]) for group in structure.groups]),
        values=np.asarray(values, dtype=np.float64),
        stddev=np.asarray(stddev, dtype=np.float64),
        total=np.array(np.nan if total is None else total),
        iterations=np.array(iterations),
        stops=np.array(stops, dtype=np.int64),
        oracle=np.array(oracle),
    )
    rows = [over(structure, answer["cliques"], row) for row in answer["potentials"]]
    return MbiPath(
        potentials=rows[0],
        stops=stops,
        path=np.array(rows[1:]).reshape(len(stops), structure.cells),
        marginals=answer["marginals"],
        total=float(answer["total"]),
        seconds=float(answer["seconds"][1]),
        path_seconds=float(answer["seconds"][2]),
        compile_seconds=float(answer["seconds"][0]),
    )


def mbi_fit(
    release: NoisyTables,
    *,
    iterations: int = DEFAULT_ITERATIONS,
    stops: tuple[int, ...] = (),
    own_total: bool = False,
    oracle: str = "default",
) -> MbiPath:
    """mbi on a release of ours: the same noisy tables and standard deviations, the release's N or mbi's own."""
    return mbi_models(
        release.structure,
        release.tables.values.astype(np.float64),
        np.sqrt(release.variances),
        total=None if own_total else release.total,
        iterations=iterations,
        stops=stops,
        oracle=oracle,
    )


def stops_until(most: int) -> tuple[int, ...]:
    """Where the oracle looks: every iteration at first, then steps of about a fifth, and `most`.

    >>> stops_until(10)
    (1, 2, 3, 4, 5, 6, 7, 9, 10)
    """
    steps = (round(1.2**power) for power in range(int(np.log(most) / np.log(1.2)) + 1))
    return tuple(sorted({step for step in steps if step < most} | {most}))


def mbi_kls(population: Population, release: NoisyTables, *, most: int = 8000) -> dict[str, dict[str, float]]:
    """KL(true || learned) of mbi at its default and at its best stop: {"mbi": ..., "mbi-oracle": ...}.

    most: where the search for the best stop ends; it goes beyond the default only if it was best to go that far. Where
    noise is small, the default is far from converged: "iterations" at `most` says that more would be better still.
    Each answer is a dict of kl (nats), iterations and seconds (CPU, compiled). The oracle's seconds are those of a run
    that ends at its stop, a share of the path's: an oracle is told where to stop, it does not search.
    """
    usual, oracle = {}, {}
    for last in dict.fromkeys((min(DEFAULT_ITERATIONS, most), most)):
        stops = stops_until(last)
        found = mbi_fit(release, stops=stops)
        kls = [population.kl(row) for row in found.path]
        best = int(np.argmin(kls))
        usual = {"kl": population.kl(found.potentials), "iterations": DEFAULT_ITERATIONS, "seconds": found.seconds}
        oracle = {"kl": kls[best], "iterations": stops[best], "seconds": found.path_seconds * stops[best] / last}
        if stops[best] < last:
            break
    return {"mbi": usual, "mbi-oracle": oracle}


def mbi_version() -> str:
    """The version of mbi that answers. Raises MissingPeer."""
    return worker(64).version


def mbi_missing() -> str | None:
    """Why mbi cannot be asked here, None if it can."""
    try:
        mbi_version()
    except MissingPeer as error:
        return str(error)
    return None


def over(structure: Structure, cliques: np.ndarray, row: FloatArray) -> FloatArray:
    """Potentials over mbi's cliques (the largest of the measured ones) as potentials over ours, (cells,)."""
    names, at = structure.domain.names, 0
    values = np.zeros(structure.cells)
    for text in cliques:
        clique = tuple(names[int(place)] for place in str(text).split(","))
        shape = [structure.domain.sizes[name] for name in clique]
        block = row[at : at + int(np.prod(shape))].reshape(shape)
        at += block.size
        number, _ = structure.find(clique)
        group = structure.groups[number][0]
        values[structure.slices[number]] = block.transpose([clique.index(name) for name in group]).ravel()
    return values


class Worker:
    """One process in mbi's environment, started when first asked and again after it died."""

    def __init__(self, bits: int) -> None:
        python = os.environ.get(VARIABLE)
        how = f"set {VARIABLE} to the python of an environment with mbi==2.0.0"
        if not python:
            raise MissingPeer(f"mbi was asked for, but {VARIABLE} is not set; {how}")
        # mbi's own thread pool still compiles beside the run; its arithmetic is kept to one thread.
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        command = [python, Path(__file__).with_name("mbi_worker.py"), str(bits)]
        self.served = Served(command, inherited | ONE_THREAD | XLA)
        try:
            hello = self.served.ask({})
        except OSError as error:
            self.served.end()
            raise MissingPeer(
                f"mbi was asked for, but {VARIABLE}={python} cannot be run ({error.strerror}); {how}"
            ) from error
        except Crashed:
            hello = {"missing": "it ended without a word"}
        if "missing" in hello:
            self.served.end()
            raise MissingPeer(f"mbi was asked for, but {VARIABLE}={python} has none ({hello['missing']}); {how}")
        self.version = str(hello["ready"])

    def ask(self, **problem: np.ndarray) -> dict[str, np.ndarray]:
        """One problem, one answer; a worker that has died since the last one is replaced once."""
        with tempfile.TemporaryDirectory(prefix="dpgm-mbi-") as folder:
            given, answered = Path(folder, "problem.npz"), Path(folder, "answer.npz")
            np.savez(given, **problem)
            for _ in range(2):
                try:
                    if self.served.process is None:
                        self.served.ask({})
                    self.served.ask({"problem": str(given), "answer": str(answered)})
                except Crashed as crash:
                    if self.served.process is not None:
                        raise PeerFailed(f"mbi failed: {str(crash).splitlines()[0]}") from None
                else:
                    with np.load(answered) as file:
                        return dict(file)
        raise PeerFailed("mbi's worker died twice on the same problem; is there enough memory?")


@cache
def worker(bits: int) -> Worker:
    """This process's worker; a failed start is not remembered."""
    started = Worker(bits)
    atexit.register(started.served.end)
    return started
