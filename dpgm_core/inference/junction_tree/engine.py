"""The junction tree engine: exact marginals and log-partition function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from attrs import field, frozen, validators

from dpgm_core._util.arrays import Array, Codes, FloatArray
from dpgm_core.components.options import option
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.errors import InferenceError, StructureError, TooLarge, clipped, human_bytes, thousands
from dpgm_core.inference.constraints import ConstrainedEngine, constrained
from dpgm_core.inference.contract import Beliefs, Capability, rows_of
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.cluster_tree import ClusterTree, TreeQueries, cluster_tree
from dpgm_core.inference.junction_tree.compiled import (
    CompiledExecutor,
    compiled_tangents,
    flat_scratch,
    flatten,
    lay_out_axes,
)
from dpgm_core.inference.junction_tree.contraction import (
    NUMBA,
    NUMPY,
    Candidate,
    Contraction,
    CostModel,
    Search,
    Step,
    list_members,
    too_large,
    widest,
)
from dpgm_core.inference.junction_tree.curvature import Curvature, Walkers, numpy_tangents
from dpgm_core.inference.junction_tree.logspace import IMPOSSIBLE, Logarithms, draw_rounded, refuse_infinite
from dpgm_core.inference.junction_tree.lowering import LINE, Program, lower
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.inference.kernels.format import REACH
from dpgm_core.inference.kernels.loading import Executor, resolve_executor
from dpgm_core.inference.threads import in_threads
from dpgm_core.structure.graphs import Clique, places
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["Explanation", "JunctionTree", "JunctionTreeEngine", "plan_inference"]


# --- The plan of a structure ----------------------------------------------------------------------


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
    """
    best = Search(structure, model, max_bytes)
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
        tried=len(search.played),
        model=search.pairings.model,
        widest=tuple([names[place] for place in places(widest(search.graph, candidate.played))]),
    )


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
    """Return the explanation of a plan that an executor runs."""
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
    operands = [set(contraction.nodes[number]) for number in step.operands]
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
        operands=tuple(tuple(contraction.order[letter] for letter in contraction.nodes[one]) for one in step.operands),
        summed=None if summed is None else contraction.order[summed],
        cells=cells(union),
        seconds=1e-9 * nanoseconds,
    )


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


# --- Potentials, checked and prepared ---------------------------------------------------------------


_FLOAT = np.dtype(np.float64)
_MILD = 30.0  # potentials within +-30 nats are exponentiated as they are; others less the maximum of their table


class Ready(NamedTuple):
    """Tables' probabilities: what writes them, bounds of their logarithms, and what they were divided by.

    fill: raises those below exp(-REACH), but zeros, to that: see `probability`. lows: before that.
    above: nats taken from each cell, None for nothing; shift: what that, and attributes in no clique, add to log Z.
    """

    fill: Callable[[FloatArray], None]
    lows: list[float]
    highs: list[float]
    zeros: bool
    shift: float
    above: FloatArray | None


