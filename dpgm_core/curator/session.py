"""Sessions: adaptive steps out of one budget that was charged in full at the opening.

Each step counts its cost as spent before its first random bit, and is saved before it is returned. By composition the
whole session costs at most the sum of its steps, however adaptively they were chosen: pure epsilons
add, and zCDP composes fully adaptively under a bound fixed in advance (Whitehouse, Ramdas, Rogers, Wu 2023, Fully
adaptive composition; Feldman and Zrnic 2021). The session is that filter: a step that does not fit is refused. Under an
(epsilon, delta) whose choices are planned the filter is that of `dpgm_core.privacy.session_account`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import attrs
import numpy as np

from dpgm_core._util.arrays import Array, IntArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.counting.scores import distances, mean_distances, whole_scores
from dpgm_core.curator.funds import Measurer, Receipt, Turns
from dpgm_core.curator.records import HeldRecords
from dpgm_core.curator.redaction import strip_traceback
from dpgm_core.curator.steps import Candidates, DescentStep, cast_votes, check_exact_type
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, OptionError, Overspent, StructureError
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.contrasts import check_contrasts
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.measurement import (
    Measurement,
    even_shares,
    measure,
    noisy_contrasts,
    range_strategies,
    sensitivity_of,
)
from dpgm_core.privacy.mechanism import Calibration, Mechanism, add_noise, calibrate
from dpgm_core.privacy.selection import (
    SCORE_GRID,
    TableDistance,
    choose_units,
    count_forest,
    draw_candidates,
    forest_ends,
)
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.session_account import SessionSpending
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter, likely_distance
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.session import Step, score_sensitivity, session_release
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, SessionTerms, Verdict, session_mechanism
from dpgm_core.releases.totals import stated_total
from dpgm_core.releases.views import check_untouched
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = ["LiveSession"]


class LiveSession(Turns[HeldRecords], Measurer):
    """The session of a LiveCurator: paid for when it was opened. A context manager; leaving it drops the records.

    Parameters
    ----------
    session : SessionTerms
        What it was opened for; the workload and the records have the private bins that were found.
    records : HeldRecords
        Open, with the workload's attributes.
    receipt : Receipt
        Of its payment; its cost is what it was opened with, before an (epsilon, delta) was turned into rho.
    mechanism : Mechanism
        Of the noise of its tables; scores have core's own.
    spending : SessionSpending, optional
        What is left of its exact Gaussian account.
    ranges : sequence of str
        Attributes whose own tables are measured by windows of codes.
    publish : callable
        Saves the release as it is after each step and returns it.
    """

    def __init__(
        self,
        session: SessionTerms,
        records: HeldRecords,
        receipt: Receipt,
        *,
        mechanism: Mechanism,
        randomness: Randomness,
        terms: Terms,
        publish: Callable[[NoisyTables], NoisyTables],
        spending: SessionSpending | None = None,
        ranges: Sequence[str] = (),
    ) -> None:
        super().__init__(records)
        self._spending, self._ranges = spending, ranges
        self._session, self._receipt, self._publish = session, receipt, publish
        self._spent = self._reserved = Budget.zero(session.budget.kind)
        self._votes_spent = Budget.zero("approx")
        self._records, self._randomness, self._terms = records.records, randomness, terms
        self._mechanism, self._score_mechanism = mechanism, session_mechanism(session.budget)
        self._domain = session.workload.domain
        self._candidates = Candidates(session.workload)
        self._steps: list[Step] = []
        self._regressed: tuple[Regressions, Regressions] | None = None  # the last ones: as given, and by own domain
        self._release: NoisyTables | None = None
        self._modelled: Structure | None = None
        self._saved = False  # the release as it is now

    @property
    def domain(self) -> Domain:
        """The attributes as they are counted now, coarser after `coarsen`."""
        return self._domain

    @property
    def workload(self) -> Workload:
        """What the model is for."""
        return self._session.workload

    @property
    def terms(self) -> Terms:
        """What is protected."""
        return self._terms

    @property
    def budget(self) -> Budget:
        """What its steps may cost together, without what is reserved for a holdout."""
        return self._session.steps_budget - self._reserved

    @property
    def remaining(self) -> Budget:
        """What they may still cost; of an exact Gaussian account without the choices that are planned."""
        if self._spending is None:
            return self.budget - self._spent
        return Budget("zcdp", rho=self._spending.mu_squared / 2) - self._reserved

    @property
    def choices_left(self) -> tuple[Budget, ...] | None:
        """What each planned choice that was not made yet may cost; see `Session`."""
        if self._spending is None:
            return None
        return tuple(Budget("zcdp", rho=rho) for rho in self._spending.choices)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that came out so far."""
        return tuple(self._steps)

    def measure(
        self,
        cliques: Iterable[Clique] | Mapping[Clique, Budget],
        budget: Budget | None = None,
        *,
        contrasts: bool = False,
    ) -> NoisyTables:
        """Noisy tables: of `cliques` with one noise for `budget`, or each with a budget of its own; see `Session`.

        contrasts: their sums of products, and N where it is estimated, which gets a share like the mean of the others.
        """
        with self.turn():
            return self._measured(cliques, budget, contrasts=contrasts)

    def select(
        self, scores: TableDistance, budget: Budget, picks: int = 1, *, forest: Iterable[Clique] | None = None
    ) -> Choice:
        """`picks` candidates of each group by the exponential mechanism; see `dpgm_core.privacy.selection`."""
        with self.turn():
            scores = self._scored(scores, budget, choice=True)
            candidates, groups = scores.candidates, scores.choices
            connected = None if forest is None else _cliques_of(forest)
            ends = None if connected is None else self._forest_ends(scores, connected)
            most = min(map(len, groups)) if ends is None else count_forest(ends)
            whole("the number of picks", picks, least=1, most=most)
            person = scores.move(self._terms)
            grid, h = choose_units(budget, picks * len(groups), person)
            choice = Choice(
                candidates=candidates.cliques,
                groups=tuple(map(tuple, groups)),
                chosen=((),) * len(groups),
                temperature=h,
                grid=grid,
                person=person,
                kind="pure" if budget.kind == "pure" else "zcdp",
                forest=connected,
            )
            # What it costs depends on how many are picked, not on which.
            cost = attrs.evolve(choice, chosen=tuple(tuple(group[:picks]) for group in groups)).cost
            self._pay(cost, choices=picks * len(groups))

            def choose() -> tuple[tuple[int, ...], ...]:
                units = whole_scores(distances(self._tables(candidates), scores), scores, grid)
                return tuple(
                    tuple(
                        int(group[number])
                        for number in draw_candidates(units[list(group)], h, picks, self._randomness, ends)
                    )
                    for group in groups
                )

            choice = attrs.evolve(choice, chosen=strip_traceback(choose))
            self._keep(choice)
            return choice

    def score(self, scores: TableDistance, budget: Budget, *, mean: bool = False) -> NoisyScores:
        """All distances at once, or the mean of each group, with discrete Gaussian noise, records; see `Session`."""
        with self.turn():
            scores = self._scored(scores, budget)
            if not isinstance(mean, bool):
                raise OptionError(f"mean must be true or false, got {type(mean).__name__}")
            candidates, groups = scores.candidates, tuple(map(tuple, scores.choices))
            if budget.kind == "pure":
                raise BudgetError(
                    "noisy scores have Gaussian noise, which is never purely private; open the session with a zCDP or "
                    "(epsilon, delta) budget, or choose by select"
                )
            count = len(groups) if mean else len(candidates.cliques)
            sensitivity = score_sensitivity(count, scores.move(self._terms))
            budget, mechanism = self._drawn(budget, sensitivity), self._score_mechanism
            calibration = calibrate(mechanism, mechanism.noise(sensitivity, budget), sensitivity, budget)
            self._pay(calibration.noise.cost, noise=[calibration])

            def draw() -> Array:
                apart = distances(self._tables(candidates), scores)
                apart = mean_distances(apart, scores) if mean else apart
                return add_noise(apart, calibration.noise.draw(apart.shape, self._randomness))

            noisy = NoisyScores(
                candidates=candidates.cliques,
                values=strip_traceback(draw) / SCORE_GRID,
                calibration=calibration,
                groups=groups if mean else None,
            )
            self._keep(noisy)
            return noisy

    def descend(self, gradients: NodeGradients, budget: Budget) -> Descent:
        """One direction of each regression by the exponential mechanism; see `dpgm_core.privacy.descent`."""
        with self.turn():
            records = self._open()
            check_exact_type(gradients, "gradients", "a gradient", NodeGradients)
            self._check_kind(budget, choice=True)
            original, own = self._regressed or (None, gradients.regressions)
            if original is not gradients.regressions:
                original = gradients.regressions
                own = Regressions(
                    candidates=self._candidates.own(original.candidates, self._domain), loss=original.loss
                )
            step = DescentStep(attrs.evolve(gradients, regressions=own), budget, self._terms)
            self._pay(step.cost)
            self._regressed = original, own
            descent = step.draw(records.source, records.rows, self._randomness)
            self._keep(descent)
            return descent

    @property
    def votes(self) -> Budget | None:
        """What votes may still cost besides."""
        return None if self._session.votes is None else self._session.votes - self._votes_spent

    def vote(self, voter: Voter, budget: Budget) -> Verdict:
        """The graph that votes agree on, or nothing; see `dpgm_core.curator.steps`.

        Before any other step: votes are (epsilon, delta), what follows is rho, and simple sums are proven for one after
        the other.
        """
        with self.turn():
            records = self._open()
            voter = self._own_voter(voter, budget)
            persons = records.persons  # refused of records elsewhere, before it is counted as spent
            self._votes_spent = self._votes_spent + budget
            verdict = cast_votes(
                voter, budget, source=records.source, persons=persons, randomness=self._randomness, terms=self._terms
            )
            self._keep(verdict)
            return verdict

    def coarsen(self, merges: Mapping[str, Sequence[int]]) -> Domain:
        """Count some attributes by fewer codes from now on; see `Session`."""
        with self.turn():
            records = self._open()
            if self._session.merges:
                raise StructureError("the codes of this session were merged already, and are merged once")
            try:
                codes_of = {name: tuple(codes) for name, codes in merges.items()}
            except (AttributeError, TypeError):
                raise StructureError(
                    "merges must be a list of new codes for each attribute, such as {'age': [0, 0, 1]}"
                ) from None
            if not codes_of:
                return self._domain
            domain = self._domain.coarsened(codes_of)  # refuses what are no codes
            merged = [name for name in codes_of if domain[name] != self._domain[name]]
            tables = [one for one in self._steps if isinstance(one, NoisyTables)]
            large = [clique for one in tables for clique in one.structure.cliques if len(clique) > 1]
            if any(name in clique for clique in large for name in merged):
                raise StructureError("codes are merged before the first table of several attributes is measured")
            for one in tables:
                if one.contrasts:
                    check_untouched(one.structure, merged)
            exact = {name: tuple(map(int, codes)) for name, codes in codes_of.items()}
            records.recode({name: np.asarray(codes) for name, codes in exact.items()}, domain)
            self._domain = domain
            self._session = attrs.evolve(self._session, merges=exact)
            self._regressed = None
            if self._release is not None:
                self._save()
            return self._domain

    @property
    def has_tables(self) -> bool:
        """Whether there is something to pool."""
        return self._release is not None

    def pooled(self) -> NoisyTables:
        """All tables measured so far as one release; BudgetError for none."""
        self.check_process()
        if self._release is None:
            raise BudgetError("the session has measured no table yet, so there is nothing to pool; measure one first")
        return self._release

    def set_model_structure(self, structure: Structure, *, named: bool = False) -> None:
        """Record the structure to be learned from its release, over the session's domain as it is.

        named: the owner named it; it was not chosen.
        """
        with self.turn():
            self._modelled = structure
            self._session = attrs.evolve(self._session, named=named)
            if self._release is not None:
                self._save()

    def reserve_holdout(self, share: Fraction) -> None:
        """Reserve a share of the budget for `measure_holdout`, before the first step."""
        if self._steps or not self._reserved.is_zero:
            raise BudgetError("a share is set aside before the first step of a session, and once")
        if share:
            self._reserved = self._session.steps_budget * share

    def return_holdout(self) -> None:
        """Let the steps spend what was reserved, where there will be no holdout."""
        self._reserved = Budget.zero(self._reserved.kind)

    def measure_holdout(self, pairs: Structure) -> None:
        """Spend what was reserved on tables that nobody learns from; pairs: over the session's domain as it is."""
        with self.turn():
            budget, self._reserved = self._reserved, Budget.zero(self._reserved.kind)
            self._measured(pairs.cliques, budget, holdout=True)

    def _measured(
        self,
        cliques: Iterable[Clique] | Mapping[Clique, Budget],
        budget: Budget | None,
        *,
        holdout: bool = False,
        contrasts: bool = False,
    ) -> NoisyTables:
        self._open()
        structure = self._candidates.named(cliques, self._domain)
        ranges = () if contrasts or holdout else self._ranges
        if not holdout:
            self._check_one_way(contrasts)
        if contrasts and self._terms.total_policy == "estimated":
            check_contrasts(structure)
            structure = Structure(self._domain, [(), *structure.cliques])
        if isinstance(cliques, Mapping):
            if budget is not None:
                raise BudgetError("a budget for each clique was given, and one for all; leave one of them out")
            for one in cliques.values():
                self._check_kind(one)
            measurement = self._calibrated(structure, _with_total(cliques, structure), contrasts, ranges)
        else:
            if budget is None:
                raise BudgetError("to measure tables takes a budget for them; `remaining` says what is left")
            self._check_kind(budget)
            measurement = self._calibrated(structure, budget, contrasts, ranges)
        self._pay(measurement.cost, noise=measurement.calibrations)
        stated = stated_total(self._terms, self._records)
        drawn = self._measure(measurement, lambda: self._tables(measurement.structure), stated)
        release = self._make_release(measurement, *drawn, holdout=holdout)
        self._keep(release)
        return release

    def _calibrated(
        self, structure: Structure, budget: Budget | Mapping[Clique, Budget], contrasts: bool, ranges: Sequence[str]
    ) -> Measurement:
        """Calibrate the noise of a step, of an exact Gaussian account at the rho that costs at most its budgets."""
        strategies = range_strategies(self._mechanism, structure, self._terms, budget, ranges)
        if strategies and not isinstance(budget, Mapping):
            shares = zip(structure.groups, even_shares(structure), strict=True)
            budget = {group[0]: budget * share for group, share in shares}
        if self._spending is not None:
            terms = self._terms
            if isinstance(budget, Mapping):
                groups = {one: structure.find(one)[0] for one in budget}
                budget = {
                    one: self._drawn(
                        share,
                        sensitivity_of(
                            structure.only(groups[one]),
                            terms,
                            contrasts=contrasts,
                            strategy=strategies[groups[one]] if strategies else None,
                        ),
                    )
                    for one, share in budget.items()
                }
            else:
                budget = self._drawn(budget, terms.sensitivity(structure, contrasts=contrasts))
        if contrasts:
            return noisy_contrasts(self._mechanism, structure, self._terms, budget)
        return measure(self._mechanism, structure, self._terms, budget, ranges=ranges)

    def _check_one_way(self, contrasts: bool) -> None:
        """Refuse to measure tables in one step and contrasts in another: they would not pool."""
        if not isinstance(contrasts, bool):
            raise OptionError(f"contrasts must be true or false, got {type(contrasts).__name__}")
        if self._release is not None and self._release.contrasts is not contrasts:
            before, now = ("contrasts", "tables") if self._release.contrasts else ("tables", "contrasts")
            raise BudgetError(
                f"this session has measured {before} and was asked for {now}, which do not pool into one release; "
                "measure all of it one way"
            )

    def _open(self) -> HeldRecords:
        if self._open_records is None:
            raise BudgetError("the session was closed; its records are gone")
        return self._open_records

    def _scored(self, scores: TableDistance, budget: Budget, *, choice: bool = False) -> TableDistance:
        """Scores that this session can compute, over its own domain, for a budget that it can spend."""
        self._open()
        check_exact_type(scores, "scores", "a score", TableDistance)
        self._check_kind(budget, choice=choice)
        return attrs.evolve(scores, candidates=self._candidates.own(scores.candidates, self._domain))

    def _forest_ends(self, scores: TableDistance, connected: tuple[Clique, ...]) -> IntArray:
        """The trees that each candidate of a forest would connect; refuses what names other attributes, and groups."""
        names = set(self._domain.names)
        if scores.groups or not all(isinstance(name, str) and name in names for one in connected for name in one):
            raise StructureError("a forest has one group, and what is connected before is of the session's attributes")
        return forest_ends(scores.candidates.cliques, connected)

    def _own_voter(self, voter: Voter, budget: Budget) -> Voter:
        """The voter over this session's own domain, for a budget that it can spend; refuses what is no vote of it."""
        check_exact_type(voter, "a voter", "votes", EdgeVotes, ThresholdVotes)
        check_budget(budget)
        left = self.votes
        if left is None:
            raise BudgetError(
                "this session has nothing for votes; open it with votes = a part of its (epsilon, delta), as core does "
                "for a VotingSelector"
            )
        if self._session.merges or not all(isinstance(one, Verdict) for one in self._steps):
            raise BudgetError("votes come before every other step of a session; that is what their cost is proven for")
        if budget.kind != "approx" or not budget <= left:
            raise Overspent(f"votes for {budget} were asked, but the session has {left} left for votes")
        voter = attrs.evolve(voter, pairs=self._candidates.own(voter.pairs, self.workload.domain))
        voter.check(self._terms)
        likely_distance(budget)  # refuses what nothing could be published for
        return voter

    def _check_kind(self, budget: Budget, *, choice: bool = False) -> None:
        """Refuse a budget that this session does not spend, or does not have.

        choice: what a choice takes of an exact Gaussian account, planned or not, is known when it is paid.
        """
        check_budget(budget)
        if budget.kind != self._session.budget.kind:
            raise BudgetError(f"this session spends {self.remaining}, so a step costs the same kind, not {budget}")
        if not (choice and self._spending is not None) and not budget <= self.remaining:
            raise Overspent(f"{budget} was asked, but only {self.remaining} remains of the session's {self.budget}")

    def _drawn(self, budget: Budget, sensitivity: Sensitivity) -> Budget:
        """The budget that Gaussian noise is calibrated to, so that it costs at most what was asked."""
        return budget if self._spending is None else self._spending.drawn_rho(budget, sensitivity)

    def _pay(self, cost: Budget, *, noise: Sequence[Calibration] = (), choices: int = 0) -> None:
        """Count a step's cost as spent, before its first random bit.

        noise: of a step that draws noise. choices: of one that chooses. Neither: of a descent.
        """
        if self._spending is not None:
            self._spending.pay(cost, noise=noise, choices=choices, reserved=self._reserved.rho)
            return
        if not cost <= self.remaining:
            raise Overspent(f"this step costs {cost}, but only {self.remaining} remains of the session's {self.budget}")
        self._spent = self._spent + cost

    def _tables(self, structure: Structure) -> Tables:
        """True counts of the candidates, (cells,), counted once each."""
        return self._open().tables(structure)

    def _keep(self, step: Step) -> None:
        self.check_process()  # noise that forks while it is drawn must not come back twice
        self._steps.append(step)
        if isinstance(step, NoisyTables) and not step.holdout:
            self._save()
        elif self._release is not None:  # its tables are as they were
            self._hand_out(attrs.evolve(self._release, steps=tuple(self._steps)))

    def _save(self) -> None:
        before = self._release
        release = session_release(
            self._session,
            self._steps,
            self._terms,
            cost=self._receipt.cost,
            private=bool(self._randomness.private),
            provenance=self._receipt.provenance,
            modelled=self._modelled,
        )
        if before is not None:
            release = attrs.evolve(release, saved_as=before.saved_as, save_error=before.save_error)
        self._hand_out(release)

    def _hand_out(self, release: NoisyTables) -> None:
        self._release, self._saved = release, False
        self._release = self._publish(self._release)
        self._saved = True

    def _closed(self, records: HeldRecords) -> None:
        try:
            if self._saved:
                self._receipt.mark_released()
        finally:  # an engine that takes long to be left keeps nobody from knowing what was saved
            records.close()
            self._receipt.leave_room()

    def __repr__(self) -> str:
        return f"LiveSession({len(self._steps)} steps, remaining {self.remaining})"


def _with_total(budgets: Mapping[Clique, Budget], structure: Structure) -> dict[Clique, Budget]:
    """The same in all, with as much for the empty clique as the others have on average, if the structure has it."""
    if () not in structure.cliques:
        return dict(budgets)
    share = Fraction(len(budgets), len(budgets) + 1)
    return {(): Budget.sum(budgets.values()) * (1 - share), **{clique: one * share for clique, one in budgets.items()}}


def _cliques_of(forest: Iterable[Clique]) -> tuple[Clique, ...]:
    try:
        return tuple(map(tuple, forest))
    except TypeError:
        raise StructureError(
            "forest is a list of cliques that are connected before, such as [('a', 'b')] or []"
        ) from None
