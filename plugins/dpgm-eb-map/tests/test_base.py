"""A public model as the prior's centre: what it gives, what it costs when it is wrong, what is refused and when."""

import itertools

import attrs
import numpy as np
import pytest
from dpgm_eb_map import joints
from dpgm_eb_map.base import open_base
from dpgm_eb_map.contrasts import basis_of
from dpgm_eb_map.joints import covariance_by_pairs
from dpgm_eb_map.posterior import Moments, statistics_of
from dpgm_eb_map.run import _residuals

import dpgm_core as dpgm
from dpgm_core import Domain, InferenceError, OptionError, SecondOrder, Structure, Tables
from dpgm_core import Structure as S
from dpgm_core.privacy import products, spread
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


# --- eb-map where the tables tell nothing: the uniform model, and intervals that do not take it for the truth ---------


def released_empty_model(truth, structure, records, budget, seed):
    codes = np.stack(truth.engine.sample(truth.potentials, records, np.random.default_rng(seed)), axis=1)
    return dpgm.release(
        codes, structure, budget, "laplace" if budget.kind == "pure" else "gaussian",
        terms=dpgm.Terms(neighbours="add-remove", total="public"), randomness=dpgm.SeededRandomness(seed),
    )  # fmt: skip


def chain(labels, length, order=3):
    domain = Domain.from_sizes({f"x{place}": labels for place in range(length)})
    return Structure.chain(domain, order)


