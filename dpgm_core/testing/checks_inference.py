"""What every inference engine must keep: brute force where it calls itself exact, consistency where it does not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
from scipy import stats

from dpgm_core.domain import Domain
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.protocols import Beliefs, Engine, Maximizer, Sampler
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Array, Tables
from dpgm_core.testing.checks import ALARM, Checklist, Unserved, explore, require
from dpgm_core.testing.oracles import all_records, enumerated, in_local_polytope, in_marginal_polytope, incidence
from dpgm_core.testing.strategies import awkward_structures, potentials, structures
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")


def awkward_potentials(scale: float = 1.0) -> list[Tables]:
    """Fixed potentials over every awkward structure, with and without impossible cells."""
    found = []
    for number, structure in enumerate(awkward_structures().values()):
        generator = np.random.default_rng(number)
        values = scale * generator.uniform(-1, 1, size=structure.cells)
        found.append(Tables(structure, values))
        record = np.zeros((1, len(structure.domain)), dtype=np.int64)
        zeros = (generator.random(structure.cells) < 0.3) & (incidence(structure, record)[:, 0] == 0)
        found.append(Tables(structure, np.where(zeros, -np.inf, values)))
    return found


def _close(found: Array, expected: Array, tolerance: float) -> bool:
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance))


def _say(theta: Tables) -> str:
    return f"on cliques {theta.structure.groups} with potentials {np.round(theta.values, 3).tolist()}"


@CHECKS.add()
def tables_are_distributions(subject: InferenceSubject) -> None:
    """On awkward structures (cyclic, nested, duplicate, disconnected, tied, empty) tables have the shapes asked for,
    are non-negative, are 0 where the potential is -inf, and sum to their number of cliques. Cannot show: that they
    are right."""

    def claim(theta: Tables) -> None:
        beliefs = subject.engine(theta.structure).infer(theta)
        require(
            beliefs.marginals.structure == theta.structure, f"the marginals are over another structure, {_say(theta)}"
        )
        values = beliefs.marginals.values
        require(bool(np.isfinite(values).all() and (values >= 0).all()), f"a cell is negative or NaN {_say(theta)}")
        require(bool((values[np.isneginf(theta.values)] == 0).all()), f"an impossible cell is not 0 {_say(theta)}")
        sums, expected = beliefs.marginals.sums(), np.array(theta.structure.multiplicities, dtype=float)
        require(_close(sums, expected, 1e-8), f"the tables sum to {sums}, not {expected}, {_say(theta)}")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials())


@CHECKS.add()
def beliefs_agree_on_overlaps(subject: InferenceSubject) -> None:
    """Converged tables lie in the local polytope: cliques agree on each attribute they share (linear program). Cannot
    show: anything where the engine says it did not converge."""

    def claim(theta: Tables) -> None:
        beliefs = subject.engine(theta.structure).infer(theta)
        if beliefs.converged:
            require(in_local_polytope(beliefs.marginals, tolerance=1e-4), f"cliques disagree {_say(theta)}")

    mild = potentials(over=structures(max_size=3), scales=(0.0, 1.0, 5.0))
    explore(subject.profile, mild, claim, worst=awkward_potentials(), share=0.5)


@CHECKS.add(needs="exact")
def marginals_equal_enumeration(subject: InferenceSubject) -> None:
    """Where an engine calls itself exact, its marginals are the sums over all records. Cannot show: structures too
    large to enumerate."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        if engine.exact:
            found, truth = engine.infer(theta).marginals.values, enumerated(theta).marginals.values
            off = float(np.abs(found - truth).max())
            require(_close(found, truth, 1e-7), f"marginals are off by {off:.3g} {_say(theta)}")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials())


@CHECKS.add(needs="exact")
def log_partition_equals_enumeration(subject: InferenceSubject) -> None:
    """Where an engine calls itself exact, log Z is the log of the sum over all records. Cannot show: structures too
    large to enumerate."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        if engine.exact:
            found, truth = engine.infer(theta).log_partition, enumerated(theta).log_partition
            near = math.isclose(found, truth, rel_tol=1e-9, abs_tol=1e-8)
            require(near, f"log Z is {found:.12g}, not {truth:.12g}, {_say(theta)}")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials())


@CHECKS.add(needs="exact")
def marginals_in_the_marginal_polytope(subject: InferenceSubject) -> None:
    """Where an engine calls itself exact, some distribution over records has exactly its marginals (linear program).
    Cannot show: that it is the right one."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        if engine.exact:
            marginals = engine.infer(theta).marginals
            require(
                in_marginal_polytope(marginals, tolerance=1e-6), f"no distribution has these marginals {_say(theta)}"
            )

    small = potentials(over=structures(max_size=3, max_attributes=4))
    explore(subject.profile, small, claim, worst=awkward_potentials(), share=0.5)


