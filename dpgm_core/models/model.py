"""The model: a learned distribution with its provenance, queries, samples and error bars.

Everything here is post-processing of the releases and free in privacy; `pipeline.evaluation` compares with records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import Array, FloatArray, IntArray, ratio
from dpgm_core._util.files import MODEL_FILE, plain, write_archive
from dpgm_core._util.html import Html
from dpgm_core._util.randomness import Randomness, randomness_or_system
from dpgm_core._util.version import __version__
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_core.errors import OptionError, StructureError, brief, clipped
from dpgm_core.inference.contract import Beliefs, Engine, Estimates, Inference
from dpgm_core.models import merged_codes, misfit, numeric, queries
from dpgm_core.models.arrow_tables import probability_table
from dpgm_core.models.completion import Completion, completion, stamp_own_rows
from dpgm_core.models.corrections import Grid, correct_shares, effects_of_each
from dpgm_core.models.cpds import log_cpds
from dpgm_core.models.distribution import Distribution, check_potentials
from dpgm_core.models.intervals import Interval, checked_level, corrected_interval, replicate_interval, widen
from dpgm_core.models.latent import checked_latent, file_schema, hide, observed_structure, refuse_sums
from dpgm_core.models.learned import Learned
from dpgm_core.models.merged_codes import MergedCodes, SampleMethod
from dpgm_core.models.misfit import Component, distance, structure_variance
from dpgm_core.models.notebook import Marginal, model_card
from dpgm_core.models.queries import MEASURED, Basis, Unmeasured, encode_evidence, read_queries, refuse_unmeasured
from dpgm_core.models.sampling import Form, batches, check_datasets, writer
from dpgm_core.models.within_bins import BinDistribution, tables_of_wide
from dpgm_core.releases.release import NoisyTables, check_domain, member_names
from dpgm_core.releases.session import caveats_of, stamp_of
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ON_ANALYSES", "Model"]

#: What the stamp of a sample says to those who have the rows alone.
ON_ANALYSES = (
    "Rows alone never carry valid standard errors, as noise and learning are not in them: analyse them with the model, "
    "by dpgm analyse MODEL FORMULA --rows FILE."
)


class Model(Learned):
    """Discrete graphical model, p(x) proportional to exp(sum over cliques of theta_C(x_C)), with its provenance.

    Parameters
    ----------
    structure : Structure
    potentials : Tables
        theta, nats, one table per group of the structure; -inf is legal.
    releases : sequence of NoisyTables
        All that was paid for to learn the model, about the same people under one relation; a view such as `levelled`
        stands for the release behind it. Where one of them merged codes, the model answers about the original codes
        (see `coarse`).
    provenance : mapping, optional
        Plain values: learner, options, converged, notes, ...
    inference : str or Inference
        The component that answers queries. A query that does not fit raises TooLarge and is never approximated
        silently.
    replicates : array of shape (B, cells), optional
        Log-potentials of refits, as `bootstrap` makes them.
    conversion_delta : Fraction, optional
        The delta at which zCDP is converted where costs differ in kind.
    latent : sequence of str
        Attributes of the structure that no record has, such as the class of a mixture. They are summed out of every
        answer and left out of `domain` and of samples.

    Raises
    ------
    StructureError, InferenceError
        The potentials fit no model.
    BudgetError
        The releases do not add up.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
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
        latent: Sequence[str] = (),
    ) -> None:
        if potentials.structure != structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit a model over {structure}")
        self.latent = checked_latent(structure, latent)
        check_potentials(potentials.values, replicates)
        self.structure = structure
        super().__init__(releases, provenance, conversion_delta)
        check_domain(hide(structure.domain, self.latent), self.releases)
        sessions = [one for one in self.releases if one.session is not None]
        self.potentials = potentials.astype(np.float64)
        merged = merged_codes.find_merged_codes(structure.domain, sessions) if sessions else None
        self._answer_from(Distribution(self.potentials, inference), merged)
        # What a holdout measured was not learned from: the answer about it is by structure all the same.
        contrasts = [one.structure for one in self.learned if one.contrasts]
        self._basis = Basis(self.domain, [one.structure for one in self.learned], contrasts)
        self._unmeasured_as: Unmeasured = "omit"
        self._refits = replicates

    @classmethod
    def from_cpds(cls, dag: Dag, cpds: Mapping[str, FloatArray], **facts: Any) -> Model:
        """Return the Bayesian network with these tables: child -> P(child | parents), axes child, then parents.

        facts: as in the constructor. Raises StructureError where rows are no probabilities that sum to 1 within 1e-9.

        >>> from dpgm_core.domain.domain import Domain
        >>> dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {"b": ["a"]})
        >>> model = Model.from_cpds(dag, {"a": np.array([0.5, 0.5]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])})
        >>> model.marginal("b").round(2).tolist()
        [0.55, 0.45]
        """
        potentials = log_cpds(dag, cpds)
        return cls(potentials.structure, potentials, **facts)

    def using(self, inference: str | Inference | None = None, *, unmeasured: Unmeasured | None = None) -> Model:
        """Return the same model with another inference component or another treatment of unmeasured attributes.

        Parameters
        ----------
        inference : str or Inference, optional
            Such as "loopy-bp".
        unmeasured : {"omit", "uniform"}, optional
            Attributes in no released table. "omit", the default of every model: records are sampled without them, and a
            query that names one is refused. "uniform": they are answered as the potentials have them, uniform unless
            the learner made it otherwise.
        """
        if unmeasured not in (None, "omit", "uniform"):
            raise OptionError(f"unmeasured attributes can be taken as 'omit' or 'uniform', got {unmeasured!r}")
        distribution = self._distribution.base
        if inference is not None and inference is not distribution.inference:
            distribution = Distribution(self.potentials, inference)
        model = self._with(distribution, self._refits)
        model._unmeasured_as = unmeasured or self._unmeasured_as
        return model

    @property
    def coarse(self) -> Model:
        """The model over the codes it was learned over, where a session merged some; the model itself otherwise.

        `structure`, `potentials`, `marginals` and the engine are always over these codes; all other answers are about
        the codes before they were merged.
        """
        return self if self._merged_codes is None else self._over_blocks

    @cached_property
    def _over_blocks(self) -> Model:
        model = self._with(self._distribution.base, self._refits)
        model._answer_from(self._distribution.base, None)
        return model

    def expanded(self) -> Tables:
        """Return the potentials over all codes of the domain, for other programs: `write_uai(path, t.structure, t)`.

        Raises TooLarge, with sizes, for more than 1 GiB.
        """
        return merged_codes.expand_potentials(self.potentials, self._merged_codes)

    def with_replicates(self, potentials: Array) -> Model:
        """Return the same model with these replicates: log-potentials of refits, (B, cells), nats, B at least 2."""
        return self._with(self._distribution.base, potentials)

    def noted(self, notes: Sequence[str], **facts: object) -> Model:
        """Return the same model with these notes in its provenance, in place of its own, and with further facts."""
        return self._with(self._distribution.base, self._refits, {**self.provenance, "notes": list(notes), **facts})

    # --- facts -----------------------------------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        """The attributes that the model answers about; with all codes where a session merged some."""
        return self._domain

    @cached_property
    def observed(self) -> Structure:
        """The structure over the attributes of records; with latent classes it is that of the released tables."""
        cliques = [clique for one in self.learned for clique in one.structure.cliques if clique]
        return observed_structure(self.structure, self.latent, cliques)

    @property
    def related(self) -> Related | None:
        """The two tables that its records are pairs of, as the terms of its releases state them; usually None."""
        return self.releases[-1].terms.related if self.releases else None

    @property
    def checked(self) -> bool:
        """Whether a holdout measured pairs that the model answers by structure."""
        return bool(self._missed)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The attributes that no release measured; empty for a model without a release."""
        return self._basis.unmeasured

    @property
    def left_out(self) -> tuple[str, ...]:
        """The attributes it does not answer about: all `unmeasured` ones, none after `using(unmeasured="uniform")`."""
        return self.unmeasured if self._unmeasured_as == "omit" else ()

    def standing(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> str:
        """Return the basis of p(attributes | given), with the given attributes counted among the attributes.

        "measured": one released table contains them all. "by structure": each was measured, but together they need the
        independences of the structure, the assumption that ties its tables, or the split of merged codes. "not
        measured": some attribute is in no table. "by definition": the model carries no release. Raises StructureError.

        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> Model(structure, Tables.zeros(structure)).standing("a", given={"b": 0})
        'by definition'
        """
        names, fixed = self._read(attributes, given or {})
        standing = self._basis.standing((*names, *fixed))
        merged = self._merged_codes
        needs_structure = standing == MEASURED and merged is not None and merged.needs_independence(names, fixed)
        return queries.BY_STRUCTURE if needs_structure else standing

    def stamp(self) -> dict[str, Any]:
        """Return what accompanies anything computed from the model: guarantee, conditions, cost and components.

        private, unsafe and conditions state parts of the guarantee as values. provenance: selector, learner and
        inference with their options. unmeasured: attributes that no release measured; unmeasured_as: "omit" or
        "uniform".

        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> sorted(Model(structure, Tables.zeros(structure)).stamp())
        ['conditions', 'cost', 'dpgm', 'guarantee', 'private', 'provenance', 'unmeasured', 'unmeasured_as', 'unsafe']
        """
        facts = self.provenance
        makers = {kind: facts[kind] for kind in ("selector", "learner", "inference") if kind in facts}
        return {
            "dpgm": __version__,
            **stamp_of(self.releases, self.guarantee()),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "provenance": plain(makers),
            "unmeasured": list(self.unmeasured),
            "unmeasured_as": self._unmeasured_as,
        }

    # --- inference -------------------------------------------------------------------------------------------------

    @property
    def inference(self) -> str | Inference:
        """The component that answers queries, by name or as an object."""
        return self._distribution.base.inference

    @property
    def engine(self) -> Engine:
        """The engine over the whole structure, compiled once. Raises TooLarge where it does not fit."""
        return self._distribution.base.engine(self.structure)

    def beliefs(self) -> Beliefs:
        """Return marginals and log-partition of the whole model, computed once."""
        return self._distribution.base.beliefs()

    @property
    def log_partition(self) -> float:
        """log Z of one record, nats; exact with the junction tree, and bounded by engines with capability "bounds"."""
        return self.beliefs().log_partition

    def marginals(self) -> Tables:
        """Return the probabilities on each clique; a tied group's table sums to its number of cliques."""
        return self.beliefs().marginals

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences of the engine about records and averages drawn from this model; usually none."""
        return tuple(self._distribution.base.caveats())

    # --- queries ---------------------------------------------------------------------------------------------------

    def marginal(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """Return p(attributes | given) of any attributes, also across cliques.

        Parameters
        ----------
        attributes : sequence of str or str
        given : mapping of str to object, optional
            attribute -> label (text) or code (whole number).

        Returns
        -------
        array
            One axis per attribute, in the order named. A notebook shows the labels with the numbers.

        Raises
        ------
        TooLarge, InferenceError
            The query does not fit; `given` has probability 0.
        StructureError
            No release measured one of the attributes, unless they are taken as uniform (`using`).
        """
        ((names, table),) = self.marginals_of([attributes], given).items()
        labels = tuple(self.domain[name].labels for name in names)
        return Marginal.of(table, names, labels, self.standing(names, given), caveats_of(self.releases))

    def marginals_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> dict[Clique, FloatArray]:
        """Return p(clique | given) of many sets of attributes, inside cliques or across, from one inference.

        The result has a table for each tuple of names, its axes in their order. Raises as `marginal`, before any table
        is made.

        >>> from dpgm_core import Domain, Model, Structure, Tables
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
        >>> found = Model(structure, Tables.zeros(structure)).marginals_of([("c", "a"), "b"])
        >>> {names: table.tolist() for names, table in found.items()}
        {('c', 'a'): [[0.25, 0.25], [0.25, 0.25]], ('b',): [0.5, 0.5]}
        """
        queries, fixed = read_queries(self.domain, cliques, given or {}, self.left_out, self.latent)
        distinct = list(dict.fromkeys(queries))
        return dict(zip(distinct, self._distribution.marginals_of(distinct, fixed), strict=True))

    def estimates_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> Estimates | None:
        """Return `marginals_of` with Monte Carlo standard errors, in the order of the queries; None for other engines.

        The errors are the engine's alone; errors from sampling, noise and structure are in `intervals`.
        """
        queries, fixed = read_queries(self.domain, cliques, given or {}, self.left_out, self.latent)
        return self._distribution.estimates_of(queries, fixed)

    def conditional(self, attributes: Sequence[str] | str, on: Sequence[str] | str) -> FloatArray:
        """Return p(attributes | on) for every value of `on`: axes are `attributes`, then `on`.

        Slices of values of `on` with probability 0 are 0.

        >>> from dpgm_core import Domain, Model, Structure, Tables
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> Model(structure, Tables.zeros(structure)).conditional("a", on="b").tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        targets = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        conditions = (on,) if isinstance(on, str) else tuple(on)
        joint = self.marginal((*targets, *conditions))
        return ratio(joint, joint.sum(axis=tuple(range(len(targets))), keepdims=True))

    def table(
        self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None, *, level: float | None = None
    ) -> pa.Table:
        """Return p(attributes | given) as an Arrow table: columns of labels, then `probability`, and last `standing`.

        level: adds `standard_error`, `low` and `high` of `intervals`. There is one row per combination of labels, the
        last attribute's fastest, and `stamp()` in the schema's metadata. Raises as `marginal` and `intervals`, and
        StructureError where an attribute has the name of a column.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}}), [("sex",)])
        >>> Model(structure, Tables(structure, np.log([0.25, 0.75]))).table("sex").to_pylist()
        [{'sex': 'F', 'probability': 0.25, 'standing': 'by definition'},
         {'sex': 'M', 'probability': 0.75, 'standing': 'by definition'}]
        """
        names, _ = self._read(attributes, given or {})
        if level is None:
            columns = {"probability": self.marginal(names, given)}
        else:
            intervals = self.intervals(names, given, level=level)
            columns = {"probability": intervals.estimate, "standard_error": intervals.standard_error}
            columns |= {"low": intervals.low, "high": intervals.high}
        return probability_table(self.domain, names, columns, self.stamp(), standing=self.standing(names, given))

    def map_assignment(self, given: Mapping[str, object] | None = None) -> dict[str, str]:
        """Return a most probable record, attribute -> label, with the given attributes fixed.

        Unmeasured attributes are left out (see `using`). Raises InferenceError where the engine cannot maximise,
        `given` has probability 0 or there are latent classes, and StructureError where no attribute involved was
        measured.
        """
        refuse_unmeasured(given or (), self.left_out)
        fixed = encode_evidence(self.domain, given or {}, self.latent)
        refuse_sums("its most probable record", self.latent)
        codes = self._distribution.most_probable(fixed)
        return {name: self.domain[name].labels[codes[name]] for name in self._answered()}

    def entropy(self) -> float:
        """Return the entropy of one record, nats: log Z - theta . mu, over all attributes, measured or not.

        Raises InferenceError for a model with latent classes, as `kl` does.
        """
        refuse_sums("its entropy", self.latent)
        return self._distribution.entropy()

    def kl(self, other: Model) -> float:
        """Return KL(self || other), nats, exactly; infinite where `other` rules out what this model allows.

        All attributes count, unmeasured ones as the potentials have them.
        """
        if other.domain != self.domain:
            raise StructureError("KL compares models over the same domain; these differ in attributes or labels")
        refuse_sums("its Kullback-Leibler divergence", (*self.latent, *other.latent))
        return merged_codes.divergence(self._distribution, other._distribution)

    # --- numbers ---------------------------------------------------------------------------------------------------

    def mean(self, attribute: str, given: Mapping[str, object] | None = None) -> float:
        """Return the mean of an attribute's numbers; missing values are left out.

        Dates are days since 1970, dates with a time seconds since then, times seconds since midnight. All values of a
        bin without an end are at its finite edge. An error bar: `interval_of(lambda model: model.mean("age"))`. Raises
        as `marginal`, DomainError for an attribute without numbers, InferenceError where all values are missing.

        >>> from dpgm_core import Attribute, Domain, Model, Structure, Tables
        >>> structure = Structure(Domain([Attribute.of_bins("age", [0, 18, 65], unknown="missing")]), [("age",)])
        >>> Model(structure, Tables(structure, np.log([0.5, 0.25, 0.25]))).mean("age").__round__(3)
        19.5
        """
        return numeric.mean_of(self._numbers_of(attribute), self.marginal(attribute, given))

    def variance(self, attribute: str, given: Mapping[str, object] | None = None) -> float:
        """Return the variance of an attribute's numbers, between and inside bins; see `mean`."""
        return numeric.variance_of(self._numbers_of(attribute), self.marginal(attribute, given))

    def quantile(self, attribute: str, share: float, given: Mapping[str, object] | None = None) -> float:
        """Return the smallest number that at least `share` of the numbers do not exceed, such as the median for 0.5.

        Inside a bin it follows the distribution of the bin; whole numbers stay whole. See `mean`. Raises OptionError.
        """
        share = numeric.checked_share(share)
        return numeric.quantile_of(self._numbers_of(attribute), self.marginal(attribute, given), share)

    def correlation(
        self, first: str, second: str, given: Mapping[str, object] | None = None, *, calibrated: bool = False
    ) -> float:
        """Return Pearson's correlation of two attributes over records that have both numbers; see `mean`.

        The model, and records drawn from it, take the two as independent inside bins and blocks of merged codes.
        calibrated: as dependent there as they are between, for an estimate of the population's.
        """
        table = self.marginal((first, second), given)
        value = numeric.correlation_of((self._numbers_of(first), self._numbers_of(second)), table)
        if not calibrated:
            return value
        columns = [self._numeric_column(first, table.sum(axis=1)), self._numeric_column(second, table.sum(axis=0))]
        return float(numeric.calibrate_correlation(np.array(value), columns))

    # --- sampling --------------------------------------------------------------------------------------------------

    def sample(
        self,
        count: int,
        *,
        method: SampleMethod = "independent",
        given: Mapping[str, object] | None = None,
        form: Form = "values",
        randomness: Randomness | None = None,
    ) -> pa.Table:
        """Return synthetic records as an Arrow table, a column for each attribute.

        Parameters
        ----------
        count : int
        method : {"independent", "rounded"}
            "independent": rows as people drawn from the model, for uses that depend on sampling variation. "rounded":
            each row has the model's distribution, but together they have the expected counts, rounded, in every clique:
            their tables have smaller errors, and standard errors computed from them are too large.
        given : mapping of str to object, optional
            As in `marginal`: records of p(. | given); a given value stays as it is.
        form : {"values", "texts", "labels"}
            "values": the columns' own types, with numbers drawn inside their bins and null for missing values
            (independent records never lack a value of attributes with `null_values` ()). "texts": these values as the
            columns write them. "labels": labels of the domain.
        randomness : Randomness, optional
            By default the operating system's.

        Returns
        -------
        pyarrow.Table
            The schema has `stamp()`, `synthetic` and `analysis` as JSON under the metadata key `dpgm`. Unmeasured
            attributes are left out, or uniform where `using` says so. Raises OptionError and InferenceError.
        """
        import pyarrow as pa

        tables = self.sample_batches(count, method=method, given=given, form=form, randomness=randomness)
        return pa.concat_tables(list(tables)).combine_chunks()

    def sample_batches(
        self,
        count: int,
        *,
        method: SampleMethod = "independent",
        given: Mapping[str, object] | None = None,
        form: Form = "values",
        randomness: Randomness | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the records of `sample` as tables, so that memory does not grow with their number.

        There is at least one table, which may be empty. Errors are raised before the first.
        """
        self._refuse_related("samples")
        evidence = queries.read_evidence(self.domain, given, self.latent)
        refuse_unmeasured(evidence.codes, self.left_out)
        stamp = {**self.stamp(), "synthetic": True, "analysis": ON_ANALYSES, **evidence.stamp(self.domain)}
        write = writer(self._distribution, self._columns, self._answered(), form, stamp)
        return batches(self._distribution, write, count, method, evidence, randomness_or_system(randomness).generator())

    def sample_datasets(
        self, count: int, datasets: int, *, randomness: Randomness | None = None
    ) -> tuple[pa.Table, ...]:
        """Return data sets of `count` records, each from another replicate, for `combine`. Raises OptionError."""
        check_datasets(datasets, len(self.replicates))
        source = randomness_or_system(randomness)
        return tuple(one.sample(count, randomness=source) for one in self.replicates[:datasets])

    def complete(self, table: Any, *, randomness: Randomness | None = None) -> pa.Table:
        """Return the rows of a table with their missing cells filled from the model, each given the rest of its row.

        Parameters
        ----------
        table : object with an Arrow stream (pyarrow, pandas, polars)
            Cells that are null, NaN or a null value of their column are missing, and so are columns that the table
            lacks. Present values and types of columns stay; columns that the model lacks are passed through.
        randomness : Randomness, optional

        Returns
        -------
        pyarrow.Table
            Missing cells are drawn from p(missing | given, not missing). The stamp says that no guarantee covers the
            caller's own rows. Raises DataError for values that the model does not know and for rows to which it gives
            probability 0, with the number of the row.
        """
        filled = self._completion().whole_table(table, randomness_or_system(randomness))
        return filled.replace_schema_metadata({"dpgm": json.dumps(stamp_own_rows(self.stamp()))})

    # --- errors of answers -----------------------------------------------------------------------------------------

    @cached_property
    def replicates(self) -> tuple[Model, ...]:
        """The models learned from simulated releases, which share this one's engines; () before `bootstrap`."""
        rows = () if self._refits is None else self._refits
        return tuple(self._replicate(row, number) for number, row in enumerate(rows))

    def standard_errors(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """Return the standard errors of `intervals`."""
        return self.intervals(attributes, given).standard_error

    def intervals(
        self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None, *, level: float = 0.9
    ) -> Interval:
        """Return intervals for the population's p(attributes | given), entry by entry.

        They lie around the model's answer as corrected from the released tables, and include sampling and noise by
        formula (`dpgm_core.models.corrections`), the structure's error only where a holdout measured it (see `fit`),
        and the answer itself, which may lie at an end. Where `standing` is "measured" they contain the truth with
        probability `level`.

        Where no table tells an attribute by itself (tied cliques, rounds, normalised contributions, derived columns),
        or tables have over 65,536 effects, they come from replicates: see `interval_of`. A replicate in which `given`
        has probability 0 counts as 0 or 1, whichever is farther from the estimate. Raises OptionError where these are
        needed and missing.
        """
        level = checked_level(level)
        names, fixed = self._read(attributes, given or {})
        answer = np.asarray(self.marginal(names, given))
        lever = None
        if self.checked:
            lever = structure_variance(self.observed, names, fixed, answer, self.marginals_of, self.is_selected)
        structure = np.zeros(()) if lever is None else np.sqrt(lever * self._error.expected)
        grid = self._grid(names, fixed)
        effects = effects_of_each(grid, self.learned)
        if effects is None:
            result = self.interval_of(lambda model: model.marginal(names, given), level=level, within=(0.0, 1.0))
            if lever is not None:
                result = widen(result, structure, len(self.replicates), within=(0.0, 1.0))
        else:
            table = np.asarray(self.marginal(grid.attributes)).reshape(-1)
            corrected, variance = correct_shares(grid, effects, self.domain, table, answer)
            result = corrected_interval(answer, corrected, variance, structure, level)
        labels = tuple(self.domain[name].labels for name in names)
        standing, flaws = self.standing(names, given), caveats_of(self.releases)
        return evolve(result, standing=standing, names=names, labels=labels, flaws=flaws)

    def needs_replicates(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> bool:
        """Return whether `intervals` of this answer take replicates, as they state."""
        names, fixed = self._read(attributes, given or {})
        return effects_of_each(self._grid(names, fixed), self.learned) is None

    def interval_of(
        self,
        query: Callable[[Model], Array | float],
        *,
        level: float = 0.9,
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> Interval:
        """Return an interval for any function of a model: `lambda model: model.entropy()`, a difference, an odds ratio.

        within: the range of possible values. A replicate for which the query is undefined, because the given evidence
        has probability 0 there, counts as the end of the range farther from the estimate, entry by entry;
        `Interval.undefined` counts them. Raises OptionError before `bootstrap`, InferenceError for infinite values, and
        for undefined ones where `within` is infinite.
        """
        return replicate_interval(query, self, self.replicates, level=level, within=within)

    # --- goodness of fit -------------------------------------------------------------------------------------------

    def misfit(self) -> dict[Clique, float]:
        """Return how many standard errors each table that the model was learned from lies from the model, by clique.

        The scores are one-sided and cautious: for a correct model a score exceeds z at most as often as a normal
        deviate. A clique measured several times has its largest score, corrected for the number of tables; sums of
        clipped scores have none. Raises as `marginals_of`.
        """
        return misfit.scores_of(self.learned, self.coarse.marginals_of)

    def structure_error(self, *, level: float = 0.9) -> Interval:
        """Return the total variation distance between structure and truth, the mean over pairs that no clique contains.

        It comes from the tables of the holdout; with replicates, the error of the fit is subtracted. Raises
        OptionError without a holdout, and where none of its pairs is answered by structure any more.
        """
        answers, level = self.coarse.marginals_of, checked_level(level)
        return distance(self._error, self.observed, self.unmeasured, answers, level, self.is_selected)

    # --- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one `.dpgm` file, atomically: the model and its releases.

        An older model at the path is replaced; any other file is refused. Raises ModelFileError.
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
        """Everything but the numbers as JSON values, as a model file has them."""
        return {
            "format": "dpgm-model",
            "schema": file_schema(self.latent),
            "dpgm": __version__,
            "private": self.private,
            "cost": None if self.cost is None else self.cost.to_dict(),
            "conversion_delta": None if self.conversion_delta is None else str(self.conversion_delta),
            "releases": len(self.releases),
            "guarantee": self.guarantee(),
            "converged": self.converged,
            "provenance": plain(self.provenance),
            "unmeasured": list(self.unmeasured),
            "replicates": 0 if self._refits is None else len(self._refits),
            **({"latent": list(self.latent)} if self.latent else {}),
            "structure": self.structure.to_dict(),
            "domain": self.structure.domain.to_dict(),
        }

    def __repr__(self) -> str:
        sizes = f"{len(self.domain)} attributes", f"{len(self.structure.cliques)} cliques"
        return brief("Model", *sizes, f"private={self.private}")

    def _repr_html_(self) -> Html:
        count = 0 if self._refits is None else len(self._refits)
        facts = [
            ("learner", clipped(self.made_by("learner"))),
            ("converged", "yes" if self.converged else "NO"),
            ("cost", "" if self.cost is None else str(self.cost)),
            ("releases", f"{len(self.releases):,}"),
            ("attributes", f"{len(self.domain):,}"),
            ("cliques", f"{len(self.structure.cliques):,} with {self.structure.cells:,} cells"),
            *((f"latent {name}", f"{self.structure.domain[name].size:,} classes") for name in self.latent),
            ("replicates", f"{count:,}" if count else "none; bootstrap(model) makes error bars"),
        ]
        return model_card(facts, self.domain, set(self.unmeasured), caveats_of(self.releases))

    # --- private ---------------------------------------------------------------------------------------------------

    @property
    def _missed(self) -> list[Clique]:
        return [] if self.holdout is None else misfit.pairs_left(self.holdout.structure, self.observed, self.unmeasured)

    @cached_property
    def _error(self) -> Component:
        """The structure's error as a variance component."""
        here = self.coarse  # as the holdout's tables are
        refits = [one.marginals_of for one in here.replicates]
        spreads = (lambda pairs: misfit.squared_errors(here.marginals_of, refits, pairs)) if refits else None
        answers, missed = here.marginals_of, self._missed
        return misfit.measure_structure_error(self.holdout, missed, self.seen, answers, spreads, self.is_selected)

    def _completion(self) -> Completion:
        """Return what `complete` fills rows with, batch by batch, for callers that read and write rows themselves."""
        self._refuse_related("completes")
        return completion(self._distribution, self._columns, self._answered())

    def _refuse_related(self, verb: str) -> None:
        if self.related is not None:
            raise StructureError(f"the model is of two related tables, and RelatedModel(model) {verb} these")

    def _read(self, attributes: Sequence[str] | str, given: Mapping[str, object]) -> tuple[Clique, dict[str, int]]:
        """The attributes of a query and the codes of its evidence. Raises StructureError and DomainError."""
        names = queries.read_names(self.domain, attributes, given, self.latent)
        return names, encode_evidence(self.domain, given, self.latent)

    def _grid(self, names: Clique, fixed: Mapping[str, int], pools: Mapping[str, IntArray] | None = None) -> Grid:
        return Grid.of(self.domain, names, fixed, self._merged_codes, pools)

    def _numbers_of(self, name: str) -> BinDistribution:
        """Return the distribution of an attribute's numbers. Raises DomainError for an attribute without numbers."""
        one = self.domain[self._read((name,), {})[0][0]]
        return numeric.number_distribution(one, tables_of_wide(self._distribution, [one]).get(one.name))

    def _numeric_column(self, name: str, table: FloatArray) -> tuple[BinDistribution, FloatArray, IntArray]:
        """Return an attribute's numbers, p of its codes, and their blocks."""
        merged = {} if self._merged_codes is None else self._merged_codes.of
        return self._numbers_of(name), table, merged[name].codes if name in merged else np.arange(len(table))

    def _answered(self) -> list[str]:
        """The attributes of a whole record. Raises StructureError if there are none."""
        left_out = set(self.left_out)
        names = [name for name in self.domain.names if name not in left_out]
        if not names:
            refuse_unmeasured(self.domain.names, left_out)
        return names

    def _with(
        self, distribution: Distribution, replicates: Array | None, provenance: Mapping[str, Any] | None = None
    ) -> Model:
        """The same model with this distribution over its structure; engines that it has made come with it."""
        facts = {"releases": self.releases, "conversion_delta": self.conversion_delta, "latent": self.latent}
        made_of: dict[str, Any] = {"inference": distribution.inference, "replicates": replicates, **facts}
        provenance = self.provenance if provenance is None else provenance
        model = Model(self.structure, distribution.potentials, provenance=provenance, **made_of)
        model._unmeasured_as = self._unmeasured_as
        model._answer_from(distribution, self._merged_codes)  # a replicate's are its own
        return model

    def _answer_from(self, distribution: Distribution, merged: MergedCodes | None) -> None:
        """Answer from this distribution, about the codes before they were merged."""
        self._merged_codes = merged
        self._distribution = distribution if merged is None else merged_codes.MergedDistribution(distribution, merged)
        self._columns = self.structure.domain if merged is None else merged.fine  # with latent ones
        self._domain = hide(self._columns, self.latent)

    def _replicate(self, potentials: Array, number: int) -> Model:
        """Not learned from the release, but post-processing of it. number: always gives the same split of blocks."""
        base = self._distribution.base
        distribution = Distribution(Tables(self.structure, potentials).astype(np.float64), base.inference, base.engines)
        model = self._with(distribution, None, {"notes": ["a bootstrap replicate of a model, not the model"]})
        if self._merged_codes is not None:
            names = self._merged_codes.of
            tables = self._distribution.marginals_of([(name,) for name in names], {})
            shares = dict(zip(names, tables, strict=True))
            drawn = self._merged_codes.redraw(shares, self.learned[-1].total, np.random.default_rng(number))
            model._answer_from(distribution, drawn)
        return model
