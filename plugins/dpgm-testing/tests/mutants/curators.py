"""Deliberately wrong curators and ledgers, patched copies of core's own, each killed by the check meant for it."""

import sqlite3
from contextlib import closing, contextmanager
from unittest import mock

import attrs
import numpy as np

from dpgm_core import Budget, Ledger, LiveCurator, Sensitivity, Tables, Terms
from dpgm_core.errors import DataError, Overspent
from dpgm_core.privacy.ledger_file import add

from .family import Family, replaces

curator, ledger = Family("curator"), Family("ledger")

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


@curator.each
class PennilessFaults(Penniless):
    @replaces("release", "noise-comes-after-the-charge")
    def charges_after_the_noise(self, **asked):
        """Draws noise first: a crash in between leaks a release nobody paid for."""
        with self.without_a_ledger() as ledger:
            noisy = super().release(**asked)
        ledger.charge(noisy.cost)
        return noisy

    @replaces("release", "noise-comes-after-the-charge", "Forgets the ledger.")
    def never_charges(self, **asked):
        with self.without_a_ledger():
            return super().release(**asked)

    @replaces("release", "overspending-is-refused", "Each release starts with the whole budget.")
    def never_spent(self, **asked):
        self._funds._spent = Budget.zero(self.budget.kind)
        with self.without_a_ledger():
            return super().release(**asked)


@curator.each
class LiveCuratorFaults(LiveCurator):
    @replaces("_draw", "every-cell-gets-fresh-noise-once", "The last table is published as counted.")
    def one_table_bare(self, measurement, counted):
        tables, *total = super()._draw(measurement, counted)
        values, last = tables.values.copy(), measurement.structure.slices[-1]
        values[last] = counted.tables.values[last]
        return Tables(measurement.structure, values), *total

    @replaces("_draw", "every-cell-gets-fresh-noise-once")
    def noise_per_batch(self, measurement, counted):
        """Noise for each of three batches, added up: not what was calibrated."""
        tables, *total = super()._draw(measurement, counted)
        for _ in range(2):
            tables, *_ = super()._draw(measurement, attrs.evolve(counted, tables=tables))
        return tables, *total

    @replaces("_draw", "every-cell-gets-fresh-noise-once")
    def noise_shared(self, measurement, counted):
        """Tables of one shape get the same noise: their difference is exact."""
        tables, *total = super()._draw(measurement, counted)
        first = {}
        same = [first.setdefault(part.shape, part).reshape(-1) for part in (tables - counted.tables).arrays()]
        return counted.tables + Tables(measurement.structure, np.concatenate(same)), *total

    @replaces("_draw", "exact-total-stays-secret", "The exact number of records serves as the estimate.")
    def exact_total(self, measurement, counted):
        tables, _, variance = super()._draw(measurement, counted)
        return tables, float(counted.records), variance

    @replaces("_published", "public-total-is-stamped", "Publishes N and calls it an estimate.")
    def public_total_unstamped(self, *parts, **more):
        noisy = super()._published(*parts, **more)
        return attrs.evolve(noisy, terms=attrs.evolve(noisy.terms, total="estimated"))

    @replaces("_published", "budgets-per-clique-add-up")
    def largest_part_counts(self, measurement, *parts, **more):
        """Budgets per clique cost their maximum, as if composition were parallel."""
        cost = max(measurement.calibrations, key=lambda one: one.noise.cost.epsilon).noise.cost
        return super()._published(measurement, *parts, **more | {"cost": cost})

    @replaces("release", "nonsense-is-refused-unread", "Counts the records before it looks at the budget.")
    def reads_before_it_looks(self, **asked):
        self._count(self._structure)
        return super().release(**asked)

    @replaces("_count", "errors-and-reprs-show-nothing", "A failing source's exception travels on as the cause.")
    def shows_the_cause(self, statistic):
        domain = self._structure.domain
        try:
            next(self._source.batches(domain, domain.names))
        except ValueError as error:
            raise DataError("the records could not be read") from error
        return super()._count(statistic)

    @replaces("__repr__", "errors-and-reprs-show-nothing", "A helpful repr.")
    def repr_shows_records(self):
        return f"LiveCurator({len(self._source.codes)} records)" if hasattr(self._source, "codes") else "LiveCurator()"

    @replaces("_published", "seeds-are-stamped", "Calls every release private.")
    def nothing_stamped(self, *parts, **more):
        return attrs.evolve(super()._published(*parts, **more), private=True)

    @replaces("__init__", "other-relations-are-refused", "Charges any ledger, whatever relation it keeps.")
    def terms_unread(self, *parts, ledger=None, **more):
        super().__init__(*parts, **more)
        self._funds._ledger = ledger


