"""eb-map: its parameters are what they claim to be, its fits are accurate untouched, odd releases do not break it."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from attrs import evolve
from dpgm_eb_map import contrasts as contrasts_module
from dpgm_eb_map import scales
from dpgm_eb_map.contrasts import WIDE, basis_of, bins_of, contrasts, group_count
from dpgm_eb_map.dense import Dense
from dpgm_eb_map.descent import Objective
from dpgm_eb_map.learner import EbMap
from dpgm_eb_map.posterior import Moments, pilot

import dpgm_core as dpgm
from dpgm_core import Attribute, Domain, Fitter, OptionError, Structure, Tables
from dpgm_core.learning.bootstrap import Simulator
from dpgm_core.releases.pooling import pool
from dpgm_core.sources import as_source
from dpgm_testing import LearnerConformance
from dpgm_testing.learning import chain, dirichlet_model, sample_codes, simulated_release

from .measured import MIXED, measure
from .measured import STRUCTURES as SEVERAL

STRUCTURES = SEVERAL | {
    "tied twice": Structure(MIXED, [("a",)], tied=[[("b", "e"), ("e", "b")][:1], [("b",), ("e",)]]),
}


def release(model, count, epsilon, seed, total="public", mechanism="laplace"):
    budget = dpgm.Budget.approx(epsilon, 1e-6) if mechanism == "gaussian" else dpgm.Budget.pure(epsilon)
    return simulated_release(model, count, budget, seed, mechanism, total=total)


def learn(noisy, inference="junction-tree", **options):
    return dpgm.learn(noisy, dpgm.make("learner", "eb-map", **options), inference)


def with_tables(noisy, values, **changes):
    return attrs.evolve(noisy, tables=Tables(noisy.structure, np.asarray(values)), **changes)


@pytest.fixture(scope="module")
def small():
    return release(dirichlet_model(chain(4, 3), 1), 1000, 0.5, 1)


def any_release(structure, seed=3):
    """A release over any structure, whose first labels are the commonest; every second table has another noise."""
    falling = [-np.add.outer(0, sum(np.indices(shape))).ravel() / 2 for shape in structure.shapes]
    skewed = dpgm.Model(structure, Tables(structure, np.concatenate(falling)))
    noisy = release(skewed, 200, 1.0, seed)
    other = release(skewed, 200, 0.25, seed)
    measurement = attrs.evolve(
        noisy.measurement,
        calibrations=noisy.calibrations + other.calibrations,
        of_group=tuple(number % 2 for number in range(len(structure.groups))),
    )
    return attrs.evolve(noisy, measurement=measurement)


def test_contrasts_are_orthonormal_and_sum_to_zero():
    """Q'Q = I and 1'Q = 0, for any number of labels."""
    for size, bins in ((1, 0), (2, 0), (3, 0), (7, 0), (3, 3), (7, 6), (7, 3)):
        matrix = contrasts(size, bins)
        np.testing.assert_allclose(matrix.T @ matrix, np.eye(size - 1), atol=1e-15)
        np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-15)


@pytest.mark.parametrize("widest", [WIDE, 2])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_basis_is_identifiable_and_whitens_the_noise(monkeypatch, name, widest):
    """B has an inverse on its parameters, potentials and statistics are transposes, B' Cov(noise) B is `variances`;
    with matrices of contrasts and with running sums, as of attributes of many labels."""
    monkeypatch.setattr(contrasts_module, "WIDE", widest)
    monkeypatch.setattr(contrasts_module, "_AT_ONCE", 3)
    noisy = any_release(STRUCTURES[name])
    basis = basis_of(noisy)
    eye = np.eye(basis.size)
    matrix = basis.matrix()
    np.testing.assert_allclose(basis.potentials(eye), matrix, atol=1e-15)
    np.testing.assert_allclose(basis.statistics(np.eye(basis.structure.cells)), matrix.T, atol=1e-14)
    for column, unit in zip(matrix.T, eye, strict=True):
        np.testing.assert_allclose(basis.parameters(Tables(basis.structure, column)), unit, atol=1e-13)
    per_cell = np.repeat(noisy.variances, noisy.structure.sizes)
    np.testing.assert_allclose(matrix.T @ (per_cell[:, None] * matrix), np.diag(basis.variances), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_basis_is_of_products_of_contrasts(name):
    """Each parameter adds, in every table that tells about it, its share of the product of its contrasts; entry by
    entry, cell by cell."""
    basis = basis_of(any_release(STRUCTURES[name]))
    structure = basis.structure
    expected = np.zeros((structure.cells, basis.size))
    for effect in basis.effects:
        for holder in effect.holders:
            shape, start = structure.shapes[holder.group], structure.slices[holder.group].start
            for place, codes in enumerate(np.ndindex(*shape)):
                for column, chosen in enumerate(np.ndindex(*(size - 1 for size in effect.shape))):
                    factors = [
                        contrasts(shape[at], basis.bins.get(structure.groups[holder.group][0][at], 0))[codes[at], one]
                        for at, one in zip(holder.order, chosen, strict=True)
                    ]
                    expected[start + place, effect.part.start + column] += holder.share * np.prod(factors)
    np.testing.assert_allclose(basis.matrix(), expected, atol=1e-14)
    for number, (parts, rows) in enumerate(basis.by_table):
        columns = np.concatenate([np.arange(part.start, part.stop) for part in parts] or [np.empty(0, int)])
        np.testing.assert_allclose(rows, expected[structure.slices[number]][:, columns], atol=1e-14)


def test_waves_are_of_bins_and_of_blocks_of_bins():
    """The prior varies along bins alone; a session's blocks are bins too, up to the one of missing values."""
    basis = basis_of(any_release(STRUCTURES["bins"]))
    assert basis.bins == {"a": 4, "b": 4}
    plain = next(one.part for one in basis.effects if one.cliques == (("c",),))
    assert (basis.waves[plain] == 1).all()
    part = next(one.part for one in basis.effects if one.cliques == (("a",),))
    falling = basis.waves[part]
    assert (np.diff(falling[:3]) < 0).all() and falling[:3].mean() == pytest.approx(1) and falling[3] == 1
    pair = next(one.part for one in basis.effects if one.cliques == (("a", "b"),))
    np.testing.assert_allclose(basis.waves[pair], np.outer(falling, falling).ravel())
    numbers = Attribute.of_bins("x", range(9), unknown="?")
    session = SimpleNamespace(
        merges={"x": (0, 0, 1, 2, 2, 2, 3, 3, 1)}, workload=SimpleNamespace(domain={"x": numbers})
    )
    blocks = Domain([numbers.coarsened(session.merges["x"])])
    assert bins_of(SimpleNamespace(session=session, structure=Structure(blocks, [("x",)]))) == {"x": 4}


