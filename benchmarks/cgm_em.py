"""CGM-EM beside naive MLE on the protocol of Bernstein et al. (2017): time, accuracy, inference calls, stopping.

    python -m benchmarks.cgm_em [--smoke] [--only speed,calls,merging,stopping,e-steps,gaussian]

CPU seconds of one process on one thread, the two learners alternating, least of several runs; KL(true || learned) in
nats. Populations have Dirichlet(1) edge potentials over 10 attributes; N is public and neighbours are add-remove.
"""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial

import numpy as np
from dpgm_cgm_em.weighting import score_bound

from benchmarks.harness.main import Measurement, main
from benchmarks.harness.timing import cpu_seconds
from benchmarks.protocol.populations import Population, draw_release, oracle, path, structure_of
from dpgm_core import SeededRandomness, learn, make


def speed(asked: Namespace) -> None:
    """Full fits, N = 1e5: naive MLE (gradient <= 1e-6) at its oracle and at its default penalty, CGM-EM as it comes."""
    print(f"{'':23}{'naive, oracle':>18}{'naive, default':>18}{'cgm-em':>18}{'em / oracle, default':>22}")
    print(f"{'graph':8}{'eps':>6}{'lambda':>9}" + f"{'s':>9}{'KL':>9}" * 3)
    rows = [("chain3", 3)] if asked.smoke else [("chain3", 10), ("er", 10)]
    for graph, size in rows:
        population = Population.draw(structure_of(graph, size), 0)
        for epsilon in (1.0,) if asked.smoke else (0.1, 1.0):
            noisy = draw_release(population, 10**5, epsilon, 1)
            l2, _ = oracle(population, noisy)
            learners = [make("learner", "naive-mle", l2=l2), make("learner", "naive-mle"), make("learner", "cgm-em")]
            kls = [population.kl(learn(noisy, one).model.potentials.values) for one in learners]
            runs = range(2 if asked.smoke else 7)
            least = np.min([[cpu_seconds(partial(learn, noisy, one)) for one in learners] for _ in runs], axis=0)
            print(
                f"{graph:8}{epsilon:6}{l2:9.1e}"
                + "".join(f"{cpu:9.3f}{kl:9.4f}" for cpu, kl in zip(least, kls, strict=True))
                + f"{least[2] / least[0]:12.2f}{least[2] / least[1]:9.2f}",
                flush=True,
            )


def calls(asked: Namespace) -> None:
    """Inference calls per E-step after the first, at a gap of 1e-4 max(1, |primal|) and at the default, tau up to 4."""
    print(f"{'graph':8}{'N':>9}{'eps':>6}{'median':>8}{'worst':>7}{'default: median':>17}{'worst':>7}")
    for graph in ("chain3",) if asked.smoke else ("chain3", "er"):
        population = Population.draw(structure_of(graph, 10), 0)
        for total in (10**5,) if asked.smoke else (10**4, 10**5, 10**6):
            for epsilon in (0.1, 0.5, 1.0):
                noisy = draw_release(population, total, epsilon, 1)
                figures = []
                for e_step in (make("collective", "collective-dual", share=1e9), make("collective", "collective-dual")):
                    counts = [row[3] for row in path(population, noisy, e_step, tau=4.0, step=0.1)][1:]
                    figures += [np.median(counts), max(counts)]
                print(
                    f"{graph:8}{total:9}{epsilon:6}{figures[0]:8.0f}{figures[1]:7}{figures[2]:17.0f}{figures[3]:7}",
                    flush=True,
                )


def merging(asked: Namespace) -> None:
    """|KL / KL - 1| of merged against unmerged EM, E-steps solved tightly, by the merged step's share of tau; worst of
    5 draws: for the least KL on the path / for any tau from .4 to 2."""
    steps = (0.05, 0.1, 0.2, 0.5)
    print(f"{'graph':8}{'k':>4}{'N':>9}{'eps':>6}{'unmerged':>10}" + "".join(f"{step:>17}" for step in steps))
    cells = [("chain1", 5, 10**4, 0.1), ("chain3", 5, 10**5, 0.1), ("er", 10, 10**5, 0.1)]
    for graph, size, total, epsilon in cells[: 1 if asked.smoke else None]:
        best, worst = np.zeros(len(steps)), np.zeros(len(steps))
        for seed in range(1 if asked.smoke else 5):
            population = Population.draw(structure_of(graph, size), seed)
            noisy = draw_release(population, total, epsilon, seed)
            e_step = make("collective", "collective-dual", tolerance=1e-7, share=0.002)
            once = score_bound(noisy)
            at, plain = np.array([row[:2] for row in path(population, noisy, e_step, tau=2.0, step=once)]).T
            for place, step in enumerate(steps):
                taus, kls = np.array([row[:2] for row in path(population, noisy, e_step, tau=2.0, step=step)]).T
                apart = np.abs(kls / np.interp(taus, at, plain) - 1)
                worst[place] = max(worst[place], apart[taus > 0.4 - 1e-9].max())
                best[place] = max(best[place], abs(kls.min() / plain.min() - 1))
        print(
            f"{graph:8}{size:4}{total:9}{epsilon:6}{once:10.4f}"
            + "".join(f"{one:8.2%} /{two:7.2%}" for one, two in zip(best, worst, strict=True)),
            flush=True,
        )


