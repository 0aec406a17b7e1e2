"""Conditional probability tables as arrays: axes are the child, then its parents; along the first they sum to 1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.constraints import Mask
from dpgm_core.errors import StructureError, did_you_mean
from dpgm_core.structure.dag import Dag, check_dag
from dpgm_core.structure.tables import Tables

__all__ = ["cpds_of", "log_cpds"]

#: Largest distance of a row's sum from 1.
_SUM_TOLERANCE = 1e-9


def cpds_of(
    joints: Mapping[str, FloatArray], possible: Mapping[str, Mask] | None = None
) -> tuple[dict[str, FloatArray], int]:
    """P(child | parents) from tables of child and parents, child's axis first, and how many rows had no mass.

    joints: child -> anything non-negative and proportional to the joint, counts among them. Rows without mass are
    uniform. possible: child -> where constraints allow records, over which such rows are uniform if they have any.
    """
    tables, empty = {}, 0
    for child, joint in joints.items():
        mass = joint.sum(axis=0, keepdims=True)
        there = np.broadcast_to(mass > 0, joint.shape)
        table = np.full(joint.shape, 1 / len(joint))
        if possible is not None and child in possible:
            room = possible[child].sum(axis=0, keepdims=True)
            np.divide(possible[child], room, out=table, where=np.broadcast_to(room > 0, joint.shape))
        np.divide(joint, mass, out=table, where=there)
        tables[child] = table
        empty += int(mass.size - np.count_nonzero(mass > 0))
    return tables, empty


def log_cpds(dag: Dag, cpds: Mapping[str, FloatArray]) -> Tables:
    """The logarithms, nats, over the graph's structure; -inf for zeros.

    Raises StructureError for a missing or surplus table, a wrong shape, and for what are no probabilities: negative,
    NaN or infinite values, rows that do not sum to 1 within 1e-9; and where constraints of the domain are not zeros of
    conditional tables, see `Dag.check_constraints`.
    """
    check_dag(dag)
    if not isinstance(cpds, Mapping):
        raise StructureError(f"a network needs a table for each attribute, by its name, got {type(cpds).__name__}")
    parts = []
    for name in cpds:
        if name not in dag.parents:
            raise StructureError(
                f"a conditional table is given for {name!r}, which is no attribute{did_you_mean(name, dag.parents)}"
            )
    for family in dag.families:
        child, shape = family[0], dag.domain.shape(family)
        if child not in cpds:
            raise StructureError(f"there is no conditional table for {child!r}; give one for each attribute")
        try:
            table = np.asarray(cpds[child])
        except ValueError:  # lists of unequal length
            table = np.asarray(None)
        if table.dtype.kind not in "iuf" or table.shape != shape:
            raise StructureError(
                f"the conditional table of {child!r} must hold numbers of shape {shape}, axes "
                f"{' x '.join(family)}; got {table.dtype} of shape {table.shape}"
            )
        table = table.astype(np.float64)  # first: sums of whole numbers wrap, and of short floats are rounded
        if not ((table >= 0) & (table < np.inf)).all():
            raise StructureError(f"the conditional table of {child!r} holds negative, NaN or infinite values")
        with np.errstate(over="ignore"):
            worst = float(np.abs(table.sum(axis=0) - 1).max())
        if worst > _SUM_TOLERANCE:
            raise StructureError(
                f"a row of the conditional table of {child!r} is off from 1 by {worst:.3g} in sum; its first axis is "
                "the child's, and along it the probabilities of each parents' state sum to 1; numbers that were "
                "rounded are divided by table.sum(axis=0)"
            )
        parts.append(table.reshape(-1))
    dag.check_constraints({child: np.asarray(table, dtype=np.float64) for child, table in cpds.items()})
    with np.errstate(divide="ignore"):
        return Tables(dag.structure(), np.log(np.concatenate(parts)))
