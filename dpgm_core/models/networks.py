"""Models as Bayesian networks: conditional tables of a directed graph, and the network nearest to a model."""

from __future__ import annotations

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import StructureError
from dpgm_core.models.cpds import cpds_of
from dpgm_core.models.model import Model
from dpgm_core.structure.dag import Dag, check_dag

__all__ = ["cpds", "network_of", "project"]

#: How far a row of a network's tables may be from 1 in sum.
_ROUNDING = 1e-6


def cpds(model: Model, dag: Dag) -> dict[str, FloatArray]:
    """The model's P(attribute | parents) for every attribute, axes in the order of the family: child, then parents.

    dag: over the model's domain, or over that of `model.coarse`. Where a state of the parents has probability 0 the row
    is uniform. Attributes that no release measured are taken as the model has them. Raises TooLarge where exact
    inference does not fit, StructureError for another domain.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> from dpgm_core.tables import Tables
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> model = Model(pair, Tables(pair, np.log([0.4, 0.1, 0.2, 0.3])))
    >>> cpds(model, Dag(pair.domain, {"b": ["a"]}))["b"].round(3).tolist()
    [[0.8, 0.4], [0.2, 0.6]]
    """
    return _conditionals(model, dag)[0]


def project(model: Model, dag: Dag) -> Model:
    """The network over `dag` that is nearest to the model: of all networks q over it, KL(model || q) is least.

    Its tables are the model's own P(attribute | parents); it has the model's releases and facts, but no refits
    (`replicates`), and log Z = 0. dag: over the domain of `model.structure`. Rows of parents' states that the model
    rules out are uniform, and a note among its provenance counts them. Free in privacy. Raises StructureError where the
    graph does not hold the domain's constraints (`Dag.check_constraints`).

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> from dpgm_core.tables import Tables
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> model = Model(pair, Tables(pair, np.log([0.4, 0.1, 0.2, 0.3])))
    >>> nearest = project(model, Dag(pair.domain, {}))
    >>> nearest.marginal("a").round(3).tolist(), round(model.kl(nearest), 4)
    ([0.5, 0.5], 0.0863)
    """
    if check_dag(dag).domain != _checked(model).structure.domain:
        raise StructureError("a model is projected on a graph over the domain of its structure; this is over another")
    dag.check_constraints()
    tables, uniform = _conditionals(model, dag)
    network = Model.from_cpds(
        dag,
        tables,
        releases=model.releases,
        conversion_delta=model.conversion_delta,
        provenance=model.provenance,
        inference=model.inference,
    )
    if not uniform:
        return network
    note = f"{uniform} rows of conditional tables are uniform: the model rules their parents' states out"
    notes = model.provenance.get("notes", ())
    return network if note in notes else network.noted([*notes, note])  # projected before, it says so already


def network_of(model: Model) -> tuple[Dag, dict[str, FloatArray]]:
    """The graph and the conditional tables of a model that is a Bayesian network, over all codes of its domain.

    Raises StructureError for any other model.
    """
    try:
        dag = Dag.of(_checked(model).structure)
        with np.errstate(over="ignore"):  # no probability, and found to be none
            tables = {family[0]: np.exp(model.potentials[family]) for family in dag.families}
        if any(abs(table.sum(axis=0) - 1).max() > _ROUNDING for table in tables.values()):
            raise StructureError("its tables are no conditional probabilities")
        dag.check_constraints(tables)
    except StructureError as error:
        raise StructureError(
            f"the model is no Bayesian network: {error}; learner 'bayes-net' makes one, and project(model, dag)"
        ) from None
    if model.coarse is model:
        return dag, tables
    fine = Dag(model.domain, dag.parents)
    return fine, cpds(model, fine)


def _checked(model: Model) -> Model:
    if not isinstance(model, Model):
        raise StructureError(f"a Model is needed, got {type(model).__name__}")
    return model


def _conditionals(model: Model, dag: Dag) -> tuple[dict[str, FloatArray], int]:
    """The tables, and how many of their rows are uniform for want of any probability."""
    _checked(model)
    source = (model.coarse if check_dag(dag).domain == model.structure.domain else model).using(unmeasured="uniform")
    if dag.domain != source.domain:
        raise StructureError("the graph is over another domain than the model: attributes or labels differ")
    joints = source.marginals_of(dag.families)
    possible = {child: there for child in dag.parents if (there := dag.possible(child)) is not None}
    return cpds_of({family[0]: joints[family] for family in dag.families}, possible)
