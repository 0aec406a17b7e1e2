"""Means, variances, quantiles and correlations, against records written out and closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpgm_core import Attribute, Domain, DomainError, InferenceError, Model, OptionError, SeededRandomness, Structure
from dpgm_core._util.arrays import ratio
from dpgm_core.models.numeric import (
    calibrate_correlation,
    correlation_of,
    mean_of,
    number_distribution,
    quantile_of,
    share_of,
    variance_of,
)
from tests.models.enumerated import random_model

DOMAIN = Domain.from_dict(
    {
        "age": {"type": "integer", "bins": [0, 5, 10, 20]},
        "wage": {"type": "number", "bins": [1, 3, 10, 100], "shape": "log"},
        "rank": {"type": "integer", "labels": ["3", "1", "2", "none"]},
        "sex": ["F", "M"],
    }
)
STRUCTURE = Structure(DOMAIN, [("age", "wage"), ("age", "rank"), ("wage", "rank"), ("sex", "age")])


def model_of(seed: int) -> Model:
    return random_model(STRUCTURE, seed)


def spelled(name: str, code: int) -> np.ndarray:
    """Numbers that stand for a code's law: all of them, or very many at even places of it; none of a missing one."""
    if name == "age":
        return [np.arange(5.0), np.arange(5.0, 10), np.arange(10.0, 21), np.zeros(0)][code]
    if name == "rank":
        return [np.array([3.0]), np.array([1.0]), np.array([2.0]), np.zeros(0), np.zeros(0)][code]
    at = (np.arange(4000) + 0.5) / 4000
    ends = [(1, 3), (3, 10), (10, 100)]
    return np.zeros(0) if code == 3 else ends[code][0] * (ends[code][1] / ends[code][0]) ** at


