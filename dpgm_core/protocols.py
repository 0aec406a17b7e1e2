"""The contracts: what a mechanism, an engine, a learner, a source must offer, and the values they exchange.

Nothing here computes. A component class is a frozen, keyword-only attrs class whose fields are its options; it
satisfies one of the five component protocols (Mechanism, Inference, Collective, Learner, Source). Units are records
unless said otherwise; potentials and log-partitions are in nats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

if TYPE_CHECKING:
    import numpy as np

    from dpgm_core.domain import Domain
    from dpgm_core.model import Model
    from dpgm_core.privacy import Budget, Neighbours, PrivacyEvent, Sensitivity
    from dpgm_core.releases import NoisyTables
    from dpgm_core.rounds import ClippedScore
    from dpgm_core.structure import Clique, Structure
    from dpgm_core.tables import Array, FloatArray, Tables

    Codes: TypeAlias = Sequence[np.ndarray[Any, np.dtype[Any]]]

__all__ = [
    "Beliefs",
    "Capability",
    "Codes",
    "Collective",
    "CollectiveBeliefs",
    "CollectiveEngine",
    "Curator",
    "DualTerm",
    "Engine",
    "Fit",
    "Inference",
    "Learner",
    "Maximizer",
    "Mechanism",
    "Noise",
    "Progress",
    "Randomness",
    "Refitter",
    "Rounds",
    "Sampler",
    "SecondOrder",
    "Source",
]

if not TYPE_CHECKING:
    #: One batch of records: one unsigned-integer array of codes per column asked for, all of one length.
    Codes = Sequence

Capability: TypeAlias = Literal["curvature", "maximize", "sample"]


# --- noise ------------------------------------------------------------------------------------------------------


class Randomness(Protocol):
    """A source of random bits; `private` is False for anything that could be repeated."""

    @property
    def private(self) -> bool:
        """Whether nobody can repeat these bits."""
        ...

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """`count` independent uniform 64-bit words."""
        ...

    def generator(self) -> np.random.Generator:
        """A numpy generator, for post-processing only: never for the noise of a release."""
        ...


@frozen(kw_only=True)
class DualTerm:
    """What log p(y|n) becomes in the dual of the E-step: |u| <= bound, plus curvature * u**2 / 2 per cell.

    bound: per record; infinite if there is none (Gaussian). curvature: records**2; 0 if there is none (Laplace).

    >>> DualTerm(bound=0.5, curvature=0.0).bound
    0.5
    """

    bound: float
    curvature: float


@runtime_checkable
class Noise(Protocol):
    """One calibrated additive noise, independent and equal for each cell. A frozen attrs class with plain fields."""

    @property
    def cost(self) -> Budget:
        """The budget ONE release with this noise spends; never more than what was asked."""
        ...

    @property
    def event(self) -> PrivacyEvent:
        """What an accountant needs to compose it."""
        ...

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        ...

    @property
    def dual(self) -> DualTerm | None:
        """The dual form of logpdf; None when only the general, slower evidence path serves it."""
        ...

    def sample(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise: int64 for exact noise, float64 for textbook noise."""
        ...

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Concave extension of the log mass to the reals; residual = noisy - true."""
        ...

    def score(self, residual: FloatArray) -> FloatArray:
        """d logpdf / d residual; a subgradient at kinks."""
        ...


class Mechanism(Protocol):
    """Calibrates a noise to a sensitivity and a budget."""

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """Raises BudgetError for budgets it cannot serve; touches no data."""
        ...


# --- inference --------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Beliefs:
    """The result of one inference call.

    marginals: expected counts for `total` records (tied groups: summed over their cliques). log_partition: log Z of
    one record, nats. converged: always True for exact engines. iterations: 1 for exact engines.
    """

    marginals: Tables
    log_partition: float
    converged: bool = True
    iterations: int = 1


class Inference(Protocol):
    """A plain engine factory: junction-tree, loopy-bp, or a third party's."""

    def compile(self, structure: Structure) -> Engine:
        """All structure work once; raises TooLarge, with sizes, for what cannot fit."""
        ...


class Engine(Protocol):
    """Inference on one fixed structure, called hundreds of times with new potentials; keeps no state between calls."""

    @property
    def structure(self) -> Structure:
        """What it was compiled for."""
        ...

    @property
    def exact(self) -> bool:
        """Whether its marginals are those of the model, whatever the structure."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do besides marginals: see `Maximizer`, `Sampler` and `SecondOrder`."""
        ...

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Marginals and log-partition of p(x) proportional to exp(sum of potentials). -inf potentials are legal.

        Raises InferenceError for NaN or +inf potentials, and when every record has probability 0.
        """
        ...


@runtime_checkable
class Maximizer(Protocol):
    """An engine with capability "maximize"."""

    def maximize(self, potentials: Tables) -> tuple[dict[str, int], float]:
        """A most probable record (attribute -> code) and its unnormalised log-probability, nats."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """An engine with capability "sample"."""

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` exact, independent records: one code array per attribute of the domain, in its order."""
        ...


