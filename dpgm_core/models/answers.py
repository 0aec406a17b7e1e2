"""What a model answers: probabilities, most probable records, numbers, and synthetic records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.attribute import first_repeated
from dpgm_core.errors import DataError
from dpgm_core.inference.contract import Estimates
from dpgm_core.models.completion import AT_ONCE, Completion, completion, owned
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.drawing import Form, batches, writer
from dpgm_core.models.facts import Facts
from dpgm_core.models.given import given_of
from dpgm_core.models.marginal import Marginal
from dpgm_core.models.merged import MergedDistribution, SampleMethod
from dpgm_core.models.numeric import checked_share, correlation_of, law_of_numbers, mean_of, quantile_of, variance_of
from dpgm_core.models.questions import coded, listed, named
from dpgm_core.models.standing import refuse
from dpgm_core.models.wide import tables_of_wide
from dpgm_core.models.within import Within
from dpgm_core.randomness import Randomness, randomness_or_system
from dpgm_core.releases.stamps import caveats_of
from dpgm_core.structure import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answers"]


class Answers(Facts):
    """Facts and a law that answers about all attributes; the base of `Model`, which explains."""

    _law: Distribution | MergedDistribution

    def marginal(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> FloatArray:
        """p(attributes | given), any attributes, also across cliques: one axis per attribute, in the order given.

        given: attribute -> label (text) or code (whole number). `standing` says what the answer rests on. A notebook
        shows the labels beside the numbers (`Marginal`); `table` has both for other programs. Raises TooLarge,
        InferenceError when `given` has probability 0, and StructureError for attributes that no release measured,
        unless they are taken as uniform (`using`).
        """
        ((names, table),) = self.marginals_of([attributes], given).items()
        labels = tuple(self.domain[name].labels for name in names)
        return Marginal.of(table, names, labels, self.standing(names, given), caveats_of(self.releases))

    def marginals_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> dict[Clique, FloatArray]:
        """p(clique | given) of many sets of attributes, inside cliques or across, from one inference.

        The answer has a table for each, keyed by the tuple of its names, its axes in their order. Whatever the sets
        share is computed once. Raises what `marginal` does, before any table that does not fit is made.

        >>> from dpgm_core import Domain, Model, Structure, Tables
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
        >>> found = Model(structure, Tables.zeros(structure)).marginals_of([("c", "a"), "b"])
        >>> {names: table.tolist() for names, table in found.items()}
        {('c', 'a'): [[0.25, 0.25], [0.25, 0.25]], ('b',): [0.5, 0.5]}
        """
        given = given or {}
        asked = list(dict.fromkeys(named(self.domain, clique, given) for clique in listed(cliques)))
        fixed = coded(self.domain, given)
        refuse((*itertools.chain.from_iterable(asked), *fixed), self.left_out)
        return dict(zip(asked, self._law.marginals_of(asked, fixed), strict=True))

    def estimates_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> Estimates | None:
        """`marginals_of` with Monte Carlo standard errors, where the engine's answers are averages over draws.

        Its tables and errors are in the order asked. None of other engines, exact or not. Raises what `marginals_of`
        does. The errors are the engine's alone: what sampling, noise and structure do is in `intervals`.
        """
        given = given or {}
        asked = [named(self.domain, clique, given) for clique in listed(cliques)]
        fixed = coded(self.domain, given)
        refuse((*itertools.chain.from_iterable(asked), *fixed), self.left_out)
        return self._law.estimates_of(asked, fixed)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What its engine has to say of records and averages drawn from this model, as sentences; none of most."""
        return tuple(self._law.below.caveats())

    def conditional(self, attributes: Sequence[str] | str, on: Sequence[str] | str) -> FloatArray:
        """p(attributes | on) for every value of `on`: axes are `attributes`, then `on`.

        Where a value of `on` has probability 0 its slice is 0.

        >>> from dpgm_core import Domain, Model, Structure, Tables
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

        What no release measured is left out (see `using`). Raises InferenceError when the engine cannot maximise or
        `given` has probability 0, StructureError where nothing that is given or left over was measured.
        """
        refuse(given or (), self.left_out)
        codes = self._law.most_probable(coded(self.domain, given or {}))
        return {name: self.domain[name].labels[codes[name]] for name in self._answered()}

    def entropy(self) -> float:
        """Entropy of one record, nats: log Z - theta . mu, over all attributes; see `kl` on those not measured."""
        return self._law.entropy()

    # --- numbers ------------------------------------------------------------------------------------------------

    def mean(self, attribute: str, given: Mapping[str, object] | None = None) -> float:
        """The mean of an attribute's numbers, exact for the model and the law inside its bins; missing ones left out.

        Dates are days since 1970, dates with a time seconds since then, times seconds since midnight. Of bins without
        an end all values stand at the finite edge. An error bar: `interval_of(lambda model: model.mean("age"))`. Raises
        what `marginal` does, DomainError for an attribute without numbers, InferenceError where all are missing.

        >>> from dpgm_core import Attribute, Domain, Model, Structure, Tables
        >>> structure = Structure(Domain([Attribute.of_bins("age", [0, 18, 65], unknown="missing")]), [("age",)])
        >>> Model(structure, Tables(structure, np.log([0.5, 0.25, 0.25]))).mean("age").__round__(3)
        19.5
        """
        return mean_of(self._numbers_of(attribute), self.marginal(attribute, given))

    def variance(self, attribute: str, given: Mapping[str, object] | None = None) -> float:
        """The variance of an attribute's numbers, between its bins and inside of them; see `mean`."""
        return variance_of(self._numbers_of(attribute), self.marginal(attribute, given))

    def quantile(self, attribute: str, share: float, given: Mapping[str, object] | None = None) -> float:
        """The least number that `share` of the numbers are not above, such as the median for 0.5; see `mean`.

        Inside a bin it lies where the law of the bin has it; whole numbers stay whole. Raises OptionError.
        """
        share = checked_share(share)
        return quantile_of(self._numbers_of(attribute), self.marginal(attribute, given), share)

    def correlation(self, first: str, second: str, given: Mapping[str, object] | None = None) -> float:
        """Pearson's correlation of two attributes' numbers, of records that have both; see `mean`.

        `standing` says whether they were measured together.
        """
        laws = self._numbers_of(first), self._numbers_of(second)
        return correlation_of(laws, self.marginal((first, second), given))

    # --- records ------------------------------------------------------------------------------------------------

    def sample(
        self,
        count: int,
        *,
        method: SampleMethod = "independent",
        given: Mapping[str, object] | None = None,
        form: Form = "values",
        randomness: Randomness | None = None,
    ) -> pa.Table:
        """`count` synthetic records as an Arrow table, a column for each attribute.

        method: "independent": rows as people drawn from the model, for whatever looks at how much data vary.
        "rounded": each row alone has the model's distribution, but all together have the expected counts, rounded, in
        every clique: tables of them err less, and standard errors computed from them are too large. Attributes that no
        release measured are left out, or uniform where `using` says so. given: as `marginal` has it: records of
        p(. | given), where a value that was given is kept. form: "values" for the columns' own types, with numbers
        drawn inside their bins and null for what is missing, but in attributes with `null_values` () no record lacks a
        value, except rounded ones; "texts" for these as the columns write them; "labels" for the domain's. The schema
        has `stamp()` and `synthetic` as JSON under the metadata key `dpgm`. randomness: None takes the operating
        system's. Raises OptionError, InferenceError.
        """
        import pyarrow as pa

        drawn = self.sample_batches(count, method=method, given=given, form=form, randomness=randomness)
        return pa.concat_tables(list(drawn)).combine_chunks()

    def sample_batches(
        self,
        count: int,
        *,
        method: SampleMethod = "independent",
        given: Mapping[str, object] | None = None,
        form: Form = "values",
        randomness: Randomness | None = None,
    ) -> Iterator[pa.Table]:
        """What `sample` gives, as tables one after the other, so that memory does not grow with their number.

        At least one, which may be empty. Raises what `sample` does, before the first.
        """
        fixed = given_of(self.domain, given)
        refuse(fixed.codes, self.left_out)
        stamp = {**self.stamp(), "synthetic": True, **fixed.stamp(self.domain)}
        write = writer(self._law, self.domain, self._answered(), form, stamp)
        return batches(self._law, write, count, method, fixed, randomness_or_system(randomness).generator())

    def complete(self, table: Any, *, randomness: Randomness | None = None) -> pa.Table:
        """The rows of a table with their missing cells filled from the model, each given the rest of its row.

        table: anything with an Arrow stream (pyarrow, pandas, polars); its columns keep their types, and what stands in
        them stays. Cells that are null, NaN or a null value of their column are missing, and so are whole columns that
        the table lacks. Columns that the model does not know are carried through. What is filled in is drawn from
        p(missing | given) of answers that are not missing themselves. The rows are the caller's own: the stamp says
        that no guarantee covers them. Raises DataError for values that the model does not know and for rows to
        which it gives probability 0, with the number of the row.
        """
        import pyarrow as pa

        rows, filling = pa.table(table), self._completion()
        repeated_name = first_repeated(rows.column_names)
        if repeated_name is not None:
            raise DataError(f"the table has two columns {repeated_name!r}; rename one")
        generator = randomness_or_system(randomness).generator()
        done = [
            filling.table(rows.slice(start, AT_ONCE), generator, start=start)
            for start in range(0, max(rows.num_rows, 1), AT_ONCE)
        ]
        return pa.concat_tables(done).replace_schema_metadata({"dpgm": json.dumps(owned(self.stamp()))})

    def _completion(self) -> Completion:
        """What `complete` fills rows with, batch by batch, for those who read and write rows themselves."""
        return completion(self._law, self.domain, self._answered())

    def _numbers_of(self, name: str) -> Within:
        """The law of an attribute's numbers, the same whatever is given. Raises DomainError for one without any."""
        one = self.domain[named(self.domain, (name,), {})[0]]
        return law_of_numbers(one, tables_of_wide(self._law, [one]).get(one.name))

    def _answered(self) -> list[str]:
        """The attributes of a whole record. Raises StructureError if there are none."""
        left_out = set(self.left_out)
        names = [name for name in self.domain.names if name not in left_out]
        if not names:
            refuse(self.domain.names, left_out)
        return names