@CHECKS.add()
def marginals_are_the_gradient_of_log_partition(subject: InferenceSubject) -> None:
    """Along random directions log Z changes as the marginals say, for exact engines and at the fixed points of
    approximate ones (converged ones only). Cannot show: engines whose log Z is a bound of another form."""

    def claim(theta: Tables) -> None:
        engine, step = subject.engine(theta.structure), 1e-4
        direction = np.random.default_rng(3).normal(size=theta.structure.cells)
        here = engine.infer(theta)
        ends = [engine.infer(theta.like(theta.values + sign * step * direction)) for sign in (1, -1)]
        if not all(one.converged for one in (here, *ends)):
            return
        slope = (ends[0].log_partition - ends[1].log_partition) / (2 * step)
        expected = float(direction @ here.marginals.values)
        require(
            abs(slope - expected) <= 2e-4 * (1 + abs(expected)),
            f"log Z rises by {slope:.8g} along a direction, the marginals say {expected:.8g}, {_say(theta)}",
        )

    mild = potentials(scales=(0.0, 0.5), zeros=(0.0,))
    worst = [
        Tables(theta.structure, theta.values) for theta in awkward_potentials(0.5) if np.isfinite(theta.values).all()
    ]
    explore(subject.profile, mild, claim, worst=worst)


@CHECKS.add()
def relabelling_changes_nothing(subject: InferenceSubject) -> None:
    """Renaming and reordering attributes, cliques and codes permutes the tables and nothing else (up to 1e-4 where the
    engine is approximate). Cannot show: approximate engines that did not converge."""

    def claim(case: tuple[Tables, int]) -> None:
        theta, seed = case
        other, moved = _relabelled(theta, random.Random(seed))
        before, after = subject.engine(theta.structure), subject.engine(other.structure)
        one, two = before.infer(theta), after.infer(other)
        if not (one.converged and two.converged):
            return
        tolerance = 1e-7 if before.exact and after.exact else 1e-4
        require(
            abs(one.log_partition - two.log_partition) <= tolerance * (1 + abs(one.log_partition)),
            f"relabelled, log Z is {two.log_partition:.9g} instead of {one.log_partition:.9g}, {_say(theta)}",
        )
        require(_close(moved(one), two.marginals.values, tolerance), f"relabelled, the tables differ {_say(theta)}")

    from hypothesis import strategies as st

    cases = st.tuples(potentials(over=structures(tied=False), scales=(0.0, 1.0)), st.integers(0, 2**16))
    plain = [theta for theta in awkward_potentials() if max(theta.structure.multiplicities) == 1]
    explore(subject.profile, cases, claim, worst=[(theta, 1) for theta in plain])


def _relabelled(theta: Tables, order: random.Random) -> tuple[Tables, Callable[[Beliefs], Array]]:
    structure = theta.structure
    names = list(structure.domain.names)
    new = dict(zip(names, order.sample([name.upper() for name in names], len(names)), strict=True))
    codes = {one.name: order.sample(range(one.size), one.size) for one in structure.domain}
    domain = Domain.from_sizes({new[name]: structure.domain[name].size for name in order.sample(names, len(names))})
    numbers = order.sample(range(len(structure.groups)), len(structure.groups))
    axes = [
        order.sample(range(len(structure.groups[number][0])), len(structure.groups[number][0])) for number in numbers
    ]

    def clique(number: int, axis: list[int]) -> Clique:
        return tuple(new[structure.groups[number][0][place]] for place in axis)

    other = Structure(domain, [clique(number, axis) for number, axis in zip(numbers, axes, strict=True)])

    def values(tables: Tables) -> Array:
        parts = []
        for number, axis in zip(numbers, axes, strict=True):
            table = tables.group(number)[np.ix_(*(codes[name] for name in structure.groups[number][0]))]
            parts.append(table.transpose(axis).reshape(-1))
        return np.concatenate(parts)

    return Tables(other, values(theta)), lambda beliefs: values(beliefs.marginals)


