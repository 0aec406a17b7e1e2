"""The privacy of an additive noise, computed from its log-density alone, over every admissible whole-numbered shift.

Two neighbouring data sets shift the cells by an integer vector s; cells are independent, so losses and Renyi
divergences add over cells and the hockey-stick divergence is a convolution. Every figure here is a lower bound of the
true one (tails are cut, losses are rounded down), so a claim that is found too small is refuted for certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from scipy.special import logsumexp

from dpgm_core._util.arrays import FloatArray
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = [
    "admissible_shifts",
    "even_shifts",
    "grid",
    "hockey_stick",
    "largest_loss",
    "log_masses",
    "renyi_divergence",
    "summed_hockey_stick",
    "worst_hockey_stick",
    "worst_loss",
    "worst_renyi",
]

# How many standard deviations of noise are looked at; sums leave out less than exp(-40).
_REACH = 45.0
_MOST_POINTS = 400_000
_MOST_LOSSES = 40_000
_SORTED = 2_000_000
_LONGEST = 1 << 20
# How far losses may lie from a lattice that stands for them, and one lattice from another, nats. Three times that is
# taken off a sum, so that it stays a lower bound.
_NEAR = 2e-10


def admissible_shifts(sensitivity: Sensitivity) -> Iterator[tuple[int, ...]]:
    """Every way to change counts within the sensitivity: non-zero sizes, largest first; order and sign do not matter.

    At most l0 cells, each by at most linf, norms within l1 and l2. Their number grows like the partitions of l1: for
    small sensitivities, or linf = 1.

    >>> list(admissible_shifts(Sensitivity(l0=3, l1=3, l2_squared=9, linf=3)))
    [(1,), (1, 1), (1, 1, 1), (2,), (2, 1), (3,)]
    """

    def extend(l0: int, l1: int, l2_squared: int, most: int) -> Iterator[tuple[int, ...]]:
        for first in range(1, most + 1):
            if l0 < 1 or first > l1 or first**2 > l2_squared:
                return
            yield (first,)
            for rest in extend(l0 - 1, l1 - first, l2_squared - first**2, first):
                yield (first, *rest)

    return extend(sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf)


def even_shifts(sensitivity: Sensitivity) -> Iterator[tuple[int, int]]:
    """(size, cells): for sizes from 1 to linf in steps of up to fourfold, as many cells as may move by it at once.

    Admissible and few whatever the sensitivity: what can be looked at when `admissible_shifts` are too many.

    >>> list(even_shifts(Sensitivity(l0=100, l1=100, l2_squared=2000, linf=20)))
    [(1, 100), (4, 25), (16, 6), (20, 5)]
    """
    sizes = {4**power for power in range(32) if 4**power < sensitivity.linf} | {sensitivity.linf}
    for size in sorted(sizes - {0}):
        cells = min(sensitivity.l0, sensitivity.l1 // size, sensitivity.l2_squared // size**2)
        if cells:
            yield size, cells


def grid(noise: Noise, *, exact: bool, reach: float = _REACH, beyond: int = 0) -> tuple[FloatArray, float]:
    """Noise values to look at, (points,), and the distance between them: whole numbers, or a fine grid for floats.

    reach: standard deviations. beyond: records added on both sides. Holds every shift of itself by whole numbers.
    """
    wide = reach * math.sqrt(noise.variance) + beyond + 4
    per_record = 1 if exact else max(1, math.ceil(40 / math.sqrt(noise.variance)))
    if not math.isfinite(wide) or 2 * wide * per_record > _MOST_POINTS:
        wide, per_record = min(wide, _MOST_POINTS / 2), 1
    ends = math.ceil(wide) * per_record
    return np.arange(-ends, ends + 1) / per_record, 1 / per_record


def log_masses(noise: Noise, points: FloatArray, step: float) -> FloatArray:
    """Log-probabilities of the points: the log mass, or the log density times the step; (points,), nats."""
    return np.asarray(noise.logpdf(points) + math.log(step))


def _pair(
    noise: Noise, shift: int, *, exact: bool, beyond: int = 0, reach: float = _REACH
) -> tuple[FloatArray, FloatArray]:
    points, step = grid(noise, exact=exact, reach=reach, beyond=beyond + shift)
    here, there = log_masses(noise, points, step), log_masses(noise, points - shift, step)
    if not exact:  # a density summed on a grid is a little off 1, which small orders would take for a loss
        here, there = here - logsumexp(here), there - logsumexp(there)
    return here, there


def worst_loss(noise: Noise, sensitivity: Sensitivity, *, exact: bool = True) -> tuple[float, tuple[int, ...]]:
    """The largest log P(y) / P(y - s) over all outputs y and admissible shifts s, nats, and the shift; inf if one
    output betrays the shift.

    exact: the noise is whole-numbered.

    >>> from dpgm_core.privacy.budget import Budget
    >>> from dpgm_testing.reference import ReferenceLaplace
    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> loss, shift = worst_loss(ReferenceLaplace().noise(pair, Budget.pure(1)), pair)
    >>> round(loss, 9), shift
    (1.0, (1, 1))
    """

    def loss(shift: int) -> float:
        points, _ = grid(noise, exact=exact, beyond=shift)
        far = np.array([1e2, 1e4, 1e6]) * max(1.0, math.sqrt(noise.variance))
        points = np.concatenate([-np.round(far), points, np.round(far)])
        here, there = np.asarray(noise.logpdf(points)), np.asarray(noise.logpdf(points - shift))
        with np.errstate(invalid="ignore"):
            gain = here - there
            # what rounding may have added to the difference
            gain -= 8 * np.finfo(float).eps * np.where(np.isfinite(here), np.abs(here), 0.0)
        return float(np.nanmax(np.where(np.isneginf(here), -np.inf, gain)))

    return _worst(loss, sensitivity)


def largest_loss(noise: Noise, shift: int) -> float:
    """The largest log P(y) / P(y - s) over some 1,500 outputs near and far, nats: a lower bound whatever the width.

    What rounding may have added, up to 64 units in the last place of both terms, is taken off.

    >>> from dpgm_core.privacy.budget import Budget
    >>> from dpgm_testing.reference import ReferenceLaplace
    >>> wide = Sensitivity(l0=10**4, l1=10**4, l2_squared=10**4, linf=1)
    >>> round(10**4 * largest_loss(ReferenceLaplace().noise(wide, Budget.pure("0.01")), 1), 7)
    0.01
    """
    reach = 50 * math.sqrt(noise.variance) + 2 * shift + 200
    far = np.round(np.geomspace(1, reach, 250))
    points = np.unique(np.concatenate([-far, far, np.arange(-100.0, 101.0)]))
    points = np.unique(np.concatenate([points, points + shift]))
    here, there = np.asarray(noise.logpdf(points)), np.asarray(noise.logpdf(points - shift))
    seen = ~np.isneginf(here)
    if np.isneginf(there[seen]).any():
        return math.inf
    slack = 64 * np.finfo(float).eps * (np.abs(here[seen]) + np.abs(there[seen]))
    return float(np.max(here[seen] - there[seen] - slack))


def renyi_divergence(noise: Noise, shift: int, order: float, *, exact: bool = True, reach: float = _REACH) -> float:
    """D_alpha(P || P shifted by s) = log sum P(z)^alpha P(z - s)^(1 - alpha) / (alpha - 1), nats; alpha > 1.

    reach: standard deviations looked at, besides what the shift adds.
    """
    here, there = _pair(noise, shift, exact=exact, beyond=math.ceil(order * shift), reach=reach)
    seen = ~np.isneginf(here)
    if np.isneginf(there[seen]).any():
        return math.inf
    return float(logsumexp(order * here[seen] + (1 - order) * there[seen])) / (order - 1)


def worst_renyi(
    noise: Noise, sensitivity: Sensitivity, order: float, *, exact: bool = True
) -> tuple[float, tuple[int, ...]]:
    """The largest Renyi divergence of this order over all admissible shifts, and the shift.

    >>> from dpgm_core.privacy.budget import Budget
    >>> from dpgm_testing.reference import ReferenceGaussian
    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> divergence, shift = worst_renyi(ReferenceGaussian().noise(pair, Budget.zcdp("0.02")), pair, 2.0)
    >>> round(divergence, 9), shift
    (0.04, (1, 1))
    """
    return _worst(lambda shift: renyi_divergence(noise, shift, order, exact=exact), sensitivity)


def hockey_stick(noise: Noise, shift: tuple[int, ...], epsilon: float, *, exact: bool = True) -> float:
    """delta(epsilon) = E (1 - exp(epsilon - L))_+ with L the privacy loss of shifting one cell by each entry.

    >>> from dpgm_core.privacy.budget import Budget
    >>> from dpgm_testing.reference import ReferenceLaplace
    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> hockey_stick(ReferenceLaplace().noise(one, Budget.pure(1)), (1,), 1.0) < 1e-12
    True
    """
    return _delta(_laws(noise, exact=exact), shift, epsilon)


def worst_hockey_stick(
    noise: Noise, sensitivity: Sensitivity, epsilon: float, *, exact: bool = True
) -> tuple[float, tuple[int, ...]]:
    """The largest delta(epsilon) over all admissible shifts, and the shift."""
    return worst_hockey_sticks(noise, sensitivity, [epsilon], exact=exact)[0]


def worst_hockey_sticks(
    noise: Noise, sensitivity: Sensitivity, epsilons: Sequence[float], *, exact: bool = True
) -> list[tuple[float, tuple[int, ...]]]:
    """The same at several epsilons, which share the laws of shifts."""
    laws = _laws(noise, exact=exact)
    shifts = list(_maximal(sensitivity))
    return [max([(0.0, ()), *((_delta(laws, shift, one), shift) for shift in shifts)]) for one in epsilons]


def _laws(noise: Noise, *, exact: bool) -> Callable[[tuple[int, ...]], tuple[FloatArray, FloatArray]]:
    """The law of the privacy loss of a shift, as losses and masses; shifts that begin alike share their work."""

    @cache
    def law(shift: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        if len(shift) == 1:
            here, there = _pair(noise, shift[0], exact=exact)
            seen = ~np.isneginf(here)
            losses, masses = _merged(here[seen] - there[seen], np.exp(here[seen]), _MOST_LOSSES)
        else:
            losses, masses = _added(law(shift[:-1]), law(shift[-1:]))
        keep = masses > 1e-18
        return losses[keep], masses[keep]

    return law


def _added(one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The law of the sum of two independent losses; on lattices, as of Gaussian noise, a convolution."""
    fine, coarse = sorted((one, two), key=lambda law: _spacing(law[0]))
    step, times = _spacing(fine[0]), _spacing(coarse[0]) / _spacing(fine[0])
    if math.isfinite(times) and abs(times - round(times)) * step * len(coarse[0]) < _NEAR:
        spread = np.zeros((len(coarse[1]) - 1) * round(times) + 1)
        spread[:: round(times)] = coarse[1]
        masses = np.convolve(fine[1], spread)
        return fine[0][0] + coarse[0][0] - 3 * _NEAR + step * np.arange(len(masses)), masses
    return _merged(np.add.outer(one[0], two[0]).ravel(), np.outer(one[1], two[1]).ravel(), _MOST_LOSSES)


