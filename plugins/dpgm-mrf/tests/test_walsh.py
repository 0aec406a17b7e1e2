"""Products measured once and fitted exactly: what is found, under which terms, and what is refused before a charge."""

import itertools

import numpy as np
import pytest
from dpgm_mrf.entropy import maximum_entropy
from dpgm_mrf.polynomials import degrees, local, monomials_of, transform
from dpgm_mrf.published_method import multiply_weights
from dpgm_mrf.walsh import MrfWalsh, parities_of
from scipy.optimize import minimize

import dpgm_core as dpgm
from dpgm_testing.curators import TrappedRecords

ENGINE = dpgm.make("inference", "junction-tree")
ADD = dpgm.Terms(neighbours="add-remove", total=20_000)


def domain(p):
    return dpgm.Domain.from_sizes({f"x{place}": 2 for place in range(p)})


def records(coefficients, count, seed=1):
    weights = np.exp(transform(coefficients))
    states = np.random.default_rng(seed).choice(len(weights), count, p=weights / weights.sum())
    return states[:, None] >> np.arange(len(weights).bit_length() - 1) & 1


def polynomial(p, **monomials):
    """Coefficients by the digits of their attributes, such as m012=0.4."""
    actual = np.zeros(1 << p)
    for name, value in monomials.items():
        actual[sum(1 << int(place) for place in name[1:])] = value
    return actual


def read_off(model, p):
    """The polynomial of a model's potentials, (2^p,), without its constant."""
    names, actual = model.structure.domain.names, np.zeros(1 << p)
    for clique, table in model.potentials.items():
        actual[local(clique, names)] += transform(np.asarray(table).reshape(-1)) / table.size
    actual[0] = 0
    return actual


TRUTH = polynomial(5, m012=0.4, m23=-0.5, m34=0.4, m1=0.2)
CODES = records(TRUTH, 20_000)
TRIPLES = dpgm.Structure.complete(domain(5), 3)


def fitted(codes=CODES, structure=TRIPLES, budget=None, learner="mrf-walsh", mechanism="gaussian", terms=ADD, seed=3):
    budget = dpgm.Budget.zcdp("0.1") if budget is None else budget
    return dpgm.fit(codes, structure, budget, mechanism, learner, terms=terms, randomness=dpgm.SeededRandomness(seed))


# --- what is found ---------------------------------------------------------------------------------------------------


def test_interactions_are_learned():
    """20,000 records at rho = .1: noise of 25 products has standard deviation 11, records 1/141; so each is within
    .06 (five standard errors at a correlation of products of .5)."""
    fit = fitted()
    assert fit.converged and fit.model.structure == TRIPLES
    assert read_off(fit.model, 5) == pytest.approx(TRUTH, abs=0.06)
    assert {len(clique) for clique in fit.release.structure.cliques} == {1, 2, 3} and fit.release.measurement.contrasts


def test_the_least_interaction_makes_the_structure():
    """The largest products above least / 2, attributes of none alone, and the smaller products inside them kept."""
    fit = fitted(learner=MrfWalsh(least=0.4))
    assert fit.model.structure.cliques == (("x0", "x1", "x2"), ("x2", "x3"), ("x3", "x4"))
    actual = read_off(fit.model, 5)
    assert actual == pytest.approx(TRUTH, abs=0.06)
    assert actual[0b00011] != 0 and actual[0b10001] == 0
    alone = fitted(learner=MrfWalsh(least=3.0)).model
    assert alone.structure.cliques == tuple((name,) for name in domain(5).names)


