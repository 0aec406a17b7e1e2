"""Tree-reweighted belief propagation: a convex upper bound on log Z, and the marginals that are its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from attrs import frozen

from dpgm_core import (
    Beliefs,
    Capability,
    FloatArray,
    InferenceError,
    NotConverged,
    Structure,
    Tables,
    TooLarge,
    at_least_zero,
    flag,
    option,
    share,
    whole,
)
from dpgm_trw.plan import Plan, compile_plan

__all__ = ["TrwBP", "TrwEngine"]

# Bytes at the peak of compiling and of a call: per pair of attributes (Laplacian, its inverse) and per cell.
BYTES_PER_PAIR = 40
BYTES_PER_CELL = 120


@frozen(kw_only=True)
class TrwBP:
    """Sum-product on all spanning trees at once, each edge weighted by how likely it is in a uniform one.

    log_partition bounds log Z from above and is convex in the potentials; the marginals are its gradient, agree on
    attributes, and are those of the model where the graph is a forest. Pairs and single attributes only. Source:
    Wainwright, Jaakkola, Willsky 2005, "A new class of upper bounds on the log partition function".

    Raises OptionError for an option out of range; `compile` raises StructureError and TooLarge.

    >>> from dpgm_core import Domain
    >>> loop = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    >>> beliefs = TrwBP().compile(loop).infer(Tables.zeros(loop), total=8)
    >>> beliefs.marginals["a", "b"].round(6).tolist(), round(float(np.exp(beliefs.log_partition)), 6)
    ([[2.0, 2.0], [2.0, 2.0]], 8.0)
    """

    max_order: ClassVar[int] = 2  # pairs only

    damping: float = option(
        0.2, help="weight of the old log-message in the new one; 0 sends the new one as it is", validator=share
    )
    tolerance: float = option(
        1e-8,
        help="converged when the marginals of neighbours differ by no more",
        unit="probability",
        validator=at_least_zero,
    )
    max_iterations: int = option(2000, help="sweeps before giving up", unit="sweeps", validator=whole)
    require_convergence: bool = option(
        False, help="raise NotConverged instead of returning beliefs marked as not converged", validator=flag
    )
    max_bytes: int = option(2**31, help="refuse structures that would take more", unit="bytes", validator=whole)

    def compile(self, structure: Structure) -> TrwEngine:
        """Index arrays and edge probabilities; StructureError for larger cliques, TooLarge for too many attributes."""
        attributes, used = len(structure.domain), sum(structure.domain.sizes.values())
        used += sum(cells * m for cells, m in zip(structure.sizes, structure.multiplicities, strict=True))
        need = BYTES_PER_PAIR * attributes**2 + BYTES_PER_CELL * used
        if need > self.max_bytes:
            raise TooLarge(
                f"trw-bp on {attributes:,} attributes and {used:,} cells needs about {need / 2**20:,.0f} MiB, above "
                f"max_bytes = {self.max_bytes / 2**20:,.0f} MiB; use loopy-bp or raise the limit"
            )
        return TrwEngine(structure=structure, options=self, plan=compile_plan(structure))


@frozen(kw_only=True, eq=False)
class TrwEngine:
    """Tree-reweighted belief propagation compiled for one structure; keeps no state between calls."""

    structure: Structure
    options: TrwBP
    plan: Plan

    @property
    def exact(self) -> bool:
        """Whether the graph is a forest."""
        return self.plan.forest

    @property
    def capabilities(self) -> frozenset[Capability]:
        """None."""
        return frozenset()

    @property
    def cost(self) -> None:
        """It does not say."""
        return None

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Pseudo-marginals, and an upper bound on log Z: up to `tolerance` when converged, with certainty when not.

        potentials: nats, -inf allowed. total: records the marginals sum to. Raises InferenceError for NaN and +inf, and
        when the messages find every record impossible; NotConverged if that is asked for.
        """
        plan, options = self.plan, self.options
        if potentials.structure is not self.structure and potentials.structure != self.structure:
            raise InferenceError(f"trw-bp compiled for {self.structure} got potentials over {potentials.structure}")
        if isinstance(total, bool) or not 0 <= total < math.inf:
            raise InferenceError(f"trw-bp: total must be a finite number of records, at least 0, got {total!r}")
        values = potentials.values.astype(np.float64, copy=False)
        if not (values < np.inf).all():
            raise InferenceError("trw-bp: the potentials hold NaN or +inf; they must be finite or -inf")
        run = _Run(plan, np.bincount(plan.target, weights=values[plan.source], minlength=plan.cells).astype(np.float64))
        if plan.forest:
            run.propagate()
        else:
            run.iterate(options.damping, options.tolerance, options.max_iterations)
        converged = plan.forest or run.mismatch <= options.tolerance
        if not converged and options.require_convergence:
            raise NotConverged(
                f"trw-bp: not converged after {run.sweeps} sweeps, neighbours' marginals still differ by "
                f"{run.mismatch:.1e} (tolerance {options.tolerance:.1e}); raise damping or max_iterations"
            )
        beliefs, bound, slack = run.result()
        marginals = np.bincount(plan.source, weights=beliefs[plan.target], minlength=values.size)
        return Beliefs(
            marginals=Tables(self.structure, marginals * total),
            log_partition=bound if converged else bound + slack,
            converged=converged,
            iterations=run.sweeps,
        )


