"""Checks of learners and collective engines on noise that is bounded or not log-concave: they serve it or refuse it."""

from __future__ import annotations

import numpy as np

from dpgm_core._util.progress import silent
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.curator.live import LiveCurator
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.mechanism import Mechanism
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.check import Checklist, require
from dpgm_testing.curators import TrappedRecords
from dpgm_testing.reference import example_release
from dpgm_testing.subjects import CollectiveSubject, LearnerSubject
from dpgm_testing.unusual import TruncatedLaplace, TwoWidths

__all__ = ["COLLECTIVE", "LEARNER"]

LEARNER = Checklist("learner")
COLLECTIVE = Checklist("collective")

_CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 3)))
_NOISES: dict[str, tuple[Mechanism, Budget]] = {
    "bounded": (TruncatedLaplace(), Budget.approx(1, "1e-5")),
    "not log-concave": (TwoWidths(), Budget.pure(1)),
}


@LEARNER.add()
def any_noise_gives_a_model_or_a_refusal(subject: LearnerSubject) -> None:
    """Releases with bounded noise, and with noise that is not log-concave, give a usable model or an error of dpgm."""
    labels = 2 if subject.binary else 3
    codes = np.random.default_rng(1).integers(0, labels, (400, 3)).cumsum(axis=1) % labels
    for what, (mechanism, budget) in _NOISES.items():
        curator = LiveCurator(
            TrappedRecords(codes),
            subject.served(subject.chain),
            mechanism,
            terms=Terms(neighbours="add-remove"),
            budget=budget,
            randomness=SeededRandomness(1),
        )
        try:
            fit = subject.component.learn(curator, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
        except DpgmError:
            continue
        require(not np.isnan(fit.model.potentials.values).any(), f"{what}: a log-potential is NaN")
        for clique in _CHAIN.cliques:
            table = fit.model.using(unmeasured="uniform").marginal(clique)
            good = bool((table >= 0).all()) and abs(float(table.sum()) - 1) < 1e-6
            require(good, f"{what}: the marginal of {clique} is no distribution")


@COLLECTIVE.add()
def any_noise_gives_tables_or_a_refusal(subject: CollectiveSubject) -> None:
    """Evidence with bounded noise, and with noise that is not log-concave, gives tables of the right total or an error
    of dpgm."""
    for what, (mechanism, budget) in _NOISES.items():
        noisy = np.arange(-2, _CHAIN.cells - 2)
        evidence = example_release(_CHAIN, noisy, total=40, mechanism=mechanism, budget=budget)
        engine: Engine = JunctionTree().compile(_CHAIN)
        try:
            found = subject.component.compile(engine, evidence).infer(Tables.zeros(_CHAIN))
        except DpgmError:
            continue
        near = np.allclose(found.marginals.sums(), evidence.totals, rtol=1e-6)
        require(near, f"{what}: the tables sum to {found.marginals.sums()}, not {evidence.totals}")
        require(not np.isnan(found.multipliers.values).any(), f"{what}: a multiplier is NaN")
