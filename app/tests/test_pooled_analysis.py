"""Analyses whose table is too large: bins of numbers are pooled, which moves coefficients by little."""

import numpy as np
import pytest

import dpgm
from dpgm import Budget, Domain, Model, SeededRandomness, Structure, Tables
from dpgm.analysis import analyse
from dpgm_core.errors import TooLarge
from dpgm_core.models.analysis import Pools
from tests.models.enumerated import merge_columns, merged_session

pytest.importorskip("formulaic")

_BINS = 32
EDGES = {
    "y": np.linspace(-17, 39, _BINS + 1),
    "a": np.linspace(15, 85, _BINS + 1),
    "b": np.linspace(12, 48, _BINS + 1),
}
DOMAIN = Domain.from_dict(
    {
        "attributes": {
            **{name: {"type": "number", "bins": ends.tolist(), "cap": True} for name, ends in EDGES.items()},
            "town": {"labels": ["A", "B"], "unknown": "A"},
        }
    }
)
#: Of y on a and b, which have a correlation of .5.
COEFFICIENTS = np.array([10, 0.5, -0.8])


def values_of(seed: int, count: int = 5000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    covariates = rng.multivariate_normal([50, 30], [[100, 25], [25, 25]], count)
    y = COEFFICIENTS[0] + covariates @ COEFFICIENTS[1:] + rng.normal(0, 6, count)
    return np.column_stack([y, covariates])


def codes_of(values: np.ndarray) -> np.ndarray:
    columns = [
        np.clip(np.searchsorted(ends, values[:, at], side="right") - 1, 0, _BINS - 1)
        for at, ends in enumerate(EDGES.values())
    ]
    return np.stack([*columns, (values[:, 0] > 10).astype(int)], axis=1)


def least_squares(values: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(values)), values[:, 1:]])
    return np.linalg.solve(design.T @ design, design.T @ values[:, 0])


def model_of(values: np.ndarray, budget: Budget, seed: int = 0) -> Model:
    """A model near the population, with a release of all pairs of these values."""
    whole = Structure(DOMAIN, [DOMAIN.names])
    shares = np.full(DOMAIN.shape(DOMAIN.names), 1e-3)
    np.add.at(shares, tuple(codes_of(values_of(99, 100_000)).T), 1)
    pairs = Structure(DOMAIN, [("y", "a"), ("y", "b"), ("a", "b"), ("a", "town"), ("b", "town")])
    release = dpgm.release(codes_of(values), pairs, budget, neighbours="add-remove", randomness=SeededRandomness(seed))
    return Model(whole, Tables(whole, np.log(shares / shares.sum()).reshape(-1)), releases=[release])


@pytest.fixture(scope="module")
def exact() -> Model:
    """So much budget that discrete noise is 0 in all draws."""
    return model_of(values_of(1), Budget.pure(10_000))


@pytest.fixture
def few_cells(monkeypatch) -> None:
    """A limit that three of these columns exceed, and two do not."""
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 12_000)


def test_without_noise_a_pooled_regression_is_least_squares_on_the_means_of_pools(exact, few_cells, monkeypatch):
    """In closed form, to 1e-5, before it is calibrated; and it says what was pooled."""
    monkeypatch.setattr("dpgm.analysis.calibrate", lambda model, formula, estimates, *rest: estimates)
    found = analyse(exact, "y ~ a + b")
    assert set(found.pooled) == {"a", "b"} and not found.not_promised
    codes, scores = codes_of(values_of(1)), []
    for at, name in enumerate(("y", "a", "b")):
        middle = (EDGES[name][1:] + EDGES[name][:-1]) / 2
        if name in found.pooled:
            bins, share = found.pooled[name]
            pools = next(
                one
                for one in (Pools.of(DOMAIN[name], exact.marginal(name), None, few) for few in range(_BINS, 7, -1))
                if one.bins == bins
            )
            middle = np.array([float(pools.attribute.labels[code]) for code in pools.codes[:_BINS]])
            assert 8 <= bins < _BINS and 0.98 < share < 1
        scores.append(middle[codes[:, at]])
    assert found.estimates.estimate == pytest.approx(least_squares(np.column_stack(scores)), abs=1e-5)
    named = ", ".join(f"{name} to {bins} ({100 * share:.1f} %)" for name, (bins, share) in found.pooled.items())
    assert f"and have so much of a column's variance: {named}; coefficients" in str(found)
    assert "may be nearer to 0" in str(analyse(exact, "y ~ a*b"))
    assert found.to_dict()["pooled"]["a"] == {"bins": found.pooled["a"][0], "variance_share": found.pooled["a"][1]}


