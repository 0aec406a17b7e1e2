"""`ReplayCurator`: serves saved releases to learners in place of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from threading import Lock

from dpgm_core.curator.contract import Rounds, Session
from dpgm_core.curator.funds import Single
from dpgm_core.curator.live import HoldoutKeeper
from dpgm_core.errors import BudgetError, OptionError, StructureError
from dpgm_core.privacy.budget import Budget, check_budget, compose_budgets
from dpgm_core.privacy.measurement import check_structure
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.pooling import check_merged, pool, united
from dpgm_core.releases.release import NoisyTables, check_alike, check_domain, costs_apart
from dpgm_core.releases.views import equalize_totals, plausible
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["ReplayCurator"]


class ReplayCurator(Single, HoldoutKeeper):
    """Curator that serves saved releases, in their order, to a learner that makes the same requests.

    A first request for one release of everything gets all of them pooled. What the files do not hold is refused:
    other budgets or cliques, another order, subsampling, a second use.

    Parameters
    ----------
    releases : NoisyTables or sequence of NoisyTables
        About the same people under the same terms; those of a holdout are not served.
    structure : Structure, optional
        Of the model; by default the first release's, with what the others measured outside of it.
    conversion_delta : Fraction, optional
        Needed where releases cost different kinds of budget.
    """

    def __init__(
        self,
        releases: NoisyTables | Sequence[NoisyTables],
        structure: Structure | None = None,
        *,
        conversion_delta: Fraction | None = None,
    ) -> None:
        super().__init__()
        listed = (releases,) if isinstance(releases, NoisyTables) else releases
        if not isinstance(listed, Sequence) or not all(isinstance(one, NoisyTables) for one in listed):
            raise OptionError(f"a replay takes a release (NoisyTables) or several, got {type(releases).__name__}")
        if structure is not None:
            check_structure(structure)
        originals = tuple(behind for one in listed for behind in one.published)
        if not originals:
            raise BudgetError("a replay needs at least one release")
        check_alike(originals)
        self._releases = tuple(one for one in originals if not one.holdout)
        self._holdouts = tuple(one for one in originals if one.holdout)
        if not self._releases:
            raise BudgetError(
                "the release is of a holdout, which is compared with and never learned from; give the releases "
                "of the same run too"
            )
        check_merged(originals)
        self._structure = _structure_with_room(self._releases) if structure is None else structure
        check_domain(self._structure.domain, originals)
        if len(self._holdouts) > 1:
            pool(self._holdouts, conversion_delta)  # refuses holdouts that do not pool, before the learning
        for one in self._releases:
            if one.round is not None and one.round.clip is not None:
                raise BudgetError("the release holds clipped scores of a round of training, not counts to learn from")
            for clique in one.structure.cliques:
                if self._structure.covering(clique) is None:
                    raise StructureError(f"the release holds {clique!r}, which no clique of the model contains")
        # The budgets of the tables of a simulated pool do not add up.
        self._budgets = [
            one.cost if one.round is not None or one.provenance.get("simulated") else one.measurement.budget
            for one in self._releases
        ]
        self._costs = costs_apart(self._releases, self._budgets)
        self._budget = compose_budgets(self._costs, conversion_delta)
        self.conversion_delta = conversion_delta
        self._served = 0
        self._pooled = False
        self._lock = Lock()

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
        """The budget of all releases together."""
        return self._budget

    @property
    def remaining(self) -> Budget:
        """The budget of the releases not yet served."""
        left = self._costs[self._served :]
        return compose_budgets(left, self.conversion_delta) if left else Budget.zero(self._budget.kind)

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """The releases served so far."""
        return self._releases[: self._served]

    @property
    def replayed(self) -> bool:
        """True: its releases were paid for when they were made."""
        return True

    @property
    def contrasts(self) -> bool:
        """Whether any of its releases is of contrasts."""
        return any(one.contrasts for one in self._releases)

    @property
    def pooled(self) -> bool:
        """Whether all releases were served as one."""
        return self._pooled

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        split: str | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """Return the next saved release, or all of them as one, however split.

        Raises BudgetError if there is none, or for a request of another.
        """
        served = self._served
        count, left = len(self._releases), len(self._releases) - served
        if not left:
            raise BudgetError(
                f"the learner asks for one release more than the {count} saved; a replay cannot make new ones"
            )
        several = budget is None and left > 1
        if several and served:
            raise BudgetError(
                f"the learner asks for one release of all that remains, but {left} saved ones are left; learn with one "
                "that asks for each, or with one that asks for a single release and gets all as one"
            )
        serving, cost = self._releases[served], self._budgets[served]
        what = "the saved release" if count == 1 else f"saved release {served + 1} of {count}"
        if several:
            serving, what = pool(self._releases, self.conversion_delta), f"the {count} saved releases together"
        if budget is not None and not isinstance(budget, Mapping):
            check_budget(budget)
            if budget not in (cost, serving.cost):
                raise BudgetError(
                    f"{what} was made for {cost}; the learner asks for {budget}, which a replay cannot make"
                )
        requested = budget if isinstance(budget, Mapping) else cliques
        if requested is not None:
            cliques_held = {frozenset(clique) for clique in serving.structure.cliques}
            if {frozenset((one,) if isinstance(one, str) else one) for one in requested} != cliques_held:
                raise BudgetError(
                    f"{what} holds other cliques than the learner asks for: {_cliques_text(serving.structure.cliques)}"
                )
        if isinstance(budget, Mapping) and not _is_split_as(serving, budget):
            raise BudgetError(f"{what} was paid for with other budgets per clique than the learner asks for")
        if accept is not None:
            accept(serving.noise)
        with self._lock:
            if self._served != served:
                raise BudgetError(f"{what} was served in the meantime, by another thread or by `accept`; ask again")
            self._served = count if several else served + 1
            self._pooled = several
        return serving if several else plausible(equalize_totals(serving))

    def rounds(self, n: int, **request: object) -> AbstractContextManager[Rounds]:
        """Raise BudgetError: saved releases hold no rounds."""
        raise BudgetError("a replay holds finished releases, no rounds; this learner needs the records' curator")

    def session(self, **request: object) -> AbstractContextManager[Session]:
        """Raise BudgetError: saved releases allow no further steps."""
        raise BudgetError(
            "a replay holds finished releases, and what a session chose stands in its file; selecting needs the "
            "records' curator"
        )

    def __repr__(self) -> str:
        return f"ReplayCurator({len(self._releases)} release(s), {self._structure})"


def _structure_with_room(releases: Sequence[NoisyTables]) -> Structure:
    """The structure that the first one was made to learn, with every table that has no room in it."""
    first = releases[0].modelled or releases[0].structure
    structures = [one.structure for one in releases[1:]]
    if all(first.covering(clique) is not None for other in structures for clique in other.cliques):
        return first
    return united([first, *structures])


def _is_split_as(release: NoisyTables, budgets: Mapping[Clique, Budget]) -> bool:
    """Whether each table was calibrated for the requested budget, and paid for as such."""
    measurement = release.measurement
    if measurement.together is not None:
        return False  # its tables were paid for together
    own = {measurement.structure.find(clique)[0]: budget for clique, budget in budgets.items()}
    if len(measurement.calibrations) == 1 and len(own) > 1:
        return False
    return all(
        measurement.calibrations[number].budget == own.get(group) for group, number in enumerate(measurement.of_group)
    )


def _cliques_text(cliques: Sequence[Clique]) -> str:
    """A few of them, in words."""
    return ", ".join(" x ".join(clique) or "()" for clique in cliques[:4]) + (", ..." if len(cliques) > 4 else "")
