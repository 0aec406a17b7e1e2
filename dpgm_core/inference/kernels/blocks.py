"""Kernels over blocks of doubles: sums, products and exponentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.kernels.loading import jit, jit_strictly, resolve_executor

__all__ = ["LOWEST", "add_products", "dots", "double_of", "elementwise", "exponentials", "matrix", "whole_of"]


# --- Sums of products along runs ------------------------------------------------------------------
# Each is four rows by four terms, so that what is loaded is used four times; LLVM makes vectors of the loops over a
# run. All tables lie in one array, `memory`; a place is an index into it. `loops` are the three innermost ones, by
# `format`.

_RUN = 256  # cells of a run worked on at a time: four rows of it, and what they are made of, stay in the first cache


@jit
def _add4x4(
    memory: FloatArray, r: int, r_row: int, p: int, p_row: int, p_term: int, q: int, q_term: int, size: int, fresh: bool
) -> None:
    """Four rows of r (= if fresh, else +=) four terms of p, scalars, times four runs of q."""
    a00, a01, a02, a03 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a10, a11, a12, a13 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a20, a21, a22, a23 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a30, a31, a32, a33 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    r0, r1 = memory[r : r + size], memory[r + r_row : r + r_row + size]
    r2, r3 = memory[r + 2 * r_row : r + 2 * r_row + size], memory[r + 3 * r_row : r + 3 * r_row + size]
    q0, q1 = memory[q : q + size], memory[q + q_term : q + q_term + size]
    q2, q3 = memory[q + 2 * q_term : q + 2 * q_term + size], memory[q + 3 * q_term : q + 3 * q_term + size]
    if fresh:
        for j in range(size):
            x0, x1, x2, x3 = q0[j], q1[j], q2[j], q3[j]
            r0[j] = a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
            r1[j] = a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
            r2[j] = a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
            r3[j] = a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3
    else:
        for j in range(size):
            x0, x1, x2, x3 = q0[j], q1[j], q2[j], q3[j]
            r0[j] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
            r1[j] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
            r2[j] += a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
            r3[j] += a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3


@jit
def _add4x1(memory: FloatArray, r: int, r_row: int, p: int, p_row: int, q: int, size: int, fresh: bool) -> None:
    a0, a1, a2, a3 = memory[p], memory[p + p_row], memory[p + 2 * p_row], memory[p + 3 * p_row]
    r0, r1 = memory[r : r + size], memory[r + r_row : r + r_row + size]
    r2, r3 = memory[r + 2 * r_row : r + 2 * r_row + size], memory[r + 3 * r_row : r + 3 * r_row + size]
    q0 = memory[q : q + size]
    if fresh:
        for j in range(size):
            x = q0[j]
            r0[j] = a0 * x
            r1[j] = a1 * x
            r2[j] = a2 * x
            r3[j] = a3 * x
    else:
        for j in range(size):
            x = q0[j]
            r0[j] += a0 * x
            r1[j] += a1 * x
            r2[j] += a2 * x
            r3[j] += a3 * x


@jit
def _add1x4(memory: FloatArray, r: int, p: int, p_term: int, q: int, q_term: int, size: int, fresh: bool) -> None:
    a0, a1, a2, a3 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    r0 = memory[r : r + size]
    q0, q1 = memory[q : q + size], memory[q + q_term : q + q_term + size]
    q2, q3 = memory[q + 2 * q_term : q + 2 * q_term + size], memory[q + 3 * q_term : q + 3 * q_term + size]
    if fresh:
        for j in range(size):
            r0[j] = a0 * q0[j] + a1 * q1[j] + a2 * q2[j] + a3 * q3[j]
    else:
        for j in range(size):
            r0[j] += a0 * q0[j] + a1 * q1[j] + a2 * q2[j] + a3 * q3[j]


@jit
def _add1x1(memory: FloatArray, r: int, p: int, q: int, size: int, fresh: bool) -> None:
    a, r0, q0 = memory[p], memory[r : r + size], memory[q : q + size]
    if fresh:
        for j in range(size):
            r0[j] = a * q0[j]
    else:
        for j in range(size):
            r0[j] += a * q0[j]


@jit
def add_products(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k] * q[i, k, j], with runs along j in r and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    for low in range(0, cells, _RUN):
        size = min(_RUN, cells - low)
        i = 0
        while q_row == 0 and i + 4 <= rows:
            k = 0
            while k + 4 <= terms:
                _add4x4(
                    memory,
                    r + i * r_row + low,
                    r_row,
                    p + i * p_row + k * p_term,
                    p_row,
                    p_term,
                    q + k * q_term + low,
                    q_term,
                    size,
                    fresh and k == 0,
                )
                k += 4
            while k < terms:
                _add4x1(
                    memory,
                    r + i * r_row + low,
                    r_row,
                    p + i * p_row + k * p_term,
                    p_row,
                    q + k * q_term + low,
                    size,
                    fresh and k == 0,
                )
                k += 1
            i += 4
        while i < rows:
            k = 0
            to, one, two = r + i * r_row + low, p + i * p_row, q + i * q_row + low
            while k + 4 <= terms:
                _add1x4(memory, to, one + k * p_term, p_term, two + k * q_term, q_term, size, fresh and k == 0)
                k += 4
            while k < terms:
                _add1x1(memory, to, one + k * p_term, two + k * q_term, size, fresh and k == 0)
                k += 1
            i += 1


@jit
def _dots4x4(
    memory: FloatArray, r: int, r_row: int, r_column: int, p: int, p_row: int, q: int, q_column: int, size: int
) -> None:
    """Add to four by four cells of r the dot products of four runs of p and four of q."""
    p0, p1 = memory[p : p + size], memory[p + p_row : p + p_row + size]
    p2, p3 = memory[p + 2 * p_row : p + 2 * p_row + size], memory[p + 3 * p_row : p + 3 * p_row + size]
    q0, q1 = memory[q : q + size], memory[q + q_column : q + q_column + size]
    q2, q3 = memory[q + 2 * q_column : q + 2 * q_column + size], memory[q + 3 * q_column : q + 3 * q_column + size]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for j in range(size):
        x0, x1, x2, x3 = p0[j], p1[j], p2[j], p3[j]
        y0, y1, y2, y3 = q0[j], q1[j], q2[j], q3[j]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    memory[r] += s00
    memory[r + r_column] += s01
    memory[r + 2 * r_column] += s02
    memory[r + 3 * r_column] += s03
    r += r_row
    memory[r] += s10
    memory[r + r_column] += s11
    memory[r + 2 * r_column] += s12
    memory[r + 3 * r_column] += s13
    r += r_row
    memory[r] += s20
    memory[r + r_column] += s21
    memory[r + 2 * r_column] += s22
    memory[r + 3 * r_column] += s23
    r += r_row
    memory[r] += s30
    memory[r + r_column] += s31
    memory[r + 2 * r_column] += s32
    memory[r + 3 * r_column] += s33


@jit
def _dot(memory: FloatArray, p: int, q: int, size: int) -> float:
    p0, q0, total = memory[p : p + size], memory[q : q + size], 0.0
    for j in range(size):
        total += p0[j] * q0[j]
    return total


@jit
def dots(memory: FloatArray, loops: IntArray, r: int, p: int, q: int) -> None:
    """r[i, l] += sum over j of p[i, l, j] * q[i, l, j], with runs along j in p and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    columns, r_column, p_column, q_column, cells = loops[4], loops[5], loops[6], loops[7], loops[8]
    by_four = q_row == 0 and p_column == 0 and cells >= 8
    for low in range(0, cells, 2 * _RUN):
        size = min(2 * _RUN, cells - low)
        i = 0
        if by_four:
            while i + 4 <= rows:
                column = 0
                while column + 4 <= columns:
                    _dots4x4(
                        memory,
                        r + i * r_row + column * r_column,
                        r_row,
                        r_column,
                        p + i * p_row + low,
                        p_row,
                        q + column * q_column + low,
                        q_column,
                        size,
                    )
                    column += 4
                while column < columns:
                    for row in range(i, i + 4):
                        memory[r + row * r_row + column * r_column] += _dot(
                            memory, p + row * p_row + low, q + column * q_column + low, size
                        )
                    column += 1
                i += 4
        while i < rows:
            for column in range(columns):
                memory[r + i * r_row + column * r_column] += _dot(
                    memory, p + i * p_row + column * p_column + low, q + i * q_row + column * q_column + low, size
                )
            i += 1


