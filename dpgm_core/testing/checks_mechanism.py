"""What every mechanism must keep: the privacy it claims, noise that is what it says, and nothing hidden."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from typing import Any

import attrs
import numpy as np
from scipy import stats

from dpgm_core.errors import BudgetError, DpgmError
from dpgm_core.options import converter
from dpgm_core.privacy import Budget, Sensitivity
from dpgm_core.protocols import Noise
from dpgm_core.randomness import SeededRandomness
from dpgm_core.tables import Array, FloatArray
from dpgm_core.testing.checks import ALARM, Checklist, require
from dpgm_core.testing.privacy_loss import (
    admissible_shifts,
    grid,
    log_masses,
    worst_hockey_stick,
    worst_loss,
    worst_renyi,
)
from dpgm_core.testing.subjects import BUDGETS, ONE, SENSITIVITIES, MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")

_ROUNDING = 1 + 1e-9
_ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


@CHECKS.add()
def serves_a_budget(subject: MechanismSubject) -> None:
    """It calibrates noise for at least one kind of budget, also where nobody can change a count (sensitivity 0), and
    refuses the others with BudgetError. Cannot show: that it serves every budget of that kind."""
    served = subject.capabilities & set(BUDGETS)
    require(served, "it refuses pure, zCDP and (epsilon, delta) budgets alike, so it can never be used")
    for kind in served:
        for what, _, _, noise in subject.noises(kind):
            require(isinstance(noise, Noise), f"{what}: {type(noise).__name__} lacks members of Noise")
            require(0 < noise.variance < math.inf, f"{what}: variance is {noise.variance}, not positive and finite")
        subject.component.noise(Sensitivity(l0=0, l1=0, l2_squared=0, linf=0), BUDGETS[kind][1])


@CHECKS.add()
def refuses_nonsense(subject: MechanismSubject) -> None:
    """What is no positive Budget, and what is no Sensitivity, raises BudgetError. Cannot show: that every message says
    what would do."""
    kind = sorted(subject.capabilities & set(BUDGETS))[0]
    good = BUDGETS[kind][1]
    wrong: list[tuple[Any, Any]] = [(ONE, bad) for bad in (None, 1, 1.0, True, "1", math.nan, math.inf, -1.0)]
    wrong += [(ONE, Budget.zero("pure")), (ONE, Budget.zero("zcdp")), (ONE, Budget.zero("approx"))]
    wrong += [(bad, good) for bad in (None, 1, math.nan, "1", {"l1": 1})]
    for sensitivity, budget in wrong:
        try:
            subject.component.noise(sensitivity, budget)
        except BudgetError:
            continue
        except Exception as error:
            require(False, f"noise({sensitivity!r}, {budget!r}) raises {type(error).__name__}, not BudgetError")
        require(False, f"noise({sensitivity!r}, {budget!r}) is answered, not refused")


@CHECKS.add()
def cost_within_budget(subject: MechanismSubject) -> None:
    """The cost is of the kind asked for and never more. Cannot show: that the cost is what the noise loses (the
    privacy checks do)."""
    for what, _, budget, noise in subject.noises():
        require(noise.cost.kind == budget.kind, f"{what}: the cost is {noise.cost}, of another kind")
        require(noise.cost <= budget, f"{what}: the cost is {noise.cost}, more than was asked")


@CHECKS.add(needs="pure")
def pure_loss_within_cost(subject: MechanismSubject) -> None:
    """For every admissible integer shift, also of l0 cells by linf, the largest log-ratio of logpdf over all outputs
    is at most the cost. Exact: a scale one part in a million small is refuted. Cannot show: that the samples follow
    logpdf, or other sensitivities than those tried."""
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
    the order. Cannot show: other orders; that the samples follow logpdf."""
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
    delta. Exact up to rounding down. Cannot show: that the samples follow logpdf."""
    for what, sensitivity, _, noise in subject.noises("approx"):
        exact = subject.exact(noise)
        delta, shift = worst_hockey_stick(noise, sensitivity, float(noise.cost.epsilon), exact=exact)
        claimed = float(noise.cost.delta)
        require(
            delta <= claimed * (1 + (1e-6 if exact else 1e-3)) + 1e-16,
            f"{what}: shifting cells by {shift} has delta = {delta:.6g}, but the cost claims {claimed:.6g}",
        )


@CHECKS.add()
def event_never_claims_more_noise(subject: MechanismSubject) -> None:
    """The accountant's event has at most the scale of logpdf and at least the sensitivity's norm (L1 for Laplace, L2
    for Gaussian). Cannot show: that an accountant composes it well."""
    for what, sensitivity, _, noise in subject.noises():
        event = noise.event
        gaussian = event.kind in ("gaussian", "discrete-gaussian")
        # -log p(z) + log p(0) is |z| / scale, or z^2 / (2 scale^2)
        z = float(max(1, round(3 * math.sqrt(noise.variance))))
        drop = float(noise.logpdf(np.zeros(1))[0] - noise.logpdf(np.array([z]))[0])
        scale = math.sqrt(z**2 / (2 * drop)) if gaussian else z / drop
        norm = sensitivity.l2 if gaussian else float(sensitivity.l1)
        require(event.scale <= scale * _ROUNDING, f"{what}: the event says scale {event.scale:.9g}, logpdf {scale:.9g}")
        require(
            event.sensitivity >= norm / _ROUNDING,
            f"{what}: the event says sensitivity {event.sensitivity:.9g}, but it is {norm:.9g}",
        )


@CHECKS.add()
def monotone_in_budget_and_sensitivity(subject: MechanismSubject) -> None:
    """More budget never means more noise, more sensitivity never less. Cannot show: amounts between those tried."""
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
def score_is_the_slope_of_logpdf(subject: MechanismSubject) -> None:
    """Away from whole numbers the score is the difference quotient of logpdf, and it never rises (logpdf is concave,
    as learners assume). Cannot show: the subgradient chosen at kinks."""
    for what, _, _, noise in subject.noises():
        sd = math.sqrt(noise.variance)
        points = np.unique(np.concatenate([np.linspace(-6 * sd, 6 * sd, 41), [-3.0, -1.0, 0.0, 1.0, 3.0]]))
        points = np.floor(points) + 0.5  # kinks sit on whole numbers
        step = min(1e-3 * max(1.0, sd), 0.25)
        quotient = (noise.logpdf(points + step) - noise.logpdf(points - step)) / (2 * step)
        score = noise.score(points)
        worst = int(np.argmax(np.abs(score - quotient)))
        require(
            np.allclose(score, quotient, rtol=1e-4, atol=1e-7 / max(1.0, sd)),
            f"{what}: at residual {points[worst]:g} the score is {score[worst]:.9g}, the slope {quotient[worst]:.9g}",
        )
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
        r = np.linspace(-6, 6, 25) * math.sqrt(noise.variance)
        u = np.sign(r) * term.bound if term.curvature == 0 else np.clip(r / term.curvature, -term.bound, term.bound)
        expected = u * r - term.curvature * u**2 / 2
        found = noise.logpdf(np.zeros(1)) - noise.logpdf(r)
        require(
            np.allclose(found, expected, rtol=1e-7, atol=1e-9),
            f"{what}: the dual term {term} does not belong to logpdf",
        )


@CHECKS.add()
def integers_in_integers_out(subject: MechanismSubject) -> None:
    """Noise has the shape asked for and is int64; float64 only if `unsafe` says in words why the guarantee does not
    hold to the letter. Cannot show: that whole numbers were not made of rounded floats."""
    for what, _, _, noise in subject.one_per_kind():
        for shape in ((), (0,), (3,), (2, 3), (2, 0, 2)):
            drawn = noise.sample(shape, subject.randomness(1))
            require(
                isinstance(drawn, np.ndarray) and drawn.shape == shape, f"{what}: sample({shape}) has no such shape"
            )
            allowed = (np.int64,) if getattr(noise, "unsafe", None) is None else (np.int64, np.float64)
            require(
                drawn.dtype in allowed,
                f"{what}: sample gives {drawn.dtype}; exact noise is int64, and other noise must say why in `unsafe`",
            )


@CHECKS.add()
def nan_is_not_swallowed(subject: MechanismSubject) -> None:
    """logpdf and score of NaN raise an error of dpgm or stay NaN; infinite residuals never give NaN. Cannot show:
    other ways to hide NaN."""
    for what, _, _, noise in subject.one_per_kind():
        for name, function in (("logpdf", noise.logpdf), ("score", noise.score)):
            with np.errstate(all="ignore"):
                try:
                    found = np.asarray(function(np.array([0.0, math.nan])))
                except DpgmError:
                    found = np.array([0.0, math.nan])
                require(np.isnan(found[1]), f"{what}: {name}(nan) = {found[1]}, a number")
                ends = np.asarray(function(np.array([-math.inf, math.inf])))
            require(not np.isnan(ends).any(), f"{what}: {name} of an infinite residual is NaN")


@CHECKS.add()
def noise_is_plain_data(subject: MechanismSubject) -> None:
    """A noise is a frozen attrs class that compares, pickles, and survives the trip through a release file. Cannot
    show: that its fields can claim less than they cost."""
    for what, _, _, noise in subject.one_per_kind():
        require(attrs.has(type(noise)), f"{what}: {type(noise).__qualname__} is no attrs class, so it cannot be saved")
        require(pickle.loads(pickle.dumps(noise)) == noise, f"{what}: the noise changes when it is pickled")
        plain = converter.unstructure(noise)
        require(converter.structure(plain, type(noise)) == noise, f"{what}: the noise changes when it is saved")


@CHECKS.add()
def global_random_state_is_left_alone(subject: MechanismSubject) -> None:
    """Drawing neither reads nor moves the global generators of random and numpy. Cannot show: other generators of the
    process."""
    for what, _, _, noise in subject.one_per_kind():
        draws: list[Array] = []
        for _ in range(2):
            random.seed(1)
            np.random.seed(1)  # noqa: NPY002 - the global state is what is watched
            before = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
            draws.append(noise.sample((64,), subject.randomness(len(draws))))
            after = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
            require(before == after, f"{what}: drawing noise moves a global random state")
        require(not np.array_equal(draws[0], draws[1]), f"{what}: the same global seed repeats the noise")


@CHECKS.add()
def fresh_noise_every_time(subject: MechanismSubject) -> None:
    """Draws differ from call to call, from cell to cell and between two random streams. False alarm below 1e-30.
    Cannot show: independence (see the statistical checks)."""
    for what, _, _, noise in subject.one_per_kind():
        stream = subject.randomness(5)
        draws = [
            noise.sample((200,), stream),
            noise.sample((200,), stream),
            noise.sample((200,), subject.randomness(6)),
        ]
        for one, two in ((0, 1), (0, 2), (1, 2)):
            require(not np.array_equal(draws[one], draws[two]), f"{what}: the same noise is drawn twice")
        require(len(np.unique(draws[0])) > 1, f"{what}: 200 cells get the same noise")


class _WordsOnly:
    """Randomness whose generator, meant for post-processing, may not be used for noise."""

    private = False

    def __init__(self, seed: int) -> None:
        self._inner = SeededRandomness(seed)

    def words(self, count: int) -> Array:
        return self._inner.words(count)

    def generator(self) -> np.random.Generator:
        require(False, "noise is drawn from `generator`, which is for post-processing; use `words`")
        raise AssertionError


@CHECKS.add(needs="argument")
def randomness_comes_from_the_argument(subject: MechanismSubject) -> None:
    """Noise is a function of `randomness.words` alone: the same stream repeats it. A mechanism that draws elsewhere
    says so in `own_randomness`. Cannot show: that the words are used well."""
    for what, _, _, noise in subject.one_per_kind():
        first, second = (noise.sample((50,), _WordsOnly(7)) for _ in range(2))
        require(np.array_equal(first, second), f"{what}: the same random words give other noise")


@CHECKS.add()
def samples_follow_logpdf(subject: MechanismSubject) -> None:
    """Chi-squared, mean |z| and mean z^2 of the draws against exp(logpdf). False alarm 1e-7 per noise (fixed seed);
    with a million draws a scale 1 % off is missed with probability below 1e-4. Cannot show: smaller errors."""
    count = subject.draws
    for what, _, _, noise in subject.one_per_kind():
        draws = noise.sample((count,), subject.randomness(11)).astype(np.float64)
        exact = subject.exact(noise)
        points, step = grid(noise, exact=exact)
        masses = np.exp(log_masses(noise, points, step))
        masses /= masses.sum()
        for name, value in (("|z|", np.abs), ("z^2", np.square), ("z", np.asarray)):
            mean = float(masses @ value(points))
            spread = math.sqrt(max(float(masses @ value(points) ** 2) - mean**2, 0.0) / count)
            # the density of a float is summed on a grid, which is off by less than 1e-4
            slack = 0.0 if exact else 1e-4 * abs(mean)
            found = float(value(draws).mean())
            off = abs(found - mean) - slack
            require(
                off <= stats.norm.isf(ALARM / 8) * spread,
                f"{what}: the mean of {name} over {count:,} draws is {found:.6g}, logpdf says {mean:.6g} "
                f"({off / spread if spread else math.inf:.1f} standard errors off)",
            )
        if exact:
            _chi_squared(what, draws, points, masses)


def _chi_squared(what: str, draws: FloatArray, points: FloatArray, masses: FloatArray) -> None:
    # Cells of about 1/40 of the mass each, cut between whole numbers.
    cuts = np.unique(np.floor(np.interp(np.linspace(0, 1, 41)[1:-1], np.cumsum(masses), points)) + 0.5)
    cells = np.bincount(np.searchsorted(cuts, points), weights=masses, minlength=len(cuts) + 1)
    seen = np.bincount(np.searchsorted(cuts, draws), minlength=len(cuts) + 1)
    keep = cells * len(draws) > 20
    if keep.sum() < 2:
        return
    expected = cells[keep] * len(draws)
    statistic = float(((seen[keep] - expected) ** 2 / expected).sum())
    chance = float(stats.chi2.sf(statistic, keep.sum()))
    require(
        chance > ALARM / 2, f"{what}: draws do not follow logpdf (chi-squared {statistic:.1f}, chance {chance:.1g})"
    )


@CHECKS.add()
def audit_finds_no_more_loss(subject: MechanismSubject) -> None:
    """From samples alone, without logpdf: for the worst shifts no event "the sum, or the least, of the shifted cells is
    large" has odds beyond (epsilon, delta), by Clopper-Pearson bounds. False alarm 1e-7 per noise (fixed seed). Power:
    noise about 10 % small in epsilon. Cannot show: smaller violations, or other events."""
    count = max(1, subject.draws // 5)
    for what, sensitivity, _, noise in subject.one_per_kind():
        cost = noise.cost if noise.cost.kind != "zcdp" else noise.cost.to_approx("1e-3")
        epsilon, delta = float(cost.epsilon), float(cost.delta)
        shifts = [shift for shift in admissible_shifts(sensitivity) if sum(shift) == sensitivity.l1]
        for number, shift in enumerate(shifts):
            size = np.array(shift)
            far = noise.sample((count, len(shift)), subject.randomness(2 * number))
            near = noise.sample((count, len(shift)), subject.randomness(2 * number + 1)) + size
            worst = max(
                _refuted(near @ size, far @ size, epsilon, delta, len(shifts)),
                _refuted((near - size).min(axis=1), (far - size).min(axis=1), epsilon, delta, len(shifts)),
            )
            require(
                worst <= 0,
                f"{what}: shifting cells by {shift}, an event has a probability {worst:.3g} beyond "
                f"exp({epsilon:.4g}) times the other plus {delta:.3g}, for certain",
            )


def _refuted(near: Array, far: Array, epsilon: float, delta: float, tests: int) -> float:
    """Lower bound of P(event) - exp(epsilon) Q(event) - delta, the largest over thresholds; positive if refuted."""
    count, edges = len(near), np.unique(np.quantile(near, np.linspace(0.02, 0.99, 12)))
    alarm = ALARM / (4 * tests * len(edges))
    worst = -math.inf
    for edge in edges:
        hits = int((near >= edge).sum()), int((far >= edge).sum())
        low = float(stats.beta.ppf(alarm, hits[0], count - hits[0] + 1)) if hits[0] else 0.0
        high = float(stats.beta.isf(alarm, hits[1] + 1, count - hits[1])) if hits[1] < count else 1.0
        worst = max(worst, low - math.exp(epsilon) * high - delta)
    return worst
