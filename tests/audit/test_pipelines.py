"""The audit of whole pipelines in small: its ratios and bounds are right, ours stand, and planted faults do not.

The table of `python -m tests.audit --pipelines` takes half an hour and is held by its store; here are as many runs as
leave nothing to luck. Noise comes from the operating system, which takes no seed: chances are stated where they count.
"""

import sys
from fractions import Fraction

import dpgm_gaussian.mechanism as gaussian
import numpy as np
import pytest
from scipy.stats import norm

pytest.importorskip("joblib")

from benchmarks.harness.output import grouped
from benchmarks.harness.runs import read
from dpgm_core import Budget
from dpgm_core.curator import session
from dpgm_core.privacy.gdp import gdp_delta
from tests.audit import pipelines as audit
from tests.audit.__main__ import main as command
from tests.audit.pipelines import HONEST, bound_of, planted, promised_mu
from tests.audit.whole import Watch, draws_of, pipelines

CASES = {str(one): one for one in pipelines()}
GAUSSIAN = [(float(epsilon), gdp_delta(Budget.gdp(2).mu_squared, epsilon)) for epsilon in audit._EPSILONS]


def sums_of(hits, runs):
    return np.array(audit._sums(np.where(hits, 1.0, -1.0), np.asarray(runs)), float)


def measured(cell, method, runs, seed=3):
    """What a promise allows, and the lower bound, of so many runs."""
    pipeline = CASES[cell]
    with planted(method):
        draws = draws_of(pipeline, runs, np.random.default_rng(seed))
    curve = [(float(epsilon), pipeline.curve(epsilon)) for epsilon in audit._EPSILONS]
    alarms, _, bound = bound_of(
        *(np.array(audit._sums(*one), float) for one in ((draws.near, draws.near_runs), (draws.far, draws.far_runs)))
    )
    return promised_mu(curve, alarms), bound


@pytest.mark.parametrize("alarms", [0.01, 0.16, 0.5, 0.9])
def test_a_gaussian_promise_allows_its_own_mu_at_every_rate(alarms):
    """The trade-off of mu-GDP is that of two normal numbers mu apart."""
    assert promised_mu(GAUSSIAN, alarms) == pytest.approx(2, abs=0.01)


def test_a_pure_promise_allows_a_ratio_of_rates():
    """Of epsilon alone: at a rate a of false alarms no more than exp(epsilon) a are caught."""
    curve = [(float(epsilon), 0.0 if epsilon >= 1 else 1.0) for epsilon in audit._EPSILONS]
    assert promised_mu(curve, 0.01) == pytest.approx(norm.isf(0.01) - norm.isf(0.01 * np.e))


def test_a_bound_is_below_the_truth_as_often_as_it_says():
    """400 attacks on two normal numbers, 300 draws each: 92 % of bounds or more are below (fixed seed)."""
    rng, below = np.random.default_rng(8), 0
    for _ in range(400):
        near, far = rng.normal(1, 1, 300) >= 0, rng.normal(-1, 1, 300) >= 0
        below += bound_of(sums_of(near, np.arange(300)), sums_of(far, np.arange(300)))[2] <= 2
    assert below >= 0.92 * 400


def test_draws_of_one_run_that_agree_count_once():
    """50 equal draws in each of 60 runs tell no more than 60 draws; were they taken for 3,000, one bound in five or
    more would be above the truth."""
    rng, below = np.random.default_rng(9), 0
    runs = np.repeat(np.arange(60), 50)
    for _ in range(200):
        near, far = (np.repeat(rng.normal(mean, 1, 60) >= 0, 50) for mean in (1, -1))
        below += bound_of(sums_of(near, runs), sums_of(far, runs))[2] <= 2
    assert below >= 0.92 * 200


def test_ratios_of_tables_are_those_of_the_released_ones():
    """One selection without choices: each canary's ratio, from the tables that were handed out, by the normal law."""
    shown = []
    pipeline = CASES["mrf-select, 1 row"]
    original = Watch._add

    def add(watch, noise, noisy, true):
        shown.append((np.asarray(noisy - true, float), noise.variance, watch.present.copy()))
        original(watch, noise, noisy, true)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Watch, "_add", add)
        watch = pipeline.run(np.arange(pipeline.canaries) % 2 == 0)
    assert len(shown) == 6  # three attributes, three pairs
    by_hand = sum((2 * (left + present) - 1) / (2 * variance) for left, variance, present in shown)
    assert np.allclose(watch.losses, by_hand)