def test_dependence_of_numbers_in_many_bins_is_not_lost():
    """A correlation of .8 of 4,000 records in 40 x 40 bins under noise of 2 records a cell: within .1, where the same
    codes as labels come back with less than half of it. It is 35 standard deviations of the noise in it; one seed."""
    rng, edges = np.random.default_rng(4), [-math.inf, *np.linspace(-2.4, 2.4, 39), math.inf]
    one = rng.normal(size=4000)
    codes = np.stack([np.digitize(x, edges) - 1 for x in (one, 0.8 * one + 0.6 * rng.normal(size=4000))], axis=1)
    correlations = []
    for kind in (Attribute.of_bins("a", edges, unknown="?"), Attribute.of_size("a", 41)):
        structure = Structure(Domain([kind, attrs.evolve(kind, name="b")]), [("a", "b")])
        table = learn(measure(codes, structure, "0.1")).model.marginal(("a", "b"))
        places = np.arange(41) - 20.0
        means = table.sum(axis=1) @ places, table.sum(axis=0) @ places
        spread = [
            shares @ (places - mean) ** 2 for shares, mean in zip((table.sum(1), table.sum(0)), means, strict=True)
        ]
        correlations.append((places - means[0]) @ table @ (places - means[1]) / math.sqrt(math.prod(spread)))
    assert correlations[0] == pytest.approx(0.8, abs=0.1) and correlations[1] < 0.4


def test_the_prior_is_smooth_where_dependence_is():
    """Numbers with a trend, and a week with the month it is in, of 20,000 records in 14 bins. The scales and the kinds
    of prior of a fit give it again. Where all were smooth, a fit to 75 columns missed 267 of its 313 tables."""
    rng, bins = np.random.default_rng(5), Attribute.of_bins("a", range(15), unknown="?")
    week = rng.integers(0, 14, 20_000)
    trend = np.clip(np.rint(0.8 * (week - 6.5) + rng.normal(0, 2.5, 20_000)) + 7, 0, 13).astype(int)
    structure = Structure(Domain([attrs.evolve(bins, name=name) for name in "abc"]), [("a", "b"), ("b", "c")])
    release = measure(np.stack([week, week, trend], axis=1), structure, "0.01")
    fit = learn(release, curvature="diagonal")
    groups, _ = contrasts_module._groups(structure)
    assert [groups[((pair),)] in fit.tuning["even"] for pair in (("a", "b"), ("b", "c"))] == [True, False]
    assert learn(release, curvature="diagonal", **fit.tuning).tuning == fit.tuning
    for wrong in ({"even": [1]}, fit.tuning | {"even": [9]}):
        with pytest.raises(OptionError, match="even names groups of scales"):
            learn(release, **wrong)


@pytest.mark.parametrize("name", STRUCTURES)
def test_no_potential_exceeds_its_bound(name):
    """Of single parameters, where an effect alone moves potentials, and of any; within what a structure has of them."""
    basis = basis_of(any_release(STRUCTURES[name]))
    for phi in [*np.eye(basis.size), *np.random.default_rng(0).standard_normal((20, basis.size))]:
        largest, bound = np.abs(basis.potentials(phi)).max(), basis.bound(phi)
        assert largest <= bound * (1 + 1e-12)
        assert bound <= largest * 5 * len(basis.effects)


def test_a_basis_without_parameters_gives_no_potentials():
    """As of attributes with one label: potentials are 0, statistics are none."""
    structure = Structure(Domain.from_sizes({"a": 1, "b": 1}), [("a", "b"), ("b",)])
    basis = basis_of(any_release(structure))
    assert basis.potentials(np.zeros(0)).tolist() == [0.0, 0.0] and basis.bound(np.zeros(0)) == 0.0
    assert basis.statistics(np.ones((2, 3))).shape == (0, 3)


