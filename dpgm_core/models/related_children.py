"""Children of roots: drawn one after the other from a model of pairs, and written as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import Array, FloatArray, IntArray, ratio
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.constraints import Constraint, Ordered
from dpgm_core.domain.related import FIRST, POSITION, PREVIOUS, SIZE, Related
from dpgm_core.errors import DataError, TooLarge
from dpgm_core.models.completion import conditional
from dpgm_core.models.model import Model
from dpgm_core.models.orders import Orders, orders_among
from dpgm_core.models.sampling import Form
from dpgm_core.models.within_bins import Decoder, decoder, wide_bins

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Children", "find_keys"]

#: Draws of further children until their tables are near to those of the model. They share their random numbers, so that
#: chance is brought nearer too.
_TILTED = 6
#: All steps of a column together are this part of the log of a ratio of counts, with so many added to both.
_TILT_STEP, _TILT_RECORDS = 0.75, 5.0
#: Larger tables are left as they come.
_MAX_TILT_CELLS = 2**16
#: Position codes of the second child and of later ones.
_SECOND, _LATER = 1, 2


class Children:
    """Draws and writes the children of roots.

    model: of pairs. roots, children: the columns of each table that are written. wide: returns the distribution of a
    column of either table, for bins that are wide. form: as of samples. even: children have the tables that the model
    expects, as nearly as a few steps bring them there; otherwise they are independent given their root.
    """

    def __init__(
        self,
        model: Model,
        related: Related,
        roots: Sequence[str],
        children: Sequence[str],
        wide: Callable[[str], FloatArray],
        *,
        form: Form,
        generator: np.random.Generator,
        even: bool,
    ) -> None:
        self._model, self._roots, self._even = model, tuple(roots), even
        self._domain, self._related, self._names = model.domain, related, tuple(children)
        self._form, self._generator = form, generator
        self._conditional = conditional(model._distribution, model._columns, {})

        def table_of(attribute: Attribute) -> FloatArray | None:
            return wide(attribute.name) if wide_bins(attribute) else None

        self.decoders: dict[str, Decoder] = {}
        if form != "labels":
            self.decoders = {name: decoder(model.domain[name], table_of(model.domain[name])) for name in roots}
            for name in children:
                table = table_of(related.children[name])
                absent = None if table is None else np.append(table, 0.0)
                self.decoders[name] = self.decoders[FIRST + name] = decoder(model.domain[FIRST + name], absent)
        orders = _orders(related)
        self._orders = orders_among(orders, self.decoders)
        above = {name: one for name, one in self.decoders.items() if name not in related.children}
        self._orders_above = orders_among(orders, above)

    def draw_roots(
        self, codes: Mapping[str, Array], places: Mapping[str, FloatArray], gaps: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the codes of given roots with the missing ones, their size and their first child drawn."""
        rows = len(codes[SIZE])
        drawn, possible = self._conditional.draw(
            codes, rows, self._generator, _ruled_out(self._orders_above, places, gaps)
        )
        if not possible.all():
            drawn, possible = self._conditional.draw(codes, rows, self._generator)
        if not possible.all():
            raise DataError(
                f"row {int(np.argmin(possible)) + 1}: what is given of it has probability 0 under the model; correct "
                "the row or leave it out"
            )
        return drawn

    def place_roots(
        self, codes: Mapping[str, Array], places: Mapping[str, FloatArray], gaps: Mapping[str, Array]
    ) -> dict[str, FloatArray]:
        """Return the places of roots and first children on their axes; those that are known stay."""
        return self._orders_above.complete(codes, places, gaps, self._generator)

    def draw(
        self, codes: Mapping[str, Array], places: Mapping[str, FloatArray]
    ) -> tuple[IntArray, IntArray, dict[str, Array], dict[str, FloatArray]]:
        """Return the root of each child, ascending, its number from 1, its codes and its places.

        codes, places: of roots and their first children.
        """
        names, size = self._related.children.names, codes[SIZE]
        at = np.flatnonzero(size > 0)
        before = {name: codes[FIRST + name] for name in names}
        made = [(at, {name: column[at] for name, column in before.items()})]
        placed = [{name: places[FIRST + name][at] for name in names if FIRST + name in places}]
        for number in range(2, self._related.max_children + 1):
            at = np.flatnonzero(size >= number)
            if not len(at):
                break
            drawn, place = self._next(number, at, codes, places, before)
            made.append((at, drawn))
            placed.append(place)
            before = {name: before[name].copy() for name in names}
            for name, column in drawn.items():
                before[name][at] = column
        roots = np.concatenate([at for at, _ in made])
        numbers = np.repeat(np.arange(1, len(made) + 1), [len(at) for at, _ in made])
        order = np.lexsort([numbers, roots])
        columns = {name: np.concatenate([one[name] for _, one in made])[order] for name in names}
        every = {name: np.concatenate([one[name] for one in placed])[order] for name in placed[0]}
        return roots[order], numbers[order], columns, every

    def _next(
        self,
        number: int,
        at: IntArray,
        codes: Mapping[str, Array],
        places: Mapping[str, FloatArray],
        before: Mapping[str, Array],
    ) -> tuple[dict[str, Array], dict[str, FloatArray]]:
        """Draw one further child of the roots `at`, given the root, its first child and the child before."""
        names, rows = self._related.children.names, len(at)
        missing = np.full(rows, -1, np.int64)
        here = dict.fromkeys(self._conditional.domain.names, missing)
        for name in (*self._related.root.names, SIZE, *(FIRST + name for name in names)):
            here[name] = codes[name][at]
        position = _SECOND if number == 2 else _LATER
        for name in names if self._related.max_children > 2 else ():
            child = before[name][at]
            here[PREVIOUS + name] = child if number > 2 else np.full(rows, self._related.children[name].size)
        here[POSITION] = np.full(rows, position)
        known = {name: column[at] for name, column in places.items()} | {
            name: np.full(rows, math.nan) for name in names if name in self.decoders
        }
        gaps = {name: np.full(rows, name in self._related.children) for name in self.decoders}
        weighed = _ruled_out(self._orders, known, gaps)
        seed, tilts = self._generator.integers(2**63), self._tilts(codes, at, position) if self._even else []
        for _ in range(_TILTED if tilts else 1):
            weights = [*weighed, *(one.weights for one in tilts)]
            drawn, possible = self._conditional.draw(here, rows, np.random.default_rng(seed), weights)
            if number == 2 and not self._orders.pairs:
                # The pair that a root was drawn with may be with its second child.
                second = codes[POSITION][at] == _SECOND
                drawn |= {name: np.where(second, codes[name][at], drawn[name]) for name in names}
                possible |= second
            for one in tilts:
                one.move(drawn)
        # The child before, drawn from another conditional, may be impossible beside the first one; then it binds
        # nothing. The root and its first child have a further one with positive probability.
        loose = [[PREVIOUS + name for name in names], [POSITION]]
        for attempt in range(4):
            rest = np.flatnonzero(~possible)
            if not len(rest):
                break
            free = set(loose[0]) if attempt == 0 else {*loose[0], *loose[1]}
            some = {name: missing[rest] if name in free else column[rest] for name, column in here.items()}
            left = [(name, table, state[rest]) for name, table, state in weighed] if attempt < 2 else []
            again, sure = self._conditional.draw(some, len(rest), self._generator, left)
            for name in names:
                drawn[name][rest] = again[name]
            possible[rest] = sure
        whole = {**here, **{name: drawn[name] for name in names}}
        made = self._orders.complete(whole, known, gaps, self._generator)
        return {name: drawn[name] for name in names}, {name: made[name] for name in names if name in made}

    def _tilts(self, codes: Mapping[str, Array], at: IntArray, position: int) -> list[_Tilt]:
        """Return what the columns of further children are to have by number of children, and by a root column too.

        The tables of the second child and of later ones add up to those of all further children.
        """
        model, tilts = self._model.using(unmeasured="uniform"), []
        sets = [(*above, name) for above in ((), *((one,) for one in self._roots)) for name in self._names]
        sets = [one for one in sets if math.prod(self._domain.shape((SIZE, *one))) <= _MAX_TILT_CELLS]
        try:
            tables = model.marginals_of([clique for one in sets for clique in ((SIZE, *one), (SIZE, POSITION, *one))])
        except TooLarge:
            return []
        for *above, name in sets:
            state = codes[SIZE][at]
            for one in above:
                state = state * self._domain[one].size + codes[one][at]
            expected = _shares(tables[SIZE, POSITION, *above, name][:, _SECOND])
            if position == _LATER:
                number = np.arange(len(expected)).reshape(-1, *[1] * (expected.ndim - 1)) - 1
                expected = np.maximum(number * _shares(tables[SIZE, *above, name]) - expected, 0.0)
            expected = expected.reshape(-1, expected.shape[-1])
            tilts.append(_Tilt(name, state, expected, _TILT_STEP / (1 + len(self._roots))))
        return tilts

    def grow(
        self,
        codes: Mapping[str, Array],
        places: Mapping[str, FloatArray],
        keys: Any,
        stamp: Mapping[str, Any],
    ) -> pa.Table:
        """Return the table of the children of roots, with the keys of these."""
        import pyarrow as pa

        roots, numbers, columns, placed = self.draw(codes, places)
        order = self._related.order
        if order is None:
            shuffled = np.lexsort([self._generator.random(len(roots)), roots])
            roots = roots[shuffled]
            columns = {name: column[shuffled] for name, column in columns.items()}
            placed = {name: column[shuffled] for name, column in placed.items()}
        first = {self._related.key[1]: keys.take(pa.array(roots))}
        first |= {} if order is None else {order: pa.array(numbers)}
        return self.table(self._names, columns, placed, first, stamp)

    def table(
        self,
        names: Sequence[str],
        codes: Mapping[str, Array],
        places: Mapping[str, FloatArray],
        keys: Mapping[str, Any],
        stamp: Mapping[str, Any],
    ) -> pa.Table:
        """Return columns of one of the two tables, after its key."""
        import pyarrow as pa

        arrays = {**keys}
        pair, children = self._domain, self._related.children
        of = {name: children[name] if name in children else pair[name] for name in names}
        small = {name: codes[name].astype(code_dtype(one.size)) for name, one in of.items()}
        if self._form == "labels":
            arrays |= {name: pa.array(one.labels, pa.string()).take(pa.array(small[name])) for name, one in of.items()}
        for name in () if self._form == "labels" else names:
            one = self.decoders[name]
            arrays[name] = (one.values if self._form == "values" else one.texts)(small[name], places.get(name))
        return pa.table(arrays, metadata={"dpgm": json.dumps(stamp)})


