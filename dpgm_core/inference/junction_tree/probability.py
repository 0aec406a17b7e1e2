"""Execution of a program on probabilities: the fast executor, with a check that nothing is lost.

Why its answer can be trusted. The forward pass only multiplies and adds non-negative numbers, so rounding errors stay
relative, and log Z is right unless something nonzero underflows (scaled tables may look harmless one by one and still
cancel). Each node therefore carries bounds on the logarithms of its nonzero cells, `low`, and of its largest, `high`;
both add up over products, and a sum adds the logarithm of its number of terms to `high`. A node that leaves
[-REACH, REACH] is measured and divided by one number: its largest cell becomes 1 or, where its nonzero cells span more
than REACH, as much more as that is over, up to exp(REACH). So operands are exactly 0 or within exp(+-REACH), products
within exp(+-2 REACH), far from the ends of double precision at exp(+-708): nothing nonzero ever becomes 0. When the
bounds of all tables together stay within reach, without those of tables that would bring them back, no node need be
looked at.

Floors. Nonzero cells of a measured node that are still below FLOOR = exp(-REACH) are raised to it (those of tables by
whoever fills them). That only adds weight, and only to records that pass through a raised cell; the probability of all
that passes there, value * adjoint, is known after the backward pass. If it is at most LOST in all, then log Z and each
marginal are wrong by no more, and marginals up to that are set to 0; otherwise the executor gives up. So giving up
takes a cell that lies 2 REACH below the largest of its node (REACH, of a table) and still matters. To give up is to
return None: take the logarithms.

The backward pass starts from 1/Z, and value * adjoint of a cell is the probability of an event, at most 1. A lost
adjoint is below exp(-708) and belongs to a value below exp(2 REACH + log of the terms), so marginals are wrong by
less than 1e-37, absolutely. An adjoint can overflow only where the value is exactly 0; then inf or 0 * inf reaches a
marginal, which is not finite and is seen. The passes are made once more with masks: each node's zeros are remembered,
and its adjoint is set to 0 there. That changes no marginal. Where out = sum left * right is 0, so is each of its terms:
what adjoint(out) adds to adjoint(left), adjoint(out) * right, is multiplied by left in whatever is made of it, down to
the tables' cells; and second derivatives see products alone (a zero stays one along any direction). With masks every
adjoint that is used belongs to a value above exp(-2 REACH) and is at most the inverse of that; what overflows in
making others is overwritten before it is read.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.inference.junction_tree.contraction import Contraction
from dpgm_core.inference.junction_tree.lowering import Program, Space, View, bind, view_array
from dpgm_core.inference.kernels.format import FLOOR, LOST, RAISED, REACH
from dpgm_core.structure.structure import Structure

__all__ = ["Calibration", "Pool", "ProbabilityExecutor"]

_POOLED_CELLS = 2**22  # workspaces above 32 MiB are not kept between calls
_Work = TypeVar("_Work")

#: What the value of each step was divided by; empty where none was.
Scales = tuple[float, ...]


@frozen(kw_only=True, eq=False)
class Calibration:
    """One inference with all that was made on the way.

    potentials: probabilities, unnormalised (cells,). retained: values and adjoints of all steps, laid out as in the
    program. roots: their values. masked: whether adjoints were set to 0 where values are. marginals: of one record
    (cells,). log_partition: of one record, less what was shifted; where it is -inf the rest means nothing.
    """

    potentials: FloatArray
    retained: FloatArray
    roots: FloatArray
    scales: Scales
    masked: bool
    marginals: FloatArray
    log_partition: float


class Pool(Generic[_Work]):
    """What calls need for themselves, to be used again; taken and given back in one step each, so without a lock.

    cells: of one, in doubles; large ones are not kept between calls.
    """

    def __init__(self, make: Callable[[], _Work], cells: int) -> None:
        self._make, self._keeps = make, cells <= _POOLED_CELLS
        self._free: list[_Work] = []

    @contextmanager
    def __call__(self) -> Iterator[_Work]:
        try:
            work = self._free.pop()
        except IndexError:
            work = self._make()
        yield work
        if self._keeps:
            self._free.append(work)


class ProbabilityExecutor:
    """Marginals and log Z from scaled probabilities; safe to call from several threads.

    Each call takes a workspace for itself: the buffers with all views of the program made once. Workspaces are
    reused, so that a call allocates nothing but its result.
    """

    def __init__(self, contraction: Contraction, program: Program, structure: Structure) -> None:
        self._contraction = contraction
        self._program = program
        self._structure = structure
        self._steps = [(step.left, step.right, step.out) for step in contraction.steps]
        # Each step sums one letter or none.
        self._log_sizes = [
            sum(
                math.log(contraction.sizes[letter])
                for letter in set(contraction.nodes[left]) - set(contraction.nodes[out])
            )
            for left, _, out in self._steps
        ]
        self._log_terms = sum(self._log_sizes)
        self._spare: list[FloatArray] = []
        self._workspace = Pool(
            lambda: _Workspace(contraction, program, structure), structure.cells + program.arena + program.retained
        )

    def __call__(
        self, fill: Callable[[FloatArray], object], lows: list[float], highs: list[float], *, zeros: bool
    ) -> tuple[FloatArray, float] | None:
        """(marginals of one record, log Z) of the tables that `fill` writes, or None when double precision may
        not do; log Z is -inf when every record has probability 0 (the marginals then mean nothing).

        fill: writes the tables' probabilities, unnormalised, into the buffer it is given; nonzero ones at least FLOOR.
        lows, highs: per group, bounds on the logarithms of its nonzero cells before any was raised to that. zeros:
        whether there may be cells of exactly 0. The caller silences floating-point warnings: what they would say is
        looked for here.
        """
        with self._workspace() as work:
            outcome = self._walk(work, fill, lows, highs, zeros=zeros)
            return None if outcome is None else (outcome[0], outcome[1])

    def calibrate(
        self, fill: Callable[[FloatArray], object], lows: list[float], highs: list[float], *, zeros: bool
    ) -> Calibration | None:
        """Return the result of a call with every value and adjoint; for a program that retains them."""
        with self._workspace() as work:
            outcome = self._walk(work, fill, lows, highs, zeros=zeros)
            if outcome is None:
                return None
            marginals, log_partition, scales, masked = outcome
            # The memory of an earlier one that nobody has any more: new pages would cost as much as the inference.
            steps = self._spare.pop() if self._spare else np.empty_like(work.retained)
            np.copyto(steps, work.retained)
            calibration = Calibration(
                potentials=work.potentials.copy(),
                retained=steps,
                roots=np.array([float(value[0]) for value, _ in work.roots]),
                scales=scales,
                masked=masked,
                marginals=marginals,
                log_partition=log_partition,
            )
            if len(steps) <= _POOLED_CELLS:
                weakref.finalize(calibration, self._spare.append, steps).atexit = False
            return calibration

    def _walk(
        self,
        work: _Workspace,
        fill: Callable[[FloatArray], object],
        lows: list[float],
        highs: list[float],
        *,
        zeros: bool,
    ) -> tuple[FloatArray, float, Scales, bool] | None:
        groups = self._contraction.groups
        # Of any product on the way: one over some of the tables may lie further out than that over all of them.
        low = sum(min(0.0, lows[group]) for group in groups)
        high = sum(max(0.0, highs[group]) for group in groups)
        guarded = low < -2 * REACH or high + self._log_terms > REACH
        raised = min(lows, default=0.0) < -REACH
        fill(work.potentials)
        for masked in (False, True):
            if guarded or masked:
                log_partition, scales, lost = self._guarded(work, lows, highs, masked=masked)
            else:
                log_partition, scales, lost = self._quick(work), (), 0.0
            marginals = work.potentials * work.adjoints
            if log_partition == -math.inf:
                return marginals, log_partition, scales, masked
            if masked:
                marginals[work.potentials == 0.0] = 0.0
            if raised:
                lost += float(marginals[(work.potentials > 0.0) & (work.potentials <= RAISED)].sum())
            # A sum is finite only if each of its terms is.
            if not zeros or math.isfinite(float(marginals.sum())):
                if lost > 0.0:
                    marginals[marginals <= lost * (1 + 1e-9)] = 0.0  # nothing else may have passed there
                return (marginals, log_partition, scales, masked) if lost <= LOST else None
        return None

    def _quick(self, work: _Workspace) -> float:
        """log Z where no node can leave the reach of double precision."""
        for function, arguments in work.forward:
            function(*arguments)
        log_partition = work.turn()
        if log_partition > -math.inf:
            for function, arguments in work.backward:
                function(*arguments)
        return log_partition

    def _guarded(
        self, work: _Workspace, lows: list[float], highs: list[float], *, masked: bool
    ) -> tuple[float, Scales, float]:
        """log Z, what the steps were divided by, and the probability of all that passes through raised cells."""
        groups = self._contraction.groups
        low = [max(-REACH, lows[group]) for group in groups] + [0.0] * len(self._steps)
        high = [highs[group] for group in groups] + [0.0] * len(self._steps)
        scales = [1.0] * len(self._steps)
        raised: dict[int, Array] = {}
        zeros: dict[int, Array] = {}
        log_scale = 0.0
        for number, (left, right, out) in enumerate(self._steps):
            for function, arguments in work.forward_steps[number]:
                function(*arguments)
            value = work.values[number]
            low[out], high[out] = low[left], high[left] + self._log_sizes[number]
            if right is not None:
                low[out] += low[right]
                high[out] += high[right]
            if low[out] < -REACH or high[out] > REACH:
                largest = float(value.max())
                if largest == 0.0:
                    return -math.inf, (), 0.0
                smallest = float(value.min())
                if smallest == 0.0:
                    smallest = float(value[value > 0].min())
                # The cells come to lie in [-span, 0], up to REACH higher where that is too low.
                span = math.log(largest) - math.log(smallest)
                low[out], high[out] = max(-REACH, -span), min(REACH, max(0.0, span - REACH))
                scale = largest * math.exp(-high[out])
                if span > 2 * REACH:
                    least = scale * FLOOR
                    raised[number] = (value > 0.0) & (value < least)
                    value[raised[number]] = least
                value /= scale
                scales[number] = scale
                log_scale += math.log(scale)
            if masked:
                zeros[number] = value == 0.0
        log_partition = work.turn()
        if log_partition == -math.inf:
            return log_partition, (), 0.0
        lost = 0.0
        for number in range(len(scales) - 1, -1, -1):
            adjoint = work.adjoint_values[number]
            if masked:
                adjoint[zeros[number]] = 0.0
            if number in raised:
                lost += FLOOR * float(adjoint[raised[number]].sum())
            if scales[number] != 1.0:
                adjoint /= scales[number]
            for function, arguments in work.backward_steps[number]:
                function(*arguments)
        return log_partition + log_scale, tuple(scales), lost

    def __reduce__(self) -> tuple[Any, ...]:
        return ProbabilityExecutor, (self._contraction, self._program, self._structure)


class _Workspace:
    """The buffers of one call, and the program's calls bound to views of them."""

    def __init__(self, contraction: Contraction, program: Program, structure: Structure) -> None:
        self.potentials = np.empty(structure.cells)
        # Tables without letters are never written by the program: each of their cliques has probability 1.
        self.adjoints = np.repeat(np.asarray(structure.multiplicities, dtype=np.float64), structure.sizes)
        self.retained = np.empty(program.retained)
        spaces: dict[Space, FloatArray] = {
            "potentials": self.potentials,
            "adjoints": self.adjoints,
            "arena": np.empty(program.arena),
            "ones": np.ones(program.ones),
            "retained": self.retained,
        }

        def array(view: View) -> FloatArray:
            return view_array(view, spaces)

        self.forward_steps = [[bind(one, spaces) for one in step] for step in program.forward]
        # The program holds the backward steps in their order of execution, the last step's first.
        self.backward_steps = [[bind(one, spaces) for one in step] for step in reversed(program.backward)]
        self.forward = [call for step in self.forward_steps for call in step]
        self.backward = [call for step in reversed(self.backward_steps) for call in step]
        self.values = [array(program.values[step.out]) for step in contraction.steps]
        self.adjoint_values = [
            array(view) for step in contraction.steps if (view := program.adjoints[step.out]) is not None
        ]
        self.roots = [
            (array(program.values[root]), array(view))
            for root in contraction.roots
            if (view := program.adjoints[root]) is not None
        ]

    def turn(self) -> float:
        """log Z of the rescaled roots; sets d log Z / d root = 1 / root."""
        log_partition = 0.0
        for value, adjoint in self.roots:
            partition = value[0]
            if partition == 0.0:
                return -math.inf
            adjoint[0] = 1.0 / partition
            log_partition += math.log(partition)
        return log_partition