@pytest.mark.parametrize("name", ["pairs", "orders 1 to 3, nested", "tied"])
def test_the_basis_spans_the_model(name):
    """Any potentials have the same marginals as those rebuilt from their parameters: nothing is lost but constants."""
    structure = STRUCTURES[name]
    basis = basis_of(any_release(structure))
    theta = np.random.default_rng(4).normal(size=structure.cells)
    engine = dpgm.make("inference", "junction-tree").compile(structure)
    rebuilt = basis.potentials(basis.parameters(Tables(structure, theta)))
    np.testing.assert_allclose(
        engine.infer(Tables(structure, theta)).marginals.values,
        engine.infer(Tables(structure, rebuilt)).marginals.values,
        atol=1e-12,
    )
    if name != "tied":  # ties may leave a few statistics that depend on each other
        curvature = basis.statistics(engine.curvature(Tables(structure, theta))(basis.potentials(np.eye(basis.size))))
        assert np.linalg.eigvalsh(curvature).min() > 1e-4


def test_a_table_of_many_attributes_is_understood_or_refused_at_once():
    """As a child with many parents has: its effects are as many as subsets of its attributes, not as their orders, of
    which these 13 have 10^10; and what no engine holds is refused before any are counted."""
    names = [f"x{place}" for place in range(24)]
    domain = Domain.from_sizes(dict.fromkeys(names, 3))
    engine = dpgm.make("inference", "junction-tree")
    assert group_count(Structure(domain, [names[:13], ["x20", "x21"], ["x21"]])) == 3
    with pytest.raises(dpgm.TooLarge, match="needs a table of"):
        dpgm.make("learner", "eb-map").check(Structure(domain, [names]), engine)


def test_without_noise_it_is_the_maximum_likelihood_estimate():
    """With next to no noise and many records its marginals are the observed ones, to less than the sampling error."""
    truth = dirichlet_model(chain(5, 3, 2), 2)
    noisy = release(truth, 200_000, 1000.0, 5)
    fit = learn(noisy)
    assert fit.converged
    exact = dpgm.learn(noisy, dpgm.make("learner", "naive-mle", l2=0.0))
    observed = exact.model.marginals().values
    np.testing.assert_allclose(fit.model.marginals().values, observed, atol=2e-4)
    assert dpgm.kl_divergence(exact.model, fit.model) < 2e-5


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_follows_the_records_or_the_population(curvature):
    """Of independent columns and little noise: the population's fit leaves out what sampling explains, that of the
    records is as near to the tables as noise is; where noise hides how records vary, both are the same."""
    nothing = dpgm.Model(STRUCTURES["pairs"], Tables.zeros(STRUCTURES["pairs"]))

    def deviates(noisy, target):
        fit = learn(noisy, target=target, curvature=curvature)
        assert fit.converged
        apart = noisy.total * fit.model.marginals().values - noisy.tables.values
        return fit, math.sqrt(np.mean(apart**2 / np.repeat(noisy.variances, noisy.structure.sizes)))

    quiet = release(nothing, 2000, 10.0, 1, mechanism="gaussian")
    fit, followed = deviates(quiet, "records")
    assert followed < 1.5 < 5 < deviates(quiet, "population")[1]
    replicates = dpgm.bootstrap(fit.model, 20, randomness=dpgm.SeededRandomness(0)).replicates
    mean = np.mean([one.marginals().values for one in replicates], axis=0)
    np.testing.assert_allclose(mean, fit.model.marginals().values, atol=0.01)
    loud = release(nothing, 2000, 0.1, 1, mechanism="gaussian")
    models = [deviates(loud, target)[0].model for target in ("records", "population")]
    assert dpgm.kl_divergence(*models) < 0.002


@pytest.mark.landing
def test_beats_the_discrepancy_rule():
    """Its KL over naive MLE's under the discrepancy rule, six fixed releases: at most 1.1, in the mean below .9 where
    every clique interacts and below .65 where every second one does; with all prior scales held at 1 that were .82."""
    rule = dpgm.make("learner", "naive-mle", l2="discrepancy")
    every, second = [], []
    for seed, (count, epsilon) in enumerate([(10**4, 0.1), (10**4, 1.0), (10**5, 0.1)] * 2):
        structure = chain(7, 4, 2)
        full = dirichlet_model(structure, 20 + seed)
        odd = full.potentials.repeat(np.arange(len(structure.groups)) % 2)
        half = dpgm.Model(structure, full.potentials.map(lambda theta, odd=odd: theta * odd))
        for truth, ratios in ((full, every), (half, second)):
            noisy = release(truth, count, epsilon, seed)
            scores = [dpgm.kl_divergence(truth, dpgm.learn(noisy, one).model) for one in ("eb-map", rule)]
            ratios.append(scores[0] / scores[1])
    assert max(every) < 1.1
    assert math.exp(np.mean(np.log(every))) < 0.9
    assert math.exp(np.mean(np.log(second))) < 0.65


