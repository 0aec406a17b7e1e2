"""How every inference engine must behave: what it refuses, what evidence means, no memory, what it declares."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats

from dpgm_core.arrays import Array
from dpgm_core.domain import Domain
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.inference.contract import Engine, Maximizer, Querier, Rounder, Sampler
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import ALARM, Checklist, Unserved, explore, require
from dpgm_core.testing.oracles import all_records, enumerated, incidence
from dpgm_core.testing.strategies import awkward_structures, potentials
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS", "awkward_potentials", "close", "say"]

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


def close(found: Array, expected: Array, tolerance: float) -> bool:
    """Within a relative and absolute tolerance."""
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance))


def say(theta: Tables) -> str:
    """Which model it is, for messages."""
    return f"on cliques {theta.structure.groups} with potentials {np.round(theta.values, 3).tolist()}"


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
            require(close(observed.marginals.values, expected, 1e-8), f"{name}: not the conditional distribution")
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
        require(abs(own - value) <= 1e-7 * (1 + abs(own)), f"the record has {own:.9g}, not {value:.9g} {say(theta)}")
        best = float(truth.log_joint.max())
        if engine.exact:
            require(
                abs(value - best) <= 1e-7 * (1 + abs(best)), f"{value:.9g} is not the most, {best:.9g} {say(theta)}"
            )

    explore(subject.profile, potentials(), claim, worst=awkward_potentials())


@CHECKS.add(needs="query")
def answers_equal_enumeration(subject: InferenceSubject) -> None:
    """answers gives the sums over all records for attributes in any order, inside cliques and across, if the engine is
    exact. Cannot show: structures too large to enumerate."""
    for theta in [*awkward_potentials(), *awkward_potentials(20.0)]:
        try:
            engine: Engine = subject.engine(theta.structure)
        except Unserved:
            continue
        if not engine.exact or not isinstance(engine, Querier) or "query" not in engine.capabilities:
            continue
        names = theta.structure.domain.names
        joint = enumerated(theta).probabilities.reshape(theta.structure.domain.shape(names))
        queries = [query for order in (1, 2, 3) for query in itertools.permutations(names, order)]
        for query, table in zip(queries, engine.answers(theta, queries), strict=True):
            axes = [names.index(name) for name in query]
            expected = joint.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes))
            expected = expected.transpose([sorted(axes).index(axis) for axis in axes])
            require(table.shape == expected.shape, f"{query}: shape {table.shape}, not {expected.shape}")
            require(close(table, expected, 1e-8), f"{query}: not the sum over all records {say(theta)}")


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
        require(not seen[chances == 0].any(), f"an impossible record is drawn {say(theta)}")
        common = chances * count > 10
        if common.sum() < 2:
            continue
        expected = chances[common] * count
        statistic = float(((seen[common] - expected) ** 2 / expected).sum())
        require(stats.chi2.sf(statistic, common.sum()) > ALARM, f"records are not drawn from the model {say(theta)}")


@CHECKS.add(needs="rounded")
def rounded_records_have_the_expected_tables(subject: InferenceSubject) -> None:
    """Of 20,000 rounded records none is impossible, and cells of the cliques with 100 expected records or more are off
    by less than half of what independent records would be, squared, in all. Cannot show: a bias of single rows."""
    for number, theta in enumerate(awkward_potentials()):
        try:
            engine: Engine = subject.engine(theta.structure)
        except Unserved:
            continue
        if not engine.exact or not isinstance(engine, Rounder) or "rounded" not in engine.capabilities:
            continue
        count = 20_000
        columns = engine.rounded(theta, count, np.random.default_rng(number))
        sizes = tuple(theta.structure.domain.sizes.values())
        require(len(columns) == len(sizes), "rounded must give one code array per attribute of the domain")
        rows = np.ravel_multi_index(tuple(np.asarray(column, dtype=np.int64) for column in columns), sizes)
        seen = np.bincount(rows, minlength=math.prod(sizes))
        chances = enumerated(theta).probabilities
        require(seen.sum() == count, f"{seen.sum()} records instead of {count}")
        require(not seen[chances == 0].any(), f"an impossible record is drawn {say(theta)}")
        matrix = incidence(theta.structure.untied())
        expected, found = matrix @ (count * chances), matrix @ seen
        common = expected >= 100
        squares = float(((found - expected)[common] ** 2 / expected[common]).sum())
        require(squares <= common.sum() / 2, f"tables are as far off as those of independent records {say(theta)}")
