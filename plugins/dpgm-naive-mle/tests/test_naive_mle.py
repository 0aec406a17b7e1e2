"""naive-mle: its fit, its penalty rules, its projection, and the conformance kit."""

from __future__ import annotations

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpgm_naive_mle.learner import NaiveMLE
from dpgm_naive_mle.penalty import _find_minimum, _Fits
from dpgm_naive_mle.projection import project_to_simplex, targets
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, OptionError, SeededRandomness, Structure, Tables
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, Rehearsal, expected_absolute
from dpgm_testing import LearnerConformance
from dpgm_testing.learning import chain, dirichlet_model, persistent_model, simulated_release

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
CHAIN = Structure.chain(DOMAIN)
RNG = np.random.default_rng(1)
CODES = np.stack([RNG.integers(0, 2, 3000), RNG.integers(0, 3, 3000), RNG.integers(0, 2, 3000)], axis=1)
CODES[:, 2] = np.where(RNG.random(3000) < 0.5, CODES[:, 0], CODES[:, 2])


def released(structure=CHAIN, epsilon="1000000", codes=CODES, **terms):
    return dpgm.release(
        codes, structure, Budget.pure(epsilon), neighbours="add-remove", randomness=SeededRandomness(2), **terms
    )


def compare_with_uniform(truth, count, epsilon, seed, **options):
    release = simulated_release(truth, count, epsilon, seed, total="estimated")
    fit = dpgm.learn(release, NaiveMLE(**options), randomness=SeededRandomness(seed))
    return truth.kl(fit.model) / truth.kl(dpgm.Model(truth.structure, Tables.zeros(truth.structure)))


def with_values(release, values, total=None):
    tables = Tables(release.structure, np.asarray(values))
    return attrs.evolve(release, tables=tables, total=release.total if total is None else total)


@pytest.mark.parametrize("inference", ["junction-tree", "loopy-bp"])
def test_with_negligible_noise_it_is_the_empirical_fit(inference):
    """On a tree the MLE has the empirical clique marginals: p(a,b) p(c|b) in closed form, whatever the engine."""
    done = dpgm.learn(released(), NaiveMLE(l2=0.0, tolerance=1e-8), inference)
    assert done.converged
    counts = np.zeros((2, 3, 2))
    np.add.at(counts, tuple(CODES.T), 1)
    p = counts / counts.sum()
    assert np.allclose(done.model.marginal(("a", "b")), p.sum(2), atol=1e-6)
    assert np.allclose(done.model.marginal(("b", "c")), p.sum(0), atol=1e-6)
    closed = p.sum(2)[:, :, None] * (p.sum(0) / p.sum((0, 2))[:, None])[None]
    assert np.allclose(done.model.marginal(("a", "b", "c")), closed, atol=1e-6)
    assert done.certificate["gradient"] <= 1e-8
    assert done.notes == []


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_the_gradient_is_as_small_as_said(tolerance):
    """The certificate is the largest derivative of the penalised likelihood, computed anew here."""
    l2 = 1e-3
    release = released(epsilon=1)
    done = dpgm.learn(release, NaiveMLE(l2=l2, tolerance=tolerance))
    from dpgm_naive_mle.projection import targets

    theta = done.model.potentials.values
    slope = done.model.marginals().values - targets(release, project=True).values + 2 * l2 * theta
    assert np.abs(slope).max() == pytest.approx(done.certificate["gradient"], abs=1e-12)
    assert done.converged
    assert done.certificate["gradient"] <= tolerance


def test_discrepancy_stops_where_the_noise_does():
    """The chosen penalty leaves the model within E|y - n| of the noisy tables, and the next stronger one does not."""
    release = released(epsilon="0.2", codes=CODES[:300])
    done = dpgm.learn(release, NaiveMLE(l2="discrepancy"))
    l2 = done.certificate["l2"]
    allowed = sum(cells * expected_absolute(noise) for cells, noise in zip(CHAIN.sizes, release.noise, strict=True))

    def distance(strength: float) -> float:
        model = dpgm.learn(release, NaiveMLE(l2=strength)).model
        return float(np.abs(release.tables.values - release.total * model.marginals().values).sum())

    assert distance(l2) <= allowed * 1.001 or l2 == pytest.approx(1e-7)
    if l2 < 0.1:
        assert distance(l2 * math.sqrt(10)) > allowed * 0.999


def test_a_stronger_penalty_is_nearer_to_uniform():
    """|theta| falls with l2."""
    release = released(epsilon=1)
    norms = [dpgm.learn(release, NaiveMLE(l2=l2)).model.potentials.norm() for l2 in (1e-4, 1e-2, 1.0)]
    assert norms == sorted(norms, reverse=True)


