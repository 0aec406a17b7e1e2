"""Guarded curators, recorders, captured output and replaced engines."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np
from attrs import define, field, frozen

from dpgm_core._util.arrays import Array, IntArray
from dpgm_core._util.randomness import Randomness, SeededRandomness
from dpgm_core.components.registry import Registry
from dpgm_core.curator.contract import ForwardingCurator, Rounds, Session
from dpgm_core.curator.funds import Single
from dpgm_core.curator.live import LiveCurator
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.mechanism import Mechanism, Noise
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.reference import ReferenceGaussian, ReferenceLaplace, ReferenceLaplaceNoise

if TYPE_CHECKING:
    from dpgm_core._util.arrays import Codes

__all__ = [
    "GuardedCurator",
    "Overheard",
    "SpyLedger",
    "SpyMechanism",
    "SpyNoise",
    "SpyRecords",
    "SunkMechanism",
    "TrappedRecords",
    "live_curator",
    "overhearing",
    "use_engine",
]


# --- Guarded curators and records -----------------------------------------------------------------

# Modules of core that may read records.
_READERS = (
    "dpgm_core.curator.records",
    "dpgm_core.curator.steps",
    "dpgm_core.curator.live",
    "dpgm_core.curator.session",
    "dpgm_core.counting.table_counts",
    "dpgm_core.counting.weights",
    "dpgm_core.counting.rows",
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


class GuardedCurator(ForwardingCurator):
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

    def release(self, **options: Any) -> NoisyTables:
        """Return noisy tables, and keep them in `handed`."""
        return self._hand(super().release(**options))

    def as_handed(self, release: NoisyTables) -> NoisyTables:
        """Return a release as the learner gets it: unchanged."""
        return release

    def _hand(self, release: NoisyTables) -> NoisyTables:
        self.handed.append(self.as_handed(release))
        return self.handed[-1]

    def rounds(self, n: int, **options: Any) -> AbstractContextManager[Rounds]:
        """Open subsampled releases that are kept in `handed` too."""
        return self._watched(super().rounds(n, **options))

    def session(self, **options: Any) -> AbstractContextManager[Session]:
        """Open adaptive steps; their release is handed out when they end."""
        return self._ending(super().session(**options))

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


def _of_inner(name: str) -> Any:
    """A property that is that of the inner object."""
    return property(lambda noise: getattr(noise.inner, name))


@frozen(kw_only=True)
class _SunkNoise:
    """Another noise whose draws are all far below zero."""

    inner: Noise

    cost, event, variance, dual, exact, unsafe, support, log_concave, logpdf, score = map(
        _of_inner, ("cost", "event", "variance", "dual", "exact", "unsafe", "support", "log_concave", "logpdf", "score")
    )

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        return np.full(shape, -1_000_000, dtype=np.int64)


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
    "approx", rho = 1/2 if it is "zcdp", and mu = 1 if it is "gdp"."""
    budgets = {
        "pure": Budget.pure(1),
        "zcdp": Budget.zcdp("1/2"),
        "approx": Budget.approx(1, "1e-5"),
        "gdp": Budget.gdp(1),
    }
    mechanism: Mechanism = ReferenceLaplace() if kind == "pure" else ReferenceGaussian()
    return LiveCurator(
        source,
        structure,
        mechanism if wrap is None else wrap(inner=mechanism),
        terms=Terms(neighbours="add-remove"),
        budget=budgets[kind],
        randomness=SeededRandomness(seed),
    )


# --- Recorders ------------------------------------------------------------------------------------


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


# --- Captured output ------------------------------------------------------------------------------


@define
class Overheard:
    """What was said, once the block is over."""

    text: str = field(default="", repr=False)


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def overhearing() -> Iterator[Overheard]:
    """Listens in while the block runs; nothing of it is shown.

    What is printed here and by processes that start meanwhile is heard, not what others print that run already.

    >>> with overhearing() as heard:
    ...     print("here")
    >>> heard.text
    'here\\n'
    """
    heard, log = Overheard(), _Kept()
    printed = io.StringIO()
    with ExitStack() as stack:
        files = [stack.enter_context(_diverted(number)) for number in (1, 2)]
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        logging.getLogger().addHandler(log)
        try:
            yield heard
        finally:
            logging.getLogger().removeHandler(log)
            texts = [printed.getvalue(), *map(_content, files), *(f"{one.message}" for one in warned), *log.lines]
            heard.text = "\n".join(text for text in texts if text)


@contextmanager
def _diverted(number: int) -> Iterator[IO[bytes]]:
    """A file that takes what is written to this file descriptor."""
    with tempfile.TemporaryFile() as file:
        usual = os.dup(number)
        os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            os.dup2(usual, number)
            os.close(usual)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


# --- Replaced engines -----------------------------------------------------------------------------

# What models are asked, method -> capability; the junction tree does it where the engine does not say that it can.
_ASKED: dict[str, Capability] = {"answers": "query", "maximize": "maximize", "rounded": "rounded", "sample": "sample"}
# What learners look for, which nothing stands in for.
_LOOKED_FOR = ("curvature", "infer_many", "estimates", "caveats", "bounds", "explain")


def use_engine(registry: Registry, name: str) -> None:
    """Have the registry offer the inference engine `name` as `junction-tree`.

    What learners call is the engine's alone; samples, queries, rounded records and the most probable record come from
    the junction tree where the engine does not offer them. Raises what `Registry.load` raises.

    >>> from dpgm_core.domain.domain import Domain
    >>> registry = Registry.discover()
    >>> use_engine(registry, "loopy-bp")
    >>> chain = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> engine = registry.make("inference", "junction-tree").compile(chain)
    >>> engine.exact, sorted(engine.capabilities)
    (True, ['bounds', 'maximize', 'query', 'rounded', 'sample'])
    """
    own: Inference = registry.make("inference", name)

    @frozen(kw_only=True)
    class Through:
        max_order: ClassVar[int | None] = own.max_order

        def compile(self, structure: Structure) -> Engine:
            return _Through(own.compile(structure), partial(JunctionTree().compile, structure))

    registry.substitute("inference", "junction-tree", Through)


class _Through:
    """One engine, with the methods that it lacks from another, which is compiled when it is first asked."""

    def __init__(self, engine: Engine, other: Any) -> None:
        self.inner, self._other = engine, other
        for method, capability in _ASKED.items():
            own = capability in engine.capabilities
            setattr(self, method, getattr(engine, method) if own else partial(self._from_other, method))
        for method in _LOOKED_FOR:
            if hasattr(engine, method):
                setattr(self, method, getattr(engine, method))

    def _from_other(self, method: str, *arguments: Any) -> Any:
        return getattr(self._other(), method)(*arguments)

    structure, exact, cost = map(_of_inner, ("structure", "exact", "cost"))

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.inner.capabilities | frozenset(_ASKED.values())

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        return self.inner.infer(potentials, total=total)
