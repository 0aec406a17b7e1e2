"""What an engine must offer, and what an inference call gives back. Potentials and log-partitions are in nats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Codes, FloatArray
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = [
    "Beliefs",
    "Bounder",
    "Capability",
    "Engine",
    "Estimates",
    "Estimator",
    "Explainer",
    "Inference",
    "LogPartitionBounds",
    "Maximizer",
    "Querier",
    "Rounder",
    "Sampler",
    "SecondOrder",
]

Capability: TypeAlias = Literal[
    "bounds", "constraints", "curvature", "estimate", "maximize", "query", "rounded", "sample"
]


@frozen(kw_only=True, slots=False)  # one is made on every call: without slots that takes a third of the time
class Beliefs:
    """The result of one inference call.

    marginals: expected counts for `total` records (tied groups: summed over their cliques). log_partition: log Z of
    one record, nats. converged: always True for exact engines. iterations: 1 for exact engines. errors: Monte Carlo
    standard errors of the marginals, for `total` records too, and log_partition_error that of log Z, of engines that
    draw (`Estimator`); None for all others, approximate or not.
    """

    marginals: Tables
    log_partition: float
    converged: bool = True
    iterations: int = 1
    errors: Tables | None = None
    log_partition_error: float | None = None


@frozen(kw_only=True, eq=False)
class Estimates:
    """Answers that chance has a part in, and how far to trust them.

    tables, errors: p(attributes) of each query and its standard errors, of one shape. converged: whether the errors say
    it all. notes: what to know besides, as sentences.
    """

    tables: tuple[FloatArray, ...]
    errors: tuple[FloatArray, ...]
    converged: bool = True
    notes: tuple[str, ...] = ()


@frozen(kw_only=True)
class LogPartitionBounds:
    """An interval that certainly holds log Z of one record, nats, rounding included.

    low: -inf where nothing is known. notes: what to know besides, as sentences.
    """

    low: float
    high: float
    notes: tuple[str, ...] = ()


class Inference(Protocol):
    """A plain engine factory: junction-tree, loopy-bp, or a third party's."""

    @property
    def max_order(self) -> int | None:
        """The most attributes with several labels that one clique may have; None if only size limits it."""
        ...

    def compile(self, structure: Structure) -> Engine:
        """All structure work once; raises TooLarge, with sizes, for what cannot fit."""
        ...


@runtime_checkable
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
        """What it can do besides marginals: `Bounder`, `Maximizer`, `Rounder`, `Sampler`, `SecondOrder`; "query":
        `answers`.

        "constraints": it gives records that a constraint of the domain rules out probability 0, in all it does. Only
        then is it used over a domain that has some; `dpgm_core.inference.constrained` makes any engine do so.
        """
        ...

    @property
    def cost(self) -> str | None:
        """What one inference takes, in the engine's words on sizes, for people who plan; None if it cannot say."""
        ...

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Marginals and log-partition of p(x) proportional to exp(sum of potentials). -inf potentials are legal.

        Raises InferenceError for NaN or +inf potentials, and when every record has probability 0.
        """
        ...


@runtime_checkable
class Bounder(Protocol):
    """An engine with capability "bounds": where its log Z is an approximation, what the true one lies between."""

    def bounds(self, potentials: Tables) -> LogPartitionBounds:
        """An interval that holds log Z, whatever the structure and whether messages converge or not.

        Raises InferenceError as `infer` does.
        """
        ...


@runtime_checkable
class Explainer(Protocol):
    """Whoever can say what an inference will do."""

    def explain(self) -> object:
        """A value with the figures, whose `str` is for people."""
        ...


@runtime_checkable
class Maximizer(Protocol):
    """An engine with capability "maximize"."""

    def maximize(self, potentials: Tables) -> tuple[dict[str, int], float]:
        """A most probable record (attribute -> code) and its unnormalised log-probability, nats."""
        ...


@runtime_checkable
class Querier(Protocol):
    """An engine with capability "query": many tables from one inference, across cliques too."""

    def answers(self, potentials: Tables, queries: Sequence[Clique]) -> list[FloatArray]:
        """p(attributes) of each query, also across cliques: one axis per attribute, in the order given.

        queries: attributes of the domain, distinct within a query. Raises InferenceError as `infer` does, and TooLarge,
        with sizes and before anything of that size is made.
        """
        ...


@runtime_checkable
class Estimator(Protocol):
    """An engine with capability "estimate": its numbers are averages over draws, and it states their errors.

    Its `infer` gives `Beliefs.errors` and `log_partition_error`. The draws follow from its options: the same potentials
    give the same numbers each time.
    """

    def estimates(self, potentials: Tables, queries: Sequence[Clique]) -> Estimates:
        """What `answers` gives, with standard errors; raises what that does."""
        ...

    def caveats(self, potentials: Tables) -> Sequence[str]:
        """What to know of its draws at these potentials, as sentences, before any is made."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """An engine with capability "sample"."""

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` exact, independent records: one code array per attribute of the domain, in its order.

        Those of an `Estimator` are neither: as near as its draws come, which it says.
        """
        ...


@runtime_checkable
class Rounder(Protocol):
    """An engine with capability "rounded": records whose tables err by roundings, instead of independent ones."""

    def rounded(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` records, each of the model's distribution: one code array per attribute of the domain, in its order.

        Of n rows alike in all that an attribute depends on, n p(code), rounded down or up, get each code.
        """
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
