"""Exact inference in logarithms, against a sum over all records, also where nothing else would do."""

import numpy as np
import pytest

from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.engine import plan_inference
from dpgm_core.inference.junction_tree.logspace import Logarithms
from dpgm_core.structure.tables import Tables


def logarithms_of(structure):
    contraction = plan_inference(structure, 2**30).contraction
    free = [structure.domain[name].size for name in structure.uncovered]
    return Logarithms(contraction, structure), float(np.log(free).sum() if free else 0.0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("scale", [1, 2000])
def test_marginals_and_log_z_are_those_of_all_records(awkward, lab, scale):
    """Attributes in no clique stand aside; `forward` has the same total in sums, and the best record's in maxima."""
    made, free = logarithms_of(awkward)
    theta = Tables(awkward, scale * np.random.default_rng(1).normal(size=awkward.cells))
    marginals, log_partition = lab.brute_force(awkward, theta)
    found, total = made.infer(theta.values)
    np.testing.assert_allclose(found, marginals, atol=1e-9)
    assert total + free == pytest.approx(log_partition, rel=1e-12, abs=1e-9)
    assert made.forward(theta.values, logspace.log_contract)[1] == pytest.approx(total, rel=1e-12, abs=1e-9)
    best = made.forward(theta.values, logspace.max_contract)[1]
    assert best == pytest.approx(lab.log_joint(awkward, theta).max(), rel=1e-12, abs=1e-9)


def test_impossible_records_are_refused_or_answered_by_minus_infinity(lab):
    """`infer` leaves it to whoever asked to say so."""
    structure = lab.awkward["star"]
    made, _ = logarithms_of(structure)
    theta = np.full(structure.cells, -np.inf)
    marginals, total = made.infer(theta)
    assert total == -np.inf and not marginals.any()
    for walk in (lambda: made.forward(theta, logspace.log_contract), lambda: made.curvature(theta)):
        with pytest.raises(InferenceError, match="every record has probability 0"):
            walk()