class _Run:
    """The messages of one call, as logarithms: log M_ts in the paper's (39), one entry per label of the receiver."""

    def __init__(self, plan: Plan, theta: FloatArray) -> None:
        self.plan = plan
        self.nodes, self.constant = theta[: plan.nodes], float(theta[-1])
        # theta_st / rho_st
        self.tables = [theta[one.cells].reshape(one.shape) / one.probability[:, None, None] for one in plan.edges]
        self.messages = np.zeros(plan.cell_of.size)
        self.sweeps, self.mismatch = 0, math.inf

    def propagate(self) -> None:
        """On a forest: sweep until nothing changes any more, which is once news has travelled the longest path.

        It has after as many sweeps as there are edges; what changes then are last digits, to and fro for ever.
        """
        longest = sum(one.shape[0] for one in self.plan.edges)
        settled = False
        while not settled and self.sweeps <= longest:
            fresh, self.mismatch = self._sweep()
            settled, self.messages = np.array_equal(fresh, self.messages), fresh
            self.sweeps += 1

    def iterate(self, damping: float, tolerance: float, limit: int) -> None:
        """Damped sweeps until neighbours agree or the limit is reached."""
        while self.mismatch > tolerance and self.sweeps < limit:
            fresh, self.mismatch = self._sweep()
            # A label found impossible stays so: -inf is never averaged away.
            self.messages = (1 - damping) * fresh + damping * self.messages if damping else fresh
            self.sweeps += 1

    def _beliefs(self) -> tuple[FloatArray, FloatArray]:
        """log b_s = theta_s + sum_v rho_vs log M_vs, per attribute cell; and, per message entry, log b_s - log M_ts."""
        plan = self.plan
        single = self.nodes + np.bincount(plan.cell_of, weights=plan.rho * self.messages, minlength=plan.nodes)
        about = single[plan.cell_of]
        # What M_ts excludes is excluded by the edge's own table as well: no division of 0 by 0.
        return single, np.where(np.isneginf(about), -np.inf, about - np.maximum(self.messages, -1e300))

    def _towards(self, others: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Per shape of edges and per end: the slice of its messages, the new ones, (edges, labels), and the logs of the
        margins that the edges' beliefs have at this end.
        """
        for one, table in zip(self.plan.edges, self.tables, strict=True):
            first, second = one.ends
            for own, other, axis in ((first, second, 2), (second, first, 1)):
                # log M_ts(x_s) = log sum_{x_t} exp(theta_st / rho_st + log b_t - log M_st)
                sent = others[other].reshape(one.shape[0], -1)
                message = _log_sum(table + np.expand_dims(sent, 3 - axis), axis)
                # summed over x_t, the edge's belief is b_s M_ts(new) / M_ts(old)
                margin = others[own].reshape(message.shape) + message
                log_sums = _log_sum(margin, 1)[:, None]
                if np.isneginf(log_sums).any():
                    raise _contradiction()
                yield own, message, margin - log_sums

    def _sweep(self) -> tuple[FloatArray, float]:
        """New messages, largest entry 0, and by how much the margins of the edges differ from their ends' beliefs."""
        single, others = self._beliefs()
        belief = _normalised(self.plan, single)[0][self.plan.cell_of]
        fresh = np.empty_like(self.messages)
        mismatch = 0.0
        for own, message, log_margin in self._towards(others):
            fresh[own] = (message - message.max(axis=1, keepdims=True)).reshape(-1)
            mismatch = max(mismatch, float(np.abs(np.exp(log_margin).reshape(-1) - belief[own]).max()))
        return fresh, mismatch

    def result(self) -> tuple[FloatArray, float, float]:
        """(cells,) beliefs, the bound, and the slack that makes it certain for any messages.

        Any messages reparametrise: theta(x) = sum_s c_s log b_s + sum_st rho_st log b_st, c_s = 1 - sum_t rho_st, so
        log Z <= sum_T rho(T) log Z_T, where Z_T is of prod_s b_s prod_{st in T} b_st / (b_s b_t). With beliefs
        normalised, eliminating leaf by leaf gives log Z_T <= sum_{st in T} max log(margin of b_st / b_s), which is 0
        where neighbours agree.
        """
        plan = self.plan
        single, others = self._beliefs()
        belief, log_sums = _normalised(plan, single)
        bound = self.constant + float(plan.over @ log_sums)
        log_belief = single - np.repeat(log_sums, np.diff(plan.starts, append=plan.nodes))
        worst = [np.zeros((one.shape[0], 1)) for one in plan.edges]
        for number, (own, _, log_margin) in enumerate(self._towards(others)):
            about = log_belief[plan.cell_of[own]].reshape(log_margin.shape)
            excess = np.where(np.isneginf(about), 0.0, log_margin - np.maximum(about, -1e300))
            worst[number // 2] = np.maximum(worst[number // 2], excess.max(axis=1, keepdims=True))
        slack = sum(float(one.probability @ most[:, 0]) for one, most in zip(plan.edges, worst, strict=True))
        cells = np.ones(plan.cells)
        cells[: plan.nodes] = belief
        for one, table in zip(plan.edges, self.tables, strict=True):
            count, j, k = one.shape
            joint = table + others[one.ends[0]].reshape(count, j, 1) + others[one.ends[1]].reshape(count, 1, k)
            log_joint = _log_sum(joint.reshape(count, -1), 1)
            bound += float(one.probability @ log_joint)
            cells[one.cells] = np.exp(joint - log_joint[:, None, None]).reshape(-1)
        return cells, bound, slack


def _normalised(plan: Plan, single: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities of each attribute's labels, and the log sums they were divided by."""
    sizes = np.diff(plan.starts, append=plan.nodes)
    top = np.maximum.reduceat(single, plan.starts)
    if np.isneginf(top).any():
        raise _contradiction()
    weights = np.exp(single - np.repeat(top, sizes))
    sums = np.add.reduceat(weights, plan.starts)
    return weights / np.repeat(sums, sizes), np.log(sums) + top


def _log_sum(logs: FloatArray, axis: int) -> FloatArray:
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + top.squeeze(axis))


def _contradiction() -> InferenceError:
    return InferenceError(
        "trw-bp: every record has probability 0, because the zeros (potentials of -inf) contradict each other; check "
        "the evidence and the zeros of the model"
    )
