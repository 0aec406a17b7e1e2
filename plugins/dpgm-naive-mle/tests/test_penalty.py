"""The penalty chosen by a parametric bootstrap, and refits under a penalty that is known."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from dpgm_naive_mle.learner import NaiveMLE
from dpgm_naive_mle.penalty import _find_minimum, _Fits
from dpgm_naive_mle.projection import targets

import dpgm_core as dpgm
from dpgm_core import Domain, OptionError, SeededRandomness, Structure, Tables
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, Rehearsal
from dpgm_testing.learning import chain, dirichlet_model, simulated_release


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
