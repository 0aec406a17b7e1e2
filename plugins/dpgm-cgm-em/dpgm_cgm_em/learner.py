"""CGM-EM: learn from noisy tables by treating the true ones as hidden (Bernstein et al. 2017, section 3.2).

One round of Algorithm 2 is an E-step, n_t = argmax theta_t.n + H(n) + log p(y|n), and an M-step, the maximum-likelihood
fit of n_t. With exact inference n_t = N mu(theta_t + u_t), so the M-step is theta_{t+1} = theta_t + u_t, for free. The
rounds are a proximal-point iteration in Kullback-Leibler divergence for min -log p(y|n) over the marginal polytope:
K of them merge into one with evidence weight K, and how far they go, tau = rounds * c with c = eps / |C| the bound of
the noise's score, is the regulariser: |theta - start| <= tau. Run to the end, EM fits zeros as naive MLE does
(docs/cgm-em.md).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import attrs
import numpy as np
from attrs import frozen

from dpgm_cgm_em.start import from_margins
from dpgm_core import (
    Collective,
    CollectiveBeliefs,
    Curator,
    Engine,
    Fit,
    FloatArray,
    Inference,
    InferenceError,
    Likelihood,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    Tables,
    component_option,
    expected_absolute,
    make,
    option,
)

__all__ = ["CgmEm"]

# One proximal step per this much of tau keeps the path's least KL within 2 % of unmerged EM's (benchmarks/cgm_em.py).
_STEP = 0.1
# Over how much of tau the plateau rule looks back, and the fall below which noise is all that is left to fit.
_WINDOW = 0.5
_FLAT = 0.05


def _positive(instance: object, attribute: Any, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} must be positive and finite, got {value}")


def _at_least_zero(instance: object, attribute: Any, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{attribute.name} must be at least 0 and finite, got {value}")


@frozen(kw_only=True)
class CgmEm:
    """EM over the hidden tables; `tau` is its capacity, and `stop` says when to end before it is used up.

    >>> CgmEm(tau=2.0, stop="fixed").tau
    2.0
    """

    e_step: Collective | str = component_option(
        "collective-dual", kind="collective", help="infers the hidden tables: collective-dual, nlbp or soft-sign"
    )
    tau: float = option(
        10.0,
        help="capacity: EM rounds times eps/|C|; no log-potential moves further than this from its start",
        unit="nats",
        validator=_positive,
    )
    steps: int | None = option(
        None,
        help="in how many proximal steps tau is reached (each merges EM rounds); none: one per 0.1 of tau",
        validator=attrs.validators.optional(attrs.validators.ge(1)),
    )
    stop: Literal["plateau", "discrepancy", "fixed"] = option(
        "plateau",
        help="'plateau' ends when the distance to the noisy tables has stopped falling quickly, 'discrepancy' when it "
        "is what the noise is expected to leave; 'fixed' uses up tau",
    )
    plateau: float = option(
        0.5,
        help="the relative fall of that distance per unit of tau below which the plateau rule ends",
        unit="1 / nats",
        validator=_positive,
    )
    discrepancy: float = option(
        0.85, help="the share of the expected noise that the discrepancy rule waits for", validator=_positive
    )
    start: Literal["uniform", "margins"] = option(
        "uniform", help="where EM starts: the uniform model, or independence with the noisy one-way margins"
    )
    prior: float = option(
        0.0,
        help="strength of a Gaussian prior on the log-potentials (an L2 penalty in each M-step)",
        unit="1 / nats, per record",
        validator=_at_least_zero,
    )
    tolerance: float = option(
        1e-6, help="of M-steps that have no closed form: largest derivative", unit="probability", validator=_positive
    )

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it. Raises InferenceError when the engine or the E-step fails."""
        release = curator.release()
        path = _Path(self, release, inference.compile(release.structure), progress)
        path.run()
        potentials = Tables(release.structure, path.theta)
        if curator.structure != release.structure:
            potentials = potentials.embed(curator.structure)
        last = path.trace[-1]
        certificate = {
            "tau": path.tau,
            "discrepancy": last["discrepancy"],
            "unconverged_steps": path.unconverged,
            "inference_calls": sum(row["inference_calls"] for row in path.trace),
        }
        if not math.isnan(last["gap"]):
            certificate["largest_gap"] = max(row["gap"] for row in path.trace)
        return Fit(
            model=Model(potentials.structure, potentials, release=release),
            release=release,
            trace=path.trace,
            converged=path.unconverged == 0,
            certificate=certificate,
            notes=path.notes(),
        )


