"""Deliberately wrong engines, each killed by the check meant for it."""

import math

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Beliefs, InferenceError, Tables
from dpgm_core.inference.contract import LogPartitionBounds
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_testing import checks_of
from dpgm_testing.oracles import all_records, enumerated, incidence, log_joint


class Wrapped:
    """An engine that hands everything on; mutants override one thing."""

    exact = True
    capabilities = frozenset({"maximize", "query", "rounded", "sample"})
    cost = None

    def __init__(self, inner):
        self.inner = inner
        self.structure = inner.structure

    def infer(self, potentials, *, total=1.0):
        return self.inner.infer(potentials, total=total)

    def maximize(self, potentials):
        return self.inner.maximize(potentials)

    def answers(self, potentials, queries):
        return self.inner.answers(potentials, queries)

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)

    def rounded(self, potentials, count, generator):
        return self.inner.rounded(potentials, count, generator)


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


class SharesItsScratch(Wrapped):
    """The potentials of a call lie in the engine while it works: of two calls at once one takes the other's."""

    scratch = None

    def infer(self, potentials, *, total=1.0):
        self.scratch = potentials
        return super().infer(self.scratch, total=total)


class AnswersInPlace(Wrapped):
    """What a call found lies in the engine for a moment, before it is copied out."""

    found = None

    def infer(self, potentials, *, total=1.0):
        self.found = super().infer(potentials, total=total)
        marginals = self.found.marginals.map(np.copy)
        return attrs.evolve(self.found, marginals=marginals)


class WorksAlone(Wrapped):
    """Refuses a call while another one is under way."""

    busy = False

    def infer(self, potentials, *, total=1.0):
        if self.busy:
            raise InferenceError("busy")
        self.busy = True
        try:
            return super().infer(potentials, total=total)
        finally:
            self.busy = False


class KeepsEveryAnswer(Wrapped):
    """A cache by potentials, without an end."""

    def __init__(self, inner):
        super().__init__(inner)
        self.known = {}

    def infer(self, potentials, *, total=1.0):
        key = potentials.values.tobytes(), total
        if key not in self.known:
            self.known[key] = super().infer(potentials, total=total)
        return self.known[key]


class KeepsADiary(Wrapped):
    """One number per call, of no use to anybody."""

    def __init__(self, inner):
        super().__init__(inner)
        self.diary = []

    def infer(self, potentials, *, total=1.0):
        beliefs = super().infer(potentials, total=total)
        self.diary.append(beliefs.log_partition)
        return beliefs


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


class AnswersInItsOwnOrder(Wrapped):
    """Axes by name, whatever order was asked for."""

    def answers(self, potentials, queries):
        return super().answers(potentials, [tuple(sorted(query)) for query in queries])


class AnswersAsIfIndependent(Wrapped):
    """Across cliques, the product of the attributes' own marginals."""

    def answers(self, potentials, queries):
        found = []
        for query in queries:
            table = np.ones(())
            for one in super().answers(potentials, [(name,) for name in query]):
                table = np.multiply.outer(table, one)
            found.append(table)
        return found


class SamplesIndependently(Wrapped):
    """Each attribute on its own."""

    def sample(self, potentials, count, generator):
        columns = super().sample(potentials, count, generator)
        return [generator.permutation(column) for column in columns]


class RoundsNothing(Wrapped):
    """Independent records under another name."""

    def rounded(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)


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


class RulesOutWhatItHolds(Wrapped):
    """Says that it honours constraints and knows only those inside of one of its cliques."""

    capabilities = Wrapped.capabilities | {"constraints"}

    def __init__(self, inner):
        structure = inner.structure
        super().__init__(JunctionTree().plain(structure))
        self.zeros = None if structure.impossible is None else np.where(structure.impossible, -np.inf, 0.0)

    def infer(self, potentials, *, total=1.0):
        held = potentials if self.zeros is None else potentials.like(potentials.values + self.zeros)
        return super().infer(held, total=total)


