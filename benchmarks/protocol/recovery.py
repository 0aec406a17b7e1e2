"""Methods that recover Markov random fields, and the measurements of `benchmarks.papers.zhang`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.cases.markov import (
    COUPLING,
    LABEL_COUPLING,
    LISTED,
    Ising,
    Labels,
    Pair,
    Polynomial,
    ising,
    names_of,
    parities,
    walsh,
)
from benchmarks.protocol.crossing import search
from dpgm_core import (
    Array,
    Budget,
    Domain,
    FloatArray,
    Model,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    Workload,
    fit,
    release,
    select,
)
from dpgm_core.privacy import monomials
from dpgm_core.privacy.contrasts import products
from dpgm_core.structure.graphs import Clique

# --------------------------------------------------------------------------------------------------
# All pairs from one release: the sparse Ising model of greatest entropy that the noisy products support.
#
# Post-processing, and the benchmark's own. Pairs join while some product is further from the model's than an edge would
# have it; several at once, each the best at both of its ends; then all couplings are fitted anew, exactly, by listing
# the states of each connected part. Parts of more than 16 attributes do not happen near n* and are refused.

#: Of the product of an edge with half the least coupling: smaller residuals are taken for noise.
SHARE = 0.8
ROUNDS = 12


class TooDense(Exception):
    """Edges of noise join too many attributes."""


def by_greatest_entropy(products: FloatArray, least: float) -> FloatArray:
    """A, (p, p), from noisy means of z_i z_j, (p, p), no fields. least: eta. Raises TooDense."""
    size = len(products)
    couplings, model = np.zeros((size, size)), np.zeros((size, size))
    edges: set[Pair] = set()
    for _ in range(ROUNDS):
        residuals = np.abs(products - model)
        np.fill_diagonal(residuals, 0)
        for i, j in edges:
            residuals[i, j] = residuals[j, i] = 0
        best = residuals.argmax(axis=1)
        found = {
            (i, int(j))
            for i, j in enumerate(best)
            if i < j and best[j] == i and residuals[i, j] > SHARE * np.tanh(least / 2)
        }
        if not found:
            break
        edges |= found
        couplings, model = _fitted(products, edges)
    return couplings


def _fitted(products: FloatArray, edges: set[Pair]) -> tuple[FloatArray, FloatArray]:
    """Couplings of the edges, and all products under them."""
    size = len(products)
    couplings, model = np.zeros((size, size)), np.eye(size)
    for part in _parts(size, edges):
        if len(part) > LISTED:
            raise TooDense(f"{len(part)} attributes are joined; at most {LISTED} can be listed")
        place = {attribute: at for at, attribute in enumerate(part)}
        inside = [(i, j) for i, j in edges if i in place]
        bits = np.array([2 ** place[i] + 2 ** place[j] for i, j in inside])
        wanted = np.clip([products[i, j] for i, j in inside], -0.98, 0.98)

        def loss(
            values: FloatArray, bits: np.ndarray = bits, wanted: np.ndarray = wanted, many: int = len(part)
        ) -> tuple[float, FloatArray]:
            shares, log_sum = _distribution(values, bits, many)
            return log_sum - float(values @ wanted) + 1e-4 * float(values @ values), walsh(shares)[
                bits
            ] - wanted + 2e-4 * values

        values = minimize(loss, np.arctanh(wanted) / 2, jac=True, method="L-BFGS-B", bounds=[(-2, 2)] * len(bits)).x
        moments = walsh(_distribution(values, bits, len(part))[0])
        for (i, j), value in zip(inside, values, strict=True):
            couplings[i, j] = couplings[j, i] = value
        for i in part:
            for j in part:
                model[i, j] = moments[2 ** place[i] + 2 ** place[j]] if i != j else 1.0
    return couplings, model


def _distribution(values: FloatArray, bits: np.ndarray, many: int) -> tuple[FloatArray, float]:
    """Probabilities of all states, and the log of their sum before."""
    polynomial = np.zeros(2**many)
    np.add.at(polynomial, bits, values)
    weights = walsh(polynomial)
    top = float(weights.max())
    shares = np.exp(weights - top)
    return shares / shares.sum(), top + float(np.log(shares.sum()))


def _parts(size: int, edges: set[Pair]) -> list[list[int]]:
    """Connected parts with an edge."""
    of = list(range(size))
    for i, j in edges:
        one, two = of[i], of[j]
        of = [one if part == two else part for part in of]
    return [part for name in set(of) if len(part := [at for at in range(size) if of[at] == name]) > 1]


# --------------------------------------------------------------------------------------------------
# Ising models learned without privacy: an l1-penalised logistic regression of every attribute on the others.

_LOGISTIC_PENALTY, _LOGISTIC_STEPS = 0.2, 200


def by_logistic(codes: Array) -> FloatArray:
    """A, (p, p): the penalty is .2 sqrt(log p / n) on each weight and 0 on constants; (i, j) and (j, i) averaged.

    Accelerated proximal gradient on all attributes at once, z_i = +1 with probability sigma(w . (z, 1)), A = w / 2.
    """
    spins = (1 - 2 * codes.astype(np.float32)).astype(np.float32)
    count, size = spins.shape
    inputs = np.hstack([spins, np.ones((count, 1), dtype=np.float32)])
    step = 4 * count / float(np.linalg.eigvalsh(inputs.T.astype(np.float64) @ inputs)[-1])
    penalty = np.full((size, size + 1), _LOGISTIC_PENALTY * np.sqrt(np.log(size) / count) * step)
    penalty[:, -1] = 0
    allowed = np.hstack([~np.eye(size, dtype=bool), np.ones((size, 1), dtype=bool)])
    weights = ahead = np.zeros((size, size + 1))
    pace = 1.0
    for _ in range(_LOGISTIC_STEPS):
        residual = spins / (1 + np.exp(spins * (inputs @ ahead.T.astype(np.float32))))
        moved = ahead + step * allowed * (residual.T @ inputs) / count
        found = np.sign(moved) * np.maximum(np.abs(moved) - penalty, 0)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = found + (pace - 1) / faster * (found - weights)
        weights, pace = found, faster
    return (weights[:, :size] + weights[:, :size].T) / 4


# --------------------------------------------------------------------------------------------------
# Methods that find the structure and the parameters of a known Markov random field, and whether a trial succeeds.
#
# Each goes through dpgm's public verbs: records in, a model or a release out. Only the regressions without privacy
# (`by_logistic`) and the sparse model of all products (`by_greatest_entropy`) are the benchmark's own.

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


def tables_of(model: Model) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
    """Places of the attributes, and log-potentials, of every clique."""
    places = {name: at for at, name in enumerate(model.structure.domain.names)}
    for group, table in zip(model.structure.groups, model.potentials.arrays(), strict=True):
        for clique in group:
            yield tuple(places[name] for name in clique), table


def couplings_of(model: Model) -> FloatArray:
    """A of each pair, (p, p): the product of its signs in the log-potentials of all cliques that hold it."""
    size = len(model.structure.domain)
    found = np.zeros((size, size))
    for places, table in tables_of(model):
        effects = walsh(np.clip(table, -50, 50).ravel()) / table.size
        # the last axis is the lowest bit
        for (low, one), (high, other) in itertools.combinations(enumerate(reversed(places)), 2):
            found[one, other] += effects[2**low + 2**high]
    return found + found.T


def _settings(codes: Array, seed: int) -> dict[str, Any]:
    """The terms and the randomness of a run: add-remove neighbours, N declared, seeded noise."""
    return {"terms": Terms(neighbours="add-remove", total=len(codes)), "randomness": SeededRandomness(seed)}


def _matrix(truth: Ising, pairs: Mapping[Clique, float]) -> FloatArray:
    """The symmetric matrix, (p, p), of a value for each pair of attributes, 0 elsewhere."""
    places = {name: at for at, name in enumerate(truth.domain.names)}
    matrix = np.zeros((truth.size, truth.size))
    for clique, value in pairs.items():
        i, j = (places[name] for name in clique)
        matrix[i, j] = matrix[j, i] = value
    return matrix


def _plainly(truth: Ising, codes: Array, budget: Budget, seed: int) -> FloatArray:
    return by_logistic(codes)


def _all_pairs(truth: Ising, codes: Array, budget: Budget, seed: int, *, split: str) -> FloatArray:
    noisy = release(
        codes,
        Structure.complete(truth.domain, 2),
        budget,
        "laplace" if budget.kind == "pure" else "gaussian",
        **_settings(codes, seed),
        split=split,
    )
    sums = zip(noisy.structure.cliques, products(noisy.tables), strict=True)
    means = {clique: value / len(codes) for clique, value in sums if len(clique) == 2}
    return by_greatest_entropy(_matrix(truth, means), COUPLING)


def selected(
    truth: Ising, codes: Array, budget: Budget, seed: int, *, learner: str = "eb-map", **options: Any
) -> FloatArray:
    """`mrf-select` and then a learner."""
    done = fit(
        codes,
        {"name": "mrf-select", "picks": picks_of(truth), **options},
        budget,
        learner=learner,
        workload=Workload.all(truth.domain, order=2),
        **_settings(codes, seed),
    )
    return couplings_of(done.model)


def _in_rounds(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    """One pick a round, from the second on by what a model of the pairs so far gets wrong."""
    return selected(truth, codes, budget, seed, picks=truth.degree, rounds=truth.degree, **options)


def _regressed(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    learner = {"name": "mrf-fw", "width": truth.width, "least": COUPLING, **options}
    done = fit(codes, Structure.complete(truth.domain, 2), budget, "gaussian", learner, **_settings(codes, seed))
    return couplings_of(done.model)


def _voted(truth: Ising, codes: Array, budget: Budget, seed: int, **options: Any) -> FloatArray:
    """The graph alone, each edge as if it had the least coupling: votes tell no more."""
    return _matrix(truth, dict.fromkeys(voted_edges(truth.domain, codes, budget, seed, **options), COUPLING))


def voted_edges(
    domain: Domain, codes: Array, budget: Budget, seed: int, *, order: int = 2, **options: Any
) -> frozenset[Clique]:
    """The edges that `mrf-stable` publishes. Votes get all of `budget`, as the share of one twice as large: there is no
    selection that measures nothing."""
    _, selection = select(
        codes,
        {"name": "mrf-stable", "least": COUPLING, "share": 0.5, "order": order, **options},
        budget * 2,
        Workload.all(domain, order=order),
        **_settings(codes, seed),
    )
    return edges_within(selection.structure.cliques)


def edges_within(cliques: Iterable[Clique]) -> frozenset[Clique]:
    """All pairs of attributes that some clique holds."""
    return frozenset(pair for clique in cliques for pair in itertools.combinations(clique, 2))


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


# --------------------------------------------------------------------------------------------------
# Methods for attributes of k labels and for binary t-wise models, on known truths.

LABEL_BASE = 320_000
RHO = Budget.zcdp("0.1")

#: Whether a pair of attributes is an edge, from codes and a seed.
LabelRecovery = Callable[[Labels, Array, int], frozenset[Pair]]


def centred(table: FloatArray) -> FloatArray:
    """W of a pair from its log-potentials: rows and columns without their means."""
    rows = table - table.mean(axis=0, keepdims=True)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def edges_of(model: Model) -> frozenset[Pair]:
    """Pairs whose max |W| is beyond half the least."""
    return frozenset(
        (min(places), max(places))
        for places, table in tables_of(model)
        if len(places) == 2 and np.abs(centred(table)).max() > LABEL_COUPLING / 2
    )


def _all_label_pairs(truth: Labels, codes: Array, seed: int) -> frozenset[Pair]:
    """On matchings a pair's W is the centred log of its own table."""
    structure = Structure.complete(truth.domain, 2)
    noisy = release(codes, structure, RHO, "gaussian", **_settings(codes, seed), split="even")
    logs = Tables(structure, np.log(np.maximum(noisy.tables.values, 1.0)))
    return edges_of(Model(structure, logs))