def test_the_fit_is_the_optimum():
    """p = 4: log Z - x . y + (v + 1/N) x^2 / 2 written out over 16 states and minimised by BFGS, from the release."""
    structure = dpgm.Structure(domain(4), [("x0", "x1", "x3"), ("x3", "x2", "x1"), ("x0",)])
    fit = fitted(records(polynomial(4, m01=0.5, m013=-0.3), 500), structure, terms=dpgm.Terms(neighbours="add-remove"))
    release, signs, means, variances, own = fit.release, [], [], [], []
    for clique, variance in zip(release.structure.cliques, release.variances, strict=True):
        if not clique:
            continue
        sign = np.array([(-1) ** sum(cell) for cell in itertools.product((0, 1), repeat=len(clique))])
        means.append(float(sign @ np.asarray(release.tables[clique]).reshape(-1)) / release.total)
        variances.append(variance * 2 ** len(clique) / release.total**2 + 1 / release.total)
        places = [int(name[1:]) for name in clique]
        own.append(sum(1 << place for place in places))
        signs.append([(-1) ** sum(state >> place & 1 for place in places) for state in range(16)])
    signs, means, variances = np.array(signs).T, np.array(means), np.array(variances)
    assert len(own) == 11 and np.abs(means).max() < 1 and release.total != 500  # the number of records is measured

    def objective(x):
        return np.log(np.exp(signs @ x).sum()) - x @ means + variances @ x**2 / 2

    best = minimize(objective, np.zeros(11), method="BFGS", options={"gtol": 1e-9}).x
    assert read_off(fit.model, 4)[own] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_no_product_is_larger_than_the_order(order):
    structure = dpgm.Structure(domain(4), [("x0", "x1", "x2", "x3")])
    fit = fitted(CODES[:, :4], structure, learner=MrfWalsh(order=order))
    assert max(map(len, fit.release.structure.cliques)) == order
    actual = read_off(fit.model, 4)
    assert not actual[degrees(16) > order].round(12).any() and actual[degrees(16) == order].all()
    assert fit.model.structure == structure


# --- terms, noise and saved releases ---------------------------------------------------------------------------------

