"""Measurements: noisy tables of counts, and the split of a budget over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction

import attrs
import numpy as np

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.exact_numbers import Amount, amount, decimal_text
from dpgm_core._util.randomness import Randomness
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, OptionError, StructureError, did_you_mean
from dpgm_core.privacy.budget import Budget, BudgetKind, check_budget, check_split, zcdp_rho
from dpgm_core.privacy.contrasts import MAX_SUM, check_contrasts, monomials, noise_ratios, products, spread
from dpgm_core.privacy.joint_gaussian import largest_rho
from dpgm_core.privacy.mechanism import (
    DELTAS_TOGETHER,
    Calibration,
    Mechanism,
    Noise,
    ScaledNoise,
    add_noise,
    calibrate,
    check_together,
    event_of,
    parts_of,
)
from dpgm_core.privacy.ranges import CELL_GRID, RangeNoise, RangeStrategy, estimated_cells, plan_ranges
from dpgm_core.privacy.sensitivity import ClippedScore, Sensitivity
from dpgm_core.privacy.terms import Terms, change_factor
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Measurement",
    "check_determined",
    "check_mechanism",
    "check_range_names",
    "check_ranges",
    "check_structure",
    "even_shares",
    "measure",
    "noisy_contrasts",
    "optimal_shares",
    "optimal_split",
    "range_strategies",
    "sensitivity_of",
]

#: Room for the rounding of scales, and what discrete Laplace noise lacks of its scale's variance, records**2.
_ROOM, _LATTICE = 1.001, 1 / 6


@attrs.frozen(kw_only=True)
class Measurement:
    """The tables of one release, and the noise that each of them gets.

    Parameters
    ----------
    structure : Structure
        The tables.
    calibrations : tuple of Calibration
        The noises: one for all tables, or one for each.
    of_group : tuple of int
        For each group of the structure the number of its calibration.
    together : Budget, optional
        The (epsilon, delta) of Gaussian noises of several widths, all fixed before the first is drawn; each alone costs
        a rho. None: the costs add up.
    contrasts : bool
        Whether the sum of products of each clique is measured in place of its table; noises and sensitivities are then
        then of these sums.
    grid : int
        Counts are whole multiples of 1/grid record, a power of two, as those of two related tables are. Noise is
        calibrated for and drawn in these units, and then divided: both are exact in a double.
    strategies : tuple of (RangeStrategy or None)
        For each group the windows that are measured in place of its cells, or None; empty: cells everywhere. With any,
        each group has a calibration of its own. Cells are then estimated, multiples of 1/2^20 record.
    """

    structure: Structure
    calibrations: tuple[Calibration, ...]
    of_group: tuple[int, ...]
    together: Budget | None = None
    contrasts: bool = False
    grid: int = 1
    strategies: tuple[RangeStrategy | None, ...] = ()

    @classmethod
    def shared(
        cls, structure: Structure, calibration: Calibration, *, contrasts: bool = False, grid: int = 1
    ) -> Measurement:
        """Return the measurement with one noise for all tables."""
        return cls(
            structure=structure,
            calibrations=(calibration,),
            of_group=(0,) * len(structure.groups),
            contrasts=contrasts,
            grid=grid,
        )

    @property
    def cost(self) -> Budget:
        """The cost of one release: the sum over the noises, or what they cost together."""
        return self.together or Budget.sum(one.noise.cost for one in self.calibrations)

    @property
    def budget(self) -> Budget:
        """The budget that the noises were calibrated for; the cost is at most that."""
        return self.together or Budget.sum(one.budget for one in self.calibrations)

    @property
    def noise(self) -> tuple[Noise, ...]:
        """The noise of each group, in the structure's order, in records."""
        alike = [one.noise for one in self.in_records]
        return tuple(alike[number] for number in self.of_group)

    @property
    def in_records(self) -> tuple[Calibration, ...]:
        """The calibrations with their noises in records, for learning; of windows with that of the estimated cells."""
        if self.strategies:
            return tuple(
                one
                if strategy is None
                else attrs.evolve(one, noise=RangeNoise(noise=one.noise, strategy=strategy), component=None, options={})
                for one, strategy in zip(self.calibrations, self.strategies, strict=True)
            )
        if self.grid == 1:
            return self.calibrations
        return tuple(
            attrs.evolve(one, noise=ScaledNoise(noise=one.noise, factor=1 / self.grid), component=None, options={})
            for one in self.calibrations
        )

    @property
    def variances(self) -> FloatArray:
        """The noise variance of each group, (groups,), records**2 per cell.

        Of contrasts the one along a table's own contrast z_S(x) / sqrt(2^|S|), so Var(c_S) / 2^|S|.
        """
        variances = self._variances
        return variances / np.asarray(self.structure.sizes) if self.contrasts else variances

    @property
    def total_variances(self) -> FloatArray:
        """The noise variance of each table's sum over its number of cells, (groups,): that of a cell but for ranges."""
        variances = self.variances.copy()
        for number, noise in enumerate(self.noise):
            if isinstance(noise, RangeNoise):
                variances[number] = noise.sum_variance / self.structure.sizes[number]
        return variances

    @property
    def number_units(self) -> FloatArray:
        """How many units of a file's whole numbers a record has in each group, (groups,)."""
        units = np.full(len(self.structure.groups), float(self.grid))
        units[[number for number, strategy in enumerate(self.strategies) if strategy is not None]] = CELL_GRID
        return units

    @property
    def sum_variances(self) -> FloatArray:
        """The noise variance of each contrast, (groups,), records**2; BudgetError where tables are measured."""
        if not self.contrasts:
            raise BudgetError("tables are measured here, and no contrasts")
        return self._variances

    def ratios_to(self, tables: Measurement) -> FloatArray:
        """Return the noise variance of each contrast over that of those tables; see `noise_ratios`."""
        return noise_ratios(self.structure, self.sum_variances, tables.structure, tables.variances)

    @property
    def _variances(self) -> FloatArray:
        alike = np.array([calibration.noise.variance for calibration in self.in_records])
        variances: FloatArray = alike[list(self.of_group)]
        return variances

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter (textbook noise), if so."""
        reasons = {one.noise.unsafe for one in self.calibrations if one.noise.unsafe is not None}
        return "; ".join(sorted(reasons)) or None

    def exchange_factor(self, kind: BudgetKind, terms: Terms, clip: ClippedScore | None = None) -> Fraction:
        """Return by what factor exchanging one person's data costs more than adding one, of a cost of this kind."""
        if kind == "approx":
            return change_factor(kind, 1, 1)
        groups = range(len(self.structure.groups))
        alike = [self.structure] if len(self.calibrations) == 1 else [self.structure.only(group) for group in groups]
        return terms.exchange_factor(kind, alike, clip, contrasts=self.contrasts)

    def table_by_table(self) -> Measurement:
        """Return the same measurement with each table's noise drawn by itself: a seed gives a table the same noise.

        Slower where there are many small tables, so simulations draw all that is alike at once.
        """
        own = tuple(self.calibrations[number] for number in self.of_group)
        return attrs.evolve(self, calibrations=own, of_group=tuple(range(len(own))))

    def draw(self, counts: Tables, randomness: Randomness, total: float = 0.0) -> Tables:
        """Return counts (or sums of scores) plus fresh noise. Draw after the charge, never before.

        Parameters
        ----------
        counts : Tables
            The true tables.
        randomness : Randomness
            The source of random words.
        total : float
            N, of contrasts where the empty clique is not among them.

        Returns
        -------
        Tables
            Of contrasts the tables computed from the noisy ones.
        """
        if self.grid > 1:  # whole numbers again
            counts = counts.like(np.rint(counts.values * self.grid).astype(np.int64))
        if self.contrasts:
            sums = self._drawn_contrasts(products(counts), randomness)
            return spread(self.structure, sums if self.grid == 1 else sums / self.grid, total)
        parts = counts.arrays()
        for number, calibration in enumerate(self.calibrations):
            strategy = self.strategies[number] if self.strategies else None
            if strategy is not None:
                sums = strategy.sums(parts[number])
                parts[number] = estimated_cells(
                    strategy, add_noise(sums, calibration.noise.draw(sums.shape, randomness))
                )
                continue
            alike = [group for group, one in enumerate(self.of_group) if one == number]
            bare = np.concatenate([parts[group].reshape(-1) for group in alike])
            noisy = add_noise(bare, calibration.noise.draw(bare.shape, randomness))
            ends = np.cumsum([parts[group].size for group in alike])[:-1]
            for group, part in zip(alike, np.split(noisy, ends), strict=True):
                parts[group] = part
        noisy = np.concatenate(parts)
        return Tables(self.structure, noisy if self.grid == 1 else noisy / self.grid)

    def _drawn_contrasts(self, sums: Array, randomness: Randomness) -> Array:
        """Return the sums of products, (groups,), plus fresh noise."""
        kinds, noisy = np.asarray(self.of_group), np.zeros(len(sums))
        for number, calibration in enumerate(self.calibrations):
            alike = kinds == number
            noisy[alike] = add_noise(sums[alike], calibration.noise.draw(sums[alike].shape, randomness))
        return np.clip(noisy, -MAX_SUM, MAX_SUM)


