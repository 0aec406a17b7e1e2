"""Verification of a release file: the facts behind its guarantee are computed again.

What a noise costs is computed again from its event; then what its scale was calibrated to, the cost of all, the rounds,
and what is unsafe are checked. Whoever rewrites the scale itself, or the noisy values, is not found out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpgm_core.arrays import Array
from dpgm_core.errors import BudgetError, ModelFileError, StructureError
from dpgm_core.noise.calibration import Calibration
from dpgm_core.noise.claims import check_claims, check_together
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.contrasts import check_contrasts
from dpgm_core.noise.measurement import Measurement
from dpgm_core.privacy.accounting import MAX_ROUNDS, compose, sampling_probability
from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import ClippedScore
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.round import Round
from dpgm_core.structure import Structure

__all__ = [
    "check_sensitivities",
    "check_sum",
    "is_round_cost_proven",
    "read_contrasts",
    "read_round",
    "stated_unsafe",
]

#: Room for the rounding of an accountant's doubles.
_ROOM = 1 + 1e-8


def check_sensitivities(measurement: Measurement, terms: Terms, clip: ClippedScore | None = None) -> None:
    """Refuse calibrations to anything but what one person can change: in all tables, or in one table each."""
    calibrations, structure = measurement.calibrations, measurement.structure
    if len(calibrations) > 1 and list(measurement.of_group) != list(range(len(calibrations))):
        raise ModelFileError("its noises do not fit its tables: there must be one for all of them, or one for each")
    parts = [structure] if len(calibrations) == 1 else [structure.only(group) for group in measurement.of_group]
    for one, part in zip(calibrations, parts, strict=True):
        needed = terms.sensitivity(part, clip, contrasts=measurement.contrasts)
        if one.sensitivity != needed:
            raise ModelFileError(
                f"it states {one.sensitivity}, but under {terms.neighbours.value} neighbours with rows_per_person = "
                f"{terms.rows_per_person} one person can change {needed}; the file was edited"
            )
        _check_cost(one)


def check_sum(measurement: Measurement) -> None:
    """Refuse noises whose cost together, if it is stated, is below what is proven; see `dpgm_core.noise.together`."""
    if measurement.together is None:
        return
    try:
        check_together([(one.noise, one.sensitivity) for one in measurement.calibrations], measurement.together)
    except BudgetError as error:
        raise ModelFileError(f"{error}; the file was edited") from None


def read_contrasts(document: Mapping[str, Any], structure: Structure, terms: Terms) -> bool:
    """Whether a file says that it holds contrasts; ModelFileError where it cannot hold them."""
    stated = document.get("contrasts", False)
    if not isinstance(stated, bool):
        raise ModelFileError("it does not say whether it holds contrasts")
    if not stated:
        return False
    try:
        check_contrasts(structure)
    except StructureError as error:
        raise ModelFileError(f"it holds no contrasts, as it says: {error}") from None
    if terms.contributions is not None:
        raise ModelFileError("contrasts go without normalised contributions")
    if terms.total_policy == "estimated" and () not in structure.cliques:
        raise ModelFileError("it estimates N, but has not measured it: the empty clique is missing")
    return True


def read_round(plain: object) -> Round:
    """The round that a file states; ModelFileError for anything else."""
    if not isinstance(plain, Mapping) or set(plain) != {"number", "of", "sampling_rate", "clip_norm", "grid"}:
        raise ModelFileError("its round must state number, of, sampling_rate, clip_norm and grid")
    clipped = plain["grid"] is not None
    for name in ("sampling_rate", *(["clip_norm"] if clipped else [])):
        if not isinstance(plain[name], str):
            raise ModelFileError(f"the {name} of its rounds must be an exact amount, as a text")
    if not clipped and plain["clip_norm"] is not None:
        raise ModelFileError("its round states a clip norm without a grid")
    of = whole("the number of rounds", plain["of"], least=1, most=MAX_ROUNDS)
    return Round(
        number=whole("the round", plain["number"], least=1, most=of),
        of=of,
        sampling_rate=sampling_probability(plain["sampling_rate"]),
        clip=ClippedScore(norm=plain["clip_norm"], grid=plain["grid"]) if clipped else None,
    )


def is_round_cost_proven(measurement: Measurement, cost: Budget, round: Round, terms: Terms) -> bool:
    """Whether sums or Renyi divergences prove the stated cost of all rounds together, of one noise.

    Pure and zCDP costs are sums, so a lower one raises ModelFileError. An (epsilon, delta) below the Renyi bound may
    still be right, by privacy loss distributions, which take too long for a reader: then False.
    """
    (one,) = measurement.calibrations
    spent = one.noise.cost
    accountant = compose(
        one.noise.event,
        one.sensitivity,
        rounds=round.of,
        sampling_rate=round.sampling_rate,
        neighbours=terms.neighbours,
        presence=terms.presence(measurement.structure, round.clip),
    )
    stated = float(cost.epsilon) * _ROOM
    if cost.kind == "approx":
        return accountant.pure_epsilon() <= stated or accountant.renyi_epsilon(cost.delta) <= stated
    if spent.kind != cost.kind:
        covered = False
    elif cost.kind == "zcdp" or round.sampling_rate == 1:
        covered = spent * round.of <= cost
    else:
        covered = accountant.pure_epsilon() <= stated
    if not covered:
        raise ModelFileError(f"the cost is not that of the noise: {round.of} rounds cost more than {cost}")
    return True


def stated_unsafe(noises: Sequence[Noise], values: Array, stated: str | None) -> str | None:
    """Why the guarantee does not hold to the letter, as the noises say; refused where the file conceals it.

    values: the noisy tables, whole numbers where all noise is exact.
    """
    if values.dtype.kind == "f" and all(noise.exact for noise in noises):
        raise ModelFileError("its noise is said to be exact, but its tables hold no whole numbers; it was edited")
    reasons = sorted({noise.unsafe for noise in noises if noise.unsafe is not None})
    if reasons and not stated:
        raise ModelFileError("its noise is unsafe, which the file conceals; it was edited")
    return "; ".join(reasons) or stated


def _check_cost(one: Calibration) -> None:
    """Compute the least cost of the noise again, from its event and the sensitivity; see `dpgm_core.noise.claims`."""
    try:
        check_claims(one.noise, one.sensitivity)
    except BudgetError as error:
        raise ModelFileError(f"{error}; the file was edited") from None
