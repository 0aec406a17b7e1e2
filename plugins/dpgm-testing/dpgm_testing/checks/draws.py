"""Checks of the draws of noise: samples, randomness, and large changes and budgets."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
import random
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import attrs
import numpy as np
from scipy import stats

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.components.options import converter
from dpgm_core.errors import DpgmError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gaussian import normal_delta
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_testing.check import ALARM, Checklist, require
from dpgm_testing.privacy_loss import (
    admissible_shifts,
    even_shifts,
    grid,
    largest_loss,
    log_masses,
    renyi_divergence,
    summed_hockey_stick,
)
from dpgm_testing.subjects import BUDGETS, SENSITIVITIES, MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")


# --- Samples --------------------------------------------------------------------------------------


@CHECKS.add()
def integers_in_integers_out(subject: MechanismSubject) -> None:
    """Noise has the shape asked for and is int64; float64 only if it is not `exact`, and `unsafe` says why the
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
    """logpdf and score of NaN raise an error of dpgm or stay NaN; infinite residuals never give NaN."""
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
    """A noise is a frozen attrs class that compares, pickles, and survives a release file. Cannot show: that its fields
    cannot claim less than they cost."""
    for what, _, _, noise in subject.one_per_kind():
        require(attrs.has(type(noise)), f"{what}: {type(noise).__qualname__} is no attrs class, so it cannot be saved")
        require(pickle.loads(pickle.dumps(noise)) == noise, f"{what}: the noise changes when it is pickled")
        plain = converter.unstructure(noise)
        require(converter.structure(plain, type(noise)) == noise, f"{what}: the noise changes when it is saved")


@CHECKS.add()
def global_random_state_is_left_alone(subject: MechanismSubject) -> None:
    """Drawing neither reads nor moves the global generators of random and numpy."""
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
    """Draws differ from call to call, from cell to cell and between two random streams. False alarm below 1e-30. Cannot
    show: independence."""
    for what, _, _, noise in subject.one_per_kind():
        stream = subject.randomness(5)
        draws = [noise.draw((200,), stream), noise.draw((200,), stream), noise.draw((200,), subject.randomness(6))]
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
    """The same `randomness.words` repeat the noise. A mechanism that draws elsewhere says so in `own_randomness`."""
    for what, _, _, noise in subject.one_per_kind():
        first, second = (noise.draw((50,), _WordsOnly(7)) for _ in range(2))
        require(np.array_equal(first, second), f"{what}: the same random words give other noise")