def measure(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budget: Budget | Mapping[Clique, Budget],
    split: str = "even",
    ranges: Collection[str] = (),
) -> Measurement:
    """Return the tables of a structure with calibrated noise; touches no data, spends nothing.

    Parameters
    ----------
    mechanism : Mechanism
        The noise.
    structure : Structure
        The tables.
    terms : Terms
        The terms of the release.
    budget : Budget or mapping from clique to Budget
        For all tables together, or one for each clique; these add up.
    split : {"even", "optimal", "contrasts", "sharper"}
        How one budget is divided. "even": one noise for all tables. "optimal": see `optimal_split`; an (epsilon, delta)
        is then spent by all noises together. "contrasts": one noise for the products of all sets inside a clique, see
        `noisy_contrasts`. "sharper": contrasts, or "even" where these are refused.
    ranges : collection of str
        Attributes whose own tables, where the structure has them, are measured by windows of codes
        (`dpgm_core.privacy.ranges`). With "even" all tables have equal shares of one budget, as without.

    Raises
    ------
    BudgetError, OptionError, StructureError
        And what the mechanism refuses. StructureError for contrasts of cliques that have none, BudgetError where
        contrasts would have more noise than tables.
    """
    check_mechanism(mechanism)
    check_structure(structure)
    if check_split(split) == "sharper":
        with suppress(BudgetError, StructureError):  # what is wrong with the budget is said by the tables
            return measure(mechanism, structure, terms, budget, "contrasts")
        return measure(mechanism, structure, terms, budget)
    if split == "contrasts":
        if isinstance(budget, Mapping):
            raise BudgetError(
                "split = 'contrasts' has one noise for all products, and a budget for each clique was given; give one "
                "budget for all, or leave split = 'even'"
            )
        contrasts = noisy_contrasts(
            mechanism, monomials(structure, empty=terms.total_policy == "estimated"), terms, budget
        )
        _check_worth(contrasts, measure(mechanism, structure, terms, budget))
        return contrasts
    strategies = range_strategies(mechanism, structure, terms, budget, ranges)
    if not isinstance(budget, Mapping):
        check_budget(budget)
        if budget.is_zero:
            raise BudgetError(f"budget is {budget}; it must be positive")
        if strategies:
            if budget.kind == "approx" and len(strategies) > 1:
                shares = even_shares(structure) if split == "even" else optimal_shares(structure, "zcdp")
                return _together(mechanism, structure, terms, budget, shares, strategies)
            shares = even_shares(structure) if split == "even" else optimal_shares(structure, budget.kind)
            each = {group[0]: budget * share for group, share in zip(structure.groups, shares, strict=True)}
            return _each(mechanism, structure, terms, each, strategies=strategies)
        if split == "even" or len(structure.groups) == 1:  # one table has nothing to share
            return Measurement.shared(structure, _calibration(mechanism, structure, terms, budget), grid=terms.draws)
        if budget.kind == "approx":
            return _together(mechanism, structure, terms, budget, optimal_shares(structure, "zcdp"))
        budget = optimal_split(structure, budget)
    return _each(mechanism, structure, terms, budget, strategies=strategies)


