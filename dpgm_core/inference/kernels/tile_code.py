"""The code of `tiles`, written when kernels are compiled: this module imports numba."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpgm_core.inference.kernels.format import LANES
from dpgm_core.inference.kernels.tiles import MAX_ROWS, MAX_VECTORS

__all__ = ["dot_tile", "extremes", "product_tile"]

_Value: TypeAlias = Any  # of llvmlite, which has no types
_Write: TypeAlias = Callable[[], None]
_DOUBLE, _INT, _BIT, _SHORT_INT, _POINTER = (
    ir.DoubleType(),
    ir.IntType(64),
    ir.IntType(1),
    ir.IntType(32),
    ir.PointerType(),
)
_VECTOR, _MASK = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_BIT, LANES)
# Masked loads and stores state their alignment, bytes, up to LLVM 21.
_ALIGNMENT = [ir.Constant(_SHORT_INT, 8)] if binding.llvm_version_info[0] < 22 else []
_EXTREMES = ir.LiteralStructType([_DOUBLE, _DOUBLE, _BIT, _BIT])
# As `loading.jit`: sums in any order, a product and a sum as one operation.
_FLAGS = ("reassoc", "contract", "nsz")


class _Code:
    """Code of a function under construction: what tiles need of LLVM's instructions."""

    def __init__(self, builder: Any, memory: _Value) -> None:
        self.builder, self.memory = builder, memory
        module = builder.module
        # Runs are short as a rule: loops of several turns at once take longer to begin than they save.
        rolled = ir.MetaDataString(module, "llvm.loop.unroll.disable")
        self.rolled = module.add_metadata([module.add_metadata([rolled])])

    def number(self, value: int) -> _Value:
        return ir.Constant(_INT, value)

    def zeros(self) -> _Value:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    def moved(self, place: _Value, stride: _Value, times: int) -> _Value:
        for _ in range(times):
            place = self.builder.add(place, stride)
        return place

    def at(self, place: _Value) -> _Value:
        return self.builder.gep(self.memory, [place], source_etype=_DOUBLE)

    def cell(self, place: _Value) -> _Value:
        return self.builder.load(self.at(place), typ=_DOUBLE, align=8)

    def load(self, place: _Value, mask: _Value | None) -> _Value:
        if mask is None:
            return self.builder.load(self.at(place), typ=_VECTOR, align=8)
        arguments = [self.at(place), *_ALIGNMENT, mask, self.zeros()]
        return self._call("llvm.masked.load.v8f64.p0", _VECTOR, arguments)

    def store(self, value: _Value, place: _Value, mask: _Value | None) -> None:
        if mask is None:
            self.builder.store(value, self.at(place), align=8)
            return
        self._call("llvm.masked.store.v8f64.p0", ir.VoidType(), [value, self.at(place), *_ALIGNMENT, mask])

    def _call(self, name: str, result: Any, arguments: Sequence[_Value]) -> _Value:
        known, kind = self.builder.module.globals, ir.FunctionType(result, [one.type for one in arguments])
        return self.builder.call(
            known[name] if name in known else ir.Function(self.builder.module, kind, name), arguments
        )

    def shuffled(self, one: _Value, two: _Value, lanes: Sequence[int]) -> _Value:
        picks = [ir.Constant(_SHORT_INT, lane) for lane in lanes]
        return self.builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(_SHORT_INT, len(picks)), picks))

    def spread(self, value: _Value) -> _Value:
        """A vector of one value."""
        nothing = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.Constant(_SHORT_INT, 0))
        return self.shuffled(first, first, [0] * LANES)

    def first_lanes(self, count: _Value) -> _Value:
        """The mask of as many lanes."""
        lanes = ir.Constant(ir.VectorType(_INT, LANES), [self.number(lane) for lane in range(LANES)])
        return self.builder.icmp_signed("<", lanes, self.spread(count))

    def add(self, one: _Value, two: _Value) -> _Value:
        return self.builder.fadd(one, two, flags=_FLAGS)

    def add_product(self, total: _Value, one: _Value, two: _Value) -> _Value:
        return self.add(total, self.builder.fmul(one, two, flags=_FLAGS))

    def add_loop(
        self,
        stop: _Value,
        step: int,
        before: Sequence[_Value],
        turn: Callable[[_Value, Sequence[_Value]], list[_Value]],
    ) -> list[_Value]:
        """Return what `turn(number, values)` makes of values, from `before`, for 0, step, ... below stop."""
        builder, start = self.builder, self.builder.block
        head, inside, after = [builder.append_basic_block() for _ in range(3)]
        builder.branch(head)
        builder.position_at_end(head)
        number, *values = [builder.phi(value.type) for value in (stop, *before)]
        builder.cbranch(builder.icmp_signed("<", number, stop), inside, after)
        builder.position_at_end(inside)
        made = [builder.add(number, self.number(step)), *turn(number, values)]
        for phi, first, following in zip((number, *values), (self.number(0), *before), made, strict=True):
            phi.add_incoming(first, start)
            phi.add_incoming(following, builder.block)
        builder.branch(head).set_metadata("llvm.loop", self.rolled)
        builder.position_at_end(after)
        return values

    def add_choice(
        self, condition: _Value, one: Callable[[], list[_Value]], other: Callable[[], list[_Value]]
    ) -> list[_Value]:
        """Return the values that one of two ways makes."""
        builder = self.builder
        ways = [builder.append_basic_block() for _ in range(2)]
        after = builder.append_basic_block()
        builder.cbranch(condition, *ways)
        made = []
        for way, write in zip(ways, (one, other), strict=True):
            builder.position_at_end(way)
            made.append(write())
            builder.branch(after)
        builder.position_at_end(after)
        phis = [builder.phi(value.type) for value in made[0]]
        for way, values in zip(ways, made, strict=True):
            for phi, value in zip(phis, values, strict=True):
                phi.add_incoming(value, way)
        return phis

    def add_cases(self, number: _Value, cases: Mapping[int, _Write]) -> None:
        """Run one of the cases, or none."""
        builder = self.builder
        after = builder.append_basic_block()
        choice = builder.switch(number, after)
        for key, write in cases.items():
            block = builder.append_basic_block()
            choice.add_case(self.number(key), block)
            builder.position_at_end(block)
            write()
            builder.branch(after)
        builder.position_at_end(after)


