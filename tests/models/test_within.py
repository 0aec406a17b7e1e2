"""The law of numbers inside a bin: moments and quantiles against what drawing gives, and where they may lie."""

import math

import numpy as np
import pytest
from attrs import evolve

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.values import Values
from dpgm_core.models.within_bins import bin_distribution, missing_code

LAWS = [
    ([0, 18, 65, 120], Values(kind="integer")),
    ([0.5, 2, 9.5, 40], Values(kind="number")),
    ([1, 4, 60, 1000], Values(kind="integer", shape="log")),
    ([1, 4, 60, 1000], Values(kind="number", shape="log")),
    ([0, 4, 60, 1000], Values(kind="number", shape="lower")),
    ([0, 0.7, 1.3, 2], Values(kind="number", decimals=1)),
    ([0, 3600, 7200, 86400], Values(kind="time", format="%H:%M")),
]


def binned(edges, values, **more):
    return Attribute.from_dict("x", {"bins": list(edges), **_table(values), **more})


def _table(values):
    parts = {"type": values.kind, "format": values.format, "decimals": values.decimals, "shape": values.shape}
    return {key: value for key, value in parts.items() if value not in (None, "uniform")}


@pytest.mark.parametrize(("edges", "values"), LAWS, ids=str)
def test_moments_and_quantiles_are_those_of_what_is_drawn(edges, values):
    """At 20,001 evenly spaced places of the law, mean and variance agree within 1e-3 of the width: no chance in it."""
    one = binned(edges, values)
    law = bin_distribution(one)
    means, variances = law.moments()
    at = (np.arange(20_001) + 0.5) / 20_001
    for code in range(3):
        drawn = law.draw(np.full(len(at), code), at)
        width = edges[code + 1] - edges[code]
        assert abs(drawn.mean() - means[code]) < 1e-3 * width and abs(drawn.var() - variances[code]) < 1e-3 * width**2
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = law.quantile(code, share)
            assert (drawn <= found + 1e-9).mean() >= share - 1e-3
            assert (drawn < found - 1e-3 * width).mean() <= share + 1e-3
    assert np.isnan(means[3:]).all()


def test_uniform_whole_numbers_have_no_edge_effects():
    """Each of 18 .. 64 gets its share of the line, to the last one; the last bin is closed."""
    law = bin_distribution(binned([0, 18, 65], Values(kind="integer")))
    at = np.arange(48 * 100) / (48 * 100) + 1e-6
    assert np.bincount(law.draw(np.ones(len(at), int), at).astype(int))[18:].tolist() == [100] * 48  # 18 .. 65
    assert law.draw(np.array([0, 0]), np.array([0.0, np.nextafter(1, 0)])).tolist() == [0, 17]
    assert (law.moments()[0][:2] == [8.5, 41.5]).all() and np.allclose(
        law.moments()[1][:2], [(18**2 - 1) / 12, (48**2 - 1) / 12]
    )


def test_bins_without_an_end_stand_at_the_one_they_have():
    """65 or more is 65; below 0 is the last value below it."""
    whole = bin_distribution(binned(["-inf", 0, 65, "inf"], Values(kind="integer")))
    assert (whole.low[[0, 2]] == [-1, 65]).all() and (whole.high[[0, 2]] == [-1, 65]).all()
    real = bin_distribution(binned(["-inf", 0, 65, "inf"], Values(kind="number")))
    assert (real.low[[0, 2]] == [-0.065, 65]).all() and (real.high[[0, 2]] == [-0.065, 65]).all()
    assert bin_distribution(binned(["-inf", "inf"], Values(kind="number"))).draw(
        np.array([0]), np.array([0.3])
    ).tolist() == [0]


def test_what_has_no_number_is_not_present():
    """Texts, missing labels, labels that are no numbers, bins that hold no value of the type."""
    assert bin_distribution(Attribute.of_size("a", 2)) is None
    labels = Attribute.from_dict("a", {"type": "integer", "labels": ["7", "x", "1.5", "-1"]})
    assert bin_distribution(labels).present.tolist() == [True, False, False, True, False]
    assert bin_distribution(labels).low.tolist() == [7, 0, 0, -1, 0]
    empty = Attribute.of_bins("a", [0, 0.2, 0.4, 3], unknown="missing")
    assert bin_distribution(evolve(empty, values=Values(kind="integer"))).present.tolist() == [True, False, True, False]


def test_the_missing_code_is_known_by_its_name():
    """A label that the owner named for missing values is an answer like others."""
    assert missing_code(Attribute.from_dict("a", {"labels": ["x"]})) == 1
    assert missing_code(Attribute.from_dict("a", {"labels": ["x"], "missing": "not stated"})) is None


def test_many_whole_numbers_in_a_bin_are_summed_in_parts():
    """Ten million, within a millionth."""
    law = bin_distribution(binned([0, 10**7], Values(kind="integer")))
    mean, variance = (moment[0] for moment in law.moments())
    assert math.isclose(mean, 5e6, rel_tol=1e-6) and math.isclose(variance, (1e7**2) / 12, rel_tol=1e-5)


def test_plain_bins_are_of_whole_numbers_where_all_edges_are():
    """A column that declares no type; what is said of its edges decides, and nothing else."""
    for edges, whole in (([0, 18, 65, "inf"], True), ([0, 0.5, 2], False), ([0, 1e300], False)):
        assert (bin_distribution(Attribute.from_dict("x", {"bins": edges})).lattice is not None) == whole
