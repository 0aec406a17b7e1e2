"""Hypothesis strategies for domains, structures, potentials and records: small, awkward, and easy to shrink."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from hypothesis import strategies as st

from dpgm_core._util.arrays import IntArray
from dpgm_core.domain.domain import Domain
from dpgm_core.privacy.budget import Budget, BudgetKind
from dpgm_core.privacy.mechanism import Mechanism
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import incidence
from dpgm_testing.reference import ReferenceGaussian, ReferenceLaplace, example_release

__all__ = [
    "awkward_structures",
    "budgets",
    "domains",
    "neighbours",
    "noisy_tables",
    "potentials",
    "records",
    "structures",
]

_NAMES = "abcdefgh"


def awkward_structures() -> dict[str, Structure]:
    """Structures that have broken engines, by name: cyclic, nested, duplicate, disconnected, tied, one cell, empty.

    Small enough to enumerate; keys never change their meaning.

    >>> awkward_structures()["cycle"].cliques
    (('a', 'b'), ('b', 'c'), ('c', 'd'), ('d', 'a'))
    """
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3})
    same = Domain.from_sizes(dict.fromkeys("abcd", 2))
    return {
        "one attribute": Structure(Domain.from_sizes({"a": 3}), [("a",)]),
        "one label": Structure(Domain.from_sizes({"a": 1, "b": 2}), [("a",), ("a", "b")]),
        "chain": Structure.chain(domain),
        "cycle": Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
        "complete": Structure.complete(domain),
        "third order": Structure(domain, [("a", "b", "c"), ("b", "c", "d")]),
        "nested": Structure(domain, [("a", "b", "c"), ("b", "a"), ("c",), ("c", "d")]),
        "duplicate": Structure(domain, [("a", "b"), ("b", "a"), ("b", "c")]),
        "disconnected": Structure(domain, [("a", "b"), ("d",)]),
        "unordered axes": Structure(domain, [("d", "a", "c"), ("c", "b")]),
        "empty clique": Structure(domain, [(), ("a", "b"), ("b", "c")]),
        "only the empty clique": Structure(Domain.from_sizes({"a": 2}), [()]),
        "tied": Structure(same, [("a",)], tied=[[("a", "b"), ("b", "c"), ("c", "d")]]),
        "tied cycle": Structure(same, [], tied=[[("a", "b"), ("b", "c"), ("c", "a")], [("a",), ("b",)]]),
    }


@st.composite
def domains(draw: st.DrawFn, *, max_attributes: int = 5, max_size: int = 4) -> Domain:
    """Domains of one to `max_attributes` attributes with one to `max_size` labels; shrinks to one label of one."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_attributes))
    return Domain.from_sizes(dict(zip(_NAMES, sizes, strict=False)))


@st.composite
def structures(
    draw: st.DrawFn,
    *,
    max_attributes: int = 5,
    max_size: int = 4,
    max_cliques: int = 6,
    max_order: int = 4,
    tied: bool = True,
) -> Structure:
    """Any cliques of order 0 to `max_order`: cyclic, nested, duplicate, disconnected, empty, tied if allowed.

    Shrinks to one empty clique over one attribute with one label.
    """
    domain = draw(domains(max_attributes=max_attributes, max_size=max_size))
    clique = st.permutations(domain.names).flatmap(
        lambda names: st.integers(0, min(max_order, len(names))).map(lambda order: tuple(names[:order]))
    )
    cliques = draw(st.lists(clique, min_size=1, max_size=max_cliques))
    groups: list[list[Clique]] = []
    if tied and draw(st.booleans()):
        first = draw(clique)
        twins = [
            twin
            for twin in itertools.permutations(domain.names, len(first))
            if domain.shape(twin) == domain.shape(first) and set(twin) != set(first)
        ]
        if twins:
            groups = [[first, draw(st.sampled_from(twins))]]
    return Structure(domain, cliques, tied=groups)


@st.composite
def potentials(
    draw: st.DrawFn,
    *,
    over: st.SearchStrategy[Structure] | None = None,
    scales: Sequence[float] = (0.0, 1.0, 10.0, 200.0, 700.0),
    zeros: Sequence[float] = (0.0, 0.0, 0.2, 0.5),
) -> Tables:
    """Log-potentials, some -inf; at least one record stays possible. Shrinks to all zeros (the uniform model).

    over: the structures. scales: half-widths of the uniform law of the entries, nats. zeros: shares of -inf entries.
    """
    structure = draw(structures() if over is None else over)
    scale, share = draw(st.sampled_from(list(scales))), draw(st.sampled_from(list(zeros)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = scale * generator.uniform(-1, 1, size=structure.cells)
    record = np.array([[generator.integers(size) for size in structure.domain.sizes.values()]])
    values[(generator.random(structure.cells) < share) & (incidence(structure, record)[:, 0] == 0)] = -np.inf
    return Tables(structure, values)


@st.composite
def records(draw: st.DrawFn, *, domain: Domain, max_records: int = 8) -> IntArray:
    """Codes of up to `max_records` records, (records, attributes), int64; shrinks to no record, then to zeros."""
    row = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes.values()))
    rows = draw(st.lists(row, max_size=max_records))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(domain))


@st.composite
def neighbours(
    draw: st.DrawFn,
    *,
    domain: Domain,
    relation: Neighbours | Literal["add-remove", "replace-one"],
    max_records: int = 8,
) -> tuple[IntArray, IntArray]:
    """Two data sets that differ in one person with one row; the first is never the smaller one.

    Shrinks to one record of zeros against none (add-remove) or against itself (replace-one).
    """
    others = draw(records(domain=domain, max_records=max_records - 1))
    row = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes.values()))
    place = draw(st.integers(0, len(others)))
    first = np.insert(others, place, np.array(draw(row)), axis=0)
    if Neighbours.of(relation) is Neighbours.ADD_REMOVE:
        return first, others
    return first, np.insert(others, place, np.array(draw(row)), axis=0)


@st.composite
def budgets(draw: st.DrawFn, *, kinds: Sequence[BudgetKind] = ("pure", "zcdp", "approx")) -> Budget:
    """Budgets of the given kinds from a hundredth to ten; shrinks to epsilon = 1, or rho = 1."""
    kind = draw(st.sampled_from(list(kinds)))
    amount = draw(st.one_of(st.just(1), st.fractions("1/100", 10, max_denominator=1000)))
    if kind == "pure":
        return Budget.pure(amount)
    if kind == "zcdp":
        return Budget.zcdp(amount)
    return Budget.approx(amount, draw(st.sampled_from(["1e-6", "1e-3", "1e-9"])))


@st.composite
def noisy_tables(
    draw: st.DrawFn, *, over: st.SearchStrategy[Structure] | None = None, max_records: int = 1000
) -> NoisyTables:
    """Releases: tables of a random population plus reference noise, Laplace or Gaussian; often with negative cells.

    over: the structures. Shrinks to the tables of one record plus little noise.
    """
    structure = draw(structures() if over is None else over)
    total = draw(st.integers(1, max_records))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = incidence(structure)
    true = matrix @ generator.multinomial(total, generator.dirichlet(np.ones(matrix.shape[1])))
    budget = draw(budgets(kinds=("pure", "zcdp")))
    mechanism: Mechanism = ReferenceLaplace() if budget.kind == "pure" else ReferenceGaussian()
    quiet = example_release(structure, true, total=total, mechanism=mechanism, budget=budget)
    noise = np.round(generator.normal(scale=quiet.noise[0].variance ** 0.5, size=structure.cells))
    return example_release(structure, (true + noise).astype(np.int64), total=total, mechanism=mechanism, budget=budget)
