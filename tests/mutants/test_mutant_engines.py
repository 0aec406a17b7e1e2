"""Deliberately wrong engines, plain and collective, each killed by the check meant for it."""

import math

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Beliefs, CollectiveBeliefs, InferenceError, Tables
from dpgm_core.collective.dual import CollectiveDual
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.testing import checks_of
from dpgm_core.testing.oracles import all_records, enumerated, incidence, log_joint


class Wrapped:
    """An engine that hands everything on; mutants override one thing."""

    exact = True
    capabilities = frozenset({"maximize", "sample"})
    cost = None

    def __init__(self, inner):
        self.inner = inner
        self.structure = inner.structure

    def infer(self, potentials, *, total=1.0):
        return self.inner.infer(potentials, total=total)

    def maximize(self, potentials):
        return self.inner.maximize(potentials)

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)


def factory(engine_class, inner=JunctionTree):
    """A component that compiles to the mutant engine."""

    @frozen(kw_only=True)
    class Mutant:
        max_order = None

        def compile(self, structure):
            return engine_class(inner().compile(structure))

    return Mutant


class Unnormalised(Wrapped):
    """Beliefs 1 % too large."""

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        return attrs.evolve(beliefs, marginals=beliefs.marginals * 1.01)


class TiedAveraged(Wrapped):
    """A tied table is the mean over its cliques instead of the sum."""

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        shares = beliefs.marginals.repeat(1 / np.array(self.structure.multiplicities))
        return attrs.evolve(beliefs, marginals=beliefs.marginals.like(beliefs.marginals.values * shares))


class SoftZeros(Wrapped):
    """Impossible cells are only unlikely."""

    def infer(self, potentials, *, total=1.0):
        return super().infer(potentials.map(lambda values: np.maximum(values, -30.0)), total=total)


class WrongLogPartition(Wrapped):
    """log Z of the attributes in some clique: those in none are forgotten."""

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        used = {name for clique in self.structure.cliques for name in clique}
        free = math.prod(one.size for one in self.structure.domain if one.name not in used)
        return attrs.evolve(beliefs, log_partition=beliefs.log_partition - math.log(free))


class CallsItselfExact(Wrapped):
    """Loopy belief propagation that calls itself exact."""

    capabilities = frozenset()


class IndependentSum(Wrapped):
    """Tables as products of their one-attribute margins: right margins, wrong tables."""

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        parts = []
        for number, group in enumerate(self.structure.groups):
            table = beliefs.marginals.group(number)
            if len(group) == 1 and len(group[0]) == 2:
                product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
                table = np.where(np.isneginf(potentials.group(number)), 0.0, product)
                table = table * (beliefs.marginals.group(number).sum() / max(table.sum(), 1e-300))
            parts.append(table.reshape(-1))
        return attrs.evolve(beliefs, marginals=beliefs.marginals.like(np.concatenate(parts)))


class StopsEarly(Wrapped):
    """One sweep, and says that it converged."""

    exact = False
    capabilities = frozenset()

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), converged=True)


class Tempered(Wrapped):
    """Marginals of 1 % warmer potentials."""

    def infer(self, potentials, *, total=1.0):
        warm = super().infer(potentials * 0.99, total=total)
        return attrs.evolve(super().infer(potentials, total=total), marginals=warm.marginals)


class FirstCodeFavoured(Wrapped):
    """Code 0 of the first attribute is a little more likely: what the name is matters."""

    def infer(self, potentials, *, total=1.0):
        name = self.structure.domain.names[0]
        values = potentials.values.copy()
        for number, group in enumerate(self.structure.groups):
            if name == group[0][0] if group[0] else False:
                block = values[self.structure.slices[number]].reshape(self.structure.shapes[number])
                block[0] += 0.01
                break
        return super().infer(potentials.like(values), total=total)


class TotalForgotten(Wrapped):
    """Tables of one record, whatever the total."""

    def infer(self, potentials, *, total=1.0):
        return super().infer(potentials)


class NormalisesFirst(Wrapped):
    """Moves each table's largest potential to 0 and forgets it in log Z."""

    def infer(self, potentials, *, total=1.0):
        tops = [float(table.max()) if np.isfinite(table.max()) else 0.0 for table in potentials.arrays()]
        return super().infer(potentials.like(potentials.values - potentials.repeat(tops)), total=total)


class Underflows(Wrapped):
    """Plain probabilities by enumeration: exp(700 + 700) is infinite."""

    def infer(self, potentials, *, total=1.0):
        matrix = incidence(self.structure)
        weights = np.exp(log_joint(potentials, matrix))
        partition = weights.sum()
        marginals = Tables(self.structure, matrix @ (weights / partition) * total)
        return Beliefs(marginals=marginals, log_partition=float(np.log(partition)))


class NanBecomesZero(Wrapped):
    """NaN potentials are taken for 0."""

    def infer(self, potentials, *, total=1.0):
        finite = potentials.map(lambda values: np.nan_to_num(values, nan=0.0, neginf=-np.inf, posinf=1e300))
        return super().infer(finite, total=total)


