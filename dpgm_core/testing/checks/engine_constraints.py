"""What an engine that says it honours constraints must keep: impossible records have probability 0 in all it does."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpgm_core.arrays import Array, Codes
from dpgm_core.domain import Domain
from dpgm_core.inference.contract import Engine, Maximizer, Querier, Rounder, Sampler
from dpgm_core.structure import Clique
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, Unserved, require
from dpgm_core.testing.checks.engine import close
from dpgm_core.testing.constrained import constrained_structures
from dpgm_core.testing.oracles import enumerated
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")

_RECORDS = 2000


@CHECKS.add(needs="constraints")
def impossible_records_have_probability_zero(subject: InferenceSubject) -> None:
    """Over domains with listed combinations, a map and an order, inside its cliques and across them, ruled-out cells
    are exactly 0 in marginals and answers, and the most probable record and all draws break no constraint; an exact
    engine gives every cell, and log Z, as enumeration of the possible records does. Cannot show: constraints of other
    forms, which engines see as the same masks."""
    for name, structure in constrained_structures().items():
        try:
            engine = subject.engine(structure)
        except Unserved:
            continue
        require("constraints" in engine.capabilities, f"{name}: the engine does not say that it honours constraints")
        theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
        truth, beliefs = enumerated(theta), engine.infer(theta)
        alone = structure.impossible  # what several constraints rule out together an approximate engine may miss
        zero = (
            truth.marginals.values == 0 if engine.exact else np.zeros(structure.cells, bool) if alone is None else alone
        )
        require(not beliefs.marginals.values[zero].any(), f"{name}: a cell where no record can be is not 0")
        if engine.exact:
            require(close(beliefs.marginals.values, truth.marginals.values, 1e-7), f"{name}: marginals are others")
            near = math.isclose(beliefs.log_partition, truth.log_partition, rel_tol=1e-9, abs_tol=1e-7)
            require(near, f"{name}: log Z is {beliefs.log_partition:.9g}, not {truth.log_partition:.9g}")
        _check_answers(name, engine, theta)
        _check_records(name, engine, theta)


def _check_answers(name: str, engine: Engine, theta: Tables) -> None:
    if "query" not in engine.capabilities or not isinstance(engine, Querier):
        return
    domain = theta.structure.domain
    queries: list[Clique] = [*domain.scopes, domain.names]
    for query, table in zip(queries, engine.answers(theta, queries), strict=True):
        impossible = domain.impossible(query)
        require(
            impossible is None or not table[impossible].any(), f"{name}: p{query} is above 0 where no record can be"
        )


def _check_records(name: str, engine: Engine, theta: Tables) -> None:
    domain = theta.structure.domain
    if "maximize" in engine.capabilities and isinstance(engine, Maximizer):
        record, _ = engine.maximize(theta)
        _possible(f"{name}: the most probable record", domain, {key: np.array([code]) for key, code in record.items()})
    drawn: dict[str, Codes] = {}
    if "sample" in engine.capabilities and isinstance(engine, Sampler):
        drawn["sample"] = engine.sample(theta, _RECORDS, np.random.default_rng(2))
    if "rounded" in engine.capabilities and isinstance(engine, Rounder):
        drawn["rounded"] = engine.rounded(theta, _RECORDS, np.random.default_rng(2))
    for what, codes in drawn.items():
        _possible(f"{name}: a record of `{what}`", domain, dict(zip(domain.names, codes, strict=True)))


def _possible(what: str, domain: Domain, columns: Mapping[str, Array]) -> None:
    broken = [rule for rule, count in domain.broken(columns).items() if count]
    require(not broken, f"{what} breaks constraint {', '.join(map(repr, broken))}")
