"""Checks of collective inference engines against enumeration; the base engine is the junction tree."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import DpgmError
from dpgm_core.inference.collective.contract import CollectiveBeliefs
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables
from dpgm_testing.check import Checklist, explore, require, require_refusal
from dpgm_testing.checks.unusual import COLLECTIVE
from dpgm_testing.evidence import EVIDENCE, NOISES, evidence_on, solved, theta_on, torn
from dpgm_testing.oracles import enumerated, in_marginal_polytope, incidence
from dpgm_testing.reference import example_release
from dpgm_testing.strategies import awkward_structures, noisy_tables, structures
from dpgm_testing.subjects import CollectiveSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("collective")


# --- Tables and gap -------------------------------------------------------------------------------


def _every(*weights: float) -> list[tuple[str, str, float]]:
    return [(name, noise, weight) for name in EVIDENCE for noise in NOISES for weight in weights or (0.5, 5.0)]


def _log_evidence(evidence: NoisyTables, tables: FloatArray) -> float:
    residual = evidence.tables.values - tables
    return sum(
        float(noise.logpdf(residual[at]).sum())
        for noise, at in zip(evidence.noise, evidence.structure.slices, strict=True)
    )


def _gap(evidence: NoisyTables, weight: float, beliefs: CollectiveBeliefs) -> float:
    """The duality gap of (n, u) by Fenchel and Young, from logpdf and the dual term: sum psi(r) + psi*(u) - u r."""
    residual, u = evidence.tables.values - beliefs.marginals.values, beliefs.multipliers.values
    zero = _log_evidence(evidence, evidence.tables.values.astype(np.float64))
    misfit = weight * (zero - _log_evidence(evidence, beliefs.marginals.values))
    conjugate = 0.0
    for noise, at in zip(evidence.noise, evidence.structure.slices, strict=True):
        term = noise.dual
        assert term is not None  # the reference noises have one
        conjugate += float(np.sum(term.curvature / weight * u[at] ** 2 / 2))
    return misfit + conjugate - float(u @ residual)


@CHECKS.add()
def tables_sum_to_the_total(subject: CollectiveSubject) -> None:
    """n is finite, non-negative and sums to the evidence's total times the cliques of each group, whatever the noisy
    tables hold."""

    def claim(evidence: NoisyTables) -> None:
        engine: Engine = JunctionTree().compile(evidence.structure)
        beliefs = subject.component.compile(engine, evidence).infer(Tables.zeros(evidence.structure))
        values = beliefs.marginals.values
        where = f"on cliques {evidence.structure.groups} with noisy tables {evidence.tables.values.tolist()}"
        require(bool(np.isfinite(values).all() and (values >= -1e-9).all()), f"a cell is negative or NaN {where}")
        near = np.allclose(beliefs.marginals.sums(), evidence.totals, rtol=1e-6)
        require(near, f"the tables sum to {beliefs.marginals.sums()}, not {evidence.totals}, {where}")
        require(beliefs.marginals.structure == evidence.structure, f"the tables are over another structure {where}")

    small = noisy_tables(over=structures(max_size=3, max_attributes=4, max_cliques=4))
    worst = [evidence_on(name, noise) for name in EVIDENCE for noise in NOISES]
    explore(subject.profile, small, claim, worst=worst, share=0.3)


@CHECKS.add()
def tables_in_the_marginal_polytope(subject: CollectiveSubject) -> None:
    """Over an exact engine n / N is the marginals of some distribution over records (linear program)."""
    for name, noise, weight in _every():
        marginals = solved(subject.component, name, noise, weight).marginals / evidence_on(name, noise).total
        inside = in_marginal_polytope(marginals, tolerance=1e-6)
        require(inside, f"{name}, {noise}, weight {weight}: no distribution over records has these tables")


@CHECKS.add()
def evidence_is_heeded(subject: CollectiveSubject) -> None:
    """log p(y|n) is at least that of the model without evidence, for weights of up to 1. Cannot show: how far it should
    go."""
    for name, noise, weight in _every(0.3, 1.0):
        evidence = evidence_on(name, noise)
        found = _log_evidence(evidence, solved(subject.component, name, noise, weight).marginals.values)
        before = _log_evidence(evidence, (evidence.total * enumerated(theta_on(evidence.structure)).marginals).values)
        require(
            found >= before - 1e-6 * (1 + abs(before)),
            f"{name}, {noise}, weight {weight}: log p(y|n) falls from {before:.6g} to {found:.6g}",
        )


@CHECKS.add()
def no_evidence_gives_the_model(subject: CollectiveSubject) -> None:
    """As the weight goes to 0, n goes to N mu(theta)."""
    for name in EVIDENCE:
        evidence = evidence_on(name)
        found = solved(subject.component, name, weight=1e-9).marginals.values / evidence.total
        expected = enumerated(theta_on(evidence.structure)).marginals.values
        require(np.allclose(found, expected, atol=1e-4), f"{name}: at weight 1e-9 n is not N mu(theta)")


@CHECKS.add()
def multipliers_explain_the_tables(subject: CollectiveSubject) -> None:
    """Over an exact engine n = N mu(theta + u), to 1e-5 of N and the change of its last step that `residual` admits, of
    which at most 1e-3 counts where it says converged. Cannot show: an honest `residual` short of convergence."""
    for name, noise, weight in _every():
        beliefs = solved(subject.component, name, noise, weight)
        where = f"{name}, {noise}, weight {weight}"
        require(beliefs.residual >= 0, f"{where}: the residual is {beliefs.residual}, no number of at least 0")
        total = evidence_on(name, noise).total
        implied = total * enumerated(theta_on(beliefs.marginals.structure) + beliefs.multipliers).marginals
        off = float(np.abs(implied.values - beliefs.marginals.values).max()) / total
        admitted = min(beliefs.residual, 1e-3) if beliefs.converged else beliefs.residual
        require(off <= 1e-5 + admitted, f"{where}: n differs from N mu(theta + u) by {off:.3g} of the records")


@CHECKS.add()
def quiet_tables_count_for_more(subject: CollectiveSubject) -> None:
    """Where two tables contradict each other n lies nearer to the one with a tenth of the other's noise, whichever it
    is."""
    for noise in ("Laplace", "Gaussian"):
        for quiet in (0, 1):
            evidence = torn(quiet, noise)
            engine: Engine = JunctionTree().compile(evidence.structure)
            found = subject.component.compile(engine, evidence).infer(Tables.zeros(evidence.structure))
            share = found.marginals.group(quiet).sum(axis=quiet)[0] / evidence.total
            nearer = share > 0.5 if quiet == 0 else share < 0.5
            require(
                nearer and abs(share - 0.5) > 0.01,
                f"{noise}: P(b = 0) is {0.8 - 0.6 * quiet:.1f} in the table with little noise, {0.2 + 0.6 * quiet:.1f} "
                f"in the one with ten times as much, and {share:.4f} in n",
            )


@CHECKS.add(needs="certificate")
def gap_is_a_certificate(subject: CollectiveSubject) -> None:
    """With n = N mu(theta + u), u within the noise's dual bound, the duality gap computed from logpdf is what is
    claimed."""
    for name, noise, weight in _every():
        evidence = evidence_on(name, noise)
        beliefs = solved(subject.component, name, noise, weight)
        where = f"{name}, {noise}, weight {weight}"
        if beliefs.gap is None:
            continue
        theta = theta_on(evidence.structure)
        implied = evidence.total * enumerated(theta + beliefs.multipliers).marginals
        off = float(np.abs(implied.values - beliefs.marginals.values).max())
        require(off <= 1e-5 * evidence.total, f"{where}: n differs from N mu(theta + u) by {off:.3g} records")
        bounds = evidence.tables.repeat([weight * (one.dual.bound if one.dual else math.inf) for one in evidence.noise])
        inside = bool((np.abs(beliefs.multipliers.values) <= bounds * (1 + 1e-9)).all())
        require(inside, f"{where}: a multiplier is beyond the dual bound")
        own = _gap(evidence, weight, beliefs)
        scale = 1 + abs(beliefs.objective)
        require(own <= beliefs.gap + 1e-7 * scale, f"{where}: the gap is {own:.6g}, not {beliefs.gap:.6g} as claimed")
        if beliefs.converged:
            require(own <= 1e-2 * scale, f"{where}: it says converged at a gap of {own:.3g}")


@CHECKS.add(needs="certificate")
def answer_does_not_depend_on_the_start(subject: CollectiveSubject) -> None:
    """From other multipliers the tables are the same within what both gaps allow. Cannot show: engines without a gap,
    whose answer may be one of several fixed points."""
    for name in ("chain", "cycle"):
        evidence = evidence_on(name)
        start = Tables(evidence.structure, np.random.default_rng(5).normal(size=evidence.structure.cells))
        one, two = (solved(subject.component, name, start=first) for first in (None, start))
        # n minimises something 1/N-strongly convex in the L1 norm of n (Pinsker): |n - n*|_1^2 <= 2 N gap per table
        allowed = sum(math.sqrt(2 * evidence.total * max(x.gap or 0.0, 1e-9)) for x in (one, two))
        per_table = np.abs(one.marginals.values - two.marginals.values)
        worst = max(float(per_table[at].sum()) for at in evidence.structure.slices)
        require(worst <= allowed + 1e-3, f"{name}: from another start n moves by {worst:.3g} records")


@CHECKS.add(needs="certificate")
def certain_evidence_is_followed(subject: CollectiveSubject) -> None:
    """Consistent tables believed tenfold are reproduced within 2 % of N, if it says converged."""
    structure = awkward_structures()["cycle"]
    matrix = incidence(structure)
    true = matrix @ np.random.default_rng(4).multinomial(4000, np.full(matrix.shape[1], 1 / matrix.shape[1]))
    evidence = example_release(structure, true.astype(np.int64), total=4000)
    engine: Engine = JunctionTree().compile(structure)
    found = subject.component.compile(engine, evidence).infer(theta_on(structure), evidence_weight=10.0)
    if not found.converged:
        return
    off = float(np.abs(found.marginals.values - true).max())
    require(off <= 80, f"a cell is {off:.1f} of 4000 records away from tables that are all but certain")


@CHECKS.add()
def approximate_engines_will_do(subject: CollectiveSubject) -> None:
    """Over loopy belief propagation on a cycle the tables still sum to the total, and no certificate is claimed."""
    evidence = evidence_on("cycle")
    engine: Engine = LoopyBP().compile(evidence.structure)
    beliefs = subject.component.compile(engine, evidence).infer(theta_on(evidence.structure))
    require(np.allclose(beliefs.marginals.sums(), evidence.totals, rtol=1e-5), "the tables do not sum to the total")
    require(beliefs.gap is None, "a duality gap is claimed although the engine is approximate")


@CHECKS.add()
def calls_are_independent(subject: CollectiveSubject) -> None:
    """The same potentials give the same answer after other calls, and earlier results do not change."""
    evidence = evidence_on("cycle")
    engine: Engine = JunctionTree().compile(evidence.structure)
    bound = subject.component.compile(engine, evidence)
    theta = theta_on(evidence.structure)
    first = bound.infer(theta)
    kept = first.marginals.values.copy()
    bound.infer(theta_on(evidence.structure, seed=9), evidence_weight=3.0)
    require(np.array_equal(kept, first.marginals.values), "a later call overwrote an earlier result")
    again = bound.infer(theta)
    require(np.array_equal(kept, again.marginals.values), "another call changed the answer")


@CHECKS.add()
def nonsense_is_refused(subject: CollectiveSubject) -> None:
    """NaN potentials, weights that are no positive finite number and evidence over another structure raise errors of
    dpgm."""
    evidence = evidence_on("chain")
    structure = evidence.structure
    engine: Engine = JunctionTree().compile(structure)
    bound = subject.component.compile(engine, evidence)
    calls = {f"weight {bad!r}": (Tables.zeros(structure), bad) for bad in (math.nan, 0.0, -1.0, math.inf)}
    calls["NaN potentials"] = (Tables(structure, np.full(structure.cells, np.nan)), 1.0)
    for what, (theta, weight) in calls.items():
        require_refusal(what, partial(bound.infer, theta, evidence_weight=weight), DpgmError)
    compile_other = partial(subject.component.compile, engine, evidence_on("cycle"))
    require_refusal("evidence over another structure", compile_other, DpgmError, answered="is taken, not refused")


# --- The objective --------------------------------------------------------------------------------

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
    """`objective` is at most theta.n + H(n) + w log p(y|n), log p counted from n = y, by enumeration."""
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
    n) / sigma^2, to what the gap admits; converged means a gap of at most half the misfit."""
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


CHECKS += COLLECTIVE
