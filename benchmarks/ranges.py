"""Ranges of an ordered column: what windows gain over cells, in theory, in models, and beside bins by hand.

    python -m benchmarks.ranges [DIR] [--smoke] [--only strategies,models,bins]

strategies: root mean squared error of all ranges of n values where a person moves one record and rho = 1/2. models: of
6,000 records and six columns, over generated distributions that no constant was chosen on, each model with `ranges`
over the same without. bins: five columns of Adult alone, ranges between the edges of bins by hand
(`benchmarks.table`). DIR holds `adult/`, by default in $DPGM_SHARED/data or ../shared/data. The tables are in
`benchmarks/results/ranges.md`.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from benchmarks.cases import coded
from benchmarks.cases.binned import HAND, spread
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import say
from dpgm_core import Array, Budget, Domain, FloatArray, Model, SeededRandomness, Structure, fit
from dpgm_core.privacy.ranges import plan_ranges

SIZES = (8, 16, 32, 64, 128, 256, 1024)
#: HDMM's and ResidualPlanner+'s errors of five columns of n values as one product, from the file
#: experiments/HDMM_baseline/journal/scalability_haar_verification.csv of ResidualPlanner+'s authors, and for
#: ResidualPlanner+ the smaller of that and scalability_kron_comparison_R.csv; the fifth root is that of one column.
PUBLISHED = {8: (7.468809, 10.315854), 16: (16.084087, 38.018532), 32: (33.207984, 152.593), 64: (64.673632, 677.293)}
RECORDS, VALUES, SEED = 6000, 64, 7000
TRUTHS: Mapping[str, Callable[[np.random.Generator], FloatArray]] = {
    "lognormal": lambda rng: rng.lognormal(2.5, 0.6, RECORDS),
    "two hills": lambda rng: rng.normal(18, 6, RECORDS) + np.where(rng.random(RECORDS) < 0.3, 32, 0),
    "rounded to tens": lambda rng: 10 * np.rint(rng.normal(3, 1.2, RECORDS)) + (rng.random(RECORDS) < 0.2),
    "mostly none": lambda rng: np.where(rng.random(RECORDS) < 0.9, 0, rng.uniform(1, 64, RECORDS)),
}


def range_error(apart: FloatArray) -> float:
    """The root mean squared difference of all ranges. apart: of each value, (values,)."""
    edges = np.concatenate([[0.0], np.cumsum(apart)])
    return float(np.sqrt(np.mean([(high - low) ** 2 for low, high in itertools.combinations(edges, 2)])))


def strategies(asked: Namespace) -> None:
    """Cells, windows and published strategies, Gaussian noise at rho = 1/2; blocks for Laplace noise over cells."""
    rows = []
    for size in SIZES[: 3 if asked.smoke else None]:
        place = np.arange(1, size + 1)
        ranges = (
            np.minimum.outer(place, place) * (size + 1.0 - np.maximum.outer(place, place)) / (size * (size + 1) / 2)
        )
        ours, blocks = plan_ranges(size, gaussian=True), plan_ranges(size, gaussian=False)
        assert ours is not None
        cells = np.sqrt(np.trace(ranges))
        windows = np.sqrt(ours.sensitivity("add-remove").l2_squared * np.sum(ours.inverse_gram * ranges))
        laplace = 1.0
        if blocks is not None:
            laplace = blocks.sensitivity("add-remove").l1 * np.sqrt(np.sum(blocks.inverse_gram * ranges)) / cells
        published = [f"{number**0.2:.3f}" for number in PUBLISHED.get(size, ())] or ["", ""]
        rows.append([str(size), *(f"{one:.3f}" for one in (cells, windows, windows / cells)), *published])
        rows[-1].append(f"{laplace:.3f}")
    titles = ["values", "cells", "windows", "over cells", "HDMM", "ResidualPlanner+", "Laplace, over cells"]
    print(markdown(titles, rows))


def models(asked: Namespace) -> None:
    """Errors of models with `ranges` over those without: all ranges of the column, and its pairs with two others."""
    domain = Domain.from_sizes(dict(zip("axbcde", (VALUES, 2, 3, 4, 5, 8), strict=True)))
    named = Structure(domain, [("a",), ("a", "x"), ("a", "e"), ("b", "c"), ("d",)])
    rows = []
    structures: tuple[Structure | str, ...] = (named, "mst", "grow")
    budgets = ("0.005", "0.1")
    for budget, structure in itertools.product(budgets, structures[: 1 if asked.smoke else None]):
        for truth, draw in TRUTHS.items():
            sums = np.zeros((2, 2))
            for seed in range(SEED, SEED + (1 if asked.smoke else 4)):
                table = _table(draw, np.random.default_rng(seed))
                for number, ranges in enumerate(((), ("a",))):
                    workload = None if isinstance(structure, Structure) else domain
                    model = fit(
                        table, structure, Budget.zcdp(budget), "gaussian", "eb-map", neighbours="add-remove",
                        randomness=SeededRandomness(seed), split={"ranges": ranges}, workload=workload,
                    ).model  # fmt: skip
                    sums[number] += _errors(model, table)
            ratios = np.sqrt(sums[1] / sums[0])
            kind = "named" if isinstance(structure, Structure) else structure
            rows.append([budget, kind, truth, *(f"{one:.2f}" for one in ratios)])
    print(markdown(["rho", "structure", "column", "ranges", "pairs"], rows))


def _table(draw: Callable[[np.random.Generator], FloatArray], rng: np.random.Generator) -> Array:
    column = np.clip(draw(rng), 0, VALUES - 1).astype(int)
    others = [
        np.minimum(rng.random(RECORDS) * size * (0.5 + 0.5 * np.abs(np.sin(column / 20 + at))), size - 1).astype(int)
        for at, size in enumerate((2, 3, 4, 5, 8))
    ]
    return np.column_stack([column, *others])


def _errors(model: Model, table: Array) -> FloatArray:
    """Squared errors of ranges, and of the total variation of two pairs."""
    truth = np.bincount(table[:, 0], minlength=VALUES) / len(table)
    pairs = 0.0
    for at, name in ((1, "x"), (5, "e")):
        size = model.domain[name].size
        joint = np.bincount(table[:, 0] * size + table[:, at], minlength=VALUES * size).reshape(VALUES, size)
        pairs += float(np.abs(np.asarray(model.marginal(["a", name])) - joint / len(table)).sum()) / 2
    return np.array([range_error(np.asarray(model.marginal("a")) - truth) ** 2, pairs**2])


def bins(asked: Namespace) -> None:
    """Ranges between edges by hand, shares of records, mean over five columns; bins by hand have just these edges."""
    folder = asked.folder / "adult"
    if not (folder / "adult.csv").exists():
        say(f"there is no {folder / 'adult.csv'}: left out; name a folder with it")
        return
    table = coded.adult(folder)
    places = {name: table.domain.names.index(name) for name in HAND}
    columns = {name: table.codes[:, place] for name, place in places.items()}
    sizes = {name: table.domain[name].size for name in HAND}
    ways: Mapping[str, tuple[Callable[[str], dict[str, object]], bool]] = {
        "by hand": (lambda name: {"bins": list(HAND[name])}, False),
        "16 private": (lambda name: {"min": 0, "max": sizes[name] - 1, "bins": {"private": 16}}, False),
        "32 private": (lambda name: {"min": 0, "max": sizes[name] - 1, "bins": {"private": 32}}, False),
        "32 private, ranges": (lambda name: {"min": 0, "max": sizes[name] - 1, "bins": {"private": 32}}, True),
        "each value": (lambda name: {"min": 0, "max": sizes[name] - 1, "bins": sizes[name]}, False),
        "each value, ranges": (lambda name: {"min": 0, "max": sizes[name] - 1, "bins": sizes[name]}, True),
    }
    rows, base = [], np.ones(len(HAND))
    budgets = {"epsilon = 1, delta = 1e-6": Budget.approx(1, "1e-6"), "rho = .005": Budget.zcdp("0.005")}
    for (told, budget), (way, (described, ranged)) in itertools.product(budgets.items(), ways.items()):
        domain = Domain.from_dict({"attributes": {name: {"type": "integer", **described(name)} for name in HAND}})
        structure = Structure(domain, [(name,) for name in HAND])
        errors, draws = np.zeros(len(HAND)), 1 if asked.smoke else 8
        for seed in range(SEED, SEED + draws):
            model = fit(
                pa.table(columns), structure, budget, "gaussian", "naive-mle", neighbours="add-remove",
                randomness=SeededRandomness(seed), split={"ranges": list(HAND) if ranged else []},
            ).model  # fmt: skip
            errors += [_hand_error(model, name, columns[name], sizes[name]) ** 2 for name in HAND]
        base = errors if way == "by hand" else base
        rows.append([told, way, f"{np.sqrt(errors / draws).mean():.5f}", f"{np.sqrt(errors / base).mean():.2f}"])
    print(markdown(["budget", "way", "error", "over by hand"], rows))


def _hand_error(model: Model, name: str, codes: Array, size: int) -> float:
    starts = HAND[name][:-1]
    truth = np.bincount(codes, minlength=size) / len(codes)
    apart = np.asarray(model.marginal(name)) @ spread(model.domain[name], size) - truth
    places = np.maximum(np.searchsorted(starts, np.arange(size), side="right") - 1, 0)
    return range_error(np.asarray(np.bincount(places, weights=apart), np.float64))


MEASUREMENT = Measurement(
    about=__doc__, data="adult/", parts={"strategies": strategies, "models": models, "bins": bins}
)

if __name__ == "__main__":
    main(MEASUREMENT)
