"""Inference under constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import Array, Codes, FloatArray, aligned
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Derived
from dpgm_core.errors import DomainError, InferenceError, OptionError, StructureError, TooLarge
from dpgm_core.inference.contract import (
    Batched,
    Beliefs,
    Bounder,
    Capability,
    Engine,
    Estimates,
    Estimator,
    Explainer,
    Inference,
    LogPartitionBounds,
    Maximizer,
    Querier,
    Rounder,
    Sampler,
    SecondOrder,
    rows_of,
)
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["ConstrainedEngine", "check_constraints", "constrained", "engine_name"]


# --- Engines over constrained domains -------------------------------------------------------------
# The inner engine is compiled over the requested cliques and one for each constraint that none of them contains. A
# column that is a function of another one, and that no requested clique joins with others, gets no table: it is read
# off the other one.

_E = TypeVar("_E", bound=Engine)


def constrained(structure: Structure, compiled: Callable[[Structure], _E]) -> _E | ConstrainedEngine:
    """Return an engine that honours the domain's constraints; without constraints just `compiled(structure)`.

    Parameters
    ----------
    compiled : callable
        Returns an engine of any structure, as `Inference.compile` would without constraints.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.loopy.bp import LoopyBP
    >>> rules = {"x": {"columns": ["a", "b"], "order": "<="}}
    >>> binary = {name: {"size": 2, "unknown": 0} for name in "ab"}
    >>> domain = Domain.from_dict({"attributes": binary, "constraints": rules})
    >>> structure = Structure(domain, [("a",), ("b",)])
    >>> LoopyBP().compile(structure).infer(Tables.zeros(structure), total=3).marginals["a"].round(6).tolist()
    [2.0, 1.0]
    """
    if not structure.domain.scopes:
        return compiled(structure)
    inner = compiled(structure.narrowed)
    return (_SecondOrder if isinstance(inner, SecondOrder) else ConstrainedEngine)(structure, inner)


def engine_name(engine: Engine) -> str:
    """Return the name of an engine for messages: its class, or that of the engine inside a `ConstrainedEngine`.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.loopy.bp import LoopyBP
    >>> engine_name(LoopyBP().compile(Structure(Domain.from_sizes({"a": 2}), [("a",)])))
    'LoopyEngine'
    """
    return type(engine._inner if isinstance(engine, ConstrainedEngine) else engine).__name__


def check_constraints(domain: Domain, inference: Inference | None, exact: Inference) -> None:
    """Refuse, before a charge, constraints that rule out every record, and an engine that ignores constraints.

    inference: None where nothing is learned. exact: the engine that decides whether a record is possible; where it does
    not fit, that is not checked. Raises DomainError, and OptionError that names the engine.
    """
    if not domain.scopes:
        return
    rules = Structure(domain, domain.scopes)
    names = ", ".join(repr(one.name) for one in domain.constraints)
    try:
        exact.compile(rules).infer(Tables.zeros(rules))
    except TooLarge:
        pass
    except InferenceError as error:
        raise DomainError(
            f"constraints {names} leave no record possible together, though each does alone; change one of them"
        ) from error
    if inference is None:
        return
    small = domain.subset(min(domain.scopes, key=lambda scope: math.prod(domain.shape(scope))))
    if "constraints" not in inference.compile(Structure(small, [small.names[:1]])).capabilities:
        raise OptionError(
            f"inference {type(inference).__name__} ignores constraints, and the domain has {names}; use junction-tree "
            "or loopy-bp, or leave the constraints out"
        )


class ConstrainedEngine:
    """Engine over a constrained domain, around an engine that has a clique for each constraint.

    It can do what the inner engine can; marginals are those of the requested cliques.

    Parameters
    ----------
    structure : Structure
        The requested cliques.
    inner : Engine
        Compiled for `structure.narrowed`.
    """

    def __init__(self, structure: Structure, inner: Engine) -> None:
        self._structure, self._inner = structure, inner
        self._wide = inner.structure
        self._derived = structure.derived
        self._lift = None if self._wide is structure else _lift(structure, self._wide, self._derived)
        self._lift_back = None if self._lift is None else self._lift.T.tocsr()  # .T makes a matrix each time
        self._log_free = float(sum(np.log(structure.domain[one.column].size) for one in self._derived))
        self._ruled = _ruled(structure.domain, self._wide, {one.column for one in self._derived})

    @property
    def structure(self) -> Structure:
        """The requested cliques."""
        return self._structure

    @property
    def exact(self) -> bool:
        """Whether the inner engine is exact."""
        return self._inner.exact

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Capabilities of the inner engine, and "constraints"."""
        return self._inner.capabilities | {"constraints"}

    @property
    def cost(self) -> str | None:
        """Cost of the inner engine."""
        return self._inner.cost

    def explain(self) -> object:
        """Return the inner engine's explanation, which includes the cliques of constraints."""
        if not isinstance(self._inner, Explainer):
            raise self._cannot("say what an inference will do")
        return self._inner.explain()

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Infer over the possible records; raise InferenceError, too, where none is left."""
        return self._narrowed(self._inner.infer(self._embedded(potentials), total=total))

    def infer_many(self, potentials: Array, *, total: float = 1.0) -> list[Beliefs]:
        """Return what `infer` returns for each row of log-potentials (n, cells), nats; together where the inner engine
        can.

        Raises what `infer` raises, and StructureError for rows of another length.
        """
        rows = rows_of(potentials, self._structure)
        wide = [self._embedded(Tables(self._structure, row)) for row in rows]
        if wide and isinstance(self._inner, Batched):
            beliefs = self._inner.infer_many(np.array([one.values for one in wide]), total=total)
        else:
            beliefs = [self._inner.infer(one, total=total) for one in wide]
        return [self._narrowed(one) for one in beliefs]

    def _narrowed(self, beliefs: Beliefs) -> Beliefs:
        """Return beliefs of the requested cliques from those of the inner engine."""
        if self._lift_back is None and not self._derived:
            return beliefs
        return evolve(
            beliefs,
            marginals=self._own(beliefs.marginals),
            errors=None if beliefs.errors is None else self._own(beliefs.errors),  # of sums at most theirs
            log_partition=beliefs.log_partition - self._log_free,
        )

    def bounds(self, potentials: Tables) -> LogPartitionBounds:
        """Bound log Z over the possible records."""
        if not isinstance(self._inner, Bounder):
            raise self._cannot("bound log Z", "loopy-bp")
        bounds = self._inner.bounds(self._embedded(potentials))
        # Outwards by a unit in the last place of either number, which the difference is rounded to.
        slack = np.spacing(max(abs(bounds.high), abs(self._log_free)))
        return evolve(bounds, low=bounds.low - self._log_free - slack, high=bounds.high - self._log_free + slack)

    def maximize(self, potentials: Tables) -> tuple[dict[str, int], float]:
        """Return a most probable record among the possible ones."""
        if not isinstance(self._inner, Maximizer):
            raise self._cannot("maximise")
        record, best = self._inner.maximize(self._embedded(potentials))
        for one in self._derived:
            record[one.column] = int(one.code[record[one.of]])
        return record, best

    def answers(self, potentials: Tables, queries: Sequence[Clique]) -> list[FloatArray]:
        """Return p(attributes) of each query."""
        if not isinstance(self._inner, Querier):
            raise self._cannot("answer queries")
        sources = [self._sources_of(tuple(query)) for query in queries]
        tables = self._inner.answers(self._embedded(potentials), sources)
        return [
            self._rewrite_table(table, names, tuple(to))
            for table, names, to in zip(tables, sources, queries, strict=True)
        ]

    def estimates(self, potentials: Tables, queries: Sequence[Clique]) -> Estimates:
        """Return what `answers` returns, with the inner engine's errors; for sums over derived columns upper bounds."""
        if not isinstance(self._inner, Estimator):
            raise self._cannot("estimate")
        sources = [self._sources_of(tuple(query)) for query in queries]
        estimates = self._inner.estimates(self._embedded(potentials), sources)
        both = list(zip(estimates.tables, estimates.errors, sources, queries, strict=True))
        return evolve(
            estimates,
            tables=tuple(self._rewrite_table(table, names, tuple(to)) for table, _, names, to in both),
            errors=tuple(self._rewrite_table(error, names, tuple(to)) for _, error, names, to in both),
        )

    def caveats(self, potentials: Tables) -> Sequence[str]:
        """Return the inner engine's remarks on its draws."""
        return self._inner.caveats(self._embedded(potentials)) if isinstance(self._inner, Estimator) else ()

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Draw records by the inner engine, all of them possible."""
        if not isinstance(self._inner, Sampler):
            raise self._cannot("sample")
        return self._with_derived(self._inner.sample(self._embedded(potentials), count, generator))

    def rounded(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """Draw rounded records by the inner engine, all of them possible."""
        if not isinstance(self._inner, Rounder):
            raise self._cannot("round expected counts")
        return self._with_derived(self._inner.rounded(self._embedded(potentials), count, generator))

    def _cannot(self, what: str, other: str = "junction-tree") -> InferenceError:
        return InferenceError(f"{engine_name(self)} cannot {what}; use {other}")

    def _embedded(self, potentials: Tables) -> Tables:
        """Return the potentials over the wide structure, with -inf where no record can be."""
        if potentials.structure is not self._structure and potentials.structure != self._structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit an engine for {self._structure}")
        with np.errstate(invalid="ignore"):  # +inf where -inf stands becomes NaN, which the engine refuses by name
            theta = potentials.values if self._lift is None else self._lift @ potentials.values
            return Tables._trusted(self._wide, self._ruled + theta)

    def _own(self, tables: Tables) -> Tables:
        back = self._lift_back
        return tables if back is None else Tables._trusted(self._structure, back @ tables.values)

    @cached_property
    def _of(self) -> dict[str, str]:
        return {one.column: one.of for one in self._derived}

    def _sources_of(self, names: Clique) -> Clique:
        """Return the attributes that determine `names`: in place of derived columns those that they are read off."""
        sources: list[str] = []
        for name in names:
            source = name
            while source in self._of:
                source = self._of[source]
            if source not in sources:
                sources.append(source)
        return tuple(sources)

    def _rewrite_table(self, table: FloatArray, has: Clique, names: Clique) -> FloatArray:
        """Rewrite a table over the sources of `names` as one over `names`; codes that a derived column joins are
        summed.
        """
        if has == names:
            return table
        cells = np.indices(table.shape).reshape(table.ndim, -1)
        codes = dict(zip(has, cells, strict=True))
        for one in self._derived:
            if one.of in codes:
                codes[one.column] = one.code[codes[one.of]]
        shape = self._structure.domain.shape(names)
        at = np.ravel_multi_index(tuple(codes[name] for name in names), shape)
        return np.bincount(at, table.reshape(-1), math.prod(shape)).astype(np.float64).reshape(shape)

    def _with_derived(self, codes: Codes) -> Codes:
        columns = dict(zip(self._structure.domain.names, codes, strict=True))
        for one in self._derived:
            size = self._structure.domain[one.column].size
            columns[one.column] = one.code.astype(code_dtype(size))[columns[one.of]]
        return list(columns.values())


class _SecondOrder(ConstrainedEngine):
    """Constrained engine with second derivatives: learners look for the method."""

    def curvature(self, potentials: Tables) -> Callable[[FloatArray], FloatArray]:
        """Return the inner engine's curvature along the potentials of the requested cliques."""
        assert isinstance(self._inner, SecondOrder)
        product, lift, back = self._inner.curvature(self._embedded(potentials)), self._lift, self._lift_back
        if lift is None or back is None:
            return product
        return lambda directions: np.asarray(back @ product(lift @ directions))


