"""Distances of two sides that answer about any table, attribute by attribute and pair by pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from attrs import evolve

from dpgm_core.comparison.matching import Overlap
from dpgm_core.comparison.scores import Aligned, has_scores, scores
from dpgm_core.comparison.sides import Side
from dpgm_core.comparison.values import Difference
from dpgm_core.domain import Domain
from dpgm_core.evaluate import distance
from dpgm_core.structure import Clique

__all__ = ["MAX_PAIRS", "differences", "difference_of", "choose_tables"]

#: Compared pairs of attributes, cells of a table, cells of tables at once, and tables with scores.
MAX_PAIRS, _MAX_TABLE_CELLS, _CELLS_AT_ONCE, _MAX_TABLES_SCORED = 2000, 2**20, 2**22, 40


def differences(
    first: Side, other: Side, matching: Overlap, cliques: Sequence[Clique]
) -> tuple[list[Difference], list[str]]:
    """Return the differences of shared attributes, their pairs and larger tables, and notes on what was left out.

    cliques: of both structures. Of more than `MAX_PAIRS` pairs those inside a clique come first, then those of the
    attributes that differ most.
    """
    single = _compared(first, other, matching, [(name,) for name in matching.shared])
    ranked = [one.attributes[0] for one in _worst(single)]
    queries, notes = choose_tables(matching.shared, ranked, cliques, first.domain)
    differing = [*single, *_compared(first, other, matching, queries)]
    return _scored(first, other, matching, _worst(differing), notes), notes


def choose_tables(
    shared: Clique, ranked: Sequence[str], cliques: Sequence[Clique], domain: Domain
) -> tuple[list[Clique], list[str]]:
    """Return the larger tables to compare, and notes on what was left out. ranked: `shared`, the worst first.

    >>> domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    >>> choose_tables(("a", "b", "c"), "cab", [("c", "b", "a")], domain)[0]
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
    """
    at = {name: number for number, name in enumerate(shared)}
    inside = dict.fromkeys(
        tuple(sorted(clique, key=at.__getitem__)) for clique in cliques if len(clique) > 1 and set(clique) <= set(at)
    )
    together = itertools.chain.from_iterable(itertools.combinations(clique, 2) for clique in inside)
    several = math.comb(len(shared), 2)
    # More attributes than these have more pairs than are compared.
    near = ranked[: (1 + math.isqrt(1 + 8 * MAX_PAIRS)) // 2 + 1]
    among = (tuple(sorted(pair, key=at.__getitem__)) for pair in itertools.combinations(near, 2))
    everything = itertools.combinations(shared, 2) if several <= MAX_PAIRS else among
    pairs = list(itertools.islice(dict.fromkeys([*together, *everything]), MAX_PAIRS))
    notes = []
    if len(pairs) < several:
        notes.append(
            f"{len(pairs):,} of {several:,} pairs of attributes were compared: those in a table of one of the two, "
            "then those of the attributes that differ most"
        )
    queries = [*pairs, *(clique for clique in inside if len(clique) > 2)]
    fit = [clique for clique in queries if math.prod(domain.shape(clique)) <= _MAX_TABLE_CELLS]
    if len(fit) < len(queries):
        notes.append(f"{len(queries) - len(fit)} tables of more than {_MAX_TABLE_CELLS:,} cells were not compared")
    return fit, notes


def difference_of(names: Clique, domain: Domain, tables: Aligned, standing: tuple[str, str]) -> Difference:
    """One table's difference; tables: probabilities, or noisy shares, in the domain's order of labels."""
    one, other = tables
    cell = np.unravel_index(int(np.argmax(np.abs(one - other))), one.shape)
    return Difference(
        attributes=names,
        total_variation=distance(one, other),
        cell={name: domain[name].labels[code] for name, code in zip(names, cell, strict=True)},
        first=float(one[cell]),
        other=float(other[cell]),
        score=None,
        standing=standing,
    )


def _compared(first: Side, other: Side, matching: Overlap, cliques: Iterable[Clique]) -> list[Difference]:
    result = []
    for block in _blocks(cliques, first.domain):
        for names, tables in zip(block, _aligned(first, other, matching, block), strict=True):
            standing = first.standing(names), other.standing(names)
            result.append(difference_of(names, first.domain, tables, standing))
    return result


def _aligned(first: Side, other: Side, matching: Overlap, cliques: Sequence[Clique]) -> list[Aligned]:
    """Return both answers about each table, in the first's order of labels."""
    answers = zip(cliques, first.tables(cliques), other.tables(cliques), strict=True)
    return [(one, matching.aligned(names, two)) for names, one, two in answers]


def _scored(
    first: Side, other: Side, matching: Overlap, differing: list[Difference], notes: list[str]
) -> list[Difference]:
    """With scores where the errors are known: of the worst attributes and the worst of several, as each costs time."""
    if not has_scores(first, other):
        notes.append(
            "whether errors explain these differences is not known: a model lacks replicates, which dpgm query MODEL "
            "ATTRIBUTE --intervals 0.9 makes and keeps"
        )
        return differing
    single = [one for one in differing if len(one.attributes) == 1][:_MAX_TABLES_SCORED]
    several = [one for one in differing if len(one.attributes) > 1][:_MAX_TABLES_SCORED]
    cliques = [one.attributes for one in (*single, *several)]
    if len(cliques) < len(differing):
        notes.append(f"scores are those of the {len(cliques)} tables that differ most")
    score_of: dict[Clique, float] = {}
    for block in _blocks(cliques, first.domain):
        score_of |= zip(
            block, scores(first, other, block, matching, _aligned(first, other, matching, block)), strict=True
        )
    return [evolve(one, score=score_of.get(one.attributes)) for one in differing]


def _worst(differing: Iterable[Difference]) -> list[Difference]:
    return sorted(differing, key=lambda one: -one.total_variation)


def _blocks(cliques: Iterable[Clique], domain: Domain) -> Iterator[list[Clique]]:
    """Cliques in runs whose tables fit into memory together."""
    block: list[Clique] = []
    cells = 0
    for clique in cliques:
        size = math.prod(domain.shape(clique))
        if block and cells + size > _CELLS_AT_ONCE:
            yield block
            block, cells = [], 0
        block.append(clique)
        cells += size
    if block:
        yield block
