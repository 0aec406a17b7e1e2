"""The live curator: counts records, charges the ledger, adds noise and returns noisy tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.progress import Progress, check_progress, silent, unfailing
from dpgm_core._util.randomness import Randomness, randomness_or_system
from dpgm_core.counting.clipped_scores import ClippedScores, FewCounts
from dpgm_core.counting.rows import Persons, by_person, open_rows
from dpgm_core.counting.statistic import Piece, Statistic, columns_of, sum_pieces
from dpgm_core.counting.table_counts import Counted, Counts, Passes
from dpgm_core.curator.contract import Rounds, Session
from dpgm_core.curator.funds import Funds, Measurer, Receipt, Turns
from dpgm_core.curator.records import HeldRecords, check_related, check_rows, read_here, repeated
from dpgm_core.curator.redaction import redact_source_errors, strip_traceback
from dpgm_core.curator.session import LiveSession
from dpgm_core.curator.steps import find_bins, grid_attributes
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, ModelFileError, OptionError, StructureError
from dpgm_core.inference.contract import Beliefs
from dpgm_core.privacy.accounting import sampling_probability
from dpgm_core.privacy.bins import bins_choices, check_votes_first, plan_bins, resolve_public_bins
from dpgm_core.privacy.budget import Budget, Split, check_budget, check_split, may_be_contrasts
from dpgm_core.privacy.holdout import chosen_pairs
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.measurement import (
    Measurement,
    check_determined,
    check_mechanism,
    check_range_names,
    check_structure,
    measure,
)
from dpgm_core.privacy.mechanism import Mechanism, Noise, calibrate
from dpgm_core.privacy.rounds import check_rounds_go_with, round_noise
from dpgm_core.privacy.sensitivity import ClippedScore, Sensitivity
from dpgm_core.privacy.session_account import SessionAccount, SessionSpending, check_exact, start_spending
from dpgm_core.privacy.terms import Terms, charge_conditions
from dpgm_core.releases.labels import Discovery
from dpgm_core.releases.release import NoisyTables, Round
from dpgm_core.releases.saving import NOISY_STEPS, release_size, session_size
from dpgm_core.releases.steps import FoundBins, SessionTerms, session_budget, session_mechanism
from dpgm_core.releases.totals import estimate_total, stated_total
from dpgm_core.releases.views import equalize_totals, plausible
from dpgm_core.sources.contract import AnySource, Reading, ReducingSource
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = ["HoldoutKeeper", "LiveCurator", "LiveRounds", "holdouts_of"]


# --------------------------------------------------------------------------------------------------
# Releases of holdouts, which curators keep apart from what learners see


class HoldoutKeeper:
    """Base of curators that may have a release that nobody learns from."""

    _holdouts: tuple[NoisyTables, ...] = ()


def holdouts_of(curator: object) -> tuple[NoisyTables, ...]:
    """Return the releases of a curator's holdouts; a model carries them and their cost."""
    return curator._holdouts if isinstance(curator, HoldoutKeeper) else ()


# --------------------------------------------------------------------------------------------------
# The curator
#
# The order of a release is fixed (docs/privacy.md): check funds, read and count, commit the charge, draw noise, save
# the release. A crash in between wastes budget and never leaks it.