TERMS = {
    "declared": ADD,
    "public": dpgm.Terms(neighbours="replace-one", total="public"),
    "estimated": dpgm.Terms(neighbours="add-remove"),
    "two rows": dpgm.Terms(neighbours="add-remove", total=20_000, person="x4", rows_per_person=2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("known", ["declared", "public", "estimated"])
@pytest.mark.parametrize(
    ("mechanism", "budget"), [("gaussian", dpgm.Budget.zcdp("0.5")), ("laplace", dpgm.Budget.pure(2))]
)
def test_every_number_of_records_and_noise_serves(known, mechanism, budget):
    """Laplace noise of 25 sums at epsilon = 2 has standard deviation 18, twice that under replace-one: within .1 of the
    truth, the same model from the saved release, and another seed another model."""
    fit = fitted(budget=budget, mechanism=mechanism, terms=TERMS[known])
    assert read_off(fit.model, 5) == pytest.approx(TRUTH, abs=0.1)
    assert fit.release.total_policy == known
    again = dpgm.learn(fit.release, "mrf-walsh")
    assert again.model.structure == TRIPLES
    assert again.model.potentials.values.tolist() == fit.model.potentials.values.tolist()
    assert fitted(budget=budget, mechanism=mechanism, terms=TERMS[known]).model.potentials.values.tolist() == (
        fit.model.potentials.values.tolist()
    )
    other = fitted(budget=budget, mechanism=mechanism, terms=TERMS[known], seed=4)
    assert other.model.potentials.values.tolist() != fit.model.potentials.values.tolist()


def test_a_saved_release_of_cells_serves_too():
    """As another learner measured it, and two of them as one."""
    releases = [
        dpgm.release(
            CODES, TRIPLES, dpgm.Budget.zcdp("0.5"), "gaussian", terms=ADD, randomness=dpgm.SeededRandomness(s)
        )
        for s in (1, 2)
    ]
    for saved in (releases[0], releases):
        assert read_off(dpgm.learn(saved, "mrf-walsh").model, 5) == pytest.approx(TRUTH, abs=0.1)
    before = dpgm.make("learner", "mrf-walsh").fitter(ENGINE)(releases[0], TRIPLES, None)
    assert before.model.structure == TRIPLES


def test_error_bars_come_from_refits():
    """The bootstrap's spread of a product's coefficient is that of fits to other seeds, to a factor 2 (20 replicates:
    a false alarm has probability below 1e-4)."""
    codes, structure = CODES[:2000, :3], dpgm.Structure(domain(3), [("x0", "x1", "x2")])
    terms = dpgm.Terms(neighbours="add-remove", total=2000)
    fit = fitted(codes, structure, terms=terms, learner=MrfWalsh(least=0.4))
    assert fit.model.structure == structure
    model = dpgm.bootstrap(fit.model, 20, randomness=dpgm.SeededRandomness(5))
    spread = np.std([read_off(one, 3)[7] for one in model.replicates])
    seeds = range(10, 30)
    whole = [fitted(records(read_off(fit.model, 3), 2000, s), structure, terms=terms, seed=s).model for s in seeds]
    assert 0.5 < spread / np.std([read_off(one, 3)[7] for one in whole]) < 2


def test_a_plan_says_what_a_fit_measures():
    """Every product up to the order, with the noise that is drawn."""
    plan = dpgm.plan(TRIPLES, dpgm.Budget.zcdp("0.1"), "gaussian", terms=ADD, learner="mrf-walsh")
    release = fitted().release
    assert {one.clique for one in plan.tables} == set(release.structure.cliques)
    assert [one.noise**2 for one in plan.tables] == pytest.approx([one.variance for one in release.noise])


def test_tables_are_measured_where_contrasts_have_more_noise():
    """Pairs with Laplace noise: tables, as a plan has it; contrasts are refused, with the option that serves."""
    chain = dpgm.Structure.chain(domain(4))
    truth = polynomial(4, m01=0.4, m12=-0.3, m2=0.2)
    pure = {"structure": chain, "budget": dpgm.Budget.pure(1), "mechanism": "laplace"}
    fit = fitted(records(truth, 20_000), **pure)
    assert fit.release.structure.cliques == chain.cliques and not fit.release.contrasts
    assert read_off(fit.model, 4) == pytest.approx(truth, abs=0.06)
    plan = dpgm.plan(chain, pure["budget"], "laplace", terms=ADD, learner="mrf-walsh")
    assert [(one.clique, one.cells) for one in plan.tables] == [(clique, 4) for clique in chain.cliques]
    with pytest.raises(dpgm.BudgetError, match="split = 'even'"):
        fitted(CODES[:, :4], **pure, learner={"name": "mrf-walsh", "split": "contrasts"})
    assert fitted(CODES[:, :4], **pure, learner=MrfWalsh(split="even")).release.structure.cliques == chain.cliques
    nothing = dpgm.Structure(domain(2), [()])
    assert fitted(CODES[:, :2], nothing).model.potentials.values.tolist() == [0]


# --- what is refused -------------------------------------------------------------------------------------------------

WIDE = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 1, "d": 2})
REFUSED = {
    "labels": (
        MrfWalsh(),
        dpgm.Structure(WIDE, [("a", "b"), ("c", "d")]),
        dpgm.StructureError,
        r"'b' \(3\), 'c' \(1\)",
    ),
    "tied": (
        MrfWalsh(),
        dpgm.Structure(domain(4), [], tied=[(("x0", "x1"), ("x2", "x3"))]),
        dpgm.StructureError,
        "untie them",
    ),
    "size": (MrfWalsh(), dpgm.Structure.chain(domain(17)), dpgm.TooLarge, r"2\^17 states.*at most 16.*mrf-select"),
    "order": (MrfWalsh(order=5), dpgm.Structure.chain(domain(4)), dpgm.OptionError, "order to at most 4"),
    "width": (MrfWalsh(method="paper"), dpgm.Structure.chain(domain(4)), dpgm.OptionError, "needs width"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_learn_is_refused_before_the_charge(case):
    """One line each, by check, by what it foresees, and by learn with no record read and nothing spent."""
    learner, structure, error, said = REFUSED[case]
    curator = dpgm.LiveCurator(
        TrappedRecords(np.zeros((10, len(structure.domain)), int)),
        structure,
        dpgm.make("mechanism", "gaussian"),
        terms=ADD,
        budget=dpgm.Budget.zcdp(1),
    )
    asks = (
        lambda: learner.check(structure, ENGINE),
        lambda: learner.planned_tables(structure),
        lambda: learner.learn(curator, ENGINE, randomness=dpgm.SeededRandomness(1), progress=dpgm.silent),
        lambda: dpgm.plan(structure, dpgm.Budget.zcdp(1), "gaussian", terms=ADD, learner=learner),
    )
    for ask in asks:
        with pytest.raises(error, match=said) as caught:
            ask()
        assert "\n" not in str(caught.value)
    assert curator.remaining == curator.budget and not curator.released


@pytest.mark.parametrize("name", ["order", "least", "width"])
@pytest.mark.parametrize("value", [0, -1, True, float("nan"), float("inf"), "3", 0.0])
def test_numbers_that_are_none_are_refused(name, value):
    with pytest.raises(dpgm.OptionError, match=name):
        MrfWalsh(**{name: value})


def test_other_nonsense_is_refused():
    for options in ({"order": 2.5}, {"order": None}, {"method": "fem"}, {"method": None}):
        with pytest.raises(dpgm.OptionError, match=next(iter(options))):
            MrfWalsh(**options)


def test_fewer_attributes_than_the_default_order_are_no_error():
    """A pair, and an attribute beside one of three labels that is in no clique."""
    both = dpgm.Domain.from_sizes({"x0": 2, "x1": 2, "other": 3})
    codes = np.column_stack([CODES[:, 2:4], CODES[:, 0]])
    fit = fitted(codes, dpgm.Structure(both, [("x0", "x1")]))
    assert fit.model.potentials["x0", "x1"][0, 0] == pytest.approx(-0.5, abs=0.2)


# --- Means of monomials out of releases of contrasts and of cells, against sums written out ---------------------------

NAMES = ("a", "b", "c")
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2))
CODES_PARITIES = np.random.default_rng(0).integers(0, 2, (400, 3)) & np.array([1, 1, 0]) ^ np.array([0, 1, 1])


