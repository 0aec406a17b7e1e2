"""Completion of rows with missing cells: present values stay, missing ones are drawn given them.

A cell is missing where it is null or one of its column's null values. It is drawn from p(missing | given, and not
missing), so that a filled cell holds an answer; only where the model says that there is none does it stay empty. The
rows are their owner's: they come through as they are, and no guarantee covers them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.attribute import Attribute, code_dtype
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, DomainError
from dpgm_core.models.conditional import Conditional, conditional
from dpgm_core.models.decoded import Decoder, decoders_of
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.merged import MergedDistribution
from dpgm_core.models.orders import Orders, orders_among
from dpgm_core.models.within import missing_code

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ROWS_AT_ONCE", "OWN_ROWS", "Completion", "Filled", "completion", "stamp_own_rows"]

#: Privacy statement of completed rows.
OWN_ROWS = (
    "NOT COVERED by the guarantee: the rows that were completed are in it as they were given; of the cells that were "
    "filled in, and of nothing else, holds: "
)
#: Rows filled together: equal patterns of missing cells share work, and memory stays small.
ROWS_AT_ONCE = 2**16
_MISSING = -1
_MAX_LABELS_SHOWN = 8  # labels in an error


@frozen(kw_only=True, eq=False)
class Filled:
    """The filled cells of a column. rows: (cells,), their rows; codes and places: as in `Decoder`."""

    rows: IntArray
    codes: Array
    places: Array | None
    decoder: Decoder

    @property
    def answers(self) -> Array:
        """(cells,), which became an answer; the others stay as they are."""
        return ~self.decoder.empty[self.codes]

    def values(self) -> pa.Array:
        """Return them in the column's own type."""
        return self.decoder.values(self.codes, self.places)

    def texts(self) -> pa.Array:
        """Return them as the column writes them."""
        return self.decoder.texts(self.codes, self.places)


@frozen(kw_only=True, eq=False)
class Completion:
    """Fills rows batch by batch. names: the attributes that are filled or given; all others of a table are left alone.

    Rows come from any source of texts or typed values; see `Model.complete` and `dpgm complete`.
    """

    domain: Domain
    names: tuple[str, ...]
    _conditional: tuple[Conditional, Conditional]
    _decoders: Mapping[str, Decoder]
    _orders: Orders

    def fill(
        self, columns: Mapping[str, pa.Array], rows: int, generator: np.random.Generator, *, start: int = 0
    ) -> dict[str, Filled]:
        """Return the filled cells of some rows, by attribute; attributes without a missing cell are left out.

        columns: the attributes that the rows have; the others are missing in all of them. start: how many rows came
        before, for errors. Raises DataError for values that the model does not know and for rows to which it gives
        probability 0, with the number of the row.
        """
        codes: dict[str, Array] = {}
        places: dict[str, Array] = {}
        for name in self.names:
            if name in columns:
                codes[name], places[name] = _read(self.domain[name], columns[name], start)
            else:
                codes[name], places[name] = np.full(rows, _MISSING, np.int64), np.full(rows, math.nan)
        gaps = {name: codes[name] == _MISSING for name in self.names}
        # What is filled in between is an answer, so it has a value.
        ruled = [(target, table, state) for (target, *_), table, state in self._orders.ruled_out(places, gaps)]
        whole = self._drawn(codes, rows, ruled, generator, start)
        made = self._orders.complete(whole, places, gaps, generator)
        cells = {}
        for name in self.names:
            at = np.flatnonzero(gaps[name])
            if len(at):
                chosen = whole[name][at].astype(code_dtype(self.domain[name].size))
                place = made[name][at] if name in made else None
                cells[name] = Filled(rows=at, codes=chosen, places=place, decoder=self._decoders[name])
        return cells

    def table(self, table: pa.Table, generator: np.random.Generator, *, start: int = 0) -> pa.Table:
        """The table with its missing cells filled, and columns behind for attributes that it lacks.

        Its columns keep their types; of views of texts, as polars has them, large texts come out. Raises as `fill`
        does, and DataError where a type cannot hold what is filled in.
        """
        table = _plain(table)
        columns = {name: table.column(name).combine_chunks() for name in self.names if name in table.column_names}
        cells = self.fill(columns, table.num_rows, generator, start=start)
        for name in self.names:
            if name not in columns:
                made = cells[name].values() if name in cells else self._decoders[name].none()
                table = table.append_column(name, made)
            elif name in cells:
                at = table.column_names.index(name)
                filled = _put(table.column(at), cells[name], name)
                table = table.set_column(at, table.schema.field(at), filled)
        return table.combine_chunks()

    def _drawn(
        self,
        codes: Mapping[str, Array],
        rows: int,
        weighed: Sequence[tuple[str, FloatArray, IntArray]],
        generator: np.random.Generator,
        start: int,
    ) -> dict[str, Array]:
        """The codes of rows with the missing ones drawn: answers where there are any."""
        # Attributes that no release measured are neither evidence nor output; their draws are dropped.
        every = {name: codes.get(name, np.full(rows, _MISSING, np.int64)) for name in self.domain.names}
        answers, anything = self._conditional
        drawn, possible = answers.draw(every, rows, generator, weighed)
        if not possible.all():
            rest = np.flatnonzero(~possible & np.logical_or.reduce([codes[name] < 0 for name in self.names]))
            some = {name: column[rest] for name, column in every.items()}
            left = [(name, table, state[rest]) for name, table, state in weighed]
            again, sure = anything.draw(some, len(rest), generator, left)
            if not sure.all():
                raise DataError(
                    f"row {start + int(rest[np.argmin(sure)]) + 1}: what is given of it has probability 0 under the "
                    "model, so there is nothing to fill in; correct the row or leave it out"
                )
            for name, column in again.items():
                drawn[name][rest] = column
        return drawn