@curator("sensitivity-is-that-of-the-relation", "Always the sensitivity of add-remove.")
class WrongRelation(LiveCurator):
    class Confused(Terms):
        """Terms of any relation, with the norms of one."""

        def sensitivity(self, structure, clip=None, contrasts=False):
            return Sensitivity.of(structure, "add-remove", rows_per_person=self.rows_per_person)

    def __init__(self, *parts, terms, **more):
        super().__init__(*parts, terms=self.Confused(**attrs.asdict(terms, recurse=False)), **more)


@curator("exact-total-stays-secret", "The exact number of records goes into the provenance, for the record.")
class ExactTotalInProvenance(LiveCurator):
    def _count(self, measured):
        counted = super()._count(measured)
        self._exact = counted.records
        return counted

    def _published(self, *parts, **more):
        noisy = super()._published(*parts, **more)
        return attrs.evolve(noisy, provenance={**noisy.provenance, "rows": self._exact})


@curator("costly-noise-is-refused", "Charges what was asked, whatever the noise costs or its event says.")
class BelievesMechanisms(LiveCurator):
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


# --- ledgers ------------------------------------------------------------------------------------------------------


@ledger.each
class LedgerFaults(Ledger):
    @replaces("charge", "charges-are-on-disk-when-charge-returns")
    def uncommitted(self, budget, *, note=""):
        """Writes the charge in a transaction that is rolled back on close."""
        self.check(budget)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            return add(connection, "2026", budget, note, (), "9f")

    @replaces("_refuse", "sums-are-exact", "Adds epsilons as doubles: ten times 0.1 is 0.9999999999999999.")
    def float_sums(self, budget, entries):
        spent = 0.0
        for entry in entries:
            spent += float(entry.cost.epsilon)
        if spent + float(budget.epsilon) > float(self.terms.budget.epsilon):
            raise Overspent("too much")

    @replaces("charge", "refused-charges-leave-no-trace", "A refused charge stays in the file.")
    def charges_before_it_checks(self, budget, *, note=""):
        with closing(sqlite3.connect(self.path)) as connection:
            add(connection, "2026", budget, note, (), "9f")
            connection.commit()
        self.check(Budget.pure("1e-300"))
        return len(self.history())

    @replaces("charge", "races-do-not-overspend")
    def racy(self, budget, *, note=""):
        """Looks, waits a little, then writes: two processes may both look first."""
        import time

        self.check(budget)
        time.sleep(0.05)
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            number = add(connection, "2026", budget, note, (), "9f")
            connection.execute("COMMIT")
            return number

    @replaces("spent", "kinds-add-up-by-their-rules", "Adds up whatever numbers come, rho as if it were epsilon.")
    def rho_is_epsilon(self):
        entries = self.history()
        if self.terms.budget.kind != "zcdp":
            return super().spent()
        return Budget.zcdp(sum(entry.cost.epsilon + entry.cost.rho for entry in entries))

    @replaces("check_terms", "terms-are-fixed", "Takes releases under any relation.")
    def any_terms(self, terms):
        return None

    @replaces("charge", "nonsense-is-refused", "A bare number is charged as epsilon.")
    def numbers_are_epsilon(self, budget, *, note=""):
        return super().charge(budget if isinstance(budget, Budget) else Budget.pure(budget), note=note)


@ledger("charges-are-on-disk-when-charge-returns", "Charges are written when the next one comes.")
class KeptInMemory(Ledger):
    pending = None

    def charge(self, budget, *, note=""):
        if self.pending is not None:
            super().charge(self.pending)
        self.check(budget)
        self.pending = budget
        return 1


@ledger("nonsense-is-refused", "A missing ledger is made on the spot, with a budget of its own choosing.")
class CreatesOnOpen(Ledger):
    @classmethod
    def open(cls, path):
        if not path.exists():
            return cls.create(path, name="x", budget=Budget.pure(1), neighbours="add-remove")
        return super().open(path)