def _spacing(losses: FloatArray) -> float:
    """The distance of neighbouring losses, or inf where it is not always the same."""
    if len(losses) < 2 or not np.isfinite(losses).all():
        return math.inf
    step = float(losses[-1] - losses[0]) / (len(losses) - 1)
    return step if np.abs(losses[0] + step * np.arange(len(losses)) - losses).max() < _NEAR else math.inf


def _delta(
    law: Callable[[tuple[int, ...]], tuple[FloatArray, FloatArray]], shift: tuple[int, ...], epsilon: float
) -> float:
    """E (1 - exp(epsilon - L))_+ of the sum of two laws, each of half of the cells, without the law of the sum."""
    half = len(shift) // 2
    losses, masses = law(shift[half:])
    one, some = law(shift[:half]) if half else (np.zeros(1), np.ones(1))
    order = np.argsort(-losses)
    losses, masses = losses[order], masses[order]
    # of the m largest losses: their mass, and log E exp(-L) on them
    mass = np.concatenate([[0.0], np.cumsum(masses)])
    shrunk = np.concatenate([[-np.inf], np.logaddexp.accumulate(np.log(masses) - losses)])
    left = epsilon - one  # what the other half must exceed
    most = np.searchsorted(-losses, -left, side="left")
    with np.errstate(invalid="ignore"):  # a loss without end, of an output that betrays the shift
        charged = np.where(np.isneginf(left), 0.0, np.exp(left + shrunk[most]))
    return float(np.sum(some * (mass[most] - charged)))


