"""Gaussian against Laplace noise: where each has the smaller variance, what a model gains, and how long noise takes.

    python -m benchmarks.noise [--smoke] [--fits N] [--only variances,continuous,models,speed,sessions]

The tables of docs/noise.md, and of sessions in docs/proofs.md. Errors are exact functions of the example's public rows,
so this is a measurement and not private.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

import dpgm_core as dpgm
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.timing import wall_seconds
from dpgm_core.privacy import bounded_variance, discrete_delta, discrete_gaussian
from dpgm_core.privacy.session_account import exact_rho

HEALTH = Path(__file__).parents[1] / "docs" / "examples" / "health"
DELTAS = ("1e-4", "1e-6", "1e-9")


def units(cliques: int) -> dpgm.Sensitivity:
    """One record is in one cell of each table."""
    return dpgm.Sensitivity(l0=cliques, l1=cliques, l2_squared=cliques, linf=1)


def noise(name: str, cliques: int, budget: dpgm.Budget, **options: bool) -> dpgm.Noise:
    """The noise of a mechanism for so many tables."""
    mechanism: dpgm.Mechanism = dpgm.make("mechanism", name, **options)
    return mechanism.noise(units(cliques), budget)


def crossover(epsilon: str, delta: str) -> int:
    """The least number of tables from which on Gaussian noise has the smaller variance."""
    least = 1
    while (
        noise("gaussian", least, dpgm.Budget.approx(epsilon, delta)).variance
        >= noise("laplace", least, dpgm.Budget.pure(epsilon)).variance
    ):
        least += 1
    return least


def variances(asked: Namespace) -> None:
    """Noise standard deviation per cell, and the crossover."""
    print("| tables | Laplace, epsilon = 1 | " + " | ".join(f"Gaussian, (1, {delta})" for delta in DELTAS) + " |")
    for cliques in (1, 5, 9, 21, 100, 1000):
        row = [noise("laplace", cliques, dpgm.Budget.pure(1))]
        row += [noise("gaussian", cliques, dpgm.Budget.approx(1, delta)) for delta in DELTAS]
        print(f"| {cliques} | " + " | ".join(f"{math.sqrt(one.variance):.2f}" for one in row) + " |")
    print("\n| epsilon | " + " | ".join(f"delta = {delta}" for delta in DELTAS) + " |")
    for epsilon in ("4",) if asked.smoke else ("0.1", "0.5", "1", "2", "4"):
        print(f"| {epsilon} | " + " | ".join(str(crossover(epsilon, delta)) for delta in DELTAS) + " |")


def continuous(asked: Namespace) -> None:
    """How much the textbook calibration misses: true delta / stated delta at the variance it gives."""
    print("| epsilon | tables | textbook sigma | true delta / 1e-6 | exact sigma |")
    for epsilon, cliques in (("1", 1), ("1", 24), ("4", 1), ("8", 1), ("8", 24), ("12", 1)):
        budget = dpgm.Budget.approx(epsilon, "1e-6")
        textbook = noise("gaussian", cliques, budget, exact=False, allow_unsafe=True).sigma_squared  # type: ignore[attr-defined]
        exact = noise("gaussian", cliques, budget).sigma_squared  # type: ignore[attr-defined]
        ratio = discrete_delta(textbook, units(cliques), budget.epsilon) / 1e-6
        print(f"| {epsilon} | {cliques} | {math.sqrt(textbook):.4f} | {ratio:.3f} | {math.sqrt(exact):.4f} |")


def models(asked: Namespace) -> None:
    """Mean total variation between the pairs of a model of the health example and those of its rows."""
    domain = dpgm.Domain.load(HEALTH / "domain.toml")
    pairs = dpgm.Structure.complete(domain)
    five = [("visits", "coinsurance"), ("visits", "health"), ("health", "limitation")]
    five += [("diseases", "limitation"), ("coinsurance", "incentive")]
    print("| structure | " + " | ".join(("Laplace, epsilon = 1", "Gaussian, (1, 1e-6)", "Gaussian, split")) + " |")
    structures = {"5 pairs": dpgm.Structure(domain, five)} | ({} if asked.smoke else {"all 21 pairs": pairs})
    for name, structure in structures.items():
        true = dpgm.release(HEALTH / "health.csv", structure, dpgm.Budget.pure(10**6), neighbours="add-remove").tables
        cliques = len(structure.cliques)
        width = noise("gaussian", cliques, dpgm.Budget.approx(1, "1e-6")).sigma_squared  # type: ignore[attr-defined]
        settings = (
            ("laplace", dpgm.Budget.pure(1), "even"),
            ("gaussian", dpgm.Budget.approx(1, "1e-6"), "even"),
            ("gaussian", dpgm.Budget.zcdp(cliques / (2 * width)), "optimal"),  # the same rho
        )
        row = []
        for mechanism, budget, split in settings:
            errors = []
            for seed in range(1 if asked.smoke else asked.fits):
                fit = dpgm.fit(
                    HEALTH / "health.csv", structure, budget, mechanism,
                    neighbours="add-remove", randomness=dpgm.SeededRandomness(seed), split=split,
                )  # fmt: skip
                for clique, table in zip(structure.cliques, true.arrays(), strict=True):
                    errors.append(np.abs(fit.model.marginal(clique) - table / table.sum()).sum() / 2)
            row.append(float(np.mean(errors)))
        print(f"| {name} | " + " | ".join(f"{one:.4f}" for one in row) + " |")


def speed(asked: Namespace) -> None:
    """Seconds per million cells on bits from the operating system, and per calibration."""
    count = 10**4 if asked.smoke else 10**6
    system = dpgm.SystemRandomness()
    print(f"| {count:,} cells | seconds |")
    for sigma in (0.5, 4.23, 19.36, 1e3, 1e6):
        width = bounded_variance(dpgm.Budget.zcdp(sigma**2).rho)
        seconds = wall_seconds(partial(discrete_gaussian, width, count, system), 3)
        print(f"| Gaussian, sigma = {sigma:g} | {seconds:.2f} |")
    laplace = noise("laplace", 21, dpgm.Budget.pure(1))
    print(f"| Laplace, scale = 21 | {wall_seconds(lambda: laplace.draw((count,), system), 3):.2f} |")
    try:
        import opendp.prelude as dp
    except ImportError:
        pass
    else:
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
        measure, zeros = dp.m.make_gaussian(*space, scale=19.36), [0] * count
        print(f"| OpenDP's Gaussian, sigma = 19.36 | {wall_seconds(lambda: measure(zeros)):.2f} |")
    print("\n| calibration | ms |")
    for cliques, epsilon in ((24, "1"), (1000, "0.01"), (1, "8")):
        budget = dpgm.Budget.approx(epsilon, "1e-6")
        milliseconds = 1000 * wall_seconds(partial(noise, "gaussian", cliques, budget), 3)
        print(f"| {cliques} tables, {budget} | {milliseconds:.0f} |")


def sessions(asked: Namespace) -> None:
    """What a session's exact account leaves for tables, in parts of zCDP's rho; choices as sharp as under zCDP.

    The shares are those of `mst` on ten attributes, and of `aim` in eight rounds. Closed formulas, no data.
    """
    shares = (("no choices", Fraction(0), 0), ("9 choices, 1/3", Fraction(1, 3), 9), ("8, .075", Fraction(3, 40), 8))
    print("| (epsilon, delta) | " + " | ".join(f"{name}: zCDP | exact" for name, _, _ in shares) + " |")
    for epsilon, delta in (
        ("0.1", "1e-9"),
        ("1", "1e-9"),
        ("10", "1e-9"),
        ("0.1", "1e-5"),
        ("1", "1e-5"),
        ("10", "1e-5"),
    ):
        whole = dpgm.Budget.approx(epsilon, delta)
        rho = whole.zcdp_within().rho
        row = []
        for _, share, count in shares:
            exact = exact_rho(whole, ((count, share * rho / count),) if count else (), ())
            assert isinstance(exact, Fraction)
            row += [f"{float(1 - share):.3f}", f"{float(exact / rho - share):.3f}"]
        print(f"| ({epsilon}, {delta}) | " + " | ".join(row) + " |")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--fits", type=int, default=10, help="fits of each model")


MEASUREMENT = Measurement(
    about=__doc__,
    parts={"variances": variances, "continuous": continuous, "models": models, "speed": speed, "sessions": sessions},
    arguments=_arguments,
)

if __name__ == "__main__":
    main(MEASUREMENT)
