"""The learned model: a structure, log-potentials and where they came from; answers, says how sure it is, saves.

Everything here is post-processing of the release and free in privacy; what compares with records is in `evaluate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.errors import InferenceError, OptionError, StructureError
from dpgm_core.files import MODEL_FILE, write_archive
from dpgm_core.inference.contract import Beliefs, Engine, Inference
from dpgm_core.markup import Html
from dpgm_core.models.answers import Answers
from dpgm_core.models.checked import distance, measured_error, scores_of, squared_errors, structure_variance
from dpgm_core.models.cpds import log_cpds
from dpgm_core.models.distribution import Distribution, check_potentials
from dpgm_core.models.intervals import Interval, checked_level, farthest, interval, widened
from dpgm_core.models.labelled import labelled
from dpgm_core.models.merged import divergence, expanded, law_of
from dpgm_core.models.misfit import Component
from dpgm_core.models.questions import coded, named
from dpgm_core.models.shown import model_card
from dpgm_core.models.standing import Unmeasured
from dpgm_core.printable import brief
from dpgm_core.randomness import Randomness, given_or_system
from dpgm_core.releases.release import NoisyTables, member_names
from dpgm_core.releases.stamps import caveats_of
from dpgm_core.structure import Clique, Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Model"]


class Model(Answers):
    """p(x) proportional to exp(sum over cliques of theta_C(x_C)), with the facts of its making.

    potentials: theta, nats, one table per group of the structure; -inf is legal. releases: all that was paid for to
    learn it, about the same people under one relation; a view stands for what is behind it. Where
    one of them merged codes the model answers about the codes as they were (see `coarse`). provenance: plain values
    (learner, options, converged, notes, ...). inference: the component that answers queries (name or object); a query
    that does not fit raises TooLarge and is never approximated silently. replicates: log-potentials of refits, (B,
    cells), as `bootstrap` makes them. conversion_delta: at which zCDP is converted, where costs differ in kind. Raises
    StructureError and InferenceError for potentials that fit no model, BudgetError for releases that do not add up.

    >>> from dpgm_core.domain import Domain
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
        check_potentials(potentials.values, replicates)
        super().__init__(structure, releases, provenance, conversion_delta)
        self.potentials = potentials.astype(np.float64)
        self._law = law_of(Distribution(self.potentials, inference), self._levels)
        self._refits = replicates
        self._replicates: tuple[Model, ...] | None = None
        self._coarse: Model | None = None
        self._component: Component | None = None

    # --- what it is ---------------------------------------------------------------------------------------------

    @classmethod
    def from_cpds(cls, dag: Dag, cpds: Mapping[str, FloatArray], **facts: Any) -> Model:
        """The Bayesian network with these tables: child -> P(child | parents), axes child, then parents.

        facts: as in the constructor. Raises StructureError where rows are no probabilities that sum to 1 within 1e-9.

        >>> from dpgm_core.domain import Domain
        >>> dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {"b": ["a"]})
        >>> model = Model.from_cpds(dag, {"a": np.array([0.5, 0.5]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])})
        >>> model.marginal("b").round(2).tolist()
        [0.55, 0.45]
        """
        potentials = log_cpds(dag, cpds)
        return cls(potentials.structure, potentials, **facts)

    @property
    def inference(self) -> str | Inference:
        """The component that answers queries, by name or as an object."""
        return self._law.below.inference

    def using(self, inference: str | Inference | None = None, *, unmeasured: Unmeasured | None = None) -> Model:
        """The same model answering through another inference component, such as "loopy-bp", or about other attributes.

        unmeasured: attributes in no released table. "omit", as every model starts: records are sampled without them,
        and a query that names one is refused. "uniform": they are answered as the potentials have them, uniform unless
        the learner made it otherwise. None leaves either as it is. Raises OptionError.

        >>> from dpgm_core.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> Model(structure, Tables.zeros(structure)).using("loopy-bp", unmeasured="uniform").left_out
        ()
        """
        if unmeasured not in (None, "omit", "uniform"):
            raise OptionError(f"unmeasured attributes can be taken as 'omit' or 'uniform', got {unmeasured!r}")
        law = self._law.below
        if inference is not None and inference is not law.inference:
            law = Distribution(self.potentials, inference)
        made = self._with(law, self._refits)
        made._unmeasured_as = unmeasured or self._unmeasured_as
        return made

    @property
    def coarse(self) -> Model:
        """The same model about the codes that it was learned over, where a session merged some; itself without.

        `structure`, `potentials`, `marginals` and the engine are always over these; all other answers are about the
        codes as they were before, see `dpgm_core.models.levels`.
        """
        if self._levels is None:
            return self
        if self._coarse is None:
            self._coarse = self._with(self._law.below, self._refits)
            self._coarse._levels, self._coarse._law = None, self._law.below
        return self._coarse

    def expanded(self) -> Tables:
        """The potentials over all codes of the domain, for other programs: `write_uai(path, t.structure, t)`.

        Those of the model itself where none are merged. Raises TooLarge, with sizes, for more than 1 GiB.
        """
        return expanded(self.potentials, self._levels)

    # --- inference ----------------------------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine that answers for the whole model; compiled once. Raises TooLarge when that does not fit."""
        return self._law.below.engine(self.structure)

    def beliefs(self) -> Beliefs:
        """Marginals and log-partition of the whole model; computed once."""
        return self._law.below.beliefs()

    @property
    def log_partition(self) -> float:
        """log Z of one record, nats; as near as the engine comes, which is exact for the junction tree.

        What it certainly lies between where it is not: `engine.bounds(potentials)`, of engines with that capability.

        >>> from dpgm_core.domain import Domain
        >>> ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
        >>> model = Model(ring, Tables(ring, np.tile([1.0, 0.0, 0.0, 1.0], 3)), inference="loopy-bp")
        >>> within = model.engine.bounds(model.potentials)
        >>> within.low <= model.using("junction-tree").log_partition <= within.high
        True
        """
        return self.beliefs().log_partition

    def marginals(self) -> Tables:
        """The model's probabilities on each clique (a tied group's table sums to its number of cliques)."""
        return self.beliefs().marginals

    def table(
        self,
        attributes: Sequence[str] | str,
        given: Mapping[str, object] | None = None,
        *,
        level: float | None = None,
    ) -> pa.Table:
        """p(attributes | given) as an Arrow table: a column of labels each, then `probability`, and last `standing`.

        level: adds `standard_error`, `low` and `high` of `intervals`. One row per combination of labels, the last
        attribute's fastest. `stamp()` is in the schema's metadata, as `sample` has it. Raises what `marginal` and
        `intervals` do, StructureError where an attribute has the name of a column.

        >>> from dpgm_core.domain import Domain
        >>> structure = Structure(Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}}), [("sex",)])
        >>> Model(structure, Tables(structure, np.log([0.25, 0.75]))).table("sex").to_pylist()
        [{'sex': 'F', 'probability': 0.25, 'standing': 'by definition'},
         {'sex': 'M', 'probability': 0.75, 'standing': 'by definition'}]
        """
        names = named(self.domain, attributes, given or {})
        if level is None:
            columns = {"probability": self.marginal(names, given)}
        else:
            found = self.intervals(names, given, level=level)
            columns = {"probability": found.estimate, "standard_error": found.standard_error}
            columns |= {"low": found.low, "high": found.high}
        return labelled(self.domain, names, columns, self.stamp(), standing=self.standing(names, given))

    def kl(self, other: Model) -> float:
        """KL(self || other), nats; infinite where `other` rules out what this model allows.

        Exact. All attributes count, those that no release measured as the potentials have them.
        """
        if other.domain != self.domain:
            raise StructureError("KL compares models over the same domain; these differ in attributes or labels")
        return divergence(self._law, other._law)

    # --- how sure -----------------------------------------------------------------------------------------------

    def with_replicates(self, potentials: Array) -> Model:
        """The same model with replicates of itself: their log-potentials, (B, cells), nats, B at least 2.

        `dpgm_core.bootstrap` makes them; whoever has other refits of the model can give those.
        """
        return self._with(self._law.below, potentials)

    @property
    def replicates(self) -> tuple[Model, ...]:
        """The models learned from simulated releases, which share this one's engines; () before `bootstrap`."""
        if self._replicates is None:
            rows = () if self._refits is None else self._refits
            self._replicates = tuple(self._replicate(row, number) for number, row in enumerate(rows))
        return self._replicates

    def standard_errors(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """The root mean square errors to expect of `marginal(attributes, given)`: spread and bias together."""
        return self.intervals(attributes, given).standard_error

    def intervals(
        self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None, *, level: float = 0.9
    ) -> Interval:
        """Intervals for the population's p(attributes | given), entry by entry.

        Sampling, noise and the learner's own bias are in them, the structure's error only where a holdout
        measured it (see `fit`). Where `standing` is "measured" they contain the truth with probability `level`. A
        replicate in which `given` has probability 0 counts as 0 or 1, whichever is farther from the estimate (see
        `interval_of`). Costs one query of each replicate. Raises OptionError before `bootstrap`.
        """
        names, fixed = named(self.domain, attributes, given or {}), coded(self.domain, given or {})
        found = self.interval_of(lambda model: model.marginal(names, given), level=level, within=(0.0, 1.0))
        labels = tuple(self.domain[name].labels for name in names)
        flaws = caveats_of(self.releases)
        found = evolve(found, standing=self.standing(names, given), names=names, labels=labels, flaws=flaws)
        if not self.checked:
            return found
        lever = structure_variance(self.structure, names, fixed, found.estimate, self.marginals_of)
        if lever is None:
            return found
        return widened(found, np.sqrt(lever * self._error().expected), len(self.replicates), within=(0.0, 1.0))

    def interval_of(
        self,
        query: Callable[[Model], Array | float],
        *,
        level: float = 0.9,
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> Interval:
        """An interval for anything computed from a model: `lambda model: model.entropy()`, a difference, an odds ratio.

        within: the range of possible values. A replicate for which the query is undefined, as what is given has
        probability 0 there, counts entry by entry as the end of that range farther from the estimate: such replicates
        are the ones that know least, and to skip them would make intervals too short. `Interval.undefined` counts them.
        Raises OptionError before `bootstrap`, InferenceError for infinite values, and for undefined ones where `within`
        is infinite.
        """
        if not self.replicates:
            raise OptionError("the model has no replicates to tell errors from; make them with bootstrap(model)")
        estimate = np.asarray(query(self), dtype=np.float64)
        found = []
        for one in self.replicates:
            with suppress(InferenceError):
                found.append(np.asarray(query(one), dtype=np.float64))
        undefined = len(self.replicates) - len(found)
        if undefined and not np.isfinite(within).all():
            raise InferenceError(
                f"in {undefined} of {len(self.replicates)} replicates the query is undefined, as what is given has "
                "probability 0 there; state the range of its possible values with within=(low, high)"
            )
        found += [farthest(estimate, within)] * undefined
        return interval(estimate, np.stack(found), level=level, within=within, undefined=undefined)

    def sample_datasets(
        self, count: int, datasets: int, *, randomness: Randomness | None = None
    ) -> tuple[pa.Table, ...]:
        """Data sets of `count` records, each from another replicate, to be combined (`combine`). Raises OptionError."""
        have = len(self.replicates)
        if not isinstance(datasets, int) or isinstance(datasets, bool) or not 1 <= datasets <= have:
            raise OptionError(
                f"data sets must be a whole number from 1 to the model's {have} replicates, got {datasets!r}; "
                "bootstrap(model, B) makes B replicates"
            )
        source = given_or_system(randomness)
        return tuple(one.sample(count, randomness=source) for one in self.replicates[:datasets])

    # --- how wrong ----------------------------------------------------------------------------------------------

    def misfit(self) -> dict[Clique, float]:
        """How many standard errors each table that it was learned from lies from the model, by clique.

        One-sided and cautious: the score of a right model exceeds z at most as often as a normal deviate does (see
        `dpgm_core.models.misfit`). Of a clique measured several times the largest, less what so many have by chance;
        none of sums of clipped scores. Raises what `marginals_of` does.

        >>> from dpgm_core import Budget, Domain, SeededRandomness, fit
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 500)
        >>> done = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
        >>> bool(done.model.misfit()["a", "b"] < 2)
        True
        """
        return scores_of(self.learned, self.coarse.marginals_of)

    def structure_error(self, *, level: float = 0.9) -> Interval:
        """The total variation distance by which the structure misses the truth, the mean over pairs no clique holds.

        From the tables of its holdout; with replicates, what the fit is off by is taken out. Raises
        OptionError without a holdout, and where none of its pairs is answered by structure any more.
        """
        return distance(self._error(), self.structure, self.unmeasured, self.coarse.marginals_of, checked_level(level))

    def _error(self) -> Component:
        """The structure's error as a variance component, measured once."""
        if self._component is None:
            here = self.coarse  # as the holdout's tables are
            spreads = (lambda pairs: squared_errors(here, here.replicates, pairs)) if here.replicates else None
            self._component = measured_error(self.holdout, self._missed, self.seen, here.marginals_of, spreads)
        return self._component

    # --- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one `.dpgm` file, atomically: the model and the releases it came from.

        An older model may stand there and is replaced; any other file is refused. Raises ModelFileError.
        """
        documents = {"model.json": self.to_document()}
        arrays: dict[str, Array] = {"potentials.npz": self.potentials.values}
        for number, release in enumerate(self.releases, start=1):
            facts, values = member_names(number)
            documents[facts], arrays[values] = release.to_document(), release.numbers
        if self._refits is not None:
            arrays["replicates.npz"] = self._refits.reshape(-1).astype(np.float32)
        write_archive(path, documents, arrays, MODEL_FILE)

    def to_document(self) -> dict[str, Any]:
        """Everything but the numbers as JSON values."""
        return super().to_document() | {"replicates": 0 if self._refits is None else len(self._refits)}

    def __repr__(self) -> str:
        sizes = f"{len(self.domain)} attributes", f"{len(self.structure.cliques)} cliques"
        return brief("Model", *sizes, f"private={self.private}")

    def _repr_html_(self) -> Html:
        return model_card(self, len(self._refits) if self._refits is not None else 0)

    # --- inside -------------------------------------------------------------------------------------------------

    def noted(self, notes: Sequence[str]) -> Model:
        """The same model with these notes in its provenance, in place of those it had."""
        return self._with(self._law.below, self._refits, {**self.provenance, "notes": list(notes)})

    def _with(self, law: Distribution, replicates: Array | None, provenance: Mapping[str, Any] | None = None) -> Model:
        """The same model with this distribution over its structure; engines that it has made come with it."""
        made = Model(
            self.structure,
            law.potentials,
            releases=self.releases,
            conversion_delta=self.conversion_delta,
            provenance=self.provenance if provenance is None else provenance,
            inference=law.inference,
            replicates=replicates,
        )
        made._unmeasured_as = self._unmeasured_as
        made._levels = self._levels  # a replicate's are its own
        made._law = law_of(law, self._levels)
        return made

    def _replicate(self, potentials: Array, number: int) -> Model:
        """Not learned from the release, but post-processing of it. number: always gives the same split of blocks."""
        below = self._law.below
        law = Distribution(Tables(self.structure, potentials).astype(np.float64), below.inference, below.engines)
        made = self._with(law, None, {"notes": ["a bootstrap replicate of a model, not the model"]})
        if self._levels is not None:
            shares = self._law.marginals_of([(name,) for name in self._levels.of], {})
            of = dict(zip(self._levels.of, shares, strict=True))
            made._levels = self._levels.redrawn(of, self.learned[-1].total, np.random.default_rng(number))
            made._law = law_of(law, made._levels)
        return made
