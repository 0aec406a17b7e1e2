"""Runs of `benchmarks.selection` and `benchmarks.privbayes`, each in a process of its own."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from benchmarks.cases.census import TREES
from benchmarks.cases.coded import Coded, off
from benchmarks.harness.alone import peak_megabytes
from benchmarks.peers.mbi_peer import mbi_models
from dpgm_core import (
    Budget,
    Choice,
    Clique,
    Curator,
    Domain,
    Fit,
    FloatArray,
    Inference,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    SeededRandomness,
    Sensitivity,
    Structure,
    Tables,
    Terms,
    Workload,
    fit,
    learn,
    make,
    release,
)
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.releases.pooling import pool

# --------------------------------------------------------------------------------------------------
# Mirror descent on noisy tables, as mbi 2.0.0 does it, on dpgm's engine: the fit that our loops are compared with.
#
# mbi itself compiles a program for each structure, so whole loops of selection around it take hours. Its answer is what
# counts here, and this is its answer: `benchmarks.selection` compares both on one release, to four digits.


@frozen(kw_only=True)
class MirrorDescent:
    """Least squares on the noisy tables, sum |y_t - N mu_t|^2 / (2 sigma_t^2), by mirror descent with Armijo steps.

    steps: of a fit; mbi takes 1,000, and what is left of the distance to the optimum is its only regulariser. Fits
    start where the last one of this object ended, as those of AIM do; a fitter that is given no previous fit starts at
    the uniform model. Source: McKenna, Sheldon, Miklau (2019), Algorithm 1; the settings are those of mbi 2.0.0.
    """

    steps: int = 1000
    _last: dict[Clique, FloatArray] = field(factory=dict, repr=False, eq=False, init=False)

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse what the engine cannot hold; raises TooLarge."""
        inference.compile(structure)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it."""
        return self._fit(inference, curator.release(), curator.structure)

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Fits in a loop, each from where the last one ended."""

        def fit(release: NoisyTables, structure: Structure, previous: Fit | None) -> Fit:
            if previous is None:
                self._last.clear()
            return self._fit(inference, release, structure)

        return fit

    def _fit(self, inference: Inference, release: NoisyTables, structure: Structure) -> Fit:
        start = _start(release.structure, self._last)
        theta, trace = descend(inference, release, start, self.steps)
        self._last.clear()
        self._last.update((clique, np.array(table)) for clique, table in theta.items())
        # Tables are those that were measured; the model may be asked for wider cliques.
        potentials = theta if structure == release.structure else theta.embed(structure)
        return Fit(model=Model(potentials.structure, potentials), trace=(trace,), certificate=trace)