def _lift(structure: Structure, wide: Structure, derived: Sequence[Derived]) -> csr_array:
    """(cells of the wide structure, cells asked for): 1 where a potential asked for counts in a wide cell.

    Its transpose takes marginals back: a derived column's are sums of those of the column that tells it.
    """
    from scipy.sparse import csr_array  # imports half as much as all else here, and few domains need it

    of = {one.column: one for one in derived}
    rows, columns = [], []
    for group, size, place in zip(structure.groups, structure.sizes, structure.slices, strict=True):
        names, code = group[0], None
        while len(group) == 1 and len(names) == 1 and names[0] in of:
            one = of[names[0]]
            names, code = (one.of,), one.code if code is None else code[one.code]
        if code is None:
            number = wide.groups.index(group)
            there, here = np.arange(size), np.arange(size)
        else:
            number = next(n for n, (host, *more) in enumerate(wide.groups) if not more and names[0] in host)
            axis = wide.groups[number][0].index(names[0])
            there = np.arange(wide.sizes[number])
            here = code[np.indices(wide.shapes[number])[axis].reshape(-1)]
        rows.append(wide.slices[number].start + there)
        columns.append(place.start + here)
    at = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.ones(len(at[0])), at), shape=(wide.cells, structure.cells))


def _ruled(domain: Domain, wide: Structure, derived: set[str]) -> FloatArray:
    """(cells,): -inf where a constraint rules a record out, each in the first plain clique that holds it, and 0."""
    values = np.zeros(wide.cells)
    for one in domain.rules:
        if not derived.isdisjoint(one.columns):
            continue
        number = next(n for n, group in enumerate(wide.groups) if len(group) == 1 and set(one.columns) <= set(group[0]))
        clique = wide.groups[number][0]
        block = values[wide.slices[number]].reshape(wide.shapes[number])
        block[np.broadcast_to(aligned(one.mask, one.columns, clique), block.shape)] = -np.inf
    return values