class EvidenceIsAHint(Wrapped):
    """An observed code is only e^12 times as likely as the others."""

    def infer(self, potentials, *, total=1.0):
        soft = potentials.map(lambda values: np.maximum(values, -12.0))
        return super().infer(soft, total=total)


class Remembers(Wrapped):
    """Averages with the last answer: state between calls."""

    last = None

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        if self.last is not None:
            beliefs = attrs.evolve(beliefs, marginals=(beliefs.marginals + self.last.marginals) / 2)
        self.last = beliefs
        return beliefs


class ReusesItsBuffer(Wrapped):
    """One output buffer for all calls."""

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        if not hasattr(self, "buffer"):
            self.buffer = np.empty(self.structure.cells)
        self.buffer[:] = beliefs.marginals.values
        return attrs.evolve(beliefs, marginals=Tables(self.structure, self.buffer))


class MaximisesMargins(Wrapped):
    """Each attribute's own most likely code, instead of the most likely record."""

    def maximize(self, potentials):
        truth = enumerated(potentials)
        names = self.structure.domain.names
        rows = all_records(self.structure)
        codes = [
            int(np.argmax(np.bincount(rows[:, place], weights=truth.probabilities))) for place in range(len(names))
        ]
        counts = incidence(self.structure, np.array([codes]))[:, 0]
        value = float(np.where(counts > 0, counts * np.where(counts > 0, potentials.values, 0), 0).sum())
        return dict(zip(names, codes, strict=True)), value


class SamplesIndependently(Wrapped):
    """Each attribute on its own."""

    def sample(self, potentials, count, generator):
        columns = super().sample(potentials, count, generator)
        return [generator.permutation(column) for column in columns]


@frozen(kw_only=True)
class NoLimit:
    """Promises to compile anything."""

    max_order = None

    def compile(self, structure):
        small = math.prod(structure.domain.sizes.values()) < 10**6
        return JunctionTree().compile(structure) if small else Wrapped(_Hollow(structure))


class _Hollow:
    def __init__(self, structure):
        self.structure = structure


ENGINES = [
    (factory(Unnormalised), "tables-are-distributions"),
    (factory(TiedAveraged), "tables-are-distributions"),
    (factory(SoftZeros), "tables-are-distributions"),
    (factory(StopsEarly, lambda: LoopyBP(max_iterations=1)), "beliefs-agree-on-overlaps"),
    (factory(CallsItselfExact, LoopyBP), "marginals-equal-enumeration"),
    (factory(IndependentSum), "marginals-equal-enumeration"),
    (factory(WrongLogPartition), "log-partition-equals-enumeration"),
    (factory(CallsItselfExact, LoopyBP), "marginals-in-the-marginal-polytope"),
    (factory(Tempered), "marginals-are-the-gradient-of-log-partition"),
    (factory(FirstCodeFavoured), "relabelling-changes-nothing"),
    (factory(TotalForgotten), "total-scales-the-tables-only"),
    (factory(NormalisesFirst), "constants-move-log-partition-only"),
    (factory(Underflows), "nothing-underflows"),
    (factory(NanBecomesZero), "nonsense-is-refused"),
    (factory(EvidenceIsAHint), "evidence-is-conditioning"),
    (factory(Remembers), "calls-are-independent"),
    (factory(ReusesItsBuffer), "calls-are-independent"),
    (NoLimit, "what-cannot-fit-is-refused"),
    (factory(MaximisesMargins), "maximum-is-the-most-probable-record"),
    (factory(SamplesIndependently), "samples-follow-the-model"),
]


# --- collective engines -------------------------------------------------------------------------------------------


class WrappedCollective:
    """A collective engine that hands everything on."""

    def __init__(self, engine, evidence):
        self.engine, self.evidence = engine, evidence
        self.inner = CollectiveDual().compile(engine, evidence)

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        return self.inner.infer(potentials, evidence_weight=evidence_weight, start=start)


def collective(engine_class):
    """A component that compiles to the mutant collective engine."""

    @frozen(kw_only=True)
    class Mutant:
        def compile(self, engine, evidence):
            return engine_class(engine, evidence)

    return Mutant


class SumsToTheNoisyTotal(WrappedCollective):
    """Tables scaled to each noisy table's own sum."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        factor = self.evidence.tables.sums() / beliefs.marginals.sums()
        scaled = beliefs.marginals.like(beliefs.marginals.values * beliefs.marginals.repeat(factor))
        return attrs.evolve(beliefs, marginals=scaled)


class ProjectsTableByTable(WrappedCollective):
    """Each noisy table clipped and rescaled on its own: they need not fit together."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        clipped = np.maximum(self.evidence.tables.values.astype(float), 1e-9)
        tables = Tables(self.evidence.structure, clipped)
        factor = self.evidence.totals / tables.sums()
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        return attrs.evolve(beliefs, marginals=tables.like(tables.values * tables.repeat(factor)))