def _chosen(truth: Labels, codes: Array, seed: int, *, selector: Mapping[str, Any]) -> frozenset[Pair]:
    done = fit(codes, selector, RHO, workload=Workload.all(truth.domain, order=2), **_settings(codes, seed))
    return edges_of(done.model)


def _regress_labels(truth: Labels, codes: Array, seed: int, **options: Any) -> frozenset[Pair]:
    learner = {"name": "mrf-fw", "width": truth.width, "least": LABEL_COUPLING, **options}
    done = fit(codes, Structure.complete(truth.domain, 2), RHO, "gaussian", learner, **_settings(codes, seed))
    return edges_of(done.model)


LABEL_METHODS: dict[str, LabelRecovery] = {
    "mrf-fw pairs, printed split": partial(_regress_labels, regression="pairs", budget_split="paper"),
    "mrf-fw pairs, touched split": partial(_regress_labels, regression="pairs"),
    "mrf-fw softmax": _regress_labels,
    "all pairs, tables": _all_label_pairs,
    "mrf-select tables": partial(_chosen, selector={"name": "mrf-select", "picks": 1}),
}


def label_trial(labels: int, size: int, method: str, records: int, number: int) -> dict[str, bool]:
    """One trial: effects and records of its own."""
    rng = np.random.default_rng([LABEL_BASE, labels, size, records, number])
    truth = Labels.draw(labels, size, rng)
    codes = truth.records(records, rng)
    return {"structure": LABEL_METHODS[method](truth, codes, int(rng.integers(2**32))) == truth.edges}


