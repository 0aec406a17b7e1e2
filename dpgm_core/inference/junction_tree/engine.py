"""The junction tree engine: exact marginals and log-partition function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen, validators

from dpgm_core._util.arrays import Array, Codes, FloatArray
from dpgm_core.components.options import option
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.errors import InferenceError, TooLarge, human_bytes, thousands
from dpgm_core.inference.batching import in_threads, rows_of
from dpgm_core.inference.constraints import ConstrainedEngine, constrained
from dpgm_core.inference.contract import Beliefs, Capability
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.cluster_tree import ClusterTree, cluster_tree
from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY, Contraction
from dpgm_core.inference.junction_tree.curvature import Curvature, Walkers
from dpgm_core.inference.junction_tree.explain import Explanation, explain_plan
from dpgm_core.inference.junction_tree.flat import FlatProgram, flatten
from dpgm_core.inference.junction_tree.logspace import Logarithms, Potentials, refuse_infinite
from dpgm_core.inference.junction_tree.loops import lay_out_axes
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_core.inference.junction_tree.order import Cost, JunctionTreePlan, plan_inference
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.inference.junction_tree.queries import TreeQueries
from dpgm_core.inference.junction_tree.rounded_sampling import draw_rounded
from dpgm_core.inference.junction_tree.tangents import compiled_tangents, numpy_tangents
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.loading import Executor, check_executor, kernels, resolve_executor
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["CompiledExecutor", "Cost", "JunctionTree", "JunctionTreeEngine"]


# --- The compiled executor ------------------------------------------------------------------------

_FINE = layout.FINE
_empty = np.empty  # small models wait for each name that is looked up
_POOLED = 2**22  # memories above 32 MiB are not kept between calls


class CompiledExecutor:
    """Marginals and log Z from scaled probabilities; safe to call from several threads, which need not wait.

    Each call takes a memory for itself; those are used again, so that a call allocates nothing but its result.
    """

    def __init__(self, contraction: Contraction, structure: Structure, mild: float, log_free: float) -> None:
        self._given = (contraction, structure, mild, log_free)
        self._log_free = log_free
        self._program: FlatProgram = flatten(contraction, structure, mild)
        self._plan, self._logs, self._cells = self._program.plan, self._program.logs, structure.cells
        self._keeps = self._program.memory <= _POOLED
        self._pool: list[FloatArray] = []  # taken from and given back in one step each, so no lock is needed
        self._infer = kernels("contractions").infer

    def __call__(self, theta: FloatArray, total: float) -> tuple[FloatArray, float] | None:
        """(marginals of `total` records, log Z of one), None where it cannot say.

        theta: (cells,), nats. None: potentials that must be refused, or that double precision may not do.
        """
        try:
            memory = self._pool.pop()
        except IndexError:
            memory = self._new()
        marginals = _empty(self._cells)
        status, log_partition = self._infer(theta, marginals, memory, self._plan, self._logs, total)
        if self._keeps:
            self._pool.append(memory)
        return (marginals, log_partition + self._log_free) if status == _FINE else None

    def _new(self) -> FloatArray:
        memory = np.empty(self._program.memory)
        memory[slice(*self._program.ones)] = 1.0
        return memory

    @cached_property
    def bytes(self) -> int:
        """Memory of one call besides its result."""
        return 8 * self._program.memory

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledExecutor, self._given


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
        validator=check_executor,
    )

    def compile(self, structure: Structure) -> JunctionTreeEngine | ConstrainedEngine:
        """An engine for a structure that honours the constraints of its domain; raises TooLarge before allocating."""
        return constrained(structure, self.plain)

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
        self._potentials = Potentials(plan.contraction, structure)
        self._logarithms = Logarithms(plan.contraction, structure)

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
        """Explain an inference: its elimination order, where the model is wide, and the dearest steps.

        >>> from dpgm_core.domain.domain import Domain
        >>> engine = JunctionTree().compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 4})))
        >>> engine.explain().widest, str(engine.explain()).splitlines()[2]
        (('b', 'c'), 'widest cluster: b, c, 12 cells')
        """
        return explain_plan(self._plan, self.executor)

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Expected counts of every table for `total` records, and log Z of one.

        potentials: log-potentials, nats; -inf is legal. Raises InferenceError for NaN or +inf, and when every record
        has probability 0.
        """
        if isinstance(total, bool) or not 0 <= total < math.inf:
            raise InferenceError(f"marginals for {total!r} records: the total must be a finite number, at least 0")
        if self.executor == "numba":
            result = self._compiled(self._potentials.fitting(potentials), total)
            if result is not None and math.isfinite(result[1]):
                return Beliefs(marginals=Tables._trusted(self._structure, result[0]), log_partition=result[1])
        # Also for what compiled kernels leave: potentials to be refused by name, or beyond their range.
        marginals, log_partition = self._inferred(*self._potentials.checked(potentials))
        if total != 1.0:
            marginals *= total
        return Beliefs(marginals=Tables._trusted(self._structure, marginals), log_partition=log_partition)

    def infer_many(self, potentials: Array, *, total: float = 1.0) -> list[Beliefs]:
        """Return what `infer` returns for each row of log-potentials (n, cells), over several cores where that pays.

        Raises what `infer` raises, and StructureError for rows of another length.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> [round(one.log_partition, 3) for one in JunctionTree().compile(structure).infer_many(np.zeros((2, 2)))]
        [0.693, 0.693]
        """
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
        """A most probable record (attribute -> code) and its unnormalised log-probability, nats.

        Raises InferenceError as `infer` does.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> JunctionTree().compile(structure).maximize(Tables(structure, np.array([0.0, 3.0, 2.0, 1.0])))
        ({'a': 0, 'b': 1}, 3.0)
        """
        theta, _ = self._potentials.checked(potentials)
        values, best = self._logarithms.forward(theta, logspace.max_contract)
        codes = logspace.draw(self.contraction, values, 1, logspace.most_probable)
        chosen = {name: int(code[0]) for name, code in codes.items()}
        return {name: chosen.get(name, 0) for name in self._structure.domain.names}, best

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` exact, independent records: one code array per attribute of the domain, in its order.

        Raises InferenceError as `infer` does.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> theta = Tables(structure, np.array([-np.inf, -np.inf, 0.0, -np.inf]))
        >>> [column.tolist() for column in JunctionTree().compile(structure).sample(theta, 3, np.random.default_rng(0))]
        [[1, 1, 1], [0, 0, 0]]
        """
        values = self._log_sums(potentials, count)
        return self._columns(logspace.draw(self.contraction, values, int(count), logspace.at_random(generator)), count)

    def rounded(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` records whose tables are the expected ones up to roundings, see `rounded_sampling`.

        Each record has the model's distribution; they are not independent. Raises InferenceError as `infer` does.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> theta = Tables(structure, np.log([0.3, 0.7]))
        >>> int(JunctionTree().compile(structure).rounded(theta, 1000, np.random.default_rng(0))[0].sum())
        700
        """
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
        """Cov(T) at these potentials as a linear map: `curvature(theta)(V)` for V of shape (cells,) or (cells, m).

        Raises InferenceError as `infer` does.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> JunctionTree().compile(structure).curvature(Tables.zeros(structure))(np.eye(2)).tolist()
        [[0.25, -0.25], [-0.25, 0.25]]
        """
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
        """p(attributes) of each query, from one inference on the clusters of the junction tree.

        Raises InferenceError as `infer` does, and TooLarge, before anything is made, where a query, with what is on the
        way to it, takes over half of max_bytes, or the clusters' tables over a 64th of it for each query: `infer` never
        makes those, so for few queries they are not worth it. Messages kept for other queries take a quarter at most.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
        >>> [table.shape for table in JunctionTree().compile(structure).answers(Tables.zeros(structure), ["ca", "abc"])]
        [(2, 2), (2, 2, 2)]
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
