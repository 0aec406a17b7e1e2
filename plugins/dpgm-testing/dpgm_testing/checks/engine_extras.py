"""Checks of capabilities of inference engines: bounds, constraints and second derivatives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from dpgm_core._util.arrays import Array, Codes, FloatArray
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.inference.contract import Bounder, Engine, Maximizer, Querier, Rounder, Sampler, SecondOrder
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.cases import constrained_structures
from dpgm_testing.check import CheckFailed, Checklist, Unserved, explore, require, require_refusal
from dpgm_testing.checks.engine import at_once, awkward_potentials, close, held_up, say
from dpgm_testing.oracles import enumerated, incidence
from dpgm_testing.strategies import awkward_structures, potentials
from dpgm_testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")


# --- Bounds (`Bounder`) ---------------------------------------------------------------------------


@CHECKS.add(needs="bounds")
def bounds_hold_log_z(subject: InferenceSubject) -> None:
    """bounds gives low <= log Z <= high, as enumeration has it, a finite high, the same each time, and notes that are
    sentences; also where all pairs of 12 binary attributes are too wide for parts of 1024 cells. Cannot show: how close
    the bounds are."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        require(isinstance(engine, Bounder), f"{type(engine).__name__} lacks members of Bounder")
        assert isinstance(engine, Bounder)
        found, truth = engine.bounds(theta), enumerated(theta).log_partition
        require(math.isfinite(found.high), f"the upper bound is {found.high} {say(theta)}")
        # Enumeration rounds too; an engine's own rounding is inside its bounds.
        rounding = 1e-12 * (1 + abs(truth))
        require(found.low <= truth + rounding, f"log Z is {truth:.12g}, below {found.low:.12g}, {say(theta)}")
        require(found.high >= truth - rounding, f"log Z is {truth:.12g}, above {found.high:.12g}, {say(theta)}")
        require(engine.bounds(theta) == found, f"another call gives other bounds {say(theta)}")
        require(all(isinstance(note, str) and note for note in found.notes), "a note is no sentence")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials(20.0), share=0.5)
    for theta in _wide():
        claim(theta)


