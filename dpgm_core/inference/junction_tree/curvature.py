"""Second derivatives of the log-partition function: directional derivatives of marginals."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters
from dpgm_core.inference.junction_tree.lowering import (
    Buffer,
    Call,
    Instruction,
    Lowering,
    Program,
    Sketch,
    Space,
    Table,
    View,
    bind,
    view_array,
)
from dpgm_core.inference.junction_tree.probability import Calibration, Pool
from dpgm_core.structure.structure import Structure

__all__ = [
    "Bind",
    "Curvature",
    "LogCurvature",
    "Means",
    "TangentLowering",
    "TangentProgram",
    "Walkers",
    "means_of",
    "numpy_tangents",
]


# --- Tangents of a program ------------------------------------------------------------------------
# Where a step is out = sum left * right, its tangent is d out = sum d left * right + sum left * d right, and that of
# its adjoint d adjoint(left) = sum d adjoint(out) * right + sum adjoint(out) * d right: the work of two inferences, on
# values and adjoints that one calibration has left behind. The root's adjoint is 1 / Z, its tangent -dZ / Z^2.
#
# Why its answer can be trusted. A value is a sum of products of non-negative numbers, so its tangent is at most C
# times the value, C the sum of the direction's largest potential in each table; likewise an adjoint's, 2 C times. What
# `probability` shows of values and adjoints therefore holds of tangents: nothing that matters under- or overflows
# while C is far below exp(100), which the caller sees to. Raised cells weigh at most LOST in all, and their tangents,
# those of what they were before, at most C times that. Only where a value is exactly 0 may its adjoint be so large
# that its tangent overflows; then the product is not finite, which the caller looks for. A calibration with masks has
# no adjoints there, and their tangents are set to 0 as well: where a value is 0, so is its tangent. Source:
# Pearlmutter (1994).


@frozen(kw_only=True)
class TangentProgram:
    """The instructions of each step, forwards, at the roots and backwards, and the memory they need.

    columns: directions at once. values, adjoints: the tangents of each step's value and of its adjoint. The tangents
    of a table of n cells, (columns, n), start at columns times its place.
    """

    columns: int
    forward: tuple[tuple[Instruction, ...], ...]
    turn: tuple[Instruction, ...]
    backward: tuple[tuple[Instruction, ...], ...]
    values: tuple[View, ...]
    adjoints: tuple[View, ...]
    arena: int
    ones: int


class TangentLowering(Lowering):
    """A program that keeps its values and adjoints, differentiated along `columns` directions at once."""

    def __init__(self, contraction: Contraction, structure: Structure, program: Program, columns: int) -> None:
        # The directions are one more letter, in front; one direction needs none.
        super().__init__((*contraction.sizes, columns), len(contraction.sizes))
        self.contraction, self.columns = contraction, columns
        self.front: Letters = (len(contraction.sizes),) if columns > 1 else ()
        self.starts = [columns * part.start for part in structure.slices]
        self.value = [self.known(node, view) for node, view in enumerate(program.values)]
        # Those of inputs are not asked for.
        steps = {step.out for step in contraction.steps}
        self.above = {
            node: self.known(node, view) for node, view in enumerate(program.adjoints) if view and node in steps
        }
        self.tangent: list[Table] = []
        for node, letters in enumerate(contraction.nodes):
            where: tuple[Space, int] | None = None
            if node < len(contraction.groups):
                where = ("tangents", self.starts[contraction.groups[node]])
            self.tangent.append((self.wide(node, where), (*self.front, *letters)))
        self.adjoint: dict[int, Table] = {}

    def known(self, node: int, view: View) -> Table:
        return self.buffer(self.contraction.cells(node), (view.space, view.start)), self.contraction.nodes[node]

    def wide(self, node: int, where: tuple[Space, int] | None = None) -> Buffer:
        return self.buffer(self.columns * self.contraction.cells(node), where)

    def program(self) -> TangentProgram:
        contraction, value, tangent = self.contraction, self.value, self.tangent
        ends = []
        for step in contraction.steps:
            out = tangent[step.out]
            if step.right is None:
                self.sum_out(tangent[step.left], out)
            else:
                self.contract(tangent[step.left], value[step.right], out)
                self.contract_into(tangent[step.right], value[step.left], out)
            ends.append(len(self.code))
        for number, root in enumerate(contraction.roots):
            self.adjoint[root] = self.wide(root), self.front
            slope = self.buffer(1, ("turns", number)), ()
            self.multiply(tangent[root], slope, self.adjoint[root])
        ends.append(len(self.code))
        filled: set[int] = set()
        for step in reversed(contraction.steps):
            self.into_adjoint(step.left, step.right, step.out, filled)
            if step.right is not None:
                self.into_adjoint(step.right, step.left, step.out, filled)
            ends.append(len(self.code))
        parts, view, arena = self.place(ends, {}, {})

        def flat(table: Table) -> View:
            sketch: Sketch = (table[0], (table[0].cells,), (0,))
            return view(sketch)

        steps = len(contraction.steps)
        return TangentProgram(
            columns=self.columns,
            forward=tuple(parts[:steps]),
            turn=parts[steps],
            backward=tuple(parts[steps + 1 :]),
            values=tuple(flat(tangent[step.out]) for step in contraction.steps),
            adjoints=tuple(flat(self.adjoint[step.out]) for step in contraction.steps),
            arena=arena,
            ones=self.ones_cells,
        )

    def contract_into(self, p: Table, q: Table, r: Table) -> None:
        """Add the sum of p * q to r."""
        more = self.buffer(r[0].cells), r[1]
        self.contract(p, q, more)
        self.add(more, r)

    def into_adjoint(self, node: int, other: int | None, out: int, filled: set[int]) -> None:
        """Bring the tangents of the adjoint of a step's output, and those of its other operand, to an operand."""
        letters = (*self.front, *self.contraction.nodes[node])
        where: tuple[Space, int] | None = None
        tied = False
        if node < len(self.contraction.groups):
            group = self.contraction.groups[node]
            where, tied = ("adjoints", self.starts[group]), group in filled
            filled.add(group)
        table = self.wide(node, where), letters
        above = self.adjoint[out]
        if other is None:
            more = (self.buffer(table[0].cells), letters) if tied else table
            self.spread(above, more)
            if tied:
                self.add(more, table)
        else:
            (self.contract_into if tied else self.contract)(above, self.value[other], table)
            self.contract_into(self.tangent[other], self.above[out], table)
        self.adjoint[node] = table