@CHECKS.add()
def samples_follow_logpdf(subject: MechanismSubject) -> None:
    """Chi-squared, mean |z| and mean z^2 of the draws against exp(logpdf). False alarm 1e-7 per noise; with a million
    draws a scale 1 % off is missed with probability below 1e-4."""
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
    """From samples alone: for the worst shifts no event "the sum, or the least, of the shifted cells is large" has odds
    beyond (epsilon, delta), by Clopper-Pearson bounds. False alarm 1e-7 per noise. Power: Laplace scales 10 % small,
    Gaussian ones 40 %. Cannot show: smaller violations, or other events."""
    count = max(1, subject.draws // 10)
    for what, sensitivity, _, noise in subject.one_per_kind():
        cost = noise.cost.to_approx("1e-3") if noise.cost.kind in ("zcdp", "gdp") else noise.cost
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


# --- Randomness -----------------------------------------------------------------------------------

_CELLS = 4096
# Seeds of so many bits can be searched through, or guessed by birthday: 128 are what cryptographers ask for.
_NARROW = 64
_SEEDED = ("default_rng", "RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class _CountedWords:
    """Words of a seeded stream, counted; after the first `common` of them those of another seed."""

    private = False

    def __init__(self, seed: int, common: int = 0, then: int = 0) -> None:
        self._first, self._left, self._rest = SeededRandomness(seed), common, SeededRandomness(then)
        self.count = 0

    def words(self, count: int) -> Array:
        """The next words."""
        self.count += count
        head = min(self._left, count)
        self._left -= head
        return np.concatenate([self._first.words(head), self._rest.words(count - head)])

    def generator(self) -> np.random.Generator:
        """For post-processing; another check refuses its use for noise."""
        return self._rest.generator()


@CHECKS.add(needs="argument")
def words_suffice_for_the_noise(subject: MechanismSubject) -> None:
    """A draw of 4096 cells takes at least log2(1 / its probability) random bits, as every exact sampler must, and more
    than its first 512 bits decide it. No false alarm. Cannot show: that all words taken are used."""
    for what, _, _, noise in subject.one_per_kind():
        stream = _CountedWords(3, then=4)
        drawn = noise.draw((_CELLS,), stream)
        needed = -float(np.sum(noise.logpdf(drawn.astype(np.float64)))) / math.log(2)
        if not subject.exact(noise):  # a density is the mass of a unit interval, about
            needed *= 0.95
        require(
            64 * stream.count >= needed,
            f"{what}: {_CELLS} cells hold {needed:.0f} bits of noise, made from {64 * stream.count} random bits; noise "
            "stretched from a seed is no more private than the seed is secret",
        )
        one, two = (noise.draw((_CELLS,), _CountedWords(5, common=8, then=other)) for other in (6, 7))
        require(not np.array_equal(one, two), f"{what}: the first 512 random bits alone decide {_CELLS} cells")


@CHECKS.add()
def no_narrow_seed(subject: MechanismSubject) -> None:
    """While it draws, no generator of numpy or `random` is made from a seed of 64 bits or fewer. Cannot show:
    generators of other libraries, or earlier seeds."""
    for what, _, _, noise in subject.one_per_kind():
        seeds: list[int] = []
        for seed in range(4):
            stream = subject.randomness(seed)
            with _seeds_noted(noise, type(subject.component).__module__, seeds):
                noise.draw((8,), stream)
        require(
            not seeds or max(seeds) > _NARROW,
            f"{what}: a generator is made from a seed of at most {max(seeds, default=0)} bits; draw from "
            "`randomness.words`, cell by cell",
        )


@contextlib.contextmanager
def _seeds_noted(noise: Noise, module: str, seeds: list[int]) -> Iterator[None]:
    """Notes how many bits each seed has that a generator is made from, by whatever name its maker is called."""
    spaces = [vars(sys.modules[name]) for name in {type(noise).__module__, module} if name in sys.modules]
    with contextlib.ExitStack() as stack:
        for owner, name in [(np.random, name) for name in _SEEDED] + [(random, "Random")]:
            original = getattr(owner, name)
            spy = _spy(original, seeds)
            stack.enter_context(mock.patch.object(owner, name, spy))
            for space in spaces:
                names = {own: spy for own, value in space.items() if value is original}
                stack.enter_context(mock.patch.dict(space, names))
        yield


def _spy(original: Any, seeds: list[int]) -> Any:
    def note(arguments: tuple[object, ...], named: dict[str, object]) -> None:
        for value in (*arguments[:1], *named.values()):
            bits = _bits(value)
            if bits is not None:
                seeds.append(bits)

    if not isinstance(original, type):

        def make(*arguments: object, **named: object) -> object:
            note(arguments, named)
            return original(*arguments, **named)

        return make

    def start(self: object, *arguments: object, **named: object) -> None:
        note(arguments, named)
        original.__init__(self, *arguments, **named)  # type: ignore[misc]

    return type(original.__name__, (original,), {"__init__": start})


def _bits(seed: object) -> int | None:
    """How many bits a seed has; None for what is none: nothing, or an object that was made from one."""
    if isinstance(seed, (bytes, bytearray, str)):
        return 8 * len(seed)
    if isinstance(seed, (int, np.integer)):
        return int(seed).bit_length()
    if isinstance(seed, (list, tuple, np.ndarray)):
        return sum(int(one).bit_length() for one in np.ravel(np.asarray(seed, dtype=object)))
    return None


@CHECKS.add()
def noise_never_repeats(subject: MechanismSubject) -> None:
    """In an eighth of a million cells, drawn in several calls, shapes and streams, no stretch comes back, at any lag,
    nor with its sign changed. False alarm below 1e-11 per noise. Cannot show: longer periods."""
    count = max(1, subject.draws // 8192) * 1024
    for what, _, _, noise in subject.one_per_kind():
        stream, other = subject.randomness(8), subject.randomness(9)
        parts = [noise.draw((count // 4,), stream), noise.draw((64, count // 256), stream)]
        parts += [noise.draw((8, 2, count // 128), stream), noise.draw((count // 8,), other)]
        parts += [noise.draw((count // 64,), one) for one in (stream, other) for _ in range(4)]
        values = np.concatenate([part.ravel() for part in parts])
        width = _stretch(noise, len(values), exact=subject.exact(noise))
        if width > len(values) // 64:
            continue
        found = _repeat(values, width)
        if found is not None:
            sign = " with the opposite sign" if found[1] else ""
            require(False, f"{what}: {width} cells in a row come back {found[0]:,} cells later{sign}")


def _stretch(noise: Noise, count: int, *, exact: bool) -> int:
    """So many cells that two stretches among `count` agree by chance with probability below 2^-40."""
    if not exact:
        return 8
    points, step = grid(noise, exact=True)
    agree = float(np.sum(np.exp(2 * log_masses(noise, points, step))))
    return max(8, math.ceil((2 * math.log2(count) + 41) / -math.log2(min(agree, 1 - 1e-12))))


def _repeat(values: Array, width: int) -> tuple[int, bool] | None:
    """(lag, whether the sign changed) of a stretch of `width` values that comes back; None if none does."""
    if values.dtype.kind == "f":
        values = values.view(np.int64) if values.dtype == np.float64 else values.astype(np.float64).view(np.int64)
        opposite = values ^ np.int64(-(2**63))
    else:
        opposite = -values
    prints = np.concatenate([_prints(values, width), _prints(opposite, width)])
    if not (np.diff(np.sort(prints)) == 0).any():
        return None
    order, half = np.argsort(prints, kind="stable"), len(prints) // 2
    for one, two in itertools.pairwise(order):
        # a print equal to its own opposite says nothing but that the stretch is zero
        if prints[one] != prints[two] or abs(int(two) - int(one)) == half:
            continue
        start, again = int(one) % half, int(two) % half
        sides = (values, opposite)
        first = sides[int(one) >= half][start : start + width]
        if np.array_equal(first, sides[int(two) >= half][again : again + width]):
            return abs(again - start), (int(one) >= half) != (int(two) >= half)
    return None


def _prints(values: Array, width: int) -> Array:
    """A 64-bit fingerprint of each stretch: a polynomial modulo 2^64 in scrambled values."""
    with np.errstate(over="ignore"):
        mixed = values.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        base = 0xD1342543DE82EF95
        powers = np.multiply.accumulate(np.r_[np.uint64(1), np.full(len(mixed), base, dtype=np.uint64)])
        inverse = np.multiply.accumulate(
            np.r_[np.uint64(1), np.full(len(mixed) - width, pow(base, -1, 1 << 64), dtype=np.uint64)]
        )
        sums = np.r_[np.uint64(0), np.cumsum(mixed * powers[:-1], dtype=np.uint64)]
        return np.asarray((sums[width:] - sums[:-width]) * inverse)


@CHECKS.add()
def shapes_share_one_law(subject: MechanismSubject) -> None:
    """In tables of all sizes, of one to three axes, each cell or slice is as often near 0 as logpdf says (binomial
    tests). False alarm 1e-7 per noise. Cannot show: errors of a single cell below some 40 % of the scale."""
    calls = max(60, subject.draws // 10_000)
    for what, _, _, noise in subject.one_per_kind():
        edge, low, high = _near_zero(noise, exact=subject.exact(noise))
        groups: list[tuple[str, int, int]] = []
        stream = subject.randomness(12)
        for shape in ((), (3,), (2, 2)):
            near = np.array([np.abs(noise.draw(shape, stream)) <= edge for _ in range(calls)]).reshape(calls, -1)
            hits = near.sum(axis=0)
            groups += [(f"cell {cell} of tables {shape}", int(hit), calls) for cell, hit in enumerate(hits)]
        for large in ((40, 300), (10, 20, 30)):
            near = np.abs(noise.draw(large, stream)) <= edge
            for axis, length in enumerate(large):
                hits = near.sum(axis=tuple(other for other in range(len(large)) if other != axis))
                size = near.size // length
                groups += [(f"slice {i} of axis {axis} of {large}", int(hit), size) for i, hit in enumerate(hits)]
        for where, hit, size in groups:
            chance = min(stats.binom.cdf(hit, size, low), stats.binom.sf(hit - 1, size, high))
            require(
                chance > ALARM / (2 * len(groups)),
                f"{what}: of {size} draws in {where}, {hit} are within {edge:g} of 0; logpdf says {low * size:.0f} "
                f"(chance {chance:.1g})",
            )


def _near_zero(noise: Noise, *, exact: bool) -> tuple[float, float, float]:
    """About the median of |noise|, and bounds of the probability to be within it."""
    points, step = grid(noise, exact=exact)
    masses: FloatArray = np.exp(log_masses(noise, points, step))
    masses = masses / masses.sum()
    sizes = np.abs(points)
    order = np.argsort(sizes, kind="stable")
    edge = float(sizes[order][np.searchsorted(np.cumsum(masses[order]), 0.5)])
    within = float(masses[sizes <= edge].sum())
    slack = 0.0 if exact else 0.02  # of a cell of the grid at either end
    return edge, max(within - slack, 0.0), min(within + slack, 1.0)


# --- Large changes and large budgets --------------------------------------------------------------
# The other privacy checks try every admissible shift, which is possible up to an L1 of about 6 only. Here a person
# moves up to 10,000 records, spread evenly over as many cells as the norms allow, and epsilon goes up to 20.


def _even(size: int, cells: int) -> Sensitivity:
    return Sensitivity(l0=cells, l1=size * cells, l2_squared=size**2 * cells, linf=size)


#: L1 from 25 to 10,000: in many cells, in one, and in between, where L0, L1, L2 and Linf each bind in turn.
LARGE = {
    "25 cells": _even(1, 25),
    "400 cells": _even(1, 400),
    "10,000 cells": _even(1, 10_000),
    "one cell by 60": _even(60, 1),
    "one cell by 10,000": _even(10_000, 1),
    "100 cells by 100": _even(100, 100),
    "any cells within L1 = 1,000": Sensitivity(l0=1000, l1=1000, l2_squared=10**6, linf=1000),
    "any cells within L2 = 30": Sensitivity(l0=900, l1=900, l2_squared=900, linf=30),
}

# 20 is where people who publish call it private still; the others keep sigma within what a grid can hold.
_AMOUNTS = {
    "pure": (Budget.pure("1/100"), Budget.pure(20)),
    "zcdp": (Budget.zcdp("1/2"), Budget.zcdp(20)),
    "approx": (Budget.approx(1, "1e-6"), Budget.approx(20, "1e-6")),
    "gdp": (Budget.gdp(1), Budget.gdp(6)),
}

# Amounts that no double holds, or that doubles round up; with epsilon = 20, small changes' largest budget.
_AWKWARD = {
    "pure": ("1/3", "1/10", "0.7", "1234567/1000003", "20"),
    "zcdp": ("1/3", "1/10", "0.7", "123456789/1000000007", "20"),
    "approx": ("1/3", "0.7", "20"),
    "gdp": ("1/3", "1/10", "0.7", "123456789/1000000007", "6"),
}


def _refused_by(noise: Noise, sensitivity: Sensitivity, *, exact: bool) -> str | None:
    """What refutes the cost, in words; None if nothing does. Every figure is a lower bound of the true one."""
    cost = noise.cost
    shifts = list(even_shifts(sensitivity))
    if cost.kind != "pure":  # the least, a middle and the largest size: sums over all outputs take time
        shifts = [shifts[place] for place in sorted({0, len(shifts) // 2, len(shifts) - 1})]
    for size, cells in shifts:
        moved = f"{cells:,} cell(s) moved by {size:,}"
        if cost.kind == "pure":
            loss = cells * largest_loss(noise, size)
            if loss > float(cost.epsilon) * (1 + 1e-9):
                return f"{moved} lose {loss:.9g} nats, but the cost claims {float(cost.epsilon):.9g}"
        elif cost.kind == "zcdp":
            divergence = cells * renyi_divergence(noise, size, 2.0, exact=exact, reach=14.0)
            allowed = 2 * float(cost.rho)
            if divergence > allowed * (1 + 1e-6):
                return f"{moved} have a Renyi divergence of {divergence:.9g} at order 2, but 2 rho = {allowed:.9g}"
        elif cost.kind == "gdp":
            delta = summed_hockey_stick(noise, size, cells, 1.0, exact=exact)
            allowed = float(normal_delta(math.sqrt(cost.mu_squared), np.array(1.0)))
            if delta > allowed * (1 + (1e-4 if exact else 1e-2)) + 1e-12:
                return f"{moved} have delta = {delta:.6g} at epsilon = 1, but mu claims {allowed:.6g}"
        else:
            delta = summed_hockey_stick(noise, size, cells, float(cost.epsilon), exact=exact)
            if delta > float(cost.delta) * (1 + (1e-4 if exact else 1e-2)) + 1e-12:
                return f"{moved} have delta = {delta:.6g}, but the cost claims {float(cost.delta):.6g}"
    return None


@CHECKS.add()
def large_changes_within_cost(subject: MechanismSubject) -> None:
    """Where one person may change up to 10,000 records, in one cell or many, and epsilon may be 20, no even shift loses
    more by logpdf than the cost. Cannot show: uneven shifts of that size."""
    for kind in sorted(subject.capabilities & set(BUDGETS)):
        cases = [(what, sensitivity, budget) for what, sensitivity in LARGE.items() for budget in _AMOUNTS[kind]]
        cases += [(what, sensitivity, _AMOUNTS[kind][-1]) for what, sensitivity in SENSITIVITIES.items()]
        for what, sensitivity, budget in cases:
            noise = subject.served(sensitivity, budget)
            if noise is None:
                continue
            found = _refused_by(noise, sensitivity, exact=subject.exact(noise))
            require(found is None, f"{budget}, {what}: {found}")


@CHECKS.add()
def costs_compare_as_fractions(subject: MechanismSubject) -> None:
    """The exact parts of the cost are at most those asked for; a pure one is at least the loss, and the event's
    sensitivity at least the norm, without tolerance: the last digit is rounded against the mechanism. Cannot show:
    losses that logpdf hides in its own rounding (some 1e-13 of them)."""
    for kind in sorted(subject.capabilities & set(BUDGETS)):
        for text in _AWKWARD[kind]:
            asked = _budget(kind, text)
            for what, sensitivity in {**SENSITIVITIES, "400 cells": LARGE["400 cells"]}.items():
                noise = subject.served(sensitivity, asked)
                if noise is None:
                    continue
                cost = noise.cost
                require(type(cost) is Budget, f"{asked}, {what}: the cost is a {type(cost).__name__}, no plain Budget")
                for part in ("epsilon", "delta", "rho", "mu_squared"):
                    most, claimed = Fraction(getattr(asked, part)), Fraction(getattr(cost, part))
                    require(claimed <= most, f"{asked}, {what}: {part} is {claimed}, {float(claimed - most):.3g} more")
                if kind == "pure" and subject.exact(noise):
                    size, cells = max(even_shifts(sensitivity), key=lambda shift: shift[0] * shift[1])
                    loss = cells * Fraction(largest_loss(noise, size))
                    require(
                        loss <= Fraction(cost.epsilon),
                        f"{asked}, {what}: the loss is {float(loss)!r} at least, the cost {float(cost.epsilon)!r} "
                        f"({float(loss / cost.epsilon - 1):.2g} too small)",
                    )
                _event_covers(f"{asked}, {what}", noise, sensitivity)


def _event_covers(what: str, noise: Noise, sensitivity: Sensitivity) -> None:
    event = noise.event
    stated = Fraction(event.sensitivity)
    if event.kind in ("gaussian", "discrete-gaussian"):
        stated, norm = stated**2, sensitivity.l2_squared
    else:
        norm = sensitivity.l1
    require(
        stated >= norm,
        f"{what}: the event's sensitivity {event.sensitivity!r} is below the norm by {float(1 - stated / norm):.2g} of "
        f"it; round it up (math.nextafter)",
    )


def _budget(kind: str, text: str) -> Budget:
    if kind == "approx":
        return Budget.approx(text, "1e-6")
    return {"pure": Budget.pure, "zcdp": Budget.zcdp, "gdp": Budget.gdp}[kind](text)
