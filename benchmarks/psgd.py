"""DP-SGD beside one Gaussian release with the same optimiser at the same (epsilon, delta); and what a step costs.

    python -m benchmarks.psgd [--smoke] [--plot docs/plots/psgd.svg]     (needs extras `accounting` and `plots`)

KL(true || learned) in nats, average over data sets; learning rates are chosen by the truth, for each method and each
epsilon on its own (NOT PRIVATE, as in the paper). N = 20,000 records, delta = 1/N, neighbours add-remove, N declared as
public knowledge. Populations have Dirichlet(1) edge potentials on a third-order chain of 10 attributes with 4 labels.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from attrs import evolve, frozen

import dpgm_core.curator
from benchmarks.protocol.populations import Population, structure_of
from benchmarks.protocol.references import non_private_mle, random_estimator
from dpgm_core import Budget, InferenceError, LiveCurator, NoisyTables, SeededRandomness, Structure, make
from dpgm_core.counting import count
from dpgm_core.curator import silent
from dpgm_core.inference.junction_tree import JunctionTree
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


def curator(codes: np.ndarray, population: Population, epsilon: float, seed: int) -> LiveCurator:
    """A curator with (epsilon, 1/N) to spend."""
    return LiveCurator(
        as_source(codes),
        population.structure,
        make("mechanism", "gaussian"),
        neighbours="add-remove",
        budget=Budget.approx(epsilon, 1 / len(codes)),
        total=float(len(codes)),
        randomness=SeededRandomness(seed),
    )


def learners() -> dict[str, object]:
    """What is compared: name -> a function from a learning rate to a learner, and whether it takes one release."""
    psgd = make("learner", "psgd", epochs=10, sampling_rate=0.1, momentum=0.9)
    return {
        "DP-SGD, q = .01, 10 epochs": evolve(psgd, sampling_rate=0.01),
        "DP-SGD, q = .1, 10 epochs": psgd,
        "DP-SGD, q = .1, 10 epochs, clipped": evolve(psgd, mode="clip"),
        "DP-SGD, q = 1, 100 epochs": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 100 steps": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 1000 steps": evolve(psgd, sampling_rate=1.0, epochs=1000),
    }


def best(population: Population, codes: np.ndarray, learner: object, once: bool, epsilon: float, seed: int) -> float:
    """The least KL over the learning rates."""
    scores = []
    release = curator(codes, population, epsilon, seed).release() if once else None
    for rate in RATES:
        source = Repeated(release=release) if once else curator(codes, population, epsilon, seed)
        try:
            fit = evolve(learner, learning_rate=rate).learn(
                source, JunctionTree(), randomness=SeededRandomness(seed), progress=silent
            )
            scores.append(population.kl(fit.model.potentials.values))
        except InferenceError:
            scores.append(np.inf)
    return min(scores)


def compare(records: int, seeds: int, epsilons: tuple[float, ...]) -> dict[str, list[float]]:
    """name -> average KL at each epsilon."""
    structure = structure_of("chain3", 4)
    rows: dict[str, list[float]] = {}
    drawn = [(Population.draw(structure, seed), seed) for seed in range(seeds)]
    data = [(population, population.records(records, seed)) for population, seed in drawn]
    for name, learner in learners().items():
        once = name.startswith("one release")
        rows[name] = [
            float(np.mean([best(*pair, learner, once, epsilon, seed) for seed, pair in enumerate(data)]))
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


def least(call: Callable[[], object], times: int) -> float:
    """Least seconds of several calls."""
    found = np.inf
    for _ in range(times):
        before = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - before)
    return found


def speed(records: int, size: int, rate: float, steps: int) -> None:
    """A step of psgd against the sum of its parts: inference, count of the subsample, noise."""
    population = Population.draw(structure_of("chain3", size), 0)
    codes = population.records(records, 0)
    with curator(codes, population, 1.0, 0).rounds(10**6, sampling_rate=rate) as rounds:
        read, noise = rounds._rows, rounds._noise
        cells = population.structure.cells
        ascent = _ascent(population, rounds, steps)
        one = least(lambda: ascent._step(0), steps)
        parts = {
            "inference": least(lambda: population.engine.infer(population.potentials), steps),
            "count": least(lambda: rounds._sum(read, None), steps),
            "noise": least(lambda: noise.sample((cells,), SeededRandomness(0)), steps),
        }
    text = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in parts.items())
    ratio = one / sum(parts.values())
    print(f"N = {records}, q = {rate:g}, {cells} cells: step {1e3 * one:.2f} ms; {text}; ratio {ratio:.2f}")


def _ascent(population: Population, rounds: object, steps: int) -> object:
    from dpgm_psgd.learner import Psgd, _Ascent

    return _Ascent(Psgd(epochs=steps, sampling_rate=1.0), population.engine, rounds, silent)


def plot(path: str, rows: dict[str, list[float]], epsilons: tuple[float, ...]) -> None:
    """KL against epsilon."""
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "dpgm", "svg.fonttype": "none"}  # the same picture is the same file
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for number, (name, values) in enumerate(rows.items()):
        style = "-o" if name.startswith("one") else "--s" if name.startswith("DP") else ":"
        axes.plot(epsilons, values, style, label=name, color=f"C{number}", markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="epsilon (delta = 1/N)", ylabel="KL(true || learned), nats")
    axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables; --plot draws them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small, a few seconds")
    parser.add_argument("--plot", help="file for the picture")
    arguments = parser.parse_args()
    epsilons = (1.0,) if arguments.smoke else EPSILONS
    # the same rounds are opened for each learning rate and data set: calibrate them once
    dpgm_core.curator.round_noise = cache(dpgm_core.curator.round_noise)
    print(f"{'KL at epsilon =':38}" + "".join(f"{epsilon:>10g}" for epsilon in epsilons))
    rows = compare(2000 if arguments.smoke else 20_000, 1 if arguments.smoke else 2, epsilons)
    for size, rate in ((4, 0.01), (10, 0.01), (10, 0.1)):
        speed(2000 if arguments.smoke else 10**5, size, rate, 5 if arguments.smoke else 50)
    if arguments.plot:
        plot(arguments.plot, rows, epsilons)


if __name__ == "__main__":
    main()