def _write_product_tile(code: _Code, numbers: Sequence[_Value]) -> None:
    r, r_row, p, p_row, p_term, q, q_term, rows, terms, lanes, fresh = numbers
    builder = code.builder

    def tile(height: int, width: int) -> None:
        # A single vector is masked. The last of several overlaps the one before: masked stores take more time.
        starts, mask = [code.number(LANES * vector) for vector in range(width)], None
        if width == 1:
            mask = code.first_lanes(lanes)
        else:
            starts[-1] = builder.sub(lanes, code.number(LANES))

        def vectors(place: _Value) -> list[_Value]:
            return [code.load(builder.add(place, start), mask) for start in starts]

        def term(k: _Value, sums: Sequence[_Value]) -> list[_Value]:
            one, two = builder.add(p, builder.mul(k, p_term)), vectors(builder.add(q, builder.mul(k, q_term)))
            if height == 0:
                pairs = list(zip(vectors(one), two, strict=True))
            else:
                cells = [code.cell(code.moved(one, p_row, row)) for row in range(height)]
                pairs = [(factor, vector) for factor in map(code.spread, cells) for vector in two]
            return [code.add_product(total, *pair) for total, pair in zip(sums, pairs, strict=True)]

        places = [builder.add(code.moved(r, r_row, row), start) for row in range(height or 1) for start in starts]
        before = code.add_choice(
            fresh, lambda: [code.zeros()] * len(places), lambda: [code.load(place, mask) for place in places]
        )
        sums = code.add_loop(terms, 1, before, term)
        for total, place in zip(sums, places, strict=True):
            code.store(total, place, mask)

    wide = builder.udiv(builder.add(lanes, code.number(LANES - 1)), code.number(LANES))
    sizes = [(height, width) for height in range(MAX_ROWS + 1) for width in range(1, MAX_VECTORS + 1)]
    cases = {8 * height + width: partial(tile, height, width) for height, width in sizes}
    code.add_cases(builder.add(builder.mul(rows, code.number(8)), wide), cases)


