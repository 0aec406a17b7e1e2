"""Chains of a Gibbs sampler: their start, annealing to the model, sweeps, and the estimate of log Z.

A chain starts as a record of independent attributes. A path of distributions leads from there to the model, one sweep
at each: p_b proportional to q^(1 - b) p^b, q the start. What a chain gathers on the way is a weight whose mean is Z
(Neal 2001, annealed importance sampling). Impossible cells have low potentials on the way, so that chains come around
them; records still impossible at its end have weight 0, and their chains go on as copies of others.

A sweep draws every attribute of every chain again, given the others, one attribute after the other. With numpy all
chains move together, an attribute at a time; with numba (extra `fast`) the same draws are made of the same uniform
numbers in compiled loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, InferenceError, IntArray, Tables
from dpgm_mrf.gibbs.layout import Layout, Lookups

__all__ = ["Annealed", "Chains", "Sweep", "annealed", "compiled", "sweep", "sweeper"]

# Compiling takes a second or two; so many lookups take longer than that without.
_WORTH = 200_000_000
# Nats by which an impossible cell lies below the best of its table on the way, besides what tables differ by.
_PENALTY = 20.0
# Fewer effective weights than this part of the chains tell Z no better than to their own spread, and the chains may be
# where the path left them.
_ENOUGH = 0.05
# Part of the start that is uniform: cliques that are sure of an attribute may be wrong, and chains shall look around.
_ASTRAY = 0.2
# Weights as alike as this, nats, are those of a model that is the start itself.
_ALIKE = 1e-9

_IMPOSSIBLE = (
    "gibbs: every record has probability 0: what is given, or the zeros (-inf) of the model, rule all of them out"
)


@frozen(kw_only=True, eq=False)
class Annealed:
    """Chains at the model. codes: (attributes, chains). log_partition, error: log Z and its standard error, nats.

    reliable: whether the weights are alike enough, so that the chains kept up with the path.
    """

    codes: IntArray
    log_partition: float
    error: float
    reliable: bool


def sweeper(layout: Layout, chains: int, sweeps: int) -> Sweep:
    """Compiled where that pays and numba is there."""
    updates = (len(layout.lookups.partners) + len(layout.conditionals)) * chains * sweeps
    return (compiled() if updates >= _WORTH else None) or sweep


def annealed(layout: Layout, potentials: Tables, chains: int, steps: int, generator: np.random.Generator) -> Annealed:
    """Anneal chains from independent attributes to the model in so many sweeps.

    Raises InferenceError for NaN and +inf, and where no chain comes to a possible record.
    """
    groups = potentials.arrays()
    for (name, _), part in zip(potentials.items(), groups, strict=True):
        if np.isnan(part).any() or (part == np.inf).any():
            raise InferenceError(f"gibbs: the potentials of {name!r} hold NaN or +inf; they must be below infinity")
        if (part == -np.inf).all():
            raise InferenceError(_IMPOSSIBLE)
    starts = _independent(layout, groups)
    codes = np.stack([_drawn(start, generator.random(chains)) for start in starts])
    soft = _softened(groups)
    tables = [block.table(soft) for block in layout.whole]
    prepared = layout.prepared(soft)
    logs = np.zeros(chains)
    run = sweeper(layout, chains, steps)
    for step in range(1, steps + 1):
        logs += (layout.log_weights(tables, codes) - _log_starts(starts, codes)) / steps
        share = step / steps
        free = [
            np.where(start == -np.inf, start, (1 - share) * np.where(np.isinf(start), 0.0, start)) for start in starts
        ]
        run(layout.lookups, prepared.tables(share, free), codes, generator.random((len(layout.conditionals), chains)))
    possible = np.ones(chains, dtype=bool)
    if soft is not groups:
        possible = layout.log_weights([block.table(groups) for block in layout.whole], codes) > -np.inf
    count = int(possible.sum())
    if not count:
        raise InferenceError(
            f"gibbs: none of {chains:,} chains came to a record of positive probability; every record may be "
            "impossible, or the zeros (potentials of -inf) leave too few for one step at a time: junction-tree tells, "
            "or raise annealing"
        )
    log_partition, error, reliable = _log_mean(np.where(possible, logs, -np.inf))
    if count < chains:
        codes = codes.copy()
        codes[:, ~possible] = codes[:, generator.choice(np.flatnonzero(possible), chains - count)]
    return Annealed(codes=codes, log_partition=log_partition, error=error, reliable=reliable)


class Chains:
    """Chains that go on from where they are, at one model.

    codes: (attributes, chains); their own from now on.
    """

    def __init__(
        self, layout: Layout, potentials: Tables, codes: IntArray, sweeps: int, generator: np.random.Generator
    ) -> None:
        self._layout, self.codes, self._generator = layout, codes, generator
        self._buffer = layout.prepared(potentials.arrays()).tables()
        self._run = sweeper(layout, codes.shape[1], sweeps)

    def move(self, sweeps: int) -> None:
        """Make so many sweeps."""
        shape = len(self._layout.conditionals), self.codes.shape[1]
        for _ in range(sweeps):
            self._run(self._layout.lookups, self._buffer, self.codes, self._generator.random(shape))

    def visited(self, draws: int, thinning: int) -> Iterator[IntArray]:
        """Yield the codes `draws` times, `thinning` sweeps apart."""
        for draw in range(draws):
            if draw:
                self.move(thinning)
            yield self.codes


def _independent(layout: Layout, groups: Sequence[FloatArray]) -> list[FloatArray]:
    """log q of each attribute's codes: what its cliques say of it, the mean over their other attributes.

    One round of belief propagation, and a part that is uniform over what is possible. Raises InferenceError where that
    leaves an attribute no code.
    """
    names = layout.structure.domain.names
    place = {name: number for number, name in enumerate(names)}
    logs = [np.zeros(size) for size in layout.sizes]
    for members, part in zip(layout.structure.groups, groups, strict=True):
        for axis in range(part.ndim):
            rows = np.moveaxis(part, axis, 0).reshape(part.shape[axis], -1)
            top = rows.max(axis=1)
            base = np.where(top == -np.inf, 0.0, top)
            with np.errstate(divide="ignore", under="ignore"):
                said = base + np.log(np.exp(rows - base[:, np.newaxis]).mean(axis=1))
            for clique in members:
                logs[place[clique[axis]]] += said
    distributions = []
    for one in logs:
        top = one.max()
        if top == -np.inf:
            raise InferenceError(_IMPOSSIBLE)
        weights = np.exp(one - top)
        possible = one > -np.inf
        shares = (1 - _ASTRAY) * weights / weights.sum() + _ASTRAY * possible / possible.sum()
        with np.errstate(divide="ignore"):
            distributions.append(np.log(shares / shares.sum()))
    return distributions


def _drawn(logs: FloatArray, uniform: FloatArray) -> IntArray:
    sums = np.cumsum(np.exp(logs))
    drawn: IntArray = np.searchsorted(sums[:-1] / sums[-1], uniform, side="right")
    return drawn.astype(np.int64)


def _log_starts(starts: Sequence[FloatArray], codes: IntArray) -> FloatArray:
    """log q of each record."""
    total = np.zeros(codes.shape[1])
    for start, column in zip(starts, codes, strict=True):
        total += start[column]
    return total


def _softened(groups: Sequence[FloatArray]) -> Sequence[FloatArray]:
    """The potentials with low ones for -inf; themselves where there are none."""
    if all(np.isfinite(part).all() for part in groups):
        return groups
    spans = [float(part.max() - part.min(where=np.isfinite(part), initial=np.inf)) for part in groups]
    below = _PENALTY + 2 * max(spans)
    return [np.where(part == -np.inf, part.max() - below, part) for part in groups]


def _log_mean(logs: FloatArray) -> tuple[float, float, bool]:
    """The log of the mean of exp(logs), its standard error, and whether enough of them count."""
    top = float(logs.max())
    with np.errstate(under="ignore"):
        weights = np.exp(logs - top)
        effective = float(weights.sum() ** 2 / (weights**2).sum())
    alive = logs[np.isfinite(logs)]
    error = math.sqrt(max(0.0, 1 / effective - 1 / len(logs)))
    if float(alive.std()) > _ALIKE:  # what none of the chains met may still weigh as much as a few of them
        error = math.hypot(error, 2 / len(logs))
    reliable = effective >= _ENOUGH * len(logs)
    if not reliable:  # few weights outdo all others, and nobody knows by how much the next would
        error = max(error, float(alive.std()))
    return top + math.log(float(weights.mean())), error, reliable


#: (lookups, buffer of tables, codes, uniform numbers): codes change in place.
Sweep: TypeAlias = Callable[[Lookups, FloatArray, IntArray, FloatArray], None]


def sweep(lookups: Lookups, buffer: FloatArray, codes: IntArray, uniform: FloatArray) -> None:
    """One sweep with numpy. codes: (attributes, chains), int64; uniform: (conditionals, chains), in [0, 1)."""
    with np.errstate(over="ignore"):
        for number, attribute in enumerate(lookups.attributes.tolist()):
            blocks = range(lookups.blocks[number], lookups.blocks[number + 1])
            size, draw = int(lookups.sizes[number]), uniform[number]
            rows = [_looked_up(lookups, buffer, codes, block, size, len(blocks)) for block in blocks]
            if len(blocks) == 1:
                codes[attribute] = _code(rows[0], draw)
                continue
            logs = rows[0]
            for more in rows[1:]:
                logs += more
            if size == 2:
                codes[attribute] = draw >= 1.0 / (1.0 + np.exp(logs[0]))
                continue
            sums = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
            codes[attribute] = _code(sums[:-1], draw * sums[-1])


def _looked_up(lookups: Lookups, buffer: FloatArray, codes: IntArray, block: int, size: int, blocks: int) -> FloatArray:
    """(rows, chains) of one block's table."""
    first, end = int(lookups.firsts[block]), int(lookups.firsts[block + 1])
    start, cells = int(lookups.starts[block]), int(lookups.cells[block])
    rows = size - 1 if blocks == 1 or size == 2 else size
    table = buffer[start : start + rows * cells].reshape(rows, cells)
    if first == end:
        return np.repeat(table, codes.shape[1], axis=1)
    at = codes[lookups.partners[first]] * lookups.strides[first]
    for place in range(first + 1, end):
        at += codes[lookups.partners[place]] * lookups.strides[place]
    return table[:, at] if rows > 1 else table[0].take(at)[np.newaxis]


