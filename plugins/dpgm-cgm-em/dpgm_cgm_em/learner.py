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
from collections.abc import Callable
from functools import partial
from typing import Literal

import attrs
import numpy as np
from attrs import evolve, frozen

from dpgm_cgm_em.path import Path
from dpgm_core import (
    Collective,
    Curator,
    Engine,
    Fit,
    FloatArray,
    Inference,
    Model,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Structure,
    Tables,
    at_least_zero,
    component_option,
    make,
    option,
    positive,
    silent,
    whole,
)
from dpgm_core.inference import engine_name, require_log_concave, steady
from dpgm_core.learning import Rehearsal, Resources, expected_distance

__all__ = ["PILOT", "CgmEm", "by_bootstrap"]

# One proximal step per this much of tau keeps the path's least KL within 2 % of unmerged EM's (benchmarks/cgm_em.py).
_STEP = 0.1
# How far a path goes at most when its end is left to a rule.
_MAX_TAU = 10.0
# Over how much of tau the plateau rule looks back, and the fall below which noise is all that is left to fit.
_PLATEAU_WINDOW = 0.5
_MIN_FALL = 0.05
# No plateau is further from the noisy tables than noise reaches, so many standard deviations above its mean: there EM
# is still setting out.
_MAX_DEVIATIONS = 3.0


@frozen(kw_only=True)
class CgmEm:
    """EM over the hidden tables; `tau` is its capacity, and `stop` can end it before that is used up.

    >>> CgmEm(tau=2.0).tau
    2.0
    """

    e_step: Collective | str = component_option(
        "collective-dual", kind="collective", help="infers the hidden tables: collective-dual, nlbp or soft-sign"
    )
    tau: float | Literal["auto"] = option(
        "auto",
        help="capacity: EM rounds times eps/|C|; under Laplace noise no log-potential moves further; 'auto' lies "
        "half-way between the plateau rule's and the best for simulated releases; under a stopping rule it is 10",
        unit="nats",
        validator=positive,
    )
    steps: int | None = option(
        None,
        help="in how many proximal steps tau is reached (each merges EM rounds); none: one per 0.1 of tau",
        validator=attrs.validators.optional(whole),
    )
    stop: Literal["plateau", "discrepancy", "fixed"] = option(
        "fixed",
        help="'fixed' uses up tau; 'plateau' ends when the distance to the noisy tables has stopped falling quickly, "
        "'discrepancy' when it is what the noise is expected to leave",
    )
    plateau: float = option(
        0.5,
        help="the relative fall of that distance per unit of tau below which the plateau rule ends",
        unit="1 / nats",
        validator=positive,
    )
    discrepancy: float = option(
        0.85, help="the share of the expected noise that the discrepancy rule waits for", validator=positive
    )
    start: Literal["uniform", "margins"] = option(
        "uniform", help="where EM starts: the uniform model, or independence with the noisy one-way margins"
    )
    prior: float = option(
        0.0,
        help="strength of a Gaussian prior on the log-potentials (an L2 penalty in each M-step)",
        unit="1 / nats, per record",
        validator=at_least_zero,
    )
    tolerance: float = option(
        1e-6, help="of M-steps that have no closed form: largest derivative", unit="probability", validator=positive
    )

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse an engine that draws, OptionError, and what the engine cannot hold, TooLarge."""
        steady(inference.compile(structure), "cgm-em")

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the number of cells, as measured on columns of 10,000 and 100,000; see `ResourceEstimator`."""
        return Resources.by_cells(structure, each=1000, cpu_seconds=1e-4, calls=500)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it. Raises InferenceError when the engine or the E-step fails."""
        release = curator.release(accept=require_log_concave)
        engine = inference.compile(release.structure)
        run, calls, notes = self._run(release, engine, randomness, progress)
        potentials = Tables(release.structure, run.path.theta).embed(curator.structure)
        last = run.trace[-1]
        certificate = {
            "tau": run.path.tau,
            "discrepancy": last["discrepancy"],
            "unconverged_steps": run.path.unconverged,
            "inference_calls": calls + run.path.calls,
        }
        if not math.isnan(last["gap"]):
            certificate["largest_gap"] = max(row["gap"] for row in run.trace)
        return Fit(
            model=Model(potentials.structure, potentials),
            trace=run.trace,
            converged=run.path.unconverged == 0,
            certificate=certificate,
            notes=notes + run.notes(),
            tuning={"tau": run.path.tau, "steps": len(run.trace), "stop": "fixed"},
        )

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Return the same path for releases like the model's; all begin where EM starts, as their end depends on it.

        Raises OptionError unless tau is a number that is used up, and for a model without its release.
        """
        if self.tau == "auto" or self.stop != "fixed":
            raise OptionError(
                f"cgm-em cannot refit with tau = {self.tau!r} and stop = {self.stop!r}; pass the fit's tuning "
                "(Fit.tuning has tau, steps and stop)"
            )
        if model.release is None:
            raise OptionError("cgm-em refits need the release that the model was learned from; this model has none")
        engine = inference.compile(model.release.structure)

        def refit(again: NoisyTables) -> Tables:
            run = _Run(self, again, engine, silent)
            for _ in range(run.steps):
                run.path.advance(run.tau / run.steps)
            return Tables(again.structure, run.path.theta).embed(model.structure)

        return refit

    def begin(self, release: NoisyTables, engine: Engine, progress: Progress) -> Path:
        """The path of this learner through a release, at its start."""
        e_step: Collective = make("collective", self.e_step)
        return Path(
            release, engine, progress, e_step=e_step, start=self.start, prior=self.prior, tolerance=self.tolerance
        )

    def _run(
        self, release: NoisyTables, engine: Engine, randomness: Randomness, progress: Progress
    ) -> tuple[_Run, int, list[str]]:
        """A finished run, the inference calls spent on choosing its tau, and what the user should know of that."""
        if self.tau != "auto":
            return _Run(self, release, engine, progress).run(), 0, []
        if self.stop != "fixed":
            return _Run(evolve(self, tau=_MAX_TAU), release, engine, progress).run(), 0, []
        first = _Run(evolve(self, tau=_MAX_TAU, steps=None, stop="plateau"), release, engine, progress).run()
        reason = None
        if "sample" not in engine.capabilities:
            reason = f"{engine_name(engine)} cannot sample, use junction-tree for better"
        elif first.path.unconverged:
            reason = "not even the first path's steps converged"
        if reason:
            return first, 0, [f"tau = 'auto' simulates releases; EM stopped as under stop = 'plateau': {reason}"]
        near, path = first.path.tau, first.path
        while path.tau < PILOT * near - 1e-9:
            path.advance(_STEP)
        begin = partial(self.begin, engine=engine, progress=progress)
        tau, calls = by_bootstrap(
            begin, release, engine, path.theta, _STEP, _MAX_TAU, randomness=randomness, progress=progress
        )
        # The plateau follows this release, the bootstrap what holds for all like it: their errors differ in sign.
        tau = math.sqrt(near * tau)
        return _Run(evolve(self, tau=tau), release, engine, progress).run(), path.calls + calls, []


