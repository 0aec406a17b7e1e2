"""Several releases as one, and what learners see of releases: weighted ones in persons, noises of sums and means."""

from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Contributions, Domain, SeededRandomness, Structure, Tables, Terms, make
from dpgm_core.learning.bootstrap import Simulator
from dpgm_core.releases.pooling import PooledNoise, pool, united
from dpgm_core.releases.release import check_alike, condition_of
from dpgm_core.releases.totals import estimate_total
from dpgm_core.releases.views import DerivedNoise, equalize_totals

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])
DELTA = Fraction(1, 10**6)
CODES = np.random.default_rng(0).integers(0, [2, 3, 2], size=(500, 3))


def released(structure=PAIRS, budget="1/4", mechanism="laplace", seed=1, codes=CODES, **terms):
    """A simulated release; budget: epsilon, or rho for Gaussian noise."""
    spent = Budget.zcdp(budget) if mechanism == "gaussian" else Budget.pure(budget)
    stated = Terms(**{"neighbours": "add-remove"} | terms)
    return dpgm.release(codes, structure, spent, mechanism, terms=stated, randomness=SeededRandomness(seed))


def test_two_releases_of_equal_noise_are_one_of_half_the_variance():
    """Tables, total and its variance; the total is that which the pooled tables estimate."""
    one, two = released(seed=1), released(seed=2)
    both = pool([one, two])
    assert both.structure == PAIRS and both.cost == Budget.pure("1/2") and not both.private
    np.testing.assert_allclose(both.tables.values, (one.tables.values + two.tables.values) / 2, rtol=1e-12)
    np.testing.assert_allclose(both.variances, one.variances / 2, rtol=1e-12)
    assert both.total_variance == pytest.approx(one.total_variance / 2, rel=1e-12)
    assert both.total == pytest.approx(estimate_total(both.tables, both.variances)[0], rel=1e-12)
    assert both.published == (one, two)
    assert "It holds for all 2 releases together" in both.guarantee()


def test_each_table_is_the_least_squares_mean_of_its_releases():
    """Other cliques, other noise, other order of names: weights are inverse variances, table by table."""
    first = released(PAIRS, "1/4", "gaussian", seed=1)
    second = released(Structure(DOMAIN, [("b",), ("c", "b")]), "1/25", seed=2)
    both = pool([first, second], DELTA)
    assert both.structure.cliques == (("a", "b"), ("b", "c"), ("b",))
    assert both.cost == dpgm.Model(PAIRS, Tables.zeros(PAIRS), releases=[first, second], conversion_delta=DELTA).cost
    v1, v2 = first.variances[1], second.variances[1]
    expected = (first.tables["b", "c"] / v1 + second.tables["b", "c"] / v2) / (1 / v1 + 1 / v2)
    np.testing.assert_allclose(both.tables["b", "c"], expected, rtol=1e-12)
    np.testing.assert_allclose(
        both.variances, [first.variances[0], 1 / (1 / v1 + 1 / v2), second.variances[0]], rtol=1e-12
    )
    np.testing.assert_allclose(both.tables["a", "b"], first.tables["a", "b"])
    assert both.noise[0] is first.noise[0] and isinstance(both.noise[1], PooledNoise)
    weights = np.array([1 / first.total_variance, 1 / second.total_variance])
    assert both.total == pytest.approx(weights @ [first.total, second.total] / weights.sum(), rel=1e-12)


def test_tied_tables_pool_where_they_hold_the_same_sums():
    """Whatever the order of the cliques and of their axes, if it is the same in all; else they are other tables."""
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3})
    one = Structure(domain, [], tied=[[("a", "b"), ("c", "d")]])
    turned = Structure(domain, [], tied=[[("d", "c"), ("b", "a")]])
    codes = np.random.default_rng(1).integers(0, [2, 3, 2, 3], size=(300, 4))
    first, second = released(one, 100, seed=1, codes=codes), released(turned, 100, seed=2, codes=codes)
    both = pool([first, second])
    assert both.structure == one and np.abs(both.tables.values - first.tables.values).max() < 3
    square = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    along, across = ([[("a", "b"), ("b", "c")]], [[("a", "b"), ("c", "b")]])
    assert len(united([Structure(square, [], tied=along), Structure(square, [], tied=across)]).groups) == 2