def test_zeros_are_said():
    """Where a target cell is empty the MLE does not exist; the note says so and what was done."""
    codes = np.zeros((100, 3), int)
    for l2, words in ((0.0, "no penalty"), (0.01, "keeps them finite")):
        done = dpgm.learn(released(codes=codes), NaiveMLE(l2=l2))
        assert any("does not exist" in note and words in note for note in done.notes)
        assert np.all(np.isfinite(done.model.potentials.values))


def test_too_few_steps_are_said():
    """Not converged: the flag, the slope and what to raise; the model's file carries them."""
    done = dpgm.learn(released(epsilon=1), NaiveMLE(l2=1e-6, tolerance=1e-12, max_iterations=1))
    assert not done.converged
    assert not done.model.converged
    assert any("raise max_iterations" in note for note in done.notes)


HARD = {
    "all negative": lambda release: with_values(release, np.full(CHAIN.cells, -50)),
    "all zero": lambda release: with_values(release, np.zeros(CHAIN.cells, int), total=1.0),
    "one huge": lambda release: with_values(release, [2**60] + [-(2**60)] * (CHAIN.cells - 1)),
    "total near zero": lambda release: with_values(release, np.arange(CHAIN.cells) - 5, total=1.0),
    "contradictory": lambda release: with_values(release, [100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100]),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("options", [{}, {"l2": "discrepancy"}, {"l2": 0.01}, {"project": False, "l2": 0.01}])
@pytest.mark.parametrize("inference", ["junction-tree", "loopy-bp"])
def test_hard_releases_give_a_model_never_nan(case, options, inference):
    """Finite potentials and probabilities that sum to 1, or one InferenceError."""
    release = HARD[case](released(epsilon=1))
    try:
        done = dpgm.learn(release, NaiveMLE(**options), inference)
    except dpgm.InferenceError:
        assert options.get("project") is False or inference == "loopy-bp"
        return
    assert np.all(np.isfinite(done.model.potentials.values))
    assert done.model.marginal("a").sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"l2": -1}, {"l2": -1.0}, {"l2": math.inf}, {"l2": math.nan}, {"l2": True}, {"l2": "discrepency"},
        {"tolerance": 0}, {"tolerance": math.inf}, {"tolerance": math.nan}, {"max_iterations": 0},
        {"max_iterations": 1.5}, {"project": 1}, {"l2": Fraction(1, 2)},
    ],
)  # fmt: skip
def test_senseless_options_are_refused(wrong):
    with pytest.raises(OptionError):
        dpgm.make("learner", "naive-mle", **wrong)
    if wrong != {"project": 1}:
        with pytest.raises((ValueError, TypeError)):
            NaiveMLE(**wrong)


@pytest.mark.landing
@pytest.mark.parametrize("rule", ["auto", "discrepancy"])
def test_no_rule_runs_into_the_noise(rule) -> None:
    """Where chance puts the noise above its mean no penalty meets the discrepancy rule; it must then stop at the elbow,
    and the bootstrap, which starts from it, must not go astray.

    Binary chain of order 3, N = 10,000, epsilon = 0.1: on two of these three seeds no penalty reaches the expected
    distance, and the weakest one has a KL of ten thousand.
    """
    for seed in range(3):
        truth = dirichlet_model(chain(10, 2, 3), seed)
        assert compare_with_uniform(truth, 10_000, "0.1", seed, l2=rule) < 0.5


@pytest.mark.parametrize("rule", ["auto", "discrepancy"])
def test_large_tables_are_learned_past_the_first_penalties(rule) -> None:
    """With many labels the strongest penalties leave the model uniform: that it hardly moves there is no elbow.

    A star of 20 labels, N = 100,000, epsilon = 1: uniform has a KL of 2.1, and so had the rule that took it for one.
    """
    domain = Domain.from_sizes({f"x{i}": 20 for i in range(6)})
    truth = dirichlet_model(Structure(domain, [("x0", f"x{i}") for i in range(1, 6)]), 5)
    assert compare_with_uniform(truth, 100_000, 1, 5, l2=rule) < 1 / 20


@pytest.mark.parametrize("options", [{}, {"l2": "discrepancy"}])
def test_a_fit_that_is_still_setting_out_is_at_no_elbow(options: dict[str, str]) -> None:
    """Sharp tables, as of people who mostly stay where they are, are far from uniform, and the first penalties shorten
    the distance slowly: a rule that took this for the elbow stopped near the uniform model.

    N = 30,000, epsilon = 1: uniform has a KL of 6.
    """
    assert compare_with_uniform(persistent_model(), 30_000, 1, 1, **options) < 1 / 20