def test_a_canary_moves_each_table_by_its_rows(monkeypatch):
    """With four rows, and no noise, what is counted is four more with the canary: no other cell of the tables moves."""
    seen = []
    monkeypatch.setattr(Watch, "_add", lambda watch, noise, noisy, true: seen.append(true.copy()))
    pipeline = CASES["mrf-select, 4 rows"]
    there = np.arange(pipeline.canaries) % 2 == 0
    pipeline.run(there)
    pipeline.run(np.zeros_like(there))
    half = len(seen) // 2
    for with_them, without in zip(seen[:half], seen[half:], strict=True):
        assert (with_them - without).tolist() == (4 * there).tolist()


@pytest.mark.parametrize("cell", ["mrf-select, 1 row", "oneshot, 4 rows", "bayes-net-two-stage, 1 row"])
def test_ours_stand(cell):
    """The bound of 240 canaries is at most 1.3 times what the promise allows: false alarm 1e-5, as mu would have to be
    seen 4.3 of its standard errors above the truth."""
    promise, bound = measured(cell, HONEST, 10)
    assert bound <= promise * 1.3


@pytest.mark.parametrize(
    ("cell", "fault", "runs"),
    [
        ("mrf-select, 4 rows", "rows per person ignored", 10),
        ("mrf-select, 1 row", "N without noise", 10),
    ],
)
def test_planted_faults_are_refuted(cell, fault, runs):
    """The bound is beyond what the promise allows: hardly a canary is missed, by ten standard errors of mu and more."""
    promise, bound = measured(cell, fault, runs)
    assert bound > promise


def test_smaller_faults_draw_what_their_names_say(monkeypatch):
    """It takes thousands of runs to refute them, which the store has; here what is drawn: .81 of the variance, 2 h."""
    seen = []
    monkeypatch.setattr(gaussian, "discrete_gaussian", lambda variance, *more: seen.append(variance))
    monkeypatch.setattr(session, "draw_candidates", lambda scores, h, *more: seen.append(h))
    with planted("noise 10 % narrower"):
        gaussian.discrete_gaussian(Fraction(400), 1, None)
    with planted("choices without the 1/2"):
        session.draw_candidates(np.zeros(2, int), Fraction(1, 8), 1, None)
    assert seen == [324, Fraction(1, 4)]


def test_the_store_refutes_every_planted_fault_and_no_pipeline():
    """Of the committed runs: each fault in each cell where it is planted, and the page shows what they give."""
    lines = read(audit.STUDY.committed)
    planted_ones = set()
    for (cell, method), some in grouped(lines, "cell", "method").items():
        promise, _, bound = audit.result(cell, some)
        assert (bound > promise) == (method != HONEST), (cell, method)
        planted_ones.add((cell, method))
    assert planted_ones >= {(cell, HONEST) for cell in CASES}
    assert planted_ones >= {(cell, fault) for cell in CASES for fault in audit.FAULTS if audit.serves(cell, 0, fault)}
    assert audit.STUDY.committed.with_suffix(".md").read_text(encoding="utf-8") == audit.text(lines)


def test_every_pipeline_can_be_run_with_every_fault_that_it_is_served():
    """Each cell has a pipeline, and each fault somewhere to show."""
    assert {name.rsplit(", ", 1)[0] for name in CASES} >= {
        "auto", "aim", "oneshot", "mst", "privbayes", "mrf-select", "bayes-net-two-stage", "private bins", "labels",
        "columns of any type",
    }  # fmt: skip
    for fault in audit.FAULTS:
        assert any(audit.serves(cell, 0, fault) for cell in CASES)


def test_the_command_runs_in_small_and_writes_its_tables(tmp_path, capsys):
    """`python -m tests.audit --pipelines --smoke`: two pipelines and what is planted there, into a store of its own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["audit", "--pipelines", "--smoke", "--store", str(tmp_path / "audit.jsonl")])
        command()
    page = (tmp_path / "audit.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() == page.strip()
    assert "mrf-select" in page and "N without noise" in page and "start:pipelines" in page


@pytest.mark.landing
@pytest.mark.parametrize("cell", [name for name in CASES if name.endswith("4 rows")])
def test_a_watched_run_ends_with_a_ratio_for_each_canary(cell):
    """Each pipeline, with all canaries and with none; ratios are finite, and on the whole of the right sign."""
    pipeline = CASES[cell]
    runs = 40 if pipeline.canaries == 1 else 4
    draws = draws_of(pipeline, runs, np.random.default_rng(2))
    assert np.isfinite(draws.near).all() and np.isfinite(draws.far).all()
    assert draws.near.mean() > draws.far.mean()