class Potentials:
    """Checks and preparation of potentials for one structure and contraction; no state between calls.

    mild: tables within so many nats are exponentiated as they are. log_free: what attributes in no clique add to log Z.
    """

    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self._structure = structure
        self._starts = np.array([part.start for part in structure.slices])
        self._sizes = np.asarray(structure.sizes)
        self._multiplicities = np.asarray(structure.multiplicities, dtype=np.float64)
        # A table without letters is the constant 1, outside of the program, so it must be shifted to 0.
        self.mild = _MILD if all(contraction.nodes[: len(contraction.groups)]) else 0.0
        in_no_clique = [letter for letter, bucket in enumerate(contraction.buckets) if not bucket]
        self.log_free = math.fsum(math.log(contraction.sizes[letter]) for letter in in_no_clique)

    def fitting(self, potentials: Tables) -> FloatArray:
        """The potentials as float64; raises StructureError for another structure's."""
        if potentials.structure is not self._structure and potentials.structure != self._structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit an engine for {self._structure}")
        values = potentials.values
        return values if values.dtype is _FLOAT else values.astype(np.float64)

    def checked(self, potentials: Tables) -> tuple[FloatArray, FloatArray]:
        """The potentials as float64 and the maximum of each table.

        Raises StructureError for another structure's, and InferenceError for NaN or +inf and where a whole table is
        -inf.
        """
        theta = self.fitting(potentials)
        top = np.maximum.reduceat(theta, self._starts)
        if not np.isfinite(top).all():
            if (top == -np.inf).any() and not (np.isnan(top).any() or (top == np.inf).any()):
                raise InferenceError(IMPOSSIBLE)
            bad = next(name for name, part in potentials.items() if np.isnan(part).any() or (part == np.inf).any())
            raise InferenceError(f"inference: the potentials of {bad!r} hold NaN or +inf; they must be below infinity")
        return theta, top

    def ready(self, theta: FloatArray, top: FloatArray) -> Ready:
        """Return the executor's input for potentials of these maxima."""
        low = np.minimum.reduceat(theta, self._starts)
        zeros = not np.isfinite(low).all()
        if zeros:
            low = np.minimum.reduceat(np.where(theta == -np.inf, np.inf, theta), self._starts)
        shift, above = self.log_free, None
        if max(float(top.max()), -float(low.min())) > self.mild:
            shift += float(top @ self._multiplicities)
            above = np.repeat(top, self._sizes)
            low, top = low - top, np.zeros_like(top)

        raised = above is not None and float(low.min()) < -REACH

        def fill(out: FloatArray) -> None:
            logarithms = theta if above is None else np.subtract(theta, above, out)
            if raised:
                np.maximum(logarithms, -REACH, out=out, where=logarithms > -np.inf)
            np.exp(logarithms, out)

        return Ready(fill, low.tolist(), top.tolist(), zeros, shift, above)


# --- The engine -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class JunctionTree:
    """Exact marginals by variable elimination and its adjoint (Darwiche 2003); refuses what does not fit.

    Cost is exponential in the treewidth: the product of the sizes of the attributes of a cluster.

    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    >>> engine = JunctionTree().compile(structure)
    >>> beliefs = engine.infer(Tables.zeros(structure), total=8)
    >>> beliefs.marginals["a", "b"].tolist(), round(math.exp(beliefs.log_partition), 9)
    ([[2.0, 2.0], [2.0, 2.0]], 8.0)
    """

    max_order: ClassVar[None] = None

    max_bytes: int = field(
        default=2 * 2**30,
        validator=[validators.instance_of(int), validators.not_(validators.instance_of(bool)), validators.ge(1)],
        metadata={"help": "memory one inference may take; larger models are refused", "unit": "bytes"},
    )

    executor: Executor = option(
        "auto",
        help="what runs the plan: numpy, numba (extra `fast`), logarithms throughout, or numba if it is installed",
    )

    def compile(self, structure: Structure) -> JunctionTreeEngine | ConstrainedEngine:
        """An engine for a structure that honours the constraints of its domain; raises TooLarge before allocating."""
        return constrained(structure, self.plain) if structure.domain.scopes else self.plain(structure)

    def plain(self, structure: Structure) -> JunctionTreeEngine:
        """An engine that knows of no constraints: elimination, memory and every array call are chosen here.

        Raises TooLarge before allocating.
        """
        executor = resolve_executor(self.executor)
        plan = plan_inference(structure, self.max_bytes, NUMBA if executor == "numba" else NUMPY)
        if executor == "numba" and plan.model == NUMPY:  # all that fits
            return JunctionTreeEngine(structure, plan, self.max_bytes, "numpy")
        return JunctionTreeEngine(structure, plan, self.max_bytes, self.executor)


