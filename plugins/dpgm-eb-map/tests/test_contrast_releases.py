"""eb-map on contrasts: each is a statistic of its own, and fits are those of tables that say the same."""

import itertools

import attrs
import numpy as np
import pytest
from dpgm_eb_map.contrasts import basis_of
from dpgm_eb_map.posterior import statistics_of

import dpgm_core as dpgm
from dpgm_core import Domain, Structure, Tables
from dpgm_core.privacy import products, spread
from dpgm_testing.learning import simulated_release

from .measured import measure

BINARY = Domain.from_sizes(dict.fromkeys("abcde", 2))
PAIRS = Structure(BINARY, [("a", "b"), ("c", "b"), ("d", "c")])
TRIPLE = Structure(BINARY, [("a", "b", "c"), ("c", "d", "e")])


def truth(structure, seed=0):
    return dpgm.Model(structure, Tables(structure, np.random.default_rng(seed).normal(size=structure.cells) / 2))


def release(structure, budget, seed=0, count=3000, total="estimated", **terms):
    budget = dpgm.Budget.zcdp(budget)
    return simulated_release(truth(structure), count, budget, seed, "gaussian", total=total, split="contrasts", **terms)


def learn(noisy, structure, inference="junction-tree", **options):
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
    fit = learn(noisy, PAIRS, curvature=curvature)
    for clique in PAIRS.cliques:
        np.testing.assert_allclose(fit.model.marginal(clique), noisy.tables[clique] / 3000, atol=4e-3)
    assert set(fit.model.structure.cliques) == set(PAIRS.cliques)


def test_noise_alone_is_nothing():
    """Contrasts of a fair coin each, at noise of forty records: the model is uniform but for a hundredth."""
    codes = np.array(list(itertools.product((0, 1), repeat=5)) * 10)
    fit = learn(measure(codes, PAIRS, "0.003", 5, split="contrasts", total=320), PAIRS)
    np.testing.assert_allclose(fit.model.marginal(("a", "b")), 0.25, atol=0.01)


def test_one_loud_contrast_among_noise_is_heard():
    """A coupling ten standard deviations strong comes out nearly whole, beside nine of pure noise."""
    complete = Structure.complete(BINARY).cliques[0]
    pairs = Structure(BINARY, list(itertools.combinations(complete, 2)))
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 2, (2000, 5))
    codes[:, 1] = np.where(rng.random(2000) < 0.8, codes[:, 0], 1 - codes[:, 0])
    noisy = measure(codes, pairs, "0.0005", 5, split="contrasts", total=2000)
    table = learn(noisy, pairs).model.marginal(("a", "b"))
    # |correlation| .6 with a noise of .06, and .02 of sampling: within 4 of them unless it was taken for noise
    assert table[0, 0] + table[1, 1] == pytest.approx(0.8, abs=0.13)


def test_refits_are_of_contrasts_too():
    """Replicates spread as the noise of contrasts and sampling do: within a factor of 2 of it (30 draws, seeded)."""
    noisy = release(PAIRS, "0.002", total=3000)
    fit = learn(noisy, PAIRS)
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