class _Path:
    """The state of one EM run."""

    def __init__(self, settings: CgmEm, release: NoisyTables, engine: Engine, progress: Progress) -> None:
        self.settings, self.release, self.engine, self.progress = settings, release, engine, progress
        e_step: Collective = make("collective", settings.e_step)
        self.e_step = e_step.compile(engine, release)
        self.steps = settings.steps or max(1, round(settings.tau / _STEP))
        self.noisy = release.tables.values.astype(np.float64)
        # E |y - n|_1 of the true tables: what a fit should not undercut
        self.expected = sum(
            cells * expected_absolute(noise)
            for cells, noise in zip(release.structure.sizes, release.noise, strict=True)
        )
        self.theta: FloatArray = (
            from_margins(release).values if settings.start == "margins" else np.zeros(release.structure.cells)
        )
        self.trace: list[dict[str, float]] = []
        self.tau = 0.0
        self.unconverged = 0
        self.reached = False

    def run(self) -> None:
        """Proximal steps until tau is used up or the stopping rule ends them."""
        weight = self.settings.tau / (self.steps * score_bound(self.release))
        multipliers: Tables | None = None
        for step in range(self.steps):
            self.progress("learning", step, self.steps)
            beliefs = self.e_step.infer(
                Tables(self.release.structure, self.theta), evidence_weight=weight, start=multipliers
            )
            multipliers = beliefs.multipliers
            calls = self._maximise(beliefs)
            self.tau += self.settings.tau / self.steps
            self._record(beliefs, calls)
            if self.reached:
                return

    def _maximise(self, beliefs: CollectiveBeliefs) -> int:
        """The M-step: theta + u in closed form when that reproduces n, else by gradients from there."""
        self.theta = self.theta + beliefs.multipliers.values
        if np.any(np.isnan(self.theta)):
            raise InferenceError("the E-step returned NaN multipliers")
        if self.engine.exact and beliefs.residual <= self.settings.tolerance and self.settings.prior == 0:
            return beliefs.calls
        target = beliefs.marginals / self.release.total
        problem = Likelihood(self.engine, target, self.progress)
        self.theta, done = problem.minimise(self.theta, self.settings.prior, self.settings.tolerance, 500)
        self.unconverged += not done
        return beliefs.calls + problem.calls

    def _record(self, beliefs: CollectiveBeliefs, calls: int) -> None:
        residual = self.noisy - beliefs.marginals.values
        self.unconverged += not beliefs.converged
        distance = float(np.abs(residual).sum())
        # After the M-step the objective log p(n; theta) + log p(y|n) is log p(y|n) alone (ALGORITHMS A.5).
        objective = sum(
            float(noise.logpdf(residual[at]).sum())
            for noise, at in zip(self.release.noise, self.release.structure.slices, strict=True)
        )
        self.trace.append(
            {
                "tau": self.tau,
                "objective": objective,
                "gap": math.nan if beliefs.gap is None else beliefs.gap,
                "discrepancy": distance / max(self.expected, 1e-300),
                "inference_calls": calls,
            }
        )
        rules = {
            "plateau": self.fall() <= self.settings.plateau,
            "discrepancy": distance <= self.settings.discrepancy * self.expected,
            "fixed": False,
        }
        self.reached = rules[self.settings.stop]

    def fall(self) -> float:
        """-d log |y - n|_1 / d tau over the last stretch of the path; infinite before there is one."""
        back = math.ceil(_WINDOW * self.steps / self.settings.tau - 1e-9)
        if len(self.trace) <= back:
            return math.inf
        before, now = self.trace[-1 - back], self.trace[-1]
        shares = [max(row["discrepancy"], 1e-300) for row in (before, now)]
        return math.log(shares[0] / shares[1]) / (now["tau"] - before["tau"])

    def notes(self) -> list[str]:
        """What the user should know about where the path ended."""
        notes = []
        share = self.trace[-1]["discrepancy"]
        if self.unconverged:
            notes.append(
                f"{self.unconverged} of {len(self.trace)} E- or M-steps did not converge; take more steps, or give the "
                "e_step more inference calls"
            )
        if self.settings.stop != "fixed" and not self.reached:
            notes.append(
                f"tau = {self.settings.tau:g} was used up before the {self.settings.stop} rule was met (the model is "
                f"at {share:.2f} of the expected noise); raise tau if the model looks too flat"
            )
        if self.settings.stop != "plateau" and self.fall() < _FLAT:
            notes.append(
                f"EM is past the plateau: the last steps brought the model hardly nearer to the noisy tables (it is at "
                f"{share:.2f} of the expected noise) but drove empty cells on towards zero; lower tau, or use "
                "stop = 'plateau'"
            )
        return notes


def score_bound(release: NoisyTables) -> float:
    """c, the largest derivative of log p(y|n) in a cell, 1 / records: eps / |C| for Laplace noise.

    Gaussian noise has no bound; its mean absolute score sqrt(2 / (pi variance)) stands in for it.
    """
    bounds = []
    for noise in release.noise:
        term = noise.dual
        finite = term is not None and math.isfinite(term.bound)
        bounds.append(term.bound if term is not None and finite else math.sqrt(2 / (math.pi * noise.variance)))
    return max(bounds)
