"""Models as Bayesian networks: conditional tables over a directed graph, and projection on a network."""

from __future__ import annotations

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import StructureError
from dpgm_core.models.cpds import cpds_of
from dpgm_core.models.model import Model
from dpgm_core.structure.dag import Dag, check_dag

__all__ = ["cpds", "network_of", "project"]

#: Largest distance of a row's sum from 1.
_SUM_TOLERANCE = 1e-6


def cpds(model: Model, dag: Dag) -> dict[str, FloatArray]:
    """Return the model's P(attribute | parents) for every attribute, axes in the order child, then parents.

    Parameters
    ----------
    model : Model
    dag : Dag
        Over the model's domain, or over that of `model.coarse`.

    Returns
    -------
    dict of str to array
        Rows of parents' states with probability 0 are uniform. Unmeasured attributes are as the potentials have them.

    Raises
    ------
    TooLarge
        Exact inference does not fit.
    StructureError
        The graph is over another domain.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> from dpgm_core.structure.tables import Tables
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> model = Model(pair, Tables(pair, np.log([0.4, 0.1, 0.2, 0.3])))
    >>> cpds(model, Dag(pair.domain, {"b": ["a"]}))["b"].round(3).tolist()
    [[0.8, 0.4], [0.2, 0.6]]
    """
    return _conditionals(model, dag)[0]


def project(model: Model, dag: Dag) -> Model:
    """Return the network over `dag` that is nearest to the model: of all networks q over it, KL(model || q) is least.

    Parameters
    ----------
    model : Model
    dag : Dag
        Over the domain of `model.structure`.

    Returns
    -------
    Model
        Its tables are the model's own P(attribute | parents); it has the model's releases and provenance, no
        replicates, and log Z = 0. Rows of parents' states that the model rules out are uniform, and a note in the
        provenance counts them. The projection is free in privacy.

    Raises
    ------
    StructureError
        The graph is over another domain or violates its constraints (`Dag.check_constraints`).

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> from dpgm_core.structure.tables import Tables
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
    """Return graph and conditional tables of a model that is a Bayesian network, over all codes of its domain.

    Raises StructureError for any other model.
    """
    try:
        dag = Dag.of(_checked(model).structure)
        with np.errstate(over="ignore"):  # no probability, and found to be none
            tables = {family[0]: np.exp(model.potentials[family]) for family in dag.families}
        if any(abs(table.sum(axis=0) - 1).max() > _SUM_TOLERANCE for table in tables.values()):
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
    """Return the conditional tables, and the number of uniform rows, whose parents have probability 0."""
    _checked(model)
    source = (model.coarse if check_dag(dag).domain == model.structure.domain else model).using(unmeasured="uniform")
    if dag.domain != source.domain:
        raise StructureError("the graph is over another domain than the model: attributes or labels differ")
    joints = source.marginals_of(dag.families)
    possible = {child: there for child in dag.parents if (there := dag.possible(child)) is not None}
    return cpds_of({family[0]: joints[family] for family in dag.families}, possible)