def completion(distribution: Distribution | MergedDistribution, domain: Domain, names: Sequence[str]) -> Completion:
    """Return the completion of rows from a distribution; names: the attributes that it answers about."""
    decoders = decoders_of(distribution, domain, names)
    answers = {name: ~one.empty for name, one in decoders.items() if not one.empty.all()}
    return Completion(
        domain=domain,
        names=tuple(names),
        conditional=(conditional(distribution, domain, answers), conditional(distribution, domain, {})),
        decoders=decoders,
        orders=orders_among(domain.constraints, decoders),
    )


def stamp_own_rows(stamp: Mapping[str, Any]) -> dict[str, Any]:
    """The stamp of completed rows: no guarantee covers what their owner put in.

    >>> stamp_own_rows({"guarantee": "epsilon = 1", "private": True})["private"]
    False
    """
    return {**stamp, "private": False, "completed": True, "guarantee": OWN_ROWS + str(stamp["guarantee"])}


def _read(attribute: Attribute, column: pa.Array, start: int) -> tuple[Array, Array]:
    """Codes of a column's cells, -1 for missing ones, and the places on the axis of those that have one."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    distinct = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = [_cell(attribute, value) for value in distinct.dictionary.to_pylist()]
    codes = np.array([*(code for code, _ in known), _MISSING], np.int64)
    places = np.array([*(place for _, place in known), math.nan])
    numbers = distinct.indices.fill_null(len(known)).to_numpy(zero_copy_only=False).astype(np.int64)
    result = codes[numbers]
    unknown = np.flatnonzero(result < _MISSING)
    if len(unknown):
        shown = ", ".join(map(repr, attribute.labels[:_MAX_LABELS_SHOWN])) + (
            ", ..." if attribute.size > _MAX_LABELS_SHOWN else ""
        )
        raise DataError(
            f"row {start + int(unknown[0]) + 1}: its value of {attribute.name!r} is none that the model knows; its "
            f"labels are {shown}"
        )
    return result, places[numbers]


def _cell(attribute: Attribute, value: object) -> tuple[int, float]:
    """The code of one value, -1 if it is missing and -2 if it is unknown, and its place on the axis, or NaN."""
    if value is None or value != value:
        return _MISSING, math.nan
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    typed = not isinstance(value, str)
    rules = attribute.matching.typed if typed else attribute.matching
    text = _spelled(attribute, value)
    form = rules.form(text.encode("utf-8", "surrogateescape"))
    if not text.strip() or form in {rules.form(null.encode()) for null in attribute.null_values}:
        return _MISSING, math.nan
    code = attribute.typed_code(text) if typed else attribute.code(text)
    if code == attribute.unknown and form not in attribute.forms:
        try:
            code = attribute.label_code(text)  # a label of the domain, or a value of the bin for unknown ones
        except DomainError:
            return (code if _is_answer(attribute) else _MISSING - 1), math.nan
    if attribute.edges is None:
        value = str(code) if attribute.coded else attribute.labels[code]
    elif isinstance(value, (int, float, Decimal)):
        value = float(value)
    place = attribute.place(value)
    return code, math.nan if place is None else place


def _is_answer(attribute: Attribute) -> bool:
    """Whether the domain counts what it does not know as an answer, such as the `other` of an open column.

    Not where that is the label of missing values, nor by the codes of sizes, which have it by default.
    """
    label = attribute.labels[attribute.unknown]
    missing = missing_code(attribute) == attribute.unknown or label in attribute.null_values
    return not missing and label != str(attribute.unknown)


def _spelled(attribute: Attribute, value: object) -> str:
    """The text of a typed value, as labels and formats have it."""
    if isinstance(value, bool):
        texts = {"True": ("true", "True", "1"), "False": ("false", "False", "0")}[str(value)]
        return next((text for text in texts if attribute.matching.form(text.encode()) in attribute.forms), texts[0])
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value == math.floor(value) else repr(value)
    if isinstance(value, (date, time)) and attribute.values.is_temporal:
        place = attribute.place(value)
        return str(value) if place is None else attribute.values.text(place)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def _plain(table: pa.Table) -> pa.Table:
    """Without views, which few kernels take; they are newer than the oldest pyarrow that we serve."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if str(kind) != "string_view":
            continue
        column = table.column(at).combine_chunks()
        if kind == field.type:
            large = column.cast(pa.large_string())
        else:
            large = pa.DictionaryArray.from_arrays(
                column.indices, column.dictionary.cast(pa.large_string()), ordered=field.type.ordered
            )
        table = table.set_column(at, field.with_type(large.type), large)
    return table


def _put(column: pa.ChunkedArray, replacements: Filled, name: str) -> pa.Array:
    """The column with cells put in, in its own type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    made = None
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    for cells in (replacements.texts, replacements.values) if textual else (replacements.values, replacements.texts):
        try:
            made = cells().filter(pa.array(replacements.answers)).cast(kind)
            break
        except pa.ArrowException:
            continue
    if made is None:
        raise DataError(
            f"the values filled in for {name!r} do not fit its column of type {kind}; pass the column as "
            f"{replacements.values().type} or as text"
        )
    plain = column.cast(kind) if pa.types.is_dictionary(column.type) else column
    mask = np.zeros(len(column), bool)
    mask[replacements.rows[replacements.answers]] = True
    filled = pc.replace_with_mask(plain, pa.array(mask), made)
    return filled.dictionary_encode().cast(column.type) if pa.types.is_dictionary(column.type) else filled
