"""Deliberately wrong engines, each killed by the check meant for it."""

import math

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import Beliefs, InferenceError, Tables
from dpgm_core.inference.contract import LogPartitionBounds
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_testing.oracles import all_records, enumerated, incidence, log_joint

from .family import Family, replaces


class Engine:
    """An engine around another one."""

    cost = None

    def __init__(self, inner):
        self.inner = inner
        self.structure = inner.structure

    def infer(self, potentials, *, total=1.0):
        return self.changed(self.inner.infer(potentials, total=total), potentials, total)

    def changed(self, beliefs, potentials, total):
        return beliefs


class Wrapped(Engine):
    """An engine that hands everything on; mutants override one thing."""

    exact = True
    capabilities = frozenset({"maximize", "query", "rounded", "sample"})

    def maximize(self, potentials):
        return self.inner.maximize(potentials)

    def answers(self, potentials, queries):
        return self.inner.answers(potentials, queries)

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)

    def rounded(self, potentials, count, generator):
        return self.inner.rounded(potentials, count, generator)


def factory(engine_class, inner=JunctionTree):
    """A component that compiles to the mutant engine; one that is a component already stays as it is."""
    if not issubclass(engine_class, Engine):
        return engine_class

    @frozen(kw_only=True)
    class Mutant:
        max_order = None

        def compile(self, structure):
            return engine_class(inner().compile(structure))

    return Mutant


class HonoursAll(Wrapped):
    """The original, with constraints among its capabilities where the engine within has them, and bounds."""

    def __init__(self, inner):
        super().__init__(inner)
        self.capabilities = Wrapped.capabilities | (inner.capabilities & {"constraints"}) | {"bounds"}

    def bounds(self, potentials):
        log_partition = self.infer(potentials).log_partition
        return LogPartitionBounds(low=log_partition - 1e-9, high=log_partition + 1e-9)


engine = Family("inference", factory, original=HonoursAll)