points = hnp.arrays(float, st.integers(1, 12), elements=st.floats(-1e15, 1e15))


@given(points, st.sampled_from([1.0, 3.0, 1e-6]))
@example(np.array([-1e15, -1e15]), 1.0)
@example(np.array([1e15, 1e15, -1.0]), 1.0)
@example(np.zeros(1), 1.0)
def test_it_lands_on_the_simplex_and_nowhere_nearer(point, total):
    """Non-negative, of the right sum, and optimal: x - p is largest exactly on the support (the KKT conditions)."""
    projected = project_to_simplex(point, total)
    assert np.all(projected >= 0)
    assert projected.sum() == pytest.approx(total, rel=1e-9)
    gap = point - projected
    slack = 1e-9 * max(1.0, np.abs(point).max())
    assert np.all(gap[projected > 0] >= gap.max() - slack)


@given(points)
def test_projecting_twice_changes_nothing(point):
    once = project_to_simplex(point)
    assert np.allclose(project_to_simplex(once), once, atol=1e-12)


def test_targets_sum_to_the_number_of_cliques():
    """Projected or not, each plain table sums to 1, a tied one to m_g; only the projected are never negative."""
    domain = Domain.from_sizes({"a": 3, "b": 3, "c": 3})
    structure = Structure(domain, [("a",)], tied=[[("a", "b"), ("b", "c")]])
    release = dpgm.release(np.zeros((5, 3), int), structure, Budget.pure("0.1"), neighbours="add-remove")
    for project in (True, False):
        made = targets(release, project=project)
        assert made.sums() == pytest.approx([1.0, 2.0])
        assert not project or made.values.min() >= 0


class TestNaiveMLE(LearnerConformance):
    """Every check, default options."""

    component = NaiveMLE


# --- The penalty chosen by a parametric bootstrap, and refits under a penalty that is known ---------------------------


def drawn(structure, count, epsilon, seed, total="public"):
    model = dirichlet_model(structure, seed)
    return model, simulated_release(model, count, epsilon, seed, total=total)


def learned(release, learner, inference="junction-tree", seed=1):
    return dpgm.learn(release, learner, inference, randomness=SeededRandomness(seed))


@pytest.mark.landing
def test_auto_is_near_the_oracle():
    """From noise to signal, KL at the chosen penalty is within 15 % of the least over a grid that knows the truth, and
    5 % on average, where the discrepancy rule loses more."""
    grid = 10.0 ** -np.arange(1.2, 5.3, 0.5)
    ratios = {"auto": [], "discrepancy": []}
    for count, epsilon, seed in ((1000, "0.5", 1), (30_000, "0.3", 3), (100_000, 1, 5)):
        model, release = drawn(chain(5, 4, 2), count, epsilon, seed)
        best = min(model.kl(learned(release, NaiveMLE(l2=l2, tolerance=1e-4)).model) for l2 in grid)
        for rule, actual in ratios.items():
            actual.append(math.log(model.kl(learned(release, NaiveMLE(l2=rule)).model) / best))
    assert max(ratios["auto"]) < math.log(1.15)
    assert np.mean(ratios["auto"]) < math.log(1.05) < np.mean(ratios["discrepancy"])


def test_the_tuning_repeats_the_fit():
    """With Fit.tuning as options the learner simulates nothing and gives the same model, to the tolerance."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 7)
    for rule in ("auto", "discrepancy"):
        first = learned(release, NaiveMLE(l2=rule, tolerance=1e-9))
        again = learned(release, NaiveMLE(tolerance=1e-9, **first.tuning))
        assert again.tuning == first.tuning
        assert again.certificate["inference_calls"] < first.certificate["inference_calls"]
        assert np.allclose(again.model.marginals().values, first.model.marginals().values, atol=1e-7)


def test_the_loss_is_the_divergence_from_the_pilot():
    """The mean of KL(pilot || fit) over the simulated releases, against Model.kl of each."""
    model, release = drawn(chain(3, 3), 500, "0.5", 8)
    engine = dpgm.make("inference", "junction-tree").compile(model.structure)
    rehearsal = Rehearsal(release, engine, model.potentials, draws=8, randomness=SeededRandomness(1), progress=silent)
    problems = [Likelihood(engine, targets(one, project=True), silent) for one in rehearsal.releases]
    fits = _Fits(rehearsal, model.potentials.values, problems, 1e-6)
    loss = fits.loss(0.01)
    models = [dpgm.Model(model.structure, Tables(model.structure, fit)) for fit in fits.thetas]
    assert len(models) == 8
    assert loss == pytest.approx(np.mean([model.kl(one) for one in models]), rel=1e-9)


@pytest.mark.parametrize("place", [-20.0, -3.3, -0.5, 0.0, 0.2, 4.6, 20.0])
def test_the_walk_finds_the_bottom_of_a_parabola(place):
    """Exactly, and no further than 12 steps from where it starts, give or take one."""
    actual = _find_minimum(lambda at: (at - place) ** 2)
    assert actual == (pytest.approx(place) if abs(place) < 12 else pytest.approx(math.copysign(12, place), abs=1))


def test_the_walk_stays_where_all_is_equal():
    """One label everywhere: each penalty fits."""
    assert _find_minimum(lambda at: 0.0) == 0


def test_an_engine_without_samples_leaves_it_to_the_discrepancy_rule():
    """The same penalty as by that rule, and a note that says so."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 9)
    done = learned(release, NaiveMLE(), "loopy-bp")
    assert done.tuning == learned(release, NaiveMLE(l2="discrepancy"), "loopy-bp").tuning
    assert any("cannot sample" in note and "junction-tree" in note for note in done.notes)