def released(cliques, rho=1, split="even", total=400, model=("a", "b", "c")):
    curator = dpgm.LiveCurator(
        CODES_OF,
        dpgm.Structure(DOMAIN, [model]),
        dpgm.make("mechanism", "gaussian"),
        terms=dpgm.Terms(neighbours="add-remove", total=total),
        budget=dpgm.Budget.zcdp(rho),
        randomness=dpgm.SeededRandomness(1),
    )
    return curator.release(cliques=cliques, split=split)


class Codes:
    """The records."""

    def batches(self, domain, columns):
        yield [CODES_PARITIES[:, domain.names.index(name)] for name in columns]


CODES_OF = Codes()


def test_contrasts_tell_one_product_each():
    """With the noise that was calibrated: the variance of m sums at rho is m / (2 rho)."""
    release = released([("c", "b", "a")], split="contrasts")
    actual = parities_of(release, NAMES, np.arange(1, 8))
    assert actual.monomials.tolist() == list(range(1, 8))
    assert actual.variances * 400**2 == pytest.approx(np.full(7, 7 / 2), rel=0.01)
    spun = 1 - 2 * CODES_PARITIES
    for monomial, mean in zip(actual.monomials, actual.values, strict=True):
        true = np.prod(spun[:, [place for place in range(3) if monomial >> place & 1]], axis=1).mean()
        assert mean == pytest.approx(true, abs=6 * np.sqrt(3.5) / 400)


