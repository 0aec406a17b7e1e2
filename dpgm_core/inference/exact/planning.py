"""The plan of exact inference on a structure: order, contraction and program, within memory; or why there is none."""

from __future__ import annotations

from functools import cached_property, lru_cache

from attrs import frozen

from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.costs import NUMPY, CostModel
from dpgm_core.inference.exact.layout import LINE
from dpgm_core.inference.exact.orders import Candidate, Search, search
from dpgm_core.inference.exact.program import Program, lower
from dpgm_core.inference.exact.refusal import too_large, widest
from dpgm_core.printable import thousands
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.structure.bitgraph import places

__all__ = ["Cost", "Plan", "plan_along", "planned"]


@frozen(kw_only=True)
class Cost:
    """What one exact inference takes.

    treewidth: attributes in the largest cluster, less one. cells: cells of all tables made on the way. largest: cells
    of the largest one. multiply_adds: of one call. peak_bytes: memory of one call besides its result.
    """

    treewidth: int
    cells: int
    largest: int
    multiply_adds: int
    peak_bytes: int

    def __str__(self) -> str:
        return (
            f"treewidth {self.treewidth}, {self.cells:,} cells in intermediate tables (largest {self.largest:,}), "
            f"{self.multiply_adds:,} multiply-adds and {human_bytes(self.peak_bytes)} per inference"
        )


@frozen(kw_only=True, eq=False, slots=False)
class Plan:
    """How inference on a structure is done.

    candidate: the order. tried: how many there were. model: by what they were compared. widest: the attributes of the
    largest cluster.
    """

    structure: Structure
    contraction: Contraction
    candidate: Candidate
    tried: int
    model: CostModel
    widest: tuple[str, ...]

    @cached_property
    def program(self) -> Program:
        """The contraction as numpy calls. Made when it is asked for: compiled kernels have a program of their own."""
        return lower(self.contraction, self.structure)

    @cached_property
    def needs(self) -> Cost:
        """What an inference takes."""
        contraction, program = self.contraction, self.program
        made = [contraction.cells(step.out) for step in contraction.steps] or [0]
        return Cost(
            treewidth=self.candidate.played.width,
            cells=sum(made),
            largest=max(made),
            multiply_adds=contraction.multiply_adds,
            peak_bytes=8 * (2 * self.structure.cells + program.arena + program.ones),
        )

    def fits(self, max_bytes: int) -> bool:
        """Whether an inference takes no more; the program is made only where that is close."""
        return self.most_bytes <= max_bytes or self.needs.peak_bytes <= max_bytes

    @cached_property
    def most_bytes(self) -> int:
        """What every program along the contraction stays below: no buffer is used twice, every operand is copied."""
        contraction = self.contraction
        doubles = 2 * self.structure.cells + max(contraction.sizes, default=1)
        for node in range(len(contraction.nodes)):
            doubles += 2 * (contraction.cells(node) + LINE)
        for step in contraction.steps:
            if step.right is not None:  # three products, with three tables each
                tables = (step.left, step.right, step.out)
                doubles += 3 * sum([contraction.cells(node) + LINE for node in tables])
        return 8 * doubles


@lru_cache(maxsize=16)
def planned(structure: Structure, max_bytes: int, model: CostModel = NUMPY) -> Plan:
    """The fastest plan that fits; remembered, as learners and selectors ask for the same structures again and again.

    Raises TooLarge.

    >>> from dpgm_core.domain import Domain
    >>> planned(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})), 2**20).needs.treewidth
    1
    """
    found = search(structure, model, max_bytes)
    closest: Plan | None = None
    for candidate in found.candidates:
        plan = plan_along(found, candidate)
        if plan.fits(max_bytes):
            return plan
        if closest is None or plan.needs.peak_bytes < closest.needs.peak_bytes:
            closest = plan
    if closest is not None:
        played, needed = closest.candidate.played, closest.needs.peak_bytes
        what = f"{thousands(closest.needs.cells)} cells in intermediate tables"
    else:
        played = found.thriftiest
        what, needed = f"a table of {thousands(played.message)} cells", 8 * max(played.message, 2 * structure.cells)
    raise too_large(structure, found.graph, played, max_bytes, what, needed)


def plan_along(found: Search, candidate: Candidate) -> Plan:
    """The plan along one of the candidates."""
    names = found.structure.domain.names
    return Plan(
        structure=found.structure,
        contraction=found.contraction(candidate),
        candidate=candidate,
        tried=found.tried,
        model=found.pairings.model,
        widest=tuple([names[place] for place in places(widest(found.graph, candidate.played))]),
    )
