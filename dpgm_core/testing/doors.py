"""A curator with an alarm on every door but its protocol, records with a booby trap, and noise of fixed bad luck."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.curator.contract import ForwardingCurator, Rounds, Session
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.single import Single
from dpgm_core.domain import Domain, code_dtype
from dpgm_core.noise.contract import DualTerm, Mechanism, Noise
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.randomness import Randomness, SeededRandomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.testing.reference import ReferenceGaussian, ReferenceLaplace
from dpgm_core.workload import Workload

if TYPE_CHECKING:
    from dpgm_core.arrays import Codes

__all__ = ["Door", "SunkMechanism", "TrappedRecords", "live_curator"]

# Modules of core that may read records.
_READERS = (
    "dpgm_core.curator.counted",
    "dpgm_core.curator.descending",
    "dpgm_core.curator.live",
    "dpgm_core.curator.rounds",
    "dpgm_core.curator.session",
    "dpgm_core.curator.voting",
    "dpgm_core.counting.distances",
    "dpgm_core.counting.kernel",
    "dpgm_core.counting.shares",
    "dpgm_core.counting.subsample",
)


class TrappedRecords:
    """A source of codes that remembers who read it without the curator.

    codes: (records, attributes), in the domain's order. rows: per batch. trespassers: modules that asked for records
    while the curator was not at work. reads: how often records were asked for.
    """

    def __init__(self, codes: IntArray, *, rows: int = 1000) -> None:
        self.codes, self.rows = codes, rows
        self.trespassers: list[str] = []
        self.reads = 0

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Batches of codes."""
        self.reads += 1
        frame = sys._getframe(1)
        callers = []
        while frame is not None:
            callers.append(str(frame.f_globals.get("__name__")))
            frame = frame.f_back  # type: ignore[assignment]
        if not any(caller in _READERS for caller in callers):
            self.trespassers.append(callers[0])
        places = [domain.names.index(name) for name in columns]
        kinds = [code_dtype(domain[name].size) for name in columns]
        for start in range(0, len(self.codes), self.rows):
            part = self.codes[start : start + self.rows]
            yield [part[:, place].astype(kind) for place, kind in zip(places, kinds, strict=True)]


class Door(ForwardingCurator):
    """The protocol of a curator and nothing else; whatever else is asked of it is remembered and refused.

    touched: the names asked for. handed: every release that went out.
    """

    def __init__(self, curator: LiveCurator) -> None:
        super().__init__(curator)
        self.touched: list[str] = []
        self.handed: list[NoisyTables] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self.touched.append(name)
        raise AttributeError(
            f"a curator offers structure, terms, budget, remaining, released, release, rounds and session; not {name!r}"
        )

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        split: str | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """Return noisy tables, and keep them in `handed`."""
        return self._hand(super().release(budget=budget, cliques=cliques, split=split, accept=accept))

    def as_handed(self, release: NoisyTables) -> NoisyTables:
        """Return a release as the learner gets it: unchanged."""
        return release

    def _hand(self, release: NoisyTables) -> NoisyTables:
        self.handed.append(self.as_handed(release))
        return self.handed[-1]

    def rounds(self, n: int, **options: Any) -> AbstractContextManager[Rounds]:
        """Open subsampled releases that are kept in `handed` too."""
        return self._watched(super().rounds(n, **options))

    def session(
        self, *, workload: Workload, budget: Budget | None = None, votes: Budget | None = None
    ) -> AbstractContextManager[Session]:
        """Open adaptive steps; their release is handed out when they end."""
        return self._ending(super().session(workload=workload, budget=budget, votes=votes))

    @contextmanager
    def _ending(self, opened: AbstractContextManager[Session]) -> Iterator[Session]:
        before = len(self.released)
        try:
            with opened as session:
                yield session
        finally:
            self.handed += self.released[before:]

    @contextmanager
    def _watched(self, opened: AbstractContextManager[Rounds]) -> Iterator[Rounds]:
        with opened as rounds:
            yield _Watched(rounds, self._hand)


class _Watched(Single):
    def __init__(self, rounds: Rounds, hand: Callable[[NoisyTables], NoisyTables]) -> None:
        super().__init__()
        self._next, self._hand = rounds.next, hand

    def next(self, *arguments: Any, **more: Any) -> NoisyTables:
        return self._hand(self._next(*arguments, **more))


@frozen(kw_only=True)
class _SunkNoise:
    """Another noise whose draws are all far below zero."""

    inner: Noise

    @property
    def cost(self) -> Budget:
        return self.inner.cost

    @property
    def event(self) -> PrivacyEvent:
        return self.inner.event

    @property
    def variance(self) -> float:
        return self.inner.variance

    @property
    def dual(self) -> DualTerm | None:
        return self.inner.dual

    @property
    def exact(self) -> bool:
        return self.inner.exact

    @property
    def unsafe(self) -> str | None:
        return self.inner.unsafe

    @property
    def support(self) -> tuple[float, float]:
        return self.inner.support

    @property
    def log_concave(self) -> bool:
        return self.inner.log_concave

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        return np.full(shape, -1_000_000, dtype=np.int64)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        return self.inner.logpdf(residual)

    def score(self, residual: FloatArray) -> FloatArray:
        return self.inner.score(residual)


@frozen(kw_only=True)
class SunkMechanism:
    """A mechanism out of luck: it calibrates as `inner` does, and every draw is -1 000 000."""

    inner: Mechanism

    @property
    def own_randomness(self) -> str | None:
        """That of `inner`."""
        return self.inner.own_randomness

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """The sunk noise."""
        return _SunkNoise(inner=self.inner.noise(sensitivity, budget))


def live_curator(
    source: TrappedRecords,
    structure: Structure,
    kind: str,
    *,
    seed: int = 1,
    wrap: Callable[..., Mechanism] | None = None,
) -> LiveCurator:
    """A curator over these records with reference noise under add-remove: epsilon = 1, with delta = 1e-5 if `kind` is
    "approx", and rho = 1/2 if it is "zcdp"."""
    budgets = {"pure": Budget.pure(1), "zcdp": Budget.zcdp("1/2"), "approx": Budget.approx(1, "1e-5")}
    mechanism: Mechanism = ReferenceLaplace() if kind == "pure" else ReferenceGaussian()
    return LiveCurator(
        source,
        structure,
        mechanism if wrap is None else wrap(inner=mechanism),
        terms=Terms(neighbours="add-remove"),
        budget=budgets[kind],
        randomness=SeededRandomness(seed),
    )