@pytest.mark.landing
@pytest.mark.parametrize(("length", "labels", "bound"), [(10, 2, 0.93), (6, 4, 0.93)])
def test_cliques_lean_on_each_other(monkeypatch, length, labels, bound):
    """With little to tell of each clique its scale leans on the others': over four fixed releases that lowers the KL
    in the mean, most with two labels, where a clique has one parameter."""
    releases = []
    for seed in (1, 2, 3, 4):
        truth = dirichlet_model(chain(length, labels, 3), seed)
        releases.append((truth, release(truth, 10**4, 0.1, seed)))
    leaning = [dpgm.kl_divergence(truth, learn(noisy).model) for truth, noisy in releases]
    monkeypatch.setattr(scales, "combine_chances", alone_each)
    alone = [dpgm.kl_divergence(truth, learn(noisy).model) for truth, noisy in releases]
    assert math.exp(np.mean(np.log(leaning) - np.log(alone))) < bound


def alone_each(evidence):
    """What `combine_chances` gives if no clique knows of another."""
    chances = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


def test_no_loud_clique_is_taken_for_a_silent_one():
    """One parameter a clique, told with errors of .1: of 40 cliques 8 are on, or 1, or all, with scale 1. Those that
    lie six errors from 0 have no chance to be off, and the others' mean square is a tenth of those that are on."""
    rng = np.random.default_rng(1)
    for loud in (8, 1, 40):
        levels = np.concatenate([rng.normal(size=loud), np.zeros(40 - loud)]) + rng.normal(scale=0.1, size=40)
        actual = scales.combine_chances(np.array([evidence_of(value, 0.1) for value in levels]))
        off = actual[:, 0]
        assert off[np.abs(levels) > 0.6].max() < 1e-3
        square = actual @ np.exp(np.minimum(scales._GRID, 2.0))
        assert loud == 40 or np.median(square[loud:]) < 0.1 * np.median(square[np.abs(levels) > 0.6])