@engine.each
class EngineFaults(Wrapped):
    @replaces("changed", "tables-are-distributions", "Beliefs 1 % too large.")
    def unnormalised(self, beliefs, potentials, total):
        return attrs.evolve(beliefs, marginals=beliefs.marginals * 1.01)

    @replaces("changed", "tables-are-distributions", "A tied table is the mean over its cliques instead of the sum.")
    def tied_averaged(self, beliefs, potentials, total):
        shares = beliefs.marginals.repeat(1 / np.array(self.structure.multiplicities))
        return attrs.evolve(beliefs, marginals=beliefs.marginals.like(beliefs.marginals.values * shares))

    @replaces("infer", "tables-are-distributions", "Impossible cells are only unlikely.")
    def soft_zeros(self, potentials, *, total=1.0):
        return super().infer(potentials.map(lambda values: np.maximum(values, -30.0)), total=total)

    @replaces("changed", "log-partition-equals-enumeration")
    def wrong_log_partition(self, beliefs, potentials, total):
        """log Z of the attributes in some clique: those in none are forgotten."""
        used = {name for clique in self.structure.cliques for name in clique}
        free = math.prod(one.size for one in self.structure.domain if one.name not in used)
        return attrs.evolve(beliefs, log_partition=beliefs.log_partition - math.log(free))

    @replaces("changed", "marginals-equal-enumeration")
    def independent_sum(self, beliefs, potentials, total):
        """Tables are products of one-attribute margins: only the margins are right."""
        parts = []
        for number, group in enumerate(self.structure.groups):
            table = beliefs.marginals.group(number)
            if len(group) == 1 and len(group[0]) == 2:
                product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
                table = np.where(np.isneginf(potentials.group(number)), 0.0, product)
                table = table * (beliefs.marginals.group(number).sum() / max(table.sum(), 1e-300))
            parts.append(table.reshape(-1))
        return attrs.evolve(beliefs, marginals=beliefs.marginals.like(np.concatenate(parts)))

    @replaces("infer", "marginals-are-the-gradient-of-log-partition", "Marginals of 1 % warmer potentials.")
    def tempered(self, potentials, *, total=1.0):
        warm = super().infer(potentials * 0.99, total=total)
        return attrs.evolve(super().infer(potentials, total=total), marginals=warm.marginals)

    @replaces("infer", "relabelling-changes-nothing")
    def first_code_favoured(self, potentials, *, total=1.0):
        """Code 0 of the first attribute is a little likelier: names matter."""
        name = self.structure.domain.names[0]
        values = potentials.values.copy()
        for number, group in enumerate(self.structure.groups):
            if name == group[0][0] if group[0] else False:
                block = values[self.structure.slices[number]].reshape(self.structure.shapes[number])
                block[0] += 0.01
                break
        return super().infer(potentials.like(values), total=total)

    @replaces("infer", "total-scales-the-tables-only", "Tables of one record, whatever the total.")
    def total_forgotten(self, potentials, *, total=1.0):
        return super().infer(potentials)

    @replaces("infer", "constants-move-log-partition-only")
    def normalises_first(self, potentials, *, total=1.0):
        """Moves each table's largest potential to 0 and forgets it in log Z."""
        tops = [float(table.max()) if np.isfinite(table.max()) else 0.0 for table in potentials.arrays()]
        return super().infer(potentials.like(potentials.values - potentials.repeat(tops)), total=total)

    @replaces("infer", "nothing-underflows", "Plain probabilities by enumeration: exp(700 + 700) is infinite.")
    def underflows(self, potentials, *, total=1.0):
        matrix = incidence(self.structure)
        weights = np.exp(log_joint(potentials, matrix))
        partition = weights.sum()
        marginals = Tables(self.structure, matrix @ (weights / partition) * total)
        return Beliefs(marginals=marginals, log_partition=float(np.log(partition)))

    @replaces("infer", "nonsense-is-refused", "NaN potentials are taken for 0.")
    def nan_becomes_zero(self, potentials, *, total=1.0):
        finite = potentials.map(lambda values: np.nan_to_num(values, nan=0.0, neginf=-np.inf, posinf=1e300))
        return super().infer(finite, total=total)

    @replaces("infer", "evidence-is-conditioning", "An observed code is only e^12 times as likely as the others.")
    def evidence_is_a_hint(self, potentials, *, total=1.0):
        soft = potentials.map(lambda values: np.maximum(values, -12.0))
        return super().infer(soft, total=total)

    @replaces("changed", "calls-are-independent", "One output buffer for all calls.")
    def reuses_its_buffer(self, beliefs, potentials, total):
        if not hasattr(self, "buffer"):
            self.buffer = np.empty(self.structure.cells)
        self.buffer[:] = beliefs.marginals.values
        return attrs.evolve(beliefs, marginals=Tables(self.structure, self.buffer))

    @replaces("maximize", "maximum-is-the-most-probable-record")
    def maximises_margins(self, potentials):
        """Takes each attribute's own most likely code, not the likeliest record."""
        truth = enumerated(potentials)
        names = self.structure.domain.names
        rows = all_records(self.structure)
        codes = [
            int(np.argmax(np.bincount(rows[:, place], weights=truth.probabilities))) for place in range(len(names))
        ]
        counts = incidence(self.structure, np.array([codes]))[:, 0]
        value = float(np.where(counts > 0, counts * np.where(counts > 0, potentials.values, 0), 0).sum())
        return dict(zip(names, codes, strict=True)), value

    @replaces("answers", "answers-equal-enumeration", "Axes by name, whatever order was asked for.")
    def answers_in_its_own_order(self, potentials, queries):
        return super().answers(potentials, [tuple(sorted(query)) for query in queries])

    @replaces("answers", "answers-equal-enumeration", "Across cliques, the product of the attributes' own marginals.")
    def answers_as_if_independent(self, potentials, queries):
        found = []
        for query in queries:
            table = np.ones(())
            for one in super().answers(potentials, [(name,) for name in query]):
                table = np.multiply.outer(table, one)
            found.append(table)
        return found

    @replaces("sample", "samples-follow-the-model", "Each attribute on its own.")
    def samples_independently(self, potentials, count, generator):
        columns = super().sample(potentials, count, generator)
        return [generator.permutation(column) for column in columns]

    @replaces("rounded", "rounded-records-have-the-expected-tables", "Independent records under another name.")
    def rounds_nothing(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)