#: Makes calls of instructions, for spaces that start at these places of one memory.
Bind: TypeAlias = Callable[[Sequence[Instruction], FloatArray, Mapping[Space, int]], list[Call]]
#: Lowers, and says what makes calls of the instructions.
Backend: TypeAlias = Callable[[Contraction, Structure, Program, int], tuple[TangentProgram, Bind]]


def numpy_tangents(
    contraction: Contraction, structure: Structure, program: Program, columns: int
) -> tuple[TangentProgram, Bind]:
    """The backend of numpy: one call an instruction."""
    return TangentLowering(contraction, structure, program, columns).program(), _bound


class TangentExecutor:
    """Products of calibrations with directions, so many at once; safe to call from several threads."""

    def __init__(
        self, contraction: Contraction, structure: Structure, keeping: Program, columns: int, backend: Backend
    ) -> None:
        program, bind = backend(contraction, structure, keeping, columns)
        self._workspace = Pool(
            lambda: _Workspace(structure, keeping, program, bind),
            columns * structure.cells + keeping.retained + program.arena,
        )
        free = [group for node, group in enumerate(contraction.groups) if not contraction.nodes[node]]
        self._constant = [structure.slices[group] for group in free]  # tables without letters

    def __call__(self, calibration: Calibration, directions: FloatArray) -> FloatArray:
        """The derivatives (m, cells) of the marginals of one record along directions (m, cells), m at most `columns`.

        The caller silences floating-point warnings, and looks whether all is finite.
        """
        with self._workspace() as work:
            product = work.product(calibration, directions)
        for part in self._constant:
            product[:, part] = 0.0
        return product


def _bound(instructions: Sequence[Instruction], memory: FloatArray, starts: Mapping[Space, int]) -> list[Call]:
    """numpy's calls, one an instruction."""
    spaces = {space: memory[start:] for space, start in starts.items()}
    return [bind(instruction, spaces) for instruction in instructions]