@CHECKS.add()
def total_scales_the_tables_only(subject: InferenceSubject) -> None:
    """infer(total=t) gives t times the tables of one record and the same log Z. Cannot show: totals beyond 1e9."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        one = engine.infer(theta)
        for total in (0.5, 1e5, 1e9):
            scaled = engine.infer(theta, total=total)
            require(
                _close(scaled.marginals.values / total, one.marginals.values, 1e-9),
                f"with total = {total:g} the tables are not {total:g} times those of one record {_say(theta)}",
            )
            same = math.isclose(scaled.log_partition, one.log_partition, rel_tol=1e-12, abs_tol=1e-12)
            require(same, f"log Z depends on the total {_say(theta)}")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials(), share=0.3)


@CHECKS.add()
def constants_move_log_partition_only(subject: InferenceSubject) -> None:
    """Adding c to every cell of a table adds (its number of cliques) c to log Z and leaves the tables. Cannot show:
    constants beyond 100 nats."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        shift = np.linspace(-100, 100, len(theta.structure.groups))
        before, after = engine.infer(theta), engine.infer(theta.like(theta.values + theta.repeat(shift)))
        if not (before.converged and after.converged):
            return
        expected = before.log_partition + float(shift @ np.array(theta.structure.multiplicities))
        near = abs(after.log_partition - expected) <= 1e-6 * (1 + abs(expected))
        require(near, f"log Z is {after.log_partition:.9g} instead of {expected:.9g} {_say(theta)}")
        require(_close(after.marginals.values, before.marginals.values, 1e-5), f"the tables change {_say(theta)}")

    explore(subject.profile, potentials(scales=(0.0, 1.0, 5.0)), claim, worst=awkward_potentials(), share=0.5)


@CHECKS.add()
def nothing_underflows(subject: InferenceSubject) -> None:
    """Potentials of 700 nats give finite log Z and tables that sum right; exact engines equal enumeration. Cannot show:
    larger potentials."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        with np.errstate(all="ignore"):
            beliefs = engine.infer(theta)
        require(math.isfinite(beliefs.log_partition), f"log Z is {beliefs.log_partition} {_say(theta)}")
        sums = beliefs.marginals.sums()
        require(_close(sums, np.array(theta.structure.multiplicities, float), 1e-6), f"sums are {sums} {_say(theta)}")
        if engine.exact:
            truth = enumerated(theta)
            near = math.isclose(beliefs.log_partition, truth.log_partition, rel_tol=1e-9, abs_tol=1e-6)
            require(near, f"log Z is {beliefs.log_partition:.9g}, not {truth.log_partition:.9g} {_say(theta)}")

    wide = potentials(scales=(700.0,), zeros=(0.0, 0.3))
    explore(subject.profile, wide, claim, worst=awkward_potentials(700.0), share=0.5)


@CHECKS.add()
def nonsense_is_refused(subject: InferenceSubject) -> None:
    """NaN or +inf potentials, and potentials that make every record impossible, raise InferenceError; potentials over
    another structure raise an error of dpgm. Cannot show: that contradictions spread over a cycle are seen."""
    structure = awkward_structures()["chain"]
    engine = subject.engine(structure)
    good = np.zeros(structure.cells)
    wrong = {"NaN": np.where(np.arange(len(good)) == 1, np.nan, good), "+inf": np.where(good == 0, np.inf, good)}
    wrong["+inf in one cell"] = np.where(np.arange(len(good)) == 2, np.inf, good)
    impossible = good.copy()
    impossible[structure.slices[0]] = -np.inf
    wrong["an impossible table"] = impossible
    for what, values in wrong.items():
        with np.errstate(all="ignore"):
            try:
                engine.infer(Tables(structure, values))
            except InferenceError:
                continue
            except Exception as error:
                require(False, f"{what} raises {type(error).__name__}, not InferenceError")
        require(False, f"{what} is answered, not refused")
    try:
        engine.infer(Tables.zeros(awkward_structures()["cycle"]))
    except DpgmError:
        return
    require(False, "potentials over another structure are answered, not refused")


@CHECKS.add()
def evidence_is_conditioning(subject: InferenceSubject) -> None:
    """-inf outside an observed code conditions on it: exact engines give the conditional distribution, and log Z falls
    by -log P(evidence). Cannot show: approximate engines beyond zeros where they belong."""
    for name in ("chain", "cycle", "third order", "disconnected"):
        structure = awkward_structures()[name]
        theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
        try:
            engine = subject.engine(structure)
        except Unserved:
            continue
        clique = structure.cliques[0]
        mask = np.full(structure.domain.shape(clique), -np.inf)
        mask[1] = 0.0
        values = theta.values.copy()
        values[structure.slices[0]] += mask.reshape(-1)
        observed = engine.infer(theta.like(values))
        require(
            abs(observed.marginals[clique].sum(axis=tuple(range(1, len(clique))))[1] - 1) < 1e-8,
            f"{name}: {clique[0]} = 1 was observed, but its marginal is not 1 there",
        )
        if engine.exact:
            before = enumerated(theta)
            holds = all_records(structure)[:, structure.domain.names.index(clique[0])] == 1
            chance = float(before.probabilities[holds].sum())
            expected = incidence(structure)[:, holds] @ before.probabilities[holds] / chance
            require(_close(observed.marginals.values, expected, 1e-8), f"{name}: not the conditional distribution")
            drop = engine.infer(theta).log_partition - observed.log_partition
            require(
                abs(drop + math.log(chance)) < 1e-8, f"{name}: log Z falls by {drop:.9g}, not {-math.log(chance):.9g}"
            )


@CHECKS.add()
def calls_are_independent(subject: InferenceSubject) -> None:
    """The same potentials give the same answer after other calls, earlier results do not change, and the potentials are
    left alone. Cannot show: calls from several threads."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        engine = subject.engine(structure)
        one, two = (Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)) for seed in (1, 2))
        before = one.values.copy()
        first = engine.infer(one)
        kept = first.marginals.values.copy(), first.log_partition
        engine.infer(two, total=1e4)
        require(np.array_equal(kept[0], first.marginals.values), f"{name}: a later call overwrote an earlier result")
        again = engine.infer(one)
        require(np.array_equal(kept[0], again.marginals.values), f"{name}: another call changed the answer")
        require(kept[1] == again.log_partition, f"{name}: another call changed log Z")
        require(np.array_equal(before, one.values), f"{name}: the potentials were changed")