class LiveCurator(Measurer, HoldoutKeeper):
    """The only access to the records: it counts them, charges the ledger, adds noise and returns `NoisyTables`.

    Parameters
    ----------
    source : Source or ReducingSource
        Where the records are read or summed.
    structure : Structure
        The model's cliques.
    mechanism : Mechanism
        Calibrates the noise.
    terms : Terms
        What is protected; a unit left out is the ledger's.
    budget : Budget
        What this curator may spend in all.
    ledger : Ledger, optional
        Charged before any noise is drawn; without one only `budget` limits.
    save_to : str or Path, optional
        Where each release is written before it is returned.
    split : str or mapping
        How a budget is divided over tables: "even", "optimal" (see `optimal_split`), "contrasts" or "sharper" (see
        `measure`). {"tables": "even", "holdout": 0.05} reserves that share for a holdout, which the first request pays
        for in the same charge and no learner sees. {"ranges": ["age"]} measures the attribute's own table, here and in
        sessions, so that ranges of its values are answered well.
    discovery : Discovery, optional
        Labels of the domain that were paid for before; each release carries them.

    Raises
    ------
    BudgetError, StructureError, OptionError, DataError
        Before any record is read; DataError for a source that cannot read the terms' person key.
    """

    conversion_delta = None  # all its releases cost one kind of budget

    def __init__(
        self,
        source: AnySource,
        structure: Structure,
        mechanism: Mechanism,
        *,
        terms: Terms,
        budget: Budget,
        randomness: Randomness | None = None,
        ledger: Ledger | None = None,
        save_to: str | Path | None = None,
        split: Split | str | Mapping[str, Any] = "even",
        progress: Progress = silent,
        discovery: Discovery | None = None,
    ) -> None:
        super().__init__()
        check_structure(structure)
        check_mechanism(mechanism)
        check_budget(budget)
        split = Split.of(split)
        self._split, self._ranges = split.tables, split.ranges
        for_holdout, left = split.divide(budget)
        validated = Terms.of(terms, None).validated
        price = None if ledger is None or discovery is None else discovery.price_of_tables(budget, ledger.terms.account)
        self._funds = Funds(left, ledger, save_to, validated=validated, price=price)
        self._terms = Terms.of(terms, None).with_default_unit(None if ledger is None else ledger.terms.unit)
        self._terms.check(structure)
        check_range_names(self._ranges, structure.domain, self._terms, None)
        self._source = source
        check_related(source, self._terms)
        if not isinstance(source, ReducingSource):  # which is refused where it cannot read the key
            by_person(source, self._terms.person, self._terms.rows_per_person)
        self._structure = structure
        self._mechanism = mechanism
        self._randomness = randomness_or_system(randomness)
        self._check_randomness(mechanism)
        self._holdout: Measurement | None = None
        if for_holdout is not None:  # which pairs is decided here, before any record is read
            pairs = chosen_pairs(structure, self._randomness.generator())
            self._holdout = measure(mechanism, pairs, self._terms, for_holdout)
            self._funds.reserve(self._holdout.cost)
        self._progress = check_progress(progress)
        self._discovery = discovery
        self._released: dict[int, NoisyTables] = {}  # by the number of their receipt, in the order they came out
        if ledger is not None:
            ledger.check_terms(self._terms)

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._structure

    @property
    def terms(self) -> Terms:
        """What is protected, with the unit spelled out."""
        return self._terms

    @property
    def budget(self) -> Budget:
        """What this curator may spend in all."""
        return self._funds.budget

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        return self._funds.remaining

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """All that was handed out and paid for, oldest first; of rounds under one charge the last stands for all."""
        return tuple(self._released.copy().values())  # another thread may be adding to it

    @property
    def pooled(self) -> bool:
        """False: what it hands out is new."""
        return False

    @property
    def replayed(self) -> bool:
        """False: its releases are new, and paid for."""
        return False

    @property
    def contrasts(self) -> bool:
        """Whether its split is "contrasts", or "sharper", of which they may come."""
        return may_be_contrasts(self._split)

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        split: str | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """Spend `budget` (None: all that remains) on the tables of `cliques` (None: those of the structure).

        With a mapping clique -> Budget each table is charged on its own, and the budgets add up. Each clique must be
        contained in one of the structure's. split: None is the curator's own. accept: called with the noise of each
        table before anything is read or charged; raises to refuse it. Tables come as `plausible` returns them, of
        normalised contributions after `equalize_totals`. Raises BudgetError or Overspent with nothing read, charged or
        released.
        """
        self.check_process()
        if accept is not None and not callable(accept):
            raise OptionError(f"accept must be a function of the noises, got {type(accept).__name__}")
        over_tables = self._split if split is None else check_split(split)
        if isinstance(budget, Mapping):
            if not budget:
                raise BudgetError("the budgets per clique are empty; name at least one clique")
            if split is not None:
                raise BudgetError(f"a budget for each clique was given, and split = {split!r}; leave one of them out")
            cliques = list(budget) if cliques is None else cliques
        else:
            budget = self._funds.resolve(budget)
        measured = self._measured(cliques)
        measurement = measure(self._mechanism, measured, self._terms, budget, over_tables, self._ranges)
        if accept is not None:
            accept(measurement.noise)
        sizes = self._sizes(measurement)
        with self._funds.charge(measurement.cost, self._conditions(measurement), sizes=sizes) as receipt:
            holdout = self._holdout if receipt.holdout is not None else None
            measured = measurement.structure  # with split = "contrasts" every set inside the cliques
            counted = self._count(measured if holdout is None else _structure_of_both(measured, holdout.structure))
        try:
            drawn = self._draw(measurement, counted)
            holdout_drawn = None if holdout is None else self._draw(holdout, counted)
            del counted  # what fails from here on has no true count among its variables
            release = self._published(measurement, receipt, *drawn)
            self._released[receipt.number] = release
            holdout_release = (
                None
                if holdout is None or holdout_drawn is None
                else self._keep_holdout(holdout, receipt, *holdout_drawn)
            )
            return plausible(equalize_totals(self._keep(receipt, release, holdout_release)))
        finally:
            receipt.leave_room()

    def rounds(
        self,
        n: int,
        *,
        sampling_rate: float,
        cliques: Iterable[Clique] | None = None,
        budget: Budget | None = None,
        clip: ClippedScore | None = None,
    ) -> AbstractContextManager[Rounds]:
        """n releases, each of a fresh Poisson subsample of persons, charged in full here; see `Rounds`.

        cliques: None: those of the structure. budget: of all rounds together (None: all that remains). clip: release
        clipped scores instead of counts. The noise is calibrated by `dpgm_core.privacy.rounds`. Raises BudgetError or
        Overspent with nothing read or charged.
        """
        self.check_process()
        terms, source = self._terms.with_one_draw(), repeated(self._source, 1)
        check_rows(source, "rounds of subsamples")
        assert not isinstance(source, ReducingSource)
        self.check_rounds(clip)
        cost = self._funds.resolve(budget)
        measured = self._measured(cliques)
        sensitivity = terms.sensitivity(measured, clip)
        rate = sampling_probability(sampling_rate)
        noise, each = round_noise(
            self._mechanism,
            sensitivity,
            cost,
            rounds=n,
            sampling_rate=rate,
            neighbours=terms.neighbours,
            presence=terms.presence(measured, clip),
        )
        measurement = Measurement.shared(measured, calibrate(self._mechanism, noise, sensitivity, each))
        holdout_release: NoisyTables | None = None
        with self._funds.charge(cost, self._conditions(measurement), sizes=self._sizes(measurement)) as receipt:
            reading = self._reading(measured.domain, columns_of(measured), several=False)
            persons = read_here(source, reading, self._progress)
            holdout = self._holdout if receipt.holdout is not None else None
            counted = None if holdout is None else self._count(holdout.structure)
        if holdout is not None and counted is not None:
            drawn = self._draw(holdout, counted)
            del counted
            holdout_release = self._keep_holdout(holdout, receipt, *drawn)

        def publish(tables: Tables, total: float, variance: float, round: Round) -> NoisyTables:
            facts = {"terms": terms, "cost": cost, "round": round}
            release = self._published(measurement, receipt, tables, total, variance, **facts)
            self._released[receipt.number] = release
            return release

        def finish() -> None:
            try:
                if receipt.number in self._released:
                    self._keep(receipt, self._released[receipt.number], holdout_release)
            finally:
                receipt.leave_room()

        return LiveRounds(
            last=Round(number=n, of=n, sampling_rate=rate, clip=clip),
            measurement=measurement,
            persons=persons,
            source=source,
            randomness=self._randomness,
            terms=terms,
            publish=publish,
            finish=finish,
        )

    def _check_randomness(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that no seed can steer in a simulation: it would refuse itself, but after the charge."""
        own = mechanism.own_randomness
        if own is not None and not self._randomness.private:
            raise OptionError(
                f"a seeded simulation cannot use {type(mechanism).__name__}: {own}; use another mechanism"
            )

    def check_rounds(self, clip: ClippedScore | None = None) -> None:
        """Refuse rounds that this curator's terms and split do not go with."""
        check_rounds_go_with(self._terms, Split(tables=self._split, ranges=self._ranges))
        if clip is not None and not isinstance(clip, ClippedScore):
            raise BudgetError(f"clip must be a ClippedScore, got {type(clip).__name__}")
        if clip is not None and self._terms.total_policy == "estimated":
            raise BudgetError("clipped scores do not tell how many records there are; state total, as public knowledge")

    def _check_session(self, workload: Workload, votes: Budget | None) -> None:
        """Refuse a session that this curator's structure, terms, split and source do not go with."""
        if not isinstance(workload, Workload):
            raise OptionError(
                f"workload must be a Workload, such as Workload.all(domain), got {type(workload).__name__}"
            )
        if workload.domain != self._structure.domain:
            raise StructureError("the workload is over another domain than the curator's structure")
        if self._terms.contributions is not None:
            raise BudgetError(
                "a session counts each row as 1; for normalised contributions name the cliques and release them once"
            )
        if self._holdout is not None:
            raise OptionError("a session sets the share of its holdout aside itself; leave it out of split")
        if votes is not None:
            check_rows(self._source, "votes")

    def session(
        self,
        *,
        workload: Workload,
        budget: Budget | None = None,
        votes: Budget | None = None,
        account: SessionAccount | None = None,
        mechanism: str | Mapping[str, Any] | Mechanism | None = None,
    ) -> AbstractContextManager[Session]:
        """Adaptive steps over the candidates of a workload, charged in full here; see `Session`.

        mechanism: of the noise of its tables, a name, a table with options or an object; None is discrete Laplace for
        pure budgets and discrete Gaussian for others, whatever the curator's mechanism. Choices, scores, bins, descents
        and votes are core's own.
        Private bins of the workload's domain are found first, out of its budget: its `workload` has them. votes: a part
        of an (epsilon, delta) that is for votes; what is left becomes rho, and is not theirs to take. account: what the
        steps may cost within an (epsilon, delta) or mu, where choices are planned; None: what the conversion of zCDP
        allows, and of mu all for steps that were not planned.
        Raises BudgetError, StructureError or Overspent with nothing read or charged.
        """
        self.check_process()
        self._check_session(workload, votes)
        cost = self._funds.resolve(budget)
        spendable = session_budget(cost, votes)
        own = session_mechanism(spendable)  # a missing plugin is found before the charge
        drawn = session_mechanism(spendable, mechanism)
        self._check_randomness(drawn)
        noise = None
        if mechanism is not None:
            noise = drawn.noise(Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), spendable * Fraction(1, NOISY_STEPS))
        columns = plan_bins(workload.domain, workload.attributes, spendable, self._terms)
        spending: SessionSpending | None = None
        if account is None and cost.kind == "gdp":
            account = SessionAccount(mu_squared=cost.mu_squared)
        if account is not None:
            check_exact(drawn, own)
            spending = start_spending(account, cost if votes is None else cost - votes)
            spendable = account.budget
            for count, rho in bins_choices(columns):
                spending.pay_choices(count, rho)
        check_votes_first(columns, votes)
        public_domain = resolve_public_bins(workload.domain, workload.attributes)
        grids = grid_attributes(columns)
        read_by = public_domain.with_attributes(grids)
        conditions = charge_conditions(self._terms, unsafe=None, private=bool(self._randomness.private))
        reading = self._reading(read_by, workload.attributes, several=True)
        records = HeldRecords(self._source, reading, workload.candidates, self._progress, self._terms.draws)

        def find() -> tuple[tuple[FoundBins, ...], Domain]:
            bins = find_bins(columns, grids, records.grids(), self._randomness) if columns else ()
            domain = public_domain.with_attributes({one.name: one.attribute for one in bins})
            records.recode({one.name: one.recoding(grids[one.name]) for one in bins}, domain)
            return bins, domain

        paid: Receipt | None = None
        try:
            size = session_size(workload, noise) if self._funds.saves else 0
            with self._funds.charge(cost, conditions, sizes=(size,)) as receipt:
                records.open(grids)
            paid = receipt
            bins, domain = strip_traceback(find)
            self.check_process()  # noise that forks while it is drawn must not come back twice
            opened_for = SessionTerms(
                workload=workload.with_domain(domain),
                budget=spendable,
                merges={},
                votes=votes,
                bins=bins,
                account=account,
            )
            return LiveSession(
                opened_for,
                records,
                receipt,
                mechanism=drawn,
                randomness=self._randomness,
                terms=self._terms,
                publish=partial(self._publish_session, receipt),
                spending=spending,
                ranges=self._ranges,
            )
        except BaseException:
            if paid is not None:
                paid.leave_room()
            records.close()  # so that what fails has no record among its variables, and no engine waits
            raise

    def _publish_session(self, receipt: Receipt, release: NoisyTables) -> NoisyTables:
        """Save the release of a session as it is after a step, and return it."""
        return self._save(receipt, evolve(release, discovery=self._discovery), receipt.rewrite)

    def _sizes(self, measurement: Measurement) -> tuple[int, ...]:
        """Of the files of a release and of its holdout, at most, bytes; nothing where none is saved."""
        if not self._funds.saves:
            return ()
        unpaid = Receipt(1, self._funds.ledger, None, measurement.cost)

        def size(measurement: Measurement, **more: Any) -> int:
            structure = measurement.structure
            zeros = Tables(structure, np.zeros(structure.cells, dtype=np.int64))
            return release_size(self._published(measurement, unpaid, zeros, 1.0, 0.0, **more))

        sizes = [size(measurement)]
        if self._holdout is not None:
            sizes.append(size(self._holdout, holdout=True, modelled=None))
        return tuple(sizes)

    def _conditions(self, measurement: Measurement) -> tuple[str, ...]:
        return charge_conditions(self._terms, unsafe=measurement.unsafe, private=bool(self._randomness.private))

    def _measured(self, cliques: Iterable[Clique] | None) -> Structure:
        check_determined(self._structure.domain)
        if cliques is None:
            return self._structure
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise StructureError(f"cliques must be a list of cliques, got {type(cliques).__name__}")
        listed = list(cliques)
        if not all(isinstance(one, (str, Sequence)) for one in listed):
            raise StructureError("a clique must be a list of attribute names; one of those asked for is none")
        return self._structure.measuring(listed)

    def _count(self, measured: Structure) -> Counted:
        """The true tables, and the number of records where counts know it, else 0."""
        source, weighted = self._source, self._terms.contributions
        passes = (Passes.under if isinstance(source, ReducingSource) else Passes.single)(measured, weighted)
        reading = self._reading(measured.domain, columns_of(measured), several=len(passes.statistics) > 1)

        def counted() -> Counted:
            with open_rows(repeated(source, self._terms.draws), reading) as rows:
                return passes.count(rows, self._progress).mean(self._terms.draws)

        return redact_source_errors(source, counted)

    def _reading(self, domain: Domain, columns: Sequence[str], *, several: bool) -> Reading:
        terms = self._terms
        return Reading(
            domain=domain,
            columns=tuple(columns),
            person=terms.person,
            rows_per_person=terms.rows_per_person,
            several=several,
        )

    def _draw(self, measurement: Measurement, counted: Counted) -> tuple[Tables, float, float]:
        """The tables that a measurement is about with fresh noise, N and its variance."""
        progress = unfailing(self._progress)  # it is paid for
        progress("adding noise", 0, None)
        counts = _tables_over(measurement.structure, counted.tables)
        drawn = self._measure(measurement, lambda: counts, stated_total(self._terms, counted.records))
        progress("adding noise", 1, 1)
        return drawn

    def _keep_holdout(
        self, holdout: Measurement, receipt: Receipt, tables: Tables, total: float, variance: float
    ) -> NoisyTables:
        """Make the release of the holdout, where no learner sees it."""
        release = self._published(holdout, receipt, tables, total, variance, holdout=True, modelled=None)
        self._holdouts = (release,)
        return release

    def _published(
        self, measurement: Measurement, receipt: Receipt, tables: Tables, total: float, variance: float, **more: Any
    ) -> NoisyTables:
        """Return the release; more: `cost` and `round` of one of many rounds, or whether it is of a holdout."""
        modelled = None if measurement.structure == self._structure else self._structure
        facts = {"unsafe": measurement.unsafe, "provenance": receipt.provenance, "discovery": self._discovery}
        return self._make_release(measurement, tables, total, variance, **facts | {"modelled": modelled} | more)

    def _keep(self, receipt: Receipt, release: NoisyTables, holdout_release: NoisyTables | None) -> NoisyTables:
        """Save the release and that of its holdout, and mark them in the ledger."""
        saved = self._save(receipt, release, receipt.save)
        if holdout_release is not None and receipt.holdout is not None:
            self._holdouts = (receipt.holdout.save(holdout_release),)
        receipt.mark_released()
        return saved

    def _save(self, receipt: Receipt, release: NoisyTables, write: Callable[[NoisyTables], NoisyTables]) -> NoisyTables:
        """The release as `write` saved it; it is paid for, whether or not it can be saved."""
        self._released[receipt.number] = release
        try:
            release = write(release)
        except ModelFileError as error:
            self._released[receipt.number] = evolve(release, saved_as=None, save_error=str(error))
            raise
        self._released[receipt.number] = release
        return release

    def __repr__(self) -> str:
        return f"LiveCurator({self._structure}, {self._terms.neighbours.value}, remaining {self.remaining})"


