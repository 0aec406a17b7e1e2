"""DP-SGD: it climbs to the likelihood's maximum, in both modes, over any engine, and refuses before it reads."""

import math

import dpgm_psgd
import numpy as np
import pytest
from dpgm_psgd.learner import Psgd

import dpgm_core as dpgm
from dpgm_testing import LearnerConformance
from dpgm_testing.learning import sample_codes
from tests.fixtures import Unread

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
CHAIN = dpgm.Structure.chain(DOMAIN)
LOOP = dpgm.Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
TIED = dpgm.Structure(dpgm.Domain.from_sizes(dict.fromkeys("abc", 2)), [], tied=[[("a", "b"), ("b", "c")]])


def records(structure=CHAIN, number=2000, seed=1):
    theta = np.random.default_rng(seed).normal(size=structure.cells)
    model = dpgm.Model(structure, dpgm.Tables(structure, theta))
    return sample_codes(model, number, seed)


def mle(codes, structure):
    budget = dpgm.Budget.pure(10**9)
    learner = {"name": "naive-mle", "l2": 0.0, "tolerance": 1e-8}
    return dpgm.fit(
        codes, structure, budget, "laplace", learner, terms=dpgm.Terms(neighbours="add-remove", total="public")
    ).model


def climbed(codes, structure, budget, *, total=None, inference="junction-tree", **options):
    terms = dpgm.Terms(neighbours="add-remove", total=float(len(codes)) if total is None else total)
    learner, seeded = {"name": "psgd", **options}, dpgm.SeededRandomness(7)
    return dpgm.fit(codes, structure, budget, "gaussian", learner, inference, terms=terms, randomness=seeded)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("structure", [CHAIN, LOOP, TIED], ids=["chain", "loop", "tied"])
@pytest.mark.parametrize("options", [{}, {"mode": "clip", "clip_norm": 6.0, "grid": 4096}], ids=["tables", "clip"])
def test_it_reaches_the_non_private_mle_as_epsilon_grows(structure, options):
    """Full batches and hardly any noise: the model is the maximum-likelihood estimate, KL below 1e-4 nats."""
    codes = records(structure)
    budget = dpgm.Budget.approx(10**7, 1e-6)
    done = climbed(codes, structure, budget, epochs=400, sampling_rate=1, learning_rate=1.0, averaging=0.0, **options)
    assert mle(codes, structure).kl(done.model) < 1e-4


@pytest.mark.landing
def test_subsamples_come_close_too():
    """With subsamples of a tenth and tail averaging KL to the MLE stays below the sampling error, 20 / (2 N)."""
    codes = records()
    done = climbed(codes, CHAIN, dpgm.Budget.approx(10**6, 1e-6), epochs=40, sampling_rate=0.1, schedule="inverse-sqrt")
    assert mle(codes, CHAIN).kl(done.model) < 20 / (2 * 2000)


@pytest.mark.landing
@pytest.mark.parametrize("mode", ["tables", "clip"])
def test_more_epsilon_is_better(mode):
    """KL to the truth falls with epsilon (averages over 5 seeds, a factor of 5 in noise)."""
    codes = records(number=500)
    reference = mle(codes, CHAIN)

    def loss(epsilon):
        scores = []
        for seed in range(5):
            done = dpgm.fit(
                codes, CHAIN, dpgm.Budget.approx(epsilon, 1e-5), "gaussian",
                {"name": "psgd", "epochs": 4, "sampling_rate": 0.2, "mode": mode},
                terms=dpgm.Terms(neighbours="add-remove", total=500.0), randomness=dpgm.SeededRandomness(seed),
            )  # fmt: skip
            scores.append(reference.kl(done.model))
        return np.mean(scores)

    assert loss(5.0) < loss(0.5)