def test_a_refit_to_the_same_release_is_the_fit():
    """And to others what cold fits to them would be, nearly: of the way from the model it misses a thirtieth at most,
    whether asked for one by one or together."""
    structure = chain(4, 3)
    release = drawn(structure, 2000, "0.5", 10)[1]
    others = [drawn(structure, 2000, "0.5", seed)[1] for seed in (11, 12)]
    fit = learned(release, NaiveMLE(tolerance=1e-8))
    learner = NaiveMLE(tolerance=1e-8, **fit.tuning)
    refit = learner.refitter(fit.model, dpgm.make("inference", "junction-tree"))
    model = fit.model.marginals().values
    assert np.allclose(dpgm.Model(structure, refit(release)).marginals().values, model, atol=1e-6)
    for one, together in zip(others, refit.many(others), strict=True):
        cold = learned(one, learner).model.marginals().values
        again = dpgm.Model(structure, refit(one)).marginals().values
        assert 0 < np.linalg.norm(again - cold) < np.linalg.norm(cold - model) / 30
        assert np.array_equal(together.values, refit(one).values)


def test_refits_are_over_the_structure_of_the_model():
    """Where the model has a wider clique than was measured, so have its refits; without a penalty the start is zero."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    narrow, wide = Structure(domain, [("a", "b"), ("b", "c")]), Structure(domain, [("a", "b", "c")])
    _, release = drawn(narrow, 500, 1, 12)
    for l2 in (0.01, 0.0):
        fit = dpgm.learn(release, NaiveMLE(l2=l2), structure=wide)
        again = NaiveMLE(l2=l2).refitter(fit.model, dpgm.make("inference", "junction-tree"))(release)
        assert again.structure == wide
        assert np.allclose(again.values, fit.model.potentials.values, atol=1e-4)


def test_refits_need_a_penalty_and_a_release():
    """OptionError, before anything is computed, saying what to pass."""
    _, release = drawn(chain(3, 2), 500, 1, 13)
    fit = learned(release, NaiveMLE())
    engine = dpgm.make("inference", "junction-tree")
    for rule in ("auto", "discrepancy"):
        with pytest.raises(OptionError, match=r"Fit\.tuning"):
            NaiveMLE(l2=rule).refitter(fit.model, engine)
    bare = dpgm.Model(fit.model.structure, fit.model.potentials)
    with pytest.raises(OptionError, match="release"):
        NaiveMLE(l2=0.1).refitter(bare, engine)


@pytest.mark.parametrize(
    ("structure", "count"),
    [
        (Structure(Domain.from_sizes({"a": 1, "b": 1}), [("a", "b")]), 100),
        (Structure(Domain.from_sizes({"a": 4}), [("a",)]), 0),
        (Structure(Domain.from_sizes({"a": 3, "b": 2}), [("a", "b")]), 10**8),
    ],
    ids=["one label", "no records", "a hundred million"],
)
@pytest.mark.parametrize("total", ["estimated", 1e8])
def test_auto_survives_extremes(structure, count, total):
    """Finite potentials and probabilities that sum to 1, whatever N is said to be."""
    _, release = drawn(structure, min(count, 100), 1, 14, total="estimated")
    scale = max(1, count // 100)
    values = release.tables.values * scale
    release = with_tables(release, values, total if isinstance(total, float) else max(1.0, release.total * scale))
    done = learned(release, NaiveMLE())
    assert np.all(np.isfinite(done.model.potentials.values))
    assert math.isfinite(done.tuning["l2"])
    assert done.model.marginal("a").sum() == pytest.approx(1)


def with_tables(release, values, total):
    return attrs.evolve(release, tables=Tables(release.structure, values), total=total)