def labels_needed(labels: int, size: int, method: str, start: int, trials: int, seconds: float) -> dict[str, Any]:
    """The points of a search for n*, structure alone."""
    return search(partial(label_trial, labels, size, method), {"structure": start}, trials=trials, seconds=seconds)


WALSH_METHODS = {"mrf-walsh release": "release", "mrf-walsh paper": "paper"}


def walsh_error(method: str, records: int, rho: str, number: int) -> dict[str, float]:
    """The largest error of the maximal monomials' coefficients, one draw."""
    rng = np.random.default_rng([LABEL_BASE, records, *rho.encode(), number])
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
        **_settings(codes, seed),
    ).model


def coefficient(model: Model, clique: tuple[str, ...]) -> float:
    """Of the product of these attributes' signs in the log-potentials."""
    wanted = {model.structure.domain.names.index(name) for name in clique}
    total = 0.0
    for places, table in tables_of(model):
        if wanted <= set(places):
            signs = [np.array([1, -1] if place in wanted else [1, 1]) for place in places]
            total += float((reduce(np.multiply.outer, signs) * table).mean())
    return total


#: Theorem 1.4: disjoint triples of .4, all maximal monomials within .1.
TWISE_RHO, TWISE_START = "0.1", 4096


def twise_trial(size: int, method: str, records: int, number: int) -> dict[str, bool]:
    """One trial with a third as many triples as attributes: signs and records of its own."""
    rng = np.random.default_rng([LABEL_BASE, size, records, number, 3])
    truth = Polynomial.draw(size, [(at, at + 1, at + 2) for at in range(0, size, 3)], rng)
    codes = truth.records(records, rng)
    model = _by_walsh(truth, codes, WALSH_METHODS[method], Budget.zcdp(TWISE_RHO), int(rng.integers(2**32)))
    off = max(abs(coefficient(model, clique) - value) for clique, value in truth.monomials.items())
    return {"parameters": off <= WITHIN}