def test_without_noise_slopes_over_eight_pools_are_those_of_the_values(exact, monkeypatch):
    """Least squares on the values themselves, in closed form, to 2 %; without calibration they are 6 % nearer to 0."""
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 1300)
    found = analyse(exact, "y ~ a + b")
    assert {name: bins for name, (bins, _) in found.pooled.items()} == {"y": 8, "a": 8, "b": 8}
    assert found.estimates.estimate[1:] == pytest.approx(least_squares(values_of(1))[1:], rel=0.02)


@pytest.mark.parametrize("cells", [1300, 12_000])
def test_intervals_over_pools_hold_the_coefficients(monkeypatch, cells):
    """Of 24 seeded releases at epsilon = 20 at least .9 of the coefficients are in their intervals of 95 %, and mean
    slopes are off by at most 1 %, with eight pools a column and with eighteen."""
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", cells)
    slopes, inside = [], []
    for seed in range(24):
        found = analyse(model_of(values_of(seed), Budget.pure(20), seed), "y ~ a + b").estimates
        slopes.append(found.estimate[1:])
        inside.append((found.low <= COEFFICIENTS) & (found.high >= COEFFICIENTS))
    assert np.mean(slopes, axis=0) == pytest.approx(COEFFICIENTS[1:], rel=0.01)
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize(
    ("text", "options", "pooled"),
    [
        ("town ~ a + b", {"event": "B"}, {"a", "b"}),
        ("y ~ a + town + b", {}, {"y", "a", "b"}),
        ("~ y + a + b", {}, {"y", "a", "b"}),
        ("y ~ town:a", {"groups": True}, {"y"}),
        ("y ~ b", {"groups": True, "given": {"town": "B"}}, {"y"}),
        ("y ~ a", {"given": {"town": "B"}}, {"a"}),
    ],
)
def test_other_questions_are_near_those_without_pools(exact, monkeypatch, text, options, pooled):
    """Within a standard error; labels of groups, and conditions, stay as they are."""
    whole = analyse(exact, text, **options)
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 1800)
    found = analyse(exact, text, **options)
    assert set(found.pooled) == pooled and found.names == whole.names
    assert np.all(np.abs(found.estimates.estimate - whole.estimates.estimate) < whole.estimates.standard_error)
    assert ("corrected for the rest" in str(found)) == (found.kind == "regression")


def test_what_cannot_be_pooled_is_named(exact, monkeypatch):
    """Columns in C(), rows, and pools that do not suffice."""
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 6000)
    with pytest.raises(
        TooLarge, match=r"leave some out, such as a \(33 labels\), b \(33 labels\); columns of numbers are"
    ):
        analyse(exact, "y ~ C(a) + C(b)")
    with pytest.raises(TooLarge, match=r"columns of numbers are pooled where they .*, and without rows"):
        analyse(exact, "y ~ a + b", rows=exact.sample(10))
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 100)
    with pytest.raises(TooLarge, match=r"729 combinations, more than 100; .*; 8 bins of y, a, b are still too many"):
        analyse(exact, "y ~ a + b")


