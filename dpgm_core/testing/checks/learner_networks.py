"""What learners that take directed graphs alone must keep besides: a network comes out, and no other structure is paid
for."""

from __future__ import annotations

import numpy as np

from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.models.networks import network_of
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.directed import CHAIN, awkward_networks
from dpgm_core.testing.doors import Door, TrappedRecords, live_curator
from dpgm_core.testing.learning import learn
from dpgm_core.testing.oracles import all_records
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


@CHECKS.add(needs="directed")
def a_network_comes_out(subject: LearnerSubject) -> None:
    """However little is known, the model is a Bayesian network over the graph given: its potentials are the logarithms
    of conditional tables. Cannot show: that they are the right ones."""
    networks = awkward_networks()
    for name in ("two parents", "against the domain's order", "a parent of one label"):
        structure = networks[name]
        codes = all_records(structure)[np.random.default_rng(1).integers(0, structure.domain.cells, 300)]
        for sunk in (False, True):
            where = f"{name}, all counts negative" if sunk else name
            model = learn(subject, codes, structure, sunk=sunk).fit.model
            try:
                found, _ = network_of(model)
            except StructureError as error:
                require(False, f"{where}: {error}")
                raise
            require(
                found == Dag.of(structure), f"{where}: the network is over {found.parents}, not over what was given"
            )


@CHECKS.add(needs="directed")
def what_is_no_graph_is_refused_unpaid(subject: LearnerSubject) -> None:
    """A chain of cliques, a cycle and tied cliques are refused with StructureError by `check`, and by `learn` before it
    has asked for a release. Cannot show: other structures."""
    structures = awkward_structures()
    for name, structure in {"chain": CHAIN, "cycle": structures["cycle"], "tied": structures["tied"]}.items():
        _refused(subject, name, structure)


def _refused(subject: LearnerSubject, name: str, structure: Structure) -> None:
    try:
        subject.component.check(structure, JunctionTree())
    except StructureError:
        pass
    else:
        require(False, f"{name}: it takes directed graphs alone, and `check` lets this pass, which is none")
    for kind in ("pure", "approx"):
        door = Door(live_curator(TrappedRecords(np.zeros((9, len(structure.domain)), np.int64)), structure, kind))
        try:
            subject.component.learn(door, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
        except (StructureError, BudgetError):
            require(not door.handed, f"{name}: it is no directed graph, and `learn` refuses that after a release")
        else:
            require(False, f"{name}: `check` refuses it, and `learn` makes a model over it")
