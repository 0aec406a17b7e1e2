"""From weights to parameters: centring, mirrors, and the parameters of models whose conditionals are known."""

import itertools

import numpy as np
import pytest
from dpgm_mrf.frank_wolfe.parameters import centre_weights, parameters_of

from dpgm_core import Domain, Structure
from dpgm_core.learning import Regressions

TERNARY = Domain.from_sizes({"a": 3, "b": 2, "c": 4})
TRIANGLE = [("a", "b"), ("b", "c"), ("a", "c")]


def model(domain, pairs, seed):
    """Random centred pair tables and fields of sum 0."""
    draw = np.random.default_rng(seed)
    tables = {}
    for pair in pairs:
        table = draw.normal(size=domain.shape(pair))
        tables[pair] = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    fields = {name: (lambda one: one - one.mean())(draw.normal(size=domain.sizes[name])) for name in domain.names}
    return tables, fields


def parameters_by_name(domain, tables, fields, name, code):
    """W_name(code, .) of each other attribute by its own name, and the field."""
    actual = {}
    for (one, other), table in tables.items():
        if name in (one, other):
            actual[other if name == one else one] = (table if name == one else table.T)[code]
    return actual, fields[name][code]


def weights_of(regressions, tables, fields, draw):
    """Weights that predict as the model does, with what predictions do not tell drawn at random."""
    domain = regressions.candidates.domain
    actual = np.zeros((len(regressions.rows), len(regressions.columns)))
    loose = {name: draw.normal(size=len(regressions.columns)) for name in domain.names}
    for row, (name, codes) in enumerate(regressions.rows):
        parts = [parameters_by_name(domain, tables, fields, name, code) for code in codes]
        for column, (names, (*code,)) in enumerate(regressions.columns):
            if names and names[0] in parts[0][0]:
                values = [part[0][names[0]] for part in parts]
                if regressions.loss == "logistic":
                    actual[row, column] = 2 * values[0][0]  # w = 2 A
                else:
                    actual[row, column] = values[0][code[0]] - (values[1][code[0]] if len(parts) > 1 else 0)
            elif not names:
                value = parts[0][1] - (parts[1][1] if len(parts) > 1 else 0)
                actual[row, column] = value
            if regressions.loss == "softmax" and regressions.allowed[row, column]:
                actual[row, column] += loose[name][column]  # of all labels alike: no probability sees it
        if regressions.loss != "logistic":
            for other in domain.names:
                own = [number for number, (names, _) in enumerate(regressions.columns) if names == (other,)]
                if regressions.allowed[row, own].all():  # of all codes alike, and back in the constant
                    shift = draw.normal()
                    actual[row, own] += shift
                    actual[row, -1] -= shift
    return actual


@pytest.mark.parametrize(
    ("loss", "sizes"), [("logistic", "222"), ("softmax", "324"), ("softmax", "333"), ("pairs", "324"), ("pairs", "222")]
)
def test_weights_of_a_model_give_its_parameters(loss, sizes):
    """Weights with the model's conditional probabilities give its tables and fields, centred and transposed."""
    domain = Domain.from_sizes(dict(zip("abc", map(int, sizes), strict=True)))
    regressions = Regressions(candidates=Structure(domain, TRIANGLE), loss=loss)
    tables, fields = model(domain, TRIANGLE, 5)
    actual = parameters_of(regressions, weights_of(regressions, tables, fields, np.random.default_rng(6)))
    for pair, table in tables.items():
        np.testing.assert_allclose(actual.pairs[pair], table, atol=1e-12)
        assert actual.strength(pair) == pytest.approx(np.abs(table).max())
    for name, field in fields.items():
        np.testing.assert_allclose(actual.fields[name], field, atol=1e-12)


def test_both_directions_are_averaged():
    """Where the two regressions of a pair disagree the parameter is their mean."""
    regressions = Regressions(candidates=Structure(Domain.from_sizes({"a": 2, "b": 2}), [("b", "a")]), loss="logistic")
    actual = parameters_of(regressions, np.array([[0.0, 1.0, 0.0], [0.2, 0.0, -0.4]]))
    assert actual.pairs["b", "a"].tolist() == [[0.3, -0.3], [-0.3, 0.3]]
    assert actual.fields["b"].tolist() == [-0.2, 0.2]
    assert actual.edges(0.59) == [("b", "a")] and actual.edges(0.61) == []


def test_the_mirror_of_two_labels_says_the_same():
    """The regression of (v, u) is that of (u, v) with the sign turned: labels renamed give parameters renamed."""
    domain = Domain.from_sizes({"a": 3, "b": 3})
    regressions = Regressions(candidates=Structure(domain, [("a", "b")]), loss="pairs")
    draw = np.random.default_rng(7)
    weights = draw.normal(size=(6, 7)) * regressions.allowed
    actual = parameters_of(regressions, weights)
    turned = [2, 0, 1]  # the new code of each code
    columns = [3 * (number // 3) + turned[number % 3] for number in range(6)] + [6]
    mirrored = np.zeros_like(weights)
    place = {row: number for number, row in enumerate(regressions.rows)}
    for number, (name, (u, v)) in enumerate(regressions.rows):
        new = (turned[u], turned[v])
        sign = 1 if new[0] < new[1] else -1
        mirrored[place[name, tuple(sorted(new))], columns] = sign * weights[number]
    again = parameters_of(regressions, mirrored)
    np.testing.assert_allclose(again.pairs["a", "b"][np.ix_(turned, turned)], actual.pairs["a", "b"], atol=1e-12)
    np.testing.assert_allclose(again.fields["a"][turned], actual.fields["a"], atol=1e-12)


def test_centring_keeps_every_prediction():
    """<U, x> = <w, x> for every one-hot x, and each attribute's part of U has mean 0."""
    columns = {"a": [0, 1, 2], "b": [3, 4]}
    weights = np.random.default_rng(8).normal(size=(4, 6))
    actual = centre_weights(weights, columns)
    for one, other in itertools.product(range(3), range(2)):
        x = np.zeros(6)
        x[[one, 3 + other, 5]] = 1
        np.testing.assert_allclose(actual @ x, weights @ x, atol=1e-12)
    for own in columns.values():
        np.testing.assert_allclose(actual[:, own].mean(axis=1), 0, atol=1e-12)