class _Tilt:
    """Weights of a column's codes in each state, which bring the drawn ones nearer to the expected ones.

    expected: (states, codes), in proportion. step: part of the log of the ratio of counts.
    """

    def __init__(self, name: str, state: IntArray, expected: FloatArray, step: float) -> None:
        self._name, self._state, self._step = name, state, step
        rows = np.bincount(state, minlength=len(expected))
        self._expected = expected * ratio(rows, expected.sum(axis=1))[:, None]
        self._logs = np.zeros_like(expected)

    @property
    def weights(self) -> tuple[str, FloatArray, IntArray]:
        """As `Conditional.draw` takes them."""
        return self._name, self._logs, self._state

    def move(self, drawn: Mapping[str, Array]) -> None:
        """Take a step by what was drawn."""
        size = self._expected.shape[1]
        counts = np.bincount(self._state * size + drawn[self._name], minlength=self._expected.size)
        reached = counts.reshape(self._expected.shape)
        step = np.log((self._expected + _TILT_RECORDS) / (reached + _TILT_RECORDS))
        self._logs = self._logs + self._step * np.where(self._expected.sum(axis=1, keepdims=True) > 0, step, 0.0)


def _shares(table: FloatArray) -> FloatArray:
    """Return the distributions along the last axis; 0 where there is none."""
    return ratio(table, table.sum(axis=-1, keepdims=True))


