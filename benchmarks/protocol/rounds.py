"""How long a round of gradients takes, beside the two matrix products that it is made of; and Gibbs sampling."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np

from benchmarks.cases.markov import ising
from benchmarks.harness.timing import cpu_seconds
from dpgm_core import Budget, SeededRandomness, Structure, Tables, Terms, Workload, make
from dpgm_core.curator.live import LiveCurator
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.sources import as_source

__all__ = ["SWEEPERS", "seconds_of_a_round", "seconds_of_gibbs"]

RECORDS, TURNS, CLIP = 2**16, 15, Fraction(3, 10)
#: Method -> whether numba may be found.
SWEEPERS = {"gibbs with numba": True, "gibbs without": False}
DRAWN = 200_000


def seconds_of_a_round(attributes: int) -> dict[str, float]:
    """A whole step of a session on 65,536 records, clipped, with its choice; and float32 products of the same sizes.

    CPU seconds, the least of fifteen turns; weights are those of a start, a third of the radius on one partner each.
    """
    rng = np.random.default_rng(330_000)
    truth = ising("matching", attributes, rng)
    codes = truth.records(RECORDS, rng)
    regressions = Regressions(candidates=Structure.complete(truth.domain, 2), loss="logistic")
    radius = Fraction(str(round(2 * truth.width, 6)))
    weights = regressions.zeros()
    for row in range(attributes):
        weights[row, (row + 1) % attributes] = int(64 * radius) // 3
    gradients = NodeGradients(regressions=regressions, weights=weights, radius=radius, clip=CLIP)
    curator = LiveCurator(
        as_source(codes),
        Structure(truth.domain, [(name,) for name in truth.domain.names]),
        make("mechanism", "gaussian"),
        terms=Terms(neighbours="add-remove"),
        budget=Budget.zcdp(2),
        randomness=SeededRandomness(1),
    )
    inputs = np.vstack([1 - 2 * codes.T.astype(np.float32), np.ones((1, RECORDS), dtype=np.float32)])
    plain = weights.astype(np.float32)

    def products() -> None:
        linear = plain @ inputs
        linear @ inputs.T

    with curator.session(workload=Workload.all(truth.domain, order=2)) as session:
        session.descend(gradients, Budget.zcdp("0.1"))  # the first one reads and checks
        turns = [
            (cpu_seconds(lambda: session.descend(gradients, Budget.zcdp("0.1"))), cpu_seconds(products))
            for _ in range(TURNS)
        ]
    spent, plainly = map(min, zip(*turns, strict=True))
    return {"round": spent, "products": plainly}


def seconds_of_gibbs(method: str, attributes: int) -> dict[str, float]:
    """CPU seconds of marginals and of 200,000 records by `gibbs`, a 3-regular graph; in a process of its own.

    compiled: what the first call takes besides, where loops are compiled.
    """
    if not SWEEPERS[method]:
        sys.modules["numba"] = None  # type: ignore[assignment]
    truth = ising("3-regular", attributes, np.random.default_rng(330_001))
    structure, signs = truth.structure, np.outer([1, -1], [1, -1])
    ordered = sorted(truth.edges)
    potentials = Tables(structure, np.concatenate([(truth.couplings[edge] * signs).ravel() for edge in ordered]))
    engine = make("inference", "gibbs").compile(structure)
    marginals = cpu_seconds(lambda: engine.infer(potentials), runs=3)
    first, records = (
        cpu_seconds(lambda: engine.sample(potentials, DRAWN, np.random.default_rng(1)), runs) for runs in (1, 3)
    )
    return {"compiled": first - records, "marginals": marginals, "records": records}
