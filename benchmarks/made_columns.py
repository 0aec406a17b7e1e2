"""Bins and labels that are found for made-up columns, over those that a person would write.

    python -m benchmarks.made_columns [SEEDS]

A quick simulation by which the rules of `dpgm_core.domain.tables_of_shapes` are chosen, so that the tables of
`benchmarks.any_type` need not be looked at. Each column is drawn from a known distribution and has a domain written by
hand. The search is `draw_columns` as a run makes it, with K columns. Then each column's table has Gaussian noise of the
size that all one-way tables together allow, and is projected onto non-negative tables of the same sum. Error: total
variation distance in the domain that was written, of the values that the bins stand for. Printed: the mean over columns
with the domain that is found over the same with the one that was written, by number of records,
epsilon and K.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core import Attribute, Budget, FloatArray, SeededRandomness
from dpgm_core.domain.shapes import CELLS, PARTS, SHAPES, cell_of, part_of, shape_of
from dpgm_core.models.within_bins import decoder
from dpgm_core.privacy.columns import ColumnsPlan
from dpgm_core.releases.labels import draw_columns
from dpgm_core.sources.encoding import encoder

#: Values that stand for one code.
_PLACES = 64
Draw = Callable[[np.random.Generator, int], Any]


def _whole(values: Any) -> list[str]:
    return [str(int(value)) for value in values]


def _days(start: date) -> Callable[[Any], list[str]]:
    return lambda days: [str(start + timedelta(days=int(day))) for day in days]


def _mixed(rng: np.random.Generator, n: int, share: float, one: Any, other: Any) -> Any:
    return np.where(rng.random(n) < share, one, other)


_CODES = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.07, 0.04, 0.03, 0.01])
_INDEX = np.array([0.0, 1.25, 3.4, 6.9, 7.75, 10.3, 13.8, 20.7])
_ZIPF = 1 / np.arange(1, 41) ** 1.2

#: name -> how n texts are drawn, and the table of the domain that a person would write.
COLUMNS: Mapping[str, tuple[Draw, dict[str, Any]]] = {
    "years": (
        lambda r, n: _whole(np.clip(_mixed(r, n, 0.7, r.normal(38, 14, n), r.normal(68, 10, n)), 0, 99)),
        {"type": "integer", "min": 0, "max": 99},
    ),
    "pay": (
        lambda r, n: _whole(np.clip(r.lognormal(10.3, 0.7, n), 500, 9e5) / 100) ,
        {"type": "integer", "bins": [0, 50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 2000, 10000], "cap": True},
    ),
    "bill": (
        lambda r, n: [f"{x:.2f}" for x in _mixed(r, n, 0.3, 0, r.exponential(80, n))],
        {"type": "number", "bins": [0, 0.01, 10, 20, 50, 100, 200, 500, 5000], "cap": True},
    ),
    "pressure": (
        lambda r, n: _whole(np.clip(r.normal(128, 17, n), 70, 220)),
        {"type": "integer", "bins": list(range(70, 221, 5)), "cap": True},
    ),
    "rounded": (
        lambda r, n: _whole(5 * np.round(np.clip(r.normal(170, 30, n), 60, 300) / 5)),
        {"type": "integer", "bins": list(range(60, 301, 10)), "cap": True},
    ),
    "tenths": (
        lambda r, n: [f"{x:.1f}" for x in r.normal(12, 9, n)],
        {"type": "number", "bins": list(range(-30, 51, 4)), "cap": True},
    ),
    "code": (lambda r, n: _whole(r.choice(9, n, p=_CODES) + 1), {"labels": [str(x) for x in range(1, 10)]}),
    "flag": (lambda r, n: r.choice(["no", "yes"], n, p=[0.8, 0.2]).tolist(), {"labels": ["no", "yes"]}),
    "index": (
        lambda r, n: [f"{x:g}" for x in r.choice(_INDEX, n, p=np.arange(8, 0, -1) / 36)],
        {"type": "number", "bins": [0, 5, 10, 15, 21]},
    ),
    "region": (
        lambda r, n: [f"r{x}" for x in r.choice(40, n, p=_ZIPF / _ZIPF.sum())],
        {"labels": [f"r{x}" for x in range(40)]},
    ),
    "share": (
        lambda r, n: _whole(_mixed(r, n, 0.35, r.choice([0, 50, 100], n), 100 * r.beta(2, 3, n))),
        {"type": "integer", "bins": [0, 1, 25, 50, 51, 75, 100, 100.5]},
    ),
    "visits": (
        lambda r, n: _whole(r.negative_binomial(0.8, 0.2, n)),
        {"type": "integer", "bins": [0, 1, 2, 3, 4, 6, 10, 20, 100], "cap": True},
    ),
    "seen": (
        lambda r, n: _days(date(2021, 1, 1))(r.integers(0, 730, n)),
        {"type": "date", "min": "2021-01-01", "max": "2022-12-31", "bins": "quarter"},
    ),
    "born": (
        lambda r, n: _days(date(1930, 1, 1))(np.clip(r.normal(17000, 7000, n), 0, 33000)),
        {"type": "date", "min": "1930-01-01", "max": "2020-12-31", "bins": 18},
    ),
    "month": (
        lambda r, n: _days(date(2023, 3, 1))(r.integers(0, 31, n)),
        {"type": "date", "min": "2023-01-01", "max": "2023-12-31", "bins": "month"},
    ),
    "child": (
        lambda r, n: _days(date(2004, 1, 1))(r.integers(0, 365 * 14, n)),
        {"type": "date", "min": "2004-01-01", "max": "2018-12-31", "bins": "year"},
    ),
    "recent": (
        lambda r, n: _days(date(2024, 6, 30))(-np.minimum(r.exponential(900, n), 9000)),
        {"type": "date", "min": "1999-01-01", "max": "2024-12-31", "bins": 26},
    ),
    "issued": (
        lambda r, n: _days(date(1970, 1, 1))(np.clip(r.beta(5, 2, n) * 19700, 0, 19699)),
        {"type": "date", "min": "1970-01-01", "max": "2024-12-31", "bins": 11},
    ),
    "year": (lambda r, n: _whole(r.integers(2015, 2024, n)), {"type": "integer", "min": 2015, "max": 2023}),
    "birth": (
        lambda r, n: _whole(np.clip(r.normal(1975, 22, n), 1921, 2015)),
        {"type": "integer", "bins": list(range(1920, 2021, 5))},
    ),
    "icd": (
        lambda r, n: _whole(r.choice([250, 401, 428, 493, 999], n, p=[0.3, 0.3, 0.2, 0.1, 0.1])),
        {"labels": ["250", "401", "428", "493", "999"]},
    ),
    "bonus": (
        lambda r, n: _whole(
            _mixed(r, n, 0.6, r.choice([0, 0, 0, 250, 500, 1000], n), r.integers(1, 1500, n)),
        ),
        {"type": "integer", "bins": [0, 1, 500, 1000, 2000]},
    ),
}  # fmt: skip


def _projected(noisy: FloatArray, total: float) -> FloatArray:
    """Return the nearest non-negative table of this sum."""
    order = np.sort(noisy)[::-1]
    excess = (np.cumsum(order) - total) / np.arange(1, len(noisy) + 1)
    table: FloatArray = np.maximum(noisy - excess[np.flatnonzero(order > excess)[-1]], 0)
    return table


def _estimated(
    attribute: Attribute, column: Any, hand: Attribute, sigma: float, rng: np.random.Generator
) -> FloatArray:
    """Return the shares of hand's labels by a noisy table of an attribute."""
    table = np.bincount(encoder(attribute)(column), minlength=attribute.size).astype(float)
    table = _projected(table + sigma * rng.normal(size=attribute.size), len(column))
    codes = np.repeat(np.arange(attribute.size), _PLACES)
    at = np.tile((np.arange(_PLACES) + 0.5) / _PLACES, attribute.size)
    decode = decoder(attribute, table / table.sum())
    texts = decode.texts(codes, None if decode.dist is None else decode.places(codes, at))
    weights = np.repeat(table / table.sum() / _PLACES, _PLACES)
    shares: FloatArray = np.bincount(encoder(hand)(texts), weights=weights, minlength=hand.size).astype(np.float64)
    return shares