def weighed(name: str, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and their probabilities, in order."""
    parts = [(spelled(name, code), mass) for code, mass in enumerate(table)]
    numbers = np.concatenate([part for part, _ in parts])
    masses = np.concatenate([np.full(len(part), mass / max(len(part), 1)) for part, mass in parts])
    order = np.argsort(numbers, kind="stable")
    return numbers[order], masses[order] / masses.sum()


@pytest.mark.parametrize("given", [None, {"sex": "M"}])
@pytest.mark.parametrize("name", ["age", "wage", "rank"])
def test_moments_and_quantiles_are_those_of_the_numbers(name, given):
    """Of a random model, with a condition and without, to four digits of the spread."""
    model = model_of(1)
    numbers, masses = weighed(name, model.marginal(name, given))
    mean = masses @ numbers
    variance = masses @ (numbers - mean) ** 2
    assert math.isclose(model.mean(name, given), mean, rel_tol=1e-5)
    assert math.isclose(model.variance(name, given), variance, rel_tol=1e-4)
    upto = np.cumsum(masses)
    for share in (0.001, 0.1, 0.25, 0.5, 0.9, 0.999):
        wanted = numbers[np.searchsorted(upto, share)]
        assert math.isclose(model.quantile(name, share, given), wanted, rel_tol=2e-3), share
    assert model.quantile(name, 0) == numbers[0] or name == "wage"
    assert math.isclose(model.quantile(name, 1.0), {"age": 20, "wage": 100, "rank": 3}[name])


@pytest.mark.parametrize("pair", [("age", "wage"), ("rank", "age"), ("wage", "rank")])
def test_correlations_are_those_of_records_with_both(pair):
    """Missing on either side leaves a record out; inside bins nothing is correlated."""
    model = model_of(2)
    table = model.marginal(pair)
    sums, total = np.zeros(5), 0.0
    for codes, mass in np.ndenumerate(table):
        one, other = (spelled(name, code) for name, code in zip(pair, codes, strict=True))
        if len(one) and len(other):
            total += mass
            parts = one.mean(), other.mean(), (one**2).mean(), (other**2).mean(), one.mean() * other.mean()
            sums += mass * np.array(parts)
    a, b, aa, bb, ab = sums / total
    wanted = (ab - a * b) / math.sqrt((aa - a * a) * (bb - b * b))
    assert math.isclose(model.correlation(*pair), wanted, rel_tol=1e-4, abs_tol=1e-6)


@pytest.mark.parametrize(("blocks", "wide"), [(2, 0.1), (4, 0.1), (8, 0.1), (8, 0.25), (0, 0.5)])
def test_calibrated_correlations_are_those_of_normal_values(blocks, wide):
    """Exactly computed tables of bins, to .006; independent in blocks they are up to .6 nearer to 0."""
    edges = np.arange(-4.5, 4.5 + wide / 2, wide)
    middle = (edges[1:] + edges[:-1]) / 2
    dist = number_distribution(Attribute.of_bins("a", edges.tolist(), unknown="?"))
    block = np.append(np.searchsorted(norm.ppf(np.arange(1, blocks) / max(blocks, 1)), middle), 0)
    if not blocks:  # none are merged
        block = np.arange(len(middle) + 1)
    for rho in (-0.8, 0.0, 0.2, 0.5, 0.8, 0.95):
        # Bins are integrated over fine ones, by the middle of each.
        fine = np.linspace(edges[0], edges[-1], 15 * len(middle) + 1)
        at = (fine[1:] + fine[:-1]) / 2
        table = np.exp(-(at[:, None] ** 2 - 2 * rho * np.outer(at, at) + at**2) / (2 - 2 * rho**2))
        table = np.add.reduceat(np.add.reduceat(table, np.arange(0, len(at), 15), 0), np.arange(0, len(at), 15), 1)
        table = np.pad(table / table.sum(), (0, 1))
        shares = table.sum(axis=1)
        sums = np.zeros((block.max() + 1,) * 2)
        np.add.at(sums, (block[:, None], block), table)
        within = ratio(shares, np.bincount(block, weights=shares)[block])
        independent = sums[block[:, None], block] * np.outer(within, within)
        value = correlation_of((dist, dist), independent)
        assert abs(value) <= abs(rho) + 1e-9
        assert calibrate_correlation(np.array(value), [(dist, shares, block)] * 2) == pytest.approx(rho, abs=0.006)


def test_decoded_records_have_these_moments():
    """100,000 of them, within 5 standard errors (false alarm 1e-6 each, seed fixed)."""
    model = model_of(3)
    table = model.sample(100_000, form="values", randomness=SeededRandomness(1))
    for name in ("age", "wage", "rank"):
        numbers = table[name].drop_null().to_numpy()
        error = numbers.std() / math.sqrt(len(numbers))
        assert abs(numbers.mean() - model.mean(name)) < 5 * error
        square = (numbers - numbers.mean()) ** 2
        assert abs(numbers.var() - model.variance(name)) < 5 * square.std() / math.sqrt(len(numbers))
        assert abs((numbers <= model.quantile(name, 0.3)).mean() - 0.3) < 0.02 or name != "wage"
    pair = np.stack([np.asarray(table[name].to_numpy(), float) for name in ("age", "wage")])
    pair = pair[:, ~np.isnan(pair).any(axis=0)]
    assert abs(np.corrcoef(pair)[0, 1] - model.correlation("age", "wage")) < 5 * 2 / math.sqrt(pair.shape[1])


def test_dates_lose_no_digits_and_codes_without_weight_are_no_quantile():
    """Two neighbouring days have variance 1/4; quantiles at either end and between; shares of what has a number."""
    domain = Domain.from_dict({"day": {"type": "date", "min": "2024-02-28", "max": "2024-02-29"}})
    law = number_distribution(domain["day"])
    table = np.array([0.5, 0.5, 0.0])
    assert variance_of(law, table) == 0.25 and mean_of(law, table) == 19_781.5 - 0.0
    assert domain["day"].values.text(quantile_of(law, table, 0.5)) == "2024-02-28"
    law = number_distribution(DOMAIN["age"])
    assert [quantile_of(law, np.array([0.0, 0.4, 0.0, 0.6]), share) for share in (0.0, 1.0)] == [5.0, 9.0]
    assert [quantile_of(law, np.array([0.5, 0.0, 0.5, 0.0]), share) for share in (0.5, 0.51)] == [4.0, 10.0]
    assert share_of(law, np.array([0.1, 0.2, 0.3, 0.4])) == pytest.approx(0.6)


def test_intervals_come_from_the_replicates():
    """`interval_of` takes these as any other answer."""
    theta = np.random.default_rng(0).normal(size=(5, STRUCTURE.cells)) * 0.1
    model = model_of(1)
    found = model.with_replicates(model.potentials.values + theta).interval_of(lambda one: one.mean("age"))
    assert found.low < model.mean("age") < found.high


def test_what_has_no_such_number_is_refused():
    """No numbers, all missing, no variation, no share."""
    model = model_of(1)
    with pytest.raises(DomainError, match="'sex' has no numbers to compute with"):
        model.mean("sex")
    for share in (-0.1, 1.1, float("nan"), float("inf"), True, None, "0.5"):
        with pytest.raises(OptionError, match="from 0 to 1"):
            model.quantile("age", share)
    law = number_distribution(DOMAIN["age"])
    with pytest.raises(InferenceError, match="all of them are missing"):
        mean_of(law, np.array([0.0, 0.0, 0.0, 1.0]))
    rank = number_distribution(DOMAIN["rank"])
    table = np.zeros((4, 5))
    table[:, 1] = 0.25
    with pytest.raises(InferenceError, match="needs two attributes that vary"):
        correlation_of((law, rank), table)