#: Four bins in a block, of .8 to .9 standard deviations.
MERGES = {name: [*(np.arange(_BINS) // 4).tolist(), _BINS // 4] for name in EDGES}


def merged_model_of(values: np.ndarray, budget: Budget, seed: int = 0, merges: dict = MERGES) -> Model:
    """A model near the population, with a release of bins and one of all pairs of blocks of them."""
    coarse = DOMAIN.coarsened(merges)
    whole = Structure(coarse, [coarse.names])
    shares = np.full(coarse.shape(coarse.names), 1e-3)
    np.add.at(shares, tuple(merge_columns(codes_of(values_of(99, 100_000)), DOMAIN, merges).T), 1)
    pairs = Structure(coarse, [("y", "a"), ("y", "b"), ("a", "b"), ("a", "town"), ("b", "town")])
    bins, codes = Structure(DOMAIN, [("y",), ("a",), ("b",), ("town",)]), codes_of(values)
    steps = [
        dpgm.release(one, structure, budget, neighbours="add-remove", randomness=SeededRandomness(seed + at))
        for at, (one, structure) in enumerate([(codes, bins), (merge_columns(codes, DOMAIN, merges), pairs)])
    ]
    session = merged_session(DOMAIN, merges, steps)
    return Model(whole, Tables(whole, np.log(shares / shares.sum()).reshape(-1)), releases=[session])


@pytest.fixture(scope="module")
def merged() -> Model:
    return merged_model_of(values_of(1, 20_000), Budget.pure(10_000))


def test_without_noise_slopes_of_merged_bins_are_those_of_the_values(merged):
    """Least squares on the values, in closed form, to 2 %, with a merged outcome, covariate or both, and without an
    intercept; independent inside blocks, slopes are 5 to 12 % nearer to 0."""
    values = values_of(1, 20_000)
    found = analyse(merged, "y ~ a + b")
    assert found.estimates.estimate[1:] == pytest.approx(least_squares(values)[1:], rel=0.02)
    assert "Codes of y, a, b were merged" in str(found)
    assert analyse(merged, "a ~ b").estimates.estimate[1] == pytest.approx(
        np.polyfit(*values.T[[2, 1]], 1)[0], rel=0.02
    )
    without = np.linalg.lstsq(values[:, 1:], values[:, 0], rcond=None)[0]
    assert analyse(merged, "y ~ a + b - 1").estimates.estimate == pytest.approx(without, rel=0.02)
    logistic, over_bins = (
        analyse(one, "town ~ a", event="B").estimates.estimate[1]
        for one in (merged, model_of(values, Budget.pure(10_000)))
    )
    assert logistic == pytest.approx(over_bins, rel=0.03)


def test_a_column_of_one_block_tells_no_slope():
    """Nothing is divided by what is not there; the other slope is that without the column."""
    merges = MERGES | {"b": [0] * _BINS + [1]}
    found = analyse(merged_model_of(values_of(1), Budget.pure(10_000), merges=merges), "y ~ a + b").estimates
    assert found.estimate[2] == pytest.approx(0, abs=0.02) and np.isfinite(found.standard_error).all()
    assert found.estimate[1] == pytest.approx(np.polyfit(*values_of(1).T[[1, 0]], 1)[0], rel=0.03)


def test_intervals_of_merged_bins_hold_slopes_and_correlations():
    """Of 16 seeded releases at epsilon = 20 at least .9 of the slopes and the correlation of .5 are in their intervals
    of 95 %; fresh seeds would have fewer in 3 % of all runs."""
    inside = []
    for seed in range(16):
        model = merged_model_of(values_of(seed), Budget.pure(20), 2 * seed)
        slopes, correlation = analyse(model, "y ~ a + b").estimates, analyse(model, "~ a + b").estimates
        inside.append((slopes.low <= COEFFICIENTS) & (slopes.high >= COEFFICIENTS))
        inside[-1][0] = correlation.low[0] <= 0.5 <= correlation.high[0]
    assert np.mean(inside) >= 0.9


def test_correlations_of_merged_bins_are_those_of_the_values(merged):
    """Without noise to .01, and of a model without releases' corrections to .015, where drawn records lose a tenth."""
    wanted = np.corrcoef(values_of(1, 20_000).T)
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        pair = tuple(EDGES)[one], tuple(EDGES)[other]
        found = analyse(merged, f"~ {' + '.join(pair)}").estimates.estimate[0]
        assert found == pytest.approx(wanted[one, other], abs=0.01)
        assert merged.correlation(*pair, calibrated=True) == pytest.approx(wanted[one, other], abs=0.015)
        assert abs(merged.correlation(*pair)) < 0.94 * abs(wanted[one, other])