class _Run:
    """One path to the end of tau or of the stopping rule, and its log."""

    def __init__(self, settings: CgmEm, release: NoisyTables, engine: Engine, progress: Progress) -> None:
        assert settings.tau != "auto"
        self.settings, self.tau, self.release, self.progress = settings, settings.tau, release, progress
        self.path = settings.begin(release, engine, progress)
        self.steps = settings.steps or max(1, round(self.tau / _STEP))
        self.trace: list[dict[str, float]] = []
        self.reached = False

    def run(self) -> _Run:
        """Proximal steps until tau is used up or the stopping rule ends them; itself, finished."""
        noisy = self.release.tables.values.astype(np.float64)
        expected, scatter = expected_distance(self.release)  # of the true tables
        for step in range(self.steps):
            self.progress("learning", step, self.steps)
            before, theta = self.path.calls, self.path.theta
            beliefs = self.path.advance(self.tau / self.steps)
            residual = noisy - beliefs.marginals.values
            distance = float(np.abs(residual).sum())
            # After the M-step the objective log p(n; theta) + log p(y|n) is log p(y|n) alone (ALGORITHMS A.5).
            objective = sum(
                float(noise.logpdf(residual[at]).sum())
                for noise, at in zip(self.path.evidence.noise, self.release.structure.slices, strict=True)
            )
            self.trace.append(
                {
                    "tau": self.path.tau,
                    "objective": objective,
                    "gap": math.nan if beliefs.gap is None else beliefs.gap,
                    "discrepancy": distance / max(expected, 1e-300),
                    "inference_calls": self.path.calls - before,
                }
            )
            rules = {
                "plateau": self.fall() <= self.settings.plateau and distance <= expected + _MAX_DEVIATIONS * scatter,
                "discrepancy": distance <= self.settings.discrepancy * expected,
                "fixed": False,
            }
            self.reached = rules[self.settings.stop]
            # A step that failed and did not move leaves the next one where it was itself.
            if self.reached or (not beliefs.converged and np.array_equal(theta, self.path.theta)):
                break
        return self

    def fall(self) -> float:
        """-d log |y - n|_1 / d tau over the last stretch of the path; infinite before there is one."""
        back = math.ceil(_PLATEAU_WINDOW * self.steps / self.tau - 1e-9)
        if len(self.trace) <= back:
            return math.inf
        before, now = self.trace[-1 - back], self.trace[-1]
        shares = [max(row["discrepancy"], 1e-300) for row in (before, now)]
        return math.log(shares[0] / shares[1]) / (now["tau"] - before["tau"])

    def notes(self) -> list[str]:
        """Return sentences for the user on where the path ended."""
        notes = []
        share = self.trace[-1]["discrepancy"]
        if self.path.unconverged:
            notes.append(
                f"{self.path.unconverged} of {len(self.trace)} E- or M-steps did not converge; take more steps, or "
                "give the e_step more inference calls"
            )
        if self.settings.stop != "fixed" and not self.reached:
            notes.append(
                f"tau = {self.tau:g} was used up before the {self.settings.stop} rule was met (the model is "
                f"at {share:.2f} of the expected noise); raise tau if the model looks too flat"
            )
        if self.settings.stop != "plateau" and self.fall() < _MIN_FALL:
            notes.append(
                f"EM is past the plateau: the last steps brought the model hardly nearer to the noisy tables (it is at "
                f"{share:.2f} of the expected noise) but drove empty cells on towards zero; lower tau, or use "
                "tau = 'auto'"
            )
        return notes


