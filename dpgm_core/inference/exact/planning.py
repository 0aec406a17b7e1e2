"""Plan of exact inference on a structure: order, contraction and program within memory, or a refusal."""

from __future__ import annotations

from functools import cached_property, lru_cache

from attrs import frozen

from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.costs import NUMBA, NUMPY, CostModel
from dpgm_core.inference.exact.flat import flat_scratch, flatten
from dpgm_core.inference.exact.layout import LINE
from dpgm_core.inference.exact.orders import Candidate, Search, search
from dpgm_core.inference.exact.program import Program, lower
from dpgm_core.inference.exact.refusal import too_large, widest
from dpgm_core.printable import thousands
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.structure.bitgraph import places

__all__ = ["Cost", "JunctionTreePlan", "plan_along", "plan_inference"]


@frozen(kw_only=True)
class Cost:
    """Cost of one exact inference.

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
class JunctionTreePlan:
    """Plan of exact inference on a structure.

    candidate: the order. tried: how many there were. model: by what they were compared, that of what runs the plan.
    widest: the attributes of the largest cluster.
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
        """Cost of an inference."""
        contraction = self.contraction
        made = [contraction.cells(step.out) for step in contraction.steps] or [0]
        return Cost(
            treewidth=self.candidate.played.width,
            cells=sum(made),
            largest=max(made),
            multiply_adds=contraction.multiply_adds,
            peak_bytes=self.flat_bytes if self.model == NUMBA else self.numpy_bytes,
        )

    @property
    def numpy_bytes(self) -> int:
        """Bytes of one call of numpy's program besides its result."""
        return 8 * (2 * self.structure.cells + self.program.arena + self.program.ones)

    @cached_property
    def flat_bytes(self) -> int:
        """Bytes of one call of compiled kernels, with their result as in numpy's program: twice the tables."""
        return 8 * (self.structure.cells + flatten(self.contraction, self.structure, 0.0).memory)

    def fits(self, max_bytes: int) -> bool:
        """Whether an inference takes no more, also where compiled kernels hand over to numpy's program; programs are
        made only where that is close."""
        if self.most_bytes <= max_bytes:
            return True
        return self.numpy_bytes <= max_bytes and (self.model != NUMBA or self.flat_bytes <= max_bytes)

    @cached_property
    def most_bytes(self) -> int:
        """Upper bound of every program's bytes: no buffer is used twice, every operand is copied."""
        contraction = self.contraction
        most = max(contraction.sizes, default=1)
        doubles = 2 * self.structure.cells + most + flat_scratch(contraction, self.structure)
        for node in range(len(contraction.nodes)):
            doubles += 2 * (contraction.cells(node) + LINE)
        for step in contraction.steps:
            # At most three products, with three tables each; what only sums is a product with ones.
            other = most if step.right is None else contraction.cells(step.right)
            doubles += 3 * (contraction.cells(step.left) + other + contraction.cells(step.out) + 3 * LINE)
        return 8 * doubles


@lru_cache(maxsize=16)
def plan_inference(structure: Structure, max_bytes: int, model: CostModel = NUMPY) -> JunctionTreePlan:
    """The fastest plan that fits; remembered, as learners and selectors ask for the same structures again and again.

    Of numpy's model also where NUMBA is asked for, and only numpy's program fits. Raises TooLarge.

    >>> from dpgm_core.domain import Domain
    >>> plan_inference(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})), 2**20).needs.treewidth
    1
    """
    best = search(structure, model, max_bytes)
    closest: JunctionTreePlan | None = None
    for candidate in best.candidates:
        plan = plan_along(best, candidate)
        if plan.fits(max_bytes):
            return plan
        if closest is None or plan.needs.peak_bytes < closest.needs.peak_bytes:
            closest = plan
    if closest is not None and model == NUMBA:
        return plan_inference(structure, max_bytes, NUMPY)
    if closest is not None:
        played, needed = closest.candidate.played, closest.needs.peak_bytes
        what = f"{thousands(closest.needs.cells)} cells in intermediate tables"
    else:
        played = best.thriftiest
        what, needed = f"a table of {thousands(played.message)} cells", 8 * max(played.message, 2 * structure.cells)
    raise too_large(structure, best.graph, played, max_bytes, what, needed)


def plan_along(search: Search, candidate: Candidate) -> JunctionTreePlan:
    """The plan along one of the candidates."""
    names = search.structure.domain.names
    return JunctionTreePlan(
        structure=search.structure,
        contraction=search.contraction(candidate),
        candidate=candidate,
        tried=search.tried,
        model=search.pairings.model,
        widest=tuple([names[place] for place in places(widest(search.graph, candidate.played))]),
    )