def stopping(asked: Namespace) -> None:
    """KL where each rule stops over the best KL on the path, on cells and seeds that the rules were not tuned on."""
    rules = {
        "auto": {},
        "plateau": {"stop": "plateau"},
        "discrepancy .7": {"stop": "discrepancy", "discrepancy": 0.7},
        "discrepancy .85": {"stop": "discrepancy"},
        "discrepancy 1": {"stop": "discrepancy", "discrepancy": 1.0},
        "fixed tau 1.5": {"stop": "fixed", "tau": 1.5},
    }
    ratios: dict[str, list[float]] = {name: [] for name in rules}
    cells = [
        (graph, size, attributes, total, epsilon, seed)
        for graph in ("chain1", "chain2", "er")
        for size, attributes in ((4, 10), (7, 10), (12, 8))
        for total in (3 * 10**3, 3 * 10**4, 3 * 10**5)
        for epsilon in (0.2, 0.7)
        for seed in (101, 102)
        if not (graph == "er" and attributes != 10)
    ]
    cells = cells[:1] if asked.smoke else cells
    for graph, size, attributes, total, epsilon, seed in cells:
        population = Population.draw(structure_of(graph, size, attributes), seed)
        noisy = draw_release(population, total, epsilon, seed)
        e_step = make("collective", "collective-dual")
        best = min(row[1] for row in path(population, noisy, e_step, tau=8.0, step=0.1))
        for name, options in rules.items():
            fit = learn(noisy, make("learner", "cgm-em", **options), randomness=SeededRandomness(seed))
            ratios[name].append(population.kl(fit.model.potentials.values) / best)
    print(f"{len(cells)} data sets\n{'rule':18}{'mean':>8}{'median':>8}{'worst':>8}")
    for name, found in ratios.items():
        print(f"{name:18}{np.exp(np.mean(np.log(found))):8.2f}{np.median(found):8.2f}{max(found):8.2f}")


def e_steps(asked: Namespace) -> None:
    """Best KL on the path and inference calls to get there, by E-step."""
    print(
        f"{'graph':8}{'N':>9}{'eps':>6}" + "".join(f"{name:>16}{'calls':>7}" for name in ("dual", "soft-sign", "nlbp"))
    )
    for graph, total, epsilon in (("chain3", 10**4, 0.5), ("chain3", 10**5, 0.5), ("er", 10**5, 0.1))[
        : 1 if asked.smoke else None
    ]:
        population = Population.draw(structure_of(graph, 10), 0)
        noisy = draw_release(population, total, epsilon, 1)
        line = f"{graph:8}{total:9}{epsilon:6}"
        for spec in ({"name": "collective-dual"}, {"name": "soft-sign"}, {"name": "nlbp", "iterations": 50}):
            rows = list(path(population, noisy, make("collective", spec), tau=4.0, step=0.1))
            best = int(np.argmin([row[1] for row in rows]))
            line += f"{rows[best][1]:16.4f}{sum(row[3] for row in rows[: best + 1]):7}"
        print(line, flush=True)


def gaussian(asked: Namespace) -> None:
    """Exact Gaussian noise, delta = 1/N, 5 labels: inference calls of the first E-step and of the others (tau up to 3),
    the default fit's CPU seconds, its KL and that of the plateau rule over the best on the path, and naive MLE's."""
    print(
        f"{'graph':8}{'N':>9}{'eps':>6}{'first':>7}{'median':>8}{'worst':>7}{'s':>7}{'best KL':>10}{'auto':>7}"
        f"{'plateau':>9}{'naive':>7}"
    )
    cells = [
        (graph, 10**power, epsilon) for graph in ("chain3", "er") for power in (4, 5, 6) for epsilon in (0.1, 0.5, 1)
    ]
    ratios = []
    for graph, total, epsilon in cells[4:5] if asked.smoke else cells:
        for seed in range(1 if asked.smoke else 3):
            population = Population.draw(structure_of(graph, 5), seed)
            noisy = draw_release(population, total, epsilon, seed, "gaussian")
            rows = list(path(population, noisy, make("collective", "collective-dual"), tau=3.0, step=0.1))
            best, counts = min(row[1] for row in rows), [row[3] for row in rows]
            kls, spent = [], []
            for learner in ("cgm-em", {"name": "cgm-em", "stop": "plateau"}, "naive-mle"):
                before = time.process_time()
                fit = learn(noisy, make("learner", learner), randomness=SeededRandomness(seed))
                spent.append(time.process_time() - before)
                kls.append(population.kl(fit.model.potentials.values) / best)
            ratios.append(kls)
            print(
                f"{graph:8}{total:9}{epsilon:6}{counts[0]:7}{np.median(counts[1:]):8.0f}{max(counts[1:]):7}"
                f"{spent[0]:7.2f}{best:10.5f}{kls[0]:7.2f}{kls[1]:9.2f}{kls[2]:7.2f}",
                flush=True,
            )
    for name, found in (("mean", np.exp(np.mean(np.log(ratios), axis=0))), ("worst", np.max(ratios, axis=0))):
        print(f"{name:62}{found[0]:7.2f}{found[1]:9.2f}{found[2]:7.2f}")


MEASUREMENT = Measurement(
    about=__doc__,
    parts={
        "speed": speed,
        "calls": calls,
        "merging": merging,
        "stopping": stopping,
        "e-steps": e_steps,
        "gaussian": gaussian,
    },
)

if __name__ == "__main__":
    main(MEASUREMENT)
