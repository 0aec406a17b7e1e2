"""Distributions: potentials over cliques, and conditioning on evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dpgm_core._util.arrays import Array, Codes, FloatArray
from dpgm_core._util.blas import one_thread
from dpgm_core.components.registry import make
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError, TooLarge
from dpgm_core.inference.constraints import engine_name
from dpgm_core.inference.contract import (
    Beliefs,
    Engine,
    Estimates,
    Estimator,
    Inference,
    Maximizer,
    Querier,
    Rounder,
    Sampler,
)
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables, margin_of

__all__ = ["Distribution", "check_potentials", "collect_potentials", "expectation", "pieces_of"]


# --- Potentials -----------------------------------------------------------------------------------


def expectation(weights: Array, values: Array) -> float:
    """Return the sum of weights * values, where weight 0 cancels an infinite value."""
    products = np.multiply(weights, values, out=np.zeros(len(values)), where=weights != 0)
    return math.fsum(products) if np.all(np.isfinite(products)) else float(products.sum())


def collect_potentials(domain: Domain, pieces: Iterable[tuple[Clique, Array]]) -> tuple[Structure, Tables]:
    """Return a structure and potentials from (clique, table) pieces; tables on the same attributes add up."""
    sums: dict[frozenset[str], tuple[Clique, FloatArray]] = {}
    for clique, table in pieces:
        key = frozenset(clique)
        if key in sums:
            first, total = sums[key]
            sums[key] = first, total + np.transpose(table, [clique.index(name) for name in first])
        else:
            sums[key] = clique, np.array(table, dtype=np.float64)
    structure = Structure(domain, [clique for clique, _ in sums.values()])
    return structure, Tables.from_arrays(structure, dict(sums.values()))


def pieces_of(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Return the log-potentials clique by clique, with ties resolved.

    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",)])
    >>> [names for names, _ in pieces_of(Tables.zeros(structure))]
    [('a',), ('b',)]
    """
    return [
        (clique, potentials.group(number))
        for number, group in enumerate(potentials.structure.groups)
        for clique in group
    ]


# --- The distribution -----------------------------------------------------------------------------

_MAX_POTENTIAL = 1e9  # nats; sums of a few potentials have seven digits left there
_MAX_ENGINES = 16


