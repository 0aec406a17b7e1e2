"""The one class that sees both sides: it counts records, pays, draws noise and hands out NoisyTables.

The order of a release is fixed (DESIGN section 4): check funds, read and count, commit the charge, draw noise, save
the release. A crash in between wastes budget and never leaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Any

from dpgm_core.counting.kernel import Counts
from dpgm_core.counting.shares import WeightedCounts
from dpgm_core.counting.statistic import Statistic, columns_of, pieces, summed
from dpgm_core.counting.subsample import read_persons
from dpgm_core.curator.contract import Rounds
from dpgm_core.curator.funds import Funds, Receipt
from dpgm_core.curator.rounds import LiveRounds
from dpgm_core.curator.shield import shielded
from dpgm_core.errors import BudgetError, DataError, OptionError, StructureError
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.noise.contract import Mechanism, Noise
from dpgm_core.noise.measurement import Measurement, calibrated, measure
from dpgm_core.noise.rounds import round_noise
from dpgm_core.noise.split import check_split
from dpgm_core.privacy.accounting import sampling_probability
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import ClippedScore
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness, given_or_system
from dpgm_core.releases.levelled import levelled
from dpgm_core.releases.plausible import plausible
from dpgm_core.releases.release import NoisyTables, estimate_total
from dpgm_core.sources.contract import KeyedSource, Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["LiveCurator"]


class LiveCurator:
    """The only door to the records; a learner sees them through `release` and `rounds` and in no other way.

    source: a Source component. structure: the model's cliques. mechanism: calibrates the noise. terms: what is
    protected and how; a unit left out is the ledger's. budget: what this curator may spend in all. ledger: an open
    Ledger that is charged before any noise is drawn, or None (then only `budget` limits). save_to: where each release
    is written before anybody sees it. split: how one budget is divided over tables: "even" noise for all, or
    "optimal" (see `optimal_split`).

    Raises BudgetError, StructureError and OptionError before any record is read.
    """

    conversion_delta = None  # all its releases cost one kind of budget

    def __init__(
        self,
        source: Source,
        structure: Structure,
        mechanism: Mechanism,
        *,
        terms: Terms,
        budget: Budget,
        randomness: Randomness | None = None,
        ledger: Ledger | None = None,
        save_to: Path | None = None,
        split: str = "even",
        progress: Progress = silent,
    ) -> None:
        if not isinstance(structure, Structure):
            raise StructureError(f"structure must be a Structure, got {type(structure).__name__}")
        self._funds = Funds(budget, ledger, save_to)
        self._terms = Terms.stated(terms, None).spelled_out(None if ledger is None else ledger.terms.unit)
        self._terms.check(structure)
        self._source = source
        self._structure = structure
        self._mechanism = mechanism
        self._randomness = given_or_system(randomness)
        own = mechanism.own_randomness
        if own is not None and not self._randomness.private:
            # Its noise would refuse the seed too, but only after the charge.
            raise OptionError(
                f"a seeded simulation cannot use {type(mechanism).__name__}: {own}; use another mechanism"
            )
        self._split = check_split(split)
        self._progress = progress
        self._released: list[NoisyTables] = []
        self._shelf = Lock()
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
        """What this curator was given."""
        return self._funds.budget

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        return self._funds.remaining

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """All that was handed out and paid for, oldest first; of rounds under one charge the last stands for all."""
        return tuple(self._released)

    @property
    def replayed(self) -> bool:
        """False: its releases are new, and paid for."""
        return False

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """Spend `budget` (None: all that remains) on the tables of `cliques` (None: those of the structure).

        With a mapping clique -> Budget each table is charged on its own, and the budgets add up. Each clique must be
        contained in one of the structure's. accept: told the noise of each table before anything is read or charged;
        raises to refuse it. Tables come as `plausible` has them, with normalised contributions `levelled`. Raises
        BudgetError or Overspent with nothing read, charged or released.
        """
        if isinstance(budget, Mapping):
            if not budget:
                raise BudgetError("the budgets per clique are empty; name at least one clique")
            cliques = list(budget) if cliques is None else cliques
        else:
            budget = self._funds.asked(budget)
        measured = self._measured(cliques)
        measurement = measure(self._mechanism, measured, self._terms, budget, self._split)
        if accept is not None:
            accept(measurement.noise)
        weighted = self._terms.contributions
        statistic = Counts.of(measured) if weighted is None else WeightedCounts(measured, weighted)
        with self._funds.paying(measurement.cost) as receipt:
            counts, records = self._count(statistic)
        tables = self._draw(measurement, counts)
        total, variance = self._total(tables, measurement, records)
        release = self._published(tables, measurement, receipt, total, variance)
        self._hand_out(release)
        receipt.keep(release)
        return plausible(levelled(release))

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
        clipped scores instead of counts. The noise is calibrated by `dpgm_core.noise.rounds`. Raises BudgetError or
        Overspent with nothing read or charged.
        """
        terms = self._terms
        if terms.contributions is not None:
            raise BudgetError(
                "rounds of subsamples count each row as 1; for normalised contributions use a learner of one release, "
                "such as naive-mle, cgm-em or eb-map"
            )
        if self._split != "even":
            raise BudgetError("rounds give every table the same noise; leave split = 'even'")
        cost = self._funds.asked(budget)
        if clip is not None:
            if not isinstance(clip, ClippedScore):
                raise BudgetError(f"clip must be a ClippedScore, got {type(clip).__name__}")
            if terms.policy == "estimated":
                raise BudgetError(
                    "clipped scores do not tell how many records there are; state total, as public knowledge"
                )
        measured = self._measured(cliques)
        sensitivity = terms.sensitivity(measured, clip)
        rate = sampling_probability(sampling_rate, terms.neighbours)
        noise, each = round_noise(
            self._mechanism, sensitivity, cost, rounds=n, sampling_rate=rate, neighbours=terms.neighbours
        )
        measurement = Measurement.shared(measured, calibrated(self._mechanism, noise, sensitivity, each))
        with self._funds.paying(cost) as receipt:
            columns = columns_of(measured)
            persons = shielded(self._source, lambda: read_persons(self._persons(), measured.domain, columns))
        return LiveRounds(
            n=n,
            rate=rate,
            clip=clip,
            measurement=measurement,
            persons=persons,
            source=self._source,
            randomness=self._randomness,
            terms=terms,
            publish=lambda tables, total, variance, round: self._published(
                tables, measurement, receipt, total, variance, cost=cost, round=round
            ),
            hand_out=self._hand_out,
            finish=receipt.keep,
        )

    def _measured(self, cliques: Iterable[Clique] | None) -> Structure:
        return self._structure if cliques is None else self._structure.measuring(cliques)

    def _persons(self) -> Source:
        if self._terms.person is None:
            return self._source
        if not isinstance(self._source, KeyedSource):
            raise DataError(
                f"source {type(self._source).__name__} cannot read a person key; use one of core's sources, or leave "
                "the person key out if each record is a person"
            )
        return PersonSource(source=self._source, person=self._terms.person, rows_per_person=self._terms.rows_per_person)

    def _count(self, statistic: Statistic) -> tuple[Tables, int]:
        """The true tables, and the number of records where counts know it."""
        domain = self._structure.domain
        total = shielded(
            self._source,
            lambda: summed(statistic, pieces(self._persons(), domain, statistic.columns), self._progress),
        )
        return statistic.tables(total), int(total[-1]) if isinstance(statistic, Counts) else 0

    def _draw(self, measurement: Measurement, counts: Tables) -> Tables:
        return measurement.table_by_table().draw(counts, self._randomness)

    def _total(self, tables: Tables, measurement: Measurement, records: int) -> tuple[float, float]:
        """N as the terms have it, and its variance."""
        if self._terms.policy == "public":
            return max(1.0, float(records)), 0.0
        if self._terms.declared is not None:
            return self._terms.declared, 0.0
        return estimate_total(tables, measurement.variances, self._terms.contributions)

    def _published(
        self,
        tables: Tables,
        measurement: Measurement,
        receipt: Receipt,
        total: float,
        variance: float,
        **more: Any,
    ) -> NoisyTables:
        """The release; more: `cost` and `round` of one of many rounds."""
        return NoisyTables(
            tables=tables,
            measurement=measurement,
            terms=self._terms,
            total=total,
            total_variance=variance,
            private=bool(self._randomness.private),
            unsafe=measurement.unsafe,
            provenance=receipt.provenance,
            **{"cost": measurement.cost} | more,
        )

    def _hand_out(self, release: NoisyTables, instead_of: NoisyTables | None = None) -> None:
        with self._shelf:
            if instead_of is None:
                self._released.append(release)
            else:
                self._released[self._released.index(instead_of)] = release

    def __repr__(self) -> str:
        return f"LiveCurator({self._structure}, {self._terms.neighbours.value}, remaining {self.remaining})"
