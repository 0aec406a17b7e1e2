"""Methods that learn the tables of a given network from records, and how far each is off."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import field, frozen

from benchmarks.cases.networks import Network, family_counts
from benchmarks.harness.timing import cpu_seconds
from dpgm_core import (
    Array,
    Budget,
    Dag,
    Fit,
    FloatArray,
    NoisyTables,
    SeededRandomness,
    Tables,
    Terms,
    cpds,
    fit,
    learn,
    release,
)
from dpgm_core.learning import consistent
from dpgm_core.models.cpds import cpds_of
from dpgm_core.models.networks import network_of

__all__ = ["BASELINE", "EXACT", "METHODS", "Method", "by_counts", "fitted", "judged", "seconds", "tables_of"]

TERMS = Terms(neighbours="add-remove")
BASELINE, EXACT = "baseline", "non-private"

CpdTables = dict[str, FloatArray]


@frozen
class Method:
    """learner: and its options; None: each family's noisy counts by themselves, as the baseline has it. gaussian:
    (epsilon, 1/N) instead of epsilon. zcdp: the rho within that instead, which adds over releases. agree: tables are
    made to agree before each is read by itself; also the second stage's of a learner whose `smoothing` is 0."""

    learner: Mapping[str, Any] | None = None
    gaussian: bool = False
    zcdp: bool = False
    agree: bool = False

    def budget(self, epsilon: str, delta: Fraction) -> Budget:
        """What it may spend for this epsilon."""
        if not self.gaussian:
            return Budget.pure(epsilon)
        promised = Budget.approx(epsilon, delta)
        return promised.zcdp_within() if self.zcdp else promised

    @property
    def noise(self) -> str:
        """Its mechanism."""
        return "gaussian" if self.gaussian else "laplace"


@frozen(kw_only=True)
class Learned:
    """tables: attribute -> its learned table, as the method has it. for_kl: with none of its entries 0 by clipping.
    said: other facts of the run."""

    tables: CpdTables
    for_kl: CpdTables
    said: dict[str, Any] = field(factory=dict)


def two_stage(**options: Any) -> dict[str, Any]:
    """The paper's, as far as its text goes: a tenth of the budget first, and only the second look is learned from."""
    paper = {"first_share": 0.1, "sampling_rate": 0.1, "pool": False, "smoothing": 0}
    return {"name": "bayes-net-two-stage"} | paper | options


METHODS: dict[str, Method | None] = {
    EXACT: None,
    BASELINE: Method(),
    "baseline + consistency": Method(agree=True),
    "baseline Gaussian": Method(gaussian=True),
    "two-stage sampled": Method(two_stage(), agree=True),
    "two-stage": Method(two_stage(sampling_rate=1), agree=True),
    "two-stage errors alone": Method(two_stage(sampling_rate=1, weights="error"), agree=True),
    "two-stage pooled Gaussian": Method(
        two_stage(sampling_rate=1, weights="error", pool=True, smoothing=0.25, measure="maximal"),
        gaussian=True,
        zcdp=True,
    ),
    "bayes-net local": Method({"name": "bayes-net", "learner": "local"}),
    "bayes-net local Gaussian": Method({"name": "bayes-net", "learner": "local"}, gaussian=True),
    "bayes-net": Method({"name": "bayes-net"}),
    "bayes-net even Gaussian": Method({"name": "bayes-net", "split": "even"}, gaussian=True),
    "bayes-net Gaussian": Method({"name": "bayes-net"}, gaussian=True),
}


def judged(network: Network, method: str, epsilon: str, count: int, seed: int) -> dict[str, Any]:
    """One method on one draw of records: `kl` in nats, `l1` to the exact tables; `alone` and `asked`, L1, at epsilon 1.

    Every method gets the same records, and where it measures the same tables with the same noise, the same release.
    """
    records, chosen = network.records(count, seed), METHODS[method]
    start = time.process_time()
    if chosen is None:
        exact = cpds_of(family_counts(network.dag, records))[0]
        learned = Learned(tables=exact, for_kl=exact)
    else:
        learned = fitted(chosen, network.dag, records, epsilon, Fraction(1, count), seed)
    spent = time.process_time() - start
    errors = {"kl": network.divergence(learned.for_kl), "l1": network.off_the_records(learned.tables, records)}
    if epsilon == "1":  # more work than most methods are
        errors["alone"], errors["asked"] = network.answers_off(learned.for_kl)
    if learned.tables is not learned.for_kl:
        errors["kl_clipped"] = network.divergence(learned.tables)
    return {name: float(f"{error:.6g}") for name, error in errors.items()} | learned.said | {"seconds": round(spent, 3)}


def fitted(method: Method, dag: Dag, records: Array, epsilon: str, delta: Fraction, seed: int) -> Learned:
    """A private method's tables."""
    budget = method.budget(epsilon, delta)
    if method.learner is None:
        noisy = release(
            records, dag.structure(), budget, method.noise, terms=TERMS, randomness=SeededRandomness(seed), split="even"
        )
        return by_counts(noisy, dag, agree=method.agree)
    done = fit(
        records,
        dag.structure(),
        budget,
        method.noise,
        method.learner,
        terms=TERMS,
        randomness=SeededRandomness(seed),
    )
    tables, said = tables_of(done), {"converged": done.converged}
    if method.agree:
        # Its own tables are clipped at 0, which KL does not forgive: read the second look as the baseline reads its.
        last = done.releases[-1]
        return Learned(tables=tables, for_kl=by_counts(last, dag, agree=True).for_kl, said=said)
    return Learned(tables=tables, for_kl=tables, said=said)


def tables_of(done: Fit) -> CpdTables:
    """Of a fit that is a network; without inference."""
    return network_of(done.model)[1]


def by_counts(noisy: NoisyTables, dag: Dag, *, agree: bool) -> Learned:
    """The baseline's reading of noisy counts: negative ones are 0; for KL one more in each cell (Dirichlet prior)."""
    tables = Tables(noisy.structure, np.asarray(noisy.tables.values, dtype=np.float64))
    if agree:
        tables = consistent(tables, noisy.variances)
    counts = {family[0]: np.maximum(tables[family], 0) for family in dag.families}
    posterior = cpds_of({name: count + 1 for name, count in counts.items()})[0]
    return Learned(tables=cpds_of(counts)[0], for_kl=posterior)


def seconds(network: Network, method: str, epsilon: str, count: int, seed: int) -> dict[str, Any]:
    """CPU seconds of a whole run, and of the learning alone, from the release in hand; and the error."""
    chosen = METHODS[method]
    if chosen is None or chosen.learner is None:
        raise ValueError(f"{method} has no learner to time")
    records, structure = network.records(count, seed), network.dag.structure()
    budget = chosen.budget(epsilon, Fraction(1, count))
    start = time.process_time()
    done = fit(records, structure, budget, chosen.noise, chosen.learner, terms=TERMS, randomness=SeededRandomness(seed))
    whole = time.process_time() - start
    alone = cpu_seconds(
        lambda: learn(done.releases, chosen.learner or {}, structure=structure), runs=3 if whole < 3 else 1
    )
    found = {"whole": round(whole, 3), "learning": round(alone, 4), "nodes": len(network.dag.domain)}
    return found | {"kl": network.divergence(cpds(done.model, network.dag)), "converged": done.converged}