def descend(
    inference: Inference, release: NoisyTables, start: FloatArray, steps: int
) -> tuple[Tables, dict[str, float]]:
    """Log-potentials, one table per measured clique, after so many steps from `start`, (cells,); and how it went.

    A step along the negative gradient in the potentials is taken where the loss falls by half of what its slope
    promises, and the next is 1 % longer; else the next is half as long.
    """
    structure, total = release.structure, release.total
    engine = inference.compile(structure)
    precisions = np.repeat(1 / release.variances, structure.sizes)
    noisy = release.tables.values.astype(np.float64)

    def at(potentials: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Expected counts, the gradient with regard to them, and the loss."""
        counts = engine.infer(Tables(structure, potentials), total=total).marginals.values
        gradient = precisions * (counts - noisy)
        return counts, gradient, float(gradient @ (counts - noisy)) / 2

    theta, length, taken = start, 2 / (smoothness(release) * total), 0
    counts, gradient, loss = at(theta)
    for _ in range(steps):
        candidate = theta - length * gradient
        moved = at(candidate)
        if loss - moved[2] >= 0.5 * length * float(gradient @ (counts - moved[0])):
            theta, (counts, gradient, loss), length, taken = candidate, moved, 1.01 * length, taken + 1
        else:
            length *= 0.5
    return Tables(structure, theta), {"loss": loss, "taken": taken, "step": length}


def smoothness(release: NoisyTables) -> float:
    """An upper bound of the loss's curvature in expected counts, from which mbi sets its first step.

    Each table counts towards the smallest largest clique that holds it, with the cells of that one per cell of its own.
    """
    structure = release.structure
    nested = set(structure.nested)
    largest = [clique for clique in structure.cliques if clique not in nested]
    cells = {clique: math.prod(structure.domain.shape(clique)) for clique in structure.cliques}
    found = dict.fromkeys(largest, 0.0)
    for (clique, *_), variance in zip(structure.groups, release.variances, strict=True):
        inside = min((one for one in largest if set(clique) <= set(one)), key=cells.__getitem__)
        found[inside] += cells[inside] / cells[clique] / variance
    return max(found.values())


def _start(structure: Structure, last: Mapping[Clique, FloatArray]) -> FloatArray:
    """The last fit's potentials on the tables that are there still, 0 on new ones; 0 where one is gone."""
    found = {clique: np.zeros(structure.domain.shape(clique)) for clique in structure.cliques}
    if all(clique in found and found[clique].shape == table.shape for clique, table in last.items()):
        found |= last
    return Tables.from_arrays(structure, found).values


# --------------------------------------------------------------------------------------------------
# What `benchmarks.selection` runs, each in a process of its own: a selection and its fit, noise for a promise, and
# mirror descent beside mbi's own on one release.

DELTA = "1e-9"
TERMS = Terms(neighbours="add-remove")
#: mbi's iterations: of a fit, and of the last one of its MST.
STEPS, MST_STEPS = 1000, 10_000


@frozen
class Method:
    """selector: its name, or a table with its options; None measures attributes alone. steps: of mirror descent; None:
    `learner` learns, untouched; without a name what the selector finds right. again: the selection is made with
    `eb-map`, and mirror descent learns from the release that it left. order: of the sets of attributes that may be
    measured, or of pairs where there are too many sets; None: of the library's choice."""

    selector: str | Mapping[str, Any] | None
    steps: int | None = None
    again: bool = False
    learner: str | Mapping[str, Any] | None = "eb-map"
    order: int | None = 3


METHODS = {
    "auto": Method("auto", learner=None, order=None),
    "auto 4": Method("auto", learner=None, order=4),
    "auto population": Method("auto", learner={"name": "eb-map", "target": "population"}, order=None),
    "aim": Method("aim"),
    "oneshot": Method("oneshot"),
    "mst": Method("mst"),
    "singles": Method(None),
    "aim + mirror descent": Method("aim", STEPS),
    "oneshot's release + mirror descent": Method("oneshot", STEPS, True),
    "mst + mirror descent": Method("mst", MST_STEPS),
}

#: An order of Adult's attributes written down before any run: what people are born with, where and how they live, what
#: they do for it, what it brings; a sampling weight last.
ORDER = (
    *("sex", "race", "native-country", "age", "education-num", "marital-status", "relationship", "workclass"),
    *("occupation", "hours-per-week", "capital-gain", "capital-loss", "income>50K", "fnlwgt"),
)

DIRECTED = {
    "mst": Method("mst"),
    "aim": Method("aim"),
    "oneshot": Method("oneshot"),
    "privbayes 1": Method({"name": "privbayes", "parents": 1}),
    "privbayes": Method("privbayes"),
    "privbayes 3": Method({"name": "privbayes", "parents": 3}, order=4),
    "privbayes sense": Method({"name": "privbayes", "order": ORDER}),
    "privbayes + bayes-net": Method("privbayes", learner="bayes-net"),
    "privbayes sense + bayes-net": Method({"name": "privbayes", "order": ORDER}, learner="bayes-net"),
}


#: From the marginals of a model to plain numbers.
Judge = Callable[[Callable[[list[Clique]], Mapping[Clique, FloatArray]]], Mapping[str, float]]


def selection(
    method: str, table: Coded, epsilon: str, seed: int, *, delta: str = DELTA, judge: Judge | None = None
) -> dict[str, Any]:
    """One method on a table under (epsilon, delta). judge: of its marginals, by default their errors to the records."""
    return _selection(METHODS[method], table, Budget.approx(epsilon, delta), seed, judge)


def directed(method: str, table: Coded, kind: str, epsilon: str, seed: int) -> dict[str, Any]:
    """The same of those beside `privbayes`. kind: of the budget, "pure" or "approx"."""
    budget = Budget.pure(epsilon) if kind == "pure" else Budget.approx(epsilon, DELTA)
    return _selection(DIRECTED[method], table, budget, seed)


def _selection(method: Method, table: Coded, budget: Budget, seed: int, judge: Judge | None = None) -> dict[str, Any]:
    mirror = None if method.steps is None else MirrorDescent(steps=method.steps)
    chosen = method.selector is not None
    start = time.process_time()
    done = fit(
        table.codes,
        method.selector or Structure(table.domain, [(name,) for name in table.domain.names]),
        budget,
        "gaussian" if budget.kind == "approx" else "laplace",
        learner=method.learner if mirror is None or method.again else mirror,
        workload=_workload(table.domain, method.order) if chosen else None,
        terms=TERMS,
        randomness=SeededRandomness(seed),
    )
    if method.again and mirror is not None:
        done = learn(done.releases, mirror, structure=done.model.structure)
    # Before anything is judged: both are of the selection and its fits alone.
    found: dict[str, Any] = {"seconds": round(time.process_time() - start, 3), "peak": round(peak_megabytes(), 1)}
    found |= (judge or partial(off, table))(done.model.marginals_of)
    cliques = [frozenset(clique) for clique in done.model.structure.cliques]
    first = next((one for one in done.releases if one.session is not None), done.releases[0])
    steps = [step for one in done.releases if one.session is not None for step in one.steps]
    return found | {
        "choices": sum(len(step.cliques) for step in steps if isinstance(step, Choice)),
        "measured": sum(isinstance(step, NoisyTables) for step in steps),
        "tables": len(first.structure.cliques),
        "cells": done.model.structure.cells,
        "planted": len(table.planted),
        "lost": sum(not any(clique.issuperset(one) for clique in cliques) for one in table.planted),
        "release": _digest(first),
        "said": list(done.notes),
    }


def _workload(domain: Domain, order: int | None) -> Workload:
    default = Workload.default(domain)
    largest = max(map(len, default.weights))
    return default if order is None else Workload.all(domain, order=order if largest > 2 else largest)


def _digest(measured: NoisyTables) -> str:
    """The same for the same noisy tables: two fits to one selection are then of one release."""
    named = repr(measured.structure.cliques).encode() + np.asarray(measured.tables.values, np.float64).tobytes()
    return hashlib.sha256(named).hexdigest()[:12]


def noise(epsilon: str) -> dict[str, float]:
    """Standard deviations of one table's noise, records, when all is spent on it: ours as drawn, and that of mbi.

    mbi spends the largest rho with which its bound (Canonne, Kamath, Steinke 2020, Proposition 12) is at most delta.
    """
    ours = make("mechanism", "gaussian").noise(
        Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), Budget.approx(epsilon, DELTA).zcdp_within()
    )
    return {"ours": math.sqrt(ours.variance), "mbi": math.sqrt(1 / (2 * zcdp_within(float(epsilon), float(DELTA))))}