def twise_needed(size: int, method: str, trials: int, seconds: float) -> dict[str, Any]:
    """The points of a search for n* of a binary t-wise model, t = 3."""
    return search(partial(twise_trial, size, method), {"parameters": TWISE_START}, trials=trials, seconds=seconds)


#: Votes on the graph of binary models of order three, (.75, 1e-6): the paper's method is "graph", Lemma 5.1.
STABLE_METHODS: dict[str, dict[str, Any]] = {
    "graph, order 3": {"method": "graph", "order": 3},
    "votes, order 3": {"method": "votes", "order": 3},
    "votes, order 2": {"method": "votes", "order": 2},
}
#: Records to begin at, and beyond which nothing is tried: order 2 finds no parity of three, whatever their number.
STABLE_START, STABLE_MOST = 8192, 2**16


def stable_trial(graph: str, size: int, method: str, records: int, number: int) -> dict[str, bool]:
    """One trial on disjoint triples, or on "mixed" triples and pairs that overlap: signs and records of its own."""
    rng = np.random.default_rng([LABEL_BASE, size, *graph.encode(), records, number, 5])
    if graph == "mixed":
        truth = Polynomial.triples(rng)
        cliques, codes = list(truth.monomials), truth.records(records, rng)
    else:
        cliques, codes = parities(size, records, rng)
    domain = Domain.from_sizes(dict.fromkeys(names_of(size), 2))
    edges = voted_edges(domain, codes, BUDGETS["delta"], int(rng.integers(2**32)), **STABLE_METHODS[method])
    return {"structure": edges == edges_within(cliques)}


