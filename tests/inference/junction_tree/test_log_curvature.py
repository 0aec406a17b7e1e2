"""Second derivatives in logarithms: right on their own, with and without weights kept between walks."""

from unittest import mock

import numpy as np
import pytest

from dpgm_core.inference.junction_tree import curvature as log_curvature
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.structure.tables import Tables


@pytest.mark.sampled(5)
@pytest.mark.parametrize("zeros", [False, True])
def test_agrees_with_probabilities(awkward, zeros):
    """Where probabilities will do, walks of two columns in logarithms find the same, hard zeros or not."""
    rng = np.random.default_rng(6)
    theta = rng.normal(size=awkward.cells)
    if zeros:
        theta[rng.random(awkward.cells) < 0.1] = -np.inf
        theta[[part.start for part in awkward.slices]] = 0.0  # the record of zeros is possible
    engine = JunctionTree().compile(awkward)
    columns = rng.normal(size=(awkward.cells, 5))
    known = engine.curvature(Tables(awkward, theta))(columns)
    with mock.patch.object(ProbabilityExecutor, "calibrate", return_value=None):
        for kept, at_once in ((2**24, 128), (0, 2)):
            with (
                mock.patch.object(log_curvature, "_MAX_LOG_COLUMNS", at_once),
                mock.patch.object(log_curvature, "_MAX_CACHED_CELLS", kept),
            ):
                found = engine.curvature(Tables(awkward, theta))(columns)
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-13)