def evidence_of(value, error):
    """The log likelihood of each u on the grid of one parameter that is told as `value`, up to a constant."""
    variance = np.exp(scales._GRID) + error**2
    return -0.5 * (np.log(variance) + value**2 / variance)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("budget", ["0.01", "0.1"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_a_few_loud_cliques_among_many_silent_ones(seed, budget, curvature):
    """Eight binary attributes, four pairs with coupling .4, N = 5000, all 28 pairs measured with noise of 37 or 12 a
    cell: the couplings are eleven errors strong and more, and lie between .3 and .5; a mean over all cliques' scales
    made .15 of them and said it had converged."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, size=(5000, 4))
    second = np.where(rng.random((5000, 4)) < 1 / (1 + math.exp(-0.8)), first, 1 - first)
    domain = Domain.from_sizes({f"x{place}": 2 for place in range(8)})
    structure = Structure(domain, list(itertools.combinations(domain.names, 2)))
    noisy = measure(np.stack([first, second], axis=2).reshape(5000, 8), structure, budget, seed)
    fit = learn(noisy, curvature=curvature)
    assert fit.converged
    for place in range(0, 8, 2):
        table = np.log(fit.model.marginal((f"x{place}", f"x{place + 1}")))
        assert 0.3 < (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 4 < 0.5


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_no_table_is_further_from_the_fit_than_noise_and_sampling_allow(seed, curvature):
    """Random structures of three to eight attributes of two to four labels, some of the pairs loud: no cell of a
    measured table lies six standard errors from the fit, so that no clique the tables speak of is silent."""
    rng = np.random.default_rng(700 + seed)
    domain = Domain.from_sizes({f"x{place}": int(rng.integers(2, 5)) for place in range(rng.integers(3, 9))})
    pairs = list(itertools.combinations(domain.names, 2))
    structure = Structure(domain, [pair for pair in pairs if rng.random() < 0.8] + [(name,) for name in domain.names])
    theta = [rng.normal(size=size) * (rng.random() < 0.25) for size in structure.sizes]
    truth = dpgm.Model(structure, Tables(structure, np.concatenate(theta)))
    noisy = release(truth, int(10 ** rng.uniform(3.3, 5.5)), float(10 ** rng.uniform(-1, 0.5)), seed)
    fitted = noisy.total * learn(noisy, curvature=curvature).model.marginals().values
    errors = np.sqrt(noisy.tables.repeat(noisy.variances) + fitted)
    assert (np.abs(noisy.tables.values - fitted) / errors).max() < 6


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_silent_cliques_are_switched_off(curvature):
    """Where the truth has no interaction the scale of that clique falls to its floor, and others stay."""
    structure = chain(5, 4)
    theta = dirichlet_model(structure, 3).potentials.values.copy()
    theta[structure.slices[1]] = theta[structure.slices[3]] = 0.0
    truth = dpgm.Model(structure, Tables(structure, theta))
    fit = learn(release(truth, 10_000, 1.0, 2), curvature=curvature)
    left = [float(np.abs(interaction(table)).max()) for _, table in fit.model.potentials.items()]
    assert max(left[1], left[3]) < 0.1 < 0.5 < min(left[0], left[2])


def interaction(table):
    return table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_refits_repeat_the_fit(name, curvature):
    """With its scales, refits and fits to the fit's own release give the model; on another release they agree."""
    noisy, another = any_release(STRUCTURES[name]), any_release(STRUCTURES[name], seed=9)
    fit = learn(noisy, curvature=curvature)
    learner = dpgm.make("learner", "eb-map", curvature=curvature, **fit.tuning)
    engine = dpgm.make("inference", "junction-tree")
    refit = learner.refitter(fit.model, engine)
    again = dpgm.Model(noisy.structure, refit(noisy))
    assert dpgm.kl_divergence(fit.model, again) < 1e-3
    assert dpgm.kl_divergence(fit.model, dpgm.learn(noisy, learner).model) < 1e-3
    other, slow = dpgm.Model(noisy.structure, refit(another)), dpgm.learn(another, learner).model
    assert dpgm.kl_divergence(slow, other) < 0.02 * dpgm.kl_divergence(slow, fit.model) + 1e-6


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_refits_side_by_side_are_those_one_by_one(curvature):
    """Though they take other numbers of steps, one of them none, and one is of far more noise than the model's."""
    truth = dirichlet_model(chain(6, 4), 3)
    noisy = release(truth, 20_000, 0.5, 3)
    others = [release(truth, 20_000, 0.5, 4), noisy, release(truth, 2_000, 0.5, 5), release(truth, 20_000, 0.5, 6)]
    fit = learn(noisy, curvature=curvature)
    engine = dpgm.make("inference", "junction-tree")
    refit = dpgm.make("learner", "eb-map", curvature=curvature, **fit.tuning).refitter(fit.model, engine)
    for one, actual in zip(others, refit.many(others), strict=True):
        np.testing.assert_allclose(actual.values, refit(one).values, atol=1e-5)


def test_refits_to_the_records_are_fits_to_them():
    """They begin at the fit to the population that tables without noise have, and between their marginals and those of
    a fit with the same scales lies a seventh of what noise does."""
    truth = dirichlet_model(chain(12, 6), 3)
    noisy, other = release(truth, 20_000, 0.5, 3), release(truth, 20_000, 0.5, 4)
    options = {"curvature": "diagonal", "target": "records"}
    fit = learn(noisy, **options)
    learner = dpgm.make("learner", "eb-map", **options, **fit.tuning)
    refit = learner.refitter(fit.model, dpgm.make("inference", "junction-tree"))
    actual = dpgm.Model(noisy.structure, refit(other)).marginals().values
    fitted, slow = fit.model.marginals().values, dpgm.learn(other, learner).model.marginals().values
    assert np.linalg.norm(actual - slow) < 0.15 * np.linalg.norm(slow - fitted)
    run, precision = refit.run, refit.run.scales.precision()
    run.system.set_prior(precision)
    noiseless = Objective(run.moments, run.system, run.total * run.moments.mean(run.phi)[2], run.total, precision)
    far, near = (noiseless.minimise(start, 0.0, 1)[1] for start in (run.phi, run._centre))
    assert near < far / 2


def test_refits_of_a_model_over_larger_cliques(small):
    """A release learned into a structure that contains it is refitted over that structure; without scales it tunes."""
    wide = Structure(small.structure.domain, [("x0", "x1", "x2"), ("x2", "x3")])
    fit = dpgm.learn(small, "eb-map", structure=wide)
    engine = dpgm.make("inference", "junction-tree")
    for options in (fit.tuning, {}):
        refit = dpgm.make("learner", "eb-map", **options).refitter(fit.model, engine)
        assert dpgm.kl_divergence(fit.model, dpgm.Model(wide, refit(small))) < 1e-3


@pytest.mark.landing
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_bootstrap_intervals_cover(curvature):
    """Forty refits to simulated releases: the bias-aware 90 % intervals cover .82 to .96 of the true marginals of two
    data sets (they are fixed, and so is the figure; .89 was measured over many)."""
    covered = []
    for seed, epsilon in ((1, 0.2), (2, 1.0)):
        truth = dirichlet_model(chain(6, 4), seed)
        noisy = release(truth, 10_000, epsilon, seed)
        fit = learn(noisy, curvature=curvature)
        engine = dpgm.make("inference", "junction-tree")
        refit = dpgm.make("learner", "eb-map", curvature=curvature, **fit.tuning).refitter(fit.model, engine)
        drawn = Simulator(noisy, engine.compile(noisy.structure), fit.model.potentials)
        refits = [dpgm.Model(noisy.structure, refit(drawn.draw(dpgm.SeededRandomness(one)))) for one in range(40)]
        actual = np.array([model.marginals().values for model in refits])
        centre = dpgm.Model(noisy.structure, fit.model.potentials).marginals().values
        half = 1.645 * np.hypot(actual.std(axis=0, ddof=1), actual.mean(axis=0) - centre)
        true = dpgm.Model(noisy.structure, truth.potentials).marginals().values
        covered.append(np.mean(np.abs(true - centre) <= half))
    assert 0.82 <= np.mean(covered) <= 0.96


def test_scales_of_the_user_are_used_and_checked(small):
    """With scales no round is made; a wrong number of them is refused before anything is spent."""
    fit = learn(small)
    assert len(fit.tuning["scales"]) == group_count(small.structure) == 4
    assert learn(small, scales=fit.tuning["scales"]).tuning == fit.tuning
    assert len(learn(small, scales=[1.0] * 4).trace) == 1
    with pytest.raises(OptionError, match=r"scales has 3 numbers.*has 4 groups"):
        learn(small, scales=[1.0] * 3)
    spent = []
    curator = SimpleNamespace(structure=small.structure, replayed=False, release=lambda: spent.append(1))
    with pytest.raises(OptionError, match="scales has 3 numbers"):
        dpgm.make("learner", "eb-map", scales=[1.0] * 3).learn(
            curator, dpgm.make("inference", "junction-tree"), randomness=dpgm.SeededRandomness(1), progress=None
        )
    assert not spent


@pytest.mark.parametrize("contributions", [None, dpgm.Contributions(per="clique")], ids=["rows", "weighted rows"])
def test_scales_of_the_user_are_those_of_the_released_tables(contributions):
    """A release learned into a larger structure has the scales of its own cliques, and is fitted with them again."""
    truth = dirichlet_model(chain(4, 3), 1)
    noisy = simulated_release(truth, 500, 1, 1, total="estimated", contributions=contributions)
    wide = Structure(noisy.structure.domain, [("x0", "x1", "x2"), ("x2", "x3")])
    fit = dpgm.learn(noisy, "eb-map", structure=wide)
    assert len(fit.tuning["scales"]) == group_count(noisy.structure) != group_count(wide)
    again = dpgm.learn(noisy, dpgm.make("learner", "eb-map", **fit.tuning), structure=wide)
    assert dpgm.kl_divergence(fit.model, again.model) < 1e-3


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda y: np.zeros_like(y), id="all zero"),
        pytest.param(lambda y: -np.abs(y) - 5, id="all negative"),
        pytest.param(lambda y: 10**12 * (y % 7), id="absurdly large"),
        pytest.param(lambda y: np.where(np.arange(len(y)) == 3, 1000, 0), id="one cell"),
    ],
)
@pytest.mark.parametrize("total", [1.0, 1000.0, 1e9])
@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_senseless_counts_give_a_usable_model(small, values, total, curvature):
    """Counts that no records could give, and an N estimated at its floor: a finite model, refits, and no warning."""
    noisy = with_tables(small, values(small.tables.values), total=total)
    fit = learn(
        attrs.evolve(noisy, terms=dpgm.Terms(neighbours="add-remove"), total_variance=50.0), curvature=curvature
    )
    marginals = fit.model.marginals().values
    assert np.isfinite(fit.model.potentials.values).all()
    assert np.isfinite(marginals).all() and marginals.min() >= 0
    learner = dpgm.make("learner", "eb-map", curvature=curvature, **fit.tuning)
    refit = learner.refitter(fit.model, dpgm.make("inference", "junction-tree"))
    assert np.isfinite(refit(noisy).values).all()


