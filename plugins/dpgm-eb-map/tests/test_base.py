"""A public model as the prior's centre: what it gives, what it costs when it is wrong, what is refused and when."""

import attrs
import numpy as np
import pytest
from dpgm_eb_map.base import open_base
from dpgm_eb_map.contrasts import basis_of
from dpgm_eb_map.posterior import Moments

import dpgm_core as dpgm
from dpgm_core import Domain, OptionError, SecondOrder, Tables
from dpgm_core import Structure as S
from dpgm_testing.learning import simulated_release

from .measured import measure

SIZES = {"a": 4, "b": 3, "c": 3, "d": 2}
DOMAIN = Domain.from_sizes(SIZES)
CHAIN = S(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d")])
MEASURED = S(DOMAIN, [("a",), ("b",), ("c", "d")])
ENGINE = dpgm.make("inference", "junction-tree")


def model(seed, structure=CHAIN, scale=0.8):
    theta = np.random.default_rng(seed).normal(scale=scale, size=structure.cells)
    return dpgm.Model(structure, Tables(structure, theta))


def released(truth, structure, rho, seed=100, records=3000):
    budget = dpgm.Budget.zcdp(rho)
    return simulated_release(truth, records, budget, seed, "gaussian", structure=structure, total="estimated")


def learn(noisy, **options):
    return dpgm.learn(noisy, dpgm.make("learner", "eb-map", **options))


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_where_the_tables_tell_nothing_the_model_is_the_base(curvature):
    """Noise of a thousand a cell: potentials are the base's, main effects included, over its cliques too."""
    base = model(1)
    fit = learn(released(base, MEASURED, "0.0000005"), base=base, curvature=curvature)
    assert dpgm.kl_divergence(base, fit.model) < 1e-9
    assert set(fit.model.structure.cliques) == {*MEASURED.cliques, ("a", "b"), ("b", "c")}
    assert any("public model" in note for note in fit.notes) and any("is the base" in note for note in fit.notes)


@pytest.mark.landing
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_a_base_that_is_true_helps_and_a_wrong_one_hurts_little(curvature):
    """Three fixed releases of the whole chain each: with the truth for a base the KL is less than a fifth of that
    without in faint tables, and with a random one at most 1.05 times it in loud ones."""
    right, wrong = [], []
    for seed in range(100, 103):
        truth = model(seed)
        faint, loud = released(truth, CHAIN, "0.0005", seed), released(truth, CHAIN, "0.5", seed, 50_000)
        alone, loudly = (dpgm.kl_divergence(truth, learn(one, curvature=curvature).model) for one in (faint, loud))
        right.append(dpgm.kl_divergence(truth, learn(faint, base=truth, curvature=curvature).model) / alone)
        wrong.append(dpgm.kl_divergence(truth, learn(loud, base=model(seed + 50), curvature=curvature).model) / loudly)
    assert np.exp(np.mean(np.log(np.maximum(right, 1e-6)))) < 0.2
    assert np.exp(np.mean(np.log(wrong))) < 1.05


@pytest.mark.parametrize("exact", [True, False])
def test_deviations_have_the_moments_of_the_whole_model(exact):
    """Marginals, log Z and second derivatives at base and deviations are those of the sum of both."""
    base = open_base(model(1))
    noisy = released(model(2), MEASURED, "0.01")
    engine = base.compile(ENGINE if exact else dpgm.make("inference", "loopy-bp"), MEASURED)
    theta = Tables(MEASURED, np.random.default_rng(3).normal(size=MEASURED.cells))
    wide = base.over(MEASURED)
    whole = dpgm.Model(wide, theta.embed(wide) + base.potentials.embed(wide))
    actual = engine.infer(theta, total=7.0)
    for clique in MEASURED.cliques:
        np.testing.assert_allclose(actual.marginals[clique], 7 * whole.marginal(clique), atol=1e-7)
    assert actual.log_partition == pytest.approx(whole.log_partition, abs=1e-7)
    assert isinstance(engine, SecondOrder) == exact
    if exact:
        moments = Moments(engine, basis_of(noisy))
        phi = moments.basis.parameters(theta)
        direction = np.random.default_rng(4).normal(size=phi.shape)
        np.testing.assert_allclose(moments.covariance(phi)(direction), moments.along(phi, direction), atol=1e-6)
        np.testing.assert_allclose(moments.covariances(phi) @ direction, moments.along(phi, direction), atol=1e-6)


def test_a_loop_starts_from_the_base():
    """The first fit, to one-way tables that tell nothing, is the base; the next goes on from it, and is the one from
    nothing."""
    truth = model(5)
    fitting = dpgm.make("learner", "eb-map", base=truth).fitter(ENGINE)
    ones = S(DOMAIN, [(name,) for name in SIZES])
    faint = released(truth, ones, "0.0000005")
    first = fitting(faint, ones, None)
    assert dpgm.kl_divergence(truth, first.model) < 1e-9
    loud = released(model(6), CHAIN, "0.01")
    afresh = dpgm.make("learner", "eb-map", base=truth).fitter(ENGINE)(loud, CHAIN, None)
    warm = fitting(loud, CHAIN, first)
    assert dpgm.kl_divergence(afresh.model, warm.model) < 1e-9
    again = fitting(loud, CHAIN, warm)
    assert dpgm.kl_divergence(afresh.model, again.model) < 0.01 * dpgm.kl_divergence(model(6), afresh.model)


def test_codes_that_a_session_merged_are_merged_in_the_base():
    """Each cluster's law is that of the base with cells summed, over the coarse domain."""
    triangle = S(DOMAIN, [("a", "b"), ("b", "c"), ("c", "a"), ("d",)])
    fine = model(7, triangle)
    merges = {"a": (0, 1, 1, 2), "c": (0, 0, 1)}
    session = dpgm.SessionTerms(workload=dpgm.Workload.all(DOMAIN), budget=dpgm.Budget.zcdp(1), merges=merges)
    coarse_domain = DOMAIN.coarsened(merges)
    codes = np.zeros((100, 4), dtype=int)
    noisy = measure(codes, S(coarse_domain, [("a", "b")]), "0.01")
    actual = open_base(fine).like(attrs.evolve(noisy, session=session)).potentials
    coarse = dpgm.Model(actual.structure, actual)
    assert coarse.domain == coarse_domain
    sums = np.zeros((3, 4))[:, [0, 2, 3]]
    for old, new in enumerate(merges["a"]):
        sums[new] += fine.marginal(("a", "b"))[old]
    np.testing.assert_allclose(coarse.marginal(("a", "b")), sums, atol=1e-12)
    np.testing.assert_allclose(coarse.marginal("d"), fine.marginal("d"), atol=1e-12)


def test_from_a_file_by_its_path(tmp_path):
    """The same fit as from the object; provenance has the path, notes the name alone, and error bars can be made."""
    base = model(9)
    path = tmp_path / "public.dpgm"
    base.save(path)
    noisy = released(model(10), CHAIN, "0.01")
    fit, of_object = learn(noisy, base=str(path)), learn(noisy, base=base)
    np.testing.assert_allclose(fit.model.potentials.values, of_object.model.potentials.values)
    assert fit.model.provenance["learner"]["options"]["base"] == str(path)
    assert any("public.dpgm" in note for note in fit.notes) and not any(str(path) in note for note in fit.notes)
    assert len(dpgm.bootstrap(fit.model, 2, randomness=dpgm.SeededRandomness(1)).replicates) == 2
    model(11).save(path)
    with pytest.raises(OptionError, match="not the one that the model was learned with"):
        dpgm.bootstrap(fit.model, 2, randomness=dpgm.SeededRandomness(1))


def test_a_model_learned_with_an_object_says_so(tmp_path):
    """Its file holds plain values; refits want the learner with that object, and then work like any."""
    base = model(9)
    fit = learn(released(model(10), MEASURED, "0.01"), base=base)
    fit.model.save(tmp_path / "fit.dpgm")
    read = dpgm.load_model(tmp_path / "fit.dpgm")
    assert read.provenance["learner"]["options"]["base"] == "<Model given as an object>"
    with pytest.raises(OptionError, match=r"'base'.*given as an object"):
        dpgm.bootstrap(read, 2)
    learner = dpgm.make("learner", "eb-map", base=base)
    replicates = dpgm.bootstrap(read, 2, learner=learner, randomness=dpgm.SeededRandomness(1)).replicates
    assert all(0 < dpgm.kl_divergence(fit.model, one) < 0.1 for one in replicates)


def test_what_is_no_public_base_is_refused_before_the_charge(tmp_path):
    """A model with a release, one over other labels or that rules records out, and tied cliques: by name, and nothing
    is charged."""
    public = model(1)
    private = learn(released(public, CHAIN, "0.01")).model
    other = model(1, S(Domain.from_sizes(SIZES | {"a": 5}), [("a", "b")]))
    barred = Tables(CHAIN, np.where(np.arange(CHAIN.cells) == 0, -np.inf, 0.0))
    tied = S(DOMAIN, [("a",)], tied=[[("b",), ("c",)]])
    codes = np.zeros((50, 4), dtype=int)
    for base, structure, word in (
        (private, CHAIN, "carries 1 release"), (other, CHAIN, "other attributes or labels"),
        (dpgm.Model(CHAIN, barred), CHAIN, "-inf"), (public, tied, "tied"),
    ):  # fmt: skip
        ledger = dpgm.Ledger.create(
            tmp_path / f"{word[:3]}.ledger", name="x", budget=dpgm.Budget.pure(5), neighbours="add-remove"
        )
        with pytest.raises(OptionError, match=word):
            dpgm.fit(
                codes, structure, dpgm.Budget.pure(1), learner={"name": "eb-map", "base": base},
                neighbours="add-remove", ledger=ledger,
            )  # fmt: skip
        assert not ledger.history()
