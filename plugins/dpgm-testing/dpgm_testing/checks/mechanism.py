"""Checks of every mechanism: the privacy it claims, and a density, score and variance that belong together."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from dpgm_core.errors import BudgetError, IncompatiblePlugin
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gaussian import normal_delta
from dpgm_core.privacy.mechanism import Noise, check_claims
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_testing.check import Checklist, require, require_refusal
from dpgm_testing.checks import draws
from dpgm_testing.privacy_loss import grid, log_masses, worst_hockey_stick, worst_hockey_sticks, worst_loss, worst_renyi
from dpgm_testing.subjects import BUDGETS, ONE, SENSITIVITIES, MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")

_ROUNDING = 1 + 1e-9
_ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)
_EPSILONS = (0.0, 0.1, 1.0, 3.0)


@CHECKS.add()
def serves_a_budget(subject: MechanismSubject) -> None:
    """It calibrates noise for at least one kind of budget, also at sensitivity 0, and refuses the others with
    BudgetError. Cannot show: that it serves every budget of that kind."""
    served = subject.capabilities & set(BUDGETS)
    require(served, "it refuses pure, zCDP, mu and (epsilon, delta) budgets alike, so it can never be used")
    for kind in served:
        for what, _, _, noise in subject.noises(kind):
            require(isinstance(noise, Noise), f"{what}: {type(noise).__name__} lacks members of Noise")
            require(0 < noise.variance < math.inf, f"{what}: variance is {noise.variance}, not positive and finite")
        subject.component.noise(Sensitivity(l0=0, l1=0, l2_squared=0, linf=0), BUDGETS[kind][1])


@CHECKS.add()
def refuses_nonsense(subject: MechanismSubject) -> None:
    """What is no positive Budget, and what is no Sensitivity, raises BudgetError."""
    kind = sorted(subject.capabilities & set(BUDGETS))[0]
    good = BUDGETS[kind][1]
    wrong: list[tuple[Any, Any]] = [(ONE, bad) for bad in (None, 1, 1.0, True, "1", math.nan, math.inf, -1.0)]
    wrong += [(ONE, Budget.zero("pure")), (ONE, Budget.zero("zcdp")), (ONE, Budget.zero("approx"))]
    wrong += [(bad, good) for bad in (None, 1, math.nan, "1", {"l1": 1})]
    for sensitivity, budget in wrong:
        call = partial(subject.component.noise, sensitivity, budget)
        require_refusal(f"noise({sensitivity!r}, {budget!r})", call, BudgetError)


@CHECKS.add()
def cost_within_budget(subject: MechanismSubject) -> None:
    """The cost is of the kind asked for and never more. Cannot show: that the cost is what the noise loses (the
    privacy checks do)."""
    for what, _, budget, noise in subject.noises():
        require(noise.cost.kind == budget.kind, f"{what}: the cost is {noise.cost}, of another kind")
        require(noise.cost <= budget, f"{what}: the cost is {noise.cost}, more than was asked")


@CHECKS.add()
def claims_fit_the_event(subject: MechanismSubject) -> None:
    """The cost is not below what core computes from event and sensitivity, the event covers the sensitivity, and
    variance and support are the event's or wider. Cannot show: that the event is true of the noise."""
    for what, sensitivity, _, noise in subject.noises():
        try:
            check_claims(noise, sensitivity)
        except (BudgetError, IncompatiblePlugin) as error:
            require(False, f"{what}: {error}")


@CHECKS.add(needs="pure")
def pure_loss_within_cost(subject: MechanismSubject) -> None:
    """For every admissible integer shift, also of l0 cells by linf, the largest log-ratio of logpdf over all outputs is
    at most the cost. Exact: a scale one part in a million small is refuted. Cannot show: that samples follow logpdf;
    sensitivities not tried."""
    for what, sensitivity, _, noise in subject.noises("pure"):
        loss, shift = worst_loss(noise, sensitivity, exact=subject.exact(noise))
        claimed = float(noise.cost.epsilon)
        require(
            loss <= claimed * _ROUNDING,
            f"{what}: shifting cells by {shift} loses {loss:.9g} nats, but the cost claims {claimed:.9g}",
        )


@CHECKS.add(needs="zcdp")
def renyi_loss_within_cost(subject: MechanismSubject) -> None:
    """For every admissible integer shift the Renyi divergence of logpdf at orders from 1.01 to 64 is at most rho times
    the order. Cannot show: other orders; that samples follow logpdf."""
    for what, sensitivity, _, noise in subject.noises("zcdp"):
        exact = subject.exact(noise)
        for order in _ORDERS:
            divergence, shift = worst_renyi(noise, sensitivity, order, exact=exact)
            allowed = float(noise.cost.rho) * order
            require(
                divergence <= allowed * _ROUNDING + 1e-12,
                f"{what}: shifting cells by {shift} gives a Renyi divergence of {divergence:.9g} at order {order:g}, "
                f"but rho = {float(noise.cost.rho):.6g} allows {allowed:.9g}",
            )


