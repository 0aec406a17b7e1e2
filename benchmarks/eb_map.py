"""eb-map on large tables: its two curvatures beside naive MLE. For smaller ones see `benchmarks.selftuning`.

    python -m benchmarks.eb_map [--smoke] [--dense-up-to 2000]

CPU seconds of one process on one thread. The seed is fresh: the defaults were chosen on 4000 to 4005, 9000 and 9001.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from benchmarks.cases.coded import off
from benchmarks.cases.selected import SIZES, selected, structure_parameters
from benchmarks.harness.alone import peak_megabytes
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from dpgm_core import Budget, SeededRandomness, Terms, learn, release

SEED = 9100


LEARNERS = {
    "diagonal": {"name": "eb-map", "curvature": "diagonal"},
    "naive-mle": {"name": "naive-mle"},
    "dense": {"name": "eb-map", "curvature": "dense"},
}


def large(asked: Namespace) -> None:
    """Tables as a selection takes them, of a simulated census of 48,842 people, Gaussian noise at (1, 1e-9): mean total
    variation to the records over pairs and triples, CPU seconds, and the process's peak memory so far in MB. Dense fits
    come last, as they take the most."""
    cases = [(400, 500), (800, 1000), (1300, 1500), (1300, 2000), (1300, 3118), (2500, 20_000)]
    runs = []
    for cells, parameters in cases[: 1 if asked.smoke else None]:
        census = selected(100, parameters, cells, SEED, 5 if asked.smoke else len(SIZES))
        noisy = release(
            census.table.codes, census.structure, Budget.approx(1, 1e-9), "gaussian",
            terms=Terms(neighbours="add-remove"), randomness=SeededRandomness(SEED),
        )  # fmt: skip
        runs += [(name, census, noisy) for name in LEARNERS if name != "dense" or parameters <= asked.dense_up_to]
    rows = []
    for name, census, noisy in sorted(runs, key=lambda run: run[0] == "dense"):
        before = time.process_time()
        model = learn(noisy, LEARNERS[name]).model
        spent, peak, errors = time.process_time() - before, peak_megabytes(), off(census.table, model.marginals_of)
        row = [f"{structure_parameters(census.structure):,}", len(census.structure.cliques), name]
        rows.append([*row, f"{errors['error2']:.5f}", f"{errors['error3'] / 2:.5f}", f"{spent:.2f}", f"{peak:.0f}"])
    print(markdown(["parameters", "cliques", "learner", "pairs", "triples", "s", "peak MB"], rows))


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dense-up-to", type=int, default=2000, help="parameters of the dense fits")


MEASUREMENT = Measurement(about=__doc__, parts={"large": large}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
