"""What learners must keep besides that take some structures alone, and those that learn from contrasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.curator.live import LiveCurator
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.structure import Structure
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.directed import BINARY_CHAIN, CHAIN
from dpgm_core.testing.doors import Door, TrappedRecords, live_curator
from dpgm_core.testing.learning import replayed
from dpgm_core.testing.reference import ReferenceLaplace
from dpgm_core.testing.shapes import SHAPES
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")

# Records of a population, the one product of attributes that it has, and how far a model's may be off.
_RECORDS, _PRODUCT, _OFF = 4000, 0.6, 0.1


@CHECKS.add(needs="restricted")
def what_it_does_not_take_is_refused_unpaid(subject: LearnerSubject) -> None:
    """Cliques of three, tied ones, attributes alone, one label or three, of these what `check` refuses with
    StructureError `learn` refuses so before it has asked for a release. Cannot show: other structures."""
    structures = {name: SHAPES[name] for name in sorted(subject.refused)}
    if subject.binary:
        structures["three labels"] = CHAIN
    for name, structure in structures.items():
        for kind in ("pure", "approx"):
            records = TrappedRecords(np.zeros((9, len(structure.domain)), np.int64))
            door = Door(live_curator(records, structure, kind))
            try:
                subject.component.learn(door, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
            except (StructureError, BudgetError):
                require(not door.handed, f"{name}: `check` refuses it, and `learn` after a release is paid for")
            else:
                require(False, f"{name}: `check` refuses it, and `learn` makes a model over it")


@CHECKS.add(needs="contrasts")
def contrasts_are_learned(subject: LearnerSubject) -> None:
    """From contrasts at epsilon = 10, of 4,000 records in which the product of one attribute, of two, or of three
    (where it takes such a clique) has mean 0.6 and all others 0, the model has these means, to 0.1. Cannot show: that
    their noise is weighed right."""
    component: Any = subject.component
    require(component.takes_contrasts is True, "takes_contrasts must be True; a learner that takes none leaves it out")
    roomy = "a clique of three" not in subject.refused
    structure = SHAPES["a clique of three"] if roomy else BINARY_CHAIN
    names = structure.domain.names
    for held in (names[:1], names[:2], *([names] if roomy else [])):
        curator = LiveCurator(
            TrappedRecords(_with_product(structure, held), rows=_RECORDS),
            structure,
            ReferenceLaplace(),
            terms=Terms(neighbours="add-remove", total=float(_RECORDS)),
            budget=Budget.pure(10),
            randomness=SeededRandomness(1),
        )
        fit = replayed(component, curator.release(split="contrasts"), structure)
        model = fit.model.using("junction-tree", unmeasured="uniform")
        for product in (names[:1], names[:2], names[1:], *([names] if roomy else [])):
            expected = _PRODUCT if product == held else 0.0
            found = _mean(model.marginal(product))
            require(
                abs(found - expected) <= _OFF,
                f"where the product of {' x '.join(held)} has mean {_PRODUCT} and no other has, the model's of "
                f"{' x '.join(product)} is {found:.3f}",
            )


def _with_product(structure: Structure, held: tuple[str, ...]) -> IntArray:
    """Codes in which the product of +1 and -1 over these attributes alone has a mean other than 0."""
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 2, (_RECORDS, len(structure.domain)))
    places = [structure.domain.names.index(name) for name in held]
    odd = generator.random(_RECORDS) >= (1 + _PRODUCT) / 2
    codes[:, places[-1]] = (codes[:, places[:-1]].sum(axis=1) + odd) % 2
    return codes


def _mean(table: FloatArray) -> float:
    """Of the product of +1 and -1 over a table's attributes."""
    signs = np.indices(table.shape).sum(axis=0) % 2
    return float(((1 - 2 * signs) * table).sum())
