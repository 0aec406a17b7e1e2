"""Deliberately wrong collective engines, each killed by the check meant for it."""

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import OptionError, Tables
from dpgm_core.inference import CollectiveBeliefs
from dpgm_core.inference.collective.dual import CollectiveDual
from dpgm_core.inference.collective.evidence import evidence_of, gap_of
from dpgm_testing.evidence import uneven_release

from .family import Family, replaces


class WrappedCollective:
    """A collective engine that hands everything on."""

    def __init__(self, engine, evidence):
        self.engine, self.evidence = engine, evidence
        self.inner = CollectiveDual().compile(engine, evidence)

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = self.inner.infer(potentials, evidence_weight=evidence_weight, start=start)
        return self.changed(beliefs, potentials, evidence_weight, start)

    def changed(self, beliefs, potentials, weight, start):
        return beliefs


def factory(engine_class):
    """A component that compiles to the mutant collective engine."""

    @frozen(kw_only=True)
    class Mutant:
        def compile(self, engine, evidence):
            return engine_class(engine, evidence)

    return Mutant


collective = Family("collective", factory)


@collective.each
class CollectiveFaults(WrappedCollective):
    @replaces("changed", "tables-sum-to-the-total", "Tables scaled to each noisy table's own sum.")
    def sums_to_the_noisy_total(self, beliefs, potentials, weight, start):
        factor = self.evidence.tables.sums() / beliefs.marginals.sums()
        scaled = beliefs.marginals.like(beliefs.marginals.values * beliefs.marginals.repeat(factor))
        return attrs.evolve(beliefs, marginals=scaled)

    @replaces("infer", "tables-in-the-marginal-polytope")
    def projects_table_by_table(self, potentials, *, evidence_weight=1.0, start=None):
        """Clips and rescales each noisy table alone: they need not fit together."""
        clipped = np.maximum(self.evidence.tables.values.astype(float), 1e-9)
        tables = Tables(self.evidence.structure, clipped)
        factor = self.evidence.totals / tables.sums()
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        return attrs.evolve(beliefs, marginals=tables.like(tables.values * tables.repeat(factor)))

    @replaces("changed", "evidence-is-heeded", "The sign of the multipliers is wrong.")
    def pulled_away(self, beliefs, potentials, weight, start):
        away = self.engine.infer(potentials - beliefs.multipliers, total=self.evidence.total)
        return attrs.evolve(beliefs, marginals=away.marginals, multipliers=-beliefs.multipliers)

    @replaces("infer", "no-evidence-gives-the-model", "Full weight, always.")
    def weight_ignored(self, potentials, *, evidence_weight=1.0, start=None):
        return super().infer(potentials, evidence_weight=max(evidence_weight, 1.0), start=start)

    @replaces("changed", "gap-is-a-certificate", "Stops after one step and claims a gap of 0.")
    def gap_of_zero(self, beliefs, potentials, weight, start):
        half = beliefs.multipliers / 2
        marginals = self.engine.infer(potentials + half, total=self.evidence.total).marginals
        return attrs.evolve(
            beliefs, marginals=marginals, multipliers=half, gap=0.0 if beliefs.gap is not None else None
        )

    @replaces("changed", "answer-does-not-depend-on-the-start", "Takes the start for the answer.")
    def stays_where_it_starts(self, beliefs, potentials, weight, start):
        if start is None:
            return beliefs
        marginals = self.engine.infer(potentials + start, total=self.evidence.total).marginals
        return attrs.evolve(beliefs, marginals=marginals)

    @replaces("infer", "certain-evidence-is-followed", "The pull of the evidence is cut at a tenth.")
    def timid(self, potentials, *, evidence_weight=1.0, start=None):
        return super().infer(potentials, evidence_weight=evidence_weight * 0.1, start=start)

    @replaces("changed", "approximate-engines-will-do", "A gap over an engine that is not exact certifies nothing.")
    def certifies_loopy_beliefs(self, beliefs, potentials, weight, start):
        return attrs.evolve(beliefs, gap=0.0)

    @replaces("changed", "calls-are-independent", "One output buffer for all calls.")
    def reuses_its_tables(self, beliefs, potentials, weight, start):
        if not hasattr(self, "buffer"):
            self.buffer = np.empty(potentials.values.size)
        self.buffer[:] = beliefs.marginals.values
        return attrs.evolve(beliefs, marginals=Tables(potentials.structure, self.buffer))

    @replaces("infer", "nonsense-is-refused", "NaN potentials count as 0, and an infinite weight as a large one.")
    def nan_is_nothing(self, potentials, *, evidence_weight=1.0, start=None):
        clean = potentials.map(np.nan_to_num)
        return super().infer(clean, evidence_weight=evidence_weight, start=start)

    @replaces("changed", "multipliers-explain-the-tables")
    def earlier_tables(self, beliefs, potentials, weight, start):
        """Hands out the tables of the step before its multipliers, and no gap."""
        before = self.engine.infer(potentials + beliefs.multipliers * 0.9, total=self.evidence.total)
        return attrs.evolve(beliefs, marginals=before.marginals, gap=None)

    @replaces("changed", "multipliers-explain-the-tables")
    def shares_multipliers_out(self, beliefs, potentials, weight, start):
        """Divides a tied table's multipliers by its cliques, and gives no gap."""
        u = beliefs.multipliers
        shares = u.repeat(1 / np.array(u.structure.multiplicities))
        return attrs.evolve(beliefs, multipliers=u.like(u.values * shares), gap=None)

    @replaces("changed", "multipliers-explain-the-tables")
    def multipliers_per_weight(self, beliefs, potentials, weight, start):
        """States the pull of the evidence at weight 1, whatever the weight was."""
        return attrs.evolve(beliefs, multipliers=beliefs.multipliers / weight, gap=None)

    @replaces("changed", "multipliers-explain-the-tables")
    def owns_to_a_residual(self, beliefs, potentials, weight, start):
        """Calls it converged, and excuses other multipliers by a residual."""
        half = beliefs.multipliers * 0.5
        return attrs.evolve(beliefs, multipliers=half, gap=None, residual=2.0, converged=True)

    @replaces("__init__", ("quiet-tables-count-for-more", "gap-is-a-certificate"))
    def one_noise_for_all(self, engine, evidence):
        """Takes the first table's noise for that of every table: what it solves and certifies is another problem."""
        of_group = evidence.measurement.of_group
        first = attrs.evolve(evidence.measurement, of_group=of_group[:1] * len(of_group))
        same = attrs.evolve(evidence, measurement=first)
        super().__init__(engine, same)

    @replaces("changed", "objective-is-no-more-than-its-tables-are-worth")
    def states_the_bound(self, beliefs, potentials, weight, start):
        """Takes the dual bound for what its tables are worth."""
        return attrs.evolve(beliefs, objective=beliefs.objective + 0.1, gap=None)

    @replaces("changed", "objective-is-within-its-gap-of-the-best")
    def counts_the_normaliser(self, beliefs, potentials, weight, start):
        """Counts the noise's normalisers, unknown to its gap."""
        logs = sum(
            size * float(noise.logpdf(np.zeros(1))[0])
            for noise, size in zip(self.evidence.noise, self.evidence.structure.sizes, strict=True)
        )
        return attrs.evolve(beliefs, objective=beliefs.objective + weight * logs)

    @replaces("changed", "objective-is-within-its-gap-of-the-best")
    def settles_halfway(self, beliefs, potentials, weight, start):
        """Goes part of the way, says so by its gap, calls it converged."""
        u = beliefs.multipliers * 0.3
        found = self.engine.infer(potentials + u, total=self.evidence.total)
        terms = evidence_of(self.evidence, weight)
        residual = terms.noisy - found.marginals.values
        gap, misfit, _ = gap_of(terms, residual, u.values)
        worth = self.evidence.total * found.log_partition - float(u.values @ found.marginals.values) - misfit
        gap = None if beliefs.gap is None else gap
        return attrs.evolve(beliefs, marginals=found.marginals, multipliers=u, objective=worth, gap=gap, converged=True)


@collective("calls-are-independent", "The last multipliers are the next start.")
class WarmStartsInSecret(WrappedCollective):
    last = None

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start or self.last)
        self.last = beliefs.multipliers
        return beliefs


@collective("quiet-tables-count-for-more", "Assumes its own noise, the same in every table, and gives no gap.")
class TakesNoiseForGranted(WrappedCollective):
    def __init__(self, engine, evidence):
        own = uneven_release(evidence.structure, evidence.tables.values, total=evidence.total, loud=())
        super().__init__(engine, own)

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        return attrs.evolve(super().infer(potentials, evidence_weight=evidence_weight, start=start), gap=None)


@collective("any-noise-gives-tables-or-a-refusal", "What its solver refuses it answers with NaN.")
class AnswersAnything(WrappedCollective):
    def __init__(self, engine, evidence):
        try:
            super().__init__(engine, evidence)
        except OptionError:
            self.inner = None

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        if self.inner is not None:
            return super().infer(potentials, evidence_weight=evidence_weight, start=start)
        nothing = potentials * np.nan
        return CollectiveBeliefs(
            marginals=nothing, multipliers=nothing, objective=0.0, gap=None, residual=0.0, converged=True, calls=0
        )