class _Workspace:
    """The buffers of one call, and the program's calls bound to views of them."""

    def __init__(self, structure: Structure, keeping: Program, program: TangentProgram, bind: Bind) -> None:
        self.columns = program.columns
        # Whose values and adjoints are here; it may be gone.
        self.loaded: Callable[[], Calibration | None] = lambda: None
        wide = program.columns * structure.cells
        sizes: dict[Space, int] = {
            "potentials": structure.cells,
            "retained": keeping.retained,
            "tangents": wide,
            "adjoints": wide,
            "turns": len(program.turn),
            "arena": program.arena,
            "ones": program.ones,
        }
        memory, starts = np.zeros(sum(sizes.values())), dict(zip(sizes, accumulate((0, *sizes.values())), strict=False))
        spaces = {space: memory[start : start + sizes[space]] for space, start in starts.items()}
        spaces["ones"][:] = 1.0
        self.potentials, self.retained, self.turns = spaces["potentials"], spaces["retained"], spaces["turns"]
        # Adjoints of tables without letters are never written by the program.
        self.tangents, self.adjoints = spaces["tangents"], spaces["adjoints"]
        self.forward, self.turn, self.backward = (
            [bind(step, memory, starts) for step in program.forward],
            bind(program.turn, memory, starts),
            [bind(step, memory, starts) for step in program.backward],
        )
        whole = [*program.forward, program.turn, *program.backward]
        self.calls = bind(tuple([instruction for step in whole for instruction in step]), memory, starts)
        self.values = [view_array(view, spaces) for view in program.values]
        self.above = [view_array(view, spaces) for view in program.adjoints]
        # The values that the calibration has left behind.
        self.known = [view_array(view, spaces) for view in keeping.values[len(keeping.values) - len(program.values) :]]
        # (columns, cells) of each table
        places = [slice(program.columns * part.start, program.columns * part.stop) for part in structure.slices]
        self.blocks = [
            (part, self.tangents[place].reshape(program.columns, -1), self.adjoints[place].reshape(program.columns, -1))
            for part, place in zip(structure.slices, places, strict=True)
        ]

    def product(self, calibration: Calibration, directions: FloatArray) -> FloatArray:
        if self.loaded() is not calibration:
            np.copyto(self.potentials, calibration.potentials)
            np.copyto(self.retained, calibration.retained)
            np.divide(-1.0, calibration.roots * calibration.roots, self.turns)
            self.loaded = weakref.ref(calibration)
        count = len(directions)
        if self.columns == 1:
            np.multiply(self.potentials, directions[0], self.tangents)
        else:
            for part, tangents, _ in self.blocks:
                np.multiply(directions[:, part], self.potentials[part], tangents[:count])
                tangents[count:] = 0.0
        if calibration.scales:
            self.rescaled(calibration)
        else:
            for function, arguments in self.calls:
                function(*arguments)
        product = directions * calibration.marginals
        if self.columns == 1:
            self.adjoints *= self.potentials
            product[0] += self.adjoints
        else:
            for part, _, adjoints in self.blocks:
                adjoints *= self.potentials[part]
                product[:, part] += adjoints[:count]
        return product

    def rescaled(self, calibration: Calibration) -> None:
        """Run the program where steps were divided by something, or masked."""
        scales = calibration.scales
        for step, tangent, scale in zip(self.forward, self.values, scales, strict=True):
            for function, arguments in step:
                function(*arguments)
            if scale != 1.0:
                tangent /= scale
        for function, arguments in self.turn:
            function(*arguments)
        for number, step in zip(reversed(range(len(scales))), self.backward, strict=True):
            above = self.above[number]
            if calibration.masked:
                above.reshape(self.columns, -1)[:, self.known[number] == 0.0] = 0.0
            if scales[number] != 1.0:
                above /= scales[number]
            for function, arguments in step:
                function(*arguments)
        if calibration.masked:
            for part, _, adjoints in self.blocks:
                adjoints[:, self.potentials[part] == 0.0] = 0.0


# --- Second derivatives in logarithms -------------------------------------------------------------
# Forward over reverse on a contraction, in relative tangents. With t = d log value of each node and s = d log adjoint,
# a step out = sum left * right gives t(out) = E[t(left) + t(right) | out], the mean over the letters summed, and its
# adjoint s(left) = E[s(out) + t(right) | left]; where nothing is summed both are plain sums. The weights of these
# means are probabilities, so nothing over- or underflows whatever the potentials, and zeros are safe. At the root s =
# -t, and in the end d marginals = marginals * (t + s). Only nodes that a direction reaches have tangents. Source:
# Pearlmutter (1994), on the differential approach of Darwiche (2003).