@CHECKS.add(needs="approx")
def hockey_stick_within_delta(subject: MechanismSubject) -> None:
    """For every admissible integer shift the hockey-stick divergence of logpdf at the cost's epsilon is at most its
    delta. Exact up to rounding down. Cannot show: that samples follow logpdf."""
    for what, sensitivity, _, noise in subject.noises("approx"):
        exact = subject.exact(noise)
        delta, shift = worst_hockey_stick(noise, sensitivity, float(noise.cost.epsilon), exact=exact)
        claimed = float(noise.cost.delta)
        require(
            delta <= claimed * (1 + (1e-6 if exact else 1e-3)) + 1e-16,
            f"{what}: shifting cells by {shift} has delta = {delta:.6g}, but the cost claims {claimed:.6g}",
        )


@CHECKS.add(needs="gdp")
def gaussian_curve_within_mu(subject: MechanismSubject) -> None:
    """For every admissible integer shift the hockey-stick divergence of logpdf, at epsilons from 0 to 3, is at most
    that of two normal numbers mu apart. Cannot show: other epsilons; that samples follow logpdf."""
    for what, sensitivity, _, noise in subject.noises("gdp"):
        exact = subject.exact(noise)
        mu = math.sqrt(noise.cost.mu_squared)
        worst = worst_hockey_sticks(noise, sensitivity, _EPSILONS, exact=exact)
        for epsilon, (delta, shift) in zip(_EPSILONS, worst, strict=True):
            claimed = float(normal_delta(mu, np.array(epsilon)))
            require(
                delta <= claimed * (1 + (1e-6 if exact else 1e-3)) + 1e-13,
                f"{what}: shifting cells by {shift} has delta = {delta:.6g} at epsilon = {epsilon:g}, but mu = {mu:.6g}"
                f" claims {claimed:.6g}",
            )


@CHECKS.add()
def event_never_claims_more_noise(subject: MechanismSubject) -> None:
    """The event has at most the scale of logpdf and at least the sensitivity's norm (L1 for Laplace, L2 for Gaussian),
    and a bound if and only if the noise has one."""
    for what, sensitivity, _, noise in subject.noises():
        event = noise.event
        gaussian = event.kind in ("gaussian", "discrete-gaussian")
        # -log p(z) + log p(0) is |z| / scale, or z^2 / (2 scale^2)
        z = min(float(max(1, round(3 * math.sqrt(noise.variance)))), noise.support[1])
        drop = float(noise.logpdf(np.zeros(1))[0] - noise.logpdf(np.array([z]))[0])
        scale = math.sqrt(z**2 / (2 * drop)) if gaussian else z / drop
        norm = sensitivity.l2 if gaussian else float(sensitivity.l1)
        bound = math.inf if event.bound is None else event.bound
        require(
            bound == noise.support[1], f"{what}: the event says bound {bound}, but the noise ends at {noise.support[1]}"
        )
        require(event.scale <= scale * _ROUNDING, f"{what}: the event says scale {event.scale:.9g}, logpdf {scale:.9g}")
        require(
            event.sensitivity >= norm / _ROUNDING,
            f"{what}: the event says sensitivity {event.sensitivity:.9g}, but it is {norm:.9g}",
        )


@CHECKS.add()
def monotone_in_budget_and_sensitivity(subject: MechanismSubject) -> None:
    """More budget never means more noise, more sensitivity never less."""
    for kind in sorted(subject.capabilities & set(BUDGETS)):
        for what, sensitivity in SENSITIVITIES.items():
            if kind == "approx":  # epsilon and delta both change between those listed
                budgets = tuple(Budget.approx(epsilon, "1e-6") for epsilon in ("1/4", "1/2", 1))
            else:
                budgets = BUDGETS[kind]
            variances = [subject.component.noise(sensitivity, budget).variance for budget in budgets]
            falling = all(one >= two / _ROUNDING for one, two in itertools.pairwise(variances))
            require(falling, f"{kind}, {what}: variances {variances} rise with the budget")
        small, large = (
            subject.component.noise(SENSITIVITIES[what], BUDGETS[kind][1]).variance
            for what in ("one cell", "two cells by three")
        )
        require(
            small <= large * _ROUNDING, f"{kind}: variance {large:.6g} at six times the L1 change, {small:.6g} at 1"
        )


@CHECKS.add()
def masses_sum_to_one(subject: MechanismSubject) -> None:
    """exp(logpdf) sums to 1 over the whole numbers (integrates to 1 for floats), has mean 0 and the stated variance.
    Cannot show: what lies beyond 45 standard deviations."""
    for what, _, _, noise in subject.noises():
        exact = subject.exact(noise)
        points, step = grid(noise, exact=exact)
        masses = np.exp(log_masses(noise, points, step))
        tolerance = 1e-6 if exact else 1e-3
        require(abs(masses.sum() - 1) < tolerance, f"{what}: the masses sum to {masses.sum():.9g}")
        variance = float(masses @ points**2)
        require(
            abs(variance / noise.variance - 1) < tolerance,
            f"{what}: variance says {noise.variance:.9g}, logpdf {variance:.9g}",
        )
        require(abs(masses @ points) < tolerance * math.sqrt(noise.variance), f"{what}: the noise has a mean")


