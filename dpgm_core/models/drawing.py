"""Records from a model, in batches: codes, and what they stand for as labels, values or texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.constraints import Constraint
from dpgm_core.domain import Domain
from dpgm_core.errors import OptionError
from dpgm_core.models.decoded import Decoder, decoder
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.given import Given
from dpgm_core.models.labelled import records
from dpgm_core.models.merged import MergedDistribution, SampleMethod, checked_count, drawn, narrowed
from dpgm_core.models.orders import Orders, orders_among
from dpgm_core.structure import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Form", "Writer", "batches", "writer"]

#: What records are written as: labels of the domain, values of the columns' own types, or those as they are spelled.
Form: TypeAlias = Literal["labels", "values", "texts"]

#: Records drawn at once, and records written at once: what they take in memory does not depend on how many there are.
_DRAWN, _WRITTEN = 2**20, 2**17


@frozen(kw_only=True, eq=False)
class Writer:
    """Codes of some attributes as Arrow tables. form: see `Form`. stamp: goes into every schema's metadata as JSON."""

    domain: Domain
    names: tuple[str, ...]
    form: Form
    stamp: Mapping[str, Any]
    _decoders: Mapping[str, Decoder]
    _orders: Orders

    def table(self, codes: Mapping[str, Array], given: Given, generator: np.random.Generator) -> pa.Table:
        """One batch. codes: by attribute. given: what all its records have; values among it are kept as they are."""
        import pyarrow as pa

        if self.form == "labels":
            return records([(self.domain[name], codes[name]) for name in self.names], self.stamp)
        places = self._orders.places(codes, given.places, generator)
        arrays = []
        for name in self.names:
            one = self._decoders[name]
            made = one.values if self.form == "values" else one.texts
            arrays.append(made(codes[name], places.get(name)))
        return pa.table(arrays, names=list(self.names), metadata={"dpgm": json.dumps(self.stamp)})

    def ruled_out(self, given: Given) -> list[tuple[Clique, FloatArray]]:
        """What given values leave of the bins of others that must be above or below them, as log-weights."""
        places = {name: np.array([given.places.get(name, np.nan)]) for name in self._orders.laws}
        gaps = {name: np.array([name not in given.codes]) for name in self._orders.laws}
        return [((name,), table[state[0]]) for name, table, state in self._orders.ruled_out(places, gaps)]


def writer(domain: Domain, names: Sequence[str], form: Form, stamp: Mapping[str, Any]) -> Writer:
    """What writes codes of these attributes. Raises OptionError for no form."""
    if form not in ("labels", "values", "texts"):
        raise OptionError(f"records can be given as 'labels', 'values' or 'texts', got {form!r}")
    decoders = {} if form == "labels" else {name: decoder(domain[name]) for name in names}
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
    law: Distribution | MergedDistribution,
    write: Writer,
    count: int,
    method: SampleMethod,
    given: Given,
    generator: np.random.Generator,
) -> Iterator[pa.Table]:
    """`count` records of p(. | given), at least one table of them. The codes do not depend on how they are written.

    Rounded ones are drawn all at once, as their tables are those of all of them; codes are small.
    """
    count, done, values = checked_count(count, method), 0, None
    law = narrowed(law, write.ruled_out(given))
    while True:
        ask = count if method == "rounded" else min(_DRAWN, count - done)
        codes = dict(zip(write.domain.names, drawn(law, ask, method, generator, given.codes), strict=True))
        # A stream of its own, and after the first codes: these are then the same in every form.
        values = values or np.random.default_rng(generator.integers(2**63, size=2))
        for low in range(0, max(ask, 1), _WRITTEN):
            part = {name: column[low : low + _WRITTEN] for name, column in codes.items()}
            yield write.table(part, given, values)
        done += ask
        if done >= count:
            return
