"""The learner `mrf-fw`: what it recovers where there is no noise to speak of, what it refuses, and replays."""

from fractions import Fraction

import numpy as np
import pytest
from dpgm_mrf.frank_wolfe.components import FrankWolfeLearner

import dpgm_core as dpgm
from dpgm_testing import awkward_structures
from tests.fixtures import Unread

ALONE = ("a", "b", "c")
PAIRS = [("a", "b"), ("b", "c"), ("c", "a")]


def population(potentials, count):
    """Codes of a model in the proportions of its probabilities, but for rounding: no sampling error."""
    domain = potentials.structure.domain
    rows = np.indices([domain.sizes[name] for name in domain.names]).reshape(len(domain), -1).T
    place = domain.names.index
    logs = sum(
        potentials[clique][tuple(rows[:, place(name)] for name in clique)] for clique in potentials.structure.cliques
    )
    odds = np.exp(logs)
    return np.repeat(rows, np.rint(count * odds / odds.sum()).astype(int), axis=0)


def learned(codes, structure, budget=None, *, seed=1, terms=None, **options):
    stated = terms or dpgm.Terms(neighbours="add-remove", total=len(codes))
    return dpgm.fit(
        codes,
        structure,
        budget or dpgm.Budget.zcdp(10**6),
        learner={"name": "mrf-fw", "width": 1.3, "least": 0.01, **options},
        terms=stated,
        randomness=dpgm.SeededRandomness(seed),
    )


TERMS = dpgm.Terms(neighbours="add-remove")
ISING = dpgm.Domain.from_sizes(dict.fromkeys("abc", 2))
COUPLING, FIELD = {("a", "b"): 0.5, ("b", "c"): 0.3, ("c", "a"): -0.4}, {"a": 0.2, "b": -0.1, "c": 0.3}


def ising(count):
    structure = dpgm.Structure(ISING, [("a",), ("b",), ("c",), *PAIRS])
    sign = np.array([1.0, -1.0])
    tables = {(name,): value * sign for name, value in FIELD.items()}
    tables |= {pair: value * np.outer(sign, sign) for pair, value in COUPLING.items()}
    return population(dpgm.Tables.from_arrays(structure, tables), count)


@pytest.mark.parametrize("regression", ["softmax", "pairs"])
def test_algorithm_2_recovers_a_triangle(regression):
    """Spec test 7: with rho = 1e6 every A_ij and theta_i is within .05 at the default grids. The last of T steps moves
    a weight by 2 R / T = .043, and a parameter by half of it; a clip of .3, which shortens the badly predicted
    records of three attributes, is off by .08."""
    fits = learned(ising(2_000), dpgm.Structure(ISING, PAIRS), steps=120, regression=regression)
    actual = fits.model.potentials
    for pair, value in COUPLING.items():
        assert actual[pair][0, 0] == pytest.approx(value, abs=0.05)
        np.testing.assert_allclose(actual[pair], actual[pair][0, 0] * np.array([[1, -1], [-1, 1]]), atol=1e-12)
    for name, value in FIELD.items():
        assert actual[name,][0] == pytest.approx(value, abs=0.05)
    assert fits.converged and len(fits.trace) == 119 and not fits.certificate


def test_a_clip_of_a_third_overstates_three_attributes():
    """What the default clip is for: at .3 a coupling of .5 comes out beyond .55."""
    actual = learned(ising(2_000), dpgm.Structure(ISING, PAIRS), steps=120, clip=0.3).model.potentials
    assert actual["a", "b"][0, 0] > 0.55


