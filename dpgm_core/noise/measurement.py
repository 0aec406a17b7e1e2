"""Measurements: a structure with the calibrated noise of each of its tables, before any record is read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import attrs
import numpy as np

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.errors import BudgetError, OptionError, StructureError
from dpgm_core.noise.calibration import Calibration, add_noise, calibrated
from dpgm_core.noise.claims import DELTAS_TOGETHER, check_together, event_of, parts_of
from dpgm_core.noise.contract import Mechanism, Noise
from dpgm_core.noise.contrasts import MAX_SUM, check_contrasts, monomials, noise_ratios, products, spread
from dpgm_core.noise.split import check_split, optimal_shares, optimal_split
from dpgm_core.noise.together import largest_rho
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.randomness import Randomness
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["Measurement", "check_mechanism", "check_structure", "measure", "noisy_contrasts"]

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
        of these sums.
    """

    structure: Structure
    calibrations: tuple[Calibration, ...]
    of_group: tuple[int, ...]
    together: Budget | None = None
    contrasts: bool = False

    @classmethod
    def shared(cls, structure: Structure, calibration: Calibration, *, contrasts: bool = False) -> Measurement:
        """Return the measurement with one noise for all tables."""
        return cls(
            structure=structure,
            calibrations=(calibration,),
            of_group=(0,) * len(structure.groups),
            contrasts=contrasts,
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
        """The noise of each group, in the structure's order."""
        return tuple(self.calibrations[number].noise for number in self.of_group)

    @property
    def variances(self) -> FloatArray:
        """The noise variance of each group, (groups,), records**2 per cell.

        Of contrasts the one along a table's own contrast z_S(x) / sqrt(2^|S|), so Var(c_S) / 2^|S|.
        """
        variances = self._variances
        return variances / np.asarray(self.structure.sizes) if self.contrasts else variances

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
        alike = np.array([calibration.noise.variance for calibration in self.calibrations])
        variances: FloatArray = alike[list(self.of_group)]
        return variances

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter (textbook noise), if so."""
        reasons = {one.noise.unsafe for one in self.calibrations if one.noise.unsafe is not None}
        return "; ".join(sorted(reasons)) or None

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
        if self.contrasts:
            return spread(self.structure, self._drawn_contrasts(products(counts), randomness), total)
        parts = counts.arrays()
        for number, calibration in enumerate(self.calibrations):
            alike = [group for group, one in enumerate(self.of_group) if one == number]
            bare = np.concatenate([parts[group].reshape(-1) for group in alike])
            noisy = add_noise(bare, calibration.noise.draw(bare.shape, randomness))
            ends = np.cumsum([parts[group].size for group in alike])[:-1]
            for group, part in zip(alike, np.split(noisy, ends), strict=True):
                parts[group] = part
        return Tables(self.structure, np.concatenate(parts))

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
    if not isinstance(budget, Mapping):
        check_budget(budget)
        if budget.is_zero:
            raise BudgetError(f"budget is {budget}; it must be positive")
        if split == "even" or len(structure.groups) == 1:  # one table has nothing to share
            return Measurement.shared(structure, _calibration(mechanism, structure, terms, budget))
        if budget.kind == "approx":
            return _together(mechanism, structure, terms, budget)
        budget = optimal_split(structure, budget)
    return _each(mechanism, structure, terms, budget)


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
        structure, _calibration(mechanism, structure, terms, budget, contrasts=True), contrasts=True
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


def _calibration(
    mechanism: Mechanism, structure: Structure, terms: Terms, budget: Budget, contrasts: bool = False
) -> Calibration:
    sensitivity = terms.sensitivity(structure, contrasts=contrasts)
    return calibrated(mechanism, mechanism.noise(sensitivity, budget), sensitivity, budget)


def _each(
    mechanism: Mechanism,
    structure: Structure,
    terms: Terms,
    budgets: Mapping[Clique, Budget],
    contrasts: bool = False,
) -> Measurement:
    """Return the measurement with a noise for each table, whose costs add up."""
    shares = _by_group(structure, budgets)
    return Measurement(
        structure=structure,
        calibrations=tuple(
            _calibration(mechanism, structure.only(number), terms, share, contrasts)
            for number, share in enumerate(shares)
        ),
        of_group=tuple(range(len(shares))),
        contrasts=contrasts,
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


def _together(mechanism: Mechanism, structure: Structure, terms: Terms, budget: Budget) -> Measurement:
    """Return the measurement with Gaussian noises of an optimal split that cost (epsilon, delta) together."""
    shares = optimal_shares(structure, "zcdp")
    alone = [terms.sensitivity(structure.only(number)) for number in range(len(shares))]
    delta_of = None
    with suppress(BudgetError):  # of a mechanism that serves no rho, hence none of several widths
        delta_of = DELTAS_TOGETHER.get(event_of(mechanism.noise(alone[0], Budget.zcdp(1))).kind)
    if delta_of is None:
        raise BudgetError(
            f"{budget} can be split over tables for Gaussian noise only, not for {type(mechanism).__name__}; ask for "
            "mechanism 'gaussian', for split = 'even' (a learner's option where it splits), or for a pure or "
            "zCDP budget"
        )
    alike = parts_of(zip(shares, alone, strict=True))
    rho = largest_rho(
        delta_of,
        lambda rho: {(one.l2_squared / (2 * share * rho), one): count for (share, one), count in alike.items()},
        budget.epsilon,
        budget.delta,
    )
    calibrations = tuple(
        _calibration(mechanism, structure.only(number), terms, Budget.zcdp(share * rho))
        for number, share in enumerate(shares)
    )
    try:
        check_together([(one.noise, one.sensitivity) for one in calibrations], budget)
    except BudgetError as error:
        raise BudgetError(f"mechanism fault: {error}") from None
    return Measurement(
        structure=structure, calibrations=calibrations, of_group=tuple(range(len(shares))), together=budget
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
