"""Completion of records with missing values, by conditional distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, aligned
from dpgm_core._util.randomness import Randomness
from dpgm_core.domain.attribute import Attribute, code_dtype, first_repeated
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DomainError, TooLarge, human_bytes
from dpgm_core.models.distribution import Distribution, pieces_of
from dpgm_core.models.merged_codes import MergedDistribution
from dpgm_core.models.orders import Orders, orders_among
from dpgm_core.models.within_bins import Decoder, decoders_of, missing_code
from dpgm_core.structure import graphs
from dpgm_core.structure.graphs import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Completion",
    "Conditional",
    "Filled",
    "OWN_ROWS",
    "completion",
    "conditional",
    "read_cells",
    "stamp_own_rows",
]


# --- Conditional sampling, row by row -------------------------------------------------------------
# The missing attributes of a row form connected parts of the model's graph, and all neighbours of a part are known.
# Every table is cut at each row's known codes; the remaining part is eliminated for all rows that lack it at once, and
# rows with the same codes around it share the work. So no table is wider than in the model, and the cost is that of
# the parts' clusters times the distinct codes around them.

#: Cells of a table for all rows handled at once, and for a single row.
_CELLS_AT_ONCE, _MAX_ROW_CELLS = 2**21, 2**27

#: Prefix of the names of row states among attributes, which cannot have such names.
_STATE = "\ud800"

#: Log-weights over missing attributes, the first axis for distinct given codes: one row where they do not matter.
_Factor = tuple[Clique, FloatArray]


@frozen(kw_only=True, eq=False)
class Conditional:
    """p(missing | given) of a model's attributes, over all of its codes.

    allowed: attribute -> (codes,), which may be drawn.
    """

    domain: Domain
    distribution: Distribution | MergedDistribution
    allowed: Mapping[str, Array]

    def draw(
        self,
        codes: Mapping[str, Array],
        rows: int,
        generator: np.random.Generator,
        weighed: Sequence[tuple[str, FloatArray, IntArray]] = (),
    ) -> tuple[dict[str, Array], Array]:
        """All codes of rows, and which rows could be filled: what is given of the others has probability 0.

        codes: of every attribute of the domain, (rows,) each, -1 where it is missing. weighed: what else bears on a
        missing attribute, row by row: its name, log-weights of its codes in some states, and the state of each row; not
        of merged codes. Raises TooLarge.
        """
        blocks, possible = self._blocks(codes, rows)
        for clique, table in self._tables:
            if np.isneginf(table).any():
                known = np.logical_and.reduce([blocks[name] >= 0 for name in clique], initial=True)
                at = np.flatnonzero(known)
                possible[at] &= table[tuple(blocks[name][at] for name in clique)] > -math.inf
        for names, at in self._parts(codes).items():
            inside = [(clique, table) for clique, table in self._tables if not set(names).isdisjoint(clique)]
            inside += [((name,), self._log_allowed(name)) for name in names]
            here = {name: column[at] for name, column in blocks.items()}
            for number, (name, table, state) in enumerate(weighed):
                if name in names:
                    inside.append(((f"{_STATE}{number}", name), table))
                    here[f"{_STATE}{number}"] = state[at]
            near = {name: self._near[name].intersection(names) for name in names}
            drawn, sure = _part(names, near, inside, here, generator)
            for name, column in drawn.items():
                blocks[name][at] = column
            possible[at] &= sure
        return self._split(blocks, codes, generator), possible

    @cached_property
    def _tables(self) -> list[tuple[Clique, FloatArray]]:
        """The model's log-potentials, clique by clique, and what the constraints of its domain rule out."""
        domain = self.distribution.base.structure.domain  # of merged codes, which no constraint is about
        ruled = [(one.columns, np.where(one.mask, -np.inf, 0.0)) for one in domain.rules]
        return [*pieces_of(self.distribution.base.potentials), *ruled]

    @cached_property
    def _near(self) -> dict[str, set[str]]:
        """The model's graph."""
        return graphs.neighbours_of(self.domain.names, [clique for clique, _ in self._tables])

    def _log_allowed(self, name: str) -> FloatArray:
        """Return log-weights of the codes or blocks that may be drawn for a missing attribute."""
        weights: Array = self.allowed[name].astype(np.float64)
        if isinstance(self.distribution, MergedDistribution) and name in self.distribution.merged.of:
            merge = self.distribution.merged.of[name]
            weights = np.bincount(merge.codes, weights=weights * merge.weights, minlength=merge.blocks)
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def _parts(self, codes: Mapping[str, Array]) -> dict[Clique, IntArray]:
        """The connected parts of what rows lack, and the rows that have each."""
        names = self.domain.names
        gaps = np.stack([codes[name] < 0 for name in names], axis=1)
        patterns, first, number = np.unique(np.packbits(gaps, axis=1), axis=0, return_index=True, return_inverse=True)
        order = np.argsort(number.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(number.reshape(-1), minlength=len(patterns)))
        rows_of: dict[Clique, list[IntArray]] = {}
        for at, low, high in zip(first, [0, *ends], ends, strict=False):
            lacking = {name for name, gap in zip(names, gaps[at], strict=True) if gap}
            for part in graphs.components({name: self._near[name] & lacking for name in names if name in lacking}):
                rows_of.setdefault(tuple(name for name in names if name in part), []).append(order[low:high])
        return {part: np.concatenate(rows) for part, rows in rows_of.items()}

    def _blocks(self, codes: Mapping[str, Array], rows: int) -> tuple[dict[str, Array], Array]:
        """Codes as the blocks that the potentials are over, and which rows have no given code of weight 0."""
        blocks = {name: column.astype(np.int64) for name, column in codes.items()}
        possible = np.ones(rows, bool)
        if isinstance(self.distribution, MergedDistribution):
            for name, merge in self.distribution.merged.of.items():
                known = blocks[name] >= 0
                possible &= ~known | (merge.weights[blocks[name]] > 0)
                blocks[name] = np.where(known, merge.codes[blocks[name]], -1)
        return blocks, possible

    def _split(
        self, blocks: Mapping[str, Array], codes: Mapping[str, Array], generator: np.random.Generator
    ) -> dict[str, Array]:
        """Blocks as codes in them; those that were given as they were."""
        columns = {}
        for name, column in blocks.items():
            if isinstance(self.distribution, MergedDistribution) and name in self.distribution.merged.of:
                merge, at = self.distribution.merged.of[name], np.flatnonzero(codes[name] < 0)
                weights = np.where(self.allowed[name], merge.weights, 0.0)
                weights = np.where(merge.codes[None, :] == np.arange(merge.blocks)[:, None], weights, 0.0)
                drawn = _chosen(np.cumsum(weights, axis=1), column[at], generator)
                column = codes[name].astype(np.int64)
                column[at] = drawn
            columns[name] = column
        return columns