def test_a_known_total_is_taken_and_two_must_agree():
    """Public or declared in one, estimated in another; the guarantee keeps its condition."""
    estimated, public = released(seed=1), released(seed=2, total="public")
    both = pool([estimated, public])
    assert (both.total, both.total_variance, both.total_policy) == (500.0, 0.0, "public")
    assert condition_of([public]) in both.guarantee()
    assert pool([public, released(seed=3, total=500)]).total == 500
    with pytest.raises(BudgetError, match="state N = 490 and N = 500, so they are not about the same records"):
        pool([public, released(seed=3, total=490)])


def test_weighted_releases_are_levelled_to_the_common_total():
    """Tables of normalised contributions have one total before their mean is taken, and so has the mean."""
    terms = {"person": "id", "rows_per_person": 2, "contributions": Contributions(per="clique", grid=60)}
    rows = {"id": np.repeat(np.arange(250), 2).astype(str).astype(object)} | dict(zip("abc", CODES.T, strict=True))
    one, two = (released(seed=seed, codes=rows, **terms) for seed in (1, 2))
    both = pool([one, two])
    assert both.contributions is None and both.published == (one, two)
    np.testing.assert_allclose(both.tables.sums(), both.total, rtol=1e-12)
    parts = [equalize_totals(attrs.evolve(each, total=both.total)) for each in (one, two)]
    np.testing.assert_allclose(1 / both.variances, 1 / parts[0].variances + 1 / parts[1].variances, rtol=1e-12)


def test_a_cell_beyond_what_noise_does_is_moved_before_the_mean():
    """One absurd cell in one release does not spoil the pool."""
    one, two = released(seed=1), released(seed=2)
    values = one.tables.values.copy()
    values[0] = 2**62
    both = pool([attrs.evolve(one, tables=Tables(PAIRS, values)), two])
    assert both.tables.values[0] < 2000


@pytest.mark.landing
def test_simulated_pools_vary_like_the_pool():
    """Counts of one set of records, to which each release's own noise is added: the mean square deviation from the
    expected counts is sampling and pooled noise (400 draws, 12 cells; six standard errors: 1e-8)."""
    both = pool([released(seed=1, budget="1/10", total="public"), released(seed=2, budget="1/20", total="public")])
    simulator = Simulator(both, make("inference", "junction-tree").compile(PAIRS), Tables.zeros(PAIRS))
    source = SeededRandomness(5)
    draws = np.array([simulator.draw(source).tables.values for _ in range(400)])
    share = 1 / np.array([6] * 12)
    expected = 500 * share * (1 - share) + np.repeat(both.variances, PAIRS.sizes)
    squares = (draws - 500 * share) ** 2
    error = squares.mean(axis=1).std() / 20
    assert squares.mean() == pytest.approx(expected.mean(), abs=6 * error)
    assert simulator.draw(source).published[0].pooled == ()


REFUSED = {
    "another domain": (
        {"structure": Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 3}), [("a", "b")])}, dpgm.StructureError,
        "over different domains",
    ),
    "the same seed": ({"seed": 1}, BudgetError, "one release is given twice"),
}  # fmt: skip


@pytest.mark.parametrize("key", REFUSED)
def test_what_does_not_go_together_is_refused(key):
    """One line that says why."""
    changes, error, words = REFUSED[key]
    with pytest.raises(error, match=words) as caught:
        pool([released(), released(**{"seed": 2} | changes)])
    assert "\n" not in str(caught.value)


def test_rounds_nothing_and_other_weights_are_refused(released):
    """Subsampled tables are about others; so are weighted rows."""
    rounds, weighted, plain = (released[name][1] for name in ("rounds pure 0.25", "weighted", "persons"))
    unkeyed = released["laplace"][1]
    with pytest.raises(BudgetError, match="does not pool with others"):
        pool([attrs.evolve(rounds, terms=unkeyed.terms), unkeyed])
    with pytest.raises(BudgetError, match="weight rows differently"):
        pool([weighted, plain])
    with pytest.raises(BudgetError, match="at least one release"):
        pool([])


def test_equal_numbers_by_chance_are_two_releases():
    """Narrow noise on few cells gives the same table again; only a chance below 1e-9 is taken for one release."""
    one = Structure(DOMAIN, [("a",)])
    first, second = released(one, 50, seed=1), released(one, 50, seed=2)
    assert np.array_equal(first.tables.values, second.tables.values)
    assert pool([first, second]).pooled == (first, second)


def test_one_release_is_its_own_pool_and_a_pool_of_pools_is_one():
    """Nothing is averaged twice."""
    one, two, three = (released(seed=seed) for seed in (1, 2, 3))
    assert pool([one]) is one
    assert pool([pool([one, two]), three]).pooled == (one, two, three)