# --------------------------------------------------------------------------------------------------
# Choice of tau without the truth: by a parametric bootstrap of the path.


#: The pilot is the real path's model at this multiple of the plateau rule's tau. A path that ends where it is best is
#: smoother than the truth, and for a smooth truth it is best to end too early (docs/decisions/0009).
PILOT = 1.3

# Releases simulated for the bootstrap.
_DRAWS = 6
# Simulated paths go on until the mean has risen for so many steps.
_MAX_RISES = 3


def by_bootstrap(
    begin: Callable[[NoisyTables], Path],
    release: NoisyTables,
    engine: Engine,
    pilot: FloatArray,
    step: float,
    most: float,
    *,
    randomness: Randomness,
    progress: Progress,
) -> tuple[float, int]:
    """The tau at which paths of releases simulated from a pilot come nearest to it, and inference calls spent.

    begin: a path through a release, at its start. pilot: log-potentials, (cells,). step, most: of tau, as on the real
    path: in longer steps EM gets less far. The measure is KL(pilot || model on the path), exact, its mean over the
    releases. Raises InferenceError when the engine cannot sample.
    """
    rehearsal = Rehearsal(
        release, engine, Tables(release.structure, pilot), draws=_DRAWS, randomness=randomness, progress=progress
    )
    paths = [begin(one) for one in rehearsal.releases]
    losses: list[float] = []
    for number in range(round(most / step)):
        progress("rehearsing", number, None)
        losses.append(rehearsal.loss(_advance(path, step) for path in paths))
        if number - int(np.argmin(losses)) >= _MAX_RISES:
            break
    return step * (1 + _find_minimum(losses)), sum(path.calls + len(losses) for path in paths)


def _advance(path: Path, step: float) -> FloatArray:
    path.advance(step)
    return path.theta


def _find_minimum(losses: list[float]) -> float:
    """The place of the least number, between its neighbours by a parabola."""
    place = int(np.argmin(losses))
    if place in (0, len(losses) - 1):
        return place
    return place + Rehearsal.vertex(*losses[place - 1 : place + 2])