def stable_needed(graph: str, size: int, method: str, trials: int, seconds: float) -> dict[str, Any]:
    """The points of a search for n*, structure alone."""
    attempt = partial(stable_trial, graph, size, method)
    return search(attempt, {"structure": STABLE_START}, trials=trials, seconds=seconds, most=STABLE_MOST)


# --------------------------------------------------------------------------------------------------
# Theorem 1.3: the excess risk of private Frank-Wolfe.

RISK_SIZE = 8


def excess_risk(records: int, rho: str, number: int) -> dict[str, float]:
    """`risk`: the logistic loss of `mrf-fw` less the least one in the same l1 ball, on the same records; nats, mean of
    the attributes of a matching. Weights are the learned model's, (i, j) and (j, i) averaged, without fields."""
    rng = np.random.default_rng([BASE, records, *rho.encode(), number, 4])
    truth = ising("matching", RISK_SIZE, rng)
    codes = truth.records(records, rng)
    learned = _regressed(truth, codes, Budget.zcdp(rho), int(rng.integers(2**32)), clip=None)
    states, counts = np.unique(codes, axis=0, return_counts=True)
    spins, shares = 1 - 2.0 * states, counts / records
    losses = []
    for place in range(RISK_SIZE):
        inputs, signs = np.delete(spins, place, axis=1), spins[:, place]
        own = _logistic_loss(2 * np.delete(learned[place], place), inputs, signs, shares)[0]
        losses.append(own - _least_loss(inputs, signs, shares, 2 * truth.width))
    return {"risk": float(np.mean(losses))}


def _logistic_loss(
    weights: FloatArray, inputs: FloatArray, signs: FloatArray, shares: FloatArray
) -> tuple[float, FloatArray]:
    """The mean loss, nats, and its gradient."""
    margins = signs * (inputs @ weights)
    pull = -signs * shares / (1 + np.exp(margins))
    return float(shares @ np.logaddexp(0, -margins)), pull @ inputs


def _least_loss(inputs: FloatArray, signs: FloatArray, shares: FloatArray, radius: float) -> float:
    """The least loss of weights with an l1 norm of at most the radius: w = u - v, u and v not negative."""
    count = inputs.shape[1]

    def loss(both: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = _logistic_loss(both[:count] - both[count:], inputs, signs, shares)
        return value, np.concatenate([gradient, -gradient])

    room = {"type": "ineq", "fun": lambda both: radius - both.sum(), "jac": lambda both: -np.ones(2 * count)}
    done = minimize(
        loss, np.zeros(2 * count), jac=True, method="SLSQP", bounds=[(0, None)] * 2 * count, constraints=[room],
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    return float(done.fun)


# --------------------------------------------------------------------------------------------------
# Contrasts beside cells, for a known structure.

#: Of known structures: noise is a hundred times the sampling, and an edge stands five deviations out.
KNOWN_RHO = "0.001"
STEPS = (1.0, 2**0.5, 2.0, 2**1.5, 4.0)


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
    off = couplings_of(done.model) - truth.couplings
    measured = _matrix(truth, dict.fromkeys(structure.cliques, 1.0)) != 0
    return float(np.sqrt(np.mean(off[measured] ** 2)))


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