@CHECKS.add()
def shape_is_as_declared(subject: MechanismSubject) -> None:
    """logpdf is finite at every possible draw within `support` and -inf beyond, draws lie inside, and logpdf is concave
    there if `log_concave` says so. Cannot show: what lies beyond 1,000 standard deviations, or concavity lost by less
    than rounding."""
    for what, _, _, noise in subject.noises():
        low, high = noise.support
        require(low <= 0 <= high, f"{what}: support is {noise.support}, which must hold 0")
        points, _ = grid(noise, exact=noise.exact)
        far = np.round(np.array([100.0, 300.0, 1000.0]) * math.sqrt(noise.variance)) + 1
        points = np.unique(np.concatenate([points, -far, far]))
        with np.errstate(all="ignore"):
            found = np.asarray(noise.logpdf(points))
        inside = (points >= low) & (points <= high)
        # what underflows is too deep to look like an end
        ended = inside & np.isneginf(found) & (np.abs(points) < 1e6 * (1 + math.sqrt(noise.variance)))
        at = f" at {points[ended][0]:g} records" if ended.any() else ""
        require(not ended.any(), f"{what}: support is {noise.support}, but logpdf is -inf{at}")
        require(
            bool(np.isneginf(found[~inside]).all()), f"{what}: logpdf is above -inf beyond the support {noise.support}"
        )
        if noise.log_concave:
            x, y = points[inside], found[inside]
            slopes = np.diff(y) / np.diff(x)
            slack = 1e-9 * (1 + np.abs(slopes).max(initial=0.0)) + 1e-12 * np.abs(y[1:-1]) / np.diff(x).min(initial=1.0)
            worst = int(np.argmax(np.diff(slopes) - slack)) if len(slopes) > 1 else 0
            concave = len(slopes) < 2 or bool((np.diff(slopes) <= slack).all())
            require(
                concave, f"{what}: log_concave is declared, but the slope of logpdf rises near {x[worst]:g} records"
            )
    for what, _, _, noise in subject.one_per_kind():
        drawn = noise.draw((max(1, subject.draws // 10),), subject.randomness(17))
        ends = float(drawn.min()), float(drawn.max())
        require(
            noise.support[0] <= ends[0] and ends[1] <= noise.support[1],
            f"{what}: support is {noise.support}, but draws reach from {ends[0]:g} to {ends[1]:g}",
        )


@CHECKS.add()
def score_is_the_slope_of_logpdf(subject: MechanismSubject) -> None:
    """Between whole numbers, within the support, the score is the difference quotient of logpdf; where the noise
    declares `log_concave` it never rises."""
    for what, _, _, noise in subject.noises():
        sd = math.sqrt(noise.variance)
        points = np.unique(np.concatenate([np.linspace(-6 * sd, 6 * sd, 41), [-3.0, -1.0, 0.0, 1.0, 3.0]]))
        points = np.floor(points) + 0.5  # kinks sit on whole numbers
        points = points[(points - 0.5 >= noise.support[0]) & (points + 0.5 <= noise.support[1])]
        step = min(1e-3 * max(1.0, sd), 0.25)
        quotient = (noise.logpdf(points + step) - noise.logpdf(points - step)) / (2 * step)
        score = noise.score(points)
        worst = int(np.argmax(np.abs(score - quotient)))
        require(
            np.allclose(score, quotient, rtol=1e-4, atol=1e-7 / max(1.0, sd)),
            f"{what}: at residual {points[worst]:g} the score is {score[worst]:.9g}, the slope {quotient[worst]:.9g}",
        )
        if not noise.log_concave:
            continue
        order = np.unique(np.concatenate([points, np.round(points)]))
        slopes = noise.score(order)
        require(bool((np.diff(slopes) <= 1e-9 * np.abs(slopes).max()).all()), f"{what}: the score rises somewhere")


@CHECKS.add()
def dual_is_the_conjugate(subject: MechanismSubject) -> None:
    """logpdf(0) - logpdf(r) is the largest u r - curvature u^2 / 2 over |u| <= bound, where a dual term is offered.
    Cannot show: anything for noises without one."""
    for what, _, _, noise in subject.noises():
        term = noise.dual
        if term is None:
            continue
        plain = noise.log_concave and noise.support == (-math.inf, math.inf)
        require(plain, f"{what}: a dual term is offered, but noise that has one is log-concave without bounds")
        r = np.linspace(-6, 6, 25) * math.sqrt(noise.variance)
        u = np.sign(r) * term.bound if term.curvature == 0 else np.clip(r / term.curvature, -term.bound, term.bound)
        expected = u * r - term.curvature * u**2 / 2
        found = noise.logpdf(np.zeros(1)) - noise.logpdf(r)
        require(
            np.allclose(found, expected, rtol=1e-7, atol=1e-9),
            f"{what}: the dual term {term} does not belong to logpdf",
        )


CHECKS += draws.CHECKS
