"""How to divide a budget over tables of unequal size: more for larger tables, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpgm_core.errors import BudgetError, OptionError, StructureError, did_you_mean
from dpgm_core.privacy.amounts import Amount, amount, decimal_text
from dpgm_core.privacy.budget import Budget, BudgetKind
from dpgm_core.privacy.conversion import zcdp_rho
from dpgm_core.structure import Clique, Structure

__all__ = ["SPLITS", "check_split", "may_be_contrasts", "optimal_shares", "optimal_split"]

#: even: one noise for all tables. optimal: see `optimal_split`. contrasts: one noise for sums of products of binary
#: attributes, one for each set inside a clique, in place of tables; see `dpgm_core.noise.contrasts`. sharper:
#: contrasts, or "even" where these have more noise or there are none.
SPLITS = ("even", "optimal", "contrasts", "sharper")

#: Weights and their products with numbers of cells stay within doubles.
_MOST_WEIGHT = Fraction(10**100)


def check_split(split: object) -> str:
    """The name of a way to split, or OptionError.

    >>> check_split("even")
    'even'
    """
    if not isinstance(split, str) or split not in SPLITS:
        raise OptionError(f"split must be one of {', '.join(SPLITS)}; got {split!r}{did_you_mean(str(split), SPLITS)}")
    return split


def may_be_contrasts(split: str) -> bool:
    """Whether contrasts may come out of it, which not every learner takes.

    >>> [may_be_contrasts(split) for split in SPLITS]
    [False, False, True, True]
    """
    return split in ("contrasts", "sharper")


def optimal_split(
    structure: Structure, budget: Budget, weights: Mapping[Clique, Amount] | None = None
) -> dict[Clique, Budget]:
    """The budget of each table that makes the expected squared error, weighted and summed over all cells, least.

    Tied cliques share one table, named by the first of them; m is their number, K its cells. One noisy table at epsilon
    has error w K (m / epsilon)^2 up to a constant of the mechanism and the relation, and at rho w K m^2 / rho; the
    budgets add. So epsilon is proportional to (w K m^2)^(1/3), rho to m sqrt(w K), whatever the mechanism. Tables of
    one size and weight get equal shares, and nothing is gained. weights: w > 0 per table, 1 where none is given.

    The shares are decimals that sum to exactly the whole. Raises BudgetError for (epsilon, delta), which does not add
    without loss: one release with split = "optimal" divides it without, all tables together; for several ask for its
    `Budget.zcdp_within`. Source: Lagrange's conditions.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 4, "c": 8}), [("a", "b"), ("b", "c", "a")])
    >>> {clique: float(share.epsilon) for clique, share in optimal_split(structure, Budget.pure(1)).items()}
    {('a', 'b'): 0.33334, ('b', 'c', 'a'): 0.66666}
    """
    if not isinstance(structure, Structure):
        raise StructureError(f"structure must be a Structure, got {type(structure).__name__}")
    if weights is not None and not isinstance(weights, Mapping):
        raise BudgetError(f"weights must be a table of cliques and weights, got {type(weights).__name__}")
    if not isinstance(budget, Budget) or budget.is_zero:
        raise BudgetError(f"the budget to be split must be a positive Budget such as Budget.pure(1), got {budget}")
    if budget.kind == "approx":
        rho = zcdp_rho(budget.epsilon, budget.delta)
        raise BudgetError(
            f"{budget} cannot be split into budgets of tables without loss; ask one release for it with split = "
            f"'optimal', or for Budget.zcdp({decimal_text(rho, 12)}), the most that stays within it"
            if rho
            else f"{budget} cannot be split over tables; ask for Budget.zcdp(rho), or for an even split"
        )
    shares = optimal_shares(structure, budget.kind, weights)
    return {group[0]: budget * share for group, share in zip(structure.groups, shares, strict=True)}


def optimal_shares(
    structure: Structure, kind: BudgetKind, weights: Mapping[Clique, Amount] | None = None
) -> list[Fraction]:
    """Each group's share of a budget, as `optimal_split` has it: of epsilon for a pure budget, else of rho.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 8}), [("a",), ("b",)])
    >>> [float(share) for share in optimal_shares(structure, "zcdp")]
    [0.33334, 0.66666]
    """
    power = 1 / 3 if kind == "pure" else 1 / 2
    tables = zip(structure.sizes, structure.multiplicities, _weights(structure, weights), strict=True)
    return _decimals([float(weight * cells * tied**2) ** power for cells, tied, weight in tables])


def _weights(structure: Structure, weights: Mapping[Clique, Amount] | None) -> list[Fraction]:
    own: dict[int, Fraction] = {}
    for clique, weight in (weights or {}).items():
        number = structure.find(clique)[0]
        if number in own:
            raise BudgetError(f"clique {clique!r} is given two weights; name each table once")
        own[number] = amount(f"the weight of clique {clique!r}", weight)
        if not 1 / _MOST_WEIGHT <= own[number] <= _MOST_WEIGHT:
            raise BudgetError(f"the weight of clique {clique!r} must lie between 1e-100 and 1e100; only ratios matter")
    return [own.get(number, Fraction(1)) for number in range(len(structure.groups))]


def _decimals(sizes: list[float]) -> list[Fraction]:
    """Positive decimals proportional to the sizes, to about four digits of the mean, that sum to 1.

    >>> [float(share) for share in _decimals([1.0, 1.0, 1.0])]
    [0.33334, 0.33333, 0.33333]
    """
    unit = 10 ** (4 + len(str(len(sizes))))
    whole = sum(sizes)
    exact = [size / whole * (unit - len(sizes)) for size in sizes]
    parts = [1 + int(one) for one in exact]  # every table gets something
    by_remainder = sorted(range(len(sizes)), key=lambda number: int(exact[number]) - exact[number])
    for number in by_remainder[: unit - sum(parts)]:
        parts[number] += 1
    return [Fraction(part, unit) for part in parts]
