"""The learned model: a structure, log-potentials and where they came from; answers queries, samples, saves.

Everything here is post-processing of the release and free in privacy; what compares with records is in `evaluate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core._version import __version__
from dpgm_core.arrays import Array, FloatArray
from dpgm_core.components.registry import make
from dpgm_core.domain import Domain
from dpgm_core.errors import (
    InferenceError,
    OptionError,
    StructureError,
    TooLarge,
    did_you_mean,
)
from dpgm_core.files import MODEL_FILE, plain, write_archive
from dpgm_core.inference.contract import Beliefs, Engine, Inference, Maximizer, Querier, Sampler
from dpgm_core.models.conditioning import collected, expectation
from dpgm_core.models.intervals import Interval, interval
from dpgm_core.models.labelled import labelled
from dpgm_core.privacy.budget import Budget, composed
from dpgm_core.randomness import Randomness, given_or_system
from dpgm_core.releases.pool import pool
from dpgm_core.releases.release import NoisyTables, check_alike, guarantee_of, member_names
from dpgm_core.releases.stamps import UNKNOWN, stamp_of
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["Model", "SCHEMA"]

#: Of the file format. 1 held one release at most; it is read for ever.
SCHEMA = 2

_FARTHEST = 1e9  # nats; sums of a few potentials have seven digits left there


class Model:
    """p(x) proportional to exp(sum over cliques of theta_C(x_C)), with the facts of its making.

    structure: the model's. potentials: theta, nats, one table per group; -inf is legal. releases: all that was released
    and paid for to learn it, about the same people under one relation; a view such as `levelled` gives stands for what
    is behind it. provenance: plain values (learner, options, converged, notes, ...). inference: the component that
    answers queries (name or object); exact by default: a query that does not fit raises TooLarge and is never
    approximated silently. replicates: log-potentials of refits, (B, cells), as `bootstrap` makes them.
    conversion_delta: where releases cost different kinds of budget, the delta at which the zCDP part is converted.

    Raises StructureError and InferenceError for potentials that fit no model, and BudgetError for releases whose costs
    or guarantees do not add up.

    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> model = Model(structure, Tables.from_arrays(structure, {("a", "b"): np.log([[0.4, 0.1], [0.2, 0.3]])}))
    >>> model.marginal(["a"]).round(3).tolist(), model.marginal(["a"], given={"b": "1"}).round(3).tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """

    def __init__(
        self,
        structure: Structure,
        potentials: Tables,
        *,
        releases: Sequence[NoisyTables] = (),
        provenance: Mapping[str, Any] | None = None,
        inference: str | Inference = "junction-tree",
        replicates: Array | None = None,
        conversion_delta: Fraction | None = None,
    ) -> None:
        if potentials.structure != structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit a model over {structure}")
        if replicates is not None and (replicates.ndim != 2 or len(replicates) < 2):
            raise StructureError(f"replicates must have shape (B, cells) with B at least 2, got {replicates.shape}")
        for values in (potentials.values, np.empty(0) if replicates is None else replicates):
            if np.any(np.isnan(values)) or np.any(values == np.inf):
                raise InferenceError("log-potentials must be finite or -inf; the model would have no distribution")
            if np.any(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)) > _FARTHEST):
                raise InferenceError(
                    f"log-potentials must lie within {_FARTHEST:g} nats of 0; farther out no digits are left for the "
                    "probabilities, and answers would be wrong without a word"
                )
        self.structure = structure
        self.potentials = potentials.astype(np.float64)
        self.releases = tuple(behind for one in releases for behind in one.published)
        check_alike(self.releases)
        self.conversion_delta = conversion_delta
        self.cost: Budget | None = (
            composed([one.cost for one in self.releases], conversion_delta) if self.releases else None
        )
        self.provenance: Mapping[str, Any] = dict(provenance or {})
        self._inference = inference
        self._engines: dict[Structure, Engine] = {}
        self._beliefs: Beliefs | None = None
        self._release: NoisyTables | None = None
        self._refits = replicates
        self._replicates: tuple[Model, ...] | None = None

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.structure.domain

    @property
    def release(self) -> NoisyTables | None:
        """The release it was learned from: the only one, all in one where they were pooled, else the last.

        Raises BudgetError where releases that do not pool are said to have been.
        """
        if self._release is None and self.releases:
            self._release = pool(self.releases, self.conversion_delta) if self.pooled else self.releases[-1]
        return self._release

    @property
    def pooled(self) -> bool:
        """Whether its learner asked for one release, and was given several as one."""
        return len(self.releases) > 1 and bool(self.provenance.get("pooled", False))

    @property
    def private(self) -> bool | None:
        """Whether all releases behind it were drawn without a seed; None for a model without a release."""
        return all(one.private for one in self.releases) if self.releases else None

    @property
    def converged(self) -> bool:
        """Whether the learner said that it had converged."""
        return bool(self.provenance.get("converged", True))

    def guarantee(self) -> str:
        """The guarantee of all releases behind it together: learning and querying add nothing to it."""
        if self.cost is None:
            return UNKNOWN
        return guarantee_of(self.releases, self.cost)

    def stamp(self) -> dict[str, Any]:
        """What goes with whatever is computed from the model, as plain values: guarantee, conditions, cost, maker.

        private, unsafe and conditions say what the guarantee says in words. provenance: learner and inference with
        their settings, and nothing that was learned.

        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> sorted(Model(structure, Tables.zeros(structure)).stamp())
        ['conditions', 'cost', 'dpgm', 'guarantee', 'private', 'provenance', 'unsafe']
        """
        makers = {kind: self.provenance[kind] for kind in ("learner", "inference") if kind in self.provenance}
        return {
            "dpgm": __version__,
            **stamp_of(self.releases, self.guarantee()),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "provenance": plain(makers),
        }

    def using(self, inference: str | Inference) -> Model:
        """The same model answering through another inference component, such as "loopy-bp"."""
        return self._with(inference, self._refits)

    # --- inference ----------------------------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine that answers for the whole model; compiled once. Raises TooLarge when that does not fit."""
        return self._engine(self.structure)

    def beliefs(self) -> Beliefs:
        """Marginals and log-partition of the whole model; computed once."""
        if self._beliefs is None:
            self._beliefs = self.engine.infer(self.potentials)
        return self._beliefs

    @property
    def log_partition(self) -> float:
        """log Z of one record, nats."""
        return self.beliefs().log_partition

    def marginals(self) -> Tables:
        """The model's probabilities on each clique (a tied group's table sums to its number of cliques)."""
        return self.beliefs().marginals

    def marginal(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """p(attributes | given), any attributes, also across cliques: one axis per attribute, in the order given.

        given: attribute -> label (text) or code (whole number). Outside the cliques it takes an inference of its own:
        ask `marginals_of` for many. Raises TooLarge when that does not fit, InferenceError when `given` has
        probability 0.
        """
        return next(iter(self.marginals_of([attributes], given).values()))

    def marginals_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> dict[Clique, FloatArray]:
        """p(clique | given) of many sets of attributes, inside cliques or across, from one inference.

        cliques: as for `marginal`; the answer has a table for each, keyed by the tuple of its names, its axes in their
        order. Whatever the sets share is computed once: all pairs of 100 attributes take about a second. Raises what
        `marginal` does, before any table that does not fit is made.

        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
        >>> found = Model(structure, Tables.zeros(structure)).marginals_of([("c", "a"), "b"])
        >>> {names: table.tolist() for names, table in found.items()}
        {('c', 'a'): [[0.25, 0.25], [0.25, 0.25]], ('b',): [0.5, 0.5]}
        """
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            shown = repr(cliques)[:40]
            raise StructureError(f"marginals_of takes a list of cliques, got {shown}; write [{shown}] for one")
        given = given or {}
        asked = list(dict.fromkeys(self._names(clique, given) for clique in cliques))
        # Inside one clique the answer is a margin of the model's own marginals: no other inference is needed.
        hosts = {} if given else {names: host for names in asked if (host := self._host(names)) is not None}
        left = [names for names in asked if names not in hosts]
        found = dict(zip(left, self._across(left, given), strict=True))
        for names, host in hosts.items():
            order = [name for name in host if name in names]
            inside = self.marginals()[host].sum(axis=tuple(at for at, name in enumerate(host) if name not in names))
            found[names] = inside.transpose([order.index(name) for name in names]).copy()
        return {names: found[names] for names in asked}

    def table(
        self,
        attributes: Sequence[str] | str,
        given: Mapping[str, object] | None = None,
        *,
        level: float | None = None,
    ) -> pa.Table:
        """p(attributes | given) with its labels, as an Arrow table: a column of labels each, then `probability`.

        level: adds `standard_error`, `low` and `high` of `intervals` at that level. One row per combination of labels,
        the last attribute's fastest; `.to_pandas()` makes a frame. `stamp()` is in the schema's metadata, as `sample`
        has it. Raises what `marginal` and `intervals` do, StructureError where an attribute has the name of a column.

        >>> structure = Structure(Domain.from_dict({"sex": ["F", "M"]}), [("sex",)])
        >>> Model(structure, Tables(structure, np.log([0.25, 0.75]))).table("sex").to_pylist()
        [{'sex': 'F', 'probability': 0.25}, {'sex': 'M', 'probability': 0.75}]
        """
        names = self._names(attributes, given or {})
        if level is None:
            columns = {"probability": self.marginal(names, given)}
        else:
            found = self.intervals(names, given, level=level)
            columns = {"probability": found.estimate, "standard_error": found.standard_error}
            columns |= {"low": found.low, "high": found.high}
        return labelled(self.domain, names, columns, self.stamp())

    def conditional(self, attributes: Sequence[str] | str, on: Sequence[str] | str) -> FloatArray:
        """p(attributes | on) for every value of `on`: axes are `attributes`, then `on`.

        Where a value of `on` has probability 0 its slice is 0.

        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> Model(structure, Tables.zeros(structure)).conditional("a", on="b").tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        targets = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        conditions = (on,) if isinstance(on, str) else tuple(on)
        joint = self.marginal((*targets, *conditions))
        mass = joint.sum(axis=tuple(range(len(targets))), keepdims=True)
        table: FloatArray = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        return table

    def map_assignment(self, given: Mapping[str, object] | None = None) -> dict[str, str]:
        """A most probable record, attribute -> label, with the given attributes held fixed.

        Raises InferenceError when the engine cannot maximise or `given` has probability 0.
        """
        given = given or {}
        fixed = self._codes(given)
        codes = dict(fixed)
        if len(fixed) == len(self.domain):
            if self._log_weight(fixed) == -math.inf:
                raise InferenceError("the given record has probability 0 under the model")
        else:
            structure, potentials = self._conditioned(fixed)
            engine = self._engine(structure)
            if "maximize" not in engine.capabilities or not isinstance(engine, Maximizer):
                raise InferenceError(f"{type(engine).__name__} cannot maximise; use junction-tree for map_assignment")
            codes |= engine.maximize(potentials)[0]
        return {name: self.domain[name].labels[codes[name]] for name in self.domain.names}

    def entropy(self) -> float:
        """Entropy of one record, nats: log Z - theta . mu."""
        beliefs = self.beliefs()
        return max(0.0, beliefs.log_partition - expectation(beliefs.marginals.values, self.potentials.values))

    def kl(self, other: Model) -> float:
        """KL(self || other), nats; infinite where `other` rules out what this model allows.

        Exact: -H(p) + log Z_q - E_p[theta_q], the expectation over a junction tree that holds both models' cliques.
        """
        if other.domain != self.domain:
            raise StructureError("KL compares models over the same domain; these differ in attributes or labels")
        union = Structure(self.domain, [*self.structure.cliques, *other.structure.cliques])
        ours = self.potentials.embed(union)
        theirs = other.potentials.embed(union)
        beliefs = self._engine(union).infer(ours)
        mu = beliefs.marginals.values
        entropy = beliefs.log_partition - expectation(mu, ours.values)
        return max(0.0, other.log_partition - expectation(mu, theirs.values) - entropy)

    def sample(self, count: int, *, randomness: Randomness | None = None) -> pa.Table:
        """`count` independent synthetic records as an Arrow table of labels; exact forward sampling.

        The table's schema has `stamp()` as JSON under the metadata key `dpgm`; Parquet and Arrow files keep it.
        randomness: SeededRandomness repeats the draw; None takes the operating system's. Free in privacy.
        """
        import pyarrow as pa

        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
            raise OptionError(f"the number of records to sample must be a whole number of at least 0, got {count!r}")
        engine = self.engine
        if "sample" not in engine.capabilities or not isinstance(engine, Sampler):
            raise InferenceError(f"{type(engine).__name__} cannot sample; use junction-tree")
        source = given_or_system(randomness)
        codes = engine.sample(self.potentials, int(count), source.generator())
        columns = [
            pa.array(attribute.labels, pa.string()).take(pa.array(column))
            for attribute, column in zip(self.domain, codes, strict=True)
        ]
        return pa.table(columns, names=list(self.domain.names), metadata={"dpgm": json.dumps(self.stamp())})

    # --- how sure -----------------------------------------------------------------------------------------------

    def with_replicates(self, potentials: Array) -> Model:
        """The same model with replicates of itself: their log-potentials, (B, cells), nats, B at least 2.

        `dpgm_core.bootstrap` makes them; whoever has other refits of the model can give those.
        """
        return self._with(self._inference, potentials)

    @property
    def replicates(self) -> tuple[Model, ...]:
        """The models learned from simulated releases, which share this one's engines; () before `bootstrap`."""
        if self._replicates is None:
            self._replicates = tuple(self._replicate(row) for row in (() if self._refits is None else self._refits))
        return self._replicates

    def standard_errors(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """The root mean square errors to expect of `marginal(attributes, given)`: spread and bias together."""
        return self.intervals(attributes, given).standard_error

    def intervals(
        self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None, *, level: float = 0.9
    ) -> Interval:
        """Intervals that contain the population's p(attributes | given) with probability `level`, entry by entry.

        Sampling, noise and the learner's own bias are in them, a wrong structure is not. Costs one query of each
        replicate. Raises OptionError before `bootstrap`.
        """
        return self.interval_of(lambda model: model.marginal(attributes, given), level=level, within=(0.0, 1.0))

    def interval_of(
        self,
        query: Callable[[Model], Array | float],
        *,
        level: float = 0.9,
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> Interval:
        """An interval for anything computed from a model: `lambda model: model.entropy()`, a difference, an odds ratio.

        within: the range of possible values. Raises OptionError before `bootstrap`, InferenceError for infinite values.
        """
        if not self.replicates:
            raise OptionError("the model has no replicates to tell errors from; make them with bootstrap(model)")
        found = [np.asarray(query(one), dtype=np.float64) for one in (self, *self.replicates)]
        return interval(found[0], np.stack(found[1:]), level=level, within=within)

    def sample_datasets(
        self, count: int, datasets: int, *, randomness: Randomness | None = None
    ) -> tuple[pa.Table, ...]:
        """Several synthetic data sets of `count` records, each from another replicate, so that they differ as much as
        the model is uncertain. See `combine` for what to do with them. Raises OptionError without enough replicates.
        """
        have = len(self.replicates)
        if not isinstance(datasets, int) or isinstance(datasets, bool) or not 1 <= datasets <= have:
            raise OptionError(
                f"data sets must be a whole number from 1 to the model's {have} replicates, got {datasets!r}; "
                "bootstrap(model, B) makes B replicates"
            )
        source = given_or_system(randomness)
        return tuple(one.sample(count, randomness=source) for one in self.replicates[:datasets])

    # --- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one `.dpgm` file, atomically: the model and the releases it came from.

        An older model may stand there and is replaced; any other file is refused. Raises ModelFileError.
        """
        documents = {"model.json": self.to_document()}
        arrays: dict[str, Array] = {"potentials.npz": self.potentials.values}
        for number, release in enumerate(self.releases, start=1):
            facts, values = member_names(number)
            documents[facts], arrays[values] = release.to_document(), release.tables.values
        if self._refits is not None:
            arrays["replicates.npz"] = self._refits.reshape(-1)
        write_archive(path, documents, arrays, MODEL_FILE)

    def to_document(self) -> dict[str, Any]:
        """Everything but the numbers as JSON values."""
        return {
            "format": "dpgm-model",
            "schema": SCHEMA,
            "dpgm": __version__,
            "private": self.private,
            "cost": None if self.cost is None else self.cost.to_dict(),
            "conversion_delta": None if self.conversion_delta is None else str(self.conversion_delta),
            "releases": len(self.releases),
            "guarantee": self.guarantee(),
            "converged": self.converged,
            "provenance": plain(self.provenance),
            "replicates": 0 if self._refits is None else len(self._refits),
            "structure": self.structure.to_dict(),
            "domain": self.domain.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Model({len(self.domain)} attributes, {len(self.structure.cliques)} cliques, private={self.private})"

    # --- inside -------------------------------------------------------------------------------------------------

    def _with(self, inference: str | Inference, replicates: Array | None) -> Model:
        """The same model and its engines, if the inference stays."""
        made = Model(
            self.structure,
            self.potentials,
            releases=self.releases,
            conversion_delta=self.conversion_delta,
            provenance=self.provenance,
            inference=inference,
            replicates=replicates,
        )
        if inference is self._inference:
            made._engines, made._beliefs = self._engines, self._beliefs
        return made

    def _replicate(self, potentials: Array) -> Model:
        """Not learned from the release, but post-processing of it."""
        made = Model(
            self.structure,
            Tables(self.structure, potentials),
            releases=self.releases,
            conversion_delta=self.conversion_delta,
            provenance={"notes": ["a bootstrap replicate of a model, not the model"]},
            inference=self._inference,
        )
        made._engines = self._engines
        return made

    def _engine(self, structure: Structure) -> Engine:
        if structure not in self._engines:
            inference: Inference = make("inference", self._inference)
            if len(self._engines) >= 16:
                self._engines.clear()
            self._engines[structure] = inference.compile(structure)
        return self._engines[structure]

    def _names(self, attributes: Sequence[str] | str, given: Mapping[str, object]) -> Clique:
        if not isinstance(attributes, (str, Iterable)):
            raise StructureError(f"a query is the names of attributes, got {type(attributes).__name__}")
        names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        if not names:
            raise StructureError("name at least one attribute to query")
        for name in names:
            if name not in self.domain:
                raise StructureError(f"the model has no attribute {name!r}{did_you_mean(name, self.domain.names)}")
            if name in given:
                raise StructureError(f"attribute {name!r} is both asked for and given; leave it out of one")
        if len(set(names)) < len(names):
            raise StructureError(f"query {names!r} names an attribute twice")
        return names

    def _codes(self, given: Mapping[str, object]) -> dict[str, int]:
        for name in given:
            if name not in self.domain:
                raise StructureError(
                    f"given names {name!r}, which the model lacks{did_you_mean(name, self.domain.names)}"
                )
        return {name: self.domain[name].label_code(label) for name, label in given.items()}

    def _log_weight(self, record: Mapping[str, int]) -> float:
        """theta of one whole record, nats, unnormalised."""
        return math.fsum(
            float(self.potentials.group(number)[tuple(record[name] for name in clique)])
            for number, group in enumerate(self.structure.groups)
            for clique in group
        )

    def _conditioned(self, fixed: Mapping[str, int]) -> tuple[Structure, Tables]:
        """The model over the other attributes once some are fixed, unnormalised; ties are resolved."""
        if not fixed and max(self.structure.multiplicities) == 1:
            return self.structure, self.potentials
        domain = self.domain.subset(name for name in self.domain.names if name not in fixed)
        pieces = []
        for number, group in enumerate(self.structure.groups):
            table = self.potentials.group(number)
            for clique in group:
                at = tuple(fixed.get(name, slice(None)) for name in clique)
                pieces.append((tuple(name for name in clique if name not in fixed), table[at]))
        return collected(domain, pieces)

    def _host(self, names: Clique) -> Clique | None:
        """The smallest clique that holds the names, unless its table is shared with others."""
        host = self.structure.covering(names)
        return None if host is None or len(self.structure.groups[self.structure.find(host)[0]]) > 1 else host

    def _across(self, queries: Sequence[Clique], given: Mapping[str, object]) -> list[FloatArray]:
        """All queries at once where the engine can, else each on a structure with a clique for it."""
        if not queries:
            return []
        fixed = self._codes(given)
        structure, potentials = self._conditioned(fixed) if fixed else (self.structure, self.potentials)
        engine = self._engine(structure)
        if "query" in engine.capabilities and isinstance(engine, Querier):
            try:
                return engine.answers(potentials, queries)
            except TooLarge:
                pass  # a structure for each may fit yet, as it holds one query at a time; what does not fit it refuses
        found = []
        for names in queries:
            structure, potentials = self._joined(names, given)
            found.append(np.array(self._engine(structure).infer(potentials).marginals[names]))
        return found

    def _joined(self, names: Clique, given: Mapping[str, object]) -> tuple[Structure, Tables]:
        """Structure and potentials in which the query's attributes share one clique."""
        structure, potentials = self._conditioned(self._codes(given))
        if any(frozenset(group[0]) == frozenset(names) for group in structure.groups if len(group) == 1):
            return structure, potentials
        wider = Structure(structure.domain, [*structure.cliques, names])
        self._engine(wider)  # refuses what does not fit before anything of its size is made
        return wider, potentials.embed(wider)