def _wide() -> list[Tables]:
    """Potentials over all pairs of 12 binary attributes: random, and attractive."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(12)})
    structure = Structure(domain, list(itertools.combinations(domain.names, 2)))
    random = np.random.default_rng(0).normal(scale=0.5, size=structure.cells)
    alike = np.tile([0.1, 0.0, 0.0, 0.1], len(structure.cliques))
    return [Tables(structure, random), Tables(structure, alike)]


# --- Constraints ----------------------------------------------------------------------------------

_RECORDS = 2000


@CHECKS.add(needs="constraints")
def impossible_records_have_probability_zero(subject: InferenceSubject) -> None:
    """Over domains with listed combinations, a map and an order, ruled-out cells are exactly 0 in marginals and
    answers, inside cliques and across, and the most probable record and all draws break no constraint; exact engines
    equal enumeration of the possible records."""
    for name, structure in constrained_structures().items():
        try:
            engine = subject.engine(structure)
        except Unserved:
            continue
        require("constraints" in engine.capabilities, f"{name}: the engine does not say that it honours constraints")
        theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
        truth, beliefs = enumerated(theta), engine.infer(theta)
        alone = structure.impossible  # what several constraints rule out together an approximate engine may miss
        zero = (
            truth.marginals.values == 0 if engine.exact else np.zeros(structure.cells, bool) if alone is None else alone
        )
        require(not beliefs.marginals.values[zero].any(), f"{name}: a cell where no record can be is not 0")
        if engine.exact:
            require(close(beliefs.marginals.values, truth.marginals.values, 1e-7), f"{name}: marginals are others")
            near = math.isclose(beliefs.log_partition, truth.log_partition, rel_tol=1e-9, abs_tol=1e-7)
            require(near, f"{name}: log Z is {beliefs.log_partition:.9g}, not {truth.log_partition:.9g}")
        _check_answers(name, engine, theta)
        _check_records(name, engine, theta)


def _check_answers(name: str, engine: Engine, theta: Tables) -> None:
    if "query" not in engine.capabilities or not isinstance(engine, Querier):
        return
    domain = theta.structure.domain
    queries: list[Clique] = [*domain.scopes, domain.names]
    for query, table in zip(queries, engine.answers(theta, queries), strict=True):
        impossible = domain.impossible(query)
        require(
            impossible is None or not table[impossible].any(), f"{name}: p{query} is above 0 where no record can be"
        )


def _check_records(name: str, engine: Engine, theta: Tables) -> None:
    domain = theta.structure.domain
    if "maximize" in engine.capabilities and isinstance(engine, Maximizer):
        record, _ = engine.maximize(theta)
        _possible(f"{name}: the most probable record", domain, {key: np.array([code]) for key, code in record.items()})
    drawn: dict[str, Codes] = {}
    if "sample" in engine.capabilities and isinstance(engine, Sampler):
        drawn["sample"] = engine.sample(theta, _RECORDS, np.random.default_rng(2))
    if "rounded" in engine.capabilities and isinstance(engine, Rounder):
        drawn["rounded"] = engine.rounded(theta, _RECORDS, np.random.default_rng(2))
    for what, codes in drawn.items():
        _possible(f"{name}: a record of `{what}`", domain, dict(zip(domain.names, codes, strict=True)))


def _possible(what: str, domain: Domain, columns: Mapping[str, Array]) -> None:
    broken = [rule for rule, count in domain.broken(columns).items() if count]
    require(not broken, f"{what} breaks constraint {', '.join(map(repr, broken))}")


# --- Second derivatives (`SecondOrder`) -----------------------------------------------------------

# More directions than engines that work in blocks take at once, and no multiple of what they may take.
_COLUMNS = 67
# Central differences: the step in nats, and how far those of exact marginals and of converged messages may be off.
_STEP, _OFF_EXACT, _OFF_MESSAGES = 1e-4, 1e-6, 1e-2
# Rounding that a product may lose, as a share of the largest one.
_ROUNDING = 1e-9


def _second_order(subject: InferenceSubject, structure: Structure) -> tuple[Engine, SecondOrder] | None:
    """The engine twice, by both of its protocols; None where it has no second derivatives for this structure."""
    engine: Engine = subject.engine(structure)
    has, says = isinstance(engine, SecondOrder), "curvature" in engine.capabilities
    require(has == says, f"it {'has' if has else 'lacks'} `curvature` and {'says' if says else 'does not say'} so")
    return (engine, engine) if isinstance(engine, SecondOrder) else None


def _large(subject: InferenceSubject) -> Iterator[tuple[Engine, SecondOrder, Tables]]:
    """Engines of structures that nobody enumerates, with mild potentials; none where an engine holds none."""
    domain = Domain.from_sizes({f"x{place}": 3 for place in range(14)})
    for order in (2, 1):
        structure = Structure.chain(domain, order)
        try:
            both = _second_order(subject, structure)
        except (TooLarge, Unserved):
            continue
        if both is not None:
            yield (*both, Tables(structure, np.random.default_rng(order).normal(size=structure.cells)))


@CHECKS.add(needs="curvature")
def curvature_equals_enumeration(subject: InferenceSubject) -> None:
    """Of an exact engine it is the covariance of one record's tables times V, by enumeration: vectors, blocks of up to
    67 columns, tied, impossible and constrained cells."""

    def claim(theta: Tables) -> None:
        both = _second_order(subject, theta.structure)
        if both is None or not both[0].exact:
            return
        matrix, chances = incidence(theta.structure), enumerated(theta).probabilities
        centred = matrix - (matrix @ chances)[:, None]
        product, cells = both[1].curvature(theta), theta.structure.cells
        block = np.random.default_rng(1).normal(size=(cells, _COLUMNS))
        for directions in (block, block[:, :1], block[:, 0], *np.eye(cells)[: 1 + cells // 8]):
            found, expected = product(directions), (centred * chances) @ (centred.T @ directions)
            require(found.shape == expected.shape, f"of V {directions.shape} the product is {found.shape} {say(theta)}")
            off = float(np.abs(found - expected).max(initial=0.0))
            require(close(found, expected, 1e-7), f"V {directions.shape}: a product is off by {off:.3g} {say(theta)}")

    worst = awkward_potentials()
    if "constraints" in subject.capabilities:
        structures = constrained_structures().values()
        worst += [Tables(one, np.random.default_rng(1).normal(size=one.cells)) for one in structures]
    explore(subject.profile, potentials(), claim, worst=worst, share=0.2)


@CHECKS.add(needs="curvature")
def curvature_is_the_slope_of_the_marginals(subject: InferenceSubject) -> None:
    """On chains of 14 attributes it is the central difference of the engine's own marginals, where it converged.
    Cannot show: errors below a millionth."""
    for engine, second, theta in _large(subject):
        block = np.random.default_rng(2).normal(size=(theta.structure.cells, 3))
        found = second.curvature(theta)(block)
        for column, direction in enumerate(block.T):
            ends = [engine.infer(theta.like(theta.values + sign * _STEP * direction)) for sign in (1, -1)]
            if not all(one.converged for one in ends):
                continue
            slope = (ends[0].marginals.values - ends[1].marginals.values) / (2 * _STEP)
            off = float(np.abs(found[:, column] - slope).max())
            allowed = _OFF_EXACT if engine.exact else _OFF_MESSAGES
            require(
                off <= allowed,
                f"{theta.structure}: the marginals move by {np.abs(slope).max():.4g} a nat along a direction, and the "
                f"product is off by {off:.3g}",
            )


@CHECKS.add(needs="curvature")
def curvature_is_symmetric_and_centred(subject: InferenceSubject) -> None:
    """On the same chains, to a billionth, the map is linear, symmetric and not negative, each table of a product sums
    to 0, and constants give 0."""
    for _, second, theta in _large(subject):
        product, structure = second.curvature(theta), theta.structure
        one, two = np.random.default_rng(3).normal(size=(2, structure.cells, 3))
        by_one, by_two = product(one), product(two)
        allowed = _ROUNDING * structure.cells * float(np.abs(by_one).max(initial=1.0))
        skew = float(np.abs(two.T @ by_one - by_two.T @ one).max())
        require(skew <= allowed, f"{structure}: U'Cov V and V'Cov U differ by {skew:.3g}")
        least = float(np.einsum("ij,ij->j", one, by_one).min())
        require(least >= -allowed, f"{structure}: V'Cov V is {least:.3g}, below 0")
        sums = float(np.abs(Tables(structure, np.ascontiguousarray(by_one[:, 0])).sums()).max())
        require(sums <= allowed, f"{structure}: a table of a product sums to {sums:.3g}, not to 0")
        moved = float(np.abs(product(theta.repeat(np.arange(1.0, len(structure.groups) + 1)))).max())
        require(moved <= allowed * structure.cells, f"{structure}: a constant on each table gives {moved:.3g}, not 0")
        off = float(np.abs(product(1e6 * one) / 1e6 - by_one).max())
        require(off <= allowed, f"{structure}: of a million times V the product differs by {off:.3g}, so it is no map")


@CHECKS.add(needs="curvature")
def curvature_keeps_nothing(subject: InferenceSubject) -> None:
    """A map gives the same after other calls, beside another thread's, and for V in any order of memory; V and earlier
    products do not change. Cannot show: races within compiled code."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        try:
            both = _second_order(subject, structure)
        except Unserved:
            continue
        if both is None:
            continue
        engine, second = both
        draw = np.random.default_rng(4)
        theta, other = (Tables(structure, draw.normal(size=structure.cells)) for _ in range(2))
        block = draw.normal(size=(structure.cells, 5))
        block.setflags(write=False)
        product = second.curvature(theta)
        found = product(block)
        expected = found.copy()
        engine.infer(other, total=1e4)
        second.curvature(other)(block)
        product(-block)
        _same(f"{name}: an earlier product, after other calls,", found, expected)
        _same(f"{name}: after other calls", product(block), expected)
        found[:] = np.nan
        _same(f"{name}: after a product was written into", product(block), expected)
        for what, form in _forms(block).items():
            _same(f"{name}: of {what}", product(form), expected)
        one, two = partial(product, block), partial(_both, engine, second, other, block)
        both_ways = {0: expected, 1: two()}
        for number, answer in (*held_up(one, two, places=12), *at_once(one, two, times=6)):
            if isinstance(answer, Exception):
                raise CheckFailed(f"{name}: with two threads curvature raises {type(answer).__name__}: {answer}")
            _same(f"{name}: with two threads at once", answer, both_ways[number])


