"""Records from a model, in batches: codes, and what they stand for as labels, values or texts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.domain.constraints import Constraint
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError
from dpgm_core.models.arrow_tables import record_table
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.merged_codes import MergedDistribution, SampleMethod, checked_count, draw_codes, reweight
from dpgm_core.models.orders import Orders, orders_among
from dpgm_core.models.queries import Evidence
from dpgm_core.models.within_bins import Decoder, decoders_of, missing_code
from dpgm_core.structure.graphs import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Form", "Writer", "batches", "check_datasets", "writer"]

#: Form of records: labels of the domain, values of the columns' own types, or these values as texts.
Form: TypeAlias = Literal["labels", "values", "texts"]

#: Records drawn and written at once, so that memory does not grow with their number.
_RECORDS_DRAWN, _RECORDS_WRITTEN = 2**20, 2**17
_MIN_RECORDS_TRIED = 10_000  # before too many missing values are refused


@frozen(kw_only=True, eq=False)
class Writer:
    """Codes of some attributes as Arrow tables. form: see `Form`. stamp: goes into every schema's metadata as JSON."""

    domain: Domain
    names: tuple[str, ...]
    form: Form
    stamp: Mapping[str, Any]
    _decoders: Mapping[str, Decoder]
    _orders: Orders

    def never(self, evidence: Evidence, method: SampleMethod) -> dict[str, int]:
        """Attributes that no record lacks, as the domain names no null value, and the code of what lacks it.

        Noise puts a little there all the same, and a column of whole numbers would be none for it. Labels are the
        model's distribution as it is; so are rounded records, whose tables are those of all of them.
        """
        if self.form == "labels" or method == "rounded":
            return {}
        full = [self.domain[name] for name in self.names if name not in evidence.codes]
        codes = {one.name: missing_code(one) for one in full if not one.null_values}
        return {name: code for name, code in codes.items() if code is not None}

    @property
    def ordered(self) -> bool:
        """Whether values are written that constraints order."""
        return bool(self._orders.pairs)

    def fit(self, codes: Mapping[str, Array], evidence: Evidence) -> Array:
        """(records,), whether codes leave values in every order; nearly all do, as constraints rule out the others."""
        return self._orders.fit(codes, evidence.places)

    def table(self, codes: Mapping[str, Array], evidence: Evidence, generator: np.random.Generator) -> pa.Table:
        """One batch. codes: by attribute. given: what all its records have; values among it are kept as they are."""
        import pyarrow as pa

        if self.form == "labels":
            return record_table([(self.domain[name], codes[name]) for name in self.names], self.stamp)
        places = self._orders.places(codes, evidence.places, generator)
        arrays = []
        for name in self.names:
            one = self._decoders[name]
            made = one.values if self.form == "values" else one.texts
            arrays.append(made(codes[name], places.get(name)))
        return pa.table(arrays, names=list(self.names), metadata={"dpgm": json.dumps(self.stamp)})

    def ruled_out(self, evidence: Evidence) -> list[tuple[Clique, FloatArray]]:
        """Return log-weights of bins that the orders allow for other attributes, given the values of the evidence."""
        places = {name: np.array([evidence.places.get(name, np.nan)]) for name in self._orders.dists}
        gaps = {name: np.array([name not in evidence.codes]) for name in self._orders.dists}
        pieces = []
        for (target, *between), tables, state in self._orders.ruled_out(places, gaps):
            present = {name: self._orders.dists[name].present for name in between}
            known = [name for name in between if name in evidence.codes]
            if all(present[name][evidence.codes[name]] for name in known):
                free = [name for name in between if name not in known and not present[name].all()]
                weights = tables[state[0]]
                for name in reversed(free):  # a value that is missing binds nothing
                    with_value = present[name].reshape(-1, *[1] * weights.ndim)
                    weights = np.where(with_value, weights, 0.0)
                pieces.append(((*free, target), weights))
        return pieces


def writer(
    distribution: Distribution | MergedDistribution,
    domain: Domain,
    names: Sequence[str],
    form: Form,
    stamp: Mapping[str, Any],
) -> Writer:
    """Return the writer of codes of these attributes. Raises OptionError for an unknown form."""
    if form not in ("labels", "values", "texts"):
        raise OptionError(f"records can be given as 'labels', 'values' or 'texts', got {form!r}")
    decoders = {} if form == "labels" else decoders_of(distribution, domain, names)
    constraints: Sequence[Constraint] = () if form == "labels" else domain.constraints
    return Writer(
        domain=domain,
        names=tuple(names),
        form=form,
        stamp=stamp,
        decoders=decoders,
        orders=orders_among(constraints, decoders),
    )


def batches(
    distribution: Distribution | MergedDistribution,
    write: Writer,
    count: int,
    method: SampleMethod,
    evidence: Evidence,
    generator: np.random.Generator,
) -> Iterator[pa.Table]:
    """`count` records of p(. | given), at least one table of them. The codes do not depend on how they are written,
    where nothing is `Writer.never` missing and codes leave values in order; other records are drawn again.

    Rounded ones are drawn all at once, as their tables are those of all of them; codes are small. Raises OptionError
    where fewer than one record in a hundred has what none may lack.
    """
    count, done, values = checked_count(count, method), 0, None
    distribution = reweight(distribution, write.ruled_out(evidence))
    never, tried = write.never(evidence, method), 0
    while True:
        left = count - done
        ask = (
            count
            if method == "rounded"
            else min(_RECORDS_DRAWN, left if not tried else math.ceil(left * tried / (done or 1)))
        )
        codes = dict(
            zip(write.domain.names, draw_codes(distribution, ask, method, generator, evidence.codes), strict=True)
        )
        # A stream of its own, and after the first codes: these are then the same in every form.
        values = values or np.random.default_rng(generator.integers(2**63, size=2))
        size = ask
        if never or (write.ordered and method == "independent"):
            valid = write.fit(codes, evidence)
            for name, code in never.items():
                valid &= codes[name] != code
            codes = {name: column[valid][:left] for name, column in codes.items()}
            size, tried = min(int(valid.sum()), left), tried + ask
            if tried >= _MIN_RECORDS_TRIED and (done + size) * 100 < tried:
                raise OptionError(_scarce(never))
        for low in range(0, size if done else max(size, 1), _RECORDS_WRITTEN):
            part = {name: column[low : low + _RECORDS_WRITTEN] for name, column in codes.items()}
            yield write.table(part, evidence, values)
        done += size
        if done >= count:
            return


def check_datasets(count: object, replicates: int) -> None:
    """Refuse, with OptionError, a number of data sets that is not from 1 to the number of replicates."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= replicates:
        raise OptionError(
            f"data sets must be a whole number from 1 to the model's {replicates} replicates, got {count!r}; "
            "bootstrap(model, B) makes B replicates"
        )


def _scarce(never: Mapping[str, int]) -> str:
    if not never:
        return (
            "fewer than one record in a hundred has values that keep the order of their columns; make bins finer, or "
            "order fewer columns; sample --labels shows what the model has"
        )
    shown = ", ".join(list(never)[:5]) + (", ..." if len(never) > 5 else "")
    return (
        f"fewer than one record in a hundred has a value in each of {shown}, which the domain says are never null "
        "(null_values = []), so the domain does not fit the records; sample --labels shows what the model has"
    )
