"""eb-map on large tables: its two curvatures beside naive MLE. For smaller ones see `benchmarks.selftuning`.

    python -m benchmarks.eb_map [--smoke] [--dense-up-to 2000]

CPU seconds of one process on one thread. The seed is fresh: the defaults were chosen on 4000 to 4005, 9000 and 9001.
"""

from __future__ import annotations

import resource
import time
from argparse import ArgumentParser, Namespace

from benchmarks.cases.selected import SIZES, Selected, selected, structure_parameters
from benchmarks.harness.main import Measurement, main
from dpgm_core import Budget, Learner, SeededRandomness, Terms, learn, make, release

SEED = 9100


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
    parser.add_argument("--dense-up-to", type=int, default=2000, help="parameters of the dense fits")


MEASUREMENT = Measurement(about=__doc__, parts={"large": large}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
