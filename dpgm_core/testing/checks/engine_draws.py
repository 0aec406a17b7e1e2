"""How engines that draw must behave (`Estimator`): they state errors, which hold and are no excuse for everything."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.contract import Beliefs, Estimates, Estimator, Sampler
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, Unserved, require
from dpgm_core.testing.oracles import enumerated
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS", "FAR", "errors_of"]

CHECKS = Checklist("inference")

#: Standard errors beyond which an answer is wrong: of a normal law 3e-12 are, of Student's with 20 degrees of freedom
#: 9e-7, and an engine states errors from about as many.
FAR = 7.0
# Records of the model, and how many times the variance of independent ones their tables may have.
_RECORDS, _DEPENDENT = 20_000, 4.0


def errors_of(beliefs: Beliefs) -> tuple[FloatArray | float, float]:
    """By how much marginals and log Z may be off by chance: 0 of engines that do not draw."""
    if beliefs.errors is None or beliefs.log_partition_error is None:
        return 0.0, 0.0
    return FAR * beliefs.errors.values, FAR * beliefs.log_partition_error


def _mild() -> list[tuple[str, Tables]]:
    """Potentials over every awkward structure at which any chain of records forgets where it was."""
    return [
        (name, Tables(structure, np.random.default_rng(number).uniform(-0.5, 0.5, structure.cells)))
        for number, (name, structure) in enumerate(awkward_structures().items())
    ]


def _queries(structure: Structure) -> list[tuple[str, ...]]:
    names = structure.domain.names
    return [(name,) for name in names] + [(names[-1], names[0])] * (len(names) > 1) + [names] * (len(names) > 2)


@CHECKS.add(needs="estimate")
def errors_are_stated(subject: InferenceSubject) -> None:
    """An engine with "estimate" states finite errors of every marginal and of log Z, for any total, says the same in
    `estimates` as in `answers`, with an error each, above 0 where the answer is neither 0 nor 1, calls itself
    approximate, and its notes are sentences. Cannot show: that they are the right ones."""
    for name, theta in _mild():
        try:
            engine = subject.engine(theta.structure)
        except Unserved:
            continue
        require(not engine.exact, f"{name}: it states errors and calls itself exact")
        require(isinstance(engine, Estimator), f"{name}: {type(engine).__name__} lacks members of Estimator")
        assert isinstance(engine, Estimator)
        one, ten = engine.infer(theta), engine.infer(theta, total=10)
        for beliefs in (one, ten):
            errors, log_error = beliefs.errors, beliefs.log_partition_error
            require(errors is not None and log_error is not None, f"{name}: `infer` states no errors")
            assert errors is not None
            assert log_error is not None
            require(errors.structure == theta.structure, f"{name}: the errors are over another structure")
            require(_plain(errors.values) and 0 <= log_error < math.inf, f"{name}: an error is negative or not finite")
        assert one.errors is not None
        assert ten.errors is not None
        scaled = np.allclose(ten.errors.values, 10 * one.errors.values, rtol=1e-9)
        require(scaled, f"{name}: the errors for 10 records are not ten times those of one")
        queries = _queries(theta.structure)
        found: object = engine.estimates(theta, queries)
        require(isinstance(found, Estimates), f"{name}: `estimates` returned {type(found).__name__}, not Estimates")
        assert isinstance(found, Estimates)
        require(len(found.tables) == len(found.errors) == len(queries), f"{name}: not a table and errors per query")
        for query, table, off in zip(queries, found.tables, found.errors, strict=True):
            shape = theta.structure.domain.shape(query)
            require(table.shape == off.shape == shape, f"{name}: {query} has another shape than {shape}")
            require(_plain(off) and bool((off[(table > 0) & (table < 1)] > 0).all()), f"{name}: no error of {query}")
        answers = engine.answers(theta, queries) if "query" in engine.capabilities else found.tables  # type: ignore[attr-defined]
        same = all(np.array_equal(one, two) for one, two in zip(answers, found.tables, strict=True))
        require(same, f"{name}: `answers` and `estimates` say different things")
        for note in (*found.notes, *engine.caveats(theta)):
            require(isinstance(note, str) and note.strip(), f"{name}: notes and caveats must be sentences")


def _plain(errors: FloatArray) -> bool:
    return bool(np.isfinite(errors).all() and (errors >= 0).all())


@CHECKS.add(needs="estimate")
def errors_hold(subject: InferenceSubject) -> None:
    """At potentials within half a nat, where chains forget at once, it says that it converged, and marginals, log Z and
    answers are within seven stated errors of enumeration (false alarm below 1e-6 per table, fixed seeds). Cannot show:
    strong couplings, at which it has to judge for itself."""
    for name, theta in _mild():
        try:
            engine = subject.engine(theta.structure)
        except Unserved:
            continue
        assert isinstance(engine, Estimator)
        beliefs, truth = engine.infer(theta), enumerated(theta)
        require(beliefs.converged, f"{name}: it has not converged, at potentials within half a nat")
        marginals, log_partition = errors_of(beliefs)
        off = np.abs(beliefs.marginals.values - truth.marginals.values)
        require(bool((off <= marginals + 1e-9).all()), f"{name}: a marginal is {off.max():.3g} off, beyond its error")
        missed = abs(beliefs.log_partition - truth.log_partition)
        require(missed <= log_partition + 1e-9, f"{name}: log Z is {missed:.3g} off, beyond its error")
        joint = truth.probabilities.reshape(theta.structure.domain.shape(theta.structure.domain.names))
        queries = _queries(theta.structure)
        found = engine.estimates(theta, queries)
        for query, table, errors in zip(queries, found.tables, found.errors, strict=True):
            axes = [theta.structure.domain.names.index(one) for one in query]
            margin = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
            expected = margin.transpose([sorted(axes).index(axis) for axis in axes])
            good = bool((np.abs(table - expected) <= FAR * errors + 1e-9).all())
            require(good, f"{name}: {query} is off beyond its error")


@CHECKS.add(needs="estimate")
def errors_are_no_larger_than_they_are(subject: InferenceSubject) -> None:
    """Over all cells of mild models the root mean square of (answer less truth) over (stated error) is at least a
    tenth: an error that holds because it is huge says nothing. Cannot show: single cells."""
    ratios: list[float] = []
    for _, theta in _mild():
        try:
            beliefs = subject.engine(theta.structure).infer(theta)
        except Unserved:
            continue
        assert beliefs.errors is not None
        truth = enumerated(theta).marginals.values
        some = (truth > 0) & (beliefs.errors.values > 0)
        ratios += list((beliefs.marginals.values - truth)[some] / beliefs.errors.values[some])
    typical = math.sqrt(float(np.mean(np.square(ratios))))
    require(
        typical >= 0.1, f"answers are off by {typical:.2g} of the errors stated: these are too large to tell anything"
    )


@CHECKS.add(needs="estimate")
def draws_follow_the_model(subject: InferenceSubject) -> None:
    """20,000 records drawn at mild potentials have the enumerated probabilities, to seven times twice the error of
    independent records (false alarm below 1e-10 per record, fixed seeds), and the same generator gives the same ones.
    Cannot show: how much records depend on each other, beyond that."""
    for number, (name, theta) in enumerate(_mild()):
        try:
            engine = subject.engine(theta.structure)
        except Unserved:
            continue
        if not isinstance(engine, Sampler) or "sample" not in engine.capabilities:
            return
        sizes = tuple(theta.structure.domain.sizes.values())
        one, two = (engine.sample(theta, _RECORDS, np.random.default_rng(number)) for _ in range(2))
        require(len(one) == len(sizes), f"{name}: sample must give one code array per attribute of the domain")
        same = all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        require(same, f"{name}: the same generator gives other records")
        rows = np.ravel_multi_index(tuple(np.asarray(column, dtype=np.int64) for column in one), sizes)
        seen = np.bincount(rows, minlength=math.prod(sizes)) / _RECORDS
        require(len(rows) == _RECORDS, f"{name}: {len(rows)} records instead of {_RECORDS}")
        chances = enumerated(theta).probabilities
        allowed = FAR * np.sqrt(_DEPENDENT * chances / _RECORDS) + FAR * _DEPENDENT / _RECORDS
        off = float(np.abs(seen - chances).max())
        require(
            bool((np.abs(seen - chances) <= allowed).all()), f"{name}: a record is drawn {off:.3g} too often or rarely"
        )
