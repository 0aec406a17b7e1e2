"""What `benchmarks.bayes_net` runs on the Adult table: learners of two given graphs, and private selection."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from benchmarks.cases.census import load
from benchmarks.cases.coded import Coded, off
from benchmarks.cases.networks import SMOOTHING, family_counts
from benchmarks.cases.people import sensible, wrong
from benchmarks.protocol.directed import TERMS, by_counts
from dpgm_core import Array, Budget, Dag, Domain, IntArray, Model, SeededRandomness, Structure, Workload, fit, release
from dpgm_core.models.cpds import cpds_of

__all__ = ["DELTA", "GRAPHS", "NO_NOISE", "PEOPLE", "REFERENCES", "likelihood", "of_people"]

DELTA = "1e-9"
#: Of a cell: what stands for its epsilon and its promise.
NO_NOISE = "inf none"
GRAPHS = {"sensible": sensible, "wrong": wrong}


@frozen
class Method:
    """graph: of `GRAPHS`; None: `select` chooses. learner: None is the baseline, each family's counts by themselves.
    undirected: the graph's largest families as cliques, and the model as it comes out. exact: tables without noise,
    NOT PRIVATE."""

    graph: str | None = None
    learner: Mapping[str, Any] | str | None = None
    undirected: bool = False
    select: str = ""
    exact: bool = False


PEOPLE = {
    f"{name} on {graph} graph": method
    for graph in GRAPHS
    for name, method in {
        "baseline": Method(graph),
        "bayes-net local": Method(graph, {"name": "bayes-net", "learner": "local"}),
        "bayes-net": Method(graph, "bayes-net"),
        "undirected": Method(graph, "eb-map", undirected=True),
    }.items()
} | {"mst": Method(learner="eb-map", select="mst"), "auto": Method(learner="eb-map", select="auto")}
REFERENCES = {f"exact tables on {graph} graph": Method(graph, exact=True) for graph in GRAPHS}


def of_people(name: str, folder: Path, epsilon: str, promise: str, seed: int) -> dict[str, Any]:
    """`error2`: mean total variation distance over all pairs to the training records; `loglik`: nats per held-out one.

    promise: "pure", "delta" for (epsilon, 1e-9), or "none" for the references.
    """
    census, method = load(folder, "adult"), (PEOPLE | REFERENCES)[name]
    start = time.process_time()
    if method.exact:
        model = _exact(GRAPHS[method.graph or ""](census.domain), census.training)
    else:
        budget = Budget.pure(epsilon) if promise == "pure" else Budget.approx(epsilon, DELTA)
        model = _model(method, census.domain, census.training, budget, seed)
    spent = time.process_time() - start
    table = Coded(domain=census.domain, codes=census.training)
    errors = off(table, model.marginals_of, largest=2)
    return errors | {
        "loglik": likelihood(model, census.heldout),
        "seconds": round(spent, 3),
        "cells": model.structure.cells,
    }


def _exact(dag: Dag, records: IntArray) -> Model:
    """The shares of the records themselves, rows that nobody is in uniform."""
    return Model.from_cpds(dag, cpds_of(family_counts(dag, records))[0])


def likelihood(model: Model, records: IntArray) -> float:
    """Mean of log((1 - 1e-4) p(x) + 1e-4 / states) over records: a selection's model may rule a rare code out."""
    whole, names = model.expanded(), model.domain.names
    logs = np.full(len(records), -model.log_partition)
    for clique in whole.structure.cliques:
        logs += whole[clique][tuple(records[:, names.index(name)] for name in clique)]
    uniform = -float(np.log(list(model.domain.sizes.values())).sum())
    return float(np.logaddexp(np.log1p(-SMOOTHING) + logs, np.log(SMOOTHING) + uniform).mean())


def _model(method: Method, domain: Domain, records: Array, budget: Budget, seed: int) -> Model:
    noise = "laplace" if budget.kind == "pure" else "gaussian"
    drawn = SeededRandomness(seed)
    if method.graph is None:
        workload = Workload.all(domain, order=2)
        learner = method.learner or ""
        return fit(
            records, method.select, budget, learner=learner, workload=workload, terms=TERMS, randomness=drawn
        ).model
    dag: Dag = GRAPHS[method.graph](domain)
    if method.learner is None:
        noisy = release(records, dag.structure(), budget, noise, terms=TERMS, randomness=drawn)
        return Model.from_cpds(dag, by_counts(noisy, dag, agree=False).for_kl)
    structure = Structure(domain, dag.maximal) if method.undirected else dag.structure()
    split = "optimal" if method.undirected else "even"  # the learner of networks asks for its own
    return fit(records, structure, budget, noise, method.learner, terms=TERMS, randomness=drawn, split=split).model
