"""Whole fits to one release of a third-order chain, T = 10, k = 10, N = 1e5, epsilon = 1: CPU seconds on one thread."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from benchmarks.harness.alone import alone
from benchmarks.harness.output import markdown
from benchmarks.protocol.populations import Population, draw_release, structure_of
from benchmarks.speed.aimed import Aim
from dpgm_core import learn, make

__all__ = ["aims", "fitted", "measure", "table"]

#: Learner -> its options, and the CPU seconds aimed at.
LEARNERS: dict[str, tuple[dict[str, Any], float]] = {
    "eb-map": ({}, 2.5),
    "naive-mle": ({"l2": "auto"}, 2.0),
    "cgm-em": ({"tau": "auto"}, 2.0),
}
RUNS = 3


def measure(asked: Namespace) -> dict[str, Any]:
    """Learner -> seconds of the first fit in a process, of the fastest one, and KL(true || learned), nats."""
    size, runs = (3, 1) if asked.smoke else (10, RUNS)
    return {name: alone(fitted, name, size, runs) for name in LEARNERS}


def fitted(name: str, size: int, runs: int) -> dict[str, float]:
    """What one process found."""
    population = Population.draw(structure_of("chain3", size), 0)
    noisy = draw_release(population, 10**5, 1.0, 1)
    learner = make("learner", name, **LEARNERS[name][0])
    seconds, kl = [], 0.0
    for _ in range(runs):
        start = time.process_time()
        fit = learn(noisy, learner)
        seconds.append(time.process_time() - start)
        kl = population.kl(fit.model.potentials.values)
    return {"first": seconds[0], "fastest": min(seconds), "kl": kl}


def _called(name: str) -> str:
    return " ".join([name, *LEARNERS[name][0].values()])


def table(figures: dict[str, Any]) -> str:
    """A row for each learner."""
    rows = [
        (
            _called(name),
            f"{found['first']:.2f}",
            f"{found['fastest']:.2f}",
            f"{LEARNERS[name][1]:g}",
            f"{found['kl']:.4f}",
        )
        for name, found in figures.items()
    ]
    return markdown(["learner", "first fit, CPU s", "fastest, CPU s", "at most", "KL"], rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Seconds of the fastest fit."""
    return [Aim(f"fit, {_called(name)}, CPU s", one["fastest"], LEARNERS[name][1]) for name, one in figures.items()]