@pytest.mark.landing
@pytest.mark.parametrize(("regression", "tolerance"), [("pairs", 0.06), ("softmax", 0.12)])
def test_algorithm_3_and_softmax_recover_three_labels(regression, tolerance):
    """A triangle with one absent edge, k = 3, largest entries .5: every entry of W and theta within two of the last
    steps, 2 R / T over k of `pairs` (R = 6) and over 1 of `softmax` (R = 9). Uncentred or untransposed parameters are
    off by .3."""
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 3))
    draw = np.random.default_rng(0)
    tables = {}
    for pair in PAIRS[:2]:
        table = draw.normal(size=(3, 3))
        table += table.mean() - table.mean(0) - table.mean(1, keepdims=True)
        tables[pair] = 0.5 * table / np.abs(table).max()
    fields = {(name,): np.array([0.2, -0.1, -0.1]) for name in ALONE}
    structure = dpgm.Structure(domain, [*tables, *fields])
    codes = population(dpgm.Tables.from_arrays(structure, tables | fields), 2_000)
    actual = learned(
        codes, dpgm.Structure(domain, PAIRS), width=1.0, regression=regression, steps=150, least=1e-9
    ).model
    for clique, table in (tables | fields | {("c", "a"): np.zeros((3, 3))}).items():
        if actual.structure.covering(clique) is not None:
            np.testing.assert_allclose(actual.potentials[clique], table, atol=tolerance)


def test_edges_are_what_is_above_half_of_least():
    """The model is over every attribute alone and the pairs above least / 2; all others stay 0."""
    codes = ising(2_000)
    fits = learned(codes, dpgm.Structure(ISING, PAIRS), steps=100, least=0.8)
    assert {frozenset(clique) for clique in fits.model.structure.cliques if len(clique) == 2} == {frozenset("ab")}
    assert fits.model.structure.cliques[:3] == (("a",), ("b",), ("c",))
    assert "1 of 3 pairs" in fits.notes[0] and "not fitted" in fits.notes[0]


