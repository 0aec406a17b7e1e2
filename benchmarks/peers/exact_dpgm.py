"""Ours: `junction-tree` with every executor that is here."""

from benchmarks.peers.served import Variant


def executors():
    """Names of executors, "" where the component has no such option yet."""
    from importlib.util import find_spec

    from attrs import fields_dict

    from dpgm_core.inference.junction_tree.engine import JunctionTree

    if "executor" not in fields_dict(JunctionTree):
        return [""]
    return ["numba", "numpy"] if find_spec("numba") else ["numpy"]


def structure_of(model):
    """The structure, made anew: what it remembers of its elimination is not shared."""
    from dpgm_core.domain.domain import Domain
    from dpgm_core.structure.structure import Structure

    domain = Domain.from_sizes({f"x{i}": size for i, size in enumerate(model.sizes)})
    return Structure(domain, [tuple(f"x{i}" for i in clique) for clique in model.cliques])


def engine_of(structure, executor):
    """Compiled for the structure; executor: of `executors`."""
    from dpgm_core.inference.junction_tree.engine import JunctionTree

    return JunctionTree(**({"executor": executor} if executor else {})).compile(structure)


def variants(model, only=None):
    """One for each executor, or that one only."""
    from dpgm_core.structure.tables import Tables

    structure = structure_of(model)
    sets = [Tables(structure, row) for row in model.theta]

    def read(beliefs):
        return [beliefs.marginals[clique] for clique in structure.cliques], beliefs.log_partition

    found = []
    for executor in executors():
        if only not in (None, executor or "numpy"):
            continue
        engine = engine_of(structure, executor)
        found.append(Variant(executor or "numpy", lambda number, engine=engine: engine.infer(sets[number]), read))
    return found
