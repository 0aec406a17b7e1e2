"""The capacity chosen by a parametric bootstrap, and refits with one that is known."""

from __future__ import annotations

import math
from functools import partial

import attrs
import numpy as np
import pytest
from dpgm_cgm_em.learner import CgmEm, _find_minimum, by_bootstrap

import dpgm_core as dpgm
from dpgm_core import Domain, OptionError, SeededRandomness, Structure, Tables
from dpgm_core._util.progress import silent
from dpgm_testing.learning import chain, dirichlet_model, persistent_model, simulated_release

ENGINE = dpgm.make("inference", "junction-tree")


def drawn(structure, count, epsilon, seed, total="public"):
    model = dirichlet_model(structure, seed)
    return model, simulated_release(model, count, epsilon, seed, total=total)


def learned(release, inference="junction-tree", seed=1, **options):
    return dpgm.learn(release, dpgm.make("learner", "cgm-em", **options), inference, randomness=SeededRandomness(seed))


@pytest.mark.landing
def test_auto_is_near_the_best_of_its_path():
    """From noise to signal, KL is within 15 % of the least on the path, and 10 % on average."""
    losses = []
    for count, epsilon, seed in ((1000, "0.5", 1), (30_000, "0.3", 3), (100_000, 1, 5)):
        model, release = drawn(chain(5, 4, 2), count, epsilon, seed)
        best = min(model.kl(learned(release, tau=tau).model) for tau in np.arange(0.4, 4, 0.4))
        losses.append(math.log(model.kl(learned(release).model) / best))
    assert max(losses) < math.log(1.15)
    assert np.mean(losses) < math.log(1.1)


@pytest.mark.landing
def test_with_the_truth_as_pilot_the_bootstrap_alone_finds_the_best_point():
    """KL there is within 2 % of the least on the real path: the measure is KL(truth || fit) itself."""
    model, release = drawn(chain(5, 4, 2), 10_000, "0.5", 2)
    engine = ENGINE.compile(model.structure)
    begin = partial(CgmEm().begin, engine=engine, progress=silent)
    tau, calls = by_bootstrap(
        begin, release, engine, model.potentials.values, 0.1, 10.0, randomness=SeededRandomness(1), progress=silent
    )
    kls = {at: model.kl(learned(release, tau=at).model) for at in np.arange(0.6, 3, 0.1)}
    assert min(kls.values()) * 1.02 > model.kl(learned(release, tau=tau).model)
    assert calls > 0


@pytest.mark.parametrize(
    "options", [{}, {"stop": "plateau"}, {"stop": "discrepancy"}, {"tau": 1.23}, {"tau": 0.3, "steps": 2}]
)
def test_the_tuning_repeats_the_fit(options):
    """With Fit.tuning as options the learner takes the same path, up to rounding, and simulates nothing."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 7)
    first = learned(release, **options)
    again = learned(release, **first.tuning)
    assert again.tuning["tau"] == pytest.approx(first.tuning["tau"])
    assert again.tuning["steps"] == first.tuning["steps"] == len(first.trace)
    assert np.allclose(again.model.potentials.values, first.model.potentials.values, atol=1e-6)
    # a rounded tau may cost a step one call more, a simulation costs hundreds
    assert again.certificate["inference_calls"] <= first.certificate["inference_calls"] + len(first.trace)


def test_under_a_stopping_rule_tau_is_the_cap():
    """stop = "plateau" with tau left alone goes up to 10, as with tau = 10; a smaller tau ends it before."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 8)
    left, said, short = (learned(release, stop="plateau", **more) for more in ({}, {"tau": 10.0}, {"tau": 0.2}))
    assert np.array_equal(left.model.potentials.values, said.model.potentials.values)
    assert short.tuning["tau"] == pytest.approx(0.2)
    assert left.tuning["tau"] > 0.5


def test_the_lowest_point():
    """Between three falling and rising numbers by a parabola, at the ends as they are."""
    assert _find_minimum([4.0, 1.0, 0.0, 1.0]) == 2
    assert _find_minimum([(place - 1.3) ** 2 for place in range(4)]) == pytest.approx(1.3)
    assert _find_minimum([0.0, 1.0]) == 0
    assert _find_minimum([1.0, 0.0]) == 1
    assert _find_minimum([0.0, 0.0, 0.0]) == 0


