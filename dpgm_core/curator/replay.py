"""A curator over saved releases instead of records: learning from published statistics is the same code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

from attrs import evolve

from dpgm_core.curator.contract import Rounds
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.budget import Budget, composed
from dpgm_core.privacy.contributions import ClippedScore
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.levelled import levelled
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure

__all__ = ["ReplayCurator"]


class ReplayCurator:
    """Serves saved releases, in their order, to a learner that asks for what was asked then.

    releases: at least one, about the same people under the same terms. structure: of the model; the first release's
    structure when None. conversion_delta: needed where releases cost different kinds of budget. It refuses what the
    files do not hold: other budgets, other cliques, another order, subsampling, a second helping.
    """

    def __init__(
        self,
        releases: NoisyTables | Sequence[NoisyTables],
        structure: Structure | None = None,
        *,
        conversion_delta: Fraction | None = None,
    ) -> None:
        self._releases = (releases,) if isinstance(releases, NoisyTables) else tuple(releases)
        if not self._releases:
            raise BudgetError("a replay needs at least one release")
        for one in self._releases[1:]:
            _check_alike(self._releases[0], one)
        self._structure = self._releases[0].structure if structure is None else structure
        for one in self._releases:
            if one.round is not None and one.round.clip is not None:
                raise BudgetError("the release holds clipped scores of a round of training, not counts to learn from")
            for clique in one.structure.cliques:
                if self._structure.covering(clique) is None:
                    raise StructureError(f"the release holds {clique!r}, which no clique of the model contains")
        self._asked = [one.cost if one.round is not None else one.measurement.asked for one in self._releases]
        self._budget = composed(self._asked, conversion_delta)
        self.conversion_delta = conversion_delta
        self._served = 0

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._structure

    @property
    def terms(self) -> Terms:
        """The terms the releases were made under."""
        return self._releases[0].terms

    @property
    def budget(self) -> Budget:
        """What was asked for the releases in all."""
        return self._budget

    @property
    def remaining(self) -> Budget:
        """What was asked for the releases not yet served."""
        left = self._asked[self._served :]
        return composed(left, self.conversion_delta) if left else Budget.zero(self._budget.kind)

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """The releases served so far."""
        return self._releases[: self._served]

    @property
    def replayed(self) -> bool:
        """True: its releases were paid for when they were made."""
        return True

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
    ) -> NoisyTables:
        """The next saved release. Raises BudgetError when there is none or when something else is asked."""
        if self._served >= len(self._releases):
            raise BudgetError(f"all {len(self._releases)} saved release(s) were served; a replay cannot make new ones")
        found = self._releases[self._served]
        left = len(self._releases) - self._served
        if budget is None and left > 1:
            raise BudgetError(
                f"the learner asks for one release of all that remains, but {left} saved ones are left; learn from one "
                "of them, or with a learner that asks for each"
            )
        if (
            isinstance(budget, Budget)
            and budget not in (self._asked[self._served], found.cost)
            and (left > 1 or budget != self.remaining)
        ):
            raise BudgetError(f"the saved release cost {found.cost}; a replay cannot make one that costs {budget}")
        wanted = budget if isinstance(budget, Mapping) else cliques
        if wanted is not None:
            held = {frozenset(clique) for clique in found.structure.cliques}
            if {frozenset((one,) if isinstance(one, str) else one) for one in wanted} != held:
                raise BudgetError("the saved release holds other cliques than the learner asks for")
        if isinstance(budget, Mapping) and not _is_split_as(found, budget):
            raise BudgetError("the saved release was paid for with other budgets per clique than the learner asks for")
        self._served += 1
        return levelled(found)

    def rounds(
        self,
        n: int,
        *,
        sampling_rate: float,
        cliques: Iterable[Clique] | None = None,
        budget: Budget | None = None,
        clip: ClippedScore | None = None,
    ) -> AbstractContextManager[Rounds]:
        """Saved releases hold no rounds: raises BudgetError."""
        raise BudgetError("a replay holds finished releases, no rounds; this learner needs the records' curator")

    def __repr__(self) -> str:
        return f"ReplayCurator({len(self._releases)} release(s), {self._structure})"


def _check_alike(first: NoisyTables, other: NoisyTables) -> None:
    """Refuse releases whose guarantees do not add up to one."""
    if other.neighbours is not first.neighbours:
        raise BudgetError("releases under different neighbouring relations do not compose")
    if other.contributions != first.contributions:
        raise BudgetError("releases that weight rows differently do not go together; learn from one of them")
    if evolve(other.terms, total="estimated") != evolve(first.terms, total="estimated"):
        raise BudgetError(
            f"releases that protect different units do not add up: {first.unit}, {first.rows_per_person} row(s) by "
            f"{first.terms.person!r}, and {other.unit}, {other.rows_per_person} row(s) by {other.terms.person!r}"
        )


def _is_split_as(release: NoisyTables, budgets: Mapping[Clique, Budget]) -> bool:
    """Whether each table was calibrated for the budget asked now."""
    measurement = release.measurement
    own = {measurement.structure.find(clique)[0]: budget for clique, budget in budgets.items()}
    if len(measurement.calibrations) == 1 and len(own) > 1:
        return False
    return all(
        measurement.calibrations[number].budget == own.get(group) for group, number in enumerate(measurement.of_group)
    )