@pytest.mark.landing
def test_short_norms_bias_towards_the_start():
    """Clipping below what scores are long pulls the model to where it started: that is the published recipe's cost."""
    codes = records()
    budget = dpgm.Budget.approx(10**7, 1e-6)
    reference = mle(codes, CHAIN)
    common = {"epochs": 200, "sampling_rate": 1, "mode": "clip", "averaging": 0.0}
    assert reference.kl(climbed(codes, CHAIN, budget, clip_norm=0.2, **common).model) > 10 * reference.kl(
        climbed(codes, CHAIN, budget, clip_norm=4.0, **common).model
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt", "linear"])
def test_momentum_and_schedules_converge(schedule):
    """Each schedule, with momentum, gets to the same optimum."""
    done = climbed(
        records(), CHAIN, dpgm.Budget.approx(10**7, 1e-6),
        epochs=100, sampling_rate=1, learning_rate=1.0, momentum=0.8, schedule=schedule, averaging=0.0,
    )  # fmt: skip
    assert mle(records(), CHAIN).kl(done.model) < 1e-3


@pytest.mark.landing
def test_an_estimated_total_learns_as_well():
    """q N from the noisy rounds: close to the model learned with the declared total."""
    budget = dpgm.Budget.approx(10**6, 1e-6)
    settings = {"epochs": 35, "sampling_rate": 0.1, "schedule": "inverse-sqrt"}
    estimated = climbed(records(), CHAIN, budget, total="estimated", **settings)
    assert mle(records(), CHAIN).kl(estimated.model) < 20 / (2 * 2000)


def test_one_inference_call_per_step_and_a_trace():
    """epochs / sampling_rate steps, each with a row in the trace; the release is the last round."""
    done = climbed(records(), CHAIN, dpgm.Budget.approx(1, 1e-6), epochs=2, sampling_rate=0.25)
    assert len(done.trace) == done.certificate["steps"] == done.certificate["inference_calls"] == 8
    assert done.release.round.number == done.release.round.of == 8
    assert done.model.guarantee() == done.release.guarantee()
    assert done.model.provenance["learner"]["name"] == "psgd"


def test_the_model_is_saved_with_what_it_cost(tmp_path):
    """A saved model carries its last round and the whole charge."""
    done = climbed(records(), CHAIN, dpgm.Budget.approx(1, 1e-6), epochs=1, sampling_rate=0.5, mode="clip")
    done.model.save(tmp_path / "m.dpgm")
    back = dpgm.load_model(tmp_path / "m.dpgm")
    assert back.release.cost == dpgm.Budget.approx(1, 1e-6)
    assert "clipped scores" in back.guarantee()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("mode", "budget"), [("tables", dpgm.Budget.approx(1, 1e-6)), ("clip", dpgm.Budget.zcdp(1))])
def test_subsamples_under_replace_one(mode, budget):
    """It trains on subsamples under this relation too, and the model says so."""
    done = dpgm.fit(
        records(), CHAIN, budget, "gaussian", {"name": "psgd", "epochs": 1, "sampling_rate": 0.25, "mode": mode},
        terms=dpgm.Terms(neighbours="replace-one", total=2000.0), randomness=dpgm.SeededRandomness(1),
    )  # fmt: skip
    assert done.release.cost == budget and len(done.trace) == 4
    assert done.release.calibrations[0].sensitivity == done.release.terms.sensitivity(CHAIN, done.release.round.clip)
    assert "replace-one neighbours" in done.model.guarantee()


@pytest.mark.parametrize(
    ("budget", "terms", "options"),
    [
        (dpgm.Budget.pure(1), {}, {}),
        (dpgm.Budget.approx(1, 1e-6), {"total": "estimated"}, {"mode": "clip"}),
        (dpgm.Budget.approx(1, 1e-6), {}, {"mode": "clip", "clip_norm": 1e9}),
    ],
    ids=["pure", "unknown total", "huge norm"],
)
def test_refusals_touch_no_record(budget, terms, options):
    """What the accountant or the mechanism cannot do is refused before the first record."""
    terms = dpgm.Terms(**{"neighbours": "add-remove", "total": 500.0} | terms)
    with pytest.raises(dpgm.BudgetError):
        dpgm.fit(Unread(), CHAIN, budget, "gaussian", {"name": "psgd", **options}, terms=terms)