class JunctionTreeEngine:
    """Exact inference on one structure; no state between calls, safe to share between threads. Made by JunctionTree."""

    def __init__(self, structure: Structure, plan: JunctionTreePlan, max_bytes: int, executor: Executor) -> None:
        self._structure, self._plan, self._max_bytes, self._requested_executor = structure, plan, max_bytes, executor
        self.contraction, self.executor = plan.contraction, resolve_executor(executor)
        self._is_compiled = self.executor == "numba"
        self._potentials = Potentials(plan.contraction, structure)

    def __reduce__(self) -> tuple[Any, ...]:
        # As it was asked for: "auto" may mean another executor on the machine that it comes to.
        return JunctionTreeEngine, (self._structure, self._plan, self._max_bytes, self._requested_executor)

    @property
    def structure(self) -> Structure:
        """Structure that the engine was compiled for."""
        return self._structure

    @property
    def exact(self) -> bool:
        """True: marginals are the gradient of the log-partition, to rounding."""
        return True

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The most probable record, samples, rounded ones, second derivatives and many queries of one inference."""
        return frozenset({"curvature", "maximize", "query", "rounded", "sample"})

    @property
    def cost(self) -> str:
        """`needs` in words."""
        return str(self.needs)

    @property
    def needs(self) -> Cost:
        """Sizes of one inference, known before any is run."""
        return self._plan.needs

    def explain(self) -> Explanation:
        """Explain an inference: its elimination order, where the model is wide, and the dearest steps."""
        return explain_plan(self._plan, self.executor)

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Return expected counts of every table for `total` records, and log Z of one, as `Engine.infer` says."""
        if (total != 1.0 or total is True) and (isinstance(total, bool) or not 0 <= total < math.inf):
            raise InferenceError(f"marginals for {total!r} records: the total must be a finite number, at least 0")
        if self._is_compiled:  # a call of a small model takes 3 microseconds, a function of Python .1
            theta = potentials.values
            if potentials.structure is not self._structure or theta.dtype is not _FLOAT:
                theta = self._potentials.fitting(potentials)
            result = self._compiled(theta, total)
            if result is not None:
                return Beliefs._exact(Tables._trusted(self._structure, result[0]), result[1])
        # Also for what compiled kernels leave: potentials to be refused by name, or beyond their range.
        marginals, log_partition = self._inferred(*self._potentials.checked(potentials))
        if total != 1.0:
            marginals *= total
        return Beliefs._exact(Tables._trusted(self._structure, marginals), log_partition)

    def infer_many(self, potentials: Array, *, total: float = 1.0) -> list[Beliefs]:
        """Return what `infer` returns for each row of log-potentials (n, cells), over several cores where that pays."""
        rows = rows_of(potentials, self._structure)
        share = -(-len(rows) // _PARTS)

        def some(first: int) -> list[Beliefs]:
            return [self.infer(Tables(self._structure, row), total=total) for row in rows[first : first + share]]

        parts = in_threads(
            [partial(some, first) for first in range(0, len(rows), max(1, share))],
            seconds=1e-9 * len(rows) * self._plan.candidate.nanoseconds if self.executor == "numba" else 0.0,
        )
        return [one for part in parts for one in part]

    def _inferred(self, theta: FloatArray, top: FloatArray) -> tuple[FloatArray, float]:
        """(marginals, log Z) of one record, of potentials that were checked. Raises InferenceError."""
        with np.errstate(all="ignore"):  # infinities and underflow are judged below, by name
            ready = self._potentials.ready(theta, top)
            result = (
                None if self.executor == "log" else self._run(ready.fill, ready.lows, ready.highs, zeros=ready.zeros)
            )
            if result is None:
                result = self._logarithms.infer(theta if ready.above is None else theta - ready.above)
        marginals, log_partition = result
        log_partition += ready.shift
        refuse_infinite(log_partition)
        return marginals, log_partition

    def maximize(self, potentials: Tables) -> tuple[dict[str, int], float]:
        """Return a most probable record (attribute -> code) and its unnormalised log-probability, nats."""
        theta, _ = self._potentials.checked(potentials)
        values, best = self._logarithms.forward(theta, logspace.max_contract)
        codes = logspace.draw(self.contraction, values, 1, logspace.most_probable)
        chosen = {name: int(code[0]) for name, code in codes.items()}
        return {name: chosen.get(name, 0) for name in self._structure.domain.names}, best

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Return `count` exact, independent records: one code array per attribute of the domain, in its order."""
        values = self._log_sums(potentials, count)
        return self._columns(logspace.draw(self.contraction, values, int(count), logspace.at_random(generator)), count)

    def rounded(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Return `count` records of the model's distribution whose tables err by roundings; they are dependent."""
        values = self._log_sums(potentials, count)
        return self._columns(draw_rounded(self.contraction, values, int(count), generator), count)

    def _log_sums(self, potentials: Tables, count: object) -> list[FloatArray]:
        """Return the node logarithms that records are drawn from; refuse a number of records that is none."""
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            raise InferenceError(f"sample: the number of records must be a whole number, at least 0, got {count!r}")
        theta, _ = self._potentials.checked(potentials)
        return self._logarithms.forward(theta, logspace.log_contract)[0]

    def _columns(self, codes: Mapping[str, Array], count: int) -> Codes:
        domain = self._structure.domain
        # Attributes of one label have no letter: their code is 0.
        return [codes.get(name, np.zeros(count, dtype=code_dtype(domain[name].size))) for name in domain.names]

    def curvature(self, potentials: Tables) -> Curvature:
        """Return Cov(T) at these potentials as a linear map, for V of shape (cells,) or (cells, m)."""
        theta, top = self._potentials.checked(potentials)
        walkers, run = self._keeping
        with np.errstate(all="ignore"):
            ready = self._potentials.ready(theta, top)
            calibration = run.calibrate(ready.fill, ready.lows, ready.highs, zeros=ready.zeros)
        logarithms = partial(self._logarithms.curvature, theta)
        if calibration is None:
            known = logarithms()
            return Curvature(self._structure, walkers, None, lambda: known)
        refuse_infinite(calibration.log_partition + ready.shift)
        return Curvature(self._structure, walkers, calibration, logarithms)

    def answers(self, potentials: Tables, queries: Sequence[Clique]) -> list[FloatArray]:
        """Return p(attributes) of each query, from one inference on the clusters of the junction tree.

        Raises TooLarge, before anything is made, where a query, with what is on the way to it, takes over half of
        max_bytes, or the clusters' tables over a 64th of it for each query: `infer` never makes those, so for few
        queries they are not worth it. Messages kept for other queries take a quarter at most.
        """
        self._potentials.checked(potentials)
        tree = self._tree
        plans = [tree.plan(tuple(query), self._max_bytes // 2) for query in queries]
        needed, worth = 8 * tree.structure.cells, min(self._max_bytes, len(queries) * self._max_bytes // _QUERY_SHARE)
        if needed > worth:
            size = human_bytes(needed) if needed < 2**60 else f"{thousands(needed)} bytes"
            raise TooLarge(
                f"the clusters of the junction tree need {size} for {len(queries)} queries at once, against "
                f"{human_bytes(worth)} that max_bytes leaves them; ask one by one, or for more at once"
            )
        marginals = self._clusters.infer(potentials.embed(tree.structure)).marginals
        tree_queries = TreeQueries(tree, marginals, keep_bytes=self._max_bytes // 4)
        return [tree_queries.answer(tuple(query), plan) for query, plan in zip(queries, plans, strict=True)]

    @cached_property
    def _logarithms(self) -> Logarithms:
        return Logarithms(self.contraction, self._structure)

    @cached_property
    def _run(self) -> ProbabilityExecutor:
        return ProbabilityExecutor(self.contraction, self._plan.program, self._structure)

    @cached_property
    def _compiled(self) -> CompiledExecutor:
        return CompiledExecutor(self.contraction, self._structure, self._potentials.mild, self._potentials.log_free)

    @cached_property
    def _tree(self) -> ClusterTree:
        return cluster_tree(self._structure)

    @cached_property
    def _clusters(self) -> JunctionTreeEngine:
        """An engine whose tables are the clusters'."""
        return JunctionTree(max_bytes=self._max_bytes, executor=self.executor).plain(self._tree.structure)

    @cached_property
    def _keeping(self) -> tuple[Walkers, ProbabilityExecutor]:
        """Executors for second derivatives: one that keeps all values, and the walkers on it."""
        compiled = self.executor == "numba"
        contraction = lay_out_axes(self.contraction) if compiled else self.contraction
        program = lower(contraction, self._structure, keep=True)
        return (
            Walkers(contraction, self._structure, program, compiled_tangents if compiled else numpy_tangents),
            ProbabilityExecutor(contraction, program, self._structure),
        )


_PARTS = 8  # parts that many inferences are cut into, for threads to take
_QUERY_SHARE = 64  # a query outside the cliques is worth tables of this part of max_bytes
