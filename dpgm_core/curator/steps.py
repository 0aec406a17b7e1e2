"""Steps of a session: candidates, votes, descents and bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.counting.descent import GradientSums
from dpgm_core.counting.rows import Persons, Rows, StableRows
from dpgm_core.counting.scores import rank_scores, ranks_of
from dpgm_core.counting.table_counts import Counted, Passes
from dpgm_core.counting.votes import find_agreement
from dpgm_core.curator.redaction import redact_source_errors, strip_traceback
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.privacy.bins import BinsPlan, RankDistance, nodes_of
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.descent import NodeGradients, descent_temperature, steepest
from dpgm_core.privacy.selection import TableDistance, draw_candidates
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import EdgeVotes, Voter, draw_publication
from dpgm_core.releases.steps import Descent, FoundBins, Verdict
from dpgm_core.sources.contract import AnySource
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = ["Candidates", "DescentStep", "cast_votes", "check_exact_type", "count_grids", "find_bins", "grid_attributes"]


# --------------------------------------------------------------------------------------------------
# Candidates of a session, and checks of types


def check_exact_type(value: object, what: str, moved: str, *kinds: type) -> None:
    """Refuse, with OptionError, what is not exactly of these types: a subclass could state that nobody moves it.

    what: it is, and moved: what a person moves, in words.

    >>> check_exact_type("records", "scores", "a score", int)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: scores must be int, got str; core alone knows how far one person moves a score, so ...
    """
    if type(value) not in kinds:
        raise OptionError(
            f"{what} must be {' or '.join(kind.__name__ for kind in kinds)}, got {type(value).__name__}; core alone "
            f"knows how far one person moves {moved}, so no other is computed from records"
        )


class Candidates:
    """The candidates of a workload, by their attributes in any order."""

    def __init__(self, workload: Workload) -> None:
        self._named = {frozenset(clique): clique for clique in workload.candidates}
        self._max_cells = workload.max_cells

    def named(self, cliques: Iterable[Clique], domain: Domain) -> Structure:
        """The cliques as a structure over a domain, as the workload names them; StructureError for any that is none."""
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise StructureError(f"cliques must be a list of cliques, got {type(cliques).__name__}")
        cliques_named = []
        for one in cliques:
            if isinstance(one, tuple):  # the abstract class is slow to ask, thousands of times
                clique = one
            else:
                clique = tuple(one) if isinstance(one, Sequence) and not isinstance(one, str) else (one,)
            named = self._named.get(frozenset(clique)) if all(isinstance(name, str) for name in clique) else None
            if named is None or len(named) != len(clique):
                raise StructureError(
                    f"{' x '.join(map(str, clique)) or '()'} is not a candidate of the workload: its cliques do not "
                    "hold it, it has too many cells, or it is under `never`"
                )
            cliques_named.append(named)
        if len(set(cliques_named)) < len(cliques_named):
            raise StructureError("a table was named twice in one step; name it once")
        if not cliques_named:
            return Structure(domain, ())  # which it refuses
        structure = Structure.of_distinct(domain, cliques_named)
        for clique, cells in zip(cliques_named, structure.sizes, strict=True):
            if len(clique) > 1 and cells > self._max_cells:
                raise StructureError(
                    f"{' x '.join(clique)} has {cells:,} cells as its codes are counted now, more than max_cells = "
                    f"{self._max_cells:,}"
                )
        return structure

    def own(self, candidates: Structure, domain: Domain) -> Structure:
        """The same candidates over the session's domain as it is; StructureError for any that is none, or is named in
        another order of its attributes.

        A plugin's subclass of Domain could call an attribute of four codes binary, and find itself equal to any domain:
        how far one person moves a sum is worked out by the domain that records are coded by.
        """
        if candidates.domain != domain:
            raise StructureError("the candidates are over another domain than the session counts by; see its `domain`")
        structure = self.named(candidates.cliques, domain)
        if structure.cliques != candidates.cliques:
            raise StructureError("candidates name their attributes in the order of the domain, as the workload does")
        return structure


# --------------------------------------------------------------------------------------------------
# Votes


def cast_votes(
    voter: Voter, budget: Budget, *, source: AnySource, persons: Persons, randomness: Randomness, terms: Terms
) -> Verdict:
    """The graph that votes agree on, or nothing; to be called once it is paid for.

    See `dpgm_core.counting.votes` and `dpgm_core.privacy.votes`.
    """

    def edges() -> tuple[Clique, ...] | None:
        words = randomness.words(persons.persons if isinstance(voter, EdgeVotes) else 0)
        agreement = redact_source_errors(source, lambda: find_agreement(voter, persons, words, terms))
        if not draw_publication(agreement.distance, budget, randomness):
            return None
        return tuple(pair for pair, edge in zip(voter.pairs.cliques, agreement.edges, strict=True) if edge)

    return Verdict(voter=voter, budget=budget, edges=strip_traceback(edges))


# --------------------------------------------------------------------------------------------------
# Descents


class DescentStep:
    """One direction of each regression by the exponential mechanism, priced and not drawn yet.

    Raises BudgetError for a budget too small to distinguish any two directions.
    """

    def __init__(self, gradients: NodeGradients, budget: Budget, terms: Terms) -> None:
        own = gradients.regressions
        kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
        person = TableDistance.move(terms)
        self._sums = GradientSums(gradients, kind)
        self._descent = Descent(
            regressions=own,
            picks=((0, 0, 1),) * len(own.choices),
            temperature=descent_temperature(budget, gradients.reach(kind), person, len(own.choices)),
            radius=gradients.radius,
            clip=gradients.clip,
            residual_grid=gradients.residual_grid,
            person=person,
            kind=kind,
        )

    @property
    def cost(self) -> Budget:
        """It depends on how many choices there are, not on what they give."""
        return self._descent.cost

    def draw(self, source: object, rows: Rows, randomness: Randomness) -> Descent:
        """Draw the directions, once they are paid for. source: of the rows, whose errors are dropped."""
        own, h, sums = self._descent.regressions, self._descent.temperature, self._sums

        def directions() -> tuple[tuple[int, int, int], ...]:
            sums_of_rows = redact_source_errors(source, lambda: rows.total(sums))
            return tuple(steepest(sums_of_rows, own, h, randomness))

        return attrs.evolve(self._descent, picks=strip_traceback(directions))


# --------------------------------------------------------------------------------------------------
# Private bins
#
# Records are read and counted by the cells of the public grids before the charge, and recoded by the bins found.


def grid_attributes(columns: Sequence[BinsPlan]) -> dict[str, Attribute]:
    """Each column with a bin for each cell of its grid, which records are read by."""
    return {one.attribute.name: one.attribute.grid() for one in columns}


def count_grids(grids: Mapping[str, Attribute], rows: StableRows, domain: Domain) -> Counted:
    """Persons in each cell of each grid, all in one pass. rows: by those cells. domain: with the grids."""
    return Passes.under(Structure(domain, [(name,) for name in grids])).count(rows)


def find_bins(
    columns: Sequence[BinsPlan], grids: Mapping[str, Attribute], counted: Counted, randomness: Randomness
) -> tuple[FoundBins, ...]:
    """The bins of each column in turn; to be called once they are paid for. counted: by `count_grids`."""

    def find(one: BinsPlan) -> FoundBins:
        grid = grids[one.attribute.name]
        inside: IntArray = counted.tables[grid.name][: one.cells]
        return FoundBins.of(one, _bisect_ranks(inside, one, randomness), grid.edges or ())

    return tuple(find(one) for one in columns)


def _bisect_ranks(counts: IntArray, column: BinsPlan, randomness: Randomness) -> tuple[tuple[int, ...], ...]:
    """Of each level the edges chosen. counts: persons in each cell."""
    ranks = ranks_of(counts)
    levels: list[tuple[int, ...]] = []
    for h in column.temperatures:
        level = []
        for first, last in nodes_of(column.cells, levels):
            if last - first > 1:
                node = RankDistance(first=first, last=last)
                (number,) = draw_candidates(rank_scores(ranks, node), h, 1, randomness)
                level.append(node.candidates[number])
        levels.append(tuple(level))
    return tuple(levels)
