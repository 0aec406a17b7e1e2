"""Methods that find the structure and the parameters of a known Markov random field, and whether a trial succeeds.

Each goes through dpgm's public verbs: records in, a model or a release out. Only the regressions without privacy
(`plain_regressions`) and the sparse model of all products (`entropy`) are the benchmark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.markov import COUPLING, Ising, Pair, ising, walsh
from benchmarks.protocol.crossing import search
from benchmarks.protocol.entropy import TooDense, by_greatest_entropy
from benchmarks.protocol.plain_regressions import by_logistic
from dpgm_core import (
    Array,
    Budget,
    FloatArray,
    Model,
    SeededRandomness,
    Structure,
    Terms,
    Workload,
    fit,
    release,
    select,
)
from dpgm_core.privacy.contrasts import products

__all__ = [
    "BASE",
    "BUDGETS",
    "METHODS",
    "VOTES",
    "couplings_of",
    "found_edges",
    "judged",
    "needed",
    "picks_of",
    "selected",
    "trial",
]

#: Of all seeds: records of a trial depend on this, the graph, its size, their number and the trial alone, so all
#: methods get the same.
BASE = 310_000
#: A cell's first word. The three are nearly one promise: (.75, 1e-6) contains rho = .01.
BUDGETS = {"zcdp": Budget.zcdp("0.01"), "delta": Budget.approx("0.75", "1e-6"), "pure": Budget.pure("0.75")}
WITHIN, TAU, CLIP = 0.1, 0.27, 0.3
GOALS = ("structure", "parameters")

#: Estimated A, (p, p), from the truth's public facts, codes, a budget and a seed.
Recover = Callable[[Ising, Array, Budget, int], FloatArray]


def picks_of(truth: Ising) -> int:
    """As many as an attribute has edges; two more on the large grid, where correlations mislead."""
    return truth.degree + 2 * (truth.degree == 4 and truth.size > 16)


def couplings_of(model: Model) -> FloatArray:
    """A of each pair, (p, p): the product of its signs in the log-potentials of all cliques that hold it."""
    names = {name: at for at, name in enumerate(model.structure.domain.names)}
    found = np.zeros((len(names), len(names)))
    for group, table in zip(model.structure.groups, model.potentials.arrays(), strict=True):
        for clique in group:
            # the last axis is the lowest bit
            effects = walsh(np.clip(table, -50, 50).ravel()) / table.size
            places = [names[name] for name in reversed(clique)]
            for low in range(len(places)):
                for high in range(low + 1, len(places)):
                    found[places[low], places[high]] += effects[2**low + 2**high]
    return found + found.T


def _terms(codes: Array) -> Terms:
    return Terms(neighbours="add-remove", total=len(codes))


def _wanted(truth: Ising) -> Workload:
    return Workload.all(truth.domain, order=2)


def _plainly(truth: Ising, codes: Array, budget: Budget, seed: int) -> FloatArray:
    return by_logistic(codes)


def _all_pairs(truth: Ising, codes: Array, budget: Budget, seed: int, *, split: str) -> FloatArray:
    noisy = release(
        codes,
        Structure.complete(truth.domain, 2),
        budget,
        "laplace" if budget.kind == "pure" else "gaussian",
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
        split=split,
    )
    sums = products(noisy.tables)
    found = np.zeros((truth.size, truth.size))
    names = {name: at for at, name in enumerate(truth.domain.names)}
    for clique, value in zip(noisy.structure.cliques, sums, strict=True):
        if len(clique) == 2:
            i, j = (names[name] for name in clique)
            found[i, j] = found[j, i] = value / len(codes)
    return by_greatest_entropy(found, COUPLING)


def selected(
    truth: Ising, codes: Array, budget: Budget, seed: int, *, learner: str = "eb-map", **options: Any
) -> FloatArray:
    """`mrf-select` and then a learner."""
    done = fit(
        codes,
        {"name": "mrf-select", "picks": picks_of(truth), **options},
        budget,
        learner=learner,
        workload=_wanted(truth),
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    )
    return couplings_of(done.model)


def _in_rounds(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    """One pick a round, from the second on by what a model of the pairs so far gets wrong."""
    return selected(truth, codes, budget, seed, picks=truth.degree, rounds=truth.degree, **options)


def _regressed(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    learner = {"name": "mrf-fw", "width": truth.width, "least": COUPLING, **options}
    done = fit(
        codes,
        Structure.complete(truth.domain, 2),
        budget,
        "gaussian",
        learner,
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    )
    return couplings_of(done.model)


def _voted(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    """The graph alone, each edge as if it had the least coupling: votes tell no more. Votes get all of `budget`, as the
    share of one twice as large: there is no selection that measures nothing."""
    _, selection = select(
        codes,
        {"name": "mrf-stable", "least": COUPLING, "share": 0.5, **options},
        budget * 2,
        _wanted(truth),
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    )
    names = {name: at for at, name in enumerate(truth.domain.names)}
    found = np.zeros((truth.size, truth.size))
    for clique in selection.structure.cliques:
        if len(clique) == 2:
            i, j = (names[name] for name in clique)
            found[i, j] = found[j, i] = COUPLING
    return found


#: These find structure alone.
VOTES: dict[str, Recover] = {
    "votes": partial(_voted, method="votes"),
    "graph": partial(_voted, method="graph"),
    "threshold": partial(_voted, method="threshold", tau=TAU),
}
METHODS: dict[str, Recover] = {
    "non-private": _plainly,
    "all pairs, contrasts": partial(_all_pairs, split="contrasts"),
    "all pairs, tables": partial(_all_pairs, split="even"),
    "mrf-fw": partial(_regressed, clip=None),
    "mrf-fw clipped": partial(_regressed, clip=CLIP),
    "mrf-select contrasts": partial(selected, measure="contrasts", share_one_way=0.0),
    "mrf-select tables": partial(selected, measure="tables", share_one_way=0.0),
    "mrf-select contrasts, margins unknown": partial(selected, measure="contrasts"),
    "mrf-select tables, margins unknown": partial(selected, measure="tables"),
    "mrf-select contrasts, in rounds": partial(_in_rounds, measure="contrasts", share_one_way=0.0),
    **VOTES,
}


def found_edges(couplings: FloatArray) -> frozenset[Pair]:
    """Pairs beyond half the least coupling."""
    return frozenset((i, j) for i, j in np.argwhere(np.triu(np.abs(couplings) > COUPLING / 2, 1)).tolist())


def judged(truth: Ising, couplings: FloatArray) -> dict[str, bool]:
    """Both goals: the very edges; all pairs within .1."""
    return {
        "structure": found_edges(couplings) == truth.edges,
        "parameters": bool(np.abs(couplings - truth.couplings).max() <= WITHIN),
    }


def trial(graph: str, size: int, method: str, promise: str, records: int, number: int) -> dict[str, bool]:
    """One trial: a graph, signs and records of its own."""
    rng = np.random.default_rng([BASE, size, *graph.encode(), records, number])
    truth = ising(graph, size, rng)
    codes = truth.records(records, rng)
    try:
        couplings = METHODS[method](truth, codes, BUDGETS[promise], int(rng.integers(2**32)))
    except TooDense:
        return dict.fromkeys(GOALS, False)
    found = judged(truth, couplings)
    return {"structure": found["structure"]} if method in VOTES else found


def needed(
    graph: str, size: int, method: str, promise: str, starts: Mapping[str, int], trials: int, seconds: float
) -> dict[str, Any]:
    """The points of a search for n* in every goal of `starts`."""
    starts = {goal: start for goal, start in starts.items() if goal == "structure" or method not in VOTES}
    return search(partial(trial, graph, size, method, promise), starts, trials=trials, seconds=seconds)