_MAX_CACHED_CELLS = 2**24  # weights of at most this many cells, 128 MiB, are kept between calls
_MAX_TANGENT_DOUBLES = 2**23  # doubles that the tangents of one walk may take
_MAX_LOG_COLUMNS = 128  # directions walked at once: enough for matrix products, few enough for the cache


class LogCurvature:
    """Cov(T) of the tables T of one record at fixed potentials, as a linear map.

    means: of the contraction, made once per engine. values, adjoints: the logarithms of every node and of its
    normalised adjoint (`logspace`).
    """

    def __init__(
        self,
        contraction: Contraction,
        structure: Structure,
        means: Means,
        values: Sequence[FloatArray],
        adjoints: Sequence[FloatArray],
    ) -> None:
        self._contraction, self._structure, self._means = contraction, structure, means
        self._values, self._adjoints = values, adjoints
        self._kept: dict[tuple[int, int, int], FloatArray] = {}
        weights = sum(mean.cells for walk in means for step in walk for mean in step if mean.inner)
        self._keep = weights <= _MAX_CACHED_CELLS
        cells = 2 * sum(contraction.cells(node) for node in range(len(contraction.nodes)))
        self._columns = max(1, min(_MAX_LOG_COLUMNS, _MAX_TANGENT_DOUBLES // max(1, cells)))

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Cov(T) V for V (cells, m), finite."""
        product = np.zeros(columns.shape)
        for low in range(0, columns.shape[1], self._columns):
            part = slice(low, low + self._columns)
            self._walk(np.ascontiguousarray(columns[:, part]), product[:, part])
        return product

    def _walk(self, directions: FloatArray, product: FloatArray) -> None:
        contraction, inputs = self._contraction, len(self._contraction.groups)
        forward, backward = self._means
        # None stands for zero: the direction does not reach the node.
        tangents: list[FloatArray | None] = [None] * len(contraction.nodes)
        adjoints: list[FloatArray | None] = [None] * len(contraction.nodes)
        for node, group in enumerate(contraction.groups):
            block = directions[self._structure.slices[group]]
            if contraction.nodes[node] and block.any():  # a table without letters is constant
                tangents[node] = block.reshape(*contraction.shape(node), -1)
        for step in forward:
            for mean in step:
                self._add(mean, tangents[mean.source], tangents)
        for root in contraction.roots:
            above = tangents[root]
            adjoints[root] = None if above is None else -above
        for step in reversed(backward):
            for mean in step:
                self._add(mean, (adjoints if mean.adjoint else tangents)[mean.source], adjoints)
        for node in range(inputs):
            marginals = np.exp(self._values[node] + self._adjoints[node]).reshape(-1, 1)
            part = product[self._structure.slices[contraction.groups[node]]]
            for relative in (tangents[node], adjoints[node]):
                if relative is not None:
                    part += marginals * relative.reshape(len(part), -1)

    def _add(self, mean: _Mean, tangent: FloatArray | None, into: list[FloatArray | None]) -> None:
        """Add the conditional mean of a tangent to the target's."""
        if tangent is None:
            return
        contraction, last = self._contraction, len(mean.order)
        if not mean.inner:
            term = np.broadcast_to(
                tangent.transpose(*mean.order, last).reshape(*mean.spread, -1),
                (*contraction.shape(mean.target), tangent.shape[-1]),
            )
        else:
            rows = tangent.transpose(*mean.order, last).reshape(mean.batch, mean.inner, -1)
            term = np.matmul(self._weights(mean), rows).reshape(*mean.made, -1)
            term = term.transpose(*mean.placed, len(mean.made))
        before = into[mean.target]
        into[mean.target] = term if before is None else before + term

    def _weights(self, mean: _Mean) -> FloatArray:
        """p(summed letters | target's letters): (batch, free, inner)."""
        key = (mean.step, mean.source, mean.target)
        if key in self._kept:
            return self._kept[key]

        def table(laid: _Laid, adjoint: bool) -> FloatArray:
            node, axes, shape = laid
            return (self._adjoints if adjoint else self._values)[node].transpose(axes).reshape(shape)

        log_weights = sum(table(laid, laid[0] == mean.above) for laid in mean.factors)
        # Where the target is 0 so is every term: weights that nothing reads are set to 0.
        norm = table(mean.norm, mean.above is not None)
        weights = np.exp(log_weights - np.where(norm == -np.inf, 0.0, norm)).reshape(mean.batch, -1, mean.inner)
        if self._keep:
            self._kept[key] = weights
        return weights


# A node, and how its axes are laid over the letters (batch, free, inner) of a mean.
_Laid = tuple[int, tuple[int, ...], tuple[int, ...]]


@frozen(kw_only=True)
class _Mean:
    """One term of a step: the tangent of `source` averaged into that of `target`.

    adjoint: whether the source's tangent is that of its adjoint. above: the step's output, on the way back. order:
    the source's axes as (batch, inner). inner: cells summed, 0 for none; then `spread` is the shape that broadcasts to
    the target. made, placed: shape and axes of the product. factors, norm: the tables the weights are made of.
    """

    step: int
    source: int
    target: int
    adjoint: bool
    above: int | None
    order: tuple[int, ...]
    batch: int
    inner: int
    cells: int
    spread: tuple[int, ...]
    made: tuple[int, ...]
    placed: tuple[int, ...]
    factors: tuple[_Laid, ...]
    norm: _Laid


#: The means of every step, forwards and backwards.
Means = tuple[tuple[tuple[_Mean, ...], ...], tuple[tuple[_Mean, ...], ...]]


def means_of(contraction: Contraction) -> Means:
    """Every mean that a walk over the contraction takes, with its axes."""
    forward, backward = [], []
    for number, step in enumerate(contraction.steps):
        operands = step.operands
        forward.append(tuple(_mean(contraction, number, node, step.out, operands, None) for node in operands))
        terms = []
        for target in operands:
            sources = (step.out, *(node for node in operands if node != target))
            terms += [_mean(contraction, number, node, target, sources, step.out) for node in sources]
        backward.append(tuple(terms))
    return tuple(forward), tuple(backward)


def _mean(
    contraction: Contraction, step: int, source: int, target: int, factors: tuple[int, ...], above: int | None
) -> _Mean:
    """above: the step's output when the tangents are those of adjoints, None on the way forward."""
    axes_in, out = contraction.nodes[source], contraction.nodes[target]
    inner = tuple(letter for letter in axes_in if letter not in out)
    batch = tuple(letter for letter in out if letter in axes_in)
    free = tuple(letter for letter in out if letter not in axes_in)
    letters = (*batch, *free, *inner)

    def cells(some: Letters) -> int:
        return math.prod(contraction.sizes[letter] for letter in some)

    def laid(node: int) -> _Laid:
        own = contraction.nodes[node]
        axes = tuple(own.index(letter) for letter in letters if letter in own)
        return node, axes, tuple(contraction.sizes[letter] if letter in own else 1 for letter in letters)

    made = (*batch, *free)
    return _Mean(
        step=step,
        source=source,
        target=target,
        adjoint=source == above,
        above=above,
        order=tuple(axes_in.index(letter) for letter in (*batch, *inner)),
        batch=cells(batch),
        inner=cells(inner) if inner else 0,
        cells=cells(letters),
        spread=tuple(contraction.sizes[letter] if letter in axes_in else 1 for letter in out),
        made=tuple(contraction.sizes[letter] for letter in made),
        placed=tuple(made.index(letter) for letter in out),
        factors=tuple(map(laid, factors)) if inner else (),
        norm=laid(target),
    )


# --- Second derivatives of a model ----------------------------------------------------------------

# Directions walked at once: enough to pay for the calls, few enough for the cache. Doubles that the tangents of the
# largest table, and those of all of the structure's tables, may take.
_MAX_COLUMNS, _MAX_TABLE_DOUBLES, _MAX_STRUCTURE_DOUBLES = 64, 2**16, 2**19
_TURNED_COLUMNS, _TURNED_ROWS, _MAX_TURNED_DOUBLES = 64, 512, 2**21  # turned at once, and doubles that this may take
_MAX_EMPTY_RATIO = 4  # where fewer than one in so many of the directions of a walk are left, they go one by one
_MAX_DIRECTION = 1e8  # directions whose largest entry is beyond this, or below its inverse, are scaled


class Walkers:
    """Executors for one direction and for many, made once per engine on first use."""

    def __init__(self, contraction: Contraction, structure: Structure, keeping: Program, backend: Backend) -> None:
        self._contraction, self._structure, self._keeping = contraction, structure, keeping
        self._backend = backend
        largest = max((contraction.cells(node) for node in range(len(contraction.nodes))), default=1)
        self.many = max(1, min(_MAX_COLUMNS, _MAX_TABLE_DOUBLES // largest, _MAX_STRUCTURE_DOUBLES // structure.cells))
        self._made: dict[int, TangentExecutor] = {}

    def of(self, columns: int) -> TangentExecutor:
        """The walker of so many directions; two threads may make it twice."""
        if columns not in self._made:
            self._made[columns] = TangentExecutor(
                self._contraction, self._structure, self._keeping, columns, self._backend
            )
        return self._made[columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return Walkers, (self._contraction, self._structure, self._keeping, self._backend)


class Curvature:
    """Cov(T) of the tables T of one record at fixed potentials, as a linear map.

    calibration: one inference with its messages, None where probabilities cannot hold it. in_logarithms: makes the map
    that needs none.
    """

    def __init__(
        self,
        structure: Structure,
        walkers: Walkers,
        calibration: Calibration | None,
        in_logarithms: Callable[[], LogCurvature],
    ) -> None:
        self._structure, self._walkers, self._calibration = structure, walkers, calibration
        self._in_logarithms = in_logarithms
        self._logarithms: LogCurvature | None = None

    def __call__(self, directions: FloatArray) -> FloatArray:
        """Cov(T) V for V (cells,) or (cells, m), finite: the derivative of the marginals of one record along V.

        About the work of two inferences per direction, less for many at once. Raises InferenceError.
        """
        vectors = np.asarray(directions, dtype=np.float64)
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self._structure.cells:
            raise InferenceError(
                f"curvature: directions must have shape ({self._structure.cells},) or ({self._structure.cells}, m), "
                f"got {vectors.shape}"
            )
        columns = vectors.reshape(len(vectors), math.prod(vectors.shape[1:]))
        product = np.empty(columns.shape)
        most = max(self._walkers.many, min(_TURNED_COLUMNS, _MAX_TURNED_DOUBLES // len(columns)))
        for low in range(0, columns.shape[1], most):
            part = slice(low, low + most)
            # One row per direction: what a walk takes lies together.
            rows = np.empty(columns[:, part].T.shape)
            _turn(columns[:, part], rows)
            self._walk(rows)
            _turn(rows, product[:, part])
        return product.reshape(vectors.shape)

    def _walk(self, rows: FloatArray) -> None:
        """Replace directions (m, cells) by their products."""
        low, many = 0, self._walkers.many
        while low < len(rows):
            at_once = many if (len(rows) - low) * _MAX_EMPTY_RATIO > many else 1
            part = slice(low, low + at_once)
            rows[part] = self._scaled(rows[part], at_once)
            low += at_once

    def _scaled(self, rows: FloatArray, at_once: int) -> FloatArray:
        """The products (m, cells) of directions (m, cells), which are overwritten."""
        with np.errstate(all="ignore"):
            largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        if not np.isfinite(largest).all():
            raise InferenceError("curvature: directions hold NaN or infinities; they must be finite")
        if float(largest.max()) <= _MAX_DIRECTION and float(largest.min()) >= 1 / _MAX_DIRECTION:
            return self._products(rows, at_once)
        size = np.where(largest > 0, largest, 1.0)[:, None]
        rows /= size
        return self._products(rows, at_once) * size

    def _products(self, rows: FloatArray, at_once: int) -> FloatArray:
        if self._calibration is not None:
            with np.errstate(all="ignore"):  # what is not finite is seen here
                products = self._walkers.of(at_once)(self._calibration, rows)
                # A sum is finite only if each of its terms is.
                if np.isfinite(products.sum()):
                    return products
        if self._logarithms is None:
            self._logarithms = self._in_logarithms()
        return self._logarithms(rows.T).T


def _turn(table: FloatArray, into: FloatArray) -> None:
    """into = table transposed, in blocks that the cache holds on both sides."""
    for low in range(0, table.shape[0], _TURNED_ROWS):
        for first in range(0, table.shape[1], _TURNED_ROWS):
            part, other = slice(low, low + _TURNED_ROWS), slice(first, first + _TURNED_ROWS)
            into[other, part] = table[part, other].T