PURE, ZCDP = dpgm.Budget.pure("0.1"), dpgm.Budget.zcdp("0.0002")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
@pytest.mark.parametrize("budget", [PURE, ZCDP], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_pure_noise_gives_the_uniform_model(budget, seed, curvature):
    """Uniform records under noise 8 times their cells: no interaction, and of single attributes KL below .01; a rule
    without a test had 1 to 4 nats. As simulated, one of the twenty runs fails in one of five choices of seeds."""
    structure = chain(5, 8)
    truth = dpgm.Model(structure, Tables.zeros(structure))
    noisy = released_empty_model(truth, structure, 1000, budget, 400 + seed)
    fit = dpgm.learn(noisy, {"name": "eb-map", "curvature": curvature})
    assert dpgm.kl_divergence(truth, fit.model) < 0.01 and fit.converged
    assert "hardly tell" in fit.notes[-1] and set(fit.tuning["scales"][1:]) == {0.003}


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_faint_main_effects_are_kept(curvature):
    """Single columns and pairs at noise of three times what the columns deviate by: each release alone does not tell
    them from uniform ones, but the mean error over eight is below that of the uniform model, which was the answer."""
    domain = Domain.from_sizes(dict.fromkeys("abcdef", 3))
    alone = Structure(domain, [*((name,) for name in domain.names), ("a", "b"), ("c", "d")])
    theta = Tables(alone, np.concatenate([np.tile([0.4, 0.0, -0.4], 6), np.zeros(18)]))
    truth = dpgm.Model(alone, theta)
    errors, empty = [], 0
    for seed in range(8):
        noisy = released_empty_model(truth, alone, 300, dpgm.Budget.zcdp("0.0012"), seed)
        fit = dpgm.learn(noisy, {"name": "eb-map", "curvature": curvature})
        empty += "hardly tell" in fit.notes[-1]
        errors += dpgm.total_variation(fit.model, truth, [(name,) for name in "abcdef"]).values()
    uniform = dpgm.total_variation(dpgm.Model(alone, Tables.zeros(alone)), truth, [("a",)])["a",]
    assert empty >= 6
    assert np.mean(errors) < 0.95 * uniform


@pytest.mark.parametrize("seed", range(3))
def test_what_is_there_is_not_taken_for_nothing(seed):
    """One pair of 28 told of by six standard errors; all alone, and with noise that drowns each other cell."""
    domain = Domain.from_sizes({f"x{place}": 2 for place in range(8)})
    structure = Structure(domain, list(itertools.combinations(domain.names, 2)))
    theta = np.zeros(structure.cells)
    theta[:4] = [0.5, -0.5, -0.5, 0.5]
    truth = dpgm.Model(structure, Tables(structure, theta))
    noisy = released_empty_model(truth, structure, 5000, dpgm.Budget.zcdp("0.0005"), seed)
    fit = dpgm.learn(noisy, "eb-map")
    pair = fit.model.marginal(("x0", "x1"))
    assert pair[0, 0] + pair[1, 1] > 0.6


def test_one_far_cell_speaks_alone():
    """Of 400 cells one has 250 records more, eight standard errors: the evidence of a scale for all hardly notices, and
    left it hardly more than the others."""
    structure = Structure(Domain.from_sizes({"a": 20, "b": 20}), [("a", "b")])
    codes = np.random.default_rng(1).integers(0, 20, (9000, 2))
    codes[:250] = 7
    noisy = measure(codes, structure, "0.0005")
    left = noisy.tables["a", "b"][7, 7] - noisy.total * dpgm.learn(noisy, "eb-map").model.marginal(("a", "b"))[7, 7]
    assert left < 5.1 * float(noisy.variances[0]) ** 0.5


def test_a_cell_is_as_unlikely_as_its_own_noise_has_it():
    """Ten scales of Laplace noise are ten nats, where a Gaussian of that variance has 25; a Gaussian keeps its own."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    truth = dpgm.Model(structure, Tables.zeros(structure))
    for budget, distance, nats in (
        (dpgm.Budget.pure("0.001"), 10_000, 10.0),
        (dpgm.Budget.zcdp("1/2000000"), 5000, 12.5),
    ):
        noisy = released_empty_model(truth, structure, 100, budget, 1)
        cells = np.array([50 + distance, 50 - distance])
        moved = attrs.evolve(noisy, tables=Tables(structure, cells))
        np.testing.assert_allclose(_residuals(moved, np.array([0.5, 0.5]))[1], nats, rtol=0.01)


def test_intervals_of_nothing_are_wide():
    """The model of drowned tables is nearly uniform, but its intervals hold shares that the noise may well hide."""
    structure = chain(3, 4, order=1)
    noisy = released_empty_model(
        dpgm.Model(structure, Tables.zeros(structure)), structure, 1000, dpgm.Budget.zcdp("0.0001"), 3
    )
    fit = dpgm.learn(noisy, "eb-map")
    assert abs(fit.model.potentials.values).max() < 0.05
    model = dpgm.bootstrap(fit.model, 20, randomness=dpgm.SeededRandomness(1))
    actual = model.intervals("x0", level=0.9)
    assert (actual.high - actual.low > 0.2).all()


MIXED = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 3, "f": 2})
STRUCTURES = {
    "a chain, axes turned": Structure(MIXED, [("a", "b"), ("c", "b"), ("e", "c")]),
    "two components": Structure(MIXED, [("a", "b"), ("f", "e")]),
    "orders 1 to 3, nested": Structure(MIXED, [("c", "a", "b"), ("b", "a"), ("e", "b"), ("c",)]),
    "a loop": Structure(MIXED, [("a", "b"), ("c", "b"), ("c", "f"), ("f", "a")]),
    "one label": Structure(MIXED, [("d", "a"), ("d",)]),
    "one table": Structure(MIXED, [("e", "c", "b")]),
    "tied": Structure(MIXED, [("a", "b"), ("a", "e")], tied=[[("b", "c"), ("e", "c")]]),
}


def drawn(name, inference="junction-tree", **options):
    structure = STRUCTURES[name]
    noisy = measure(np.zeros((100, 6), dtype=int), structure, "0.1")
    basis = basis_of(noisy)
    theta = Tables(structure, basis.potentials(np.random.default_rng(2).normal(size=basis.size)))
    return dpgm.make("inference", inference, **options).compile(structure), basis, theta


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "tied"])
def test_the_covariance_is_the_one_from_derivatives(monkeypatch, name):
    """Whatever tables share, in whatever order, and where shares of what they tell are not alike."""
    monkeypatch.setattr(joints, "_WORTH", 0)
    engine, basis, theta = drawn(name)
    actual = covariance_by_pairs(engine, basis, theta)
    known = basis.statistics(engine.curvature(theta)(basis.matrix()))
    np.testing.assert_allclose(actual, known, rtol=0, atol=1e-14)
    assert np.diag(known).min(initial=1.0) > 1e-3


def test_derivatives_where_joint_distributions_do_not_serve(monkeypatch):
    """Ties, few parameters for the pairs, large tables, engines without exact queries, and too little memory."""
    assert covariance_by_pairs(*drawn("a loop")) is None
    monkeypatch.setattr(joints, "_WORTH", 0)
    assert covariance_by_pairs(*drawn("a loop")) is not None
    assert covariance_by_pairs(*drawn("tied")) is None
    assert covariance_by_pairs(*drawn("a loop", "loopy-bp")) is None
    assert covariance_by_pairs(*drawn("one table", max_bytes=2**11)) is None
    monkeypatch.setattr(joints, "_LARGEST", 7)
    assert covariance_by_pairs(*drawn("a loop")) is None


def test_what_the_engine_refuses_is_refused(monkeypatch):
    """NaN potentials."""
    monkeypatch.setattr(joints, "_WORTH", 0)
    engine, basis, theta = drawn("a loop")
    with pytest.raises(InferenceError):
        covariance_by_pairs(engine, basis, theta.like(np.full(theta.structure.cells, np.nan)))


# --- eb-map on contrasts: each is a statistic of its own, and fits are those of tables that say the same --------------

BINARY = Domain.from_sizes(dict.fromkeys("abcde", 2))
PAIRS = Structure(BINARY, [("a", "b"), ("c", "b"), ("d", "c")])
TRIPLE = Structure(BINARY, [("a", "b", "c"), ("c", "d", "e")])


def truth(structure, seed=0):
    return dpgm.Model(structure, Tables(structure, np.random.default_rng(seed).normal(size=structure.cells) / 2))


def release(structure, budget, seed=0, count=3000, total="estimated", **terms):
    budget = dpgm.Budget.zcdp(budget)
    return simulated_release(truth(structure), count, budget, seed, "gaussian", total=total, split="contrasts", **terms)


def learn_contrast_releases(noisy, structure, inference="junction-tree", **options):
    return dpgm.learn(noisy, {"name": "eb-map", **options}, structure=structure, inference=inference)


@pytest.mark.parametrize("structure", [PAIRS, TRIPLE])
@pytest.mark.parametrize("total", ["estimated", 3000])
def test_each_parameter_has_one_contrast(structure, total):
    """z is the contrast over sqrt(2^|S|), with the noise of it alone; B is the whole model."""
    noisy = release(structure, "0.01", total=total)
    basis = basis_of(noisy)
    sums = {
        frozenset(one): (c, v)
        for one, c, v in zip(
            noisy.structure.cliques, products(noisy.tables), noisy.measurement.sum_variances, strict=True
        )
    }
    z = statistics_of(basis, noisy)
    assert basis.size == len(sums) - (frozenset() in sums)
    for effect in basis.effects:
        clique = frozenset(effect.cliques[0])
        assert z[effect.part.start] == pytest.approx(sums[clique][0] / 2 ** (len(clique) / 2), rel=1e-12)
        assert basis.variances[effect.part.start] == pytest.approx(sums[clique][1] / 2 ** len(clique), rel=1e-12)
    model = truth(structure)
    phi = basis.parameters(model.potentials)
    again = dpgm.Model(noisy.structure, Tables(noisy.structure, basis.potentials(phi)))
    for clique in structure.cliques:
        np.testing.assert_allclose(again.marginal(clique), model.marginal(clique), atol=1e-12)


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_without_noise_to_speak_of_the_fit_is_the_records(curvature):
    """At a budget of 1e8 every pair is that of the records, though none of its cells was measured."""
    noisy = release(PAIRS, "1e8")
    fit = learn_contrast_releases(noisy, PAIRS, curvature=curvature)
    for clique in PAIRS.cliques:
        np.testing.assert_allclose(fit.model.marginal(clique), noisy.tables[clique] / 3000, atol=4e-3)
    assert set(fit.model.structure.cliques) == set(PAIRS.cliques)


def test_noise_alone_is_nothing():
    """Contrasts of a fair coin each, at noise of forty records: the model is uniform but for a hundredth."""
    codes = np.array(list(itertools.product((0, 1), repeat=5)) * 10)
    fit = learn_contrast_releases(measure(codes, PAIRS, "0.003", 5, split="contrasts", total=320), PAIRS)
    np.testing.assert_allclose(fit.model.marginal(("a", "b")), 0.25, atol=0.01)


def test_one_loud_contrast_among_noise_is_heard():
    """A coupling ten standard deviations strong comes out nearly whole, beside nine of pure noise."""
    complete = Structure.complete(BINARY).cliques[0]
    pairs = Structure(BINARY, list(itertools.combinations(complete, 2)))
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 2, (2000, 5))
    codes[:, 1] = np.where(rng.random(2000) < 0.8, codes[:, 0], 1 - codes[:, 0])
    noisy = measure(codes, pairs, "0.0005", 5, split="contrasts", total=2000)
    table = learn_contrast_releases(noisy, pairs).model.marginal(("a", "b"))
    # |correlation| .6 with a noise of .06, and .02 of sampling: within 4 of them unless it was taken for noise
    assert table[0, 0] + table[1, 1] == pytest.approx(0.8, abs=0.13)


def test_refits_are_of_contrasts_too():
    """Replicates spread as the noise of contrasts and sampling do: within a factor of 2 of it (30 draws, seeded)."""
    noisy = release(PAIRS, "0.002", total=3000)
    fit = learn_contrast_releases(noisy, PAIRS)
    errors = dpgm.bootstrap(fit.model, 30, randomness=dpgm.SeededRandomness(2)).standard_errors(("a", "b"))
    number = noisy.structure.cliques.index(("a", "b"))
    # a cell is a quarter of the sum of N and three contrasts
    expected = np.sqrt(3 * (noisy.measurement.sum_variances[number] + 3000)) / 4 / 3000
    assert 0.5 < errors.mean() / expected < 2


def test_sets_nobody_measured_are_left_alone():
    """A release of a pair's product alone, as a session may hand out, has one parameter."""
    noisy = release(Structure(BINARY, [("a", "b")]), "0.1", total=3000)
    alone = Structure(BINARY, [("a", "b")])
    value = products(noisy.tables)[noisy.structure.cliques.index(("a", "b"))]
    part = attrs.evolve(
        noisy,
        tables=spread(alone, np.array([value]), 3000.0),
        measurement=attrs.evolve(noisy.measurement, structure=alone, of_group=(0,)),
    )
    assert basis_of(part).size == 1