class Distribution:
    """p(x) proportional to exp(sum over cliques of theta_C(x_C)), and the engines compiled for it.

    potentials: theta, nats. inference: the component that answers (name or object). engines: those of another
    distribution over the same structure through the same inference, to be shared.
    """

    def __init__(
        self, potentials: Tables, inference: str | Inference, engines: dict[Structure, Engine] | None = None
    ) -> None:
        self.potentials = potentials
        self.inference = inference
        self.engines: dict[Structure, Engine] = {} if engines is None else engines
        self._beliefs: Beliefs | None = None

    @property
    def structure(self) -> Structure:
        """The structure of the potentials."""
        return self.potentials.structure

    @property
    def base(self) -> Distribution:
        """Itself; a `MergedDistribution` has the distribution over its blocks here."""
        return self

    def engine(self, structure: Structure) -> Engine:
        """The engine over a structure, compiled once. Raises TooLarge."""
        if structure not in self.engines:
            inference: Inference = make("inference", self.inference)
            if len(self.engines) >= _MAX_ENGINES:
                self.engines.clear()
            self.engines[structure] = _honouring(inference.compile(structure))
        return self.engines[structure]

    @one_thread
    def beliefs(self) -> Beliefs:
        """Return marginals and log-partition of the whole, computed once."""
        if self._beliefs is None:
            self._beliefs = self.engine(self.structure).infer(self.potentials)
        return self._beliefs

    @one_thread
    def marginals_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> list[FloatArray]:
        """Return p(names | fixed) of each query, axes in the order of its names. Raises TooLarge and InferenceError."""
        # Inside one clique the answer is a margin of the cliques' own marginals: no other inference is needed.
        hosts = {} if fixed else {names: host for names in queries if (host := self._host(names)) is not None}
        left = [names for names in queries if names not in hosts]
        answers = dict(zip(left, self._across(left, fixed), strict=True))
        for names, host in hosts.items():
            answers[names] = margin_of(self.beliefs().marginals[host], host, names).copy()
        return [answers[names] for names in queries]

    @one_thread
    def estimates_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> Estimates | None:
        """Return `marginals_of` with Monte Carlo errors; None for an engine that states none."""
        structure, potentials = self._conditioned(fixed) if fixed else (self.structure, self.potentials)
        engine = self.engine(structure)
        if "estimate" not in engine.capabilities or not isinstance(engine, Estimator):
            return None
        return engine.estimates(potentials, queries)

    def caveats(self) -> Sequence[str]:
        """Return the engine's caveats about drawing from these potentials; none for engines that are not estimators."""
        engine = self.engine(self.structure)
        if "estimate" not in engine.capabilities or not isinstance(engine, Estimator):
            return ()
        return engine.caveats(self.potentials)

    @one_thread
    def most_probable(self, fixed: Mapping[str, int]) -> dict[str, int]:
        """Return the codes of a most probable record. Raises InferenceError where `fixed` has probability 0."""
        if len(fixed) == len(self.structure.domain):
            if self._log_weight(fixed) == -math.inf:
                raise InferenceError("the given record has probability 0 under the model")
            return dict(fixed)
        structure, potentials = self._conditioned(fixed)
        engine = self.engine(structure)
        if "maximize" not in engine.capabilities or not isinstance(engine, Maximizer):
            raise InferenceError(f"{engine_name(engine)} cannot maximise; use junction-tree for map_assignment")
        return {**fixed, **engine.maximize(potentials)[0]}

    @one_thread
    def sample(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of independent records of p(. | fixed), one array per attribute of the domain.

        Raises InferenceError, also where `fixed` has probability 0.
        """

        def draw(engine: Engine, potentials: Tables) -> Codes:
            if "sample" not in engine.capabilities or not isinstance(engine, Sampler):
                raise InferenceError(f"{engine_name(engine)} cannot sample; use junction-tree")
            return engine.sample(potentials, count, generator)

        return self._drawn(count, fixed or {}, draw)

    @one_thread
    def rounded(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of records whose tables are the expected ones up to rounding, in the form of `sample`."""

        def draw(engine: Engine, potentials: Tables) -> Codes:
            if "rounded" not in engine.capabilities or not isinstance(engine, Rounder):
                raise InferenceError(
                    f"{engine_name(engine)} cannot round expected counts; use junction-tree, or method 'independent'"
                )
            return engine.rounded(potentials, count, generator)

        return self._drawn(count, fixed or {}, draw)

    def _drawn(self, count: int, fixed: Mapping[str, int], draw: Callable[[Engine, Tables], Codes]) -> Codes:
        """Draw the free attributes with `draw` and put the fixed ones in their places."""
        domain = self.structure.domain
        columns = {name: np.full(count, code, code_dtype(domain[name].size)) for name, code in fixed.items()}
        if len(fixed) == len(domain):
            self.most_probable(fixed)  # refuses what has probability 0
        else:
            structure, potentials = self._conditioned(fixed) if fixed else (self.structure, self.potentials)
            codes = draw(self.engine(structure), potentials)
            columns |= dict(zip(structure.domain.names, codes, strict=True))
        return [columns[name] for name in domain.names]

    def entropy(self) -> float:
        """Return the entropy of one record, nats: log Z - theta . mu."""
        beliefs = self.beliefs()
        return max(0.0, beliefs.log_partition - expectation(beliefs.marginals.values, self.potentials.values))

    @one_thread
    def divergence(self, other: Distribution) -> float:
        """Return KL(self || other), nats: -H(p) + log Z_q - E_p[theta_q], over a structure with the cliques of both."""
        union = Structure(self.structure.domain, [*self.structure.cliques, *other.structure.cliques])
        ours = self.potentials.embed(union)
        theirs = other.potentials.embed(union)
        beliefs = self.engine(union).infer(ours)
        mu = beliefs.marginals.values
        entropy = beliefs.log_partition - expectation(mu, ours.values)
        return max(0.0, other.beliefs().log_partition - expectation(mu, theirs.values) - entropy)

    def _log_weight(self, record: Mapping[str, int]) -> float:
        """Return theta of one whole record, nats, unnormalised; -inf where a constraint rules it out."""
        if any(self.structure.domain.broken({name: np.array([code]) for name, code in record.items()}).values()):
            return -math.inf
        return math.fsum(
            float(self.potentials.group(number)[tuple(record[name] for name in clique)])
            for number, group in enumerate(self.structure.groups)
            for clique in group
        )

    def _conditioned(self, fixed: Mapping[str, int]) -> tuple[Structure, Tables]:
        """Return structure and unnormalised potentials over the free attributes, with ties resolved."""
        if not fixed and max(self.structure.multiplicities) == 1:
            return self.structure, self.potentials
        domain = self.structure.domain
        pieces = _narrowed(domain, fixed)
        domain = domain.subset(name for name in domain.names if name not in fixed)
        for number, group in enumerate(self.structure.groups):
            table = self.potentials.group(number)
            for clique in group:
                at = tuple(fixed.get(name, slice(None)) for name in clique)
                pieces.append((tuple(name for name in clique if name not in fixed), table[at]))
        return collect_potentials(domain, pieces)

    def _host(self, names: Clique) -> Clique | None:
        """Return the smallest clique that contains the names, unless its table is shared with others."""
        host = self.structure.covering(names)
        return None if host is None or len(self.structure.groups[self.structure.find(host)[0]]) > 1 else host

    def _across(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> list[FloatArray]:
        """Answer all queries at once where the engine can, otherwise each on a structure with a clique for it."""
        if not queries:
            return []
        structure, potentials = self._conditioned(fixed) if fixed else (self.structure, self.potentials)
        engine = self.engine(structure)
        if "query" in engine.capabilities and isinstance(engine, Querier):
            try:
                return engine.answers(potentials, queries)
            except TooLarge:
                pass  # a structure for each may fit yet, as it holds one query at a time; what does not fit it refuses
        answers = []
        for names in queries:
            structure, potentials = self._joined(names, fixed)
            answers.append(np.array(self.engine(structure).infer(potentials).marginals[names]))
        return answers

    def _joined(self, names: Clique, fixed: Mapping[str, int]) -> tuple[Structure, Tables]:
        """Return structure and potentials in which the query's attributes share one clique."""
        structure, potentials = self._conditioned(fixed)
        if any(frozenset(group[0]) == frozenset(names) for group in structure.groups if len(group) == 1):
            return structure, potentials
        wider = Structure(structure.domain, [*structure.cliques, names])
        self.engine(wider)  # refuses what does not fit before anything of its size is made
        return wider, potentials.embed(wider)


def _honouring(engine: Engine) -> Engine:
    """Refuse, with InferenceError, an engine that would give impossible records a probability."""
    if engine.structure.domain.scopes and "constraints" not in engine.capabilities:
        raise InferenceError(
            f"{engine_name(engine)} ignores the constraints of the model's domain; use junction-tree or loopy-bp"
        )
    return engine


def _narrowed(domain: Domain, fixed: Mapping[str, int]) -> list[tuple[Clique, FloatArray]]:
    """Return the constraints that remain once some attributes are fixed, as log-potentials of the others."""
    pieces = []
    for one in domain.rules:
        if not fixed.keys().isdisjoint(one.columns):
            left = one.mask[tuple(fixed.get(name, slice(None)) for name in one.columns)]
            pieces.append((tuple(name for name in one.columns if name not in fixed), np.where(left, -np.inf, 0.0)))
    return pieces


def check_potentials(values: Array, replicates: Array | None = None) -> None:
    """Refuse, with InferenceError, log-potentials without a distribution: NaN, +inf, or too far from 0.

    replicates: those of refits, (B, cells). Raises StructureError for another shape or fewer than 2.
    """
    if replicates is not None:
        if replicates.ndim != 2 or len(replicates) < 2:
            raise StructureError(f"replicates must have shape (B, cells) with B at least 2, got {replicates.shape}")
        check_potentials(replicates)
    if np.any(np.isnan(values)) or np.any(values == np.inf):
        raise InferenceError("log-potentials must be finite or -inf; the model would have no distribution")
    if np.any(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)) > _MAX_POTENTIAL):
        raise InferenceError(
            f"log-potentials must lie within {_MAX_POTENTIAL:g} nats of 0; farther out rounding leaves no "
            "digits for the probabilities"
        )