def test_candidates_are_those_of_the_structure():
    """A pair that it leaves out has no parameter; an attribute in no pair has its own noisy shares."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 3, "one": 1})
    codes = ising(2_000)
    codes = np.column_stack([codes, np.zeros((len(codes), 2), int)])
    codes[: len(codes) // 4, 3] = 2
    fits = learned(codes, dpgm.Structure(domain, [("a", "b"), ("d",), ("one", "c"), ("b", "c")]), steps=20)
    assert all(set(clique) <= set("abc") for clique in fits.model.structure.cliques if len(clique) == 2)
    assert fits.model.structure.covering(("a", "c")) is None
    np.testing.assert_allclose(fits.model.marginal("d"), [0.75, 0, 0.25], atol=0.01)
    assert fits.model.marginal("one").tolist() == [1.0]


@pytest.mark.parametrize(
    ("budget", "neighbours"),
    [
        (dpgm.Budget.pure(2), "add-remove"),
        (dpgm.Budget.zcdp("1/10"), "replace-one"),
        (dpgm.Budget.approx(1, "1e-6"), "add-remove"),
    ],
    ids=str,
)
def test_every_budget_is_spent_within_and_seeds_repeat(tmp_path, budget, neighbours):
    """With N estimated; a seed repeats the bits, and a saved release gives the same model without records."""
    codes, structure = ising(3_000), dpgm.Structure(ISING, PAIRS)
    terms = dpgm.Terms(neighbours=neighbours)
    one, two, other = (learned(codes, structure, budget, seed=seed, terms=terms) for seed in (1, 1, 2))
    assert one.model.cost == budget and len(one.releases) == 1
    assert len(one.release.steps) == len(one.trace) + 1
    spent, session_budget = dpgm.Budget.sum([step.cost for step in one.release.steps]), one.release.session.budget
    assert spent <= session_budget and session_budget * Fraction(999, 1000) <= spent
    np.testing.assert_array_equal(one.model.potentials.values, two.model.potentials.values)
    assert one.model.potentials.values.tolist() != other.model.potentials.values.tolist()
    one.release.save(tmp_path / "release.dpgmr")
    options = {"name": "mrf-fw", "width": 1.3, "least": 0.01}
    for release in (one.release, dpgm.load_release(tmp_path / "release.dpgmr")):
        again = dpgm.learn(release, options)
        assert again.model.structure == one.model.structure and again.model.cost == budget
        np.testing.assert_array_equal(again.model.potentials.values, one.model.potentials.values)
    one.model.save(tmp_path / "model.dpgm")
    assert dpgm.load_model(tmp_path / "model.dpgm").cost == budget
    with pytest.raises(dpgm.BudgetError, match="width = 2 has one of 4; learn again with the width of then"):
        dpgm.learn(one.release, {**options, "width": 2})


def test_releases_without_directions_are_refused():
    release = dpgm.release(ising(500), dpgm.Structure(ISING, PAIRS), dpgm.Budget.pure(1), neighbours="add-remove")
    with pytest.raises(dpgm.BudgetError, match="this release holds none; take another learner"):
        dpgm.learn(release, {"name": "mrf-fw", "width": 1.3})


@pytest.mark.parametrize(
    ("structure", "match"),
    [
        (dpgm.Structure(ISING, [("a", "b", "c")]), "learns pairs of attributes, and the structure has a x b x c"),
        (dpgm.Structure(ISING, [("a",), ("b",)]), "the structure has none; name some"),
        (dpgm.Structure(ISING, [()]), "the structure has none"),
        (dpgm.Structure(ISING, [], tied=[[("a", "b"), ("b", "c")]]), "tied cliques"),
    ],
    ids=["three", "alone", "empty", "tied"],
)
def test_structures_are_refused_before_anything_is_read(structure, match):
    """StructureError, and the records were not asked for."""
    with pytest.raises(dpgm.StructureError, match=match):
        learned(Unread(), structure, dpgm.Budget.pure(1), terms=TERMS)


def test_pairs_of_awkward_structures_are_learned():
    """Cycles, doubled and separate pairs, one label, an empty clique and complete graphs give finite potentials."""
    names = ("one label", "chain", "cycle", "complete", "duplicate", "disconnected", "empty clique")
    for name in names:
        structure = awkward_structures()[name]
        for count in (0, 200):
            codes = np.random.default_rng(1).integers(0, 1, (count, len(structure.domain)))
            fits = learned(codes, structure, dpgm.Budget.pure(1), terms=TERMS, steps=5)
            assert np.isfinite(fits.model.potentials.values).all(), name


def test_too_little_is_refused_before_anything_is_read():
    """BudgetError says how much more would do, and the records were not asked for."""

    with pytest.raises(dpgm.BudgetError, match=r"too little for mrf-fw: .* give [\d,]+ times the budget"):
        learned(Unread(), dpgm.Structure(ISING, PAIRS), dpgm.Budget.zcdp("1e-12"), terms=TERMS)


def test_a_model_beyond_its_engine_says_which_would_answer():
    """The structure found does not compile: the fit has its parameters, and a note names approximate engines."""

    class Trees:
        max_order = None

        def compile(self, structure):
            if sum(len(clique) == 2 for clique in structure.cliques) > 2:
                raise dpgm.TooLarge("a cycle does not fit; use another")
            return dpgm.make("inference", "junction-tree").compile(structure)

    fits = dpgm.fit(
        ising(2_000),
        dpgm.Structure(ISING, PAIRS),
        dpgm.Budget.zcdp(10**6),
        learner=FrankWolfeLearner(width=1.3, least=0.01, steps=50),
        inference=Trees(),
        neighbours="add-remove",
        randomness=dpgm.SeededRandomness(1),
    )
    assert len(fits.model.structure.cliques) == 6
    assert any("'loopy-bp' or 'gibbs', both approximate" in note for note in fits.notes)


def test_selectors_refuse_it_as_their_learner():
    """What a selector leaves is a release of tables, which this learner has no use for: refused before a charge."""
    with pytest.raises((dpgm.StructureError, dpgm.OptionError), match="mrf-fw"):
        dpgm.fit(
            ising(100),
            {"name": "mrf-fw", "width": 1},
            dpgm.Budget.zcdp(1),
            learner={"name": "mrf-fw", "width": 1},
            workload=dpgm.Workload.all(ISING),
            neighbours="add-remove",
        )
