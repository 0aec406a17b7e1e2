"""Where noise comes from: enough random words, no narrow seed, nothing twice, one law whatever the shape."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.noise.contract import Noise
from dpgm_core.randomness import SeededRandomness
from dpgm_core.testing.check import ALARM, Checklist, require
from dpgm_core.testing.privacy_loss import grid, log_masses
from dpgm_core.testing.subjects import MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")

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
    """A draw of 4096 cells takes at least log2(1 / its probability) random bits, as whatever samples exactly must (a
    leaf of the sampling tree at depth d has a mass of 2^-d), and more than its first 512 bits decide it. No false
    alarm. Cannot show: that all the words taken are used."""
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
    """While it draws, no generator of numpy or `random` is made from a seed of 64 bits or fewer: so few can be tried
    one by one. Cannot show: generators of other libraries, or seeds set before."""
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
    """In an eighth of a million cells, drawn in several calls, shapes and streams, no stretch comes back, at whatever
    lag, nor with its sign changed. False alarm below 1e-11 per noise. Cannot show: periods beyond what was drawn."""
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
    """Single cells, small tables and large ones of one to three axes: each cell of a small table, and each slice of a
    large one, is as often near 0 as logpdf says (binomial tests). False alarm 1e-7 per noise (fixed seed). Cannot show:
    errors of a single cell below some 40 % of the scale."""
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
