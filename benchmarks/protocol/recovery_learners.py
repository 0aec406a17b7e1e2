"""What learning is worth around selection: two learners at 1.5 n*, and contrasts beside cells for a known structure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.cases.markov import Ising, ising
from benchmarks.protocol.recovery import BASE, BUDGETS, couplings_of, selected
from dpgm_core import Array, Budget, FloatArray, SeededRandomness, Structure, Terms, fit
from dpgm_core.privacy import monomials

__all__ = ["KEPT", "kept_error", "known_errors", "noise_alone", "saved"]

#: learner -> the method's name; at 1.5 times the prototype's n* for structure.
KEPT = {"mrf-select tables, eb-map": "eb-map", "mrf-select tables, naive-mle": "naive-mle"}
#: Of known structures: noise is a hundred times the sampling, and an edge stands five deviations out.
KNOWN_RHO = "0.001"
STEPS = (1.0, 2**0.5, 2.0, 2**1.5, 4.0)


def kept_error(method: str, graph: str, size: int, records: int, number: int) -> dict[str, float]:
    """Mean |A - A^| over the pairs that are measured or edges, one draw; the selection is the same for both, and of
    cells, because `naive-mle` does not take contrasts."""
    rng = np.random.default_rng([BASE, size, *graph.encode(), records, number, 1])
    truth = ising(graph, size, rng)
    codes = truth.records(records, rng)
    found = selected(
        truth,
        codes,
        BUDGETS["zcdp"],
        int(rng.integers(2**32)),
        learner=KEPT[method],
        measure="tables",
        share_one_way=0.0,
    )
    return {"off": float(np.abs(found - truth.couplings)[(found != 0) | (truth.couplings != 0)].mean())}


def known_errors(graph: str, size: int, relation: str, number: int) -> dict[str, Any]:
    """RMS error of the couplings of all pairs in the structure and KL, cells and contrasts, at growing numbers of
    records; and how many times the records cells need for the error that contrasts have at the second."""
    rng = np.random.default_rng([BASE, size, *graph.encode(), number, 2])
    truth, structure = _known(graph, size, rng)
    first = 12 * math.sqrt(2 * len(structure.cliques) / float(KNOWN_RHO)) * (2 if relation == "replace-one" else 1)
    errors: dict[str, list[float]] = {"cells": [], "contrasts": []}
    for at, step in enumerate(STEPS):
        codes = truth.records(round(first * step), rng)
        for split in errors:
            errors[split].append(_rms(truth, structure, codes, split, relation, 10 * number + at))
    return {key: [float(f"{one:.4g}") for one in values] for key, values in errors.items()}


def _known(graph: str, size: int, rng: np.random.Generator) -> tuple[Ising, Structure]:
    """A model, and what is measured of it: its edges; of "all-pairs" a matching, and silent pairs too."""
    truth = ising("matching" if graph == "all-pairs" else graph, size, rng)
    return truth, Structure.complete(truth.domain, 2) if graph == "all-pairs" else truth.structure


def noise_alone(graph: str, size: int, relation: str) -> float:
    """How many times wider the noise of a pair's product is from cells than from contrasts, at one budget.

    Of one draw of the graph; with nothing but noise the records for one error have this ratio. A product from cells is
    a sum of four; contrasts measure each attribute alone, too.
    """
    structure = _known(graph, size, np.random.default_rng(BASE))[1]
    terms = Terms(neighbours=relation, total=1000)
    cells = terms.sensitivity(structure).l2_squared
    contrasts = terms.sensitivity(monomials(structure, empty=False), contrasts=True).l2_squared
    return math.sqrt(4 * cells / contrasts)


def _rms(truth: Ising, structure: Structure, codes: Array, split: str, relation: str, seed: int) -> float:
    done = fit(
        codes,
        structure,
        Budget.zcdp(KNOWN_RHO),
        "gaussian",
        "eb-map",
        terms=Terms(neighbours=relation, total=len(codes)),
        randomness=SeededRandomness(seed),
        split="even" if split == "cells" else "contrasts",
    )
    names = {name: at for at, name in enumerate(truth.domain.names)}
    off = couplings_of(done.model) - truth.couplings
    return float(np.sqrt(np.mean([off[names[i], names[j]] ** 2 for i, j in structure.cliques])))


def saved(runs: Sequence[Mapping[str, Sequence[float]]]) -> tuple[float, float]:
    """Records that cells need over those that contrasts need for the same error, and the standard error of its log.

    Root mean squares over the draws, as powers of the records with one exponent for both; the jackknife over draws.
    """
    every = {key: np.square([run[key] for run in runs]) for key in ("cells", "contrasts")}
    alone = [
        _log_saved({key: np.delete(squares, at, axis=0) for key, squares in every.items()}) for at in range(len(runs))
    ]
    spread = math.sqrt((len(runs) - 1) * float(np.var(alone))) if len(runs) > 1 else math.nan
    return math.exp(_log_saved(every)), spread


def _log_saved(squares: Mapping[str, FloatArray]) -> float:
    if not len(squares["cells"]):
        return math.nan
    steps = np.log(STEPS) - np.mean(np.log(STEPS))
    curves = {key: np.log(values.mean(axis=0)) / 2 for key, values in squares.items()}
    exponent = float(np.mean([steps @ curve / (steps @ steps) for curve in curves.values()]))
    return float((curves["contrasts"] - curves["cells"]).mean() / exponent)