def test_cells_tell_all_products_inside_them_and_are_averaged_by_their_noise():
    """y_ab and y_b of tables over c, b and b, a, the same names in other orders; b from both, by inverse variance."""
    release = released([("c", "b"), ("b", "a")])
    actual = parities_of(release, NAMES, np.arange(1, 8))
    assert set(actual.monomials.tolist()) == {0b001, 0b010, 0b100, 0b011, 0b110}  # not a c, and not all three
    noise = dict(zip(actual.monomials.tolist(), (actual.variances * 400**2).tolist(), strict=True))
    # Two tables at rho = 1: a cell has variance 1, a mean of four cells 4; b is told twice.
    assert noise == pytest.approx({1: 4, 4: 4, 3: 4, 6: 4, 2: 2}, rel=0.01)
    sign = np.array([1, -1])
    one, other = (np.asarray(release.tables[pair], float) for pair in (("b", "c"), ("b", "a")))
    means = dict(zip(actual.monomials.tolist(), actual.values.tolist(), strict=True))
    assert means[0b011] == pytest.approx(float(sign @ other @ sign) / 400)
    assert means[0b010] == pytest.approx(float(sign @ (one + other).sum(axis=1)) / 800)


def test_unequal_noise_counts_by_its_variance():
    """A table with 100 times the budget has all the say, nearly."""
    curator = dpgm.LiveCurator(
        CODES_OF,
        dpgm.Structure(DOMAIN, [("a", "b", "c")]),
        dpgm.make("mechanism", "gaussian"),
        terms=dpgm.Terms(neighbours="add-remove", total=400),
        budget=dpgm.Budget.zcdp(2),
        randomness=dpgm.SeededRandomness(1),
    )
    budgets = {("a", "b"): dpgm.Budget.zcdp("0.01"), ("b", "c"): dpgm.Budget.zcdp(1)}
    release = curator.release(budget=budgets)
    actual = parities_of(release, NAMES, np.array([0b010]))
    expected = 1 / (1 / (4 * 50) + 1 / (4 * 0.5)) / 400**2
    assert actual.variances[0] == pytest.approx(expected, rel=0.01)
    quiet = np.asarray(release.tables["b", "c"], float)
    assert actual.values[0] == pytest.approx(float(quiet.sum(axis=1) @ [1, -1]) / 400, abs=0.02)


def test_only_requested_and_measured_monomials():
    """Products beyond the order are left out, and what noise takes beyond 1 is put there."""
    release = released([("a", "b")], rho="1e-6", split="contrasts")
    structure = dpgm.Structure(DOMAIN, [("a", "b"), ("b", "c")])
    actual = parities_of(release, NAMES, monomials_of(structure, NAMES, 1))
    assert actual.monomials.tolist() == [1, 2]
    assert np.abs(actual.values).max() <= 1
    assert np.sqrt(actual.variances[0]) * 400 == pytest.approx(np.sqrt(3 / 2e-6), rel=0.01)


# --- Multiplicative weights against the update written out and against the distribution of most entropy ---------------


def test_one_mean_is_approached_as_the_update_says():
    """D ~ D exp(z (measured - current) / 2), pass by pass, over two states."""
    distribution = np.array([0.5, 0.5])
    for _ in range(20):
        distribution = distribution * np.exp(np.array([1, -1]) * (0.8 - (distribution[0] - distribution[1])) / 2)
        distribution = distribution / distribution.sum()
    assert np.exp(multiply_weights(2, [(1, 0.8)])) == pytest.approx(distribution)


def test_consistent_means_lead_to_the_most_entropy():
    """Called again and again, as rounds do, the means are met, by an exponential family of their monomials."""
    coefficients = np.zeros(16)
    coefficients[[0b0001, 0b0110, 0b1011]] = 0.3, -0.5, 0.4
    weights = np.exp(transform(coefficients))
    means = transform(weights / weights.sum())
    own = [0b0001, 0b0110, 0b1011]
    logs = np.zeros(16)
    for _ in range(10):
        logs = multiply_weights(16, [(one, float(means[one])) for one in own], logs)
    assert np.exp(logs).sum() == pytest.approx(1)
    assert transform(np.exp(logs))[own] == pytest.approx(means[own], abs=1e-6)
    best = maximum_entropy(16, np.array(own), means[own], np.zeros(3))
    assert transform(np.exp(logs)) == pytest.approx(best.means, abs=1e-6)


def test_nothing_measured_is_uniform():
    start = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    assert np.exp(multiply_weights(4, [])).tolist() == [0.25] * 4
    assert np.exp(multiply_weights(4, [], start)) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert multiply_weights(4, [(3, 0.9)], start)[0] != start[0] and np.exp(start).sum() == pytest.approx(1)