@jit
def elementwise(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k, j] * q[i, k, j], with runs along j in all three."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    for i in range(rows):
        for low in range(0, cells, 2 * _RUN):
            size = min(2 * _RUN, cells - low)
            at = r + i * r_row + low
            r0 = memory[at : at + size]
            for k in range(terms):
                one, two = p + i * p_row + k * p_term + low, q + i * q_row + k * q_term + low
                p0, q0 = memory[one : one + size], memory[two : two + size]
                if fresh and k == 0:
                    for j in range(size):
                        r0[j] = p0[j] * q0[j]
                else:
                    for j in range(size):
                        r0[j] += p0[j] * q0[j]


@jit
def matrix(memory: FloatArray, loops: IntArray, r: int, p: int, q: int) -> None:
    """r[i, j] = sum over k of p[i, k] * q[k, j] by BLAS; r lies row by row, p and q so or column by column."""
    rows, columns, terms = loops[0], loops[8], loops[4]
    result = memory[r : r + rows * columns].reshape(rows, columns)
    one, two = memory[p : p + rows * terms], memory[q : q + terms * columns]
    if loops[6] == 1 and loops[7] != 1:
        np.dot(one.reshape(rows, terms), two.reshape(terms, columns), result)
    elif loops[6] == 1:
        np.dot(one.reshape(rows, terms), two.reshape(columns, terms).T, result)
    elif loops[7] != 1:
        np.dot(one.reshape(terms, rows).T, two.reshape(terms, columns), result)
    else:
        np.dot(one.reshape(terms, rows).T, two.reshape(columns, terms).T, result)


