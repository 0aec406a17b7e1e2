"""Simulated releases, as if a model were the truth. For parametric bootstraps.

Post-processing: records are drawn from a model learned after the noise, never read.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.counting.kernel import count
from dpgm_core.errors import InferenceError
from dpgm_core.inference.constraining import engine_name
from dpgm_core.inference.contract import Engine, Sampler
from dpgm_core.learning.table_draws import TableDraws, cells_of_junction_tree
from dpgm_core.randomness import Randomness
from dpgm_core.releases.estimated import estimate_total
from dpgm_core.releases.levelled import equalize_totals
from dpgm_core.releases.plausible import emptied
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources.codes import CodesSource
from dpgm_core.tables import Tables

__all__ = ["Simulator"]

#: From more records on, the deviation of this many is scaled up: the mean and covariance of the counts stay exact.
_MAX_RECORDS = 50_000
#: Codes drawn in the time of one cell of a multinomial.
_CODES_PER_CELL = 1.0


class Simulator:
    """Simulator of releases like `release`, from records of the model with these `potentials`.

    Each draw samples records, counts them, adds fresh noise of the released kind and estimates N again if it was
    estimated. The records are independent: rows of one person that resemble each other are not simulated.

    Parameters
    ----------
    engine : Engine
        Of the model; its structure contains the released cliques. One that cannot sample raises InferenceError.

    References
    ----------
    Efron and Tibshirani (1993), section 6.5.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, make, release
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1]] * 500)
    >>> noisy = release(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))
    >>> engine = make("inference", "junction-tree").compile(structure)
    >>> drawn = Simulator(noisy, engine, Tables.zeros(structure)).draw(SeededRandomness(1))
    >>> round(drawn.total, -2), drawn.private
    (1000.0, False)
    """

    def __init__(self, release: NoisyTables, engine: Engine, potentials: Tables) -> None:
        if "sample" not in engine.capabilities or not isinstance(engine, Sampler):
            raise InferenceError(
                f"{engine_name(engine)} cannot draw records to simulate a release from; use junction-tree"
            )
        release = equalize_totals(release)  # weighted rows are simulated as learners see them, one record per person
        self._release, self._engine, self._potentials = release, engine, potentials
        self._sampler: Sampler = engine
        self._records = max(1, round(release.total))
        self._expected: FloatArray | None = None
        self._draws: TableDraws | None = None
        codes = len(engine.structure.domain) * min(self._records, _MAX_RECORDS)
        if _CODES_PER_CELL * cells_of_junction_tree(engine.structure) <= codes:
            self._draws = TableDraws(potentials, release.structure)
        elif self._records > _MAX_RECORDS and engine.structure == release.structure:
            self._expected = engine.infer(potentials).marginals.values

    def draw(self, randomness: Randomness) -> NoisyTables:
        """Return one simulated release, marked as not private: no records are in it."""
        release = self._release
        counts = Tables(release.structure, self._counts(randomness.generator()))
        tables = release.measurement.draw(counts, randomness, release.total)
        total = release.total
        if release.total_policy == "estimated":
            total = estimate_total(tables, release.variances, contrasts=release.contrasts)[0]
        if not release.contrasts:
            tables = emptied(tables)  # as learners see it
        made = evolve(release, tables=tables, total=total, private=False, provenance={"simulated": True})
        return evolve(made, original=None, pooled=(), session=None, steps=())

    def _counts(self, generator: np.random.Generator) -> IntArray:
        """Return true counts of as many records as the release has."""
        if self._draws is not None:
            return self._draws.draw(self._records, generator)
        structure = self._release.structure
        drawn = self._records if self._expected is None else _MAX_RECORDS
        codes = self._sampler.sample(self._potentials, drawn, generator)
        columns = dict(zip(self._engine.structure.domain.names, codes, strict=True))
        counts = count(CodesSource(data=columns), structure).tables.values
        if self._expected is None:
            return counts.copy()
        deviation = counts - drawn * self._expected
        scaled = self._records * self._expected + math.sqrt(self._records / drawn) * deviation
        rounded: IntArray = np.rint(scaled).astype(np.int64)
        return rounded
