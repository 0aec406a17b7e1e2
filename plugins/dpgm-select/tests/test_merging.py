"""Which codes are merged."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from dpgm_select.merging import merge_rare_codes
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import floats, integers

from dpgm_core import Budget, Domain, NoisyTables, SeededRandomness, fit


def test_common_codes_stay_alone() -> None:
    """Nothing is merged where at most one code is rare."""
    assert merge_rare_codes(np.array([50.0, 60.0, 1.0]), 5.0) is None


def test_rare_codes_are_gathered_until_they_are_rare_no_more() -> None:
    """In their order, common ones passed over; new codes run from 0 without gaps."""
    actual = merge_rare_codes(np.array([12.0, 90.0, 12.0, 12.0, 3.0, 2.0]), 7.0)
    # 12 + 12 is above 2 * 7 * sqrt(2); the last three are below it together.
    assert actual == (0, 1, 0, 2, 2, 2)


def test_what_noise_made_negative_is_rare() -> None:
    """All codes may be: then they are one."""
    assert merge_rare_codes(np.array([-3.0, -1.0, 1.0]), 5.0) == (0, 0, 0)


def test_bins_too_fine_for_pairs_are_merged():
    """Codes below `least` are gathered until they reach it; a commoner one stays."""
    actual = merge_rare_codes(np.array([30.0, 30.0, 90.0, 50.0, 40.0, 10.0]), 1.0, 80.0)
    assert actual == (0, 0, 1, 0, 2, 2)


def test_missing_values_are_no_bin():
    """A missing code that is no rare one stays, though it has fewer records than bins should; a rare one joins none."""
    counts = np.array([30.0, 30.0, 90.0, 50.0, 60.0, 40.0, 70.0])
    assert merge_rare_codes(counts, 1.0, 80.0, 6) == (0, 0, 1, 2, 2, 3, 4)
    assert merge_rare_codes(counts * ([1] * 6 + [0]), 1.0, 80.0, 6) == (0, 0, 1, 2, 2, 3, 4)


@pytest.mark.parametrize(("bins", "merged"), [(12, False), (13, True)])
def test_few_bins_stay_as_they_are_written(bins, merged):
    """Up to twelve are no bins too fine for pairs: 2,000 records in even bins at epsilon = 1."""
    numbers = np.arange(2000) % bins
    written = {"type": "integer", "bins": list(range(bins + 1))}
    domain = Domain.from_dict({"attributes": {"x": written, "y": written}})
    settings = {"workload": domain, "neighbours": "add-remove", "randomness": SeededRandomness(1)}
    model = fit(pa.table({"x": numbers, "y": numbers}), "auto", Budget.approx(1, "1e-6"), **settings).model
    assert bool(model.release.session.merges) == merged


@given(arrays(float, integers(1, 40), elements=floats(-20, 300)), floats(0, 500), integers(0, 40))
def test_blocks_of_bins_have_no_gaps(counts: np.ndarray, least: float, bins: int) -> None:
    """They are intervals, whatever the counts, as a gap would put small numbers beside large ones."""
    actual = merge_rare_codes(counts, 5.0, least, min(bins, len(counts)))
    if actual is not None:
        own = np.array(actual[:bins])
        assert (np.diff(own) >= 0).all() and set(actual) == set(range(max(actual) + 1))


def test_correlation_is_not_lost_in_many_bins():
    """Of 5,000 records in 60 bins each, correlated by .8, the model had .27 when all bins were told apart; seeded.
    Columns alone are measured once more before bins are merged."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=5000)
    y = 0.8 * x + 0.6 * rng.normal(size=5000)
    codes = [np.clip((one + 3) * 10, 0, 59).astype(int) for one in (x, y)]
    bins = {"type": "integer", "bins": list(range(61))}
    domain = Domain.from_dict({"attributes": {"x": bins, "y": bins}})
    table = pa.table({"x": codes[0], "y": codes[1]})
    model = fit(
        table,
        "auto",
        Budget.approx(3, "1e-6"),
        workload=domain,
        neighbours="add-remove",
        randomness=SeededRandomness(4),
    ).model
    pair = model.marginal(("x", "y"))[:60, :60]
    at = np.arange(60.0)
    one, other = at - pair.sum(axis=1) @ at / pair.sum(), at - pair.sum(axis=0) @ at / pair.sum()
    covariance = one @ pair @ other
    found = covariance / np.sqrt((pair.sum(axis=1) @ one**2) * (pair.sum(axis=0) @ other**2))
    assert found > 0.7 and np.corrcoef(codes)[0, 1] > 0.78
    tables = [one for one in model.release.steps if isinstance(one, NoisyTables)]
    spent = [sum(1 / float(variance) for variance in one.variances) for one in tables]  # in units of rho
    fine = [one.structure.domain == domain for one in tables]
    assert sum(itertools.compress(spent, fine)) > 0.42 * sum(spent)