# --- Maximum entropy on all states: its own means again, the optimum by brute force, and means that no one can meet ---


def monomials(p, order):
    actual = degrees(1 << p)
    return np.nonzero((actual > 0) & (actual <= order))[0]


def population(p, order, seed, scale=0.4):
    coefficients = np.zeros(1 << p)
    own = monomials(p, order)
    coefficients[own] = np.random.default_rng(seed).normal(scale=scale, size=len(own))
    weights = np.exp(transform(coefficients))
    return coefficients, transform(weights / weights.sum())


@pytest.mark.parametrize(("p", "order"), [(1, 1), (4, 4), (8, 3), (10, 2)])
def test_it_reproduces_its_own_parities(p, order):
    """Without noise the means are met to 1e-8, and with them the polynomial is found again."""
    coefficients, means = population(p, order, seed=p)
    own = monomials(p, order)
    actual = maximum_entropy(1 << p, own, means[own], np.zeros(len(own)))
    assert actual.converged and np.abs(actual.means[own] - means[own]).max() < 1e-8
    assert actual.coefficients == pytest.approx(coefficients, abs=1e-6)
    assert np.abs(actual.means - means).max() < 1e-8  # those it was not told of, too


def test_the_optimum_is_that_of_another_minimiser():
    """p = 4, noisy means, a variance each: the objective written out over 16 states, minimised by BFGS."""
    rng = np.random.default_rng(3)
    own = monomials(4, 3)
    _, means = population(4, 3, seed=1)
    noisy, variances = means[own] + rng.normal(scale=0.1, size=len(own)), rng.uniform(0.001, 0.05, len(own))
    signs = np.array([[(-1) ** bin(one & state).count("1") for one in own] for state in range(16)])

    def objective(x):
        return np.log(np.exp(signs @ x).sum()) - x @ noisy + variances @ x**2 / 2

    best = minimize(objective, np.zeros(len(own)), method="BFGS", options={"gtol": 1e-9}).x
    actual = maximum_entropy(16, own, noisy, variances)
    assert actual.converged and actual.coefficients[own] == pytest.approx(best, abs=1e-4)
    assert objective(actual.coefficients[own]) <= objective(best) + 1e-12
    again = maximum_entropy(16, own, noisy, variances, start=actual.coefficients)
    assert again.converged and len(again.trace) == 1


@pytest.mark.parametrize("variance", [1e-3, 1e-2, 1e4])
def test_means_that_nobody_has_are_met_as_nearly_as_their_noise_allows(variance):
    """All means -1 and 1 at random: finite, converged, and mu - y + v x = 0 by its own numbers."""
    own = monomials(6, 3)
    means = np.random.default_rng(4).choice([-1.0, 1.0], len(own))
    actual = maximum_entropy(64, own, means, np.full(len(own), variance))
    assert actual.converged and np.isfinite(actual.coefficients).all()
    weights = np.exp(transform(actual.coefficients) - transform(actual.coefficients).max())
    mu = transform(weights / weights.sum())[own]
    assert np.abs(mu - means + variance * actual.coefficients[own]).max() < 1e-8


def test_more_noise_pulls_nearer_to_uniform():
    """The absolute coefficient of a single mean falls as its variance grows, from atanh(y) on."""
    actual = [
        maximum_entropy(2, np.array([1]), np.array([0.5]), np.array([variance])).coefficients[1]
        for variance in (0.0, 0.01, 0.1, 1.0, 10.0)
    ]
    assert actual[0] == pytest.approx(np.arctanh(0.5), abs=1e-8)
    assert all(one > other > 0 for one, other in itertools.pairwise(actual))


def test_nothing_to_meet_is_uniform():
    actual = maximum_entropy(8, np.zeros(0, int), np.zeros(0), np.zeros(0))
    assert actual.converged and not actual.coefficients.any() and actual.means.tolist() == [1] + [0] * 7