def _both(engine: Engine, second: SecondOrder, theta: Tables, block: FloatArray) -> FloatArray:
    """What another thread does meanwhile."""
    engine.infer(theta)
    return second.curvature(theta)(block)


def _forms(block: FloatArray) -> dict[str, FloatArray]:
    """The same directions as they may lie in memory."""
    wide = np.repeat(block, 2, axis=1)
    return {"columns that lie together": np.asfortranarray(block), "every second column of a block": wide[:, ::2]}


def _same(where: str, found: FloatArray, expected: FloatArray) -> None:
    require(close(found, expected, _ROUNDING), f"{where} the product of a map is another")


@CHECKS.add(needs="curvature")
def curvature_refuses_nonsense(subject: InferenceSubject) -> None:
    """Potentials that `infer` refuses, and directions that are not finite, raise InferenceError; wrong lengths and
    other structures an error of dpgm."""
    structure = awkward_structures()["chain"]
    both = _second_order(subject, structure)
    if both is None:
        return
    second, cells = both[1], structure.cells
    place = np.arange(cells)
    impossible = np.where(place < structure.sizes[0], -np.inf, 0.0)
    calls = {
        "a NaN potential": (Tables(structure, np.where(place == 1, np.nan, 0.0)), np.eye(cells), InferenceError),
        "a potential of +inf": (Tables(structure, np.where(place == 1, np.inf, 0.0)), np.eye(cells), InferenceError),
        "an impossible table": (Tables(structure, impossible), np.eye(cells), InferenceError),
        "directions that are too short": (Tables.zeros(structure), np.ones(cells - 1), DpgmError),
        "potentials over another structure": (Tables.zeros(awkward_structures()["cycle"]), np.eye(cells), DpgmError),
    }
    for what, odd in (("NaN", np.nan), ("an infinity", np.inf)):
        block = np.ones((cells, _COLUMNS))
        block[cells // 2, -1] = odd
        calls[f"{what} in the last column"] = (Tables.zeros(structure), block, InferenceError)
        calls[f"{what} in a vector"] = (Tables.zeros(structure), np.ascontiguousarray(block[:, -1]), InferenceError)

    def product(theta: Tables, directions: FloatArray) -> FloatArray:
        return second.curvature(theta)(directions)

    for what, (theta, directions, kind) in calls.items():
        with np.errstate(all="ignore"):
            require_refusal(f"curvature of {what}", partial(product, theta, directions), kind)