def _write_dot_tile(code: _Code, numbers: Sequence[_Value]) -> None:
    r, r_row, r_column, p, p_row, p_column, q, q_column, rows, columns, cells, fresh = numbers
    builder = code.builder
    whole = builder.and_(cells, code.number(-LANES))
    rest = code.first_lanes(builder.sub(cells, whole))

    def tile(height: int, width: int) -> None:
        def add_lanes(j: _Value, sums: Sequence[_Value], mask: _Value | None = None) -> list[_Value]:
            one, two = builder.add(p, j), builder.add(q, j)
            right = [code.load(code.moved(two, q_column, column), mask) for column in range(width)]
            if height == 1:
                left = [code.load(code.moved(one, p_column, column), mask) for column in range(width)]
                pairs = list(zip(left, right, strict=True))
            else:
                left = [code.load(code.moved(one, p_row, row), mask) for row in range(height)]
                pairs = [(first, second) for first in left for second in right]
            return [code.add_product(total, *pair) for total, pair in zip(sums, pairs, strict=True)]

        sums = code.add_loop(whole, LANES, [code.zeros()] * (height * width), add_lanes)
        sums = add_lanes(whole, sums, rest)
        for first in range(0, len(sums), 4):
            totals = _totals(code, sums[first : first + 4])
            for lane in range(len(sums[first : first + 4])):
                row, column = divmod(first + lane, width)
                to = code.moved(code.moved(r, r_row, row), r_column, column)
                before = builder.select(fresh, ir.Constant(_DOUBLE, 0.0), code.cell(to))
                total = builder.extract_element(totals, ir.Constant(_SHORT_INT, lane))
                builder.store(code.add(before, total), code.at(to), align=8)

    sizes = [(height, width) for height in range(1, MAX_ROWS + 1) for width in range(1, MAX_ROWS + 1)]
    cases = {8 * height + width: partial(tile, height, width) for height, width in sizes}
    code.add_cases(builder.add(builder.mul(rows, code.number(8)), columns), cases)