def test_one_clique_and_one_label():
    """A single table, and a domain in which there is nothing to learn."""
    single = learn(release(dirichlet_model(Structure(MIXED, [("b", "c")]), 1), 500, 1.0, 1))
    assert single.converged
    empty = learn(any_release(Structure(MIXED, [("d",)])))
    assert empty.model.potentials.values.tolist() == [0.0] and "nothing to learn" in empty.notes[0]
    refit = dpgm.make("learner", "eb-map", **empty.tuning).refitter(
        empty.model, dpgm.make("inference", "junction-tree")
    )
    assert refit(empty.release).values.tolist() == [0.0]


@pytest.mark.parametrize("options", [
    {"widening": -0.1}, {"widening": True}, {"rounds": 0}, {"curvature": "none"}, {"tolerance": float("inf")},
    {"tolerance": -1.0}, {"scales": []}, {"scales": [1.0, 0.0]}, {"scales": [1.0, float("inf")]},
    {"scales": "1, 1"}, {"even": [-1]}, {"even": [0.5]}, {"even": 1},
])  # fmt: skip
def test_refuses_senseless_options(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        dpgm.make("learner", "eb-map", **options)


def test_says_what_it_did(small):
    """The notes name the path, the trace has a row per round, and too few rounds are admitted."""
    fit = learn(small)
    assert fit.notes[0].startswith("dense curvature: 20 parameters")
    assert fit.certificate["distance"] <= 0.01
    assert 0 < fit.certificate["determined_parameters"] < 20
    short = learn(small, rounds=1)
    assert not short.converged and "raise rounds" in short.notes[1] and len(short.trace) == 2


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_a_fit_near_its_optimum_has_converged(small, curvature, monkeypatch):
    """Above its tolerance, but so near that no cell changes by much more than its noise; further away it has not.

    The distance from the optimum bounds the change of every answer, in its own posterior standard deviations, where the
    curvature is exact; of cells of measured tables these are at most those of the noise.
    """
    exact = learn(small, curvature=curvature, tolerance=1e-9)
    scales = exact.tuning["scales"]
    exact = learn(small, curvature=curvature, tolerance=1e-9, scales=scales)
    seen = set()
    for steps in (4, 6, 12):
        monkeypatch.setattr("dpgm_eb_map.run.Run._fit", limited(steps))
        fit = learn(small, curvature=curvature, tolerance=1e-9, scales=scales)
        distance = fit.certificate["distance"]
        assert fit.converged is (distance <= 1) and any("from its optimum" in note for note in fit.notes)
        seen.add(fit.converged)
        if fit.converged:
            for clique in small.structure.cliques:
                moved = 1000 * np.abs(fit.model.marginal(clique) - exact.model.marginal(clique)).max()
                assert moved <= 1.5 * distance * math.sqrt(small.variances.max())
    assert seen == {False, True}


def limited(steps):
    """`Run._fit` with so many steps, from parameters a little away."""

    def fit(run, _=0):
        run.phi, run.distance = run._objective().minimise(run.phi + 0.3, run.tolerance, steps)

    return fit


@pytest.mark.parametrize(("noise", "prior"), [(1.0, 1.0), (1e12, 1e-6)])
def test_the_algebra_of_a_round_is_that_of_its_formulas(noise, prior):
    """W r, H^-1 g and what H^-1 is asked for, also where noise drowns the tables and a difference would lose them."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(9, 9))
    information, variances, drift = half @ half.T, noise * rng.uniform(1, 2, 9), rng.normal(size=9)
    system = Dense(information, variances, drift)
    system.set_prior(np.full(9, prior))
    weight = np.linalg.inv(information + np.diag(variances) + np.outer(drift, drift))
    inverse = np.linalg.inv(information @ weight @ information + prior * np.eye(9))
    residual = rng.normal(size=9)
    np.testing.assert_allclose(system.weighted(residual), weight @ residual, rtol=1e-9)
    np.testing.assert_allclose(system.newton(residual), inverse @ residual, rtol=1e-8)
    several = rng.normal(size=(9, 4))
    np.testing.assert_allclose(system.weighted(several), weight @ several, rtol=1e-8)
    np.testing.assert_allclose(system.newton(several), inverse @ several, rtol=1e-8)
    system.set_prior(np.full(9, 3 * prior))
    again = np.linalg.inv(information @ weight @ information + 3 * prior * np.eye(9))
    np.testing.assert_allclose(system.newton(several), again @ several, rtol=1e-8)
    system.set_prior(np.full(9, prior))
    np.testing.assert_allclose(system.determined(), 1 - prior * np.diag(inverse), rtol=1e-8, atol=1e-9)
    part = np.array([2, 3, 7])
    np.testing.assert_allclose(system.spread(part), inverse[np.ix_(part, part)], rtol=1e-8, atol=1e-9 / prior)


def test_the_pilot_believes_the_quieter_table():
    """A margin measured with little noise of its own stands against the same margin of a loud pair."""
    structure = Structure(Domain.from_sizes({"a": 3, "b": 5}), [("a", "b"), ("a",)])
    codes = np.repeat([[0, 0], [1, 2], [2, 4]], [6000, 3000, 1000], axis=0)
    curator = dpgm.LiveCurator(
        as_source(codes), structure, dpgm.make("mechanism", "laplace"),
        terms=dpgm.Terms(neighbours="add-remove", total="public"),
        budget=dpgm.Budget.pure("1.002"), randomness=dpgm.SeededRandomness(4),
    )  # fmt: skip
    noisy = curator.release(budget={("a", "b"): dpgm.Budget.pure("0.002"), ("a",): dpgm.Budget.pure(1)})
    basis = basis_of(noisy)
    engine = dpgm.make("inference", "junction-tree").compile(structure)
    phi = pilot(Moments(engine, basis), noisy, dpgm.silent, cautious=False)
    margin = dpgm.Model(structure, Tables(structure, basis.potentials(phi))).marginal("a")
    assert np.abs(margin - [0.6, 0.3, 0.1]).max() < 0.02


class TestEbMap(LearnerConformance):
    """Every check, default options."""

    component = EbMap


@pytest.mark.landing
class TestByBlocks(LearnerConformance):
    """Every check, as with many parameters."""

    component = EbMap(curvature="diagonal")


# --- The fits that a selector asks for, round by round: the answer of a fit from nothing, in fewer calls --------------

SIZES = {"a": 8, "b": 6, "c": 5, "d": 3, "e": 2}
DOMAIN = Domain.from_sizes(SIZES)
PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "c")]
EVERY = Structure(DOMAIN, [(name,) for name in SIZES] + PAIRS)
ENGINE = dpgm.make("inference", "junction-tree")


def truth(seed):
    rng = np.random.default_rng(seed)
    return dpgm.Model(EVERY, Tables(EVERY, rng.normal(scale=0.7, size=EVERY.cells)))


def rounds(seed, rho="0.0005"):
    """The pool after each round: all one-way tables, then a pair a round, whose noise is less by and by."""
    codes = sample_codes(truth(seed), 5000, seed)
    measured = []
    for number, cliques in enumerate([[(name,) for name in SIZES], *([pair] for pair in PAIRS)]):
        measured.append(measure(codes, Structure(DOMAIN, cliques), Fraction(rho) * (number + 1), 100 * seed + number))
        yield pool(measured)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("curvature", "rho", "seed"), [("dense", "0.0005", 100), ("diagonal", "0.0005", 100), ("diagonal", "0.01", 101)]
)
def test_a_warm_fit_is_the_fit_from_nothing_in_fewer_calls(curvature, rho, seed):
    """Dense and by blocks: warm fits are by KL nearer to those from nothing than a hundredth of what noise makes of
    them, in the mean of the rounds, in less than 90 % of the calls (71, 85 and 76 % were measured; they were 74, 80
    and 60 % when those from nothing needed more)."""
    learner, fit = dpgm.make("learner", "eb-map", curvature=curvature), None
    fitting = learner.fitter(ENGINE)
    apart, wrong, calls = [], [], []
    for noisy in rounds(seed, rho):
        fit = fitting(noisy, noisy.structure, fit)
        cold = learner.fitter(ENGINE)(noisy, noisy.structure, None)
        apart.append(dpgm.kl_divergence(cold.model, fit.model))
        wrong.append(dpgm.kl_divergence(truth(seed), cold.model))
        calls.append((fit.certificate["inference_calls"], cold.certificate["inference_calls"]))
        assert fit.converged
    assert np.mean(apart[1:]) < 0.01 * np.mean(wrong[1:])
    assert calls[0][0] == calls[0][1]
    warm, afresh = np.sum(calls[1:], axis=0)
    assert warm < 0.9 * afresh


def test_the_model_is_over_the_requested_structure():
    """Cliques may be wider than the tables, this round and the last: the distribution is that over the tables' own."""
    fitting, own = (dpgm.make("learner", "eb-map").fitter(ENGINE) for _ in range(2))
    wide, narrow = None, None
    triangulated = Structure(DOMAIN, [("a", "b", "c"), ("c", "d"), ("d", "e")])
    for noisy in itertools.islice(rounds(100), 3):
        wide, narrow = fitting(noisy, triangulated, wide), own(noisy, noisy.structure, narrow)
        assert wide.model.structure == triangulated
        assert dpgm.kl_divergence(narrow.model, wide.model) < 1e-9


def test_parameters_are_carried_over_other_cliques():
    """Over wider, larger and fewer cliques each effect has the same parameters, and others have none."""
    *_, noisy = rounds(100)
    basis = basis_of(noisy)
    model = truth(3)
    assert noisy.structure == EVERY
    phi = basis.parameters(model.potentials)
    wide = Structure(DOMAIN, [("c", "b", "a"), ("c", "d"), ("e", "d")])
    np.testing.assert_allclose(basis.parameters(model.potentials.embed(wide)), phi, atol=1e-12)
    fewer = Structure(DOMAIN, [("b", "a")])
    actual = basis.parameters(Tables(fewer, np.arange(48.0) ** 2))
    for effect in basis.effects:
        assert actual[effect.part].any() == (set(effect.cliques[0]) <= {"a", "b"})


def test_an_engine_serves_until_the_tables_are_others():
    """Compiled once for each set of measured tables, however the noise changes."""

    class Counting:
        max_order = None
        compiled = 0

        def compile(self, structure):
            self.compiled += 1
            return ENGINE.compile(structure)

    counting, fit = Counting(), None
    fitting = dpgm.make("learner", "eb-map").fitter(counting)
    first, second = itertools.islice(rounds(100), 2)
    for noisy in (first, first, second, second):
        fit = fitting(noisy, noisy.structure, fit)
    assert counting.compiled == 2


def test_after_an_empty_fit_emptiness_is_tested_again():
    """Noise far above the counts: uniform, twice; then tables that tell, from nothing."""
    fitting = dpgm.make("learner", "eb-map").fitter(ENGINE)
    faint = next(rounds(100, "0.0000001"))
    fit = fitting(faint, faint.structure, fitting(faint, faint.structure, None))
    assert not fit.model.potentials.values.any() and "uniform" in fit.notes[1]
    loud = next(rounds(100))
    afresh = dpgm.make("learner", "eb-map").fitter(ENGINE)(loud, loud.structure, None)
    assert dpgm.kl_divergence(afresh.model, fitting(loud, loud.structure, fit).model) < 1e-12


def values(model):
    return model.potentials.values


@pytest.fixture(scope="module")
def chosen():
    """What mst chose and fitted, where noise is so small that sampling is most of what the records differ by."""
    codes, budget = sample_codes(truth(5), 2000, 5), dpgm.Budget.zcdp(5)
    workload = dpgm.Workload.all(DOMAIN, order=2)
    return dpgm.fit(
        codes, "mst", budget, neighbours="add-remove", workload=workload, randomness=dpgm.SeededRandomness(5)
    )


@pytest.mark.parametrize("curvature", ["dense", "diagonal"])
def test_after_a_selection_the_fit_is_to_the_records(chosen, curvature):
    """And to the population where nobody chose the same tables."""
    chosen_tables = chosen.releases[0]
    plain = evolve(chosen_tables, session=None, steps=())
    fits = {}
    for release, target in itertools.product((chosen_tables, plain), ("auto", "records", "population")):
        learner = {"name": "eb-map", "curvature": curvature, "target": target}
        fits[release is plain, target] = dpgm.learn(release, learner).model
    assert np.array_equal(values(fits[False, "auto"]), values(fits[False, "records"]))
    assert np.array_equal(values(fits[True, "auto"]), values(fits[True, "population"]))
    assert dpgm.kl_divergence(fits[False, "auto"], fits[True, "auto"]) > 5e-5


def test_fits_in_a_loop_are_to_the_population(chosen):
    """Whatever the target, so that what sampling explains does not choose tables."""
    release = chosen.releases[0]
    auto, records, population = (
        values(dpgm.make("learner", "eb-map", target=target).fitter(ENGINE)(release, release.structure, None).model)
        for target in ("auto", "records", "population")
    )
    assert np.array_equal(auto, population) and np.array_equal(records, population)


def test_a_loop_has_no_fixed_scales():
    learner = dpgm.make("learner", "eb-map", scales=[1.0, 1.0])
    assert isinstance(learner, Fitter)
    with pytest.raises(OptionError, match="scales"):
        learner.fitter(ENGINE)
