"""One sweep of sum-product over a loopy plan, in probability space or, where that would underflow, in log space.

Both spaces run the same code over an `Algebra`. No step divides by a message: what all others say is a product over
a tree of pairs (attributes) or a recursive halving of the axes (factors), so true zeros are exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.loopy.plan import LoopyPlan, SizePlan

__all__ = ["LOG", "PROBABILITY", "Algebra", "Contradiction", "Messages", "factor_beliefs", "start", "sweep"]

# Factor cells worked on at a time, so that a product and its sums stay in the cache of one core.
BLOCK = 2**15

#: Per SizePlan, (size, messages + 1): the factors' messages, largest entry 1, and a last column of ones.
Messages = list[FloatArray]


class Contradiction(Exception):
    """A message or belief is all zero, so every record has probability 0."""


def _log_sum(table: FloatArray, axis: int) -> FloatArray:
    top = table.max(axis=axis, keepdims=True)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore", under="ignore"):
        logs: FloatArray = np.log(np.exp(table - top).sum(axis=axis)) + top.squeeze(axis)
    return logs


@frozen(kw_only=True)
class Algebra:
    """Arithmetic of one number representation: product, sum over an axis, quotient and power.

    to: from the representation to probabilities. log: from it to logarithms. of_log: from logarithms to it.
    """

    zero: float
    one: float
    times: np.ufunc
    total: Callable[[FloatArray, int], FloatArray]
    over: np.ufunc
    power: Callable[[FloatArray, float], FloatArray]
    to: Callable[[FloatArray], FloatArray]
    log: Callable[[FloatArray], FloatArray]
    of_log: Callable[[FloatArray], FloatArray]


def _same(values: FloatArray) -> FloatArray:
    return values


def _sum(table: FloatArray, axis: int) -> FloatArray:
    result: FloatArray = np.add.reduce(table, axis=axis)
    return result


PROBABILITY = Algebra(
    zero=0.0,
    one=1.0,
    times=np.multiply,
    total=_sum,
    over=np.divide,
    power=operator.pow,
    to=_same,
    log=np.log,
    of_log=np.exp,
)
LOG = Algebra(
    zero=-np.inf,
    one=0.0,
    times=np.add,
    total=_log_sum,
    over=np.subtract,
    power=operator.mul,
    to=np.exp,
    log=_same,
    of_log=_same,
)


def start(plan: LoopyPlan, algebra: Algebra) -> Messages:
    """Uniform messages."""
    return [np.full((sizes.size, sizes.messages + 1), algebra.one) for sizes in plan.sizes]


def sweep(plan: LoopyPlan, algebra: Algebra, potentials: FloatArray, messages: Messages) -> Messages:
    """New messages from all factors at once; raises Contradiction.

    potentials: (cells,), factor cells in the algebra's representation.
    """
    fresh = [np.empty_like(block) for block in messages]
    to_factors = [_to_factors(algebra, sizes, block)[0] for sizes, block in zip(plan.sizes, messages, strict=True)]
    for factors in plan.factors:
        table = potentials[factors.cells].reshape(*factors.shape, factors.count)
        width = max(1, BLOCK // math.prod(factors.shape))
        for first in range(0, factors.count, width):
            part = slice(first, first + width)
            inbox = [to_factors[number][:, columns][:, part] for number, columns in factors.ports]
            outbox = [fresh[number][:, columns][:, part] for number, columns in factors.ports]
            _from_factors(algebra, table[..., part], inbox, outbox)
    for block in fresh:
        block[:, -1] = algebra.one
        algebra.over(block, _top(algebra, block), out=block)
    return fresh


def _top(algebra: Algebra, block: FloatArray) -> FloatArray:
    top: FloatArray = np.maximum.reduce(block, axis=0)
    if top.min() == algebra.zero:
        raise Contradiction
    return top


def _to_factors(algebra: Algebra, sizes: SizePlan, block: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """(size, messages): per message column, the product of all OTHER messages to the attribute; and per variable
    class (size, attributes), the product of all.
    """
    answers, beliefs = [], []
    for variables in sizes.classes:
        # Pairwise products up a binary tree, then down: others(child) = others(parent) * sibling.
        level = np.take(block, variables.incoming, axis=1).reshape(sizes.size, variables.degree, variables.count)
        levels = []
        while level.shape[1] > 1:
            paired = level.reshape(sizes.size, -1, 2, variables.count)
            levels.append(paired)
            level = algebra.times(paired[:, :, 0], paired[:, :, 1])
        beliefs.append(level[:, 0])
        others = None
        for paired in reversed(levels):
            swapped = paired[:, :, ::-1]
            others = swapped if others is None else algebra.times(others[:, :, None], swapped)
            others = others.reshape(sizes.size, -1, variables.count)
        if others is None:  # one message only: nothing else is said
            others = np.full_like(level, algebra.one)
        answers.append(others.reshape(sizes.size, -1))
    joined = answers[0] if len(answers) == 1 else np.concatenate(answers, axis=1)
    return np.take(joined, sizes.slots, axis=1), beliefs


def _from_factors(algebra: Algebra, table: FloatArray, inbox: list[FloatArray], outbox: list[FloatArray]) -> None:
    """Write, for each axis, the sum over the other axes of table times their messages."""
    order = len(inbox)
    if order == 1:
        outbox[0][...] = table
        return
    half = order // 2
    _from_factors(
        algebra, _contract(algebra, table, inbox, range(order - 1, half - 1, -1)), inbox[:half], outbox[:half]
    )
    _from_factors(algebra, _contract(algebra, table, inbox, range(half - 1, -1, -1)), inbox[half:], outbox[half:])


def _contract(algebra: Algebra, table: FloatArray, inbox: list[FloatArray], axes: range) -> FloatArray:
    for axis in axes:
        table = algebra.total(algebra.times(table, _along(inbox[axis], axis, table.ndim)), axis)
    return table


def _along(message: FloatArray, axis: int, ndim: int) -> FloatArray:
    shape = [1] * ndim
    shape[axis], shape[-1] = message.shape
    return message.reshape(shape)


def factor_beliefs(
    plan: LoopyPlan, algebra: Algebra, potentials: FloatArray, messages: Messages
) -> tuple[FloatArray, float]:
    """(cells,): normalised factor beliefs as probabilities, and Bethe's log-partition, nats, of these potentials.

    log Z = sum_f log z_f + sum_i (1 - d_i) log z_i with z the sums of the unnormalised beliefs, which is Bethe's free
    energy at a fixed point for messages of any scale (Yedidia, Freeman, Weiss 2005; Wainwright, Jordan 2008, 4.1).
    """
    beliefs = np.empty(plan.cells)
    log_partition = 0.0
    to_factors = []
    for sizes, block in zip(plan.sizes, messages, strict=True):
        answers, products = _to_factors(algebra, sizes, block)
        to_factors.append(answers)
        for variables, product in zip(sizes.classes, products, strict=True):
            log_partition += float(variables.weights @ _normalised(algebra, product)[1])
    for factors in plan.factors:
        table = potentials[factors.cells].reshape(*factors.shape, factors.count)
        for axis, (number, columns) in enumerate(factors.ports):
            table = algebra.times(table, _along(to_factors[number][:, columns], axis, table.ndim))
        normalised, log_sums = _normalised(algebra, table.reshape(-1, factors.count))
        beliefs[factors.cells] = normalised.reshape(-1)
        log_partition += float(log_sums.sum())
    return beliefs, log_partition


def _normalised(algebra: Algebra, products: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities that sum to 1 over the first axis, and the logs of the sums they were divided by."""
    top = _top(algebra, products)
    scaled = algebra.to(algebra.over(products, top))
    sums = scaled.sum(axis=0)
    return scaled / sums, algebra.log(top) + np.log(sums)
