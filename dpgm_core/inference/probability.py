"""Run a program on probabilities: the fast executor, with a check that it cannot have lost anything.

Why its answer can be trusted. Tables enter as exp(theta - max theta), so no cell exceeds 1 and the nonzero cells of
a table lie above exp(-range). The forward pass only multiplies and adds non-negative numbers, so rounding stays
relative, and it is exact up to rounding as long as nothing underflows. Each node carries a bound `low` on the
logarithm of its nonzero cells and `high` on that of its largest cell; both add up over products. A node that leaves
[-REACH, REACH] is measured and rescaled by its largest cell; if it then still spans more than REACH, the executor
gives up. So operands lie in [exp(-REACH), exp(REACH)] or are exactly 0, their products in exp(-+2 REACH), far from
the ends of double precision at exp(-+708): nothing nonzero becomes 0, whatever cancels later.

The backward pass starts from 1/Z, and value * adjoint of a cell is the probability of an event (at most 1). A lost
adjoint is below exp(-708), so the probability it stood for is below exp(REACH - 708): absolute errors of 1e-170. An
adjoint may overflow only where the value is exactly 0; then 0 * inf or inf reaches a marginal, which is not finite,
is seen, and the executor gives up. Giving up means None, and the caller takes the logarithmic executor.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpgm_core.inference.plan import Plan
from dpgm_core.inference.program import Instruction, Program, View
from dpgm_core.structure import Structure
from dpgm_core.tables import Array, FloatArray

__all__ = ["ProbabilityExecutor"]

REACH = 300.0
_POOLED_CELLS = 2**22  # workspaces above 32 MiB are not kept between calls

_Call = tuple[Callable[..., Any], tuple[Array, ...]]


class ProbabilityExecutor:
    """Marginals and log Z from scaled probabilities; safe to call from several threads.

    Each call takes a workspace for itself: the buffers with all views of the program made once. Workspaces are
    reused, so that a call allocates nothing but its result.
    """

    def __init__(self, plan: Plan, program: Program, structure: Structure) -> None:
        self._plan = plan
        self._program = program
        self._structure = structure
        self._log_growth = sum(map(math.log, plan.sizes))
        self._steps = [(step.left, step.right, step.out) for step in plan.steps]
        self._shrinks = [
            math.log(max(1.0, math.prod(plan.sizes[letter] for letter in summed)))
            for summed in (
                {letter for node in (left, right) if node is not None for letter in plan.nodes[node]}
                - set(plan.nodes[out])
                for left, right, out in self._steps
            )
        ]
        self._pool: list[_Workspace] = []
        self._lock = threading.Lock()

    def __call__(self, scaled: Callable[[FloatArray], object], lows: list[float]) -> tuple[FloatArray, float] | None:
        """(marginals of one record, log Z) of the tables that `scaled` writes, or None when double precision may
        not do; log Z is -inf when every record has probability 0 (the marginals then mean nothing).

        scaled: writes exp(theta - max theta) into the buffer it is given. lows: per group, a lower bound on the
        logarithm of its nonzero cells. The caller silences floating-point warnings: overflow is looked for here.
        """
        plan = self._plan
        with self._workspace() as work:
            scaled(work.potentials)
            low = sum(lows[group] for group in plan.groups)
            if low >= -2 * REACH and self._log_growth <= REACH:
                for function, arguments in work.forward:
                    function(*arguments)
                log_partition = work.turn()
                if log_partition > -math.inf:
                    for function, arguments in work.backward:
                        function(*arguments)
            else:
                measured = self._guarded(work, lows)
                if measured is None:
                    return None
                log_partition = measured
            if log_partition == -math.inf:
                return work.potentials.copy(), log_partition
            marginals = work.potentials * work.adjoints
        # A sum is finite only if each of its terms is.
        return (marginals, log_partition) if math.isfinite(float(marginals.sum())) else None

    def _guarded(self, work: _Workspace, lows: list[float]) -> float | None:
        plan = self._plan
        low = [lows[group] for group in plan.groups] + [0.0] * len(plan.steps)
        high = [0.0] * len(low)
        if min(low) < -REACH:
            return None
        scales = [1.0] * len(plan.steps)
        log_scale = 0.0
        for number, (left, right, out) in enumerate(self._steps):
            for function, arguments in work.forward_steps[number]:
                function(*arguments)
            low[out] = low[left] if right is None else low[left] + low[right]
            high[out] = (high[left] if right is None else high[left] + high[right]) + self._shrinks[number]
            if low[out] < -REACH or high[out] > REACH:
                value = work.values[number]
                largest = float(value.max())
                if largest == 0.0:
                    return -math.inf
                value /= largest
                smallest = float(value.min())
                if smallest == 0.0:
                    smallest = float(value[value > 0].min())
                low[out], high[out] = math.log(smallest), 0.0
                if low[out] < -REACH:
                    return None
                scales[number] = largest
                log_scale += math.log(largest)
        log_partition = work.turn()
        if log_partition == -math.inf:
            return log_partition
        for number in range(len(scales) - 1, -1, -1):
            if scales[number] != 1.0:
                adjoint = work.adjoint_values[number]
                adjoint /= scales[number]
            for function, arguments in work.backward_steps[number]:
                function(*arguments)
        return log_partition + log_scale

    @contextmanager
    def _workspace(self) -> Iterator[_Workspace]:
        with self._lock:
            work = self._pool.pop() if self._pool else None
        if work is None:
            work = _Workspace(self._plan, self._program, self._structure)
        yield work
        if self._structure.cells + self._program.arena <= _POOLED_CELLS:
            with self._lock:
                self._pool.append(work)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProbabilityExecutor, (self._plan, self._program, self._structure)


class _Workspace:
    """The buffers of one call, and the program's calls bound to views of them."""

    def __init__(self, plan: Plan, program: Program, structure: Structure) -> None:
        self.potentials = np.empty(structure.cells)
        # Tables without letters are never written by the program: each of their cliques has probability 1.
        self.adjoints = np.repeat(np.asarray(structure.multiplicities, dtype=np.float64), structure.sizes)
        spaces = {
            "potentials": self.potentials,
            "adjoints": self.adjoints,
            "arena": np.empty(program.arena),
            "ones": np.ones(program.ones),
        }

        def array(view: View) -> FloatArray:
            flat = spaces[view.space][view.start : view.start + math.prod(view.shape)]
            return flat.reshape(view.shape).transpose(view.axes)

        def bind(instruction: Instruction) -> _Call:
            out, inputs = array(instruction.out), tuple(map(array, instruction.inputs))
            if instruction.call == "copy":
                return np.copyto, (out, *inputs)
            if instruction.call == "add":
                return np.add, (out, *inputs, out)
            return (np.multiply if instruction.call == "multiply" else np.matmul), (*inputs, out)

        self.forward_steps = [list(map(bind, step)) for step in program.forward]
        # The program holds the backward steps in their order of execution, the last step's first.
        self.backward_steps = [list(map(bind, step)) for step in reversed(program.backward)]
        self.forward = [call for step in self.forward_steps for call in step]
        self.backward = [call for step in reversed(self.backward_steps) for call in step]
        self.values = [array(program.values[step.out]) for step in plan.steps]
        self.adjoint_values = [array(view) for step in plan.steps if (view := program.adjoints[step.out]) is not None]
        self.roots = [
            (array(program.values[root]), array(view))
            for root in plan.roots
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
