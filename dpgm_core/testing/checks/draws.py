"""What the draws of every noise must keep: whole numbers, fresh, from the randomness given, of the law claimed."""

from __future__ import annotations

import math
import pickle
import random

import attrs
import numpy as np
from scipy import stats

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.components.options import converter
from dpgm_core.errors import DpgmError
from dpgm_core.randomness import SeededRandomness
from dpgm_core.testing.check import ALARM, Checklist, require
from dpgm_core.testing.privacy_loss import (
    admissible_shifts,
    grid,
    log_masses,
)
from dpgm_core.testing.subjects import MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")


@CHECKS.add()
def integers_in_integers_out(subject: MechanismSubject) -> None:
    """Noise has the shape asked for and is int64; float64 only if it is not `exact`, and `unsafe` says in words why the
    guarantee does not hold to the letter. Cannot show: that whole numbers were not made of rounded floats."""
    for what, _, _, noise in subject.one_per_kind():
        for shape in ((), (0,), (3,), (2, 3), (2, 0, 2)):
            drawn = noise.draw(shape, subject.randomness(1))
            require(isinstance(drawn, np.ndarray) and drawn.shape == shape, f"{what}: draw({shape}) has no such shape")
            wanted = np.int64 if noise.exact else np.float64
            require(
                drawn.dtype == wanted,
                f"{what}: draw gives {drawn.dtype}; with exact = {noise.exact} it is {wanted.__name__}",
            )
        require(
            noise.exact or bool(noise.unsafe),
            f"{what}: noise that is not exact must say in `unsafe` why it falls short",
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
            draws.append(noise.draw((64,), subject.randomness(len(draws))))
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
            noise.draw((200,), stream),
            noise.draw((200,), stream),
            noise.draw((200,), subject.randomness(6)),
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
        first, second = (noise.draw((50,), _WordsOnly(7)) for _ in range(2))
        require(np.array_equal(first, second), f"{what}: the same random words give other noise")


@CHECKS.add()
def samples_follow_logpdf(subject: MechanismSubject) -> None:
    """Chi-squared, mean |z| and mean z^2 of the draws against exp(logpdf). False alarm 1e-7 per noise (fixed seed);
    with a million draws a scale 1 % off is missed with probability below 1e-4. Cannot show: smaller errors."""
    count = subject.draws
    for what, _, _, noise in subject.one_per_kind():
        draws = noise.draw((count,), subject.randomness(11)).astype(np.float64)
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
    large" has odds beyond (epsilon, delta), by Clopper-Pearson bounds. False alarm 1e-7 per noise (fixed seed). Power,
    measured: Laplace scales 10 % small, Gaussian ones 40 %. Cannot show: smaller violations, or other events."""
    count = max(1, subject.draws // 10)
    for what, sensitivity, _, noise in subject.one_per_kind():
        cost = noise.cost if noise.cost.kind != "zcdp" else noise.cost.to_approx("1e-3")
        epsilon, delta = float(cost.epsilon), float(cost.delta)
        shifts = [shift for shift in admissible_shifts(sensitivity) if sum(shift) == sensitivity.l1]
        for number, shift in enumerate(shifts):
            size = np.array(shift)
            far = noise.draw((count, len(shift)), subject.randomness(2 * number))
            near = noise.draw((count, len(shift)), subject.randomness(2 * number + 1)) + size
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