def noisy_contrasts(
    mechanism: Mechanism, structure: Structure, terms: Terms, budget: Budget | Mapping[Clique, Budget]
) -> Measurement:
    """Return the contrasts of exactly these cliques with calibrated noise; N is the contrast of the empty one.

    Raises what `measure` raises; that other measurements of the cliques would have less noise is no error here.
    """
    check_mechanism(mechanism)
    check_contrasts(structure)
    if isinstance(budget, Mapping):
        return _each(mechanism, structure, terms, budget, contrasts=True)
    check_budget(budget)
    if budget.is_zero:
        raise BudgetError(f"budget is {budget}; it must be positive")
    return Measurement.shared(
        structure,
        _calibration(mechanism, structure, terms, budget, contrasts=True),
        contrasts=True,
        grid=terms.draws,
    )


def check_mechanism(mechanism: object) -> None:
    """Refuse, with OptionError, what is no mechanism object."""
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        got = f"the class {mechanism.__name__}" if isinstance(mechanism, type) else type(mechanism).__name__
        raise OptionError(f"mechanism must be a mechanism object, such as make('mechanism', 'laplace'), got {got}")


def check_structure(structure: object) -> None:
    """Refuse, with StructureError, what is no Structure."""
    if not isinstance(structure, Structure):
        raise StructureError(f"structure must be a Structure, got {type(structure).__name__}")


