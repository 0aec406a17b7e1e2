"""What a learner makes of every kind of budget, and of every release that it is handed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from dpgm_core.arrays import IntArray
from dpgm_core.curator.live import LiveCurator
from dpgm_core.errors import BudgetError, DpgmError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.contract import Fit
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables
from dpgm_core.testing.check import CheckFailed, Checklist, require
from dpgm_core.testing.doors import Door, TrappedRecords, live_curator
from dpgm_core.testing.learning import draw, replayed, truth
from dpgm_core.testing.oracles import enumerated, incidence
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")

_KINDS = ("pure", "zcdp", "approx")
_RECORDS = 4000
# What may be left of a budget, and how far marginals may be off, as a share of what the uniform model's are.
_LEFT, _NEARER = 1e-3, 0.9


@CHECKS.add()
def every_kind_of_budget_is_served_or_refused_unpaid(subject: LearnerSubject) -> None:
    """Given epsilon = 1, rho = 1/2 and (1, 1e-5) it raises BudgetError before it is handed anything, or spends all but
    a thousandth and comes a tenth of the way from the uniform model to the truth or nearer. Cannot show: that it is as
    good with each."""
    theta = truth(subject.chain)
    codes, chances = draw(theta, _RECORDS, 1), enumerated(theta).probabilities
    matrix = incidence(theta.structure)
    expected, even = matrix @ chances, matrix.mean(axis=1)
    served = []
    for kind in _KINDS:
        door = Door(_curator(subject, codes, kind))
        try:
            fit = _learned(subject, door)
        except BudgetError as error:
            require(
                not door.handed, f"{door.budget}: it refuses the budget when {len(door.handed)} are paid for: {error}"
            )
            continue
        except Exception as error:
            raise CheckFailed(f"{door.budget}: {type(error).__name__}: {error}") from error
        served.append(kind)
        left = [
            float(getattr(door.remaining, part) / getattr(door.budget, part))
            for part in ("epsilon", "rho", "delta")
            if getattr(door.budget, part)
        ]
        require(max(left) <= _LEFT, f"{door.budget}: {max(left):.1%} of it is left")
        found = matrix @ enumerated(fit.model.potentials).probabilities
        off, far = (float(np.abs(one - expected).sum()) for one in (found, even))
        require(
            off <= _NEARER * far, f"{door.budget}: its marginals are off by {off:.3g}, the uniform model's by {far:.3g}"
        )
    require(served, "it refuses every kind of budget")


def _curator(subject: LearnerSubject, codes: IntArray, kind: str) -> LiveCurator:
    records = TrappedRecords(codes, rows=max(1, len(codes)))
    return live_curator(records, subject.served(subject.chain), kind)


def _learned(subject: LearnerSubject, door: Door) -> Fit:
    return subject.component.learn(door, JunctionTree(), randomness=SeededRandomness(1), progress=silent)


class _Altering(Door):
    """A curator whose release with one number has every table turned about."""

    def __init__(self, curator: LiveCurator, number: int) -> None:
        super().__init__(curator)
        self.number, self.is_altered = number, False

    def as_handed(self, release: NoisyTables) -> NoisyTables:
        """The release, altered where it is the one with the number."""
        if len(self.handed) != self.number:
            return release
        self.is_altered = True
        return _turned(release)


def _turned(release: NoisyTables) -> NoisyTables:
    """The same release with the cells of every table in the opposite order."""
    values = np.concatenate([table.reshape(-1)[::-1] for table in release.tables.arrays()])
    return evolve(release, tables=Tables(release.structure, values))


@CHECKS.add()
def each_release_counts(subject: LearnerSubject) -> None:
    """The first, middle and last release or round it asks for, and each of two saved releases, turned about, give
    another model. Cannot show: that each counts for as much as it should."""
    codes = draw(truth(subject.chain), 2000, 1)
    for kind in _KINDS:
        plain = Door(_curator(subject, codes, kind))
        try:
            before = _learned(subject, plain)
        except BudgetError:
            continue
        count = len(plain.handed)
        for number in sorted({0, count // 2, count - 1}):
            door = _Altering(_curator(subject, codes, kind), number)
            after = _or_none(lambda door=door: _learned(subject, door))  # type: ignore[misc]
            if door.is_altered:  # a session hands out its steps one by one, and its release at the end
                _moves(f"release {number + 1} of {count} that it asks for", before, after)
        break
    structure = subject.served(subject.chain)
    saved = [live_curator(TrappedRecords(codes), structure, "pure", seed=seed).release() for seed in (1, 2)]
    try:
        before = replayed(subject.component, saved, structure)
    except DpgmError:  # it asks for what saved releases cannot be
        return
    for number in range(2):
        turned = [_turned(one) if place == number else one for place, one in enumerate(saved)]
        after = _or_none(lambda turned=turned: replayed(subject.component, turned, structure))  # type: ignore[misc]
        _moves(f"saved release {number + 1} of 2", before, after)


def _or_none(learn: Callable[[], Fit]) -> Fit | None:
    """The fit, or None where it looked at the releases and could not learn from them."""
    try:
        return learn()
    except DpgmError:
        return None


def _moves(where: str, before: Fit, after: Fit | None) -> None:
    same = after is not None and np.array_equal(before.model.potentials.values, after.model.potentials.values)
    require(not same, f"{where}: with other numbers in it the model is the same to the last bit, so nobody looks at it")