def summed_hockey_stick(noise: Noise, size: int, cells: int, epsilon: float, *, exact: bool = True) -> float:
    """delta(epsilon) of the *sum* of `cells` noisy cells when each moves by `size`: at most that of the cells.

    Post-processing loses no more, and nothing is lost by it for Gaussian noise, whose sum is sufficient. The law of the
    sum is a power by FFT, tilted to where a Gaussian's loss is epsilon, so that tails keep their digits; what rounding
    may have added is taken off. 0 where this does not reach: epsilon far out, sums too wide, or heavy tails.

    >>> from dpgm_core.privacy.budget import Budget
    >>> from dpgm_testing.reference import ReferenceGaussian
    >>> many = Sensitivity(l0=1000, l1=1000, l2_squared=1000, linf=1)
    >>> f"{summed_hockey_stick(ReferenceGaussian().noise(many, Budget.approx(1, '1e-6')), 1, 1000, 1.0):.4g}"
    '1e-06'
    """
    spread, shift = cells * noise.variance, size * cells
    middle = epsilon * spread / shift + shift / 2
    tilt = middle / spread
    sd = math.sqrt(noise.variance)
    per_record = 1 if exact else max(1, math.ceil(40 / sd))
    ends = math.ceil((12 + tilt * sd) * sd * per_record) + 4
    length = 1 << math.ceil(math.log2(2 * (shift + 8 * math.sqrt(spread)) * per_record + 16))
    if max(length, ends) > _LONGEST or epsilon > 600 or shift * per_record >= length:
        return 0.0
    points = np.arange(-ends, ends + 1) / per_record
    logs = log_masses(noise, points, 1 / per_record)
    if max(logs[0], logs[-1]) + epsilon + math.log(cells * ends) > -20:  # what lies beyond must not count
        return 0.0
    if not exact:  # a density summed on a grid is a little off 1
        logs = logs - logsumexp(logs)
    log_moment = float(logsumexp(logs + tilt * points))
    if max(logs[0] - tilt * ends / per_record, logs[-1] + tilt * ends / per_record) - log_moment > -20:
        return 0.0  # the tail is heavier than the tilt
    places = np.arange(-ends, ends + 1) % length
    law = np.bincount(places, weights=np.exp(logs + tilt * points - log_moment), minlength=length)
    first = round(middle * per_record) - length // 2
    tilted = np.roll(np.fft.irfft(np.fft.rfft(law) ** cells, length), -first)
    rounding = (1e-13 + 1e-14 * cells) * float(tilted.max())
    if np.abs(tilted[[0, 1, -2, -1]]).max() > rounding:
        return 0.0
    slack = rounding + 1e-9 * np.abs(tilted)
    sums = (np.arange(length) + first) / per_record
    moved = shift * per_record
    # both laws without their common factor exp(-tilt w), so that neither overflows
    near = (tilted - slack)[:-moved] * math.exp(tilt * shift) if tilt * shift < 700 else np.zeros(length - moved)
    gain = near - math.exp(epsilon) * (tilted + slack)[moved:]
    seen = gain > 0
    return float(np.sum(gain[seen] * np.exp(cells * log_moment - tilt * sums[moved:][seen])))


