"""A curator over saved releases instead of records: learning from published statistics is the same code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from dpgm_core.curator.contract import Rounds
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import ClippedScore, Contributions
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure

__all__ = ["ReplayCurator"]


class ReplayCurator:
    """Serves saved releases instead of records, so that learning from published statistics is the same code.

    releases: at least one. structure: of the model; the first release's structure when None. It refuses what the
    files do not hold: other budgets, other cliques, subsampling, a second helping.
    """

    def __init__(self, releases: NoisyTables | Sequence[NoisyTables], structure: Structure | None = None) -> None:
        self._releases = [releases] if isinstance(releases, NoisyTables) else list(releases)
        if not self._releases:
            raise BudgetError("a replay needs at least one release")
        for one in self._releases[1:]:
            if one.neighbours is not self._releases[0].neighbours:
                raise BudgetError("releases under different neighbouring relations do not compose")
            if one.contributions != self._releases[0].contributions:
                raise BudgetError("releases that weight rows differently do not go together; learn from one of them")
        self._structure = self._releases[0].structure if structure is None else structure
        for one in self._releases:
            if "grid" in (one.provenance.get("rounds") or {}):
                raise BudgetError("the release holds clipped scores of a round of training, not counts to learn from")
            for clique in one.structure.cliques:
                if self._structure.covering(clique) is None:
                    raise StructureError(f"the release holds {clique!r}, which no clique of the model contains")
        self._served = 0

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._structure

    @property
    def neighbours(self) -> Neighbours:
        """The relation the releases were made under."""
        return self._releases[0].neighbours

    @property
    def contributions(self) -> Contributions | None:
        """How rows were weighted; of all releases, or of none."""
        return self._releases[0].contributions

    @property
    def budget(self) -> Budget:
        """What the releases cost in all."""
        cost = self._releases[0].cost
        for one in self._releases[1:]:
            cost = cost + one.cost
        return cost

    @property
    def remaining(self) -> Budget:
        """The cost of the releases not yet served."""
        left = Budget.zero(self.budget.kind)
        for one in self._releases[self._served :]:
            left = left + one.cost
        return left

    @property
    def replayed(self) -> bool:
        """True: its releases were paid for when they were made."""
        return True

    @property
    def released(self) -> list[NoisyTables]:
        """The releases served so far."""
        return self._releases[: self._served]

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyTables:
        """The next saved release. Raises BudgetError when there is none or when something else is asked."""
        if self._served >= len(self._releases):
            raise BudgetError(f"all {len(self._releases)} saved release(s) were served; a replay cannot make new ones")
        if sampling_rate != 1.0:
            raise BudgetError("a saved release was not subsampled; a replay cannot change that")
        found = self._releases[self._served]
        if isinstance(budget, Budget) and budget != self.remaining and budget != found.cost:
            raise BudgetError(f"the saved release cost {found.cost}; a replay cannot make one that costs {budget}")
        if isinstance(budget, Mapping) or cliques is not None:
            wanted = {frozenset(clique) for clique in (budget if isinstance(budget, Mapping) else cliques or ())}
            if wanted != {frozenset(clique) for clique in found.structure.cliques}:
                raise BudgetError("the saved release holds other cliques than the learner asks for")
        self._served += 1
        return found

    def rounds(
        self, n: int, *, sampling_rate: float, budget: Budget | None = None, clip: ClippedScore | None = None
    ) -> AbstractContextManager[Rounds]:
        """Saved releases hold no rounds: raises BudgetError."""
        raise BudgetError("a replay holds finished releases, no rounds; this learner needs the records' curator")

    def __repr__(self) -> str:
        return f"ReplayCurator({len(self._releases)} release(s), {self._structure})"