def test_a_view_is_no_file(tmp_path):
    """Files are those of the releases behind it."""
    both = pool([released(seed=1), released(seed=2)])
    with pytest.raises(dpgm.ModelFileError, match="cannot hold a view of 2 release"):
        both.save(tmp_path / "pool.dpgm")


def test_pooled_noise_has_the_law_it_states():
    """Draws have the stated variance (1e5 of them, seven standard errors)."""
    both = pool([released(budget="1/10", seed=1), released(budget="1/2", mechanism="gaussian", seed=2)], DELTA)
    noise = both.noise[0]
    drawn = noise.draw((100_000,), SeededRandomness(3)) ** 2
    assert drawn.mean() == pytest.approx(noise.variance, abs=7 * drawn.std() / 100_000**0.5)


WEIGHTS = Contributions(per="clique", grid=12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"neighbours": "replace-one"}, "add-remove and replace-one neighbours do not add up"),
        ({"unit": "one visit"}, "different units .* one record, .* one visit"),
        ({"person": "who"}, "different units"),
        ({"person": "who", "rows_per_person": 2}, "different units"),
        ({"person": "who", "rows_per_person": 2, "contributions": WEIGHTS}, "weight rows differently"),
    ],
)
def test_guarantees_that_do_not_add_up_are_refused(change, words):
    """Under other terms a second release is about other people, so no sentence is true of both."""
    one = released()
    other = attrs.evolve(one, terms=attrs.evolve(one.terms, **change))
    for several in ([one, other], [other, one], [one, one, other]):
        with pytest.raises(BudgetError, match="weight rows" if "weight" in words else "do not add up") as caught:
            check_alike(several)
        assert "\n" not in str(caught.value)
    with pytest.raises(BudgetError, match=words):
        check_alike([one, other])


STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a",)], tied=[[("a", "b"), ("c", "b")]])


def weighted(contributions):
    """Of 200 persons with up to three rows each."""
    rng = np.random.default_rng(1)
    persons = np.repeat(np.arange(200), rng.integers(1, 4, 200))
    table = {name: rng.integers(size, size=len(persons)) for name, size in STRUCTURE.domain.sizes.items()}
    return dpgm.release(
        {"id": persons.astype(str).astype(object)} | table, STRUCTURE, Budget.pure(1),
        terms=Terms(neighbours="add-remove", person="id", rows_per_person=3, contributions=contributions),
        randomness=SeededRandomness(1),
    )  # fmt: skip


@pytest.mark.parametrize("per", ["clique", "group"])
def test_every_table_has_one_total(per):
    """m_g N, where the weighted tables sum to what persons had to add; shares within a table do not change."""
    release = weighted(Contributions(per=per, grid=60))
    view = equalize_totals(release)
    assert view.tables.sums() == pytest.approx(release.total * np.array([1, 2]), rel=1e-12)
    assert view.contributions is None and view.original is release
    assert view.cost == release.cost and view.private == release.private
    for before, after in zip(release.tables.arrays(), view.tables.arrays(), strict=True):
        np.testing.assert_allclose(after / after.sum(), before / before.sum(), rtol=1e-12)
    factors = view.tables.sums() / release.tables.sums()
    assert view.variances == pytest.approx(factors**2 * release.variances, rel=1e-12)


def test_a_release_of_counts_is_its_own_view():
    """There is nothing to level."""
    release = weighted(None)
    assert equalize_totals(release) is release


class Wide(DerivedNoise):
    """Of a stated variance."""

    variance = 7.0


def test_its_density_is_the_gaussian_of_its_variance():
    """Against scipy's, and the slope against differences of it."""
    residual = np.array([-30.0, -3.0, 0.0, 2.0])
    noise = Wide()
    np.testing.assert_allclose(noise.logpdf(residual), stats.norm.logpdf(residual, scale=7**0.5))
    slope = (noise.logpdf(residual + 1e-5) - noise.logpdf(residual - 1e-5)) / 2e-5
    np.testing.assert_allclose(noise.score(residual), slope, atol=1e-6)
    assert noise.dual.curvature == 7 and noise.dual.bound == noise.support[1] == -noise.support[0] == np.inf


@pytest.mark.parametrize("ask", ["cost", "event"])
def test_it_has_no_price(ask):
    """Nobody takes a view for what was paid."""
    with pytest.raises(BudgetError, match="Wide costs nothing of its own; ask the releases behind it"):
        getattr(Wide(), ask)
