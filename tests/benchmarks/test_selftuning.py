"""The self-tuned learner keeps its tuning: a tiny version of benchmarks/selftuning.py on fixed seeds."""

import pytest

pytest.importorskip("joblib")

from benchmarks.harness.runs import Task
from benchmarks.protocol.trials import data_set, learner, work
from dpgm_core import learn

# (cell, trial): both graphs, both kinds of noise; the true models have 216 to 384 potentials.
DATA = (
    ("dirichlet/chain3/k3/N1e4/eps0.5/laplace", 500),
    ("dirichlet/er/k4/N3e4/eps0.3/laplace", 500),
    ("dirichlet/chain3/k4/N1e5/eps0.2/gaussian", 501),
)


@pytest.fixture(scope="module", params=DATA, ids=[cell for cell, _ in DATA])
def measured(request):
    """(data set, KL by method)."""
    found = {}
    for method in ("naive-path", "naive-tiny", "eb-map", "uniform"):
        found |= work(Task(*request.param, method), None)["results"]
    return data_set(*request.param), {label: numbers["kl"] for label, numbers in found.items()}


def test_eb_map_untouched_is_as_good_as_naive_mle_told_the_truth(measured):
    """KL at most 1.15 times that of naive MLE at its best penalty (measured: .91, .90 and .86)."""
    _, kl = measured
    assert kl["eb-map"] <= 1.15 * kl["naive oracle"] < 0.1 * kl["uniform"]


def test_eb_map_is_far_below_naive_mle_at_a_tiny_penalty(measured):
    """KL at most a fifth of that without regularisation in all but name (measured: a 30th at most)."""
    _, kl = measured
    assert kl["eb-map"] <= 0.2 * kl["naive tiny"]


def test_with_other_scales_it_would_fail(measured):
    """The bound above is one that a prior without tuning does not meet, ten times wider or narrower than the tuned."""
    data, kl = measured
    tuned = learn(data.release, "eb-map").tuning["scales"]
    for factor in (10.0, 0.1):
        scales = tuple(factor * scale for scale in tuned)
        untuned = learner(data, label="off", name="eb-map", scales=scales)["off"]["kl"]
        assert untuned > 1.15 * kl["naive oracle"]