@engine(("marginals-equal-enumeration", "marginals-in-the-marginal-polytope"), inner=LoopyBP)
class CallsItselfExact(Wrapped):
    """Loopy belief propagation that calls itself exact."""

    capabilities = frozenset()


@engine("beliefs-agree-on-overlaps", "One sweep, and says that it converged.", inner=lambda: LoopyBP(max_iterations=1))
class StopsEarly(Wrapped):
    exact = False
    capabilities = frozenset()

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), converged=True)


@engine("calls-are-independent", "Averages with the last answer: state between calls.")
class Remembers(Wrapped):
    last = None

    def changed(self, beliefs, potentials, total):
        if self.last is not None:
            beliefs = attrs.evolve(beliefs, marginals=(beliefs.marginals + self.last.marginals) / 2)
        self.last = beliefs
        return beliefs


@engine("threads-do-not-meet", "Keeps a call's potentials in the engine: of two calls one takes the other's.")
class SharesItsScratch(Wrapped):
    scratch = None

    def infer(self, potentials, *, total=1.0):
        self.scratch = potentials
        return super().infer(self.scratch, total=total)


@engine("threads-do-not-meet", "What a call found lies in the engine for a moment, before it is copied out.")
class AnswersInPlace(Wrapped):
    found = None

    def infer(self, potentials, *, total=1.0):
        self.found = super().infer(potentials, total=total)
        marginals = self.found.marginals.map(np.copy)
        return attrs.evolve(self.found, marginals=marginals)


@engine("threads-do-not-meet", "Refuses a call while another one is under way.")
class WorksAlone(Wrapped):
    busy = False

    def infer(self, potentials, *, total=1.0):
        if self.busy:
            raise InferenceError("busy")
        self.busy = True
        try:
            return super().infer(potentials, total=total)
        finally:
            self.busy = False


@engine("calls-leave-nothing-behind", "A cache by potentials, without an end.")
class KeepsEveryAnswer(Wrapped):
    def __init__(self, inner):
        super().__init__(inner)
        self.known = {}

    def infer(self, potentials, *, total=1.0):
        key = potentials.values.tobytes(), total
        if key not in self.known:
            self.known[key] = super().infer(potentials, total=total)
        return self.known[key]


@engine("calls-leave-nothing-behind", "One number per call, of no use to anybody.")
class KeepsADiary(Wrapped):
    def __init__(self, inner):
        super().__init__(inner)
        self.diary = []

    def changed(self, beliefs, potentials, total):
        self.diary.append(beliefs.log_partition)
        return beliefs


@engine("what-cannot-fit-is-refused", "Promises to compile anything.")
@frozen(kw_only=True)
class NoLimit:
    max_order = None

    def compile(self, structure):
        small = math.prod(structure.domain.sizes.values()) < 10**6
        return JunctionTree().compile(structure) if small else Wrapped(_Hollow(structure))


class _Hollow:
    def __init__(self, structure):
        self.structure = structure


@engine("impossible-records-have-probability-zero", "Claims constraints, and knows only those inside one clique.")
class RulesOutWhatItHolds(Wrapped):
    capabilities = Wrapped.capabilities | {"constraints"}

    def __init__(self, inner):
        structure = inner.structure
        super().__init__(JunctionTree().plain(structure))
        self.zeros = None if structure.impossible is None else np.where(structure.impossible, -np.inf, 0.0)

    def infer(self, potentials, *, total=1.0):
        held = potentials if self.zeros is None else potentials.like(potentials.values + self.zeros)
        return super().infer(held, total=total)


@engine("bounds-hold-log-z", "Takes Bethe's approximation for certain.", inner=LoopyBP)
class BoundsByItsAnswer(Wrapped):
    exact = False
    capabilities = frozenset({"bounds"})
    bounds = HonoursAll.bounds


@engine("bounds-hold-log-z", "Moves the lower bound to the upper one, right on small structures.", inner=LoopyBP)
class SqueezesBounds(Wrapped):
    exact = False
    capabilities = frozenset({"bounds"})

    def bounds(self, potentials):
        found = self.inner.bounds(potentials)
        return attrs.evolve(found, low=max(found.low, found.high - 1e-9))
