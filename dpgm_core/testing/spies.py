"""Spies: a mechanism, a ledger and records that note, in one log, when they are asked, charged and read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array
from dpgm_core.domain import Domain
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.randomness import Randomness
from dpgm_core.testing.doors import TrappedRecords
from dpgm_core.testing.reference import ReferenceLaplace, ReferenceLaplaceNoise

if TYPE_CHECKING:
    from dpgm_core.arrays import Codes

__all__ = ["SpyLedger", "SpyMechanism", "SpyNoise", "SpyRecords"]


@frozen(kw_only=True)
class SpyNoise(ReferenceLaplaceNoise):
    """Notes every draw; no two cells ever get the same number."""

    log: list[Any]

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Numbers that say which draw they are."""
        before = sum(one[1] for one in self.log if one[0] == "draw")
        count = math.prod(shape)
        self.log.append(("draw", count))
        return np.asarray(1_000_000 + before + np.arange(count, dtype=np.int64).reshape(shape))


class SpyMechanism:
    """Notes what it is asked for."""

    own_randomness: ClassVar[None] = None

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> SpyNoise:
        """Reference Laplace noise that tells."""
        self.log.append(("sensitivity", sensitivity))
        plain = ReferenceLaplace().noise(sensitivity, budget)
        return SpyNoise(scale=plain.scale, l1=plain.l1, cost=plain.cost, log=self.log)


class SpyLedger(Ledger):
    """Notes when it is charged."""

    log: list[Any]

    def charge(self, budget: Budget, *, note: str = "", conditions: tuple[str, ...] = ()) -> int:
        """Charge, then tell."""
        entry = super().charge(budget, note=note, conditions=conditions)
        self.log.append(("charge", budget))
        return entry


class SpyRecords(TrappedRecords):
    """Notes when it is read."""

    log: list[Any]

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Tell, then read."""
        self.log.append(("read", len(self.codes)))
        return super().batches(domain, columns)