class PulledAway(WrappedCollective):
    """The sign of the multipliers is wrong."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        away = self.engine.infer(potentials - beliefs.multipliers, total=self.evidence.total)
        return attrs.evolve(beliefs, marginals=away.marginals, multipliers=-beliefs.multipliers)


class WeightIgnored(WrappedCollective):
    """Full weight, always."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        return super().infer(potentials, evidence_weight=max(evidence_weight, 1.0), start=start)


class GapOfZero(WrappedCollective):
    """Stops after one step and claims a gap of 0."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        half = beliefs.multipliers / 2
        marginals = self.engine.infer(potentials + half, total=self.evidence.total).marginals
        return attrs.evolve(
            beliefs, marginals=marginals, multipliers=half, gap=0.0 if beliefs.gap is not None else None
        )


class StaysWhereItStarts(WrappedCollective):
    """Takes the start for the answer."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        if start is None:
            return beliefs
        marginals = self.engine.infer(potentials + start, total=self.evidence.total).marginals
        return attrs.evolve(beliefs, marginals=marginals)


class Timid(WrappedCollective):
    """The pull of the evidence is cut at a tenth."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        return super().infer(potentials, evidence_weight=evidence_weight * 0.1, start=start)


class CertifiesLoopyBeliefs(WrappedCollective):
    """A gap over an engine that is not exact certifies nothing."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        return attrs.evolve(beliefs, gap=0.0)


class WarmStartsInSecret(WrappedCollective):
    """The last multipliers are the next start."""

    last = None

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start or self.last)
        self.last = beliefs.multipliers
        return beliefs


class ReusesItsTables(WrappedCollective):
    """One output buffer for all calls."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        beliefs = super().infer(potentials, evidence_weight=evidence_weight, start=start)
        if not hasattr(self, "buffer"):
            self.buffer = np.empty(potentials.values.size)
        self.buffer[:] = beliefs.marginals.values
        return attrs.evolve(beliefs, marginals=Tables(potentials.structure, self.buffer))


class NanIsNothing(WrappedCollective):
    """NaN potentials count as 0, and an infinite weight as a large one."""

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        clean = potentials.map(np.nan_to_num)
        return super().infer(clean, evidence_weight=evidence_weight, start=start)


class AnswersAnything(WrappedCollective):
    """What its solver refuses it answers with NaN."""

    def __init__(self, engine, evidence):
        try:
            super().__init__(engine, evidence)
        except InferenceError:
            self.inner = None

    def infer(self, potentials, *, evidence_weight=1.0, start=None):
        if self.inner is not None:
            return super().infer(potentials, evidence_weight=evidence_weight, start=start)
        nothing = potentials * np.nan
        return CollectiveBeliefs(
            marginals=nothing, multipliers=nothing, objective=0.0, gap=None, residual=0.0, converged=True, calls=0
        )


COLLECTIVES = [
    (collective(SumsToTheNoisyTotal), "tables-sum-to-the-total"),
    (collective(ProjectsTableByTable), "tables-in-the-marginal-polytope"),
    (collective(PulledAway), "evidence-is-heeded"),
    (collective(WeightIgnored), "no-evidence-gives-the-model"),
    (collective(GapOfZero), "gap-is-a-certificate"),
    (collective(StaysWhereItStarts), "answer-does-not-depend-on-the-start"),
    (collective(Timid), "certain-evidence-is-followed"),
    (collective(CertifiesLoopyBeliefs), "approximate-engines-will-do"),
    (collective(WarmStartsInSecret), "calls-are-independent"),
    (collective(ReusesItsTables), "calls-are-independent"),
    (collective(NanIsNothing), "nonsense-is-refused"),
    (collective(AnswersAnything), "any-noise-gives-tables-or-a-refusal"),
]

EVERY = [("inference", *one) for one in ENGINES] + [("collective", *one) for one in COLLECTIVES]


@pytest.mark.parametrize(
    ("kind", "mutant", "check"), EVERY, ids=[f"{check}-{n}" for n, (_, _, check) in enumerate(EVERY)]
)
def test_the_check_meant_for_it_kills_the_mutant(verdict, kind, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(mutant, kind, check).startswith("CheckFailed")


@pytest.mark.parametrize(("kind", "check"), sorted({(kind, check) for kind, _, check in EVERY}))
def test_the_originals_pass(verdict, kind, check):
    """The engines that the mutants wrap pass the same checks, wrapped in the same way."""
    original = factory(Wrapped) if kind == "inference" else collective(WrappedCollective)
    assert verdict(original, kind, check) is None


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in EVERY}))
def test_every_check_kills_a_mutant(kind):
    """No check is there for show."""
    checks = {check.name for check in checks_of(kind) if check.kind != "declaration"}
    assert {name for one, _, name in EVERY if one == kind} == checks
