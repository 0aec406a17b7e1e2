"""The one class that sees both sides: it counts records, charges the ledger, draws noise and hands out NoisyTables.

The order of a release is fixed (DESIGN section 4): check funds, read and count, commit the charge, draw noise, save
the release. A crash in between wastes budget and never leaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from attrs import evolve

from dpgm_core.arrays import Array
from dpgm_core.components.registry import default_registry
from dpgm_core.counting.kernel import Counted
from dpgm_core.counting.kernel import count as count_records
from dpgm_core.counting.shares import count_contributions
from dpgm_core.counting.subsample import read_rows
from dpgm_core.curator.contract import Rounds
from dpgm_core.curator.rounds import LiveRounds
from dpgm_core.curator.shield import is_ours
from dpgm_core.errors import BudgetError, DataError, DpgmError, OptionError, Overspent, StructureError
from dpgm_core.files import check_writable
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.noise.contract import Mechanism, Noise
from dpgm_core.noise.measurement import (
    Calibration,
    add_noise,
    check_budget,
    check_noise,
    check_restorable,
    measured_structure,
    single_group,
    total_cost,
)
from dpgm_core.noise.rounds import round_noise
from dpgm_core.noise.split import check_split, optimal_split
from dpgm_core.privacy.accounting import sampling_probability
from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import ClippedScore, Contributions
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.terms import default_unit, total_policy
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness, SystemRandomness
from dpgm_core.releases.release import NoisyTables, estimate_total
from dpgm_core.sources.contract import KeyedSource, Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["LiveCurator"]

T = TypeVar("T")


class LiveCurator:
    """The only door to the records; a learner sees them through `release` and in no other way.

    source: a Source component. structure: the model's cliques. mechanism: calibrates the noise. neighbours: required.
    budget: what this curator may spend in all. ledger: an open Ledger that is charged before any noise is drawn, or
    None (then only `budget` limits). unit: what is protected, in words; the ledger's when None. person,
    rows_per_person: the person key's column and r. total: "estimated", "public" (the exact number of records is
    published) or a number declared as public by the owner. save_to: where each release is written before anybody
    sees it. stream: read the records afresh for each of many rounds instead of keeping their codes in memory.
    split: how one budget is divided over tables: "even" noise for all, or "optimal" (see `optimal_split`).
    contributions: how much the rows of a person count (None: each row counts 1 in each table).

    Raises BudgetError, StructureError and OptionError before any record is read.
    """

    def __init__(
        self,
        source: Source,
        structure: Structure,
        mechanism: Mechanism,
        *,
        neighbours: Neighbours | str,
        budget: Budget,
        randomness: Randomness | None = None,
        ledger: Ledger | None = None,
        unit: str | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        total: str | float = "estimated",
        save_to: Path | None = None,
        split: str = "even",
        contributions: Contributions | None = None,
        note: str = "",
        progress: Progress = silent,
        stream: bool = False,
    ) -> None:
        if not isinstance(structure, Structure):
            raise StructureError(f"structure must be a Structure, got {type(structure).__name__}")
        check_budget(budget)
        if budget.is_zero:
            raise BudgetError(f"budget is {budget}; it must be positive")
        self._neighbours = Neighbours.of(neighbours)
        self._rows = whole("rows_per_person", rows_per_person, least=1)
        if person is None and self._rows > 1:
            raise BudgetError(
                f"rows_per_person = {self._rows} needs a person key: name the column that identifies a person"
            )
        self._policy, self._declared = total_policy(total)
        if contributions is not None:
            if not isinstance(contributions, Contributions):
                raise OptionError(f"contributions must be Contributions, got {type(contributions).__name__}")
            if self._policy != "estimated":
                raise BudgetError(
                    "weighted tables do not sum to the number of records, so no public total fits them; leave "
                    "total = 'estimated', or leave contributions out"
                )
            contributions.check(structure, self._rows)
        self._contributions = contributions
        self._source = source
        self._structure = structure
        self._mechanism = mechanism
        self._budget = budget
        self._spent = Budget.zero(budget.kind)
        self._randomness: Randomness = SystemRandomness() if randomness is None else randomness
        own = mechanism.own_randomness
        if own is not None and not self._randomness.private:
            # Its noise would refuse the seed too, but only after the charge.
            raise OptionError(
                f"a seeded simulation cannot use {type(mechanism).__name__}: {own}; use another mechanism"
            )
        self._ledger = ledger
        self._unit = unit or (default_unit(person) if ledger is None else ledger.terms.unit)
        self._person = person
        self._save_to = save_to
        self._split = check_split(split)
        self._note = note
        self._progress = progress
        self._stream = stream
        self._funds = Lock()
        self._numbers: set[int] = set()  # of the releases made or under way, for the names of their files
        self.released: list[NoisyTables] = []
        if ledger is not None:
            ledger.check_terms(neighbours=self._neighbours, unit=self._unit, person=person, rows_per_person=self._rows)

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._structure

    @property
    def neighbours(self) -> Neighbours:
        """The declared relation."""
        return self._neighbours

    @property
    def contributions(self) -> Contributions | None:
        """How much the rows of a person count; None: each counts 1."""
        return self._contributions

    @property
    def budget(self) -> Budget:
        """What this curator was given."""
        return self._budget

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        return self._budget - self._spent

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyTables:
        """Spend `budget` (None: all that remains) on the tables of `cliques` (None: those of the structure).

        With a mapping clique -> Budget each table is charged on its own, and the budgets add up. Each clique must be
        contained in one of the structure's. Raises BudgetError or Overspent with nothing read, charged or released.
        """
        if sampling_rate != 1:
            if isinstance(budget, Mapping):
                raise BudgetError("a subsampled release takes one budget, not one for each clique")
            with self._opened(self._measured(None, cliques), 1, sampling_rate, budget, None) as rounds:
                return rounds.next()
        measured = self._measured(budget if isinstance(budget, Mapping) else None, cliques)
        calibrations, calibration_of = self._calibrate(measured, budget)
        cost = total_cost(calibrations)
        with self._reserved(cost) as save_to:
            counted = self._count(measured)
            entry = None if self._ledger is None else self._ledger.charge(cost, note=self._note)
        noisy = self._noisy(counted, calibrations, calibration_of, cost, entry)
        self.released.append(noisy)
        if save_to is not None:
            noisy.save(save_to)
            if self._ledger is not None and entry is not None:
                self._ledger.mark_released(entry)
        return noisy

    def rounds(
        self, n: int, *, sampling_rate: float, budget: Budget | None = None, clip: ClippedScore | None = None
    ) -> AbstractContextManager[Rounds]:
        """n releases, each of a fresh Poisson subsample of persons, charged in full here; see `Rounds`.

        budget: of all rounds together (None: all that remains). clip: release clipped scores instead of counts. The
        noise is calibrated by `dpgm_core.round_noise`. Raises BudgetError or Overspent with nothing read or charged.
        """
        return self._opened(self._structure, n, sampling_rate, budget, clip)

    def _opened(
        self, measured: Structure, n: int, sampling_rate: float, budget: Budget | None, clip: ClippedScore | None
    ) -> LiveRounds:
        if self._contributions is not None:
            raise BudgetError(
                "rounds of subsamples count each row as 1; for normalised contributions use a learner of one release, "
                "such as naive-mle, cgm-em or eb-map"
            )
        if self._split != "even":
            raise BudgetError("rounds give every table the same noise; leave split = 'even'")
        cost = self.remaining if budget is None else budget
        check_budget(cost)
        if cost.is_zero or not cost <= self.remaining:
            raise Overspent(f"{cost} was asked for rounds, but only {self.remaining} remains of {self.budget}")
        if clip is None:
            sensitivity = Sensitivity.of(measured, self._neighbours, rows_per_person=self._rows)
        elif not isinstance(clip, ClippedScore):
            raise BudgetError(f"clip must be a ClippedScore, got {type(clip).__name__}")
        elif self._policy == "estimated":
            raise BudgetError("clipped scores do not tell how many records there are; state total, as public knowledge")
        else:
            sensitivity = clip.sensitivity(measured.cells, self._neighbours)
        rate = sampling_probability(sampling_rate, self._neighbours)
        noise, each = round_noise(
            self._mechanism, sensitivity, cost, rounds=n, sampling_rate=rate, neighbours=self._neighbours
        )
        calibration = self._calibrated(noise, sensitivity, each)
        with self._reserved(cost) as save_to:
            rows = self._shielded(lambda: read_rows(self._persons(), measured, stream=self._stream))
            entry = None if self._ledger is None else self._ledger.charge(cost, note=self._note)
        terms: dict[str, Any] = {"rounds": n, "sampling_rate": str(rate)}
        if clip is not None:
            terms |= {"clip_norm": str(clip.norm), "grid": clip.grid}
        records = rows.records
        latest: list[NoisyTables] = []
        variances = np.full(len(measured.groups), noise.variance)

        def publish(values: Array, number: int) -> NoisyTables:
            tables = Tables(measured, values)
            if self._policy == "estimated":
                total, variance = estimate_total(tables, variances)
            else:
                total = max(1.0, float(rate) * (self._declared or records))
                variance = float(1 - rate) * total
            noisy = self._release(tables, (calibration,), (0,) * len(measured.groups), cost, entry, total, variance)
            noisy = evolve(noisy, provenance={**noisy.provenance, "rounds": {**terms, "round": number}})
            if latest:  # the last round stands for all
                self.released[self.released.index(latest.pop())] = noisy
            else:
                self.released.append(noisy)
            latest.append(noisy)
            return noisy

        def finish() -> None:
            if save_to is not None and latest:
                latest[0].save(save_to)
                if self._ledger is not None and entry is not None:
                    self._ledger.mark_released(entry)

        return LiveRounds(
            n=n,
            rate=rate,
            clip=clip,
            noise=noise,
            structure=measured,
            rows=rows,
            randomness=self._randomness,
            shield=self._shielded,
            publish=publish,
            finish=finish,
        )

    @contextmanager
    def _reserved(self, cost: Budget) -> Iterator[Path | None]:
        """Set `cost` aside, so that no other thread can spend it too, and name a file for the release.

        The cost is given back when reading the records or charging the ledger fails inside.
        """
        with self._funds:
            if not cost <= self.remaining:
                raise Overspent(f"this release costs {cost}, but only {self.remaining} remains of {self.budget}")
            if self._ledger is not None:
                self._ledger.check(cost)
            number = next(free for free in count(1) if free not in self._numbers)
            save_to = None if self._save_to is None else _numbered(self._save_to, number)
            if save_to is not None:
                check_writable(save_to)  # better now than after the charge
            self._spent = self._spent + cost
            self._numbers.add(number)
        try:
            yield save_to
        except BaseException:
            with self._funds:
                self._spent = self._spent - cost
                self._numbers.discard(number)
            raise

    def _measured(self, budgets: Mapping[Clique, Budget] | None, cliques: Iterable[Clique] | None) -> Structure:
        if budgets is not None:
            if not budgets:
                raise BudgetError("the budgets per clique are empty; name at least one clique")
            cliques = list(budgets) if cliques is None else cliques
        if cliques is None:
            return self._structure
        return measured_structure(self._structure, cliques)

    def _calibrate(
        self, measured: Structure, budget: Budget | Mapping[Clique, Budget] | None
    ) -> tuple[tuple[Calibration, ...], tuple[int, ...]]:
        groups = len(measured.groups)
        if not isinstance(budget, Mapping):
            asked = self.remaining if budget is None else budget
            check_budget(asked)
            if asked.is_zero:
                raise Overspent(f"nothing remains of {self.budget}")
            if not asked <= self.remaining:
                raise Overspent(f"{asked} was asked, but only {self.remaining} remains of {self.budget}")
            if self._split == "even":
                return (self._calibration(measured, asked),), (0,) * groups
            budget = optimal_split(measured, asked)
        own: dict[int, Budget] = {}
        for clique, asked in budget.items():
            check_budget(asked)
            number = measured.find(clique)[0]
            if number in own:
                raise BudgetError(f"clique {clique!r} is given two budgets; name each table once")
            own[number] = asked
        if len(own) < groups:
            missing = next(group[0] for number, group in enumerate(measured.groups) if number not in own)
            raise BudgetError(f"clique {missing!r} has no budget; give one to each measured clique")
        return (
            tuple(self._calibration(single_group(measured, number), own[number]) for number in range(groups)),
            tuple(range(groups)),
        )

    def _calibration(self, measured: Structure, budget: Budget) -> Calibration:
        if self._contributions is None:
            sensitivity = Sensitivity.of(measured, self._neighbours, rows_per_person=self._rows)
        else:
            sensitivity = self._contributions.sensitivity(measured, self._neighbours, rows_per_person=self._rows)
        return self._calibrated(self._mechanism.noise(sensitivity, budget), sensitivity, budget)

    def _calibrated(self, noise: Noise, sensitivity: Sensitivity, budget: Budget) -> Calibration:
        check_noise(noise, budget)
        registry = default_registry()
        component = registry.name_of("mechanism", self._mechanism)
        if component is not None:
            check_restorable(noise, f"mechanism {component!r}")
        return Calibration(
            noise=noise,
            component=component,
            options=registry.options_of(self._mechanism),
            sensitivity=sensitivity,
            budget=budget,
        )

    def _count(self, measured: Structure) -> Counted:
        weighted = self._contributions
        if weighted is None:
            return self._shielded(lambda: count_records(self._persons(), measured, progress=self._progress))
        return self._shielded(lambda: count_contributions(self._persons(), measured, weighted, progress=self._progress))

    def _persons(self) -> Source:
        if self._person is None:
            return self._source
        return PersonSource(source=self._keyed(), person=self._person, rows_per_person=self._rows)

    def _shielded(self, call: Callable[[], T]) -> T:
        # A foreign exception may quote records. It is dropped whole, context included, by raising outside of it.
        kind = ""
        kept: DpgmError | None = None
        try:
            return call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            kind = type(error).__name__
            if isinstance(error, DpgmError) and is_ours(error):
                kept = type(error)(*error.args)
        if kept is not None:
            raise kept
        raise DataError(
            f"the records could not be read: source {type(self._source).__name__} failed with {kind} "
            "(details are withheld because they may quote records); run dpgm validate to see them"
        )

    def _keyed(self) -> KeyedSource:
        if not isinstance(self._source, KeyedSource):
            raise DataError(
                f"source {type(self._source).__name__} cannot read a person key; use one of core's sources, or leave "
                "the person key out if each record is a person"
            )
        return self._source

    def _noisy(
        self,
        counted: Counted,
        calibrations: tuple[Calibration, ...],
        calibration_of: tuple[int, ...],
        cost: Budget,
        entry: int | None,
    ) -> NoisyTables:
        structure = counted.tables.structure
        parts: list[Array] = []
        for number, part in enumerate(counted.tables.arrays()):
            noise = calibrations[calibration_of[number]].noise
            parts.append(add_noise(part, noise.sample(part.shape, self._randomness)).reshape(-1))
        tables = Tables(structure, np.concatenate(parts))
        variances = np.array([calibrations[number].noise.variance for number in calibration_of])
        total, variance = estimate_total(tables, variances, self._contributions)
        if self._policy == "public":
            total, variance = max(1.0, float(counted.records)), 0.0
        elif self._declared is not None:
            total, variance = self._declared, 0.0
        return self._release(tables, calibrations, calibration_of, cost, entry, total, variance)

    def _release(
        self,
        tables: Tables,
        calibrations: tuple[Calibration, ...],
        calibration_of: tuple[int, ...],
        cost: Budget,
        entry: int | None,
        total: float,
        variance: float,
    ) -> NoisyTables:
        unsafe = {one.noise.unsafe for one in calibrations} - {None}
        provenance: dict[str, Any] = {} if self._person is None else {"person_key": self._person}
        if self._ledger is not None:
            provenance |= {"ledger": self._ledger.name, "entry": entry}
        return NoisyTables(
            tables=tables,
            calibrations=calibrations,
            calibration_of=calibration_of,
            neighbours=self._neighbours,
            unit=self._unit,
            rows_per_person=self._rows,
            total=total,
            total_policy=self._policy,
            total_variance=variance,
            cost=cost,
            private=bool(self._randomness.private),
            unsafe="; ".join(sorted(map(str, unsafe))) or None,
            provenance=provenance,
            contributions=self._contributions,
        )

    def __repr__(self) -> str:
        return f"LiveCurator({self._structure}, {self._neighbours.value}, remaining {self.remaining})"


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")
