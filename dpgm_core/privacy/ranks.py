"""Bins, sensitivity and proof: bins of about as many persons each, found by bisection.

A public grid of cells is cut in two, each part in two again, and so on, level by level. A node is a range of cells, its
candidates are the grid's edges inside it. Of the node's n persons r_e are below edge e, 0 below the node's first cell
and n below its end. The score is a whole number, -(|2 r_e - n| + d_e): how far the edge is from the median, in ranks,
twice; and d_e = max(0, 2 r_(e-1) - n, n - 2 r_(e+1)), how far the next edge towards the median still is, 0 where that
is beyond it. Edges between the same persons have the same ranks: d tells the two that are next to a heavy cell from all
others in the empty stretch next to it, so that the cell ends as a bin of its own; elsewhere it changes next to nothing.
A node of one cell has no candidate, and no edge is chosen in it. Persons whose value is missing or unknown are in no
cell and take no part.

Cost. Let each person have one row. Choose by the exponential mechanism at temperature h, whose one choice costs
e = 4 h + 2^-30, or e^2/8, where one person moves scores by at most 2 up or down. A whole level then costs that of one
node under add-remove, and under replace-one twice the epsilon, or four times the rho.

Proof. Which nodes a level has depends on the choices of the levels above it alone, never on the records: given those,
the nodes are disjoint, and each person is in one of them at most. A level is the product of independent choices.

Add-remove. One person more, in the cell c of one node: n grows by 1, r_e by 1 for the edges above c and by 0 for those
below, so 2 r_e - n moves by +1 or -1, |2 r_e - n| by 1 at most, and so does d_e, a largest of such terms and 0 (at
the node's ends 2 r_e - n is -n or n). Scores move by 2 at most, up for some edges and down for others: U = 2 and R = 4
in the words of the exponential mechanism, whose factor 1/2 stays. That n, which is secret, moves too is in this. Scores
of all other nodes stay, so the product costs what the one choice does. In an empty node, and between edges that tie,
choices are uniform; nothing in the proof asks for distinct scores or for persons.

Replace-one, within a node: n stays, r_e moves by 1, all one way, for the edges between the two cells and by 0 for the
others, so |2 r_e - n| and d_e move by 2 at most, scores by 4, up for some edges and down for others: R = 8. The choice
costs 8 h + 2^-30, below 2 e; and (8 h + 2^-30)^2/8, below 4 e^2/8. From one node into another: each of two independent
choices moves as under add-remove, and together they cost 2 e, or 2 e^2/8. From a cell to a missing value: one of the
two.

Levels add up, each given the ones before: the sum for pure budgets, and the sum of rho. Source of the bisection:
Kaplan, Schnapp, Stemmer (2022), Differentially private approximate quantiles, where the nodes of a level are in
parallel as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from attrs import frozen

from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms

__all__ = ["Node", "RankDistance", "check_single_rows", "level_price", "nodes_of"]

#: Cells of a grid, from the first to before the last.
Node: TypeAlias = tuple[int, int]


@frozen(kw_only=True)
class RankDistance:
    """The scores of the edges inside a node: -(|2 r - n| + d), how far each is from the node's median, in ranks.

    first, last: the node's cells are first, ..., last - 1 of the grid; its candidates the edges between them, edge e
    before cell e. Sensitivity: one person moves a score by at most 2 under add-remove; the module has the proof. Raises
    StructureError for a node without a candidate.

    >>> RankDistance(first=2, last=5).candidates, RankDistance.move
    (range(3, 5), 2)
    """

    first: int
    last: int

    #: Units by which one person more moves a score at most, up or down.
    move = 2

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.first < self.last - 1:
            raise StructureError(
                f"a node has at least two cells, so that an edge is inside; got {self.first} to {self.last}"
            )

    @property
    def candidates(self) -> range:
        """The grid's edges to choose from."""
        return range(self.first + 1, self.last)


def level_price(neighbours: Neighbours, kind: Literal["pure", "zcdp"]) -> int:
    """Return how many times a level costs what one choice does; the module has the proof.

    >>> [level_price(Neighbours.REPLACE_ONE, kind) for kind in ("pure", "zcdp")]
    [2, 4]
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return 1
    return 2 if kind == "pure" else 4


def check_single_rows(terms: Terms, columns: Sequence[str]) -> None:
    """Refuse, with BudgetError, persons of several rows: they would be in several nodes of a level.

    >>> check_single_rows(Terms(neighbours="add-remove"), ["age"])
    """
    if terms.rows_per_person > 1:
        raise BudgetError(
            f"private bins, as of {', '.join(map(repr, columns))}, are found from one row per person, but "
            f"rows_per_person is {terms.rows_per_person}; give these columns public bins, or set rows_per_person to 1"
        )


def nodes_of(cells: int, choices: Sequence[Sequence[int]]) -> list[Node]:
    """Return the nodes after these choices, in order: level by level, one edge for each node that has an edge inside.

    cells: of the grid. Raises StructureError for choices that no bisection makes.

    >>> nodes_of(8, [[4], [1, 6], [2]])
    Traceback (most recent call last):
    dpgm_core.errors.StructureError: level 3 of a bisection of 8 cells has 3 nodes to cut, but 1 edges
    >>> nodes_of(8, [[4], [1, 6]])
    [(0, 1), (1, 4), (4, 6), (6, 8)]
    """
    nodes: list[Node] = [(0, cells)]
    for level, chosen in enumerate(choices, start=1):
        wide = [node for node in nodes if node[1] - node[0] > 1]
        if len(wide) != len(chosen):
            raise StructureError(
                f"level {level} of a bisection of {cells} cells has {len(wide)} nodes to cut, but {len(chosen)} edges"
            )
        for (first, last), edge in zip(wide, chosen, strict=True):
            if edge not in RankDistance(first=first, last=last).candidates:
                raise StructureError(f"level {level} of a bisection cuts cells {first} to {last} outside of them")
        ends = sorted({end for node in nodes for end in node} | set(chosen))
        nodes = list(pairwise(ends))
    return nodes
