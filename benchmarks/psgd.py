"""DP-SGD beside one Gaussian release at the same (epsilon, delta), with the same optimiser and with `eb-map`.

    python -m benchmarks.psgd [--smoke] [--plot docs/plots/psgd.svg]     (needs extras `accounting` and `plots`)

KL(true || learned) in nats, average over data sets; learning rates are chosen by the truth, for each method and each
epsilon on its own (NOT PRIVATE, as in the paper). N = 20,000 records, delta = 1/N, neighbours add-remove, N declared as
public knowledge. Populations have Dirichlet(1) edge potentials on a third-order chain of 10 attributes with 4 labels.
On the data sets of figure 2 `benchmarks.paper bernstein` compares it with one Gaussian release fitted by `eb-map`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

import dpgm_core.curator.live
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import pyplot, save
from benchmarks.protocol.populations import (
    Population,
    curator,
    descended,
    learners,
    non_private_mle,
    random_estimator,
    structure_of,
)
from dpgm_core import NoisyTables, Structure
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source

RATES = (0.3, 1.0, 3.0)
EPSILONS = (0.1, 0.3, 1.0, 3.0)


@frozen(kw_only=True)
class Repeated:
    """A curator of one release, handed out again in every round: the same optimiser as DP-SGD, one release's cost."""

    release: NoisyTables

    @property
    def structure(self) -> Structure:
        """The release's."""
        return self.release.structure

    def rounds(self, n: int, **_: object) -> object:
        """The same release every time; post-processing, and free."""

        @contextmanager
        def opened() -> Iterator[Repeated]:
            yield self

        return opened()

    def next(self, beliefs: object = None) -> NoisyTables:
        """The release."""
        return self.release


def best(
    population: Population,
    codes: np.ndarray,
    learner: object,
    once: bool,
    epsilon: float,
    seed: int,
    rates: tuple[float, ...],
) -> float:
    """Return the least KL over the learning rates."""
    release = curator(codes, population, epsilon, seed).release() if once else None
    return min(
        descended(
            population,
            evolve(learner, learning_rate=rate),
            Repeated(release=release) if once else curator(codes, population, epsilon, seed),
            seed,
        )
        for rate in rates
    )


def compare(
    named: Mapping[str, object], records: int, seeds: int, epsilons: tuple[float, ...], rates: tuple[float, ...] = RATES
) -> dict[str, list[float]]:
    """Return name -> average KL at each epsilon, of learners by their names and of two references."""
    structure = structure_of("chain3", 4)
    rows: dict[str, list[float]] = {}
    drawn = [(Population.draw(structure, seed), seed) for seed in range(seeds)]
    data = [(population, population.records(records, seed)) for population, seed in drawn]
    for name, learner in named.items():
        once = name.startswith("one release")
        rows[name] = [
            float(np.mean([best(*pair, learner, once, epsilon, seed, rates) for seed, pair in enumerate(data)]))
            for epsilon in epsilons
        ]
        print(f"{name:38}" + "".join(f"{value:10.4f}" for value in rows[name]), flush=True)
    mle = [p.kl(non_private_mle(p.engine, count(as_source(codes), structure).tables, l2=1e-7)) for p, codes in data]
    rows["non-private MLE"] = [float(np.mean(mle))] * len(epsilons)
    random = [p.kl(random_estimator(p.engine, structure, seed)) for seed, (p, _) in enumerate(data)]
    rows["random marginals"] = [float(np.mean(random))] * len(epsilons)
    for name in ("non-private MLE", "random marginals"):
        print(f"{name:38}" + "".join(f"{value:10.4f}" for value in rows[name]))
    return rows


def plot(path: Path, rows: dict[str, list[float]], epsilons: tuple[float, ...]) -> None:
    """KL against epsilon."""
    figure, axes = pyplot().subplots(figsize=(7, 4.5), layout="constrained")
    for number, (name, values) in enumerate(rows.items()):
        style = "-o" if name.startswith("one") else "--s" if name.startswith("DP") else ":"
        axes.plot(epsilons, values, style, label=name, color=f"C{number}", markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="epsilon (delta = 1/N)", ylabel="KL(true || learned), nats")
    axes.legend(fontsize=7)
    save(figure, path.with_suffix(""))


def accuracy(asked: Namespace) -> None:
    """KL(true || learned), nats, at the best learning rate."""
    epsilons = (1.0,) if asked.smoke else EPSILONS
    # the same rounds are opened for each learning rate and data set: calibrate them once
    dpgm_core.curator.live.round_noise = cache(dpgm_core.privacy.rounds.round_noise)
    print(f"{'KL at epsilon =':38}" + "".join(f"{epsilon:>10g}" for epsilon in epsilons))
    if asked.smoke:  # five steps each; calibrating the noise of a sampling rate takes seconds
        few = {name: evolve(one, epochs=5 * one.sampling_rate) for name, one in list(learners().items())[1:4:2]}
        rows = compare(few, 500, 1, epsilons, RATES[:1])
    else:
        rows = compare(learners(), 20_000, 2, epsilons)
    if asked.plot:
        plot(asked.plot, rows, epsilons)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="file for the picture, .svg")


MEASUREMENT = Measurement(about=__doc__, parts={"accuracy": accuracy}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
