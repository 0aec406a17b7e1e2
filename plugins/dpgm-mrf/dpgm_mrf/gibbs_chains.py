"""Chains: where they start, how they come to the model, and what that says of log Z.

A chain starts as a record of independent attributes. A path of distributions leads from there to the model, one sweep
at each: p_b proportional to q^(1 - b) p^b, q the start. What a chain gathers on the way is a weight whose mean is Z
(Neal 2001, annealed importance sampling). Impossible cells have low potentials on the way, so that chains come around
them; records still impossible at its end have weight 0, and their chains go on as copies of others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, InferenceError, IntArray, Tables
from dpgm_mrf.gibbs_law import Law
from dpgm_mrf.gibbs_sweeps import Sweep, compiled, sweep

__all__ = ["Annealed", "Chains", "annealed", "sweeper"]

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

    kept: whether the weights are alike enough, so that the chains kept up with the path.
    """

    codes: IntArray
    log_partition: float
    error: float
    kept: bool


def sweeper(law: Law, chains: int, sweeps: int) -> Sweep:
    """Compiled where that pays and numba is there."""
    updates = (len(law.lookups.partners) + len(law.conditionals)) * chains * sweeps
    return (compiled() if updates >= _WORTH else None) or sweep


def annealed(law: Law, potentials: Tables, chains: int, steps: int, generator: np.random.Generator) -> Annealed:
    """From independent attributes to the model in so many sweeps.

    Raises InferenceError for NaN and +inf, and where no chain comes to a possible record.
    """
    groups = potentials.arrays()
    for (name, _), part in zip(potentials.items(), groups, strict=True):
        if np.isnan(part).any() or (part == np.inf).any():
            raise InferenceError(f"gibbs: the potentials of {name!r} hold NaN or +inf; they must be below infinity")
        if (part == -np.inf).all():
            raise InferenceError(_IMPOSSIBLE)
    starts = _independent(law, groups)
    codes = np.stack([_drawn(start, generator.random(chains)) for start in starts])
    soft = _softened(groups)
    tables = [block.table(soft) for block in law.whole]
    prepared = law.prepared(soft)
    logs = np.zeros(chains)
    run = sweeper(law, chains, steps)
    for step in range(1, steps + 1):
        logs += (law.log_weights(tables, codes) - _log_starts(starts, codes)) / steps
        share = step / steps
        free = [
            np.where(start == -np.inf, start, (1 - share) * np.where(np.isinf(start), 0.0, start)) for start in starts
        ]
        run(law.lookups, prepared.tables(share, free), codes, generator.random((len(law.conditionals), chains)))
    possible = np.ones(chains, dtype=bool)
    if soft is not groups:
        possible = law.log_weights([block.table(groups) for block in law.whole], codes) > -np.inf
    found = int(possible.sum())
    if not found:
        raise InferenceError(
            f"gibbs: none of {chains:,} chains came to a record of positive probability; every record may be "
            "impossible, or the zeros (potentials of -inf) leave too few for one step at a time: junction-tree tells, "
            "or raise annealing"
        )
    log_partition, error, kept = _log_mean(np.where(possible, logs, -np.inf))
    if found < chains:
        codes = codes.copy()
        codes[:, ~possible] = codes[:, generator.choice(np.flatnonzero(possible), chains - found)]
    return Annealed(codes=codes, log_partition=log_partition, error=error, kept=kept)


class Chains:
    """Chains that go on from where they are, at one model.

    codes: (attributes, chains); their own from now on.
    """

    def __init__(
        self, law: Law, potentials: Tables, codes: IntArray, sweeps: int, generator: np.random.Generator
    ) -> None:
        self._law, self.codes, self._generator = law, codes, generator
        self._buffer = law.prepared(potentials.arrays()).tables()
        self._run = sweeper(law, codes.shape[1], sweeps)

    def move(self, sweeps: int) -> None:
        """So many sweeps."""
        shape = len(self._law.conditionals), self.codes.shape[1]
        for _ in range(sweeps):
            self._run(self._law.lookups, self._buffer, self.codes, self._generator.random(shape))

    def visited(self, draws: int, thinning: int) -> Iterator[IntArray]:
        """Where they are, so many times, the given number of sweeps after each other."""
        for draw in range(draws):
            if draw:
                self.move(thinning)
            yield self.codes


def _independent(law: Law, groups: Sequence[FloatArray]) -> list[FloatArray]:
    """log q of each attribute's codes: what its cliques say of it, the mean over their other attributes.

    One round of belief propagation, and a part that is uniform over what is possible. Raises InferenceError where that
    leaves an attribute no code.
    """
    names = law.structure.domain.names
    place = {name: number for number, name in enumerate(names)}
    logs = [np.zeros(size) for size in law.sizes]
    for members, part in zip(law.structure.groups, groups, strict=True):
        for axis in range(part.ndim):
            rows = np.moveaxis(part, axis, 0).reshape(part.shape[axis], -1)
            top = rows.max(axis=1)
            base = np.where(top == -np.inf, 0.0, top)
            with np.errstate(divide="ignore", under="ignore"):
                said = base + np.log(np.exp(rows - base[:, np.newaxis]).mean(axis=1))
            for clique in members:
                logs[place[clique[axis]]] += said
    found = []
    for one in logs:
        top = one.max()
        if top == -np.inf:
            raise InferenceError(_IMPOSSIBLE)
        weights = np.exp(one - top)
        possible = one > -np.inf
        shares = (1 - _ASTRAY) * weights / weights.sum() + _ASTRAY * possible / possible.sum()
        with np.errstate(divide="ignore"):
            found.append(np.log(shares / shares.sum()))
    return found


def _drawn(logs: FloatArray, uniform: FloatArray) -> IntArray:
    sums = np.cumsum(np.exp(logs))
    found: IntArray = np.searchsorted(sums[:-1] / sums[-1], uniform, side="right")
    return found.astype(np.int64)


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
    kept = effective >= _ENOUGH * len(logs)
    if not kept:  # few weights outdo all others, and nobody knows by how much the next would
        error = max(error, float(alive.std()))
    return top + math.log(float(weights.mean())), error, kept