class BoundsByItsAnswer(Wrapped):
    """Takes Bethe's approximation for certain."""

    exact = False
    capabilities = frozenset({"bounds"})

    def bounds(self, potentials):
        log_partition = self.infer(potentials).log_partition
        return LogPartitionBounds(low=log_partition - 1e-9, high=log_partition + 1e-9)


class SqueezesBounds(Wrapped):
    """Moves the lower bound next to the upper one: no matter where both are exact, as they are on small structures."""

    exact = False
    capabilities = frozenset({"bounds"})

    def bounds(self, potentials):
        found = self.inner.bounds(potentials)
        return attrs.evolve(found, low=max(found.low, found.high - 1e-9))


class HonoursAll(Wrapped):
    """The original, with constraints among its capabilities where the engine within has them, and bounds."""

    bounds = BoundsByItsAnswer.bounds

    def __init__(self, inner):
        super().__init__(inner)
        self.capabilities = Wrapped.capabilities | (inner.capabilities & {"constraints"}) | {"bounds"}


BY_CHECK = {
    "tables-are-distributions": [factory(Unnormalised), factory(TiedAveraged), factory(SoftZeros)],
    "beliefs-agree-on-overlaps": [factory(StopsEarly, lambda: LoopyBP(max_iterations=1))],
    "marginals-equal-enumeration": [factory(CallsItselfExact, LoopyBP), factory(IndependentSum)],
    "log-partition-equals-enumeration": [factory(WrongLogPartition)],
    "marginals-in-the-marginal-polytope": [factory(CallsItselfExact, LoopyBP)],
    "marginals-are-the-gradient-of-log-partition": [factory(Tempered)],
    "relabelling-changes-nothing": [factory(FirstCodeFavoured)],
    "total-scales-the-tables-only": [factory(TotalForgotten)],
    "constants-move-log-partition-only": [factory(NormalisesFirst)],
    "nothing-underflows": [factory(Underflows)],
    "nonsense-is-refused": [factory(NanBecomesZero)],
    "evidence-is-conditioning": [factory(EvidenceIsAHint)],
    "calls-are-independent": [factory(Remembers), factory(ReusesItsBuffer)],
    "threads-do-not-meet": [factory(SharesItsScratch), factory(AnswersInPlace), factory(WorksAlone)],
    "calls-leave-nothing-behind": [factory(KeepsEveryAnswer), factory(KeepsADiary)],
    "what-cannot-fit-is-refused": [NoLimit],
    "maximum-is-the-most-probable-record": [factory(MaximisesMargins)],
    "answers-equal-enumeration": [factory(AnswersInItsOwnOrder), factory(AnswersAsIfIndependent)],
    "samples-follow-the-model": [factory(SamplesIndependently)],
    "rounded-records-have-the-expected-tables": [factory(RoundsNothing)],
    "bounds-hold-log-z": [factory(BoundsByItsAnswer, LoopyBP), factory(SqueezesBounds, LoopyBP)],
    "impossible-records-have-probability-zero": [factory(RulesOutWhatItHolds)],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[f"{check}-{n}" for n, (_, check) in enumerate(MUTANTS)])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(mutant, "inference", check).startswith("CheckFailed")


@pytest.mark.parametrize("check", sorted(BY_CHECK))
def test_the_original_passes(verdict, check):
    """The engine that the mutants wrap passes the same checks, wrapped in the same way."""
    assert verdict(factory(HonoursAll), "inference", check, profile="quick") is None


def test_every_check_kills_a_mutant():
    """No check is there for show; those of engines that draw, of curvature and of many at once have mutants of their
    own."""
    elsewhere = ("estimate", "curvature", "many")
    assert set(BY_CHECK) == {
        check.name for check in checks_of("inference") if check.kind != "declaration" and check.needs not in elsewhere
    }