@runtime_checkable
class SecondOrder(Protocol):
    """An engine with capability "curvature": exact second derivatives of its log-partition."""

    def curvature(self, potentials: Tables) -> Callable[[FloatArray], FloatArray]:
        """V -> Cov(T) V at these potentials, for directions V of shape (cells,) or (cells, m).

        Cov(T) V is the derivative of the marginals of one record along V, the Hessian of log Z times V; its m columns
        are computed together. Raises InferenceError as `infer` does, and for directions that are not finite.
        """
        ...


@frozen(kw_only=True)
class CollectiveBeliefs:
    """Inference over the hidden true tables.

    marginals: the tables n, summing to the evidence's total. multipliers: the dual variables u, in nats per record.
    gap: duality gap, nats (None if the engine has no certificate). residual: change of the last step. calls: base
    inference calls spent.
    """

    marginals: Tables
    multipliers: Tables
    objective: float
    gap: float | None
    residual: float
    converged: bool
    calls: int


class CollectiveEngine(Protocol):
    """Maximises theta.n + H(n) + weight * log p(y|n) for one fixed release."""

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """The maximiser for these potentials; start: multipliers of an earlier call, to begin from."""
        ...


class Collective(Protocol):
    """Inference over hidden true tables (nlbp, collective-dual); wraps any plain engine."""

    def compile(self, engine: Engine, evidence: NoisyTables) -> CollectiveEngine:
        """All work that depends on the release once; each clique measured lies in one of the engine's."""
        ...


# --- records ----------------------------------------------------------------------------------------------------


class Source(Protocol):
    """Where records are read; it yields codes in batches, counting is core's alone."""

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Batches of codes for the named columns; raises DataError before the first batch if it cannot."""
        ...


class Rounds(Protocol):
    """Many noisy releases of subsampled tables, charged in full when they were opened.

    Each release's cost is that of all rounds together; its provenance says which round it is.
    """

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a fresh subsample; its total is that of the subsample.

        beliefs: of one record, for rounds opened with a ClippedScore; then tables are noisy sums of clipped scores
        T(x) - mu, in units of 1/grid.
        """
        ...


class Curator(Protocol):
    """The only door to the records; implemented by core only."""

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """The declared relation."""
        ...

    @property
    def budget(self) -> Budget:
        """What it was given to spend."""
        ...

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        ...

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyTables:
        """Noisy tables; spends `budget` (None: all that remains) on `cliques` (None: those of the structure)."""
        ...

    def rounds(
        self, n: int, *, sampling_rate: float, budget: Budget | None = None, clip: ClippedScore | None = None
    ) -> AbstractContextManager[Rounds]:
        """n releases of subsampled tables, charged in full here; stopping early is sound and refunds nothing.

        sampling_rate: each person takes part with this probability. clip: clipped scores instead of counts.
        """
        ...


# --- learning ---------------------------------------------------------------------------------------------------


class Progress(Protocol):
    """Where long work says how far it is; must never be given anything computed from records left of the noise."""

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """task: what is being done. done of total steps; total: None if unknown."""
        ...


@frozen(kw_only=True)
class Fit:
    """What a learner returns.

    model: the learned model. release: the noisy tables it was learned from. trace: one mapping of numbers per
    logged iteration. converged: whether the stopping rule was met, by an engine that converged. certificate: proven
    bounds, e.g. a gradient norm or duality gap, by name. notes: sentences for the user, e.g. that the
    maximum-likelihood estimate does not exist.
    tuning: options of the learner, by name, with which it would make again the choices it made in this fit; plain
    values. Empty: it chose nothing.
    """

    model: Model
    release: NoisyTables
    trace: Sequence[Mapping[str, float]] = ()
    converged: bool = True
    certificate: Mapping[str, float] = field(factory=dict)
    notes: Sequence[str] = ()
    tuning: Mapping[str, Any] = field(factory=dict)


class Learner(Protocol):
    """Turns releases into a model; sees records only through the curator."""

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Spend what the curator has to spend, and learn from what it hands out.

        randomness: for post-processing such as random starts; its `generator` only.
        """
        ...


@runtime_checkable
class Refitter(Protocol):
    """A learner that can learn from many similar releases for less than a `learn` each: shared work, a warm start."""

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """From a release like the model's to the potentials learned from it, over the model's structure.

        model: the fit to start from; what does not depend on the release is done once, here. All tuning is what this
        learner's options say (`Fit.tuning` among them). A learner without it is called through `learn` instead.
        """
        ...