def check_range_names(ranges: Collection[str], domain: Domain, terms: Terms, measured: Structure | None) -> None:
    """Refuse attributes whose ranges cannot be measured.

    measured: the tables that will be; None where a session chooses them. Raises StructureError for a name that the
    domain lacks, an attribute of too many codes, and one without a table of its own; BudgetError as `check_ranges`.
    """
    if ranges:
        check_ranges(terms)
    for name in ranges:
        if name not in domain:
            raise StructureError(f"ranges name {name!r}, which is no attribute{did_you_mean(name, domain.names)}")
        plan_ranges(domain[name].size, gaussian=True)
        if measured is not None and ((name,),) not in measured.groups:
            raise StructureError(
                f"ranges of {name!r} are measured in its own table, and no clique is [{name!r}] alone; add that "
                "clique, or leave it out of ranges"
            )


def sensitivity_of(
    structure: Structure, terms: Terms, *, contrasts: bool = False, strategy: RangeStrategy | None = None
) -> Sensitivity:
    """Return how far one person moves what is measured: tables, contrasts, or the windows of the one table."""
    if strategy is None:
        return terms.sensitivity(structure, contrasts=contrasts)
    return strategy.sensitivity(terms.neighbours, rows_per_person=terms.rows_per_person)


def _calibration(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budget: Budget,
    contrasts: bool = False,
    strategy: RangeStrategy | None = None,
) -> Calibration:
    sensitivity = sensitivity_of(structure, terms, contrasts=contrasts, strategy=strategy)
    return calibrate(mechanism, mechanism.noise(sensitivity, budget), sensitivity, budget)


def _each(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budgets: Mapping[Clique, Budget],
    contrasts: bool = False,
    strategies: tuple[RangeStrategy | None, ...] = (),
) -> Measurement:
    """Return the measurement with a noise for each table, whose costs add up."""
    shares = _by_group(structure, budgets)
    return Measurement(
        structure=structure,
        calibrations=tuple(
            _calibration(mechanism, structure.only(number), terms, share, contrasts, strategy)
            for number, (share, strategy) in enumerate(zip(shares, strategies or [None] * len(shares), strict=True))
        ),
        of_group=tuple(range(len(shares))),
        contrasts=contrasts,
        grid=terms.draws,
        strategies=strategies,
    )


def even_shares(structure: Structure) -> list[Fraction]:
    """Return equal shares of all tables, to about four digits; they sum to 1."""
    return _decimals([1.0] * len(structure.groups))


def range_strategies(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budget: Budget | Mapping[Clique, Budget],
    ranges: Collection[str],
) -> tuple[RangeStrategy | None, ...]:
    """Return the windows of each table of one attribute whose ranges are wanted; () where all are measured by cells."""
    budgets = [*budget.values()] if isinstance(budget, Mapping) else [budget]
    if not budgets or not any(((name,),) in structure.groups for name in ranges):
        return ()
    check_ranges(terms)
    check_budget(budgets[0])
    unit = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    gaussian = event_of(mechanism.noise(unit, budgets[0])).kind in DELTAS_TOGETHER
    strategies = tuple(
        plan_ranges(structure.domain[group[0][0]].size, gaussian=gaussian)
        if len(group) == len(group[0]) == 1 and group[0][0] in ranges
        else None
        for group in structure.groups
    )
    return strategies if any(strategies) else ()


def check_ranges(terms: Terms) -> None:
    """Refuse, with BudgetError, ranges of rows that do not count 1 each, as sensitivity is proven for those."""
    if terms.contributions is not None or terms.draws > 1:
        raise BudgetError(
            "ranges are measured where each row counts as 1; leave ranges out with contributions and with two related "
            "tables"
        )