# --- Bits of doubles ------------------------------------------------------------------------------

#: The 64 bits of a double as a whole number; and the double that 64 bits are.
whole_of: Callable[[float], int]
double_of: Callable[[int], float]

if resolve_executor("auto") == "numba":
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def _whole(context: Any, value: Any) -> Any:
        return types.int64(types.float64), lambda _, build, __, given: build.bitcast(given[0], ir.IntType(64))

    def _double(context: Any, value: Any) -> Any:
        return types.float64(types.int64), lambda _, build, __, given: build.bitcast(given[0], ir.DoubleType())

    whole_of, double_of = intrinsic(_whole), intrinsic(_double)

else:

    def whole_of(value: float) -> int:
        return int(np.float64(value).view(np.int64))

    def double_of(value: int) -> float:
        return float(np.int64(value).view(np.float64))


# --- Exponentials ---------------------------------------------------------------------------------

#: Below this, exp is taken as 0: whoever calls raises the result, of -inf apart.
LOWEST = -700.0

_LOG2E = 1.4426950408889634
# log 2 in two parts: k times the first is exact for every exponent k.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# Added to a number below 2^51 this leaves the nearest whole number in the low bits.
_MAGIC = 6755399441055744.0


@jit_strictly
def exponentials(theta: FloatArray, start: int, stop: int, above: float, out: FloatArray) -> None:
    """out[i] = exp(theta[i] - above) for start <= i < stop, and 0 below LOWEST.

    Cody and Waite (1980): exp x = 2^k exp r with |r| <= log(2) / 2, and exp r by its series to r^13, whose next term
    is below 5e-18.
    """
    block, result = theta[start:stop], out[start:stop]
    for i in range(len(block)):
        x = block[i] - above
        bounded = x if x > LOWEST else LOWEST
        near = bounded * _LOG2E + _MAGIC
        k = near - _MAGIC
        r = (bounded - k * _LN2_HIGH) - k * _LN2_LOW
        s = 1.0 / 6227020800.0
        s = s * r + 1.0 / 479001600.0
        s = s * r + 1.0 / 39916800.0
        s = s * r + 1.0 / 3628800.0
        s = s * r + 1.0 / 362880.0
        s = s * r + 1.0 / 40320.0
        s = s * r + 1.0 / 5040.0
        s = s * r + 1.0 / 720.0
        s = s * r + 1.0 / 120.0
        s = s * r + 1.0 / 24.0
        s = s * r + 1.0 / 6.0
        s = s * r + 0.5
        s = s * r + 1.0
        power = double_of((whole_of(near) + 1023) << 52)
        result[i] = (s * r + 1.0) * power if x > LOWEST else 0.0
