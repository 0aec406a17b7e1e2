"""What a collective engine says of its objective: no more than its tables are worth, and within its gap of the best."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpgm_core.arrays import FloatArray
from dpgm_core.collective.contract import CollectiveBeliefs
from dpgm_core.releases.release import NoisyTables
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.evidence import NOISES, evidence_on, solved, theta_on
from dpgm_core.testing.oracles import incidence
from dpgm_core.testing.subjects import CollectiveSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("collective")

# Structures of cliques that lie apart, in a loop, inside one another and tied; weights as EM steps take them.
_ON, _WEIGHTS = ("chain", "cycle", "nested", "tied"), {"Laplace": 0.5, "Gaussian": 5.0}
# What rounding and the reference's own tolerance leave open, as a share of the objective.
_ROUNDING = 1e-6


def _terms(evidence: NoisyTables, weight: float) -> tuple[FloatArray, FloatArray]:
    """Bound and curvature of psi* of each cell at this weight, (cells,) each; the reference noises have both."""
    duals = [noise.dual for noise in evidence.noise]
    bound = evidence.tables.repeat([weight * one.bound if one else np.inf for one in duals])
    return bound, evidence.tables.repeat([one.curvature / weight if one else 0.0 for one in duals])


def _misfit(evidence: NoisyTables, weight: float, tables: FloatArray) -> float:
    """-w log p(y|n), nats, 0 at n = y."""
    residual = evidence.tables.values - tables
    return -weight * sum(
        float((noise.logpdf(residual[at]) - noise.logpdf(np.zeros_like(residual[at]))).sum())
        for noise, at in zip(evidence.noise, evidence.structure.slices, strict=True)
    )


class _Dual:
    """u -> N A(theta + u) - u.y + psi*(u) with its slope, on the enumerated problem: no objective is larger."""

    def __init__(self, name: str, noise: str, weight: float) -> None:
        evidence = evidence_on(name, noise)
        self.total, self.noisy = evidence.total, evidence.tables.values.astype(np.float64)
        self.matrix, self.theta = incidence(evidence.structure), theta_on(evidence.structure).values
        self.bound, self.curvature = _terms(evidence, weight)

    def __call__(self, u: FloatArray) -> tuple[float, FloatArray]:
        logs = self.matrix.T @ (self.theta + u)
        top = float(logsumexp(logs))
        marginals = self.total * (self.matrix @ np.exp(logs - top))
        value = self.total * top - float(u @ self.noisy) + float(np.sum(self.curvature * u**2) / 2)
        return value, marginals - self.noisy + self.curvature * u

    def least(self) -> float:
        """The least value that L-BFGS finds from u = 0."""
        options = {"maxiter": 100, "ftol": 1e-12, "gtol": 1e-6, "maxcor": 30}
        ends = list(zip(-self.bound, self.bound, strict=True))
        found = minimize(self, np.zeros(len(self.noisy)), jac=True, method="L-BFGS-B", bounds=ends, options=options)
        return float(found.fun)


@lru_cache(maxsize=128)
def _best(name: str, noise: str, weight: float) -> tuple[_Dual, float]:
    dual = _Dual(name, noise, weight)
    return dual, dual.least()


def _cases(subject: CollectiveSubject) -> list[tuple[str, str, float, CollectiveBeliefs]]:
    cases = [(name, noise, _WEIGHTS[noise.split()[-1]]) for name in _ON for noise in NOISES]
    return [(*case, solved(subject.component, *case)) for case in cases]


@CHECKS.add()
def objective_is_no_more_than_its_tables_are_worth(subject: CollectiveSubject) -> None:
    """`objective` is at most theta.n + H(n) + w log p(y|n), log p counted from n = y, by enumeration. Cannot show:
    that it is not less."""
    for name, noise, weight, beliefs in _cases(subject):
        evidence = evidence_on(name, noise)
        u, tables = beliefs.multipliers.values, beliefs.marginals.values
        tilted = incidence(evidence.structure).T @ (theta_on(evidence.structure).values + u)
        worth = evidence.total * float(logsumexp(tilted)) - float(u @ tables) - _misfit(evidence, weight, tables)
        require(
            beliefs.objective <= worth + _ROUNDING * (1 + abs(worth)),
            f"{name}, {noise}, weight {weight}: the objective is said to be {beliefs.objective:.8g}, and its tables "
            f"are worth {worth:.8g} at most",
        )


@CHECKS.add(needs="certificate")
def objective_is_within_its_gap_of_the_best(subject: CollectiveSubject) -> None:
    """`objective` is within its gap of the enumerated dual's least value; under Gaussian noise multipliers are w (y -
    n) / sigma^2, to what the gap admits; converged means a gap of at most half the misfit. Cannot show: engines
    without a gap, which claim no maximum."""
    for name, noise, weight, beliefs in _cases(subject):
        if beliefs.gap is None:
            continue
        evidence, (dual, best) = evidence_on(name, noise), _best(name, noise, weight)
        best = min(best, dual(np.clip(beliefs.multipliers.values, -dual.bound, dual.bound))[0])
        where, slack = f"{name}, {noise}, weight {weight}", _ROUNDING * (1 + abs(best))
        require(
            best - beliefs.gap - slack <= beliefs.objective <= best + slack,
            f"{where}: the objective is {beliefs.objective:.8g}, the best is {best:.8g}, and the gap {beliefs.gap:.3g}",
        )
        tables = beliefs.marginals.values
        if noise.endswith("Gaussian"):
            off = beliefs.multipliers.values - (evidence.tables.values - tables) / dual.curvature
            open_ = float(np.sum(dual.curvature * off**2) / 2)
            require(
                open_ <= beliefs.gap + slack,
                f"{where}: the multipliers are not the weighted residual: they leave {open_:.3g} nats open, of which "
                f"the gap admits {beliefs.gap:.3g}",
            )
        misfit = _misfit(evidence, weight, tables)
        if beliefs.converged:
            require(
                beliefs.gap <= misfit / 2 + slack,
                f"{where}: it says converged at a gap of {beliefs.gap:.3g}, of {misfit:.3g} nats of evidence",
            )