def _ruled_out(
    orders: Orders, places: Mapping[str, FloatArray], gaps: Mapping[str, Array]
) -> list[tuple[str, FloatArray, IntArray]]:
    """Return which codes of missing columns the known values leave, as `Conditional.draw` takes it."""
    return [(target, table, state) for (target, *_), table, state in orders.ruled_out(places, gaps)]


def _orders(related: Related) -> list[Constraint]:
    """Return the orders among values of a root, its first child and another child, of which zeros say less."""
    children = related.children
    result: list[Constraint] = [one for one in related.root.constraints if isinstance(one, Ordered)]
    for one in (*children.constraints, *related.constraints):
        if isinstance(one, Ordered):
            result.append(one)
            if not any(column.startswith(FIRST) for column in one.columns):
                low, high = (FIRST + name if name in children else name for name in one.columns)
                result += [evolve(one, columns=(low, high))] if (low, high) != one.columns else []
    return result


def find_keys(table: pa.Table, key: str) -> Any:
    """Return the keys of given roots, or their numbers."""
    import pyarrow as pa

    if key not in table.column_names:
        return pa.array(np.arange(1, table.num_rows + 1))
    column = table.column(key).combine_chunks()
    distinct = set(column.unique().to_pylist())
    if not distinct.isdisjoint((None, "", b"")) or len(distinct) < len(column):
        raise DataError(f"the keys {key!r} of the roots must differ, and none may be missing")
    return column
