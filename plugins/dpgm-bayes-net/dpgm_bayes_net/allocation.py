"""Division of a budget over families by a first look: Chowdhury, Rekatsinas and Jha (2020) as we read it, with guards.

The paper's text at hand names what enters (a preliminary estimate, each node's height and out-degree, its influence on
its children), not the formula; that one, [M] in our notes, is a reading from memory. For node v with K labels, of
height h and with o children, theta its conditional table from the first look and n_u the records of parents' state u:

    W_v = (h + 1) (o + 1) (S_v + 1)      S_v = max over children c, states x of |P(c | v = x) - P(c)|
    G_v = sum over u, x of sqrt((1 - theta)^2 + (K - 1) theta^2) / n'_u,     n'_u = max(n_u, sqrt(K) s)

G is the noise of the entries of theta per unit of noise in a measured cell (delta method), and s the noise of the first
look: no row is taken for emptier than that noise can tell, or rows without records would grab the budget. Minimising
sum W G / epsilon under a fixed sum gives epsilon proportional to sqrt(W G); with rho the noise is as 1 / sqrt(rho), so
rho to (W G)^(2/3). Everything here is a function of released tables, the graph and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from attrs import frozen

from dpgm_bayes_net.tables import Counts, clip
from dpgm_core import Budget, Clique, Dag, FloatArray

__all__ = ["Need", "divide_budget", "least_share", "losses_by_table", "needs_of", "assign_tables", "optimal_shares"]


@frozen(kw_only=True)
class Need:
    """Reasons to give budget to one conditional table.

    table: the number of the measured table it is read off. structure, error, influence: W, G and S above.
    """

    child: str
    table: int
    structure: float
    error: float
    influence: float

    def loss(self, weights: str) -> float:
        """Return the cost of a unit of noise in its table, by the rule named `weights`."""
        return (self.structure if weights != "error" else 1.0) * (self.error if weights != "structure" else 1.0)


def assign_tables(dag: Dag, cliques: Sequence[Clique]) -> dict[str, int]:
    """Attribute -> the number of the smallest of the cliques that holds its family, by cells, then by names.

    >>> from dpgm_core import Domain
    >>> dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {"b": ["a"]})
    >>> assign_tables(dag, dag.families), assign_tables(dag, dag.maximal)
    ({'a': 0, 'b': 1}, {'a': 0, 'b': 0})
    """
    sets = [frozenset(clique) for clique in cliques]
    cells = [math.prod(dag.domain.shape(clique)) for clique in cliques]
    numbers = {}
    for family in dag.families:
        holders = [number for number, members in enumerate(sets) if members.issuperset(family)]
        numbers[family[0]] = min(holders, key=lambda number: (cells[number], len(sets[number])))
    return numbers


def needs_of(dag: Dag, counts: Mapping[str, Counts], cliques: Sequence[Clique], noise: FloatArray) -> tuple[Need, ...]:
    """W, G and S of every attribute, in the domain's order.

    counts: of each family in the first look, records. cliques: as measured. noise: the variance in a cell of each, as
    drawn, (cliques,), records**2. A family read off a larger table has the noise of all cells that are summed: both G
    and the guard count it.
    """
    table_of = assign_tables(dag, cliques)
    influences = _influences(dag, counts)
    heights, out_degrees = dag.heights, dag.out_degrees
    needs = []
    for family in dag.families:
        child, number = family[0], table_of[family[0]]
        table = counts[child].table
        summed = math.prod(dag.domain.shape(cliques[number])) / table.size
        influence = influences[child]
        needs.append(
            Need(
                child=child,
                table=number,
                structure=(heights[child] + 1) * (out_degrees[child] + 1) * (influence + 1),
                error=math.sqrt(summed) * _error(table, math.sqrt(summed * float(noise[number]))),
                influence=influence,
            )
        )
    return tuple(needs)


def losses_by_table(needs: Sequence[Need], tables: int, weights: str) -> list[float]:
    """Return the cost of a unit of noise in each table: summed over the attributes it serves; 1 each for "even"."""
    by_table = [0.0] * tables
    for need in needs:
        by_table[need.table] += need.loss(weights)
    return [1.0] * tables if weights == "even" else by_table


def optimal_shares(losses: Sequence[float], kind: str) -> list[Fraction]:
    """Positive decimals that sum to exactly 1: what makes sum loss / epsilon least, or sum loss / sqrt(rho).

    losses: at least 0 and finite, one a table; all 0 is an even split. kind: of the budget, "pure" or "zcdp". Rounded
    down to about four digits of an even share; every table has at least one unit of them, the largest takes what is
    left over. Source: Lagrange's conditions.

    >>> [str(share) for share in optimal_shares([4.0, 1.0], "pure")]
    ['66667/100000', '33333/100000']
    >>> [float(share) for share in optimal_shares([8.0, 1.0], "zcdp")]
    [0.8, 0.2]
    """
    sizes = np.asarray(losses, dtype=np.float64)
    most = float(sizes.max())
    sizes = (sizes / most if most > 0 else np.ones_like(sizes)) ** (1 / 2 if kind == "pure" else 2 / 3)
    unit = least_share(len(losses)).denominator
    parts = [1 + math.floor(one) for one in sizes / sizes.sum() * (unit - len(sizes))]
    parts[int(np.argmax(sizes))] += unit - sum(parts)
    return [Fraction(part, unit) for part in parts]


def least_share(tables: int) -> Fraction:
    """The least that `optimal_shares` gives a table."""
    return Fraction(1, 10 ** (4 + len(str(tables))))


def divide_budget(rest: Budget, parts: Sequence[Fraction], cliques: Sequence[Clique]) -> dict[Clique, Budget]:
    """The budget of each table; they sum to exactly `rest`."""
    return {clique: rest * part for clique, part in zip(cliques, parts, strict=True)}


def _error(table: FloatArray, sd: float) -> float:
    """G: the standard deviations of all entries of the conditional table, summed, per unit of noise in a cell."""
    theta, labels = clip(table), len(table)
    rows = np.maximum(table.sum(axis=0), math.sqrt(labels) * sd)
    return float(np.sum(np.sqrt((1 - theta) ** 2 + (labels - 1) * theta**2) / rows))


def _influences(dag: Dag, counts: Mapping[str, Counts]) -> dict[str, float]:
    """S: how far knowing an attribute's state moves a probability of one of its children, at most; 0 for leaves."""
    influences = dict.fromkeys(dag.domain.names, 0.0)
    for child, *parents in dag.families:
        table = np.maximum(counts[child].table, 0.0)
        for place, parent in enumerate(parents, start=1):
            joint = table.sum(axis=tuple(axis for axis in range(1, table.ndim) if axis != place))
            there = joint.sum(axis=0) > 0  # of a state that was never seen nothing is known
            if there.any():
                conditional = joint[:, there] / joint[:, there].sum(axis=0)
                moved = float(np.abs(conditional - joint.sum(axis=1, keepdims=True) / joint.sum()).max())
                influences[parent] = max(influences[parent], moved)
    return influences
