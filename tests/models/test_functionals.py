"""Functionals: values by definition, influence functions as derivatives, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpgm_core import InferenceError, OptionError
from dpgm_core.models.functionals import FAMILIES, Functional, Moments, Regression

A, B, Y = np.indices((3, 2, 3)).reshape(3, -1).astype(float)
DESIGN = np.stack([np.ones(18), A, B], axis=1)
OUTCOMES = {
    "linear": Y,
    "poisson": Y,
    "logistic": (Y > 0).astype(float),
    "multinomial": np.stack([Y == 1, Y == 2], axis=1),
}


def regression(family, **facts):
    """A regression of y on a and b."""
    names = ("1", "a", "b") if family != "multinomial" else ("1=1", "a=1", "b=1", "1=2", "a=2", "b=2")
    defaults = {"attributes": ("a", "b", "y"), "design": DESIGN, "outcome": OUTCOMES[family]}
    return Regression(names=names, family=family, **(defaults | facts))


CORRELATION = Moments(
    attributes=("a", "y"),
    names=("ratio", "difference"),
    features=np.stack([A * Y, A, B]),
    function=lambda m: ([m[0] / m[1], m[1] - m[2]], [[1 / m[1], -m[0] / m[1] ** 2, 0], [0, 1, -1]]),
)


def loss(family, coefficients, weights):
    """Minus the log-likelihood, by its definition for each family."""
    predictor = DESIGN @ coefficients.reshape(-1, 3).T
    if family == "linear":
        return weights @ ((Y - predictor[:, 0]) ** 2) / 2
    if family == "poisson":
        return weights @ (np.exp(predictor[:, 0]) - Y * predictor[:, 0])
    odds = np.concatenate([np.ones((18, 1)), np.exp(predictor)], axis=1)
    label = (Y if family == "multinomial" else Y > 0).astype(int)
    return -weights @ np.log(odds[np.arange(18), label] / odds.sum(axis=1))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_coefficients_are_of_maximum_likelihood(family, seed):
    """No other coefficients are likelier, and the root of the signed equation is the same where nothing is negative."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(18))
    one = regression(family)
    values, influence = one.evaluate(weights)
    best = minimize(lambda b: loss(family, b, weights), values + 0.05, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(values, best.x, atol=2e-4)
    assert loss(family, values, weights) <= best.fun + 1e-12
    np.testing.assert_allclose(influence @ weights, 0, atol=1e-9)
    np.testing.assert_allclose(one.solve(weights, values + 0.01, 50), values, atol=1e-8)


@pytest.mark.parametrize("one", [*map(regression, FAMILIES), CORRELATION], ids=[*FAMILIES, "moments"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_influence_is_the_derivative_towards_a_cell(one, seed):
    """Of moving a small share of the records to each cell: central differences, to their error."""
    weights = np.random.default_rng(seed).dirichlet(np.full(18, 3.0))
    influence, step = one.evaluate(weights)[1], 1e-5
    assert isinstance(one, Functional) and influence.shape == (len(one.names), 18)
    for cell in (0, 7, 17):
        moved = [weights + sign * step * (np.eye(18)[cell] - weights) for sign in (1, -1)]
        slope = (one.evaluate(moved[0])[0] - one.evaluate(moved[1])[0]) / (2 * step)
        np.testing.assert_allclose(influence[:, cell], slope, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("start", [2005.0, -1.7e9])
def test_a_column_far_from_zero_is_no_separation(start):
    """Years, or seconds since 1970, beside a constant: values and influence are those around 0, whatever the units."""
    steps = np.arange(17.0)
    x, y = (one.reshape(-1) for one in np.meshgrid(steps * 1000.0, [-4e4, 9e4], indexing="ij"))
    table = np.stack([1 + steps % 5 + 3 * steps, 3 + steps % 4], axis=1).reshape(-1)
    results = []
    for shift in (0.0, start):
        design = np.stack([np.ones(len(x)), x + shift], axis=1)
        one = Regression(attributes=("y", "x"), names=("Intercept", "x"), family="linear", design=design, outcome=y)
        (end, slope), influence = one.evaluate(table / table.sum())
        root = one.solve(table, np.array([end, slope * 1.5]), 50)
        assert root is not None
        results.append([end + slope * (shift + 5e3), slope, root[0] + root[1] * (shift + 5e3), root[1], *influence[1]])
    assert results[0][1] == pytest.approx(np.polyfit(x, y, 1, w=np.sqrt(table))[0], rel=1e-8)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4)


def test_cells_that_are_left_out_change_nothing():
    """A regression of complete cases is that of the other cells alone."""
    weights = np.random.default_rng(3).dirichlet(np.ones(18))
    included = A < 2
    values, influence = regression("logistic", included=included).evaluate(weights)
    alone = np.where(included, weights, 0)
    np.testing.assert_allclose(values, regression("logistic").evaluate(alone / alone.sum())[0])
    assert not influence[:, ~included].any()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"design": np.stack([np.ones(18), A, 2 * A], axis=1)}, "design is singular: b says the same as a; leave"),
        ({"design": np.stack([np.ones(18), A, 0 * A], axis=1)}, "design is singular: b is 0 for all records; leave"),
        ({"outcome": (A > 1).astype(float)}, "the covariates separate the outcome"),
        ({"included": np.zeros(18, bool)}, "probability 0 to all cells that this regression includes"),
    ],
)
def test_a_regression_without_a_finite_answer_says_why(facts, message):
    """Singular designs by column, separation, and nothing to fit."""
    with pytest.raises(InferenceError, match=message):
        regression("logistic", **facts).evaluate(np.full(18, 1 / 18))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"family": "probit"}, "family is one of linear, logistic"),
        ({"outcome": np.zeros(17)}, "must have as many rows"),
        ({"included": np.ones(3, bool)}, "must have as many rows"),
        ({"outcome": np.zeros((18, 2))}, "3 columns and 2 equations has other names"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(facts, message):
    """When the regression is made."""
    with pytest.raises(OptionError, match=message):
        evaluated = {"family": "logistic", "outcome": OUTCOMES["logistic"]} | facts
        Regression(attributes=("a", "b", "y"), names=("1", "a", "b"), design=DESIGN, **evaluated)


def test_a_ratio_to_nothing_is_refused():
    """Where the model gives probability 0 to what is divided by; a number that is defined is not named."""
    with pytest.raises(InferenceError, match=r"^ratio: the model gives probability 0"):
        CORRELATION.evaluate(np.where(A == 0, 1 / 6, 0))


def test_a_root_of_a_table_that_has_none_is_not_made_up():
    """With negative cells a likelihood may have no maximum: None."""
    weights = np.where(Y > 0, 0.2, -0.1) * (A - 1)
    assert regression("logistic").solve(weights, np.zeros(3), 20) is None


def test_functions_of_expectations_at_counts():
    """Those of the shares, with the influence functions of sums of counts; nan where a cell of them is negative."""
    odds = Moments(
        attributes=("a",),
        names=("log odds", "share"),
        features=np.eye(2),
        function=lambda m: ([np.log(m[1]) - np.log(m[0]), m[1]], [[-1 / m[0], 1 / m[1]], [0, 1]]),
    )
    counts = np.array([30.0, 10.0])
    values, influence = odds.at(counts)
    np.testing.assert_allclose(values, odds.evaluate(counts / 40)[0])
    for cell in np.eye(2):
        moved = (odds.at(counts + 1e-4 * cell)[0] - odds.at(counts - 1e-4 * cell)[0]) / 2e-4
        np.testing.assert_allclose(influence @ cell, moved, rtol=1e-6)
    assert np.isnan(odds.at(np.array([41.0, -1.0]))[0]).tolist() == [True, False]
    assert np.isnan(odds.at(np.array([-41.0, 1.0]))[0]).all()


def test_a_corrected_table_gives_no_value_where_a_group_has_no_mass_and_nothing_is_warned_of():
    """Such as where noise makes a group's cells 0 together, or a table's: nan, and functions that are finite."""
    features = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])

    def ratio(means):
        return [means[1] / means[0], means[1]], [[-means[1] / means[0] ** 2, 1 / means[0]], [0.0, 1.0]]

    moments = Moments(attributes=("a", "b"), names=("ratio", "share"), features=features, function=ratio)
    with np.errstate(all="raise"):
        values, influence = moments.at(np.array([-0.25, 0.25, 0.5, 0.5]))
        assert np.isnan(values[0]) and values[1] == 0.25 and np.isfinite(influence).all()
        values, influence = moments.at(np.array([-0.5, 0.25, 0.0, 0.0]))
    assert np.isnan(values).all() and np.isfinite(influence).all()
