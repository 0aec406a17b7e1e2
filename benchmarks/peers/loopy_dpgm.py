"""Ours: `loopy-bp` with every executor that is here, 50 undamped sweeps, which flood."""

from benchmarks.peers.exact_dpgm import executors, structure_of
from benchmarks.peers.served import Variant, alone

SWEEPS = 50


def variants(model, only=None):
    """One for each executor."""
    from attrs import fields_dict

    from dpgm_core.inference.loopy.bp import LoopyBP
    from dpgm_core.structure.tables import Tables

    structure = structure_of(model)
    sets = [Tables(structure, row) for row in model.theta]

    def read(beliefs):
        return alone(model, [beliefs.marginals[clique] for clique in structure.cliques]), None

    found = []
    for executor in executors() if "executor" in fields_dict(LoopyBP) else [""]:
        options = {"executor": executor} if executor else {}
        engine = LoopyBP(damping=0.0, tolerance=0.0, max_iterations=SWEEPS, **options).compile(structure)
        found.append(Variant(executor or "numpy", lambda number, engine=engine: engine.infer(sets[number]), read))
    return found