def _totals(code: _Code, sums: Sequence[_Value]) -> _Value:
    """The totals over the lanes of up to four vectors, as one vector of four."""
    one, two, three, four = list(sums) + [code.zeros()] * (4 - len(sums))

    def folded(first: _Value, second: _Value, lanes: Sequence[int], others: Sequence[int]) -> _Value:
        return code.add(code.shuffled(first, second, lanes), code.shuffled(first, second, others))

    even, odd = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
    first, second = folded(one, two, even, odd), folded(three, four, even, odd)
    halves = folded(first, second, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
    return folded(halves, halves, range(4), range(4, 8))


def _write_extremes(code: _Code, numbers: Sequence[_Value]) -> _Value:
    start, stop = numbers
    builder = code.builder
    cells = builder.sub(stop, start)
    infinity = ir.Constant(_VECTOR, [math.inf] * LANES)
    minus_infinity = ir.Constant(_VECTOR, [-math.inf] * LANES)
    none = ir.Constant(_MASK, [ir.Constant(_BIT, 0)] * LANES)

    def compared(values: Sequence[_Value], place: _Value, mask: _Value | None) -> list[_Value]:
        low, high, some_minus, some_bad = values
        x = code.load(place, mask)
        minus, bad = builder.fcmp_ordered("==", x, minus_infinity), builder.fcmp_unordered(">=", x, infinity)
        least, most = builder.select(minus, infinity, x), x
        if mask is not None:  # what is masked is 0
            least, most = builder.select(mask, least, infinity), builder.select(mask, most, minus_infinity)
        low = builder.select(builder.fcmp_ordered("<", least, low), least, low)
        high = builder.select(builder.fcmp_ordered(">", most, high), most, high)
        return [low, high, builder.or_(some_minus, minus), builder.or_(some_bad, bad)]

    def turn(j: _Value, values: Sequence[_Value]) -> list[_Value]:
        made = []
        for way in range(ways):  # none waits for the one before
            place = builder.add(builder.add(start, j), code.number(LANES * way))
            made += compared(values[4 * way : 4 * way + 4], place, None)
        return made

    def rest(j: _Value, values: Sequence[_Value]) -> list[_Value]:
        at = builder.add(whole, j)
        return compared(values, builder.add(start, at), code.first_lanes(builder.sub(cells, at)))

    def folded(one: Sequence[_Value], two: Sequence[_Value]) -> list[_Value]:
        return [
            builder.select(builder.fcmp_ordered("<", one[0], two[0]), one[0], two[0]),
            builder.select(builder.fcmp_ordered(">", one[1], two[1]), one[1], two[1]),
            builder.or_(one[2], two[2]),
            builder.or_(one[3], two[3]),
        ]

    ways = 4
    whole = builder.and_(cells, code.number(-LANES * ways))
    values = code.add_loop(whole, LANES * ways, [infinity, minus_infinity, none, none] * ways, turn)
    parts = [values[first : first + 4] for first in range(0, 4 * ways, 4)]
    total = folded(folded(*parts[:2]), folded(*parts[2:]))
    total = code.add_loop(builder.sub(cells, whole), LANES, total, rest)
    for half in (4, 2, 1):
        total = folded(*([code.shuffled(value, value, range(low, low + half)) for value in total] for low in (0, half)))
    first = ir.Constant(_SHORT_INT, 0)
    low, high, minus, bad = [builder.extract_element(value, first) for value in total]
    result = ir.Constant(_EXTREMES, ir.Undefined)
    for place, value in enumerate((low, high, minus, builder.not_(bad))):
        result = builder.insert_value(result, value, place)
    return result


def _call(
    builder: Any,
    name: str,
    result: Any,
    values: Sequence[_Value],
    write: Callable[[_Code, Sequence[_Value]], _Value],
) -> _Value:
    """Call a function of an array and numbers, one in each module."""
    module = builder.module
    if name in module.globals:
        return builder.call(module.globals[name], values)
    function = ir.Function(module, ir.FunctionType(result, [_POINTER, *[value.type for value in values[1:]]]), name)
    function.linkage = "linkonce_odr"
    # Inlined, all that tiles of any size need would be computed ahead of the caller's loop, and leave registers.
    function.attributes.add("noinline")
    inside = ir.IRBuilder(function.append_basic_block())
    memory, *numbers = function.args
    made = write(_Code(inside, memory), numbers)
    inside.ret_void() if made is None else inside.ret(made)
    return builder.call(function, values)


def _data(context: Any, builder: Any, signature: Any, array: _Value) -> _Value:
    return context.make_array(signature.args[0])(context, builder, array).data


def _tile_generator(name: str, write: Callable[[_Code, Sequence[_Value]], None]) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, values: Sequence[_Value]) -> Any:
        memory, *tables, fresh = values
        numbers = [number for table in tables for number in cgutils.unpack_tuple(builder, table)]
        fresh = builder.icmp_unsigned("!=", fresh, ir.Constant(fresh.type, 0))
        _call(builder, name, ir.VoidType(), [_data(context, builder, signature, memory), *numbers, fresh], write)
        return context.get_dummy_value()

    return generate


def _numbers(*counts: int) -> list[Any]:
    return [types.UniTuple(types.int64, count) for count in counts]


@intrinsic  # type: ignore[untyped-decorator]
def product_tile(_: Any, memory: Any, r: Any, p: Any, q: Any, size: Any, fresh: Any) -> Any:
    return types.void(memory, *_numbers(2, 3, 2, 3), types.boolean), _tile_generator(
        "product_tile", _write_product_tile
    )


@intrinsic  # type: ignore[untyped-decorator]
def dot_tile(_: Any, memory: Any, r: Any, p: Any, q: Any, size: Any, fresh: Any) -> Any:
    return types.void(memory, *_numbers(3, 3, 2, 3), types.boolean), _tile_generator("dot_tile", _write_dot_tile)


@intrinsic  # type: ignore[untyped-decorator]
def extremes(_: Any, memory: Any, start: Any, stop: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Sequence[_Value]) -> Any:
        numbers = [_data(context, builder, signature, values[0]), *values[1:]]
        made = _call(builder, "extremes", _EXTREMES, numbers, _write_extremes)
        values = [builder.extract_value(made, place) for place in range(4)]
        return context.make_tuple(builder, signature.return_type, values)

    result = types.Tuple((types.float64, types.float64, types.boolean, types.boolean))
    return result(memory, types.int64, types.int64), generate