def _maximal(sensitivity: Sensitivity) -> Iterator[tuple[int, ...]]:
    """Shifts to which no further cell can be added: forgetting a cell never raises a divergence."""
    for shift in admissible_shifts(sensitivity):
        left = sensitivity.l2_squared - sum(size**2 for size in shift)
        full = len(shift) == sensitivity.l0 or sum(shift) == sensitivity.l1 or left < 1
        if full:
            yield shift


def _worst(of_one: Callable[[int], float], sensitivity: Sensitivity) -> tuple[float, tuple[int, ...]]:
    table = {size: of_one(size) for size in range(1, sensitivity.linf + 1)}
    best: tuple[float, tuple[int, ...]] = (0.0, ())
    for shift in _maximal(sensitivity):
        best = max(best, (sum(table[size] for size in shift), shift))
    return best


def _merged(losses: FloatArray, masses: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """The same law with equal losses merged (equal up to 1e-10), and rounded down to a grid where they are many.

    Equal losses are those of a lattice, as of whole-numbered noise; other laws have too many to sort.
    """
    finite = np.isfinite(losses)
    values, place = losses, np.arange(len(losses))
    if len(losses) < _SORTED:
        values, place = np.unique(np.round(losses / 1e-10) * 1e-10, return_inverse=True)
    if len(values) > most and finite.any():
        low = losses[finite].min()
        step = (losses[finite].max() - low) / most
        values = np.append(low + step * np.arange(most + 1), np.inf)
        place = np.full(len(losses), most + 1)
        place[finite] = np.floor((losses[finite] - low) / step)
    summed = np.bincount(place, weights=masses, minlength=len(values)).astype(np.float64)
    return values[summed > 0], summed[summed > 0]
