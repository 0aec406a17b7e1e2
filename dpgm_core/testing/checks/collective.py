"""What every collective engine must keep: tables some data set could have, pulled towards the evidence, and a gap that
is a certificate where one is given. The judge is enumeration; the base engine is core's junction tree."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.collective.contract import CollectiveBeliefs
from dpgm_core.errors import DpgmError
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, explore, require
from dpgm_core.testing.checks import collective_optimum as checks_collective_optimum
from dpgm_core.testing.checks.unusual import COLLECTIVE
from dpgm_core.testing.evidence import EVIDENCE, NOISES, evidence_on, solved, theta_on, torn
from dpgm_core.testing.oracles import enumerated, in_marginal_polytope, incidence
from dpgm_core.testing.reference import example_release
from dpgm_core.testing.strategies import awkward_structures, noisy_tables, structures
from dpgm_core.testing.subjects import CollectiveSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("collective")


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
    tables hold. Cannot show: that n is the right one."""

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
    """Over an exact engine n / N is the marginals of some distribution over records (linear program). Cannot show:
    that it is the best one."""
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
    """As the weight goes to 0, n goes to N mu(theta). Cannot show: anything about ordinary weights."""
    for name in EVIDENCE:
        evidence = evidence_on(name)
        found = solved(subject.component, name, weight=1e-9).marginals.values / evidence.total
        expected = enumerated(theta_on(evidence.structure)).marginals.values
        require(np.allclose(found, expected, atol=1e-4), f"{name}: at weight 1e-9 n is not N mu(theta)")


@CHECKS.add()
def multipliers_explain_the_tables(subject: CollectiveSubject) -> None:
    """Over an exact engine n = N mu(theta + u), to 1e-5 of N and the change of its last step that `residual` admits, of
    which no more than 1e-3 counts where it says converged. Cannot show: an honest `residual` short of convergence."""
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
    is, so noise that differs between tables is not taken for the same. Cannot show: how much nearer it should be."""
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
    claimed: n is that close to the best. Cannot show: engines without a gap."""
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
    """From other multipliers the tables found are the same within what both gaps allow. Cannot show: engines without a
    gap, whose answer may be one of several fixed points."""
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
    """Consistent tables believed tenfold are reproduced within 2 % of N, if it says converged. Cannot show:
    inconsistent tables."""
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
    """Over loopy belief propagation on a cycle the tables still sum to the total, and no certificate is claimed.
    Cannot show: how good the answer is."""
    evidence = evidence_on("cycle")
    engine: Engine = LoopyBP().compile(evidence.structure)
    beliefs = subject.component.compile(engine, evidence).infer(theta_on(evidence.structure))
    require(np.allclose(beliefs.marginals.sums(), evidence.totals, rtol=1e-5), "the tables do not sum to the total")
    require(beliefs.gap is None, "a duality gap is claimed although the engine is approximate")


@CHECKS.add()
def calls_are_independent(subject: CollectiveSubject) -> None:
    """The same potentials give the same answer after other calls, and earlier results do not change. Cannot show:
    calls from several threads."""
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
    dpgm. Cannot show: that every message says what would do."""
    evidence = evidence_on("chain")
    structure = evidence.structure
    engine: Engine = JunctionTree().compile(structure)
    bound = subject.component.compile(engine, evidence)
    calls = {f"weight {bad!r}": (Tables.zeros(structure), bad) for bad in (math.nan, 0.0, -1.0, math.inf)}
    calls["NaN potentials"] = (Tables(structure, np.full(structure.cells, np.nan)), 1.0)
    for what, (theta, weight) in calls.items():
        try:
            bound.infer(theta, evidence_weight=weight)
        except DpgmError:
            continue
        require(False, f"{what} is answered, not refused")
    try:
        subject.component.compile(engine, evidence_on("cycle"))
    except DpgmError:
        return
    require(False, "evidence over another structure is taken, not refused")


CHECKS += checks_collective_optimum.CHECKS
CHECKS += COLLECTIVE
