"""CGM-EM beside naive MLE on the protocol of Bernstein et al. (2017): time, accuracy, inference calls, stopping.

    python -m benchmarks.cgm_em [--smoke] [--only speed,calls,stopping,e-steps,gaussian]

CPU seconds of one process on one thread, the two learners alternating, least of several runs; KL(true || learned) in
nats. Populations have Dirichlet(1) edge potentials over 10 attributes; N is public and neighbours are add-remove.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.timing import cpu_seconds
from benchmarks.protocol.populations import Population, draw_release, oracle, path, structure_of
from dpgm_core import NoisyTables, SeededRandomness, learn, make

DUAL: Mapping[str, Any] = {"name": "collective-dual"}


def drawn(
    graph: str, size: int, records: int, epsilon: float, seeds: tuple[int, int], attributes: int = 10, **more: str
) -> tuple[Population, NoisyTables]:
    """A population and a release, each by its seed."""
    population = Population.draw(structure_of(graph, size, attributes), seeds[0])
    return population, draw_release(population, records, epsilon, seeds[1], **more)


def steps(population: Population, noisy: NoisyTables, e_step: Mapping[str, Any], *, tau: float, step: float) -> Any:
    """`path` as an array: tau, KL, distance and inference calls of each step."""
    return np.array(list(path(population, noisy, make("collective", e_step), tau=tau, step=step)))


def speed(asked: Namespace) -> None:
    """Full fits, N = 1e5: naive MLE (gradient <= 1e-6) at its oracle and at its default penalty, CGM-EM as it comes."""
    rows = []
    for graph, epsilon in [("chain3", 1.0)] if asked.smoke else product(("chain3", "er"), (0.1, 1.0)):
        population, noisy = drawn(graph, 3 if asked.smoke else 10, 10**5, epsilon, (0, 1))
        l2, _ = oracle(population, noisy)
        learners = [make("learner", "naive-mle", l2=l2), make("learner", "naive-mle"), make("learner", "cgm-em")]
        kls = [population.kl(learn(noisy, one).model.potentials.values) for one in learners]
        runs = range(2 if asked.smoke else 7)
        least = np.min([[cpu_seconds(partial(learn, noisy, one)) for one in learners] for _ in runs], axis=0)
        numbers = [f"{number:.4f}" for pair in zip(least, kls, strict=True) for number in pair]
        ratios = [f"{least[2] / least[0]:.2f}", f"{least[2] / least[1]:.2f}"]
        rows.append([graph, epsilon, f"{l2:.1e}", *numbers, *ratios])
    names = [f"{name}: {what}" for name in ("naive, oracle", "naive", "cgm-em") for what in ("s", "KL")]
    print(markdown(["graph", "eps", "lambda", *names, "em / oracle", "em / naive"], rows))


def calls(asked: Namespace) -> None:
    """Inference calls per E-step after the first, at a gap of 1e-4 max(1, |primal|) and at the default, tau up to 4."""
    rows = []
    cells = [("chain3", 10**5, 1.0)] if asked.smoke else product(("chain3", "er"), (10**4, 10**5, 10**6), (0.1, 0.5, 1))
    for graph, records, epsilon in cells:
        data = drawn(graph, 3 if asked.smoke else 10, records, epsilon, (0, 1))
        counts = [steps(*data, e_step, tau=4.0, step=0.1)[1:, 3] for e_step in (DUAL | {"share": 1e9}, DUAL)]
        figures = [f"{figure(one):.0f}" for one in counts for figure in (np.median, np.max)]
        rows.append([graph, records, epsilon, *figures])
    print(markdown(["graph", "N", "eps", "gap of 1e-4: median", "worst", "default: median", "worst"], rows))


RULES: Mapping[str, Mapping[str, Any]] = {
    "auto": {"name": "cgm-em"},
    "plateau": {"name": "cgm-em", "stop": "plateau"},
    "discrepancy .7": {"name": "cgm-em", "stop": "discrepancy", "discrepancy": 0.7},
    "discrepancy .85": {"name": "cgm-em", "stop": "discrepancy"},
    "discrepancy 1": {"name": "cgm-em", "stop": "discrepancy", "discrepancy": 1.0},
    "fixed tau 1.5": {"name": "cgm-em", "stop": "fixed", "tau": 1.5},
}


def over_best(
    population: Population, noisy: NoisyTables, best: float, learners: Sequence[Mapping[str, Any]], seed: int
) -> list[float]:
    """Of each learner KL over the best on the path."""
    fits = [learn(noisy, make("learner", one), randomness=SeededRandomness(seed)) for one in learners]
    return [population.kl(fit.model.potentials.values) / best for fit in fits]


def summary(names: Sequence[str], ratios: Sequence[Sequence[float]]) -> str:
    """A row for each learner. ratios: (data sets, learners)."""
    columns = zip(names, np.transpose(ratios), strict=True)
    rows = [[name, *(f"{of(found):.2f}" for of in (_geometric, np.median, np.max))] for name, found in columns]
    return f"{len(ratios)} data sets\n\n{markdown(['learner', 'geometric mean', 'median', 'worst'], rows)}"


def _geometric(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


def stopping(asked: Namespace) -> None:
    """KL where each rule stops over the best KL on the path, on cells and seeds that the rules were not tuned on."""
    sizes, records = ((4, 10), (7, 10), (12, 8)), (3 * 10**3, 3 * 10**4, 3 * 10**5)
    cells = [
        cell
        for cell in product(("chain1", "chain2", "er"), sizes, records, (0.2, 0.7), (101, 102))
        if not (cell[0] == "er" and cell[1][1] != 10)
    ]
    ratios = []
    for graph, (size, attributes), count, epsilon, seed in cells[: 1 if asked.smoke else None]:
        data = drawn(graph, size, count, epsilon, (seed, seed), attributes)
        best = steps(*data, DUAL, tau=2.0 if asked.smoke else 8.0, step=0.1)[:, 1].min()
        ratios.append(over_best(*data, best, list(RULES.values()), seed))
    print(summary(list(RULES), ratios))


def e_steps(asked: Namespace) -> None:
    """Best KL on the path and inference calls to get there, by E-step."""
    names, rows = ({"name": "collective-dual"}, {"name": "soft-sign"}, {"name": "nlbp", "iterations": 50}), []
    cells = [("chain3", 10**4, 0.5), ("chain3", 10**5, 0.5), ("er", 10**5, 0.1)]
    for graph, records, epsilon in cells[: 1 if asked.smoke else None]:
        data = drawn(graph, 3 if asked.smoke else 10, records, epsilon, (0, 1))
        row: list[object] = [graph, records, epsilon]
        for e_step in names:
            found = steps(*data, e_step, tau=4.0, step=0.1)
            best = int(found[:, 1].argmin())
            row += [f"{found[best, 1]:.4f}", f"{found[: best + 1, 3].sum():.0f}"]
        rows.append(row)
    print(markdown(["graph", "N", "eps", *(part for one in names for part in (one["name"], "calls"))], rows))


def gaussian(asked: Namespace) -> None:
    """Exact Gaussian noise, delta = 1/N, 5 labels: inference calls of the first E-step and of the others (tau up to 3),
    the default fit's CPU seconds, its KL and that of the plateau rule over the best on the path, and naive MLE's."""
    cells = list(product(("chain3", "er"), (10**4, 10**5, 10**6), (0.1, 0.5, 1)))
    learners = {"auto": RULES["auto"], "plateau": RULES["plateau"], "naive": {"name": "naive-mle"}}
    rows, ratios = [], []
    for graph, records, epsilon in cells[4:5] if asked.smoke else cells:
        for seed in range(1 if asked.smoke else 3):
            data = drawn(graph, 5, records, epsilon, (seed, seed), mechanism="gaussian")
            found = steps(*data, DUAL, tau=3.0, step=0.1)
            best, counts = found[:, 1].min(), found[:, 3]
            before = time.process_time()
            learn(data[1], "cgm-em", randomness=SeededRandomness(seed))
            spent = time.process_time() - before
            ratios.append(over_best(*data, best, list(learners.values()), seed))
            row = [graph, records, epsilon, counts[0], np.median(counts[1:]), counts[1:].max(), f"{spent:.2f}"]
            rows.append([*row, f"{best:.5f}", *(f"{ratio:.2f}" for ratio in ratios[-1])])
    print(markdown(["graph", "N", "eps", "first", "median", "worst", "s", "best KL", *learners], rows))
    print(summary(list(learners), ratios))


PARTS = {"speed": speed, "calls": calls, "stopping": stopping, "e-steps": e_steps}
MEASUREMENT = Measurement(about=__doc__, parts=PARTS | {"gaussian": gaussian})

if __name__ == "__main__":
    main(MEASUREMENT)