def _code(sums: FloatArray, draw: FloatArray) -> IntArray:
    """Return how many of the cumulated probabilities a number reaches."""
    if len(sums) == 1:
        one: IntArray = draw >= sums[0]
        return one
    reached: IntArray = (draw >= sums).sum(axis=0)
    return reached


@lru_cache(maxsize=1)
def compiled() -> Sweep | None:
    """`sweep` compiled by numba, or None where numba is not installed."""
    try:
        from numba import njit
    except ImportError:
        return None
    try:
        kernel = njit(nogil=True, cache=True)(_kernel)
    except RuntimeError:  # there is no folder that may keep what is compiled
        kernel = njit(nogil=True)(_kernel)

    def run(lookups: Lookups, buffer: FloatArray, codes: IntArray, uniform: FloatArray) -> None:
        kernel(
            lookups.attributes,
            lookups.sizes,
            lookups.single,
            lookups.blocks,
            lookups.firsts,
            lookups.partners,
            lookups.strides,
            lookups.starts,
            lookups.cells,
            buffer,
            codes,
            uniform,
        )

    return run


def _kernel(
    attributes: Any,
    sizes: Any,
    single: Any,
    blocks: Any,
    firsts: Any,
    partners: Any,
    strides: Any,
    starts: Any,
    cells: Any,
    buffer: Any,
    codes: Any,
    uniform: Any,
) -> None:
    """Sweep as `sweep` does, in loops over plain arrays."""
    chains = codes.shape[1]
    logs = np.empty(sizes.max())
    at = np.empty(chains, np.int64)
    odds = np.empty(chains)
    for number in range(len(attributes)):
        attribute, size = attributes[number], sizes[number]
        low, high = blocks[number], blocks[number + 1]
        if size == 2:
            odds[:] = 0.0
            for block in range(low, high):
                at[:] = starts[block]
                for place in range(firsts[block], firsts[block + 1]):
                    partner, stride = partners[place], strides[place]
                    for chain in range(chains):
                        at[chain] += codes[partner, chain] * stride
                for chain in range(chains):
                    odds[chain] += buffer[at[chain]]
            if not single[number]:
                for chain in range(chains):
                    odds[chain] = 1.0 / (1.0 + np.exp(odds[chain]))
            for chain in range(chains):
                codes[attribute, chain] = 1 if uniform[number, chain] >= odds[chain] else 0
            continue
        for chain in range(chains):
            draw = uniform[number, chain]
            code = 0
            if single[number]:
                where = starts[low]
                for place in range(firsts[low], firsts[low + 1]):
                    where += codes[partners[place], chain] * strides[place]
                while code < size - 1 and draw >= buffer[where + code * cells[low]]:
                    code += 1
            else:
                logs[:size] = 0.0
                for block in range(low, high):
                    where = starts[block]
                    for place in range(firsts[block], firsts[block + 1]):
                        where += codes[partners[place], chain] * strides[place]
                    for value in range(size):
                        logs[value] += buffer[where + value * cells[block]]
                top = logs[:size].max()
                total = 0.0
                for value in range(size):
                    total += np.exp(logs[value] - top)
                    logs[value] = total
                while code < size - 1 and draw * total >= logs[code]:
                    code += 1
            codes[attribute, chain] = code