def errors(n: int, epsilon: str, k: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return by column the errors with the domains that were written and found."""
    rng = np.random.default_rng(seed)
    names = tuple(COLUMNS)
    plan = ColumnsPlan(
        columns=tuple(map(str, range(k))),
        whole=Budget.approx(epsilon, "1e-6"), share=Fraction(1, 20), labels=1, neighbours="add-remove",
    )  # fmt: skip
    sigma = math.sqrt(k / float(plan.tables.mu_squared))
    results = {}
    # In groups of K columns, as one search has them.
    every = [names[at % len(names)] for at in range(-(-len(names) // k) * k)]
    for group in (every[at : at + k] for at in range(0, len(every), k)):
        texts = {name: COLUMNS[name][0](rng, n) for name in dict.fromkeys(group)}
        counted = {name: Counter(column) for name, column in texts.items()}
        shaped, celled = ({name: dict.fromkeys(every, 0) for name in counted} for every in (SHAPES, (*CELLS, *PARTS)))
        for name, counts in counted.items():
            for text, count in counts.items():
                shaped[name][shape_of(text.encode())] += count
                for cell in (cell_of(text.encode()), part_of(text.encode())):
                    if cell is not None:
                        celled[name][cell] += count
        declared = [Attribute.from_dict(name, {"private": True}) for name in group]
        found = draw_columns(
            plan, declared, *([counts[name] for name in group] for counts in (counted, shaped, celled)),
            SeededRandomness(seed),
        )  # fmt: skip
        for one in found.columns:
            name = one.declared.name
            hand, column = Attribute.from_dict(name, COLUMNS[name][1]), pa.array(texts[name], pa.string())
            true = np.bincount(encoder(hand)(column), minlength=hand.size) / n
            pair = [
                0.5 * float(np.abs(_estimated(attribute, column, hand, noise, rng) - true).sum())
                for attribute, noise in ((hand, 0.97 * sigma), (one.attribute, sigma))
            ]
            results[name] = (pair[0], pair[1])
    return results


def run(repetitions: int) -> None:
    """Print the means over columns and repetitions, and their ratio."""
    print("records  epsilon   K  by hand   found  ratio")
    sizes = (6000, "3", 30), (6000, "1", 30), (20_000, "3", 7), (20_000, "1", 7), (3000, "1", 15), (1000, "3", 10)
    for n, epsilon, k in sizes:
        several = [errors(n, epsilon, k, seed) for seed in range(repetitions)]
        hand, found = np.array([pair for one in several for pair in one.values()]).mean(axis=0)
        print(f"{n:7,d}  {epsilon:>7}  {k:2d}   {hand:.4f}  {found:.4f}  {found / hand:5.2f}", flush=True)


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
