"""Deliberately wrong curators and ledgers, patched copies of core's own, each killed by the check meant for it."""

import sqlite3
from contextlib import closing, contextmanager
from unittest import mock

import attrs
import numpy as np
import pytest

from dpgm_core import Budget, Ledger, LiveCurator, Sensitivity, Tables, Terms
from dpgm_core.errors import DataError, Overspent
from dpgm_core.privacy.ledger_file import add
from dpgm_testing import checks_of

# --- curators -----------------------------------------------------------------------------------------------------


class Penniless(LiveCurator):
    """No mutant: what those that go without the ledger for a while share."""

    @contextmanager
    def without_a_ledger(self):
        ledger, self._funds._ledger = self._funds._ledger, None
        try:
            yield ledger
        finally:
            self._funds._ledger = ledger


class ChargesAfterTheNoise(Penniless):
    """Draws noise first: a crash in between leaks a release nobody paid for."""

    def release(self, **asked):
        with self.without_a_ledger() as ledger:
            noisy = super().release(**asked)
        ledger.charge(noisy.cost)
        return noisy


class NeverCharges(Penniless):
    """Forgets the ledger."""

    def release(self, **asked):
        with self.without_a_ledger():
            return super().release(**asked)


class OneTableBare(LiveCurator):
    """The last table is published as counted."""

    def _draw(self, measurement, counted):
        tables, *total = super()._draw(measurement, counted)
        values, last = tables.values.copy(), measurement.structure.slices[-1]
        values[last] = counted.tables.values[last]
        return Tables(measurement.structure, values), *total


class NoisePerBatch(LiveCurator):
    """Noise for each of three batches, added up: not what was calibrated."""

    def _draw(self, measurement, counted):
        tables, *total = super()._draw(measurement, counted)
        for _ in range(2):
            tables, *_ = super()._draw(measurement, attrs.evolve(counted, tables=tables))
        return tables, *total


class NoiseShared(LiveCurator):
    """Tables of one shape get the same noise: their difference is exact."""

    def _draw(self, measurement, counted):
        tables, *total = super()._draw(measurement, counted)
        first = {}
        same = [first.setdefault(part.shape, part).reshape(-1) for part in (tables - counted.tables).arrays()]
        return counted.tables + Tables(measurement.structure, np.concatenate(same)), *total


class WrongRelation(LiveCurator):
    """Always the sensitivity of add-remove."""

    class Confused(Terms):
        """Terms of any relation, with the norms of one."""

        def sensitivity(self, structure, clip=None, contrasts=False):
            return Sensitivity.of(structure, "add-remove", rows_per_person=self.rows_per_person)

    def __init__(self, *parts, terms, **more):
        super().__init__(*parts, terms=self.Confused(**attrs.asdict(terms, recurse=False)), **more)


class ExactTotal(LiveCurator):
    """The exact number of records serves as the estimate."""

    def _draw(self, measurement, counted):
        tables, _, variance = super()._draw(measurement, counted)
        return tables, float(counted.records), variance


class ExactTotalInProvenance(LiveCurator):
    """The exact number of records goes into the provenance, for the record."""

    def _count(self, measured):
        counted = super()._count(measured)
        self._exact = counted.records
        return counted

    def _published(self, *parts, **more):
        noisy = super()._published(*parts, **more)
        return attrs.evolve(noisy, provenance={**noisy.provenance, "rows": self._exact})


class PublicTotalUnstamped(LiveCurator):
    """Publishes N and calls it an estimate."""

    def _published(self, *parts, **more):
        noisy = super()._published(*parts, **more)
        return attrs.evolve(noisy, terms=attrs.evolve(noisy.terms, total="estimated"))


class NeverSpent(Penniless):
    """Each release starts with the whole budget."""

    def release(self, **asked):
        self._funds._spent = Budget.zero(self.budget.kind)
        with self.without_a_ledger():
            return super().release(**asked)


class LargestPartCounts(LiveCurator):
    """Budgets per clique cost their maximum (parallel composition, where there is none)."""

    def _published(self, measurement, *parts, **more):
        cost = max(measurement.calibrations, key=lambda one: one.noise.cost.epsilon).noise.cost
        return super()._published(measurement, *parts, **more | {"cost": cost})


class ReadsBeforeItLooks(LiveCurator):
    """Counts the records before it looks at the budget."""

    def release(self, **asked):
        self._count(self._structure)
        return super().release(**asked)


class BelievesMechanisms(LiveCurator):
    """Charges what was asked, whatever the noise costs or its event says."""

    class Believed:
        """The mechanism, its word for the cost replaced by what was asked."""

        own_randomness = None

        def __init__(self, inner):
            self.inner = inner

        def noise(self, sensitivity, budget):
            return attrs.evolve(self.inner.noise(sensitivity, budget), cost=budget)

    def __init__(self, source, structure, mechanism, **more):
        super().__init__(source, structure, self.Believed(mechanism), **more)

    def release(self, **asked):
        with mock.patch("dpgm_core.privacy.mechanism.check_claims"):
            return super().release(**asked)


class ShowsTheCause(LiveCurator):
    """A failing source's exception travels on as the cause."""

    def _count(self, statistic):
        domain = self._structure.domain
        try:
            next(self._source.batches(domain, domain.names))
        except ValueError as error:
            raise DataError("the records could not be read") from error
        return super()._count(statistic)


class ReprShowsRecords(LiveCurator):
    """A helpful repr."""

    def __repr__(self):
        return f"LiveCurator({len(self._source.codes)} records)" if hasattr(self._source, "codes") else "LiveCurator()"


