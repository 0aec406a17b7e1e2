"""Protocols of inference engines and the values they return. Potentials and log-partitions are in nats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, Codes, FloatArray
from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Batched",
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
    "rows_of",
]

Capability: TypeAlias = Literal[
    "bounds", "constraints", "curvature", "estimate", "maximize", "query", "rounded", "sample"
]


@frozen(kw_only=True, slots=False)  # one is made on every call: without slots that takes a third of the time
class Beliefs:
    """Result of one inference call.

    Attributes
    ----------
    marginals : Tables
        Expected counts for `total` records; of tied groups, summed over their cliques.
    log_partition : float
        log Z of one record, nats.
    converged, iterations
        True and 1 for exact engines.
    errors : Tables or None
        Monte Carlo standard errors of the marginals; None for engines that do not draw (see `Estimator`).
    log_partition_error : float or None
        Monte Carlo standard error of log Z, likewise.
    """

    marginals: Tables
    log_partition: float
    converged: bool = True
    iterations: int = 1
    errors: Tables | None = None
    log_partition_error: float | None = None

    @classmethod
    def _exact(cls, marginals: Tables, log_partition: float) -> Beliefs:
        """Return what `Beliefs(marginals=, log_partition=)` returns, in a third of the time, for small models' sake."""
        self = object.__new__(cls)
        attributes = self.__dict__
        attributes["marginals"] = marginals
        attributes["log_partition"] = log_partition
        attributes["converged"] = True
        attributes["iterations"] = 1
        attributes["errors"] = attributes["log_partition_error"] = None
        return self


@frozen(kw_only=True, eq=False)
class Estimates:
    """Answers that are averages over draws, with their errors.

    Attributes
    ----------
    tables, errors : tuple of arrays
        p(attributes) of each query and its standard errors, of one shape.
    converged : bool
        Whether the errors are all that there is to know.
    notes : tuple of str
        Further remarks, as sentences.
    """

    tables: tuple[FloatArray, ...]
    errors: tuple[FloatArray, ...]
    converged: bool = True
    notes: tuple[str, ...] = ()


@frozen(kw_only=True)
class LogPartitionBounds:
    """Interval that contains log Z of one record for certain, rounding included.

    Attributes
    ----------
    low, high : float
        Nats; low is -inf where nothing is known.
    notes : tuple of str
        Further remarks, as sentences.
    """

    low: float
    high: float
    notes: tuple[str, ...] = ()


class Inference(Protocol):
    """Factory of engines: junction-tree, loopy-bp, or a third party's."""

    @property
    def max_order(self) -> int | None:
        """Largest number of attributes with several labels in one clique; None if only size limits it."""

    def compile(self, structure: Structure) -> Engine:
        """Return an engine for the structure; do all work that depends on the structure alone.

        Raises
        ------
        TooLarge
            With sizes, for what does not fit.
        """