def conditional(
    distribution: Distribution | MergedDistribution, domain: Domain, allowed: Mapping[str, Array]
) -> Conditional:
    """p(missing | given) of a model. allowed: as there; attributes that are left out may have any code."""
    every = {one.name: allowed.get(one.name, np.ones(one.size, bool)) for one in domain}
    return Conditional(domain=domain, distribution=distribution, allowed=every)


def _part(
    names: Sequence[str],
    near: Mapping[str, set[str]],
    tables: Sequence[tuple[Clique, FloatArray]],
    codes: Mapping[str, Array],
    generator: np.random.Generator,
) -> tuple[dict[str, Array], Array]:
    """Draw one connected part of what rows lack; and which of them have a code for it at all.

    tables: all that hold one of the names, and of other attributes only such as have codes.
    """
    rows = len(next(iter(codes.values())))
    around = sorted({name for clique, _ in tables for name in clique if name not in names})
    distinct, state = _distinct([codes[name] for name in around], rows)
    fixed = {name: codes[name][distinct] for name in around}
    sizes = {name: table.shape[clique.index(name)] for clique, table in tables for name in clique}
    elimination = graphs.elimination_orders(near, {name: sizes[name] for name in names})[0]
    if elimination.peak > _MAX_ROW_CELLS:
        raise TooLarge(
            f"what is missing in a row together needs a table of {elimination.peak:,} cells, "
            f"{human_bytes(8 * elimination.peak)}; leave fewer attributes out at once"
        )
    drawn = {name: np.zeros(rows, np.int64) for name in names}
    possible = np.zeros(rows, bool)
    order = np.argsort(state, kind="stable")
    step = max(1, _CELLS_AT_ONCE // elimination.peak)
    ends = np.searchsorted(state[order], np.arange(0, len(distinct) + step, step))
    for number, low in enumerate(range(0, len(distinct), step)):
        here = order[ends[number] : ends[number + 1]]
        cut = {name: column[low : low + step] for name, column in fixed.items()}
        products, mass = _eliminated(elimination.order, [_cut(clique, table, cut) for clique, table in tables])
        sure = mass > -math.inf
        possible[here] = sure[state[here] - low] if len(sure) > 1 else sure[0]
        at = here[possible[here]]
        for name, others, weights in reversed(products):
            drawn[name][at] = _picked(weights, state[at] - low, [drawn[other][at] for other in others], generator)
    return drawn, possible


def _distinct(columns: Sequence[Array], rows: int) -> tuple[IntArray, IntArray]:
    """Rows that stand for all: the number of one for each combination, and for each row the number of its own."""
    if not columns:
        return np.zeros(1, np.int64), np.zeros(rows, np.int64)
    state = np.zeros(rows, np.int64)
    for column in columns:
        size = int(column.max(initial=0)) + 1
        # After each column the combinations are numbered anew, so that no number grows beyond 64 bits.
        state = np.unique(state * size + column, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.unique(state, return_index=True)[1].astype(np.int64), state


def _cut(clique: Clique, table: FloatArray, fixed: Mapping[str, Array]) -> _Factor:
    """A table at each row's given codes: (rows or 1, missing attributes of the clique)."""
    known = [name for name in clique if name in fixed]
    left = tuple(name for name in clique if name not in fixed)
    ordered = table.transpose([clique.index(name) for name in (*known, *left)])
    return left, ordered[tuple(fixed[name] for name in known)] if known else ordered[None]


def _eliminated(
    order: Sequence[str], factors: Sequence[_Factor]
) -> tuple[list[tuple[str, Clique, FloatArray]], FloatArray]:
    """For each attribute the weights of its codes given those that are eliminated later, (rows or 1, others, codes);
    and the log of the sum over all, (rows or 1,)."""
    left = list(factors)
    products: list[tuple[str, Clique, FloatArray]] = []
    mass: FloatArray = np.zeros(1)
    for name in order:
        bucket = [factor for factor in left if name in factor[0]]
        left = [factor for factor in left if name not in factor[0]]
        others = tuple(dict.fromkeys(other for names, _ in bucket for other in names if other != name))
        product: FloatArray = np.zeros(1)
        for names, table in bucket:
            product = product + aligned(table, names, (*others, name))
        top = product.max(axis=-1, keepdims=True)
        top = np.where(top == -math.inf, 0.0, top)
        weights = np.exp(product - top)
        products.append((name, others, weights))
        with np.errstate(divide="ignore"):
            message = np.log(weights.sum(axis=-1)) + top[..., 0]
        if others:
            left.append((others, message))
        else:
            mass = mass + message
    return products, mass


def _picked(weights: FloatArray, local: IntArray, others: Sequence[Array], generator: np.random.Generator) -> IntArray:
    """A code for each row, from weights (rows or 1, others, codes) at its place."""
    upto = np.cumsum(weights, axis=-1)
    flat = upto.reshape(-1, upto.shape[-1])
    place = local if upto.shape[0] > 1 else np.zeros_like(local)
    for size, column in zip(upto.shape[1:-1], others, strict=True):
        place = place * size + (column if size > 1 else 0)
    return _chosen(flat, place, generator)


def _chosen(upto: FloatArray, place: IntArray, generator: np.random.Generator) -> IntArray:
    """Codes by inverting a distribution function for each: a row of cumulated weights, not all of which are 0."""
    last = upto[place, -1]
    at = np.minimum(generator.random(len(place)) * last, np.nextafter(last, 0.0))
    size = upto.shape[1]
    code = np.zeros(len(place), np.int64)
    for power in reversed(range(size.bit_length())):
        further = code + (1 << power)
        fits = (further <= size) & (upto[place, np.minimum(further, size) - 1] <= at)
        code = np.where(fits, further, code)
    return code


# --- Completion of tables -------------------------------------------------------------------------
# A cell is missing where it is null or one of its column's null values. It is drawn from p(missing | given, and not
# missing), so that a filled cell holds an answer; only where the model says that there is none does it stay empty. The
# rows are their owner's: they come through as they are, and no guarantee covers them.

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
                codes[name], places[name] = read_cells(self.domain[name], columns[name], start)
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

    def whole_table(self, table: Any, randomness: Randomness) -> pa.Table:
        """Fill a table of any length, some rows at a time; table: an object with an Arrow stream.

        Raises as `table` does, and DataError for two columns of one name.
        """
        import pyarrow as pa

        rows = pa.table(table)
        repeated_name = first_repeated(rows.column_names)
        if repeated_name is not None:
            raise DataError(f"the table has two columns {repeated_name!r}; rename one")
        generator = randomness.generator()
        done = [
            self.table(rows.slice(start, ROWS_AT_ONCE), generator, start=start)
            for start in range(0, max(rows.num_rows, 1), ROWS_AT_ONCE)
        ]
        return pa.concat_tables(done)

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
    """The stamp of completed rows: no guarantee covers what their owner put in."""
    return {**stamp, "private": False, "completed": True, "guarantee": OWN_ROWS + str(stamp["guarantee"])}


def read_cells(attribute: Attribute, column: pa.Array, start: int) -> tuple[Array, Array]:
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
        value = text if attribute.values.is_temporal else float(value)
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
    # Whole numbers such as 20210514 are days by their text.
    textual |= pa.types.is_integer(kind) and pa.types.is_temporal(replacements.values().type)
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