def test_an_engine_without_samples_leaves_it_to_the_plateau():
    """The same path as under that rule, and a note that says so."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 9)
    done = learned(release, "loopy-bp")
    assert done.tuning == learned(release, "loopy-bp", stop="plateau").tuning
    assert any("cannot sample" in note and "junction-tree" in note for note in done.notes)


def test_steps_that_do_not_converge_are_not_simulated():
    """Where the first path's steps fail, eight more would cost much and tell little: the plateau rule, with a note."""
    _, release = drawn(chain(4, 3), 2000, "0.5", 10)
    e_step = {"name": "collective-dual", "max_calls": 1}
    done = learned(release, e_step=e_step)
    assert done.tuning == learned(release, e_step=e_step, stop="plateau").tuning
    assert any("not even the first path" in note for note in done.notes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("e_step", ["collective-dual", "soft-sign", "nlbp"])
def test_a_refit_to_the_same_release_is_the_fit(e_step):
    """And to another one what a fit to it would be, whatever the E-step."""
    structure = chain(4, 3)
    _, release = drawn(structure, 2000, "0.5", 11)
    _, other = drawn(structure, 2000, "0.5", 12)
    fit = learned(release, e_step=e_step)
    refit = CgmEm(e_step=e_step, **fit.tuning).refitter(fit.model, ENGINE)
    for one in (release, other, release):
        cold = learned(one, e_step=e_step, **fit.tuning)
        assert np.allclose(refit(one).values, cold.model.potentials.values, atol=1e-9)


def test_refits_are_over_the_structure_of_the_model():
    """Where the model has a wider clique than was measured, so have its refits."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    narrow, wide = Structure(domain, [("a", "b"), ("b", "c")]), Structure(domain, [("a", "b", "c")])
    _, release = drawn(narrow, 500, 1, 13)
    fit = dpgm.learn(release, CgmEm(tau=0.5), structure=wide)
    again = CgmEm(tau=0.5).refitter(fit.model, ENGINE)(release)
    assert again.structure == wide
    assert np.allclose(again.values, fit.model.potentials.values, atol=1e-9)


def test_refits_need_a_capacity_and_a_release():
    """OptionError, before anything is computed, saying what to pass."""
    _, release = drawn(chain(3, 2), 500, 1, 14)
    fit = learned(release)
    for options in ({}, {"tau": 2.0, "stop": "plateau"}):
        with pytest.raises(OptionError, match=r"Fit\.tuning"):
            CgmEm(**options).refitter(fit.model, ENGINE)
    bare = dpgm.Model(fit.model.structure, fit.model.potentials)
    with pytest.raises(OptionError, match="release"):
        CgmEm(tau=1.0).refitter(bare, ENGINE)


HARD = {
    "all negative": (lambda cells: np.full(cells, -50), 100.0),
    "all zero": (lambda cells: np.zeros(cells, int), 1.0),
    "total near zero": (lambda cells: np.arange(cells) - 5, 1.0),
    "a hundred million": (lambda cells: np.full(cells, 10**8 // cells) + np.arange(cells), 1e8),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize(
    "structure",
    [
        chain(3, 3),
        Structure(Domain.from_sizes({"x0": 4}), [("x0",)]),
        Structure(Domain.from_sizes({"x0": 1, "x1": 1}), [("x0", "x1"), ()]),
        Structure(Domain.from_sizes(dict.fromkeys(("x0", "x1", "x2"), 2)), [], tied=[[("x0", "x1"), ("x1", "x2")]]),
    ],
    ids=["chain", "single", "one label", "tied"],
)
def test_auto_survives_hard_releases(case, structure):
    values, total = HARD[case]
    _, release = drawn(structure, 50, 1, 15, total="estimated")
    release = attrs.evolve(release, tables=Tables(structure, values(structure.cells)), total=total)
    done = learned(release)
    assert np.all(np.isfinite(done.model.potentials.values))
    assert math.isfinite(done.tuning["tau"])
    assert done.model.marginal("x0").sum() == pytest.approx(1)


@pytest.mark.parametrize("tau", [0.0, -1, math.inf, math.nan, True, "plateau"])
def test_senseless_capacities_are_refused(tau):
    with pytest.raises(OptionError, match="tau"):
        dpgm.make("learner", "cgm-em", tau=tau)
    with pytest.raises(ValueError, match="tau"):
        CgmEm(tau=tau)


@pytest.mark.parametrize("options", [{}, {"stop": "plateau"}])
def test_em_that_is_still_setting_out_is_on_no_plateau(options: dict[str, str]) -> None:
    """Sharp tables, as of people who mostly stay where they are, are far from uniform, and the first steps shorten the
    distance slowly: a rule that took this for the plateau stopped near the uniform model.

    N = 30,000, epsilon = 1: uniform has a KL of 6.
    """
    truth = persistent_model()
    fit = learned(simulated_release(truth, 30_000, 1, 1, total="estimated"), **options)
    assert truth.kl(fit.model) < truth.kl(dpgm.Model(truth.structure, Tables.zeros(truth.structure))) / 20
