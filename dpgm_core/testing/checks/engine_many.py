"""Inferences for many potentials in one call: each as it is alone, in order, refused alike, and shared with nobody."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import DpgmError, InferenceError
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.inference.many import Batched
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import CheckFailed, Checklist, Unserved, require
from dpgm_core.testing.checks.engine import awkward_potentials, close
from dpgm_core.testing.checks.engine_calls import at_once, held_up
from dpgm_core.testing.constrained import constrained_structures
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")

# Rows of a call: one, two, and more than an engine with eight workers, or blocks of eight, takes at once.
_COUNTS = (1, 2, 19)
_NEAR = 1e-9


def _batched(subject: InferenceSubject, structure: Structure) -> tuple[Engine, Batched] | None:
    """The engine twice, by both of its protocols; None where it answers one after another, or refuses the structure."""
    try:
        engine: Engine = subject.engine(structure)
    except Unserved:
        return None
    return (engine, engine) if isinstance(engine, Batched) else None


def _rows(theta: Tables, count: int) -> FloatArray:
    """Potentials near these, no two rows alike, with zeros where these have some, (count, cells)."""
    return theta.values + np.random.default_rng(count).normal(size=(count, theta.structure.cells))


@CHECKS.add(needs="many")
def many_together_are_each_alone(subject: InferenceSubject) -> None:
    """`infer_many` gives for 1, 2 and 19 rows, in order, the tables, log Z, errors and convergence of `infer`, for any
    total and with impossible cells; nothing for no rows. Cannot show: larger structures."""
    cases = awkward_potentials()
    if "constraints" in subject.capabilities:
        cases += [Tables(one, np.zeros(one.cells)) for one in constrained_structures().values()]
    for number, theta in enumerate(cases):
        both = _batched(subject, theta.structure)
        if both is None:
            continue
        engine, many = both
        total = (1.0, 0.5, 1e6)[number % 3]
        for count in _COUNTS if number < 6 else _COUNTS[-1:]:
            rows = _rows(theta, count)
            where = f"{count} rows for {total:g} records on cliques {theta.structure.groups}"
            _are(where, many.infer_many(rows.copy(), total=total), engine, rows, total)
        require(len(many.infer_many(rows[:0])) == 0, "for no rows there are beliefs")


def _are(where: str, found: list[Beliefs], engine: Engine, rows: FloatArray, total: float = 1.0) -> None:
    """Compare what was found with a call of `infer` for each row."""
    require(len(found) == len(rows), f"{where}: {len(found)} beliefs were returned")
    for place, (one, row) in enumerate(zip(found, rows, strict=True)):
        alone = engine.infer(Tables(engine.structure, row.copy()), total=total)
        require(one.marginals.structure == engine.structure, f"{where}: the tables are over another structure")
        off = float(np.abs(one.marginals.values - alone.marginals.values).max(initial=0.0)) / total
        require(off <= _NEAR, f"{where}: the tables of row {place} are off by {off:.3g} of those that `infer` gives")
        off = abs(one.log_partition - alone.log_partition)
        require(off <= _NEAR * (1 + abs(alone.log_partition)), f"{where}: log Z of row {place} is off by {off:.3g}")
        require(one.converged == alone.converged, f"{where}: row {place} says converged = {one.converged}")
        both = (one.errors, alone.errors)
        if any(errors is not None for errors in both):
            told = [None if errors is None else errors.values for errors in both]
            near = told[0] is not None and told[1] is not None and close(told[0], told[1], 1e-6)
            require(near, f"{where}: the errors of row {place} are others than those of `infer`")


@CHECKS.add(needs="many")
def many_refuse_what_one_refuses(subject: InferenceSubject) -> None:
    """One row of NaN, +inf or an impossible table, wherever it stands, raises InferenceError; rows of another length
    an error of dpgm. Cannot show: that messages help."""
    structure = awkward_structures()["chain"]
    both = _batched(subject, structure)
    if both is None:
        return
    many, cells = both[1], structure.cells
    odd = {"NaN": np.where(np.arange(cells) == 1, np.nan, 0.0), "+inf": np.where(np.arange(cells) == 1, np.inf, 0.0)}
    odd["an impossible table"] = np.where(np.arange(cells) < structure.sizes[0], -np.inf, 0.0)
    calls: dict[str, tuple[FloatArray, type[DpgmError]]] = {
        "rows that are too short": (np.zeros((3, cells - 1)), DpgmError),
        "one row by itself": (np.zeros(cells), DpgmError),
    }
    for what, values in odd.items():
        for place in (0, 9, 18):
            rows = np.zeros((19, cells))
            rows[place] = values
            calls[f"{what} in row {place} of 19"] = (rows, InferenceError)
    for what, (rows, kind) in calls.items():
        with np.errstate(all="ignore"):
            try:
                many.infer_many(rows)
            except kind:
                continue
            except Exception as error:
                raise CheckFailed(f"{what} raises {type(error).__name__}, not {kind.__name__}") from error
        require(False, f"{what}: infer_many answers instead of refusing")


@CHECKS.add(needs="many")
def many_share_nothing(subject: InferenceSubject) -> None:
    """Beliefs of one call or two, and rows, share no memory; rows are left alone, in any order of memory; two threads
    do not meet. Cannot show: races within compiled code."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        both = _batched(subject, structure)
        if both is None:
            continue
        engine, many = both
        theta = Tables(structure, np.zeros(structure.cells))
        one, two = _rows(theta, 5), _rows(theta, 6)
        before = one.copy()
        first, second = many.infer_many(one), many.infer_many(two, total=1e4)
        require(np.array_equal(before, one), f"{name}: the rows were changed")
        _are(f"{name}: after another call", first, engine, one)
        tables = [beliefs.marginals.values for beliefs in (*first, *second)]
        for values in _pairs([*tables, one, two]):
            require(not np.shares_memory(*values), f"{name}: two beliefs, or beliefs and rows, share their memory")
        for what, form in {
            "Fortran order": np.asfortranarray(one),
            "every second row": np.repeat(one, 2, 0)[::2],
        }.items():
            _are(f"{name}: rows in {what}", many.infer_many(form), engine, one)
        calls = partial(many.infer_many, one), partial(many.infer_many, two, total=1e4)
        expected = [[beliefs.marginals.values.copy() for beliefs in answer] for answer in (first, second)]
        for number, answer in (*held_up(*calls, places=12), *at_once(*calls, times=6)):
            if isinstance(answer, Exception):
                raise CheckFailed(f"{name}: with two threads infer_many raises {type(answer).__name__}: {answer}")
            same = all(
                close(beliefs.marginals.values, values, _NEAR)
                for beliefs, values in zip(answer, expected[number], strict=True)
            )
            require(same, f"{name}: with two threads at once the tables are others than one call after the other")


def _pairs(arrays: list[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
    yield from ((one, other) for place, one in enumerate(arrays) for other in arrays[:place])