class NothingStamped(LiveCurator):
    """Calls every release private."""

    def _published(self, *parts, **more):
        return attrs.evolve(super()._published(*parts, **more), private=True)


class TermsUnread(LiveCurator):
    """Charges any ledger, whatever relation it keeps."""

    def __init__(self, *parts, ledger=None, **more):
        super().__init__(*parts, **more)
        self._funds._ledger = ledger


CURATORS = [
    (ChargesAfterTheNoise, "noise-comes-after-the-charge"),
    (NeverCharges, "noise-comes-after-the-charge"),
    (OneTableBare, "every-cell-gets-fresh-noise-once"),
    (NoisePerBatch, "every-cell-gets-fresh-noise-once"),
    (NoiseShared, "every-cell-gets-fresh-noise-once"),
    (WrongRelation, "sensitivity-is-that-of-the-relation"),
    (ExactTotal, "exact-total-stays-secret"),
    (ExactTotalInProvenance, "exact-total-stays-secret"),
    (PublicTotalUnstamped, "public-total-is-stamped"),
    (NeverSpent, "overspending-is-refused"),
    (LargestPartCounts, "budgets-per-clique-add-up"),
    (ReadsBeforeItLooks, "nonsense-is-refused-unread"),
    (BelievesMechanisms, "costly-noise-is-refused"),
    (ShowsTheCause, "errors-and-reprs-show-nothing"),
    (ReprShowsRecords, "errors-and-reprs-show-nothing"),
    (NothingStamped, "seeds-are-stamped"),
    (TermsUnread, "other-relations-are-refused"),
]


# --- ledgers ------------------------------------------------------------------------------------------------------


class Uncommitted(Ledger):
    """The charge is written in a transaction that is rolled back on close."""

    def charge(self, budget, *, note=""):
        self.check(budget)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            return add(connection, "2026", budget, note, (), "9f")


class KeptInMemory(Ledger):
    """Charges are written when the next one comes."""

    pending = None

    def charge(self, budget, *, note=""):
        if self.pending is not None:
            super().charge(self.pending)
        self.check(budget)
        self.pending = budget
        return 1


class FloatSums(Ledger):
    """Adds epsilons as doubles: ten times 0.1 is 0.9999999999999999."""

    def _refuse(self, budget, entries):
        spent = 0.0
        for entry in entries:
            spent += float(entry.cost.epsilon)
        if spent + float(budget.epsilon) > float(self.terms.budget.epsilon):
            raise Overspent("too much")


class ChargesBeforeItChecks(Ledger):
    """A refused charge stays in the file."""

    def charge(self, budget, *, note=""):
        with closing(sqlite3.connect(self.path)) as connection:
            add(connection, "2026", budget, note, (), "9f")
            connection.commit()
        self.check(Budget.pure("1e-300"))
        return len(self.history())


class Racy(Ledger):
    """Looks, waits a little, then writes: two processes may both look first."""

    def charge(self, budget, *, note=""):
        import time

        self.check(budget)
        time.sleep(0.05)
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            number = add(connection, "2026", budget, note, (), "9f")
            connection.execute("COMMIT")
            return number


class RhoIsEpsilon(Ledger):
    """Adds up whatever numbers come, rho as if it were epsilon."""

    def spent(self):
        entries = self.history()
        if self.terms.budget.kind != "zcdp":
            return super().spent()
        return Budget.zcdp(sum(entry.cost.epsilon + entry.cost.rho for entry in entries))


class AnyTerms(Ledger):
    """Takes releases under any relation."""

    def check_terms(self, terms):
        return None


class CreatesOnOpen(Ledger):
    """A missing ledger is made on the spot, with a budget of its own choosing."""

    @classmethod
    def open(cls, path):
        if not path.exists():
            return cls.create(path, name="x", budget=Budget.pure(1), neighbours="add-remove")
        return super().open(path)


class NumbersAreEpsilon(Ledger):
    """A bare number is charged as epsilon."""

    def charge(self, budget, *, note=""):
        return super().charge(budget if isinstance(budget, Budget) else Budget.pure(budget), note=note)


LEDGERS = [
    (Uncommitted, "charges-are-on-disk-when-charge-returns"),
    (KeptInMemory, "charges-are-on-disk-when-charge-returns"),
    (FloatSums, "sums-are-exact"),
    (ChargesBeforeItChecks, "refused-charges-leave-no-trace"),
    (Racy, "races-do-not-overspend"),
    (RhoIsEpsilon, "kinds-add-up-by-their-rules"),
    (AnyTerms, "terms-are-fixed"),
    (CreatesOnOpen, "nonsense-is-refused"),
    (NumbersAreEpsilon, "nonsense-is-refused"),
]

EVERY = [("curator", *one) for one in CURATORS] + [("ledger", *one) for one in LEDGERS]


@pytest.mark.parametrize(
    ("kind", "mutant", "check"), EVERY, ids=[f"{check}-{n}" for n, (_, _, check) in enumerate(EVERY)]
)
def test_the_check_meant_for_it_kills_the_mutant(verdict, kind, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    found = verdict(mutant, kind, check)
    assert found is not None and found.startswith(("CheckFailed", "ModelFileError")), found


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in EVERY}))
def test_every_check_kills_a_mutant(kind):
    """No check is there for show."""
    checks = {check.name for check in checks_of(kind) if check.kind != "declaration"}
    assert {name for one, _, name in EVERY if one == kind} == checks
