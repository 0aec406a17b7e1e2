"""How far means are off where bins are many times wider than a neighbour: spread evenly, and fitted.

`python -m benchmarks.wide_bins [--smoke]`: 10,000 draws of each distribution, cut to 0 .. 366 and counted in bins with
Laplace noise of scale 1; the mean over 30 releases of the absolute error of the mean, in standard deviations of the
distribution. The rule (which bins, which shape) was chosen on the first group, beside generalised Pareto tails fitted
to three bins and power laws fitted to two; the second group was looked at afterwards, and in the last one most values
of the widest bin do not decrease from its neighbour. The table is in `benchmarks/results/wide_bins.md`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from dpgm_core import Attribute, FloatArray
from dpgm_core.models.numeric import mean_of
from dpgm_core.models.within_bins import BinDistribution, bin_distribution, fit_wide_bins

LAYOUTS = ((0, 1, 2, 3, 5, 9, 366), (0, 1, 3, 10, 40, 366))
RECORDS, RELEASES, END = 10_000, 30, 366.0
STEPS = 2**20  # in which a distribution of numbers is integrated

Cdf = Callable[[FloatArray], Any]


def _near(part: float, far: Any) -> Cdf:
    """An exponential distribution of mean 3 for this part, and another one for the rest."""
    return lambda x: part * stats.expon(scale=3).cdf(x) + (1 - part) * far.cdf(x)


#: Group -> name -> the distribution function, and whether values are whole.
GROUPS: Mapping[str, Mapping[str, tuple[Cdf, bool]]] = {
    "chosen on": {
        "geometric, mean 3": (stats.geom(0.25, loc=-1).cdf, True),
        "negative binomial .5, mean 3": (stats.nbinom(0.5, 1 / 7).cdf, True),
        "negative binomial 3, mean 4": (stats.nbinom(3, 3 / 7).cdf, True),
        "exponential, mean 4": (stats.expon(scale=4).cdf, False),
        "Lomax 1.5": (stats.lomax(1.5, scale=2).cdf, False),
        "Lomax 3": (stats.lomax(3, scale=8).cdf, False),
        "lognormal 1": (stats.lognorm(1, scale=3).cdf, False),
        "lognormal 1.5": (stats.lognorm(1.5, scale=1.5).cdf, False),
        "uniform": (stats.uniform(0, END).cdf, False),
    },
    "not chosen on": {
        "logarithmic series .8": (stats.logser(0.8, loc=-1).cdf, True),
        "Zipf 2.2": (stats.zipf(2.2, loc=-1).cdf, True),
        "negative binomial .3, mean 2.7": (stats.nbinom(0.3, 0.1).cdf, True),
        "beta-binomial 1, 60": (stats.betabinom(366, 1, 60).cdf, True),
        "beta-binomial .5, 3": (stats.betabinom(366, 0.5, 3).cdf, True),
        "Poisson, mean 4": (stats.poisson(4).cdf, True),
        "Weibull .6": (stats.weibull_min(0.6, scale=4).cdf, False),
        "gamma 2, mean 6": (stats.gamma(2, scale=3).cdf, False),
        "half-normal": (stats.halfnorm(scale=6).cdf, False),
        "Burr 2, 1": (stats.burr12(2, 1, scale=4).cdf, False),
        "log-logistic 3": (stats.fisk(3, scale=5).cdf, False),
        "triangular, falling to 366": (stats.triang(0, 0, END).cdf, False),
    },
    "not as assumed": {
        "95 % exponential, 5 % uniform 9 to 366": (_near(0.95, stats.uniform(9, 357)), False),
        "90 % exponential, 10 % normal 180": (_near(0.9, stats.norm(180, 20)), False),
    },
}


def errors(
    edges: tuple[int, ...], cdf: Cdf, whole: bool, releases: int, seed: int, steps: int = STEPS
) -> tuple[float, float, float]:
    """The mean of a distribution, and the errors of even and of fitted bins in its standard deviations."""
    one = Attribute.from_dict("x", {"type": "integer" if whole else "number", "bins": list(edges)})
    ends = np.arange(-1.0, END + 1) if whole else np.linspace(0, END, steps + 1)
    numbers = ends[1:] if whole else (ends[1:] + ends[:-1]) / 2
    masses = np.diff(cdf(ends))
    masses /= masses.sum()
    mean = float(numbers @ masses)
    deviation = float(np.sqrt((numbers - mean) ** 2 @ masses))
    codes = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    table = np.bincount(codes, weights=masses, minlength=one.size)
    generator = np.random.default_rng(seed)
    off = np.zeros(2)
    for _ in range(releases):
        counts = generator.multinomial(RECORDS, table / table.sum()) + generator.laplace(size=one.size)
        noisy = np.maximum(counts * (np.arange(one.size) < len(edges) - 1), 0.0)
        noisy /= noisy.sum()
        laws: tuple[BinDistribution | None, BinDistribution | None] = bin_distribution(one), fit_wide_bins(one, noisy)
        off += [0.0 if law is None else abs(mean_of(law, noisy) - mean) for law in laws]
    return mean, off[0] / releases / deviation, off[1] / releases / deviation


def means(asked: Namespace) -> None:
    """Errors of means, in standard deviations of the distribution; --smoke: of two releases, coarse steps."""
    releases, steps = (2, 2**12) if asked.smoke else (RELEASES, STEPS)
    for edges in LAYOUTS:
        print(f"Edges {', '.join(map(str, edges))}:\n")
        rows = [
            [group, name, f"{mean:.3f}", f"{even:.3f}", f"{bent:.3f}"]
            for group, distributions in GROUPS.items()
            for name, (cdf, whole) in distributions.items()
            for mean, even, bent in [errors(edges, cdf, whole, releases, 3, steps)]
        ]
        print(markdown(["group", "distribution", "mean", "error, even", "error, fitted"], rows))


MEASUREMENT = Measurement(about=__doc__, parts={"means": means})

if __name__ == "__main__":
    main(MEASUREMENT)
