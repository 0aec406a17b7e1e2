"""Methods for attributes of k labels and for binary t-wise models, on known truths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.markov import LABEL_COUPLING, Labels, Pair, Polynomial
from benchmarks.protocol.crossing import search
from dpgm_core import Array, Budget, FloatArray, Model, SeededRandomness, Structure, Terms, Workload, fit, release

__all__ = ["LABEL_METHODS", "WALSH_METHODS", "coefficient", "edges_of", "labels_needed", "trial", "walsh_error"]

BASE = 320_000
RHO = Budget.zcdp("0.1")

#: Whether a pair of attributes is an edge, from codes and a seed.
Recover = Callable[[Labels, Array, int], frozenset[Pair]]


def centred(table: FloatArray) -> FloatArray:
    """W of a pair from its log-potentials: rows and columns without their means."""
    rows = table - table.mean(axis=0, keepdims=True)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def edges_of(model: Model) -> frozenset[Pair]:
    """Pairs whose max |W| is beyond half the least."""
    names = {name: at for at, name in enumerate(model.structure.domain.names)}
    found = set()
    for group, table in zip(model.structure.groups, model.potentials.arrays(), strict=True):
        for clique in group:
            if len(clique) == 2 and np.abs(centred(table)).max() > LABEL_COUPLING / 2:
                one, two = sorted(names[name] for name in clique)
                found.add((one, two))
    return frozenset(found)


def _terms(codes: Array) -> Terms:
    return Terms(neighbours="add-remove", total=len(codes))


def _all_pairs(truth: Labels, codes: Array, seed: int) -> frozenset[Pair]:
    """On matchings a pair's W is the centred log of its own table."""
    structure = Structure.complete(truth.domain, 2)
    noisy = release(
        codes, structure, RHO, "gaussian", terms=_terms(codes), randomness=SeededRandomness(seed), split="even"
    )
    names = {name: at for at, name in enumerate(truth.domain.names)}
    found = set()
    for clique in structure.cliques:
        shares = np.maximum(noisy.tables[clique], 1.0)
        if np.abs(centred(np.log(shares))).max() > LABEL_COUPLING / 2:
            found.add((names[clique[0]], names[clique[1]]))
    return frozenset(found)


def _chosen(truth: Labels, codes: Array, seed: int, *, selector: Mapping[str, Any]) -> frozenset[Pair]:
    done = fit(
        codes,
        selector,
        RHO,
        workload=Workload.all(truth.domain, order=2),
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    )
    return edges_of(done.model)


def _regressed(truth: Labels, codes: Array, seed: int, **options: Any) -> frozenset[Pair]:
    learner = {"name": "mrf-fw", "width": truth.width, "least": LABEL_COUPLING, **options}
    done = fit(
        codes,
        Structure.complete(truth.domain, 2),
        RHO,
        "gaussian",
        learner,
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    )
    return edges_of(done.model)


LABEL_METHODS: dict[str, Recover] = {
    "mrf-fw pairs, printed split": partial(_regressed, regression="pairs", budget_split="paper"),
    "mrf-fw pairs, touched split": partial(_regressed, regression="pairs"),
    "mrf-fw softmax": _regressed,
    "all pairs, tables": _all_pairs,
    "mrf-select tables": partial(_chosen, selector={"name": "mrf-select", "picks": 1}),
}


def trial(labels: int, size: int, method: str, records: int, number: int) -> dict[str, bool]:
    """One trial: effects and records of its own."""
    rng = np.random.default_rng([BASE, labels, size, records, number])
    truth = Labels.draw(labels, size, rng)
    codes = truth.records(records, rng)
    return {"structure": LABEL_METHODS[method](truth, codes, int(rng.integers(2**32))) == truth.edges}


def labels_needed(labels: int, size: int, method: str, start: int, trials: int, seconds: float) -> dict[str, Any]:
    """The points of a search for n*, structure alone."""
    return search(partial(trial, labels, size, method), {"structure": start}, trials=trials, seconds=seconds)


WALSH_METHODS = {"mrf-walsh release": "release", "mrf-walsh paper": "paper"}


def walsh_error(method: str, records: int, rho: str, number: int) -> dict[str, float]:
    """The largest error of the maximal monomials' coefficients, one draw."""
    rng = np.random.default_rng([BASE, records, *rho.encode(), number])
    truth = Polynomial.triples(rng)
    codes = truth.records(records, rng)
    model = _by_walsh(truth, codes, WALSH_METHODS[method], Budget.zcdp(rho), int(rng.integers(2**32)))
    return {"off": max(abs(coefficient(model, clique) - value) for clique, value in truth.monomials.items())}


def _by_walsh(truth: Polynomial, codes: Array, method: str, budget: Budget, seed: int) -> Model:
    learner: dict[str, Any] = {"name": "mrf-walsh", "order": 3, "method": method}
    return fit(
        codes,
        Structure.complete(truth.domain, 3),
        budget,
        "gaussian",
        learner | ({"width": truth.width} if method == "paper" else {}),
        terms=_terms(codes),
        randomness=SeededRandomness(seed),
    ).model


def coefficient(model: Model, clique: tuple[str, ...]) -> float:
    """Of the product of these attributes' signs in the log-potentials."""
    total = 0.0
    for group, table in zip(model.structure.groups, model.potentials.arrays(), strict=True):
        for one in group:
            if set(clique) <= set(one):
                signs = np.ones((2,) * len(one))
                for at, name in enumerate(one):
                    if name in clique:
                        signs = signs * np.array([1, -1]).reshape([2 if here == at else 1 for here in range(len(one))])
                total += float((signs * table).mean())
    return total
