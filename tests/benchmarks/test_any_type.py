"""The bound on what a found domain must cost, and the search on made-up columns."""

import itertools

import numpy as np

from benchmarks.any_type import least_ratio
from benchmarks.made_columns import COLUMNS, errors


def test_no_measurement_is_better_than_the_bound():
    """Over all partitions of 6 bins into 3 parts: cells, sums and random measurements; cells reach it at 6 parts."""
    indicators = []
    for cuts in itertools.combinations(range(1, 6), 2):
        ends = (0, *cuts, 6)
        indicators += [[float(a <= at < b) for at in range(6)] for a, b in itertools.pairwise(ends)]
    squares = np.array(indicators).T @ np.array(indicators) / 10  # 10 partitions
    rng = np.random.default_rng(0)
    strategies = [np.eye(6), np.vstack([np.eye(6), np.tri(6)]), *rng.normal(size=(200, 8, 6))]
    ratios = []
    for strategy in strategies:
        moved = (strategy**2).sum(axis=0).max()  # by one person, squared
        ratios.append(np.sqrt(moved * np.trace(squares @ np.linalg.inv(strategy.T @ strategy)) / 3))
    assert least_ratio(6, 3) <= min(ratios) * (1 + 1e-9) and min(ratios) < 1.2 * least_ratio(6, 3)
    assert abs(least_ratio(6, 6) - 1) < 1e-9 and round(least_ratio(64, 4), 2) == 2.09


def test_made_up_columns_are_found():
    """A small run of the simulation by which the rules of the search were chosen, at one seed."""
    found = errors(2000, "3", 5, 1)
    assert found.keys() == COLUMNS.keys() and all(0 <= error <= 1 for pair in found.values() for error in pair)
    assert found["year"][1] < 0.1 and found["icd"][1] < 0.1 and found["flag"][1] < 0.02
