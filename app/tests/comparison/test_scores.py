"""A score is a normal deviate, whatever the number of cells and replicates."""

import numpy as np
import pytest
from scipy.stats import norm

import dpgm_core as dpgm
from app.tests.comparison.made import CODES, release_of
from dpgm.comparison import compare
from dpgm.comparison.distances import joint_cell_score


@pytest.mark.parametrize(("cells", "degrees"), [(1, np.inf), (40, np.inf), (40, 5.0)])
def test_a_score_is_above_z_as_rarely_as_a_normal_deviate(cells, degrees):
    """Of 4,000 tables of noise alone, for any number of cells; with few replicates, Student's t."""
    generator = np.random.default_rng(7)
    noise = generator.normal(size=(4000, cells))
    if np.isfinite(degrees):
        noise /= np.sqrt(generator.chisquare(degrees, size=(4000, cells)) / degrees)
    scores = [joint_cell_score(row, np.ones(cells), degrees) for row in noise]
    assert np.mean(np.array(scores) > 1.5) <= 2 * norm.sf(1.5) * 1.15
    assert np.mean(np.array(scores) > 1.5) >= norm.sf(1.5) * 0.5


def test_no_error_and_no_difference():
    """Equal without an error is 0; different without one is beyond all errors; errors without end explain all."""
    assert joint_cell_score(np.zeros(3), np.zeros(3)) == 0
    assert joint_cell_score(np.array([0.1, 0.0]), np.zeros(2), 5.0) == np.inf
    assert joint_cell_score(np.array([0.1]), np.array([np.inf])) == 0


def test_scores_are_of_what_errors_do_not_explain(fitted, people):
    """Two models of the same people: nothing; one of other people: where they differ, and there only."""
    same = compare(*fitted).pairs[0]
    assert max(found.score for found in same.differences) < 3
    others = CODES.copy()
    others[:800, 1] = 2  # older
    other = dpgm.learn(release_of(people, others, ("sex", "job"), ("age",), seed=5), "naive-mle").model
    other = dpgm.bootstrap(other, 10, randomness=dpgm.SeededRandomness(5))
    scores = {found.attributes: found.score for found in compare(fitted[0], other).pairs[0].differences}
    assert scores["age",] > 3 and scores["sex",] < 3 and scores["sex", "job"] < 3