@runtime_checkable
class Engine(Protocol):
    """Inference on one fixed structure, called hundreds of times with new potentials; keeps no state between calls."""

    @property
    def structure(self) -> Structure:
        """Structure that the engine was compiled for."""

    @property
    def exact(self) -> bool:
        """Whether its marginals are those of the model, whatever the structure."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Abilities besides marginals, each with its protocol: `Bounder`, `Maximizer`, `Rounder`, `Sampler`,
        `SecondOrder`.

        "query" stands for `answers`. "constraints": records that a constraint of the domain rules out have probability
        0 in all results; only such an engine is used over a domain with constraints, and
        `dpgm_core.inference.constrained` makes any engine honour them.
        """

    @property
    def cost(self) -> str | None:
        """Sizes that one inference takes, in words for people who plan; None if unknown."""

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Return marginals and log-partition of p(x) proportional to exp(sum of potentials).

        Parameters
        ----------
        potentials : Tables
            Log-potentials, nats; -inf is legal.
        total : float
            Records that the marginals sum to.

        Raises
        ------
        InferenceError
            For NaN or +inf potentials, and when every record has probability 0.
        """


@runtime_checkable
class Bounder(Protocol):
    """Engine with capability "bounds": an interval for log Z where its own log Z is an approximation."""

    def bounds(self, potentials: Tables) -> LogPartitionBounds:
        """Return an interval that contains log Z, whatever the structure and whether messages converge or not.

        Raises InferenceError as `infer` does.
        """


@runtime_checkable
class Explainer(Protocol):
    """Engine that can describe its plan."""

    def explain(self) -> object:
        """Return a value with the figures of an inference, whose `str` is for people."""


@runtime_checkable
class Maximizer(Protocol):
    """Engine with capability "maximize"."""

    def maximize(self, potentials: Tables) -> tuple[dict[str, int], float]:
        """Return a most probable record (attribute -> code) and its unnormalised log-probability, nats."""


@runtime_checkable
class Querier(Protocol):
    """Engine with capability "query": many tables from one inference, across cliques too."""

    def answers(self, potentials: Tables, queries: Sequence[Clique]) -> list[FloatArray]:
        """Return p(attributes) of each query, also across cliques: one axis per attribute, in the query's order.

        Parameters
        ----------
        queries : sequence of cliques
            Attributes of the domain, distinct within a query.

        Raises
        ------
        InferenceError
            As `infer` does.
        TooLarge
            With sizes, before anything of that size is made.
        """


@runtime_checkable
class Estimator(Protocol):
    """Engine with capability "estimate": its numbers are averages over draws, with standard errors.

    Its `infer` sets `Beliefs.errors` and `log_partition_error`. The draws follow from its options: the same potentials
    give the same numbers each time.
    """

    def estimates(self, potentials: Tables, queries: Sequence[Clique]) -> Estimates:
        """Return what `answers` returns, with standard errors; raise what that raises."""

    def caveats(self, potentials: Tables) -> Sequence[str]:
        """Return sentences about its draws at these potentials, before any is made."""


@runtime_checkable
class Sampler(Protocol):
    """Engine with capability "sample"."""

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Return `count` exact, independent records: one code array per attribute of the domain, in its order.

        Those of an `Estimator` are neither: they are as near as its draws come, which its notes say.
        """


@runtime_checkable
class Rounder(Protocol):
    """Engine with capability "rounded": records whose tables err by roundings, instead of independent ones."""

    def rounded(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Return `count` records of the model's distribution: one code array per attribute, in the domain's order.

        Of n rows alike in all that an attribute depends on, n p(code), rounded down or up, get each code.
        """


@runtime_checkable
class SecondOrder(Protocol):
    """Engine with capability "curvature": exact second derivatives of its log-partition."""

    def curvature(self, potentials: Tables) -> Callable[[FloatArray], FloatArray]:
        """Return the map V -> Cov(T) V at these potentials, for V of shape (cells,) or (cells, m).

        Cov(T) V is the derivative of the marginals of one record along V, the Hessian of log Z times V; its m columns
        are computed together. Raises InferenceError as `infer` does, and for directions that are not finite.
        """


@runtime_checkable
class Batched(Protocol):
    """Engine that answers for many potentials in less than one call after another."""

    def infer_many(self, potentials: Array, *, total: float = 1.0) -> list[Beliefs]:
        """Return what `infer` returns for each row of log-potentials (n, cells), nats; raise what `infer` raises."""


def rows_of(potentials: Array, structure: Structure) -> FloatArray:
    """Return the potentials of `infer_many` as (n, cells); raise StructureError for another shape and for non-numbers.

    >>> from dpgm_core.domain.domain import Domain
    >>> rows_of(np.zeros((3, 2), dtype=int), Structure(Domain.from_sizes({"a": 2}), [("a",)])).dtype
    dtype('float64')
    """
    rows = np.ascontiguousarray(potentials)
    if rows.dtype.kind not in "iuf" or rows.ndim != 2 or rows.shape[1] != structure.cells:
        raise StructureError(
            f"infer_many: potentials must be numbers of shape (n, {structure.cells}), got {rows.dtype} of {rows.shape}"
        )
    return rows.astype(np.float64, copy=False)
