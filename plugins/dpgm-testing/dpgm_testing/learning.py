"""Populations, records and simulated releases for checks and tests of learners, and calls of learners on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.progress import silent
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError
from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.models.model import Model
from dpgm_core.pipeline.run import release
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.cases import CHAIN
from dpgm_testing.curators import GuardedCurator, SunkMechanism, TrappedRecords, live_curator
from dpgm_testing.oracles import all_records, enumerated
from dpgm_testing.subjects import LearnerSubject

__all__ = [
    "CHAIN",
    "Run",
    "SpoiledInference",
    "chain",
    "clique_marginals",
    "dirichlet_model",
    "draw",
    "learn",
    "persistent_model",
    "record_probabilities",
    "replayed",
    "sample_codes",
    "simulated_release",
    "truth",
]


# --- Populations and simulated releases -----------------------------------------------------------


def chain(length: int, size: int, order: int = 1) -> Structure:
    """Attributes x0, x1, ... of `size` labels with cliques of neighbours up to `order` places apart.

    >>> chain(3, 2).cliques
    (('x0', 'x1'), ('x1', 'x2'))
    """
    return Structure.chain(Domain.from_sizes({f"x{place}": size for place in range(length)}), order)


def dirichlet_model(structure: Structure, seed: int) -> Model:
    """A population whose potentials are logarithms of tables drawn from Dirichlet(1)."""
    generator = np.random.default_rng(seed)
    tables = [np.log(generator.dirichlet(np.ones(size))) for size in structure.sizes]
    return Model(structure, Tables(structure, np.concatenate(tables)))


def persistent_model() -> Model:
    """A chain of six attributes with eight labels whose neighbours mostly have the same label: far from uniform."""
    structure, generator = chain(6, 8), np.random.default_rng(1)
    tables = [0.85 * np.eye(8) + 0.15 * generator.dirichlet(np.full(8, 0.3), size=8) for _ in structure.cliques]
    return Model(structure, Tables(structure, np.log(np.maximum(np.array(tables), 1e-4)).ravel()))


def sample_codes(model: Model, count: int, seed: int) -> IntArray:
    """Codes of so many records of a model, (records, attributes)."""
    drawn = model.sample(count, form="labels", randomness=SeededRandomness(seed))
    labels = [pa.array(map(str, model.domain[name].labels), pa.string()) for name in drawn.column_names]
    codes = [pc.index_in(column, one).to_numpy() for column, one in zip(drawn.columns, labels, strict=True)]
    return np.stack(codes, axis=1).astype(int)


def simulated_release(
    model: Model,
    count: int,
    budget: Budget | int | float | str,
    seed: int,
    mechanism: str = "laplace",
    *,
    structure: Structure | None = None,
    total: str | float = "public",
    split: str = "even",
    **terms: Any,
) -> NoisyTables:
    """A seeded release of the tables of so many records of a model, under add-remove neighbours.

    budget: a number is a pure epsilon. structure: the model's when None. terms: fields of `Terms` besides `total`.
    """
    return release(
        sample_codes(model, count, seed),
        model.structure if structure is None else structure,
        budget if isinstance(budget, Budget) else Budget.pure(budget),
        mechanism,
        terms=Terms(**{"neighbours": "add-remove", "total": total, **terms}),
        split=split,
        randomness=SeededRandomness(seed),
    )


# --- Records and calls of learners ----------------------------------------------------------------


@frozen(kw_only=True)
class Run:
    """One call of `learn` and what it left behind."""

    fit: Fit
    curator: GuardedCurator


def truth(structure: Structure = CHAIN, seed: int = 3) -> Tables:
    """Log-potentials of a population that is far from uniform."""
    return Tables(structure, np.random.default_rng(seed).normal(scale=1.2, size=structure.cells))


def draw(theta: Tables, count: int, seed: int) -> IntArray:
    """Codes of so many records of the model, (records, attributes)."""
    rows = all_records(theta.structure)
    return rows[np.random.default_rng(seed).choice(len(rows), size=count, p=enumerated(theta).probabilities)]


def learn(
    subject: LearnerSubject,
    codes: IntArray,
    structure: Structure | None = None,
    *,
    inference: Inference | None = None,
    seed: int = 1,
    sunk: bool = False,
    source: TrappedRecords | None = None,
) -> Run:
    """Learn with the first budget that the learner takes: pure epsilon with Laplace noise, else (epsilon, delta).

    structure: is learned as `LearnerSubject.served` has it; None: the subject's chain. Raises Unserved.
    """
    engine: Inference = JunctionTree() if inference is None else inference
    structure = subject.served(subject.chain if structure is None else structure)
    refusal: BudgetError | None = None
    for kind in ("pure", "approx"):
        records = TrappedRecords(codes) if source is None else source
        curator = live_curator(records, structure, kind, seed=seed, wrap=SunkMechanism if sunk else None)
        guarded = GuardedCurator(curator)
        try:
            fit = subject.component.learn(guarded, engine, randomness=SeededRandomness(seed), progress=silent)
        except BudgetError as error:
            refusal = error
            continue
        return Run(fit=fit, curator=guarded)
    assert refusal is not None
    raise refusal


def replayed(learner: Learner, releases: NoisyTables | Sequence[NoisyTables], structure: Structure) -> Fit:
    """The fit to finished releases."""
    curator = ReplayCurator(releases, structure)
    return learner.learn(curator, JunctionTree(), randomness=SeededRandomness(1), progress=silent)


@frozen(kw_only=True)
class SpoiledInference:
    """The junction tree with other answers than its own.

    answer: from the engine, potentials and total to beliefs. asked: the structures it was asked about.
    """

    answer: Callable[[Engine, Tables, float], Beliefs]
    exact: bool = True
    asked: list[Structure] = field(factory=list)

    max_order: ClassVar[None] = None

    def compile(self, structure: Structure) -> Engine:
        """An engine that gives these answers."""
        return _SpoiledEngine(inner=JunctionTree().compile(structure), made=self, exact=self.exact)


@frozen(kw_only=True)
class _SpoiledEngine:
    inner: Engine
    made: SpoiledInference
    exact: bool
    cost: ClassVar[None] = None
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @property
    def structure(self) -> Structure:
        return self.inner.structure

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        self.made.asked.append(self.structure)
        return self.made.answer(self.inner, potentials, total)


def clique_marginals(potentials: Tables) -> FloatArray:
    """Of one record, (cells,)."""
    return JunctionTree().compile(potentials.structure).infer(potentials).marginals.values


def record_probabilities(potentials: Tables, latent: Sequence[str] = ()) -> FloatArray:
    """Of every record, (records,), in the order of `all_records`, with the latent classes summed out.

    >>> structure = Structure(Domain.from_sizes({"h": 2, "a": 2}), [("h", "a")])
    >>> record_probabilities(Tables(structure, np.log([0.1, 0.2, 0.3, 0.4])), ["h"]).round(2).tolist()
    [0.4, 0.6]
    """
    domain = potentials.structure.domain
    joint = enumerated(potentials).probabilities.reshape(domain.shape(domain.names))
    summed: FloatArray = joint.sum(axis=tuple(domain.names.index(name) for name in latent))
    return summed.reshape(-1)
