"""How far tables of synthetic records are from the model's, drawn independently and rounded, and what drawing takes.

`python -m benchmarks.sampling`: 14 attributes of 2 to 42 labels with random potentials, a tree and four triples; mean
total variation over ten samples, of single attributes, of pairs inside cliques, of triples, and of pairs that no clique
holds; CPU seconds of one sample with its table of labels.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from dpgm_core import Domain, Model, SeededRandomness, Structure, Tables
from dpgm_core.models.merged_codes import SampleMethod
from dpgm_core.structure.graphs import Clique

SIZES = (9, 16, 7, 15, 6, 5, 2, 42, 10, 8, 20, 12, 3, 2)
TRIPLES: list[Clique] = [("x0", "x1", "x2"), ("x1", "x3", "x4"), ("x2", "x5", "x6"), ("x4", "x9", "x10")]


def model(sizes: Sequence[int] = SIZES, seed: int = 0) -> Model:
    """Random log-potentials of standard deviation 1.2 on a balanced tree and four triples."""
    names = [f"x{number}" for number in range(len(sizes))]
    domain = Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    tree = [(names[at], names[(at - 1) // 2]) for at in range(1, len(names))]
    structure = Structure(domain, [*tree, *TRIPLES])
    values = np.random.default_rng(seed).normal(size=structure.cells) * 1.2
    return Model(structure, Tables(structure, values))


def main(counts: Sequence[int] = (1_000, 50_000), samples: int = 10) -> None:
    """Print the table."""
    truth = model()
    names = truth.domain.names
    pairs: list[Clique] = list(itertools.combinations(names, 2))
    kinds: dict[str, list[Clique]] = {
        "single": [(name,) for name in names],
        "pairs inside": [pair for pair in pairs if truth.structure.covering(pair)],
        "triples": TRIPLES,
        "pairs across": [pair for pair in pairs if not truth.structure.covering(pair)],
    }
    exact = truth.marginals_of(list(itertools.chain(*kinds.values())))
    print("rows     method       " + "  ".join(f"{kind:>12}" for kind in kinds) + "   CPU s")
    methods: tuple[SampleMethod, ...] = ("independent", "rounded")
    for count in counts:
        for method in methods:
            found: dict[str, list[float]] = {kind: [] for kind in kinds}
            seconds = 0.0
            for seed in range(samples):
                start = time.process_time()
                table = truth.sample(count, method=method, form="labels", randomness=SeededRandomness(seed))
                seconds += time.process_time() - start
                codes = {name: table[name].to_numpy(zero_copy_only=False).astype(int) for name in names}
                for kind, cliques in kinds.items():
                    for clique in cliques:
                        shape = truth.domain.shape(clique)
                        cells = np.ravel_multi_index([codes[name] for name in clique], shape)
                        share = np.bincount(cells, minlength=exact[clique].size) / count
                        found[kind].append(float(np.abs(share - exact[clique].reshape(-1)).sum()) / 2)
            errors = "  ".join(f"{np.mean(one):12.5f}" for one in found.values())
            print(f"{count:<8} {method:<12} {errors}  {seconds / samples:6.3f}")


if __name__ == "__main__":
    main()