@CHECKS.add()
def what_cannot_fit_is_refused(subject: InferenceSubject) -> None:
    """Compiling a clique of 10^15 cells raises TooLarge before anything is allocated, and so does a hopeless graph if
    the engine calls itself exact everywhere. Cannot show: where exactly the limit lies."""
    wide = Domain.from_sizes({f"x{place}": 10 for place in range(40)})
    hopeless = {"a clique of 10^15 cells": Structure(wide, [wide.names[:15]])}
    if subject.engine(awkward_structures()["complete"]).exact:
        hopeless["all pairs of 40 attributes"] = Structure.complete(wide)
    for what, structure in hopeless.items():
        try:
            subject.engine(structure)
        except (TooLarge, Unserved):
            continue
        except Exception as error:
            require(False, f"{what}: {type(error).__name__} instead of TooLarge: {str(error)[:80]}")
        require(False, f"{what}: compiled, not refused")


@CHECKS.add(needs="maximize")
def maximum_is_the_most_probable_record(subject: InferenceSubject) -> None:
    """maximize returns a record and its unnormalised log-probability; where the engine is exact no record has a larger
    one. Cannot show: structures too large to enumerate."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        if not isinstance(engine, Maximizer) or "maximize" not in engine.capabilities:
            return
        record, value = engine.maximize(theta)
        truth = enumerated(theta)
        codes = np.array([[record[name] for name in theta.structure.domain.names]])
        counts = incidence(theta.structure, codes)[:, 0]
        own = float(np.where(counts > 0, counts * np.where(counts > 0, theta.values, 0.0), 0.0).sum())
        require(abs(own - value) <= 1e-7 * (1 + abs(own)), f"the record has {own:.9g}, not {value:.9g} {_say(theta)}")
        best = float(truth.log_joint.max())
        if engine.exact:
            require(
                abs(value - best) <= 1e-7 * (1 + abs(best)), f"{value:.9g} is not the most, {best:.9g} {_say(theta)}"
            )

    explore(subject.profile, potentials(), claim, worst=awkward_potentials())


@CHECKS.add(needs="sample")
def samples_follow_the_model(subject: InferenceSubject) -> None:
    """Sampled records have the enumerated probabilities (chi-squared, false alarm 1e-7 per structure, fixed seeds) and
    never an impossible one. Cannot show: errors below about 2 % of a record's probability."""
    for number, theta in enumerate(awkward_potentials()):
        try:
            engine: Engine = subject.engine(theta.structure)
        except Unserved:
            continue
        if not engine.exact or not isinstance(engine, Sampler) or "sample" not in engine.capabilities:
            continue
        count = 20_000
        columns = engine.sample(theta, count, np.random.default_rng(number))
        sizes = tuple(theta.structure.domain.sizes.values())
        require(len(columns) == len(sizes), "sample must give one code array per attribute of the domain")
        rows = np.ravel_multi_index(tuple(np.asarray(column, dtype=np.int64) for column in columns), sizes)
        seen = np.bincount(rows, minlength=math.prod(sizes))
        chances = enumerated(theta).probabilities
        require(seen.sum() == count, f"{seen.sum()} records instead of {count}")
        require(not seen[chances == 0].any(), f"an impossible record is drawn {_say(theta)}")
        common = chances * count > 10
        if common.sum() < 2:
            continue
        expected = chances[common] * count
        statistic = float(((seen[common] - expected) ** 2 / expected).sum())
        require(stats.chi2.sf(statistic, common.sum()) > ALARM, f"records are not drawn from the model {_say(theta)}")