def _structure_of_both(measured: Structure, pairs: Structure) -> Structure:
    """Both, to be counted in one pass over the records."""
    plain = [group[0] for group in measured.groups if len(group) == 1]
    tied = [group for group in measured.groups if len(group) > 1]
    return Structure(measured.domain, [*plain, *pairs.cliques], tied=tied)


def _tables_over(structure: Structure, tables: Tables) -> Tables:
    """The tables of one of the structures that were counted together."""
    if structure == tables.structure:
        return tables
    return Tables(structure, np.concatenate([tables[group[0]].reshape(-1) for group in structure.groups]))


# --------------------------------------------------------------------------------------------------
# Rounds: Poisson subsamples of persons, counted or scored, for many noisy releases under one charge
#
# Rows are read once and kept as compact codes. What is summed is whole-numbered: cell counts, or scores T(x) - mu
# clipped per person and truncated to a public grid.


class LiveRounds(Turns[Persons]):
    """The rounds of a LiveCurator: paid for in full when they were opened. A context manager; leaving drops the rows.

    Each `next` draws a fresh subsample and fresh noise. Stopping early is sound and refunds nothing. Threads may share
    it: they take turns. A round that fails once bits were drawn for it is spent.

    Parameters
    ----------
    last : Round
        The last of the rounds that were paid for.
    publish : callable
        Makes the release of tables, N, its variance and the round.
    finish : callable
        Called once when the context is left.
    """

    def __init__(
        self,
        *,
        last: Round,
        measurement: Measurement,
        persons: Persons,
        source: AnySource,
        randomness: Randomness,
        terms: Terms,
        publish: Callable[[Tables, float, float, Round], NoisyTables],
        finish: Callable[[], None],
    ) -> None:
        super().__init__(persons)
        self._last, self._rate, self._clip = last, last.sampling_rate, last.clip
        self._measurement = measurement
        self._records, self._source, self._randomness, self._terms = persons.records, source, randomness, terms
        self._publish, self._finish = publish, finish
        self._counts = Counts.of(measurement.structure)
        self._taken = 0  # rounds given a number, whether or not they came out

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a subsample, or, when opened with a ClippedScore, noisy clipped scores.

        beliefs: for clipped scores only, those of one record (total 1) under the current model. Raises BudgetError
        after the last round and after the end of the context.
        """
        with self.turn():
            if self._open_records is None:
                raise BudgetError("the rounds were closed; their records are gone")
            if self._taken >= self._last.of:
                raise BudgetError(f"all {self._last.of} rounds are used up; open more with more budget")
            mu = self._marginals(beliefs)
            persons = self._open_records
            # The number comes before the first random bit, so that whatever happens from here on it is spent.
            self._taken += 1
            round = evolve(self._last, number=self._taken)
            counts = redact_source_errors(
                self._source, lambda: self._sum(persons.subsample(self._rate, self._randomness), mu)
            )
            tables = strip_traceback(lambda: self._measurement.draw(counts, self._randomness))
            return self._publish(tables, *self._total(tables), round)

    def _marginals(self, beliefs: Beliefs | None) -> FloatArray | None:
        if self._clip is None:
            if beliefs is not None:
                raise BudgetError("these rounds count; open them with clip=ClippedScore(...) to have scores")
            return None
        if not isinstance(beliefs, Beliefs) or beliefs.marginals.structure != self._measurement.structure:
            raise StructureError("rounds of clipped scores need the beliefs of a model over the structure measured")
        mu = beliefs.marginals.values.astype(np.float64)
        if not np.all((mu >= -1e-6) & (mu <= 1e6)):
            raise StructureError("the beliefs hold NaN, negative or infinite marginals; scores cannot be formed")
        return mu

    def _sum(self, subsample: list[Piece], mu: FloatArray | None) -> Tables:
        structure = self._measurement.structure
        rows = sum(len(codes[0]) for codes, _ in subsample)
        statistic: Statistic
        if mu is not None and self._clip is not None:
            statistic = ClippedScores(structure, self._clip, mu)
        elif rows * len(structure.cliques) > self._counts.cells:
            statistic = self._counts
        else:  # few records: no pass over the counting plan's larger blocks
            statistic = FewCounts(structure)
        return statistic.tables(sum_pieces(statistic, [piece for piece in subsample if len(piece[0][0])]))

    def _total(self, tables: Tables) -> tuple[float, float]:
        """N of the subsample, and its variance."""
        if self._terms.total_policy == "estimated":
            return estimate_total(tables, self._measurement.variances)
        total = max(1.0, float(self._rate) * (self._terms.declared_total or self._records))
        return total, float(1 - self._rate) * total

    def _closed(self, persons: Persons) -> None:
        self._finish()

    def __repr__(self) -> str:
        return f"LiveRounds({self._taken} of {self._last.of} taken, sampling rate {float(self._rate):g})"
