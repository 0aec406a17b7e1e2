"""eb-map, untouched, beside other learners tuned by the truth, on the protocol of Bernstein et al. (2017).

    python -m benchmarks.eb_map [--smoke] [--draws 3] [--only accuracy,wide,large]

KL(true || learned) in nats; CPU seconds of one process on one thread. Populations have Dirichlet(1) edge potentials
over 10 attributes; N is public and neighbours are add-remove. Seeds are fresh: the defaults were chosen on 4000 to
4005, 9000 and 9001.
"""

from __future__ import annotations

import itertools
import resource
import time
from argparse import ArgumentParser, Namespace

import numpy as np

from benchmarks.cases.selected import SIZES, Selected, selected, structure_parameters
from benchmarks.harness.main import Measurement, main
from benchmarks.protocol.populations import Population, draw_release, oracle, path, structure_of
from dpgm_core import Budget, Learner, NoisyTables, SeededRandomness, Terms, learn, make, release

SEED = 9100


def untouched(population: Population, noisy: NoisyTables) -> tuple[float, float]:
    """(KL, CPU seconds) of eb-map at its defaults."""
    before = time.process_time()
    fit = learn(noisy, "eb-map")
    spent = time.process_time() - before
    return population.kl(fit.model.potentials.values), spent


def em_oracle(population: Population, noisy: NoisyTables) -> float:
    """The best KL on the path of CGM-EM, tau up to 6."""
    best, behind = np.inf, 0
    for _, kl, _, _ in path(population, noisy, make("collective", "collective-dual"), tau=6.0, step=0.1):
        best, behind = min(best, kl), 0 if kl < best else behind + 1
        if behind > 8:  # the path's KL falls, then rises
            break
    return best


def accuracy(asked: Namespace) -> None:
    """k = 5: KL of eb-map over the best of naive MLE (oracle lambda) and CGM-EM (best on its path)."""
    print(f"{'graph':8}{'N':>9}{'eps':>6}{'eb-map':>10}{'naive':>10}{'em':>10}{'ratio':>8}{'worst':>8}{'s':>7}")
    everything, times = [], []
    for graph, total, epsilon in itertools.product(("chain3", "er"), (10**4, 10**5, 10**6), (0.1, 0.5, 1.0)):
        rows = []
        for seed in range(SEED, SEED + (1 if asked.smoke else asked.draws)):
            population = Population.draw(structure_of(graph, 3 if asked.smoke else 5), seed)
            noisy = draw_release(population, total, epsilon, seed)
            kl, spent = untouched(population, noisy)
            rows.append((kl, oracle(population, noisy)[1], em_oracle(population, noisy), spent))
        table = np.array(rows)
        ratios = table[:, 0] / table[:, 1:3].min(axis=1)
        everything += ratios.tolist()
        times += table[:, 3].tolist()
        print(
            f"{graph:8}{total:9}{epsilon:6}"
            + "".join(f"{one:10.5f}" for one in np.exp(np.log(table[:, :3]).mean(axis=0)))
            + f"{np.exp(np.log(ratios).mean()):8.3f}{ratios.max():8.3f}{np.median(table[:, 3]):7.2f}",
            flush=True,
        )
        if asked.smoke:
            break
    print(
        f"{len(everything)} data sets: geometric mean {np.exp(np.mean(np.log(everything))):.3f}, worst "
        f"{max(everything):.3f}; CPU seconds median {np.median(times):.2f}, most {max(times):.2f}"
    )


def wide(asked: Namespace) -> None:
    """k = 10, third-order chain, 2,034 parameters: KL over that of naive MLE at its oracle lambda."""
    print(f"{'N':>9}{'eps':>6}{'eb-map':>10}{'naive':>10}{'ratio':>8}{'s':>7}")
    cells = [(10**4, 0.5), (10**5, 0.1), (10**5, 1.0), (10**6, 0.1)]
    ratios = []
    for (total, epsilon), seed in itertools.product(
        cells[: 1 if asked.smoke else None], range(SEED, SEED + (1 if asked.smoke else asked.draws))
    ):
        population = Population.draw(structure_of("chain3", 3 if asked.smoke else 10), seed)
        noisy = draw_release(population, total, epsilon, seed)
        kl, spent = untouched(population, noisy)
        best = oracle(population, noisy)[1]
        ratios.append(kl / best)
        print(f"{total:9}{epsilon:6}{kl:10.5f}{best:10.5f}{ratios[-1]:8.3f}{spent:7.2f}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, worst {max(ratios):.3f}")


def large(asked: Namespace) -> None:
    """Tables as a selection takes them, of a simulated census of 48,842 people, Gaussian noise at (1, 1e-9): mean total
    variation to the records over pairs and triples, CPU seconds, and the process's peak memory so far in MB. Dense fits
    come last, as they take the most."""
    print(f"{'parameters':>10}{'cliques':>8}  {'learner':12}{'pairs':>9}{'triples':>9}{'s':>8}{'peak MB':>9}")
    cases = [(400, 500), (800, 1000), (1300, 1500), (1300, 2000), (1300, 3118), (2500, 20_000)]
    dense = []
    for cells, parameters in cases[: 1 if asked.smoke else None]:
        census = selected(100, parameters, cells, SEED, 4 if asked.smoke else len(SIZES))
        noisy = release(
            census.codes, census.structure, Budget.approx(1, 1e-9), "gaussian",
            terms=Terms(neighbours="add-remove"), randomness=SeededRandomness(SEED),
        )  # fmt: skip
        learners = {
            "diagonal": make("learner", "eb-map", curvature="diagonal"),
            "naive-mle": make("learner", "naive-mle"),
        }
        if parameters <= asked.dense_up_to:
            dense.append((census, noisy))
        for name, learner in learners.items():
            _report(census, noisy, name, learner)
    for census, noisy in dense:  # last, as they take the most memory
        _report(census, noisy, "dense", make("learner", "eb-map", curvature="dense"))


def _report(census: Selected, noisy: NoisyTables, name: str, learner: Learner) -> None:
    before = time.process_time()
    fit = learn(noisy, learner)
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pairs, triples = census.errors(fit.model)
    structure = census.structure
    print(
        f"{structure_parameters(structure):10,}{len(structure.cliques):8}  {name:12}{pairs:9.5f}{triples:9.5f}"
        f"{spent:8.2f}{peak:9.0f}",
        flush=True,
    )


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--draws", type=int, default=3, help="populations per cell")
    parser.add_argument("--dense-up-to", type=int, default=2000, help="of `large`: parameters of the dense fits")


MEASUREMENT = Measurement(
    about=__doc__, parts={"accuracy": accuracy, "wide": wide, "large": large}, arguments=_arguments
)

if __name__ == "__main__":
    main(MEASUREMENT)
