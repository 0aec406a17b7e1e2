"""Explanation of a compiled engine for people: its order, its widest cluster and its most expensive steps."""

from __future__ import annotations

import math

from attrs import field, frozen

from dpgm_core.errors import clipped, human_bytes, thousands
from dpgm_core.inference.junction_tree.contraction import Contraction, CostModel, Step
from dpgm_core.inference.junction_tree.order import Cost, JunctionTreePlan, list_members

__all__ = ["Explanation", "StepCost", "explain_plan"]

_DEAREST = 5


@frozen(kw_only=True)
class StepCost:
    """One step: the sum over `summed` of the product of the tables over `operands`. cells: of the table over all their
    attributes. seconds: predicted, both ways."""

    operands: tuple[tuple[str, ...], ...]
    summed: str | None
    cells: int
    seconds: float

    def __str__(self) -> str:
        product = " * ".join(f"({list_members(operand)})" for operand in self.operands)
        what = product if self.summed is None else f"sum over {clipped(self.summed)} of {product}"
        return f"{_time(self.seconds)}  {what}, {thousands(self.cells)} cells"


@frozen(kw_only=True)
class Explanation:
    """Explanation of exact inference on a structure; its `str` is for people.

    executor: what runs the plan. heuristic: what found the elimination order; tried: how many different ones were
    compared. order: attributes as they are summed out. widest: the attributes of the largest cluster; widest_cells: the
    cells of a table over them. seconds: predicted for one inference. needs: its sizes. steps: their number. dearest: at
    most five of them.
    """

    executor: str
    heuristic: str
    tried: int
    order: tuple[str, ...] = field(repr=False)
    widest: tuple[str, ...]
    widest_cells: int
    seconds: float
    needs: Cost
    steps: int
    dearest: tuple[StepCost, ...] = field(repr=False)

    def __str__(self) -> str:
        needs = self.needs
        lines = [
            f"executor {self.executor}, {self.steps:,} steps, about {_time(self.seconds)} an inference",
            f"order: {self.heuristic}, the fastest of {self.tried} tried; treewidth {needs.treewidth}",
            f"widest cluster: {list_members(self.widest)}, {thousands(self.widest_cells)} cells",
            f"made: {thousands(needs.cells)} cells, the largest table {thousands(needs.largest)}; "
            f"{thousands(needs.multiply_adds)} multiply-adds; {human_bytes(needs.peak_bytes)}",
        ]
        if self.dearest:
            lines += ["dearest steps:", *(f"  {step}" for step in self.dearest)]
        return "\n".join(lines)


def explain_plan(plan: JunctionTreePlan, executor: str) -> Explanation:
    """Return the explanation of a plan.

    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.order import plan_inference
    >>> from dpgm_core.structure import Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("a", "b", "c")])
    >>> print(explain_plan(plan_inference(structure, 2**20), "numpy"))  # doctest: +ELLIPSIS
    executor numpy, 3 steps, about ... an inference
    order: ..., the fastest of ... tried; treewidth 2
    widest cluster: a, b, c, 24 cells
    made: ... cells, the largest table ...; ... multiply-adds; ... B
    dearest steps:
      ...
    """
    contraction = plan.contraction
    steps = [_priced(contraction, step, plan.model) for step in contraction.steps]
    return Explanation(
        executor=executor,
        heuristic=plan.candidate.heuristic,
        tried=plan.tried,
        order=contraction.order,
        widest=plan.widest,
        widest_cells=math.prod(plan.structure.domain.shape(plan.widest)),
        seconds=1e-9 * plan.candidate.nanoseconds,
        needs=plan.needs,
        steps=len(steps),
        dearest=tuple(sorted(steps, key=lambda one: -one.seconds)[:_DEAREST]),
    )


def _priced(contraction: Contraction, step: Step, model: CostModel) -> StepCost:
    numbers = [step.left] if step.right is None else [step.left, step.right]
    operands = [set(contraction.nodes[number]) for number in numbers]
    out = set(contraction.nodes[step.out])

    def cells(letters: set[int]) -> int:
        return math.prod(contraction.sizes[letter] for letter in letters)

    union = set.union(*operands)
    if len(operands) == 1:
        nanoseconds = model.sum_out(cells(union))
    else:
        p, q = operands
        nanoseconds = model.product(cells(p), cells(q), cells(out), cells(union), cells(p & q & out))
    summed = next(iter(union - out), None)  # a step sums one letter or none
    return StepCost(
        operands=tuple(tuple(contraction.order[letter] for letter in contraction.nodes[number]) for number in numbers),
        summed=None if summed is None else contraction.order[summed],
        cells=cells(union),
        seconds=1e-9 * nanoseconds,
    )


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