def zcdp_within(epsilon: float, delta: float) -> float:
    """Return the largest rho that mbi's bound turns into (epsilon, delta), by bisection to the last bit."""

    def log_delta(rho: float) -> float:
        low, high = 1.01, (epsilon + 1) / (2 * rho) + 2  # of the order; mbi's own range
        for _ in range(200):
            order = (low + high) / 2
            falling = (2 * order - 1) * rho - epsilon + math.log1p(-1 / order) < 0
            low, high = (order, high) if falling else (low, order)
        return (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)

    within, beyond = 0.0, epsilon + 1
    for _ in range(200):
        rho = (within + beyond) / 2
        within, beyond = (rho, beyond) if log_delta(rho) <= math.log(delta) else (within, rho)
    return within


def measured_by_hand(table: Coded, epsilon: str, seed: int) -> NoisyTables:
    """A release like those of selections: single attributes, a tree and two loops of them, with unequal noise."""
    rho = Budget.approx(epsilon, DELTA).zcdp_within().rho
    alone = Structure(table.domain, [(name,) for name in table.domain.names])
    joined = Structure(
        table.domain, [*TREES["adult"], ("age", "education-num"), ("sex", "marital-status", "income>50K")]
    )
    shares = ((alone, rho / 3, seed), (joined, 2 * rho / 3, 1000 + seed))
    return pool(
        [
            release(table.codes, one, Budget.zcdp(part), "gaussian", terms=TERMS, randomness=SeededRandomness(number))
            for one, part, number in shares
        ]
    )


def compared_fits(table: Coded, epsilon: str, seed: int) -> dict[str, Any]:
    """Our mirror descent and mbi's own on one release: errors, and the largest difference in a cell.

    After a hundred steps, and after all: on the way steps grow until one is too long, and what is left of rounding by
    then decides which. So a third fit starts a millionth of a billionth of a nat away: it is as far off as mbi is.
    """
    noisy = measured_by_hand(table, epsilon, seed)
    theirs = mbi_models(
        noisy.structure,
        np.asarray(noisy.tables.values, np.float64),
        np.sqrt(noisy.variances),
        total=noisy.total,
        stops=(100, STEPS),
    )
    engine, zero = JunctionTree(), np.zeros(noisy.structure.cells)
    start = time.process_time()
    ours = descend(engine, noisy, zero, STEPS)[0]
    spent = time.process_time() - start
    early = descend(engine, noisy, zero, 100)[0]
    nudge = 1e-15 * np.random.default_rng(seed).standard_normal(len(zero))
    fits = {"ours": ours, "nudged": descend(engine, noisy, nudge, STEPS)[0]}
    fits["mbi"] = Tables(noisy.structure, theirs.potentials)
    models = {name: Model(noisy.structure, potentials) for name, potentials in fits.items()}
    found: dict[str, Any] = {
        f"{name}_{error}": value
        for name, model in models.items()
        for error, value in off(table, model.marginals_of).items()
    }
    at_100 = (
        Model(noisy.structure, early).marginals()
        - Model(noisy.structure, Tables(noisy.structure, theirs.path[0])).marginals()
    )
    apart = models["ours"].marginals().values - theirs.marginals
    return found | {
        "apart_100": at_100.norm(math.inf),
        "apart": float(np.abs(apart).max()),
        "seconds": round(spent, 3),
        "mbi_seconds": round(theirs.seconds, 3),
        "mbi_compile": round(theirs.compile_seconds, 3),
    }
