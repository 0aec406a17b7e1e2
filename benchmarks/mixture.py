"""How near latent classes fitted to all pairs come to the records' own tables, and what that takes.

    python -m benchmarks.mixture [DIR] [--smoke] [--only dense,wide,adult]

Selector `all-pairs`, learner `mixture`, (epsilon, 1e-9) as zCDP, add-remove. Errors are mean total variation over all
pairs: of answers, of answers corrected by the pair's own table, and of as many sampled records as there are. CPU
seconds are of the whole run with all answers; the peak is the process's so far. DIR holds adult/.
"""

from __future__ import annotations

import itertools
import time
from argparse import Namespace
from collections.abc import Mapping
from resource import RUSAGE_SELF, getrusage

import numpy as np
from dpgm_mixture.correction import correct_pair

from benchmarks.cases.coded import Coded, adult
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from dpgm_core import Array, Budget, Clique, Domain, FloatArray, Model, SeededRandomness, Workload, fit
from dpgm_core.models.merged_codes import SampleMethod

_HEAD = ["epsilon", "seeds", "answers", "corrected", "independent sample", "rounded sample", "CPU s", "peak MB"]


def one_factor(attributes: int, records: int, labels: int = 10, correlation: float = 0.5, seed: int = 5) -> Coded:
    """Normal columns of one common factor, cut into labels of equal counts."""
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal((records, 1)), rng.standard_normal((records, attributes))
    columns = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    codes = (np.argsort(np.argsort(columns, 0), 0) * labels // records).astype(np.uint8)
    return Coded(domain=Domain.from_sizes({f"x{at}": labels for at in range(attributes)}), codes=codes)


def tables_of(domain: Domain, columns: Mapping[str, Array], pairs: list[Clique]) -> dict[Clique, FloatArray]:
    """Return the shares of records in each pair's cells."""
    found = {}
    for one, two in pairs:
        shape = domain.shape((one, two))
        cells = np.ravel_multi_index((columns[one], columns[two]), shape)
        found[one, two] = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) / len(cells)
    return found


def drawn(model: Model, count: int, method: SampleMethod) -> dict[str, Array]:
    """Return columns of codes of a sample."""
    table = model.sample(count, method=method, form="labels", randomness=SeededRandomness(99))
    return {name: table[name].to_numpy(zero_copy_only=False).astype(np.int64) for name in table.column_names}


def distance(found: Mapping[Clique, FloatArray], true: Mapping[Clique, FloatArray]) -> float:
    """Return the mean total variation."""
    return float(np.mean([np.abs(found[pair] - true[pair]).sum() / 2 for pair in true]))


def row(case: Coded, epsilon: str, seeds: int) -> list[str]:
    """Return one row of the table, means over the seeds."""
    domain, count = case.domain, len(case.codes)
    pairs: list[Clique] = list(itertools.combinations(domain.names, 2))
    true = tables_of(domain, dict(zip(domain.names, case.codes.T.astype(np.int64), strict=True)), pairs)
    errors, seconds = np.zeros(4), 0.0
    for seed in range(seeds):
        began = time.process_time()
        model = fit(
            case.codes,
            "all-pairs",
            Budget.approx(epsilon, "1e-9").zcdp_within(),
            learner="mixture",
            workload=Workload.all(domain, 2),
            neighbours="add-remove",
            randomness=SeededRandomness(seed),
        ).model
        answers = model.marginals_of(pairs)
        seconds += time.process_time() - began
        found = [answers, {pair: correct_pair(model, *pair) for pair in pairs}]
        methods: tuple[SampleMethod, ...] = ("independent", "rounded")
        found += [tables_of(domain, drawn(model, count, method), pairs) for method in methods]
        errors += [distance(one, true) / seeds for one in found]
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return [epsilon, str(seeds), *(f"{error:.4f}" for error in errors), f"{seconds / seeds:.1f}", f"{peak:.0f}"]


def dense(asked: Namespace) -> None:
    """30 columns of 10 labels and one factor, correlation .5; 50,000 records."""
    case = one_factor(4, 500, labels=3) if asked.smoke else one_factor(30, 50_000)
    rows = [row(case, epsilon, 1 if asked.smoke else 3) for epsilon in (("1",) if asked.smoke else ("0.1", "1", "10"))]
    print(markdown(_HEAD, rows))


def adult_table(asked: Namespace) -> None:
    """The Adult table."""
    if asked.smoke:
        print("left out, as it needs data")
        return
    case = adult(asked.folder / "adult")
    print(markdown(_HEAD, [row(case, epsilon, 3) for epsilon in ("0.1", "1", "10")]))


def wide(asked: Namespace) -> None:
    """100 columns of 10 labels and one factor, correlation .5; 100,000 records, 4,950 pairs."""
    case = one_factor(6, 500, labels=3) if asked.smoke else one_factor(100, 100_000)
    print(markdown(_HEAD, [row(case, "1", 1)]))


MEASUREMENT = Measurement(about=__doc__, data="adult/", parts={"dense": dense, "adult": adult_table, "wide": wide})

if __name__ == "__main__":
    main(MEASUREMENT)
