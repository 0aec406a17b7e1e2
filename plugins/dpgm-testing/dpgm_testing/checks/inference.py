"""Checks of every inference engine: enumeration where it calls itself exact, consistency where it does not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np

from dpgm_core._util.arrays import Array
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.contract import Engine
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.check import Checklist, explore, explored, require
from dpgm_testing.checks import engine as engine_checks
from dpgm_testing.checks import engine_extras
from dpgm_testing.checks.engine import FAR, awkward_potentials, close, errors_of, say
from dpgm_testing.oracles import enumerated, in_local_polytope, in_marginal_polytope
from dpgm_testing.strategies import potentials, structures
from dpgm_testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")


@CHECKS.add()
@explored(potentials, worst=awkward_potentials)
def tables_are_distributions(subject: InferenceSubject, theta: Tables) -> None:
    """On awkward structures (cyclic, nested, duplicate, disconnected, tied, empty) tables have the right shapes, are
    non-negative, are 0 where the potential is -inf, and sum to their number of cliques."""
    engine = subject.engine(theta.structure)
    require(isinstance(engine, Engine), f"{type(engine).__name__} lacks members of Engine")
    beliefs = engine.infer(theta)
    require(beliefs.marginals.structure == theta.structure, f"the marginals are over another structure, {say(theta)}")
    values = beliefs.marginals.values
    require(bool(np.isfinite(values).all() and (values >= 0).all()), f"a cell is negative or NaN {say(theta)}")
    require(bool((values[np.isneginf(theta.values)] == 0).all()), f"an impossible cell is not 0 {say(theta)}")
    sums, expected = beliefs.marginals.sums(), np.array(theta.structure.multiplicities, dtype=float)
    require(close(sums, expected, 1e-8), f"the tables sum to {sums}, not {expected}, {say(theta)}")


@CHECKS.add()
@explored(lambda: potentials(over=structures(max_size=3), scales=(0.0, 1.0, 5.0)), worst=awkward_potentials, share=0.5)
def beliefs_agree_on_overlaps(subject: InferenceSubject, theta: Tables) -> None:
    """Converged tables lie in the local polytope: cliques agree on each attribute they share (linear program). Cannot
    show: anything where the engine says it did not converge."""
    beliefs = subject.engine(theta.structure).infer(theta)
    if beliefs.converged:
        require(in_local_polytope(beliefs.marginals, tolerance=1e-4), f"cliques disagree {say(theta)}")


@CHECKS.add(needs="exact")
@explored(potentials, worst=awkward_potentials)
def marginals_equal_enumeration(subject: InferenceSubject, theta: Tables) -> None:
    """Marginals are the sums over all records."""
    engine = subject.engine(theta.structure)
    if engine.exact:
        found, truth = engine.infer(theta).marginals.values, enumerated(theta).marginals.values
        off = float(np.abs(found - truth).max())
        require(close(found, truth, 1e-7), f"marginals are off by {off:.3g} {say(theta)}")


@CHECKS.add(needs="exact")
@explored(potentials, worst=awkward_potentials)
def log_partition_equals_enumeration(subject: InferenceSubject, theta: Tables) -> None:
    """log Z is the log of the sum over all records."""
    engine = subject.engine(theta.structure)
    if engine.exact:
        found, truth = engine.infer(theta).log_partition, enumerated(theta).log_partition
        near = math.isclose(found, truth, rel_tol=1e-9, abs_tol=1e-8)
        require(near, f"log Z is {found:.12g}, not {truth:.12g}, {say(theta)}")


@CHECKS.add(needs="exact")
@explored(lambda: potentials(over=structures(max_size=3, max_attributes=4)), worst=awkward_potentials, share=0.5)
def marginals_in_the_marginal_polytope(subject: InferenceSubject, theta: Tables) -> None:
    """Some distribution over records has exactly its marginals (linear program)."""
    engine = subject.engine(theta.structure)
    if engine.exact:
        marginals = engine.infer(theta).marginals
        require(in_marginal_polytope(marginals, tolerance=1e-6), f"no distribution has these marginals {say(theta)}")


@CHECKS.add()
def marginals_are_the_gradient_of_log_partition(subject: InferenceSubject) -> None:
    """Along random directions log Z changes as the marginals say, also at the fixed points of approximate engines that
    converged. Cannot show: anything for engines that draw, or whose log Z is a bound of another form."""
    if "estimate" in subject.capabilities:
        return

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
            f"log Z rises by {slope:.8g} along a direction, the marginals say {expected:.8g}, {say(theta)}",
        )

    mild = potentials(scales=(0.0, 0.5), zeros=(0.0,))
    worst = [
        Tables(theta.structure, theta.values) for theta in awkward_potentials(0.5) if np.isfinite(theta.values).all()
    ]
    explore(subject.profile, mild, claim, worst=worst)


@CHECKS.add()
def relabelling_changes_nothing(subject: InferenceSubject) -> None:
    """Renaming and reordering attributes, cliques and codes only permutes the tables (to 1e-4 where the engine is
    approximate, and to its stated errors). Cannot show: approximate engines that did not converge."""

    def claim(case: tuple[Tables, int]) -> None:
        theta, seed = case
        other, moved = _relabelled(theta, random.Random(seed))
        before, after = subject.engine(theta.structure), subject.engine(other.structure)
        one, two = before.infer(theta), after.infer(other)
        if not (one.converged and two.converged):
            return
        tolerance = 1e-7 if before.exact and after.exact else 1e-4
        chance = errors_of(one)[1] + errors_of(two)[1]
        require(
            abs(one.log_partition - two.log_partition) <= tolerance * (1 + abs(one.log_partition)) + chance,
            f"relabelled, log Z is {two.log_partition:.9g} instead of {one.log_partition:.9g}, {say(theta)}",
        )
        off = np.abs(moved(one.marginals) - two.marginals.values) - tolerance * (1 + np.abs(two.marginals.values))
        if one.errors is not None and two.errors is not None:
            off -= FAR * (moved(one.errors) + two.errors.values)
        require(bool((off <= 0).all()), f"relabelled, the tables differ {say(theta)}")

    from hypothesis import strategies as st

    cases = st.tuples(potentials(over=structures(tied=False), scales=(0.0, 1.0)), st.integers(0, 2**16))
    plain = [theta for theta in awkward_potentials() if max(theta.structure.multiplicities) == 1]
    explore(subject.profile, cases, claim, worst=[(theta, 1) for theta in plain])


def _relabelled(theta: Tables, order: random.Random) -> tuple[Tables, Callable[[Tables], Array]]:
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

    return Tables(other, values(theta)), values


@CHECKS.add()
@explored(potentials, worst=awkward_potentials, share=0.3)
def total_scales_the_tables_only(subject: InferenceSubject, theta: Tables) -> None:
    """infer(total=t) gives t times the tables of one record and the same log Z."""
    engine = subject.engine(theta.structure)
    one = engine.infer(theta)
    for total in (0.5, 1e5, 1e9):
        scaled = engine.infer(theta, total=total)
        require(
            close(scaled.marginals.values / total, one.marginals.values, 1e-9),
            f"with total = {total:g} the tables are not {total:g} times those of one record {say(theta)}",
        )
        same = math.isclose(scaled.log_partition, one.log_partition, rel_tol=1e-12, abs_tol=1e-12)
        require(same, f"log Z depends on the total {say(theta)}")


@CHECKS.add()
@explored(lambda: potentials(scales=(0.0, 1.0, 5.0)), worst=awkward_potentials, share=0.5)
def constants_move_log_partition_only(subject: InferenceSubject, theta: Tables) -> None:
    """Adding c to every cell of a table adds (its number of cliques) c to log Z and leaves the tables."""
    engine = subject.engine(theta.structure)
    shift = np.linspace(-100, 100, len(theta.structure.groups))
    before, after = engine.infer(theta), engine.infer(theta.like(theta.values + theta.repeat(shift)))
    if not (before.converged and after.converged):
        return
    expected = before.log_partition + float(shift @ np.array(theta.structure.multiplicities))
    near = abs(after.log_partition - expected) <= 1e-6 * (1 + abs(expected))
    require(near, f"log Z is {after.log_partition:.9g} instead of {expected:.9g} {say(theta)}")
    require(close(after.marginals.values, before.marginals.values, 1e-5), f"the tables change {say(theta)}")


@CHECKS.add()
@explored(lambda: potentials(scales=(700.0,), zeros=(0.0, 0.3)), worst=lambda: awkward_potentials(700.0), share=0.5)
def nothing_underflows(subject: InferenceSubject, theta: Tables) -> None:
    """Potentials of 700 nats give finite log Z and tables that sum right; exact engines equal enumeration."""
    engine = subject.engine(theta.structure)
    with np.errstate(all="ignore"):
        beliefs = engine.infer(theta)
    require(math.isfinite(beliefs.log_partition), f"log Z is {beliefs.log_partition} {say(theta)}")
    sums = beliefs.marginals.sums()
    require(close(sums, np.array(theta.structure.multiplicities, float), 1e-6), f"sums are {sums} {say(theta)}")
    if engine.exact:
        truth = enumerated(theta)
        near = math.isclose(beliefs.log_partition, truth.log_partition, rel_tol=1e-9, abs_tol=1e-6)
        require(near, f"log Z is {beliefs.log_partition:.9g}, not {truth.log_partition:.9g} {say(theta)}")


CHECKS += engine_checks.CHECKS
CHECKS += engine_extras.CHECKS
