"""Sums of gradients: CPU seconds beside the two matrix products in them that nobody can avoid, and peak memory.

    python -m benchmarks.gradients [--smoke] [--rows N] [--only logistic,unclipped,labels,triples,memory]

Whole-numbered sums over random records at random weights. The products are float32, of the same sizes, over parts of
65,536 records of float32 that are there already. Figures are minima over three runs of one process, alternating.
"""

from __future__ import annotations

import tracemalloc
from argparse import ArgumentParser, Namespace
from fractions import Fraction

import numpy as np

from benchmarks.harness.main import Measurement, main
from benchmarks.harness.timing import cpu_seconds, wall_seconds
from dpgm_core._util.arrays import Codes
from dpgm_core.counting.descent import GradientSums
from dpgm_core.domain.domain import Domain
from dpgm_core.privacy.descent import Loss, NodeGradients, Regressions
from dpgm_core.structure.structure import Structure

PART, RUNS, CLIP = 2**16, 3, Fraction(3, 10)


def gradients(loss: Loss, attributes: int, labels: int, order: int = 2, clip: Fraction | None = CLIP) -> NodeGradients:
    """All cliques of that order, radius 2.4, of which each choice has a few weights."""
    domain = Domain.from_sizes({f"x{number}": labels for number in range(attributes)})
    own = Regressions(candidates=Structure.complete(domain, order), loss=loss)
    rng, weights, radius = np.random.default_rng(0), own.zeros(), Fraction(12, 5)
    for rows in own.choices:
        places = [(row, column) for row in rows for column in np.flatnonzero(own.allowed[row])]
        for number in rng.integers(0, len(places), 6):
            weights[places[number]] += int(64 * radius) // 6 * rng.choice([-1, 1])
    return NodeGradients(regressions=own, weights=weights, radius=radius, clip=clip)


def records(given: NodeGradients, rows: int) -> Codes:
    """As many, of independent uniform codes."""
    rng, sizes = np.random.default_rng(1), given.regressions.candidates.domain.sizes
    return [rng.integers(0, sizes[name], rows, dtype=np.uint8) for name in given.regressions.nodes]


def compare(given: NodeGradients, rows: int, what: str) -> None:
    """Print the seconds of both, and their ratio on the CPU and on the wall."""
    sums, codes = GradientSums(given, "zcdp"), records(given, rows)
    plain = given.weights.astype(np.float32)
    inputs = np.ones((plain.shape[1], min(rows, PART)), dtype=np.float32)

    def products() -> None:
        for start in range(0, rows, PART):
            some = inputs[:, : rows - start]
            (plain @ some) @ some.T

    sums.partial([column[:PART] for column in codes], None)  # warm
    both = [
        [clock(call) for clock in (cpu_seconds, wall_seconds) for call in (lambda: sums.partial(codes, None), products)]
        for _ in range(RUNS)
    ]
    round_cpu, products_cpu, round_wall, products_wall = np.min(both, axis=0)
    print(
        f"{what:28} {rows:9,} records  round {round_cpu:7.2f}  products {products_cpu:7.2f}  "
        f"ratio {round_cpu / products_cpu:5.2f} (wall {round_wall / products_wall:.2f})",
        flush=True,
    )


def logistic(asked: Namespace) -> None:
    """All pairs of binary attributes, clipped (target at 256: 2.5)."""
    for attributes in (16,) if asked.smoke else (16, 64, 256):
        compare(gradients("logistic", attributes, 2), rows(asked, attributes), f"{attributes} attributes")


def unclipped(asked: Namespace) -> None:
    """The same without a clip."""
    attributes = widest(asked)
    compare(gradients("logistic", attributes, 2, clip=None), rows(asked, attributes), f"{attributes} attributes")


def labels(asked: Namespace) -> None:
    """Attributes of 4 labels, by softmax and two labels at a time."""
    for loss in ("softmax", "pairs"):
        attributes = min(64, widest(asked))
        compare(gradients(loss, attributes, 4), rows(asked, 384), f"{attributes} attributes, {loss}")


def triples(asked: Namespace) -> None:
    """Products of two attributes as features."""
    compare(gradients("logistic", 16, 2, order=3), rows(asked, 64), "16 attributes, triples")


def memory(asked: Namespace) -> None:
    """What summing takes beside the records, which are bytes: the peak of what is allocated meanwhile."""
    attributes = widest(asked)
    given = gradients("logistic", attributes, 2)
    sums, codes = GradientSums(given, "zcdp"), records(given, rows(asked, attributes))
    tracemalloc.start()
    sums.partial(codes, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    plain = attributes * len(codes[0]) / 2**20
    print(f"{attributes} attributes, {len(codes[0]):,} records: {peak / 2**20:.1f} MB beside {plain:.0f} MB")


def widest(asked: Namespace) -> int:
    """Attributes of the largest sum."""
    return 16 if asked.smoke else 256


def rows(asked: Namespace, wide: int) -> int:
    """Records: as many as were asked for at 256 attributes, and the more the fewer attributes there are."""
    return int(min(2_000 if asked.smoke else asked.rows * 256 // wide, 4 * asked.rows))


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000, help="records at 256 attributes")


PARTS = {"logistic": logistic, "unclipped": unclipped, "labels": labels, "triples": triples, "memory": memory}
MEASUREMENT = Measurement(about=__doc__, parts=PARTS, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
