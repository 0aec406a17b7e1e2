"""Parameters of a pairwise model from the weights of regressions: its edges and its potentials.

A regression's weights tell the log-odds of an attribute's labels given the others. Each attribute's are written as one
function V_u(j, b), of its label u and another attribute's label b, centred over both (what a mean adds goes into the
field); then W_ij is the mean of what i's regression says and of what j's says, transposed. Sources: Zhang et al.
(2020), Algorithm 2 (A_ij = w_j / 2) and Algorithm 3 (its centring and mean over v); averaging both directions is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from attrs import frozen

from dpgm_core import Clique, Domain, FloatArray, Model, NoisyTables, Structure, Tables
from dpgm_core.learning import Regressions

__all__ = ["Parameters", "field_of", "centre_weights", "fields_alone", "parameters_of"]

#: +1 is code 0.
_SIGNS = np.array([1.0, -1.0])


@frozen(kw_only=True, eq=False)
class Parameters:
    """Parameters of a model from regressions: log-potentials, nats.

    pairs: of each candidate, axes in its order, rows and columns centred. fields: of each attribute, (labels,), sum 0.
    """

    pairs: Mapping[Clique, FloatArray]
    fields: Mapping[str, FloatArray]

    def strength(self, pair: Clique) -> float:
        """max |W_ij(a, b)|; of two binary attributes |A_ij|."""
        return float(np.abs(self.pairs[pair]).max())

    def edges(self, least: float) -> list[Clique]:
        """The pairs whose strength is above least / 2, in the candidates' order."""
        return [pair for pair in self.pairs if self.strength(pair) > least / 2]

    def model(self, domain: Domain, edges: Iterable[Clique], others: Mapping[str, FloatArray]) -> Model:
        """The model over these edges and every attribute of the fields or the others alone.

        others: fields of attributes that were not regressed.
        """
        fields = {**others, **self.fields}
        pairs = list(edges)
        structure = Structure(domain, [*((name,) for name in domain.names if name in fields), *pairs])
        arrays = {(name,): field for name, field in fields.items()} | {pair: self.pairs[pair] for pair in pairs}
        return Model(structure, Tables.from_arrays(structure, arrays))


def parameters_of(regressions: Regressions, weights: FloatArray) -> Parameters:
    """The parameters that weights stand for.

    weights: (rows, columns) of the regressions, nats.

    >>> from dpgm_core import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> own = Regressions(candidates=pair, loss="logistic")
    >>> found = parameters_of(own, np.array([[0.0, 0.8, 0.2], [0.4, 0.0, 0.0]]))
    >>> found.pairs["a", "b"].round(3).tolist(), found.fields["a"].tolist()
    ([[0.3, -0.3], [-0.3, 0.3]], [0.1, -0.1])
    """
    candidates = regressions.candidates
    sizes = candidates.domain.sizes
    places = _places(regressions)
    tables: dict[str, FloatArray] = {}
    for name in regressions.nodes:
        rows = [number for number, (one, _) in enumerate(regressions.rows) if one == name]
        codes = [regressions.rows[number][1] for number in rows]
        by_label = _by_label(regressions.loss, weights[rows], codes, sizes[name])
        tables[name] = by_label if regressions.loss == "logistic" else centre_weights(by_label, places)
    pairs: dict[Clique, FloatArray] = {}
    for one, other in candidates.cliques:
        own, back = tables[one][:, places[other]], tables[other][:, places[one]]
        if regressions.loss == "logistic":
            own, back = own * _SIGNS, back * _SIGNS
        pairs[one, other] = (own + back.T) / 2
    return Parameters(pairs=pairs, fields={name: table[:, -1] for name, table in tables.items()})


def centre_weights(weights: FloatArray, columns: Mapping[str, list[int]]) -> FloatArray:
    """Return the same function of one-hot codes with each attribute's weights of mean 0: <U, x> = <w, x>.

    weights: (rows, columns), the constant last. columns: those of each attribute's labels.

    >>> centre_weights(np.array([[1.0, 3.0, 0.5]]), {"a": [0, 1]}).tolist()
    [[-1.0, 1.0, 2.5]]
    """
    after = weights.copy()
    for own in columns.values():
        mean = weights[:, own].mean(axis=1, keepdims=True)
        after[:, own] -= mean
        after[:, -1:] += mean
    return after


def field_of(counts: FloatArray, deviation: float) -> FloatArray:
    """Log-potentials of an attribute by itself from its noisy counts, (labels,): logarithms, of mean 0.

    Counts below 0 are taken as 0, and each is given a quarter of the noise's deviation.

    >>> field_of(np.array([-3.0, 5.0]), 4.0).round(3).tolist()
    [-0.896, 0.896]
    """
    logs = np.log(np.maximum(counts, 0.0) + max(0.25 * deviation, 0.25))
    return np.asarray(logs - logs.mean())


def fields_alone(release: NoisyTables, fields: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """`field_of` of every attribute that was measured and has no field yet."""
    alone_by_name = {}
    for number, clique in enumerate(release.structure.cliques):
        if len(clique) == 1 and clique[0] not in fields:
            counts = release.tables.group(number).astype(np.float64)
            alone_by_name[clique[0]] = field_of(counts, math.sqrt(float(release.variances[number])))
    return alone_by_name


def _by_label(loss: str, weights: FloatArray, codes: list[tuple[int, ...]], labels: int) -> FloatArray:
    """V, (labels, columns), of mean 0 over labels."""
    if loss == "logistic":  # P(+1) = sigma(w x), x = +-1: half of w for one label, and half against the other
        return np.asarray(np.outer(_SIGNS, weights[0]) / 2)
    table: FloatArray = np.zeros((labels, weights.shape[1]))
    if loss == "softmax":
        table[[code for (code,) in codes]] = weights
        return np.asarray(table - table.mean(axis=0))
    for row, (one, other) in zip(weights, codes, strict=True):  # (v, u) is the mirror of (u, v)
        table[one] += row / labels
        table[other] -= row / labels
    return table


def _places(regressions: Regressions) -> dict[str, list[int]]:
    """The columns of each attribute's labels; of binary attributes the one column, twice."""
    places: dict[str, list[int]] = {name: [] for name in regressions.nodes}
    for number, (names, codes) in enumerate(regressions.columns):
        if len(names) == 1:
            places[names[0]] += [number] * (2 if not codes else 1)
    return places