SENSELESS = {
    "sampling_rate": (0, 1.5, math.nan, True, "half"),
    "epochs": (0, math.inf),
    "learning_rate": (-1, math.inf),
    "momentum": (1,),
    "averaging": (-0.1,),
    "clip_norm": (0, math.inf),
    "grid": (0, True),
    "schedule": ("cosine",),
    "mode": ("clipped",),
}


@pytest.mark.parametrize(("option", "value"), [(one, value) for one, values in SENSELESS.items() for value in values])
def test_options_that_make_no_sense(option, value):
    with pytest.raises(dpgm.OptionError):
        dpgm.make("learner", "psgd", **{option: value})


def test_running_away_is_said():
    """A learning rate far too large ends in an error that says what to lower; the paid round is kept."""
    with pytest.raises(dpgm.LearningFailed, match=r"psgd failed, .*learning_rate") as caught:
        climbed(records(), CHAIN, dpgm.Budget.approx(1, 1e-6), epochs=1, sampling_rate=0.5, learning_rate=1e200)
    assert caught.value.releases[0].cost == dpgm.Budget.approx(1, 1e-6)


# --- the oracle grid search -------------------------------------------------------------------------------------


@pytest.mark.landing
def test_the_oracle_search_is_exported():
    """It looks at the truth, so it needs allow_non_private, and its trials are stamped."""
    truth = mle(records(), CHAIN)
    terms = dpgm.Terms(neighbours="add-remove", total=2000.0)
    common = {"terms": terms, "truth": truth, "randomness": dpgm.SeededRandomness(1)}
    budget = dpgm.Budget.approx(1, 1e-6)
    with pytest.raises(dpgm.NonPrivateError):
        dpgm_psgd.oracle_grid_search(Unread(), CHAIN, budget, **common)
    trials = dpgm_psgd.oracle_grid_search(
        records(), CHAIN, budget, grid={"learning_rate": [1e-3, 1.0], "epochs": [2]},
        base=Psgd(sampling_rate=0.5), allow_non_private=True, **common,
    )  # fmt: skip
    assert [trial.settings["learning_rate"] for trial in trials] == [1.0, 1e-3]
    assert trials[0].learner == Psgd(sampling_rate=0.5, learning_rate=1.0, epochs=2)
    assert trials[0].score < trials[1].score and not any(trial.private for trial in trials)


@pytest.mark.landing
def test_the_oracle_search_scores_against_records_or_a_truth():
    """Records give the negative log-likelihood; neither or both are refused; a runaway setting scores infinity."""
    common = {"terms": dpgm.Terms(neighbours="add-remove", total=2000.0), "allow_non_private": True}
    budget = dpgm.Budget.approx(1, 1e-6)
    with pytest.raises(dpgm.OptionError, match="exactly one"):
        dpgm_psgd.oracle_grid_search(Unread(), CHAIN, budget, **common)
    trials = dpgm_psgd.oracle_grid_search(
        records(), CHAIN, budget, records=records(), grid={"learning_rate": [1.0, 1e200]},
        base=Psgd(epochs=1, sampling_rate=0.5), **common,
    )  # fmt: skip
    assert [math.isfinite(trial.score) for trial in trials] == [True, False]
    with pytest.raises(dpgm.OptionError, match="no such"):
        dpgm_psgd.oracle_grid_search(Unread(), CHAIN, budget, records=records(), grid={"rate": [1]}, **common)


def test_an_engine_that_did_not_converge_is_admitted():
    """One sweep of belief propagation around a loop settles nothing: the fit says so, and in how many steps."""
    codes = records(LOOP)
    engine = {"name": "loopy-bp", "max_iterations": 1}
    done = climbed(codes, LOOP, dpgm.Budget.approx(1, 1e-6), epochs=2, sampling_rate=0.5, inference=engine)
    assert not done.converged and any("3 of 4 steps" in note for note in done.notes), done.notes


class TestPsgd(LearnerConformance):
    """Every check, default options."""

    component = Psgd
