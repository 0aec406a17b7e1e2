"""Whole fits to one release of a third-order chain, T = 10, k = 10, N = 1e5, epsilon = 1, and 40 refits for intervals.

CPU seconds of all threads, of the first fit of a process and of the fastest; refits in fastest fits. Inferences are
those of a fit and of all refits; the limit of the latter, by the table of limits, is in fits too.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from benchmarks.harness.alone import alone
from benchmarks.harness.output import markdown
from benchmarks.protocol.populations import Population, draw_release, structure_of
from benchmarks.speed.ours import rates
from benchmarks.speed.page import Aim
from benchmarks.speed.paths import counted, limit_seconds, listed
from dpgm_core import SeededRandomness, bootstrap, learn, make

#: Learner -> its options, and the CPU seconds aimed at.
LEARNERS: dict[str, tuple[dict[str, Any], float]] = {
    "eb-map": ({}, 2.5),
    "naive-mle": ({"l2": "auto"}, 2.0),
    "cgm-em": ({"tau": "auto"}, 2.0),
}
RUNS = 3
REPLICATES = 40
#: Refits, in fits.
REFITS = 2.5


def measure(asked: Namespace) -> dict[str, Any]:
    """Learner -> CPU seconds of the first fit in a process, of the fastest one and of refits; KL(true || learned); the
    inferences of a fit and of refits, and the seconds that the latter cannot take less than."""
    size, runs = (3, 1) if asked.smoke else (10, RUNS)
    rate = rates(3 if asked.smoke else 30)
    figures = {name: alone(fitted, name, size, runs) for name in LEARNERS}
    for one in figures.values():
        one["limit"] = limit_seconds(one.pop("inferences"), rate)
    return figures


def fitted(name: str, size: int, runs: int) -> dict[str, Any]:
    """What one process found."""
    population = Population.draw(structure_of("chain3", size), 0)
    noisy = draw_release(population, 10**5, 1.0, 1)
    learner = make("learner", name, **LEARNERS[name][0])
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        with counted() as in_fit:
            model = learn(noisy, learner).model
        seconds.append(time.process_time() - start)
    start = time.process_time()
    with counted() as in_refits:
        bootstrap(model, REPLICATES, randomness=SeededRandomness(0))
    refits = time.process_time() - start
    kl = population.kl(model.potentials.values)
    counts = {"in fit": in_fit.total(), "in refits": in_refits.total(), "inferences": listed(in_refits)}
    return {"first": seconds[0], "fastest": min(seconds), "refits": refits, "kl": kl, **counts}


def _called(name: str) -> str:
    return " ".join([name, *LEARNERS[name][0].values()])


def table(figures: dict[str, Any]) -> str:
    """A row for each learner."""
    rows = [
        [
            _called(name),
            f"{found['first']:.2f}",
            f"{found['fastest']:.2f}",
            f"{found['refits'] / found['fastest']:.1f}",
            f"{found['in fit']:,}",
            f"{found['in refits']:,}",
            f"{found['limit'] / found['fastest']:.2f}",
            f"{found['kl']:.4f}",
        ]
        for name, found in figures.items()
    ]
    return markdown(
        [
            "learner",
            "first fit, s",
            "fastest, s",
            "40 refits, in fits",
            "inferences",
            "of refits",
            "limit, in fits",
            "KL, nats",
        ],
        rows,
    )


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Of the fastest fit."""
    fits = [Aim(f"fit, {_called(name)}, CPU s", one["fastest"], LEARNERS[name][1]) for name, one in figures.items()]
    refits = [
        Aim(f"{REPLICATES} refits, {_called(name)}, in fits", one["refits"] / one["fastest"], REFITS)
        for name, one in figures.items()
    ]
    return fits + refits