def _check_worth(contrasts: Measurement, tables: Measurement) -> None:
    """Refuse, with BudgetError, contrasts with more noise in the product of a named clique than tables would have.

    tables: of the cliques that were named, at the same budget. Smaller sets inside of many cliques may have less noise
    in the mean of many tables, and N nearly always has; that is no reason to refuse, as these are known well anyway.
    """
    ratios = contrasts.ratios_to(tables).tolist()
    of = dict(zip(map(frozenset, contrasts.structure.cliques), ratios, strict=True))
    named = [clique for clique in tables.structure.cliques if clique]
    if not named:
        return
    worst = max(named, key=lambda one: of[frozenset(one)])
    if of[frozenset(worst)] > _ROOM + _LATTICE / float(tables.variances.min()):
        raise BudgetError(
            f"split = 'contrasts' would give the product of {' x '.join(worst)} {of[frozenset(worst)]:.3g} times the "
            "noise variance that tables give it at the same budget; leave split = 'even'"
        )


def _together(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budget: Budget,
    shares: Sequence[Fraction],
    strategies: tuple[RangeStrategy | None, ...] = (),
) -> Measurement:
    """Return the measurement with Gaussian noises that cost (epsilon, delta) together. shares: of rho, by table."""
    windows = strategies or (None,) * len(shares)
    alone = [
        sensitivity_of(structure.only(number), terms, strategy=strategy) for number, strategy in enumerate(windows)
    ]
    delta_of = None
    with suppress(BudgetError):  # of a mechanism that serves no rho, hence none of several widths
        delta_of = DELTAS_TOGETHER.get(event_of(mechanism.noise(alone[0], Budget.zcdp(1))).kind)
    if delta_of is None:
        task = "measure ranges beside other tables" if strategies else "be split over tables"
        other = "leave ranges out" if strategies else "ask for split = 'even' (a learner's option where it splits)"
        raise BudgetError(
            f"{budget} can {task} for Gaussian noise only, not for {type(mechanism).__name__}; ask for mechanism "
            f"'gaussian' or for a pure or zCDP budget, or {other}"
        )
    alike = parts_of(zip(shares, alone, strict=True))
    rho = largest_rho(
        delta_of,
        lambda rho: {(one.l2_squared / (2 * share * rho), one): count for (share, one), count in alike.items()},
        budget.epsilon,
        budget.delta,
    )
    calibrations = tuple(
        _calibration(mechanism, structure.only(number), terms, Budget.zcdp(share * rho), strategy=strategy)
        for number, (share, strategy) in enumerate(zip(shares, windows, strict=True))
    )
    try:
        check_together([(one.noise, one.sensitivity) for one in calibrations], budget)
    except BudgetError as error:
        raise BudgetError(f"mechanism fault: {error}") from None
    return Measurement(
        structure=structure,
        calibrations=calibrations,
        of_group=tuple(range(len(shares))),
        together=budget,
        grid=terms.draws,
        strategies=strategies,
    )


def _by_group(structure: Structure, budgets: Mapping[Clique, Budget]) -> list[Budget]:
    own: dict[int, Budget] = {}
    for clique, budget in budgets.items():
        check_budget(budget)
        number = structure.find(clique)[0]
        if number in own:
            raise BudgetError(f"clique {clique!r} is given two budgets; name each table once")
        own[number] = budget
    for number, group in enumerate(structure.groups):
        if number not in own:
            raise BudgetError(f"clique {group[0]!r} has no budget; give one to each measured clique")
    return [own[number] for number in range(len(structure.groups))]


# --------------------------------------------------------------------------------------------------
# Split of a budget over tables of unequal size

#: Weights and their products with numbers of cells stay within doubles.
_MAX_WEIGHT = Fraction(10**100)


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

    >>> from dpgm_core.domain.domain import Domain
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

    >>> from dpgm_core.domain.domain import Domain
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
        if not 1 / _MAX_WEIGHT <= own[number] <= _MAX_WEIGHT:
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


def check_determined(domain: Domain) -> None:
    """Refuse, with BudgetError, a domain whose bins or labels are still to be found, where no session finds them.

    >>> check_determined(Domain.from_sizes({"a": 2}))
    """
    if domain.undetermined:
        raise BudgetError(
            f"bins or labels of {', '.join(map(repr, domain.undetermined[:5]))} are still to be found privately, which "
            "one release of tables cannot do; fit with named cliques or with a selector does, or give them public ones"
        )
